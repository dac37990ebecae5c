// SPDX-License-Identifier: GPL-2.0
/*
 * Page allocator, first part: background work in the page cache pauses while
 * the foreground works.
 *
 * Work is counted in pages brought into the cache, copied or made dirty; a batch of
 * reclaim counts as 32, a commit that is asked for as a segment. Who has done a
 * segment of it (segment_kb) owes a pause, until the foreground does not work, and
 * what it will wait for is written (backlog.c), or for background_pause_ms. A call of
 * many segments owes as many pauses.
 *
 * A pause is where a task holds nothing that others can wait for:
 *  - on its way back to user mode. A signal that kills, stops or freezes the task
 *    ends the pause; what is owed for the rest of it is kept;
 *  - in fsync(2) and the like, between pieces of the file that are written back
 *    one after the other before the file system is called;
 *  - the flusher, between two turns of write-back, with a background app's file
 *    and if nobody waits for the work, until the last segment has been written.
 *
 * Nor is a piece or a segment begun whose sender would wait for a request tag, with
 * locks of the file system's: an fsync waits before, the flusher passes over the file.
 *
 * Nine hooks are write-back's: fasttrack_writeback_...(), fasttrack_fsync() and
 * fasttrack_extent_full():
 *
 *  hook     who calls it                     what is held there       sleeps
 *  begin,   wb_writeback(), before and       nothing                  no
 *  end      after a work of the flusher's
 *  over     writeback_iter(), ext4, f2fs:    the file system's locks  no
 *           before each folio                that are below, ext4's
 *                                            handle, locked folios
 *  skips    the flusher, before a file       the list of files, the   no
 *                                            inode's spinlock
 *  pause    wb_writeback(), after a turn     nothing                  yes
 *           that "over" has ended
 *  wait     wb_writeback(), when all that    nothing                  yes
 *           is left has been passed over
 *  queued   wb_queue_work(), wb_shutdown()   wb->work_lock            no
 *  fsync    fsync(2), sync_file_range(2),    nothing                  yes
 *           msync(2), io_uring, aio: before
 *           they sync a file
 *  extent   ext4, before a block is added    its handle               no
 *           to an extent that it maps
 *
 * Who pauses is woken once: when the foreground's idle window has ended. So is who waits
 * for what the device has to do before, when that is done: a sync, for tags, one after
 * the other; the flusher, for tags or for fewer pages under write-back.
 */
#include <linux/backing-dev.h>
#include <linux/freezer.h>
#include <linux/fs.h>
#include <linux/io_origin.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/pagemap.h>
#include <linux/pagevec.h>
#include <linux/resume_user_mode.h>
#include <linux/sched/jobctl.h>
#include <linux/sched/signal.h>
#include <linux/writeback.h>

#include <trace/events/fasttrack.h>

#include "internal.h"
#include "policy.h"

static bool ft_pauses(void)
{
	return fasttrack_enabled() && !READ_ONCE(ft_switching_off) &&
	       READ_ONCE(ft_knobs.page_allocator);
}

/*
 * May current be held back where it holds nothing? The class of a task, and who is in
 * front, may change meanwhile; and somebody may come who waits for a lock of a file
 * that its process has.
 */
static bool ft_task_may_wait(void)
{
	return ft_pauses() && !ft_anybody_stuck() &&
	       !ft_worker_is_watched(current->group_leader) &&
	       __fasttrack_task_class(current) == FASTTRACK_BACKGROUND;
}

static bool ft_task_pauses(void)
{
	return ft_task_may_wait() && !fasttrack_inherits(current);
}

/*
 * Is current to be killed, stopped or frozen? No other signal ends a pause: a timer's
 * would be a way out. Nor does a stop that another thread of its process is to take:
 * current would owe its pause again at once.
 */
static bool ft_stops(void)
{
	if (fatal_signal_pending(current) || freezing(current))
		return true;
	return signal_pending(current) &&
	       (((current->pending.signal.sig[0] |
		  current->signal->shared_pending.signal.sig[0]) &
		 sigmask(SIGSTOP)) ||
		(READ_ONCE(current->jobctl) &
		 (JOBCTL_PENDING_MASK | JOBCTL_TRAP_FREEZE)));
}

/* How current sleeps in a pause: a signal that ends none is there already, or not. */
static unsigned int ft_pause_state(void)
{
	return signal_pending(current) ? TASK_KILLABLE | TASK_FREEZABLE :
					 TASK_INTERRUPTIBLE;
}

/* Beside such a signal nobody is woken who is to stop, so current looks this often. */
#define FT_STOP_LOOK	(20 * NSEC_PER_MSEC)

/* How long current sleeps at a time, of @ns. */
static u64 ft_pause_length(u64 ns)
{
	return signal_pending(current) ? min(ns, FT_STOP_LOOK) : ns;
}

static bool ft_task_sleeps(void *unused)
{
	return ft_task_pauses() && !fatal_signal_pending(current) &&
	       (ft_foreground_works() || ft_has_backlog());
}

/* Is the foreground not the one who made the dirty pages? */
bool ft_front_is_exempt(void)
{
	unsigned long background_thresh, thresh;

	global_dirty_limits(&background_thresh, &thresh);
	return ft_dirty_exempt(ft_front_pages(FT_PAGES_DIRTY),
			       global_node_page_state(NR_FILE_DIRTY) +
				       global_node_page_state(NR_WRITEBACK),
			       thresh);
}

/* Does who is in front wait until pages of its own have been written? */
static bool ft_front_is_throttled(void)
{
	return ft_front_pages(FT_PAGES_DIRTY) >=
		       READ_ONCE(ft_knobs.segment_pages) &&
	       !ft_front_is_exempt();
}

/* Has the flusher, with @wb, nothing else to do? */
static bool ft_has_no_other_work(struct bdi_writeback *wb)
{
	return list_empty(&wb->work_list) &&
	       test_bit(WB_registered, &wb->state);
}

/* Has a segment's worth of pages been written? */
bool ft_writeback_caught_up(struct bdi_writeback *wb)
{
	return wb_stat_sum(wb, WB_WRITEBACK) <
	       READ_ONCE(ft_knobs.segment_pages);
}

/*
 * May current, which writes back to @wb, pause? As long as a segment's worth of
 * pages has not been written, and nobody has come who waits for more, or for all, nor is
 * throttled in front.
 */
static bool ft_writeback_may_pause(struct bdi_writeback *wb)
{
	return !fasttrack_foreground_depends() && ft_has_no_other_work(wb) &&
	       ft_who_syncs(wb->bdi) == FASTTRACK_BACKGROUND &&
	       !ft_front_is_throttled() && !ft_writeback_caught_up(wb);
}

static void ft_tell_paused(u64 ns)
{
	struct io_wait wait;

	if (!ns)
		return;
	fasttrack_count(FASTTRACK_PAUSE);
	fasttrack_max(FASTTRACK_PAUSE_MAX, ns);
	trace_fasttrack_pause(current, ns);
	wait = io_wait_begin(IO_WAIT_PAUSE, 0, 0);
	if (wait.begun)
		wait.begun -= ns;
	io_wait_end(&wait);
}

/*
 * Pause current until the foreground does not work, or @paused ns have become
 * background_pause.
 * Returns what comes next; FT_PAUSE_SLEEP if a signal has ended the pause.
 */
static enum ft_pause_end ft_pause(u64 *paused)
{
	u64 bound = READ_ONCE(ft_knobs.background_pause);
	u64 now = ktime_get_ns(), before = *paused;
	enum ft_pause_end end;
	u64 sleep, from;

	for (;;) {
		struct ft_activity activity = ft_activity_read();

		end = ft_task_pauses() ?
			ft_pause_next(&activity, ft_has_backlog(), bound,
				      *paused, now, &sleep) :
			FT_PAUSE_FREE;
		if (end != FT_PAUSE_SLEEP || ft_stops())
			break;
		fasttrack_holds();
		from = ktime_get_ns();
		sleep = ft_pause_length(sleep);
		ft_idle_wait(FT_QUEUE_IDLE, ft_pause_state(), sleep,
			     ft_task_sleeps, NULL);
		now = ktime_get_ns();
		*paused += ft_pause_counts(now - from, sleep);
	}
	ft_tell_paused(*paused - before);
	if (*paused - before > fasttrack_eject_bound())
		fasttrack_eject("pause", task_pid_nr(current), "page-cache",
				*paused - before);
	return end;
}

/*
 * Wait by @queue from @now until @until, ns, as long as @may says so of @what. The
 * flusher has other work to do: it is not held.
 *
 * Return: when it is over, ns.
 */
static u64 ft_wait_while(enum ft_wait_queue queue, u64 now, u64 until,
			 bool (*may)(void *what), void *what)
{
	while (now < until && may(what)) {
		if (queue != FT_QUEUE_FLUSHER)
			fasttrack_holds();
		ft_idle_wait(queue, ft_pause_state(), ft_pause_length(until - now),
			     may, what);
		now = ktime_get_ns();
	}
	return now;
}

/*
 * Pause by @queue as long as @may says so of @what, for background_pause at most.
 * Return: for how long, ns.
 */
static u64 ft_pause_while(enum ft_wait_queue queue, bool (*may)(void *what),
			  void *what)
{
	u64 began = ktime_get_ns();
	u64 paused = ft_wait_while(queue, began,
				   began + READ_ONCE(ft_knobs.background_pause),
				   may, what) - began;

	ft_tell_paused(paused);
	return paused;
}

/**
 * __fasttrack_task_changed - a task may be of another app from now on
 * @task: its number is looked up at the next use
 *
 * Context: any. After the change.
 */
void __fasttrack_task_changed(struct task_struct *task)
{
	/*
	 * What was changed is seen before the number is taken away: who gives one
	 * meanwhile looks again after that (ft_app_keep()).
	 */
	smp_mb();
	WRITE_ONCE(task->fasttrack_app, 0);
	/*
	 * It may be asleep in a pause, which it does not owe any more. It alone is
	 * woken: a control group may move thousands of tasks. Pairs with the barrier
	 * in prepare_to_wait() of ft_idle_wait().
	 */
	smp_mb();
	if (task != current &&
	    READ_ONCE(task->fasttrack_flags) & FT_TASK_PAUSED)
		wake_up_state(task, TASK_NORMAL);
}

/* Current, on its way back to user mode, owes a pause: what it has sent it holds no more. */
static void ft_pay(void)
{
	u64 paused = (u64)current->fasttrack_paused_ms * NSEC_PER_MSEC;
	enum ft_pause_end end;

	ft_has_sent();
	end = ft_pause(&paused);
	current->fasttrack_pages = ft_debt(end, current->fasttrack_pages,
					   READ_ONCE(ft_knobs.segment_pages));
	if (end == FT_PAUSE_SLEEP) {
		/* First it is stopped, then comes the rest of the pause. */
		current->fasttrack_paused_ms =
			min_t(u64, div_u64(paused, NSEC_PER_MSEC), U16_MAX);
		set_notify_resume(current);
	} else {
		current->fasttrack_paused_ms = 0;
	}
}

/* Has current done a segment's work? */
static bool ft_segment_over(void)
{
	return current->fasttrack_pages >= READ_ONCE(ft_knobs.segment_pages);
}

/* Is current of background? */
static bool ft_is_behind(void)
{
	return !(current->flags & PF_KTHREAD) &&
	       __fasttrack_task_class(current) == FASTTRACK_BACKGROUND;
}

/* And can it pause? Workers never return to user mode. */
bool ft_may_owe(void)
{
	return !(current->flags & PF_USER_WORKER) && ft_is_behind();
}

/* Current, of background, pauses as if it had done a segment's work, soon. */
void ft_owe_segment(void)
{
	current->fasttrack_pages =
		max_t(unsigned long, current->fasttrack_pages,
		      READ_ONCE(ft_knobs.segment_pages));
	set_notify_resume(current);
}

/**
 * __fasttrack_drain_adds - current has added to metadata that a file system drains
 *
 * A background task pauses on its way back to user mode until that is over.
 *
 * Context: any process context; does not sleep.
 */
void __fasttrack_drain_adds(void)
{
	if (!ft_may_owe())
		return;
	ft_flag(FT_TASK_ADDS, true);
	set_notify_resume(current);
}
EXPORT_SYMBOL_GPL(__fasttrack_drain_adds);

static bool ft_waits_for_drain(void *drained)
{
	return ft_task_pauses() && !ft_stops() &&
	       ft_draining(*(unsigned int *)drained);
}

/* Current has added to metadata that is drained: it pauses until that is over. */
static void ft_pause_for_drain(void)
{
	unsigned int drained = ft_drained();

	ft_flag(FT_TASK_ADDS, false);
	ft_has_sent();
	ft_pause_while(FT_QUEUE_IDLE, ft_waits_for_drain, &drained);
}

/* Current, of background, has done some work, in pages. */
static void ft_owe(unsigned long pages)
{
	current->fasttrack_pages += pages;
	if (ft_segment_over())
		set_notify_resume(current);
}

/* Of background, unless a closer look finds something else. */
static noinline void ft_owe_perhaps(unsigned long pages)
{
	if (ft_may_owe())
		ft_owe(pages);
}

/**
 * __fasttrack_cache_work - current, whose app is background, has done some work
 * @pages: how much, in the page cache
 *
 * Context: any process context; does not sleep.
 */
void __fasttrack_cache_work(unsigned long pages)
{
	if (likely(ft_is_ordinary(current)))
		ft_owe(pages);
	else
		ft_owe_perhaps(pages);
}

/**
 * __fasttrack_resume_user - current returns to user mode
 *
 * Context: may sleep; no locks are held.
 */
void __fasttrack_resume_user(void)
{
	if (current->flags & (PF_EXITING | PF_USER_WORKER))
		return;
	if (current->fasttrack_flags & FT_TASK_ADDS)
		ft_pause_for_drain();
	if (ft_segment_over())
		ft_pay();
}

/*
 * Shall current, which syncs a file, have it written back in pieces? Also with nobody
 * in front: who comes there would wait for a lock of the file system's until all of
 * it has been sent. And also if somebody waits for current, without pauses then.
 */
static bool ft_syncs_in_pieces(void)
{
	return ft_pauses() && !ft_stops() &&
	       __fasttrack_task_class(current) == FASTTRACK_BACKGROUND;
}

static bool ft_sync_has_no_room(void *mapping)
{
	return ft_task_may_wait() && !ft_stops() && ft_foreground_works() &&
	       ft_queues_crowded(mapping, true);
}

/*
 * Who sends a piece has locks of the file system's, f2fs's mutex for all write-back
 * for one, until there has been a tag for each of its requests. So it waits before,
 * when it holds nothing, also if it inherits: until there is room, or for
 * background_pause.
 *
 * Return: for how long, ns.
 */
static u64 ft_wait_for_room(struct address_space *mapping)
{
	return ft_pause_while(FT_QUEUE_TAGS, ft_sync_has_no_room, mapping);
}

/* The first dirty page of @mapping from @index on; false if there is none. */
static bool ft_next_dirty(struct address_space *mapping, pgoff_t *index,
			  pgoff_t end)
{
	struct folio_batch batch;
	pgoff_t next = *index;

	folio_batch_init(&batch);
	if (!filemap_get_folios_tag(mapping, &next, end, PAGECACHE_TAG_DIRTY,
				    &batch))
		return false;
	*index = max(*index, batch.folios[0]->index);
	folio_batch_release(&batch);
	return true;
}

/*
 * Has a signal killed current? Where another thread ends the process or begins a new
 * program, that may be meant to wait for what current does.
 */
static bool ft_is_killed_by_signal(void)
{
	return fatal_signal_pending(current) &&
	       (READ_ONCE(current->signal->group_exit_code) & 0x7f);
}

/**
 * __fasttrack_fsync - current is about to sync a file
 * @mapping: the file's
 * @start: first byte
 * @end: last byte
 * @datasync: only what is needed to read its data
 *
 * A background task has it written back a segment at a time, with a pause after
 * each if the foreground works, and none is begun without tags to be had. What it
 * holds then nobody can wait for. If a signal kills it between two of them, it syncs no
 * more: nobody is told that it has.
 *
 * Context: may sleep; no locks are held.
 * Return: whether it is still to sync.
 */
bool __fasttrack_fsync(struct address_space *mapping, loff_t start, loff_t end,
		       bool datasync)
{
	unsigned long segment = READ_ONCE(ft_knobs.segment_pages);
	const loff_t bytes = (loff_t)segment << PAGE_SHIFT;
	pgoff_t index = start >> PAGE_SHIFT;
	/* Of a ring's file another process may see the result. */
	const bool ends = ft_syncs_in_pieces() && !(current->flags & PF_USER_WORKER);
	struct fasttrack_scope outer;
	unsigned int owed;
	u64 paused;
	int error;

	if ((current->flags & PF_USER_WORKER) && ft_segment_over())
		ft_pay();
	owed = current->fasttrack_pages;
	while (ft_syncs_in_pieces() &&
	       ft_next_dirty(mapping, &index, end >> PAGE_SHIFT)) {
		paused = ft_wait_for_room(mapping);
		outer = fasttrack_cause_enter(datasync ?
					      FASTTRACK_CAUSE_FDATASYNC :
					      FASTTRACK_CAUSE_FSYNC);
		start = (loff_t)index << PAGE_SHIFT;
		error = filemap_fdatawrite_range(mapping, start,
						 min(end, start + bytes - 1));
		fasttrack_scope_leave(outer);
		if (error) {
			/* Kept for who syncs: the pages may be gone. */
			mapping_set_error(mapping, error);
			break;
		}
		ft_flag(FT_TASK_PAID, true);
		/* What is paid for here is not owed on the way back to user mode. */
		if (ft_pause(&paused) != FT_PAUSE_SLEEP)
			current->fasttrack_pages = owed;
		owed = current->fasttrack_pages;
		try_to_freeze();
		if (check_add_overflow(index, segment, &index))
			break;
	}
	return !ends || !ft_is_killed_by_signal();
}

/**
 * __fasttrack_commit_asked - current makes the file system commit
 *
 * The foreground's next fsync waits for that commit, and then for its own. A background
 * task pauses for it as for a segment, unless it has done so for pages that it syncs: a
 * folder has none, nor has what fallocate(2) has added. Workers of io_uring do before
 * their next sync.
 *
 * Context: any process context; does not sleep.
 */
void __fasttrack_commit_asked(void)
{
	if (current->fasttrack_flags & FT_TASK_PAID)
		ft_flag(FT_TASK_PAID, false);
	else if (ft_is_behind())
		ft_owe_segment();
}
EXPORT_SYMBOL_GPL(__fasttrack_commit_asked);

/**
 * __fasttrack_may_wait_first - may current wait for others before it makes all wait for them?
 * @bdi: the file system's
 *
 * While they may begin anew that takes longer: who is behind does, for who is in front.
 *
 * Context: any process context.
 * Return: if so.
 */
bool __fasttrack_may_wait_first(struct backing_dev_info *bdi)
{
	return ft_foreground_set() && __fasttrack_may_drain(bdi) &&
	       !fasttrack_foreground_depends();
}
EXPORT_SYMBOL_GPL(__fasttrack_may_wait_first);

/*
 * Would who writes a background app's file back while the foreground works wait for a
 * tag, with locks of the file system's? Not if somebody waits for all that is dirty.
 */
static bool ft_writeback_has_no_room(const struct address_space *mapping)
{
	return ft_pauses() && !ft_dirty_is_waited_for(inode_to_bdi(mapping->host)) &&
	       ft_foreground_works() && ft_queues_crowded(mapping, false);
}

/**
 * __fasttrack_writeback_skips - may write-back pass over a file?
 * @wb: its write-back, by current; keeps since when it does for want of tags
 * @mapping: the file's
 * @over: the turn is over
 *
 * Those of others are written in the same turn. Thousands of background's are not
 * opened, one by one, to find that nothing of them is to be written now. Nor does a
 * segment begin without tags to be had, but one does when that has been so for
 * background_pause_ms.
 *
 * Context: any; does not sleep.
 * Return: if so: a background app's file.
 */
bool __fasttrack_writeback_skips(struct bdi_writeback *wb,
				 const struct address_space *mapping, bool over)
{
	u64 now;

	if (ft_file_class(mapping) != FASTTRACK_BACKGROUND)
		return false;
	if (over)
		return true;
	if (current->fasttrack_pages)
		return false;
	if (ft_writeback_has_no_room(mapping)) {
		now = ktime_get_ns();
		if (!wb->fasttrack_passed)
			wb->fasttrack_passed = now;
		if (now < wb->fasttrack_passed +
				  READ_ONCE(ft_knobs.background_pause))
			return true;
	}
	wb->fasttrack_passed = 0;
	return false;
}

/**
 * __fasttrack_writeback_over - shall this turn of write-back end before a folio?
 * @mapping: the folio's
 * @wbc: the turn; remembers the answer
 *
 * Only with a background app's file, if nobody waits for the work, after a segment,
 * and if the foreground works. If it waits for others, it may be for a lock that is
 * held here: the next turn begins at once then. Files of others are written in the
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
	if (!wbc->fasttrack_yields) {
		/* Who syncs does it for itself. */
		fasttrack_cache_work(1);
		return false;
	}
	if (ft_file_class(mapping) != FASTTRACK_BACKGROUND)
		return false;
	current->fasttrack_pages++;
	/* A turn writes a page at least: this one is not written. */
	if (current->fasttrack_pages < max(READ_ONCE(ft_knobs.segment_pages), 2UL) ||
	    !ft_foreground_works())
		return false;
	wbc->fasttrack_over = 1;
	return true;
}
EXPORT_SYMBOL_GPL(__fasttrack_writeback_over);

/**
 * __fasttrack_extent_full - are so many pages enough for one handle?
 * @mapping: whose
 * @pages: how many
 *
 * Who has a handle open sends its pages one after the other, and sleeps for a tag
 * with each request that there is no room for. The foreground's next commit waits
 * for the handle. So somebody else's ends after a segment: it is too late when the
 * foreground begins to wait, and background's when somebody comes to the front.
 *
 * Context: any.
 * Return: if so.
 */
bool __fasttrack_extent_full(const struct address_space *mapping,
			     unsigned long pages)
{
	enum fasttrack_class class;

	if (pages < READ_ONCE(ft_knobs.segment_pages) ||
	    !READ_ONCE(ft_knobs.page_allocator))
		return false;
	class = ft_file_class(mapping);
	return class == FASTTRACK_BACKGROUND ||
	       (class == FASTTRACK_NEUTRAL && ft_foreground_set());
}
EXPORT_SYMBOL_GPL(__fasttrack_extent_full);

/**
 * __fasttrack_writeback_begin - before the first turn of a work of the flusher's
 *
 * Context: process context; does not sleep.
 */
void __fasttrack_writeback_begin(void)
{
	current->fasttrack_pages = 0;
	ft_flag(FT_TASK_FLUSHES, true);
}

/* After the last one; FastTrack may be off by now. */
void __fasttrack_writeback_end(void)
{
	ft_flag(FT_TASK_FLUSHES, false);
}

static bool ft_flusher_pauses(void *what)
{
	struct bdi_writeback *wb = what;

	return ft_pauses() && ft_foreground_works() &&
	       !READ_ONCE(wb->fasttrack_throttles) && ft_writeback_may_pause(wb);
}

/* Pause the flusher while the foreground works. */
static void ft_pause_flusher(struct bdi_writeback *wb)
{
	u64 began = ktime_get_ns(), ended;

	/* Whoever writes a page sees this, or current sees that it is written. */
	WRITE_ONCE(wb->fasttrack_paused, true);
	ended = ft_wait_while(FT_QUEUE_FLUSHER, began,
			      began + READ_ONCE(ft_knobs.background_pause),
			      ft_flusher_pauses, wb);
	WRITE_ONCE(wb->fasttrack_paused, false);
	/* One more turn for who is throttled; whoever is then says so again. */
	WRITE_ONCE(wb->fasttrack_throttles, false);
	ft_tell_paused(ended - began);
}

/**
 * __fasttrack_writeback_pause - between two turns of write-back
 * @wb: whose
 *
 * Context: may sleep; the flusher, which holds no locks.
 */
void __fasttrack_writeback_pause(struct bdi_writeback *wb)
{
	current->fasttrack_pages = 0;
	ft_pause_flusher(wb);
}

/* Would the flusher pass over all again that it has passed over? */
static bool ft_flusher_has_no_room(void *what)
{
	struct bdi_writeback *wb = what;
	struct inode *inode;
	bool no_room = false;

	spin_lock(&wb->list_lock);
	list_for_each_entry(inode, &wb->b_more_io, i_io_list) {
		if (ft_file_class(inode->i_mapping) != FASTTRACK_BACKGROUND)
			continue;
		/* Those of the others are on the same disk. */
		no_room = ft_writeback_has_no_room(inode->i_mapping);
		break;
	}
	spin_unlock(&wb->list_lock);
	return no_room && ft_has_no_other_work(wb) &&
	       !READ_ONCE(wb->fasttrack_throttles);
}

/**
 * __fasttrack_writeback_wait - nothing is left but what has been passed over
 * @wb: whose write-back
 *
 * Until there are tags, or somebody waits who has made other files dirty.
 *
 * Context: may sleep; the flusher, which holds no locks.
 * Return: false if the work is to end: there is other work to do.
 */
bool __fasttrack_writeback_wait(struct bdi_writeback *wb)
{
	ft_wait_while(FT_QUEUE_FLUSHER, ktime_get_ns(),
		      wb->fasttrack_passed +
			      READ_ONCE(ft_knobs.background_pause),
		      ft_flusher_has_no_room, wb);
	/* The next turn takes what is dirty after that. */
	WRITE_ONCE(wb->fasttrack_throttles, false);
	cond_resched();
	return ft_has_no_other_work(wb);
}

/**
 * __fasttrack_writeback_queued - the flusher has other work to do
 *
 * Context: any.
 */
void __fasttrack_writeback_queued(void)
{
	ft_wake(FT_QUEUE_FLUSHER);
}
