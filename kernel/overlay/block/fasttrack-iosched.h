/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The I/O dispatcher: what its files share. Calls go one way: iosched to promote,
 * device and hold, promote and device to hold, all of them to queues; knobs to hold.
 */
#ifndef _BLOCK_FASTTRACK_IOSCHED_H
#define _BLOCK_FASTTRACK_IOSCHED_H

#include <linux/atomic.h>
#include <linux/bitfield.h>
#include <linux/fasttrack_sched.h>
#include <linux/hash.h>
#include <linux/hrtimer.h>
#include <linux/ioprio.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>

#include "blk-mq-debugfs.h"
#include "elevator.h"
#include "fasttrack-policy.h"

struct request_queue;

/* Requests of like size: of twice the last's, from 4 KiB to 1 MiB and more. */
#define FTI_SIZES	9

/**
 * enum fti_kind - what goes first within a class
 * @FTI_READ: reads
 * @FTI_SYNC: writes that somebody waits for, of fsync for one
 * @FTI_ASYNC: other writes
 * @FTI_NR_KINDS: how many there are
 */
enum fti_kind {
	FTI_READ,
	FTI_SYNC,
	FTI_ASYNC,
	FTI_NR_KINDS,
};

/**
 * enum fti_prio - what goes first within a class before that: the I/O priorities' classes
 * @FTI_RT: real-time
 * @FTI_BE: best-effort, and none; all of the foreground's
 * @FTI_IDLE: idle
 * @FTI_NR_PRIOS: how many there are
 */
enum fti_prio {
	FTI_RT,
	FTI_BE,
	FTI_IDLE,
	FTI_NR_PRIOS,
};

/**
 * struct fti_queue - the queued requests of one class and priority
 * @sort_list: by sector, of each kind
 * @fifo: by arrival, of each kind
 * @position: end of the last request sent, of each kind
 * @kind: of the batch under way
 * @batch: requests sent in it
 * @starved: times that a kind went before waiting ones of a later kind
 *
 * All guarded by fti_data.fti_lock.
 */
struct fti_queue {
	struct rb_root sort_list[FTI_NR_KINDS];
	struct list_head fifo[FTI_NR_KINDS];
	sector_t position[FTI_NR_KINDS];
	enum fti_kind kind;
	unsigned int batch;
	unsigned int starved[FTI_NR_KINDS];
};

/**
 * struct fti_class - the queued requests of one class
 * @queue: by priority
 * @queued: how many there are
 *
 * Guarded by fti_data.fti_lock.
 */
struct fti_class {
	struct fti_queue queue[FTI_NR_PRIOS];
	unsigned int queued;
};

/**
 * struct fti_data - one queue's dispatcher
 * @fti_lock: guards @head, @class, and @promoter.held being set
 * @head: requests that must go first, in order (BLK_MQ_INSERT_AT_HEAD)
 * @class: the rest, by class
 * @flushes: queued requests, not in @head, with a flush after them; likewise
 * @keys: queued requests of other classes than the foreground's, by what they may be
 *	asked for (fti_keys_of()); guarded by @fti_lock
 * @in_flight: requests in the device, by class; completions lower it
 * @prio_in_flight: likewise, by priority
 * @async_in_flight: likewise, writes that nobody waits for
 * @pages_in_flight: likewise, the pages of background's
 * @written_pages: likewise, of those that write
 * @metadata_pages: likewise, of neutral metadata that nobody waits for
 * @prio_waits: the last hold was also for want of priority; guarded by @fti_lock
 * @plain: what was sent last with nobody in front; guarded by @fti_lock
 * @foreground_last: see struct fti_state; written by dispatch and completions
 * @foreground_seen: likewise; written by dispatch
 * @others_in_a_row: likewise; guarded by @fti_lock
 * @neutral_next: likewise; written by completions
 * @neutral_sent: likewise; guarded by @fti_lock
 * @background_next: likewise
 * @moved: see struct fti_pace; written by dispatch and completions
 * @stalled: likewise; written by completions
 * @cost_lock: guards @cost and @alone. Taken in completions
 * @cost: what background's requests in the device cost the foreground
 * @alone: mean time that requests of the foreground's are in the device without any
 *	of background's, us, by kind and size
 * @timer: ends a hold
 * @bounds: the policy's knobs; written by sysfs, each with WRITE_ONCE()
 * @shallow: scheduler tags that a class may take, for asynchronous requests [0]
 *	and synchronous ones [1]
 * @inherit_depth: likewise, a sender that inherits the foreground's class
 * @awaited: somebody waits until background has tags, for asynchronous requests, bit 0,
 *	or synchronous ones, bit 1
 * @front: FastTrack is on and somebody in front; written by the core, see fti_front()
 * @front_since: since when, ns; guarded by @fti_lock
 * @promoter: takes promotions from the core. While neutral and background requests
 *	are held back (held), @timer or a completion decides again
 * @q: the queue
 */
struct fti_data {
	spinlock_t fti_lock;	/* see above */
	struct list_head head;
	struct fti_class class[FASTTRACK_NR_CLASSES];
	unsigned int flushes;
	unsigned int keys[BITS_PER_LONG];

	atomic_t in_flight[FASTTRACK_NR_CLASSES];
	atomic_t prio_in_flight[FASTTRACK_NR_CLASSES][FTI_NR_PRIOS];
	atomic_t async_in_flight[FASTTRACK_NR_CLASSES];
	atomic_t pages_in_flight;
	atomic_t written_pages;
	atomic_t metadata_pages;
	atomic64_t foreground_last;
	atomic64_t neutral_next;
	atomic64_t background_next;
	atomic64_t moved;
	atomic64_t stalled;
	spinlock_t cost_lock;	/* see above */
	struct fti_cost cost;
	u64 alone[FTI_NR_KINDS][FTI_SIZES];
	u64 neutral_sent;
	unsigned int others_in_a_row;
	bool prio_waits;
	struct fti_plain plain;
	bool foreground_seen;
	struct hrtimer timer;

	struct fti_bounds bounds;
	unsigned int shallow[FASTTRACK_NR_CLASSES][2];
	unsigned int inherit_depth;
	unsigned long awaited;
	bool front;
	u64 front_since;
	struct fasttrack_queue promoter;
	struct request_queue *q;
};

/* Beside the class: see fti_set_free(); a foreground request that met background's. */
#define FTI_FREE	BIT(2)
#define FTI_BESIDE	BIT(3)
#define FTI_CLASS_MASK	GENMASK(1, 0)
#define FTI_PRIO_MASK	GENMASK(5, 4)
/* The foreground's only as long as it waits for all that is dirty. */
#define FTI_FLUSHED	BIT(6)
/* It is counted, for its sender; stays when it is of another class. */
#define FTI_COUNTED	BIT(8)
#define FTI_SENDER_MASK	GENMASK(16, 9)
#define FTI_KEPT	(FTI_COUNTED | FTI_SENDER_MASK)
/* Its pages when it went to the device: it has no size when it has ended. */
#define FTI_PAGES_MASK	GENMASK(30, 17)

/* What the dispatcher keeps with a request that it was given. */
static inline enum fasttrack_class fti_rq_class(const struct request *rq)
{
	return ((uintptr_t)rq->elv.priv[0] & FTI_CLASS_MASK) - 1;
}

/* The priority of one with @ioprio that is of @class. What is promoted waits for none. */
static inline enum fti_prio fti_prio_of(enum fasttrack_class class,
					unsigned short ioprio)
{
	if (class == FASTTRACK_FOREGROUND)
		return FTI_BE;
	switch (IOPRIO_PRIO_CLASS(ioprio)) {
	case IOPRIO_CLASS_RT:
		return FTI_RT;
	case IOPRIO_CLASS_IDLE:
		return FTI_IDLE;
	default:
		return FTI_BE;
	}
}

static inline enum fti_prio fti_rq_prio(const struct request *rq)
{
	return FIELD_GET(FTI_PRIO_MASK, (uintptr_t)rq->elv.priv[0]);
}

/*
 * What the dispatcher keeps with a request: its class, in its flags too, its priority,
 * and while it is queued its keys (fti_keys_of()), then when it went to the device, in
 * microseconds.
 */
static inline void fti_set_class(struct request *rq, enum fasttrack_class class)
{
	enum fti_prio prio = fti_prio_of(class, req_get_ioprio(rq));

	rq->cmd_flags = fasttrack_opf_with_class(rq->cmd_flags, class);
	rq->elv.priv[0] = (void *)(((uintptr_t)rq->elv.priv[0] & FTI_KEPT) |
				   FIELD_PREP(FTI_PRIO_MASK, prio) |
				   (class + 1));
	rq->elv.priv[1] = NULL;
}

/*
 * What a queued request may be asked for, so that it is found without a look at the
 * others: the files of its pages and the tasks that have sent it, hashed, and that it
 * is metadata. Bits of a long.
 */
#define FTI_FILE_BITS	(ilog2(BITS_PER_LONG) - 1)
#define FTI_TASK_BITS	(ilog2(BITS_PER_LONG) - 2)
#define FTI_KEY_TASKS	BIT(FTI_FILE_BITS)
#define FTI_KEY_METADATA	(FTI_KEY_TASKS + BIT(FTI_TASK_BITS))
/* Files that are not known. */
#define FTI_KEY_MIXED	(FTI_KEY_METADATA + 1)

static inline unsigned long fti_task_key(pid_t pid)
{
	return BIT(FTI_KEY_TASKS + hash_32(pid, FTI_TASK_BITS));
}

static inline unsigned long fti_file_key(const struct address_space *file)
{
	return BIT(hash_ptr(file, FTI_FILE_BITS));
}

/* Is it one of an app in front, whatever it is treated as? */
static inline bool fti_bio_is_own(const struct bio *bio)
{
	return fasttrack_app_class(bio->bi_origin.app) == FASTTRACK_FOREGROUND;
}

/* Who swaps out waits for memory; and what is not data is no write-back. */
static inline enum fti_kind fti_opf_kind(blk_opf_t opf)
{
	if (!op_is_write(opf))
		return FTI_READ;
	return (opf & REQ_OP_MASK) != REQ_OP_WRITE || op_is_sync(opf) ||
	       (opf & REQ_SWAP) ? FTI_SYNC : FTI_ASYNC;
}

/* What a request with @opf is treated as, going by the class in it. */
static inline enum fasttrack_class fti_opf_class(blk_opf_t opf)
{
	return fti_treat_as(fasttrack_opf_class(opf), op_is_sync(opf));
}

/* fasttrack-queues.c */
struct fti_queue *fti_queue_of(struct fti_data *fti, const struct request *rq);
enum fti_prio fti_turn(struct fti_class *class, u64 now);
u64 fti_oldest_time(struct fti_queue *queue);
u64 fti_oldest_of(struct fti_queue *queue, bool writes);
bool fti_plain_follows(struct fti_queue *queue, bool writes);
u64 fti_waited_time(struct fti_queue *queue);
pid_t fti_waited_pid(struct fti_queue *queue);
bool fti_oldest_is_own(struct fti_queue *queue);
bool fti_has_kind(const struct fti_queue *queue, enum fti_kind first,
		  enum fti_kind last);
bool fti_is_async(const struct fti_queue *queue);
bool fti_has_waited(const struct fti_class *class);
bool fti_has_key(const struct fti_data *fti, unsigned long keys);
unsigned long fti_keys(const struct request *rq);
void fti_key_bio(struct fti_data *fti, struct request *rq,
		 const struct bio *bio);
void fti_key_request(struct fti_data *fti, struct request *rq);
void fti_link(struct fti_data *fti, struct request *rq);
void fti_unlink(struct fti_data *fti, struct request *rq);
void fti_move(struct fti_data *fti, struct request *rq,
	      enum fasttrack_class class, bool sync);
struct request *fti_select(struct fti_class *class, struct fti_choice choice,
			   u64 now);
void fti_wait_anew(struct fti_queue *queue, const struct request *rq, u64 now);
void fti_init_class(struct fti_class *class);

/* fasttrack-device.c */
void fti_set_free(struct request *rq);
void fti_check_waits(struct fti_data *fti, const struct fti_state *state, u64 now);
void fti_check(struct fasttrack_queue *queue);
void fti_start(struct fti_data *fti, struct request *rq, u64 now);
bool fti_left_device(struct fti_data *fti, struct request *rq);

/* fasttrack-hold.c */
unsigned int fti_device_depth(struct request_queue *q);
void fti_read_state(struct fti_data *fti, struct fti_state *state, u64 now);
struct fti_bounds fti_read_bounds(const struct fti_data *fti);
bool fti_hold(struct fti_data *fti, const struct fti_state *state, u64 wake);
void fti_release(struct fti_data *fti);
void fti_init_hold(struct fti_data *fti);
void fti_exit_hold(struct fti_data *fti);

/* fasttrack-promote.c */
void fti_promote_new(struct request *rq);
void fti_promote_queued(struct fti_data *fti, struct request *rq);
void fti_promote_with(struct fti_data *fti, struct request *rq,
		      struct bio *bio);
void fti_tell_room(struct fti_data *fti);
void fti_init_promoter(struct fti_data *fti);

/* fasttrack-knobs.c */
extern struct elv_fs_entry fti_attrs[];
extern const struct blk_mq_debugfs_attr fti_queue_debugfs_attrs[];

#endif /* _BLOCK_FASTTRACK_IOSCHED_H */
