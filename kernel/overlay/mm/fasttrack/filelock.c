// SPDX-License-Identifier: GPL-2.0
/*
 * Who has a lock of a file that others want does not pause: flock(2) and fcntl(2).
 *
 * A pause is where a task holds nothing of the kernel's. Locks of files it may have. The
 * process that took one that somebody wants who is not background does not pause
 * while that one waits; nor, if it does not wait but tries again, as SQLite does, for
 * FT_REFUSED_MS after each time.
 */
#include <linux/array_size.h>
#include <linux/jiffies.h>
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

/* Nobody has tried any more for a while: they pause again. */
static void ft_refusers_look(struct work_struct *work)
{
	bool any = false;

	spin_lock(&ft_refusers_lock);
	for (unsigned int i = 0; i < ARRAY_SIZE(ft_refusers); i++) {
		struct ft_refuser *refuser = &ft_refusers[i];

		if (refuser->leader && time_after_eq(jiffies, refuser->until)) {
			__fasttrack_process_wait_end(refuser->leader);
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

/**
 * __fasttrack_process_wait_begin - current is about to wait for a process
 * @pid: of its leader, in the initial PID namespace; 0 or less: nobody knows whose
 *
 * For waits that a signal ends: current does not count as working, nor as stuck. The
 * process, if it is background, does not pause meanwhile; its requests stay
 * background's.
 *
 * Context: process context; does not sleep.
 * Return: the leader with a reference, or NULL if nothing comes of it.
 */
struct task_struct *__fasttrack_process_wait_begin(pid_t pid)
{
	struct task_struct *leader;

	if (pid <= 0 || __fasttrack_task_class(current) == FASTTRACK_BACKGROUND)
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
	ft_wake_all();
	return leader;
}

/**
 * __fasttrack_process_wait_end - the wait is over
 * @leader: result of __fasttrack_process_wait_begin()
 */
void __fasttrack_process_wait_end(struct task_struct *leader)
{
	ft_worker_watch_end(leader);
	put_task_struct(leader);
}

/**
 * __fasttrack_lock_refused - current does not get a lock of a file, and does not wait
 * @pid: of the process that has it, as above
 *
 * Context: any process context; does not sleep.
 */
void __fasttrack_lock_refused(pid_t pid)
{
	struct task_struct *leader = __fasttrack_process_wait_begin(pid);
	struct ft_refuser *refuser;

	if (!leader)
		return;
	spin_lock(&ft_refusers_lock);
	refuser = ft_refuser_of(leader);
	if (refuser) {
		swap(refuser->leader, leader);
		refuser->until = jiffies + msecs_to_jiffies(FT_REFUSED_MS);
	}
	spin_unlock(&ft_refusers_lock);
	/* It was there already, or there is no room. */
	if (leader)
		__fasttrack_process_wait_end(leader);
	if (refuser)
		ft_refusers_look_later();
}
