/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests that nobody starves, included by fasttrack-policy-kunit.h. */

static void fti_test_no_starvation(struct kunit *test)
{
	const struct fti_bounds *bounds = &fti_default_bounds;
	struct fti_state state = fti_test_state();
	struct fti_bounds none = *bounds;
	struct fti_choice choice;

	/* Even where background may have nothing in the device. */
	none.background_depth = 0;
	state.oldest[FASTTRACK_FOREGROUND] = FTI_NOW - 1;
	state.oldest[FASTTRACK_BACKGROUND] = FTI_NOW - none.background_expire;
	choice = fti_choose(&state, &none, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	KUNIT_EXPECT_TRUE(test, choice.expired);

	/* One at a time. */
	state.in_flight[FASTTRACK_BACKGROUND] = 1;
	choice = fti_choose(&state, &none, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);

	/* And within its share. */
	state.in_flight[FASTTRACK_BACKGROUND] = 0;
	state.background_next = FTI_NOW + 1;
	choice = fti_choose(&state, &none, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);

	state.oldest[FASTTRACK_NEUTRAL] = FTI_NOW - bounds->background_expire;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_TRUE(test, choice.expired);

	/* In turns. */
	state.others_in_a_row = 1;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);

	/* Nor behind what is neutral, with nobody in front. */
	state.oldest[FASTTRACK_FOREGROUND] = 0;
	state.background_next = FTI_NOW;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	state.background_next++;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	state.waited[FASTTRACK_BACKGROUND] = FTI_NOW - fti_most_wait(bounds);
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_TRUE(test, choice.starved);
}

/* Who waits for something neutral does not wait for all that came before it. */
static void fti_test_neutral_starves(struct kunit *test)
{
	const struct fti_bounds *bounds = &fti_default_bounds;
	struct fti_state state = fti_test_state();
	struct fti_choice choice;

	state.oldest[FASTTRACK_FOREGROUND] = FTI_NOW - NSEC_PER_SEC;
	state.oldest[FASTTRACK_NEUTRAL] = FTI_NOW - bounds->neutral_expire;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);
	state.waited[FASTTRACK_NEUTRAL] = state.oldest[FASTTRACK_NEUTRAL] + 1;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_TRUE(test, choice.starved);

	/* In turns, and within its share. */
	state.others_in_a_row = 1;
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);
	state.others_in_a_row = 0;
	state.neutral_next = FTI_NOW + 2;
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);
}

static void fti_test_task_starves(struct kunit *test)
{
	const struct fti_bounds *bounds = &fti_default_bounds;
	const u64 bound = fti_most_wait(bounds);
	struct fti_state state = fti_test_state();
	struct fti_choice choice;

	/* Within its share as long as it has not waited too long. */
	state.oldest[FASTTRACK_FOREGROUND] = FTI_NOW - 1;
	state.oldest[FASTTRACK_BACKGROUND] = FTI_NOW - 2 * bound;
	state.waited[FASTTRACK_BACKGROUND] = FTI_NOW - bound + 1;
	state.background_next = FTI_NOW + bound;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	KUNIT_EXPECT_TRUE(test, choice.expired);
	KUNIT_EXPECT_TRUE(test, choice.starved);

	/* Who of it and of what is neutral should have gone first goes. */
	state.oldest[FASTTRACK_NEUTRAL] = FTI_NOW - bounds->background_expire;
	state.waited[FASTTRACK_NEUTRAL] = state.oldest[FASTTRACK_NEUTRAL];
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	state.waited[FASTTRACK_NEUTRAL]++;
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	/* Nobody waits for neutral write-back, however old it is. */
	state.oldest[FASTTRACK_NEUTRAL] = FTI_NOW - 4 * bound;
	state.waited[FASTTRACK_NEUTRAL] = 0;
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	/* But it has its turn, too. */
	state.oldest[FASTTRACK_FOREGROUND] = 0;
	state.others_in_a_row = FTI_STARVED_IN_A_ROW;
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_FALSE(test, choice.expired);
	state.oldest[FASTTRACK_FOREGROUND] = FTI_NOW - 1;
	state.oldest[FASTTRACK_NEUTRAL] = 0;

	/* In turns: some together, one in the device at a time. */
	state.others_in_a_row = FTI_STARVED_IN_A_ROW - 1;
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_TRUE(test, choice.starved);
	state.others_in_a_row = FTI_STARVED_IN_A_ROW;
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);
	state.others_in_a_row = 0;
	state.in_flight[FASTTRACK_BACKGROUND] = bounds->background_depth;
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_FOREGROUND);

	/* Also where background is alone: before the rest of a batch of writes. */
	state.oldest[FASTTRACK_FOREGROUND] = 0;
	state.in_flight[FASTTRACK_BACKGROUND] = 0;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	KUNIT_EXPECT_FALSE(test, choice.starved);
	choice = fti_choose(&state, bounds, FTI_NOW + 1);
	KUNIT_EXPECT_TRUE(test, choice.starved);

	/* A hold ends for it. */
	state.in_flight[FASTTRACK_FOREGROUND] = 1;
	state.in_flight[FASTTRACK_BACKGROUND] = 0;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_TRUE(test, choice.hold);
	KUNIT_EXPECT_EQ(test, choice.wake, FTI_NOW + 1);
}

/*
 * Whatever is queued: somebody goes, or a hold has an end. That end is never
 * now, or the timer would spin.
 */
static void fti_test_progress(struct kunit *test)
{
	const u64 overdue = FTI_NOW - fti_default_bounds.background_expire;
	const u64 starved = FTI_NOW - fti_most_wait(&fti_default_bounds);

	for (unsigned int bits = 1; bits < BIT(16); bits++) {
		struct fti_bounds bounds = fti_default_bounds;
		struct fti_state state = fti_test_state();
		struct fti_choice choice;
		bool in_device = false;

		for (int i = 0; i < FASTTRACK_NR_CLASSES; i++) {
			state.oldest[i] = bits & BIT(i) ? FTI_NOW - i : 0;
			state.in_flight[i] = !!(bits & BIT(i + 3));
			in_device |= state.in_flight[i];
		}
		state.foreground_seen = bits & BIT(6);
		state.neutral_next = bits & BIT(13) ? FTI_NOW + 1 : 0;
		state.lifted = bits & BIT(14);
		state.foreground_last = FTI_NOW - 1;
		state.background_next = bits & BIT(7) ? FTI_NOW + 1 :
							FTI_NOW - 1;
		if (bits & BIT(8) && state.oldest[FASTTRACK_BACKGROUND])
			state.oldest[FASTTRACK_BACKGROUND] = overdue;
		if (bits & BIT(9)) {
			state.waited[FASTTRACK_BACKGROUND] = state.oldest[FASTTRACK_BACKGROUND];
			state.waited[FASTTRACK_NEUTRAL] = state.oldest[FASTTRACK_NEUTRAL];
		}
		if (bits & BIT(10) && state.waited[FASTTRACK_BACKGROUND])
			state.waited[FASTTRACK_BACKGROUND] = starved;
		if (bits & BIT(11))
			bounds.background_depth = 2 * FTI_BUSY_DEPTH;
		if (bits & BIT(12) && !state.waited[FASTTRACK_BACKGROUND] &&
		    state.in_flight[FASTTRACK_BACKGROUND]) {
			state.async[FASTTRACK_BACKGROUND] = true;
			state.async_in_flight[FASTTRACK_BACKGROUND] = FTI_BUSY_DEPTH;
			state.in_flight[FASTTRACK_BACKGROUND] = FTI_BUSY_DEPTH;
		}
		if (bits & BIT(15)) {
			state.in_flight[FASTTRACK_BACKGROUND] += FTI_BUSY_DEPTH;
			state.pages_in_flight = FTI_BUSY_PAGES;
			in_device = true;
		}
		choice = fti_choose(&state, &bounds, FTI_NOW);
		if (!(bits & 7)) {
			KUNIT_EXPECT_EQ(test, choice.class, FTI_NONE);
			continue;
		}
		if (choice.class != FTI_NONE) {
			KUNIT_EXPECT_NE(test, state.oldest[choice.class], 0);
			KUNIT_EXPECT_TRUE(test,
					  !choice.starved || state.waited[FASTTRACK_BACKGROUND]);
			continue;
		}
		KUNIT_EXPECT_TRUE(test, choice.hold);
		if (choice.wake)
			KUNIT_EXPECT_GT(test, choice.wake, FTI_NOW);
		else
			KUNIT_EXPECT_TRUE(test, in_device);
	}
}

/* A small generator of numbers, the same in each run. */
static u32 fti_test_draw(u32 *seed, u32 below)
{
	*seed = *seed * 1664525U + 1013904223U;
	return (*seed >> 8) % below;
}

/* An arrival or a bound: 0, or up to two seconds before or after FTI_NOW. */
static u64 fti_test_time(u32 *seed)
{
	u32 ms = fti_test_draw(seed, 6000);

	return ms < 2000 ? 0 : FTI_NOW - 4 * NSEC_PER_SEC + ms * NSEC_PER_MSEC;
}

static void fti_test_no_storm(struct kunit *test)
{
	u32 seed = 1;

	for (unsigned int i = 0; i < 200000; i++) {
		struct fti_bounds bounds = fti_default_bounds;
		struct fti_state state = fti_test_state();
		struct fti_choice choice;

		bounds.background_depth = fti_test_draw(&seed, 40);
		for (int class = 0; class < FASTTRACK_NR_CLASSES; class++) {
			state.oldest[class] = min(fti_test_time(&seed), FTI_NOW);
			state.in_flight[class] = fti_test_draw(&seed, 3) ?
				0 : fti_test_draw(&seed, 40);
		}
		if (state.oldest[FASTTRACK_BACKGROUND])
			state.waited[FASTTRACK_BACKGROUND] = min(fti_test_time(&seed), FTI_NOW);
		if (state.oldest[FASTTRACK_NEUTRAL])
			state.waited[FASTTRACK_NEUTRAL] = min(fti_test_time(&seed), FTI_NOW);
		state.foreground_seen = fti_test_draw(&seed, 2);
		state.foreground_last = min(fti_test_time(&seed), FTI_NOW);
		state.neutral_next = fti_test_time(&seed);
		state.background_next = fti_test_time(&seed);
		state.foreground_depends = !fti_test_draw(&seed, 4);
		state.lifted = !fti_test_draw(&seed, 4);
		choice = fti_choose(&state, &bounds, FTI_NOW);
		if (choice.class == FTI_NONE && choice.wake)
			KUNIT_ASSERT_GT(test, choice.wake, FTI_NOW);
	}
}

/* Who is not sent because something neutral is further behind waits for that. */
static void fti_test_wakes_with_neutral(struct kunit *test)
{
	const struct fti_bounds *bounds = &fti_default_bounds;
	struct fti_state state = fti_test_state();
	struct fti_choice choice;

	state.in_flight[FASTTRACK_FOREGROUND] = 1;
	state.in_flight[FASTTRACK_NEUTRAL] = 1;
	state.oldest[FASTTRACK_NEUTRAL] = FTI_NOW - 3 * bounds->background_expire;
	state.oldest[FASTTRACK_BACKGROUND] = FTI_NOW - fti_most_wait(bounds);
	state.waited[FASTTRACK_BACKGROUND] = state.oldest[FASTTRACK_BACKGROUND];
	state.waited[FASTTRACK_NEUTRAL] = state.oldest[FASTTRACK_NEUTRAL];
	state.background_next = FTI_NOW + NSEC_PER_SEC;
	choice = fti_choose(&state, bounds, FTI_NOW);
	KUNIT_EXPECT_TRUE(test, choice.hold);
	KUNIT_EXPECT_EQ(test, choice.wake, fti_neutral_due(&state, bounds));
}

static void fti_test_passed_over(struct kunit *test)
{
	struct fti_pace pace = { .moved = FTI_NOW };
	const u64 came = FTI_NOW - 10 * NSEC_PER_SEC;

	KUNIT_EXPECT_EQ(test, fti_passed_over(&pace, 1, 0, FTI_NOW), 0);
	KUNIT_EXPECT_EQ(test, fti_passed_over(&pace, 1, came, FTI_NOW),
			FTI_NOW - came);
	/* A device that does nothing for a minute; an empty one does no wrong. */
	KUNIT_EXPECT_EQ(test, fti_passed_over(&pace, 1, came,
					      FTI_NOW + 60 * NSEC_PER_SEC), 0);
	KUNIT_EXPECT_EQ(test, fti_passed_over(&pace, 0, came,
					      FTI_NOW + 60 * NSEC_PER_SEC),
			70 * NSEC_PER_SEC);
	/* Nor does what came before it did something count, when it does. */
	fti_pace_end(&pace, FTI_NOW + 60 * NSEC_PER_SEC);
	fti_pace_end(&pace, FTI_NOW + 61 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, fti_passed_over(&pace, 1, came,
					      FTI_NOW + 61 * NSEC_PER_SEC),
			NSEC_PER_SEC);
}
