// SPDX-License-Identifier: GPL-2.0
/*
 * How the I/O dispatcher holds others back, and when it decides again.
 *
 * A decision (fti_choose()) is taken on numbers that completions and the core
 * change without fti_lock. So a hold looks at them once more after it has
 * announced itself: either it sees the change, or who made the change sees the
 * hold and ends it.
 */
#include <linux/array_size.h>
#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/fasttrack.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/minmax.h>

#include <trace/events/fasttrack.h>

#include "blk-mq.h"
#include "fasttrack-iosched.h"

/* A SCSI host has tags for more than a device of it may take. */
unsigned int fti_device_depth(struct request_queue *q)
{
	return min(q->tag_set->queue_depth, blk_queue_depth(q));
}

/*
 * Is a request of a higher priority than @prio in the device, while somebody is in front
 * of the same class? mq-deadline sends no other then.
 */
static bool fti_higher_in_flight(const struct fti_data *fti, int class,
				 enum fti_prio prio, bool front)
{
	for (int other = 0; other < FASTTRACK_NR_CLASSES; other++) {
		if (front && other != class)
			continue;
		for (enum fti_prio higher = FTI_RT; higher < prio; higher++)
			if (atomic_read(&fti->prio_in_flight[other][higher]))
				return true;
	}
	return false;
}

/* What of @class may be sent as far as its priorities go. */
static void fti_read_class(struct fti_data *fti, struct fti_state *state,
			   enum fasttrack_class class, u64 now)
{
	enum fti_prio prio = fti_turn(&fti->class[class], now);
	struct fti_queue *turn = &fti->class[class].queue[prio];
	u64 oldest = fti_oldest_time(turn);

	state->prio[class] = prio;
	state->async_in_flight[class] = atomic_read(&fti->async_in_flight[class]);
	state->async[class] = fti_is_async(turn);
	state->oldest[class] = 0;
	state->waited[class] = 0;
	state->oldest_of[0][class] = 0;
	state->oldest_of[1][class] = 0;
	if (oldest && fti_rank(prio, oldest, now) &&
	    fti_higher_in_flight(fti, class, prio, state->front)) {
		state->prio_waits = true;
		return;
	}
	state->oldest[class] = oldest;
	state->waited[class] = fti_waited_time(turn);
	if (state->front)
		return;
	state->oldest_of[0][class] = fti_oldest_of(turn, false);
	state->oldest_of[1][class] = fti_oldest_of(turn, true);
	state->follows |= fti_plain_follows(turn, state->plain.writes);
}

/* The queues and the device as they are now. */
void fti_read_state(struct fti_data *fti, struct fti_state *state, u64 now)
{
	struct fti_class *neutral = &fti->class[FASTTRACK_NEUTRAL];

	lockdep_assert_held(&fti->fti_lock);

	state->front = READ_ONCE(fti->front);
	state->prio_waits = false;
	state->plain = fti->plain;
	state->follows = false;
	for (int i = 0; i < FASTTRACK_NR_CLASSES; i++)
		state->in_flight[i] = atomic_read(&fti->in_flight[i]);
	/*
	 * Pairs with the barrier in fti_left_device(): of a request that is in the device no
	 * longer by these nothing is counted below. fti_hold() looks at these alone again.
	 */
	smp_rmb();
	for (int i = 0; i < FASTTRACK_NR_CLASSES; i++)
		fti_read_class(fti, state, i, now);
	state->foreground_seen = READ_ONCE(fti->foreground_seen);
	state->others_in_a_row = fti->others_in_a_row;
	state->foreground_last = atomic64_read(&fti->foreground_last);
	state->idle_window = fasttrack_idle_window();
	state->foreground_depends = fasttrack_foreground_depends();
	state->lifted = fasttrack_holds_lifted();
	state->own = fti_oldest_is_own(&neutral->queue[state->prio[FASTTRACK_NEUTRAL]]);
	state->neutral_next = atomic64_read(&fti->neutral_next);
	state->neutral_sent = fti->neutral_sent;
	state->background_next = atomic64_read(&fti->background_next);
	state->metadata_pages = atomic_read(&fti->metadata_pages);
	state->pages_in_flight = atomic_read(&fti->pages_in_flight);
	state->written_pages = atomic_read(&fti->written_pages);
	state->device_depth = fti_device_depth(fti->q);
	state->cheap_depth = READ_ONCE(fti->cost.depth);
}

/* The knobs as they are now; a decision sees each of them once. */
struct fti_bounds fti_read_bounds(const struct fti_data *fti)
{
	return (struct fti_bounds){
		.idle_window = READ_ONCE(fti->bounds.idle_window),
		.neutral_expire = READ_ONCE(fti->bounds.neutral_expire),
		.neutral_share = READ_ONCE(fti->bounds.neutral_share),
		.background_expire = READ_ONCE(fti->bounds.background_expire),
		.background_depth = READ_ONCE(fti->bounds.background_depth),
		.background_share = READ_ONCE(fti->bounds.background_share),
		.foreground_reserve = READ_ONCE(fti->bounds.foreground_reserve),
		.foreground_cost = READ_ONCE(fti->bounds.foreground_cost),
		.background_kb = READ_ONCE(fti->bounds.background_kb),
	};
}

/* What would go next: background's by kind, of neutral's where it has none. */
static const struct bio *fti_held_bio(struct fti_data *fti,
				      const struct fti_state *state)
{
	static const enum fasttrack_class held[] = {
		FASTTRACK_BACKGROUND, FASTTRACK_NEUTRAL,
	};
	const struct request *rq;

	lockdep_assert_held(&fti->fti_lock);

	for (int i = 0; i < ARRAY_SIZE(held); i++) {
		struct fti_queue *turn =
			&fti->class[held[i]].queue[state->prio[held[i]]];

		for (enum fti_kind kind = FTI_READ; kind < FTI_NR_KINDS; kind++) {
			rq = list_first_entry_or_null(&turn->fifo[kind],
						      struct request, queuelist);
			if (rq)
				return rq->bio;
		}
	}
	return NULL;
}

/*
 * Hold others back until @wake (0: until a request leaves the device).
 * Return: false if one has left meanwhile, so that the decision is stale.
 */
bool fti_hold(struct fti_data *fti, const struct fti_state *state, u64 wake)
{
	bool stale;

	lockdep_assert_held(&fti->fti_lock);

	fti->prio_waits = state->prio_waits;
	WRITE_ONCE(fti->promoter.held, true);
	/* Pairs with the barrier in fti_release(). */
	smp_mb();
	stale = state->foreground_depends != fasttrack_foreground_depends() ||
		state->lifted != fasttrack_holds_lifted();
	for (int i = 0; i < FASTTRACK_NR_CLASSES; i++)
		stale |= atomic_read(&fti->in_flight[i]) != state->in_flight[i];
	if (stale) {
		WRITE_ONCE(fti->promoter.held, false);
		return false;
	}
	if (wake)
		hrtimer_start(&fti->timer, ns_to_ktime(wake),
			      HRTIMER_MODE_ABS);
	/* For a higher priority alone, as mq-deadline does. */
	if (!state->front)
		return true;
	fasttrack_holds();
	fasttrack_count(FASTTRACK_DISPATCH_HELD);
	if (trace_fasttrack_hold_enabled())
		trace_fasttrack_hold(fti->q, fti_held_bio(fti, state),
				     fti->class[FASTTRACK_BACKGROUND].queued,
				     state->in_flight[FASTTRACK_BACKGROUND], wake);
	return true;
}

static enum hrtimer_restart fti_timer(struct hrtimer *timer)
{
	struct fti_data *fti = container_of(timer, struct fti_data, timer);

	WRITE_ONCE(fti->promoter.held, false);
	blk_mq_run_hw_queues(fti->q, true);
	return HRTIMER_NORESTART;
}

/* What a hold was decided on has changed: decide again. */
void fti_release(struct fti_data *fti)
{
	/* Pairs with those in fti_hold() and fti_crowded(). */
	smp_mb();
	if (READ_ONCE(fti->promoter.held)) {
		WRITE_ONCE(fti->promoter.held, false);
		blk_mq_run_hw_queues(fti->q, true);
	}
}

void fti_init_hold(struct fti_data *fti)
{
	hrtimer_init(&fti->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	fti->timer.function = fti_timer;
}

void fti_exit_hold(struct fti_data *fti)
{
	hrtimer_cancel(&fti->timer);
}
