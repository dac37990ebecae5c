/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: the copy job, see gc.c. */
#ifndef _MFLASH_GC_H
#define _MFLASH_GC_H

#include <linux/list.h>
#include <linux/types.h>

struct mflash_model;

/**
 * struct mflash_gc - the copy job that is under way
 * @victim: block being emptied, or MFLASH_NONE
 * @scan: next slot of it to look at
 * @urgent: free blocks are short: it competes with the host
 * @reading: pages being read
 * @buffered: pages read and not yet being programmed
 * @programming: pages being programmed
 * @erasing: blocks being erased
 * @free: entries
 * @nr_free: entries in @free
 * @dirty: entries read
 */
struct mflash_gc {
	u32 victim, scan;
	bool urgent;
	u32 reading, buffered, programming, erasing;
	struct list_head free;
	u32 nr_free;
	struct list_head dirty;
};

int mflash_gc_init(struct mflash_model *m);
void mflash_gc_kick(struct mflash_model *m);

#endif /* _MFLASH_GC_H */
