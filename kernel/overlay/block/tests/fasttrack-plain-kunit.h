/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of the order with nobody in front, included by fasttrack-policy-kunit.h. */

/* With nobody in front nobody is held, and who came first goes first. */
static void fti_test_plain(struct kunit *test)
{
	struct fti_state state = fti_test_state();
	struct fti_choice choice;

	state.front = false;
	state.foreground_seen = true;
	state.foreground_last = FTI_NOW;
	state.in_flight[FASTTRACK_BACKGROUND] = state.device_depth - 1;
	fti_test_waits(&state, FASTTRACK_BACKGROUND, false, FTI_NOW - 2);
	fti_test_waits(&state, FASTTRACK_NEUTRAL, false, FTI_NOW - 1);
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_BACKGROUND);
	KUNIT_EXPECT_TRUE(test, choice.plain);

	fti_test_waits(&state, FASTTRACK_BACKGROUND, false, 0);
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FASTTRACK_NEUTRAL);

	fti_test_waits(&state, FASTTRACK_NEUTRAL, false, 0);
	choice = fti_choose(&state, &fti_default_bounds, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FTI_NONE);
	KUNIT_EXPECT_FALSE(test, choice.hold);
}

/* Reads go before older writes of another class, in batches, and do not starve them. */
static void fti_test_plain_reads(struct kunit *test)
{
	struct fti_state state = fti_test_state();
	unsigned int reads = 0, writes = 0;

	state.front = false;
	state.follows = true;
	fti_test_waits(&state, FASTTRACK_BACKGROUND, true, FTI_NOW - 2);
	fti_test_waits(&state, FASTTRACK_NEUTRAL, false, FTI_NOW - 1);
	for (int i = 0; i < 3 * FTI_BATCH; i++) {
		struct fti_choice choice = fti_choose_plain(&state, FTI_NOW);

		KUNIT_EXPECT_EQ(test, choice.class,
				choice.writes ? FASTTRACK_BACKGROUND :
						FASTTRACK_NEUTRAL);
		KUNIT_EXPECT_EQ(test, choice.begins, i % FTI_BATCH == 0);
		KUNIT_EXPECT_EQ(test, choice.writes,
				i >= FTI_STARVED * FTI_BATCH);
		*(choice.writes ? &writes : &reads) += 1;
		fti_plain_sent(&state.plain, choice.writes, choice.begins, true);
	}
	KUNIT_EXPECT_EQ(test, reads, FTI_STARVED * FTI_BATCH);
	KUNIT_EXPECT_EQ(test, writes, FTI_BATCH);

	/* A batch of writes ends with the medium, or with them, and reads begin another. */
	state.plain.batch = 1;
	KUNIT_EXPECT_TRUE(test, fti_choose_plain(&state, FTI_NOW).writes);
	state.follows = false;
	KUNIT_EXPECT_FALSE(test, fti_choose_plain(&state, FTI_NOW).writes);
	state.follows = true;
	fti_test_waits(&state, FASTTRACK_BACKGROUND, true, 0);
	KUNIT_EXPECT_FALSE(test, fti_choose_plain(&state, FTI_NOW).writes);
	KUNIT_EXPECT_TRUE(test, fti_choose_plain(&state, FTI_NOW).begins);
}

/* Background's writes wait while the device has plenty of it, and nobody else does. */
static void fti_test_plain_full(struct kunit *test)
{
	struct fti_state state = fti_test_state();
	struct fti_choice choice;

	state.front = false;
	fti_test_waits(&state, FASTTRACK_BACKGROUND, true, FTI_NOW - 2);
	state.in_flight[FASTTRACK_BACKGROUND] = FTI_BUSY_DEPTH;
	state.written_pages = FTI_PLAIN_PAGES - 1;
	KUNIT_EXPECT_EQ(test, fti_choose_plain(&state, FTI_NOW).class,
			FASTTRACK_BACKGROUND);
	state.written_pages++;
	choice = fti_choose_plain(&state, FTI_NOW);
	KUNIT_EXPECT_EQ(test, choice.class, FTI_NONE);
	KUNIT_EXPECT_TRUE(test, choice.hold);
	fti_test_waits(&state, FASTTRACK_NEUTRAL, true, FTI_NOW - 1);
	KUNIT_EXPECT_EQ(test, fti_choose_plain(&state, FTI_NOW).class,
			FASTTRACK_NEUTRAL);
	fti_test_waits(&state, FASTTRACK_NEUTRAL, true, 0);
	fti_test_waits(&state, FASTTRACK_BACKGROUND, false, FTI_NOW - 1);
	KUNIT_EXPECT_EQ(test, fti_choose_plain(&state, FTI_NOW).class,
			FASTTRACK_BACKGROUND);
	/* Reads that fill the device keep no writes waiting. */
	fti_test_waits(&state, FASTTRACK_BACKGROUND, true, FTI_NOW - 2);
	state.pages_in_flight = 2 * FTI_PLAIN_PAGES;
	state.written_pages = 0;
	KUNIT_EXPECT_TRUE(test, fti_choose_plain(&state, FTI_NOW).writes);
	state.written_pages = FTI_PLAIN_PAGES;
	/* Few large ones are no reason. */
	fti_test_waits(&state, FASTTRACK_BACKGROUND, true, FTI_NOW - 2);
	state.in_flight[FASTTRACK_BACKGROUND] = FTI_BUSY_DEPTH - 1;
	KUNIT_EXPECT_TRUE(test, fti_choose_plain(&state, FTI_NOW).writes);
}

/* Then I/O priorities count, for a while. */
static void fti_test_plain_prio(struct kunit *test)
{
	struct fti_state state = fti_test_state();
	u64 aged = FTI_NOW - 2 + FTI_PRIO_AGING;

	state.front = false;
	for (int i = 0; i < FASTTRACK_NR_CLASSES; i++)
		state.prio[i] = 1;
	fti_test_waits(&state, FASTTRACK_BACKGROUND, true, FTI_NOW - 2);
	fti_test_waits(&state, FASTTRACK_NEUTRAL, true, FTI_NOW - 1);
	state.prio[FASTTRACK_BACKGROUND] = 2;
	KUNIT_EXPECT_EQ(test, fti_choose_plain(&state, FTI_NOW).class,
			FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, fti_choose_plain(&state, aged).class,
			FASTTRACK_BACKGROUND);
	fti_test_waits(&state, FASTTRACK_NEUTRAL, true, 0);
	KUNIT_EXPECT_EQ(test, fti_choose_plain(&state, FTI_NOW).class,
			FASTTRACK_BACKGROUND);

	/* A higher one is in the device: when it has ended. */
	fti_test_waits(&state, FASTTRACK_BACKGROUND, true, 0);
	state.prio_waits = true;
	KUNIT_EXPECT_TRUE(test, fti_choose_plain(&state, FTI_NOW).hold);
}

/* What has a flush after it goes first while somebody is in front, in order. */
static void fti_test_flush_goes_first(struct kunit *test)
{
	struct fti_data *fti = kunit_kzalloc(test, sizeof(*fti), GFP_KERNEL);
	struct request *rq = kunit_kzalloc(test, 2 * sizeof(*rq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fti);
	KUNIT_ASSERT_NOT_NULL(test, rq);
	INIT_LIST_HEAD(&fti->head);
	fti->front = true;
	for (int i = 0; i < 2; i++) {
		rq[i].cmd_flags = REQ_OP_WRITE;
		rq[i].rq_flags = RQF_FLUSH_SEQ;
		fti_insert_new(fti, &rq[i], 0);
	}
	KUNIT_EXPECT_PTR_EQ(test, fti->head.next, &rq[0].queuelist);
	KUNIT_EXPECT_PTR_EQ(test, fti->head.prev, &rq[1].queuelist);
}
