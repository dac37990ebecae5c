/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of the pure policies of policy.h, included by memory.c. */
#include <kunit/test.h>
#include <linux/fasttrack_pool.h>
#include <linux/ktime.h>

#define FT_TEST_NOW	(100ULL * NSEC_PER_SEC)
#define FT_TEST_WINDOW	(20ULL * NSEC_PER_MSEC)

static void ft_test_works(struct kunit *test)
{
	struct ft_activity activity = {};

	/* Nothing yet: the time since boot is no idle window. */
	activity.window = FT_TEST_WINDOW;
	KUNIT_EXPECT_FALSE(test, ft_works(&activity, 1));
	ft_waiters_begin(&activity.asleep, 1);
	KUNIT_EXPECT_TRUE(test, ft_works(&activity, 1));
	ft_waiters_end(&activity.asleep, 1);

	/* Asleep for ever, as for a key. */
	activity.last = FT_TEST_NOW;
	ft_waiters_begin(&activity.asleep, FT_TEST_NOW);
	KUNIT_EXPECT_TRUE(test, ft_works(&activity,
					 FT_TEST_NOW + FT_ASLEEP_LIMIT - 1));
	KUNIT_EXPECT_FALSE(test, ft_works(&activity,
					  FT_TEST_NOW + FT_ASLEEP_LIMIT));

	activity = (struct ft_activity){
		.seen = true, .last = FT_TEST_NOW, .window = FT_TEST_WINDOW,
	};
	KUNIT_EXPECT_TRUE(test, ft_works(&activity,
					 FT_TEST_NOW + FT_TEST_WINDOW - 1));
	KUNIT_EXPECT_FALSE(test, ft_works(&activity,
					  FT_TEST_NOW + FT_TEST_WINDOW));
	activity.window = 0;
	KUNIT_EXPECT_FALSE(test, ft_works(&activity, FT_TEST_NOW));
	atomic_set(&activity.in_flight, 1);
	KUNIT_EXPECT_TRUE(test, ft_works(&activity, FT_TEST_NOW));
}

/* One that is never woken counts no longer, whoever comes after it. */
static void ft_test_forgotten(struct kunit *test)
{
	struct ft_activity activity = { .window = FT_TEST_WINDOW };
	struct ft_waiters *asleep = &activity.asleep;
	u64 now = FT_TEST_NOW;

	ft_waiters_begin(asleep, now);
	activity.seen = true;
	for (int i = 0; i < 20; i++) {
		now += NSEC_PER_SEC;
		KUNIT_EXPECT_EQ(test, ft_waiters_count(asleep, now), i < 9);
		ft_waiters_begin(asleep, now);
		KUNIT_EXPECT_GE(test, ft_waiters_count(asleep, now), 1);
		KUNIT_EXPECT_TRUE(test, ft_waiters_end(asleep, now));
		activity.last = now;
	}
	KUNIT_EXPECT_FALSE(test, ft_works(&activity, now + FT_TEST_WINDOW));
	/* It wakes; nobody else can. */
	KUNIT_EXPECT_TRUE(test, ft_waiters_end(asleep, now));
	KUNIT_EXPECT_FALSE(test, ft_waiters_end(asleep, now));
}

/* One more of many, or one less, changes a count alone; the first and the last do not. */
static void ft_test_goes_on(struct kunit *test)
{
	struct ft_activity activity = { .last = FT_TEST_NOW };
	struct ft_waiters *asleep = &activity.asleep;
	u64 now = FT_TEST_NOW;

	asleep->period = now;
	KUNIT_EXPECT_FALSE(test, ft_activity_goes_on(&activity, 1, 0, now));
	KUNIT_EXPECT_FALSE(test, ft_activity_goes_on(&activity, 0, 1, now));
	KUNIT_EXPECT_FALSE(test, ft_busy(&activity, now));
	ft_waiters_begin(asleep, now);
	KUNIT_EXPECT_TRUE(test, ft_activity_goes_on(&activity, 1, 0, now));
	KUNIT_EXPECT_EQ(test, ft_waiters_count(asleep, now), 2);
	KUNIT_EXPECT_FALSE(test, ft_activity_goes_on(&activity, 0, -1, now));
	KUNIT_EXPECT_TRUE(test, ft_activity_goes_on(&activity, -1, 0, now));
	KUNIT_EXPECT_FALSE(test, ft_activity_goes_on(&activity, -1, 0, now));
	KUNIT_EXPECT_EQ(test, ft_waiters_count(asleep, now), 1);
	/* Whoever works for long is seen to now and then, and periods end. */
	now += FT_ACTIVITY_STALE;
	KUNIT_EXPECT_FALSE(test, ft_activity_goes_on(&activity, 1, 0, now));
	now = FT_TEST_NOW + FT_ASLEEP_LIMIT;
	activity.last = now;
	KUNIT_EXPECT_FALSE(test, ft_activity_goes_on(&activity, 1, 0, now));
}

static void ft_test_bounds(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, ft_eject_allows(2 * NSEC_PER_SEC, NSEC_PER_SEC));
	KUNIT_EXPECT_FALSE(test, ft_eject_allows(2 * NSEC_PER_SEC - 1,
						 NSEC_PER_SEC));
	/* Who was frozen for an hour has paused for as long as it was to. */
	KUNIT_EXPECT_EQ(test, ft_pause_counts(3600 * NSEC_PER_SEC, NSEC_PER_SEC),
			NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, ft_pause_counts(1, NSEC_PER_SEC), 1);
	KUNIT_EXPECT_FALSE(test, ft_lift_in_vain(0, false, FT_TEST_NOW));
	KUNIT_EXPECT_FALSE(test, ft_lift_in_vain(FT_TEST_NOW, false, FT_TEST_NOW));
	KUNIT_EXPECT_TRUE(test, ft_lift_in_vain(FT_TEST_NOW, false,
						FT_TEST_NOW + FT_LIFT_LIMIT));
	/* A whole file system takes longer. */
	KUNIT_EXPECT_FALSE(test, ft_lift_in_vain(FT_TEST_NOW, true,
						 FT_TEST_NOW + FT_LIFT_LIMIT));
	KUNIT_EXPECT_TRUE(test, ft_lift_in_vain(FT_TEST_NOW, true, FT_TEST_NOW +
						FT_LIFT_SYNC_LIMIT));
	/* The place was empty, or its task came long ago. */
	KUNIT_EXPECT_FALSE(test, ft_vain_too_many(0, FT_TEST_NOW));
	KUNIT_EXPECT_FALSE(test, ft_vain_too_many(FT_TEST_NOW, FT_TEST_NOW +
						  FT_VAIN_REST));
	KUNIT_EXPECT_TRUE(test, ft_vain_too_many(FT_TEST_NOW, FT_TEST_NOW +
						 FT_VAIN_REST - 1));
}

/* Who works for @work and then not for @idle ns: what its windows take of that. */
static u64 ft_test_taken(u64 work, u64 idle)
{
	struct ft_activity activity = {};
	u64 now = FT_TEST_NOW, taken = 0;

	for (int i = 0; i < 1000; i++) {
		ft_credit_idle(&activity, FT_TEST_WINDOW, now);
		activity.seen = true;
		now += work;
		activity.last = now;
		ft_credit_worked(&activity, FT_TEST_WINDOW, now);
		/* The first ones use up what was saved. */
		if (i >= 500)
			taken += min(idle, activity.window);
		now += idle;
	}
	return taken / 500;
}

static void ft_test_idle_window(struct kunit *test)
{
	/* Gaps that are short for its work are all its own. */
	KUNIT_EXPECT_EQ(test, ft_test_taken(NSEC_PER_MSEC, NSEC_PER_MSEC / 4),
			NSEC_PER_MSEC / 4);
	/* A tenth of the device: less than another tenth. */
	KUNIT_EXPECT_LT(test, ft_test_taken(NSEC_PER_MSEC, 9 * NSEC_PER_MSEC),
			NSEC_PER_MSEC);
	KUNIT_EXPECT_GT(test, ft_test_taken(NSEC_PER_MSEC, 9 * NSEC_PER_MSEC),
			NSEC_PER_MSEC / 2);
	/* Rarely: a window of full length, which takes nothing that is felt. */
	KUNIT_EXPECT_EQ(test, ft_test_taken(NSEC_PER_MSEC, NSEC_PER_SEC),
			FT_TEST_WINDOW);
}

static void ft_test_pause(struct kunit *test)
{
	const struct ft_activity always = {
		.in_flight = ATOMIC_INIT(1), .seen = true, .last = FT_TEST_NOW,
	};
	const struct ft_activity never = {};
	const u64 bound = NSEC_PER_SEC;
	u64 sleep = 0;

	KUNIT_EXPECT_EQ(test, ft_pause_next(&always, false, bound, 0,
					    FT_TEST_NOW, &sleep), FT_PAUSE_SLEEP);
	KUNIT_EXPECT_EQ(test, sleep, bound);
	KUNIT_EXPECT_EQ(test, ft_pause_next(&always, false, bound, bound - 1,
					    FT_TEST_NOW, &sleep), FT_PAUSE_SLEEP);
	KUNIT_EXPECT_EQ(test, sleep, 1);
	KUNIT_EXPECT_EQ(test, ft_pause_next(&always, false, bound, bound,
					    FT_TEST_NOW, &sleep), FT_PAUSE_PAID);
	KUNIT_EXPECT_EQ(test, ft_pause_next(&never, false, bound, 0,
					    FT_TEST_NOW, &sleep), FT_PAUSE_FREE);
	KUNIT_EXPECT_EQ(test, ft_pause_next(&never, true, bound, 0,
					    FT_TEST_NOW, &sleep), FT_PAUSE_SLEEP);
	KUNIT_EXPECT_EQ(test, ft_pause_next(&never, true, bound, bound,
					    FT_TEST_NOW, &sleep), FT_PAUSE_PAID);
}

/* A call of many segments owes many pauses; a signal takes none of them back. */
static void ft_test_debt(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ft_debt(FT_PAUSE_PAID, 640, 128), 512);
	KUNIT_EXPECT_EQ(test, ft_debt(FT_PAUSE_PAID, 100, 128), 0);
	KUNIT_EXPECT_EQ(test, ft_debt(FT_PAUSE_SLEEP, 640, 128), 640);
	KUNIT_EXPECT_EQ(test, ft_debt(FT_PAUSE_FREE, 640, 128), 0);
}

static void ft_test_outweighed(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, ft_outweighed(250, 500));
	KUNIT_EXPECT_TRUE(test, ft_outweighed(251, 500));
	/* Who has no page protects none. */
	KUNIT_EXPECT_TRUE(test, ft_outweighed(1, 0));
	KUNIT_EXPECT_FALSE(test, ft_outweighed(0, 0));
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
	/* Numbers whose product has more than 32 bits. */
	KUNIT_EXPECT_EQ(test, ft_zone_reserve(1UL << 16, 1UL << 21, 1UL << 22),
			1UL << 15);
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
	/* Who is not exempt, and would be throttled, writes. */
	KUNIT_EXPECT_TRUE(test, ft_dirty_writes(500, thresh, 0, 500, thresh));
	KUNIT_EXPECT_TRUE(test, ft_dirty_writes(500, 700, 51, 500, thresh));
	KUNIT_EXPECT_FALSE(test, ft_dirty_writes(10, thresh, 0, 500, thresh));
	KUNIT_EXPECT_FALSE(test, ft_dirty_writes(500, 700, 50, 500, thresh));
	/* Nearly all are its own. */
	KUNIT_EXPECT_FALSE(test, ft_dirty_writes(900, thresh, 500, 500, thresh));
}

static void ft_test_commit(struct kunit *test)
{
	/* While the foreground waits for commits they are small. */
	KUNIT_EXPECT_FALSE(test, ft_commit_due(FT_COMMIT_BLOCKS - 1, true));
	KUNIT_EXPECT_TRUE(test, ft_commit_due(FT_COMMIT_BLOCKS, true));
	/* Its first one is bounded, too. */
	KUNIT_EXPECT_FALSE(test, ft_commit_due(FT_COMMIT_BLOCKS, false));
	KUNIT_EXPECT_TRUE(test, ft_commit_due(FT_COMMIT_BLOCKS_FIRST, false));
}

static void ft_test_waste(struct kunit *test)
{
	/* Of use, or waited for: without a rest. */
	KUNIT_EXPECT_EQ(test, ft_waste_rest(NSEC_PER_MSEC, 0, 64, false), 0);
	KUNIT_EXPECT_EQ(test, ft_waste_rest(NSEC_PER_MSEC, 32, 64, true), 0);
	/* A twentieth of the time for what is of use, also of a very short one. */
	KUNIT_EXPECT_EQ(test, ft_waste_rest(NSEC_PER_MSEC, 32, 64, false), 19 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, ft_waste_rest(3, 16, 64, false), 19);
	/* What is of no use at all is tried now and then, and nothing overflows. */
	KUNIT_EXPECT_EQ(test, ft_waste_rest(NSEC_PER_MSEC, 2048, 2048, false), FT_WASTE_REST_MAX);
	KUNIT_EXPECT_EQ(test, ft_waste_rest(60ULL * NSEC_PER_SEC, 3000, 2048, false),
			FT_WASTE_REST_MAX);
}

static void ft_test_shared_part(struct kunit *test)
{
	/* Some is left to the foreground, most to the others. */
	for (int most = FT_SHARED_KEPT_PART; most < 1000; most++) {
		KUNIT_EXPECT_EQ(test, ft_shared_part(most, false), most);
		KUNIT_EXPECT_LT(test, ft_shared_part(most, true), most);
		KUNIT_EXPECT_GE(test, ft_shared_part(most, true), most / 2);
	}
}

static void ft_test_sync(struct kunit *test)
{
	const unsigned long fast = 1000000, slow = 1000;
	const unsigned long bound = ft_sync_pages(fast);

	/* What is written in FT_SYNC_MS, but no less than keeps a queue busy. */
	KUNIT_EXPECT_EQ(test, bound, fast * FT_SYNC_MS / 1000);
	KUNIT_EXPECT_EQ(test, ft_sync_pages(slow), FT_SYNC_PAGES_MIN);
	KUNIT_EXPECT_EQ(test, ft_sync_pages(0), FT_SYNC_PAGES_MIN);
	/* It is written before anybody pauses, and who pauses goes on in time. */
	KUNIT_EXPECT_FALSE(test, ft_sync_writes(0, bound));
	KUNIT_EXPECT_TRUE(test, ft_sync_writes(bound / 2, bound));
	KUNIT_EXPECT_FALSE(test, ft_sync_over(bound / 2, bound / 2, bound));
	KUNIT_EXPECT_TRUE(test, ft_sync_over(bound, 1, bound));
	KUNIT_EXPECT_TRUE(test, ft_sync_over(0, bound + 1, bound));
	KUNIT_EXPECT_TRUE(test, ft_sync_under(bound / 4, bound / 4, bound));
	KUNIT_EXPECT_FALSE(test, ft_sync_under(bound / 2, 1, bound));
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

/* Background takes from the foreground's reserve only when nothing else is left. */
static void ft_test_alloc_held(struct kunit *test)
{
	const gfp_t gfp = GFP_KERNEL;

	KUNIT_EXPECT_TRUE(test, ft_alloc_held(0, gfp));
	KUNIT_EXPECT_TRUE(test, ft_alloc_held(ALLOC_MIN_RESERVE,
					      gfp | __GFP_HIGH));
	KUNIT_EXPECT_FALSE(test, ft_alloc_held(ALLOC_MIN_RESERVE,
					       gfp | __GFP_NOFAIL));
	KUNIT_EXPECT_TRUE(test, ft_alloc_held(0, gfp | __GFP_NOFAIL));
	KUNIT_EXPECT_FALSE(test, ft_alloc_held(ALLOC_MIN_RESERVE |
					       ALLOC_NON_BLOCK, GFP_ATOMIC));
	KUNIT_EXPECT_FALSE(test, ft_alloc_held(ALLOC_FASTTRACK_SPENT, gfp));
	KUNIT_EXPECT_FALSE(test, ft_alloc_held(ALLOC_NO_WATERMARKS, gfp));
	KUNIT_EXPECT_FALSE(test, ft_alloc_held(ALLOC_OOM, gfp));
}

/* A backlog ends when it is written; or if a file system has failed, by itself. */
static void ft_test_backlog(struct kunit *test)
{
	unsigned long now = INITIAL_JIFFIES;

	KUNIT_EXPECT_FALSE(test, ft_lately(0, now, FT_BACKLOG_LAPSES));
	KUNIT_EXPECT_TRUE(test, ft_lately(now, now, FT_BACKLOG_LAPSES));
	KUNIT_EXPECT_TRUE(test, ft_lately(now, now + FT_BACKLOG_LAPSES - 1, FT_BACKLOG_LAPSES));
	KUNIT_EXPECT_FALSE(test, ft_lately(now, now + FT_BACKLOG_LAPSES, FT_BACKLOG_LAPSES));
}

/* Background has half of a pool, and never waits for what it has not got. */
static void ft_test_pool(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, fasttrack_pool_has_room(0, 256, 100));
	KUNIT_EXPECT_FALSE(test, fasttrack_pool_has_room(1, 256, 100));
	KUNIT_EXPECT_TRUE(test, fasttrack_pool_has_room(256, 256, 1024));
	KUNIT_EXPECT_FALSE(test, fasttrack_pool_has_room(257, 256, 1024));
}

static struct kunit_case ft_policy_test_cases[] = {
	KUNIT_CASE(ft_test_works),
	KUNIT_CASE(ft_test_forgotten),
	KUNIT_CASE(ft_test_goes_on),
	KUNIT_CASE(ft_test_bounds),
	KUNIT_CASE(ft_test_idle_window),
	KUNIT_CASE(ft_test_pause),
	KUNIT_CASE(ft_test_debt),
	KUNIT_CASE(ft_test_outweighed),
	KUNIT_CASE(ft_test_reserve),
	KUNIT_CASE(ft_test_alloc_held),
	KUNIT_CASE(ft_test_dirty),
	KUNIT_CASE(ft_test_commit),
	KUNIT_CASE(ft_test_waste),
	KUNIT_CASE(ft_test_shared_part),
	KUNIT_CASE(ft_test_sync),
	KUNIT_CASE(ft_test_protects),
	KUNIT_CASE(ft_test_dirty_first),
	KUNIT_CASE(ft_test_backlog),
	KUNIT_CASE(ft_test_pool),
	{}
};

static struct kunit_suite ft_policy_test_suite = {
	.name = "fasttrack_page_cache",
	.test_cases = ft_policy_test_cases,
};

kunit_test_suite(ft_policy_test_suite);
