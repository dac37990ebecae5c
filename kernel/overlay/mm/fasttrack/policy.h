/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policies of the page allocator and the page reclaimer: pure functions of
 * numbers. Times are in nanoseconds of CLOCK_MONOTONIC, and are arguments.
 */
#ifndef _MM_FASTTRACK_POLICY_H
#define _MM_FASTTRACK_POLICY_H

#include <linux/fasttrack_class.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

/**
 * struct ft_activity - what the foreground does
 * @asleep: foreground tasks that sleep in the kernel for I/O or for another
 *	task's I/O
 * @seen: the foreground has done anything since boot
 * @last: when it last did
 */
struct ft_activity {
	unsigned int asleep;
	bool seen;
	u64 last;
};

/*
 * Who sleeps for longer, without any other sign of the foreground, does not
 * wait for the storage: for a key under a terminal's lock, for a server that is
 * gone. Background does not wait for that.
 */
#define FT_ASLEEP_LIMIT_S	5
#define FT_ASLEEP_LIMIT		((u64)FT_ASLEEP_LIMIT_S * NSEC_PER_SEC)
#define FT_ASLEEP_LIMIT_JIFFIES	((unsigned long)FT_ASLEEP_LIMIT_S * HZ)

/* Does the foreground work? An idle window follows: its next I/O depends on
 * the last.
 */
static inline bool ft_works(const struct ft_activity *activity,
			    u64 idle_window, u64 now)
{
	if (activity->asleep && now < activity->last + FT_ASLEEP_LIMIT)
		return true;
	return activity->seen && now < activity->last + idle_window;
}

/*
 * How long a background task that pauses since @began sleeps before it looks
 * again; 0: it goes on. Never beyond @began + @bound.
 */
static inline u64 ft_pause_sleep(const struct ft_activity *activity,
				 u64 idle_window, u64 bound, u64 began, u64 now)
{
	u64 end = began + bound;

	if (now >= end || !ft_works(activity, idle_window, now))
		return 0;
	if (activity->asleep)
		return min(idle_window ?: bound, end - now);
	return min(activity->last + idle_window, end) - now;
}

/* A reserve above this part of a zone would be felt by everybody. */
#define FT_RESERVE_MAX_PART	16

/* A zone's part of a reserve of @pages, by its part of all managed pages. */
static inline unsigned long ft_zone_reserve(unsigned long pages,
					    unsigned long zone_managed,
					    unsigned long all_managed)
{
	if (!all_managed)
		return 0;
	return min(mult_frac(pages, zone_managed, all_managed),
		   zone_managed / FT_RESERVE_MAX_PART);
}

/*
 * Is the foreground exempt from dirty throttling? As long as its @own dirty
 * pages are below half of the limit @thresh; and, so that @dirty stays
 * bounded, below one and a half limits in all.
 */
static inline bool ft_dirty_exempt(unsigned long own, unsigned long dirty,
				   unsigned long thresh)
{
	return own < thresh / 2 && dirty < thresh + thresh / 2;
}

/*
 * A file has dirty pages of an app of class @before, and one of class @now dirties
 * it too. Shall it be the second one's? If that matters more: write-back of all
 * of them is then as urgent as its own.
 */
static inline bool ft_takes_over(enum fasttrack_class before,
				 enum fasttrack_class now)
{
	static const u8 rank[FASTTRACK_NR_APP_CLASSES] = {
		[FASTTRACK_BACKGROUND]	= 0,
		[FASTTRACK_NEUTRAL]	= 1,
		[FASTTRACK_PERCEPTIBLE]	= 2,
		[FASTTRACK_FOREGROUND]	= 3,
	};

	return rank[now] > rank[before];
}

/*
 * Reclaim begins at priority 12 (DEF_PRIORITY) and scans 1/2^priority of the
 * pages. At 2 it has looked at a quarter of them and found nothing else.
 */
#define FT_PROTECT_PRIORITY	2

/*
 * May reclaim pass over a page of the foreground's? Not when nothing else is
 * left (@priority), and not while more than @percent of the pages that were
 * scanned lately were the foreground's: an app that reads more than fits would
 * leave no cache to the others.
 */
static inline bool ft_protects(int priority, unsigned long foreground,
			       unsigned long scanned, unsigned int percent)
{
	return priority > FT_PROTECT_PRIORITY &&
	       foreground * 100 <= scanned * percent;
}

/* How long reclaim waits for background's dirty pages, in jiffies. */
#define FT_DIRTY_FIRST_LIMIT	HZ

/* So many are worth a wait: what reclaim takes at once. */
#define FT_DIRTY_FIRST_PAGES	32UL

/*
 * Shall reclaim wait until some of @dirty pages have been written? Before the
 * foreground's pages are protected no longer, if more than its @own are dirty.
 */
static inline bool ft_dirty_first(int priority, unsigned long dirty,
				  unsigned long own)
{
	return priority == FT_PROTECT_PRIORITY + 1 &&
	       dirty >= own + FT_DIRTY_FIRST_PAGES;
}

#endif /* _MM_FASTTRACK_POLICY_H */
