/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of the policy of smartio, included by smartio-iosched.c. */
#include <kunit/test.h>

static const struct smartio_knobs smartio_test_knobs = {
	.write_wait = smartio_write_wait,
	.prio_aging = smartio_prio_aging,
};

static const struct smartio_waiting smartio_test_none = {
	.level = SMARTIO_NR_LEVELS,
};

/* Requests of the ordinary level that have just come. */
static struct smartio_waiting smartio_test_waiting(void)
{
	return (struct smartio_waiting){
		.level = smartio_level(IOPRIO_DEFAULT),
	};
}

static enum smartio_turn smartio_test_turn(const struct smartio_waiting *reads,
					   const struct smartio_waiting *writes)
{
	return smartio_choose(reads, writes, &smartio_test_knobs);
}

static void smartio_test_levels(struct kunit *test)
{
	unsigned int last = smartio_level(IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0));

	KUNIT_EXPECT_EQ(test, last, 0);
	for (int class = IOPRIO_CLASS_RT; class <= IOPRIO_CLASS_BE; class++)
		for (int level = class == IOPRIO_CLASS_RT; level < IOPRIO_NR_LEVELS;
		     level++) {
			unsigned short prio = IOPRIO_PRIO_VALUE(class, level);

			KUNIT_EXPECT_EQ(test, smartio_level(prio), last + 1);
			last++;
		}
	/* IDLE has no levels. */
	for (int level = 0; level < IOPRIO_NR_LEVELS; level++)
		KUNIT_EXPECT_EQ(test, last + 1,
				smartio_level(IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE,
								level)));
	KUNIT_EXPECT_EQ(test, last + 2, SMARTIO_NR_LEVELS);
	KUNIT_EXPECT_EQ(test, smartio_level(IOPRIO_DEFAULT),
			smartio_level(IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE,
							IOPRIO_BE_NORM)));
}

static void smartio_test_reads_first(struct kunit *test)
{
	struct smartio_waiting reads = smartio_test_waiting();
	struct smartio_waiting writes = smartio_test_waiting();

	writes.waited = smartio_write_wait - 1;
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&reads, &writes), SMARTIO_READ);
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&smartio_test_none, &writes),
			SMARTIO_WRITE);
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&reads, &smartio_test_none),
			SMARTIO_READ);
	KUNIT_EXPECT_EQ(test,
			smartio_test_turn(&smartio_test_none, &smartio_test_none),
			SMARTIO_NOBODY);
}

static void smartio_test_higher_level_first(struct kunit *test)
{
	struct smartio_waiting reads = smartio_test_waiting();
	struct smartio_waiting writes = smartio_test_waiting();

	writes.level--;
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&reads, &writes), SMARTIO_WRITE);
	/* The device works best with no more of those: it need not idle. */
	writes.full = true;
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&reads, &writes), SMARTIO_READ);
}

static void smartio_test_overdue_write(struct kunit *test)
{
	struct smartio_waiting reads = smartio_test_waiting();
	struct smartio_waiting writes = smartio_test_waiting();

	writes.waited = smartio_write_wait;
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&reads, &writes),
			SMARTIO_OVERDUE_WRITE);
	/* Those that the device has may be of others, which have more. */
	writes.full = true;
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&reads, &writes),
			SMARTIO_OVERDUE_WRITE);
}

static void smartio_test_clocks(struct kunit *test)
{
	unsigned int level = smartio_level(IOPRIO_DEFAULT);

	/* All writes wait for a read, none for one of their own level. */
	KUNIT_EXPECT_EQ(test, smartio_clock_from(false, level), 0);
	KUNIT_EXPECT_EQ(test, smartio_clock_from(true, level), level + 1);
	KUNIT_EXPECT_EQ(test, smartio_clock_from(true, SMARTIO_IDLE_LEVEL),
			SMARTIO_NR_LEVELS);
}

static void smartio_test_aged_read(struct kunit *test)
{
	struct smartio_waiting reads = smartio_test_waiting();
	struct smartio_waiting writes = smartio_test_waiting();

	writes.level = 0;
	reads.waited = smartio_prio_aging - 1;
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&reads, &writes), SMARTIO_WRITE);
	reads.waited++;
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&reads, &writes),
			SMARTIO_AGED_READ);
	reads.full = true;
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&reads, &writes),
			SMARTIO_AGED_READ);
}

static void smartio_test_full(struct kunit *test)
{
	struct smartio_knobs knobs = smartio_test_knobs;
	struct smartio_waiting reads = smartio_test_waiting();
	struct smartio_waiting writes = smartio_test_waiting();

	/* No number, no limit. */
	KUNIT_EXPECT_FALSE(test, smartio_is_full(&knobs, SMARTIO_RANDOM_READ,
						 1000));
	knobs.depth[SMARTIO_RANDOM_READ] = 8;
	KUNIT_EXPECT_FALSE(test,
			   smartio_is_full(&knobs, SMARTIO_RANDOM_READ, 7));
	KUNIT_EXPECT_TRUE(test, smartio_is_full(&knobs, SMARTIO_RANDOM_READ, 8));

	/* A write waits for reads that the device cannot take yet, too. */
	reads.full = true;
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&reads, &writes),
			SMARTIO_NOBODY);
	writes.full = true;
	KUNIT_EXPECT_EQ(test, smartio_test_turn(&smartio_test_none, &writes),
			SMARTIO_NOBODY);
}

static struct kunit_case smartio_policy_cases[] = {
	KUNIT_CASE(smartio_test_levels),
	KUNIT_CASE(smartio_test_reads_first),
	KUNIT_CASE(smartio_test_higher_level_first),
	KUNIT_CASE(smartio_test_overdue_write),
	KUNIT_CASE(smartio_test_clocks),
	KUNIT_CASE(smartio_test_aged_read),
	KUNIT_CASE(smartio_test_full),
	{}
};

static struct kunit_suite smartio_policy_suite = {
	.name = "smartio_policy",
	.test_cases = smartio_policy_cases,
};

kunit_test_suite(smartio_policy_suite);
