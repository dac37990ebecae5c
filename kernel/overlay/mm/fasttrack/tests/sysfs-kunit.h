/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of what sysfs.c accepts, included by it. */
#include <kunit/test.h>

static void ft_test_uids(struct kunit *test)
{
	static const char * const bad[] = { "x", "-1", "1x", "4294967295",
					    "99999999999" };
	struct ft_config *config = kunit_kzalloc(test, sizeof(*config),
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, config);
	for (int i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ_MSG(test, ft_parse_uid(config, bad[i]), -EINVAL,
				    "%s", bad[i]);
	KUNIT_EXPECT_EQ(test, config->nr_uids, 0);
	for (int i = 0; i < FT_MAX_ENTRIES; i++)
		KUNIT_EXPECT_EQ(test, ft_parse_uid(config, "10101"), 0);
	KUNIT_EXPECT_EQ(test, ft_parse_uid(config, "10101"), -ENOSPC);
}

static void ft_test_ranges(struct kunit *test)
{
	static const char * const bad[] = { "", "x", "5-", "-5", "6-5", "1-2-3",
					    "1-2x", "0-100000", "100000" };
	struct ft_config *config = kunit_kzalloc(test, sizeof(*config),
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, config);
	for (int i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ_MSG(test, ft_parse_app_uid(config, bad[i]),
				    -EINVAL, "%s", bad[i]);
	KUNIT_EXPECT_EQ(test, config->nr_app_uids, 0);
	KUNIT_EXPECT_EQ(test, ft_parse_app_uid(config, "10000-19999"), 0);
	KUNIT_EXPECT_EQ(test, config->app_uids[0].first, 10000);
	KUNIT_EXPECT_EQ(test, config->app_uids[0].last, 19999);
	KUNIT_EXPECT_EQ(test, ft_parse_app_uid(config, "77"), 0);
	KUNIT_EXPECT_EQ(test, config->app_uids[1].first, 77);
	KUNIT_EXPECT_EQ(test, config->app_uids[1].last, 77);
}

static void ft_test_tgids(struct kunit *test)
{
	struct ft_config *config = kunit_kzalloc(test, sizeof(*config),
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, config);
	mutex_lock(&ft_config_mutex);
	KUNIT_EXPECT_EQ(test, ft_parse_tgid(config, "0"), -EINVAL);
	KUNIT_EXPECT_EQ(test, ft_parse_tgid(config, "-3"), -EINVAL);
	KUNIT_EXPECT_EQ(test, ft_parse_tgid(config, "init"), -EINVAL);
	KUNIT_EXPECT_EQ(test, ft_parse_tgid(config, "4194305"), -ESRCH);
	KUNIT_EXPECT_EQ(test, config->nr_groups, 0);
	mutex_unlock(&ft_config_mutex);
}

static struct kunit_case ft_sysfs_test_cases[] = {
	KUNIT_CASE(ft_test_uids),
	KUNIT_CASE(ft_test_ranges),
	KUNIT_CASE(ft_test_tgids),
	{}
};

static struct kunit_suite ft_sysfs_test_suite = {
	.name = "fasttrack_sysfs",
	.test_cases = ft_sysfs_test_cases,
};

kunit_test_suite(ft_sysfs_test_suite);
