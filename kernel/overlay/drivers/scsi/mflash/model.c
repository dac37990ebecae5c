// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: the way of a command through the device.
 *
 *   submit -> firmware -> map pages -> dies -> channels -> link -> done   (read)
 *   submit -> firmware -> link -> cache -> done                           (write)
 *   submit -> firmware -> everything cached is programmed -> done         (flush)
 *
 * The firmware and the link are serial; both ask sched.c what is next. A write
 * takes the link only for as many pages as the cache has room for, so that a
 * read or a better write can go between.
 *
 * mflash_advance() handles events in the order of their times, equal times in
 * the order of the servers, so the same input gives the same times.
 */
#include <linux/bitmap.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "cache.h"
#include "ftl.h"
#include "gc.h"
#include "mapcache.h"
#include "model.h"
#include "nand.h"
#include "op.h"
#include "power.h"
#include "sched.h"
#include "store.h"

#include <trace/events/mflash.h>

#define LINK_CHUNK	16		/* pages of a write that cross the link in one go: 64 KiB */
#define IDLE_NS		50000000ULL	/* no command for so long: the device is idle */
#define WAIT_MAX_NS	100000000ULL	/* SmartIO holds writes back for at most 100 ms */
#define SLC_RESERVE	25		/* 512 MiB of 2 GiB: a film, or an app's update */
#define SUSPEND_MAX	16		/* with 100 us each, a program of 2 ms at most doubles */

/* host reads are at most one operation a page; the rest is bounded by map_full() and gc */
#define OPS_HOST	(MFLASH_TAGS_MAX * MFLASH_CMD_PAGES)
#define OPS_OTHER	(MFLASH_TAGS_MAX + (4 + 2 * MFLASH_UNIT_MAX) * MFLASH_DIES_MAX)

static size_t scratch_size(struct mflash_model *m)
{
	struct mflash_ftl *f = &m->ftl;
	u32 copies = 2 * m->phone->dies * mflash_unit_slots(m, false);
	u32 cached = m->cache.nr;
	size_t size = 0;

	size += f->pages * sizeof(*f->map);
	size += f->nr_blocks * sizeof(*f->blocks);
	size += (f->pages >> MFLASH_MAP_SHIFT) * sizeof(struct mflash_map_page);
	size += (copies + cached) * sizeof(struct mflash_entry);
	size += (OPS_HOST + OPS_OTHER + copies) * sizeof(struct mflash_op);
	size += OPS_HOST * sizeof(struct mflash_desc);
	size += (f->pages + OPS_HOST + cached) * (sizeof(u32) + 1);
	/* 16 pages for rounding, and the bounce pages of the SCSI side */
	return PAGE_ALIGN(size) + 16 * PAGE_SIZE + MFLASH_TAGS_MAX * MFLASH_PAGE_SIZE;
}

static int tables_init(struct mflash_model *m)
{
	m->desc = mflash_scratch(&m->store, OPS_HOST * sizeof(*m->desc));
	return m->desc ? mflash_ops_init(m, OPS_HOST + OPS_OTHER + m->gc.nr_free) : -ENOMEM;
}

/**
 * mflash_model_init - make a device, recovering what its store holds
 * @m: zeroed
 * @config: what to make
 *
 * Return: 0, -ENOMEM, -EINVAL, or what opening the store gave.
 */
int mflash_model_init(struct mflash_model *m, const struct mflash_config *config)
{
	int ret, i;

	m->phone = config->phone;
	m->seed = config->seed;
	m->sched.policy = MFLASH_READ_FIRST;
	m->sched.wait_max_ns = WAIT_MAX_NS;
	m->sched.suspend_max = SUSPEND_MAX;
	m->sched.slc_reserve = SLC_RESERVE;
	m->idle_ns = IDLE_NS;
	m->ftl.use_buffer = config->write_buffer;
	INIT_LIST_HEAD(&m->done);
	mflash_queue_init(&m->fw_queue);
	mflash_queue_init(&m->link[0].queue);
	mflash_queue_init(&m->link[1].queue);
	for (i = 0; i < MFLASH_NR_EVENTS; i++)
		m->next[i] = U64_MAX;
	mflash_nand_init(m);

	ret = mflash_ftl_layout(m, config->size_mib);
	if (ret)
		return ret;
	m->cache.nr = mflash_cache_pages(m);
	m->store.scratch_size = scratch_size(m);
	ret = mflash_store_open(m, &config->place);
	if (ret)
		return ret;
	ret = mflash_ftl_init(m) ?: mflash_map_init(m) ?: mflash_cache_init(m) ?:
	      mflash_gc_init(m) ?: tables_init(m);
	if (ret) {
		mflash_store_close(&m->store);
		return ret;
	}
	mflash_ftl_recover(m);
	m->kick_gc = true; /* the last life may have ended short of free blocks */
	return 0;
}

/**
 * mflash_model_exit - give the memory back
 * @m: the model
 */
void mflash_model_exit(struct mflash_model *m)
{
	mflash_store_close(&m->store);
}

static void account(struct mflash_model *m, struct mflash_cmd *cmd)
{
	BUILD_BUG_ON(MFLASH_STAT_write_neutral != FASTTRACK_NR_CLASSES * MFLASH_WRITE);
	BUILD_BUG_ON(MFLASH_STAT_unmap_neutral != FASTTRACK_NR_CLASSES * MFLASH_UNMAP);
	m->stats[FASTTRACK_NR_CLASSES * cmd->type + cmd->class]++;
	if (cmd->type == MFLASH_READ)
		mflash_count(m, read_bytes, cmd->pages * MFLASH_PAGE_SIZE);
	if (cmd->type == MFLASH_WRITE)
		mflash_count(m, write_bytes, cmd->pages * MFLASH_PAGE_SIZE);
	mflash_count(m, fua, cmd->fua);
	m->stats[MFLASH_STAT_max_queue] = max_t(u64, m->stats[MFLASH_STAT_max_queue],
						m->in_flight);
}

/* dies are kept for a burst of the foreground's, which ends, and not for ever */
static void burst_look(struct mflash_model *m)
{
	if (m->next[MFLASH_EV_BURST] == U64_MAX &&
	    mflash_in_burst(&m->sched, &m->burst, m->now))
		m->next[MFLASH_EV_BURST] = m->now + MFLASH_BURST_GAP_NS;
}

static void burst_event(struct mflash_model *m)
{
	mflash_kick_all_dies(m);
	burst_look(m);
}

/**
 * mflash_submit - a command arrives
 * @m: the model
 * @cmd: type, class, fua, tag, lpn, pages and desc are set, the range is right
 * @now: time, ns
 */
void mflash_submit(struct mflash_model *m, struct mflash_cmd *cmd, u64 now)
{
	mflash_advance(m, now);
	cmd->submitted = m->now;
	cmd->error = 0;
	cmd->sent = 0;
	cmd->pending = 0;
	cmd->map_wait = 0;
	cmd->target = 0;
	cmd->q.cmd = true;
	cmd->q.c = (struct mflash_candidate) {
		.seq = ++m->seq, .since = m->now, .class = cmd->class,
		.write = cmd->type != MFLASH_READ,
	};
	INIT_LIST_HEAD(&cmd->done);
	m->active[cmd->tag] = cmd;
	m->in_flight++;
	m->next[MFLASH_EV_IDLE] = U64_MAX;
	m->idle = false;
	account(m, cmd);
	if (cmd->class == FASTTRACK_FOREGROUND) {
		mflash_burst_begin(&m->burst, cmd->depends, mflash_is_sync(cmd), m->now);
		burst_look(m);
		if (cmd->depends || mflash_is_sync(cmd))
			mflash_kick_all_dies(m);
	}
	trace_mflash_start(cmd->tag, cmd->type, cmd->class, cmd->lpn, cmd->pages, m->in_flight,
			   0);
	if (m->cut_after && !--m->cut_after)
		mflash_power_cut(m);
	if (m->dead) {
		if (m->active[cmd->tag]) {
			cmd->error = -EIO;
			mflash_cmd_done(m, cmd);
		}
		return;
	}
	mflash_queue_add(&m->fw_queue, &cmd->q);
	mflash_advance(m, now);
}

static u64 firmware_ns(const struct mflash_phone *p, const struct mflash_cmd *cmd)
{
	switch (cmd->type) {
	case MFLASH_READ:
		return p->fw_read_ns + cmd->pages * p->fw_page_ns;
	case MFLASH_WRITE:
		return p->fw_write_ns + cmd->pages * p->fw_page_ns +
		       (cmd->fua ? p->fw_flush_ns : 0);
	case MFLASH_FLUSH:
		return p->fw_flush_ns;
	default:
		return p->fw_unmap_ns;
	}
}

static void firmware_kick(struct mflash_model *m)
{
	struct mflash_qnode *n;

	if (m->fw_cmd || !m->fw_queue.count)
		return;
	n = mflash_queue_pick(&m->fw_queue, &m->sched, m->now, 0);
	mflash_queue_del(&m->fw_queue, n);
	m->fw_cmd = container_of(n, struct mflash_cmd, q);
	m->next[MFLASH_EV_FW] = m->now + firmware_ns(m->phone, m->fw_cmd);
}

static void link_add(struct mflash_model *m, u32 direction, struct mflash_qnode *n)
{
	u32 i = m->phone->half_duplex ? 0 : direction;

	mflash_queue_add(&m->link[i].queue, n);
	m->kick_links |= BIT(i);
}

/* pages for a read are in the controller */
static void read_end(struct mflash_model *m, struct mflash_op *op)
{
	link_add(m, 0, &op->q);
}

static struct mflash_op *read_op(struct mflash_model *m, struct mflash_cmd *cmd,
				 enum mflash_op_type type)
{
	struct mflash_op *op = mflash_op_get(m, type, cmd->class, read_end);

	op->q.c.since = cmd->submitted;
	op->cmd = cmd;
	op->pages = 0;
	return op;
}

/* one operation for what is next to each other in one array read */
static void read_expand(struct mflash_model *m, struct mflash_cmd *cmd)
{
	struct mflash_op *op = NULL, *ram = NULL;
	u32 i, cur, last = 0;

	cmd->pending = cmd->pages;
	for (i = 0; i < cmd->pages; i++) {
		struct mflash_entry *e = mflash_cache_find(m, cmd->lpn + i);

		cur = e ? 0 : m->ftl.map[cmd->lpn + i];
		mflash_count(m, cache_hits, !!e);
		if (!cur) {
			ram = ram ?: read_op(m, cmd, MFLASH_OP_RAM);
			ram->pages++;
			continue;
		}
		if (op && (cur != last + 1 || (cur - 1) % m->ftl.read_slots == 0)) {
			mflash_die_add(m, op);
			op = NULL;
		}
		if (!op) {
			op = read_op(m, cmd, MFLASH_OP_READ);
			op->die = mflash_ftl_die(m, cur - 1);
		}
		op->pages++;
		last = cur;
	}
	if (op)
		mflash_die_add(m, op);
	if (ram)
		link_add(m, 0, &ram->q);
}

/* a map page for a read has come */
static void map_read_end(struct mflash_model *m, struct mflash_op *op)
{
	if (!--op->cmd->map_wait)
		read_expand(m, op->cmd);
	mflash_op_put(m, op);
}

static void firmware_event(struct mflash_model *m)
{
	struct mflash_cmd *cmd = m->fw_cmd;

	m->fw_cmd = NULL;
	switch (cmd->type) {
	case MFLASH_READ:
		mflash_map_read(m, cmd, map_read_end);
		if (!cmd->map_wait)
			read_expand(m, cmd);
		break;
	case MFLASH_WRITE:
		link_add(m, 1, &cmd->q);
		break;
	case MFLASH_FLUSH:
		mflash_cache_flush(m, cmd);
		break;
	default:
		mflash_cache_trim(m, cmd->lpn, cmd->pages);
		mflash_ftl_trim(m, cmd->lpn, cmd->pages);
		mflash_kick_all_dies(m);
		mflash_cmd_done(m, cmd);
		break;
	}
}

static void link_kick(struct mflash_model *m, u32 i)
{
	struct mflash_link *link = &m->link[i];
	const struct mflash_phone *p = m->phone;
	unsigned long blocked = 0;
	struct mflash_qnode *n;
	u64 ns;

	if (link->busy || !link->queue.count)
		return;
	for (u8 class = 0; class < FASTTRACK_NR_CLASSES; class++)
		if (!mflash_cache_room(m, class))
			blocked |= BIT(MFLASH_HEAD(class, 1));
	n = mflash_queue_pick(&link->queue, &m->sched, m->now, blocked);
	if (!m->cache.nr_free && mflash_cache_is_due(m))
		mflash_kick_all_dies(m);
	if (!n) {
		mflash_count(m, cache_full, 1);
		return;
	}
	mflash_queue_del(&link->queue, n);
	link->busy = n;
	if (n->cmd) {
		struct mflash_cmd *cmd = container_of(n, struct mflash_cmd, q);

		link->chunk = min3(cmd->pages - cmd->sent, mflash_cache_room(m, cmd->class),
				   (u32)LINK_CHUNK);
		m->cache.nr_free -= link->chunk;
		ns = mflash_transfer_ns(link->chunk, p->link_write_mbps) +
		     (cmd->sent ? 0 : p->link_cmd_ns);
	} else {
		struct mflash_op *op = container_of(n, struct mflash_op, q);

		ns = mflash_transfer_ns(op->pages, p->link_read_mbps) +
		     (op->cmd->pending == op->cmd->pages ? p->link_cmd_ns : 0);
	}
	m->next[MFLASH_EV_LINK(i)] = m->now + ns;
}

static void link_event(struct mflash_model *m, u32 i)
{
	struct mflash_link *link = &m->link[i];
	struct mflash_qnode *n = link->busy;

	link->busy = NULL;
	m->kick_links |= BIT(i);
	if (n->cmd) {
		struct mflash_cmd *cmd = container_of(n, struct mflash_cmd, q);
		bool more = cmd->sent + link->chunk < cmd->pages;

		mflash_cache_write(m, cmd, link->chunk);
		if (more)
			mflash_queue_return(&link->queue, n);
		if (mflash_cache_is_due(m))
			mflash_kick_all_dies(m);
	} else {
		struct mflash_op *op = container_of(n, struct mflash_op, q);

		op->cmd->pending -= op->pages;
		if (!op->cmd->pending)
			mflash_cmd_done(m, op->cmd);
		mflash_op_put(m, op);
	}
}

static void idle_event(struct mflash_model *m)
{
	m->idle = true;
	m->kick_gc = true;
	mflash_kick_all_dies(m);
}

static void kick(struct mflash_model *m)
{
	unsigned long bits;
	u32 i, first;

	firmware_kick(m);
	while (m->kick_dies | m->kick_channels | m->kick_links | m->kick_gc) {
		if (m->kick_gc) {
			m->kick_gc = false;
			mflash_gc_kick(m);
		}
		bits = m->kick_links;
		m->kick_links = 0;
		for (i = 0; i < 2; i++)
			if (bits & BIT(i))
				link_kick(m, i);
		bits = m->kick_dies;
		m->kick_dies = 0;
		first = m->next_die;
		for (i = 0; bits && i < m->phone->dies; i++) {
			u32 die = (first + i) % m->phone->dies;

			if (__test_and_clear_bit(die, &bits))
				mflash_die_kick(m, die);
		}
		bits = m->kick_channels;
		m->kick_channels = 0;
		for_each_set_bit(i, &bits, MFLASH_CHANNELS_MAX)
			mflash_channel_kick(m, i);
	}
}

static void handle(struct mflash_model *m, u32 event)
{
	m->next[event] = U64_MAX;
	mflash_count(m, events, 1);
	if (event == MFLASH_EV_FW)
		firmware_event(m);
	else if (event < MFLASH_EV_IDLE)
		link_event(m, event - MFLASH_EV_LINK(0));
	else if (event == MFLASH_EV_IDLE)
		idle_event(m);
	else if (event == MFLASH_EV_BURST)
		burst_event(m);
	else if (event < MFLASH_EV_DIE(0))
		mflash_channel_event(m, event - MFLASH_EV_CHANNEL(0));
	else
		mflash_die_event(m, event - MFLASH_EV_DIE(0));
}

static u32 first_event(const struct mflash_model *m)
{
	u32 i, first = 0;

	for (i = 1; i < MFLASH_EV_DIE(m->phone->dies); i++)
		if (m->next[i] < m->next[first])
			first = i;
	return first;
}

/**
 * mflash_next_event - when the model must be advanced next
 * @m: the model
 *
 * Return: time, ns; U64_MAX: not before something is submitted.
 */
u64 mflash_next_event(const struct mflash_model *m)
{
	return m->next[first_event(m)];
}

static u64 link_bound(const struct mflash_model *m, u32 i)
{
	const struct mflash_link *link = &m->link[i];
	const struct mflash_cmd *cmd;
	u32 left;

	if (!link->busy->cmd)
		return 0;
	cmd = container_of(link->busy, struct mflash_cmd, q);
	left = cmd->pages - cmd->sent - link->chunk;
	if (!left)
		return 0;
	/* somebody else's page may be next */
	return link->queue.count ? 0 : mflash_transfer_ns(left, m->phone->link_write_mbps);
}

static u64 channel_bound(const struct mflash_model *m, u32 i)
{
	const struct mflash_op *op = m->channels[i].op;
	u64 next = mflash_transfer_ns(1, m->phone->channel_mbps);

	if (op->type == MFLASH_OP_MAP_READ)
		return 0;
	if (op->type != MFLASH_OP_READ)
		return next;
	return min(next, mflash_transfer_ns(op->pages, m->phone->link_read_mbps));
}

static u64 die_bound(const struct mflash_model *m, u32 i)
{
	const struct mflash_die *die = &m->dies[i];

	if (die->state != MFLASH_DIE_SENSE || die->op->type != MFLASH_OP_READ)
		return 0;
	return mflash_transfer_ns(die->op->pages, m->phone->channel_mbps) +
	       mflash_transfer_ns(die->op->pages, m->phone->link_read_mbps);
}

/* least time from an event to the completion of a command by what follows from it */
static u64 event_bound(const struct mflash_model *m, u32 event)
{
	if (event == MFLASH_EV_LINK(0) || event == MFLASH_EV_LINK(1))
		return link_bound(m, event - MFLASH_EV_LINK(0));
	if (event >= MFLASH_EV_DIE(0))
		return die_bound(m, event - MFLASH_EV_DIE(0));
	if (event >= MFLASH_EV_CHANNEL(0))
		return channel_bound(m, event - MFLASH_EV_CHANNEL(0));
	return 0;
}

/**
 * mflash_next_completion - before when the model need not be advanced
 * @m: the model
 *
 * Most events only lead to others. A caller that waits for completions alone
 * can let several of them come due, which saves timer interrupts.
 *
 * Return: time, ns, not later than the next completion; U64_MAX: nothing is in
 * the device.
 */
u64 mflash_next_completion(const struct mflash_model *m)
{
	u64 first = U64_MAX;
	u32 i;

	if (!m->in_flight)
		return U64_MAX;
	for (i = 0; i < MFLASH_EV_DIE(m->phone->dies); i++)
		if (m->next[i] < first)
			first = min(first, m->next[i] + event_bound(m, i));
	return first;
}

/**
 * mflash_advance - let everything happen that is due
 * @m: the model
 * @now: time, ns; completed commands are on m->done afterwards
 */
void mflash_advance(struct mflash_model *m, u64 now)
{
	u32 event;

	if (m->dead)
		return;
	for (;;) {
		kick(m);
		event = first_event(m);
		if (m->next[event] > now)
			break;
		m->now = m->next[event];
		handle(m, event);
	}
	m->now = max(m->now, now);
}

/**
 * mflash_resolve - content of a logical page
 * @m: the model
 * @lpn: the page
 * @desc: filled in; zeroes where nothing was written
 *
 * Return: something was written.
 */
bool mflash_resolve(struct mflash_model *m, u32 lpn, struct mflash_desc *desc)
{
	struct mflash_entry *e = mflash_cache_find(m, lpn);
	u32 cur = m->ftl.map[lpn];

	*desc = (struct mflash_desc) {};
	if (e) {
		*desc = e->desc;
	} else if (cur) {
		desc->word = m->store.oob[cur - 1].word;
		desc->slot = m->store.oob[cur - 1].slot;
	}
	return e || cur;
}
