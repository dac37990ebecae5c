/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of what the foreground sleeps on, included by depend.c. */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/rwsem.h>
#include <linux/sched/signal.h>

static struct fasttrack_sleeper ft_test_sleeper(const struct address_space *file)
{
	return (struct fasttrack_sleeper){ .file = file, .pages = 1 };
}

static void ft_test_sleep(struct kunit *test)
{
	struct address_space *file = kunit_kzalloc(test, 2 * sizeof(*file),
						   GFP_KERNEL);
	unsigned int first, second;

	KUNIT_ASSERT_NOT_NULL(test, file);
	if (ft_nr_sleepers)
		kunit_skip(test, "the foreground sleeps");
	KUNIT_EXPECT_FALSE(test, ft_file_is_waited_for(NULL));
	KUNIT_EXPECT_FALSE(test, ft_file_is_waited_for(file));

	/* Two tasks, one file; and one on a block device. */
	first = ft_sleep_begin(ft_test_sleeper(file));
	second = ft_sleep_begin(ft_test_sleeper(file));
	ft_sleep_end(ft_sleep_begin(ft_test_sleeper(NULL)));
	KUNIT_EXPECT_TRUE(test, ft_file_is_waited_for(file));
	KUNIT_EXPECT_FALSE(test, ft_file_is_waited_for(file + 1));
	ft_sleep_end(first | FT_WAIT_FOREGROUND | FT_WAIT_OTHERS);
	KUNIT_EXPECT_TRUE(test, ft_file_is_waited_for(file));
	ft_sleep_end(second);
	KUNIT_EXPECT_FALSE(test, ft_file_is_waited_for(file));
}

static void ft_test_sleep_many(struct kunit *test)
{
	struct address_space *files = kunit_kcalloc(test, FASTTRACK_SLEEPERS + 1,
						    sizeof(*files), GFP_KERNEL);
	unsigned int done[FASTTRACK_SLEEPERS];

	KUNIT_ASSERT_NOT_NULL(test, files);
	if (ft_nr_sleepers)
		kunit_skip(test, "the foreground sleeps");
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS; i++)
		done[i] = ft_sleep_begin(ft_test_sleeper(&files[i]));
	/* No room: nobody knows of it, and there is nothing to end. */
	KUNIT_EXPECT_EQ(test, ft_sleep_begin(ft_test_sleeper(files)), 0);
	ft_sleep_end(0);
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS; i++) {
		KUNIT_EXPECT_TRUE(test, ft_file_is_waited_for(&files[i]));
		ft_sleep_end(done[i]);
		KUNIT_EXPECT_FALSE(test, ft_file_is_waited_for(&files[i]));
	}
	KUNIT_EXPECT_EQ(test, ft_nr_sleepers, 0);
}

static void ft_test_op_sleep(struct kunit *test)
{
	struct folio *folios = kunit_kcalloc(test, FASTTRACK_SLEEPERS + 1,
					     sizeof(*folios), GFP_KERNEL);
	unsigned int done[FASTTRACK_SLEEPERS], sleepers = ft_nr_sleepers;

	KUNIT_ASSERT_NOT_NULL(test, folios);
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS; i++)
		if (ft_op_folios[i])
			kunit_skip(test, "operations are open");
	/* Lookups leave room for operations. */
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS / 2; i++)
		done[i] = ft_op_sleep_begin(&folios[i], true);
	KUNIT_EXPECT_EQ(test, ft_op_sleep_begin(&folios[FASTTRACK_SLEEPERS], true), 0);
	for (unsigned int i = FASTTRACK_SLEEPERS / 2; i < FASTTRACK_SLEEPERS; i++)
		done[i] = ft_op_sleep_begin(&folios[i], false);
	KUNIT_EXPECT_EQ(test, ft_op_sleep_begin(&folios[FASTTRACK_SLEEPERS], false), 0);
	/* The foreground sleeps on none of them. */
	KUNIT_EXPECT_EQ(test, ft_nr_sleepers, sleepers);
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS; i++) {
		KUNIT_EXPECT_PTR_EQ(test, ft_op_folios[i],
				    (const struct folio *)&folios[i]);
		ft_sleep_end(done[i] | FT_WAIT_SHOWN);
		KUNIT_EXPECT_NULL(test, ft_op_folios[i]);
	}
	KUNIT_EXPECT_EQ(test, ft_nr_sleepers, sleepers);
}

/* A wait of a worker's inside another one of its own counts once. */
static void ft_test_others_nest(struct kunit *test)
{
	struct fasttrack_scope outer = __fasttrack_scope_enter(FASTTRACK_NEUTRAL,
							       FASTTRACK_CAUSE_NONE);
	bool first, second;

	if (ft_depends()) {
		__fasttrack_scope_leave(outer);
		kunit_skip(test, "the foreground depends");
	}
	first = __fasttrack_others_begin(NULL);
	second = __fasttrack_others_begin(NULL);
	KUNIT_EXPECT_TRUE(test, first);
	KUNIT_EXPECT_FALSE(test, second);
	/* A foreground task comes and waits for the worker. */
	ft_worker_wait_begin(current);
	KUNIT_EXPECT_TRUE(test, ft_depends());
	__fasttrack_others_end();
	KUNIT_EXPECT_FALSE(test, ft_depends());
	ft_worker_wait_end(current);
	KUNIT_EXPECT_FALSE(test, ft_depends());
	__fasttrack_scope_leave(outer);
}

/* A lock, and who holds it for some time. */
struct ft_test_lock {
	struct rw_semaphore sem;
	struct completion held, release;
};

static int ft_test_holder(void *data)
{
	struct ft_test_lock *lock = data;

	down_write(&lock->sem);
	complete(&lock->held);
	wait_for_completion(&lock->release);
	/* Longer than it takes the other one to fall asleep. */
	msleep(50);
	up_write(&lock->sem);
	return 0;
}

/* Take the lock as the foreground would, if @killed with a signal pending. */
static int ft_test_lock_as_foreground(struct ft_test_lock *lock, bool killed)
{
	struct fasttrack_scope outer;
	int ret;

	outer = __fasttrack_scope_enter(FASTTRACK_FOREGROUND,
					FASTTRACK_CAUSE_NONE);
	if (killed) {
		sigaddset(&current->pending.signal, SIGKILL);
		set_thread_flag(TIF_SIGPENDING);
	}
	ret = down_read_killable(&lock->sem);
	if (killed) {
		sigdelset(&current->pending.signal, SIGKILL);
		clear_thread_flag(TIF_SIGPENDING);
	}
	__fasttrack_scope_leave(outer);
	return ret;
}

/* Who wants a lock depends on its holder from when it sleeps, not before. */
static void ft_test_lock_sleep(struct kunit *test)
{
	struct ft_test_lock *lock = kunit_kzalloc(test, sizeof(*lock), GFP_KERNEL);
	bool enabled = fasttrack_enabled();
	struct task_struct *holder;
	unsigned long before;

	KUNIT_ASSERT_NOT_NULL(test, lock);
	init_rwsem(&lock->sem);
	init_completion(&lock->held);
	init_completion(&lock->release);
	holder = kthread_create(ft_test_holder, lock, "ft_test_holder");
	KUNIT_ASSERT_FALSE(test, IS_ERR(holder));
	get_task_struct(holder);
	wake_up_process(holder);
	wait_for_completion(&lock->held);
	ft_set_enabled(true);

	/* It finds the lock taken, and does not get to sleep. */
	before = ft_stat_read(FASTTRACK_DEPENDED);
	KUNIT_EXPECT_EQ(test, ft_test_lock_as_foreground(lock, true), -EINTR);
	KUNIT_EXPECT_EQ(test, ft_stat_read(FASTTRACK_DEPENDED), before);

	complete(&lock->release);
	KUNIT_EXPECT_EQ(test, ft_test_lock_as_foreground(lock, false), 0);
	KUNIT_EXPECT_EQ(test, ft_stat_read(FASTTRACK_DEPENDED), before + 1);
	KUNIT_EXPECT_FALSE(test, ft_depends());
	up_read(&lock->sem);

	ft_set_enabled(enabled);
	kthread_stop_put(holder);
}

static struct kunit_case ft_depend_test_cases[] = {
	KUNIT_CASE(ft_test_sleep),
	KUNIT_CASE(ft_test_sleep_many),
	KUNIT_CASE(ft_test_op_sleep),
	KUNIT_CASE(ft_test_others_nest),
	KUNIT_CASE(ft_test_lock_sleep),
	{}
};

static struct kunit_suite ft_depend_test_suite = {
	.name = "fasttrack_depend",
	.test_cases = ft_depend_test_cases,
};

kunit_test_suite(ft_depend_test_suite);
