/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of the classes, included by class.c. */
#include <kunit/test.h>

static struct ft_config *ft_test_config(struct kunit *test)
{
	struct ft_config *config = kunit_kzalloc(test, sizeof(*config),
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, config);
	config->nr_app_uids = ft_config_boot.nr_app_uids;
	memcpy(config->app_uids, ft_config_boot.app_uids,
	       sizeof(config->app_uids));
	return config;
}

static enum fasttrack_class ft_test_uid(const struct ft_config *config, u32 uid)
{
	const struct ft_app_key key = { .uid = uid };

	return ft_class_of(config, &key);
}

static void ft_test_apps_are_background(struct kunit *test)
{
	const struct ft_config *config = ft_test_config(test);

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
	struct ft_config *config = ft_test_config(test);

	config->uids[config->nr_uids++] = 10101;
	config->uids[config->nr_uids++] = 1000;
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

static void ft_test_foreground_groups(struct kunit *test)
{
	struct ft_config *config = ft_test_config(test);
	struct ft_app_key key = { .uid = 10102, .group = 7 };

	KUNIT_EXPECT_EQ(test, ft_class_of(config, &key),
			FASTTRACK_BACKGROUND);
	config->groups[config->nr_groups++] = 7;
	KUNIT_EXPECT_EQ(test, ft_class_of(config, &key),
			FASTTRACK_FOREGROUND);
	/* No tag is no member, even of a list that holds zeroes. */
	config->groups[config->nr_groups++] = 0;
	key.group = 0;
	KUNIT_EXPECT_EQ(test, ft_class_of(config, &key),
			FASTTRACK_BACKGROUND);
}

static struct kunit_case ft_class_test_cases[] = {
	KUNIT_CASE(ft_test_apps_are_background),
	KUNIT_CASE(ft_test_foreground_uids),
	KUNIT_CASE(ft_test_foreground_groups),
	{}
};

static struct kunit_suite ft_class_test_suite = {
	.name = "fasttrack_class",
	.test_cases = ft_class_test_cases,
};

kunit_test_suite(ft_class_test_suite);
