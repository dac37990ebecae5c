// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: the order in the device's queues.
 *
 * Every queue (commands before the firmware, dies, channels, the link, the
 * write-out of the cache) asks mflash_pick(), so that one order holds in all
 * of them. mflash_rank() gives a policy's order, arrival breaks ties.
 *
 * Neutral stands between foreground and background: system services and
 * kernel threads often work for whoever is in front, but nobody said so. Their
 * reads are as good as the foreground's; the host sends few beside these.
 *
 * Nothing starves: what waited longer than wait_max_ns is served out of
 * order, oldest first, but only one thing in wait_max_ns / 8, so that a long
 * queue of overdue background work does not turn the order into arrival order. But
 * overdue writes of background's are in turn with neutral ones.
 * A program may wait that long before it begins, and once more suspended.
 */
#include <linux/bitmap.h>
#include <linux/kernel.h>

#include "sched.h"

#define MFLASH_FORCED_SHARE	8	/* overdue work is served this often in wait_max_ns */

const char * const mflash_policy_names[MFLASH_NR_POLICIES] = {
	[MFLASH_FIFO]		= "fifo",
	[MFLASH_READ_FIRST]	= "read-first",
	[MFLASH_FOREGROUND]	= "foreground",
};

/**
 * mflash_rank - place in the order of a policy; lower is served first
 * @policy: the policy
 * @class: whose it is
 * @write: it writes
 *
 * Return: 0 to 4.
 */
unsigned int mflash_rank(enum mflash_policy policy, u8 class, bool write)
{
	static const u8 foreground[FASTTRACK_NR_CLASSES][2] = {
		[FASTTRACK_FOREGROUND]	= { 0, 1 },
		[FASTTRACK_NEUTRAL]	= { 0, 2 },
		[FASTTRACK_BACKGROUND]	= { 3, 4 },
	};

	switch (policy) {
	case MFLASH_FOREGROUND:
		return foreground[class][write];
	case MFLASH_READ_FIRST:
		return write;
	default:
		return 0;
	}
}

static bool before(const struct mflash_sched *sched, const struct mflash_candidate *a,
		   const struct mflash_candidate *b)
{
	unsigned int ra = mflash_rank(sched->policy, a->class, a->write);
	unsigned int rb = mflash_rank(sched->policy, b->class, b->write);

	return ra != rb ? ra < rb : a->seq < b->seq;
}

/*
 * An overdue write of background's, which came first, is in turn with what is neutral:
 * services may write without end, and the host does not know that they are in the way of
 * what it has sent before.
 */
static bool ages(const struct mflash_sched *sched, const struct mflash_candidate *c,
		 const struct mflash_candidate *best, u64 now)
{
	return c->class == FASTTRACK_BACKGROUND && c->write &&
	       best->class == FASTTRACK_NEUTRAL && best->write && c->seq < best->seq &&
	       mflash_is_overdue(sched, c->since, now);
}

/**
 * mflash_first - which candidate is the first in the order
 * @sched: the knobs
 * @c: candidates
 * @n: how many
 * @now: time, ns
 *
 * Return: its index, -1 if @n is 0.
 */
int mflash_first(const struct mflash_sched *sched, const struct mflash_candidate *c, int n,
		 u64 now)
{
	int first = -1;
	int i;

	for (i = 0; i < n; i++)
		if (first < 0 || before(sched, &c[i], &c[first]))
			first = i;
	for (i = 0; i < n; i++)
		if (ages(sched, &c[i], &c[first], now))
			return i;
	return first;
}

/**
 * mflash_pick - which candidate is served next
 * @sched: the knobs
 * @c: candidates
 * @n: how many
 * @now: time, ns
 * @forced: when the queue last served something overdue out of order; updated
 *
 * Return: its index, -1 if @n is 0.
 */
int mflash_pick(const struct mflash_sched *sched, const struct mflash_candidate *c,
		int n, u64 now, u64 *forced)
{
	int first = mflash_first(sched, c, n, now);
	int oldest = first;
	int i;

	for (i = 0; i < n; i++)
		if (c[i].since < c[oldest].since)
			oldest = i;
	if (first == oldest || !mflash_is_overdue(sched, c[oldest].since, now) ||
	    !mflash_may_force(sched, *forced, now))
		return first;
	*forced = now;
	return oldest;
}

/**
 * mflash_may_suspend - is a running program or erase suspended for a read
 * @sched: the knobs
 * @reader: class of the read
 * @running: class of the program or erase
 * @left_ns: what it still needs
 * @cost_ns: time until the die would be free for the read
 * @suspended: how often it was suspended already
 *
 * Return: true only under the policy foreground, for a read of the foreground
 * and somebody else's operation, when that is quicker than to wait.
 */
bool mflash_may_suspend(const struct mflash_sched *sched, u8 reader, u8 running,
			u64 left_ns, u64 cost_ns, u32 suspended)
{
	return sched->policy == MFLASH_FOREGROUND &&
	       reader == FASTTRACK_FOREGROUND && running != FASTTRACK_FOREGROUND &&
	       left_ns > cost_ns && suspended < sched->suspend_max;
}

/**
 * mflash_may_hold - does a suspended operation stay suspended for one more read
 * @sched: the knobs
 * @held_ns: time since its first suspension
 *
 * Return: false once it waited for as long as anything may, so that reads that
 * never stop do not hold it for ever.
 */
bool mflash_may_hold(const struct mflash_sched *sched, u64 held_ns)
{
	return !sched->wait_max_ns || held_ns < sched->wait_max_ns;
}

/**
 * mflash_burst_begin - a command of the foreground's has arrived
 * @burst: its commands
 * @depends: the foreground waits for what others have sent
 * @sync: it is a flush or a FUA write
 * @now: time, ns
 */
void mflash_burst_begin(struct mflash_burst *burst, bool depends, bool sync, u64 now)
{
	burst->follows = !depends && (burst->nr ||
				      (burst->end && now < burst->end + MFLASH_BURST_GAP_NS));
	burst->nr++;
	burst->syncs += sync;
}

/**
 * mflash_burst_end - a command of the foreground's is complete
 * @burst: its commands
 * @sync: it was a flush or a FUA write
 * @now: time, ns
 */
void mflash_burst_end(struct mflash_burst *burst, bool sync, u64 now)
{
	burst->nr--;
	burst->syncs -= sync;
	burst->end = now;
}

/**
 * mflash_in_burst - do the foreground's commands follow one another
 * @sched: the knobs
 * @burst: its commands
 * @now: time, ns
 *
 * Return: true from the second command on until there was none for MFLASH_BURST_GAP_NS,
 * under the policy foreground; false while the foreground waits for what others have sent.
 */
bool mflash_in_burst(const struct mflash_sched *sched, const struct mflash_burst *burst, u64 now)
{
	return sched->policy == MFLASH_FOREGROUND && burst->follows &&
	       (burst->nr || now < burst->end + MFLASH_BURST_GAP_NS);
}

/**
 * mflash_may_keep - is a die kept for a burst of the foreground's
 * @kept_ns: for how long it has been kept from somebody else's programs and erases
 *
 * Return: false once they are due.
 */
bool mflash_may_keep(u64 kept_ns)
{
	return kept_ns < MFLASH_KEEP_MAX_NS;
}

/**
 * mflash_is_overdue - has it been passed over for as long as anything may
 * @sched: the knobs
 * @since: time of arrival, ns
 * @now: time, ns
 */
bool mflash_is_overdue(const struct mflash_sched *sched, u64 since, u64 now)
{
	return sched->wait_max_ns && now >= since + sched->wait_max_ns;
}

/**
 * mflash_may_force - may something overdue be served out of order again
 * @sched: the knobs
 * @forced: when something last was
 * @now: time, ns
 */
bool mflash_may_force(const struct mflash_sched *sched, u64 forced, u64 now)
{
	return sched->wait_max_ns && now >= forced + sched->wait_max_ns / MFLASH_FORCED_SHARE;
}

/**
 * mflash_queue_init - make an empty queue
 * @q: the queue
 */
void mflash_queue_init(struct mflash_queue *q)
{
	int i;

	for (i = 0; i < MFLASH_HEADS; i++)
		INIT_LIST_HEAD(&q->heads[i]);
	q->forced = 0;
	q->used = 0;
	q->count = 0;
}

static int head_index(const struct mflash_qnode *n)
{
	return MFLASH_HEAD(n->c.class, n->c.write);
}

/**
 * mflash_queue_add - put a node behind those of its class and direction
 * @q: the queue
 * @n: the node
 */
void mflash_queue_add(struct mflash_queue *q, struct mflash_qnode *n)
{
	int i = head_index(n);

	list_add_tail(&n->link, &q->heads[i]);
	q->used |= BIT(i);
	q->count++;
}

/**
 * mflash_queue_return - put a node back before those of its class and direction
 * @q: the queue
 * @n: the node
 */
void mflash_queue_return(struct mflash_queue *q, struct mflash_qnode *n)
{
	int i = head_index(n);

	list_add(&n->link, &q->heads[i]);
	q->used |= BIT(i);
	q->count++;
}

/**
 * mflash_queue_del - take a node out
 * @q: the queue
 * @n: the node
 */
void mflash_queue_del(struct mflash_queue *q, struct mflash_qnode *n)
{
	int i = head_index(n);

	list_del_init(&n->link);
	if (list_empty(&q->heads[i]))
		q->used &= ~BIT(i);
	q->count--;
}

/**
 * mflash_queue_pick - the node to serve next; it stays in the queue
 * @q: the queue
 * @sched: the knobs
 * @now: time, ns
 * @blocked: heads to pass over, as bits
 *
 * Return: the node, or NULL.
 */
struct mflash_qnode *mflash_queue_pick(struct mflash_queue *q, const struct mflash_sched *sched,
				       u64 now, unsigned long blocked)
{
	struct mflash_candidate c[MFLASH_HEADS];
	struct mflash_qnode *node[MFLASH_HEADS];
	unsigned long used = q->used & ~blocked;
	unsigned int i;
	int n = 0;

	for_each_set_bit(i, &used, MFLASH_HEADS) {
		node[n] = list_first_entry(&q->heads[i], struct mflash_qnode, link);
		c[n] = node[n]->c;
		n++;
	}
	if (!n)
		return NULL;
	return node[n == 1 ? 0 : mflash_pick(sched, c, n, now, &q->forced)];
}

#ifdef CONFIG_SCSI_MFLASH_KUNIT_TEST
#include "tests/sched-kunit.h"
#endif
