/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of scopes, included by scope.c. */
#include <kunit/test.h>

static void ft_test_scope(struct kunit *test)
{
	struct fasttrack_scope outer, inner;

	outer = fasttrack_scope_enter(FASTTRACK_BACKGROUND,
				      FASTTRACK_CAUSE_JOURNAL);
	KUNIT_EXPECT_EQ(test, __fasttrack_task_class(current),
			FASTTRACK_BACKGROUND);
	inner = fasttrack_cause_enter(FASTTRACK_CAUSE_FSYNC);
	KUNIT_EXPECT_EQ(test, current->fasttrack_scope.cause,
			FASTTRACK_CAUSE_JOURNAL);
	fasttrack_scope_leave(inner);

	/* A foreground task waits for what this one does. */
	current->fasttrack_waiters++;
	KUNIT_EXPECT_EQ(test, __fasttrack_task_class(current),
			FASTTRACK_FOREGROUND);
	current->fasttrack_waiters--;
	fasttrack_scope_leave(outer);
	KUNIT_EXPECT_EQ(test, __fasttrack_task_class(current),
			FASTTRACK_NEUTRAL);
}

/* Who is in front gets its own class from a worker; who is behind does not. */
static void ft_test_scope_of_bio(struct kunit *test)
{
	static const struct {
		blk_opf_t opf;
		enum fasttrack_class class;
	} cases[] = {
		{ REQ_OP_READ, FASTTRACK_NEUTRAL },
		{ REQ_OP_READ | REQ_FASTTRACK_FOREGROUND, FASTTRACK_FOREGROUND },
		{ REQ_OP_READ | REQ_FASTTRACK_BACKGROUND, FASTTRACK_NEUTRAL },
	};

	for (int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fasttrack_scope outer;

		outer = fasttrack_bio_enter(cases[i].opf);
		KUNIT_EXPECT_EQ(test, __fasttrack_task_class(current),
				cases[i].class);
		fasttrack_scope_leave(outer);
	}
}

static struct kunit_case ft_scope_test_cases[] = {
	KUNIT_CASE(ft_test_scope),
	KUNIT_CASE(ft_test_scope_of_bio),
	{}
};

static struct kunit_suite ft_scope_test_suite = {
	.name = "fasttrack_scope",
	.test_cases = ft_scope_test_cases,
};

kunit_test_suite(ft_scope_test_suite);
