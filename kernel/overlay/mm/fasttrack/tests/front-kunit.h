/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of changes of the configuration, included by front.c. */
#include <kunit/test.h>

static void ft_test_group_tags(struct kunit *test)
{
	struct ft_config *config;
	u32 tag = 0, again = 0;

	mutex_lock(&ft_config_mutex);
	KUNIT_EXPECT_EQ(test, ft_group_tag(PID_MAX_LIMIT, &tag), -ESRCH);
	KUNIT_EXPECT_EQ(test, ft_group_tag(1, &tag), 0);
	KUNIT_EXPECT_EQ(test, ft_group_tag(1, &again), 0);
	KUNIT_EXPECT_EQ(test, tag, again);
	KUNIT_EXPECT_EQ(test, ft_group_tgid(tag), 1);

	/* A change that fails leaves nothing behind. */
	config = ft_config_change();
	KUNIT_EXPECT_NOT_NULL(test, config);
	if (config)
		ft_config_drop(config);
	KUNIT_EXPECT_EQ(test, ft_group_tgid(tag), 0);
	mutex_unlock(&ft_config_mutex);
}

static struct kunit_case ft_front_test_cases[] = {
	KUNIT_CASE(ft_test_group_tags),
	{}
};

static struct kunit_suite ft_front_test_suite = {
	.name = "fasttrack_front",
	.test_cases = ft_front_test_cases,
};

kunit_test_suite(ft_front_test_suite);
