// SPDX-License-Identifier: GPL-2.0
/*
 * Page reclaimer: the foreground's pages stay.
 *
 * Victims are taken in the order background clean, background dirty, foreground
 * clean, foreground dirty. Stock takes clean pages before dirty ones; this adds
 * who they belong to. A page of the page cache is the foreground's if an app in
 * front has read, mapped or written its file while in front. When another app
 * comes to the front, the old one's files lose that at once: the class is asked
 * for at the time of reclaim.
 *
 * One question for the classic LRU and for MGLRU, in shrink_folio_list(): a
 * protected folio goes back to where it came from. Protection ends
 * where nothing else is left, so no allocation fails for it, and at a share of
 * what is scanned (foreground_cache_percent), so that an app that reads more
 * than fits leaves cache to the others.
 *
 * Not covered: anonymous memory, which has no file to belong to; and reclaim
 * for a memory cgroup's own limit.
 */
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/vmstat.h>

#include <trace/events/fasttrack.h>

#include "internal.h"
#include "policy.h"

/*
 * Pages of files that reclaim has scanned lately, all and the foreground's:
 * about twice as many as there are, so that the ratio is the foreground's part
 * of the page cache, wherever in the LRU its pages stand together. Updates may
 * get lost: it is an estimate.
 */
static unsigned long ft_scanned_all;
static unsigned long ft_scanned_foreground;

static unsigned long ft_file_pages(void)
{
	return global_node_page_state(NR_ACTIVE_FILE) +
	       global_node_page_state(NR_INACTIVE_FILE);
}

static void ft_scanned(unsigned long all, unsigned long foreground)
{
	all += READ_ONCE(ft_scanned_all);
	foreground += READ_ONCE(ft_scanned_foreground);
	if (all > 2 * ft_file_pages()) {
		all /= 2;
		foreground /= 2;
	}
	WRITE_ONCE(ft_scanned_all, all);
	WRITE_ONCE(ft_scanned_foreground, foreground);
}

/* Another app is in front: it has no part yet. */
void ft_reclaim_forget(void)
{
	WRITE_ONCE(ft_scanned_all, ft_file_pages());
	WRITE_ONCE(ft_scanned_foreground, 0);
}

/* Current, if it is in front, uses @mapping's file. */
void __fasttrack_mapping_used(struct address_space *mapping)
{
	if (__fasttrack_task_class(current) != FASTTRACK_FOREGROUND)
		return;
	ft_activity_note();
	if (ft_is_user_task(current))
		ft_owner_note(&mapping->fasttrack_user);
}

/**
 * __fasttrack_protects - shall reclaim pass over @folio?
 * @folio: locked
 * @priority: scan_control's, falling from DEF_PRIORITY to 0
 *
 * Context: reclaim; does not sleep.
 */
bool __fasttrack_protects(struct folio *folio, int priority)
{
	struct address_space *mapping = folio_mapping(folio);
	unsigned long pages = folio_nr_pages(folio);
	struct fasttrack_owner user;

	if (!READ_ONCE(ft_knobs.page_reclaimer) || folio_test_anon(folio) ||
	    !mapping || !ft_foreground_set())
		return false;
	user = ft_owner_read(&mapping->fasttrack_user);
	if (__fasttrack_owner_class(&user) != FASTTRACK_FOREGROUND) {
		ft_scanned(pages, 0);
		return false;
	}
	ft_scanned(pages, pages);
	if (!ft_protects(priority, READ_ONCE(ft_scanned_foreground),
			 READ_ONCE(ft_scanned_all),
			 READ_ONCE(ft_knobs.foreground_cache_percent)))
		return false;
	fasttrack_count(FASTTRACK_RECLAIM_PROTECTED);
	trace_fasttrack_protect(folio, priority);
	return true;
}
