// SPDX-License-Identifier: GPL-2.0
/*
 * The safety net: FastTrack switches itself off rather than keep somebody waiting.
 *
 * Whoever sees that a bound does not hold says so, once: a pause or a hold that has
 * lasted for eject_ms, a count that cannot be. Everybody goes, the reason is in the
 * log and in the file "ejected", and FastTrack stays off until it is switched on
 * again. SysRq-F does the same.
 */
#include <linux/blkdev.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/sysrq.h>
#include <linux/workqueue.h>

#include "internal.h"

/**
 * struct ft_ejection - why FastTrack has switched itself off
 * @why: what did not hold; empty: it has not
 * @pid: whose wait; 0: nobody's
 * @comm: likewise, its name
 * @where: at what, a disk for one
 * @ns: how long it was
 * @front: who was in front then, the first of them
 */
struct ft_ejection {
	char why[16];
	pid_t pid;
	char comm[TASK_COMM_LEN];
	char where[DISK_NAME_LEN];
	u64 ns;
	char front[FT_FRONT_LEN];
};

/* Taken in interrupts, inside everything. */
static DEFINE_RAW_SPINLOCK(ft_eject_lock);
static struct ft_ejection ft_ejection;

/*
 * For what helps those who wait: in time whatever else works, and without memory.
 */
struct workqueue_struct *ft_workqueue;

/* Switches off; set once, by who can. */
static void (*ft_eject_off)(void);

static void ft_eject_do(struct work_struct *work)
{
	ft_eject_off();
}

static DECLARE_WORK(ft_eject_work, ft_eject_do);

/**
 * fasttrack_eject - a bound does not hold: switch FastTrack off
 * @why: which
 * @pid: of who waits, in the initial PID namespace; 0: nobody
 * @where: at what: a disk, a part of FastTrack; or "-"
 * @ns: for how long
 *
 * Context: any.
 */
void fasttrack_eject(const char *why, pid_t pid, const char *where, u64 ns)
{
	unsigned long flags;
	bool first;

	raw_spin_lock_irqsave(&ft_eject_lock, flags);
	first = !ft_eject_stands();
	if (first) {
		strscpy(ft_ejection.why, why);
		ft_ejection.pid = pid;
		strscpy(ft_ejection.comm, "-");
		strscpy(ft_ejection.where, where);
		ft_ejection.ns = ns;
		strscpy(ft_ejection.front, "-");
	}
	raw_spin_unlock_irqrestore(&ft_eject_lock, flags);
	if (first)
		queue_work(ft_workqueue, &ft_eject_work);
}
EXPORT_SYMBOL_GPL(fasttrack_eject);

/**
 * fasttrack_eject_bound - how long anybody may be kept waiting
 *
 * Context: any.
 * Return: ns.
 */
u64 fasttrack_eject_bound(void)
{
	return READ_ONCE(ft_knobs.eject);
}
EXPORT_SYMBOL_GPL(fasttrack_eject_bound);

/**
 * ft_eject_name - say whose wait it was, as long as that one is there, and behind whom
 * @front: who is in front
 *
 * Context: process context.
 */
void ft_eject_name(const char *front)
{
	char comm[TASK_COMM_LEN] = "-";
	struct task_struct *task;
	unsigned long flags;

	rcu_read_lock();
	task = find_task_by_pid_ns(READ_ONCE(ft_ejection.pid), &init_pid_ns);
	if (task)
		get_task_comm(comm, task);
	rcu_read_unlock();

	raw_spin_lock_irqsave(&ft_eject_lock, flags);
	strscpy(ft_ejection.comm, comm);
	strscpy(ft_ejection.front, front);
	raw_spin_unlock_irqrestore(&ft_eject_lock, flags);
}

/* Has it switched itself off, or is about to, and nobody has switched it on since? */
bool ft_eject_stands(void)
{
	return READ_ONCE(ft_ejection.why[0]);
}

/* It is switched on: what was is over. */
void ft_eject_forget(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&ft_eject_lock, flags);
	ft_ejection.why[0] = '\0';
	raw_spin_unlock_irqrestore(&ft_eject_lock, flags);
}

/**
 * ft_eject_print - why FastTrack has switched itself off
 * @buf: for a line: what, who, for how long, where, behind whom; an empty one if it has
 *	not
 * @size: of @buf
 *
 * Return: length.
 */
ssize_t ft_eject_print(char *buf, size_t size)
{
	struct ft_ejection ejection;
	unsigned long flags;

	raw_spin_lock_irqsave(&ft_eject_lock, flags);
	ejection = ft_ejection;
	raw_spin_unlock_irqrestore(&ft_eject_lock, flags);
	if (!ejection.why[0])
		return scnprintf(buf, size, "\n");
	return scnprintf(buf, size, "%s: %s %d %llu ms at %s behind %s\n",
			 ejection.why, ejection.comm, ejection.pid,
			 div_u64(ejection.ns, NSEC_PER_MSEC), ejection.where,
			 ejection.front);
}

static void ft_eject_key(u8 key)
{
	fasttrack_eject("SysRq", 0, "-", 0);
}

static const struct sysrq_key_op ft_eject_op = {
	.handler	= ft_eject_key,
	.help_msg	= "fasttrack-off(F)",
	.action_msg	= "Switch FastTrack off",
	.enable_mask	= SYSRQ_ENABLE_RTNICE,
};

/**
 * ft_eject_init - ejections can happen from now on
 * @off: switches FastTrack off; from process context, may sleep
 */
void __init ft_eject_init(void (*off)(void))
{
	ft_workqueue = alloc_workqueue("fasttrack",
				       WQ_MEM_RECLAIM | WQ_HIGHPRI |
				       WQ_UNBOUND, 0) ?:
		       system_highpri_wq;
	ft_eject_off = off;
	if (register_sysrq_key('F', &ft_eject_op))
		pr_warn("fasttrack: SysRq-F is somebody else's\n");
}
