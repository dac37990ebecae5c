// SPDX-License-Identifier: GPL-2.0
/*
 * Promotion on wait: who the foreground waits for works for the foreground.
 *
 *  1. It waits for a folio that requests in an I/O scheduler's queue will
 *     unlock, all those of one bio: they are made foreground (promoted), and
 *     with a write the others of its file; those too that come while it waits,
 *     for who sends them may have to wait for tags.
 *  2. It waits for a worker, the journal's thread for one: the worker's scopes
 *     are foreground meanwhile, and what the worker itself waits for is promoted.
 *  3. It, or such a worker, waits for somebody that cannot be named: who holds
 *     a lock or a transaction open, write-back that has not reached the queue. The
 *     foreground depends on others then. As long as none of its own requests is
 *     under way the I/O scheduler holds nobody back: whoever it is, is among
 *     them.
 *  4. As long as it depends on others, tasks that are likely to be among them
 *     inherit its class (fasttrack_inherits()): who holds the lock that it waits
 *     for, who got a lock that others wanted too, who has a transaction open. Of
 *     those with an operation of f2fs open, for which a checkpoint waits, what
 *     they sleep on is promoted, and not what they send: write-back is, too.
 *
 * Lock order: I/O schedulers' locks are taken under the RCU read lock, and
 * ft_wait_lock inside none of them.
 */
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rculist.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>

#include <trace/events/fasttrack.h>

#include "internal.h"
#include "policy.h"

/* What fasttrack_folio_wait_begin() has done; the rest: ft_sleep_begin(). */
#define FT_WAIT_SHOWN		BIT(0)
#define FT_WAIT_FOREGROUND	BIT(1)
#define FT_WAIT_OTHERS		BIT(2)
#define FT_WAIT_SERVED		BIT(3)
#define FT_WAIT_OP		BIT(4)
#define FT_WAIT_SLEEPER_SHIFT	5

/* I/O schedulers that promote. Read under RCU, changed under ft_queues_lock. */
static LIST_HEAD(ft_queues);
static DEFINE_SPINLOCK(ft_queues_lock);

/*
 * Guards changes of ft_depending, of ft_sleepers, and of every worker how many
 * foreground tasks wait for it and whether it waits for others.
 */
static DEFINE_SPINLOCK(ft_wait_lock);

/*
 * Tasks of the foreground, and workers for it, that wait for others, and when
 * the last one began: in jiffies, it is looked at for each page and request.
 */
static unsigned int ft_depending;
static unsigned long ft_depends_since;

/* Reclaim waits until background's dirty pages are written. */
static atomic_t ft_reclaim_waits;

/* Which time it is that some do; what is inherited ends with it. */
static unsigned int ft_dependence = 1;

/*
 * What foreground tasks sleep on. A reader without the lock may see a mixture of
 * two entries: it promotes a request too many then, or misses one that the new
 * sleeper finds itself.
 */
static struct fasttrack_sleeper ft_sleepers[FASTTRACK_SLEEPERS];
static unsigned int ft_nr_sleepers;

/*
 * What tasks with an operation of a file system open sleep on; compared only.
 * Guarded as ft_sleepers.
 */
static const struct folio *ft_op_folios[FASTTRACK_SLEEPERS];

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
 * Make the queued request that covers @folio foreground, and others of its file
 * if @file. @folio is compared, not looked into: it may be gone.
 */
static bool ft_promote(const struct folio *folio, bool file)
{
	struct fasttrack_queue *queue;
	bool found = false;

	if (!READ_ONCE(ft_knobs.promotion))
		return false;

	rcu_read_lock();
	/* A bio's parts may be for several disks. */
	list_for_each_entry_rcu(queue, &ft_queues, node)
		found |= queue->promote(queue,
					folio_pfn((struct folio *)folio), file);
	rcu_read_unlock();
	return found;
}

/* All queued writes of a file. */
static void ft_promote_file(const struct address_space *mapping)
{
	struct fasttrack_queue *queue;

	if (!mapping || !READ_ONCE(ft_knobs.promotion))
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->promote_file(queue, mapping);
	rcu_read_unlock();
}

/* Those of a file that the foreground waits for get tags. */
static void ft_wake_senders(void)
{
	struct fasttrack_queue *queue;

	if (!READ_ONCE(ft_knobs.promotion))
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->wake_senders(queue);
	rcu_read_unlock();
}

/**
 * __fasttrack_file_wait - current is about to wait for all write-back of a file
 * @mapping: the file's
 *
 * Context: process context; does not sleep.
 */
void __fasttrack_file_wait(const struct address_space *mapping)
{
	if (__fasttrack_task_class(current) == FASTTRACK_FOREGROUND ||
	    fasttrack_inherits(current))
		ft_promote_file(mapping);
}
EXPORT_SYMBOL_GPL(__fasttrack_file_wait);

/**
 * __fasttrack_op - current has an operation open that a checkpoint waits for
 * @open: it begins; else it ends
 *
 * Context: process context; does not sleep.
 */
void __fasttrack_op(bool open)
{
	WRITE_ONCE(current->fasttrack_op, open);
}
EXPORT_SYMBOL_GPL(__fasttrack_op);

/* Queued requests of the app @uid are of @class from now on. */
void ft_relabel(u32 uid, enum fasttrack_class class)
{
	struct fasttrack_queue *queue;

	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->relabel(queue, uid, class);
	rcu_read_unlock();
}

/* One more, or one less, waits for others. */
static void ft_depend(int change)
{
	lockdep_assert_held(&ft_wait_lock);

	if (change > 0) {
		WRITE_ONCE(ft_depends_since, jiffies);
		fasttrack_count(FASTTRACK_DEPENDED);
	}
	WRITE_ONCE(ft_depending, ft_depending + change);
	if (!ft_depending)
		WRITE_ONCE(ft_dependence, ft_dependence + 1);
}

/*
 * Does a foreground task wait for others? A wait for longer than FT_ASLEEP_LIMIT
 * is not for the storage.
 */
static bool ft_depends(void)
{
	return READ_ONCE(ft_depending) &&
	       time_before(jiffies, READ_ONCE(ft_depends_since) +
				    FT_ASLEEP_LIMIT_JIFFIES);
}

static bool ft_foreground_waits(void)
{
	return READ_ONCE(ft_knobs.promotion) && ft_depends();
}

/**
 * fasttrack_foreground_depends - shall nobody be held back?
 *
 * Context: any.
 * Return: if so: the foreground waits for others, or reclaim waits until dirty
 * pages have been written, so that the foreground keeps its own.
 */
bool fasttrack_foreground_depends(void)
{
	return READ_ONCE(ft_knobs.promotion) &&
	       (ft_depends() || atomic_read(&ft_reclaim_waits));
}
EXPORT_SYMBOL_GPL(fasttrack_foreground_depends);

/* A checkpoint waits for operations, and these for what their tasks sleep on. */
static void ft_promote_ops(void)
{
	const struct folio *folio;

	/* Pairs with the barrier in __fasttrack_folio_wait_begin(). */
	smp_mb();
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS; i++) {
		folio = READ_ONCE(ft_op_folios[i]);
		if (folio)
			ft_promote(folio, false);
	}
}

/* Whom the schedulers held back may be who is waited for, by the @foreground. */
static void ft_kick(bool foreground)
{
	struct fasttrack_queue *queue;

	if (!fasttrack_foreground_depends())
		return;
	ft_writeback_go();
	if (foreground)
		ft_promote_ops();
	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->kick(queue, foreground);
	rcu_read_unlock();
}

/* Reclaim is about to wait, so that the foreground keeps its pages. */
void ft_reclaim_wait_begin(void)
{
	atomic_inc(&ft_reclaim_waits);
	ft_kick(false);
}

/* It has waited. */
void ft_reclaim_wait_end(void)
{
	atomic_dec(&ft_reclaim_waits);
}

/**
 * fasttrack_sleeper - what does a foreground task sleep on?
 * @index: below FASTTRACK_SLEEPERS
 * @sleeper: what it is
 *
 * Context: any.
 * Return: false if there is no such task.
 */
bool fasttrack_sleeper(unsigned int index, struct fasttrack_sleeper *sleeper)
{
	const struct fasttrack_sleeper *kept = &ft_sleepers[index];

	if (!READ_ONCE(ft_nr_sleepers) || !READ_ONCE(ft_knobs.promotion))
		return false;
	sleeper->pages = READ_ONCE(kept->pages);
	sleeper->pfn = READ_ONCE(kept->pfn);
	sleeper->file = READ_ONCE(kept->file);
	sleeper->writeback = READ_ONCE(kept->writeback);
	return sleeper->pages;
}
EXPORT_SYMBOL_GPL(fasttrack_sleeper);

/* Does the foreground sleep on a folio of @file, compared only, or NULL? */
static bool ft_file_is_waited_for(const struct address_space *file)
{
	struct fasttrack_sleeper sleeper;

	if (!file)
		return false;
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS; i++)
		if (fasttrack_sleeper(i, &sleeper) && sleeper.file == file)
			return true;
	return false;
}

/**
 * fasttrack_inherits - does @task hold what the foreground may wait for?
 * @task: current, or a task that cannot go away meanwhile
 *
 * Who sends the I/O of a file that the foreground waits for does, too.
 *
 * Context: any.
 * Return: if so.
 */
bool fasttrack_inherits(const struct task_struct *task)
{
	if (ft_file_is_waited_for(READ_ONCE(task->fasttrack_sends)))
		return true;
	return ft_foreground_waits() &&
	       (task->journal_info || READ_ONCE(task->fasttrack_inherits) ==
					      READ_ONCE(ft_dependence));
}
EXPORT_SYMBOL_GPL(fasttrack_inherits);

/* @task inherits until the foreground depends on nobody. */
static void ft_mark(struct task_struct *task)
{
	WRITE_ONCE(task->fasttrack_inherits, READ_ONCE(ft_dependence));
}

/* The foreground depends on @holder, and on what that sleeps on or has sent. */
static void ft_inherit(struct task_struct *holder)
{
	struct fasttrack_queue *queue;
	const struct folio *folio;

	ft_mark(holder);
	/* Pairs with the barrier in __fasttrack_folio_wait_begin(). */
	smp_mb();
	folio = READ_ONCE(holder->fasttrack_folio);
	if (folio)
		ft_promote(folio, false);
	if (!READ_ONCE(ft_knobs.promotion))
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(queue, &ft_queues, node)
		queue->promote_task(queue, task_pid_nr(holder));
	rcu_read_unlock();
}

/**
 * __fasttrack_others_begin - current may be about to wait for others
 * @holder: one of them, or NULL; cannot go away before this returns
 *
 * For waits that have no folio and no request: for a lock, for handles of a
 * transaction to be closed. Matters for foreground tasks, and for workers in
 * their scopes. Does not nest.
 *
 * Context: process context; does not sleep.
 * Return: whether __fasttrack_others_end() is to be called.
 */
bool __fasttrack_others_begin(struct task_struct *holder)
{
	bool depends;

	if (!current->fasttrack_scope.override) {
		if (__fasttrack_task_class(current) != FASTTRACK_FOREGROUND)
			return false;
		ft_activity_sleep();
	}

	spin_lock(&ft_wait_lock);
	/* A worker in a foreground scope is as good as a foreground task. */
	current->fasttrack_others =
		current->fasttrack_scope.override &&
		current->fasttrack_scope.class != FASTTRACK_FOREGROUND;
	depends = !current->fasttrack_others || current->fasttrack_waiters;
	if (depends)
		ft_depend(1);
	spin_unlock(&ft_wait_lock);
	if (!depends)
		return true;
	if (holder)
		ft_inherit(holder);
	ft_kick(true);
	return true;
}
EXPORT_SYMBOL_GPL(__fasttrack_others_begin);

/**
 * __fasttrack_others_end - current has what it waited for
 *
 * After __fasttrack_others_begin() has returned true.
 */
void __fasttrack_others_end(void)
{
	spin_lock(&ft_wait_lock);
	if (!current->fasttrack_others || current->fasttrack_waiters)
		ft_depend(-1);
	current->fasttrack_others = false;
	spin_unlock(&ft_wait_lock);

	if (!current->fasttrack_scope.override)
		ft_activity_wake();
}
EXPORT_SYMBOL_GPL(__fasttrack_others_end);

/**
 * __fasttrack_lock_got - current, not foreground, has waited for a lock
 *
 * Others want it too, the foreground maybe: until that depends on nobody,
 * current inherits.
 */
void __fasttrack_lock_got(void)
{
	if (ft_foreground_waits())
		ft_mark(current);
}

/*
 * Does whoever sleeps on @folio, which no request in a queue covers, wait for
 * others? A lock of a folio that is up to date, or under write-back, is a
 * task's; another one is being read: by the device now, or by a sender who gets
 * a tag for it. Write-back of a background app's may not have come to the queue
 * yet, nor has all of a file's that the flusher is at.
 */
static bool ft_folio_of_others(struct folio *folio, bool writeback)
{
	struct address_space *mapping;
	struct fasttrack_owner owner;
	bool others = false;

	if (!writeback)
		return folio_test_uptodate(folio) ||
		       folio_test_writeback(folio);
	if (folio_test_anon(folio))
		return false;
	/* Not locked: its inode is freed a grace period later at the earliest. */
	rcu_read_lock();
	mapping = READ_ONCE(folio->mapping);
	if (mapping) {
		owner = ft_owner_read(&mapping->fasttrack_owner);
		others = (mapping->host &&
			  READ_ONCE(mapping->host->i_state) & I_SYNC) ||
			 __fasttrack_owner_class(&owner) == FASTTRACK_BACKGROUND;
	}
	rcu_read_unlock();
	return others;
}

/*
 * The foreground is about to sleep. Without room for one more, what comes later
 * is not promoted for it.
 * Return: to be or'ed to what __fasttrack_folio_wait_begin() returns.
 */
static unsigned int ft_sleep_begin(struct fasttrack_sleeper sleeper)
{
	unsigned int done = 0;

	spin_lock(&ft_wait_lock);
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS && !done; i++) {
		struct fasttrack_sleeper *kept = &ft_sleepers[i];

		if (kept->pages)
			continue;
		WRITE_ONCE(kept->file, sleeper.file);
		WRITE_ONCE(kept->pfn, sleeper.pfn);
		WRITE_ONCE(kept->writeback, sleeper.writeback);
		WRITE_ONCE(kept->pages, sleeper.pages);
		WRITE_ONCE(ft_nr_sleepers, ft_nr_sleepers + 1);
		done = (i + 1) << FT_WAIT_SLEEPER_SHIFT;
	}
	spin_unlock(&ft_wait_lock);
	return done;
}

/* Likewise, who has an operation of a file system open. */
static unsigned int ft_op_sleep_begin(const struct folio *folio)
{
	unsigned int done = 0;

	spin_lock(&ft_wait_lock);
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS && !done; i++) {
		if (ft_op_folios[i])
			continue;
		WRITE_ONCE(ft_op_folios[i], folio);
		done = FT_WAIT_OP | (i + 1) << FT_WAIT_SLEEPER_SHIFT;
	}
	spin_unlock(&ft_wait_lock);
	return done;
}

static void ft_sleep_end(unsigned int done)
{
	unsigned int sleeper = done >> FT_WAIT_SLEEPER_SHIFT;

	if (!sleeper)
		return;
	spin_lock(&ft_wait_lock);
	if (done & FT_WAIT_OP) {
		WRITE_ONCE(ft_op_folios[sleeper - 1], NULL);
	} else {
		WRITE_ONCE(ft_sleepers[sleeper - 1].pages, 0);
		WRITE_ONCE(ft_nr_sleepers, ft_nr_sleepers - 1);
	}
	spin_unlock(&ft_wait_lock);
}

/*
 * Everybody's metadata is in a block device's mapping: that names no file.
 *
 * @served: is @folio of a file system without a block device? A task brings its
 * pages, a FUSE server for one, who may be background and must not pause for it.
 */
static struct fasttrack_sleeper ft_sleeper_on(struct folio *folio,
					      bool writeback, bool *served)
{
	struct fasttrack_sleeper sleeper = {
		.pfn = folio_pfn(folio),
		.pages = folio_nr_pages(folio),
		.writeback = writeback,
	};
	struct address_space *mapping;

	*served = false;
	/* Not locked, as above. */
	rcu_read_lock();
	mapping = folio_mapping(folio);
	if (mapping && mapping->host && !S_ISBLK(mapping->host->i_mode)) {
		sleeper.file = mapping;
		*served = !(mapping->host->i_sb->s_type->fs_flags &
			    FS_REQUIRES_DEV);
	}
	rcu_read_unlock();
	return sleeper;
}

/* The foreground waits for a server: it depends on it, and does not work. */
static void ft_served_begin(void)
{
	spin_lock(&ft_wait_lock);
	ft_depend(1);
	spin_unlock(&ft_wait_lock);
	ft_kick(true);
}

static void ft_served_end(void)
{
	spin_lock(&ft_wait_lock);
	ft_depend(-1);
	spin_unlock(&ft_wait_lock);
	ft_activity_note();
}

/**
 * __fasttrack_folio_wait_begin - current is about to sleep on a bit of @folio
 * @folio: referenced by the caller; NULL for a buffer without one
 * @writeback: it is the write-back bit
 *
 * Context: process context; does not sleep.
 * Return: what to give to __fasttrack_folio_wait_end().
 */
unsigned int __fasttrack_folio_wait_begin(struct folio *folio, bool writeback)
{
	bool foreground = __fasttrack_task_class(current) == FASTTRACK_FOREGROUND;
	bool worker = current->fasttrack_scope.override;
	struct fasttrack_sleeper sleeper;
	unsigned int done = 0;
	bool served;

	if (!folio)
		return 0;
	if (!foreground || worker) {
		WRITE_ONCE(current->fasttrack_folio, folio);
		done |= FT_WAIT_SHOWN;
		if (current->fasttrack_op && !foreground)
			done |= ft_op_sleep_begin(folio);
		/* Pairs with those of whoever looks for it. */
		smp_mb();
	}
	if (!foreground) {
		if (fasttrack_inherits(current) ||
		    (current->fasttrack_op && ft_foreground_waits()))
			ft_promote(folio, false);
		if (!worker)
			return done;
	}
	if (foreground) {
		sleeper = ft_sleeper_on(folio, writeback, &served);
		if (served) {
			ft_served_begin();
			return done | FT_WAIT_SERVED;
		}
		ft_activity_sleep();
		done |= FT_WAIT_FOREGROUND;
		/* Before it is looked for: it may come to the queue now. */
		done |= ft_sleep_begin(sleeper);
		if (ft_promote(folio, true))
			return done;
		/* Some of its requests may have come, others wait for tags. */
		if (writeback)
			ft_promote_file(sleeper.file);
		else if (sleeper.file)
			ft_wake_senders();
	}
	if (ft_folio_of_others(folio, writeback) &&
	    __fasttrack_others_begin(NULL))
		done |= FT_WAIT_OTHERS;
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
	ft_sleep_end(done);
	if (done & FT_WAIT_SERVED)
		ft_served_end();
	if (done & FT_WAIT_OTHERS)
		__fasttrack_others_end();
	if (done & FT_WAIT_FOREGROUND)
		ft_activity_wake();
}

/**
 * fasttrack_wait_begin - current is about to wait for what @worker does
 * @worker: a kernel thread that works in scopes, NULL or an error pointer;
 *	cannot go away before this returns
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

	if (IS_ERR_OR_NULL(worker) ||
	    fasttrack_task_class(current) != FASTTRACK_FOREGROUND)
		return NULL;
	get_task_struct(worker);
	ft_activity_sleep();

	spin_lock(&ft_wait_lock);
	WRITE_ONCE(worker->fasttrack_waiters, worker->fasttrack_waiters + 1);
	if (worker->fasttrack_waiters == 1 && worker->fasttrack_others)
		ft_depend(1);
	spin_unlock(&ft_wait_lock);
	ft_kick(true);

	/* Pairs with the barrier in __fasttrack_folio_wait_begin(). */
	smp_mb();
	folio = READ_ONCE(worker->fasttrack_folio);
	if (folio)
		ft_promote(folio, true);
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
	spin_lock(&ft_wait_lock);
	WRITE_ONCE(worker->fasttrack_waiters, worker->fasttrack_waiters - 1);
	if (!worker->fasttrack_waiters && worker->fasttrack_others)
		ft_depend(-1);
	spin_unlock(&ft_wait_lock);

	ft_activity_wake();
	put_task_struct(worker);
}
EXPORT_SYMBOL_GPL(fasttrack_wait_end);

#if IS_ENABLED(CONFIG_FASTTRACK_KUNIT_TEST)
#include "tests/wait-kunit.h"
#endif
