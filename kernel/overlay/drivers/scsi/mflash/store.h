/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: content and durable state, see store.c. */
#ifndef _MFLASH_STORE_H
#define _MFLASH_STORE_H

#include <linux/types.h>

#include "types.h"

struct mflash_model;

/**
 * struct mflash_oob - durable: one physical page
 * @word: content, see struct mflash_desc
 * @seq: version: order in which host data was programmed; a copy keeps it
 * @lpn: logical page; MFLASH_NONE: torn or padding
 * @slot: content, see struct mflash_desc
 * @gen: erase count of the block plus 1, when programmed; written last
 * @pad: zero
 */
struct mflash_oob {
	u64 word, seq;
	u32 lpn, slot, gen, pad;
};

/**
 * enum mflash_block_state - durable state of a block
 * @MFLASH_FREE: erased, in no use
 * @MFLASH_OPEN: a stream writes it
 * @MFLASH_CLOSED: full, may become a victim
 * @MFLASH_ERASING: nothing in it is needed; the erase may not have ended
 */
enum mflash_block_state { MFLASH_FREE, MFLASH_OPEN, MFLASH_CLOSED, MFLASH_ERASING };

/**
 * struct mflash_header - durable: one block (one erase block of every plane and die)
 * @erases: erases that ended
 * @state: enum mflash_block_state
 * @stream: enum mflash_stream, while open
 * @rows: program units begun, a die
 */
struct mflash_header {
	u32 erases;
	u8 state, stream;
	u16 rows[MFLASH_DIES_MAX];
};

/**
 * struct mflash_super - durable: first page of the image
 * @magic: MFLASH_MAGIC
 * @version: MFLASH_VERSION
 * @phone: name of the phone
 * @pages: logical pages
 * @blocks: blocks
 * @block_pages: slots of a block in normal mode
 * @slc_blocks: blocks of the SLC buffer
 * @seq: last version or trim number given
 * @power_cuts: power cuts so far
 */
struct mflash_super {
	u64 magic;
	u32 version;
	char phone[12];
	u32 pages, blocks, block_pages, slc_blocks;
	u64 seq, power_cuts;
};

#define MFLASH_MAGIC	0x6d666c6173683031ULL
#define MFLASH_VERSION	1

/**
 * struct mflash_store - memory outside the page allocator
 * @durable: survives power cuts: super page, headers, trims, OOB, data
 * @durable_size: bytes
 * @scratch: tables that recovery makes again
 * @scratch_size: bytes
 * @scratch_used: bytes given out by mflash_scratch()
 * @zeroed: @durable was zero where nothing was ever written
 * @release: gives the memory back
 * @super: first page
 * @headers: one a block
 * @trim_used: one a map page: some trim is recorded in it
 * @trims: number of the last trim, a logical page
 * @oob: one a slot
 * @data: out-of-line content; slot s is at (s - 1) * 4 KiB
 * @slots: slots in @data
 * @slots_top: slots ever used
 * @free_slots: stack of slots given back
 * @nr_free_slots: entries on it
 */
struct mflash_store {
	void *durable;
	size_t durable_size;
	void *scratch;
	size_t scratch_size, scratch_used;
	bool zeroed;
	void (*release)(struct mflash_store *st);

	struct mflash_super *super;
	struct mflash_header *headers;
	u8 *trim_used;
	u64 *trims;
	struct mflash_oob *oob;
	u8 *data;
	u32 slots, slots_top;
	u32 *free_slots;
	u32 nr_free_slots;
};

/**
 * struct mflash_place - where the store's memory comes from
 * @image: host file (UML), or NULL
 * @base: physical address of reserved memory, or 0
 * @size: bytes of it
 * @durable: vmalloc memory of an earlier model, to start from (tests), or NULL
 */
struct mflash_place {
	const char *image;
	void *durable;
	phys_addr_t base;
	size_t size;
};

int mflash_store_open(struct mflash_model *m, const struct mflash_place *place);
void mflash_store_close(struct mflash_store *st);
void *mflash_scratch(struct mflash_store *st, size_t size);
u32 mflash_slot_get(struct mflash_store *st);
void mflash_slot_put(struct mflash_store *st, u32 slot);

static inline void *mflash_slot_data(struct mflash_store *st, u32 slot)
{
	return st->data + ((size_t)(slot - 1) << MFLASH_PAGE_SHIFT);
}

#endif /* _MFLASH_STORE_H */
