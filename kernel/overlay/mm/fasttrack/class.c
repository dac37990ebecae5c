// SPDX-License-Identifier: GPL-2.0
/*
 * Classes: to which does a task belong, or the app that has used a file?
 *
 * The configuration in force (struct ft_config) names the foreground in three
 * ways, all of which follow fork():
 *  - UIDs, compared with the task's real UID;
 *  - thread groups, by a tag in their signal_struct (front.c);
 *  - cgroups of the default hierarchy, with all below them.
 *
 * It is read for every bio, and is one RCU-protected object that is replaced as
 * a whole: a reader sees one state and takes no lock.
 *
 * An app that is not in front is background. Kernel threads and everything
 * that is no app are neutral, save in a scope, which says for whom a task works.
 */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "internal.h"

/* Guards replacement of ft_config, and the thread groups of front.c. */
DEFINE_MUTEX(ft_config_mutex);

DEFINE_STATIC_KEY_FALSE(fasttrack_key);
EXPORT_SYMBOL_GPL(fasttrack_key);

struct ft_config ft_config_boot = {
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

/* Follows ft_config. */
static bool ft_has_foreground;

/* Is anybody in front? */
bool ft_foreground_set(void)
{
	return READ_ONCE(ft_has_foreground);
}

/**
 * ft_config_replace - another configuration decides from now on
 * @config: which
 *
 * Return: the one before. It is read for another grace period.
 */
struct ft_config *ft_config_replace(struct ft_config *config)
{
	struct ft_config *old;

	old = rcu_replace_pointer(ft_config, config,
				  lockdep_is_held(&ft_config_mutex));
	WRITE_ONCE(ft_has_foreground,
		   config->nr_uids || config->nr_groups || config->cgroups.nr);
	return old;
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
 * __fasttrack_scope_enter - current works for somebody else for a while
 * @class: for whom
 * @cause: why
 *
 * For kernel threads that serve waiters, the journal's for one. Scopes nest.
 *
 * Return: what to give to fasttrack_scope_leave().
 */
struct fasttrack_scope __fasttrack_scope_enter(enum fasttrack_class class,
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
EXPORT_SYMBOL_GPL(__fasttrack_scope_enter);

/**
 * __fasttrack_owner_enter - current works for the app that has dirtied a file
 * @mapping: the file's
 * @cause: why
 *
 * For workers that serve one file after the other: a background app's is not
 * held back, or a foreground app's would wait behind it.
 *
 * Return: what to give to fasttrack_scope_leave().
 */
struct fasttrack_scope __fasttrack_owner_enter(const struct address_space *mapping,
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
	return __fasttrack_scope_enter(class, cause);
}
EXPORT_SYMBOL_GPL(__fasttrack_owner_enter);

/**
 * __fasttrack_cause_enter - what current sends from here on, it sends for @cause
 * @cause: an outer scope's cause stays: O_SYNC calls the fsync code
 *
 * Return: what to give to fasttrack_scope_leave().
 */
struct fasttrack_scope __fasttrack_cause_enter(enum fasttrack_cause cause)
{
	struct fasttrack_scope outer = current->fasttrack_scope;

	if (!outer.cause)
		current->fasttrack_scope.cause = cause;
	return outer;
}
EXPORT_SYMBOL_GPL(__fasttrack_cause_enter);

/**
 * __fasttrack_scope_leave - end what an enter function began
 * @outer: its result
 */
void __fasttrack_scope_leave(struct fasttrack_scope outer)
{
	current->fasttrack_scope = outer;
}
EXPORT_SYMBOL_GPL(__fasttrack_scope_leave);

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/class-kunit.h"
#endif
