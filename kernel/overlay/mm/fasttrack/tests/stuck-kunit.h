/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of the catch-all for waits that nobody has named, included by stuck.c. */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/kthread.h>

/* A kernel thread that sleeps uninterruptibly until it is stopped. */
struct ft_test_sleeper {
	enum fasttrack_class class;
	struct completion begun;
	struct task_struct *task;
};

static int ft_test_sleeps(void *data)
{
	struct ft_test_sleeper *sleeper = data;
	struct fasttrack_scope outer;

	outer = __fasttrack_scope_enter(sleeper->class, FASTTRACK_CAUSE_NONE);
	complete(&sleeper->begun);
	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	__fasttrack_scope_leave(outer);
	return 0;
}

static void ft_test_start(struct kunit *test, struct ft_test_sleeper *sleeper,
			  enum fasttrack_class class)
{
	sleeper->class = class;
	init_completion(&sleeper->begun);
	sleeper->task = kthread_run(ft_test_sleeps, sleeper, "ft_test_sleeps");
	KUNIT_ASSERT_FALSE(test, IS_ERR(sleeper->task));
	wait_for_completion(&sleeper->begun);
	while (READ_ONCE(sleeper->task->__state) != TASK_UNINTERRUPTIBLE)
		schedule_timeout_uninterruptible(1);
}

/* What is remembered of @task; others may sleep, too. */
static const struct ft_asleep *ft_test_seen(const struct task_struct *task)
{
	for (unsigned int i = 0; i < ft_nr_seen; i++)
		if (ft_seen[i].task == task)
			return &ft_seen[i];
	return NULL;
}

/* A kernel thread is looked at if it works for somebody, and has not said for what. */
static void ft_test_who_is_looked_at(struct kunit *test)
{
	struct ft_test_sleeper *sleeper = kunit_kzalloc(test, sizeof(*sleeper),
							GFP_KERNEL);
	struct task_struct *task;

	KUNIT_ASSERT_NOT_NULL(test, sleeper);
	ft_test_start(test, sleeper, FASTTRACK_FOREGROUND);
	KUNIT_EXPECT_TRUE(test, ft_sleeps_unnamed(sleeper->task));
	kthread_stop(sleeper->task);

	ft_test_start(test, sleeper, FASTTRACK_NEUTRAL);
	task = sleeper->task;
	KUNIT_EXPECT_FALSE(test, ft_sleeps_unnamed(task));
	KUNIT_EXPECT_TRUE(test, ft_worker_watch_begin(task));
	KUNIT_EXPECT_TRUE(test, ft_sleeps_unnamed(task));
	task->fasttrack_named++;
	KUNIT_EXPECT_FALSE(test, ft_sleeps_unnamed(task));
	task->fasttrack_named--;
	fasttrack_request(fasttrack_sender(task_pid_nr(task)), 1);
	KUNIT_EXPECT_FALSE(test, ft_sleeps_unnamed(task));
	/* It has sent something, and sleeps for a lock. */
	task->fasttrack_flags = FT_TASK_LOCK;
	KUNIT_EXPECT_TRUE(test, ft_sleeps_unnamed(task));
	task->fasttrack_flags = 0;
	fasttrack_request(fasttrack_sender(task_pid_nr(task)), -1);
	KUNIT_EXPECT_TRUE(test, ft_sleeps_unnamed(task));
	ft_worker_watch_end(task);
	KUNIT_EXPECT_FALSE(test, ft_sleeps_unnamed(task));
	kthread_stop(task);
}

/* Who waits for a worker and is neutral is named, and the worker is looked at. */
static void ft_test_watch(struct kunit *test)
{
	struct ft_test_sleeper *sleeper = kunit_kzalloc(test, sizeof(*sleeper),
							GFP_KERNEL);
	struct task_struct *begun;
	u8 named = current->fasttrack_named;

	KUNIT_ASSERT_NOT_NULL(test, sleeper);
	ft_test_start(test, sleeper, FASTTRACK_NEUTRAL);
	begun = __fasttrack_wait_begin(sleeper->task);
	KUNIT_EXPECT_NOT_NULL(test, begun);
	KUNIT_EXPECT_EQ(test, current->fasttrack_named, named + 1);
	KUNIT_EXPECT_EQ(test, sleeper->task->fasttrack_waiters, 0);
	KUNIT_EXPECT_TRUE(test, ft_sleeps_unnamed(sleeper->task));
	__fasttrack_wait_end(begun);
	KUNIT_EXPECT_EQ(test, current->fasttrack_named, named);
	KUNIT_EXPECT_FALSE(test, ft_sleeps_unnamed(sleeper->task));
	kthread_stop(sleeper->task);
}

/* A look takes a bounded time however many tasks there are, and misses none. */
static void ft_test_look_in_parts(struct kunit *test)
{
	enum { NR = 40, MOST = 16 };
	struct ft_test_sleeper *sleepers = kunit_kcalloc(test, NR,
							 sizeof(*sleepers),
							 GFP_KERNEL);
	unsigned int looks = 0, seen = 0;

	KUNIT_ASSERT_NOT_NULL(test, sleepers);
	if (fasttrack_enabled())
		kunit_skip(test, "FastTrack is on");
	for (int i = 0; i < NR; i++)
		ft_test_start(test, &sleepers[i], FASTTRACK_FOREGROUND);
	ft_next_pid = 1;
	do {
		KUNIT_EXPECT_LE(test, ft_look_at_next(1, MOST), MOST);
		looks++;
	} while (ft_next_pid != 1);
	KUNIT_EXPECT_GT(test, looks, NR / MOST);
	for (int i = 0; i < NR; i++)
		seen += !!ft_test_seen(sleepers[i].task);
	KUNIT_EXPECT_EQ(test, seen, NR);
	/* They sleep on: nobody has helped them. */
	KUNIT_EXPECT_TRUE(test, ft_look_at_seen(2));
	/* Who was awake meanwhile is not stuck yet. */
	sleepers[0].task->nvcsw++;
	ft_look_at_seen(3);
	KUNIT_EXPECT_EQ(test, ft_test_seen(sleepers[0].task)->since, 3);
	KUNIT_EXPECT_EQ(test, ft_test_seen(sleepers[1].task)->since, 1);
	for (int i = 0; i < NR; i++)
		kthread_stop(sleepers[i].task);
	ft_look_at_seen(4);
	for (int i = 0; i < NR; i++)
		KUNIT_EXPECT_NULL(test, ft_test_seen(sleepers[i].task));
	ft_forget_seen();
}

/* A page has some time to come, a multiple of what others have. */
static void ft_test_page_comes(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, ft_page_comes(0, 10, false));
	KUNIT_EXPECT_TRUE(test, ft_page_comes(99, 10, false));
	KUNIT_EXPECT_FALSE(test, ft_page_comes(100, 10, false));
	KUNIT_EXPECT_FALSE(test, ft_page_comes(1, 0, false));
	KUNIT_EXPECT_TRUE(test, ft_page_comes(19, 10, true));
	KUNIT_EXPECT_FALSE(test, ft_page_comes(20, 10, true));
}

static struct kunit_case ft_stuck_test_cases[] = {
	KUNIT_CASE(ft_test_who_is_looked_at),
	KUNIT_CASE(ft_test_watch),
	KUNIT_CASE(ft_test_look_in_parts),
	KUNIT_CASE(ft_test_page_comes),
	{}
};

static struct kunit_suite ft_stuck_test_suite = {
	.name = "fasttrack_stuck",
	.test_cases = ft_stuck_test_cases,
};

kunit_test_suite(ft_stuck_test_suite);
