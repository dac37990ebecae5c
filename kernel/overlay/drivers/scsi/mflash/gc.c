// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: garbage collection, and migration out of the SLC buffer.
 *
 * Both are one job: read the valid pages of a victim, program them into the
 * copy stream, erase the victim once all copies are programmed. It runs in
 * idle time. When free blocks are short it runs beside the host's work
 * (urgent), and host data find no block any more before copies do.
 *
 * Victims are the blocks with the fewest valid pages. The SLC buffer is
 * emptied in idle time only: when it is full, host data go past it.
 */
#include <linux/errno.h>
#include <linux/kernel.h>

#include "device.h"
#include "ftl.h"
#include "gc.h"
#include "nand.h"
#include "op.h"
#include "store.h"

#include <trace/events/mflash.h>

#define ERASES_MAX	2	/* victims being erased at a time */

static bool gc_active(const struct mflash_model *m)
{
	return m->idle || m->gc.urgent;
}

static u8 gc_class(const struct mflash_model *m)
{
	return m->gc.urgent ? FASTTRACK_NEUTRAL : FASTTRACK_BACKGROUND;
}

static u32 choose_victim(struct mflash_model *m)
{
	struct mflash_ftl *f = &m->ftl;
	u32 soon = f->nr_free[0] + m->gc.erasing;
	u32 victim;

	if (soon <= m->phone->gc_low)
		return mflash_ftl_victim(m, false);
	if (!m->idle)
		return MFLASH_NONE;
	victim = mflash_ftl_victim(m, true);
	if (victim != MFLASH_NONE || soon > 2 * m->phone->gc_low)
		return victim;
	victim = mflash_ftl_victim(m, false);
	/* moving mostly valid blocks in idle time would only wear the NAND */
	if (victim != MFLASH_NONE && f->blocks[victim].valid > f->block_slots / 4 * 3)
		return MFLASH_NONE;
	return victim;
}

static bool job_begin(struct mflash_model *m)
{
	struct mflash_gc *gc = &m->gc;

	if (gc->erasing >= ERASES_MAX)
		return false;
	gc->victim = choose_victim(m);
	if (gc->victim == MFLASH_NONE)
		return false;
	mflash_ftl_take_victim(m, gc->victim);
	gc->scan = 0;
	mflash_count(m, gc_victims, 1);
	if (mflash_block_slc(m, gc->victim))
		mflash_count(m, slc_migrations, 1);
	else if (gc->urgent)
		mflash_count(m, gc_urgent, 1);
	trace_mflash_gc(gc->victim, m->ftl.blocks[gc->victim].valid, gc->urgent);
	return true;
}

static bool unit_written(struct mflash_model *m, u32 block, u32 offset)
{
	u32 unit = offset / mflash_unit_slots(m, mflash_block_slc(m, block));

	return unit / m->phone->dies < m->store.headers[block].rows[unit % m->phone->dies];
}

/* pages to copy have been read */
static void read_end(struct mflash_model *m, struct mflash_op *op)
{
	struct mflash_gc *gc = &m->gc;
	struct mflash_entry *e;

	list_for_each_entry(e, &op->copies, order) {
		struct mflash_oob *oob = &m->store.oob[e->src];

		e->desc.word = oob->word;
		e->desc.slot = oob->slot;
		e->version = oob->seq;
		gc->reading--;
		gc->buffered++;
	}
	list_splice_tail_init(&op->copies, &gc->dirty);
	m->kick_gc = true;
	mflash_kick_all_dies(m);
	mflash_op_put(m, op);
}

static void read_group(struct mflash_model *m, u32 ppn)
{
	struct mflash_gc *gc = &m->gc;
	struct mflash_op *op = NULL;
	struct mflash_entry *e;
	u32 i;

	for (i = 0; i < m->ftl.read_slots; i++) {
		if (!mflash_ftl_is_valid(m, ppn + i))
			continue;
		if (!op) {
			op = mflash_op_get(m, MFLASH_OP_GC_READ, gc_class(m), read_end);
			op->die = mflash_ftl_die(m, ppn);
			op->pages = 0;
			INIT_LIST_HEAD(&op->copies);
		}
		e = list_first_entry(&gc->free, struct mflash_entry, order);
		list_move_tail(&e->order, &op->copies);
		e->lpn = m->store.oob[ppn + i].lpn;
		e->src = ppn + i;
		e->seq = op->q.c.seq;
		e->since = m->now;
		e->trimmed = false;
		e->waiter = NULL;
		gc->nr_free--;
		gc->reading++;
		op->pages++;
	}
	if (op)
		mflash_die_add(m, op);
}

/* a block is erased on one die */
static void erase_end(struct mflash_model *m, struct mflash_op *op)
{
	if (!--m->ftl.blocks[op->block].unfinished) {
		mflash_ftl_erased(m, op->block);
		m->gc.erasing--;
		m->kick_gc = true;
	}
	mflash_op_put(m, op);
}

static void job_end(struct mflash_model *m)
{
	struct mflash_gc *gc = &m->gc;
	struct mflash_op *op;
	u32 die;

	mflash_ftl_erase_begin(m, gc->victim);
	for (die = 0; die < m->phone->dies; die++) {
		op = mflash_op_get(m, MFLASH_OP_ERASE, gc_class(m), erase_end);
		op->die = die;
		op->block = gc->victim;
		mflash_die_add(m, op);
	}
	gc->erasing++;
	gc->victim = MFLASH_NONE;
}

/**
 * mflash_gc_kick - go on with the job, or begin one, or do nothing
 * @m: the model
 */
void mflash_gc_kick(struct mflash_model *m)
{
	struct mflash_gc *gc = &m->gc;
	u32 end;

	gc->urgent = m->ftl.nr_free[0] + gc->erasing <= m->phone->gc_low;
	while (gc_active(m)) {
		if (gc->victim == MFLASH_NONE && !job_begin(m))
			return;
		end = mflash_block_slots(m, gc->victim);
		while (gc->scan < end && gc->nr_free >= m->ftl.read_slots) {
			if (unit_written(m, gc->victim, gc->scan))
				read_group(m, gc->victim * m->ftl.block_slots + gc->scan);
			gc->scan += m->ftl.read_slots;
		}
		if (gc->scan < end || gc->reading || gc->buffered || gc->programming) {
			if (gc->buffered)
				mflash_kick_all_dies(m);
			return;
		}
		job_end(m);
	}
}

static bool candidate(struct mflash_model *m, u32 die, struct mflash_candidate *c)
{
	struct mflash_gc *gc = &m->gc;
	struct mflash_entry *e;
	bool last;

	if (!gc->buffered || !gc_active(m) || !mflash_ftl_room(m, MFLASH_COPY, die))
		return false;
	last = !gc->reading && gc->scan >= mflash_block_slots(m, gc->victim);
	if (gc->buffered < mflash_unit_slots(m, false) && !last)
		return false;
	e = list_first_entry(&gc->dirty, struct mflash_entry, order);
	*c = (struct mflash_candidate) {
		.seq = e->seq, .since = e->since, .class = gc_class(m), .write = true,
	};
	return true;
}

static void take(struct mflash_model *m, u32 die, struct mflash_unit *unit)
{
	struct mflash_gc *gc = &m->gc;
	struct mflash_entry *e;

	unit->slots = mflash_ftl_unit(m, MFLASH_COPY);
	unit->slc = false;
	for (unit->nr = 0; unit->nr < unit->slots && gc->buffered; unit->nr++) {
		e = list_first_entry(&gc->dirty, struct mflash_entry, order);
		list_del_init(&e->order);
		unit->entries[unit->nr] = e;
		gc->buffered--;
		gc->programming++;
	}
	unit->ppn = mflash_ftl_alloc(m, MFLASH_COPY, die);
	mflash_count(m, gc_copies, unit->nr);
}

static void programmed(struct mflash_model *m, struct mflash_unit *unit)
{
	struct mflash_gc *gc = &m->gc;
	u32 i;

	for (i = 0; i < unit->nr; i++) {
		mflash_ftl_commit(m, unit->entries[i], unit->ppn + i);
		list_add_tail(&unit->entries[i]->order, &gc->free);
		gc->nr_free++;
		gc->programming--;
	}
	mflash_ftl_program_end(m, unit->ppn);
	m->kick_gc = true;
}

static const struct mflash_source gc_source = {
	.candidate	= candidate,
	.take		= take,
	.programmed	= programmed,
};

/**
 * mflash_gc_init - no job
 * @m: the model
 *
 * Return: 0 or -ENOMEM.
 */
int mflash_gc_init(struct mflash_model *m)
{
	struct mflash_gc *gc = &m->gc;
	struct mflash_entry *e;
	u32 i;

	gc->victim = MFLASH_NONE;
	INIT_LIST_HEAD(&gc->free);
	INIT_LIST_HEAD(&gc->dirty);
	/* two units a die: one is programmed while the next is read */
	gc->nr_free = 2 * m->phone->dies * mflash_unit_slots(m, false);
	e = mflash_scratch(&m->store, gc->nr_free * sizeof(*e));
	if (!e)
		return -ENOMEM;
	for (i = 0; i < gc->nr_free; i++)
		list_add_tail(&e[i].order, &gc->free);
	mflash_nand_source(m, &gc_source);
	return 0;
}
