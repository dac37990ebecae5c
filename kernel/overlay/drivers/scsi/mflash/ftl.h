/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: mapping and blocks, see ftl.c. */
#ifndef _MFLASH_FTL_H
#define _MFLASH_FTL_H

#include <linux/list.h>
#include <linux/types.h>

struct mflash_entry;
struct mflash_model;

#define MFLASH_BUCKETS		64	/* victims are sorted this finely by valid pages */

/**
 * enum mflash_stream - who fills a block
 * @MFLASH_BUFFER: host data into the SLC buffer
 * @MFLASH_DIRECT: host data, normal mode
 * @MFLASH_COPY: garbage collection and migration, normal mode
 * @MFLASH_NR_STREAMS: number of streams
 */
enum mflash_stream { MFLASH_BUFFER, MFLASH_DIRECT, MFLASH_COPY, MFLASH_NR_STREAMS };

/**
 * struct mflash_block - what recovery finds out about a block
 * @link: in mflash_ftl.free or .closed
 * @valid: slots that the map points to
 * @unfinished: programs, or parts of an erase, that are under way
 * @bucket: list that it is in
 * @listed: it is in mflash_ftl.closed
 */
struct mflash_block {
	struct list_head link;
	u32 valid, unfinished, bucket;
	bool listed;
};

/**
 * struct mflash_ftl - the mapping and the blocks
 * @read_slots: slots that one array read gives (all planes)
 * @block_slots: slots of a block, normal mode; also the stride of block numbers
 * @pages: logical pages
 * @nr_blocks: all blocks; the first @slc_blocks are the SLC buffer
 * @slc_blocks: blocks of the SLC buffer
 * @map: physical page + 1 of each logical page; 0: unmapped
 * @blocks: one a block
 * @free: erased blocks, [0] normal, [1] SLC
 * @nr_free: entries in it
 * @closed: full blocks by valid pages, [0] normal, [1] SLC
 * @closed_used: bit i: closed[][i] is not empty
 * @open: block that a stream fills, or MFLASH_NONE
 * @use_buffer: host data goes to the SLC buffer while it has room; background's not into
 *	its last part, see struct mflash_sched
 */
struct mflash_ftl {
	u32 read_slots, block_slots, pages, nr_blocks, slc_blocks;
	u32 *map;
	struct mflash_block *blocks;
	struct list_head free[2];
	u32 nr_free[2];
	struct list_head closed[2][MFLASH_BUCKETS];
	u64 closed_used[2];
	u32 open[MFLASH_NR_STREAMS];
	bool use_buffer;
};

int mflash_ftl_layout(struct mflash_model *m, u32 size_mib);
int mflash_ftl_init(struct mflash_model *m);
void mflash_ftl_recover(struct mflash_model *m);
u32 mflash_unit_slots(const struct mflash_model *m, bool slc);
u32 mflash_block_slots(struct mflash_model *m, u32 block);
bool mflash_block_slc(const struct mflash_model *m, u32 block);
u32 mflash_ftl_die(struct mflash_model *m, u32 ppn);
u32 mflash_ftl_unit(const struct mflash_model *m, enum mflash_stream s);
enum mflash_stream mflash_ftl_host_stream(const struct mflash_model *m, u8 class);
bool mflash_ftl_goes_on(const struct mflash_model *m, enum mflash_stream s);
bool mflash_ftl_room(struct mflash_model *m, enum mflash_stream s, u32 die);
u32 mflash_ftl_alloc(struct mflash_model *m, enum mflash_stream s, u32 die);
void mflash_ftl_commit(struct mflash_model *m, struct mflash_entry *e, u32 ppn);
void mflash_ftl_program_end(struct mflash_model *m, u32 ppn);
void mflash_ftl_trim_record(struct mflash_model *m, u32 lpn);
void mflash_ftl_trim(struct mflash_model *m, u32 lpn, u32 pages);
u32 mflash_ftl_victim(struct mflash_model *m, bool slc);
void mflash_ftl_take_victim(struct mflash_model *m, u32 block);
void mflash_ftl_erase_begin(struct mflash_model *m, u32 block);
void mflash_ftl_erased(struct mflash_model *m, u32 block);
bool mflash_ftl_is_valid(struct mflash_model *m, u32 ppn);

#endif /* _MFLASH_FTL_H */
