/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: operations of the dies and of the link, and the end of a command, see op.c. */
#ifndef _MFLASH_OP_H
#define _MFLASH_OP_H

#include <linux/list.h>
#include <linux/types.h>

#include "sched.h"

struct mflash_cmd;
struct mflash_model;
struct mflash_op;

/**
 * enum mflash_op_type - work of a die, or of the link
 * @MFLASH_OP_READ: pages for a read command
 * @MFLASH_OP_RAM: pages for a read command that need no die
 * @MFLASH_OP_GC_READ: pages to copy
 * @MFLASH_OP_MAP_READ: one map page
 * @MFLASH_OP_MAP_PROG: one map page
 * @MFLASH_OP_PROG: one unit of the cache or of copies
 * @MFLASH_OP_ERASE: a block's part on this die
 */
enum mflash_op_type {
	MFLASH_OP_READ,
	MFLASH_OP_RAM,
	MFLASH_OP_GC_READ,
	MFLASH_OP_MAP_READ,
	MFLASH_OP_MAP_PROG,
	MFLASH_OP_PROG,
	MFLASH_OP_ERASE,
};

typedef void mflash_op_end(struct mflash_model *m, struct mflash_op *op);

/**
 * struct mflash_op - one operation
 * @q: in a die's, a channel's or the link's queue, or in the free list
 * @cmd: read command that it is for, or NULL
 * @type: what
 * @end: called once, when it has left its die; whose it is gives it back then or later
 * @die: where
 * @block: of an erase
 * @pages: 4 KiB pages to transfer
 * @copies: entries that a copy's read fills
 */
struct mflash_op {
	struct mflash_qnode q;
	struct mflash_cmd *cmd;
	struct list_head copies;
	mflash_op_end *end;
	enum mflash_op_type type;
	u32 die, block, pages;
};

int mflash_ops_init(struct mflash_model *m, u32 nr);
struct mflash_op *mflash_op_get(struct mflash_model *m, enum mflash_op_type type, u8 class,
				mflash_op_end *end);
void mflash_op_put(struct mflash_model *m, struct mflash_op *op);
void mflash_cmd_done(struct mflash_model *m, struct mflash_cmd *cmd);

#endif /* _MFLASH_OP_H */
