// SPDX-License-Identifier: GPL-2.0
/*
 * On whom does the foreground depend, and on what does it sleep?
 *
 * The books that promotion on wait keeps (wait.c), for whoever must not be held
 * back then, or waits for less: the I/O schedulers, paused write-back, reclaim.
 *
 *  - The foreground depends on others while one of its tasks, or a worker for
 *    it, waits for somebody that cannot be named.
 *  - As long as it does, tasks that are likely to be among them inherit its
 *    class (fasttrack_inherits()).
 *  - Sleepers are the folios that foreground tasks sleep on: what comes for them
 *    later is promoted, too.
 *
 * Lock order: ft_depend_lock is taken inside no I/O scheduler's lock.
 */
#include <linux/array_size.h>
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "internal.h"
#include "policy.h"

/*
 * Guards changes of ft_depending, of ft_sleepers, and of every worker how many
 * foreground tasks wait for it and whether it waits for others.
 */
static DEFINE_SPINLOCK(ft_depend_lock);

/*
 * Tasks of the foreground, and workers for it, that wait for others. By a coarse
 * clock: they are looked at for each page and request.
 */
static struct ft_waiters ft_depending;

/* Reclaim waits until background's dirty pages are written. */
static atomic_t ft_reclaim_waits;

/* Tasks for which nobody is held back: they wait for all of a file system. */
static atomic_t ft_lifts;
/* When one came or went last, jiffies. */
static unsigned long ft_lifted;

/* Foreground tasks that sleep on a page which somebody else reads. */
static atomic_t ft_fetch_waits;
/* When one came or went last, jiffies. */
static unsigned long ft_fetch_waited;

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
 * What tasks with an operation of a file system open, or a lookup, sleep on; compared only.
 * Guarded as ft_sleepers.
 */
static const struct folio *ft_op_folios[FASTTRACK_SLEEPERS];

/**
 * struct ft_watched - a worker that tasks wait for which are not foreground, or a
 *	process with a lock that anybody waits for who is not background
 * @worker: it, or its leader; compared only; NULL: nobody
 * @waiters: how many tasks
 *
 * Written under ft_depend_lock.
 */
struct ft_watched {
	const struct task_struct *worker;
	unsigned int waiters;
};

/*
 * Journals' threads and the like, one a file system; and, in a part of it, who has locks
 * of files: a user can have any number of those.
 */
static struct ft_watched ft_watched[64];
#define FT_WATCHED_USERS	48

/* One more waits for others. */
static void ft_depend_more(void)
{
	u64 now = ktime_get_coarse_ns();

	lockdep_assert_held(&ft_depend_lock);

	fasttrack_count(FASTTRACK_DEPENDED);
	if (!ft_waiters_count(&ft_depending, now))
		WRITE_ONCE(ft_dependence, ft_dependence + 1);
	ft_waiters_begin(&ft_depending, now);
}

/* One less. */
static void ft_depend_less(void)
{
	lockdep_assert_held(&ft_depend_lock);

	WARN_ON_ONCE(!ft_waiters_end(&ft_depending, ktime_get_coarse_ns()));
}

/*
 * Does a foreground task wait for others? A waiter that comes or goes meanwhile may
 * be missed.
 */
static bool ft_depends(void)
{
	/* It is looked at for each page: no lock. */
	const struct ft_waiters waiters = data_race(ft_depending);

	return (atomic_read(&waiters.young) || waiters.older) &&
	       ft_waiters_count(&waiters, ktime_get_coarse_ns());
}

/* Likewise, if anything is promoted. */
bool ft_foreground_waits(void)
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
	return fasttrack_holds_lifted() ||
	       (READ_ONCE(ft_knobs.promotion) &&
		(ft_depends() || atomic_read(&ft_reclaim_waits)));
}
EXPORT_SYMBOL_GPL(fasttrack_foreground_depends);

/**
 * fasttrack_holds_lifted - shall nobody be held back, whatever the foreground does?
 *
 * Context: any.
 * Return: if so: somebody who is not background waits for what everybody has
 * written, or for somebody whom nobody has named.
 */
bool fasttrack_holds_lifted(void)
{
	return ft_lapse_are(&ft_lifts, &ft_lifted);
}
EXPORT_SYMBOL_GPL(fasttrack_holds_lifted);

/* Does the foreground wait for operations, or for who has a page looked for? */
bool ft_ops_are_waited_for(void)
{
	return READ_ONCE(ft_knobs.promotion) &&
	       (ft_lapse_are(&ft_fetch_waits, &ft_fetch_waited) || ft_depends());
}

/* A foreground task begins to sleep on a page that somebody else reads. */
void ft_fetch_wait_begin(void)
{
	ft_lapse_later(&ft_fetch_waited);
	atomic_inc(&ft_fetch_waits);
}

void ft_fetch_wait_end(void)
{
	ft_lapse_later(&ft_fetch_waited);
	atomic_dec(&ft_fetch_waits);
}

/* Nobody is held back from now on. */
void ft_lift_begin(void)
{
	ft_lapse_later(&ft_lifted);
	atomic_inc(&ft_lifts);
	/* Pairs with those of who holds: they see this, or are kicked. */
	smp_mb__after_atomic();
}

/* As before. */
void ft_lift_end(void)
{
	ft_lapse_later(&ft_lifted);
	atomic_dec(&ft_lifts);
}

/* A foreground task waits for others from now on. */
void ft_depend_begin(void)
{
	spin_lock(&ft_depend_lock);
	ft_depend_more();
	spin_unlock(&ft_depend_lock);
}

/* It does not any longer. */
void ft_depend_end(void)
{
	spin_lock(&ft_depend_lock);
	ft_depend_less();
	spin_unlock(&ft_depend_lock);
}

/*
 * Current begins to wait for others: a foreground task, or a worker in a scope,
 * which does not wait for others yet.
 * Return: whether the foreground depends on them.
 */
bool ft_others_begin(void)
{
	bool depends;

	spin_lock(&ft_depend_lock);
	/* A worker in a foreground scope is as good as a foreground task. */
	current->fasttrack_others =
		current->fasttrack_scope.override &&
		current->fasttrack_scope.class != FASTTRACK_FOREGROUND;
	depends = !current->fasttrack_others || current->fasttrack_waiters;
	if (depends)
		ft_depend_more();
	spin_unlock(&ft_depend_lock);
	return depends;
}

/* Current has what it waited for. */
void ft_others_end(void)
{
	spin_lock(&ft_depend_lock);
	if (!current->fasttrack_others || current->fasttrack_waiters)
		ft_depend_less();
	current->fasttrack_others = false;
	spin_unlock(&ft_depend_lock);
}

/* A foreground task is about to wait for what @worker does. */
void ft_worker_wait_begin(struct task_struct *worker)
{
	spin_lock(&ft_depend_lock);
	WRITE_ONCE(worker->fasttrack_waiters, worker->fasttrack_waiters + 1);
	if (worker->fasttrack_waiters == 1 && worker->fasttrack_others)
		ft_depend_more();
	spin_unlock(&ft_depend_lock);
}

/* It has waited. */
void ft_worker_wait_end(struct task_struct *worker)
{
	spin_lock(&ft_depend_lock);
	WRITE_ONCE(worker->fasttrack_waiters, worker->fasttrack_waiters - 1);
	if (!worker->fasttrack_waiters && worker->fasttrack_others)
		ft_depend_less();
	spin_unlock(&ft_depend_lock);
}

/* The entry of @worker among the first @most; NULL if there is none. */
static struct ft_watched *ft_watched_find(const struct task_struct *worker,
					  unsigned int most)
{
	for (unsigned int i = 0; i < most; i++)
		if (READ_ONCE(ft_watched[i].worker) == worker)
			return &ft_watched[i];
	return NULL;
}

static struct ft_watched *ft_watched_of(const struct task_struct *worker)
{
	return ft_watched_find(worker, ARRAY_SIZE(ft_watched));
}

/* An empty one for @worker, or NULL. */
static struct ft_watched *ft_watched_empty(const struct task_struct *worker)
{
	return ft_watched_find(NULL, worker->flags & PF_KTHREAD ?
					     ARRAY_SIZE(ft_watched) :
					     FT_WATCHED_USERS);
}

/*
 * A task that is neither foreground nor background is about to wait for what
 * @worker, which cannot go away before it has, does. That is looked at then, if it
 * is stuck (stuck.c); nothing else comes of it.
 * Return: false if so many are waited for that one more cannot be kept.
 */
bool ft_worker_watch_begin(struct task_struct *worker)
{
	struct ft_watched *watched;

	spin_lock(&ft_depend_lock);
	watched = ft_watched_of(worker) ?: ft_watched_empty(worker);
	if (watched) {
		WRITE_ONCE(watched->worker, worker);
		watched->waiters++;
	}
	spin_unlock(&ft_depend_lock);
	return watched;
}

/* It has waited. */
void ft_worker_watch_end(struct task_struct *worker)
{
	struct ft_watched *watched;

	spin_lock(&ft_depend_lock);
	watched = ft_watched_of(worker);
	if (!--watched->waiters)
		WRITE_ONCE(watched->worker, NULL);
	spin_unlock(&ft_depend_lock);
}

/* Does anybody watch @worker? */
bool ft_worker_is_watched(const struct task_struct *worker)
{
	return ft_watched_of(worker);
}

/* Does anybody wait for all that is dirty on @bdi, or for what reclaim meets of it? */
bool ft_dirty_is_waited_for(const struct backing_dev_info *bdi)
{
	return fasttrack_holds_lifted() ||
	       ft_who_syncs(bdi) != FASTTRACK_BACKGROUND ||
	       atomic_read(&ft_reclaim_waits) ||
	       (ft_data_has_backlog() && ft_syncs());
}

/* Reclaim is about to wait, so that the foreground keeps its pages. */
void ft_reclaim_wait_begin(void)
{
	atomic_inc(&ft_reclaim_waits);
	ft_wake(FT_QUEUE_FLUSHER);
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

/*
 * Current sends nothing of a file any more that others could wait for. Otherwise who
 * reads what the foreground reads, too, would never pause.
 */
void ft_has_sent(void)
{
	WRITE_ONCE(current->fasttrack_sends, NULL);
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
void ft_inherits_set(struct task_struct *task)
{
	WRITE_ONCE(task->fasttrack_inherits, READ_ONCE(ft_dependence));
}

/**
 * ft_op_sleeper - what does a task with an operation of a file system sleep on?
 * @index: below FASTTRACK_SLEEPERS
 *
 * Return: a folio, to be compared only, or NULL.
 */
const struct folio *ft_op_sleeper(unsigned int index)
{
	return READ_ONCE(ft_op_folios[index]);
}

/*
 * The foreground is about to sleep. Without room for one more, what comes later
 * is not promoted for it.
 * Return: to be or'ed to what __fasttrack_folio_wait_begin() returns.
 */
unsigned int ft_sleep_begin(struct fasttrack_sleeper sleeper)
{
	unsigned int done = 0;

	spin_lock(&ft_depend_lock);
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
	spin_unlock(&ft_depend_lock);
	return done;
}

/*
 * Likewise, who has an operation of a file system open; or, if @looks, asks it for a name.
 * Those leave room for the others: an app may ask with any number of threads.
 */
unsigned int ft_op_sleep_begin(const struct folio *folio, bool looks)
{
	unsigned int most = looks ? FASTTRACK_SLEEPERS / 2 : FASTTRACK_SLEEPERS;
	unsigned int done = 0;

	spin_lock(&ft_depend_lock);
	for (unsigned int i = 0; i < most && !done; i++) {
		if (ft_op_folios[i])
			continue;
		WRITE_ONCE(ft_op_folios[i], folio);
		done = FT_WAIT_OP | (i + 1) << FT_WAIT_SLEEPER_SHIFT;
	}
	spin_unlock(&ft_depend_lock);
	return done;
}

/* @done: what one of the two has returned. */
void ft_sleep_end(unsigned int done)
{
	unsigned int sleeper = done >> FT_WAIT_SLEEPER_SHIFT;

	if (!sleeper)
		return;
	spin_lock(&ft_depend_lock);
	if (done & FT_WAIT_OP) {
		WRITE_ONCE(ft_op_folios[sleeper - 1], NULL);
	} else {
		WRITE_ONCE(ft_sleepers[sleeper - 1].pages, 0);
		WRITE_ONCE(ft_nr_sleepers, ft_nr_sleepers - 1);
	}
	spin_unlock(&ft_depend_lock);
}

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/depend-kunit.h"
#endif
