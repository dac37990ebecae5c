/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash_cache: acknowledgment, durability, order of write-out, back-pressure. */
#include "model-kunit.h"

#define CACHE_WAIT_MAX	(20 * NSEC_PER_MSEC)

static void cache_ack_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 1);

	KUNIT_EXPECT_LT(test, kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, 5, 1, 7),
			d->phone.t_prog_ns);
	KUNIT_EXPECT_EQ(test, d->m.ftl.map[5], 0);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 5), 7);
	KUNIT_EXPECT_GE(test, kunit_flush(test, d), d->phone.t_prog_ns);
	KUNIT_EXPECT_NE(test, d->m.ftl.map[5], 0);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 5), 7);
	KUNIT_EXPECT_LT(test, kunit_flush(test, d), d->phone.t_prog_ns);
}

static void cache_fua_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 1);

	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, 1, 1, 6);
	d->cmds[0].fua = true;
	KUNIT_EXPECT_GE(test, kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, 5, 2, 7),
			d->phone.t_prog_ns);
	KUNIT_EXPECT_NE(test, d->m.ftl.map[5], 0);
	KUNIT_EXPECT_NE(test, d->m.ftl.map[6], 0);
}

static void cache_merge_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 1);

	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_BACKGROUND, 5, 1, 7);
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_FOREGROUND, 5, 1, 8);
	KUNIT_EXPECT_EQ(test, d->m.stats[MFLASH_STAT_cache_merged], 1);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 5), 8);
	kunit_flush(test, d);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 5), 8);
	KUNIT_EXPECT_EQ(test, d->m.cache.nr_free, d->m.cache.nr);
}

static void cache_idle_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 1);

	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, 5, 1, 7);
	mflash_advance(&d->m, d->m.now + d->m.idle_ns / 2);
	KUNIT_EXPECT_EQ(test, d->m.ftl.map[5], 0);
	mflash_advance(&d->m, d->m.now + d->m.idle_ns + 2 * d->phone.t_prog_ns);
	KUNIT_EXPECT_NE(test, d->m.ftl.map[5], 0);
	KUNIT_EXPECT_EQ(test, mflash_next_event(&d->m), U64_MAX);
}

static void cache_pressure_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 1);
	u32 pages = 4 * d->m.cache.nr;
	struct mflash_cmd *cmd[2];
	u32 lpn;

	for (lpn = 0; lpn < pages; lpn += 32) {
		cmd[0] = kunit_submit(d, 0, MFLASH_WRITE, FASTTRACK_NEUTRAL, lpn, 16, lpn);
		cmd[1] = kunit_submit(d, 1, MFLASH_WRITE, FASTTRACK_NEUTRAL, lpn + 16, 16, lpn);
		kunit_wait(test, d, cmd[0]);
		kunit_wait(test, d, cmd[1]);
	}
	KUNIT_EXPECT_GT(test, d->m.stats[MFLASH_STAT_cache_full], 0);
	kunit_flush(test, d);
	for (lpn = 0; lpn < pages; lpn++)
		KUNIT_EXPECT_EQ(test, kunit_word(d, lpn), lpn / 32 * 32);
	KUNIT_EXPECT_EQ(test, d->m.cache.nr_free, d->m.cache.nr);
}

/* the foreground's flush waits for all, but its own pages go first, unless others are overdue */
static void cache_order(struct kunit *test, enum mflash_policy policy, u64 wait_max_ns,
			bool foreground_first)
{
	struct mflash_phone phone = kunit_phone;
	struct mflash_cmd *flush;
	struct kunit_dev *d;

	phone.dies = 1;
	d = kunit_dev(test, &phone, NULL, 1);
	d->m.sched.policy = policy;
	d->m.sched.wait_max_ns = wait_max_ns;
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_BACKGROUND, 0, 12, 1);
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_FOREGROUND, 100, 4, 2);
	flush = kunit_submit(d, 0, MFLASH_FLUSH, FASTTRACK_FOREGROUND, 0, 0, 0);
	while (!d->m.ftl.map[100] && !d->m.ftl.map[8])
		mflash_advance(&d->m, mflash_next_event(&d->m));
	KUNIT_EXPECT_EQ(test, !!d->m.ftl.map[100], foreground_first);
	KUNIT_EXPECT_FALSE(test, kunit_is_done(d, flush));
	kunit_wait(test, d, flush);
	KUNIT_EXPECT_NE(test, d->m.ftl.map[100], 0);
	KUNIT_EXPECT_NE(test, d->m.ftl.map[11], 0);
}

static void cache_order_test(struct kunit *test)
{
	cache_order(test, MFLASH_FIFO, NSEC_PER_SEC, false);
	cache_order(test, MFLASH_READ_FIRST, NSEC_PER_SEC, false);
	cache_order(test, MFLASH_FOREGROUND, NSEC_PER_SEC, true);
	cache_order(test, MFLASH_FOREGROUND, 1, false);
}

/* most pages of one large background write that wait in the cache */
static u32 cache_background_most(struct kunit *test, enum mflash_policy policy)
{
	struct mflash_phone phone = kunit_phone;
	struct mflash_cmd *write;
	struct kunit_dev *d;
	u32 most = 0;

	phone.cache_kib = 256;
	d = kunit_dev(test, &phone, NULL, 1);
	d->m.sched.policy = policy;
	write = kunit_submit(d, 1, MFLASH_WRITE, FASTTRACK_BACKGROUND, 0, 64, 1);
	while (!kunit_is_done(d, write)) {
		most = max(most, d->m.cache.nr_background);
		mflash_advance(&d->m, mflash_next_event(&d->m));
	}
	kunit_wait(test, d, write);
	kunit_flush(test, d);
	KUNIT_EXPECT_EQ(test, d->m.cache.nr_background, 0);
	return most;
}

static void cache_background_part_test(struct kunit *test)
{
	u32 most = cache_background_most(test, MFLASH_FOREGROUND);

	KUNIT_EXPECT_LE(test, most, UNITS_WAITING * kunit_phone.page_slots);
	KUNIT_EXPECT_GT(test, cache_background_most(test, MFLASH_READ_FIRST), most);
}

#define STREAMS	3

static struct mflash_cmd *cache_stream(struct kunit_dev *d, u8 class, int i)
{
	return kunit_submit(d, i, MFLASH_WRITE, class, 64 * (i + 1), 64, 1);
}

/* time of a large background write while @class writes without end */
static u64 cache_beside_streams(struct kunit *test, u8 class)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 1);
	struct mflash_cmd *stream[STREAMS], *write;
	u64 begin, took;
	int i;

	d->m.sched.policy = MFLASH_FOREGROUND;
	d->m.sched.wait_max_ns = CACHE_WAIT_MAX;
	for (i = 0; i < STREAMS; i++)
		stream[i] = cache_stream(d, class, i);
	begin = d->m.now;
	write = kunit_submit(d, STREAMS, MFLASH_WRITE, FASTTRACK_BACKGROUND, 0, 64, 2);
	while (!kunit_is_done(d, write) && d->m.now < begin + NSEC_PER_SEC) {
		mflash_advance(&d->m, mflash_next_event(&d->m));
		for (i = 0; i < STREAMS; i++) {
			if (!kunit_is_done(d, stream[i]))
				continue;
			list_del_init(&stream[i]->done);
			stream[i] = cache_stream(d, class, i);
		}
	}
	took = d->m.now - begin;
	while (mflash_next_event(&d->m) != U64_MAX)
		mflash_advance(&d->m, mflash_next_event(&d->m));
	KUNIT_EXPECT_TRUE(test, kunit_is_done(d, write));
	return took;
}

/* it has its turns, and with what is neutral it goes in the order in which they came */
static void cache_starve_test(struct kunit *test)
{
	KUNIT_EXPECT_LT(test, cache_beside_streams(test, FASTTRACK_NEUTRAL),
			4 * CACHE_WAIT_MAX);
	KUNIT_EXPECT_LT(test, cache_beside_streams(test, FASTTRACK_FOREGROUND),
			10 * CACHE_WAIT_MAX);
}

/* a flush of the foreground's waits for overdue pages that came before it, not for others */
static void cache_overdue_test(struct kunit *test)
{
	struct mflash_phone phone = kunit_phone;
	struct mflash_cmd *large[3], *flush;
	struct kunit_dev *d;
	u64 begin;
	int i;

	phone.dies = 1;
	d = kunit_dev(test, &phone, NULL, 1);
	d->m.sched.policy = MFLASH_FOREGROUND;
	d->m.sched.wait_max_ns = CACHE_WAIT_MAX;
	for (i = 0; i < 3; i++)
		large[i] = kunit_submit(d, 1 + i, MFLASH_WRITE, FASTTRACK_BACKGROUND, 64 * i,
					64, 1);
	kunit_wait(test, d, large[0]);
	while (d->m.now <= CACHE_WAIT_MAX + phone.t_prog_ns)
		mflash_advance(&d->m, mflash_next_event(&d->m));
	begin = d->m.now;
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_FOREGROUND, 300, 1, 2);
	flush = kunit_submit(d, 0, MFLASH_FLUSH, FASTTRACK_FOREGROUND, 0, 0, 0);
	kunit_wait(test, d, flush);
	KUNIT_EXPECT_LT(test, d->m.now - begin, 10 * phone.t_prog_ns);
	KUNIT_EXPECT_LT(test, large[2]->sent, large[2]->pages / 2);
	kunit_wait(test, d, large[1]);
	kunit_wait(test, d, large[2]);
	kunit_check_books(test, d);
}

/* time of the foreground's write and flush while background's large write is in a die */
static u64 cache_flush_beside(struct kunit *test, struct kunit_dev *d, bool *done)
{
	struct mflash_cmd *large, *flush;
	u64 begin, took;

	large = kunit_submit(d, 1, MFLASH_WRITE, FASTTRACK_BACKGROUND, 0,
			     mflash_unit_slots(&d->m, false), 1);
	while (large->sent < large->pages || d->m.cache.nr_dirty)
		mflash_advance(&d->m, mflash_next_event(&d->m));
	begin = d->m.now;
	*done = kunit_is_done(d, large);
	if (*done)
		kunit_wait(test, d, large);
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_FOREGROUND, 100, 1, 2);
	flush = kunit_submit(d, 2, MFLASH_FLUSH, FASTTRACK_FOREGROUND, 0, 0, 0);
	kunit_wait(test, d, flush);
	took = d->m.now - begin;
	if (!*done)
		kunit_wait(test, d, large);
	return took;
}

/* no flush of the foreground's waits for what background has not been told is written */
static void cache_through_test(struct kunit *test)
{
	struct mflash_phone phone = kunit_phone;
	struct kunit_dev *d;
	u64 covered;
	bool done;

	/* what is under way in one die takes longer than all that the foreground needs */
	phone.bits = 3;
	phone.slc_mib = 1;
	phone.t_prog_ns = 10 * phone.t_prog_slc_ns;
	d = kunit_dev(test, &phone, NULL, 1);
	d->m.sched.policy = MFLASH_FOREGROUND;
	d->m.sched.slc_reserve = 100;
	covered = cache_flush_beside(test, d, &done);
	KUNIT_EXPECT_GT(test, covered, phone.t_prog_ns / 2);
	KUNIT_EXPECT_TRUE(test, done);
	KUNIT_EXPECT_LT(test, cache_flush_beside(test, d, &done), covered / 2);
	KUNIT_EXPECT_FALSE(test, done);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 0), 1);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 100), 2);
	KUNIT_EXPECT_EQ(test, d->m.cache.nr_through, 0);
	KUNIT_EXPECT_EQ(test, d->m.cache.nr_free, d->m.cache.nr);
	kunit_check_books(test, d);
}

/* what fills block after block of many dies ends, though one die is kept free */
static void cache_through_blocks_test(struct kunit *test)
{
	struct mflash_phone phone = kunit_phone;
	struct mflash_cmd *cmd[2] = {};
	struct kunit_dev *d;
	u32 pages, i;

	phone.dies = 8;
	phone.rows = 2;
	d = kunit_dev(test, &phone, NULL, 8);
	d->m.sched.policy = MFLASH_FOREGROUND;
	pages = mflash_unit_slots(&d->m, false);
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_FOREGROUND, 0, 1, 1);
	kunit_wait(test, d, kunit_submit(d, 0, MFLASH_FLUSH, FASTTRACK_FOREGROUND, 0, 0, 0));
	for (i = 0; i < 60; i++) {
		if (cmd[i % 2])
			kunit_wait(test, d, cmd[i % 2]);
		cmd[i % 2] = kunit_submit(d, 1 + i % 2, MFLASH_WRITE, FASTTRACK_BACKGROUND,
					  pages * (i % 16), pages, i);
	}
	kunit_wait(test, d, cmd[0]);
	kunit_wait(test, d, cmd[1]);
	KUNIT_EXPECT_EQ(test, d->m.cache.nr_free, d->m.cache.nr);
	kunit_check_books(test, d);
}

/* whose data another command has replaced: flushes cover these, and both are told */
static void cache_through_merge_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 1);
	struct mflash_cmd *large;

	d->m.sched.policy = MFLASH_FOREGROUND;
	kunit_do(test, d, MFLASH_FLUSH, FASTTRACK_FOREGROUND, 0, 0, 0);
	large = kunit_submit(d, 1, MFLASH_WRITE, FASTTRACK_BACKGROUND, 0,
			     5 * kunit_phone.page_slots, 1);
	while (!d->m.cache.nr_through)
		mflash_advance(&d->m, mflash_next_event(&d->m));
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_FOREGROUND, 0, 1, 2);
	kunit_do(test, d, MFLASH_FLUSH, FASTTRACK_FOREGROUND, 0, 0, 0);
	KUNIT_EXPECT_NE(test, d->m.ftl.map[0], 0);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 0), 2);
	kunit_wait(test, d, large);
	kunit_flush(test, d);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 0), 2);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 1), 1);
	KUNIT_EXPECT_EQ(test, d->m.cache.fua_dirty, 0);
	KUNIT_EXPECT_EQ(test, d->m.cache.nr_through, 0);
	KUNIT_EXPECT_EQ(test, d->m.cache.nr_free, d->m.cache.nr);
}

/* a version whose program ends after a newer one's is never read again */
static void cache_overtaken_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 1);
	struct mflash_entry *older;

	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_BACKGROUND, 5, 1, 7);
	KUNIT_ASSERT_EQ(test, d->m.cache.nr_dirty, 1);
	older = entry_take(&d->m);
	d->cmds[0].fua = true;
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_FOREGROUND, 5, 1, 8);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 5), 8);
	entry_end(&d->m, older);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 5), 8);
	KUNIT_EXPECT_EQ(test, d->m.cache.nr_free, d->m.cache.nr);
}

static void cache_trim_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 1);

	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, 0, 7, 9);
	kunit_do(test, d, MFLASH_UNMAP, FASTTRACK_NEUTRAL, 0, 6, 0);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 0), 0);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 5), 0);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 6), 9);
	kunit_flush(test, d);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 0), 0);
	KUNIT_EXPECT_EQ(test, kunit_word(d, 6), 9);
	KUNIT_EXPECT_EQ(test, d->m.cache.nr_free, d->m.cache.nr);
	kunit_check_books(test, d);
}

static struct kunit_case cache_cases[] = {
	KUNIT_CASE(cache_ack_test),
	KUNIT_CASE(cache_fua_test),
	KUNIT_CASE(cache_merge_test),
	KUNIT_CASE(cache_idle_test),
	KUNIT_CASE(cache_pressure_test),
	KUNIT_CASE(cache_order_test),
	KUNIT_CASE(cache_background_part_test),
	KUNIT_CASE(cache_starve_test),
	KUNIT_CASE(cache_overdue_test),
	KUNIT_CASE(cache_through_test),
	KUNIT_CASE(cache_through_blocks_test),
	KUNIT_CASE(cache_through_merge_test),
	KUNIT_CASE(cache_overtaken_test),
	KUNIT_CASE(cache_trim_test),
	{}
};

static struct kunit_suite cache_suite = {
	.name = "mflash_cache",
	.test_cases = cache_cases,
};

kunit_test_suite(cache_suite);
