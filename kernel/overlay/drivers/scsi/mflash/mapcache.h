/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: the bounded cache of map pages, see mapcache.c. */
#ifndef _MFLASH_MAPCACHE_H
#define _MFLASH_MAPCACHE_H

#include <linux/list.h>
#include <linux/types.h>

#include "op.h"

struct mflash_cmd;
struct mflash_model;

/**
 * struct mflash_map_page - one map page in the controller's cache
 * @link: in mflash_map_cache.lru while cached
 * @cached: it is there
 * @dirty: it must be programmed before it is dropped
 */
struct mflash_map_page {
	struct list_head link;
	bool cached, dirty;
};

/**
 * struct mflash_map_cache - bounded cache of map pages (timing only: the content is
 *	mflash_ftl.map, and recovery scans the OOB)
 * @lru: cached pages, least recently used first
 * @pages: one a map page
 * @nr: cached pages
 * @max: most that fit
 * @writes: operations for the write side queued or under way
 * @next_die: die of the next map program
 */
struct mflash_map_cache {
	struct list_head lru;
	struct mflash_map_page *pages;
	u32 nr, max, writes, next_die;
};

int mflash_map_init(struct mflash_model *m);
void mflash_map_read(struct mflash_model *m, struct mflash_cmd *cmd, mflash_op_end *end);
void mflash_map_dirty(struct mflash_model *m, u32 lpn, u8 class);
bool mflash_map_full(const struct mflash_model *m);

#endif /* _MFLASH_MAPCACHE_H */
