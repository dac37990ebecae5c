// SPDX-License-Identifier: GPL-2.0
/*
 * Activity: does the foreground work?
 *
 * It works while it has a request in the device, or one of its tasks sleeps in
 * the kernel for the storage, for memory or for somebody who does. What it finds
 * in the page cache, and what it computes, is no work: nobody is in its way.
 *
 * That one more of many sleeps, or has woken, changes a count and nothing else: the
 * lock is for the first and the last one.
 *
 * An idle window follows, since its next request often depends on the last. The
 * window is paid for (ft_credit_worked()): who works little has little of it.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "internal.h"
#include "policy.h"

/*
 * Guards what the foreground does, save the counts in it that are atomic. Taken in
 * interrupts, inside everything. Who reads it only takes no lock.
 */
static DEFINE_RAW_SPINLOCK(ft_activity_lock);
static seqcount_raw_spinlock_t ft_activity_seq =
	SEQCNT_RAW_SPINLOCK_ZERO(ft_activity_seq, &ft_activity_lock);
static struct ft_activity ft_activity;

#define FT_QUEUE(queue) \
	[queue] = __WAIT_QUEUE_HEAD_INITIALIZER(ft_wait_queues[queue])

/* Who waits until the foreground does not work any more. */
static struct wait_queue_head ft_wait_queues[FT_NR_QUEUES] = {
	FT_QUEUE(FT_QUEUE_IDLE),
	FT_QUEUE(FT_QUEUE_TAGS),
	FT_QUEUE(FT_QUEUE_FLUSHER),
};

/* When that may be. */
static struct hrtimer ft_idle_timer;

/* Does anybody wait, as far as current can see without a barrier? */
static bool ft_has_waiter(enum ft_wait_queue queue)
{
	/* The caller has one, or can miss who comes now. */
	return waitqueue_active(&ft_wait_queues[queue]);
}

/* What it does now. */
struct ft_activity ft_activity_read(void)
{
	struct ft_activity activity;
	unsigned int seq;

	do {
		seq = read_seqcount_begin(&ft_activity_seq);
		/* Counts in it change any time: who reads takes one of them. */
		activity = data_race(ft_activity);
	} while (read_seqcount_retry(&ft_activity_seq, seq));
	return activity;
}

static bool ft_works_now(void)
{
	struct ft_activity activity = ft_activity_read();

	return ft_works(&activity, ktime_get_ns());
}

/* In a soft interrupt: all who wait are woken at once. */
static void ft_idle_timer_start(const struct ft_activity *activity)
{
	hrtimer_start(&ft_idle_timer,
		      ns_to_ktime(activity->last + activity->window),
		      HRTIMER_MODE_ABS_SOFT);
}

/**
 * ft_wake - what they wait for may be there
 * @queue: whose
 *
 * Context: any. What they look at has been written before.
 */
void ft_wake(enum ft_wait_queue queue)
{
	if (wq_has_sleeper(&ft_wait_queues[queue]))
		wake_up_all(&ft_wait_queues[queue]);
}

/**
 * ft_wake_one - it may be there for the one that waits longest
 * @queue: whose; FT_QUEUE_TAGS
 *
 * Return: whether others wait.
 */
bool ft_wake_one(enum ft_wait_queue queue)
{
	if (wq_has_sleeper(&ft_wait_queues[queue]))
		wake_up(&ft_wait_queues[queue]);
	return ft_has_waiter(queue);
}

/* Whatever they wait for has another reason now, or none. */
void ft_wake_all(void)
{
	for (int i = 0; i < FT_NR_QUEUES; i++)
		ft_wake(i);
}

static enum hrtimer_restart ft_idle_timer_fn(struct hrtimer *timer)
{
	struct ft_activity activity = ft_activity_read();
	u64 now = ktime_get_ns();

	if (!ft_works(&activity, now))
		ft_wake_all();
	else if (!ft_busy(&activity, now))
		/* Who started it last knew of a window that had begun before. */
		ft_idle_timer_start(&activity);
	/* If it works again, the next idle window starts it. */
	return HRTIMER_NORESTART;
}

/* The idle window has begun: those who wait for its end. */
static void ft_idle_begins(const struct ft_activity *activity)
{
	/* Pairs with the barrier in prepare_to_wait() of ft_idle_wait(). */
	smp_mb();
	/* Who comes to wait after that sees that the window has begun. */
	for (int i = 0; i < FT_NR_QUEUES; i++) {
		if (ft_has_waiter(i)) {
			ft_idle_timer_start(activity);
			break;
		}
	}
}

/* Its tasks asleep become one more or less, and requests under way so many. */
static void ft_activity_change(int asleep, int in_flight)
{
	u64 longest = READ_ONCE(ft_knobs.idle_window);
	struct ft_activity activity;
	u64 now = ktime_get_ns();
	unsigned long flags;
	bool idle, counts = true;

	if ((asleep || in_flight) &&
	    ft_activity_goes_on(&ft_activity, asleep, in_flight, now))
		return;
	raw_spin_lock_irqsave(&ft_activity_lock, flags);
	write_seqcount_begin(&ft_activity_seq);
	if (!ft_busy(&ft_activity, now))
		ft_credit_idle(&ft_activity, longest, now);
	if (asleep > 0)
		ft_waiters_begin(&ft_activity.asleep, now);
	else if (asleep < 0)
		counts = ft_waiters_end(&ft_activity.asleep, now);
	atomic_add(in_flight, &ft_activity.in_flight);
	ft_activity.seen = true;
	ft_activity.last = max(ft_activity.last, now);
	idle = !ft_busy(&ft_activity, now);
	if (idle)
		ft_credit_worked(&ft_activity, longest, now);
	if (!counts || atomic_read(&ft_activity.in_flight) < 0) {
		if (atomic_read(&ft_activity.in_flight) < 0)
			atomic_set(&ft_activity.in_flight, 0);
		fasttrack_eject("count", 0, "-", 0);
	}
	/* As in ft_activity_read(). */
	activity = data_race(ft_activity);
	write_seqcount_end(&ft_activity_seq);
	raw_spin_unlock_irqrestore(&ft_activity_lock, flags);

	if (idle)
		ft_idle_begins(&activity);
}

/* The foreground has done something. */
void ft_activity_note(void)
{
	ft_activity_change(0, 0);
}

/* A foreground task is about to sleep in the kernel. */
void ft_activity_sleep(void)
{
	ft_activity_change(1, 0);
}

/* It has slept. */
void ft_activity_wake(void)
{
	ft_activity_change(-1, 0);
}

/* Does the foreground work now? */
bool ft_foreground_works(void)
{
	return READ_ONCE(ft_knobs.page_allocator) && ft_works_now();
}

/**
 * ft_idle_wait - sleep until the foreground may not work any more
 * @queue: by what else current waits for; FT_QUEUE_TAGS may be woken one by one
 * @state: how
 * @ns: longest
 * @may: whether to sleep at all, asked when current is found by who wakes
 * @what: given to @may, which does not sleep
 *
 * Also ended by ft_wake() for the queue, ft_wake_all(), and what wakes @state.
 */
void ft_idle_wait(enum ft_wait_queue queue, unsigned int state, u64 ns,
		  bool (*may)(void *what), void *what)
{
	ktime_t timeout = ns_to_ktime(ns);
	u64 now = ktime_get_ns();
	DEFINE_WAIT(wait);

	/* Who changes current's class sees this, or @may sees the change. */
	ft_flag(FT_TASK_PAUSED, true);
	if (queue == FT_QUEUE_TAGS)
		prepare_to_wait_exclusive(&ft_wait_queues[queue], &wait, state);
	else
		prepare_to_wait(&ft_wait_queues[queue], &wait, state);
	if (may(what)) {
		struct ft_activity activity = ft_activity_read();

		/*
		 * Who waits first starts the timer of a window under way. Of one
		 * that is over current waits for something else.
		 */
		if (!ft_busy(&activity, now) && ft_works(&activity, now))
			ft_idle_begins(&activity);
		schedule_hrtimeout(&timeout, HRTIMER_MODE_REL);
	}
	finish_wait(&ft_wait_queues[queue], &wait);
	ft_flag(FT_TASK_PAUSED, false);
}

/* Does any task of an app's pause? */
bool ft_anybody_paused(void)
{
	/* Who comes later says so itself: fasttrack_holds(). */
	return ft_has_waiter(FT_QUEUE_IDLE) ||
	       ft_has_waiter(FT_QUEUE_TAGS);
}

/**
 * fasttrack_foreground_io - requests of the foreground's have come to the device,
 *	or have left it
 * @change: how many
 *
 * Context: any.
 */
void fasttrack_foreground_io(int change)
{
	ft_activity_change(0, change);
}
EXPORT_SYMBOL_GPL(fasttrack_foreground_io);

/**
 * fasttrack_idle_window - how long the foreground works after its last request
 *
 * Context: any.
 * Return: ns, 0 for one whose window is used up.
 */
u64 fasttrack_idle_window(void)
{
	return READ_ONCE(ft_activity.window);
}
EXPORT_SYMBOL_GPL(fasttrack_idle_window);

static int __init ft_activity_init(void)
{
	hrtimer_init(&ft_idle_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	ft_idle_timer.function = ft_idle_timer_fn;
	return 0;
}
core_initcall(ft_activity_init);

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/activity-kunit.h"
#endif
