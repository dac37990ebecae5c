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
		list_add_tail(&rq[i].queuelist, &class.fifo[i]);
		rq[i].fifo_time = FTI_QUEUES_NOW - i;
	}
	KUNIT_EXPECT_EQ(test, fti_oldest_time(&class), FTI_QUEUES_NOW - 2);

	/* Later kinds have their turn after some of the first. */
	for (unsigned int i = 0; i < fti_starved; i++)
		KUNIT_EXPECT_EQ(test, fti_next_kind(&class), FTI_READ);
	KUNIT_EXPECT_EQ(test, fti_next_kind(&class), FTI_SYNC);
	list_del(&rq[FTI_READ].queuelist);
	list_del(&rq[FTI_SYNC].queuelist);
	KUNIT_EXPECT_EQ(test, fti_next_kind(&class), FTI_ASYNC);
}

static struct kunit_case fti_queues_test_cases[] = {
	KUNIT_CASE(fti_queues_test_kinds),
	{}
};

static struct kunit_suite fti_queues_test_suite = {
	.name = "fasttrack_queues",
	.test_cases = fti_queues_test_cases,
};

kunit_test_suite(fti_queues_test_suite);
