// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: state, readable. stats has one "name value" a line; dies and ftl are
 * for people. All are snapshots under the model's lock.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "host.h"
#include "model.h"
#include "sched.h"

#define MFLASH_STAT(name)	#name

static const char * const stat_names[] = {
#include "stats.h"
};

#undef MFLASH_STAT

static int stats_show(struct seq_file *s, void *unused)
{
	struct mflash_host *host = s->private;
	u64 stats[MFLASH_NR_STATS];
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&host->model_lock, flags);
	mflash_advance(&host->model, ktime_get_ns());
	memcpy(stats, host->model.stats, sizeof(stats));
	spin_unlock_irqrestore(&host->model_lock, flags);
	for (i = 0; i < MFLASH_NR_STATS; i++)
		seq_printf(s, "%s %llu\n", stat_names[i], stats[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int dies_show(struct seq_file *s, void *unused)
{
	static const char * const states[] = {
		"idle", "sense", "out", "in", "busy", "suspending", "suspended",
	};
	struct mflash_host *host = s->private;
	struct mflash_model *m = &host->model;
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&host->model_lock, flags);
	mflash_advance(&host->model, ktime_get_ns());
	for (i = 0; i < m->phone->dies; i++)
		seq_printf(s, "die %u channel %u state %s queued %u suspended %u next %lld\n", i,
			   i % m->phone->channels, states[m->dies[i].state],
			   m->dies[i].queue.count, m->dies[i].suspended,
			   m->next[MFLASH_EV_DIE(i)]);
	spin_unlock_irqrestore(&host->model_lock, flags);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(dies);

static int ftl_show(struct seq_file *s, void *unused)
{
	struct mflash_host *host = s->private;
	struct mflash_model *m = &host->model;
	unsigned long flags;

	spin_lock_irqsave(&host->model_lock, flags);
	mflash_advance(&host->model, ktime_get_ns());
	seq_printf(s, "phone %s\npages %u\nblocks %u\nslc_blocks %u\nblock_pages %u\n",
		   m->phone->name, m->ftl.pages, m->ftl.nr_blocks, m->ftl.slc_blocks,
		   m->ftl.block_slots);
	seq_printf(s, "free %u\nfree_slc %u\nvictim %d\nurgent %d\nidle %d\n",
		   m->ftl.nr_free[0], m->ftl.nr_free[1], (int)m->gc.victim, m->gc.urgent, m->idle);
	seq_printf(s, "cached %u\ndirty %u\nmap_cached %u\nslots_used %u\nslots %u\n",
		   m->cache.nr - m->cache.nr_free, m->cache.nr_dirty, m->map.nr,
		   m->store.slots_top - m->store.nr_free_slots, m->store.slots);
	seq_printf(s, "in_flight %u\nfirmware_queued %u\nscheduler %s\ndead %d\nboot_power_cuts %llu\n",
		   m->in_flight, m->fw_queue.count, mflash_policy_names[m->sched.policy], m->dead,
		   m->store.super->power_cuts);
	spin_unlock_irqrestore(&host->model_lock, flags);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ftl);

/**
 * mflash_debugfs_init - make the directory mflash
 * @host: the device
 */
void mflash_debugfs_init(struct mflash_host *host)
{
	host->debugfs = debugfs_create_dir("mflash", NULL);
	debugfs_create_file("stats", 0444, host->debugfs, host, &stats_fops);
	debugfs_create_file("dies", 0444, host->debugfs, host, &dies_fops);
	debugfs_create_file("ftl", 0444, host->debugfs, host, &ftl_fops);
}

/**
 * mflash_debugfs_exit - remove it
 * @host: the device
 */
void mflash_debugfs_exit(struct mflash_host *host)
{
	debugfs_remove_recursive(host->debugfs);
}
