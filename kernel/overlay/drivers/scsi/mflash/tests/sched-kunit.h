/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash_sched: the order, without a device. */
#include <kunit/test.h>

#define WAIT_MAX	(100 * NSEC_PER_MSEC)

static struct mflash_candidate candidate(u8 class, bool write, u64 seq)
{
	return (struct mflash_candidate) { .seq = seq, .class = class, .write = write };
}

static void sched_rank_test(struct kunit *test)
{
	static const u8 classes[] = { FASTTRACK_FOREGROUND, FASTTRACK_BACKGROUND };
	unsigned int i, rank, last = 0;

	for (i = 0; i < 2 * ARRAY_SIZE(classes); i++) {
		rank = mflash_rank(MFLASH_FOREGROUND, classes[i / 2], i & 1);
		if (i)
			KUNIT_EXPECT_GT(test, rank, last);
		last = rank;
		KUNIT_EXPECT_EQ(test, mflash_rank(MFLASH_FIFO, classes[i / 2], i & 1), 0);
		KUNIT_EXPECT_EQ(test, mflash_rank(MFLASH_READ_FIRST, classes[i / 2], true),
				mflash_rank(MFLASH_READ_FIRST, classes[0], true));
	}
	KUNIT_EXPECT_EQ(test, mflash_rank(MFLASH_FOREGROUND, FASTTRACK_NEUTRAL, false),
			mflash_rank(MFLASH_FOREGROUND, FASTTRACK_FOREGROUND, false));
	rank = mflash_rank(MFLASH_FOREGROUND, FASTTRACK_NEUTRAL, true);
	KUNIT_EXPECT_GT(test, rank, mflash_rank(MFLASH_FOREGROUND, FASTTRACK_FOREGROUND, true));
	KUNIT_EXPECT_LT(test, rank, mflash_rank(MFLASH_FOREGROUND, FASTTRACK_BACKGROUND, false));
	KUNIT_EXPECT_LT(test, mflash_rank(MFLASH_READ_FIRST, FASTTRACK_BACKGROUND, false),
			mflash_rank(MFLASH_READ_FIRST, FASTTRACK_FOREGROUND, true));
}

static void sched_pick_test(struct kunit *test)
{
	struct mflash_sched sched = { .policy = MFLASH_FIFO };
	struct mflash_candidate c[] = {
		candidate(FASTTRACK_BACKGROUND, true, 1),
		candidate(FASTTRACK_BACKGROUND, false, 2),
		candidate(FASTTRACK_FOREGROUND, true, 3),
		candidate(FASTTRACK_FOREGROUND, false, 4),
		candidate(FASTTRACK_FOREGROUND, false, 5),
	};
	u64 forced = 0;

	KUNIT_EXPECT_EQ(test, mflash_pick(&sched, c, 5, 0, &forced), 0);
	sched.policy = MFLASH_READ_FIRST;
	KUNIT_EXPECT_EQ(test, mflash_pick(&sched, c, 5, 0, &forced), 1);
	sched.policy = MFLASH_FOREGROUND;
	KUNIT_EXPECT_EQ(test, mflash_pick(&sched, c, 5, 0, &forced), 3);
	KUNIT_EXPECT_EQ(test, mflash_pick(&sched, c, 3, 0, &forced), 2);
	KUNIT_EXPECT_EQ(test, mflash_pick(&sched, c, 2, 0, &forced), 1);
	KUNIT_EXPECT_EQ(test, mflash_pick(&sched, c, 0, 0, &forced), -1);
}

static void sched_starvation_test(struct kunit *test)
{
	struct mflash_sched sched = { .policy = MFLASH_FOREGROUND, .wait_max_ns = WAIT_MAX };
	struct mflash_candidate c[] = {
		candidate(FASTTRACK_FOREGROUND, false, 2),
		candidate(FASTTRACK_BACKGROUND, true, 1),
	};
	int i, served = 0;
	u64 forced = 0, now;

	c[0].since = WAIT_MAX;
	KUNIT_EXPECT_EQ(test, mflash_pick(&sched, c, 2, WAIT_MAX - 1, &forced), 0);
	/* a foreground that never stops: background gets its share, and no more */
	for (i = 0; i < 1000; i++) {
		now = WAIT_MAX + i * NSEC_PER_MSEC;
		c[0].since = now;
		served += mflash_pick(&sched, c, 2, now, &forced);
	}
	KUNIT_EXPECT_GT(test, served, 0);
	KUNIT_EXPECT_LE(test, served, 1000 * NSEC_PER_MSEC * MFLASH_FORCED_SHARE / WAIT_MAX + 1);
	sched.wait_max_ns = 0;
	KUNIT_EXPECT_EQ(test, mflash_pick(&sched, c, 2, U64_MAX, &forced), 0);
}

/* an overdue write of background's is no further behind than a neutral one that came later */
static void sched_ages_test(struct kunit *test)
{
	struct mflash_sched sched = { .policy = MFLASH_FOREGROUND, .wait_max_ns = WAIT_MAX };
	struct mflash_candidate c[] = {
		candidate(FASTTRACK_NEUTRAL, true, 2),
		candidate(FASTTRACK_BACKGROUND, true, 1),
		candidate(FASTTRACK_FOREGROUND, true, 3),
	};

	KUNIT_EXPECT_EQ(test, mflash_first(&sched, c, 2, WAIT_MAX - 1), 0);
	KUNIT_EXPECT_EQ(test, mflash_first(&sched, c, 2, WAIT_MAX), 1);
	KUNIT_EXPECT_EQ(test, mflash_first(&sched, c, 3, WAIT_MAX), 2);
	c[1].seq = 4;
	KUNIT_EXPECT_EQ(test, mflash_first(&sched, c, 2, WAIT_MAX), 0);
	c[0].write = false;
	c[1].seq = 1;
	KUNIT_EXPECT_EQ(test, mflash_first(&sched, c, 2, WAIT_MAX), 0);
	KUNIT_EXPECT_EQ(test, mflash_first(&sched, c, 0, 0), -1);
}

static void sched_suspend_test(struct kunit *test)
{
	struct mflash_sched sched = { .policy = MFLASH_FOREGROUND, .suspend_max = 2 };
	const u8 fg = FASTTRACK_FOREGROUND, bg = FASTTRACK_BACKGROUND;

	KUNIT_EXPECT_TRUE(test, mflash_may_suspend(&sched, fg, bg, 1000, 100, 0));
	KUNIT_EXPECT_TRUE(test, mflash_may_suspend(&sched, fg, FASTTRACK_NEUTRAL, 1000, 100, 0));
	KUNIT_EXPECT_FALSE(test, mflash_may_suspend(&sched, fg, fg, 1000, 100, 0));
	KUNIT_EXPECT_FALSE(test, mflash_may_suspend(&sched, bg, bg, 1000, 100, 0));
	KUNIT_EXPECT_FALSE(test, mflash_may_suspend(&sched, fg, bg, 100, 100, 0));
	KUNIT_EXPECT_FALSE(test, mflash_may_suspend(&sched, fg, bg, 1000, 100, 2));
	sched.policy = MFLASH_READ_FIRST;
	KUNIT_EXPECT_FALSE(test, mflash_may_suspend(&sched, fg, bg, 1000, 100, 0));
}

static void sched_burst_test(struct kunit *test)
{
	struct mflash_sched sched = { .policy = MFLASH_FOREGROUND };
	struct mflash_burst burst = {};
	u64 now = NSEC_PER_SEC;

	/* one alone is followed by nothing that anybody knows of */
	mflash_burst_begin(&burst, false, false, now);
	KUNIT_EXPECT_FALSE(test, mflash_in_burst(&sched, &burst, now));
	mflash_burst_end(&burst, false, now);
	KUNIT_EXPECT_FALSE(test, mflash_in_burst(&sched, &burst, now));
	/* nor is one after a pause */
	now += MFLASH_BURST_GAP_NS;
	mflash_burst_begin(&burst, false, false, now);
	KUNIT_EXPECT_FALSE(test, mflash_in_burst(&sched, &burst, now));
	mflash_burst_end(&burst, false, now);
	now += MFLASH_BURST_GAP_NS - 1;
	mflash_burst_begin(&burst, false, false, now);
	KUNIT_EXPECT_TRUE(test, mflash_in_burst(&sched, &burst, now));
	KUNIT_EXPECT_TRUE(test, mflash_in_burst(&sched, &burst, now + NSEC_PER_SEC));
	mflash_burst_end(&burst, false, now);
	KUNIT_EXPECT_TRUE(test, mflash_in_burst(&sched, &burst, now + MFLASH_BURST_GAP_NS - 1));
	KUNIT_EXPECT_FALSE(test, mflash_in_burst(&sched, &burst, now + MFLASH_BURST_GAP_NS));
	sched.policy = MFLASH_READ_FIRST;
	KUNIT_EXPECT_FALSE(test, mflash_in_burst(&sched, &burst, now));
	/* nor are dies kept from what it waits for */
	sched.policy = MFLASH_FOREGROUND;
	mflash_burst_begin(&burst, true, false, now);
	KUNIT_EXPECT_FALSE(test, mflash_in_burst(&sched, &burst, now));
	mflash_burst_begin(&burst, false, false, now);
	KUNIT_EXPECT_TRUE(test, mflash_in_burst(&sched, &burst, now));
	KUNIT_EXPECT_TRUE(test, mflash_may_keep(MFLASH_KEEP_MAX_NS - 1));
	KUNIT_EXPECT_FALSE(test, mflash_may_keep(MFLASH_KEEP_MAX_NS));
}

static void sched_queue_test(struct kunit *test)
{
	struct mflash_sched sched = { .policy = MFLASH_READ_FIRST };
	struct mflash_qnode n[4] = {};
	struct mflash_queue q;
	int i;

	mflash_queue_init(&q);
	KUNIT_EXPECT_NULL(test, mflash_queue_pick(&q, &sched, 0, 0));
	for (i = 0; i < 4; i++) {
		n[i].c = candidate(FASTTRACK_NEUTRAL, i % 2 == 0, i);
		mflash_queue_add(&q, &n[i]);
	}
	KUNIT_EXPECT_PTR_EQ(test, mflash_queue_pick(&q, &sched, 0, 0), &n[1]);
	mflash_queue_del(&q, &n[1]);
	KUNIT_EXPECT_PTR_EQ(test, mflash_queue_pick(&q, &sched, 0, 0), &n[3]);
	mflash_queue_del(&q, &n[3]);
	KUNIT_EXPECT_PTR_EQ(test, mflash_queue_pick(&q, &sched, 0, 0), &n[0]);
	KUNIT_EXPECT_NULL(test, mflash_queue_pick(&q, &sched, 0, MFLASH_WRITES));
	mflash_queue_del(&q, &n[0]);
	mflash_queue_return(&q, &n[0]);
	KUNIT_EXPECT_PTR_EQ(test, mflash_queue_pick(&q, &sched, 0, 0), &n[0]);
	KUNIT_EXPECT_EQ(test, q.count, 2);
}

static struct kunit_case sched_cases[] = {
	KUNIT_CASE(sched_rank_test),
	KUNIT_CASE(sched_pick_test),
	KUNIT_CASE(sched_starvation_test),
	KUNIT_CASE(sched_ages_test),
	KUNIT_CASE(sched_suspend_test),
	KUNIT_CASE(sched_burst_test),
	KUNIT_CASE(sched_queue_test),
	{}
};

static struct kunit_suite sched_suite = {
	.name = "mflash_sched",
	.test_cases = sched_cases,
};

kunit_test_suite(sched_suite);
