// SPDX-License-Identifier: GPL-2.0
/*
 * Page allocator, first part: background work in the page cache pauses while
 * the foreground works.
 *
 * Work is counted in pages brought into the cache, copied or made dirty; a batch
 * of reclaim counts as 32. At the end of a segment (segment_kb) a background task
 * pauses, until the foreground has been idle for a while or the task has paused
 * for background_pause_ms. Then it may do another segment.
 *
 * Where it pauses:
 *  - on its way back to user mode, where it holds nothing. This covers faults,
 *    readahead and everything short;
 *  - between two chunks of a long buffered read or write. There a file system
 *    may hold the inode's lock, and writers hold off a freeze of the file
 *    system. The pause ends within FT_SLICE when somebody waits for either, or
 *    the foreground for a lock of the caller's, a pipe's for one;
 *  - between two segments of write-back, until the last has been written: in its
 *    own fsync; and the flusher, with a background app's file and if nobody
 *    waits for the work. A file system ends the flusher's turn, which pauses
 *    where it holds nothing.
 *
 * Five hooks are write-back's, fasttrack_writeback_...():
 *
 *  hook     who calls it                     what is held there       sleeps
 *  begin    wb_writeback(), before a work    nothing                  no
 *           of the flusher's
 *  over     writeback_iter(), ext4, f2fs:    the file system's locks  no
 *           before each folio                that are below, ext4's
 *                                            handle, locked folios
 *  pause    wb_writeback(), after a turn     nothing                  yes
 *           that "over" has ended
 *  due      ext4, f2fs: before a folio, of   as at "segment"          no
 *           fsync's and the like alone
 *  segment  the same when "due" is true,     the inode's lock, ext4's yes
 *           after they have sent what they   s_writepages_rwsem,
 *           had collected                    f2fs's writepages
 *
 * It never pauses inside a journal handle, in reclaim, for a caller that must
 * not block, or with a signal pending: killing, freezing and stopping a paused
 * task work at once.
 */
#include <linux/backing-dev.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/resume_user_mode.h>
#include <linux/rwsem.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/writeback.h>

#include <trace/events/fasttrack.h>

#include "internal.h"
#include "policy.h"

/* A lock of others is held no longer than this after somebody asks for it. */
#define FT_SLICE	(4 * NSEC_PER_MSEC)

/* Background tasks that pause. Woken when the foreground set changes. */
static DECLARE_WAIT_QUEUE_HEAD(ft_paused);

/* Nobody is paused for a reason that is gone. */
void ft_pause_end_all(void)
{
	wake_up_all(&ft_paused);
	ft_writeback_go();
}

/* Does @inode's lock or file system keep somebody waiting? */
static bool ft_in_the_way(struct inode *inode)
{
	return inode && (rwsem_is_contended(&inode->i_rwsem) ||
			 inode->i_sb->s_writers.frozen != SB_UNFROZEN);
}

/*
 * May current, which writes back to @wb, pause? As long as a segment's worth of
 * pages has not been written, and nobody has come who waits for more.
 */
static bool ft_writeback_may_pause(struct bdi_writeback *wb)
{
	return !fasttrack_foreground_depends() && list_empty(&wb->work_list) &&
	       test_bit(WB_registered, &wb->state) &&
	       wb_stat_sum(wb, WB_WRITEBACK) >=
		       READ_ONCE(ft_knobs.segment_pages);
}

/* Is current background, or the flusher? No other kernel thread pauses. */
static bool ft_is_to_pause(struct bdi_writeback *wb)
{
	if (!ft_is_user_task(current))
		return wb;
	return __fasttrack_task_class(current) == FASTTRACK_BACKGROUND;
}

/* The class of a task, and who is in front, may change while it pauses. */
static bool ft_may_pause(struct inode *inode, struct bdi_writeback *wb)
{
	return fasttrack_enabled() && READ_ONCE(ft_knobs.page_allocator) &&
	       !signal_pending(current) && !ft_in_the_way(inode) &&
	       !fasttrack_inherits(current) &&
	       (!wb || ft_writeback_may_pause(wb)) && ft_is_to_pause(wb);
}

/*
 * Pause current while the foreground works: a background task, or the flusher.
 * @inode: whose locks it may hold, or NULL; @wb: where it writes back, or NULL.
 */
static void ft_pause(struct inode *inode, struct bdi_writeback *wb)
{
	struct wait_queue_head *paused = wb ? &ft_writeback_paused : &ft_paused;
	u64 bound = READ_ONCE(ft_knobs.background_pause);
	u64 window = READ_ONCE(ft_knobs.idle_window);
	u64 began = ktime_get_ns(), now = began, sleep;
	DEFINE_WAIT(wait);

	for (;;) {
		struct ft_activity activity = ft_activity_read();
		ktime_t timeout;

		prepare_to_wait(paused, &wait, TASK_INTERRUPTIBLE);
		sleep = ft_pause_sleep(&activity, window, bound, began, now);
		if (!sleep || !ft_may_pause(inode, wb))
			break;
		timeout = inode || wb ? min(sleep, FT_SLICE) : sleep;
		schedule_hrtimeout(&timeout, HRTIMER_MODE_REL);
		now = ktime_get_ns();
	}
	finish_wait(paused, &wait);
	if (now == began)
		return;
	fasttrack_count(FASTTRACK_PAUSE);
	fasttrack_max(FASTTRACK_PAUSE_MAX, now - began);
	trace_fasttrack_pause(current, now - began);
}

/* Is current's segment over, at a place where it may pause? */
static bool ft_segment_over(void)
{
	if (current->fasttrack_pages < READ_ONCE(ft_knobs.segment_pages))
		return false;
	if (current->journal_info || current->in_execve ||
	    (current->flags & (PF_MEMALLOC | PF_EXITING)))
		return false;
	current->fasttrack_pages = 0;
	return true;
}

/**
 * __fasttrack_cache_work - current has done some work in the page cache
 * @pages: how much
 *
 * Context: any process context; does not sleep.
 */
void __fasttrack_cache_work(unsigned long pages)
{
	switch (__fasttrack_task_class(current)) {
	case FASTTRACK_FOREGROUND:
		ft_activity_note();
		break;
	case FASTTRACK_BACKGROUND:
		current->fasttrack_pages += pages;
		if (current->fasttrack_pages >=
		    READ_ONCE(ft_knobs.segment_pages))
			set_notify_resume(current);
		break;
	default:
		break;
	}
}

/*
 * Who copies from or to the kernel's own memory may have folios locked, as a
 * file system has that lies on another. Save splice(2), which writes so.
 */
static bool ft_holds_no_folio(const struct iov_iter *iter)
{
	return user_backed_iter(iter) ||
	       (iov_iter_is_bvec(iter) && iov_iter_rw(iter) == ITER_SOURCE);
}

/**
 * __fasttrack_segment - between two chunks of a buffered read or write
 * @iocb: the call; one that must not block is left alone
 * @iter: what it copies from or to
 * @pages: copied since the last time
 *
 * Context: may sleep. The inode's lock may be held, and its caller's, of a pipe
 * or the file's position.
 */
void __fasttrack_segment(struct kiocb *iocb, const struct iov_iter *iter,
			 unsigned long pages)
{
	__fasttrack_cache_work(pages);
	if (iocb->ki_flags & (IOCB_NOWAIT | IOCB_WAITQ | IOCB_NOIO))
		return;
	if (ft_holds_no_folio(iter) && ft_segment_over())
		ft_pause(file_inode(iocb->ki_filp), NULL);
}

/**
 * __fasttrack_resume_user - current returns to user mode
 *
 * Context: may sleep; no locks are held.
 */
void __fasttrack_resume_user(void)
{
	if (ft_segment_over())
		ft_pause(NULL, NULL);
}

/**
 * __fasttrack_writeback_over - shall this turn of write-back end before a folio?
 * @mapping: the folio's
 * @wbc: the turn; remembers the answer
 *
 * Only with a background app's file, if nobody waits, after a segment, and if
 * the foreground works and waits for nobody. Files of others are written in the
 * same turn: the foreground's do not wait for the background's.
 *
 * Context: process context; does not sleep.
 * Return: if so.
 */
bool __fasttrack_writeback_over(struct address_space *mapping,
				struct writeback_control *wbc)
{
	if (wbc->fasttrack_over)
		return true;
	if (wbc->fasttrack_yields &&
	    ft_file_class(mapping) != FASTTRACK_BACKGROUND)
		return false;
	current->fasttrack_pages++;
	if (!wbc->fasttrack_yields ||
	    current->fasttrack_pages < READ_ONCE(ft_knobs.segment_pages) ||
	    fasttrack_foreground_depends() || !ft_foreground_works())
		return false;
	wbc->fasttrack_over = 1;
	return true;
}
EXPORT_SYMBOL_GPL(__fasttrack_writeback_over);

/* Where the pages are counted that @wbc writes of @mapping. */
static struct bdi_writeback *ft_wb_of(struct address_space *mapping,
				      struct writeback_control *wbc)
{
#ifdef CONFIG_CGROUP_WRITEBACK
	if (wbc->wb)
		return wbc->wb;
#endif
	return &inode_to_bdi(mapping->host)->wb;
}

/**
 * __fasttrack_writeback_due - shall current, in its fsync, pause before a folio?
 * @wbc: its write-back
 *
 * Context: process context; does not sleep.
 * Return: if so.
 */
bool __fasttrack_writeback_due(struct writeback_control *wbc)
{
	/* It is promotion that ends the pause for who waits for a lock. */
	return wbc->sync_mode == WB_SYNC_ALL && ft_segment_over() &&
	       READ_ONCE(ft_knobs.promotion) &&
	       __fasttrack_task_class(current) == FASTTRACK_BACKGROUND &&
	       ft_foreground_works();
}
EXPORT_SYMBOL_GPL(__fasttrack_writeback_due);

/**
 * __fasttrack_writeback_segment - between two segments of an fsync
 * @mapping: the file's
 * @wbc: its write-back
 *
 * Context: may sleep; no folio is locked, and all that is under write-back has
 * been sent. A foreground task that waits for a lock that is held here says so
 * (__fasttrack_others_begin()), and ends the pause.
 */
void __fasttrack_writeback_segment(struct address_space *mapping,
				   struct writeback_control *wbc)
{
	ft_pause(mapping->host, ft_wb_of(mapping, wbc));
}
EXPORT_SYMBOL_GPL(__fasttrack_writeback_segment);

/**
 * __fasttrack_writeback_begin - before the first segment of a turn of write-back
 *
 * Context: process context; does not sleep.
 */
void __fasttrack_writeback_begin(void)
{
	current->fasttrack_pages = 0;
}

/**
 * __fasttrack_writeback_pause - between two turns of write-back
 * @wb: whose
 *
 * Context: may sleep; the flusher, which holds no locks.
 */
void __fasttrack_writeback_pause(struct bdi_writeback *wb)
{
	__fasttrack_writeback_begin();
	ft_pause(NULL, wb);
}
