/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: the order in the device's queues, see sched.c. */
#ifndef _MFLASH_SCHED_H
#define _MFLASH_SCHED_H

#include <linux/bits.h>
#include <linux/fasttrack_class.h>
#include <linux/list.h>
#include <linux/time64.h>
#include <linux/types.h>

/**
 * enum mflash_policy - order in every queue of the device
 * @MFLASH_FIFO: as they came
 * @MFLASH_READ_FIRST: reads before writes, each as they came
 * @MFLASH_FOREGROUND: foreground, neutral, background; reads before writes in each, and
 *	reads of neutral with the foreground's
 * @MFLASH_NR_POLICIES: number of policies
 */
enum mflash_policy {
	MFLASH_FIFO,
	MFLASH_READ_FIRST,
	MFLASH_FOREGROUND,
	MFLASH_NR_POLICIES,
};

extern const char * const mflash_policy_names[MFLASH_NR_POLICIES];

/**
 * struct mflash_sched - knobs of the order
 * @policy: which order
 * @wait_max_ns: age at which what was passed over is served out of order;
 *	0: never
 * @suspend_max: suspensions of one program or erase, so that it ends
 * @slc_reserve: per cent of the SLC buffer that background leaves to the others under
 *	the policy foreground
 */
struct mflash_sched {
	enum mflash_policy policy;
	u64 wait_max_ns;
	u32 suspend_max;
	u32 slc_reserve;
};

/* from one command to the next: completion, wake-up, page cache and file system of the host */
#define MFLASH_BURST_GAP_NS	(500 * NSEC_PER_USEC)

/* a program takes 1 to 2 ms: others have 5 to 10 % of a die, as the host's share for them is */
#define MFLASH_KEEP_MAX_NS	(20 * NSEC_PER_MSEC)

/**
 * struct mflash_burst - the foreground's commands
 * @nr: how many are in the device
 * @end: when the last one ended; 0: there was none
 * @follows: the last one followed another, and waits for nobody else's
 * @syncs: how many in the device wait for something to be durable
 */
struct mflash_burst {
	u32 nr, syncs;
	u64 end;
	bool follows;
};

/**
 * struct mflash_candidate - what could be served next
 * @seq: order of arrival in the device
 * @since: time of arrival
 * @class: whose it is
 * @write: it writes
 */
struct mflash_candidate {
	u64 seq, since;
	u8 class;
	bool write;
};

/**
 * struct mflash_qnode - something in a queue of the device
 * @link: in mflash_queue.heads, valid while queued
 * @c: what the policy looks at
 * @cmd: the node is a command's (else an operation's)
 */
struct mflash_qnode {
	struct list_head link;
	struct mflash_candidate c;
	bool cmd;
};

#define MFLASH_HEADS	(2 * FASTTRACK_NR_CLASSES)
#define MFLASH_HEAD(class, write)	(2 * (class) + (write))

/* heads of all writes, as bits */
#define MFLASH_WRITES	(BIT(MFLASH_HEAD(FASTTRACK_NEUTRAL, 1)) |	\
			 BIT(MFLASH_HEAD(FASTTRACK_BACKGROUND, 1)) |	\
			 BIT(MFLASH_HEAD(FASTTRACK_FOREGROUND, 1)))

/**
 * struct mflash_queue - first-in first-out by class and direction
 * @heads: index is MFLASH_HEAD()
 * @forced: when something overdue was last served out of order
 * @used: bit i: heads[i] is not empty
 * @count: nodes queued
 */
struct mflash_queue {
	struct list_head heads[MFLASH_HEADS];
	u64 forced;
	unsigned long used;
	u32 count;
};

unsigned int mflash_rank(enum mflash_policy policy, u8 class, bool write);
int mflash_first(const struct mflash_sched *sched, const struct mflash_candidate *c, int n,
		 u64 now);
int mflash_pick(const struct mflash_sched *sched, const struct mflash_candidate *c,
		int n, u64 now, u64 *forced);
bool mflash_may_suspend(const struct mflash_sched *sched, u8 reader, u8 running,
			u64 left_ns, u64 cost_ns, u32 suspended);
bool mflash_may_hold(const struct mflash_sched *sched, u64 held_ns);
void mflash_burst_begin(struct mflash_burst *burst, bool depends, bool sync, u64 now);
void mflash_burst_end(struct mflash_burst *burst, bool sync, u64 now);
bool mflash_in_burst(const struct mflash_sched *sched, const struct mflash_burst *burst, u64 now);
bool mflash_may_keep(u64 kept_ns);
bool mflash_may_force(const struct mflash_sched *sched, u64 forced, u64 now);
bool mflash_is_overdue(const struct mflash_sched *sched, u64 since, u64 now);
void mflash_queue_init(struct mflash_queue *q);
void mflash_queue_add(struct mflash_queue *q, struct mflash_qnode *n);
void mflash_queue_return(struct mflash_queue *q, struct mflash_qnode *n);
void mflash_queue_del(struct mflash_queue *q, struct mflash_qnode *n);
struct mflash_qnode *mflash_queue_pick(struct mflash_queue *q, const struct mflash_sched *sched,
				       u64 now, unsigned long blocked);

#endif /* _MFLASH_SCHED_H */
