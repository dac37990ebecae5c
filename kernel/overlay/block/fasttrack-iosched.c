// SPDX-License-Identifier: GPL-2.0
/*
 * FastTrack's I/O dispatcher: an elevator that keeps the app in front fast.
 *
 * Controls which request goes to the device next, and how many background
 * requests are there at a time. It reacts to the class in the request's flags
 * (I/O origin, mm/fasttrack/origin.c) and to what the foreground did last:
 *
 *  - Foreground requests go at once, ahead of everything that waits.
 *  - While the foreground works, background requests are held to a depth and
 *    to a share of the device's time. "Works" includes a short idle window.
 *  - Background can never take the last tags, neither the scheduler's (see
 *    fti_limit_depth()) nor the device's.
 *  - Nobody waits for write-back that is not synchronous, the foreground's
 *    neither: it is neutral here, until somebody waits for it. It has few
 *    tags, and few requests in the device: a journal's commit may have to wait for
 *    all that is under way, and so do reads of devices that do not put them first,
 *    and who wants to change metadata that are being written.
 *  - What is neutral goes one at a time then, within a share, but one in
 *    neutral_expire at least; and who waits for it waits so long before its turn.
 *  - Between the foreground's requests background may have as many in the device
 *    as do not make the foreground's next ones slower than foreground_cost allows:
 *    that is measured. On a device that takes one request at a time background's
 *    are small then, background_kb at most.
 *  - A background request that has waited for background_expire goes next, within
 *    its share, and what is waited for after twice that time: nobody starves.
 *  - A queued request that a foreground task waits for becomes foreground, and
 *    while the foreground waits for others nobody is held (mm/fasttrack/wait.c),
 *    and requests go in the order in which they came: it may be any.
 *  - A foreground request is sent with ioprio class RT, unless its app has another
 *    priority of its own. UFS, SATA and virtio devices are told; sd tells the
 *    class itself in the CDB.
 *
 * The order within a class is in fasttrack-queues.c, how background is held in
 * fasttrack-hold.c, what is in the device in fasttrack-device.c. While somebody is
 * in front write-back throttling is without limits, as it is off for BFQ. With
 * nobody in front, or FastTrack off, this is an ordinary elevator (fti_front()).
 *
 * Data of a flush sequence goes first then and is not held: blk-flush keeps other
 * flushes waiting for it. Not here: what the device does with the class, and
 * requests that bypass elevators (flushes, passthrough).
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/fasttrack.h>
#include <linux/ioprio.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sbitmap.h>
#include <linux/slab.h>

#include <trace/events/block.h>
#include <trace/events/fasttrack.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-mq-sched.h"
#include "blk-wbt.h"
#include "elevator.h"
#include "fasttrack-iosched.h"

static const struct fti_bounds fti_default_bounds = {
	/* Long enough for an app to decode an image or lay out a view between reads. */
	.idle_window = 20 * NSEC_PER_MSEC,
	/* What a user does not feel. */
	.neutral_expire = 20 * NSEC_PER_MSEC,
	.neutral_share = 20,
	/* Half of the second that nobody shall be paused longer than. */
	.background_expire = 500 * NSEC_PER_MSEC,
	/* One request keeps background moving and costs the foreground at most one. */
	.background_depth = 1,
	/* What the foreground can lose on a device that does one thing at a time. */
	.background_share = 5,
	/* An eighth of a queue of 32, the depth of UFS and SATA. */
	.foreground_reserve = 4,
	.foreground_cost = 10,
	/* A millisecond of eMMC, which takes one request at a time. */
	.background_kb = 128,
};

/*
 * Scheduler tags that a class may take, in per cent, for asynchronous writes
 * (but see fti_async_tags()) and for the rest; and whoever inherits the
 * foreground's class.
 */
static const unsigned int fti_tags[FASTTRACK_NR_CLASSES][2] = {
	[FASTTRACK_NEUTRAL]	= { 50, 75 },
	[FASTTRACK_BACKGROUND]	= { 25, 50 },
};

static const unsigned int fti_inherit_tags = 90;

/* @rq is in the queue: its sender may wait for it. Of interest if nobody holds it. */
static void fti_count(struct request *rq)
{
	uintptr_t kept = (uintptr_t)rq->elv.priv[0];
	unsigned int sender;

	if (!rq->bio || (kept & FTI_COUNTED) ||
	    fti_rq_class(rq) == FASTTRACK_BACKGROUND)
		return;
	sender = fasttrack_sender(rq->bio->bi_origin.pid);
	fasttrack_request(sender, 1);
	rq->elv.priv[0] = (void *)(kept | FTI_COUNTED |
				   FIELD_PREP(FTI_SENDER_MASK, sender));
}

/* It is there no more. */
static void fti_uncount(struct request *rq)
{
	uintptr_t kept = (uintptr_t)rq->elv.priv[0];

	if (!(kept & FTI_COUNTED))
		return;
	fasttrack_request(FIELD_GET(FTI_SENDER_MASK, kept), -1);
	rq->elv.priv[0] = (void *)(kept & ~(uintptr_t)FTI_KEPT);
}

static bool fti_has_class(const struct request *rq)
{
	return rq->elv.priv[0];
}

/* Is another class' request older than the foreground one that goes now? */
static bool fti_overtakes(const struct fti_state *state, u64 arrival)
{
	for (int i = 0; i < FASTTRACK_FOREGROUND; i++)
		if (state->oldest[i] && state->oldest[i] < arrival)
			return true;
	return false;
}

static struct request *fti_dispatch_class(struct fti_data *fti,
					  const struct fti_state *state,
					  struct fti_choice choice, u64 now)
{
	struct request *rq = fti_select(&fti->class[choice.class], choice, now);
	bool boosted = choice.class == FASTTRACK_FOREGROUND &&
		       fti_overtakes(state, rq->fifo_time);
	enum fti_kind kind = fti_opf_kind(rq->cmd_flags);

	fti_unlink(fti, rq);
	fti_start(fti, rq, now);
	if (choice.expired)
		fasttrack_count(FASTTRACK_DISPATCH_EXPIRED);
	fti->others_in_a_row = choice.expired ? fti->others_in_a_row + 1 : 0;
	if (choice.class == FASTTRACK_NEUTRAL)
		fti->neutral_sent = now;
	if (choice.plain)
		fti_plain_sent(&fti->plain, choice.writes, choice.begins,
			       fti_longest(state->oldest_of[!choice.writes],
					   ~0UL) != FTI_NONE);
	if (boosted) {
		fasttrack_holds();
		fasttrack_count(FASTTRACK_DISPATCH_BOOSTED);
	}
	/* A task waits for these; write-back goes on as long as any is sent. */
	if (fti->front && choice.class == FASTTRACK_BACKGROUND &&
	    kind < FTI_ASYNC)
		fasttrack_max(kind == FTI_READ ? FASTTRACK_DISPATCH_WAIT_MAX :
						 FASTTRACK_DISPATCH_SYNC_MAX,
			      now - max(rq->fifo_time, fti->front_since));
	if (choice.starved && choice.class == FASTTRACK_BACKGROUND) {
		/* Not a write: it takes long, and share after share would go. */
		if (kind == FTI_READ)
			fti_set_free(rq);
		fti_wait_anew(fti_queue_of(fti, rq), rq, now);
	}
	trace_fasttrack_dispatch(rq, choice.class, now - rq->fifo_time,
				 choice.expired, boosted);
	return rq;
}

/* Background's next bios become requests of the size that is right now. */
static void fti_bound_size(struct fti_data *fti, const struct fti_state *state,
			   const struct fti_bounds *bounds, u64 now)
{
	unsigned int sectors = fti_background_sectors(state, bounds, now);
	const struct queue_limits *limits = &fti->q->limits;

	/* A logical block is never split, nor what a zone takes at once. */
	if (sectors)
		sectors = max3(sectors, (unsigned int)PAGE_SECTORS,
			       limits->zone_write_granularity >> SECTOR_SHIFT);
	if (fti->q->background_max_sectors != sectors)
		WRITE_ONCE(fti->q->background_max_sectors, sectors);
}

/*
 * Requests are sorted for the whole queue, so the one returned may belong to
 * another hardware queue than @hctx.
 */
static struct request *fti_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct fti_data *fti = hctx->queue->elevator->elevator_data;
	const struct fti_bounds bounds = fti_read_bounds(fti);
	struct fti_choice choice;
	struct fti_state state;
	struct request *rq;
	u64 now;

	spin_lock(&fti->fti_lock);
	now = ktime_get_ns();
	rq = list_first_entry_or_null(&fti->head, struct request, queuelist);
	if (rq) {
		list_del_init(&rq->queuelist);
		fti_start(fti, rq, now);
		goto unlock;
	}
	do {
		fti_read_state(fti, &state, now);
		choice = fti_choose(&state, &bounds, now);
	} while (choice.hold && !fti_hold(fti, &state, choice.wake));
	fti_check_waits(fti, &state, now);
	fti_bound_size(fti, &state, &bounds, now);
	if (choice.class != FTI_NONE)
		rq = fti_dispatch_class(fti, &state, choice, now);
unlock:
	spin_unlock(&fti->fti_lock);
	return rq;
}

static bool fti_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct fti_data *fti = hctx->queue->elevator->elevator_data;

	return !list_empty_careful(&fti->head) ||
	       READ_ONCE(fti->class[FASTTRACK_FOREGROUND].queued) ||
	       ((READ_ONCE(fti->class[FASTTRACK_NEUTRAL].queued) ||
		 READ_ONCE(fti->class[FASTTRACK_BACKGROUND].queued)) &&
		!READ_ONCE(fti->promoter.held));
}

/* Somebody waits for a bio that was merged into @rq. */
static bool fti_has_sync_bio(const struct request *rq)
{
	if (fti_opf_kind(rq->cmd_flags) != FTI_ASYNC)
		return false;
	for (const struct bio *bio = rq->bio; bio; bio = bio->bi_next)
		if (op_is_sync(bio->bi_opf))
			return true;
	return false;
}

/* What a request with @opf is treated as, whose app may be @in_front by now. */
static enum fasttrack_class fti_class_now(blk_opf_t opf, bool in_front)
{
	return in_front ? fti_treat_as(FASTTRACK_FOREGROUND, op_is_sync(opf)) :
			  fti_opf_class(opf);
}

/* The classes other than the foreground's of which a task waits for a queued request. */
static unsigned long fti_waited_classes(const struct fti_data *fti)
{
	unsigned long waited = 0;

	for (int i = 0; i < FASTTRACK_FOREGROUND; i++)
		if (fti_has_waited(&fti->class[i]))
			waited |= BIT(i);
	return waited;
}

/*
 * A flush waits until no request is queued that has one after it: while somebody is in
 * front such requests go first.
 */
static void fti_insert_new(struct fti_data *fti, struct request *rq,
			   blk_insert_t flags)
{
	trace_block_rq_insert(rq);
	rq->fifo_time = ktime_get_ns();
	fti_count(rq);
	if (flags & BLK_MQ_INSERT_AT_HEAD)
		list_add(&rq->queuelist, &fti->head);
	else if (fti->front && (rq->rq_flags & RQF_FLUSH_SEQ))
		list_add_tail(&rq->queuelist, &fti->head);
	else
		fti_link(fti, rq);
}

static void fti_insert_request(struct fti_data *fti, struct request *rq,
			       blk_insert_t flags, struct list_head *free)
{
	struct fti_class *neutral = &fti->class[FASTTRACK_NEUTRAL];
	unsigned long waited;
	bool in_front, first;

	lockdep_assert_held(&fti->fti_lock);

	if (fti_has_sync_bio(rq))
		rq->cmd_flags |= REQ_SYNC;
	in_front = rq->bio && fasttrack_came_to_front(rq->bio);
	fti_set_class(rq, fti_class_now(rq->cmd_flags, in_front));
	fti_promote_new(rq);
	waited = fti_waited_classes(fti);
	first = !neutral->queued;
	if (!blk_mq_sched_try_insert_merge(rq->q, rq, free))
		fti_insert_new(fti, rq, flags);
	/*
	 * More may go than of what nobody waits for, or of a lower priority; and a
	 * hold was decided on without what is neutral.
	 */
	if ((fti_waited_classes(fti) & ~waited) || (first && neutral->queued) ||
	    fti->prio_waits)
		WRITE_ONCE(fti->promoter.held, false);
}

static void fti_insert_requests(struct blk_mq_hw_ctx *hctx,
				struct list_head *list, blk_insert_t flags)
{
	struct fti_data *fti = hctx->queue->elevator->elevator_data;
	LIST_HEAD(free);

	spin_lock(&fti->fti_lock);
	while (!list_empty(list)) {
		struct request *rq = list_first_entry(list, struct request,
						      queuelist);

		list_del_init(&rq->queuelist);
		fti_insert_request(fti, rq, flags, &free);
	}
	spin_unlock(&fti->fti_lock);

	blk_mq_free_requests(&free);
}

static int fti_request_merge(struct request_queue *q, struct request **rq,
			     struct bio *bio)
{
	struct fti_data *fti = q->elevator->elevator_data;
	enum fasttrack_class class = fasttrack_opf_class(bio->bi_opf);
	struct fti_queue *queue =
		&fti->class[class].queue[fti_prio_of(class, bio->bi_ioprio)];
	struct request *next =
		elv_rb_find(&queue->sort_list[fti_opf_kind(bio->bi_opf)],
			    bio_end_sector(bio));

	if (!next || !elv_bio_merge_ok(next, bio))
		return ELEVATOR_NO_MERGE;
	*rq = next;
	return blk_discard_mergable(next) ? ELEVATOR_DISCARD_MERGE :
					    ELEVATOR_FRONT_MERGE;
}

static void fti_request_merged(struct request_queue *q, struct request *rq,
			       enum elv_merge type)
{
	struct fti_data *fti = q->elevator->elevator_data;
	struct bio *bio = type == ELEVATOR_FRONT_MERGE ? rq->bio : rq->biotail;
	struct rb_root *root =
		&fti_queue_of(fti, rq)->sort_list[fti_opf_kind(rq->cmd_flags)];

	/* Its first sector has changed. */
	if (type == ELEVATOR_FRONT_MERGE) {
		elv_rb_del(root, rq);
		elv_rb_add(root, rq);
	}
	fti_key_bio(fti, rq, bio);
	if (fti_opf_kind(bio->bi_opf) < fti_opf_kind(rq->cmd_flags))
		fti_move(fti, rq, fti_rq_class(rq), true);
	fti_promote_with(fti, rq, bio);
}

static void fti_requests_merged(struct request_queue *q, struct request *rq,
				struct request *next)
{
	struct fti_data *fti = q->elevator->elevator_data;

	/*
	 * @rq stands for both now: it takes the earlier place, and somebody may
	 * wait for a bio that has come with @next.
	 */
	if (!list_empty(&next->queuelist) && next->fifo_time < rq->fifo_time) {
		fti_unlink(fti, rq);
		rq->fifo_time = next->fifo_time;
		fti_link(fti, rq);
	}
	fti_unlink(fti, next);
	/* All: the bio that brought the two together is before those of @next. */
	fti_key_request(fti, rq);
	if (fti_opf_kind(next->cmd_flags) < fti_opf_kind(rq->cmd_flags) ||
	    fti_has_sync_bio(rq))
		fti_move(fti, rq, fti_rq_class(rq), true);
	/* Nobody has been told of the bio that brought the two together. */
	fti_promote_queued(fti, rq);
}

static bool fti_bio_merge(struct request_queue *q, struct bio *bio,
			  unsigned int nr_segs)
{
	struct fti_data *fti = q->elevator->elevator_data;
	const struct fti_class *foreground = &fti->class[FASTTRACK_FOREGROUND];
	struct request *free = NULL;
	unsigned long waited;
	unsigned int before;
	bool merged, stale;

	spin_lock(&fti->fti_lock);
	before = foreground->queued;
	waited = fti_waited_classes(fti);
	merged = blk_mq_sched_try_merge(q, bio, nr_segs, &free);
	stale = foreground->queued > before ||
		(fti_waited_classes(fti) & ~waited);
	spin_unlock(&fti->fti_lock);

	if (free)
		blk_mq_free_request(free);
	/* Who merges does not run the queue, and @bio may be waited for. */
	if (stale)
		fti_release(fti);
	return merged;
}

static void fti_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] = NULL;
}

/* @rq has ended, or comes back; a retry of it may bypass the elevator. */
static void fti_finish_requeue_request(struct request *rq)
{
	struct fti_data *fti = rq->q->elevator->elevator_data;

	/* Not inserted: a bypass, or merged on its way. */
	if (!fti_has_class(rq))
		return;
	fti_uncount(rq);
	if (!fti_left_device(fti, rq))
		return;
	fti_release(fti);
	fti_tell_room(fti);
}

/*
 * Called before a scheduler tag is taken, and while current waits for one. The
 * foreground may take them all.
 */
static void fti_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct fti_data *fti = data->q->elevator->elevator_data;
	enum fasttrack_class class = fti_opf_class(opf);

	/* Nobody in front: as mq-deadline's. */
	if (!READ_ONCE(fti->front)) {
		data->shallow_depth = op_is_sync(opf) && !op_is_write(opf) ?
			0 : fti->shallow[FASTTRACK_NEUTRAL][1];
		return;
	}
	/* It may have come to the front while it waited. */
	if (class == FASTTRACK_BACKGROUND)
		class = fti_class_now(opf, fasttrack_task_class(current) ==
						   FASTTRACK_FOREGROUND);
	/* What the foreground reads while it syncs all finds a tag. */
	if (class == FASTTRACK_FOREGROUND && op_is_write(opf) &&
	    fasttrack_flushes())
		data->shallow_depth = fti->shallow[FASTTRACK_NEUTRAL][1];
	/* Synchronous reads of neutral tasks are as unthrottled as ever. */
	else if (class == FASTTRACK_FOREGROUND ||
		 (class == FASTTRACK_NEUTRAL && op_is_sync(opf) &&
		  !op_is_write(opf)))
		data->shallow_depth = 0;
	else if (fasttrack_inherits(current))
		data->shallow_depth = fti->inherit_depth;
	else
		data->shallow_depth =
			fti->shallow[class][fti_opf_kind(opf) < FTI_ASYNC ||
					    fasttrack_foreground_depends()];
}

static void fti_depth_updated(struct blk_mq_hw_ctx *hctx)
{
	struct fti_data *fti = hctx->queue->elevator->elevator_data;
	struct sbitmap_queue *tags = &hctx->sched_tags->bitmap_tags;
	unsigned int depth = tags->sb.depth;
	unsigned int device_depth = fti_device_depth(fti->q);

	for (int i = 0; i < FASTTRACK_FOREGROUND; i++) {
		WRITE_ONCE(fti->shallow[i][0],
			   min(fti_shallow_depth(depth, fti_tags[i][0]),
			       fti_async_tags(device_depth, i)));
		WRITE_ONCE(fti->shallow[i][1],
			   fti_shallow_depth(depth, fti_tags[i][1]));
	}
	fti->inherit_depth = fti_shallow_depth(depth, fti_inherit_tags);
	sbitmap_queue_min_shallow_depth(tags,
					fti->shallow[FASTTRACK_BACKGROUND][0]);
}

static int fti_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	fti_depth_updated(hctx);
	return 0;
}

static int fti_init_sched(struct request_queue *q, struct elevator_type *e)
{
	struct elevator_queue *eq = elevator_alloc(q, e);
	struct fti_data *fti;

	if (!eq)
		return -ENOMEM;
	fti = kzalloc_node(sizeof(*fti), GFP_KERNEL, q->node);
	if (!fti) {
		kobject_put(&eq->kobj);
		return -ENOMEM;
	}
	spin_lock_init(&fti->fti_lock);
	spin_lock_init(&fti->cost_lock);
	fti->cost.depth = fti_device_depth(q);
	INIT_LIST_HEAD(&fti->head);
	for (int i = 0; i < FASTTRACK_NR_CLASSES; i++)
		fti_init_class(&fti->class[i]);
	fti_init_hold(fti);
	fti->bounds = fti_default_bounds;
	fti->q = q;
	eq->elevator_data = fti;
	q->elevator = eq;
	/* Requests are sorted for the queue, not for a hardware queue. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	set_bit(ELEVATOR_FLAG_LIMIT_AGAIN, &eq->flags);
	fti_init_promoter(fti);
	fti->promoter.check = fti_check;
	fasttrack_queue_add(&fti->promoter);
	return 0;
}

static void fti_exit_sched(struct elevator_queue *e)
{
	struct fti_data *fti = e->elevator_data;

	fasttrack_queue_del(&fti->promoter);
	fti_exit_hold(fti);
	WARN_ON_ONCE(!list_empty(&fti->head));
	WARN_ON_ONCE(fti_has_key(fti, ~0UL));
	for (int i = 0; i < FASTTRACK_NR_CLASSES; i++) {
		WARN_ON_ONCE(fti->class[i].queued);
		for (int prio = 0; prio < FTI_NR_PRIOS; prio++)
			WARN_ON_ONCE(fti_has_kind(&fti->class[i].queue[prio],
						  FTI_READ, FTI_ASYNC));
		WARN_ON_ONCE(atomic_read(&fti->in_flight[i]));
		WARN_ON_ONCE(atomic_read(&fti->async_in_flight[i]));
	}
	WARN_ON_ONCE(atomic_read(&fti->pages_in_flight));
	WARN_ON_ONCE(atomic_read(&fti->written_pages));
	WARN_ON_ONCE(atomic_read(&fti->metadata_pages));
	wbt_set_unlimited(fti->q->disk, false);
	WRITE_ONCE(fti->q->background_max_sectors, 0);
	kfree(fti);
}

static struct elevator_type fasttrack_sched = {
	.ops = {
		.depth_updated		= fti_depth_updated,
		.limit_depth		= fti_limit_depth,
		.insert_requests	= fti_insert_requests,
		.dispatch_request	= fti_dispatch_request,
		.prepare_request	= fti_prepare_request,
		.finish_request		= fti_finish_requeue_request,
		.requeue_request	= fti_finish_requeue_request,
		.next_request		= elv_rb_latter_request,
		.former_request		= elv_rb_former_request,
		.bio_merge		= fti_bio_merge,
		.request_merge		= fti_request_merge,
		.requests_merged	= fti_requests_merged,
		.request_merged		= fti_request_merged,
		.has_work		= fti_has_work,
		.init_sched		= fti_init_sched,
		.exit_sched		= fti_exit_sched,
		.init_hctx		= fti_init_hctx,
	},
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = fti_queue_debugfs_attrs,
#endif
	.elevator_attrs = fti_attrs,
	.elevator_name = "fasttrack",
	.elevator_owner = THIS_MODULE,
};
MODULE_ALIAS("fasttrack-iosched");

static int __init fti_init(void)
{
	return elv_register(&fasttrack_sched);
}

static void __exit fti_exit(void)
{
	elv_unregister(&fasttrack_sched);
}

module_init(fti_init);
module_exit(fti_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("FastTrack I/O dispatcher");

#if IS_ENABLED(CONFIG_FASTTRACK_KUNIT_TEST)
#include "tests/fasttrack-policy-kunit.h"
#endif
