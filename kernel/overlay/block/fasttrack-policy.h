/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy of the I/O dispatcher: pure functions of numbers. Times are in
 * nanoseconds of CLOCK_MONOTONIC, and are arguments.
 */
#ifndef _BLOCK_FASTTRACK_POLICY_H
#define _BLOCK_FASTTRACK_POLICY_H

#include <linux/bits.h>
#include <linux/fasttrack_class.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/types.h>

/* No class may send a request now. */
#define FTI_NONE	(-1)

/*
 * Background requests in the device while the foreground waits for others, and
 * at any time its writes, and those of what is neutral, that nobody waits for: as many
 * as keep it busy, and few enough to get out of the way again.
 */
#define FTI_BUSY_DEPTH	4ULL

/*
 * Nobody is let go so soon after the foreground's last request: what waited
 * for that one has to be woken first, and may be all that was waited for.
 */
#define FTI_DEPEND_WINDOW	NSEC_PER_MSEC

/*
 * Nothing of background waits for its share longer than this many times
 * background_expire after the last; and a task that waits for a read or a write
 * of its own not longer than that at all.
 */
#define FTI_MOST_EXPIRES	2

/*
 * So many of background's requests that have waited too long go together: each
 * waits for those before it, and would wait for as many of the foreground's.
 */
#define FTI_STARVED_IN_A_ROW	4U

/**
 * struct fti_bounds - the knobs of one queue
 * @idle_window: the foreground still works this long at most after its last
 *	request: its next one usually depends on the last
 * @neutral_expire: beside the foreground a neutral request is sent this long after
 *	the last one at the latest
 * @neutral_share: per cent of the time that neutral requests may be in the device
 *	while the foreground works, but for @neutral_expire
 * @background_expire: a background request that waited this long goes next,
 *	whatever the foreground does; within @background_share, but for what a
 *	task has waited for FTI_MOST_EXPIRES times as long
 * @background_depth: background requests in the device while the foreground
 *	works
 * @background_share: per cent of the time that background requests may be in
 *	the device while the foreground works
 * @foreground_reserve: requests of the device's queue that background leaves
 *	free even while the foreground is idle
 * @foreground_cost: per cent of their time alone that the foreground's requests may
 *	take longer for background's in the device
 * @background_kb: KiB of a write of background's at most, on a device that takes one
 *	at a time, while its cost is of interest; 0: as of anybody's
 */
struct fti_bounds {
	u64 idle_window;
	u64 neutral_expire;
	u64 neutral_share;
	u64 background_expire;
	u64 background_depth;
	u64 background_share;
	u64 foreground_reserve;
	u64 foreground_cost;
	u64 background_kb;
};

/*
 * Requests of a kind in a row, and so many such batches before a later kind's:
 * mq-deadline's values.
 */
#define FTI_BATCH	16
#define FTI_STARVED	2

/**
 * struct fti_plain - what has been sent with nobody in front
 * @writes: the batch under way is of writes
 * @batch: requests sent in it
 * @starved: batches of reads in a row that writes have waited for
 */
struct fti_plain {
	bool writes;
	unsigned int batch;
	unsigned int starved;
};

/**
 * struct fti_state - what the decision depends on
 * @front: somebody is in front
 * @prio: the I/O priority whose turn it is, by class; 0 is the highest
 * @prio_waits: the only requests of a class wait for a higher priority's in the device
 * @plain: what went last with nobody in front
 * @follows: a request of that kind lies behind it on the medium
 * @oldest: arrival of its oldest queued request that may be sent, 0 for none
 * @oldest_of: likewise, of its reads [0] and of its writes [1]
 * @waited: likewise, of those that a task waits for
 * @in_flight: requests in the device, by class
 * @foreground_seen: a foreground request has ever been sent
 * @others_in_a_row: requests that went next, because they had waited so long, since
 *	the last one that did not
 * @foreground_last: dispatch or end of the last foreground request
 * @idle_window: how long it still works after that, see mm/fasttrack/activity.c
 * @foreground_depends: a foreground task waits for what others do
 * @lifted: nobody is to be held back
 * @own: the oldest neutral request is write-back of an app's in front
 * @neutral_next: what is neutral has had its share of the device until then
 * @neutral_sent: when the last of it was sent
 * @background_next: background's share of the device is used up until then
 * @async: nobody waits for any of the queued requests, by class
 * @async_in_flight: writes in the device that nobody waits for, by class
 * @metadata_pages: the pages of the neutral ones that are a file system's metadata
 * @pages_in_flight: the pages of all of its requests there
 * @written_pages: likewise, of those that write
 * @device_depth: requests that the device takes at a time
 * @cheap_depth: so many of background's in the device have not cost the foreground
 *	too much
 */
struct fti_state {
	bool front;
	unsigned int prio[FASTTRACK_NR_CLASSES];
	bool prio_waits;
	struct fti_plain plain;
	bool follows;
	u64 oldest[FASTTRACK_NR_CLASSES];
	u64 oldest_of[2][FASTTRACK_NR_CLASSES];
	u64 waited[FASTTRACK_NR_CLASSES];
	unsigned int in_flight[FASTTRACK_NR_CLASSES];
	bool foreground_seen;
	unsigned int others_in_a_row;
	u64 foreground_last;
	u64 idle_window;
	bool foreground_depends;
	bool lifted;
	bool own;
	u64 neutral_next;
	u64 neutral_sent;
	u64 background_next;
	bool async[FASTTRACK_NR_CLASSES];
	unsigned int async_in_flight[FASTTRACK_NR_CLASSES];
	unsigned int metadata_pages;
	unsigned int pages_in_flight;
	unsigned int written_pages;
	unsigned int device_depth;
	unsigned int cheap_depth;
};

/**
 * struct fti_choice - the decision
 * @class: enum fasttrack_class whose turn it is, or FTI_NONE
 * @expired: its oldest request is sent, because it waited for background_expire, or
 *	somebody may wait for it
 * @starved: its oldest request that a task waits for is sent, because it waited
 *	too long
 * @in_order: of a kind, the oldest request goes before those of lower sectors: a
 *	foreground task waits for one of them, nobody knows which
 * @plain: nobody is in front: mq-deadline's order
 * @writes: with @plain, a write is sent
 * @begins: with @plain, a batch begins with it
 * @hold: others wait, and the foreground has nothing queued
 * @wake: with @hold, when to decide again; 0: when a request leaves the device
 */
struct fti_choice {
	int class;
	bool expired;
	bool starved;
	bool in_order;
	bool plain;
	bool writes;
	bool begins;
	bool hold;
	u64 wake;
};

/*
 * What a request of @class is treated as. Nobody waits for write-back that is
 * not @sync: an app in front that writes much would wait for all of it in its
 * next fsync, and after a switch the next app would.
 */
static inline enum fasttrack_class fti_treat_as(enum fasttrack_class class,
						bool sync)
{
	return class == FASTTRACK_FOREGROUND && !sync ? FASTTRACK_NEUTRAL :
							class;
}

/*
 * How long the foreground still works after its last request. Not long if all
 * that it has to do is to wait for others: to hold those back would hold the
 * foreground back.
 */
static inline u64 fti_window(const struct fti_state *state,
			     const struct fti_bounds *bounds)
{
	u64 window = min(bounds->idle_window, state->idle_window);

	return state->foreground_depends ? min(window, FTI_DEPEND_WINDOW) :
					   window;
}

/* Does the foreground work at @now? */
static inline bool fti_foreground_works(const struct fti_state *state,
					const struct fti_bounds *bounds,
					u64 now)
{
	if (state->oldest[FASTTRACK_FOREGROUND] ||
	    state->in_flight[FASTTRACK_FOREGROUND])
		return true;
	return state->foreground_seen &&
	       now < state->foreground_last + fti_window(state, bounds);
}

/*
 * What background's requests cost is of interest this long after the foreground's
 * last one.
 */
#define FTI_COST_WINDOW	NSEC_PER_SEC

static inline bool fti_cost_counts(const struct fti_state *state, u64 now)
{
	return state->foreground_seen &&
	       now < state->foreground_last + FTI_COST_WINDOW;
}

/*
 * How many sectors a write of background's may have; 0: as many as anybody's. A
 * device that takes one at a time has the foreground's next one wait for all of it.
 */
static inline unsigned int fti_background_sectors(const struct fti_state *state,
						  const struct fti_bounds *bounds,
						  u64 now)
{
	if (!state->front || state->device_depth > 1 ||
	    !fti_cost_counts(state, now))
		return 0;
	return bounds->background_kb * (SZ_1K >> SECTOR_SHIFT);
}

/* How many background requests may be in the device; at least 1 when idle. */
static inline u64 fti_background_limit(const struct fti_state *state,
				       const struct fti_bounds *bounds,
				       bool works, u64 now)
{
	u64 limit = 1;

	if (state->lifted)
		return state->device_depth;
	if (works)
		return bounds->background_depth;
	if (state->foreground_depends)
		return max(bounds->background_depth, FTI_BUSY_DEPTH);
	if (state->device_depth > bounds->foreground_reserve)
		limit = state->device_depth - bounds->foreground_reserve;
	if (fti_cost_counts(state, now))
		limit = min_t(u64, limit, max(state->cheap_depth, 1U));
	return limit;
}

/**
 * struct fti_cost - what background in the device costs the foreground
 * @beside: foreground requests that have met background's in the device
 * @took: how long they were there, us
 * @alone: how long requests like them are there alone, us
 * @depth: background requests that may be in the device for it
 */
struct fti_cost {
	unsigned int beside;
	u64 took;
	u64 alone;
	unsigned int depth;
};

/* So many foreground requests show what background costs. */
#define FTI_COST_SAMPLES	8

/*
 * One more request of the foreground's has met background's: it took @took, and
 * @alone without them. When it costs too much the depth is halved, else it grows
 * by one.
 */
static inline void fti_cost_add(struct fti_cost *cost, u64 took, u64 alone,
				u64 percent, unsigned int most)
{
	cost->took += took;
	cost->alone += alone;
	if (++cost->beside < FTI_COST_SAMPLES)
		return;
	if (cost->took * 100 > cost->alone * (100 + percent))
		cost->depth = max(cost->depth / 2, 1U);
	else
		cost->depth = min(cost->depth + 1, most);
	cost->beside = 0;
	cost->took = 0;
	cost->alone = 0;
}

/* A mean that follows what it is given: of about the last eight. */
static inline u64 fti_mean(u64 mean, u64 value)
{
	return mean ? (7 * mean + value) / 8 : value;
}

/*
 * And when all of them are large: in pages, as much as keeps a phone's storage busy.
 * Whoever comes to the front next waits for what is there.
 */
#define FTI_BUSY_PAGES	(SZ_2M >> PAGE_SHIFT)

/* Of metadata, whose blocks others want to change meanwhile. */
#define FTI_METADATA_PAGES	(SZ_512K >> PAGE_SHIFT)

/* Has background as much in the device as keeps it busy? */
static inline bool fti_background_full(const struct fti_state *state)
{
	return state->in_flight[FASTTRACK_BACKGROUND] >= FTI_BUSY_DEPTH &&
	       state->pages_in_flight >= FTI_BUSY_PAGES;
}

/*
 * Has background all the writes in the device that keep it busy, and nothing else
 * to send? What is there cannot be overtaken.
 */
static inline bool fti_async_full(const struct fti_state *state)
{
	return state->async[FASTTRACK_BACKGROUND] &&
	       state->async_in_flight[FASTTRACK_BACKGROUND] >= FTI_BUSY_DEPTH;
}

/*
 * Likewise what is neutral: a file system's metadata, all that are dirty, for one. Who
 * wants to change a block that is there waits until it has been written, and devices
 * may put it before background's. But an app in front waits for its own in its next
 * fsync.
 */
static inline bool fti_neutral_full(const struct fti_state *state)
{
	return state->async[FASTTRACK_NEUTRAL] && !state->own && !state->lifted &&
	       (state->async_in_flight[FASTTRACK_NEUTRAL] >= FTI_BUSY_DEPTH ||
		state->metadata_pages >= FTI_METADATA_PAGES);
}

static inline u64 fti_most_wait(const struct fti_bounds *bounds)
{
	return FTI_MOST_EXPIRES * bounds->background_expire;
}

/*
 * When the next request may go after one that was in the device for @service: so
 * that @share per cent of the time are its own, and not later than @most.
 */
static inline u64 fti_share_next(u64 share, u64 most, u64 now, u64 service)
{
	return now + min(div64_u64(service * (100 - share), share), most);
}

/* Background's. One can have been there for long because of others. */
static inline u64 fti_background_next(const struct fti_bounds *bounds, u64 now,
				      u64 service)
{
	return fti_share_next(bounds->background_share, fti_most_wait(bounds),
			      now, service);
}

/* What is neutral. */
static inline u64 fti_neutral_next(const struct fti_bounds *bounds, u64 now,
				   u64 service)
{
	return fti_share_next(bounds->neutral_share, bounds->neutral_expire, now,
			      service);
}

static inline bool fti_background_expired(const struct fti_state *state,
					  const struct fti_bounds *bounds,
					  u64 now)
{
	u64 oldest = state->oldest[FASTTRACK_BACKGROUND];

	return oldest && now >= oldest + bounds->background_expire;
}

/*
 * When the next of what is neutral may go, beside a foreground that works: when the last
 * has ended and been paid for; or, if that takes long, a neutral_expire after it was sent.
 */
static inline u64 fti_neutral_due(const struct fti_state *state,
				  const struct fti_bounds *bounds)
{
	if (state->in_flight[FASTTRACK_NEUTRAL])
		return state->neutral_sent + bounds->neutral_expire;
	return state->neutral_next;
}

/* Is it the turn of what is neutral? */
static inline bool fti_neutral_turn(const struct fti_state *state,
				    const struct fti_bounds *bounds, u64 now)
{
	return state->oldest[FASTTRACK_NEUTRAL] &&
	       now >= fti_neutral_due(state, bounds);
}

/* Has a task waited too long for something neutral, whatever came before it? */
static inline bool fti_neutral_starves(const struct fti_state *state,
				       const struct fti_bounds *bounds, u64 now)
{
	return state->waited[FASTTRACK_NEUTRAL] &&
	       now >= state->waited[FASTTRACK_NEUTRAL] + bounds->neutral_expire;
}

/*
 * When a task of background has waited too long; U64_MAX if none waits, or if one
 * that waits for something neutral is further behind.
 */
static inline u64 fti_task_due(const struct fti_state *state,
			       const struct fti_bounds *bounds)
{
	u64 due = state->waited[FASTTRACK_BACKGROUND] + fti_most_wait(bounds);
	u64 neutral = state->waited[FASTTRACK_NEUTRAL];

	if (!state->waited[FASTTRACK_BACKGROUND] ||
	    (neutral && neutral + bounds->background_expire < due))
		return U64_MAX;
	return due;
}

/*
 * When a held request can go at the earliest, if no request leaves the device
 * before; 0 if only that can help. Later than @now, because what it waits for was
 * not there at @now; and in any case, or a timer would spin.
 */
static inline u64 fti_wake(const struct fti_state *state,
			   const struct fti_bounds *bounds, u64 now)
{
	u64 in_flight = state->in_flight[FASTTRACK_BACKGROUND];
	u64 wake = U64_MAX;

	if (!state->in_flight[FASTTRACK_FOREGROUND])
		wake = state->foreground_last + fti_window(state, bounds);
	if (state->oldest[FASTTRACK_NEUTRAL])
		wake = min(wake, fti_neutral_due(state, bounds));
	if (!state->oldest[FASTTRACK_BACKGROUND])
		goto out;
	/* Whose writes are all there waits for one of them to be done. */
	if (in_flight < bounds->background_depth && !fti_async_full(state) &&
	    !fti_background_full(state))
		wake = min(wake, state->background_next);
	if (in_flight < max(bounds->background_depth, 1ULL)) {
		wake = min(wake, max(state->oldest[FASTTRACK_BACKGROUND] +
				     bounds->background_expire,
				     state->background_next));
		wake = min(wake, fti_task_due(state, bounds));
	}
out:
	if (wake == U64_MAX)
		return 0;
	return wake > now ? wake : now + FTI_DEPEND_WINDOW;
}

/* A device that ends no request for so long keeps everybody waiting itself. */
#define FTI_STALL	NSEC_PER_SEC

/**
 * struct fti_pace - does the device do what it is given?
 * @moved: when it last ended a request, or got one and had none
 * @stalled: it has not until then
 */
struct fti_pace {
	u64 moved;
	u64 stalled;
};

/* It ends a request at @now. */
static inline void fti_pace_end(struct fti_pace *pace, u64 now)
{
	if (now > pace->moved + FTI_STALL)
		pace->stalled = now;
	pace->moved = max(pace->moved, now);
}

/*
 * How long somebody has waited for a request that came at @arrival because others
 * were sent before it, of a device that has @in_flight of them.
 */
static inline u64 fti_passed_over(const struct fti_pace *pace,
				  unsigned int in_flight, u64 arrival, u64 now)
{
	if (!arrival || (in_flight && now > pace->moved + FTI_STALL))
		return 0;
	return now - min(now, max(arrival, pace->stalled));
}

/* May a background request go, with nothing else before it? */
static inline bool fti_background_goes(const struct fti_state *state, u64 limit,
				       bool works, u64 now)
{
	if (state->in_flight[FASTTRACK_BACKGROUND] >= limit)
		return false;
	if (state->lifted)
		return true;
	return !fti_async_full(state) && !fti_background_full(state) &&
	       (!works || now >= state->background_next);
}

/* The class with the earliest of @arrivals, of those whose bits are in @classes. */
static inline int fti_longest(const u64 *arrivals, unsigned long classes)
{
	int longest = FTI_NONE;

	for (int class = 0; class < FASTTRACK_NR_CLASSES; class++)
		if ((classes & BIT(class)) && arrivals[class] &&
		    (longest == FTI_NONE ||
		     arrivals[class] < arrivals[longest]))
			longest = class;
	return longest;
}

/* A lower I/O priority waits for higher ones no longer than this: mq-deadline's value. */
#define FTI_PRIO_AGING	(10ULL * NSEC_PER_SEC)

/* How far back what came at @oldest with @prio stands at @now. */
static inline unsigned int fti_rank(unsigned int prio, u64 oldest, u64 now)
{
	return now >= oldest + FTI_PRIO_AGING ? 0 : prio;
}

/* The classes that have requests of the highest priority. */
static inline unsigned long fti_highest(const struct fti_state *state, u64 now)
{
	unsigned int highest = UINT_MAX;
	unsigned long classes = 0;

	for (int class = 0; class < FASTTRACK_NR_CLASSES; class++) {
		unsigned int rank = fti_rank(state->prio[class],
					     state->oldest[class], now);

		if (!state->oldest[class] || rank > highest)
			continue;
		classes = rank < highest ? BIT(class) : classes | BIT(class);
		highest = rank;
	}
	return classes;
}

/* With nobody in front: after a read, or a @write, has been sent in a batch. */
static inline void fti_plain_sent(struct fti_plain *plain, bool writes,
				  bool begins, bool others_wait)
{
	if (begins) {
		plain->batch = 0;
		plain->starved = !writes && others_wait ? plain->starved + 1 : 0;
	}
	plain->writes = writes;
	plain->batch++;
}

/*
 * What background has in the device when somebody comes to the front cannot be
 * overtaken. This is four times what keeps a device busy: it takes nothing from
 * background, and a fast one nothing from anybody.
 */
#define FTI_PLAIN_PAGES	(4 * FTI_BUSY_PAGES)

/* Has background, with nobody in front, as many writes in the device as are of use? */
static inline bool fti_plain_full(const struct fti_state *state)
{
	return state->in_flight[FASTTRACK_BACKGROUND] >= FTI_BUSY_DEPTH &&
	       state->written_pages >= FTI_PLAIN_PAGES;
}

/*
 * With nobody in front: who has waited longest, of the highest priority. Reads go
 * before writes, whose ever they are, in batches, until writes have waited for some.
 * Background's writes wait while the device has plenty of them.
 */
static inline struct fti_choice fti_choose_plain(const struct fti_state *state,
						 u64 now)
{
	const struct fti_plain *plain = &state->plain;
	unsigned long classes = fti_highest(state, now);
	bool full = fti_plain_full(state);
	int read = fti_longest(state->oldest_of[0], classes);
	int write = fti_longest(state->oldest_of[1],
				full ? classes & ~BIT(FASTTRACK_BACKGROUND) :
				       classes);
	bool goes_on = plain->batch && plain->batch < FTI_BATCH &&
		       state->follows &&
		       (plain->writes ? write : read) != FTI_NONE;
	bool writes = read == FTI_NONE ||
		      (write != FTI_NONE && plain->starved >= FTI_STARVED);
	int class;

	if (goes_on)
		writes = plain->writes;
	class = writes ? write : read;
	return (struct fti_choice){
		.class = class,
		.plain = true,
		.writes = writes,
		.begins = !goes_on,
		.hold = class == FTI_NONE && (state->prio_waits ||
			(full && state->oldest_of[1][FASTTRACK_BACKGROUND])),
	};
}

/*
 * While nobody is to be held back: the class of who has waited longer than the
 * foreground, which may always have a request queued. FTI_NONE: there is none.
 */
static inline int fti_lifted_turn(const struct fti_state *state)
{
	int class = FTI_NONE;

	if (state->lifted)
		class = fti_longest(state->oldest, ~0UL);
	if (class == FTI_NONE ||
	    state->oldest[class] >= state->oldest[FASTTRACK_FOREGROUND])
		return FTI_NONE;
	return class;
}

/**
 * fti_choose - whose turn is it?
 * @state: what is queued and in flight
 * @bounds: knobs
 * @now: the time
 *
 * Foreground, then neutral, then background within its limit.
 *
 * While the foreground works, neutral requests are sent one at a time and within
 * a share, but at least one in neutral_expire: in turns with the foreground's, if
 * they are older, or if a task has waited for one for neutral_expire. So neither a
 * service that floods the device nor a foreground that does keeps the other waiting.
 * An app's own write-back is not bounded so: its next fsync waits for it.
 *
 * A background request that has waited for background_expire goes first, one at
 * a time and within its share. Or a long queue of overdue requests would have the
 * device for itself. But what a task of background has waited for twice as long,
 * and a slow device's share would make it wait for seconds, takes turns, some at
 * a time; and with nobody before it, it ends a batch of background's writes. So does
 * what is older than the foreground's while nobody is to be held back.
 */
static inline struct fti_choice fti_choose(const struct fti_state *state,
					   const struct fti_bounds *bounds,
					   u64 now)
{
	bool works = fti_foreground_works(state, bounds, now);
	u64 limit = fti_background_limit(state, bounds, works, now);
	unsigned int in_flight = state->in_flight[FASTTRACK_BACKGROUND];
	bool free = !works || state->foreground_depends || state->lifted ||
		    state->own;
	struct fti_choice choice = { .class = FTI_NONE };
	u64 foreground = state->oldest[FASTTRACK_FOREGROUND];
	bool behind = works || state->oldest[FASTTRACK_NEUTRAL];
	bool beside = foreground || state->oldest[FASTTRACK_NEUTRAL];
	unsigned int others = beside ? state->others_in_a_row : 0;
	bool neutral = fti_neutral_turn(state, bounds, now);
	bool starves = fti_neutral_starves(state, bounds, now);
	int lifted = fti_lifted_turn(state);

	if (!state->front)
		return fti_choose_plain(state, now);
	if (others < FTI_STARVED_IN_A_ROW && in_flight < max(limit, 1ULL) &&
	    now >= fti_task_due(state, bounds)) {
		choice.class = FASTTRACK_BACKGROUND;
		choice.expired = true;
		choice.starved = true;
	} else if (foreground && !others && neutral &&
		   (starves || state->oldest[FASTTRACK_NEUTRAL] < foreground)) {
		choice.class = FASTTRACK_NEUTRAL;
		choice.expired = true;
		choice.starved = starves;
	} else if (others < FTI_STARVED_IN_A_ROW && lifted != FTI_NONE) {
		choice.class = lifted;
		choice.expired = true;
	} else if (behind && in_flight < max(limit, 1ULL) &&
		   fti_background_expired(state, bounds, now) &&
		   now >= state->background_next) {
		choice.class = FASTTRACK_BACKGROUND;
		choice.expired = true;
	} else if (foreground) {
		choice.class = FASTTRACK_FOREGROUND;
	} else if (neutral || (free && state->oldest[FASTTRACK_NEUTRAL] &&
			       !fti_neutral_full(state))) {
		choice.class = FASTTRACK_NEUTRAL;
	} else if (state->oldest[FASTTRACK_BACKGROUND] &&
		   fti_background_goes(state, limit, works, now)) {
		choice.class = FASTTRACK_BACKGROUND;
	}
	choice.hold = choice.class == FTI_NONE &&
		      (state->oldest[FASTTRACK_NEUTRAL] ||
		       state->oldest[FASTTRACK_BACKGROUND] || state->prio_waits);
	choice.in_order = state->foreground_depends &&
			  choice.class != FASTTRACK_FOREGROUND;
	if (choice.hold && works)
		choice.wake = fti_wake(state, bounds, now);
	return choice;
}

/*
 * Scheduler tags of @depth that a class other than foreground may take, so that
 * some are always left; at least one.
 */
static inline unsigned int fti_shallow_depth(unsigned int depth,
					     unsigned int percent)
{
	return max(depth * percent / 100, 1U);
}

/*
 * And of those at most this many for writes that nobody waits for, on a device
 * that takes @device_depth requests at a time: enough to keep it busy. What is
 * more only makes others wait longer. What is neutral has twice as many, and
 * does not wait until background's have been sent.
 */
static inline unsigned int fti_async_tags(unsigned int device_depth,
					  enum fasttrack_class class)
{
	unsigned int tags = max(device_depth / 4, 4U);

	return class == FASTTRACK_NEUTRAL ? 2 * tags : tags;
}

/* Who waits for tags waits for so many: half of the fewest that there are. */
#define FTI_ROOM	2

/*
 * Are there fewer than @free, or not all, of the @most tags that background may take of
 * @depth? The foreground takes from all of them: that much of its requests have one of
 * those.
 */
static inline bool fti_tags_used_up(const unsigned int *used, unsigned int depth,
				    unsigned int most, unsigned int free)
{
	unsigned int others = used[FASTTRACK_NEUTRAL] + used[FASTTRACK_BACKGROUND];

	return most && others + used[FASTTRACK_FOREGROUND] * most / depth +
				       min(free, most) > most;
}

#endif /* _BLOCK_FASTTRACK_POLICY_H */
