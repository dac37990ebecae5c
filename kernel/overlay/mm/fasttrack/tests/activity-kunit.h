/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of the counts of what the foreground does, included by activity.c. */
#include <kunit/test.h>

#define FT_TEST_SAID	192

/* What "ejected" says, with room for FT_TEST_SAID characters; forget it. */
static void ft_test_ejected(char *said)
{
	flush_workqueue(ft_workqueue);
	ft_eject_print(said, FT_TEST_SAID);
	ft_eject_forget();
}

/* More has ended than had begun: FastTrack is off, says why, and counts from 0. */
static void ft_test_count_that_cannot_be(struct kunit *test)
{
	static const char why[] = "count: - 0 0 ms at - behind ";
	struct ft_activity before = ft_activity_read();
	char said[FT_TEST_SAID];

	if (fasttrack_enabled() || ft_busy(&before, ktime_get_ns()))
		kunit_skip(test, "somebody is in front, and works");
	ft_eject_forget();

	fasttrack_foreground_io(-1);
	ft_test_ejected(said);
	KUNIT_EXPECT_EQ(test, strncmp(said, why, strlen(why)), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&ft_activity.in_flight), 0);

	ft_activity_wake();
	ft_test_ejected(said);
	KUNIT_EXPECT_EQ(test, strncmp(said, why, strlen(why)), 0);
	KUNIT_EXPECT_FALSE(test, fasttrack_enabled());
}

/* What begins and ends is no contradiction. */
static void ft_test_count_that_can_be(struct kunit *test)
{
	char said[FT_TEST_SAID];

	if (fasttrack_enabled())
		kunit_skip(test, "somebody may be in front");
	ft_eject_forget();
	fasttrack_foreground_io(2);
	ft_activity_sleep();
	fasttrack_foreground_io(-2);
	ft_activity_wake();
	ft_test_ejected(said);
	KUNIT_EXPECT_STREQ(test, said, "\n");
}

static struct kunit_case ft_activity_test_cases[] = {
	KUNIT_CASE(ft_test_count_that_cannot_be),
	KUNIT_CASE(ft_test_count_that_can_be),
	{}
};

static struct kunit_suite ft_activity_test_suite = {
	.name = "fasttrack_activity",
	.test_cases = ft_activity_test_cases,
};

kunit_test_suite(ft_activity_test_suite);
