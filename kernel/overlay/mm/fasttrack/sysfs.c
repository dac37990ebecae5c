// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/fasttrack/: FastTrack's interface, see
 * Documentation/ABI/testing/sysfs-kernel-fasttrack.
 *
 * The switches, the knobs and the counters are here; the lists are in lists.c.
 */
#include <linux/kobject.h>
#include <linux/math64.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"
#include "policy.h"

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

static ssize_t ejected_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	return ft_eject_print(buf, PAGE_SIZE);
}

static struct kobj_attribute ejected_attr = __ATTR(ejected, 0400, ejected_show,
						   NULL);

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

/* With a condition on the value, in nanoseconds. */
#define FT_KNOB_IF(_file, _field, _lowest, _highest, _unit, _may)	\
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
	if (ft_parse_number(buf, _lowest, _highest, &value) ||		\
	    !(_may)(value * (_unit)))					\
		return -EINVAL;						\
	WRITE_ONCE(ft_knobs._field, value * (_unit));			\
	return count;							\
}									\
									\
static struct kobj_attribute _file##_attr = __ATTR_RW(_file)

static bool ft_any(u64 value)
{
	return true;
}

#define FT_KNOB(_file, _field, _lowest, _highest, _unit)		\
	FT_KNOB_IF(_file, _field, _lowest, _highest, _unit, ft_any)

static bool ft_eject_may(u64 eject)
{
	return ft_eject_allows(eject, READ_ONCE(ft_knobs.background_pause));
}

static bool ft_pause_may(u64 pause)
{
	return ft_eject_allows(READ_ONCE(ft_knobs.eject), pause);
}

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
	ft_wake_all();							\
	return count;							\
}									\
									\
static struct kobj_attribute _file##_attr = __ATTR_RW(_file)

FT_SWITCH(page_allocator);
FT_SWITCH(page_reclaimer);
FT_SWITCH(promotion);
FT_KNOB(stuck_ms, stuck, 0, MSEC_PER_SEC, NSEC_PER_MSEC);
FT_KNOB_IF(eject_ms, eject, 2 * MSEC_PER_SEC, 600 * MSEC_PER_SEC, NSEC_PER_MSEC,
	   ft_eject_may);
FT_KNOB(idle_window_us, idle_window, 0, USEC_PER_SEC, NSEC_PER_USEC);
FT_KNOB_IF(background_pause_ms, background_pause, 1, 60 * MSEC_PER_SEC,
	   NSEC_PER_MSEC, ft_pause_may);
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
	ft_wake_all();							\
	return count;							\
}									\
									\
static struct kobj_attribute _file##_attr = __ATTR_RW(_file)

FT_PAGES_KNOB(segment_kb, segment_pages, PAGE_SIZE / SZ_1K, SZ_64K);
FT_PAGES_KNOB(reserve_kb, reserve_pages, 0, SZ_4M);

/* A detector that needs longer than ten minutes to say so is none. */
#define FT_LEASE_MAX_MS	(600 * MSEC_PER_SEC)

static ssize_t lease_ms_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%u\n", ft_lease_ms());
}

static ssize_t lease_ms_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t count)
{
	u64 ms;

	if (ft_parse_number(buf, 0, FT_LEASE_MAX_MS, &ms))
		return -EINVAL;
	ft_lease_set(ms);
	return count;
}

static struct kobj_attribute lease_ms_attr = __ATTR_RW(lease_ms);

static ssize_t generation_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	u64 generation;

	mutex_lock(&ft_config_mutex);
	generation = ft_generation();
	mutex_unlock(&ft_config_mutex);
	return sysfs_emit(buf, "%llu\n", generation);
}

/* For root alone: it says when somebody changes apps. */
static struct kobj_attribute generation_attr = __ATTR_RO_MODE(generation, 0400);

static struct attribute *ft_attrs[] = {
	&enabled_attr.attr,
	&ejected_attr.attr,
	&page_allocator_attr.attr,
	&page_reclaimer_attr.attr,
	&promotion_attr.attr,
	&stuck_ms_attr.attr,
	&eject_ms_attr.attr,
	&idle_window_us_attr.attr,
	&background_pause_ms_attr.attr,
	&segment_kb_attr.attr,
	&reserve_kb_attr.attr,
	&foreground_cache_percent_attr.attr,
	&lease_ms_attr.attr,
	&generation_attr.attr,
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
	.attr = __ATTR(_name, 0400, ft_stat_show, NULL),		\
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
FT_STAT(dirty_written, FASTTRACK_DIRTY_WRITTEN);
FT_STAT(reclaim_protected, FASTTRACK_RECLAIM_PROTECTED);
FT_STAT(reclaim_waited, FASTTRACK_RECLAIM_WAITED);
FT_STAT(promoted, FASTTRACK_PROMOTED);
FT_STAT(depended, FASTTRACK_DEPENDED);
FT_STAT(stuck, FASTTRACK_STUCK);
FT_STAT(stuck_vain, FASTTRACK_STUCK_VAIN);
FT_STAT(apps_crowded, FASTTRACK_APPS_CROWDED);
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
	&ft_stat_dirty_written.attr.attr,
	&ft_stat_reclaim_protected.attr.attr,
	&ft_stat_reclaim_waited.attr.attr,
	&ft_stat_promoted.attr.attr,
	&ft_stat_depended.attr.attr,
	&ft_stat_stuck.attr.attr,
	&ft_stat_stuck_vain.attr.attr,
	&ft_stat_apps_crowded.attr.attr,
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
	&ft_list_group,
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
	if (ret) {
		kobject_put(kobj);
		return ret;
	}
	ft_generation_file = sysfs_get_dirent(kobj->sd, "generation");
	return 0;
}
subsys_initcall(ft_sysfs_init);
