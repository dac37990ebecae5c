/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: commands, and pages on their way to the NAND: what several parts know. */
#ifndef _MFLASH_TYPES_H
#define _MFLASH_TYPES_H

#include <linux/list.h>
#include <linux/types.h>

#include "sched.h"

#define MFLASH_PAGE_SIZE	4096U
#define MFLASH_PAGE_SHIFT	12
#define MFLASH_NONE		U32_MAX	/* no page, no block, no die */
#define MFLASH_DIES_MAX		16
#define MFLASH_CHANNELS_MAX	4
#define MFLASH_UNIT_MAX		64	/* 4 KiB slots of the largest program unit */
#define MFLASH_MAP_SHIFT	10	/* one 4 KiB map page translates 1024 pages */
#define MFLASH_CMD_PAGES	256	/* largest command: 1 MiB */
#define MFLASH_TAGS_MAX		64

/**
 * struct mflash_desc - content of one 4 KiB page
 * @word: the repeated 64-bit word, if @slot is 0
 * @slot: where the bytes are in the store's data area, counted from 1
 */
struct mflash_desc {
	u64 word;
	u32 slot;
};

/**
 * enum mflash_cmd_type - what the model is asked for
 * @MFLASH_READ: read pages
 * @MFLASH_WRITE: write pages
 * @MFLASH_FLUSH: make all acknowledged writes durable
 * @MFLASH_UNMAP: forget pages
 * @MFLASH_NR_CMDS: number of types
 */
enum mflash_cmd_type { MFLASH_READ, MFLASH_WRITE, MFLASH_FLUSH, MFLASH_UNMAP, MFLASH_NR_CMDS };

/**
 * struct mflash_cmd - one command, from mflash_submit() until it is on mflash_model.done
 * @q: place in the firmware's, then the link's queue
 * @done: in mflash_model.done or .flushes
 * @type: what it asks for
 * @class: for whom
 * @depends: the foreground's, which waits for what others have sent
 * @fua: a write that must be durable when it completes
 * @tag: below the queue depth, own while it is in the device
 * @lpn: first logical page
 * @pages: logical pages
 * @sent: pages of a write that crossed the link
 * @pending: what must end before it completes: pages of a read, programs of a write that is
 *	durable when it completes
 * @map_wait: map pages that are being read for it
 * @target: what must be durable: cached pages up to this one; 0: its own only
 * @submitted: time
 * @error: 0, -EIO (no power), -ENOSPC (the store is full)
 * @desc: content of a write, one a page
 */
struct mflash_cmd {
	struct mflash_qnode q;
	struct list_head done;
	enum mflash_cmd_type type;
	u8 class;
	bool depends, fua;
	u16 tag;
	u32 lpn, pages, sent, pending, map_wait;
	u64 target, submitted;
	int error;
	struct mflash_desc *desc;
};

/* does whoever sent it wait until something is durable */
static inline bool mflash_is_sync(const struct mflash_cmd *cmd)
{
	return cmd->type == MFLASH_FLUSH || cmd->fua;
}

/**
 * struct mflash_entry - one page on its way to the NAND
 * @order: in mflash_cache.arrival or .through, or free list
 * @dirty: in a dirty list until its program begins
 * @hash: in mflash_cache.hash
 * @seq: order of arrival
 * @since: time of arrival
 * @version: see struct mflash_oob; given when its program begins
 * @lpn: logical page
 * @src: physical page that a copy was read from; MFLASH_NONE: host data
 * @desc: content
 * @class: best class that wrote it
 * @programming: its program has begun
 * @trimmed: unmapped, or overtaken by a newer version, meanwhile
 * @through: in mflash_cache.through
 * @waiter: write that completes when it is durable
 */
struct mflash_entry {
	struct list_head order, dirty;
	struct hlist_node hash;
	u64 seq, since, version;
	u32 lpn, src;
	struct mflash_desc desc;
	u8 class;
	bool programming, trimmed, through;
	struct mflash_cmd *waiter;
};

#endif /* _MFLASH_TYPES_H */
