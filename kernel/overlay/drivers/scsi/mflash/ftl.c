// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: the flash translation layer.
 *
 * Physical pages are 4 KiB slots. A block is one erase block of every plane
 * and die, so a block is written on all dies at once: its unit (row, die) has
 * the slots from (row * dies + die) * unit size. A stream has one open block;
 * dies take the next row of their own part, whichever die is free first.
 *
 * The map follows programs when they end: what it points to is durable. Each
 * slot's OOB says whose page and which version it holds. Recovery takes the
 * newest version that no later trim covers. Copies keep the version of what
 * they copy, so that they never win over newer data; what is out of line is
 * given back when the version that owns it is replaced.
 */
#include <linux/bitmap.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "device.h"
#include "ftl.h"
#include "nand.h"
#include "store.h"

#define FREE_RESERVE	2	/* blocks that only copies may open, so that they end */

/**
 * mflash_unit_slots - slots of one program unit
 * @m: the model
 * @slc: in SLC mode
 */
u32 mflash_unit_slots(const struct mflash_model *m, bool slc)
{
	return m->ftl.read_slots * (slc ? 1 : m->phone->bits);
}

/**
 * mflash_block_slc - is a block a part of the SLC buffer
 * @m: the model
 * @block: which
 */
bool mflash_block_slc(const struct mflash_model *m, u32 block)
{
	return block < m->ftl.slc_blocks;
}

/**
 * mflash_block_slots - slots that a block has in its mode
 * @m: the model
 * @block: which
 */
u32 mflash_block_slots(struct mflash_model *m, u32 block)
{
	return mflash_block_slc(m, block) ? m->ftl.block_slots / m->phone->bits :
					    m->ftl.block_slots;
}

/**
 * mflash_ftl_layout - numbers of blocks and pages
 * @m: the model; its phone is set
 * @size_mib: logical size
 *
 * Return: 0 or -EINVAL.
 */
int mflash_ftl_layout(struct mflash_model *m, u32 size_mib)
{
	const struct mflash_phone *p = m->phone;
	struct mflash_ftl *f = &m->ftl;
	u32 data, slc_slots;

	f->read_slots = p->planes * p->page_slots;
	f->block_slots = p->rows * p->dies * f->read_slots * p->bits;
	if (f->read_slots * p->bits > MFLASH_UNIT_MAX || p->dies > MFLASH_DIES_MAX ||
	    p->channels > MFLASH_CHANNELS_MAX || size_mib > 65536)
		return -EINVAL;
	f->pages = size_mib << (20 - MFLASH_PAGE_SHIFT);
	data = DIV_ROUND_UP(f->pages, f->block_slots);
	data += max(DIV_ROUND_UP(data * p->op_percent, 100), p->gc_low + FREE_RESERVE + 3);
	slc_slots = f->block_slots / p->bits;
	f->slc_blocks = DIV_ROUND_UP(p->slc_mib << (20 - MFLASH_PAGE_SHIFT), slc_slots);
	f->nr_blocks = f->slc_blocks + data;
	return 0;
}

/**
 * mflash_ftl_init - empty tables; mflash_ftl_recover() fills them
 * @m: the model
 *
 * Return: 0 or -ENOMEM.
 */
int mflash_ftl_init(struct mflash_model *m)
{
	struct mflash_ftl *f = &m->ftl;
	u32 i;

	f->map = mflash_scratch(&m->store, f->pages * sizeof(*f->map));
	f->blocks = mflash_scratch(&m->store, f->nr_blocks * sizeof(*f->blocks));
	if (!f->map || !f->blocks)
		return -ENOMEM;
	for (i = 0; i < 2 * MFLASH_BUCKETS; i++)
		INIT_LIST_HEAD(&f->closed[i / MFLASH_BUCKETS][i % MFLASH_BUCKETS]);
	INIT_LIST_HEAD(&f->free[0]);
	INIT_LIST_HEAD(&f->free[1]);
	for (i = 0; i < MFLASH_NR_STREAMS; i++)
		f->open[i] = MFLASH_NONE;
	return 0;
}

/**
 * mflash_ftl_die - die of a physical page
 * @m: the model
 * @ppn: the page
 */
u32 mflash_ftl_die(struct mflash_model *m, u32 ppn)
{
	u32 block = ppn / m->ftl.block_slots;
	u32 unit = mflash_unit_slots(m, mflash_block_slc(m, block));

	return ppn % m->ftl.block_slots / unit % m->phone->dies;
}

/**
 * mflash_ftl_unit - slots of one program unit of a stream
 * @m: the model
 * @s: the stream
 */
u32 mflash_ftl_unit(const struct mflash_model *m, enum mflash_stream s)
{
	return mflash_unit_slots(m, s == MFLASH_BUFFER);
}

/* under the policy foreground the background leaves the SLC buffer's last part free */
static u32 kept_blocks(const struct mflash_model *m, u8 class)
{
	if (m->sched.policy != MFLASH_FOREGROUND || class != FASTTRACK_BACKGROUND)
		return 0;
	return m->ftl.slc_blocks * m->sched.slc_reserve / 100;
}

/**
 * mflash_ftl_host_stream - where host data go now
 * @m: the model
 * @class: whose they are
 */
enum mflash_stream mflash_ftl_host_stream(const struct mflash_model *m, u8 class)
{
	const struct mflash_ftl *f = &m->ftl;
	u32 kept = kept_blocks(m, class);

	if (!f->use_buffer || f->nr_free[1] < kept)
		return MFLASH_DIRECT;
	return f->nr_free[1] > kept || f->open[MFLASH_BUFFER] != MFLASH_NONE ? MFLASH_BUFFER :
									       MFLASH_DIRECT;
}

static bool may_open(const struct mflash_ftl *f, enum mflash_stream s)
{
	if (s == MFLASH_BUFFER)
		return f->nr_free[1];
	return f->nr_free[0] > (s == MFLASH_COPY ? 0 : FREE_RESERVE);
}

/**
 * mflash_ftl_goes_on - may some die program a unit of a stream, before a block is freed
 * @m: the model
 * @s: the stream
 */
bool mflash_ftl_goes_on(const struct mflash_model *m, enum mflash_stream s)
{
	return m->ftl.open[s] != MFLASH_NONE || may_open(&m->ftl, s);
}

/**
 * mflash_ftl_room - may a die program a unit of a stream
 * @m: the model
 * @s: the stream
 * @die: the die
 */
bool mflash_ftl_room(struct mflash_model *m, enum mflash_stream s, u32 die)
{
	struct mflash_ftl *f = &m->ftl;
	u32 block = f->open[s];

	if (block != MFLASH_NONE)
		return m->store.headers[block].rows[die] < m->phone->rows;
	return may_open(f, s);
}

static u32 block_open(struct mflash_model *m, enum mflash_stream s)
{
	struct mflash_ftl *f = &m->ftl;
	bool slc = s == MFLASH_BUFFER;
	struct mflash_block *b = list_first_entry(&f->free[slc], struct mflash_block, link);
	u32 block = b - f->blocks;
	struct mflash_header *h = &m->store.headers[block];

	list_del_init(&b->link);
	f->nr_free[slc]--;
	f->open[s] = block;
	h->stream = s;
	WRITE_ONCE(h->state, MFLASH_OPEN);
	if (!slc && f->nr_free[0] <= m->phone->gc_low)
		m->kick_gc = true;
	return block;
}

static void block_list(struct mflash_model *m, u32 block)
{
	struct mflash_ftl *f = &m->ftl;
	struct mflash_block *b = &f->blocks[block];
	bool slc = mflash_block_slc(m, block);
	u32 bucket = b->valid * (MFLASH_BUCKETS - 1) / mflash_block_slots(m, block);

	if (b->listed && bucket == b->bucket)
		return;
	if (b->listed) {
		list_del_init(&b->link);
		if (list_empty(&f->closed[slc][b->bucket]))
			f->closed_used[slc] &= ~BIT_ULL(b->bucket);
	}
	list_add_tail(&b->link, &f->closed[slc][bucket]);
	f->closed_used[slc] |= BIT_ULL(bucket);
	b->bucket = bucket;
	b->listed = true;
}

static bool block_full(struct mflash_model *m, struct mflash_header *h)
{
	u32 i;

	for (i = 0; i < m->phone->dies; i++)
		if (h->rows[i] < m->phone->rows)
			return false;
	return true;
}

/**
 * mflash_ftl_alloc - the next unit of a stream on a die
 * @m: the model
 * @s: the stream; mflash_ftl_room() was true
 * @die: the die
 *
 * Return: first slot of the unit.
 */
u32 mflash_ftl_alloc(struct mflash_model *m, enum mflash_stream s, u32 die)
{
	struct mflash_ftl *f = &m->ftl;
	u32 block = f->open[s] != MFLASH_NONE ? f->open[s] : block_open(m, s);
	struct mflash_header *h = &m->store.headers[block];
	u32 row = h->rows[die];

	WRITE_ONCE(h->rows[die], row + 1);
	f->blocks[block].unfinished++;
	if (block_full(m, h)) {
		WRITE_ONCE(h->state, MFLASH_CLOSED);
		f->open[s] = MFLASH_NONE;
		mflash_kick_all_dies(m);
	}
	return block * f->block_slots + (row * m->phone->dies + die) * mflash_ftl_unit(m, s);
}

/**
 * mflash_ftl_program_end - the program of a unit has ended
 * @m: the model
 * @ppn: first slot of the unit
 */
void mflash_ftl_program_end(struct mflash_model *m, u32 ppn)
{
	u32 block = ppn / m->ftl.block_slots;

	if (!--m->ftl.blocks[block].unfinished &&
	    m->store.headers[block].state == MFLASH_CLOSED)
		block_list(m, block);
}

/**
 * mflash_ftl_is_valid - does the map point to a physical page
 * @m: the model
 * @ppn: the page
 */
bool mflash_ftl_is_valid(struct mflash_model *m, u32 ppn)
{
	struct mflash_oob *oob = &m->store.oob[ppn];

	return oob->gen == m->store.headers[ppn / m->ftl.block_slots].erases + 1 &&
	       oob->lpn < m->ftl.pages && m->ftl.map[oob->lpn] == ppn + 1;
}

static void invalidate(struct mflash_model *m, u32 ppn)
{
	u32 block = ppn / m->ftl.block_slots;
	struct mflash_block *b = &m->ftl.blocks[block];

	b->valid--;
	if (b->listed)
		block_list(m, block);
}

static bool is_stale(struct mflash_model *m, struct mflash_entry *e)
{
	u32 cur = m->ftl.map[e->lpn];

	if (e->src != MFLASH_NONE)
		return cur != e->src + 1;
	return e->trimmed || (cur && m->store.oob[cur - 1].seq > e->version);
}

/**
 * mflash_ftl_commit - a page is programmed
 * @m: the model
 * @e: its entry
 * @ppn: where
 */
void mflash_ftl_commit(struct mflash_model *m, struct mflash_entry *e, u32 ppn)
{
	struct mflash_store *st = &m->store;
	struct mflash_oob *oob = &st->oob[ppn];
	u32 block = ppn / m->ftl.block_slots;
	bool copy = e->src != MFLASH_NONE;
	u32 old = m->ftl.map[e->lpn];

	oob->word = e->desc.word;
	oob->slot = e->desc.slot;
	oob->lpn = e->lpn;
	oob->seq = e->version;
	smp_wmb(); /* the host process may die here: no generation, no page */
	WRITE_ONCE(oob->gen, st->headers[block].erases + 1);
	if (is_stale(m, e)) {
		if (!copy)
			mflash_slot_put(st, e->desc.slot);
		return;
	}
	m->ftl.map[e->lpn] = ppn + 1;
	m->ftl.blocks[block].valid++;
	if (!old)
		return;
	invalidate(m, old - 1);
	if (!copy)
		mflash_slot_put(st, st->oob[old - 1].slot);
}

/**
 * mflash_ftl_trim_record - make a trim durable
 * @m: the model
 * @lpn: logical page
 */
void mflash_ftl_trim_record(struct mflash_model *m, u32 lpn)
{
	WRITE_ONCE(m->store.trim_used[lpn >> MFLASH_MAP_SHIFT], 1);
	smp_wmb(); /* as in mflash_ftl_commit() */
	WRITE_ONCE(m->store.trims[lpn], ++m->store.super->seq);
}

/**
 * mflash_ftl_trim - forget pages of the map, durably
 * @m: the model
 * @lpn: first logical page
 * @pages: how many
 */
void mflash_ftl_trim(struct mflash_model *m, u32 lpn, u32 pages)
{
	u32 end = lpn + pages;

	for (; lpn < end; lpn++) {
		u32 old = m->ftl.map[lpn];

		if (!old)
			continue;
		mflash_ftl_trim_record(m, lpn);
		m->ftl.map[lpn] = 0;
		invalidate(m, old - 1);
		mflash_slot_put(&m->store, m->store.oob[old - 1].slot);
		mflash_count(m, unmapped_pages, 1);
	}
}

/**
 * mflash_ftl_victim - block with the fewest valid pages
 * @m: the model
 * @slc: of the SLC buffer
 *
 * Return: the block, or MFLASH_NONE where nothing would be gained.
 */
u32 mflash_ftl_victim(struct mflash_model *m, bool slc)
{
	struct mflash_ftl *f = &m->ftl;
	struct mflash_block *b;
	u32 block;

	if (!f->closed_used[slc])
		return MFLASH_NONE;
	b = list_first_entry(&f->closed[slc][__ffs64(f->closed_used[slc])],
			     struct mflash_block, link);
	block = b - f->blocks;
	return !slc && b->valid == f->block_slots ? MFLASH_NONE : block;
}

/**
 * mflash_ftl_take_victim - take a block out of the list of victims
 * @m: the model
 * @block: which
 */
void mflash_ftl_take_victim(struct mflash_model *m, u32 block)
{
	struct mflash_ftl *f = &m->ftl;
	struct mflash_block *b = &f->blocks[block];
	bool slc = mflash_block_slc(m, block);

	list_del_init(&b->link);
	b->listed = false;
	if (list_empty(&f->closed[slc][b->bucket]))
		f->closed_used[slc] &= ~BIT_ULL(b->bucket);
}

/**
 * mflash_ftl_erase_begin - nothing in a block is needed any more
 * @m: the model
 * @block: which
 */
void mflash_ftl_erase_begin(struct mflash_model *m, u32 block)
{
	WARN_ONCE(m->ftl.blocks[block].valid, "mflash: block %u erased with %u valid pages\n",
		  block, m->ftl.blocks[block].valid);
	WRITE_ONCE(m->store.headers[block].state, MFLASH_ERASING);
	m->ftl.blocks[block].unfinished = m->phone->dies;
}

static void block_free(struct mflash_model *m, u32 block)
{
	bool slc = mflash_block_slc(m, block);

	list_add_tail(&m->ftl.blocks[block].link, &m->ftl.free[slc]);
	m->ftl.nr_free[slc]++;
}

/**
 * mflash_ftl_erased - a block is erased on all dies
 * @m: the model
 * @block: which
 */
void mflash_ftl_erased(struct mflash_model *m, u32 block)
{
	struct mflash_header *h = &m->store.headers[block];

	WRITE_ONCE(h->erases, h->erases + 1);
	memset(h->rows, 0, sizeof(h->rows));
	smp_wmb(); /* a block found erasing is erased again */
	WRITE_ONCE(h->state, MFLASH_FREE);
	block_free(m, block);
	mflash_kick_all_dies(m);
}

static void scan_slot(struct mflash_model *m, u32 ppn, u32 gen)
{
	struct mflash_store *st = &m->store;
	struct mflash_oob *oob = &st->oob[ppn];
	struct mflash_ftl *f = &m->ftl;
	u32 lpn = oob->lpn;
	u32 cur;

	if (oob->gen != gen || lpn >= f->pages)
		return;
	if (st->trim_used[lpn >> MFLASH_MAP_SHIFT] && st->trims[lpn] > oob->seq)
		return;
	cur = f->map[lpn];
	if (cur && st->oob[cur - 1].seq >= oob->seq)
		return;
	if (cur)
		f->blocks[(cur - 1) / f->block_slots].valid--;
	f->map[lpn] = ppn + 1;
	f->blocks[ppn / f->block_slots].valid++;
}

static void scan_block(struct mflash_model *m, u32 block)
{
	struct mflash_header *h = &m->store.headers[block];
	u32 unit = mflash_unit_slots(m, mflash_block_slc(m, block));
	u32 die, row, i, ppn;

	for (die = 0; die < m->phone->dies; die++) {
		for (row = 0; row < h->rows[die]; row++) {
			ppn = block * m->ftl.block_slots + (row * m->phone->dies + die) * unit;
			for (i = 0; i < unit; i++)
				scan_slot(m, ppn + i, h->erases + 1);
		}
	}
}

static void adopt_block(struct mflash_model *m, u32 block)
{
	struct mflash_header *h = &m->store.headers[block];

	if (h->state == MFLASH_OPEN && h->stream < MFLASH_NR_STREAMS && !block_full(m, h) &&
	    m->ftl.open[h->stream] == MFLASH_NONE) {
		m->ftl.open[h->stream] = block;
		return;
	}
	h->state = MFLASH_CLOSED;
	block_list(m, block);
}

static void mark_block_slots(struct mflash_model *m, u32 block, unsigned long *used)
{
	struct mflash_store *st = &m->store;
	u32 ppn = block * m->ftl.block_slots;
	u32 end = ppn + mflash_block_slots(m, block);

	for (; ppn < end; ppn++) {
		u32 slot = st->oob[ppn].slot;

		if (!slot || slot > st->slots || !mflash_ftl_is_valid(m, ppn))
			continue;
		__set_bit(slot, used);
		st->slots_top = max(st->slots_top, slot);
	}
}

/* find the free slots: those that no valid page has */
static void slots_rebuild(struct mflash_model *m)
{
	struct mflash_store *st = &m->store;
	unsigned long *used = mflash_scratch(st, BITS_TO_LONGS(st->slots + 1) * sizeof(long));
	u32 i, slot;

	if (WARN_ON(!used))
		return;
	for (i = 0; i < m->ftl.nr_blocks; i++)
		if (m->ftl.blocks[i].valid)
			mark_block_slots(m, i, used);
	for (slot = st->slots_top; slot; slot--)
		if (!test_bit(slot, used))
			mflash_slot_put(st, slot);
}

/**
 * mflash_ftl_recover - make map and block lists from what is durable
 * @m: the model
 *
 * Programs that were lost leave gaps in an open block; writing goes on behind
 * them, where the block's header says that nothing was begun.
 */
void mflash_ftl_recover(struct mflash_model *m)
{
	struct mflash_header *h = m->store.headers;
	u32 i;

	for (i = 0; i < m->ftl.nr_blocks; i++) {
		INIT_LIST_HEAD(&m->ftl.blocks[i].link);
		if (h[i].state == MFLASH_FREE)
			block_free(m, i);
		else if (h[i].state == MFLASH_ERASING)
			mflash_ftl_erased(m, i);
		else
			scan_block(m, i);
	}
	for (i = 0; i < m->ftl.nr_blocks; i++)
		if (h[i].state == MFLASH_OPEN || h[i].state == MFLASH_CLOSED)
			adopt_block(m, i);
	slots_rebuild(m);
}

#ifdef CONFIG_SCSI_MFLASH_KUNIT_TEST
#include "tests/ftl-kunit.h"
#endif
