// SPDX-License-Identifier: GPL-2.0
/*
 * What of the I/O dispatcher's is in the device: how many requests of whom, for how
 * long, and what that costs; and whom it keeps waiting for too long.
 *
 * Completions run without fti_lock, so all of it is atomic, or has a lock of its own.
 */
#include <linux/bio.h>
#include <linux/bitfield.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/fasttrack.h>
#include <linux/ioprio.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/spinlock.h>

#include "fasttrack-iosched.h"

/* Background's share is not charged with it. */
void fti_set_free(struct request *rq)
{
	rq->elv.priv[0] = (void *)((uintptr_t)rq->elv.priv[0] | FTI_FREE);
}

static bool fti_is_free(const struct request *rq)
{
	return (uintptr_t)rq->elv.priv[0] & FTI_FREE;
}

/* Has the foreground's @rq met requests of background's in the device? */
static bool fti_is_beside(const struct request *rq)
{
	return (uintptr_t)rq->elv.priv[0] & FTI_BESIDE;
}

/* Is the foreground's @rq what others have made dirty, and who syncs waits for? */
static bool fti_is_flushed(const struct request *rq)
{
	return (uintptr_t)rq->elv.priv[0] & FTI_FLUSHED;
}

static unsigned int fti_pages(const struct request *rq)
{
	return FIELD_GET(FTI_PAGES_MASK, (uintptr_t)rq->elv.priv[0]);
}

/* The power of two of its pages. */
static unsigned int fti_size(const struct request *rq)
{
	unsigned int pages = fti_pages(rq);

	return min(pages ? ilog2(pages) : 0, FTI_SIZES - 1);
}

static void fti_note_start(struct request *rq, bool beside)
{
	unsigned int pages = min_t(unsigned int,
				   blk_rq_sectors(rq) >> PAGE_SECTORS_SHIFT,
				   FIELD_MAX(FTI_PAGES_MASK));
	bool flushed = rq->bio && !fti_bio_is_own(rq->bio) &&
		       rq->bio->bi_origin.cause == FASTTRACK_CAUSE_WRITEBACK;

	rq->elv.priv[0] = (void *)((uintptr_t)rq->elv.priv[0] |
				   (beside ? FTI_BESIDE : 0) |
				   (flushed ? FTI_FLUSHED : 0) |
				   FIELD_PREP(FTI_PAGES_MASK, pages));
}

/*
 * Another request, or one less (@change: 1, -1), of a class other than the
 * foreground's is in the device. What it is does not change there, only when it is
 * queued again.
 */
static void fti_count_others(struct fti_data *fti, const struct request *rq,
			     int change)
{
	enum fasttrack_class class = fti_rq_class(rq);
	bool async = fti_opf_kind(rq->cmd_flags) == FTI_ASYNC;
	int pages = change * (int)fti_pages(rq);

	if (class == FASTTRACK_BACKGROUND) {
		atomic_add(pages, &fti->pages_in_flight);
		if (op_is_write(rq->cmd_flags))
			atomic_add(pages, &fti->written_pages);
	} else if (async && (rq->cmd_flags & REQ_META)) {
		atomic_add(pages, &fti->metadata_pages);
	}
	if (async)
		atomic_add(change, &fti->async_in_flight[class]);
}

static unsigned long fti_now_us(u64 now)
{
	return (unsigned long)div_u64(now, NSEC_PER_USEC) ?: 1;
}

/*
 * Devices learn that it is the foreground's: by its I/O priority, unless the app
 * in front has one of its own. req_get_ioprio() reads the first bio, and nothing
 * merges any more.
 */
static void fti_set_prio(struct request *rq)
{
	struct bio *bio = rq->bio;

	if (!bio || (bio->bi_origin.own_prio && fti_bio_is_own(bio)))
		return;
	bio->bi_ioprio = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0);
}

static unsigned int fti_in_flight(const struct fti_data *fti)
{
	unsigned int in_flight = 0;

	for (int i = 0; i < FASTTRACK_NR_CLASSES; i++)
		in_flight += atomic_read(&fti->in_flight[i]);
	return in_flight;
}

static struct fti_pace fti_read_pace(const struct fti_data *fti)
{
	return (struct fti_pace){
		.moved = atomic64_read(&fti->moved),
		.stalled = atomic64_read(&fti->stalled),
	};
}

/* @rq goes to the device now. */
void fti_start(struct fti_data *fti, struct request *rq, u64 now)
{
	enum fasttrack_class class = fti_rq_class(rq);

	if (!fti_in_flight(fti))
		atomic64_set(&fti->moved, now);
	rq->rq_flags |= RQF_STARTED;
	rq->elv.priv[1] = (void *)fti_now_us(now);
	fti_note_start(rq, atomic_read(&fti->in_flight[FASTTRACK_BACKGROUND]));
	atomic_inc(&fti->in_flight[class]);
	atomic_inc(&fti->prio_in_flight[class][fti_rq_prio(rq)]);
	if (class != FASTTRACK_FOREGROUND) {
		fti_count_others(fti, rq, 1);
		return;
	}
	fti_set_prio(rq);
	atomic64_set(&fti->foreground_last, now);
	WRITE_ONCE(fti->foreground_seen, true);
	fasttrack_foreground_io(1);
}

/*
 * A share of the device is used up until @next. A shorter request that ends later
 * takes nothing back.
 */
static void fti_charge(atomic64_t *until, s64 next)
{
	s64 charged = atomic64_read(until);

	while (charged < next && !atomic64_try_cmpxchg(until, &charged, next))
		;
}

static bool fti_has_data(const struct request *rq)
{
	return req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE;
}

/*
 * The foreground's @rq was in the device for @us. A device that takes one request
 * at a time makes none wait there. Of what a flusher sends as fast as it can nothing is
 * to be learnt.
 */
static void fti_learn_cost(struct fti_data *fti, const struct request *rq, u64 us)
{
	unsigned int most = fti_device_depth(fti->q);
	unsigned long flags;
	u64 *alone;

	if (most == 1 || !fti_has_data(rq) || fti_is_flushed(rq))
		return;
	alone = &fti->alone[fti_opf_kind(rq->cmd_flags)][fti_size(rq)];
	spin_lock_irqsave(&fti->cost_lock, flags);
	if (!fti_is_beside(rq))
		*alone = fti_mean(*alone, us);
	else if (*alone)
		fti_cost_add(&fti->cost, us, *alone,
			     READ_ONCE(fti->bounds.foreground_cost), most);
	spin_unlock_irqrestore(&fti->cost_lock, flags);
}

/* The device has ended a request. */
static void fti_note_end(struct fti_data *fti, u64 now)
{
	struct fti_pace pace = fti_read_pace(fti);

	fti_pace_end(&pace, now);
	atomic64_set(&fti->moved, pace.moved);
	atomic64_set(&fti->stalled, pace.stalled);
}

/* @rq of neutral's or background's has ended: when their next one may go. */
static void fti_charge_share(struct fti_data *fti, const struct request *rq,
			     u64 now, u64 us)
{
	const struct fti_bounds bounds = fti_read_bounds(fti);
	u64 service = us * NSEC_PER_USEC;

	if (fti_rq_class(rq) == FASTTRACK_NEUTRAL)
		fti_charge(&fti->neutral_next,
			   fti_neutral_next(&bounds, now, service));
	else if (!fti_is_free(rq))
		fti_charge(&fti->background_next,
			   fti_background_next(&bounds, now, service));
}

/*
 * @rq is no longer in the device. Runs in completions, so without fti_lock.
 * Return: false if it never was there.
 */
bool fti_left_device(struct fti_data *fti, struct request *rq)
{
	enum fasttrack_class class = fti_rq_class(rq);
	unsigned long started = (unsigned long)rq->elv.priv[1];
	u64 now, us;

	if (!started)
		return false;
	rq->elv.priv[1] = NULL;
	now = ktime_get_ns();
	us = fti_now_us(now) - started;
	fti_note_end(fti, now);
	if (class == FASTTRACK_FOREGROUND) {
		atomic64_set(&fti->foreground_last, now);
		fasttrack_foreground_io(-1);
		fti_learn_cost(fti, rq, us);
	} else {
		fti_charge_share(fti, rq, now, us);
		fti_count_others(fti, rq, -1);
	}
	atomic_dec(&fti->prio_in_flight[class][fti_rq_prio(rq)]);
	/* Pairs with the barrier in fti_read_state(). */
	smp_mb__before_atomic();
	atomic_dec(&fti->in_flight[class]);
	return true;
}

/* If a task has waited for one of @class for longer than anybody may, that is the end. */
static void fti_check_class(struct fti_data *fti, const struct fti_state *state,
			    enum fasttrack_class class, u64 now)
{
	struct fti_queue *turn = &fti->class[class].queue[state->prio[class]];
	const struct fti_pace pace = fti_read_pace(fti);
	u64 waited = fti_passed_over(&pace, fti_in_flight(fti),
				     state->waited[class], now);

	if (waited > fasttrack_eject_bound())
		fasttrack_eject("request", fti_waited_pid(turn),
				fti->q->disk->disk_name, waited);
}

/* With nobody in front the order is that of arrival, and the device is slow. */
void fti_check_waits(struct fti_data *fti, const struct fti_state *state, u64 now)
{
	if (!fasttrack_enabled() || !state->front)
		return;
	fti_check_class(fti, state, FASTTRACK_BACKGROUND, now);
	fti_check_class(fti, state, FASTTRACK_NEUTRAL, now);
}

/* The same though nothing is to be sent now, and no event may come; for the core. */
void fti_check(struct fasttrack_queue *queue)
{
	struct fti_data *fti = container_of(queue, struct fti_data, promoter);
	u64 now = ktime_get_ns();
	struct fti_state state;

	spin_lock(&fti->fti_lock);
	fti_read_state(fti, &state, now);
	fti_check_waits(fti, &state, now);
	spin_unlock(&fti->fti_lock);
}
