/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of the dispatcher's queues, included by fasttrack-queues.c. */
#include <kunit/test.h>

/* An arbitrary time, far enough from 0 to subtract from. */
#define FTI_QUEUES_NOW	(100ULL * NSEC_PER_SEC)

static void fti_queues_test_kinds(struct kunit *test)
{
	struct request *rq = kunit_kzalloc(test, FTI_NR_KINDS * sizeof(*rq),
					   GFP_KERNEL);
	struct fti_class class = {};

	KUNIT_ASSERT_NOT_NULL(test, rq);
	KUNIT_EXPECT_EQ(test, fti_opf_kind(REQ_OP_READ), FTI_READ);
	KUNIT_EXPECT_EQ(test, fti_opf_kind(REQ_OP_WRITE | REQ_SYNC), FTI_SYNC);
	KUNIT_EXPECT_EQ(test, fti_opf_kind(REQ_OP_WRITE | REQ_FUA), FTI_SYNC);
	KUNIT_EXPECT_EQ(test, fti_opf_kind(REQ_OP_WRITE), FTI_ASYNC);

	fti_init_class(&class);
	for (int i = 0; i < FTI_NR_KINDS; i++) {
		list_add_tail(&rq[i].queuelist, &class.queue[FTI_BE].fifo[i]);
		rq[i].fifo_time = FTI_QUEUES_NOW - i;
	}
	KUNIT_EXPECT_EQ(test, fti_oldest_time(&class.queue[FTI_BE]), FTI_QUEUES_NOW - 2);

	/* Later kinds have their turn after some of the first. */
	for (unsigned int i = 0; i < FTI_STARVED; i++)
		KUNIT_EXPECT_EQ(test, fti_next_kind(&class.queue[FTI_BE]), FTI_READ);
	KUNIT_EXPECT_EQ(test, fti_next_kind(&class.queue[FTI_BE]), FTI_SYNC);
	list_del(&rq[FTI_READ].queuelist);
	list_del(&rq[FTI_SYNC].queuelist);
	KUNIT_EXPECT_EQ(test, fti_next_kind(&class.queue[FTI_BE]), FTI_ASYNC);
}

/* Queue the @i-th of @rq, a write of so many that came one after the other. */
static void fti_queues_add(struct fti_class *class, struct request *rq, int i,
			   enum fti_kind kind, sector_t sector)
{
	rq[i].cmd_flags = REQ_OP_WRITE | (kind == FTI_SYNC ? REQ_SYNC : 0);
	rq[i].fifo_time = FTI_QUEUES_NOW + i;
	rq[i].__sector = sector;
	elv_rb_add(&class->queue[FTI_BE].sort_list[kind], &rq[i]);
	list_add_tail(&rq[i].queuelist, &class->queue[FTI_BE].fifo[kind]);
}

static void fti_queues_test_in_order(struct kunit *test)
{
	struct request *rq = kunit_kzalloc(test, 2 * sizeof(*rq), GFP_KERNEL);
	struct fti_choice choice = { .class = FASTTRACK_BACKGROUND };
	struct fti_class class = {};

	KUNIT_ASSERT_NOT_NULL(test, rq);
	fti_init_class(&class);
	fti_queues_add(&class, rq, 0, FTI_ASYNC, 8);
	fti_queues_add(&class, rq, 1, FTI_ASYNC, 64);

	/* Where the last one ended; and when somebody may wait for the first. */
	class.queue[FTI_BE].kind = FTI_ASYNC;
	class.queue[FTI_BE].position[FTI_ASYNC] = 64;
	KUNIT_EXPECT_PTR_EQ(test, fti_select(&class, choice, FTI_QUEUES_NOW + 2),
			    &rq[1]);
	class.queue[FTI_BE].position[FTI_ASYNC] = 64;
	choice.in_order = true;
	KUNIT_EXPECT_PTR_EQ(test, fti_select(&class, choice, FTI_QUEUES_NOW + 2),
			    &rq[0]);
}

/* In mq-deadline's order a write is a write. */
static void fti_queues_test_plain(struct kunit *test)
{
	struct request *rq = kunit_kzalloc(test, 3 * sizeof(*rq), GFP_KERNEL);
	struct fti_choice choice = { .plain = true, .writes = true };
	struct fti_class class = {};

	KUNIT_ASSERT_NOT_NULL(test, rq);
	fti_init_class(&class);
	fti_queues_add(&class, rq, 0, FTI_SYNC, 64);
	fti_queues_add(&class, rq, 1, FTI_ASYNC, 8);
	fti_queues_add(&class, rq, 2, FTI_ASYNC, 128);

	/* By sector from where the last one ended; behind the last the oldest. */
	KUNIT_EXPECT_PTR_EQ(test, fti_select(&class, choice, FTI_QUEUES_NOW),
			    &rq[1]);
	class.queue[FTI_BE].position[FTI_SYNC] = 65;
	class.queue[FTI_BE].position[FTI_ASYNC] = 65;
	KUNIT_EXPECT_PTR_EQ(test, fti_select(&class, choice, FTI_QUEUES_NOW),
			    &rq[2]);
	class.queue[FTI_BE].position[FTI_SYNC] = 136;
	class.queue[FTI_BE].position[FTI_ASYNC] = 136;
	KUNIT_EXPECT_PTR_EQ(test, fti_select(&class, choice, FTI_QUEUES_NOW),
			    &rq[0]);
	/* The oldest, when a batch is over and it has waited for too long. */
	choice.begins = true;
	class.queue[FTI_BE].position[FTI_SYNC] = 0;
	class.queue[FTI_BE].position[FTI_ASYNC] = 0;
	KUNIT_EXPECT_PTR_EQ(test,
			    fti_select(&class, choice,
				       FTI_QUEUES_NOW + fti_expire[FTI_SYNC]),
			    &rq[0]);
}

static void fti_queues_test_wait_anew(struct kunit *test)
{
	struct request *rq = kunit_kzalloc(test, 4 * sizeof(*rq), GFP_KERNEL);
	struct bio *bio = kunit_kzalloc(test, 4 * sizeof(*bio), GFP_KERNEL);
	struct fti_class class = {};

	KUNIT_ASSERT_NOT_NULL(test, rq);
	KUNIT_ASSERT_NOT_NULL(test, bio);
	fti_init_class(&class);
	fti_queues_add(&class, rq, 1, FTI_SYNC, 8);
	fti_queues_add(&class, rq, 2, FTI_SYNC, 16);
	fti_queues_add(&class, rq, 3, FTI_ASYNC, 24);
	for (int i = 0; i < 4; i++) {
		rq[i].bio = &bio[i];
		bio[i].bi_origin.app = 1;
		bio[i].bi_origin.pid = i;
	}
	bio[2].bi_origin.app = 2;
	KUNIT_EXPECT_PTR_EQ(test, fti_oldest_waited(&class.queue[FTI_BE]), &rq[1]);

	/* A read of the app has gone: its writes wait as before. */
	rq[0].cmd_flags = REQ_OP_READ;
	fti_wait_anew(&class.queue[FTI_BE], &rq[0], FTI_QUEUES_NOW + 9);
	KUNIT_EXPECT_EQ(test, rq[1].fifo_time, FTI_QUEUES_NOW + 1);

	/* A write of the app's other task: only its own wait anew. */
	rq[0].cmd_flags = REQ_OP_WRITE | REQ_SYNC;
	fti_wait_anew(&class.queue[FTI_BE], &rq[0], FTI_QUEUES_NOW + 9);
	KUNIT_EXPECT_EQ(test, rq[1].fifo_time, FTI_QUEUES_NOW + 9);
	KUNIT_EXPECT_EQ(test, rq[2].fifo_time, FTI_QUEUES_NOW + 2);
	KUNIT_EXPECT_EQ(test, rq[3].fifo_time, FTI_QUEUES_NOW + 3);
	KUNIT_EXPECT_PTR_EQ(test, fti_oldest_waited(&class.queue[FTI_BE]), &rq[2]);
}

/* Whose pages are not of one file may be asked for by anybody. */
static void fti_queues_test_mixed(struct kunit *test)
{
	const struct address_space *file = (void *)test;
	struct bio bio = {};

	KUNIT_EXPECT_FALSE(test, fti_is_mixed(&bio, file));
	KUNIT_EXPECT_TRUE(test, fti_is_mixed(&bio, NULL));
	bio_set_flag(&bio, BIO_CLONED);
	KUNIT_EXPECT_FALSE(test, fti_is_mixed(&bio, file));
	bio.bi_vcnt = 1;
	KUNIT_EXPECT_TRUE(test, fti_is_mixed(&bio, file));
	bio_clear_flag(&bio, BIO_CLONED);
	KUNIT_EXPECT_FALSE(test, fti_is_mixed(&bio, file));
	bio.bi_origin.mixed = true;
	KUNIT_EXPECT_TRUE(test, fti_is_mixed(&bio, file));
}

/* What moves a process's memory is asked for by nobody who waits for a file's page. */
static void fti_queues_test_direct(struct kunit *test)
{
	struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	struct address_space *file = (void *)test, *before;
	struct bio_vec vector = {};
	struct bio bio = {};

	KUNIT_ASSERT_NOT_NULL(test, page);
	bvec_set_page(&vector, page, PAGE_SIZE, 0);
	bio_init(&bio, NULL, &vector, 1, REQ_OP_WRITE);
	bio.bi_vcnt = 1;
	bio.bi_iter.bi_size = PAGE_SIZE;
	bio.bi_origin.pid = 1;
	before = page->mapping;
	page->mapping = file;

	KUNIT_EXPECT_PTR_EQ(test, fasttrack_bio_file(&bio),
			    (const struct address_space *)file);
	KUNIT_EXPECT_EQ(test, fti_bio_keys(&bio),
			fti_task_key(1) | fti_file_key(file));
	bio.bi_origin.direct = true;
	KUNIT_EXPECT_NULL(test, fasttrack_bio_file(&bio));
	KUNIT_EXPECT_EQ(test, fti_bio_keys(&bio), fti_task_key(1));

	page->mapping = before;
	__free_page(page);
}

/* A queued request is found by what it may be asked for, as long as it is queued. */
static void fti_queues_test_keys(struct kunit *test)
{
	struct fti_data *fti = kunit_kzalloc(test, sizeof(*fti), GFP_KERNEL);
	struct request_queue *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	struct request *rq = kunit_kzalloc(test, 2 * sizeof(*rq), GFP_KERNEL);
	struct bio *bio = kunit_kzalloc(test, 3 * sizeof(*bio), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fti);
	KUNIT_ASSERT_NOT_NULL(test, q);
	KUNIT_ASSERT_NOT_NULL(test, rq);
	KUNIT_ASSERT_NOT_NULL(test, bio);
	KUNIT_EXPECT_LT(test, FTI_KEY_MIXED, BITS_PER_LONG);
	spin_lock_init(&fti->fti_lock);
	for (int i = 0; i < FASTTRACK_NR_CLASSES; i++)
		fti_init_class(&fti->class[i]);
	for (int i = 0; i < 2; i++) {
		rq[i].q = q;
		rq[i].bio = &bio[i];
		rq[i].cmd_flags = REQ_OP_READ | REQ_NOMERGE;
		bio[i].bi_origin.pid = i + 1;
		RB_CLEAR_NODE(&rq[i].rb_node);
		fti_set_class(&rq[i], FASTTRACK_BACKGROUND);
	}
	KUNIT_ASSERT_NE(test, fti_task_key(1), fti_task_key(2));
	rq[1].cmd_flags |= REQ_META;

	spin_lock(&fti->fti_lock);
	fti_link(fti, &rq[0]);
	KUNIT_EXPECT_TRUE(test, fti_has_key(fti, fti_task_key(1)));
	KUNIT_EXPECT_TRUE(test, fti_has_key(fti, BIT(FTI_KEY_MIXED)));
	KUNIT_EXPECT_FALSE(test, fti_has_key(fti, fti_task_key(2)));
	KUNIT_EXPECT_FALSE(test, fti_has_key(fti, BIT(FTI_KEY_METADATA)));
	fti_link(fti, &rq[1]);
	KUNIT_EXPECT_TRUE(test, fti_has_key(fti, BIT(FTI_KEY_METADATA)));

	/* One that another bio is merged into. */
	bio[2].bi_origin.pid = 1;
	KUNIT_EXPECT_FALSE(test, fti_keys(&rq[1]) & fti_task_key(1));
	fti_key_bio(fti, &rq[1], &bio[2]);
	KUNIT_EXPECT_TRUE(test, fti_keys(&rq[1]) & fti_task_key(1));

	/* The foreground's is asked for by nobody, until it is behind again. */
	fti_move(fti, &rq[0], FASTTRACK_FOREGROUND, false);
	fti_key_bio(fti, &rq[0], &bio[2]);
	KUNIT_EXPECT_EQ(test, fti_keys(&rq[0]), 0UL);
	fti_unlink(fti, &rq[1]);
	KUNIT_EXPECT_FALSE(test, fti_has_key(fti, ~0UL));
	fti_move(fti, &rq[0], FASTTRACK_NEUTRAL, false);
	KUNIT_EXPECT_TRUE(test, fti_has_key(fti, fti_task_key(1)));
	fti_unlink(fti, &rq[0]);
	KUNIT_EXPECT_FALSE(test, fti_has_key(fti, ~0UL));
	spin_unlock(&fti->fti_lock);
}

/* A lower priority's turn comes after the higher ones, or when it has waited for long. */
static void fti_queues_test_prio(struct kunit *test)
{
	struct request *rq = kunit_kzalloc(test, FTI_NR_PRIOS * sizeof(*rq),
					   GFP_KERNEL);
	struct fti_choice choice = { .plain = true };
	struct fti_class class = {};
	u64 aged = FTI_QUEUES_NOW + FTI_PRIO_AGING;

	KUNIT_ASSERT_NOT_NULL(test, rq);
	fti_init_class(&class);
	KUNIT_EXPECT_EQ(test, fti_turn(&class, FTI_QUEUES_NOW), FTI_BE);
	for (int prio = 0; prio < FTI_NR_PRIOS; prio++) {
		rq[prio].cmd_flags = REQ_OP_READ;
		rq[prio].fifo_time = FTI_QUEUES_NOW + 1 - prio / 2;
		rq[prio].__sector = 8 * prio;
		elv_rb_add(&class.queue[prio].sort_list[FTI_READ], &rq[prio]);
		list_add_tail(&rq[prio].queuelist,
			      &class.queue[prio].fifo[FTI_READ]);
	}
	KUNIT_EXPECT_EQ(test, fti_turn(&class, aged - 1), FTI_RT);
	KUNIT_EXPECT_EQ(test, fti_turn(&class, aged), FTI_IDLE);
	KUNIT_EXPECT_EQ(test, fti_turn(&class, aged + 1), FTI_BE);
	KUNIT_EXPECT_PTR_EQ(test, fti_select(&class, choice, FTI_QUEUES_NOW),
			    &rq[FTI_RT]);
	list_del(&rq[FTI_RT].queuelist);
	KUNIT_EXPECT_EQ(test, fti_turn(&class, FTI_QUEUES_NOW), FTI_BE);
	list_del(&rq[FTI_BE].queuelist);
	KUNIT_EXPECT_EQ(test, fti_turn(&class, FTI_QUEUES_NOW), FTI_IDLE);
	KUNIT_EXPECT_TRUE(test, fti_has_waited(&class));
	list_del(&rq[FTI_IDLE].queuelist);
	KUNIT_EXPECT_FALSE(test, fti_has_waited(&class));
}

/* No priority is best-effort, and what is promoted has no other. */
static void fti_queues_test_prio_of(struct kunit *test)
{
	u16 rt = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 4);
	u16 idle = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0);
	struct request *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);
	struct bio *bio = kunit_kzalloc(test, sizeof(*bio), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rq);
	KUNIT_ASSERT_NOT_NULL(test, bio);
	KUNIT_EXPECT_EQ(test, fti_prio_of(FASTTRACK_NEUTRAL, 0), FTI_BE);
	KUNIT_EXPECT_EQ(test, fti_prio_of(FASTTRACK_NEUTRAL, rt), FTI_RT);
	KUNIT_EXPECT_EQ(test, fti_prio_of(FASTTRACK_BACKGROUND, idle), FTI_IDLE);
	KUNIT_EXPECT_EQ(test, fti_prio_of(FASTTRACK_FOREGROUND, idle), FTI_BE);

	rq->bio = bio;
	bio->bi_ioprio = idle;
	fti_set_class(rq, FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_EQ(test, fti_rq_prio(rq), FTI_IDLE);
	KUNIT_EXPECT_EQ(test, fti_rq_class(rq), FASTTRACK_NEUTRAL);
	fti_set_class(rq, FASTTRACK_FOREGROUND);
	KUNIT_EXPECT_EQ(test, fti_rq_prio(rq), FTI_BE);
}

static struct kunit_case fti_queues_test_cases[] = {
	KUNIT_CASE(fti_queues_test_kinds),
	KUNIT_CASE(fti_queues_test_plain),
	KUNIT_CASE(fti_queues_test_in_order),
	KUNIT_CASE(fti_queues_test_wait_anew),
	KUNIT_CASE(fti_queues_test_prio),
	KUNIT_CASE(fti_queues_test_prio_of),
	KUNIT_CASE(fti_queues_test_mixed),
	KUNIT_CASE(fti_queues_test_direct),
	KUNIT_CASE(fti_queues_test_keys),
	{}
};

static struct kunit_suite fti_queues_test_suite = {
	.name = "fasttrack_queues",
	.test_cases = fti_queues_test_cases,
};

kunit_test_suite(fti_queues_test_suite);
