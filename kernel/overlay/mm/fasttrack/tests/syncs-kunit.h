/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of who waits for all that is dirty, included by syncs.c. */
#include <kunit/test.h>

/* Those here wait for what is dirty here, those that sync all for all of it. */
static void ft_test_who_syncs(struct kunit *test)
{
	struct backing_dev_info *bdi = kunit_kzalloc(test, 2 * sizeof(*bdi),
						     GFP_KERNEL);
	struct backing_dev_info *other = bdi + 1;

	KUNIT_ASSERT_NOT_NULL(test, bdi);
	if (atomic_read(&ft_sync_counts[true].all) ||
	    atomic_read(&ft_sync_counts[false].all))
		kunit_skip(test, "somebody syncs");
	ft_sync_change(FASTTRACK_BACKGROUND, bdi, 1);
	KUNIT_EXPECT_TRUE(test, ft_behind_syncs());
	KUNIT_EXPECT_EQ(test, ft_who_syncs(bdi), FASTTRACK_BACKGROUND);
	ft_sync_change(FASTTRACK_BACKGROUND, bdi, -1);

	ft_sync_change(FASTTRACK_PERCEPTIBLE, bdi, 1);
	KUNIT_EXPECT_EQ(test, ft_who_syncs(bdi), FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, ft_who_syncs(other), FASTTRACK_BACKGROUND);
	ft_sync_change(FASTTRACK_FOREGROUND, bdi, 1);
	KUNIT_EXPECT_EQ(test, ft_who_syncs(bdi), FASTTRACK_FOREGROUND);
	KUNIT_EXPECT_EQ(test, ft_who_syncs(other), FASTTRACK_BACKGROUND);
	ft_sync_change(FASTTRACK_FOREGROUND, bdi, -1);
	ft_sync_change(FASTTRACK_PERCEPTIBLE, bdi, -1);
	KUNIT_EXPECT_EQ(test, ft_who_syncs(bdi), FASTTRACK_BACKGROUND);

	ft_sync_change(FASTTRACK_FOREGROUND, NULL, 1);
	KUNIT_EXPECT_EQ(test, ft_who_syncs(other), FASTTRACK_FOREGROUND);
	WRITE_ONCE(ft_sync_counts[true].changed, jiffies - FT_SYNC_LAPSES);
	/* Others that come do not make it believed again. */
	ft_sync_change(FASTTRACK_NEUTRAL, NULL, 1);
	KUNIT_EXPECT_EQ(test, ft_who_syncs(other), FASTTRACK_NEUTRAL);
	ft_sync_change(FASTTRACK_NEUTRAL, NULL, -1);
	ft_sync_change(FASTTRACK_FOREGROUND, NULL, -1);
	KUNIT_EXPECT_EQ(test, ft_who_syncs(other), FASTTRACK_BACKGROUND);
}

/* A flusher works for the foreground that waits, and nobody else does. */
static void ft_test_flushes(struct kunit *test)
{
	struct backing_dev_info *bdi = kunit_kzalloc(test, sizeof(*bdi), GFP_KERNEL);
	u8 flags = current->fasttrack_flags;

	KUNIT_ASSERT_NOT_NULL(test, bdi);
	if (atomic_read(&ft_sync_counts[true].any))
		kunit_skip(test, "somebody syncs");
	ft_flag(FT_TASK_FLUSHES, true);
	KUNIT_EXPECT_TRUE(test, fasttrack_flushes());
	KUNIT_EXPECT_FALSE(test, ft_flushes_for_front(current));
	ft_sync_change(FASTTRACK_NEUTRAL, bdi, 1);
	KUNIT_EXPECT_FALSE(test, ft_flushes_for_front(current));
	ft_sync_change(FASTTRACK_FOREGROUND, bdi, 1);
	KUNIT_EXPECT_TRUE(test, ft_flushes_for_front(current));
	KUNIT_EXPECT_FALSE(test, ft_flushes_for_front(&init_task));
	KUNIT_EXPECT_EQ(test, __fasttrack_task_class(current), FASTTRACK_FOREGROUND);
	ft_sync_change(FASTTRACK_FOREGROUND, bdi, -1);
	ft_sync_change(FASTTRACK_NEUTRAL, bdi, -1);
	KUNIT_EXPECT_FALSE(test, ft_flushes_for_front(current));
	ft_flag(FT_TASK_FLUSHES, false);
	KUNIT_EXPECT_EQ(test, current->fasttrack_flags, flags);
}

static struct kunit_case ft_syncs_test_cases[] = {
	KUNIT_CASE(ft_test_who_syncs),
	KUNIT_CASE(ft_test_flushes),
	{}
};

static struct kunit_suite ft_syncs_test_suite = {
	.name = "fasttrack_syncs",
	.test_cases = ft_syncs_test_cases,
};

kunit_test_suite(ft_syncs_test_suite);
