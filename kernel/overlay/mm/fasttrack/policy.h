/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policies of the page allocator and the page reclaimer: pure functions of
 * numbers. Times are in nanoseconds of CLOCK_MONOTONIC, and are arguments.
 */
#ifndef _MM_FASTTRACK_POLICY_H
#define _MM_FASTTRACK_POLICY_H

#include <linux/atomic.h>
#include <linux/fasttrack_class.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * Who sleeps for longer does not wait for the storage: for a key under a
 * terminal's lock, for a server that is gone. Nobody is held back, or let go, for
 * that.
 */
#define FT_ASLEEP_LIMIT		(5ULL * NSEC_PER_SEC)

/**
 * struct ft_waiters - who waits, by when they began
 * @period: begin of the period in which the last one began
 * @young: began in that period, of FT_ASLEEP_LIMIT
 * @older: began in the one before
 * @forgotten: began before that
 *
 * Who has waited for one or two periods counts no longer, whoever else comes. A
 * waiter does not know its period: the young ones are taken to end first.
 */
struct ft_waiters {
	u64 period;
	atomic_t young;
	unsigned int older;
	unsigned int forgotten;
};

/* How many of them count at @now? */
static inline unsigned int ft_waiters_count(const struct ft_waiters *waiters,
					    u64 now)
{
	unsigned int young = atomic_read(&waiters->young);

	if (now < waiters->period + FT_ASLEEP_LIMIT)
		return young + waiters->older;
	return now < waiters->period + 2 * FT_ASLEEP_LIMIT ? young : 0;
}

/* Another period begins at @now, if the last is over. */
static inline void ft_waiters_age(struct ft_waiters *waiters, u64 now)
{
	if (now < waiters->period + FT_ASLEEP_LIMIT)
		return;
	waiters->forgotten += waiters->older;
	waiters->older = atomic_xchg(&waiters->young, 0);
	waiters->period += FT_ASLEEP_LIMIT;
	if (now < waiters->period + FT_ASLEEP_LIMIT)
		return;
	waiters->forgotten += waiters->older;
	waiters->older = 0;
	waiters->period = now;
}

/* One begins to wait at @now. */
static inline void ft_waiters_begin(struct ft_waiters *waiters, u64 now)
{
	ft_waiters_age(waiters, now);
	atomic_inc(&waiters->young);
}

/* One has waited. Returns false if there is none: somebody has miscounted. */
static inline bool ft_waiters_end(struct ft_waiters *waiters, u64 now)
{
	ft_waiters_age(waiters, now);
	if (atomic_dec_if_positive(&waiters->young) >= 0)
		return true;
	if (waiters->older)
		waiters->older--;
	else if (waiters->forgotten)
		waiters->forgotten--;
	else
		return false;
	return true;
}

/* One more of @count, or with -1 one less, if there are some before and after. */
static inline bool ft_count_among(atomic_t *count, int change)
{
	int old = atomic_read(count);

	do {
		if (old <= 0 || old + change <= 0)
			return false;
	} while (!atomic_try_cmpxchg(count, &old, old + change));
	return true;
}

/**
 * struct ft_activity - what the foreground does
 * @asleep: foreground tasks that sleep in the kernel for I/O or for another
 *	task's I/O
 * @in_flight: its requests in devices
 * @seen: the foreground has done anything since boot
 * @last: when it last did; begin of its idle window
 * @began: when it last began to work
 * @credit: time that idle windows may still take, ns
 * @window: length of the idle window, ns
 */
struct ft_activity {
	struct ft_waiters asleep;
	atomic_t in_flight;
	bool seen;
	u64 last;
	u64 began;
	u64 credit;
	u64 window;
};

/* Does it work at @now, apart from its idle window? */
static inline bool ft_busy(const struct ft_activity *activity, u64 now)
{
	return ft_waiters_count(&activity->asleep, now) ||
	       atomic_read(&activity->in_flight) > 0;
}

/* What is known of who works is renewed so often, if nothing else happens. */
#define FT_ACTIVITY_STALE	(FT_ASLEEP_LIMIT / 5)

/*
 * Change one of the counts, to @asleep and @in_flight more, if nothing else becomes
 * of that: the foreground works before and after, and has lately been seen to.
 */
static inline bool ft_activity_goes_on(struct ft_activity *activity, int asleep,
				       int in_flight, u64 now)
{
	if (now >= READ_ONCE(activity->last) + FT_ACTIVITY_STALE ||
	    now >= READ_ONCE(activity->asleep.period) + FT_ASLEEP_LIMIT)
		return false;
	return asleep ? ft_count_among(&activity->asleep.young, asleep) :
			ft_count_among(&activity->in_flight, in_flight);
}

/* Does the foreground work at @now? */
static inline bool ft_works(const struct ft_activity *activity, u64 now)
{
	/* A device that keeps a request for so long is not there any more. */
	if (ft_busy(activity, now) && now < activity->last + FT_ASLEEP_LIMIT)
		return true;
	return activity->seen && now < activity->last + activity->window;
}

/*
 * Idle windows may take half as long as the foreground has worked, and a fortieth
 * of the time that it has not: who uses a tenth of the device takes less than
 * another tenth from others by them. As much is saved as a few windows take, for
 * the gaps of an app that starts.
 */
#define FT_CREDIT_WORK_PART	2
#define FT_CREDIT_IDLE_PART	40
#define FT_CREDIT_WINDOWS	5

/* The foreground begins to work at @now; its idle windows take @longest at most. */
static inline void ft_credit_idle(struct ft_activity *activity, u64 longest,
				  u64 now)
{
	u64 idle = now - min(now, activity->last);
	u64 taken = min(idle, activity->window);
	u64 left = activity->credit - min(activity->credit, taken);

	activity->credit = activity->seen ?
		min(left + div_u64(idle, FT_CREDIT_IDLE_PART),
		    FT_CREDIT_WINDOWS * longest) :
		FT_CREDIT_WINDOWS * longest;
	activity->began = now;
}

/* It has worked until @now. */
static inline void ft_credit_worked(struct ft_activity *activity, u64 longest,
				    u64 now)
{
	u64 worked = now - min(now, activity->began);

	activity->credit = min(activity->credit + worked / FT_CREDIT_WORK_PART,
			       FT_CREDIT_WINDOWS * longest);
	activity->window = min(longest, activity->credit);
}

/**
 * enum ft_pause_end - what a pause does next
 * @FT_PAUSE_SLEEP: it goes on
 * @FT_PAUSE_FREE: it ends, and nothing is owed any more
 * @FT_PAUSE_PAID: it ends: a segment is paid for
 */
enum ft_pause_end {
	FT_PAUSE_SLEEP,
	FT_PAUSE_FREE,
	FT_PAUSE_PAID,
};

/*
 * A background task has paused for @paused ns, of @bound at most; @sleep: how long
 * it may sleep before it looks again. Something else than the foreground's work may
 * keep it paused: a @backlog.
 */
static inline enum ft_pause_end ft_pause_next(const struct ft_activity *activity,
					      bool backlog, u64 bound,
					      u64 paused, u64 now, u64 *sleep)
{
	if (!ft_works(activity, now) && !backlog)
		return FT_PAUSE_FREE;
	if (paused >= bound)
		return FT_PAUSE_PAID;
	*sleep = bound - paused;
	return FT_PAUSE_SLEEP;
}

/* An ejection is for what is not meant: no pause comes near to it. */
static inline bool ft_eject_allows(u64 eject, u64 pause)
{
	return eject >= pause + NSEC_PER_SEC;
}

/*
 * What of @slept counts as a pause that was to last @asked: not the time that the
 * task was frozen, or waited for a processor.
 */
static inline u64 ft_pause_counts(u64 slept, u64 asked)
{
	return min(slept, asked);
}

/*
 * Who sleeps on for so long after everybody goes does not wait for them; but while
 * background syncs a whole file system, for as long as that may take.
 */
#define FT_LIFT_LIMIT		NSEC_PER_SEC
#define FT_LIFT_SYNC_LIMIT	(60ULL * NSEC_PER_SEC)

/*
 * Has it not helped a task that everybody goes for it since @since, 0: not yet?
 * @syncs: background syncs a whole file system, and has locks of it.
 */
static inline bool ft_lift_in_vain(u64 since, bool syncs, u64 now)
{
	return since && now >= since + (syncs ? FT_LIFT_SYNC_LIMIT :
						FT_LIFT_LIMIT);
}

/* So long nobody goes for anybody when too many were not helped. */
#define FT_VAIN_REST	(60ULL * NSEC_PER_SEC)

/*
 * Are there too many whom it has not helped? Somebody for whom all went from @lifted on,
 * 0: nobody, is to be forgotten for another one.
 */
static inline bool ft_vain_too_many(u64 lifted, u64 now)
{
	return lifted && now < lifted + FT_VAIN_REST;
}

/*
 * Who sleeps on a page that no queued request moves waits for the device, or for
 * who has yet to send one: the first takes less than so many times stuck_ms, of the
 * foreground, which the device serves first, less than so many.
 */
#define FT_PAGE_LOOKS		10
#define FT_PAGE_LOOKS_FRONT	2

/* May a page on which somebody, maybe in @front, has slept for @slept still come by itself? */
static inline bool ft_page_comes(u64 slept, u64 stuck, bool front)
{
	return slept < (front ? FT_PAGE_LOOKS_FRONT : FT_PAGE_LOOKS) * stuck;
}

/* Pages that are still owed after a pause that ended so. */
static inline unsigned int ft_debt(enum ft_pause_end end, unsigned int pages,
				   unsigned int segment)
{
	switch (end) {
	case FT_PAUSE_FREE:
		return 0;
	case FT_PAUSE_PAID:
		return pages - min(pages, segment);
	default:
		return pages;
	}
}

/*
 * A transaction of so many blocks is worth a commit: 256 KiB, which slow storage
 * writes in the time of its own cache flush. Of interest as long after one was last
 * waited for.
 */
#define FT_COMMIT_BLOCKS	64
#define FT_COMMIT_WINDOW	((unsigned long)HZ)

/* A backlog to which nobody has added for so long is not believed, jiffies. */
#define FT_BACKLOG_LAPSES	(10UL * HZ)

/* Is it less than @window since @then, 0: never? All in jiffies. */
static inline bool ft_lately(unsigned long then, unsigned long now, unsigned long window)
{
	return then && time_in_range_open(now, then, then + window);
}

/*
 * What there may be before the foreground's first sync, which nobody knows beforehand:
 * 1 MiB, which takes about as long as the sync itself.
 */
#define FT_COMMIT_BLOCKS_FIRST	256

/* Shall so many blocks be written, though nobody waits? @lately: somebody did. */
static inline bool ft_commit_due(int blocks, bool lately)
{
	return blocks >= (lately ? FT_COMMIT_BLOCKS : FT_COMMIT_BLOCKS_FIRST);
}

/*
 * Of the time of who writes metadata before anybody waits for them, in per cent, that may
 * be for what nobody needs, for as much that is of use: as much as background has of the
 * device's beside a foreground that works.
 */
#define FT_WASTE_SHARE		5

/* Longest rest: what is of use by then is not missed for longer. */
#define FT_WASTE_REST_MAX	NSEC_PER_SEC

/*
 * In @ns so many blocks were @written, @wasted of them for nothing: how long is the rest
 * after that, in ns? The less is of use, the longer. @lately: as above.
 */
static inline u64 ft_waste_rest(u64 ns, unsigned int wasted, unsigned int written,
				bool lately)
{
	unsigned int useful;

	if (lately)
		return 0;
	wasted = min(wasted, written);
	useful = max(written - wasted, 1U);
	/* A longer time is that of a device that has hung. */
	ns = min_t(u64, ns, NSEC_PER_SEC);
	ns = div_u64(ns * wasted * (100 - FT_WASTE_SHARE), useful * FT_WASTE_SHARE);
	return min_t(u64, ns, FT_WASTE_REST_MAX);
}

/*
 * While the foreground syncs whole file systems now and then, background may have
 * as much of its files dirty and on the way as the storage writes in this time, in
 * ms, at @bandwidth pages a second, and as much as keeps a queue busy: 512 KiB. It
 * is what a sync has to wait for beside its own.
 */
#define FT_SYNC_MS		10UL
#define FT_SYNC_PAGES_MIN	((unsigned long)SZ_512K >> PAGE_SHIFT)

static inline unsigned long ft_sync_pages(unsigned long bandwidth)
{
	return max(bandwidth * FT_SYNC_MS / MSEC_PER_SEC, FT_SYNC_PAGES_MIN);
}

/* The flusher begins to write when so much of @bound is dirty. */
static inline bool ft_sync_writes(unsigned long dirty, unsigned long bound)
{
	return dirty > bound / 4;
}

/* Has background too much @dirty and @written (on the way)? */
static inline bool ft_sync_over(unsigned long dirty, unsigned long written,
				unsigned long bound)
{
	return dirty + written > bound;
}

/* And little enough again? What is left keeps the storage busy until more comes. */
static inline bool ft_sync_under(unsigned long dirty, unsigned long written,
				 unsigned long bound)
{
	return dirty + written <= bound / 2;
}

/*
 * An operation that adds to a backlog of metadata counts as so many pages of work:
 * blocks of 4 KiB of inodes, directories and maps that it changes.
 */
#define FT_OPERATION_PAGES	max(SZ_32K >> PAGE_SHIFT, 1)

/* And a batch of reclaim, of SWAP_CLUSTER_MAX pages, as many as there are with 4 KiB. */
#define FT_RECLAIM_PAGES	max(SZ_128K >> PAGE_SHIFT, 1)

/* This part of what tasks hold until their I/O is done is for who is in front. */
#define FT_SHARED_KEPT_PART	4

/* How much of @most may a task take, if some is @kept from it? */
static inline int ft_shared_part(int most, bool kept)
{
	return kept ? most - most / FT_SHARED_KEPT_PART : most;
}

/* This part of the places for apps is for who is in front or perceptible. */
#define FT_APPS_KEPT_PART	8

/* May an app of @class have a place, where @nr of @places are taken? */
static inline bool ft_app_has_room(unsigned int nr, unsigned int places,
				   enum fasttrack_class class)
{
	if (class == FASTTRACK_FOREGROUND || class == FASTTRACK_PERCEPTIBLE)
		return nr < places;
	return nr < places - places / FT_APPS_KEPT_PART;
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
	return min_t(u64, div64_ul((u64)pages * zone_managed, all_managed),
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
 * Shall the foreground write some of its @own dirty pages itself? When stock would
 * throttle it for all that are @dirty or being written, it is not exempt, and the
 * flusher has more than a few of others to write: else that writes its own, and not
 * in front of its reads.
 */
static inline bool ft_dirty_writes(unsigned long own, unsigned long dirty,
				   unsigned long written,
				   unsigned long background_thresh,
				   unsigned long thresh)
{
	return own >= thresh / 2 && dirty >= own + own / 4 &&
	       dirty + written > (background_thresh + thresh) / 2;
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
 * left (@priority), and not while its @own are more than @percent of the @file
 * pages: an app that reads more than fits would leave no cache to the others.
 */
static inline bool ft_protects(int priority, unsigned long own,
			       unsigned long file, unsigned int percent)
{
	return priority > FT_PROTECT_PRIORITY && own * 100 <= file * percent;
}

/*
 * Have others had to read again so many pages, @refaults, since the foreground has
 * last used its @own that these have been of less use? Half as many are enough.
 */
static inline bool ft_outweighed(unsigned long refaults, unsigned long own)
{
	return 2 * refaults > own;
}

/* As many refaults are outweighed when the foreground uses a file. */
#define FT_USE_PAGES	64UL

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
