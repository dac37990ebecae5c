// SPDX-License-Identifier: GPL-2.0
/*
 * The queued requests of the I/O dispatcher, and which of a class goes next.
 *
 * Within a class the order is mq-deadline's: higher I/O priorities before lower ones,
 * which they do not keep waiting for ever; then batches in sector order, reads
 * before writes, with deadlines; and, while somebody is in front, writes that
 * somebody waits for before others. Which class' turn it is: fti_choose().
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/fasttrack.h>
#include <linux/list.h>
#include <linux/rbtree.h>

#include "blk.h"
#include "elevator.h"
#include "fasttrack-iosched.h"

/* Deadlines within a queue: mq-deadline's values. */
static const u64 fti_expire[FTI_NR_KINDS] = {
	[FTI_READ]	= 500 * NSEC_PER_MSEC,
	[FTI_SYNC]	= 5ULL * NSEC_PER_SEC,
	[FTI_ASYNC]	= 5ULL * NSEC_PER_SEC,
};

struct fti_queue *fti_queue_of(struct fti_data *fti, const struct request *rq)
{
	return &fti->class[fasttrack_opf_class(rq->cmd_flags)].queue[fti_rq_prio(rq)];
}

static struct request *fti_oldest(struct fti_queue *queue, enum fti_kind kind)
{
	return list_first_entry_or_null(&queue->fifo[kind], struct request,
					queuelist);
}

/* The oldest request of @queue of the kinds from @first on before @end, NULL if it has none. */
static struct request *fti_oldest_between(struct fti_queue *queue,
					  enum fti_kind first, enum fti_kind end)
{
	struct request *oldest = NULL;

	for (enum fti_kind kind = first; kind < end; kind++) {
		struct request *rq = fti_oldest(queue, kind);

		if (rq && (!oldest || rq->fifo_time < oldest->fifo_time))
			oldest = rq;
	}
	return oldest;
}

static struct request *fti_oldest_request(struct fti_queue *queue)
{
	return fti_oldest_between(queue, FTI_READ, FTI_NR_KINDS);
}

/* The oldest request of @queue that a task waits for, NULL if it has none. */
static struct request *fti_oldest_waited(struct fti_queue *queue)
{
	return fti_oldest_between(queue, FTI_READ, FTI_ASYNC);
}

static u64 fti_arrival(const struct request *rq)
{
	return rq ? rq->fifo_time : 0;
}

/* The arrival of the oldest request of @queue, 0 if it has none. */
u64 fti_oldest_time(struct fti_queue *queue)
{
	return fti_arrival(fti_oldest_request(queue));
}

static struct request *fti_plain_oldest(struct fti_queue *queue, bool writes)
{
	return writes ? fti_oldest_between(queue, FTI_SYNC, FTI_NR_KINDS) :
			fti_oldest_between(queue, FTI_READ, FTI_SYNC);
}

/* The arrival of the oldest read, or write; 0 if there is none. */
u64 fti_oldest_of(struct fti_queue *queue, bool writes)
{
	return fti_arrival(fti_plain_oldest(queue, writes));
}

/* The arrival of the oldest that a task waits for, 0 if there is none. */
u64 fti_waited_time(struct fti_queue *queue)
{
	return fti_arrival(fti_oldest_waited(queue));
}

/* Who has sent that one; 0 if there is none. */
pid_t fti_waited_pid(struct fti_queue *queue)
{
	const struct request *rq = fti_oldest_waited(queue);

	return rq && rq->bio ? rq->bio->bi_origin.pid : 0;
}

/* Is the oldest request of @queue one of an app in front? */
bool fti_oldest_is_own(struct fti_queue *queue)
{
	const struct request *rq = fti_oldest_request(queue);

	return rq && rq->bio && fti_bio_is_own(rq->bio);
}

/* Does @queue have a request of a kind from @first to @last? */
bool fti_has_kind(const struct fti_queue *queue, enum fti_kind first,
		  enum fti_kind last)
{
	for (enum fti_kind kind = first; kind <= last; kind++)
		if (!list_empty(&queue->fifo[kind]))
			return true;
	return false;
}

/* Does nobody wait for any request of @queue? */
bool fti_is_async(const struct fti_queue *queue)
{
	return !fti_has_kind(queue, FTI_READ, FTI_SYNC);
}

/* Does a task wait for a queued request of @class? */
bool fti_has_waited(const struct fti_class *class)
{
	for (enum fti_prio prio = FTI_RT; prio < FTI_NR_PRIOS; prio++)
		if (!fti_is_async(&class->queue[prio]))
			return true;
	return false;
}

/*
 * Whose turn is it of @class? The highest priority's that has requests; or that of a lower
 * one that has waited for it for long enough.
 */
enum fti_prio fti_turn(struct fti_class *class, u64 now)
{
	enum fti_prio first = FTI_NR_PRIOS;

	for (enum fti_prio prio = FTI_RT; prio < FTI_NR_PRIOS; prio++) {
		u64 oldest = fti_oldest_time(&class->queue[prio]);

		if (!oldest)
			continue;
		if (first == FTI_NR_PRIOS)
			first = prio;
		else if (!fti_rank(prio, oldest, now))
			return prio;
	}
	return first == FTI_NR_PRIOS ? FTI_BE : first;
}

/* Is any request in the queues that may be asked for by one of @keys? */
bool fti_has_key(const struct fti_data *fti, unsigned long keys)
{
	unsigned int key;

	for_each_set_bit(key, &keys, BITS_PER_LONG)
		if (fti->keys[key])
			return true;
	return false;
}

/*
 * May pages of @bio belong to others than the first one's file? Its file system says so,
 * the first one is a buffer of nobody's, or @bio has been made from several, by a loop
 * device for one.
 */
static bool fti_is_mixed(const struct bio *bio,
			 const struct address_space *file)
{
	return bio->bi_origin.mixed || !file ||
	       (bio->bi_vcnt && (bio->bi_flags & BIT(BIO_CLONED)));
}

static unsigned long fti_bio_keys(const struct bio *bio)
{
	const struct address_space *file = fasttrack_bio_file(bio);

	if (bio->bi_origin.direct)
		return fti_task_key(bio->bi_origin.pid);
	return fti_task_key(bio->bi_origin.pid) |
	       (fti_is_mixed(bio, file) ? BIT(FTI_KEY_MIXED) :
					  fti_file_key(file));
}

/* The keys that @rq has by its bios, and as metadata. */
static unsigned long fti_keys_of(const struct request *rq)
{
	unsigned long keys = rq->cmd_flags & REQ_META ?
		BIT(FTI_KEY_METADATA) : 0;

	for (const struct bio *bio = rq->bio; bio; bio = bio->bi_next)
		keys |= fti_bio_keys(bio);
	return keys;
}

/* The keys of the queued @rq; none of the foreground's, nobody asks for that. */
unsigned long fti_keys(const struct request *rq)
{
	return (unsigned long)rq->elv.priv[1];
}

static void fti_count_keys(struct fti_data *fti, unsigned long keys, int change)
{
	unsigned int key;

	for_each_set_bit(key, &keys, BITS_PER_LONG)
		fti->keys[key] += change;
}

static void fti_add_keys(struct fti_data *fti, struct request *rq,
			 unsigned long keys)
{
	unsigned long more = keys & ~fti_keys(rq);

	lockdep_assert_held(&fti->fti_lock);

	fti_count_keys(fti, more, 1);
	rq->elv.priv[1] = (void *)(fti_keys(rq) | more);
}

/* The queued @rq has got @bio. */
void fti_key_bio(struct fti_data *fti, struct request *rq,
		 const struct bio *bio)
{
	if (fti_rq_class(rq) != FASTTRACK_FOREGROUND)
		fti_add_keys(fti, rq, fti_bio_keys(bio));
}

/* @rq is queued from now on, or has got several bios. */
void fti_key_request(struct fti_data *fti, struct request *rq)
{
	if (fti_rq_class(rq) != FASTTRACK_FOREGROUND)
		fti_add_keys(fti, rq, fti_keys_of(rq));
}

/*
 * Put @rq, whose arrival is known, among those of its class. It is the newest,
 * unless it comes from another class or kind.
 */
void fti_link(struct fti_data *fti, struct request *rq)
{
	struct fti_queue *queue = fti_queue_of(fti, rq);
	enum fti_kind kind = fti_opf_kind(rq->cmd_flags);
	struct list_head *fifo = &queue->fifo[kind];
	struct request_queue *q = rq->q;
	struct request *before;

	lockdep_assert_held(&fti->fti_lock);

	elv_rb_add(&queue->sort_list[kind], rq);
	list_for_each_entry_reverse(before, fifo, queuelist)
		if (before->fifo_time <= rq->fifo_time)
			break;
	/* Of none before it, &before->queuelist is the list's head. */
	list_add(&rq->queuelist, &before->queuelist);
	fti->class[fti_rq_class(rq)].queued++;
	if (rq->rq_flags & RQF_FLUSH_SEQ)
		fti->flushes++;
	fti_key_request(fti, rq);
	if (rq_mergeable(rq)) {
		elv_rqhash_add(q, rq);
		if (!q->last_merge)
			q->last_merge = rq;
	}
}

void fti_unlink(struct fti_data *fti, struct request *rq)
{
	struct fti_queue *queue = fti_queue_of(fti, rq);
	struct request_queue *q = rq->q;

	lockdep_assert_held(&fti->fti_lock);

	list_del_init(&rq->queuelist);
	/* A request that was merged while it was being inserted is in no list. */
	if (!RB_EMPTY_NODE(&rq->rb_node)) {
		elv_rb_del(&queue->sort_list[fti_opf_kind(rq->cmd_flags)], rq);
		fti->class[fti_rq_class(rq)].queued--;
		if (rq->rq_flags & RQF_FLUSH_SEQ)
			fti->flushes--;
		fti_count_keys(fti, fti_keys(rq), -1);
		rq->elv.priv[1] = NULL;
	}
	elv_rqhash_del(q, rq);
	if (q->last_merge == rq)
		q->last_merge = NULL;
}

/* Make the queued @rq one of @class, and one that is waited for if @sync. */
void fti_move(struct fti_data *fti, struct request *rq,
	      enum fasttrack_class class, bool sync)
{
	fti_unlink(fti, rq);
	fti_set_class(rq, class);
	if (sync)
		rq->cmd_flags |= REQ_SYNC;
	fti_link(fti, rq);
}

/* The next request of @queue at or after where the last one ended. */
static struct request *fti_from_position(const struct fti_queue *queue,
					 enum fti_kind kind)
{
	struct rb_node *node = queue->sort_list[kind].rb_node;
	struct request *found = NULL;

	while (node) {
		struct request *rq = rb_entry_rq(node);

		if (blk_rq_pos(rq) >= queue->position[kind]) {
			found = rq;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/* The first kind that there is, unless it has starved later ones long enough. */
static enum fti_kind fti_next_kind(struct fti_queue *queue)
{
	for (enum fti_kind kind = FTI_READ; kind < FTI_ASYNC; kind++) {
		if (!fti_has_kind(queue, kind, kind))
			continue;
		if (!fti_has_kind(queue, kind + 1, FTI_ASYNC) ||
		    queue->starved[kind]++ < FTI_STARVED)
			return kind;
	}
	return FTI_ASYNC;
}

static struct request *fti_lower(struct request *a, struct request *b)
{
	return !a || (b && blk_rq_pos(b) < blk_rq_pos(a)) ? b : a;
}

/* The next read or, if @kind is FTI_SYNC, write of @queue from its position on. */
static struct request *fti_plain_next(struct fti_queue *queue, enum fti_kind kind)
{
	struct request *rq = fti_from_position(queue, kind);

	return kind == FTI_READ ?
		rq : fti_lower(rq, fti_from_position(queue, FTI_ASYNC));
}

/* Is there one? */
bool fti_plain_follows(struct fti_queue *queue, bool writes)
{
	return fti_plain_next(queue, writes ? FTI_SYNC : FTI_READ);
}

/* The same as mq-deadline's: a write is a write. */
static struct request *fti_select_plain(struct fti_queue *queue,
					struct fti_choice choice, u64 now)
{
	enum fti_kind kind = choice.writes ? FTI_SYNC : FTI_READ;
	struct request *rq = fti_plain_next(queue, kind);
	struct request *oldest;

	if (!rq || choice.begins) {
		oldest = fti_plain_oldest(queue, choice.writes);
		if (!rq || now >= oldest->fifo_time + fti_expire[kind])
			rq = oldest;
	}
	queue->kind = kind;
	queue->batch = 0;
	queue->position[kind] = blk_rq_pos(rq) + blk_rq_sectors(rq);
	if (kind != FTI_READ)
		queue->position[FTI_ASYNC] = queue->position[kind];
	return rq;
}

/* The request of a class, which has some, whose turn it is. */
struct request *fti_select(struct fti_class *class, struct fti_choice choice,
			   u64 now)
{
	struct fti_queue *queue = &class->queue[fti_turn(class, now)];
	struct request *rq = NULL;
	struct request *oldest;

	if (choice.plain)
		return fti_select_plain(queue, choice, now);
	if (choice.expired) {
		rq = choice.starved ? fti_oldest_waited(queue) :
				      fti_oldest_request(queue);
		queue->kind = fti_opf_kind(rq->cmd_flags);
		queue->batch = 0;
		goto found;
	}
	/* Who waits is not made to wait for a batch of what nobody waits for. */
	if (!choice.in_order && (queue->kind < FTI_ASYNC || fti_is_async(queue)))
		rq = fti_from_position(queue, queue->kind);
	if (rq && queue->batch < FTI_BATCH)
		goto found;

	queue->kind = fti_next_kind(queue);
	queue->batch = 0;
	oldest = fti_oldest(queue, queue->kind);
	rq = choice.in_order ? NULL : fti_from_position(queue, queue->kind);
	if (!rq || now >= oldest->fifo_time + fti_expire[queue->kind])
		rq = oldest;
found:
	queue->batch++;
	for (enum fti_kind kind = FTI_READ; kind < queue->kind; kind++)
		queue->starved[kind] = 0;
	queue->position[queue->kind] = blk_rq_pos(rq) + blk_rq_sectors(rq);
	return rq;
}

/*
 * Is who waits for @other, of the kind of @rq, no longer starved when @rq has
 * gone? It is tasks that shall not starve, and one that reads ahead has several
 * requests. Of writes it is apps: one that syncs many files at a time would have
 * a slow phone's device, where a write takes tens of milliseconds, for most of
 * the time.
 */
static bool fti_goes_on(const struct request *rq, const struct request *other)
{
	if (!rq->bio || !other->bio)
		return false;
	if (fti_opf_kind(rq->cmd_flags) == FTI_READ)
		return other->bio->bi_origin.pid == rq->bio->bi_origin.pid;
	return other->bio->bi_origin.app == rq->bio->bi_origin.app;
}

/*
 * @rq, which background had waited for too long, has gone: what of its kind is
 * waited for by the same waits from @now.
 */
void fti_wait_anew(struct fti_queue *queue, const struct request *rq, u64 now)
{
	struct list_head *fifo = &queue->fifo[fti_opf_kind(rq->cmd_flags)];
	struct request *other, *next;
	LIST_HEAD(others);

	list_for_each_entry_safe(other, next, fifo, queuelist)
		if (fti_goes_on(rq, other)) {
			other->fifo_time = now;
			list_move_tail(&other->queuelist, &others);
		}
	list_splice_tail(&others, fifo);
}

static void fti_init_queue(struct fti_queue *queue)
{
	for (int kind = 0; kind < FTI_NR_KINDS; kind++) {
		queue->sort_list[kind] = RB_ROOT;
		INIT_LIST_HEAD(&queue->fifo[kind]);
	}
}

void fti_init_class(struct fti_class *class)
{
	for (int prio = 0; prio < FTI_NR_PRIOS; prio++)
		fti_init_queue(&class->queue[prio]);
}

#if IS_ENABLED(CONFIG_FASTTRACK_KUNIT_TEST)
#include "tests/fasttrack-queues-kunit.h"
#endif
