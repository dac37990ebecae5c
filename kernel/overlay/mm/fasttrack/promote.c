// SPDX-License-Identifier: GPL-2.0
/*
 * The I/O schedulers that promote: what the core tells them about requests in
 * their queues (struct fasttrack_queue).
 *
 * Lock order: the schedulers' locks are taken under the RCU read lock.
 */
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/sched.h>

#include "internal.h"

/*
 * I/O schedulers that promote. Read under RCU, changed under ft_queues_mutex, which
 * also orders what they are told of who is in front.
 */
static LIST_HEAD(ft_queues);
static DEFINE_MUTEX(ft_queues_mutex);

/* Is there an I/O scheduler that promotes? */
bool ft_queues_promote(void)
{
	return READ_ONCE(ft_knobs.promotion) && !list_empty(&ft_queues);
}

static bool ft_somebody_in_front(void)
{
	return fasttrack_enabled() && ft_foreground_set();
}

/**
 * fasttrack_queue_add - an I/O scheduler takes promotions from now on
 * @queue: its functions are set
 *
 * Context: may sleep.
 */
void fasttrack_queue_add(struct fasttrack_queue *queue)
{
	mutex_lock(&ft_queues_mutex);
	queue->front(queue, ft_somebody_in_front());
	list_add_tail_rcu(&queue->node, &ft_queues);
	mutex_unlock(&ft_queues_mutex);
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
	mutex_lock(&ft_queues_mutex);
	list_del_rcu(&queue->node);
	mutex_unlock(&ft_queues_mutex);
	synchronize_rcu();
	/* Who waits for room in it, or for what it does not promote any more, looks again. */
	ft_wake_all();
}
EXPORT_SYMBOL_GPL(fasttrack_queue_del);

/* Somebody may be in front now, or nobody any more. */
void ft_queues_front(void)
{
	struct fasttrack_queue *queue;

	mutex_lock(&ft_queues_mutex);
	list_for_each_entry(queue, &ft_queues, node)
		queue->front(queue, ft_somebody_in_front());
	mutex_unlock(&ft_queues_mutex);
}

/*
 * Make the queued request that covers @folio one of @class, foreground or neutral, and
 * others of its file if @file. @folio is compared, not looked into: it may be gone.
 */
bool ft_promote_to(const struct folio *folio, bool file, enum fasttrack_class class)
{
	struct fasttrack_queue *queue;
	bool found = false;

	if (!READ_ONCE(ft_knobs.promotion))
		return false;

	rcu_read_lock();
	/* A bio's parts may be for several disks. */
	list_for_each_entry_rcu(queue, &ft_queues, node)
		found |= queue->promote(queue,
					folio_pfn((struct folio *)folio), file,
					class);
	rcu_read_unlock();
	return found;
}

bool ft_promote(const struct folio *folio, bool file)
{
	return ft_promote_to(folio, file, FASTTRACK_FOREGROUND);
}

/* All queued writes of a file. */
void ft_promote_file(const struct address_space *mapping)
{
	struct fasttrack_queue *queue;

	if (!mapping || !READ_ONCE(ft_knobs.promotion))
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->promote_file(queue, mapping);
	rcu_read_unlock();
}

/* Queued requests that @task has sent are of @class, foreground or neutral. */
void ft_promote_task(struct task_struct *task, enum fasttrack_class class)
{
	struct fasttrack_queue *queue;

	if (!READ_ONCE(ft_knobs.promotion))
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->promote_task(queue, task_pid_nr(task), class);
	rcu_read_unlock();
}

/* All queued writes of what was dirty are of @class; and write-back goes on. */
void ft_promote_flushed(enum fasttrack_class class)
{
	struct fasttrack_queue *queue;

	ft_wake(FT_QUEUE_FLUSHER);
	if (!READ_ONCE(ft_knobs.promotion))
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->promote_flushed(queue, class);
	rcu_read_unlock();
}

/* Those of a file that the foreground waits for get tags. */
void ft_wake_senders(void)
{
	struct fasttrack_queue *queue;

	if (!READ_ONCE(ft_knobs.promotion))
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->wake_senders(queue);
	rcu_read_unlock();
}

/* Apps have come to the front, or left it: so have their queued requests. */
void ft_relabel(void)
{
	struct fasttrack_queue *queue;

	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->relabel(queue);
	rcu_read_unlock();
}

/* Others wait for operations, and these for what their tasks sleep on. */
void ft_promote_ops(void)
{
	const struct folio *folio;

	/* Pairs with the barrier in __fasttrack_folio_wait_begin(). */
	smp_mb();
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS; i++) {
		folio = ft_op_sleeper(i);
		if (folio)
			ft_promote(folio, false);
	}
}

static void ft_queues_kick(bool foreground)
{
	struct fasttrack_queue *queue;

	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->kick(queue, foreground);
	rcu_read_unlock();
}

/* FastTrack is on or off from now on: nobody is held for what was. */
void ft_queues_release(void)
{
	ft_queues_kick(false);
}

/*
 * Would background wait for a tag to write to the disk of @mapping's file, for what
 * somebody waits for if @sync?
 */
bool ft_queues_crowded(const struct address_space *mapping, bool sync)
{
	struct block_device *disk = mapping->host->i_sb->s_bdev;
	struct fasttrack_queue *queue;
	bool crowded = false;

	if (!disk)
		return false;
	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		crowded |= queue->crowded(queue, disk, sync);
	rcu_read_unlock();
	return crowded;
}

/**
 * fasttrack_room - there are tags for background, for which somebody waited
 * @sync: for who syncs; else for the flusher
 * @all: none are taken; else one after the other goes on, for the next would find none
 *	left, with locks
 *
 * Context: any.
 * Return: whether others wait.
 */
bool fasttrack_room(bool sync, bool all)
{
	if (sync && !all)
		return ft_wake_one(FT_QUEUE_TAGS);
	ft_wake(sync ? FT_QUEUE_TAGS : FT_QUEUE_FLUSHER);
	return false;
}
EXPORT_SYMBOL_GPL(fasttrack_room);

/* Does a scheduler hold anybody back? */
bool ft_queues_hold(void)
{
	struct fasttrack_queue *queue;
	bool held = false;

	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		held |= READ_ONCE(queue->held);
	rcu_read_unlock();
	return held;
}

/* Does a scheduler keep somebody waiting for longer than anybody may be? */
void ft_queues_check(void)
{
	struct fasttrack_queue *queue;

	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->check(queue);
	rcu_read_unlock();
}

/* Whom the schedulers held back may be who is waited for, by the @foreground. */
void ft_kick(bool foreground)
{
	if (!fasttrack_foreground_depends())
		return;
	/* The foreground may wait for what write-back that pauses has begun. */
	ft_wake(FT_QUEUE_FLUSHER);
	if (foreground)
		ft_promote_ops();
	ft_queues_kick(foreground);
}
