// SPDX-License-Identifier: GPL-2.0
/*
 * Who is in front: the configuration that a detector in user space writes
 * through sysfs.c, and what the other files are told when it changes.
 *
 * A change is a copy, which is published or dropped as a whole.
 *
 * Adding a thread group puts a tag into its signal_struct, which fork() copies.
 * Removing one retires the tag, and so drops every descendant at once without a
 * walk; a reused PID never carries an old tag.
 *
 * Lock order: ft_config_mutex, then what cgroup and PID look-ups take.
 */
#include <linux/cgroup.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include <trace/events/fasttrack.h>

#include "internal.h"

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

#ifdef CONFIG_CGROUPS
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

/* End a change: from now on @config decides. */
void ft_config_publish(struct ft_config *config)
{
	struct ft_config *old;

	lockdep_assert_held(&ft_config_mutex);

	ft_groups_mark(config);
	old = ft_config_replace(config);
	ft_apps_classify(config);
	trace_fasttrack_foreground(config->nr_uids, config->nr_groups,
				   config->cgroups.nr);
	ft_groups_retire(config);
	/* Requests are queued with the class that their app had then. */
	if (fasttrack_enabled())
		ft_relabel();
	if (old != &ft_config_boot)
		call_rcu(&old->rcu, ft_config_free_rcu);
	ft_reclaim_forget();
	ft_pause_end_all();
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
#include "tests/front-kunit.h"
#endif
