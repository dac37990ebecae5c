// SPDX-License-Identifier: GPL-2.0
/*
 * Classes: to which does an app belong?
 *
 * The configuration in force (struct ft_config) names the foreground in three
 * ways, all of which follow fork():
 *  - UIDs, compared with the task's real UID;
 *  - thread groups, by a tag in their signal_struct (front.c);
 *  - cgroups of the default hierarchy, with all below them.
 *
 * It is one RCU-protected object that is replaced as a whole: a reader sees one
 * state and takes no lock. An app's class is worked out when the app is first
 * seen, and anew when the configuration changes (app.c).
 *
 * An app that is not in front is background. Everything else is neutral.
 */
#include <linux/cgroup.h>

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
static enum fasttrack_class ft_cgroup_id_class(const struct ft_config *config,
					       u64 id)
{
	return FASTTRACK_NEUTRAL;
}
#endif /* CONFIG_CGROUPS */

/**
 * ft_class_of - the class of an app
 * @config: what decides
 * @key: who it is
 *
 * Foreground wins over background, whichever way each was named.
 *
 * Context: any; under the RCU read lock.
 * Return: its class.
 */
enum fasttrack_class ft_class_of(const struct ft_config *config,
				 const struct ft_app_key *key)
{
	enum fasttrack_class class = FASTTRACK_NEUTRAL;

	if (ft_u32_in(config->uids, config->nr_uids, key->uid))
		return FASTTRACK_FOREGROUND;
	if (key->group &&
	    ft_u32_in(config->groups, config->nr_groups, key->group))
		return FASTTRACK_FOREGROUND;
	if (key->cgroup)
		class = ft_cgroup_id_class(config, key->cgroup);
	if (class == FASTTRACK_NEUTRAL && ft_uid_is_app(config, key->uid))
		class = FASTTRACK_BACKGROUND;
	return class;
}

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/class-kunit.h"
#endif
