// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: dies and channels.
 *
 * A die does one thing at a time: an array read, whose data then leave over
 * the channel while the die keeps them; a program, whose data come over the
 * channel first; or an erase. Planes work in step, so they are one unit.
 *
 * Reads, erases and map programs are bound to a die and wait in its queue.
 * Programs of the cache and of copies are bound late: a die that is free asks
 * the sources for the next unit, which keeps the policy's order up to the last
 * moment and spreads writes over whatever is free.
 *
 * A program or erase of somebody else is suspended for a foreground read
 * (policy foreground only); the suspended die serves foreground reads, then
 * goes on. While the foreground's commands follow one another a program or erase of
 * background's stays suspended between them, and a die that is free begins none: for as
 * long as MFLASH_KEEP_MAX_NS, and not while the foreground waits for what others have
 * sent.
 *
 * What an operation was for is its owner's: mflash_op.end and struct
 * mflash_source tell the owner that it has ended.
 */
#include <linux/bits.h>
#include <linux/kernel.h>

#include "device.h"
#include "nand.h"
#include "sched.h"

#include <trace/events/mflash.h>

#define FG_READS	(2 * FASTTRACK_FOREGROUND)	/* index into mflash_queue.heads */

/**
 * mflash_die_add - queue an operation on its die
 * @m: the model
 * @op: the operation
 */
void mflash_die_add(struct mflash_model *m, struct mflash_op *op)
{
	mflash_queue_add(&m->dies[op->die].queue, &op->q);
	m->kick_dies |= BIT(op->die);
}

static void channel_add(struct mflash_model *m, struct mflash_op *op)
{
	u32 channel = op->die % m->phone->channels;

	mflash_queue_add(&m->channels[channel].queue, &op->q);
	m->kick_channels |= BIT(channel);
}

static void die_wait(struct mflash_model *m, u32 die, enum mflash_die_state state, u64 ns)
{
	m->dies[die].state = state;
	m->next[MFLASH_EV_DIE(die)] = m->now + ns;
	/* a foreground read may be waiting to suspend what begins here */
	if (state == MFLASH_DIE_BUSY)
		m->kick_dies |= BIT(die);
}

static void die_free(struct mflash_model *m, u32 die)
{
	m->dies[die].op = NULL;
	m->dies[die].state = m->dies[die].array ? MFLASH_DIE_SUSPENDED : MFLASH_DIE_IDLE;
	m->kick_dies |= BIT(die);
	/* another one was refused for this one */
	if (m->die_refused) {
		m->die_refused = false;
		mflash_kick_all_dies(m);
	}
}

static u64 array_ns(struct mflash_model *m, struct mflash_op *op)
{
	const struct mflash_phone *p = m->phone;

	switch (op->type) {
	case MFLASH_OP_ERASE:
		return p->t_erase_ns;
	case MFLASH_OP_MAP_PROG:
		return p->t_prog_slc_ns;
	default:
		return m->dies[op->die].unit.slc ? p->t_prog_slc_ns : p->t_prog_ns;
	}
}

static void array_begin(struct mflash_model *m, struct mflash_op *op)
{
	struct mflash_die *die = &m->dies[op->die];

	die->array = op;
	die->suspended = 0;
	die->op = NULL;
	die_wait(m, op->die, MFLASH_DIE_BUSY, array_ns(m, op));
}

static void program_begin(struct mflash_model *m, u32 d, const struct mflash_source *source,
			  u8 class)
{
	struct mflash_die *die = &m->dies[d];
	struct mflash_unit *unit = &die->unit;
	struct mflash_op *op = &die->prog;

	die->source = source;
	source->take(m, d, unit);
	mflash_count(m, programmed_pages, unit->nr);
	mflash_count(m, padded_pages, unit->slots - unit->nr);
	if (unit->slc)
		mflash_count(m, nand_programs_slc, 1);
	else
		mflash_count(m, nand_programs, 1);
	op->pages = unit->nr;
	op->q.c = (struct mflash_candidate) {
		.seq = ++m->seq, .since = m->now, .class = class, .write = true,
	};
	die->op = op;
	die->state = MFLASH_DIE_IN;
	/* in turn: a block's rows would else run out on the first dies first */
	m->next_die = (d + 1) % m->phone->dies;
	channel_add(m, op);
}

static void op_begin(struct mflash_model *m, struct mflash_op *op)
{
	struct mflash_die *die = &m->dies[op->die];

	mflash_queue_del(&die->queue, &op->q);
	die->op = op;
	switch (op->type) {
	case MFLASH_OP_ERASE:
		mflash_count(m, nand_erases, 1);
		array_begin(m, op);
		break;
	case MFLASH_OP_MAP_PROG:
		die->state = MFLASH_DIE_IN;
		channel_add(m, op);
		break;
	default:
		mflash_count(m, nand_reads, 1);
		die_wait(m, op->die, MFLASH_DIE_SENSE, m->phone->t_read_ns);
		break;
	}
}

static struct mflash_op *foreground_read(struct mflash_die *die)
{
	struct mflash_qnode *n = list_first_entry_or_null(&die->queue.heads[FG_READS],
							  struct mflash_qnode, link);

	return n ? container_of(n, struct mflash_op, q) : NULL;
}

static void die_suspend(struct mflash_model *m, u32 d)
{
	struct mflash_die *die = &m->dies[d];
	struct mflash_op *array = die->array;
	u64 left = m->next[MFLASH_EV_DIE(d)] - m->now;
	bool erase = array->type == MFLASH_OP_ERASE;
	u64 cost = erase ? m->phone->t_susp_erase_ns : m->phone->t_susp_prog_ns;

	if (!foreground_read(die) ||
	    !mflash_may_suspend(&m->sched, FASTTRACK_FOREGROUND, array->q.c.class,
				left, cost, die->suspended))
		return;
	if (!die->suspended)
		die->held = m->now;
	if (!mflash_may_hold(&m->sched, m->now - die->held))
		return;
	die->suspended++;
	die->array_left = left;
	if (erase)
		mflash_count(m, suspensions_erase, 1);
	else
		mflash_count(m, suspensions_program, 1);
	trace_mflash_suspend(d, erase, left, die->suspended);
	die_wait(m, d, MFLASH_DIE_SUSPENDING, cost);
}

/* does the foreground's next command come soon: a device that is full takes none */
static bool command_expected(const struct mflash_model *m)
{
	return mflash_in_burst(&m->sched, &m->burst, m->now) &&
	       (m->burst.nr || m->in_flight < m->phone->queue_depth);
}

/* the device's own work, without which it soon takes no writes of anybody's */
static bool is_needed(const struct mflash_model *m, const struct mflash_op *op)
{
	return m->gc.urgent || op->type == MFLASH_OP_MAP_PROG;
}

/*
 * Is the die kept from a program or an erase of background's, for the foreground's next
 * command? One that is resumed or begun between two of them takes longer than the host
 * needs from one to the next: a read would suspend it, and a program wait for it.
 */
static bool die_kept(struct mflash_model *m, struct mflash_die *die, const struct mflash_op *op,
		     const struct mflash_candidate *c)
{
	if (!command_expected(m)) {
		die->kept = 0;
		return false;
	}
	if (!c->write || c->class != FASTTRACK_BACKGROUND || is_needed(m, op) ||
	    mflash_is_overdue(&m->sched, c->since, m->now))
		return false;
	die->kept = die->kept ?: m->now;
	return mflash_may_keep(m->now - die->kept);
}

static void die_resume(struct mflash_model *m, u32 d)
{
	struct mflash_die *die = &m->dies[d];
	struct mflash_op *op = foreground_read(die);

	if (op && die->array->q.c.class != FASTTRACK_FOREGROUND &&
	    mflash_may_hold(&m->sched, m->now - die->held)) {
		op_begin(m, op);
		return;
	}
	/* what a sync waits for may be in a program that began as somebody else's */
	if (!m->burst.syncs && die_kept(m, die, die->array, &die->array->q.c))
		return;
	mflash_count(m, resumes, 1);
	trace_mflash_resume(d, die->array->type == MFLASH_OP_ERASE, die->array_left,
			    die->suspended);
	die_wait(m, d, MFLASH_DIE_BUSY, die->array_left + m->phone->t_resume_ns);
}

static void die_next(struct mflash_model *m, u32 d)
{
	const struct mflash_source *source[1 + MFLASH_SOURCES_MAX] = {};
	struct mflash_candidate c[1 + MFLASH_SOURCES_MAX];
	struct mflash_die *die = &m->dies[d];
	u64 forced = die->queue.forced;
	struct mflash_qnode *node;
	struct mflash_op *op;
	int n = 0, best;
	u32 i;

	node = mflash_queue_pick(&die->queue, &m->sched, m->now, 0);
	if (node && die->queue.forced != forced) { /* overdue */
		op_begin(m, container_of(node, struct mflash_op, q));
		return;
	}
	if (node)
		c[n++] = node->c;
	for (i = 0; i < m->nr_sources; i++) {
		source[n] = m->sources[i];
		n += source[n]->candidate(m, d, &c[n]);
	}
	if (!n)
		return;
	best = mflash_pick(&m->sched, c, n, m->now, &die->forced);
	op = source[best] ? &die->prog : container_of(node, struct mflash_op, q);
	if (die_kept(m, die, op, &c[best]))
		return;
	if (source[best])
		program_begin(m, d, source[best], c[best].class);
	else
		op_begin(m, op);
}

/**
 * mflash_die_kick - begin what a die can begin now
 * @m: the model
 * @die: which
 */
void mflash_die_kick(struct mflash_model *m, u32 die)
{
	switch (m->dies[die].state) {
	case MFLASH_DIE_IDLE:
		die_next(m, die);
		break;
	case MFLASH_DIE_BUSY:
		die_suspend(m, die);
		break;
	case MFLASH_DIE_SUSPENDED:
		die_resume(m, die);
		break;
	default:
		break;
	}
}

/**
 * mflash_kick_all_dies - every die may have something to begin
 * @m: the model
 */
void mflash_kick_all_dies(struct mflash_model *m)
{
	m->kick_dies = GENMASK(m->phone->dies - 1, 0);
}

/**
 * mflash_nand_hurry - the foreground's flush waits for programs that are under way
 * @m: the model
 * @source: whose
 */
void mflash_nand_hurry(struct mflash_model *m, const struct mflash_source *source)
{
	u32 i;

	for (i = 0; i < m->phone->dies; i++)
		if (m->dies[i].array == &m->dies[i].prog && m->dies[i].source == source &&
		    m->dies[i].unit.hurry)
			m->dies[i].prog.q.c.class = FASTTRACK_FOREGROUND;
}

static void program_end(struct mflash_model *m, struct mflash_op *op)
{
	struct mflash_die *die = &m->dies[op->die];

	die->source->programmed(m, &die->unit);
	die->unit.nr = 0;
}

static void array_end(struct mflash_model *m, u32 d)
{
	struct mflash_op *op = m->dies[d].array;

	m->dies[d].array = NULL;
	if (op->q.c.class != FASTTRACK_FOREGROUND)
		m->dies[d].kept = 0;
	op->end(m, op);
	die_free(m, d);
}

/**
 * mflash_die_event - a die's event is due
 * @m: the model
 * @die: which
 */
void mflash_die_event(struct mflash_model *m, u32 die)
{
	struct mflash_die *d = &m->dies[die];

	switch (d->state) {
	case MFLASH_DIE_SENSE:
		d->state = MFLASH_DIE_OUT;
		channel_add(m, d->op);
		break;
	case MFLASH_DIE_BUSY:
		array_end(m, die);
		break;
	case MFLASH_DIE_SUSPENDING:
		d->state = MFLASH_DIE_SUSPENDED;
		m->kick_dies |= BIT(die);
		break;
	default:
		WARN_ONCE(1, "mflash: event of die %u in state %d\n", die, d->state);
		break;
	}
}

/**
 * mflash_channel_kick - begin the next transfer of a channel
 * @m: the model
 * @channel: which
 */
void mflash_channel_kick(struct mflash_model *m, u32 channel)
{
	struct mflash_channel *ch = &m->channels[channel];
	struct mflash_qnode *n;

	if (ch->op)
		return;
	n = mflash_queue_pick(&ch->queue, &m->sched, m->now, 0);
	if (!n)
		return;
	mflash_queue_del(&ch->queue, n);
	ch->op = container_of(n, struct mflash_op, q);
	m->next[MFLASH_EV_CHANNEL(channel)] =
		m->now + mflash_transfer_ns(ch->op->pages, m->phone->channel_mbps);
}

/**
 * mflash_channel_event - a channel's transfer is over
 * @m: the model
 * @channel: which
 */
void mflash_channel_event(struct mflash_model *m, u32 channel)
{
	struct mflash_op *op = m->channels[channel].op;
	u32 die = op->die;

	m->channels[channel].op = NULL;
	m->kick_channels |= BIT(channel);
	if (op->type == MFLASH_OP_PROG || op->type == MFLASH_OP_MAP_PROG) {
		array_begin(m, op);
		return;
	}
	op->end(m, op);
	die_free(m, die);
}

/**
 * mflash_nand_init - all dies and channels idle
 * @m: the model
 */
void mflash_nand_init(struct mflash_model *m)
{
	u32 i;

	for (i = 0; i < MFLASH_DIES_MAX; i++) {
		mflash_queue_init(&m->dies[i].queue);
		m->dies[i].prog.type = MFLASH_OP_PROG;
		m->dies[i].prog.die = i;
		m->dies[i].prog.end = program_end;
	}
	for (i = 0; i < MFLASH_CHANNELS_MAX; i++)
		mflash_queue_init(&m->channels[i].queue);
}

/**
 * mflash_nand_source - let somebody offer pages to program
 * @m: the model
 * @source: asked after those that registered before
 */
void mflash_nand_source(struct mflash_model *m, const struct mflash_source *source)
{
	if (!WARN_ON(m->nr_sources == MFLASH_SOURCES_MAX))
		m->sources[m->nr_sources++] = source;
}

#ifdef CONFIG_SCSI_MFLASH_KUNIT_TEST
#include "tests/nand-kunit.h"
#endif
