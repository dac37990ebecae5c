/* SPDX-License-Identifier: GPL-2.0 */
/* The I/O dispatcher: what its files share. */
#ifndef _BLOCK_FASTTRACK_IOSCHED_H
#define _BLOCK_FASTTRACK_IOSCHED_H

#include <linux/atomic.h>
#include <linux/fasttrack.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>

#include "blk-mq-debugfs.h"
#include "elevator.h"
#include "fasttrack-policy.h"

struct request_queue;

/**
 * struct fti_class - the queued requests of one class
 * @sort_list: by sector, for reads and writes
 * @fifo: by arrival, for reads and writes
 * @position: end of the last request sent, for reads and writes
 * @direction: of the batch under way
 * @batch: requests sent in it
 * @starved: times that reads went before waiting writes
 * @queued: requests in the lists
 *
 * All guarded by fti_data.fti_lock.
 */
struct fti_class {
	struct rb_root sort_list[2];
	struct list_head fifo[2];
	sector_t position[2];
	int direction;
	unsigned int batch;
	unsigned int starved;
	unsigned int queued;
};

/**
 * struct fti_data - one queue's dispatcher
 * @fti_lock: guards @head, @class, and @held being set
 * @head: requests that must go first, in order (BLK_MQ_INSERT_AT_HEAD)
 * @class: the rest, by class
 * @in_flight: requests in the device, by class; completions lower it
 * @foreground_last: see struct fti_state; written by dispatch and completions
 * @foreground_seen: likewise; written by dispatch
 * @neutral_had_turn: likewise; guarded by @fti_lock
 * @background_next: likewise; written by completions
 * @held: background is held back; @timer or a completion decides again
 * @timer: ends a hold
 * @bounds: the policy's knobs; written by sysfs, each with WRITE_ONCE()
 * @shallow: scheduler tags that a class may take
 * @inherit_depth: likewise, a sender that inherits the foreground's class
 * @promoter: takes promotions from the core
 * @q: the queue
 */
struct fti_data {
	spinlock_t fti_lock;	/* see above */
	struct list_head head;
	struct fti_class class[FASTTRACK_NR_CLASSES];

	atomic_t in_flight[FASTTRACK_NR_CLASSES];
	atomic64_t foreground_last;
	atomic64_t background_next;
	bool foreground_seen;
	bool neutral_had_turn;
	bool held;
	struct hrtimer timer;

	struct fti_bounds bounds;
	unsigned int shallow[FASTTRACK_NR_CLASSES];
	unsigned int inherit_depth;
	struct fasttrack_queue promoter;
	struct request_queue *q;
};

/* What the dispatcher keeps with a request that it was given. */
static inline enum fasttrack_class fti_rq_class(const struct request *rq)
{
	return (uintptr_t)rq->elv.priv[0] - 1;
}

/* What a request with @opf is treated as, going by the class in it. */
static inline enum fasttrack_class fti_opf_class(blk_opf_t opf)
{
	return fti_treat_as(fasttrack_opf_class(opf), op_is_sync(opf));
}

void fti_move(struct fti_data *fti, struct request *rq,
	      enum fasttrack_class class);
void fti_release(struct fti_data *fti);
void fti_init_promoter(struct fti_data *fti);
void fti_read_state(struct fti_data *fti, struct fti_state *state);
struct fti_bounds fti_read_bounds(const struct fti_data *fti);

extern struct elv_fs_entry fti_attrs[];
extern const struct blk_mq_debugfs_attr fti_queue_debugfs_attrs[];

#endif /* _BLOCK_FASTTRACK_IOSCHED_H */
