// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/fasttrack/: FastTrack's interface, see
 * Documentation/ABI/testing/sysfs-kernel-fasttrack.
 *
 * A list is written as a whole, values separated by white space; what is
 * written replaces what was there, an empty write empties it. Input with any
 * error in it changes nothing.
 */
#include <linux/cgroup.h>
#include <linux/kobject.h>
#include <linux/math64.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"

#define FT_SPACE	" \t\n"

/*
 * Replace one list: @clear empties it, @parse adds a word. The result is
 * published only if every word was good.
 */
static ssize_t ft_store_list(const char *buf, size_t count,
			     void (*clear)(struct ft_config *config),
			     int (*parse)(struct ft_config *config,
					  const char *word))
{
	struct ft_config *config;
	char *words, *rest, *word;
	int ret = 0;

	words = kstrndup(buf, count, GFP_KERNEL);
	if (!words)
		return -ENOMEM;

	mutex_lock(&ft_config_mutex);
	config = ft_config_copy();
	if (!config) {
		ret = -ENOMEM;
		goto unlock;
	}
	clear(config);
	rest = words;
	while (!ret && (word = strsep(&rest, FT_SPACE)))
		if (*word)
			ret = parse(config, word);
	if (ret)
		ft_config_drop(config);
	else
		ft_config_publish(config);
unlock:
	mutex_unlock(&ft_config_mutex);
	kfree(words);
	return ret ?: count;
}

/*
 * Show one list: @print writes its values, each with a space after it. The
 * last space becomes the line's end.
 */
static ssize_t ft_show_list(char *buf,
			    ssize_t (*print)(const struct ft_config *config,
					     char *buf))
{
	ssize_t len;

	mutex_lock(&ft_config_mutex);
	len = print(rcu_dereference_protected(ft_config, true), buf);
	mutex_unlock(&ft_config_mutex);
	if (!len)
		return sysfs_emit(buf, "\n");
	buf[len - 1] = '\n';
	return len;
}

#define FT_LIST(_file, _clear, _parse, _print)				\
static ssize_t _file##_show(struct kobject *kobj,			\
			    struct kobj_attribute *attr, char *buf)	\
{									\
	return ft_show_list(buf, _print);				\
}									\
									\
static ssize_t _file##_store(struct kobject *kobj,			\
			     struct kobj_attribute *attr,		\
			     const char *buf, size_t count)		\
{									\
	return ft_store_list(buf, count, _clear, _parse);		\
}									\
									\
static struct kobj_attribute _file##_attr = __ATTR_RW(_file)

static int ft_parse_uid(struct ft_config *config, const char *word)
{
	u32 uid;

	if (kstrtou32(word, 10, &uid) || uid == (u32)-1)
		return -EINVAL;
	if (config->nr_uids == FT_MAX_ENTRIES)
		return -ENOSPC;
	config->uids[config->nr_uids++] = uid;
	return 0;
}

static void ft_clear_uids(struct ft_config *config)
{
	config->nr_uids = 0;
}

static ssize_t ft_print_uids(const struct ft_config *config, char *buf)
{
	ssize_t len = 0;

	for (unsigned int i = 0; i < config->nr_uids; i++)
		len += sysfs_emit_at(buf, len, "%u ", config->uids[i]);
	return len;
}

FT_LIST(foreground_uids, ft_clear_uids, ft_parse_uid, ft_print_uids);

static int ft_parse_tgid(struct ft_config *config, const char *word)
{
	pid_t tgid;
	u32 tag;
	int ret;

	if (kstrtoint(word, 10, &tgid) || tgid <= 0)
		return -EINVAL;
	if (config->nr_groups == FT_MAX_ENTRIES)
		return -ENOSPC;
	ret = ft_group_tag(tgid, &tag);
	if (ret)
		return ret;
	config->groups[config->nr_groups++] = tag;
	return 0;
}

static void ft_clear_tgids(struct ft_config *config)
{
	config->nr_groups = 0;
}

static ssize_t ft_print_tgids(const struct ft_config *config, char *buf)
{
	ssize_t len = 0;

	for (unsigned int i = 0; i < config->nr_groups; i++) {
		pid_t tgid = ft_group_tgid(config->groups[i]);

		/* A dead leader's children may still be in front. */
		if (tgid)
			len += sysfs_emit_at(buf, len, "%d ", tgid);
	}
	return len;
}

FT_LIST(foreground_tgids, ft_clear_tgids, ft_parse_tgid, ft_print_tgids);

static int ft_parse_app_uid(struct ft_config *config, const char *word)
{
	struct ft_range range;
	char end;
	int n;

	n = sscanf(word, "%u-%u%c", &range.first, &range.last, &end);
	if (n == 1 && !strchr(word, '-') && !kstrtou32(word, 10, &range.first))
		range.last = range.first;
	else if (n != 2)
		return -EINVAL;
	if (range.first > range.last || range.last >= FT_UIDS_PER_USER)
		return -EINVAL;
	if (config->nr_app_uids == FT_MAX_ENTRIES)
		return -ENOSPC;
	config->app_uids[config->nr_app_uids++] = range;
	return 0;
}

static void ft_clear_app_uids(struct ft_config *config)
{
	config->nr_app_uids = 0;
}

static ssize_t ft_print_app_uids(const struct ft_config *config, char *buf)
{
	ssize_t len = 0;

	for (unsigned int i = 0; i < config->nr_app_uids; i++)
		len += sysfs_emit_at(buf, len, "%u-%u ",
				     config->app_uids[i].first,
				     config->app_uids[i].last);
	return len;
}

FT_LIST(app_uids, ft_clear_app_uids, ft_parse_app_uid, ft_print_app_uids);

#ifdef CONFIG_CGROUPS
static ssize_t ft_print_paths(const struct ft_cgroups *cgroups, char *buf)
{
	ssize_t len = 0;

	for (unsigned int i = 0; i < cgroups->nr; i++) {
		ssize_t room = PAGE_SIZE - len - 1;
		ssize_t n = cgroup_path(cgroups->cgroup[i], buf + len, room);

		/* kernfs cuts a path that is too long, without an error. */
		if (n < 0 || n >= room - 1)
			break;
		len += n;
		buf[len++] = ' ';
	}
	return len;
}

static int ft_parse_cgroup(struct ft_config *config, const char *word)
{
	return ft_cgroups_add(&config->cgroups, word);
}

static void ft_clear_cgroups(struct ft_config *config)
{
	ft_cgroups_put(&config->cgroups);
}

static ssize_t ft_print_cgroups(const struct ft_config *config, char *buf)
{
	return ft_print_paths(&config->cgroups, buf);
}

FT_LIST(foreground_cgroups, ft_clear_cgroups, ft_parse_cgroup,
	ft_print_cgroups);

static int ft_parse_app_cgroup(struct ft_config *config, const char *word)
{
	return ft_cgroups_add(&config->app_cgroups, word);
}

static void ft_clear_app_cgroups(struct ft_config *config)
{
	ft_cgroups_put(&config->app_cgroups);
}

static ssize_t ft_print_app_cgroups(const struct ft_config *config, char *buf)
{
	return ft_print_paths(&config->app_cgroups, buf);
}

FT_LIST(app_cgroups, ft_clear_app_cgroups, ft_parse_app_cgroup,
	ft_print_app_cgroups);
#endif /* CONFIG_CGROUPS */

static ssize_t enabled_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%d\n", fasttrack_enabled());
}

static ssize_t enabled_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t count)
{
	bool on;

	if (kstrtobool(buf, &on))
		return -EINVAL;
	ft_set_enabled(on);
	return count;
}

static struct kobj_attribute enabled_attr = __ATTR_RW(enabled);

/*
 * The knobs, in units of the field's. Input that is no number or out of range:
 * -EINVAL, and nothing changes.
 */
static int ft_parse_number(const char *buf, u64 lowest, u64 highest, u64 *value)
{
	if (kstrtou64(buf, 10, value) || *value < lowest || *value > highest)
		return -EINVAL;
	return 0;
}

#define FT_KNOB(_file, _field, _lowest, _highest, _unit)		\
static ssize_t _file##_show(struct kobject *kobj,			\
			    struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%llu\n",				\
			  div_u64(READ_ONCE(ft_knobs._field), _unit));	\
}									\
									\
static ssize_t _file##_store(struct kobject *kobj,			\
			     struct kobj_attribute *attr,		\
			     const char *buf, size_t count)		\
{									\
	u64 value;							\
									\
	if (ft_parse_number(buf, _lowest, _highest, &value))		\
		return -EINVAL;						\
	WRITE_ONCE(ft_knobs._field, value * (_unit));			\
	return count;							\
}									\
									\
static struct kobj_attribute _file##_attr = __ATTR_RW(_file)

#define FT_SWITCH(_file)						\
static ssize_t _file##_show(struct kobject *kobj,			\
			    struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%d\n", READ_ONCE(ft_knobs._file));	\
}									\
									\
static ssize_t _file##_store(struct kobject *kobj,			\
			     struct kobj_attribute *attr,		\
			     const char *buf, size_t count)		\
{									\
	bool on;							\
									\
	if (kstrtobool(buf, &on))					\
		return -EINVAL;						\
	WRITE_ONCE(ft_knobs._file, on);					\
	ft_pause_end_all();						\
	return count;							\
}									\
									\
static struct kobj_attribute _file##_attr = __ATTR_RW(_file)

FT_SWITCH(page_allocator);
FT_SWITCH(page_reclaimer);
FT_SWITCH(promotion);
FT_KNOB(idle_window_us, idle_window, 0, USEC_PER_SEC, NSEC_PER_USEC);
FT_KNOB(background_pause_ms, background_pause, 1, 60 * MSEC_PER_SEC,
	NSEC_PER_MSEC);
FT_KNOB(foreground_cache_percent, foreground_cache_percent, 0, 100, 1);

/* Memory is kept in pages, and shown in KiB. */
#define FT_PAGES_KNOB(_file, _field, _lowest, _highest)			\
static ssize_t _file##_show(struct kobject *kobj,			\
			    struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%lu\n",				\
			  READ_ONCE(ft_knobs._field) << (PAGE_SHIFT - 10)); \
}									\
									\
static ssize_t _file##_store(struct kobject *kobj,			\
			     struct kobj_attribute *attr,		\
			     const char *buf, size_t count)		\
{									\
	u64 value;							\
									\
	if (ft_parse_number(buf, _lowest, _highest, &value))		\
		return -EINVAL;						\
	WRITE_ONCE(ft_knobs._field, value >> (PAGE_SHIFT - 10));	\
	return count;							\
}									\
									\
static struct kobj_attribute _file##_attr = __ATTR_RW(_file)

FT_PAGES_KNOB(segment_kb, segment_pages, PAGE_SIZE / SZ_1K, SZ_64K);
FT_PAGES_KNOB(reserve_kb, reserve_pages, 0, SZ_4M);

static struct attribute *ft_attrs[] = {
	&enabled_attr.attr,
	&page_allocator_attr.attr,
	&page_reclaimer_attr.attr,
	&promotion_attr.attr,
	&idle_window_us_attr.attr,
	&background_pause_ms_attr.attr,
	&segment_kb_attr.attr,
	&reserve_kb_attr.attr,
	&foreground_cache_percent_attr.attr,
	&foreground_uids_attr.attr,
	&foreground_tgids_attr.attr,
	&app_uids_attr.attr,
#ifdef CONFIG_CGROUPS
	&foreground_cgroups_attr.attr,
	&app_cgroups_attr.attr,
#endif
	NULL
};

static const struct attribute_group ft_group = {
	.attrs = ft_attrs,
};

/**
 * struct ft_stat_attr - a file of stats/
 * @attr: read-only
 * @stat: what it shows
 */
struct ft_stat_attr {
	struct kobj_attribute attr;
	enum fasttrack_stat stat;
};

static ssize_t ft_stat_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	const struct ft_stat_attr *stat =
		container_of(attr, struct ft_stat_attr, attr);

	return sysfs_emit(buf, "%lu\n", ft_stat_read(stat->stat));
}

#define FT_STAT(_name, _stat)						\
static struct ft_stat_attr ft_stat_##_name = {				\
	.attr = __ATTR(_name, 0444, ft_stat_show, NULL),		\
	.stat = (_stat),						\
}

FT_STAT(bios_neutral, FASTTRACK_BIO_NEUTRAL);
FT_STAT(bios_background, FASTTRACK_BIO_BACKGROUND);
FT_STAT(bios_foreground, FASTTRACK_BIO_FOREGROUND);
FT_STAT(dispatch_boosted, FASTTRACK_DISPATCH_BOOSTED);
FT_STAT(dispatch_held, FASTTRACK_DISPATCH_HELD);
FT_STAT(dispatch_expired, FASTTRACK_DISPATCH_EXPIRED);
FT_STAT(pauses, FASTTRACK_PAUSE);
FT_STAT(reserve_spent, FASTTRACK_RESERVE_SPENT);
FT_STAT(foreground_reclaim, FASTTRACK_FOREGROUND_RECLAIM);
FT_STAT(dirty_exempt, FASTTRACK_DIRTY_EXEMPT);
FT_STAT(reclaim_protected, FASTTRACK_RECLAIM_PROTECTED);
FT_STAT(reclaim_waited, FASTTRACK_RECLAIM_WAITED);
FT_STAT(promoted, FASTTRACK_PROMOTED);
FT_STAT(depended, FASTTRACK_DEPENDED);
FT_STAT(pause_max_us, FASTTRACK_PAUSE_MAX);
FT_STAT(dispatch_wait_max_us, FASTTRACK_DISPATCH_WAIT_MAX);
FT_STAT(dispatch_sync_wait_max_us, FASTTRACK_DISPATCH_SYNC_MAX);

static struct attribute *ft_stat_attrs[] = {
	&ft_stat_bios_neutral.attr.attr,
	&ft_stat_bios_background.attr.attr,
	&ft_stat_bios_foreground.attr.attr,
	&ft_stat_dispatch_boosted.attr.attr,
	&ft_stat_dispatch_held.attr.attr,
	&ft_stat_dispatch_expired.attr.attr,
	&ft_stat_pauses.attr.attr,
	&ft_stat_reserve_spent.attr.attr,
	&ft_stat_foreground_reclaim.attr.attr,
	&ft_stat_dirty_exempt.attr.attr,
	&ft_stat_reclaim_protected.attr.attr,
	&ft_stat_reclaim_waited.attr.attr,
	&ft_stat_promoted.attr.attr,
	&ft_stat_depended.attr.attr,
	&ft_stat_pause_max_us.attr.attr,
	&ft_stat_dispatch_wait_max_us.attr.attr,
	&ft_stat_dispatch_sync_wait_max_us.attr.attr,
	NULL
};

static const struct attribute_group ft_stat_group = {
	.name = "stats",
	.attrs = ft_stat_attrs,
};

static const struct attribute_group *ft_attr_groups[] = {
	&ft_group,
	&ft_stat_group,
	NULL
};

static int __init ft_sysfs_init(void)
{
	struct kobject *kobj;
	int ret;

	BUILD_BUG_ON(ARRAY_SIZE(ft_stat_attrs) != FASTTRACK_NR_STATS + 1);

	kobj = kobject_create_and_add("fasttrack", kernel_kobj);
	if (!kobj)
		return -ENOMEM;
	ret = sysfs_create_groups(kobj, ft_attr_groups);
	if (ret)
		kobject_put(kobj);
	return ret;
}
subsys_initcall(ft_sysfs_init);

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/sysfs-kunit.h"
#endif
