// SPDX-License-Identifier: GPL-2.0
/*
 * Page reclaimer: the foreground's pages stay.
 *
 * Victims are taken in the order background clean, background dirty, foreground
 * clean, foreground dirty. Stock takes clean pages before dirty ones; this adds
 * who they belong to, and before it takes the foreground's it has background's
 * dirty ones written. A page of the page cache is the foreground's if an app in
 * front has read, mapped or written its file while in front, or looked into its
 * folder. Names and inodes stay by themselves: reclaim of pages that are read once
 * takes hardly any. When another app comes to the front, the old one's files lose
 * that at once: the class is asked for at the time of reclaim.
 *
 * One question for the classic LRU and for MGLRU, in shrink_folio_list(): a
 * protected folio goes back to where it came from. Protection ends
 * where nothing else is left, so no allocation fails for it; at a share of the page
 * cache (foreground_cache_percent), so that an app that reads more than fits
 * leaves cache to the others; and when others have read again as many pages as it
 * protects since the foreground has used any: an idle app pins nothing. MGLRU, which
 * makes young what goes back, lets it become old then.
 *
 * Not covered: anonymous memory, which has no file to belong to; and reclaim
 * for a memory cgroup's own limit.
 */
#include <linux/atomic.h>
#include <linux/backing-dev.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/wait.h>

#include <trace/events/fasttrack.h>

#include "internal.h"
#include "policy.h"

#include "../internal.h"

/*
 * Reclaim has waited for background's dirty pages for as long as it may: they
 * are the foreground's, or cannot be written. So many had been written by then.
 */
static bool ft_dirty_vain;
static unsigned long ft_dirty_vain_written;

/*
 * Refaults of files, up to which the foreground's use of its pages outweighs them.
 * Updates may get lost.
 */
static unsigned long ft_refaults_outweighed;

/* Folios of the foreground's have been put back, and MGLRU has made them young. */
static bool ft_young;
/* Changes when they shall become old; refaults of files when it last did. */
static u8 ft_young_epoch;
static unsigned long ft_young_refaults;

static unsigned long ft_refaults(void)
{
	return global_node_page_state(WORKINGSET_REFAULT_FILE);
}

/* Pages of the page cache that are of files, locked ones too. */
static unsigned long ft_file_pages(void)
{
	unsigned long pages = global_node_page_state(NR_FILE_PAGES);
	unsigned long others = global_node_page_state(NR_SHMEM) +
			       total_swapcache_pages();

	return pages - min(pages, others);
}

/* Another app is in front. */
void ft_reclaim_forget(void)
{
	WRITE_ONCE(ft_dirty_vain, false);
	WRITE_ONCE(ft_refaults_outweighed, ft_refaults());
}

/* The foreground uses pages of its own. Most calls find nothing to store. */
static void ft_reclaim_used(void)
{
	unsigned long outweighed = READ_ONCE(ft_refaults_outweighed);
	unsigned long more = ft_refaults() - outweighed;

	if (more)
		WRITE_ONCE(ft_refaults_outweighed,
			   outweighed + min(more, FT_USE_PAGES));
}

/* It does not, and others read again and again what has no room for it. */
static bool ft_reclaim_idle(unsigned long own)
{
	return ft_outweighed(ft_refaults() - READ_ONCE(ft_refaults_outweighed),
			     own);
}

/* Reclaim has met a dirty page of others: do they get written by now? */
static void ft_dirty_met(void)
{
	if (READ_ONCE(ft_dirty_vain) &&
	    global_node_page_state(NR_WRITTEN) -
		    READ_ONCE(ft_dirty_vain_written) >= FT_DIRTY_FIRST_PAGES)
		WRITE_ONCE(ft_dirty_vain, false);
}

/* Current, whose app is in front, uses a file. Not for somebody else, who is not? */
static bool ft_front_uses(void)
{
	if (unlikely(current->fasttrack_scope.override) &&
	    ft_scope_class(current) != FASTTRACK_FOREGROUND)
		return false;
	ft_reclaim_used();
	return true;
}

/* Most uses are of a file that is in use by somebody in front: its line stays shared. */
static bool ft_in_use(const struct address_space *mapping)
{
	return fasttrack_app_entry(READ_ONCE(mapping->fasttrack_user)) ==
	       FASTTRACK_FOREGROUND;
}

/* Are @mapping's pages on the LRUs of files? Those of memory alone are not. */
static bool ft_is_counted(struct address_space *mapping)
{
	return mapping->host && !shmem_mapping(mapping) &&
	       !mapping_unevictable(mapping) &&
	       mapping->host->i_sb->s_magic != HUGETLBFS_MAGIC;
}

/* @mapping's file is current's from now on, and so are its pages. */
static noinline void ft_take_into_use(struct address_space *mapping)
{
	u32 app = ft_app_of(current);

	lockdep_assert_held(&mapping->i_pages.xa_lock);

	if (ft_is_counted(mapping)) {
		ft_app_count(READ_ONCE(mapping->fasttrack_user),
			     FT_PAGES_CACHED, -(long)mapping->nrpages);
		ft_app_count(app, FT_PAGES_CACHED, mapping->nrpages);
	}
	WRITE_ONCE(mapping->fasttrack_user, app);
}

/* Current, whose app is in front, uses @mapping's file, whose lock is held. */
void ft_file_used(struct address_space *mapping)
{
	if (ft_front_uses() && !ft_in_use(mapping))
		ft_take_into_use(mapping);
}

static noinline void ft_lock_and_use(struct address_space *mapping)
{
	unsigned long flags;

	xa_lock_irqsave(&mapping->i_pages, flags);
	if (!ft_in_use(mapping))
		ft_take_into_use(mapping);
	xa_unlock_irqrestore(&mapping->i_pages, flags);
}

/* The same, without the lock. */
void __fasttrack_mapping_used(struct address_space *mapping)
{
	if (ft_front_uses() && !ft_in_use(mapping))
		ft_lock_and_use(mapping);
}

/**
 * __fasttrack_mapping_cached - pages have come into, or left, the page cache
 * @mapping: whose; its lock is held
 * @nr: how many; negative: they have left
 *
 * Context: any.
 */
void __fasttrack_mapping_cached(struct address_space *mapping, long nr)
{
	if (ft_is_counted(mapping))
		ft_app_count(READ_ONCE(mapping->fasttrack_user),
			     FT_PAGES_CACHED, nr);
}

/**
 * __fasttrack_protects - shall reclaim pass over @folio?
 * @folio: locked
 * @priority: scan_control's, falling from DEF_PRIORITY to 0
 * @dirty: whether it is, or is being written
 *
 * Context: reclaim; does not sleep.
 */
bool __fasttrack_protects(struct folio *folio, int priority, bool dirty)
{
	struct address_space *mapping = folio_mapping(folio);
	unsigned long own;

	if (!READ_ONCE(ft_knobs.page_reclaimer) || folio_test_anon(folio) ||
	    !mapping || !ft_foreground_set())
		return false;
	if (!ft_in_use(mapping)) {
		if (dirty)
			ft_dirty_met();
		return false;
	}
	own = ft_front_pages(FT_PAGES_CACHED);
	if (ft_reclaim_idle(own) ||
	    !ft_protects(priority, own, ft_file_pages(),
			 READ_ONCE(ft_knobs.foreground_cache_percent)))
		return false;
	if (!READ_ONCE(ft_young))
		WRITE_ONCE(ft_young, true);
	fasttrack_count(FASTTRACK_RECLAIM_PROTECTED);
	trace_fasttrack_protect(folio, priority);
	return true;
}

/**
 * __fasttrack_ages - shall the folios of an LRU become old?
 * @epoch: when they last did so for this; updated
 *
 * Once for each time that the foreground's have been protected and it uses them no
 * longer; and not again before others have read as many pages: it walks page tables, and
 * mixes what is old with what is not.
 *
 * Context: reclaim; does not sleep.
 * Return: if so.
 */
bool __fasttrack_ages(u8 *epoch)
{
	unsigned long own = ft_front_pages(FT_PAGES_CACHED);

	if (READ_ONCE(ft_young) && ft_reclaim_idle(own) &&
	    ft_refaults() - READ_ONCE(ft_young_refaults) >= own) {
		WRITE_ONCE(ft_young, false);
		WRITE_ONCE(ft_young_epoch, ft_young_epoch + 1);
		WRITE_ONCE(ft_young_refaults, ft_refaults());
	}
	if (READ_ONCE(*epoch) == READ_ONCE(ft_young_epoch))
		return false;
	WRITE_ONCE(*epoch, READ_ONCE(ft_young_epoch));
	return true;
}

/*
 * May current, in reclaim for @gfp, wait since @since? Kswapd, as long as nobody
 * waits for it; background once, as stock's reclaim may, for it may hold locks.
 */
static bool ft_may_wait_for_dirty(struct pglist_data *pgdat, gfp_t gfp,
				  unsigned long since)
{
	if (current_is_kswapd())
		/* A hint, as in balance_pgdat(): the wait is short. */
		return !waitqueue_active(&pgdat->pfmemalloc_wait);
	/* Nor do stock's io_uring workers wait in reclaim. */
	return !since && (gfp & __GFP_FS) &&
	       !(current->flags & PF_USER_WORKER) &&
	       !fatal_signal_pending(current) && !fasttrack_inherits(current) &&
	       __fasttrack_task_class(current) == FASTTRACK_BACKGROUND;
}

/**
 * __fasttrack_dirty_first - background's dirty pages go before the foreground's
 * @pgdat: the node that reclaim takes pages of
 * @gfp: of the allocation, or kswapd's
 * @priority: that reclaim has come to
 * @since: when it began to wait, in jiffies; 0: it has not
 *
 * Reclaim leaves dirty pages until they are written. Where protection is about to
 * end, have them written and wait for some: kswapd for a second at most, a
 * background task once. Meanwhile nobody who may write them is held back.
 *
 * Context: reclaim; may sleep for a tenth of a second.
 * Return: whether to try again at the same priority.
 */
bool __fasttrack_dirty_first(struct pglist_data *pgdat, gfp_t gfp, int priority,
			     unsigned long *since)
{
	if (!READ_ONCE(ft_knobs.page_reclaimer) || !ft_foreground_set() ||
	    READ_ONCE(ft_dirty_vain) ||
	    !ft_dirty_first(priority, global_node_page_state(NR_FILE_DIRTY) +
				      global_node_page_state(NR_WRITEBACK),
			    ft_front_pages(FT_PAGES_DIRTY)) ||
	    !ft_may_wait_for_dirty(pgdat, gfp, *since))
		return false;
	if (!*since)
		*since = jiffies ?: 1;
	if (time_after(jiffies, *since + FT_DIRTY_FIRST_LIMIT)) {
		WRITE_ONCE(ft_dirty_vain_written,
			   global_node_page_state(NR_WRITTEN));
		WRITE_ONCE(ft_dirty_vain, true);
		return false;
	}
	fasttrack_count(FASTTRACK_RECLAIM_WAITED);
	ft_reclaim_wait_begin();
	ft_kick(false);
	wakeup_flusher_threads(WB_REASON_VMSCAN);
	reclaim_throttle(pgdat, VMSCAN_THROTTLE_WRITEBACK);
	ft_reclaim_wait_end();
	return true;
}
