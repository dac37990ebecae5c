/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of the dispatcher's policy, included by fasttrack-iosched.c. */
#include <kunit/test.h>

/* An arbitrary time, far enough from 0 to subtract from. */
#define FTI_NOW	(100ULL * NSEC_PER_SEC)

static struct fti_state fti_test_state(void)
{
	return (struct fti_state){
		.front = true,
		.device_depth = 32,
		.cheap_depth = 32,
		.idle_window = fti_default_bounds.idle_window,
		.neutral_sent = FTI_NOW,
	};
}

/* The oldest read, or write, of @class has come at @arrival, and it has no others. */
static void fti_test_waits(struct fti_state *state, enum fasttrack_class class,
			   bool writes, u64 arrival)
{
	state->oldest[class] = arrival;
	state->oldest_of[writes][class] = arrival;
	state->oldest_of[!writes][class] = 0;
}

static void fti_test_foreground_first(struct kunit *test)
{
	struct fti_state state = fti_test_state();
	struct fti_choice choice;

	for (int i = 0; i < FASTTRACK_NR_CLASSES; i++)
		state.oldest[i] = FTI_NOW - i - 1;
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);
	KUNIT_EXPECT_FALSE(test, choice.expired);

	state.oldest[FASTTRACK_FOREGROUND] = 0;
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);

	state.oldest[FASTTRACK_NEUTRAL] = 0;
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);

	state.oldest[FASTTRACK_BACKGROUND] = 0;
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FTI_NONE);
	KUNIT_EXPECT_FALSE(test, choice.hold);
}

#include "fasttrack-plain-kunit.h"
#include "fasttrack-starve-kunit.h"

static void fti_test_idle_window(struct kunit *test)
{
	const struct fti_bounds *bounds = &fti_default_bounds;
	struct fti_state state = fti_test_state();
	u64 end;

	/* A boot time below the window is no activity. */
	KUNIT_EXPECT_FALSE(test, fti_foreground_works(&state, bounds, 1));

	state.foreground_seen = true;
	state.foreground_last = FTI_NOW;
	end = FTI_NOW + bounds->idle_window;
	KUNIT_EXPECT_TRUE(test, fti_foreground_works(&state, bounds, end - 1));
	KUNIT_EXPECT_FALSE(test, fti_foreground_works(&state, bounds, end));
	state.in_flight[FASTTRACK_FOREGROUND] = 1;
	KUNIT_EXPECT_TRUE(test, fti_foreground_works(&state, bounds, end));

	/* It is used up before. */
	state.in_flight[FASTTRACK_FOREGROUND] = 0;
	state.idle_window = 1;
	KUNIT_EXPECT_TRUE(test, fti_foreground_works(&state, bounds, FTI_NOW));
	KUNIT_EXPECT_FALSE(test,
			   fti_foreground_works(&state, bounds, FTI_NOW + 1));
}

static void fti_test_lifted(struct kunit *test)
{
	struct fti_state state = fti_test_state();
	struct fti_choice choice;

	state.in_flight[FASTTRACK_FOREGROUND] = 1;
	state.background_next = U64_MAX;
	state.neutral_next = U64_MAX;
	state.oldest[FASTTRACK_BACKGROUND] = FTI_NOW;
	state.in_flight[FASTTRACK_BACKGROUND] = state.device_depth - 1;
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_TRUE(test, choice.hold);
	state.lifted = true;
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	state.oldest[FASTTRACK_NEUTRAL] = FTI_NOW;
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	state.oldest[FASTTRACK_FOREGROUND] = FTI_NOW;
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);

	/* A foreground that always has one queued is before who comes later. */
	state.oldest[FASTTRACK_BACKGROUND] = FTI_NOW - 1;
	for (unsigned int i = 0; i < FTI_STARVED_IN_A_ROW; i++) {
		state.others_in_a_row = i;
		choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
		KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
		KUNIT_EXPECT_TRUE(test, choice.expired);
	}
	state.others_in_a_row = FTI_STARVED_IN_A_ROW;
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);
	state.others_in_a_row = 0;
	state.lifted = false;
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);
}

static void fti_test_neutral(struct kunit *test)
{
	const struct fti_bounds *bounds = &fti_default_bounds;
	struct fti_state state = fti_test_state();
	struct fti_choice choice;

	/* One that is older than the foreground's goes before it, in turns. */
	state.oldest[FASTTRACK_FOREGROUND] = FTI_NOW;
	state.oldest[FASTTRACK_NEUTRAL] = FTI_NOW - 1;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	state.others_in_a_row = 1;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);
	state.others_in_a_row = 0;
	state.in_flight[FASTTRACK_NEUTRAL] = 1;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);
	/* One that takes long, a discard for one, does not keep the others. */
	state.neutral_sent = FTI_NOW - bounds->neutral_expire;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);

	/* Within its share, and one in neutral_expire. */
	state.in_flight[FASTTRACK_NEUTRAL] = 0;
	state.oldest[FASTTRACK_FOREGROUND] = 0;
	state.in_flight[FASTTRACK_FOREGROUND] = 1;
	state.neutral_next = fti_neutral_next(bounds, FTI_NOW, NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, state.neutral_next, FTI_NOW + 4 * NSEC_PER_MSEC);
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_TRUE(test, choice.hold);
	KUNIT_EXPECT_EQ(test, choice.wake, state.neutral_next);
	choice = fti_choose(&state, bounds, state.neutral_next);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, fti_neutral_next(bounds, FTI_NOW, NSEC_PER_SEC),
			FTI_NOW + bounds->neutral_expire);

	/* An app's own write-back is not bounded. */
	state.own = true;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	state.own = false;

	/* As ever while the foreground does not work, or waits for others. */
	state.foreground_depends = true;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	state.foreground_depends = false;
	state.in_flight[FASTTRACK_FOREGROUND] = 0;
	state.in_flight[FASTTRACK_NEUTRAL] = 31;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
}

static void fti_test_cost(struct kunit *test)
{
	struct fti_state state = fti_test_state();
	struct fti_cost cost = { .depth = 8 };

	for (int i = 0; i < FTI_COST_SAMPLES - 1; i++)
		fti_cost_add(&cost, 112, 100, 10, 8);
	KUNIT_EXPECT_EQ(test, cost.depth, 8);
	fti_cost_add(&cost, 112, 100, 10, 8);
	KUNIT_EXPECT_EQ(test, cost.depth, 4);
	for (int i = 0; i < 10 * FTI_COST_SAMPLES; i++)
		fti_cost_add(&cost, 200, 100, 10, 8);
	KUNIT_EXPECT_EQ(test, cost.depth, 1);
	for (int i = 0; i < 10 * FTI_COST_SAMPLES; i++)
		fti_cost_add(&cost, 109, 100, 10, 8);
	KUNIT_EXPECT_EQ(test, cost.depth, 8);

	/* As long as the foreground is there. */
	state.cheap_depth = 2;
	KUNIT_EXPECT_EQ(test, fti_background_limit(&state, &fti_default_bounds,
						   false, FTI_NOW), 28);
	state.foreground_seen = true;
	state.foreground_last = FTI_NOW;
	KUNIT_EXPECT_EQ(test, fti_background_limit(&state, &fti_default_bounds,
						   false, FTI_NOW), 2);
	KUNIT_EXPECT_EQ(test, fti_background_limit(&state, &fti_default_bounds, false,
						   FTI_NOW + FTI_COST_WINDOW),
			28);
}

static void fti_test_size(struct kunit *test)
{
	struct fti_bounds bounds = fti_default_bounds;
	struct fti_state state = fti_test_state();

	state.device_depth = 1;
	KUNIT_EXPECT_EQ(test, fti_background_sectors(&state, &bounds, FTI_NOW), 0);
	state.foreground_seen = true;
	state.foreground_last = FTI_NOW;
	KUNIT_EXPECT_EQ(test, fti_background_sectors(&state, &bounds, FTI_NOW),
			2 * fti_default_bounds.background_kb);
	KUNIT_EXPECT_EQ(test, fti_background_sectors(&state, &bounds,
						     FTI_NOW + FTI_COST_WINDOW), 0);
	state.device_depth = 2;
	KUNIT_EXPECT_EQ(test, fti_background_sectors(&state, &bounds, FTI_NOW), 0);
	state.device_depth = 1;
	state.front = false;
	KUNIT_EXPECT_EQ(test, fti_background_sectors(&state, &bounds, FTI_NOW), 0);
	state.front = true;
	bounds.background_kb = 0;
	KUNIT_EXPECT_EQ(test, fti_background_sectors(&state, &bounds, FTI_NOW), 0);
}

/* Only what background reads and writes, and what can be split. */
static void fti_test_max_sectors(struct kunit *test)
{
	const blk_opf_t behind = REQ_FASTTRACK_BACKGROUND;

	KUNIT_EXPECT_EQ(test, fasttrack_max_sectors(REQ_OP_WRITE | behind, 1024, 256), 256);
	KUNIT_EXPECT_EQ(test, fasttrack_max_sectors(REQ_OP_READ | behind, 1024, 256), 512);
	KUNIT_EXPECT_EQ(test, fasttrack_max_sectors(REQ_OP_READ | behind, 8, 256), 8);
	KUNIT_EXPECT_EQ(test, fasttrack_max_sectors(REQ_OP_WRITE | behind, 1024, 0), 1024);
	KUNIT_EXPECT_EQ(test, fasttrack_max_sectors(REQ_OP_WRITE, 1024, 256), 1024);
	KUNIT_EXPECT_EQ(test, fasttrack_max_sectors(REQ_OP_WRITE | REQ_FASTTRACK_FOREGROUND,
						    1024, 256), 1024);
	KUNIT_EXPECT_EQ(test, fasttrack_max_sectors(REQ_OP_WRITE | REQ_ATOMIC | behind,
						    1024, 256), 1024);
	KUNIT_EXPECT_EQ(test, fasttrack_max_sectors(REQ_OP_READ | REQ_NOWAIT | behind,
						    1024, 256), 1024);
	KUNIT_EXPECT_EQ(test, fasttrack_max_sectors(REQ_OP_DISCARD | behind, 1024, 256), 1024);
}

static void fti_test_depends(struct kunit *test)
{
	struct fti_state state = fti_test_state();
	struct fti_choice choice;
	u64 end = FTI_NOW + FTI_DEPEND_WINDOW;

	state.foreground_seen = true;
	state.foreground_last = FTI_NOW;
	state.background_next = U64_MAX;
	state.foreground_depends = true;
	state.oldest[FASTTRACK_BACKGROUND] = FTI_NOW - 1;
	choice = fti_choose(&state, &fti_default_bounds, end - 1);
	KUNIT_EXPECT_TRUE(test, choice.hold);
	KUNIT_EXPECT_EQ(test, choice.wake, end);

	for (unsigned int i = 0; i < FTI_BUSY_DEPTH; i++) {
		state.in_flight[FASTTRACK_BACKGROUND] = i;
		choice = fti_choose(&state, &fti_default_bounds, end);
		KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
		KUNIT_EXPECT_TRUE(test, choice.in_order);
	}
	state.foreground_depends = false;
	state.in_flight[FASTTRACK_BACKGROUND] = 0;
	state.background_next = 0;
	choice = fti_choose(&state, &fti_default_bounds, end);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	KUNIT_EXPECT_FALSE(test, choice.in_order);
	state.foreground_depends = true;
	state.background_next = U64_MAX;
	state.in_flight[FASTTRACK_BACKGROUND] = FTI_BUSY_DEPTH;
	choice = fti_choose(&state, &fti_default_bounds, end);
	KUNIT_EXPECT_TRUE(test, choice.hold);

	/* What it sent itself is to be waited for first. */
	state.in_flight[FASTTRACK_BACKGROUND] = 0;
	state.in_flight[FASTTRACK_FOREGROUND] = 1;
	choice = fti_choose(&state, &fti_default_bounds, end);
	KUNIT_EXPECT_TRUE(test, choice.hold);
}

static void fti_test_treat_as(struct kunit *test)
{
	for (int class = 0; class < FASTTRACK_NR_CLASSES; class++)
		KUNIT_EXPECT_EQ(test, fti_treat_as(class, true), class);
	KUNIT_EXPECT_EQ(test, fti_treat_as(FASTTRACK_FOREGROUND, false),
			FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, fti_treat_as(FASTTRACK_BACKGROUND, false),
			FASTTRACK_BACKGROUND);
}

static void fti_test_background_depth(struct kunit *test)
{
	const struct fti_bounds *bounds = &fti_default_bounds;
	struct fti_state state = fti_test_state();
	struct fti_choice choice;

	state.oldest[FASTTRACK_BACKGROUND] = FTI_NOW - 1;
	state.in_flight[FASTTRACK_BACKGROUND] = bounds->background_depth;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);

	state.foreground_seen = true;
	state.foreground_last = FTI_NOW;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FTI_NONE);
	KUNIT_EXPECT_TRUE(test, choice.hold);
	KUNIT_EXPECT_EQ(test, choice.wake, FTI_NOW + bounds->idle_window);

	/* Idle: up to the reserve, then until one leaves the device. */
	state.foreground_seen = false;
	state.in_flight[FASTTRACK_BACKGROUND] =
		state.device_depth - bounds->foreground_reserve - 1;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	state.in_flight[FASTTRACK_BACKGROUND]++;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FTI_NONE);
	KUNIT_EXPECT_TRUE(test, choice.hold);
	KUNIT_EXPECT_EQ(test, choice.wake, 0);

	/* Fewer of those that nobody waits for, whatever else is there. */
	state.async[FASTTRACK_BACKGROUND] = true;
	state.in_flight[FASTTRACK_BACKGROUND]--;
	state.async_in_flight[FASTTRACK_BACKGROUND] = FTI_BUSY_DEPTH - 1;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	state.async_in_flight[FASTTRACK_BACKGROUND]++;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_TRUE(test, choice.hold);
	KUNIT_EXPECT_EQ(test, choice.wake, 0);
	state.async[FASTTRACK_BACKGROUND] = false;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
}

/* And of what is neutral, unless an app in front waits for its own. */
static void fti_test_neutral_full(struct kunit *test)
{
	const struct fti_bounds *bounds = &fti_default_bounds;
	struct fti_state state = fti_test_state();
	struct fti_choice choice;

	state.oldest[FASTTRACK_NEUTRAL] = FTI_NOW - 1;
	state.async[FASTTRACK_NEUTRAL] = true;
	state.async_in_flight[FASTTRACK_NEUTRAL] = FTI_BUSY_DEPTH - 1;
	state.in_flight[FASTTRACK_NEUTRAL] = FTI_BUSY_DEPTH - 1;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	state.metadata_pages = FTI_METADATA_PAGES;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_TRUE(test, choice.hold);
	KUNIT_EXPECT_EQ(test, choice.wake, 0);
	state.metadata_pages = 0;
	state.async_in_flight[FASTTRACK_NEUTRAL]++;
	state.in_flight[FASTTRACK_NEUTRAL]++;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_TRUE(test, choice.hold);
	/* Background's go meanwhile. */
	state.oldest[FASTTRACK_BACKGROUND] = FTI_NOW - 1;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	state.own = true;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	state.own = false;
	state.lifted = true;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	state.lifted = false;
	state.async[FASTTRACK_NEUTRAL] = false;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
}

static void fti_test_background_share(struct kunit *test)
{
	const struct fti_bounds *bounds = &fti_default_bounds;
	struct fti_state state = fti_test_state();
	struct fti_bounds half = *bounds, all = *bounds;
	const u64 service = 5 * NSEC_PER_MSEC;
	struct fti_choice choice;
	u64 next;

	half.background_share = 50;
	next = fti_background_next(&half, FTI_NOW, service);
	KUNIT_EXPECT_EQ(test, next, FTI_NOW + service);
	all.background_share = 100;
	KUNIT_EXPECT_EQ(test, fti_background_next(&all, FTI_NOW, service),
			FTI_NOW);
	KUNIT_EXPECT_GT(test, fti_background_next(bounds, FTI_NOW, service),
			next);
	/* However long it was in the device. */
	KUNIT_EXPECT_EQ(test, fti_background_next(bounds, FTI_NOW, NSEC_PER_SEC),
			FTI_NOW + fti_most_wait(bounds));

	state.oldest[FASTTRACK_BACKGROUND] = FTI_NOW;
	state.in_flight[FASTTRACK_FOREGROUND] = 1;
	state.background_next = next;
	choice = fti_choose(&state, bounds, next - 1);
	KUNIT_EXPECT_EQ(test, choice.class, FTI_NONE);
	KUNIT_EXPECT_EQ(test, choice.wake, next);
	choice = fti_choose(&state, bounds, next);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
}

static void fti_test_tags(struct kunit *test)
{
	for (unsigned int depth = 2; depth <= BLK_MQ_MAX_DEPTH; depth *= 2) {
		unsigned int inherit = fti_shallow_depth(depth, fti_inherit_tags);

		for (int sync = 0; sync < 2; sync++) {
			unsigned int background = fti_shallow_depth(depth,
					fti_tags[FASTTRACK_BACKGROUND][sync]);
			unsigned int neutral = fti_shallow_depth(depth,
					fti_tags[FASTTRACK_NEUTRAL][sync]);

			KUNIT_EXPECT_GE(test, background, 1);
			KUNIT_EXPECT_LE(test, background, neutral);
			KUNIT_EXPECT_LE(test, neutral, inherit);
		}
		KUNIT_EXPECT_LT(test, inherit, depth);
	}
	/* A device that takes one at a time; UFS and SATA. */
	KUNIT_EXPECT_EQ(test, fti_async_tags(1, FASTTRACK_BACKGROUND), 4);
	KUNIT_EXPECT_EQ(test, fti_async_tags(32, FASTTRACK_BACKGROUND), 8);
	KUNIT_EXPECT_EQ(test, fti_async_tags(32, FASTTRACK_NEUTRAL), 16);
}

static void fti_test_tags_used_up(struct kunit *test)
{
	unsigned int used[FASTTRACK_NR_CLASSES] = {};

	KUNIT_EXPECT_FALSE(test, fti_tags_used_up(used, 64, 32, 1));
	used[FASTTRACK_BACKGROUND] = 20;
	used[FASTTRACK_NEUTRAL] = 11;
	KUNIT_EXPECT_FALSE(test, fti_tags_used_up(used, 64, 32, 1));
	/* One is free: who waits for some waits on. */
	KUNIT_EXPECT_TRUE(test, fti_tags_used_up(used, 64, 32, FTI_ROOM));
	used[FASTTRACK_NEUTRAL] = 12;
	KUNIT_EXPECT_TRUE(test, fti_tags_used_up(used, 64, 32, 1));
	used[FASTTRACK_NEUTRAL] = 10;
	KUNIT_EXPECT_FALSE(test, fti_tags_used_up(used, 64, 32, FTI_ROOM));
	used[FASTTRACK_NEUTRAL] = 12;
	/* One of eight of the foreground's is where background may be. */
	used[FASTTRACK_BACKGROUND] = 0;
	used[FASTTRACK_NEUTRAL] = 0;
	used[FASTTRACK_FOREGROUND] = 63;
	KUNIT_EXPECT_FALSE(test, fti_tags_used_up(used, 64, 8, 1));
	used[FASTTRACK_NEUTRAL] = 1;
	KUNIT_EXPECT_TRUE(test, fti_tags_used_up(used, 64, 8, 1));
	/* All that there is, where that is less. */
	used[FASTTRACK_FOREGROUND] = 0;
	used[FASTTRACK_NEUTRAL] = 0;
	KUNIT_EXPECT_FALSE(test, fti_tags_used_up(used, 64, 1, FTI_ROOM));
	used[FASTTRACK_NEUTRAL] = 1;
	KUNIT_EXPECT_TRUE(test, fti_tags_used_up(used, 64, 1, FTI_ROOM));
	/* The queue has no limits yet. */
	KUNIT_EXPECT_FALSE(test, fti_tags_used_up(used, 64, 0, 1));
}

static struct kunit_case fti_test_cases[] = {
	KUNIT_CASE(fti_test_foreground_first),
	KUNIT_CASE(fti_test_plain),
	KUNIT_CASE(fti_test_plain_reads),
	KUNIT_CASE(fti_test_plain_full),
	KUNIT_CASE(fti_test_plain_prio),
	KUNIT_CASE(fti_test_flush_goes_first),
	KUNIT_CASE(fti_test_idle_window),
	KUNIT_CASE(fti_test_lifted),
	KUNIT_CASE(fti_test_neutral),
	KUNIT_CASE(fti_test_cost),
	KUNIT_CASE(fti_test_size),
	KUNIT_CASE(fti_test_max_sectors),
	KUNIT_CASE(fti_test_depends),
	KUNIT_CASE(fti_test_treat_as),
	KUNIT_CASE(fti_test_background_depth),
	KUNIT_CASE(fti_test_neutral_full),
	KUNIT_CASE(fti_test_background_share),
	KUNIT_CASE(fti_test_no_starvation),
	KUNIT_CASE(fti_test_neutral_starves),
	KUNIT_CASE(fti_test_task_starves),
	KUNIT_CASE(fti_test_progress),
	KUNIT_CASE(fti_test_no_storm),
	KUNIT_CASE(fti_test_wakes_with_neutral),
	KUNIT_CASE(fti_test_passed_over),
	KUNIT_CASE(fti_test_tags),
	KUNIT_CASE(fti_test_tags_used_up),
	{}
};

static struct kunit_suite fti_test_suite = {
	.name = "fasttrack_dispatcher",
	.test_cases = fti_test_cases,
};

kunit_test_suite(fti_test_suite);
