// SPDX-License-Identifier: GPL-2.0
/*
 * SmartIO: an elevator for apps that wait for reads (after Nguyen et al., in a
 * poster at MobiSys 2014).
 *
 * Controls the order of requests, and how many of them are in the device at a
 * time. It reacts to a request's ioprio, direction, and place on the disk:
 *
 *  - Beneath the block layer's priority classes and their levels there is a
 *    third one: reads go before writes.
 *  - Processes take turns, of one request. So an fsync does not wait for all
 *    that the flusher has queued.
 *  - Writes wait for as long as there are reads, but no process' for longer
 *    than write_wait_ms: then one of its writes goes, and its wait begins anew.
 *    It is only the time while reads go that counts, so that many processes
 *    which write leave something to reads; but all of it, in one piece or not.
 *    The process is the one that sends the write; for buffered write-back this
 *    is the flusher, and of kernel workers each is one. A request that several
 *    have merged is the first one's, and has its turns.
 *  - The device is given as many requests at a time as it works best with, a
 *    number each for sequential and random reads and writes, told by knobs. As
 *    long as nobody has told them, there is no limit. What has waited too long
 *    by the rules above and below goes all the same.
 *  - A read of a lower level waits for higher ones no longer than prio_aging_ms.
 *
 * Not here: anything about apps in front, deadlines of reads against reads, and
 * the order by sector, which flash storage does not need. Write-back throttling
 * is off meanwhile: it makes an fsync wait so that reads are fast, which they are.
 */
#include <linux/bio.h>
#include <linux/bitops.h>
#include <linux/blkdev.h>
#include <linux/ioprio.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/rbtree.h>
#include <linux/sbitmap.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include <trace/events/block.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-mq-sched.h"
#include "blk-wbt.h"
#include "elevator.h"
#include "smartio-iosched.h"

#define CREATE_TRACE_POINTS
#include <trace/events/smartio.h>

/* The poster's figure: what a person does not notice of a write. */
static const u64 smartio_write_wait = 100 * NSEC_PER_MSEC;
/* mq-deadline's value. */
static const u64 smartio_prio_aging = 10ULL * NSEC_PER_SEC;

/* Scheduler tags that writes may take, in per cent: BFQ's parts for them. */
static const unsigned int smartio_sync_write_tags = 75;
static const unsigned int smartio_async_write_tags = 50;

static_assert(SMARTIO_NR_LEVELS <= BITS_PER_LONG);

/* What is kept with a request: its process, and whether it is in the device. */
static void smartio_set_process(struct request *rq, pid_t process)
{
	rq->elv.priv[0] = (void *)(uintptr_t)process;
}

static pid_t smartio_process(const struct request *rq)
{
	return (uintptr_t)rq->elv.priv[0];
}

static void smartio_set_in_device(struct request *rq, bool in_device)
{
	rq->elv.priv[1] = (void *)(uintptr_t)in_device;
}

static bool smartio_in_device(const struct request *rq)
{
	return rq->elv.priv[1];
}

static enum smartio_direction smartio_opf_direction(blk_opf_t opf)
{
	return op_is_write(opf) ? SMARTIO_WRITES : SMARTIO_READS;
}

static enum smartio_direction smartio_direction(const struct request *rq)
{
	return smartio_opf_direction(rq->cmd_flags);
}

static struct smartio_queue *smartio_queue_of(struct smartio_data *smartio,
					      const struct request *rq)
{
	return &smartio->queue[smartio_direction(rq)];
}

static struct request *smartio_first(struct smartio_queue *queue,
				     unsigned int level)
{
	return list_first_entry_or_null(&queue->turns[level], struct request,
					queuelist);
}

/* The clocks go on to @now. */
static void smartio_run_clocks(struct smartio_data *smartio, u64 now)
{
	lockdep_assert_held(&smartio->smartio_lock);

	for (int level = smartio->clock_from; level < SMARTIO_NR_LEVELS; level++)
		smartio->clock[level] += now - smartio->turn_began;
	smartio->turn_began = now;
}

/* What a wait of @rq is counted by, which has been run to @now. */
static u64 smartio_clock(const struct smartio_data *smartio,
			 struct request *rq, u64 now)
{
	if (smartio_direction(rq) == SMARTIO_READS)
		return now;
	return smartio->clock[smartio_level(req_get_ioprio(rq))];
}

/* The request that has waited longest, of all levels; NULL if there is none. */
static struct request *smartio_oldest(struct smartio_data *smartio,
				      enum smartio_direction direction, u64 now,
				      u64 *waited)
{
	struct smartio_queue *queue = &smartio->queue[direction];
	struct request *oldest = NULL, *rq;
	unsigned int level;

	for_each_set_bit(level, &queue->busy, SMARTIO_NR_LEVELS)
		list_for_each_entry(rq, &queue->turns[level], queuelist) {
			u64 wait = smartio_clock(smartio, rq, now) -
				   rq->fifo_time;

			if (!oldest || wait > *waited) {
				oldest = rq;
				*waited = wait;
			}
			/* Whose wait began first is, of writes, whose turn is. */
			if (direction == SMARTIO_WRITES)
				break;
		}
	return oldest;
}

/* The stream that @rq goes on with; SMARTIO_STREAMS if with none. */
static unsigned int smartio_stream(const struct smartio_queue *queue,
				   const struct request *rq)
{
	unsigned int i;

	for (i = 0; i < SMARTIO_STREAMS; i++)
		if (queue->ends[i] == blk_rq_pos(rq))
			break;
	return i;
}

static void smartio_note_end(struct smartio_queue *queue,
			     const struct request *rq)
{
	unsigned int stream = smartio_stream(queue, rq);

	if (stream == SMARTIO_STREAMS) {
		stream = queue->oldest_end;
		queue->oldest_end = (stream + 1) % SMARTIO_STREAMS;
	}
	queue->ends[stream] = blk_rq_pos(rq) + blk_rq_sectors(rq);
}

/* The knobs as they are now; a decision sees each of them once. */
static struct smartio_knobs
smartio_read_knobs(const struct smartio_data *smartio)
{
	struct smartio_knobs knobs = {
		.write_wait = READ_ONCE(smartio->knobs.write_wait),
		.prio_aging = READ_ONCE(smartio->knobs.prio_aging),
	};

	for (int kind = 0; kind < SMARTIO_NR_KINDS; kind++)
		knobs.depth[kind] = READ_ONCE(smartio->knobs.depth[kind]);
	return knobs;
}

/* Queues. */

static void smartio_unlink(struct smartio_data *smartio, struct request *rq)
{
	struct smartio_queue *queue = smartio_queue_of(smartio, rq);
	unsigned int level = smartio_level(req_get_ioprio(rq));
	struct request_queue *q = rq->q;

	lockdep_assert_held(&smartio->smartio_lock);

	list_del_init(&rq->queuelist);
	/* A request that was merged while it was being inserted is in no list. */
	if (!RB_EMPTY_NODE(&rq->rb_node)) {
		elv_rb_del(&queue->sort_list, rq);
		WRITE_ONCE(queue->queued, queue->queued - 1);
		if (list_empty(&queue->turns[level]))
			__clear_bit(level, &queue->busy);
	}
	elv_rqhash_del(q, rq);
	if (q->last_merge == rq)
		q->last_merge = NULL;
}

static void smartio_link(struct smartio_data *smartio, struct request *rq)
{
	struct smartio_queue *queue = smartio_queue_of(smartio, rq);
	unsigned int level = smartio_level(req_get_ioprio(rq));
	struct request_queue *q = rq->q;

	lockdep_assert_held(&smartio->smartio_lock);

	elv_rb_add(&queue->sort_list, rq);
	list_add_tail(&rq->queuelist, &queue->turns[level]);
	__set_bit(level, &queue->busy);
	WRITE_ONCE(queue->queued, queue->queued + 1);
	if (rq_mergeable(rq)) {
		elv_rqhash_add(q, rq);
		if (!q->last_merge)
			q->last_merge = rq;
	}
}

/*
 * A request of @process goes: what else it has queued, in @turns, goes after that
 * of others, and if it is writes their wait begins anew, at @clock.
 */
static void smartio_had_turn(struct list_head *turns, pid_t process, u64 clock)
{
	struct request *rq, *next;
	LIST_HEAD(others);

	list_for_each_entry_safe(rq, next, turns, queuelist) {
		if (smartio_process(rq) != process)
			continue;
		if (smartio_direction(rq) == SMARTIO_WRITES)
			rq->fifo_time = clock;
		list_move_tail(&rq->queuelist, &others);
	}
	list_splice_tail(&others, turns);
}

/* Dispatch. */

static struct smartio_waiting
smartio_read_waiting(struct smartio_data *smartio,
		     const struct smartio_knobs *knobs,
		     enum smartio_direction direction, unsigned int in_flight,
		     u64 now)
{
	struct smartio_queue *queue = &smartio->queue[direction];
	struct smartio_waiting waiting = { .level = SMARTIO_NR_LEVELS };
	struct request *first;
	enum smartio_kind kind;

	if (!smartio_oldest(smartio, direction, now, &waiting.waited))
		return waiting;
	waiting.level = __ffs(queue->busy);
	first = smartio_first(queue, waiting.level);
	kind = smartio_kind(direction == SMARTIO_WRITES,
			    smartio_stream(queue, first) < SMARTIO_STREAMS);
	waiting.full = smartio_is_full(knobs, kind, in_flight);
	return waiting;
}

static struct request *smartio_request_of(struct smartio_data *smartio,
					  enum smartio_turn turn, u64 now)
{
	struct smartio_queue *reads = &smartio->queue[SMARTIO_READS];
	struct smartio_queue *writes = &smartio->queue[SMARTIO_WRITES];
	u64 waited;

	switch (turn) {
	case SMARTIO_READ:
		return smartio_first(reads, __ffs(reads->busy));
	case SMARTIO_WRITE:
		return smartio_first(writes, __ffs(writes->busy));
	case SMARTIO_AGED_READ:
		return smartio_oldest(smartio, SMARTIO_READS, now, &waited);
	case SMARTIO_OVERDUE_WRITE:
		return smartio_oldest(smartio, SMARTIO_WRITES, now, &waited);
	default:
		return NULL;
	}
}

/* @rq goes to the device. */
static void smartio_start(struct smartio_data *smartio, struct request *rq)
{
	rq->rq_flags |= RQF_STARTED;
	smartio_set_in_device(rq, true);
	atomic_inc(&smartio->in_flight[smartio_direction(rq)]);
	smartio_note_end(smartio_queue_of(smartio, rq), rq);
}

static void smartio_send(struct smartio_data *smartio, struct request *rq,
			 enum smartio_turn turn, u64 now)
{
	struct smartio_queue *queue = smartio_queue_of(smartio, rq);
	unsigned int level = smartio_level(req_get_ioprio(rq));
	bool write = smartio_direction(rq) == SMARTIO_WRITES;
	u64 clock = smartio_clock(smartio, rq, now);
	u64 wait = clock - rq->fifo_time;

	smartio_unlink(smartio, rq);
	smartio_start(smartio, rq);
	smartio_had_turn(&queue->turns[level], smartio_process(rq), clock);
	smartio->clock_from = smartio_clock_from(write, level);
	if (write)
		smartio->write_wait_max = max(smartio->write_wait_max, wait);
	trace_smartio_dispatch(rq, turn, smartio_process(rq), wait);
}

/*
 * Nobody may go: wait until a request leaves the device.
 * Return: false if one has left meanwhile, so that the decision is stale.
 */
static bool smartio_hold(struct smartio_data *smartio,
			 const unsigned int in_flight[SMARTIO_NR_DIRECTIONS])
{
	lockdep_assert_held(&smartio->smartio_lock);

	WRITE_ONCE(smartio->held, true);
	/* Pairs with the barrier in smartio_release(). */
	smp_mb();
	for (int i = 0; i < SMARTIO_NR_DIRECTIONS; i++)
		if (atomic_read(&smartio->in_flight[i]) != in_flight[i]) {
			WRITE_ONCE(smartio->held, false);
			return false;
		}
	return true;
}

/* Requests wait no longer for others to leave the device, if they did. */
static void smartio_release(struct smartio_data *smartio,
			    struct request_queue *q)
{
	/* Pairs with the barrier in smartio_hold(). */
	smp_mb();
	if (READ_ONCE(smartio->held)) {
		WRITE_ONCE(smartio->held, false);
		blk_mq_run_hw_queues(q, true);
	}
}

static struct request *smartio_next(struct smartio_data *smartio)
{
	const struct smartio_knobs knobs = smartio_read_knobs(smartio);
	unsigned int in_flight[SMARTIO_NR_DIRECTIONS];
	struct smartio_waiting reads, writes;
	enum smartio_turn turn;
	struct request *rq;
	u64 now;

	do {
		now = ktime_get_ns();
		smartio_run_clocks(smartio, now);
		for (int i = 0; i < SMARTIO_NR_DIRECTIONS; i++)
			in_flight[i] = atomic_read(&smartio->in_flight[i]);
		reads = smartio_read_waiting(smartio, &knobs, SMARTIO_READS,
					     in_flight[SMARTIO_READS], now);
		writes = smartio_read_waiting(smartio, &knobs, SMARTIO_WRITES,
					      in_flight[SMARTIO_WRITES], now);
		turn = smartio_choose(&reads, &writes, &knobs);
	} while (turn == SMARTIO_NOBODY &&
		 (smartio_has(&reads) || smartio_has(&writes)) &&
		 !smartio_hold(smartio, in_flight));
	rq = smartio_request_of(smartio, turn, now);
	if (rq)
		smartio_send(smartio, rq, turn, now);
	return rq;
}

/*
 * Requests are sorted for the whole queue, so the one returned may belong to
 * another hardware queue than @hctx.
 */
static struct request *smartio_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct smartio_data *smartio = hctx->queue->elevator->elevator_data;
	struct request *rq;

	spin_lock(&smartio->smartio_lock);
	rq = list_first_entry_or_null(&smartio->head, struct request,
				      queuelist);
	if (rq) {
		list_del_init(&rq->queuelist);
		smartio_start(smartio, rq);
	} else {
		rq = smartio_next(smartio);
	}
	spin_unlock(&smartio->smartio_lock);
	return rq;
}

static bool smartio_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct smartio_data *smartio = hctx->queue->elevator->elevator_data;

	return !list_empty_careful(&smartio->head) ||
	       (!READ_ONCE(smartio->held) &&
		(READ_ONCE(smartio->queue[SMARTIO_READS].queued) ||
		 READ_ONCE(smartio->queue[SMARTIO_WRITES].queued)));
}

/* Insertion and merging. */

static void smartio_insert_request(struct smartio_data *smartio,
				   struct request *rq, blk_insert_t flags,
				   struct list_head *free)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&smartio->smartio_lock);

	if (blk_mq_sched_try_insert_merge(rq->q, rq, free))
		return;

	trace_block_rq_insert(rq);
	smartio_run_clocks(smartio, now);
	rq->fifo_time = smartio_clock(smartio, rq, now);
	/* blk-flush keeps other flushes waiting for the data of one. */
	if ((flags & BLK_MQ_INSERT_AT_HEAD) ||
	    (rq->rq_flags & RQF_FLUSH_SEQ)) {
		list_add(&rq->queuelist, &smartio->head);
		return;
	}
	smartio_link(smartio, rq);
	/* It may go where those that wait may not. */
	WRITE_ONCE(smartio->held, false);
}

static void smartio_insert_requests(struct blk_mq_hw_ctx *hctx,
				    struct list_head *list, blk_insert_t flags)
{
	struct smartio_data *smartio = hctx->queue->elevator->elevator_data;
	LIST_HEAD(free);

	spin_lock(&smartio->smartio_lock);
	while (!list_empty(list)) {
		struct request *rq = list_first_entry(list, struct request,
						      queuelist);

		list_del_init(&rq->queuelist);
		smartio_insert_request(smartio, rq, flags, &free);
	}
	spin_unlock(&smartio->smartio_lock);

	blk_mq_free_requests(&free);
}

static int smartio_request_merge(struct request_queue *q, struct request **rq,
				 struct bio *bio)
{
	struct smartio_data *smartio = q->elevator->elevator_data;
	struct smartio_queue *queue =
		&smartio->queue[smartio_opf_direction(bio->bi_opf)];
	struct request *next = elv_rb_find(&queue->sort_list,
					   bio_end_sector(bio));

	if (!next || !elv_bio_merge_ok(next, bio))
		return ELEVATOR_NO_MERGE;
	*rq = next;
	return blk_discard_mergable(next) ? ELEVATOR_DISCARD_MERGE :
					    ELEVATOR_FRONT_MERGE;
}

static void smartio_request_merged(struct request_queue *q, struct request *rq,
				   enum elv_merge type)
{
	struct smartio_data *smartio = q->elevator->elevator_data;
	struct rb_root *root = &smartio_queue_of(smartio, rq)->sort_list;

	/* Its first sector has changed. */
	if (type == ELEVATOR_FRONT_MERGE) {
		elv_rb_del(root, rq);
		elv_rb_add(root, rq);
	}
}

static void smartio_requests_merged(struct request_queue *q,
				    struct request *rq, struct request *next)
{
	struct smartio_data *smartio = q->elevator->elevator_data;

	/* @rq stands for both now, and has waited for as long as either. */
	if (!list_empty(&rq->queuelist) && !list_empty(&next->queuelist) &&
	    next->fifo_time < rq->fifo_time) {
		/* Whose wait began earlier is, of writes, whose turn is. */
		if (smartio_direction(rq) == SMARTIO_WRITES)
			list_move(&rq->queuelist, &next->queuelist);
		rq->fifo_time = next->fifo_time;
	}
	smartio_unlink(smartio, next);
}

static bool smartio_bio_merge(struct request_queue *q, struct bio *bio,
			      unsigned int nr_segs)
{
	struct smartio_data *smartio = q->elevator->elevator_data;
	struct request *free = NULL;
	bool merged;

	spin_lock(&smartio->smartio_lock);
	merged = blk_mq_sched_try_merge(q, bio, nr_segs, &free);
	spin_unlock(&smartio->smartio_lock);

	if (free)
		blk_mq_free_request(free);
	return merged;
}

/* Life of a request. */

/* Called by the process that sends it, when it gets its tag. */
static void smartio_prepare_request(struct request *rq)
{
	smartio_set_process(rq, task_tgid_nr(current));
	smartio_set_in_device(rq, false);
}

/*
 * @rq has ended, or comes back. Runs in completions, so without the lock; and
 * for requests that were never in the device, too.
 */
static void smartio_finish_requeue_request(struct request *rq)
{
	struct smartio_data *smartio = rq->q->elevator->elevator_data;

	if (!smartio_in_device(rq))
		return;
	smartio_set_in_device(rq, false);
	atomic_dec(&smartio->in_flight[smartio_direction(rq)]);
	smartio_release(smartio, rq->q);
}

/* Called before a scheduler tag is taken. Reads may take them all. */
static void smartio_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	unsigned int percent = op_is_sync(opf) ? smartio_sync_write_tags :
						 smartio_async_write_tags;

	if (smartio_opf_direction(opf) == SMARTIO_WRITES)
		data->shallow_depth =
			max(data->q->nr_requests * percent / 100, 1UL);
}

static void smartio_depth_updated(struct blk_mq_hw_ctx *hctx)
{
	sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags, 1);
}

static int smartio_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	smartio_depth_updated(hctx);
	return 0;
}

static void smartio_init_queue(struct smartio_queue *queue)
{
	queue->sort_list = RB_ROOT;
	for (int level = 0; level < SMARTIO_NR_LEVELS; level++)
		INIT_LIST_HEAD(&queue->turns[level]);
	for (int i = 0; i < SMARTIO_STREAMS; i++)
		queue->ends[i] = (sector_t)-1;
}

static int smartio_init_sched(struct request_queue *q, struct elevator_type *e)
{
	struct elevator_queue *eq = elevator_alloc(q, e);
	struct smartio_data *smartio;

	if (!eq)
		return -ENOMEM;
	smartio = kzalloc_node(sizeof(*smartio), GFP_KERNEL, q->node);
	if (!smartio) {
		kobject_put(&eq->kobj);
		return -ENOMEM;
	}
	smartio->q = q;
	spin_lock_init(&smartio->smartio_lock);
	INIT_LIST_HEAD(&smartio->head);
	for (int i = 0; i < SMARTIO_NR_DIRECTIONS; i++)
		smartio_init_queue(&smartio->queue[i]);
	smartio->clock_from = SMARTIO_NR_LEVELS;
	smartio->knobs.write_wait = smartio_write_wait;
	smartio->knobs.prio_aging = smartio_prio_aging;

	eq->elevator_data = smartio;
	q->elevator = eq;
	/* Requests are sorted for the queue, not for a hardware queue. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	set_bit(ELEVATOR_FLAG_DISABLE_WBT, &eq->flags);
	wbt_disable_default(q->disk);
	return 0;
}

static void smartio_exit_sched(struct elevator_queue *e)
{
	struct smartio_data *smartio = e->elevator_data;

	WARN_ON_ONCE(!list_empty(&smartio->head));
	for (int i = 0; i < SMARTIO_NR_DIRECTIONS; i++) {
		WARN_ON_ONCE(smartio->queue[i].queued);
		WARN_ON_ONCE(smartio->queue[i].busy);
		WARN_ON_ONCE(atomic_read(&smartio->in_flight[i]));
	}
	clear_bit(ELEVATOR_FLAG_DISABLE_WBT, &e->flags);
	wbt_enable_default(smartio->q->disk);
	kfree(smartio);
}

static struct elevator_type smartio_sched = {
	.ops = {
		.depth_updated		= smartio_depth_updated,
		.limit_depth		= smartio_limit_depth,
		.insert_requests	= smartio_insert_requests,
		.dispatch_request	= smartio_dispatch_request,
		.prepare_request	= smartio_prepare_request,
		.finish_request		= smartio_finish_requeue_request,
		.requeue_request	= smartio_finish_requeue_request,
		.next_request		= elv_rb_latter_request,
		.former_request		= elv_rb_former_request,
		.bio_merge		= smartio_bio_merge,
		.request_merge		= smartio_request_merge,
		.requests_merged	= smartio_requests_merged,
		.request_merged		= smartio_request_merged,
		.has_work		= smartio_has_work,
		.init_sched		= smartio_init_sched,
		.exit_sched		= smartio_exit_sched,
		.init_hctx		= smartio_init_hctx,
	},
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = smartio_queue_debugfs_attrs,
#endif
	.elevator_attrs = smartio_attrs,
	.elevator_name = "smartio",
	.elevator_owner = THIS_MODULE,
};
MODULE_ALIAS("smartio-iosched");

static int __init smartio_init(void)
{
	return elv_register(&smartio_sched);
}

static void __exit smartio_exit(void)
{
	elv_unregister(&smartio_sched);
}

module_init(smartio_init);
module_exit(smartio_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("SmartIO I/O scheduler");

#if IS_ENABLED(CONFIG_IOSCHED_SMARTIO_KUNIT_TEST)
#include "tests/smartio-policy-kunit.h"
#endif
