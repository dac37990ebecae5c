/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of who waits for all that is dirty, included by syncs.c. */
#include <kunit/test.h>

/* A flusher works for who waits for all that is dirty, and nobody else does. */
static void ft_test_flushes(struct kunit *test)
{
	u8 flags = current->fasttrack_flags;

	if (ft_who_syncs() != FASTTRACK_BACKGROUND)
		kunit_skip(test, "somebody syncs");
	ft_flag(FT_TASK_FLUSHES, true);
	KUNIT_EXPECT_EQ(test, ft_flushes_for(current), FASTTRACK_BACKGROUND);
	ft_sync_change(FASTTRACK_PERCEPTIBLE, 1);
	KUNIT_EXPECT_EQ(test, ft_flushes_for(current), FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, __fasttrack_task_class(current), FASTTRACK_NEUTRAL);
	ft_sync_change(FASTTRACK_FOREGROUND, 1);
	KUNIT_EXPECT_EQ(test, ft_flushes_for(current), FASTTRACK_FOREGROUND);
	KUNIT_EXPECT_EQ(test, __fasttrack_task_class(current), FASTTRACK_FOREGROUND);
	KUNIT_EXPECT_EQ(test, ft_flushes_for(&init_task), FASTTRACK_BACKGROUND);
	WRITE_ONCE(ft_sync_changed, jiffies - FT_SYNC_LAPSES);
	KUNIT_EXPECT_EQ(test, ft_flushes_for(current), FASTTRACK_BACKGROUND);
	ft_sync_change(FASTTRACK_FOREGROUND, -1);
	KUNIT_EXPECT_EQ(test, ft_flushes_for(current), FASTTRACK_NEUTRAL);
	ft_sync_change(FASTTRACK_PERCEPTIBLE, -1);
	KUNIT_EXPECT_EQ(test, ft_flushes_for(current), FASTTRACK_BACKGROUND);
	ft_flag(FT_TASK_FLUSHES, false);
	KUNIT_EXPECT_EQ(test, current->fasttrack_flags, flags);
}

static struct kunit_case ft_syncs_test_cases[] = {
	KUNIT_CASE(ft_test_flushes),
	{}
};

static struct kunit_suite ft_syncs_test_suite = {
	.name = "fasttrack_syncs",
	.test_cases = ft_syncs_test_cases,
};

kunit_test_suite(ft_syncs_test_suite);
