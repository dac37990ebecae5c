// SPDX-License-Identifier: GPL-2.0
/* The I/O dispatcher's knobs in sysfs, and its state in debugfs. */
#include <linux/blkdev.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/seq_file.h>

#include "blk-mq.h"
#include "elevator-knob.h"
#include "fasttrack-iosched.h"

#define FTI_KNOB(_name, _lowest, _highest, _unit)			\
	ELV_KNOB(fti, _name,						\
		 &((struct fti_data *)e->elevator_data)->bounds._name,	\
		 _lowest, _highest, _unit)

FTI_KNOB(idle_window, 0, USEC_PER_SEC, NSEC_PER_USEC)
FTI_KNOB(neutral_expire, 1, 60 * MSEC_PER_SEC, NSEC_PER_MSEC)
FTI_KNOB(neutral_share, 1, 100, 1)
FTI_KNOB(background_expire, 1, 60 * MSEC_PER_SEC, NSEC_PER_MSEC)
FTI_KNOB(background_depth, 0, BLK_MQ_MAX_DEPTH, 1)
FTI_KNOB(background_share, 1, 100, 1)
FTI_KNOB(foreground_reserve, 0, BLK_MQ_MAX_DEPTH, 1)
FTI_KNOB(foreground_cost, 0, 1000, 1)
FTI_KNOB(background_kb, 0, SZ_1M >> 10, 1)

#define FTI_ATTR(_file, _name) \
	__ATTR(_file, 0644, fti_##_name##_show, fti_##_name##_store)

struct elv_fs_entry fti_attrs[] = {
	FTI_ATTR(idle_window_us, idle_window),
	FTI_ATTR(neutral_expire_ms, neutral_expire),
	FTI_ATTR(neutral_share, neutral_share),
	FTI_ATTR(background_expire_ms, background_expire),
	FTI_ATTR(background_depth, background_depth),
	FTI_ATTR(background_share, background_share),
	FTI_ATTR(foreground_reserve, foreground_reserve),
	FTI_ATTR(foreground_cost_percent, foreground_cost),
	FTI_ATTR(background_kb, background_kb),
	__ATTR_NULL
};

#ifdef CONFIG_BLK_DEBUG_FS
static int fti_state_show(void *data, struct seq_file *m)
{
	static const char * const names[] = {
		[FASTTRACK_NEUTRAL]	= "neutral",
		[FASTTRACK_BACKGROUND]	= "background",
		[FASTTRACK_FOREGROUND]	= "foreground",
	};
	struct request_queue *q = data;
	struct fti_data *fti = q->elevator->elevator_data;
	const struct fti_bounds bounds = fti_read_bounds(fti);
	struct fti_state state;
	u64 now;

	spin_lock(&fti->fti_lock);
	now = ktime_get_ns();
	fti_read_state(fti, &state, now);
	for (int i = 0; i < FASTTRACK_NR_CLASSES; i++)
		seq_printf(m, "%s queued %u in_flight %u oldest_us %llu\n",
			   names[i], fti->class[i].queued, state.in_flight[i],
			   state.oldest[i] ?
			   div_u64(now - state.oldest[i], NSEC_PER_USEC) : 0);
	seq_printf(m, "front %d foreground_works %d held %d cheap_depth %u\n",
		   state.front, fti_foreground_works(&state, &bounds, now), fti->promoter.held,
		   state.cheap_depth);
	spin_unlock(&fti->fti_lock);
	return 0;
}

const struct blk_mq_debugfs_attr fti_queue_debugfs_attrs[] = {
	{"state", 0400, fti_state_show},
	{},
};
#endif
