/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: dies and channels, see nand.c; who gives them work, and is told of its end. */
#ifndef _MFLASH_NAND_H
#define _MFLASH_NAND_H

#include <linux/math64.h>
#include <linux/types.h>

#include "op.h"
#include "sched.h"
#include "types.h"

struct mflash_model;

/**
 * struct mflash_unit - the pages of one program
 * @ppn: first slot
 * @slots: slots
 * @slc: programmed in SLC mode
 * @hurry: a flush may wait for it
 * @nr: entries
 * @entries: the entries, in the order of their slots
 */
struct mflash_unit {
	u32 ppn, slots;
	bool slc, hurry;
	u32 nr;
	struct mflash_entry *entries[MFLASH_UNIT_MAX];
};

/**
 * struct mflash_source - who has pages to program: a die that is free asks all of them
 * @candidate: what would be programmed on a die next, if anything; changes nothing
 * @take: fill the unit, whose program begins
 * @programmed: the unit's program has ended
 */
struct mflash_source {
	bool (*candidate)(struct mflash_model *m, u32 die, struct mflash_candidate *c);
	void (*take)(struct mflash_model *m, u32 die, struct mflash_unit *unit);
	void (*programmed)(struct mflash_model *m, struct mflash_unit *unit);
};

#define MFLASH_SOURCES_MAX	2

/**
 * enum mflash_die_state - what a die does
 * @MFLASH_DIE_IDLE: nothing
 * @MFLASH_DIE_SENSE: array read, ends at its event
 * @MFLASH_DIE_OUT: waits for, or uses, the channel after a read
 * @MFLASH_DIE_IN: waits for, or uses, the channel before a program
 * @MFLASH_DIE_BUSY: program or erase, ends at its event
 * @MFLASH_DIE_SUSPENDING: on the way to MFLASH_DIE_SUSPENDED, at its event
 * @MFLASH_DIE_SUSPENDED: reads only
 */
enum mflash_die_state {
	MFLASH_DIE_IDLE,
	MFLASH_DIE_SENSE,
	MFLASH_DIE_OUT,
	MFLASH_DIE_IN,
	MFLASH_DIE_BUSY,
	MFLASH_DIE_SUSPENDING,
	MFLASH_DIE_SUSPENDED,
};

/**
 * struct mflash_die - one die
 * @state: what it does
 * @queue: operations that only this die can do
 * @op: operation of the state (the read, while a program is suspended)
 * @array: program or erase that is under way or suspended, or NULL
 * @array_left: what it still needs, while suspended
 * @suspended: suspensions of @array so far
 * @held: when the first of them began
 * @kept: since when the die is kept for a burst of the foreground's; 0: it is not
 * @prog: the operation of a program
 * @unit: what is programmed
 * @source: who asked for it
 * @forced: see struct mflash_queue
 */
struct mflash_die {
	enum mflash_die_state state;
	struct mflash_queue queue;
	struct mflash_op *op, *array;
	u64 array_left, held, kept;
	u32 suspended;
	struct mflash_op prog;
	struct mflash_unit unit;
	const struct mflash_source *source;
	u64 forced;
};

/**
 * struct mflash_channel - transfers between the controller and dies
 * @queue: operations that wait
 * @op: the one that transfers
 */
struct mflash_channel {
	struct mflash_queue queue;
	struct mflash_op *op;
};

void mflash_nand_init(struct mflash_model *m);
void mflash_nand_source(struct mflash_model *m, const struct mflash_source *source);
void mflash_nand_hurry(struct mflash_model *m, const struct mflash_source *source);
void mflash_die_add(struct mflash_model *m, struct mflash_op *op);
void mflash_die_kick(struct mflash_model *m, u32 die);
void mflash_kick_all_dies(struct mflash_model *m);
void mflash_die_event(struct mflash_model *m, u32 die);
void mflash_channel_kick(struct mflash_model *m, u32 channel);
void mflash_channel_event(struct mflash_model *m, u32 channel);

static inline u64 mflash_transfer_ns(u32 pages, u32 mbps)
{
	return div_u64((u64)pages * MFLASH_PAGE_SIZE * 1000, mbps);
}

#endif /* _MFLASH_NAND_H */
