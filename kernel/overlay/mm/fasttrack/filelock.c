// SPDX-License-Identifier: GPL-2.0
/*
 * Who has a lock of a file that others want does not pause: flock(2) and fcntl(2).
 *
 * A pause is where a task holds nothing of the kernel's. Locks of files it may have. The
 * process that took one that somebody wants who is not background does not pause
 * while that one waits; nor, if it does not wait but tries again, as SQLite does, for
 * FT_REFUSED_MS after each time.
 *
 * Classes change, and who waits behind others gets another holder ahead of it whenever one
 * of them has got the lock. Waits are judged anew when somebody comes to the front, and
 * while anybody is held back (stuck.c).
 */
#include <linux/array_size.h>
#include <linux/filelock.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "internal.h"

/* Twice the longest time between two tries of SQLite's. */
#define FT_REFUSED_MS	200

/* So many waits are judged at a time. */
#define FT_FILE_LOCK_WAITS_LOOK	64

/* All of them, those that were judged last at the end. */
static LIST_HEAD(ft_file_lock_waits);
static DEFINE_MUTEX(ft_file_lock_waits_mutex);

/**
 * struct ft_refuser - a process whose lock somebody has tried to get
 * @leader: referenced and watched; NULL: nobody
 * @until: how long it does not pause, jiffies
 */
struct ft_refuser {
	struct task_struct *leader;
	unsigned long until;
};

/* Written under the lock. */
static struct ft_refuser ft_refusers[16];
static DEFINE_SPINLOCK(ft_refusers_lock);

static void ft_refusers_look(struct work_struct *work);
static DECLARE_DELAYED_WORK(ft_refusers_work, ft_refusers_look);

static void ft_refusers_look_later(void)
{
	queue_delayed_work(ft_workqueue, &ft_refusers_work,
			   msecs_to_jiffies(FT_REFUSED_MS));
}

/*
 * The process @pid, if it is background and does not pause from now on.
 * Return: its leader, referenced and watched, or NULL.
 */
static struct task_struct *ft_holder_watch(pid_t pid)
{
	struct task_struct *leader;

	if (pid <= 0)
		return NULL;
	rcu_read_lock();
	leader = find_task_by_pid_ns(pid, &init_pid_ns);
	if (leader)
		get_task_struct(leader);
	rcu_read_unlock();
	if (!leader)
		return NULL;
	if (__fasttrack_task_class(leader) != FASTTRACK_BACKGROUND ||
	    !ft_worker_watch_begin(leader)) {
		put_task_struct(leader);
		return NULL;
	}
	return leader;
}

/* It pauses again. */
static void ft_holder_unwatch(struct task_struct *leader)
{
	if (!leader)
		return;
	ft_worker_watch_end(leader);
	put_task_struct(leader);
}

/* Nobody has tried any more for a while: they pause again. */
static void ft_refusers_look(struct work_struct *work)
{
	bool any = false;

	spin_lock(&ft_refusers_lock);
	for (unsigned int i = 0; i < ARRAY_SIZE(ft_refusers); i++) {
		struct ft_refuser *refuser = &ft_refusers[i];

		if (refuser->leader && time_after_eq(jiffies, refuser->until)) {
			ft_holder_unwatch(refuser->leader);
			refuser->leader = NULL;
		}
		any |= !!refuser->leader;
	}
	spin_unlock(&ft_refusers_lock);
	if (any)
		ft_refusers_look_later();
}

/* The entry of @leader, or an empty one; NULL if there is none. */
static struct ft_refuser *ft_refuser_of(const struct task_struct *leader)
{
	struct ft_refuser *empty = NULL;

	for (unsigned int i = 0; i < ARRAY_SIZE(ft_refusers); i++) {
		if (ft_refusers[i].leader == leader)
			return &ft_refusers[i];
		if (!ft_refusers[i].leader)
			empty = &ft_refusers[i];
	}
	return empty;
}

/* Whom does @wait keep from pausing by now? */
static void ft_file_lock_wait_judge(struct fasttrack_file_lock_wait *wait)
{
	struct task_struct *before = wait->holder;

	wait->holder = NULL;
	if (__fasttrack_task_class(wait->waiter) != FASTTRACK_BACKGROUND)
		wait->holder = ft_holder_watch(locks_holder_pid(wait->lock));
	if (wait->holder && wait->holder != before)
		ft_wake_all();
	ft_holder_unwatch(before);
}

/**
 * __fasttrack_file_lock_wait_begin - current is about to wait for a lock of a file
 * @wait: filled in; stays until __fasttrack_file_lock_wait_end()
 * @lock: what current asks for, which is blocked
 *
 * For waits that a signal ends: current does not count as working, nor as stuck. The
 * process that has the lock, if it is background, does not pause meanwhile; its requests
 * stay background's.
 *
 * Context: may sleep.
 */
void __fasttrack_file_lock_wait_begin(struct fasttrack_file_lock_wait *wait,
				      struct file_lock_core *lock)
{
	*wait = (struct fasttrack_file_lock_wait){
		.waiter = current,
		.lock = lock,
	};
	mutex_lock(&ft_file_lock_waits_mutex);
	list_add(&wait->node, &ft_file_lock_waits);
	ft_file_lock_wait_judge(wait);
	mutex_unlock(&ft_file_lock_waits_mutex);
}

/**
 * __fasttrack_file_lock_wait_end - the wait is over
 * @wait: what __fasttrack_file_lock_wait_begin() has filled in
 *
 * Context: may sleep.
 */
void __fasttrack_file_lock_wait_end(struct fasttrack_file_lock_wait *wait)
{
	mutex_lock(&ft_file_lock_waits_mutex);
	list_del(&wait->node);
	ft_holder_unwatch(wait->holder);
	mutex_unlock(&ft_file_lock_waits_mutex);
}

/**
 * ft_file_lock_waits_look - judge those waits that were not for the longest time
 *
 * Context: may sleep.
 */
void ft_file_lock_waits_look(void)
{
	struct fasttrack_file_lock_wait *wait, *next;
	unsigned int left = FT_FILE_LOCK_WAITS_LOOK;
	LIST_HEAD(judged);

	if (list_empty(&ft_file_lock_waits))
		return;
	mutex_lock(&ft_file_lock_waits_mutex);
	list_for_each_entry_safe(wait, next, &ft_file_lock_waits, node) {
		if (!left--)
			break;
		ft_file_lock_wait_judge(wait);
		list_move_tail(&wait->node, &judged);
	}
	list_splice_tail(&judged, &ft_file_lock_waits);
	mutex_unlock(&ft_file_lock_waits_mutex);
}

/**
 * __fasttrack_lock_refused - current does not get a lock of a file, and does not wait
 * @pid: of the process that has it, in the initial PID namespace; 0 or less: nobody knows
 *
 * Context: any process context; does not sleep.
 */
void __fasttrack_lock_refused(pid_t pid)
{
	struct task_struct *leader = NULL;
	struct ft_refuser *refuser;

	if (__fasttrack_task_class(current) != FASTTRACK_BACKGROUND)
		leader = ft_holder_watch(pid);
	if (!leader)
		return;
	ft_wake_all();
	spin_lock(&ft_refusers_lock);
	refuser = ft_refuser_of(leader);
	if (refuser) {
		swap(refuser->leader, leader);
		refuser->until = jiffies + msecs_to_jiffies(FT_REFUSED_MS);
	}
	spin_unlock(&ft_refusers_lock);
	/* It was there already, or there is no room. */
	ft_holder_unwatch(leader);
	if (refuser)
		ft_refusers_look_later();
}
