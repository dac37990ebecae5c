/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy of the I/O dispatcher: pure functions of numbers. Times are in
 * nanoseconds of CLOCK_MONOTONIC, and are arguments.
 */
#ifndef _BLOCK_FASTTRACK_POLICY_H
#define _BLOCK_FASTTRACK_POLICY_H

#include <linux/fasttrack_class.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* No class may send a request now. */
#define FTI_NONE	(-1)

/*
 * Background requests in the device while the foreground waits for others, and
 * at any time its writes that nobody waits for: as many as keep it busy, and few
 * enough to get out of the way again.
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
 * @idle_window: the foreground still works this long after its last request:
 *	its next one usually depends on the last
 * @background_expire: a request that waited this long goes next, whatever
 *	the foreground does; background within @background_share, but for what
 *	a task has waited for FTI_MOST_EXPIRES times as long
 * @background_depth: background requests in the device while the foreground
 *	works
 * @background_share: per cent of the time that background requests may be in
 *	the device while the foreground works
 * @foreground_reserve: requests of the device's queue that background leaves
 *	free even while the foreground is idle
 */
struct fti_bounds {
	u64 idle_window;
	u64 background_expire;
	u64 background_depth;
	u64 background_share;
	u64 foreground_reserve;
};

/**
 * struct fti_state - what the decision depends on
 * @oldest: arrival of the oldest queued request by class, 0 for none
 * @oldest_waited: likewise, of background's that a task waits for
 * @in_flight: requests in the device, by class
 * @foreground_seen: a foreground request has ever been sent
 * @others_in_a_row: requests of others that went next, because they had waited
 *	so long, since the foreground's last one
 * @foreground_last: dispatch or end of the last foreground request
 * @foreground_depends: a foreground task waits for what others do
 * @background_next: background's share of the device is used up until then
 * @background_async: nobody waits for any of its queued requests
 * @async_in_flight: its writes in the device that nobody waits for
 * @device_depth: requests that the device takes at a time
 */
struct fti_state {
	u64 oldest[FASTTRACK_NR_CLASSES];
	u64 oldest_waited;
	unsigned int in_flight[FASTTRACK_NR_CLASSES];
	bool foreground_seen;
	unsigned int others_in_a_row;
	u64 foreground_last;
	bool foreground_depends;
	u64 background_next;
	bool background_async;
	unsigned int async_in_flight;
	unsigned int device_depth;
};

/**
 * struct fti_choice - the decision
 * @class: enum fasttrack_class whose turn it is, or FTI_NONE
 * @expired: its oldest request is sent, because it waited for background_expire
 * @starved: its oldest request that a task waits for is sent, because it waited
 *	too long
 * @in_order: of a kind, the oldest request goes before those of lower sectors: a
 *	foreground task waits for one of them, nobody knows which
 * @hold: background waits, and nobody else does
 * @wake: with @hold, when to decide again; 0: when a request leaves the device
 */
struct fti_choice {
	int class;
	bool expired;
	bool starved;
	bool in_order;
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
	if (state->foreground_depends)
		return min_t(u64, bounds->idle_window, FTI_DEPEND_WINDOW);
	return bounds->idle_window;
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

/* How many background requests may be in the device; at least 1 when idle. */
static inline u64 fti_background_limit(const struct fti_state *state,
				       const struct fti_bounds *bounds,
				       bool works)
{
	if (works)
		return bounds->background_depth;
	if (state->foreground_depends)
		return max(bounds->background_depth, FTI_BUSY_DEPTH);
	if (state->device_depth <= bounds->foreground_reserve)
		return 1;
	return state->device_depth - bounds->foreground_reserve;
}

/*
 * Has background all the writes in the device that keep it busy, and nothing else
 * to send? What is there cannot be overtaken.
 */
static inline bool fti_async_full(const struct fti_state *state)
{
	return state->background_async &&
	       state->async_in_flight >= FTI_BUSY_DEPTH;
}

static inline u64 fti_most_wait(const struct fti_bounds *bounds)
{
	return FTI_MOST_EXPIRES * bounds->background_expire;
}

/*
 * When background's next request may go after one that was in the device for
 * @service: so that background_share per cent of the time are its own. One can
 * have been there for long because of others.
 */
static inline u64 fti_background_next(const struct fti_bounds *bounds, u64 now,
				      u64 service)
{
	u64 share = bounds->background_share;

	return now + min(div64_u64(service * (100 - share), share),
			 fti_most_wait(bounds));
}

static inline bool fti_expired(const struct fti_state *state,
			       const struct fti_bounds *bounds,
			       enum fasttrack_class class, u64 now)
{
	return state->oldest[class] &&
	       now >= state->oldest[class] + bounds->background_expire;
}

/*
 * Has a task of background waited too long, and nothing neutral that is further
 * behind?
 */
static inline bool fti_task_starves(const struct fti_state *state,
				    const struct fti_bounds *bounds, u64 now)
{
	u64 due = state->oldest_waited + fti_most_wait(bounds);
	u64 neutral = state->oldest[FASTTRACK_NEUTRAL];

	return state->oldest_waited && now >= due &&
	       !(neutral && neutral + bounds->background_expire < due);
}

/*
 * When a held background request can go at the earliest, if no request leaves
 * the device before; 0 if only that can help. Later than @now, because what
 * it waits for was not there at @now.
 */
static inline u64 fti_wake(const struct fti_state *state,
			   const struct fti_bounds *bounds)
{
	u64 in_flight = state->in_flight[FASTTRACK_BACKGROUND];
	u64 wake = U64_MAX;

	if (!state->in_flight[FASTTRACK_FOREGROUND])
		wake = state->foreground_last + fti_window(state, bounds);
	/* Whose writes are all there waits for one of them to be done. */
	if (in_flight < bounds->background_depth && !fti_async_full(state))
		wake = min(wake, state->background_next);
	if (in_flight < max(bounds->background_depth, 1ULL)) {
		wake = min(wake, max(state->oldest[FASTTRACK_BACKGROUND] +
				     bounds->background_expire,
				     state->background_next));
		if (state->oldest_waited)
			wake = min(wake, state->oldest_waited +
					 fti_most_wait(bounds));
	}
	return wake == U64_MAX ? 0 : wake;
}

/**
 * fti_choose - whose turn is it?
 * @state: what is queued and in flight
 * @bounds: knobs
 * @now: the time
 *
 * Foreground, then neutral, then background within its limit. A request of the
 * last two that has waited for the bound goes first, so that nobody starves:
 * neutral and foreground take turns then, background one at a time and within
 * its share. Or a long queue of overdue requests would have the device for
 * itself. But what a task of background has waited for twice as long, and a
 * slow device's share would make it wait for seconds, takes turns, some at a
 * time; and with nobody before it, it ends a batch of background's writes.
 */
static inline struct fti_choice fti_choose(const struct fti_state *state,
					   const struct fti_bounds *bounds,
					   u64 now)
{
	bool works = fti_foreground_works(state, bounds, now);
	u64 limit = fti_background_limit(state, bounds, works);
	unsigned int in_flight = state->in_flight[FASTTRACK_BACKGROUND];
	struct fti_choice choice = { .class = FTI_NONE };
	bool foreground = state->oldest[FASTTRACK_FOREGROUND];
	unsigned int others = foreground ? state->others_in_a_row : 0;
	bool behind = works || state->oldest[FASTTRACK_NEUTRAL];

	if (others < FTI_STARVED_IN_A_ROW && in_flight < max(limit, 1ULL) &&
	    fti_task_starves(state, bounds, now)) {
		choice.class = FASTTRACK_BACKGROUND;
		choice.expired = true;
		choice.starved = true;
	} else if (foreground && !others &&
		   fti_expired(state, bounds, FASTTRACK_NEUTRAL, now)) {
		choice.class = FASTTRACK_NEUTRAL;
		choice.expired = true;
	} else if (behind && in_flight < max(limit, 1ULL) &&
		   fti_expired(state, bounds, FASTTRACK_BACKGROUND, now) &&
		   now >= state->background_next) {
		choice.class = FASTTRACK_BACKGROUND;
		choice.expired = true;
	} else if (foreground) {
		choice.class = FASTTRACK_FOREGROUND;
	} else if (state->oldest[FASTTRACK_NEUTRAL]) {
		choice.class = FASTTRACK_NEUTRAL;
	} else if (state->oldest[FASTTRACK_BACKGROUND]) {
		if (in_flight < limit && !fti_async_full(state) &&
		    (!works || now >= state->background_next))
			choice.class = FASTTRACK_BACKGROUND;
		else
			choice.hold = true;
	}
	choice.in_order = state->foreground_depends &&
			  choice.class != FASTTRACK_FOREGROUND;
	if (choice.hold && works)
		choice.wake = fti_wake(state, bounds);
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

#endif /* _BLOCK_FASTTRACK_POLICY_H */
