// SPDX-License-Identifier: GPL-2.0
/*
 * The I/O dispatcher's part of promotion on wait (mm/fasttrack/wait.c).
 *
 * Controls the class of requests that are in the queue already. It reacts to a
 * foreground task that waits for a page, for a file or for others, and to an
 * app that comes to the front or leaves it: the elevator is another one with nobody
 * there. Requests are found by their keys: of what nobody has queued no queue is
 * looked through.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/memory_hotplug.h>
#include <linux/pagemap.h>
#include <linux/percpu-refcount.h>
#include <linux/sbitmap.h>

#include <trace/events/fasttrack.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-wbt.h"
#include "fasttrack-iosched.h"

/* Frame numbers of pages that somebody waits for, @first to @last. */
struct fti_pages {
	unsigned long first;
	unsigned long last;
};

static bool fti_covers(const struct bio_vec *bv, const struct fti_pages *pages)
{
	unsigned long first = page_to_pfn(bv->bv_page) +
			      (bv->bv_offset >> PAGE_SHIFT);
	unsigned long last = page_to_pfn(bv->bv_page) +
			     ((bv->bv_offset + bv->bv_len - 1) >> PAGE_SHIFT);

	return bv->bv_len && pages->last >= first && pages->first <= last;
}

/* The bio that @bio is a part of, with the same vector; or itself. */
static struct bio *fti_whole(struct bio *bio)
{
	struct bio *parent = bio->bi_private;

	if (bio->bi_end_io == bio_chain_endio &&
	    parent->bi_io_vec == bio->bi_io_vec)
		return parent;
	return bio;
}

/*
 * Does @bio move one of @pages, or another part of the bio that it was split
 * from? A page is not there before all parts are. Of a clone, which has its
 * vector from another bio and does not know its length, only @bio is looked at.
 * Direct I/O keeps nobody from a page.
 */
static bool fti_bio_moves(struct bio *bio, const struct fti_pages *pages)
{
	struct bio *whole = fti_whole(bio);
	struct bvec_iter iter;
	struct bio_vec bv;

	if (bio->bi_origin.direct)
		return false;
	if (bio_flagged(whole, BIO_CLONED)) {
		bio_for_each_bvec(bv, bio, iter)
			if (fti_covers(&bv, pages))
				return true;
		return false;
	}
	for (unsigned int i = 0; i < whole->bi_vcnt; i++)
		if (fti_covers(&whole->bi_io_vec[i], pages))
			return true;
	return false;
}

/* Does one of @pages wait for @rq? */
static bool fti_moves(const struct request *rq, const void *pages)
{
	if (!bio_has_data(rq->bio))
		return false;
	for (struct bio *bio = rq->bio; bio; bio = bio->bi_next)
		if (fti_bio_moves(bio, pages))
			return true;
	return false;
}

/* @rq, which has been queued for so long, is going to be promoted. */
static void fti_tell_promoted(struct request *rq, u64 waited_ns)
{
	trace_fasttrack_promote(rq, fti_rq_class(rq), waited_ns);
	fasttrack_count(FASTTRACK_PROMOTED);
}

static void fti_promote_request(struct fti_data *fti, struct request *rq,
				enum fasttrack_class class)
{
	fti_tell_promoted(rq, ktime_get_ns() - rq->fifo_time);
	fti_move(fti, rq, class, true);
}

typedef bool (fti_match)(const struct request *rq, const void *what);

/* What is asked for: requests with one of @keys that match @what; for @class. */
struct fti_wanted {
	enum fasttrack_class class;
	unsigned long keys;
	fti_match *match;
	const void *what;
};

static bool fti_promote_from(struct fti_data *fti, struct fti_queue *queue,
			     enum fti_kind kind,
			     const struct fti_wanted *wanted)
{
	struct request *rq, *next;
	bool found = false;

	list_for_each_entry_safe(rq, next, &queue->fifo[kind], queuelist)
		if ((fti_keys(rq) & wanted->keys) &&
		    wanted->match(rq, wanted->what)) {
			fti_promote_request(fti, rq, wanted->class);
			found = true;
		}
	return found;
}

static bool fti_promote_class(struct fti_data *fti, struct fti_class *class,
			      enum fti_kind first, enum fti_kind last,
			      const struct fti_wanted *wanted)
{
	bool found = false;

	for (int prio = 0; prio < FTI_NR_PRIOS; prio++)
		for (enum fti_kind kind = first; kind <= last; kind++)
			found |= fti_promote_from(fti, &class->queue[prio], kind,
						  wanted);
	return found;
}

/* Promote the queued requests, of a kind from @first to @last, that are wanted. */
static bool fti_promote_all(struct fti_data *fti, enum fti_kind first,
			    enum fti_kind last,
			    const struct fti_wanted *wanted)
{
	bool found = false;

	if (!fti_has_key(fti, wanted->keys))
		return false;
	for (int i = 0; i < FASTTRACK_FOREGROUND; i++)
		if (i != wanted->class)
			found |= fti_promote_class(fti, &fti->class[i], first,
						   last, wanted);
	return found;
}

/*
 * Requests are of another class now: a hold was decided on what was in the queues before,
 * and has the queue not run for what is neutral.
 */
static void fti_decide_anew(struct fti_data *fti, bool moved)
{
	lockdep_assert_held(&fti->fti_lock);

	if (moved)
		WRITE_ONCE(fti->promoter.held, false);
}

/* The same without the lock held; and run the queue. */
static void fti_promote_and_run(struct fasttrack_queue *queue,
				enum fti_kind first, enum fti_kind last,
				const struct fti_wanted *wanted)
{
	struct fti_data *fti = container_of(queue, struct fti_data, promoter);
	bool found;

	spin_lock(&fti->fti_lock);
	found = fti_promote_all(fti, first, last, wanted);
	fti_decide_anew(fti, found);
	spin_unlock(&fti->fti_lock);

	if (found)
		blk_mq_run_hw_queues(fti->q, true);
}

static bool fti_of_file(const struct request *rq, const void *mapping)
{
	if (!mapping)
		return false;
	for (const struct bio *bio = rq->bio; bio; bio = bio->bi_next)
		if (fasttrack_bio_file(bio) == mapping)
			return true;
	return false;
}

/* Those of a file, by the first pages of their bios; for @class. */
static struct fti_wanted fti_wanted_of(const struct address_space *mapping,
				       enum fasttrack_class class)
{
	return (struct fti_wanted){
		.class = class,
		.keys = (mapping ? fti_file_key(mapping) : 0) |
			BIT(FTI_KEY_MIXED),
		.match = fti_of_file,
		.what = mapping,
	};
}

/*
 * Wake all that wait for a tag, if anybody does: callers have locks, once for each file of
 * a commit. They wait exclusively: sbitmap_queue_wake_all() wakes one of each.
 */
static void fti_wake_waiters(struct sbitmap_queue *tags)
{
	if (!atomic_read(&tags->ws_active))
		return;
	for (int ws = 0; ws < SBQ_WAIT_QUEUES; ws++)
		wake_up_all(&tags->ws[ws].wait);
}

/* Senders that wait for a scheduler tag see whether they may take more now. */
static void fti_wake_senders(struct fasttrack_queue *queue)
{
	struct fti_data *fti = container_of(queue, struct fti_data, promoter);
	struct request_queue *q = fti->q;
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	/* The tags stay as long as the queue is not frozen. */
	if (!percpu_ref_tryget(&q->q_usage_counter))
		return;
	/* Pairs with the barrier of who begins to wait, and asks once more. */
	smp_mb();
	queue_for_each_hw_ctx(q, hctx, i) {
		fti_wake_waiters(&hctx->sched_tags->bitmap_tags);
		if (blk_mq_is_shared_tags(q->tag_set->flags))
			break;
	}
	percpu_ref_put(&q->q_usage_counter);
}

static void fti_promote_file(struct fasttrack_queue *queue,
			     const struct address_space *mapping)
{
	const struct fti_wanted wanted = fti_wanted_of(mapping, FASTTRACK_FOREGROUND);

	fti_promote_and_run(queue, FTI_SYNC, FTI_ASYNC, &wanted);
	fti_wake_senders(queue);
}

/*
 * A file system may end the write-back of a page with that of its neighbours,
 * as ext4 does when it converts their extent: with @file the file's other
 * writes are promoted too. And who sends the rest may have to wait for tags.
 */
static bool fti_promote(struct fasttrack_queue *queue, unsigned long pfn,
			bool file, enum fasttrack_class class)
{
	struct fti_data *fti = container_of(queue, struct fti_data, promoter);
	/* Whoever sleeps on it may have put it, and it be gone. */
	struct page *page = pfn_to_online_page(pfn);
	const struct address_space *mapping =
		page ? fasttrack_page_file(page) : NULL;
	const struct fti_pages pages = { .first = pfn, .last = pfn };
	const struct fti_wanted others = fti_wanted_of(mapping, class);
	const struct fti_wanted moving = {
		.class = class,
		.keys = others.keys,
		.match = fti_moves,
		.what = &pages,
	};
	bool read, write;

	spin_lock(&fti->fti_lock);
	read = fti_promote_all(fti, FTI_READ, FTI_READ, &moving);
	write = fti_promote_all(fti, FTI_SYNC, FTI_ASYNC, &moving);
	/* Not the request's file: f2fs merges pages of many. */
	if (file && write)
		fti_promote_all(fti, FTI_SYNC, FTI_ASYNC, &others);
	fti_decide_anew(fti, read || write);
	spin_unlock(&fti->fti_lock);

	if (!read && !write)
		return false;
	blk_mq_run_hw_queues(fti->q, true);
	if (file)
		fti_wake_senders(queue);
	return true;
}

/* Does the foreground sleep on what @bio moves? */
static bool fti_bio_is_waited_for(struct bio *bio)
{
	struct fasttrack_sleeper sleeper;

	if (!bio_has_data(bio))
		return false;
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS; i++) {
		struct fti_pages pages;

		if (!fasttrack_sleeper(i, &sleeper))
			continue;
		pages.first = sleeper.pfn;
		pages.last = sleeper.pfn + sleeper.pages - 1;
		if (fti_bio_moves(bio, &pages) ||
		    (sleeper.writeback && op_is_write(bio_op(bio)) &&
		     sleeper.file && fasttrack_bio_file(bio) == sleeper.file))
			return true;
	}
	return false;
}

static bool fti_is_waited_for(const struct request *rq)
{
	for (struct bio *bio = rq->bio; bio; bio = bio->bi_next)
		if (fti_bio_is_waited_for(bio))
			return true;
	return false;
}

/* @rq is about to be queued: the foreground may wait for it. */
void fti_promote_new(struct request *rq)
{
	if (fti_rq_class(rq) == FASTTRACK_FOREGROUND || !fti_is_waited_for(rq))
		return;
	fti_tell_promoted(rq, 0);
	rq->cmd_flags |= REQ_SYNC;
	fti_set_class(rq, FASTTRACK_FOREGROUND);
}

/* The queued @rq has got bios of another one: the foreground may wait for it. */
void fti_promote_queued(struct fti_data *fti, struct request *rq)
{
	if (fti_rq_class(rq) != FASTTRACK_FOREGROUND && fti_is_waited_for(rq))
		fti_promote_request(fti, rq, FASTTRACK_FOREGROUND);
}

/* The queued @rq has got @bio: the foreground may wait for it. */
void fti_promote_with(struct fti_data *fti, struct request *rq, struct bio *bio)
{
	if (fti_rq_class(rq) != FASTTRACK_FOREGROUND &&
	    fti_bio_is_waited_for(bio))
		fti_promote_request(fti, rq, FASTTRACK_FOREGROUND);
}

/*
 * A task that has sent a read or a direct write waits for it, most likely. It
 * does not wait for each write of what it syncs.
 */
static bool fti_waited_for(const struct request *rq, const void *pid)
{
	return rq->bio && rq->bio->bi_origin.pid == *(const pid_t *)pid &&
	       (rq->bio->bi_origin.cause == FASTTRACK_CAUSE_READ ||
		rq->bio->bi_origin.cause == FASTTRACK_CAUSE_SYNC_WRITE);
}

static void fti_promote_task(struct fasttrack_queue *queue, pid_t pid,
			     enum fasttrack_class class)
{
	const struct fti_wanted wanted = {
		.class = class,
		.keys = fti_task_key(pid),
		.match = fti_waited_for,
		.what = &pid,
	};

	fti_promote_and_run(queue, FTI_READ, FTI_SYNC, &wanted);
}

/* Is @rq a write of what was dirty, or of a journal? */
static bool fti_writes_back(const struct request *rq, const void *unused)
{
	if (req_op(rq) != REQ_OP_WRITE || (rq->cmd_flags & REQ_SWAP))
		return false;
	for (const struct bio *bio = rq->bio; bio; bio = bio->bi_next)
		if (bio->bi_origin.cause != FASTTRACK_CAUSE_SYNC_WRITE)
			return true;
	return false;
}

static void fti_promote_flushed(struct fasttrack_queue *queue,
				enum fasttrack_class class)
{
	const struct fti_wanted wanted = {
		.class = class,
		.keys = ~0UL,
		.match = fti_writes_back,
	};

	fti_promote_and_run(queue, FTI_SYNC, FTI_ASYNC, &wanted);
	fti_wake_senders(queue);
}

/* The class that a queued request of @from has, now that others are in front. */
static enum fasttrack_class fti_class_by_app(const struct request *rq,
					     enum fasttrack_class from)
{
	if (!rq->bio || !fasttrack_app_moved(rq->bio->bi_origin.app))
		return from;
	return fti_treat_as(fasttrack_app_class(rq->bio->bi_origin.app),
			    op_is_sync(rq->cmd_flags));
}

static void fti_relabel_from(struct fti_data *fti, struct fti_queue *queue,
			     enum fasttrack_class from)
{
	struct request *rq, *next;

	for (int kind = 0; kind < FTI_NR_KINDS; kind++)
		list_for_each_entry_safe(rq, next, &queue->fifo[kind], queuelist) {
			enum fasttrack_class to = fti_class_by_app(rq, from);

			if (to != from)
				fti_move(fti, rq, to, false);
		}
}

static void fti_relabel(struct fasttrack_queue *queue)
{
	struct fti_data *fti = container_of(queue, struct fti_data, promoter);

	spin_lock(&fti->fti_lock);
	for (int from = 0; from < FASTTRACK_NR_CLASSES; from++)
		for (int prio = 0; prio < FTI_NR_PRIOS; prio++)
			fti_relabel_from(fti, &fti->class[from].queue[prio], from);
	fti_decide_anew(fti, true);
	spin_unlock(&fti->fti_lock);
	blk_mq_run_hw_queues(fti->q, true);
	fti_wake_senders(queue);
}

/* Who reads metadata has a handle of the journal open, most likely. */
static bool fti_of_metadata(const struct request *rq, const void *unused)
{
	return rq->cmd_flags & REQ_META;
}

static void fti_kick(struct fasttrack_queue *queue, bool foreground)
{
	struct fti_data *fti = container_of(queue, struct fti_data, promoter);
	const struct fti_wanted metadata = {
		.class = FASTTRACK_FOREGROUND,
		.keys = BIT(FTI_KEY_METADATA),
		.match = fti_of_metadata,
	};

	if (foreground)
		fti_promote_and_run(queue, FTI_READ, FTI_READ, &metadata);
	fti_release(fti);
	fti_wake_senders(queue);
}

/* Is @disk another one, which has an I/O scheduler of its own? */
static bool fti_is_elsewhere(const struct fti_data *fti,
			     struct block_device *disk)
{
	struct request_queue *q = bdev_get_queue(disk);

	return q != fti->q && queue_is_mq(q);
}

/* How many requests of @class have a tag? Not counted exactly: they come and go. */
static unsigned int fti_tags_of(const struct fti_data *fti,
				enum fasttrack_class class)
{
	return READ_ONCE(fti->class[class].queued) +
	       atomic_read(&fti->in_flight[class]);
}

/* Has background fewer than @free of its tags left? */
static bool fti_tags_are_few(const struct fti_data *fti, bool sync,
			     unsigned int free)
{
	const struct request_queue *q = fti->q;
	unsigned int used[FASTTRACK_NR_CLASSES];
	unsigned int maps = blk_mq_is_shared_tags(q->tag_set->flags) ?
		1 : q->nr_hw_queues;

	for (int i = 0; i < FASTTRACK_NR_CLASSES; i++)
		used[i] = fti_tags_of(fti, i);
	return fti_tags_used_up(used, q->nr_requests * maps,
				READ_ONCE(fti->shallow[FASTTRACK_BACKGROUND][sync]) *
					maps, free);
}

static bool fti_crowded(struct fasttrack_queue *queue,
			struct block_device *disk, bool sync)
{
	struct fti_data *fti = container_of(queue, struct fti_data, promoter);

	if (fti_is_elsewhere(fti, disk) || !fti_tags_are_few(fti, sync, 1))
		return false;
	if (!test_bit(sync, &fti->awaited))
		set_bit(sync, &fti->awaited);
	/* The request that ends last finds that somebody waits, or current its tag. */
	smp_mb();
	return fti_tags_are_few(fti, sync, 1);
}

/*
 * A request has ended. Who waits for tags goes on when there are some for the next
 * piece of a file: with one alone it would wait for more, with locks.
 */
void fti_tell_room(struct fti_data *fti)
{
	/* The barrier in fti_release() pairs with that in fti_crowded(). */
	if (!READ_ONCE(fti->awaited))
		return;
	for (int sync = 0; sync <= 1; sync++) {
		while (test_bit(sync, &fti->awaited) &&
		       !fti_tags_are_few(fti, sync, FTI_ROOM)) {
			clear_bit(sync, &fti->awaited);
			if (!fasttrack_room(sync,
					    !fti_tags_of(fti, FASTTRACK_BACKGROUND)))
				break;
			set_bit(sync, &fti->awaited);
			/* The last one may have ended unseen: nobody comes after it. */
			smp_mb__after_atomic();
			if (fti_tags_of(fti, FASTTRACK_BACKGROUND))
				break;
		}
	}
}

/* Those of a queue that have a flush after them go first: the foreground's flush waits. */
static void fti_flushes_first_of(struct fti_data *fti, struct fti_queue *queue)
{
	struct request *rq, *next;

	for (int kind = 0; kind < FTI_NR_KINDS; kind++)
		list_for_each_entry_safe(rq, next, &queue->fifo[kind], queuelist) {
			if (!(rq->rq_flags & RQF_FLUSH_SEQ))
				continue;
			fti_unlink(fti, rq);
			list_add_tail(&rq->queuelist, &fti->head);
		}
}

static void fti_flushes_first(struct fti_data *fti)
{
	for (int class = 0; class < FASTTRACK_NR_CLASSES && fti->flushes; class++)
		for (int prio = 0; prio < FTI_NR_PRIOS; prio++)
			fti_flushes_first_of(fti, &fti->class[class].queue[prio]);
}

/*
 * Nobody in front: an ordinary elevator, with write-back throttling as they have it.
 * Its latency target would hold the foreground's fsync back together with everybody's
 * write-back; then the few tags of asynchronous writes take its place.
 */
static void fti_front(struct fasttrack_queue *queue, bool somebody)
{
	struct fti_data *fti = container_of(queue, struct fti_data, promoter);
	bool flushes;

	spin_lock(&fti->fti_lock);
	if (somebody && !fti->front) {
		fti->front_since = ktime_get_ns();
		/* Whoever has waited until now was not passed over. */
		atomic64_set(&fti->stalled, fti->front_since);
	}
	WRITE_ONCE(fti->front, somebody);
	flushes = somebody && fti->flushes;
	if (flushes)
		fti_flushes_first(fti);
	spin_unlock(&fti->fti_lock);
	wbt_set_unlimited(fti->q->disk, somebody);
	if (flushes)
		blk_mq_run_hw_queues(fti->q, true);
	fti_wake_senders(queue);
}

/* Before fasttrack_queue_add(). */
void fti_init_promoter(struct fti_data *fti)
{
	fti->promoter.promote = fti_promote;
	fti->promoter.promote_file = fti_promote_file;
	fti->promoter.promote_task = fti_promote_task;
	fti->promoter.promote_flushed = fti_promote_flushed;
	fti->promoter.relabel = fti_relabel;
	fti->promoter.kick = fti_kick;
	fti->promoter.crowded = fti_crowded;
	fti->promoter.wake_senders = fti_wake_senders;
	fti->promoter.front = fti_front;
}
