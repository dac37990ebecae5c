// SPDX-License-Identifier: GPL-2.0
/*
 * Page allocator, second part: pages and dirty limits.
 *
 *  - A reserve (reserve_kb) of free pages is the foreground's. A background
 *    allocation that would take from it reclaims first; if that does not
 *    help it gets what stock would give it, so that no allocation fails and
 *    nothing is killed for the reserve. Who reclaims uses up its segment by it,
 *    and pauses on its way back to user mode.
 *  - A foreground allocation may go below the low watermark as a real-time
 *    task's may. If it must reclaim nevertheless, it waits for nobody: no
 *    throttling, and no file system's locks.
 *  - The foreground is not throttled for dirty pages that others made; and when
 *    it has too many itself it writes some of them, instead of waiting for the
 *    flusher, which takes turns with the files of all others.
 *  - While the foreground syncs whole file systems now and then, background is
 *    throttled for its own dirty pages at a lower limit than stock's: on its way
 *    back to user mode. The flusher writes them early (backlog.c).
 */
#include <linux/backing-dev.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/swap.h>
#include <linux/writeback.h>

#include "internal.h"
#include "policy.h"

#include "../internal.h"

/*
 * Is an allocation of background's held to the reserve? Not if it cannot reclaim,
 * has done so in vain, shall die or free memory, or must not fail and has come to
 * stock's last means. With __GFP_HIGH, which only the kernel itself asks for, to
 * half of it, as it is to stock's watermarks.
 */
static bool ft_alloc_held(unsigned int alloc_flags, gfp_t gfp)
{
	if (alloc_flags & (ALLOC_FASTTRACK_SPENT | ALLOC_NO_WATERMARKS |
			   ALLOC_OOM))
		return false;
	if ((alloc_flags & ALLOC_MIN_RESERVE) && (gfp & __GFP_NOFAIL))
		return false;
	return gfp & __GFP_DIRECT_RECLAIM;
}

static bool ft_allocates(void)
{
	return READ_ONCE(ft_knobs.page_allocator) && in_task() &&
	       !(current->flags & PF_MEMALLOC);
}

/* Pages of @zone that are kept for the foreground. */
unsigned long __fasttrack_zone_reserve(struct zone *zone)
{
	if (!READ_ONCE(ft_knobs.page_allocator) || !ft_foreground_set())
		return 0;
	return ft_zone_reserve(READ_ONCE(ft_knobs.reserve_pages),
			       zone_managed_pages(zone), totalram_pages());
}

/**
 * __fasttrack_alloc_mark - the watermark that an allocation must leave
 * @zone: where
 * @mark: stock's
 * @alloc_flags: of the allocation
 * @gfp: likewise
 *
 * Return: pages, at least @mark.
 */
unsigned long __fasttrack_alloc_mark(struct zone *zone, unsigned long mark,
				     unsigned int alloc_flags, gfp_t gfp)
{
	if (!ft_alloc_held(alloc_flags, gfp) || !ft_allocates() ||
	    __fasttrack_task_class(current) != FASTTRACK_BACKGROUND)
		return mark;
	/* Who has a handle open, or is waited for, would keep the foreground waiting. */
	if (current->journal_info || fasttrack_inherits(current))
		return mark;
	return max(mark, low_wmark_pages(zone) +
			 __fasttrack_zone_reserve(zone));
}

/**
 * __fasttrack_alloc_spent - a background allocation has reclaimed in vain
 * @alloc_flags: marked, so that it is not held to the reserve any longer
 *
 * Return: whether to try again.
 */
bool __fasttrack_alloc_spent(unsigned int *alloc_flags)
{
	if (!ft_alloc_held(*alloc_flags, __GFP_DIRECT_RECLAIM) ||
	    !ft_allocates() ||
	    __fasttrack_task_class(current) != FASTTRACK_BACKGROUND)
		return false;
	*alloc_flags |= ALLOC_FASTTRACK_SPENT;
	fasttrack_count(FASTTRACK_RESERVE_SPENT);
	/* Its next segment can wait. */
	fasttrack_cache_work(READ_ONCE(ft_knobs.segment_pages));
	return true;
}

/* Is current's allocation the foreground's? */
bool __fasttrack_allocates_foreground(void)
{
	return ft_allocates() &&
	       __fasttrack_task_class(current) == FASTTRACK_FOREGROUND;
}

/* Does current, in reclaim, allocate for the foreground? */
bool __fasttrack_reclaims_foreground(void)
{
	return READ_ONCE(ft_knobs.page_allocator) && !current_is_kswapd() &&
	       __fasttrack_task_class(current) == FASTTRACK_FOREGROUND;
}

/**
 * __fasttrack_reclaim_gfp - current's allocation has to reclaim
 * @gfp: what it may enter
 *
 * For a background task that is work in the page cache like any other: a batch of
 * reclaim is a part of its segment.
 *
 * Return: what it may enter; the foreground no file system.
 */
gfp_t __fasttrack_reclaim_gfp(gfp_t gfp)
{
	if (ft_allocates())
		fasttrack_cache_work(FT_RECLAIM_PAGES);
	if (!__fasttrack_allocates_foreground())
		return gfp;
	fasttrack_count(FASTTRACK_FOREGROUND_RECLAIM);
	ft_activity_note();
	return gfp & ~__GFP_FS;
}

/**
 * __fasttrack_dirty_exempt - is current in front, and not who made the dirty pages?
 * @wb: where current's are written back; its flusher goes on for whom it throttles
 *
 * Context: process context; does not sleep.
 * Return: if so.
 */
bool __fasttrack_dirty_exempt(struct bdi_writeback *wb)
{
	enum fasttrack_class class = __fasttrack_task_class(current);

	if (!READ_ONCE(ft_knobs.page_allocator) || class == FASTTRACK_BACKGROUND)
		return false;
	if (class == FASTTRACK_FOREGROUND && ft_front_is_exempt()) {
		fasttrack_count(FASTTRACK_DIRTY_EXEMPT);
		return true;
	}
	WRITE_ONCE(wb->fasttrack_throttles, true);
	ft_wake(FT_QUEUE_FLUSHER);
	return false;
}

/*
 * A part of a file that the foreground writes at a time: two of them keep a phone's
 * storage busy, and its next read waits for no more. And so many parts, where few
 * pages of each are dirty.
 */
#define FT_OWN_PART	((loff_t)SZ_1M)
#define FT_OWN_PARTS	64

/* May current write pages of a file of @inode's, which it has just dirtied? */
static bool ft_may_write(const struct inode *inode)
{
	return READ_ONCE(ft_knobs.page_allocator) && S_ISREG(inode->i_mode) &&
	       inode->i_sb->s_bdev && !current->journal_info &&
	       !(current->flags &
		 (PF_MEMALLOC | PF_MEMALLOC_NOFS | PF_MEMALLOC_NOIO)) &&
	       __fasttrack_task_class(current) == FASTTRACK_FOREGROUND;
}

/* Has the foreground too many dirty pages of its own? */
static bool ft_dirties_too_much(void)
{
	unsigned long background_thresh, thresh;

	global_dirty_limits(&background_thresh, &thresh);
	return ft_dirty_writes(ft_front_pages(FT_PAGES_DIRTY),
			       global_node_page_state(NR_FILE_DIRTY),
			       global_node_page_state(NR_WRITEBACK),
			       background_thresh, thresh);
}

/**
 * __fasttrack_dirty_write - current, which would be throttled, has dirtied a file
 * @mapping: the file's
 *
 * An app in front writes some pages of the file, oldest place first, if its own are
 * too many. An error is kept for who syncs the file.
 */
void __fasttrack_dirty_write(struct address_space *mapping)
{
	unsigned long index = 0;

	if (!ft_may_write(mapping->host))
		return;
	for (int part = 0; part < FT_OWN_PARTS && ft_dirties_too_much(); part++) {
		loff_t begin;
		int ret;

		if (!xa_find(&mapping->i_pages, &index, ULONG_MAX,
			     PAGECACHE_TAG_DIRTY))
			return;
		begin = (loff_t)index << PAGE_SHIFT;
		ret = filemap_fdatawrite_range(mapping, begin,
					       begin + FT_OWN_PART - 1);
		mapping_set_error(mapping, ret);
		if (ret)
			return;
		fasttrack_count(FASTTRACK_DIRTY_WRITTEN);
		/* Those before it are there when it is on its way. */
		if (begin) {
			loff_t from = max(begin - 4 * FT_OWN_PART, 0);

			filemap_fdatawait_range_keep_errors(mapping, from,
							    begin - 1);
		}
		index += FT_OWN_PART >> PAGE_SHIFT;
	}
}

static unsigned long ft_sync_bound(struct bdi_writeback *wb)
{
	return ft_sync_pages(READ_ONCE(wb->avg_write_bandwidth));
}

static bool ft_sync_is_under(struct bdi_writeback *wb)
{
	return ft_sync_under(ft_data_pages(), wb_stat_sum(wb, WB_WRITEBACK),
			     ft_sync_bound(wb));
}

/**
 * __fasttrack_dirty_over - shall the flusher write, though few pages are dirty?
 * @wb: for whom
 *
 * Context: any.
 * Return: if so: the foreground's next sync would wait for them.
 */
bool __fasttrack_dirty_over(struct bdi_writeback *wb)
{
	return ft_syncs() &&
	       ft_sync_writes(ft_data_pages(), ft_sync_bound(wb));
}

/**
 * __fasttrack_dirty_pace - current has dirtied some pages
 * @wb: where they are written back
 *
 * A background task pauses on its way back to user mode when there are more than
 * the foreground's next sync should wait for.
 *
 * Context: process context; does not sleep.
 */
void __fasttrack_dirty_pace(struct bdi_writeback *wb)
{
	if (!__fasttrack_dirty_over(wb) || !ft_may_owe())
		return;
	if (!writeback_in_progress(wb))
		wb_start_background_writeback(wb);
	if (!ft_sync_over(ft_data_pages(), wb_stat_sum(wb, WB_WRITEBACK),
			  ft_sync_bound(wb)))
		return;
	ft_owe_segment();
	ft_data_backlog_set(true);
	/* Who has written the last of them sees that, or current sees it. */
	smp_mb();
	if (ft_sync_is_under(wb))
		ft_data_backlog_set(false);
}

/**
 * __fasttrack_written - pages have been written
 * @wb: where
 *
 * Context: any, with interrupts off.
 */
void __fasttrack_written(struct bdi_writeback *wb)
{
	/* Nobody counts any longer what is dirty when no sync comes. */
	if (ft_data_has_backlog() && (!ft_syncs() || ft_sync_is_under(wb)))
		ft_data_backlog_set(false);
	/* Pairs with the barrier in prepare_to_wait() of ft_idle_wait(). */
	smp_mb();
	if (READ_ONCE(wb->fasttrack_paused) &&
	    wb_stat(wb, WB_WRITEBACK) <
		    READ_ONCE(ft_knobs.segment_pages) + wb_stat_error() &&
	    ft_writeback_caught_up(wb))
		ft_wake(FT_QUEUE_FLUSHER);
}

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/policy-kunit.h"
#endif
