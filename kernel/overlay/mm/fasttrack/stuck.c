// SPDX-License-Identifier: GPL-2.0
/*
 * A catch-all for waits that nobody has named.
 *
 * A task that is not background may wait for one that is held back or paused, in
 * a place that has no hook: for a name that is looked up, an inode that is made,
 * a position in a file. While anything is held back, look every stuck_ms whether
 * such a task has slept uninterruptibly since the last look, without a request of
 * its own in a queue or device. Then everybody goes until it is awake.
 *
 * What has a hook, and promotes what it waits for, says so in fasttrack_named.
 */
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/workqueue.h>

#include <trace/events/fasttrack.h>

#include "internal.h"

/* Tasks asleep that are remembered from one look to the next: far more than wait. */
#define FT_SLEEPERS_SEEN	64

/**
 * struct ft_asleep - a task that was asleep at a look
 * @task: compared only
 * @switches: how often it had gone to sleep
 */
struct ft_asleep {
	const struct task_struct *task;
	unsigned long switches;
};

/* Only the work touches these. */
static struct ft_asleep ft_seen[2][FT_SLEEPERS_SEEN];
static unsigned int ft_nr_seen[2];
static unsigned int ft_look;

/* Somebody is stuck: everybody goes. */
static bool ft_stuck;

/* Requests in queues and devices, by the sender's PID; shared by some tasks. */
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

/**
 * fasttrack_holds - something is held back from now on
 *
 * Context: any.
 */
void fasttrack_holds(void)
{
	unsigned long every = READ_ONCE(ft_knobs.stuck);

	if (every && !delayed_work_pending(&ft_stuck_work))
		queue_delayed_work(system_unbound_wq, &ft_stuck_work,
				   nsecs_to_jiffies(every) + 1);
}
EXPORT_SYMBOL_GPL(fasttrack_holds);

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
	return __fasttrack_task_class(task) != FASTTRACK_BACKGROUND;
}

/* Was @task, which sleeps now, asleep at the last look, and ever since? */
static bool ft_slept_on(const struct task_struct *task, unsigned long switches)
{
	unsigned int last = !ft_look;

	for (unsigned int i = 0; i < ft_nr_seen[last]; i++)
		if (ft_seen[last][i].task == task)
			return ft_seen[last][i].switches == switches;
	return false;
}

static void ft_remember(const struct task_struct *task, unsigned long switches)
{
	unsigned int nr = ft_nr_seen[ft_look];

	if (nr == FT_SLEEPERS_SEEN)
		return;
	ft_seen[ft_look][nr] = (struct ft_asleep){ task, switches };
	ft_nr_seen[ft_look]++;
}

/* Look at all tasks. Returns whether one is stuck. */
static bool ft_look_at_all(void)
{
	struct task_struct *process, *task;
	bool stuck = false;

	ft_look = !ft_look;
	ft_nr_seen[ft_look] = 0;
	rcu_read_lock();
	for_each_process_thread(process, task) {
		unsigned long switches = READ_ONCE(task->nvcsw);

		if (!ft_sleeps_unnamed(task))
			continue;
		ft_remember(task, switches);
		if (!ft_slept_on(task, switches))
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
	ft_stuck_set(fasttrack_enabled() && ft_look_at_all());
	/* Who is held back later says so. */
	if (ft_stuck || ft_foreground_works())
		fasttrack_holds();
	else
		ft_nr_seen[ft_look] = 0;
}
