/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy of the elevator smartio: pure functions of numbers. Times are in
 * nanoseconds.
 */
#ifndef _BLOCK_SMARTIO_POLICY_H
#define _BLOCK_SMARTIO_POLICY_H

#include <linux/ioprio.h>
#include <linux/types.h>

/* The block layer's priorities in order: the levels of RT, of BE, IDLE. */
#define SMARTIO_IDLE_LEVEL	(2 * IOPRIO_NR_LEVELS)
#define SMARTIO_NR_LEVELS	(SMARTIO_IDLE_LEVEL + 1)

/**
 * enum smartio_kind - what a device has a best depth for
 * @SMARTIO_SEQUENTIAL_READ: reads from where another has ended
 * @SMARTIO_RANDOM_READ: other reads
 * @SMARTIO_SEQUENTIAL_WRITE: what is no read, from where another has ended
 * @SMARTIO_RANDOM_WRITE: others that are no reads
 * @SMARTIO_NR_KINDS: how many there are
 */
enum smartio_kind {
	SMARTIO_SEQUENTIAL_READ,
	SMARTIO_RANDOM_READ,
	SMARTIO_SEQUENTIAL_WRITE,
	SMARTIO_RANDOM_WRITE,
	SMARTIO_NR_KINDS,
};

/**
 * enum smartio_turn - who goes next
 * @SMARTIO_NOBODY: nobody may
 * @SMARTIO_READ: the read whose turn it is, of the highest level that has some
 * @SMARTIO_WRITE: likewise, a write
 * @SMARTIO_AGED_READ: the read that has waited longest
 * @SMARTIO_OVERDUE_WRITE: the write that has waited longest
 */
enum smartio_turn {
	SMARTIO_NOBODY,
	SMARTIO_READ,
	SMARTIO_WRITE,
	SMARTIO_AGED_READ,
	SMARTIO_OVERDUE_WRITE,
};

/**
 * struct smartio_knobs - the knobs of one queue
 * @write_wait: a process' writes wait for reads no longer than this in all
 * @prio_aging: a read waits for higher levels no longer than this
 * @depth: requests of a direction that may be in the device when one of this
 *	kind is sent; 0: any number
 */
struct smartio_knobs {
	u64 write_wait;
	u64 prio_aging;
	u64 depth[SMARTIO_NR_KINDS];
};

/**
 * struct smartio_waiting - what is queued of one direction
 * @level: the highest level that has some, SMARTIO_NR_LEVELS for none
 * @full: as many are in the device as it works best with, for the next one of
 *	@level
 * @waited: how long the one has waited that has waited longest; of writes, for
 *	what went before them, see smartio_clock_from()
 */
struct smartio_waiting {
	unsigned int level;
	bool full;
	u64 waited;
};

/* Where a priority stands, 0 is the highest. No class is BE. */
static inline unsigned int smartio_level(unsigned short ioprio)
{
	switch (IOPRIO_PRIO_CLASS(ioprio)) {
	case IOPRIO_CLASS_RT:
		return IOPRIO_PRIO_LEVEL(ioprio);
	case IOPRIO_CLASS_IDLE:
		return SMARTIO_IDLE_LEVEL;
	case IOPRIO_CLASS_BE:
		return IOPRIO_NR_LEVELS + IOPRIO_PRIO_LEVEL(ioprio);
	default:
		return IOPRIO_NR_LEVELS + IOPRIO_BE_NORM;
	}
}

static inline enum smartio_kind smartio_kind(bool write, bool sequential)
{
	if (write)
		return sequential ? SMARTIO_SEQUENTIAL_WRITE :
				    SMARTIO_RANDOM_WRITE;
	return sequential ? SMARTIO_SEQUENTIAL_READ : SMARTIO_RANDOM_READ;
}

/* May no further request of @kind be sent beside @in_flight of its direction? */
static inline bool smartio_is_full(const struct smartio_knobs *knobs,
				   enum smartio_kind kind,
				   unsigned int in_flight)
{
	return knobs->depth[kind] && in_flight >= knobs->depth[kind];
}

static inline bool smartio_has(const struct smartio_waiting *waiting)
{
	return waiting->level < SMARTIO_NR_LEVELS;
}

static inline bool smartio_waited(const struct smartio_waiting *waiting,
				  u64 limit)
{
	return smartio_has(waiting) && waiting->waited >= limit;
}

/*
 * The first level whose writes have waited for a request of @level: a read makes
 * all writes wait, a write those of lower levels. Writes of one level that wait
 * for each other do not become overdue by it: many processes that write would
 * leave nothing to reads.
 */
static inline unsigned int smartio_clock_from(bool write, unsigned int level)
{
	return write ? level + 1 : 0;
}

/**
 * smartio_choose - whose turn is it?
 * @reads: what is queued of reads
 * @writes: what is queued of the rest
 * @knobs: knobs
 *
 * The higher level goes first, and of one level reads before writes: a write
 * waits for reads that the device cannot take yet, too. A process whose writes
 * have waited for write_wait has one sent. What has waited long goes even where
 * the device has enough: others' would be there for ever.
 *
 * Return: whose it is.
 */
static inline enum smartio_turn
smartio_choose(const struct smartio_waiting *reads,
	       const struct smartio_waiting *writes,
	       const struct smartio_knobs *knobs)
{
	if (smartio_waited(writes, knobs->write_wait))
		return SMARTIO_OVERDUE_WRITE;
	if (smartio_waited(reads, knobs->prio_aging))
		return SMARTIO_AGED_READ;
	if (smartio_has(writes) && writes->level < reads->level &&
	    !writes->full)
		return SMARTIO_WRITE;
	if (smartio_has(reads))
		return reads->full ? SMARTIO_NOBODY : SMARTIO_READ;
	if (smartio_has(writes) && !writes->full)
		return SMARTIO_WRITE;
	return SMARTIO_NOBODY;
}

#endif /* _BLOCK_SMARTIO_POLICY_H */
