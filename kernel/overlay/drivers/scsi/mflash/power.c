// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: the power cut.
 *
 * What is in the volatile cache is lost. A program that is under way ends in
 * one of three ways for each NAND page, drawn from the seeded generator: the
 * page is as it was, it is torn (unreadable), or it is complete. An erase that
 * is under way is done again by recovery. Every command fails.
 *
 * cut_persist also lets some cached pages be found programmed, each by
 * itself, which is the reordering that a device may do between two flushes.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>

#include "device.h"
#include "ftl.h"
#include "op.h"
#include "power.h"

#include <trace/events/mflash.h>

enum outcome { LOST, TORN, COMPLETE, NR_OUTCOMES };

/**
 * mflash_random - next number of the seeded generator (splitmix64)
 * @m: the model
 */
u64 mflash_random(struct mflash_model *m)
{
	u64 z = (m->seed += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static u32 random_below(struct mflash_model *m, u32 n)
{
	u32 rest;

	div_u64_rem(mflash_random(m) >> 32, n, &rest);
	return rest;
}

static void tear(struct mflash_model *m, u32 ppn)
{
	struct mflash_oob *oob = &m->store.oob[ppn];

	oob->lpn = MFLASH_NONE;
	WRITE_ONCE(oob->gen, m->store.headers[ppn / m->ftl.block_slots].erases + 1);
}

static void cut_program(struct mflash_model *m, struct mflash_unit *unit)
{
	enum outcome outcome = LOST;
	u32 i;

	for (i = 0; i < unit->nr; i++) {
		if (i % m->phone->page_slots == 0)
			outcome = random_below(m, NR_OUTCOMES);
		if (outcome == COMPLETE)
			mflash_ftl_commit(m, unit->entries[i], unit->ppn + i);
		else if (outcome == TORN)
			tear(m, unit->ppn + i);
	}
}

static void persist_some(struct mflash_model *m)
{
	enum mflash_stream stream = mflash_ftl_host_stream(m, FASTTRACK_FOREGROUND);
	struct mflash_entry *e;
	u32 die = 0;

	list_for_each_entry(e, &m->cache.arrival, order) {
		if (e->programming || random_below(m, 100) >= m->cut_persist)
			continue;
		while (die < m->phone->dies && !mflash_ftl_room(m, stream, die))
			die++;
		if (die == m->phone->dies)
			return;
		e->version = ++m->store.super->seq;
		mflash_ftl_commit(m, e, mflash_ftl_alloc(m, stream, die));
	}
}

/**
 * mflash_power_cut - the device loses power now
 * @m: the model; all commands are on m->done with -EIO afterwards
 */
void mflash_power_cut(struct mflash_model *m)
{
	u32 i;

	if (m->dead)
		return;
	m->dead = true;
	m->store.super->power_cuts++;
	mflash_count(m, power_cuts, 1);
	trace_mflash_power_cut(m->cache.nr - m->cache.nr_free, m->in_flight);
	for (i = 0; i < m->phone->dies; i++)
		if (m->dies[i].array && m->dies[i].array->type == MFLASH_OP_PROG)
			cut_program(m, &m->dies[i].unit);
	if (m->cut_persist)
		persist_some(m);
	for (i = 0; i < MFLASH_NR_EVENTS; i++)
		m->next[i] = U64_MAX;
	for (i = 0; i < MFLASH_TAGS_MAX; i++) {
		if (!m->active[i])
			continue;
		m->active[i]->error = -EIO;
		mflash_cmd_done(m, m->active[i]);
	}
}
