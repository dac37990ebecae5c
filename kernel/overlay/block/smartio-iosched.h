/* SPDX-License-Identifier: GPL-2.0 */
/* The elevator smartio: its state, of smartio-iosched.c and smartio-knobs.c. */
#ifndef _BLOCK_SMARTIO_IOSCHED_H
#define _BLOCK_SMARTIO_IOSCHED_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>

#include "blk-mq-debugfs.h"
#include "elevator.h"
#include "smartio-policy.h"

/* Streams that are known at a time, of each direction: more than apps have. */
#define SMARTIO_STREAMS	16

enum smartio_direction {
	SMARTIO_READS,
	SMARTIO_WRITES,
	SMARTIO_NR_DIRECTIONS,
};

/**
 * struct smartio_queue - the queued requests of one direction
 * @sort_list: by sector
 * @turns: of each level, in the order in which they go
 * @busy: levels whose @turns is not empty
 * @queued: requests in the lists
 * @ends: where the last requests of so many streams ended
 * @oldest_end: the one of @ends that is replaced next
 *
 * All guarded by smartio_data.smartio_lock.
 */
struct smartio_queue {
	struct rb_root sort_list;
	struct list_head turns[SMARTIO_NR_LEVELS];
	unsigned long busy;
	unsigned int queued;
	sector_t ends[SMARTIO_STREAMS];
	unsigned int oldest_end;
};

/**
 * struct smartio_data - one queue's elevator
 * @q: the queue
 * @smartio_lock: guards @head, @queue, @clock, @turn_began, @clock_from,
 *	@write_wait_max, and @held being set
 * @head: requests that must go first (BLK_MQ_INSERT_AT_HEAD)
 * @queue: the rest, by direction
 * @in_flight: requests in the device, by direction; completions lower it
 * @held: what is queued waits until a request leaves the device
 * @clock: of each level, how long its writes have had to wait so far
 * @turn_began: when the last request went
 * @clock_from: whose clocks run since then, see smartio_clock_from()
 * @write_wait_max: the longest that a process' writes have waited for reads
 * @knobs: written by sysfs, each with WRITE_ONCE()
 */
struct smartio_data {
	struct request_queue *q;
	spinlock_t smartio_lock;	/* see above */
	struct list_head head;
	struct smartio_queue queue[SMARTIO_NR_DIRECTIONS];
	atomic_t in_flight[SMARTIO_NR_DIRECTIONS];
	bool held;
	unsigned int clock_from;
	u64 clock[SMARTIO_NR_LEVELS];
	u64 turn_began;
	u64 write_wait_max;
	struct smartio_knobs knobs;
};

extern struct elv_fs_entry smartio_attrs[];
extern const struct blk_mq_debugfs_attr smartio_queue_debugfs_attrs[];

#endif /* _BLOCK_SMARTIO_IOSCHED_H */
