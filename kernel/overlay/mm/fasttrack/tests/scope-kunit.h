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

static struct kunit_case ft_scope_test_cases[] = {
	KUNIT_CASE(ft_test_scope),
	{}
};

static struct kunit_suite ft_scope_test_suite = {
	.name = "fasttrack_scope",
	.test_cases = ft_scope_test_cases,
};

kunit_test_suite(ft_scope_test_suite);
