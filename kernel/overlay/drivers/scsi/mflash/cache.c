// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: the volatile write cache.
 *
 * A write is acknowledged once its data are here. A page stays until its
 * program has ended, so what is here is exactly what a power cut loses. Pages
 * are written out as soon as they fill a program unit; a part of a unit waits
 * for a flush, a FUA write, a full cache or an idle device.
 *
 * Order of write-out is the policy's: under foreground, foreground pages come
 * first, also when the foreground's flush has to wait for everybody's pages.
 * Those others then count as foreground writes on the dies. So that they are
 * few, background has only so many in the cache under that policy as keep the
 * dies busy: when the foreground flushes next is not known beforehand. And while
 * the foreground flushes now and then, background's large writes are acknowledged
 * when they are durable: a flush covers what was acknowledged, so none waits for them.
 */
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/time64.h>

#include "cache.h"
#include "device.h"
#include "ftl.h"
#include "mapcache.h"
#include "nand.h"
#include "op.h"
#include "sched.h"
#include "store.h"

/**
 * mflash_cache_pages - size of the cache
 * @m: the model, with its layout
 *
 * Return: pages; at least two units, or the dies would wait for the link.
 */
u32 mflash_cache_pages(const struct mflash_model *m)
{
	return max(m->phone->cache_kib >> (MFLASH_PAGE_SHIFT - 10),
		   2 * mflash_unit_slots(m, false));
}

/*
 * Units of background's that wait for a die: one may be on its way over the link
 * when a die has taken the other.
 */
#define UNITS_WAITING	2

/*
 * The foreground's next flush is expected for so long. Editors and databases that sync
 * more seldom wait for what is under way in the dies, once.
 */
#define FLUSH_WINDOW_NS	NSEC_PER_SEC

/*
 * Background leaves one die in so many free then: an eighth of its throughput. With
 * fewer dies one of them is soon done.
 */
#define DIES_A_KEPT	8

static bool is_limited(const struct mflash_model *m, u8 class)
{
	return class == FASTTRACK_BACKGROUND && m->sched.policy == MFLASH_FOREGROUND;
}

/**
 * mflash_cache_room - how much a class may write into the cache now
 * @m: the model
 * @class: whose data
 *
 * Return: pages.
 */
u32 mflash_cache_room(const struct mflash_model *m, u8 class)
{
	const struct mflash_cache *c = &m->cache;
	u32 part;

	if (!is_limited(m, class))
		return c->nr_free;
	part = UNITS_WAITING * mflash_ftl_unit(m, mflash_ftl_host_stream(m, class));
	return c->nr_background < part ? min(c->nr_free, part - c->nr_background) : 0;
}

/*
 * Does what a class writes make way for the foreground's next flush? A device that takes
 * one command at a time would keep the foreground waiting for one of background's until
 * it is durable.
 */
static bool flush_expected(const struct mflash_model *m, u8 class)
{
	return is_limited(m, class) && m->phone->queue_depth > 1 && m->cache.fg_flushed &&
	       m->now < m->cache.fg_flushed + FLUSH_WINDOW_NS;
}

/*
 * Is a write acknowledged only when it is durable? One that does not fill a program unit
 * would take a unit for itself.
 */
static bool is_through(const struct mflash_model *m, const struct mflash_cmd *cmd)
{
	return flush_expected(m, cmd->class) &&
	       cmd->pages >= mflash_ftl_unit(m, mflash_ftl_host_stream(m, cmd->class));
}

static struct hlist_head *bucket(struct mflash_cache *c, u32 lpn)
{
	return &c->hash[hash_32(lpn, MFLASH_HASH_BITS)];
}

/**
 * mflash_cache_find - newest cached content of a page
 * @m: the model
 * @lpn: logical page
 *
 * Return: the entry, or NULL.
 */
struct mflash_entry *mflash_cache_find(struct mflash_model *m, u32 lpn)
{
	struct mflash_entry *e;

	hlist_for_each_entry(e, bucket(&m->cache, lpn), hash)
		if (e->lpn == lpn && !e->trimmed)
			return e;
	return NULL;
}

static void entry_free(struct mflash_cache *c, struct mflash_entry *e)
{
	hlist_del(&e->hash);
	list_move_tail(&e->order, &c->free);
	c->nr_free++;
}

static void waiter_done(struct mflash_model *m, struct mflash_entry *e)
{
	struct mflash_cmd *cmd = e->waiter;

	e->waiter = NULL;
	/* a command with a target is completed by settle() */
	if (cmd && !--cmd->pending && cmd->sent == cmd->pages && !cmd->target)
		mflash_cmd_done(m, cmd);
}

static void entry_merge(struct mflash_model *m, struct mflash_entry *e, struct mflash_cmd *cmd)
{
	struct mflash_cache *c = &m->cache;

	mflash_slot_put(&m->store, e->desc.slot);
	c->nr_free++;
	mflash_count(m, cache_merged, 1);
	if (e->through) {
		/* another command's data are acknowledged now: flushes cover them */
		e->through = false;
		c->fua_dirty++;
		e->seq = ++m->seq;
		list_move_tail(&e->order, &c->arrival);
		list_move_tail(&e->dirty, &c->dirty[e->class]);
		c->nr_through--;
	}
	if (mflash_rank(MFLASH_FOREGROUND, cmd->class, true) <
	    mflash_rank(MFLASH_FOREGROUND, e->class, true)) {
		c->nr_background -= e->class == FASTTRACK_BACKGROUND;
		e->class = cmd->class;
		list_move_tail(&e->dirty, &c->dirty[e->class]);
	}
}

static struct mflash_entry *entry_new(struct mflash_model *m, u32 lpn, u8 class, u64 since)
{
	struct mflash_cache *c = &m->cache;
	struct mflash_entry *e = list_first_entry(&c->free, struct mflash_entry, order);

	list_move_tail(&e->order, &c->arrival);
	list_add_tail(&e->dirty, &c->dirty[class]);
	hlist_add_head(&e->hash, bucket(c, lpn));
	e->lpn = lpn;
	e->src = MFLASH_NONE;
	e->class = class;
	e->programming = false;
	e->trimmed = false;
	e->through = false;
	e->waiter = NULL;
	e->seq = ++m->seq;
	e->since = since;
	c->nr_dirty++;
	c->nr_background += class == FASTTRACK_BACKGROUND;
	return e;
}

static void entry_wait(struct mflash_cache *c, struct mflash_entry *e, struct mflash_cmd *cmd)
{
	if (e->waiter) {
		cmd->target = max(cmd->target, e->seq);
		return;
	}
	e->waiter = cmd;
	cmd->pending++;
	c->fua_dirty++;
}

/* the new entry's data are acknowledged when it is durable */
static void entry_through(struct mflash_cache *c, struct mflash_entry *e, struct mflash_cmd *cmd)
{
	e->waiter = cmd;
	cmd->pending++;
	e->through = true;
	list_move_tail(&e->order, &c->through);
	c->nr_through++;
}

static void flush_begin(struct mflash_model *m, struct mflash_cmd *cmd)
{
	m->cache.flush_seq = m->seq;
	m->cache.flush_dirty = m->cache.nr_dirty - m->cache.nr_through;
	list_add_tail(&cmd->done, &m->cache.flushes);
}

/**
 * mflash_cache_write - data of a write crossed the link
 * @m: the model
 * @cmd: the write; @cmd->sent is advanced
 * @pages: how many pages; room for them was taken from @m->cache.nr_free
 */
void mflash_cache_write(struct mflash_model *m, struct mflash_cmd *cmd, u32 pages)
{
	struct mflash_cache *c = &m->cache;
	bool through = is_through(m, cmd);
	/* background has few pages here at a time, which do not wait for another wait_max_ns */
	bool waited = is_limited(m, cmd->class) &&
		      mflash_is_overdue(&m->sched, cmd->submitted, m->now);
	u64 since = waited ? cmd->submitted : m->now;
	struct mflash_entry *e;
	u32 lpn;

	if (cmd->fua && cmd->class == FASTTRACK_FOREGROUND)
		c->fg_flushed = m->now;
	for (; pages; pages--, cmd->sent++) {
		lpn = cmd->lpn + cmd->sent;
		e = mflash_cache_find(m, lpn);
		if (e && !e->programming) {
			entry_merge(m, e, cmd);
		} else {
			e = entry_new(m, lpn, cmd->class, since);
			if (through && !cmd->fua)
				entry_through(c, e, cmd);
		}
		e->desc = cmd->desc[cmd->sent];
		if (cmd->fua)
			entry_wait(c, e, cmd);
	}
	if (cmd->sent < cmd->pages)
		return;
	if (cmd->target)
		flush_begin(m, cmd);
	else if (!cmd->pending)
		mflash_cmd_done(m, cmd);
}

/* complete the flushes that have nothing left to wait for */
static void settle(struct mflash_model *m)
{
	struct mflash_cache *c = &m->cache;
	struct mflash_entry *oldest = list_first_entry_or_null(&c->arrival, struct mflash_entry,
							       order);
	struct mflash_cmd *cmd, *tmp;

	list_for_each_entry_safe(cmd, tmp, &c->flushes, done) {
		if (cmd->pending || (oldest && oldest->seq <= cmd->target))
			continue;
		list_del_init(&cmd->done);
		mflash_cmd_done(m, cmd);
	}
}

static void entry_clean(struct mflash_cache *c, struct mflash_entry *e)
{
	list_del_init(&e->dirty);
	c->nr_dirty--;
	c->nr_background -= e->class == FASTTRACK_BACKGROUND;
	if (e->through)
		c->nr_through--;
	else if (e->seq <= c->flush_seq)
		c->flush_dirty--;
	if (e->waiter && !e->through)
		c->fua_dirty--;
}

static void entry_trim(struct mflash_model *m, struct mflash_entry *e)
{
	if (e->programming) {
		e->trimmed = true;
		mflash_ftl_trim_record(m, e->lpn);
		return;
	}
	entry_clean(&m->cache, e);
	mflash_slot_put(&m->store, e->desc.slot);
	waiter_done(m, e);
	entry_free(&m->cache, e);
	m->kick_links = ~0UL;
}

/**
 * mflash_cache_trim - forget cached pages
 * @m: the model
 * @lpn: first logical page
 * @pages: how many
 */
void mflash_cache_trim(struct mflash_model *m, u32 lpn, u32 pages)
{
	struct mflash_entry *e, *tmp;

	list_for_each_entry_safe(e, tmp, &m->cache.arrival, order)
		if (e->lpn - lpn < pages)
			entry_trim(m, e);
	list_for_each_entry_safe(e, tmp, &m->cache.through, order)
		if (e->lpn - lpn < pages)
			entry_trim(m, e);
	settle(m);
}

static bool is_overdue(const struct mflash_model *m, const struct mflash_entry *e)
{
	return mflash_is_overdue(&m->sched, e->since, m->now);
}

/*
 * Does somebody wait for durability, perhaps of a page? If that is the foreground, a page
 * of background's is looked at, of which there are few here at a time: else what it sends
 * would go before the foreground's flush without end.
 */
static bool is_awaited(const struct mflash_model *m, const struct mflash_entry *e)
{
	const struct mflash_cache *c = &m->cache;

	if (!is_limited(m, e->class) || !m->burst.syncs)
		return c->fua_dirty || c->flush_dirty;
	return !e->through && (e->waiter || e->seq <= c->flush_seq);
}

/*
 * Does a page go first that is overdue? Where somebody waits for durability; else a unit of
 * them now and then, or those of others, who write without end, would be before them for
 * ever.
 */
static bool goes_overdue(const struct mflash_model *m, const struct mflash_entry *e)
{
	if (!is_overdue(m, e))
		return false;
	return is_awaited(m, e) || (mflash_may_force(&m->sched, m->cache.forced, m->now) &&
				    mflash_ftl_goes_on(m, mflash_ftl_host_stream(m, e->class)));
}

/* as what a page is written out, in the order of the queues */
static struct mflash_candidate as_candidate(const struct mflash_entry *e, u8 class)
{
	return (struct mflash_candidate) {
		.seq = e->seq, .since = e->since, .class = class, .write = true,
	};
}

/* the page that is next in the order, and the first of those that go for being overdue */
static struct mflash_entry *first_dirty(struct mflash_model *m, struct mflash_entry **overdue)
{
	struct mflash_entry *e, *dirty[FASTTRACK_NR_CLASSES];
	struct mflash_candidate c[FASTTRACK_NR_CLASSES];
	int n = 0;
	u32 i;

	*overdue = NULL;
	for (i = 0; i < FASTTRACK_NR_CLASSES; i++) {
		e = list_first_entry_or_null(&m->cache.dirty[i], struct mflash_entry, dirty);
		if (!e)
			continue;
		if (goes_overdue(m, e) && (!*overdue || e->seq < (*overdue)->seq))
			*overdue = e;
		dirty[n] = e;
		c[n++] = as_candidate(e, e->class);
	}
	return n ? dirty[mflash_first(&m->sched, c, n, m->now)] : NULL;
}

static struct mflash_entry *next_dirty(struct mflash_model *m)
{
	struct mflash_entry *overdue, *first = first_dirty(m, &overdue);

	return overdue ?: first;
}

/* is the page that is next so only because it is overdue */
static bool next_is_forced(struct mflash_model *m)
{
	struct mflash_entry *overdue, *first = first_dirty(m, &overdue);

	return overdue && overdue != first;
}

/* a foreground write waits on the link for room in the cache */
static bool foreground_waits(const struct mflash_model *m)
{
	const struct mflash_link *link = &m->link[m->phone->half_duplex ? 0 : 1];

	return !m->cache.nr_free && link->queue.used & BIT(2 * FASTTRACK_FOREGROUND + 1);
}

/* for whom a page is written out: the foreground may wait for it */
static u8 for_whom(const struct mflash_model *m, const struct mflash_entry *e)
{
	/* what was not acknowledged is in front of what a flush waits for */
	bool flushed = e->seq <= m->cache.fg_flush_seq &&
		       (!e->through || m->cache.flush_dirty);

	return flushed || foreground_waits(m) ? FASTTRACK_FOREGROUND : e->class;
}

/* where the page goes that is next */
static enum mflash_stream next_stream(struct mflash_model *m)
{
	return mflash_ftl_host_stream(m, for_whom(m, next_dirty(m)));
}

/* data of background's are on their way, which may fill a unit */
static bool background_comes(const struct mflash_model *m)
{
	const struct mflash_link *link = &m->link[m->phone->half_duplex ? 0 : 1];
	unsigned long writes = BIT(MFLASH_HEAD(FASTTRACK_BACKGROUND, 1));
	const struct mflash_qnode *busy = link->busy;

	return (link->queue.used | m->fw_queue.used) & writes ||
	       (busy && busy->cmd && busy->c.class == FASTTRACK_BACKGROUND) ||
	       (m->fw_cmd && m->fw_cmd->type == MFLASH_WRITE &&
		m->fw_cmd->class == FASTTRACK_BACKGROUND);
}

/**
 * mflash_cache_is_due - should pages be written out now
 * @m: the model
 *
 * Return: true when a program should be begun.
 */
bool mflash_cache_is_due(struct mflash_model *m)
{
	const struct mflash_cache *c = &m->cache;

	if (!c->nr_dirty || mflash_map_full(m))
		return false;
	return c->flush_dirty || c->fua_dirty || !c->nr_free || m->idle ||
	       (c->nr_through && !background_comes(m)) ||
	       c->nr_dirty >= mflash_ftl_unit(m, next_stream(m));
}

/* background may have no more dies: the foreground's next write finds one that is free */
static bool dies_kept(const struct mflash_model *m, u8 class)
{
	u32 idle = 0, i;

	if (!flush_expected(m, class))
		return false;
	for (i = 0; i < m->phone->dies; i++)
		idle += m->dies[i].state == MFLASH_DIE_IDLE;
	return idle <= m->phone->dies / DIES_A_KEPT;
}

static bool candidate(struct mflash_model *m, u32 die, struct mflash_candidate *c)
{
	struct mflash_entry *e;

	if (!mflash_cache_is_due(m) || !mflash_ftl_room(m, next_stream(m), die))
		return false;
	e = next_dirty(m);
	*c = as_candidate(e, for_whom(m, e));
	if (!dies_kept(m, c->class) || is_overdue(m, e))
		return true;
	m->die_refused = true;
	return false;
}

/* begin the program of the page that is next */
static struct mflash_entry *entry_take(struct mflash_model *m)
{
	struct mflash_entry *e = next_dirty(m);

	entry_clean(&m->cache, e);
	e->programming = true;
	e->version = ++m->store.super->seq;
	mflash_map_dirty(m, e->lpn, e->class);
	return e;
}

static void take(struct mflash_model *m, u32 die, struct mflash_unit *unit)
{
	enum mflash_stream stream = next_stream(m);
	bool forced = next_is_forced(m);

	unit->slots = mflash_ftl_unit(m, stream);
	unit->slc = stream == MFLASH_BUFFER;
	unit->hurry = false;
	for (unit->nr = 0; unit->nr < unit->slots && m->cache.nr_dirty; unit->nr++) {
		unit->entries[unit->nr] = entry_take(m);
		unit->hurry |= !unit->entries[unit->nr]->through;
	}
	if (forced)
		m->cache.forced = m->now;
	/* background may have room again */
	m->kick_links = ~0UL;
	unit->ppn = mflash_ftl_alloc(m, stream, die);
	if (unit->slc)
		mflash_count(m, slc_pages, unit->nr);
	else
		mflash_count(m, direct_pages, unit->nr);
}

/* a page is durable */
static void entry_end(struct mflash_model *m, struct mflash_entry *e)
{
	struct mflash_entry *older = e;

	/* newest first: an older version still under way must not be found any more */
	hlist_for_each_entry_continue(older, hash)
		if (older->lpn == e->lpn)
			older->trimmed = true;
	waiter_done(m, e);
	entry_free(&m->cache, e);
	m->kick_links = ~0UL;
}

static void programmed(struct mflash_model *m, struct mflash_unit *unit)
{
	u32 i;

	for (i = 0; i < unit->nr; i++) {
		mflash_ftl_commit(m, unit->entries[i], unit->ppn + i);
		entry_end(m, unit->entries[i]);
	}
	mflash_ftl_program_end(m, unit->ppn);
	settle(m);
	m->kick_gc = true;
}

static const struct mflash_source cache_source = {
	.candidate	= candidate,
	.take		= take,
	.programmed	= programmed,
};

/**
 * mflash_cache_flush - a flush left the firmware
 * @m: the model
 * @cmd: the flush; it covers every write that was acknowledged
 */
void mflash_cache_flush(struct mflash_model *m, struct mflash_cmd *cmd)
{
	struct mflash_cache *c = &m->cache;

	cmd->target = m->seq;
	if (cmd->class == FASTTRACK_FOREGROUND) {
		c->fg_flush_seq = m->seq;
		c->fg_flushed = m->now;
		mflash_nand_hurry(m, &cache_source);
	}
	flush_begin(m, cmd);
	mflash_kick_all_dies(m);
	settle(m);
}

/**
 * mflash_cache_init - an empty cache
 * @m: the model
 *
 * Return: 0 or -ENOMEM.
 */
int mflash_cache_init(struct mflash_model *m)
{
	struct mflash_cache *c = &m->cache;
	struct mflash_entry *e;
	u32 i;

	INIT_LIST_HEAD(&c->free);
	INIT_LIST_HEAD(&c->arrival);
	INIT_LIST_HEAD(&c->through);
	INIT_LIST_HEAD(&c->flushes);
	for (i = 0; i < FASTTRACK_NR_CLASSES; i++)
		INIT_LIST_HEAD(&c->dirty[i]);
	e = mflash_scratch(&m->store, c->nr * sizeof(*e));
	if (!e)
		return -ENOMEM;
	for (i = 0; i < c->nr; i++)
		list_add_tail(&e[i].order, &c->free);
	c->nr_free = c->nr;
	mflash_nand_source(m, &cache_source);
	return 0;
}

#ifdef CONFIG_SCSI_MFLASH_KUNIT_TEST
#include "tests/cache-kunit.h"
#endif
