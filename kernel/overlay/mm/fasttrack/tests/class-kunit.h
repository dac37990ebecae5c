/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of the classes, included by class.c. */
#include <kunit/test.h>

/* A configuration that a test fills; its lists are freed with the test. */
static struct ft_config *ft_test_config(struct kunit *test)
{
	struct ft_config *config = kunit_kzalloc(test, sizeof(*config),
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, config);
	return config;
}

static void ft_test_name(struct kunit *test, struct ft_config *config,
			 enum ft_list list, u64 first, u64 last)
{
	struct ft_set *old = config->list[list], *set = ft_set_edit(old);

	KUNIT_ASSERT_NOT_NULL(test, set);
	KUNIT_ASSERT_EQ(test, ft_set_add(set, first, last), 0);
	set = ft_set_finish(set);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, set);
	config->list[list] = kunit_kmalloc(test,
					   struct_size(set, range, set->nr),
					   GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, config->list[list]);
	memcpy(config->list[list], set, struct_size(set, range, set->nr));
	kvfree(set);
}

/* One whose apps are Android's. */
static struct ft_config *ft_test_android(struct kunit *test)
{
	struct ft_config *config = ft_test_config(test);

	ft_test_name(test, config, FT_APP_UIDS, 10000, 19999);
	ft_test_name(test, config, FT_APP_UIDS, 90000, 99999);
	return config;
}

static enum fasttrack_class ft_test_uid(const struct ft_config *config, u32 uid)
{
	const struct ft_app_key key = { .uid = uid };

	return ft_class_of(config, &key);
}

static void ft_test_nobody_is_an_app_at_boot(struct kunit *test)
{
	const struct ft_config *config = ft_test_config(test);

	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 0), FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 10101), FASTTRACK_NEUTRAL);
}

static void ft_test_apps_are_background(struct kunit *test)
{
	const struct ft_config *config = ft_test_android(test);

	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 0), FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 1000), FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 9999), FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 10000),
			FASTTRACK_BACKGROUND);
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 19999),
			FASTTRACK_BACKGROUND);
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 50000), FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 99999),
			FASTTRACK_BACKGROUND);
	/* The second user of the phone has the same apps. */
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 1010001),
			FASTTRACK_BACKGROUND);
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 1000000),
			FASTTRACK_NEUTRAL);
}

static void ft_test_foreground_uids(struct kunit *test)
{
	struct ft_config *config = ft_test_android(test);

	ft_test_name(test, config, FT_FOREGROUND_UIDS, 10101, 10101);
	ft_test_name(test, config, FT_FOREGROUND_UIDS, 1000, 1000);
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 10101),
			FASTTRACK_FOREGROUND);
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 1000),
			FASTTRACK_FOREGROUND);
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 10102),
			FASTTRACK_BACKGROUND);
	/* The same app of another user is another app. */
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 1010101),
			FASTTRACK_BACKGROUND);
}

/* Foreground, perceptible, exceptions, apps: what comes first wins. */
static void ft_test_precedence(struct kunit *test)
{
	static const struct {
		enum ft_list list;
		enum fasttrack_class class;
	} steps[] = {
		{ FT_APP_UIDS, FASTTRACK_BACKGROUND },
		{ FT_NEUTRAL_UIDS, FASTTRACK_NEUTRAL },
		{ FT_PERCEPTIBLE_UIDS, FASTTRACK_PERCEPTIBLE },
		{ FT_FOREGROUND_UIDS, FASTTRACK_FOREGROUND },
	};
	struct ft_config *config = ft_test_config(test);

	for (int i = 0; i < ARRAY_SIZE(steps); i++) {
		ft_test_name(test, config, steps[i].list, 10101, 10101);
		KUNIT_EXPECT_EQ(test, ft_test_uid(config, 10101),
				steps[i].class);
	}
	/* An exception is one for all users of the phone, the others are not. */
	KUNIT_EXPECT_EQ(test, ft_test_uid(config, 1010101), FASTTRACK_NEUTRAL);
}

/* Where control groups alone decide, a container's UIDs are not those of services. */
static void ft_test_mapped_uids(struct kunit *test)
{
	struct ft_app_key key = { .uid = 7, .cgroup = 1 };
	struct ft_config *config = ft_test_config(test);

	if (!IS_ENABLED(CONFIG_CGROUPS))
		kunit_skip(test, "without cgroups");
	ft_test_name(test, config, FT_NEUTRAL_UIDS, 0, 999);
	ft_test_name(test, config, FT_APP_CGROUPS, 1, 1);
	KUNIT_EXPECT_EQ(test, ft_class_of(config, &key), FASTTRACK_NEUTRAL);
	key.uid = 100007;
	KUNIT_EXPECT_EQ(test, ft_class_of(config, &key),
			FASTTRACK_BACKGROUND);
}

static void ft_test_groups(struct kunit *test)
{
	struct ft_config *config = ft_test_android(test);
	struct ft_app_key key = { .uid = 10102, .group = 7 };

	KUNIT_EXPECT_EQ(test, ft_class_of(config, &key),
			FASTTRACK_BACKGROUND);
	ft_test_name(test, config, FT_PERCEPTIBLE_TGIDS, 7, 7);
	KUNIT_EXPECT_EQ(test, ft_class_of(config, &key),
			FASTTRACK_PERCEPTIBLE);
	ft_test_name(test, config, FT_FOREGROUND_TGIDS, 7, 7);
	KUNIT_EXPECT_EQ(test, ft_class_of(config, &key),
			FASTTRACK_FOREGROUND);
	/* No tag is no member, even of a list that holds zeroes. */
	ft_test_name(test, config, FT_FOREGROUND_TGIDS, 0, 0);
	key.group = 0;
	KUNIT_EXPECT_EQ(test, ft_class_of(config, &key),
			FASTTRACK_BACKGROUND);
}

/* There is no room for a fourth class on the way to the device. */
static void ft_test_perceptible_travels_as_neutral(struct kunit *test)
{
	static const enum fasttrack_class travels[FASTTRACK_NR_APP_CLASSES] = {
		[FASTTRACK_NEUTRAL]	= FASTTRACK_NEUTRAL,
		[FASTTRACK_BACKGROUND]	= FASTTRACK_BACKGROUND,
		[FASTTRACK_FOREGROUND]	= FASTTRACK_FOREGROUND,
		[FASTTRACK_PERCEPTIBLE]	= FASTTRACK_NEUTRAL,
	};

	for (int i = 0; i < FASTTRACK_NR_APP_CLASSES; i++) {
		blk_opf_t opf = fasttrack_class_opf(i);
		u8 control = fasttrack_class_control(i, false);
		u8 depends = fasttrack_class_control(i, true);

		KUNIT_EXPECT_EQ(test, fasttrack_io_class(i), travels[i]);
		KUNIT_EXPECT_EQ(test, fasttrack_opf_class(opf), travels[i]);
		KUNIT_EXPECT_EQ(test, fasttrack_control_class(control),
				travels[i]);
		KUNIT_EXPECT_FALSE(test, fasttrack_control_depends(control));
		KUNIT_EXPECT_EQ(test, fasttrack_control_class(depends),
				travels[i]);
		KUNIT_EXPECT_EQ(test, fasttrack_control_depends(depends),
				i == FASTTRACK_FOREGROUND);
	}
}

/* Both of an I/O flusher's flags, or a real-time priority. */
static void ft_test_never_behind(struct kunit *test)
{
	struct task_struct *task = kunit_kzalloc(test, sizeof(*task),
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, task);
	task->prio = DEFAULT_PRIO;
	KUNIT_EXPECT_FALSE(test, ft_never_behind(task));
	task->flags = PF_MEMALLOC_NOIO;
	KUNIT_EXPECT_FALSE(test, ft_never_behind(task));
	task->flags = PF_LOCAL_THROTTLE;
	KUNIT_EXPECT_FALSE(test, ft_never_behind(task));
	task->flags = PF_MEMALLOC_NOIO | PF_LOCAL_THROTTLE;
	KUNIT_EXPECT_TRUE(test, ft_never_behind(task));
	task->flags = 0;
	task->prio = MAX_RT_PRIO - 1;
	KUNIT_EXPECT_TRUE(test, ft_never_behind(task));
	task->prio = MAX_RT_PRIO;
	KUNIT_EXPECT_FALSE(test, ft_never_behind(task));
}

/* What an app has left is background's when nobody can say any more where it was. */
static void ft_test_cgroup_is_gone(struct kunit *test)
{
	/* No cgroup has had so many before it. */
	const struct ft_app_key gone = { .uid = 1000, .cgroup = U64_MAX };
	const struct ft_app_key none = { .uid = 1000 };
	struct ft_config *config = ft_test_android(test);

	KUNIT_EXPECT_EQ(test, ft_class_anew(config, &gone, FASTTRACK_FOREGROUND),
			FASTTRACK_NEUTRAL);
	ft_test_name(test, config, FT_APP_CGROUPS, 1, 1);
	KUNIT_EXPECT_EQ(test, ft_class_anew(config, &gone, FASTTRACK_FOREGROUND),
			FASTTRACK_BACKGROUND);
	KUNIT_EXPECT_EQ(test, ft_class_anew(config, &gone, FASTTRACK_BACKGROUND),
			FASTTRACK_BACKGROUND);
	KUNIT_EXPECT_EQ(test, ft_class_anew(config, &gone, FASTTRACK_NEUTRAL),
			FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, ft_class_anew(config, &none, FASTTRACK_BACKGROUND),
			FASTTRACK_NEUTRAL);
}

static struct kunit_case ft_class_test_cases[] = {
	KUNIT_CASE(ft_test_nobody_is_an_app_at_boot),
	KUNIT_CASE(ft_test_apps_are_background),
	KUNIT_CASE(ft_test_foreground_uids),
	KUNIT_CASE(ft_test_precedence),
	KUNIT_CASE(ft_test_mapped_uids),
	KUNIT_CASE(ft_test_groups),
	KUNIT_CASE(ft_test_cgroup_is_gone),
	KUNIT_CASE(ft_test_perceptible_travels_as_neutral),
	KUNIT_CASE(ft_test_never_behind),
	{}
};

static struct kunit_suite ft_class_test_suite = {
	.name = "fasttrack_class",
	.test_cases = ft_class_test_cases,
};

kunit_test_suite(ft_class_test_suite);
