// SPDX-License-Identifier: GPL-2.0
/*
 * Who is in front: changes of the configuration, which programs in user space
 * make through lists.c, and what the other files are told of one.
 *
 * A change is a copy, which is published or dropped as a whole. What is dead by
 * then leaves with it: cgroups, and thread groups of which no descendant is left.
 *
 * Adding a thread group puts a tag into its signal_struct, which fork() copies: a
 * tag says whose entry is nearest by descent. It is one tag whatever lists name
 * the thread group, and it is retired when none does. That drops every descendant
 * at once without a walk; a reused PID never carries an old tag.
 *
 * Lock order: ft_config_mutex, then what cgroup and PID look-ups take.
 */
#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/xarray.h>

#include <trace/events/fasttrack.h>

#include "internal.h"

/**
 * struct ft_group - a thread group that a list names
 * @node: in ft_groups_by_pid
 * @tag: what its signal_struct carries
 * @alive: it, or a descendant, was there when somebody looked
 * @tgid: its leader's PID, referenced
 *
 * Guarded by ft_config_mutex.
 */
struct ft_group {
	struct hlist_node node;
	u32 tag;
	bool alive;
	struct pid *tgid;
};

/* By tag. Those of a change that is not published yet are there, too. */
static DEFINE_XARRAY_ALLOC1(ft_groups);
static DEFINE_HASHTABLE(ft_groups_by_pid, 8);
static u32 ft_next_tag;

/* Guards changes of fasttrack_key. */
static DEFINE_MUTEX(ft_enabled_mutex);

/* Counts changes of who is in front; guarded by ft_config_mutex. */
static u64 ft_generation_nr;

/* The file that shows it, for whoever polls; NULL until it is there. */
struct kernfs_node *ft_generation_file;

static struct ft_config *ft_config_now(void)
{
	return rcu_dereference_protected(ft_config,
					 lockdep_is_held(&ft_config_mutex));
}

/* How often who is in front has changed since boot. */
u64 ft_generation(void)
{
	lockdep_assert_held(&ft_config_mutex);

	return ft_generation_nr;
}

static struct ft_group *ft_group_find(const struct pid *tgid)
{
	struct ft_group *group;

	hash_for_each_possible(ft_groups_by_pid, group, node,
			       (unsigned long)tgid)
		if (group->tgid == tgid)
			return group;
	return NULL;
}

/* A thread group gets a tag. Return: 0, -ENOMEM. */
static int ft_group_make(struct pid *tgid, u32 *tag)
{
	struct ft_group *group = kmalloc(sizeof(*group), GFP_KERNEL);
	int ret;

	if (!group)
		return -ENOMEM;
	ret = xa_alloc_cyclic(&ft_groups, &group->tag, group,
			      XA_LIMIT(1, U32_MAX), &ft_next_tag, GFP_KERNEL);
	if (ret < 0) {
		kfree(group);
		return ret;
	}
	group->alive = true;
	group->tgid = get_pid(tgid);
	hash_add(ft_groups_by_pid, &group->node, (unsigned long)tgid);
	*tag = group->tag;
	return 0;
}

/**
 * ft_group_tag - the tag of a thread group, made at need
 * @tgid: in the caller's PID namespace
 * @tag: result
 *
 * Return: 0; -ESRCH if there is no such thread group, -ENOMEM.
 */
int ft_group_tag(pid_t tgid, u32 *tag)
{
	struct ft_group *group;
	struct pid *pid;
	int ret = 0;

	lockdep_assert_held(&ft_config_mutex);

	pid = find_get_pid(tgid);
	group = ft_group_find(pid);
	if (!pid || !pid_has_task(pid, PIDTYPE_TGID))
		ret = -ESRCH;
	else if (group)
		*tag = group->tag;
	else
		ret = ft_group_make(pid, tag);
	put_pid(pid);
	return ret;
}

/* The PID of a tag's thread group in the caller's namespace, dead or not. */
pid_t ft_group_pid(u32 tag)
{
	const struct ft_group *group = xa_load(&ft_groups, tag);

	lockdep_assert_held(&ft_config_mutex);

	return group ? pid_vnr(group->tgid) : 0;
}

/* The same; 0 if it is dead, though descendants of it may not be. */
pid_t ft_group_tgid(u32 tag)
{
	const struct ft_group *group = xa_load(&ft_groups, tag);

	lockdep_assert_held(&ft_config_mutex);

	return group && pid_has_task(group->tgid, PIDTYPE_TGID) ?
		pid_vnr(group->tgid) : 0;
}

static bool ft_group_named(const struct ft_config *config, u32 tag)
{
	return ft_set_has(config->list[FT_FOREGROUND_TGIDS], tag) ||
	       ft_set_has(config->list[FT_PERCEPTIBLE_TGIDS], tag);
}

/* The thread group of @leader gets a tag: it is another app from then on. */
static void ft_group_tagged(struct task_struct *leader, u32 tag)
{
	struct task_struct *thread;

	if (leader->signal->fasttrack_group == tag)
		return;
	WRITE_ONCE(leader->signal->fasttrack_group, tag);
	/* A thread that is not in the list yet reads the tag after it has got there. */
	smp_mb();
	rcu_read_lock();
	for_each_thread(leader, thread)
		__fasttrack_task_changed(thread);
	rcu_read_unlock();
}

/*
 * Put the tags of @config into their leaders. Children forked before stay
 * outside, later ones inherit.
 */
static void ft_groups_mark(const struct ft_config *config)
{
	struct ft_group *group;
	unsigned long tag;

	xa_for_each(&ft_groups, tag, group) {
		struct task_struct *leader;

		if (!ft_group_named(config, tag))
			continue;
		leader = get_pid_task(group->tgid, PIDTYPE_TGID);
		if (!leader)
			continue;
		ft_group_tagged(leader, tag);
		put_task_struct(leader);
	}
}

/* Forget the thread groups that @config does not name. */
static void ft_groups_retire(const struct ft_config *config)
{
	struct ft_group *group;
	unsigned long tag;

	lockdep_assert_held(&ft_config_mutex);

	xa_for_each(&ft_groups, tag, group) {
		if (ft_group_named(config, tag))
			continue;
		xa_erase(&ft_groups, tag);
		hash_del(&group->node);
		put_pid(group->tgid);
		kfree(group);
	}
}

/* See which thread groups live, or have left descendants that do. */
static void ft_groups_look(void)
{
	struct task_struct *process;
	struct ft_group *group;
	unsigned long tag;

	xa_for_each(&ft_groups, tag, group)
		group->alive = pid_has_task(group->tgid, PIDTYPE_TGID);
	rcu_read_lock();
	/* A child is put behind its parent, before that can go. */
	for_each_process(process) {
		group = xa_load(&ft_groups,
				READ_ONCE(process->signal->fasttrack_group));
		if (group)
			group->alive = true;
	}
	rcu_read_unlock();
}

static bool ft_group_dead(u64 tag)
{
	const struct ft_group *group = xa_load(&ft_groups, tag);

	return !group || !group->alive;
}

#ifdef CONFIG_CGROUPS
static bool ft_cgroup_dead(u64 id)
{
	struct cgroup *cgroup = __cgroup_get_from_id(id);

	if (IS_ERR(cgroup))
		return true;
	cgroup_put(cgroup);
	return false;
}
#else
static bool ft_cgroup_dead(u64 id)
{
	return true;
}
#endif /* CONFIG_CGROUPS */

/**
 * ft_config_set - replace a list in a change
 * @config: the change
 * @list: which
 * @edit: a copy of ft_set_edit(); is freed
 *
 * Return: 0, or -ENOMEM; then the change is as before.
 */
int ft_config_set(struct ft_config *config, enum ft_list list,
		  struct ft_set *edit)
{
	struct ft_set *now = ft_config_now()->list[list];
	struct ft_set *set = ft_set_finish(edit);

	if (IS_ERR(set))
		return PTR_ERR(set);
	/* What a change has made already, no reader has seen. */
	if (config->list[list] != now)
		kvfree(config->list[list]);
	if (ft_set_equal(set, now)) {
		kvfree(set);
		set = now;
	}
	config->list[list] = set;
	return 0;
}

/* What is dead in a list leaves it. Without memory it leaves another time. */
static void ft_config_prune(struct ft_config *config, enum ft_list list,
			    bool (*dead)(u64 value))
{
	const struct ft_set *set = config->list[list];
	struct ft_set *edit = NULL;

	for (unsigned int i = 0; i < ft_set_nr(set); i++) {
		u64 value = set->range[i].first;

		if (!dead(value))
			continue;
		edit = edit ?: ft_set_edit(set);
		if (!edit)
			return;
		ft_set_remove(edit, value, value);
	}
	if (edit)
		ft_config_set(config, list, edit);
}

/**
 * ft_config_change - begin a change
 *
 * Return: the configuration without what is dead, for ft_config_publish() or
 * ft_config_drop(); NULL without memory.
 */
struct ft_config *ft_config_change(void)
{
	struct ft_config *config;

	lockdep_assert_held(&ft_config_mutex);

	config = kmemdup(ft_config_now(), sizeof(*config), GFP_KERNEL);
	if (!config)
		return NULL;
	ft_groups_look();
	ft_config_prune(config, FT_FOREGROUND_TGIDS, ft_group_dead);
	ft_config_prune(config, FT_PERCEPTIBLE_TGIDS, ft_group_dead);
	ft_config_prune(config, FT_FOREGROUND_CGROUPS, ft_cgroup_dead);
	ft_config_prune(config, FT_PERCEPTIBLE_CGROUPS, ft_cgroup_dead);
	ft_config_prune(config, FT_NEUTRAL_CGROUPS, ft_cgroup_dead);
	ft_config_prune(config, FT_APP_CGROUPS, ft_cgroup_dead);
	return config;
}

/* How many of the first @nr lists are not the same in @a and @b? */
static unsigned int ft_config_differs(const struct ft_config *a,
				      const struct ft_config *b,
				      unsigned int nr)
{
	unsigned int differs = 0;

	for (unsigned int i = 0; i < nr; i++)
		differs += a->list[i] != b->list[i];
	return differs;
}

/* End a change that failed. Tags that were made for it are given back. */
void ft_config_drop(struct ft_config *config)
{
	struct ft_config *now = ft_config_now();

	for (unsigned int i = 0; i < FT_NR_LISTS; i++)
		if (config->list[i] != now->list[i])
			kvfree(config->list[i]);
	kfree(config);
	ft_groups_retire(now);
}

/* Free what @config does not share with @old, once no reader has it. */
static void ft_config_free(struct ft_config *old, const struct ft_config *config)
{
	for (unsigned int i = 0; i < FT_NR_LISTS; i++)
		if (old->list[i] && old->list[i] != config->list[i])
			kvfree_rcu(old->list[i], rcu);
	if (old != &ft_config_boot)
		kfree_rcu(old, rcu);
}

/* Somebody has come to the front, or left it. */
static void ft_front_changed(const struct ft_config *config)
{
	ft_generation_nr++;
	trace_fasttrack_foreground(ft_set_nr(config->list[FT_FOREGROUND_UIDS]),
				   ft_set_nr(config->list[FT_FOREGROUND_TGIDS]),
				   ft_set_nr(config->list[FT_FOREGROUND_CGROUPS]));
	if (ft_generation_file)
		sysfs_notify_dirent(ft_generation_file);
}

/* Cgroups decide from now on, or do not any more: everybody is another app. */
static void ft_tasks_changed(void)
{
	struct task_struct *process, *thread;

	rcu_read_lock();
	for_each_process_thread(process, thread)
		__fasttrack_task_changed(thread);
	rcu_read_unlock();
}

/* End a change: from now on @config decides. */
void ft_config_publish(struct ft_config *config)
{
	struct ft_config *old = ft_config_now();

	if (!ft_config_differs(old, config, FT_NR_LISTS)) {
		ft_config_drop(config);
		return;
	}
	ft_groups_mark(config);
	ft_config_replace(config);
	ft_apps_classify(config);
	if (old->by_cgroup != config->by_cgroup)
		ft_tasks_changed();
	if (ft_config_differs(old, config, FT_NR_FOREGROUND_LISTS)) {
		ft_front_changed(config);
		ft_queues_front();
	}
	ft_groups_retire(config);
	/* Requests are queued with the class that their app had then. */
	if (fasttrack_enabled())
		ft_relabel();
	ft_config_free(old, config);
	ft_reclaim_forget();
	ft_file_lock_waits_look();
	ft_wake_all();
}

static void ft_switch_on(void)
{
	mutex_lock(&ft_enabled_mutex);
	if (!fasttrack_enabled()) {
		ft_apps_renew();
		ft_backlog_forget();
	}
	ft_eject_forget();
	WRITE_ONCE(ft_switching_off, false);
	static_branch_enable(&fasttrack_key);
	mutex_unlock(&ft_enabled_mutex);
}

/*
 * Who is held back goes first: the static key waits for locks, and those who have
 * them may be among them.
 */
static void ft_switch_off(bool ejected)
{
	WRITE_ONCE(ft_switching_off, true);
	ft_lift_begin();
	ft_wake_all();
	ft_queues_release();
	mutex_lock(&ft_enabled_mutex);
	/* Somebody may have switched it on since: what was is over, as that one was told. */
	if (ejected && !ft_eject_stands())
		WRITE_ONCE(ft_switching_off, false);
	else
		static_branch_disable(&fasttrack_key);
	mutex_unlock(&ft_enabled_mutex);
	ft_lift_end();
}

static void ft_switched(void)
{
	ft_queues_front();
	ft_wake_all();
	ft_queues_release();
}

void ft_set_enabled(bool on)
{
	if (on)
		ft_switch_on();
	else
		ft_switch_off(false);
	ft_switched();
}

/* Who is in front, the first of them: what it is named by, and its number. */
static void ft_front_print(char *buf, size_t size)
{
	static const char * const kinds[FT_NR_FOREGROUND_LISTS] = {
		[FT_FOREGROUND_UIDS]	= "uid",
		[FT_FOREGROUND_TGIDS]	= "tgid",
		[FT_FOREGROUND_CGROUPS]	= "cgroup",
	};
	const struct ft_set *set;
	u64 number;

	strscpy(buf, "-", size);
	mutex_lock(&ft_config_mutex);
	for (int i = 0; i < FT_NR_FOREGROUND_LISTS; i++) {
		set = ft_config_now()->list[i];
		if (!ft_set_nr(set))
			continue;
		number = set->range[0].first;
		if (i == FT_FOREGROUND_TGIDS)
			number = ft_group_tgid(number);
		scnprintf(buf, size, "%s %llu", kinds[i], number);
		break;
	}
	mutex_unlock(&ft_config_mutex);
}

/* It has switched itself off. */
static void ft_ejected(void)
{
	char why[192], front[FT_FRONT_LEN];

	/* First: who has the lists may be among those who wait. */
	ft_switch_off(true);
	ft_switched();
	if (!ft_eject_stands())
		return;
	ft_front_print(front, sizeof(front));
	ft_eject_name(front);
	ft_eject_print(why, sizeof(why));
	pr_warn("fasttrack: switched off: %s", why);
}

static int __init ft_front_init(void)
{
	ft_eject_init(ft_ejected);
	return 0;
}
subsys_initcall(ft_front_init);

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/front-kunit.h"
#endif
