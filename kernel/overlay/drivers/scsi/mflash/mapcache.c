// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: the bounded cache of map pages.
 *
 * A controller has room for a part of its map only. A read whose map page is
 * not there waits for a NAND read; a write loads the page and makes it dirty,
 * and dropping a dirty page is a program. That is what makes random writes
 * over a wide range slow on old eMMC.
 *
 * Timing only: the content is mflash_ftl.map, and recovery needs the OOB
 * alone. Map pages take no slots, their own garbage collection is not modelled.
 */
#include <linux/errno.h>
#include <linux/kernel.h>

#include "device.h"
#include "mapcache.h"
#include "nand.h"
#include "op.h"
#include "store.h"

#define BACKLOG_PER_DIE	2	/* map operations a die may be behind before write-out waits */

/**
 * mflash_map_init - nothing cached
 * @m: the model
 *
 * Return: 0 or -ENOMEM.
 */
int mflash_map_init(struct mflash_model *m)
{
	struct mflash_map_cache *mc = &m->map;
	u32 pages = DIV_ROUND_UP(m->ftl.pages, 1U << MFLASH_MAP_SHIFT);

	INIT_LIST_HEAD(&mc->lru);
	mc->max = max(m->phone->map_pages, 2U);
	mc->pages = mflash_scratch(&m->store, pages * sizeof(*mc->pages));
	return mc->pages ? 0 : -ENOMEM;
}

/* an operation for the write side has ended */
static void written(struct mflash_model *m, struct mflash_op *op)
{
	m->map.writes--;
	mflash_kick_all_dies(m);
	mflash_op_put(m, op);
}

static void evict(struct mflash_model *m, u8 class)
{
	struct mflash_map_cache *mc = &m->map;
	struct mflash_map_page *p = list_first_entry(&mc->lru, struct mflash_map_page, link);
	struct mflash_op *op;

	list_del(&p->link);
	p->cached = false;
	mc->nr--;
	if (!p->dirty)
		return;
	p->dirty = false;
	op = mflash_op_get(m, MFLASH_OP_MAP_PROG, class, written);
	op->die = mc->next_die++ % m->phone->dies;
	op->pages = 1;
	mc->writes++;
	mflash_count(m, map_programs, 1);
	mflash_die_add(m, op);
}

static bool use(struct mflash_model *m, u32 page, u8 class, struct mflash_cmd *cmd,
		mflash_op_end *end)
{
	struct mflash_map_cache *mc = &m->map;
	struct mflash_map_page *p = &mc->pages[page];
	struct mflash_op *op;

	if (p->cached) {
		list_move_tail(&p->link, &mc->lru);
		return true;
	}
	if (mc->nr == mc->max)
		evict(m, class);
	list_add_tail(&p->link, &mc->lru);
	p->cached = true;
	mc->nr++;
	mflash_count(m, map_misses, 1);
	op = mflash_op_get(m, MFLASH_OP_MAP_READ, class, end);
	op->die = page % m->phone->dies;
	op->pages = 1;
	op->cmd = cmd;
	mflash_die_add(m, op);
	return false;
}

/**
 * mflash_map_read - load the map pages of a read
 * @m: the model
 * @cmd: the read; @cmd->map_wait says how many it has to wait for
 * @end: called when one of them has come
 */
void mflash_map_read(struct mflash_model *m, struct mflash_cmd *cmd, mflash_op_end *end)
{
	u32 page = cmd->lpn >> MFLASH_MAP_SHIFT;
	u32 last = (cmd->lpn + cmd->pages - 1) >> MFLASH_MAP_SHIFT;

	for (; page <= last; page++)
		if (!use(m, page, cmd->class, cmd, end))
			cmd->map_wait++;
}

/**
 * mflash_map_dirty - a page is about to be programmed somewhere else
 * @m: the model
 * @lpn: logical page
 * @class: for whom
 */
void mflash_map_dirty(struct mflash_model *m, u32 lpn, u8 class)
{
	struct mflash_map_page *p = &m->map.pages[lpn >> MFLASH_MAP_SHIFT];

	if (!use(m, lpn >> MFLASH_MAP_SHIFT, class, NULL, written))
		m->map.writes++;
	p->dirty = true;
}

/**
 * mflash_map_full - must write-out wait for map operations
 * @m: the model
 */
bool mflash_map_full(const struct mflash_model *m)
{
	return m->map.writes >= BACKLOG_PER_DIE * m->phone->dies;
}
