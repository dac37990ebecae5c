// SPDX-License-Identifier: GPL-2.0
/*
 * FastTrack's core: who is in front, and to which class a task belongs.
 *
 * The configuration (struct ft_config) is written by a detector in user space
 * through sysfs.c and read for every bio. It is one RCU-protected object that is
 * replaced as a whole, so a reader sees one state and takes no lock.
 *
 * The foreground is named in three ways, all of which follow fork():
 *  - UIDs, compared with the task's real UID;
 *  - thread groups: adding one puts a tag into its signal_struct, which fork()
 *    copies. Removing one retires the tag, and so drops every descendant at
 *    once without a walk; a reused PID never carries an old tag;
 *  - cgroups of the default hierarchy, with all below them.
 *
 * An app that is not in front is background. Kernel threads and everything
 * that is no app are neutral.
 *
 * Lock order: ft_config_mutex, then what cgroup and PID look-ups take.
 */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/fasttrack.h>

EXPORT_TRACEPOINT_SYMBOL_GPL(fasttrack_dispatch);
EXPORT_TRACEPOINT_SYMBOL_GPL(fasttrack_hold);
EXPORT_TRACEPOINT_SYMBOL_GPL(fasttrack_promote);

DEFINE_STATIC_KEY_FALSE(fasttrack_key);
EXPORT_SYMBOL_GPL(fasttrack_key);

/* Guards replacement of ft_config, and ft_groups[]. */
DEFINE_MUTEX(ft_config_mutex);

static struct ft_config ft_config_boot = {
	/* Apps, isolated processes, SDK sandboxes: AID_* in Android's
	 * android_filesystem_config.h.
	 */
	.nr_app_uids = 3,
	.app_uids = {
		{ 10000, 19999 },
		{ 20000, 29999 },
		{ 90000, 99999 },
	},
};

struct ft_config __rcu *ft_config = RCU_INITIALIZER(&ft_config_boot);

struct ft_knobs ft_knobs = {
	.page_allocator = true,
	.page_reclaimer = true,
	.promotion = true,
	/* An app decodes an image or lays out a view between reads. */
	.idle_window = 20 * NSEC_PER_MSEC,
	.background_pause = NSEC_PER_SEC,
	/* One request of the usual size is read, and copied. */
	.segment_pages = SZ_512K >> PAGE_SHIFT,
	/* What a phone's storage reads in 50 ms. */
	.reserve_pages = SZ_16M >> PAGE_SHIFT,
	.foreground_cache_percent = 60,
};

/**
 * struct ft_group - a thread group in the foreground set
 * @tag: what its signal_struct carries, 0 for a free entry
 * @tgid: its leader's PID, referenced
 */
struct ft_group {
	u32 tag;
	struct pid *tgid;
};

/* The list in force, and the one that is to replace it. */
static struct ft_group ft_groups[2 * FT_MAX_ENTRIES];
static u32 ft_last_tag;

static DEFINE_PER_CPU(unsigned long [FASTTRACK_NR_STATS], ft_stats);

/* The statistics that are maxima, ns. The others are counters. */
static atomic64_t ft_maxima[FASTTRACK_NR_STATS];

/* Is anybody in front? Follows ft_config. */
static bool ft_has_foreground;

/**
 * fasttrack_count - add one to a counter
 * @stat: which
 *
 * Context: any.
 */
void fasttrack_count(enum fasttrack_stat stat)
{
	this_cpu_inc(ft_stats[stat]);
}
EXPORT_SYMBOL_GPL(fasttrack_count);

/**
 * fasttrack_max - raise a maximum
 * @stat: which
 * @ns: seen now
 *
 * Context: any.
 */
void fasttrack_max(enum fasttrack_stat stat, u64 ns)
{
	s64 old = atomic64_read(&ft_maxima[stat]);

	while (old < (s64)ns &&
	       !atomic64_try_cmpxchg(&ft_maxima[stat], &old, ns))
		;
}
EXPORT_SYMBOL_GPL(fasttrack_max);

/* A counter, or a maximum in microseconds. */
unsigned long ft_stat_read(enum fasttrack_stat stat)
{
	unsigned long sum = 0;
	int cpu;

	if (stat >= FASTTRACK_FIRST_MAX)
		return div_u64(atomic64_read(&ft_maxima[stat]), NSEC_PER_USEC);
	for_each_possible_cpu(cpu)
		sum += per_cpu(ft_stats[stat], cpu);
	return sum;
}

static bool ft_u32_in(const u32 *list, unsigned int nr, u32 value)
{
	for (unsigned int i = 0; i < nr; i++)
		if (list[i] == value)
			return true;
	return false;
}

static bool ft_uid_is_app(const struct ft_config *config, u32 uid)
{
	u32 app = uid % FT_UIDS_PER_USER;

	for (unsigned int i = 0; i < config->nr_app_uids; i++)
		if (app >= config->app_uids[i].first &&
		    app <= config->app_uids[i].last)
			return true;
	return false;
}

#ifdef CONFIG_CGROUPS
static bool ft_cgroup_in(const struct ft_cgroups *list, struct cgroup *cgroup)
{
	for (unsigned int i = 0; i < list->nr; i++)
		if (cgroup_is_descendant(cgroup, list->cgroup[i]))
			return true;
	return false;
}

static u64 ft_task_cgroup_id(struct task_struct *task)
{
	return cgroup_id(task_dfl_cgroup(task));
}

static enum fasttrack_class ft_cgroup_class(const struct ft_config *config,
					    struct cgroup *cgroup)
{
	if (ft_cgroup_in(&config->cgroups, cgroup))
		return FASTTRACK_FOREGROUND;
	if (ft_cgroup_in(&config->app_cgroups, cgroup))
		return FASTTRACK_BACKGROUND;
	return FASTTRACK_NEUTRAL;
}

/* The class that the cgroup with this id gives; its tasks may be gone. */
static enum fasttrack_class ft_cgroup_id_class(const struct ft_config *config,
					       u64 id)
{
	/* Not cgroup_get_from_id(): it hides what current's namespace does. */
	struct cgroup *cgroup = __cgroup_get_from_id(id);
	enum fasttrack_class class;

	if (IS_ERR(cgroup))
		return FASTTRACK_NEUTRAL;
	class = ft_cgroup_class(config, cgroup);
	cgroup_put(cgroup);
	return class;
}

int ft_cgroups_add(struct ft_cgroups *cgroups, const char *path)
{
	struct cgroup *cgroup;

	if (cgroups->nr == FT_MAX_ENTRIES)
		return -ENOSPC;
	cgroup = cgroup_get_from_path(path);
	if (IS_ERR(cgroup))
		return PTR_ERR(cgroup);
	cgroups->cgroup[cgroups->nr++] = cgroup;
	return 0;
}

void ft_cgroups_put(struct ft_cgroups *cgroups)
{
	for (unsigned int i = 0; i < cgroups->nr; i++)
		cgroup_put(cgroups->cgroup[i]);
	cgroups->nr = 0;
}

void ft_cgroups_get(struct ft_cgroups *cgroups)
{
	for (unsigned int i = 0; i < cgroups->nr; i++)
		cgroup_get(cgroups->cgroup[i]);
}
#else
static u64 ft_task_cgroup_id(struct task_struct *task)
{
	return 0;
}

static enum fasttrack_class ft_cgroup_id_class(const struct ft_config *config,
					       u64 id)
{
	return FASTTRACK_NEUTRAL;
}

int ft_cgroups_add(struct ft_cgroups *cgroups, const char *path)
{
	return -EOPNOTSUPP;
}

void ft_cgroups_put(struct ft_cgroups *cgroups)
{
}

void ft_cgroups_get(struct ft_cgroups *cgroups)
{
}
#endif /* CONFIG_CGROUPS */

/*
 * Who @task is, in the terms in which the configuration decides. The cgroup is
 * left out where no cgroup is configured: looking it up costs more than the
 * rest together.
 */
void ft_owner_of(struct task_struct *task, const struct ft_config *config,
		 struct fasttrack_owner *owner)
{
	owner->uid = from_kuid(&init_user_ns, task_uid(task));
	owner->group = READ_ONCE(task->signal->fasttrack_group);
	owner->cgroup = config->cgroups.nr || config->app_cgroups.nr ?
			ft_task_cgroup_id(task) : 0;
}

/* Remember current's app in @kept. Most calls follow one of the same app: keep
 * the line shared.
 */
void ft_owner_note(struct fasttrack_owner *kept)
{
	struct fasttrack_owner owner;

	rcu_read_lock();
	ft_owner_of(current, rcu_dereference(ft_config), &owner);
	rcu_read_unlock();

	if (READ_ONCE(kept->uid) != owner.uid)
		WRITE_ONCE(kept->uid, owner.uid);
	if (READ_ONCE(kept->group) != owner.group)
		WRITE_ONCE(kept->group, owner.group);
	if (READ_ONCE(kept->cgroup) != owner.cgroup)
		WRITE_ONCE(kept->cgroup, owner.cgroup);
}

struct fasttrack_owner ft_owner_read(const struct fasttrack_owner *kept)
{
	return (struct fasttrack_owner){
		.cgroup = READ_ONCE(kept->cgroup),
		.uid = READ_ONCE(kept->uid),
		.group = READ_ONCE(kept->group),
	};
}

/* Foreground wins over background, whichever way each was named. */
static enum fasttrack_class ft_class_of(const struct ft_config *config,
					const struct fasttrack_owner *owner)
{
	enum fasttrack_class class = FASTTRACK_NEUTRAL;

	if (ft_u32_in(config->uids, config->nr_uids, owner->uid))
		return FASTTRACK_FOREGROUND;
	if (owner->group &&
	    ft_u32_in(config->groups, config->nr_groups, owner->group))
		return FASTTRACK_FOREGROUND;
	if (owner->cgroup)
		class = ft_cgroup_id_class(config, owner->cgroup);
	if (class == FASTTRACK_NEUTRAL && ft_uid_is_app(config, owner->uid))
		class = FASTTRACK_BACKGROUND;
	return class;
}

enum fasttrack_class __fasttrack_owner_class(const struct fasttrack_owner *owner)
{
	enum fasttrack_class class;

	rcu_read_lock();
	class = ft_class_of(rcu_dereference(ft_config), owner);
	rcu_read_unlock();
	return class;
}

/* The scope's class, or foreground while a foreground task waits for @task. */
enum fasttrack_class ft_scope_class(const struct task_struct *task)
{
	return READ_ONCE(task->fasttrack_waiters) ?
		FASTTRACK_FOREGROUND : task->fasttrack_scope.class;
}

enum fasttrack_class __fasttrack_task_class(struct task_struct *task)
{
	const struct ft_config *config;
	struct fasttrack_owner owner;
	enum fasttrack_class class;

	if (task->fasttrack_scope.override)
		return ft_scope_class(task);
	if (!ft_is_user_task(task))
		return FASTTRACK_NEUTRAL;

	rcu_read_lock();
	config = rcu_dereference(ft_config);
	ft_owner_of(task, config, &owner);
	class = ft_class_of(config, &owner);
	rcu_read_unlock();
	return class;
}
EXPORT_SYMBOL_GPL(__fasttrack_task_class);

/**
 * fasttrack_scope_enter - current works for somebody else for a while
 * @class: for whom
 * @cause: why
 *
 * For kernel threads that serve waiters, the journal's for one. Scopes nest.
 *
 * Return: what to give to fasttrack_scope_leave().
 */
struct fasttrack_scope fasttrack_scope_enter(enum fasttrack_class class,
					     enum fasttrack_cause cause)
{
	struct fasttrack_scope outer = current->fasttrack_scope;

	current->fasttrack_scope = (struct fasttrack_scope){
		.class = class,
		.cause = cause,
		.override = true,
	};
	return outer;
}
EXPORT_SYMBOL_GPL(fasttrack_scope_enter);

/**
 * fasttrack_owner_enter - current works for the app that has dirtied a file
 * @mapping: the file's
 * @cause: why
 *
 * For workers that serve one file after the other: a background app's is not
 * held back, or a foreground app's would wait behind it.
 *
 * Return: what to give to fasttrack_scope_leave().
 */
struct fasttrack_scope fasttrack_owner_enter(const struct address_space *mapping,
					     enum fasttrack_cause cause)
{
	enum fasttrack_class class = FASTTRACK_NEUTRAL;
	struct fasttrack_owner owner;

	if (fasttrack_enabled()) {
		owner = ft_owner_read(&mapping->fasttrack_owner);
		class = __fasttrack_owner_class(&owner);
	}
	if (class == FASTTRACK_BACKGROUND)
		class = FASTTRACK_NEUTRAL;
	return fasttrack_scope_enter(class, cause);
}
EXPORT_SYMBOL_GPL(fasttrack_owner_enter);

/**
 * fasttrack_cause_enter - what current sends from here on, it sends for @cause
 * @cause: an outer scope's cause stays: O_SYNC calls the fsync code
 *
 * Return: what to give to fasttrack_scope_leave().
 */
struct fasttrack_scope fasttrack_cause_enter(enum fasttrack_cause cause)
{
	struct fasttrack_scope outer = current->fasttrack_scope;

	if (!outer.cause)
		current->fasttrack_scope.cause = cause;
	return outer;
}
EXPORT_SYMBOL_GPL(fasttrack_cause_enter);

/**
 * fasttrack_scope_leave - end what an enter function began
 * @outer: its result
 */
void fasttrack_scope_leave(struct fasttrack_scope outer)
{
	current->fasttrack_scope = outer;
}
EXPORT_SYMBOL_GPL(fasttrack_scope_leave);

/**
 * ft_group_tag - the tag of a thread group, made at need
 * @tgid: in the caller's PID namespace
 * @tag: result
 *
 * Return: 0; -ESRCH if there is no such thread group, -ENOSPC.
 */
int ft_group_tag(pid_t tgid, u32 *tag)
{
	struct ft_group *free = NULL;
	struct task_struct *leader;
	struct pid *pid;
	int ret = -ESRCH;

	lockdep_assert_held(&ft_config_mutex);

	pid = find_get_pid(tgid);
	leader = get_pid_task(pid, PIDTYPE_TGID);
	if (!leader)
		goto out;

	for (unsigned int i = 0; i < ARRAY_SIZE(ft_groups); i++) {
		if (ft_groups[i].tag && ft_groups[i].tgid == pid) {
			*tag = ft_groups[i].tag;
			ret = 0;
			goto out;
		}
		if (!ft_groups[i].tag)
			free = &ft_groups[i];
	}
	ret = -ENOSPC;
	if (!free)
		goto out;
	if (!++ft_last_tag)
		ft_last_tag = 1;
	free->tag = ft_last_tag;
	free->tgid = get_pid(pid);
	*tag = free->tag;
	ret = 0;
out:
	if (leader)
		put_task_struct(leader);
	put_pid(pid);
	return ret;
}

/*
 * Put the tags of @config into their leaders. Children forked before stay
 * outside, later ones inherit.
 */
static void ft_groups_mark(const struct ft_config *config)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(ft_groups); i++) {
		const struct ft_group *group = &ft_groups[i];
		struct task_struct *leader;

		if (!ft_u32_in(config->groups, config->nr_groups, group->tag))
			continue;
		leader = get_pid_task(group->tgid, PIDTYPE_TGID);
		if (!leader)
			continue;
		WRITE_ONCE(leader->signal->fasttrack_group, group->tag);
		put_task_struct(leader);
	}
}

/* The thread group with @tag in the reader's PID namespace, 0 if it is dead. */
pid_t ft_group_tgid(u32 tag)
{
	lockdep_assert_held(&ft_config_mutex);

	for (unsigned int i = 0; i < ARRAY_SIZE(ft_groups); i++) {
		if (ft_groups[i].tag != tag)
			continue;
		return pid_has_task(ft_groups[i].tgid, PIDTYPE_TGID) ?
			pid_vnr(ft_groups[i].tgid) : 0;
	}
	return 0;
}

/* Forget the thread groups that @config does not name. */
static void ft_groups_retire(const struct ft_config *config)
{
	lockdep_assert_held(&ft_config_mutex);

	for (unsigned int i = 0; i < ARRAY_SIZE(ft_groups); i++) {
		struct ft_group *group = &ft_groups[i];

		if (!group->tag ||
		    ft_u32_in(config->groups, config->nr_groups, group->tag))
			continue;
		put_pid(group->tgid);
		group->tgid = NULL;
		group->tag = 0;
	}
}

/**
 * ft_config_copy - begin a change
 *
 * Return: a copy with references of its own, for ft_config_publish() or
 * ft_config_drop(); NULL without memory.
 */
struct ft_config *ft_config_copy(void)
{
	struct ft_config *config;

	lockdep_assert_held(&ft_config_mutex);

	config = kmemdup(rcu_dereference_protected(ft_config, true),
			 sizeof(*config), GFP_KERNEL);
	if (!config)
		return NULL;
	ft_cgroups_get(&config->cgroups);
	ft_cgroups_get(&config->app_cgroups);
	return config;
}

static void ft_config_free(struct ft_config *config)
{
	ft_cgroups_put(&config->cgroups);
	ft_cgroups_put(&config->app_cgroups);
	kfree(config);
}

static void ft_config_free_rcu(struct rcu_head *rcu)
{
	ft_config_free(container_of(rcu, struct ft_config, rcu));
}

/* End a change that failed. Tags that were made for it are given back. */
void ft_config_drop(struct ft_config *config)
{
	lockdep_assert_held(&ft_config_mutex);

	ft_config_free(config);
	ft_groups_retire(rcu_dereference_protected(ft_config, true));
}

/*
 * Requests are queued with the class that their app had then. Give those of
 * every UID of @list that @other does not name their new one.
 */
static void ft_relabel_list(const struct ft_config *list,
			    const struct ft_config *other)
{
	for (unsigned int i = 0; i < list->nr_uids; i++) {
		const struct fasttrack_owner owner = { .uid = list->uids[i] };

		if (!ft_u32_in(other->uids, other->nr_uids, owner.uid))
			ft_relabel(owner.uid, __fasttrack_owner_class(&owner));
	}
}

/* End a change: from now on @config decides. */
void ft_config_publish(struct ft_config *config)
{
	struct ft_config *old;

	lockdep_assert_held(&ft_config_mutex);

	ft_groups_mark(config);
	old = rcu_replace_pointer(ft_config, config,
				  lockdep_is_held(&ft_config_mutex));
	trace_fasttrack_foreground(config->nr_uids, config->nr_groups,
				   config->cgroups.nr);
	ft_groups_retire(config);
	WRITE_ONCE(ft_has_foreground,
		   config->nr_uids || config->nr_groups || config->cgroups.nr);
	if (fasttrack_enabled()) {
		ft_relabel_list(old, config);
		ft_relabel_list(config, old);
	}
	if (old != &ft_config_boot)
		call_rcu(&old->rcu, ft_config_free_rcu);
	ft_dirty_forget();
	ft_reclaim_forget();
	ft_pause_end_all();
}

/* Is anybody in front? */
bool ft_foreground_set(void)
{
	return READ_ONCE(ft_has_foreground);
}

void ft_set_enabled(bool on)
{
	if (on)
		static_branch_enable(&fasttrack_key);
	else
		static_branch_disable(&fasttrack_key);
	ft_pause_end_all();
}

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/core-kunit.h"
#endif
