// SPDX-License-Identifier: GPL-2.0
/*
 * Promotion on wait: who the foreground waits for works for the foreground.
 *
 * Three cures, from the most exact to the most general:
 *
 *  1. It waits for a folio that a request in an I/O scheduler's queue will
 *     unlock: that request is made foreground (promoted).
 *  2. It waits for a worker, the journal's thread for one: the worker's scopes
 *     are foreground meanwhile, and what the worker itself waits for is promoted.
 *  3. It waits for somebody that cannot be named: a task that keeps a
 *     transaction open, a write that has not reached the queue. It depends on
 *     others then. As long as none of its own requests is under way the I/O
 *     scheduler holds nobody back: whoever it is, is among them.
 *
 * Lock order: none. I/O schedulers' locks are taken under the RCU read lock.
 */
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rculist.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>

#include <trace/events/fasttrack.h>

#include "internal.h"

/* What fasttrack_folio_wait_begin() has done. */
#define FT_WAIT_SHOWN		BIT(0)
#define FT_WAIT_FOREGROUND	BIT(1)
#define FT_WAIT_DEPENDS		BIT(2)

/* I/O schedulers that promote. Read under RCU, changed under ft_queues_lock. */
static LIST_HEAD(ft_queues);
static DEFINE_SPINLOCK(ft_queues_lock);

/* Foreground tasks that depend on others. */
static atomic_t ft_depending;

/**
 * fasttrack_queue_add - an I/O scheduler takes promotions from now on
 * @queue: its functions are set
 */
void fasttrack_queue_add(struct fasttrack_queue *queue)
{
	spin_lock(&ft_queues_lock);
	list_add_tail_rcu(&queue->node, &ft_queues);
	spin_unlock(&ft_queues_lock);
}
EXPORT_SYMBOL_GPL(fasttrack_queue_add);

/**
 * fasttrack_queue_del - it takes no more
 * @queue: not used any longer when this returns
 *
 * Context: may sleep.
 */
void fasttrack_queue_del(struct fasttrack_queue *queue)
{
	spin_lock(&ft_queues_lock);
	list_del_rcu(&queue->node);
	spin_unlock(&ft_queues_lock);
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(fasttrack_queue_del);

/*
 * Make the queued request that covers @folio foreground. @folio is compared,
 * not looked into: it may be gone.
 */
static bool ft_promote(const struct folio *folio)
{
	struct fasttrack_queue *queue;
	bool found = false;

	if (!READ_ONCE(ft_knobs.promotion))
		return false;

	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node) {
		found = queue->promote(queue, folio_pfn((struct folio *)folio));
		if (found)
			break;
	}
	rcu_read_unlock();
	if (found)
		fasttrack_count(FASTTRACK_PROMOTED);
	return found;
}

static void ft_depend_begin(void)
{
	struct fasttrack_queue *queue;

	if (atomic_inc_return(&ft_depending) > 1)
		return;
	fasttrack_count(FASTTRACK_DEPENDED);
	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->kick(queue);
	rcu_read_unlock();
}

static void ft_depend_end(void)
{
	atomic_dec(&ft_depending);
}

/**
 * fasttrack_foreground_depends - does the foreground wait for others?
 *
 * Context: any.
 */
bool fasttrack_foreground_depends(void)
{
	return READ_ONCE(ft_knobs.promotion) && atomic_read(&ft_depending);
}
EXPORT_SYMBOL_GPL(fasttrack_foreground_depends);

/* Is @folio, under write-back, a background app's? */
static bool ft_folio_of_background(struct folio *folio)
{
	struct address_space *mapping = READ_ONCE(folio->mapping);
	struct fasttrack_owner owner;

	if (folio_test_anon(folio) || !mapping)
		return false;
	owner = ft_owner_read(&mapping->fasttrack_owner);
	return __fasttrack_owner_class(&owner) == FASTTRACK_BACKGROUND;
}

/**
 * __fasttrack_folio_wait_begin - current is about to sleep on a bit of @folio
 * @folio: referenced by the caller
 * @writeback: it is the write-back bit
 *
 * Context: process context; does not sleep.
 * Return: what to give to __fasttrack_folio_wait_end().
 */
unsigned int __fasttrack_folio_wait_begin(struct folio *folio, bool writeback)
{
	unsigned int done = 0;

	if (current->fasttrack_scope.override) {
		WRITE_ONCE(current->fasttrack_folio, folio);
		/* Pairs with the barrier in fasttrack_wait_begin(). */
		smp_mb();
		done |= FT_WAIT_SHOWN;
	}
	if (__fasttrack_task_class(current) != FASTTRACK_FOREGROUND)
		return done;

	ft_activity_sleep();
	done |= FT_WAIT_FOREGROUND;
	rcu_read_lock();
	if (!ft_promote(folio) && writeback && ft_folio_of_background(folio)) {
		ft_depend_begin();
		done |= FT_WAIT_DEPENDS;
	}
	rcu_read_unlock();
	return done;
}

/**
 * __fasttrack_folio_wait_end - current has slept
 * @done: result of __fasttrack_folio_wait_begin()
 */
void __fasttrack_folio_wait_end(unsigned int done)
{
	if (done & FT_WAIT_SHOWN)
		WRITE_ONCE(current->fasttrack_folio, NULL);
	if (done & FT_WAIT_DEPENDS)
		ft_depend_end();
	if (done & FT_WAIT_FOREGROUND)
		ft_activity_wake();
}

/**
 * fasttrack_wait_begin - current is about to wait for what @worker does
 * @worker: a kernel thread that works in scopes, or NULL; cannot go away before
 *	this returns
 *
 * While a foreground task waits, the scopes of @worker are foreground.
 *
 * Context: process context; does not sleep.
 * Return: what to give to fasttrack_wait_end(): @worker with a reference, or
 * NULL if current is not foreground.
 */
struct task_struct *fasttrack_wait_begin(struct task_struct *worker)
{
	const struct folio *folio;

	if (!worker || fasttrack_task_class(current) != FASTTRACK_FOREGROUND)
		return NULL;
	get_task_struct(worker);
	atomic_inc(&worker->fasttrack_waiters);
	/* Pairs with the barrier in __fasttrack_folio_wait_begin(). */
	smp_mb__after_atomic();
	folio = READ_ONCE(worker->fasttrack_folio);
	if (folio)
		ft_promote(folio);
	ft_activity_sleep();
	ft_depend_begin();
	return worker;
}
EXPORT_SYMBOL_GPL(fasttrack_wait_begin);

/**
 * fasttrack_wait_end - the wait is over
 * @worker: result of fasttrack_wait_begin(), or NULL
 */
void fasttrack_wait_end(struct task_struct *worker)
{
	if (!worker)
		return;
	ft_depend_end();
	ft_activity_wake();
	atomic_dec(&worker->fasttrack_waiters);
	put_task_struct(worker);
}
EXPORT_SYMBOL_GPL(fasttrack_wait_end);
