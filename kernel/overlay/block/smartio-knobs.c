// SPDX-License-Identifier: GPL-2.0
/* The knobs of the elevator smartio in sysfs, and its state in debugfs. */
#include <linux/blkdev.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/seq_file.h>

#include "blk-mq.h"
#include "elevator-knob.h"
#include "smartio-iosched.h"

#define SMARTIO_KNOB(_name, _field, _lowest, _highest, _unit)		\
	ELV_KNOB(smartio, _name,					\
		 &((struct smartio_data *)e->elevator_data)->knobs._field, \
		 _lowest, _highest, _unit)

#define SMARTIO_DEPTH(_name, _kind)					\
	SMARTIO_KNOB(_name, depth[_kind], 0, BLK_MQ_MAX_DEPTH, 1)

SMARTIO_KNOB(write_wait_ms, write_wait, 1, 60 * MSEC_PER_SEC, NSEC_PER_MSEC)
SMARTIO_KNOB(prio_aging_ms, prio_aging, 1, 600 * MSEC_PER_SEC, NSEC_PER_MSEC)
SMARTIO_DEPTH(sequential_read_depth, SMARTIO_SEQUENTIAL_READ)
SMARTIO_DEPTH(random_read_depth, SMARTIO_RANDOM_READ)
SMARTIO_DEPTH(sequential_write_depth, SMARTIO_SEQUENTIAL_WRITE)
SMARTIO_DEPTH(random_write_depth, SMARTIO_RANDOM_WRITE)

static ssize_t smartio_write_wait_max_us_show(struct elevator_queue *e,
					      char *page)
{
	struct smartio_data *smartio = e->elevator_data;
	u64 longest;

	spin_lock(&smartio->smartio_lock);
	longest = smartio->write_wait_max;
	spin_unlock(&smartio->smartio_lock);
	return sysfs_emit(page, "%llu\n", div_u64(longest, NSEC_PER_USEC));
}

#define SMARTIO_ATTR(_name) \
	__ATTR(_name, 0644, smartio_##_name##_show, smartio_##_name##_store)

struct elv_fs_entry smartio_attrs[] = {
	SMARTIO_ATTR(write_wait_ms),
	SMARTIO_ATTR(prio_aging_ms),
	SMARTIO_ATTR(sequential_read_depth),
	SMARTIO_ATTR(random_read_depth),
	SMARTIO_ATTR(sequential_write_depth),
	SMARTIO_ATTR(random_write_depth),
	__ATTR(write_wait_max_us, 0444, smartio_write_wait_max_us_show, NULL),
	__ATTR_NULL
};

#ifdef CONFIG_BLK_DEBUG_FS
static int smartio_state_show(void *data, struct seq_file *m)
{
	static const char * const names[] = {
		[SMARTIO_READS]		= "reads",
		[SMARTIO_WRITES]	= "writes",
	};
	struct request_queue *q = data;
	struct smartio_data *smartio = q->elevator->elevator_data;

	spin_lock(&smartio->smartio_lock);
	for (int i = 0; i < SMARTIO_NR_DIRECTIONS; i++)
		seq_printf(m, "%s queued %u in_flight %d levels %lx\n",
			   names[i], smartio->queue[i].queued,
			   atomic_read(&smartio->in_flight[i]),
			   smartio->queue[i].busy);
	seq_printf(m, "held %d\n", smartio->held);
	spin_unlock(&smartio->smartio_lock);
	return 0;
}

const struct blk_mq_debugfs_attr smartio_queue_debugfs_attrs[] = {
	{"state", 0400, smartio_state_show},
	{},
};
#endif
