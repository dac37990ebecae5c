// SPDX-License-Identifier: GPL-2.0
/*
 * What background makes dirty faster than the storage writes it.
 *
 * Metadata: a commit of a journal and a checkpoint write what everybody has changed,
 * so an fsync takes as long as the backlog is. While the foreground waits for such a
 * worker now and then, file systems write what there is as soon as it is worth that.
 * Where operations would add more meanwhile than is written, they count as work in the
 * page cache, and who of background owes a pause for it pauses until the backlog is
 * written. Before the first such wait they may have more, and nobody pauses. A checkpoint
 * stops everybody: what it writes is written early for others than background, too, while
 * somebody is in front. Background does not pause for these, and keeps its throughput.
 *
 * A checkpoint stops all operations until what is dirty is written. Before one that
 * the flusher or background asks for, the file system writes most of it. Who of
 * background adds to that pauses until the checkpoint is over, as it would in it, so
 * that there is an end; also with nobody in front, for an app may come. Workers of
 * io_uring never pause, so there is a bound of a second, too.
 *
 * Data: a sync(2) or syncfs(2) of the foreground's takes as long as all dirty pages
 * do. While it calls these now and then, background's files have no more than the
 * storage writes in FT_SYNC_MS: the flusher writes them early, and who of background
 * has made more dirty pauses until they are fewer. Pages that were dirty before its
 * first sync are not known, and not waited for. Counted are pages of regular files:
 * a file system's own mappings are metadata, which flushers may leave alone.
 *
 * Pauses end after background_pause_ms at the latest, like all others.
 *
 * Not here: what counts as work (wait.c), the pause (pause.c), the flusher and the
 * limit (memory.c), the file systems' part.
 */
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/jiffies.h>

#include "internal.h"
#include "policy.h"

/* When the foreground last began to wait for a worker, for a commit most likely. */
static unsigned long ft_commit_waited_front;
/* When anybody did who is not of background, and somebody was in front. */
static unsigned long ft_commit_waited;
/*
 * Since when there is more to be written than the foreground should wait for, jiffies; 0: there
 * is not. A file system that has failed never says that it is written.
 */
static unsigned long ft_backlog;

/* So many file systems write what they have before they stop all; so many have ended. */
static atomic_t ft_drains;
static atomic_t ft_drains_ended;

/* When the foreground last waited for a whole file system. */
static unsigned long ft_synced;
/* Dirty pages of background's files, since the foreground has last done so. */
static atomic_long_t ft_data_dirty;
/* They, and those on their way to the storage, are too many. */
static bool ft_data_backlog;

/* Current, of @class, begins to wait for a worker. One that waits for another is nobody. */
void ft_commit_note(enum fasttrack_class class)
{
	unsigned long now = jiffies ?: 1;

	if (class == FASTTRACK_FOREGROUND)
		WRITE_ONCE(ft_commit_waited_front, now);
	if (class == FASTTRACK_FOREGROUND ||
	    (ft_foreground_set() && ft_is_user_task(current)))
		WRITE_ONCE(ft_commit_waited, now);
}

/* Is it only a while since @waited, 0: never? */
static bool ft_waited_lately(unsigned long waited)
{
	return ft_lately(waited, jiffies, FT_COMMIT_WINDOW);
}

/* Has the foreground waited for commits lately? */
static bool ft_commits(void)
{
	return ft_waited_lately(READ_ONCE(ft_commit_waited_front)) &&
	       READ_ONCE(ft_knobs.promotion);
}

/* Nobody is in front, and current, which changes metadata, is not behind anybody. */
static bool ft_commits_as_stock(void)
{
	return !ft_foreground_set() && ft_is_user_task(current) &&
	       __fasttrack_task_class(current) == FASTTRACK_NEUTRAL;
}

/**
 * __fasttrack_commit_due - shall metadata be written, though nobody waits?
 * @blocks: how many blocks there are
 * @rare: only some syncs need a commit; the others would wait for what is written
 *
 * Context: any.
 * Return: if so: the foreground, with @rare anybody but background, waits for commits now
 * and then; or there are more blocks than the first one should write, and with @rare the
 * foreground does not work now. With nobody in front only for what background changes,
 * and workers.
 */
bool __fasttrack_commit_due(int blocks, bool rare)
{
	bool lately = ft_waited_lately(rare ? READ_ONCE(ft_commit_waited) :
				       READ_ONCE(ft_commit_waited_front));

	return READ_ONCE(ft_knobs.promotion) && ft_commit_due(blocks, lately) &&
	       (lately || !rare || !ft_foreground_works()) &&
	       !ft_commits_as_stock();
}
EXPORT_SYMBOL_GPL(__fasttrack_commit_due);

/**
 * __fasttrack_commit_rest - how long shall no more metadata be written ahead?
 * @ns: so long it took the last time
 * @wasted: of the last blocks, so many have been removed, or changed again, before anybody
 *	has waited
 * @written: so many there were
 *
 * Background waits behind what is written, and storage wears.
 *
 * Context: any.
 * Return: ns, 0 while others than background wait for commits now and then.
 */
u64 __fasttrack_commit_rest(u64 ns, unsigned int wasted, unsigned int written)
{
	return ft_waste_rest(ns, wasted, written, ft_waited_lately(READ_ONCE(ft_commit_waited)));
}
EXPORT_SYMBOL_GPL(__fasttrack_commit_rest);

/**
 * __fasttrack_commit_copies - shall a commit write copies of its blocks?
 *
 * Context: any.
 * Return: if so: somebody is in front, who may be the next to change one of them.
 */
bool __fasttrack_commit_copies(void)
{
	return ft_foreground_set() && READ_ONCE(ft_knobs.promotion);
}
EXPORT_SYMBOL_GPL(__fasttrack_commit_copies);

/* Is there a backlog that the foreground may wait for? */
bool ft_has_backlog(void)
{
	return (ft_lately(READ_ONCE(ft_backlog), jiffies, FT_BACKLOG_LAPSES) && ft_commits()) ||
	       (READ_ONCE(ft_data_backlog) && ft_syncs());
}

/* A backlog has so many blocks by now. Is that too many to add more meanwhile? */
bool ft_backlog_add(int blocks)
{
	if (blocks < FT_COMMIT_BLOCKS || !ft_commits())
		return false;
	WRITE_ONCE(ft_backlog, jiffies ?: 1);
	return true;
}

/**
 * __fasttrack_backlog_done - what there was has been written
 *
 * Context: any.
 */
void __fasttrack_backlog_done(void)
{
	if (!READ_ONCE(ft_backlog))
		return;
	WRITE_ONCE(ft_backlog, 0);
	ft_wake_all();
}
EXPORT_SYMBOL_GPL(__fasttrack_backlog_done);

/**
 * __fasttrack_may_drain - may current write metadata before it stops all operations?
 * @bdi: the file system's
 *
 * Context: any process context.
 * Return: if so: it is of background, or a flusher while nobody else syncs. Other workers
 * sync for somebody: asynchronous I/O's, a loop device's. For who waits for current's locks
 * it takes as long either way: what is written before need not be written then.
 */
bool __fasttrack_may_drain(struct backing_dev_info *bdi)
{
	/* Who waits for the flusher is known with promotion alone. */
	if (!READ_ONCE(ft_knobs.page_allocator) || !READ_ONCE(ft_knobs.promotion) ||
	    fatal_signal_pending(current))
		return false;
	if (ft_is_user_task(current))
		return __fasttrack_task_class(current) == FASTTRACK_BACKGROUND;
	return fasttrack_flushes() && ft_who_syncs(bdi) == FASTTRACK_BACKGROUND;
}
EXPORT_SYMBOL_GPL(__fasttrack_may_drain);

/**
 * __fasttrack_drain_begin - a file system writes metadata before it stops all operations
 *
 * Context: any.
 */
void __fasttrack_drain_begin(void)
{
	atomic_inc(&ft_drains);
}
EXPORT_SYMBOL_GPL(__fasttrack_drain_begin);

/**
 * __fasttrack_drain_end - the operations go on
 *
 * Context: any.
 */
void __fasttrack_drain_end(void)
{
	atomic_inc(&ft_drains_ended);
	atomic_dec(&ft_drains);
	ft_wake(FT_QUEUE_IDLE);
}
EXPORT_SYMBOL_GPL(__fasttrack_drain_end);

/* How many have ended: who waits for one waits for the first. */
unsigned int ft_drained(void)
{
	return atomic_read(&ft_drains_ended);
}

/* Is there one, and has none ended since @drained? */
bool ft_draining(unsigned int drained)
{
	return atomic_read(&ft_drains) && ft_drained() == drained;
}

/* Has the foreground waited for whole file systems lately? */
bool ft_syncs(void)
{
	return ft_waited_lately(READ_ONCE(ft_synced)) &&
	       READ_ONCE(ft_knobs.page_allocator);
}

/* Are too many of background's pages dirty, and on their way? */
bool ft_data_has_backlog(void)
{
	return READ_ONCE(ft_data_backlog);
}

/*
 * Are they, from now on? The flusher passes over none of their files then. Who pauses for
 * that goes on when they are not.
 */
void ft_data_backlog_set(bool backlog)
{
	if (ft_data_has_backlog() == backlog)
		return;
	WRITE_ONCE(ft_data_backlog, backlog);
	if (backlog)
		ft_wake(FT_QUEUE_FLUSHER);
	else
		ft_wake_all();
}

/* Nothing of background's data is dirty that matters. */
static void ft_data_forget(void)
{
	atomic_long_set(&ft_data_dirty, 0);
	ft_data_backlog_set(false);
}

/* FastTrack was off: nobody has said what was written meanwhile. */
void ft_backlog_forget(void)
{
	__fasttrack_backlog_done();
	ft_data_forget();
}

/*
 * The foreground begins to wait for a whole file system, or has done so (@done): then
 * nothing of what was dirty is left.
 */
void ft_sync_note(bool done)
{
	if (!done && !ft_syncs())
		return;
	if (done)
		ft_data_forget();
	WRITE_ONCE(ft_synced, jiffies ?: 1);
}

/* Pages of @mapping have become dirty; or, @nr is negative, are not any more. */
void ft_data_dirtied(struct address_space *mapping, long nr)
{
	if (!ft_syncs() || !S_ISREG(mapping->host->i_mode) ||
	    ft_file_class(mapping) != FASTTRACK_BACKGROUND)
		return;
	/* Those that were dirty before nobody has counted. */
	if (atomic_long_add_return(nr, &ft_data_dirty) < 0)
		atomic_long_set(&ft_data_dirty, 0);
}

/* Dirty pages of background's files, in as far as a sync of the foreground's matters. */
unsigned long ft_data_pages(void)
{
	return max(atomic_long_read(&ft_data_dirty), 0L);
}
