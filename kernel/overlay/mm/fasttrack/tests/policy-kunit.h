/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of the pure policies of policy.h, included by memory.c. */
#include <kunit/test.h>
#include <linux/ktime.h>

#define FT_TEST_NOW	(100ULL * NSEC_PER_SEC)
#define FT_TEST_WINDOW	(20ULL * NSEC_PER_MSEC)

static void ft_test_works(struct kunit *test)
{
	struct ft_activity activity = {};

	/* Nothing yet: the time since boot is no idle window. */
	KUNIT_EXPECT_FALSE(test, ft_works(&activity, FT_TEST_WINDOW, 1));
	activity.asleep = 1;
	KUNIT_EXPECT_TRUE(test, ft_works(&activity, FT_TEST_WINDOW, 1));

	/* Asleep for ever, as for a key. */
	activity.last = FT_TEST_NOW;
	KUNIT_EXPECT_TRUE(test, ft_works(&activity, FT_TEST_WINDOW,
					 FT_TEST_NOW + FT_ASLEEP_LIMIT - 1));
	KUNIT_EXPECT_FALSE(test, ft_works(&activity, FT_TEST_WINDOW,
					  FT_TEST_NOW + FT_ASLEEP_LIMIT));

	activity = (struct ft_activity){ .seen = true, .last = FT_TEST_NOW };
	KUNIT_EXPECT_TRUE(test, ft_works(&activity, FT_TEST_WINDOW,
					 FT_TEST_NOW + FT_TEST_WINDOW - 1));
	KUNIT_EXPECT_FALSE(test, ft_works(&activity, FT_TEST_WINDOW,
					  FT_TEST_NOW + FT_TEST_WINDOW));
	KUNIT_EXPECT_FALSE(test, ft_works(&activity, 0, FT_TEST_NOW));
}

static void ft_test_pause_is_bounded(struct kunit *test)
{
	const struct ft_activity always = {
		.asleep = 1, .seen = true, .last = FT_TEST_NOW,
	};
	const u64 bound = NSEC_PER_SEC;
	u64 now = FT_TEST_NOW, sleep;

	while ((sleep = ft_pause_sleep(&always, FT_TEST_WINDOW, bound,
				       FT_TEST_NOW, now))) {
		KUNIT_EXPECT_LE(test, sleep, FT_TEST_WINDOW);
		now += sleep;
	}
	KUNIT_EXPECT_EQ(test, now, FT_TEST_NOW + bound);

	/* Without a window it sleeps to the bound, not in a loop. */
	KUNIT_EXPECT_EQ(test, ft_pause_sleep(&always, 0, bound, FT_TEST_NOW,
					     FT_TEST_NOW), bound);
}

static void ft_test_pause_ends_with_activity(struct kunit *test)
{
	const struct ft_activity idle = { .seen = true, .last = FT_TEST_NOW };
	const u64 bound = NSEC_PER_SEC;

	KUNIT_EXPECT_EQ(test, ft_pause_sleep(&idle, FT_TEST_WINDOW, bound,
					     FT_TEST_NOW, FT_TEST_NOW),
			FT_TEST_WINDOW);
	KUNIT_EXPECT_EQ(test, ft_pause_sleep(&idle, FT_TEST_WINDOW, bound,
					     FT_TEST_NOW,
					     FT_TEST_NOW + FT_TEST_WINDOW), 0);
}

static void ft_test_reserve(struct kunit *test)
{
	const unsigned long all = 1UL << 20;
	unsigned long none = 0;

	/* READ_ONCE(): or sparse sees the division that is not reached. */
	KUNIT_EXPECT_EQ(test, ft_zone_reserve(4096, 0, READ_ONCE(none)), 0);
	/* Zones share it by size. */
	KUNIT_EXPECT_EQ(test, ft_zone_reserve(4096, all / 2, all), 2048);
	KUNIT_EXPECT_EQ(test, ft_zone_reserve(4096, all / 4, all) * 2,
			ft_zone_reserve(4096, all / 2, all));
	/* A small machine keeps most of its memory. */
	KUNIT_EXPECT_EQ(test, ft_zone_reserve(all, all, all),
			all / FT_RESERVE_MAX_PART);
	KUNIT_EXPECT_EQ(test, ft_zone_reserve(0, all, all), 0);
}

static void ft_test_dirty(struct kunit *test)
{
	const unsigned long thresh = 1000;

	/* Others made them. */
	KUNIT_EXPECT_TRUE(test, ft_dirty_exempt(10, thresh, thresh));
	/* It made them itself. */
	KUNIT_EXPECT_FALSE(test, ft_dirty_exempt(thresh, thresh, thresh));
	/* Dirty memory stays bounded, whoever made it. */
	KUNIT_EXPECT_FALSE(test, ft_dirty_exempt(10, 2 * thresh, thresh));
}

static void ft_test_protects(struct kunit *test)
{
	/* As long as there are others, at every priority but the last ones. */
	KUNIT_EXPECT_TRUE(test, ft_protects(12, 10, 100, 60));
	KUNIT_EXPECT_TRUE(test, ft_protects(FT_PROTECT_PRIORITY + 1, 10, 100,
					    60));
	KUNIT_EXPECT_FALSE(test, ft_protects(FT_PROTECT_PRIORITY, 10, 100, 60));
	KUNIT_EXPECT_FALSE(test, ft_protects(0, 0, 100, 60));
	/* Up to its share. */
	KUNIT_EXPECT_TRUE(test, ft_protects(12, 60, 100, 60));
	KUNIT_EXPECT_FALSE(test, ft_protects(12, 61, 100, 60));
	KUNIT_EXPECT_FALSE(test, ft_protects(12, 1, 100, 0));
	KUNIT_EXPECT_TRUE(test, ft_protects(12, 100, 100, 100));
}

static void ft_test_dirty_first(struct kunit *test)
{
	const int last = FT_PROTECT_PRIORITY + 1;

	KUNIT_EXPECT_TRUE(test, ft_dirty_first(last, 132, 100));
	/* There are others, or there are none any more. */
	KUNIT_EXPECT_FALSE(test, ft_dirty_first(last + 1, 132, 100));
	KUNIT_EXPECT_FALSE(test, ft_dirty_first(last - 1, 132, 100));
	/* The foreground's own are not waited for. */
	KUNIT_EXPECT_FALSE(test, ft_dirty_first(last, 131, 100));
	KUNIT_EXPECT_FALSE(test, ft_dirty_first(last, 90, 100));
}

static struct kunit_case ft_policy_test_cases[] = {
	KUNIT_CASE(ft_test_works),
	KUNIT_CASE(ft_test_pause_is_bounded),
	KUNIT_CASE(ft_test_pause_ends_with_activity),
	KUNIT_CASE(ft_test_reserve),
	KUNIT_CASE(ft_test_dirty),
	KUNIT_CASE(ft_test_protects),
	KUNIT_CASE(ft_test_dirty_first),
	{}
};

static struct kunit_suite ft_policy_test_suite = {
	.name = "fasttrack_page_cache",
	.test_cases = ft_policy_test_cases,
};

kunit_test_suite(ft_policy_test_suite);
