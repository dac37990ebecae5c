// SPDX-License-Identifier: GPL-2.0
/*
 * Classes: to which does an app belong?
 *
 * The configuration in force (struct ft_config) names who is in front, and who is
 * perceptible, in three ways, all of which follow fork():
 *  - UIDs, compared with the task's real UID;
 *  - thread groups, by a tag in their signal_struct (front.c);
 *  - cgroups of the default hierarchy, with all below them.
 * It names apps by ranges of UIDs and by cgroups, and exceptions from both.
 *
 * It is one RCU-protected object that is replaced as a whole: a reader sees one
 * state and takes no lock. An app's class is worked out when the app is first
 * seen, and anew when the configuration changes (app.c).
 *
 * An app that is neither in front nor perceptible is background, save tasks that
 * somebody privileged has asked more for (ft_never_behind()). Everything else is
 * neutral.
 */
#include <linux/cgroup.h>
#include <linux/sched.h>

#include "internal.h"

/* Guards replacement of ft_config, and the thread groups of front.c. */
DEFINE_MUTEX(ft_config_mutex);

DEFINE_STATIC_KEY_FALSE(fasttrack_key);
EXPORT_SYMBOL_GPL(fasttrack_key);

/* FastTrack is off, or will be: nobody pauses any more. */
bool ft_switching_off;

/* Nobody is in front, and nobody is an app. */
struct ft_config ft_config_boot;

struct ft_config __rcu *ft_config = RCU_INITIALIZER(&ft_config_boot);

/* Follows ft_config. */
static bool ft_has_foreground;

/* Is anybody in front? */
bool ft_foreground_set(void)
{
	return READ_ONCE(ft_has_foreground);
}

/* Has any of @nr lists from @first on an entry? */
static bool ft_config_names(const struct ft_config *config, enum ft_list first,
			    unsigned int nr)
{
	for (unsigned int i = first; i < first + nr; i++)
		if (config->list[i])
			return true;
	return false;
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

	config->by_cgroup = config->list[FT_FOREGROUND_CGROUPS] ||
			    config->list[FT_PERCEPTIBLE_CGROUPS] ||
			    config->list[FT_NEUTRAL_CGROUPS] ||
			    config->list[FT_APP_CGROUPS];
	old = rcu_replace_pointer(ft_config, config,
				  lockdep_is_held(&ft_config_mutex));
	WRITE_ONCE(ft_has_foreground,
		   ft_config_names(config, 0, FT_NR_FOREGROUND_LISTS));
	return old;
}

#ifdef CONFIG_CGROUPS
/* The cgroup with this ID; its tasks may be gone, and so may it: NULL. */
static struct cgroup *ft_cgroup_of(u64 id)
{
	/* Not cgroup_get_from_id(): it hides what current's namespace does. */
	struct cgroup *cgroup = id ? __cgroup_get_from_id(id) : NULL;

	return IS_ERR(cgroup) ? NULL : cgroup;
}

/*
 * Is @cgroup, or one above it, in @list? Anybody may nest cgroups as deep as they like:
 * none is in a list that is deeper than FT_CGROUP_LEVELS.
 */
static bool ft_cgroup_in(const struct ft_set *list, struct cgroup *cgroup)
{
	if (!list || !cgroup)
		return false;
	for (int level = 0; level <= min(cgroup->level, FT_CGROUP_LEVELS); level++)
		if (ft_set_has(list, cgroup_id(cgroup->ancestors[level])))
			return true;
	return false;
}

static void ft_cgroup_end(struct cgroup *cgroup)
{
	if (cgroup)
		cgroup_put(cgroup);
}
#else
static struct cgroup *ft_cgroup_of(u64 id)
{
	return NULL;
}

static bool ft_cgroup_in(const struct ft_set *list, struct cgroup *cgroup)
{
	return false;
}

static void ft_cgroup_end(struct cgroup *cgroup)
{
}
#endif /* CONFIG_CGROUPS */

/* The class of an app whose cgroup, if that decides, is @cgroup. */
static enum fasttrack_class ft_class_in(const struct ft_config *config,
					const struct ft_app_key *key,
					struct cgroup *cgroup)
{
	struct ft_set * const *list = config->list;
	/* An app of Android's has a UID for each user of the device. */
	u32 app = list[FT_APP_UIDS] ? key->uid % FT_UIDS_PER_USER : key->uid;

	if (ft_set_has(list[FT_FOREGROUND_UIDS], key->uid) ||
	    (key->group && ft_set_has(list[FT_FOREGROUND_TGIDS], key->group)) ||
	    ft_cgroup_in(list[FT_FOREGROUND_CGROUPS], cgroup))
		return FASTTRACK_FOREGROUND;
	if (ft_set_has(list[FT_PERCEPTIBLE_UIDS], key->uid) ||
	    (key->group && ft_set_has(list[FT_PERCEPTIBLE_TGIDS], key->group)) ||
	    ft_cgroup_in(list[FT_PERCEPTIBLE_CGROUPS], cgroup))
		return FASTTRACK_PERCEPTIBLE;
	if (ft_set_has(list[FT_NEUTRAL_UIDS], app) ||
	    ft_cgroup_in(list[FT_NEUTRAL_CGROUPS], cgroup))
		return FASTTRACK_NEUTRAL;
	if (ft_set_has(list[FT_APP_UIDS], app) ||
	    ft_cgroup_in(list[FT_APP_CGROUPS], cgroup))
		return FASTTRACK_BACKGROUND;
	return FASTTRACK_NEUTRAL;
}

/**
 * ft_class_anew - the class of an app, by another configuration
 * @config: what decides
 * @key: who it is
 * @before: its class until now
 *
 * Of an app whose cgroup is gone nobody can say where it was. What it has left is
 * background's, and not a service's.
 *
 * Context: any; under the RCU read lock.
 * Return: its class.
 */
enum fasttrack_class ft_class_anew(const struct ft_config *config,
				   const struct ft_app_key *key,
				   enum fasttrack_class before)
{
	struct cgroup *cgroup = ft_cgroup_of(key->cgroup);
	enum fasttrack_class class = ft_class_in(config, key, cgroup);

	if (!cgroup && key->cgroup && config->list[FT_APP_CGROUPS] &&
	    class == FASTTRACK_NEUTRAL && before != FASTTRACK_NEUTRAL)
		class = FASTTRACK_BACKGROUND;
	ft_cgroup_end(cgroup);
	return class;
}

/**
 * ft_class_of - the class of an app
 * @config: what decides
 * @key: who it is
 *
 * Foreground wins over perceptible, that over the exceptions, and those over
 * background, whichever way each was named.
 *
 * Context: any; under the RCU read lock.
 * Return: its class.
 */
enum fasttrack_class ft_class_of(const struct ft_config *config,
				 const struct ft_app_key *key)
{
	/* Of one that is new nobody knows that it was an app's. */
	return ft_class_anew(config, key, FASTTRACK_NEUTRAL);
}

/**
 * ft_never_behind - is a task not to be held back, of whatever app it is?
 * @task: a user task
 *
 * Not held back are:
 *  - what has a real-time priority, its own or lent by whoever waits for it;
 *  - a storage daemon that says so by PR_SET_IO_FLUSHER: others reclaim memory
 *    through it;
 *  - a virtual processor while it runs its guest: the guest's clock would run on.
 *    What the same thread does between two KVM_RUN is its app's.
 *
 * Nobody gains by it without a right: the first two need capabilities or an
 * RLIMIT_RTPRIO, the third /dev/kvm. Who may open that can read files unpaused,
 * through page faults of a guest, and no faster than a system service.
 *
 * Context: any.
 * Return: if so.
 */
bool ft_never_behind(struct task_struct *task)
{
	return rt_or_dl_task(task) ||
	       (READ_ONCE(task->flags) & FT_IO_FLUSHER) == FT_IO_FLUSHER ||
	       ft_is_vcpu(task);
}

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/class-kunit.h"
#endif
