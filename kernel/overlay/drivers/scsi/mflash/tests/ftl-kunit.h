/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash_ftl: mapping, garbage collection, SLC buffer, recovery. */
#include "../power.h"
#include "model-kunit.h"

#define PAGES	(KUNIT_MIB << (20 - MFLASH_PAGE_SHIFT))

/* content says whose it is and when it was written */
static u64 word(u32 lpn, u32 version)
{
	return (u64)lpn << 32 | version;
}

static void fill(struct kunit *test, struct kunit_dev *d, u32 *version)
{
	u32 lpn;

	for (lpn = 0; lpn < PAGES; lpn++) {
		version[lpn] = 1;
		kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, lpn, 1, word(lpn, 1));
	}
}

static void overwrite(struct kunit *test, struct kunit_dev *d, u32 *version, u32 times)
{
	u32 i, lpn;

	for (i = 0; i < times; i++) {
		lpn = mflash_random(&d->m) % PAGES;
		kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, lpn, 1,
			 word(lpn, ++version[lpn]));
	}
}

static void check(struct kunit *test, struct kunit_dev *d, u32 *version)
{
	u32 lpn;

	for (lpn = 0; lpn < PAGES; lpn++)
		KUNIT_EXPECT_EQ(test, kunit_word(d, lpn),
				version[lpn] ? word(lpn, version[lpn]) : 0);
	kunit_check_books(test, d);
}

static struct kunit_dev *reboot(struct kunit *test, struct kunit_dev *d)
{
	void *durable = d->m.store.durable;

	d->m.store.durable = NULL;
	return kunit_dev(test, &d->phone, durable, 1);
}

static void ftl_gc_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 3);
	u32 *version = kunit_kcalloc(test, PAGES, sizeof(*version), GFP_KERNEL);

	fill(test, d, version);
	overwrite(test, d, version, 4 * PAGES);
	KUNIT_EXPECT_GT(test, d->m.stats[MFLASH_STAT_gc_urgent], 0);
	KUNIT_EXPECT_GT(test, d->m.stats[MFLASH_STAT_gc_copies], 0);
	KUNIT_EXPECT_GT(test, d->m.ftl.nr_free[0], 0);
	check(test, d, version);
	kunit_flush(test, d);
	check(test, reboot(test, d), version);
}

static void ftl_slc_test(struct kunit *test)
{
	struct mflash_phone phone = kunit_phone;
	u32 *version = kunit_kcalloc(test, PAGES, sizeof(*version), GFP_KERNEL);
	struct kunit_dev *d;

	phone.bits = 3;
	phone.slc_mib = 1;
	phone.t_prog_slc_ns = 200000;
	d = kunit_dev(test, &phone, NULL, 3);
	fill(test, d, version);
	/* the buffer took what it could, the rest went past it */
	KUNIT_EXPECT_GE(test, d->m.stats[MFLASH_STAT_slc_pages], PAGES / KUNIT_MIB);
	KUNIT_EXPECT_GT(test, d->m.stats[MFLASH_STAT_direct_pages], 0);
	mflash_advance(&d->m, d->m.now + 100 * d->m.idle_ns);
	KUNIT_EXPECT_GT(test, d->m.stats[MFLASH_STAT_slc_migrations], 0);
	KUNIT_EXPECT_GE(test, d->m.ftl.nr_free[1] + 1, d->m.ftl.slc_blocks);
	check(test, d, version);
	overwrite(test, d, version, PAGES);
	kunit_flush(test, d);
	check(test, reboot(test, d), version);
}

/* SLC blocks that background leaves free when it writes more than the buffer takes */
static u32 ftl_slc_left(struct kunit *test, enum mflash_policy policy, u8 class)
{
	struct mflash_phone phone = kunit_phone;
	struct kunit_dev *d;

	phone.bits = 2;
	phone.slc_mib = 1;
	phone.t_prog_slc_ns = 200000;
	d = kunit_dev(test, &phone, NULL, 1);
	d->m.sched.policy = policy;
	for (u32 i = 0; i < 2 * PAGES / KUNIT_MIB; i += 16)
		kunit_do(test, d, MFLASH_WRITE, class, i, 16, i);
	return d->m.ftl.nr_free[1];
}

static void ftl_slc_reserve_test(struct kunit *test)
{
	u32 kept = ftl_slc_left(test, MFLASH_FOREGROUND, FASTTRACK_BACKGROUND);

	KUNIT_EXPECT_GT(test, kept, 0);
	KUNIT_EXPECT_EQ(test, ftl_slc_left(test, MFLASH_FOREGROUND, FASTTRACK_FOREGROUND), 0);
	KUNIT_EXPECT_EQ(test, ftl_slc_left(test, MFLASH_FOREGROUND, FASTTRACK_NEUTRAL), 0);
	KUNIT_EXPECT_EQ(test, ftl_slc_left(test, MFLASH_READ_FIRST, FASTTRACK_BACKGROUND), 0);
}

static void ftl_trim_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 3);
	u32 *version = kunit_kcalloc(test, PAGES, sizeof(*version), GFP_KERNEL);

	fill(test, d, version);
	overwrite(test, d, version, PAGES / 2);
	kunit_do(test, d, MFLASH_UNMAP, FASTTRACK_NEUTRAL, 10, 500, 0);
	memset(version + 10, 0, 500 * sizeof(*version));
	check(test, d, version);
	/* older versions of what was trimmed are still on the NAND */
	kunit_flush(test, d);
	d = reboot(test, d);
	check(test, d, version);
	overwrite(test, d, version, 2 * PAGES);
	kunit_flush(test, d);
	check(test, reboot(test, d), version);
}

static void ftl_slots_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 3);
	struct mflash_store *st = &d->m.store;
	struct mflash_cmd *cmd = &d->cmds[0];
	u32 i;

	for (i = 0; i < 3 * PAGES; i++) {
		d->desc[0][0].slot = mflash_slot_get(st);
		KUNIT_ASSERT_NE(test, d->desc[0][0].slot, 0);
		*cmd = (struct mflash_cmd) {
			.type = MFLASH_WRITE, .lpn = mflash_random(&d->m) % 64, .pages = 1,
			.desc = d->desc[0],
		};
		mflash_submit(&d->m, cmd, d->m.now);
		kunit_wait(test, d, cmd);
	}
	kunit_flush(test, d);
	/* what was replaced was given back, also through copies */
	KUNIT_EXPECT_EQ(test, st->slots_top - st->nr_free_slots, 64);
	d = reboot(test, d);
	st = &d->m.store;
	KUNIT_EXPECT_EQ(test, st->slots_top - st->nr_free_slots, 64);
}

/**
 * struct history - what is known of the pages
 * @given: last version that was written, acknowledged or not
 * @now: version that a read must find
 * @floor: version that a power cut must leave, at least; 0: none
 */
struct history {
	u32 given[PAGES], now[PAGES], floor[PAGES];
};

static void write_one(struct kunit *test, struct kunit_dev *d, struct history *h, u32 lpn, u32 what)
{
	d->cmds[0].fua = what < 10;
	h->now[lpn] = ++h->given[lpn];
	kunit_do(test, d, MFLASH_WRITE, what % 3, lpn, 1, word(lpn, h->given[lpn]));
	if (what < 10 && !d->m.dead)
		h->floor[lpn] = h->now[lpn];
	d->cmds[0].fua = false;
}

/* one life: write, flush and trim at random until the power is cut */
static void live_until_cut(struct kunit *test, struct kunit_dev *d, struct history *h)
{
	u32 lpn, what;

	while (!d->m.dead) {
		lpn = mflash_random(&d->m) % PAGES;
		what = mflash_random(&d->m) % 100;
		if (what < 3) {
			kunit_flush(test, d);
			if (!d->m.dead)
				memcpy(h->floor, h->now, sizeof(h->floor));
		} else if (what < 6) {
			h->floor[lpn] = 0;
			h->now[lpn] = 0;
			kunit_do(test, d, MFLASH_UNMAP, FASTTRACK_NEUTRAL, lpn, 1, 0);
		} else {
			write_one(test, d, h, lpn, what);
		}
	}
}

/* no other page's content, nothing older than what was durable; returns what was lost */
static u32 check_after_cut(struct kunit *test, struct kunit_dev *d, struct history *h)
{
	u32 lpn, version, lost = 0;

	for (lpn = 0; lpn < PAGES; lpn++) {
		u64 found = kunit_word(d, lpn);

		version = (u32)found;
		if (version)
			KUNIT_EXPECT_EQ(test, found >> 32, lpn);
		KUNIT_EXPECT_GE(test, version, h->floor[lpn]);
		KUNIT_EXPECT_LE(test, version, h->given[lpn]);
		lost += version < h->now[lpn];
		h->floor[lpn] = version;
		h->now[lpn] = version;
	}
	return lost;
}

static void ftl_power_cut_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 3);
	struct history *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);
	u32 life, lost = 0;

	KUNIT_ASSERT_NOT_NULL(test, h);
	for (life = 0; life < 40; life++) {
		d->m.seed = life;
		d->m.cut_persist = life % 3 * 40;
		d->m.cut_after = 1 + mflash_random(&d->m) % (2 * PAGES);
		live_until_cut(test, d, h);
		d = reboot(test, d);
		kunit_check_books(test, d);
		lost += check_after_cut(test, d, h);
	}
	KUNIT_EXPECT_GT(test, lost, 0);
	KUNIT_EXPECT_EQ(test, d->m.store.super->power_cuts, 40);
}

static void ftl_wrong_phone_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 3);
	struct mflash_model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct mflash_phone other = kunit_phone;
	struct mflash_config config = { .phone = &other, .size_mib = KUNIT_MIB };
	void *copy = vmalloc(d->m.store.durable_size);

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, d->m.store.durable, d->m.store.durable_size);
	other.name = "other";
	config.place.durable = copy;
	KUNIT_EXPECT_EQ(test, mflash_model_init(m, &config), -EINVAL);
}

static struct kunit_case ftl_cases[] = {
	KUNIT_CASE(ftl_gc_test),
	KUNIT_CASE(ftl_slc_test),
	KUNIT_CASE(ftl_slc_reserve_test),
	KUNIT_CASE(ftl_trim_test),
	KUNIT_CASE(ftl_slots_test),
	KUNIT_CASE(ftl_power_cut_test),
	KUNIT_CASE(ftl_wrong_phone_test),
	{}
};

static struct kunit_suite ftl_suite = {
	.name = "mflash_ftl",
	.test_cases = ftl_cases,
};

kunit_test_suite(ftl_suite);
