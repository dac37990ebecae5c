/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash_nand: times of dies and channels, suspension. */
#include "../power.h"
#include "model-kunit.h"

static u64 read_ns(const struct mflash_phone *p, u32 pages)
{
	return p->fw_read_ns + p->t_read_ns + mflash_transfer_ns(pages, p->channel_mbps) +
	       p->link_cmd_ns + mflash_transfer_ns(pages, p->link_read_mbps);
}

static void nand_read_time_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 1);
	u64 one, two;

	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, 0, 8, 7);
	kunit_flush(test, d);
	/* the map page that the write missed is still being read */
	mflash_advance(&d->m, d->m.now + d->phone.t_prog_ns);
	one = kunit_do(test, d, MFLASH_READ, FASTTRACK_NEUTRAL, 0, 4, 0);
	KUNIT_EXPECT_EQ(test, one, read_ns(&d->phone, 4));
	/* 8 pages are on two dies: sensed together, one transfer after the other */
	two = kunit_do(test, d, MFLASH_READ, FASTTRACK_NEUTRAL, 0, 8, 0);
	KUNIT_EXPECT_EQ(test, two + d->phone.link_cmd_ns,
			one + mflash_transfer_ns(4, d->phone.channel_mbps));
}

static void nand_unmapped_test(struct kunit *test)
{
	struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 1);
	u64 reads;

	kunit_do(test, d, MFLASH_READ, FASTTRACK_NEUTRAL, 0, 1, 0);
	reads = d->m.stats[MFLASH_STAT_nand_reads];
	KUNIT_EXPECT_LT(test, kunit_do(test, d, MFLASH_READ, FASTTRACK_NEUTRAL, 1, 4, 0),
			d->phone.t_read_ns);
	KUNIT_EXPECT_EQ(test, d->m.stats[MFLASH_STAT_nand_reads], reads);
}

/* how long a foreground read takes that finds a background program on its die */
static u64 read_behind_program(struct kunit *test, enum mflash_policy policy)
{
	struct mflash_phone phone = kunit_phone;
	struct kunit_dev *d;

	phone.dies = 1;
	d = kunit_dev(test, &phone, NULL, 1);
	d->m.sched.policy = policy;
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, 0, 4, 7);
	kunit_flush(test, d);
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_BACKGROUND, 16, 4, 8);
	mflash_advance(&d->m, d->m.now + phone.t_prog_ns / 4);
	return kunit_do(test, d, MFLASH_READ, FASTTRACK_FOREGROUND, 0, 1, 0);
}

static void nand_suspend_test(struct kunit *test)
{
	u64 alone = read_ns(&kunit_phone, 1);

	KUNIT_EXPECT_GT(test, read_behind_program(test, MFLASH_FIFO),
			kunit_phone.t_prog_ns / 2);
	KUNIT_EXPECT_GT(test, read_behind_program(test, MFLASH_READ_FIRST),
			kunit_phone.t_prog_ns / 2);
	KUNIT_EXPECT_EQ(test, read_behind_program(test, MFLASH_FOREGROUND),
			alone + kunit_phone.t_susp_prog_ns);
}

static void nand_suspend_bound_test(struct kunit *test)
{
	struct mflash_phone phone = kunit_phone;
	struct kunit_dev *d;
	u64 begin, cost;
	int i;

	phone.dies = 1;
	d = kunit_dev(test, &phone, NULL, 1);
	d->m.sched.policy = MFLASH_FOREGROUND;
	d->m.sched.suspend_max = 3;
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, 0, 4, 7);
	kunit_flush(test, d);
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_BACKGROUND, 16, 4, 8);
	begin = d->m.now;
	for (i = 0; i < 1000 && !d->m.ftl.map[16]; i++)
		kunit_do(test, d, MFLASH_READ, FASTTRACK_FOREGROUND, 0, 1, 0);
	KUNIT_EXPECT_NE(test, d->m.ftl.map[16], 0);
	KUNIT_EXPECT_EQ(test, d->m.stats[MFLASH_STAT_suspensions_program], 3);
	KUNIT_EXPECT_EQ(test, d->m.stats[MFLASH_STAT_resumes], 3);
	/* the program ended: its own time, what the die is kept for, three suspensions */
	cost = phone.t_susp_prog_ns + phone.t_resume_ns + 2 * read_ns(&phone, 1);
	KUNIT_EXPECT_LE(test, d->m.now - begin,
			2 * phone.t_prog_ns + MFLASH_KEEP_MAX_NS + MFLASH_BURST_GAP_NS + 3 * cost);
}

/* in a burst of reads nothing is resumed; it goes on after the burst */
static void nand_keep_test(struct kunit *test)
{
	struct mflash_phone phone = kunit_phone;
	struct kunit_dev *d;
	int i;

	phone.dies = 1;
	d = kunit_dev(test, &phone, NULL, 1);
	d->m.sched.policy = MFLASH_FOREGROUND;
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, 0, 4, 7);
	kunit_flush(test, d);
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_BACKGROUND, 16, 4, 8);
	mflash_advance(&d->m, d->m.now + phone.t_prog_ns / 4);
	kunit_do(test, d, MFLASH_READ, FASTTRACK_FOREGROUND, 0, 1, 0);
	KUNIT_EXPECT_EQ(test, d->m.stats[MFLASH_STAT_suspensions_program], 1);
	kunit_do(test, d, MFLASH_READ, FASTTRACK_FOREGROUND, 0, 1, 0);
	for (i = 0; i < 10; i++) {
		mflash_advance(&d->m, d->m.now + MFLASH_BURST_GAP_NS / 2);
		KUNIT_EXPECT_EQ(test, kunit_do(test, d, MFLASH_READ, FASTTRACK_FOREGROUND, 0, 1, 0),
				read_ns(&phone, 1));
	}
	KUNIT_EXPECT_LE(test, d->m.stats[MFLASH_STAT_suspensions_program], 2);
	KUNIT_EXPECT_EQ(test, d->m.ftl.map[16], 0);
	mflash_advance(&d->m, d->m.now + 2 * MFLASH_BURST_GAP_NS + 2 * phone.t_prog_ns);
	KUNIT_EXPECT_NE(test, d->m.ftl.map[16], 0);
}

/* reads that never leave the die's queue empty do not hold a program for ever */
static void nand_hold_bound_test(struct kunit *test)
{
	struct mflash_phone phone = kunit_phone;
	struct mflash_cmd *cmd[2];
	struct kunit_dev *d;
	u64 begin;
	int i;

	phone.dies = 1;
	phone.fw_read_ns = 1000;
	d = kunit_dev(test, &phone, NULL, 1);
	d->m.sched.policy = MFLASH_FOREGROUND;
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_NEUTRAL, 0, 4, 7);
	kunit_flush(test, d);
	kunit_do(test, d, MFLASH_WRITE, FASTTRACK_BACKGROUND, 16, 4, 8);
	begin = d->m.now;
	for (i = 0; i < 2; i++)
		cmd[i] = kunit_submit(d, i + 1, MFLASH_READ, FASTTRACK_FOREGROUND, 0, 1, 0);
	for (i = 0; i < 100000 && !d->m.ftl.map[16]; i++) {
		kunit_wait(test, d, cmd[i % 2]);
		cmd[i % 2] = kunit_submit(d, i % 2 + 1, MFLASH_READ, FASTTRACK_FOREGROUND, 0, 1, 0);
	}
	KUNIT_EXPECT_NE(test, d->m.ftl.map[16], 0);
	KUNIT_EXPECT_GT(test, d->m.now - begin, d->m.sched.wait_max_ns / 2);
	/* once before it begins, when the die is kept for more; once suspended */
	KUNIT_EXPECT_LT(test, d->m.now - begin,
			2 * (d->m.sched.wait_max_ns + MFLASH_KEEP_MAX_NS) + 4 * phone.t_prog_ns);
}

static void nand_suspend_erase_test(struct kunit *test)
{
	struct mflash_phone phone = kunit_phone;
	struct mflash_die *die;
	struct kunit_dev *d;
	u64 left;
	u32 i;

	phone.dies = 1;
	d = kunit_dev(test, &phone, NULL, 1);
	die = &d->m.dies[0];
	for (i = 0; i < 4 * d->m.ftl.pages && !d->m.stats[MFLASH_STAT_nand_erases]; i += 4)
		kunit_do(test, d, MFLASH_WRITE, FASTTRACK_BACKGROUND, i % d->m.ftl.pages, 4, i);
	d->m.sched.policy = MFLASH_FOREGROUND;
	KUNIT_ASSERT_PTR_NE(test, die->array, NULL);
	KUNIT_ASSERT_EQ(test, die->array->type, MFLASH_OP_ERASE);
	left = d->m.next[MFLASH_EV_DIE(0)] - d->m.now;
	KUNIT_EXPECT_LT(test, kunit_do(test, d, MFLASH_READ, FASTTRACK_FOREGROUND, 0, 1, 0), left);
	KUNIT_EXPECT_EQ(test, d->m.stats[MFLASH_STAT_suspensions_erase], 1);
	kunit_flush(test, d);
	kunit_check_books(test, d);
}

static void nand_determinism_test(struct kunit *test)
{
	u64 end[2];
	int run;
	u32 i;

	for (run = 0; run < 2; run++) {
		struct kunit_dev *d = kunit_dev(test, &kunit_phone, NULL, 5);

		for (i = 0; i < 500; i++)
			kunit_do(test, d, i % 3 ? MFLASH_WRITE : MFLASH_READ, i % 3,
				 mflash_random(&d->m) % 1000, 1 + i % 16, i);
		end[run] = d->m.now;
	}
	KUNIT_EXPECT_EQ(test, end[0], end[1]);
}

static struct kunit_case nand_cases[] = {
	KUNIT_CASE(nand_read_time_test),
	KUNIT_CASE(nand_unmapped_test),
	KUNIT_CASE(nand_suspend_test),
	KUNIT_CASE(nand_suspend_bound_test),
	KUNIT_CASE(nand_keep_test),
	KUNIT_CASE(nand_hold_bound_test),
	KUNIT_CASE(nand_suspend_erase_test),
	KUNIT_CASE(nand_determinism_test),
	{}
};

static struct kunit_suite nand_suite = {
	.name = "mflash_nand",
	.test_cases = nand_cases,
};

kunit_test_suite(nand_suite);
