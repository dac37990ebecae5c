// SPDX-License-Identifier: GPL-2.0
/*
 * A catch-all for waits that nobody has named.
 *
 * A task that is not background may wait for one that is held back or paused, in
 * a place that has no hook: for a name that is looked up, an inode that is made,
 * a position in a file. While anything is held back, look every stuck_ms whether
 * such a task has slept uninterruptibly since the last look, without a request of
 * its own in a queue or device. Then everybody goes until it is awake; or for
 * FT_LIFT_LIMIT, if that does not help it: it waits for somebody else, for a server
 * that is gone or a child, and is left alone until it sleeps anew.
 *
 * What has a hook, and promotes what it waits for, says so in fasttrack_named.
 */
#include <linux/array_size.h>
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/workqueue.h>

#include <trace/events/fasttrack.h>

#include "internal.h"
#include "policy.h"

/* Tasks asleep that are remembered from one look to the next: far more than wait. */
#define FT_SLEEPERS_SEEN	64

/**
 * struct ft_asleep - a task that was asleep at a look
 * @task: compared only
 * @switches: how often it had gone to sleep
 * @lifted: since when everybody goes for it, ns; 0: nobody does
 */
struct ft_asleep {
	const struct task_struct *task;
	unsigned long switches;
	u64 lifted;
};

/* Only the work touches these. */
static struct ft_asleep ft_seen[2][FT_SLEEPERS_SEEN];
static unsigned int ft_nr_seen[2];
static unsigned int ft_look;

/* Whom that has not helped, the last ones; more than wait for one server. */
static struct ft_asleep ft_vain[256];
static unsigned int ft_nr_vain;

/* Somebody is stuck: everybody goes. */
static bool ft_stuck;

/*
 * Requests in queues and devices of those that are not background, by the sender's
 * PID; shared by some tasks.
 */
static atomic_t ft_requests[FASTTRACK_SENDERS];

static void ft_stuck_look(struct work_struct *work);
static DECLARE_DELAYED_WORK(ft_stuck_work, ft_stuck_look);

/**
 * fasttrack_request - a request is queued, or has ended
 * @sender: fasttrack_sender() of its first bio
 * @change: 1 or -1
 *
 * Context: any.
 */
void fasttrack_request(unsigned int sender, int change)
{
	atomic_add(change, &ft_requests[sender]);
}
EXPORT_SYMBOL_GPL(fasttrack_request);

/* Is there a task for which nobody is to pause? */
bool ft_anybody_stuck(void)
{
	return READ_ONCE(ft_stuck);
}

static void ft_look_later(u64 every)
{
	queue_delayed_work(ft_workqueue, &ft_stuck_work,
			   nsecs_to_jiffies(every) + 1);
}

/**
 * fasttrack_holds - something is held back from now on
 *
 * Context: any.
 */
void fasttrack_holds(void)
{
	u64 every = READ_ONCE(ft_knobs.stuck);

	if (every && !delayed_work_pending(&ft_stuck_work))
		ft_look_later(every);
}
EXPORT_SYMBOL_GPL(fasttrack_holds);

/* Is @task a background app's, killed or not? */
static bool ft_is_behind(struct task_struct *task)
{
	return __fasttrack_task_class(task) == FASTTRACK_BACKGROUND ||
	       (fatal_signal_pending(task) &&
		fasttrack_app_class(ft_app_of(task)) == FASTTRACK_BACKGROUND);
}

/* Does @task sleep, and for nothing that has a name or a request? */
static bool ft_sleeps_unnamed(struct task_struct *task)
{
	unsigned int state = READ_ONCE(task->__state);

	if (!(state & TASK_UNINTERRUPTIBLE) || (state & TASK_NOLOAD) ||
	    READ_ONCE(task->fasttrack_named))
		return false;
	if (atomic_read(&ft_requests[fasttrack_sender(task_pid_nr(task))]) > 0)
		return false;
	if (!ft_is_user_task(task))
		return READ_ONCE(task->fasttrack_waiters);
	return !ft_is_behind(task);
}

/* @asleep among @nr that were @seen, if it has slept ever since. */
static const struct ft_asleep *ft_slept_on(const struct ft_asleep *seen,
					   unsigned int nr,
					   const struct ft_asleep *asleep)
{
	for (unsigned int i = 0; i < nr; i++)
		if (seen[i].task == asleep->task &&
		    seen[i].switches == asleep->switches)
			return &seen[i];
	return NULL;
}

static void ft_remember(const struct ft_asleep *asleep)
{
	if (ft_nr_seen[ft_look] < FT_SLEEPERS_SEEN)
		ft_seen[ft_look][ft_nr_seen[ft_look]++] = *asleep;
}

/* Is @asleep stuck, and may be helped? It is remembered. */
static bool ft_is_stuck(struct ft_asleep *asleep, u64 now)
{
	const struct ft_asleep *last =
		ft_slept_on(ft_seen[!ft_look], ft_nr_seen[!ft_look], asleep);

	if (ft_slept_on(ft_vain, ARRAY_SIZE(ft_vain), asleep))
		return false;
	if (last)
		asleep->lifted = last->lifted ?: (ft_stuck ? now : 0);
	if (ft_lift_in_vain(asleep->lifted, now)) {
		ft_vain[ft_nr_vain++ % ARRAY_SIZE(ft_vain)] = *asleep;
		fasttrack_count(FASTTRACK_STUCK_VAIN);
		return false;
	}
	ft_remember(asleep);
	return last;
}

/* Look at all tasks. Returns whether one is stuck. */
static bool ft_look_at_all(u64 now)
{
	struct task_struct *process, *task;
	bool stuck = false;

	ft_look = !ft_look;
	ft_nr_seen[ft_look] = 0;
	rcu_read_lock();
	for_each_process_thread(process, task) {
		struct ft_asleep asleep = {
			.task = task,
			.switches = READ_ONCE(task->nvcsw),
		};

		if (!ft_sleeps_unnamed(task) || !ft_is_stuck(&asleep, now))
			continue;
		if (!stuck && !ft_stuck) {
			fasttrack_count(FASTTRACK_STUCK);
			trace_fasttrack_stuck(task);
		}
		stuck = true;
	}
	rcu_read_unlock();
	return stuck;
}

static void ft_stuck_set(bool stuck)
{
	if (ft_stuck == stuck)
		return;
	WRITE_ONCE(ft_stuck, stuck);
	if (stuck) {
		ft_lift_begin();
		ft_kick(false);
		ft_idle_wake();
	} else {
		ft_lift_end();
	}
}

static void ft_stuck_look(struct work_struct *work)
{
	u64 every = READ_ONCE(ft_knobs.stuck);

	ft_stuck_set(every && fasttrack_enabled() &&
		     ft_look_at_all(ktime_get_ns()));
	/* Who is held back later says so. But for whom everybody goes ends that. */
	if (ft_stuck || (every && ft_foreground_works()))
		ft_look_later(every);
	else
		ft_nr_seen[ft_look] = 0;
}
