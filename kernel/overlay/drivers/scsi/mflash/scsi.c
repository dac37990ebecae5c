// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: emulated phone storage as a SCSI disk.
 *
 * The real sd driver and real command descriptors are used; the device behind
 * them is a model in virtual or real time (model.c). This file alone reads
 * the clock. One hrtimer fires when a command may complete.
 *
 * What it does not do: data take no time of the processor's, temperature,
 * wear and bit errors are not modelled, there is one logical unit.
 */
#include <linux/device.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/reboot.h>
#include <scsi/scsi.h>
#include <scsi/scsi_cmnd.h>
#include <scsi/scsi_device.h>
#include <scsi/scsi_host.h>
#include <scsi/scsi_tcq.h>

#include "host.h"
#include "model.h"
#include "store.h"

#define CREATE_TRACE_POINTS
#include <trace/events/mflash.h>

/* nobody syncs, nobody is asked: the phone's battery is out */
static void power_off(void)
{
	pr_emerg("mflash: power cut\n");
	if (IS_ENABLED(CONFIG_UML) && IS_BUILTIN(CONFIG_SCSI_MFLASH))
		machine_power_off();
	else
		emergency_restart();
}

static void arm(struct mflash_host *host)
{
	struct mflash_model *m = &host->model;
	u64 next = mflash_next_completion(m);

	lockdep_assert_held(&host->model_lock);
	/*
	 * The device's own work in idle time can be made up for at the next
	 * command. In virtual time that costs nothing; else it would be a
	 * long section without interrupts.
	 */
	if (!m->in_flight && !IS_ENABLED(CONFIG_UML_TIME_TRAVEL_SUPPORT))
		next = mflash_next_event(m);
	if (next == host->armed)
		return;
	host->armed = next;
	if (next != U64_MAX)
		hrtimer_start(&host->timer, ns_to_ktime(next), HRTIMER_MODE_ABS_SOFT);
}

static void end_command(struct mflash_host *host, struct mflash_cmd *cmd)
{
	struct scsi_cmnd *sc = (struct scsi_cmnd *)cmd - 1; /* scsi_cmd_priv() */

	if (cmd->error == -ENOSPC)
		scsi_build_sense(sc, 0, MEDIUM_ERROR, 0x0c, 0x02);
	else if (cmd->error)
		set_host_byte(sc, DID_NO_CONNECT);
	else if (cmd->type == MFLASH_READ)
		mflash_copy_out(host, sc, cmd);
	scsi_done(sc);
}

static void finish(struct mflash_host *host, struct list_head *done, bool dead)
{
	struct mflash_cmd *cmd, *tmp;

	if (dead && mflash_cut_halt)
		power_off();
	list_for_each_entry_safe(cmd, tmp, done, done) {
		list_del_init(&cmd->done);
		end_command(host, cmd);
	}
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct mflash_host *host = container_of(timer, struct mflash_host, timer);
	unsigned long flags;
	LIST_HEAD(done);

	spin_lock_irqsave(&host->model_lock, flags);
	host->armed = U64_MAX;
	mflash_advance(&host->model, ktime_get_ns());
	list_splice_init(&host->model.done, &done);
	arm(host);
	spin_unlock_irqrestore(&host->model_lock, flags);
	finish(host, &done, false);
	return HRTIMER_NORESTART;
}

static void submit(struct mflash_host *host, struct mflash_cmd *cmd)
{
	unsigned long flags;
	LIST_HEAD(done);
	bool dead;

	spin_lock_irqsave(&host->model_lock, flags);
	mflash_submit(&host->model, cmd, ktime_get_ns());
	list_splice_init(&host->model.done, &done);
	arm(host);
	dead = host->model.dead;
	spin_unlock_irqrestore(&host->model_lock, flags);
	finish(host, &done, dead);
}

static int mflash_queuecommand(struct Scsi_Host *shost, struct scsi_cmnd *sc)
{
	struct mflash_host *host = *(struct mflash_host **)shost->hostdata;
	struct mflash_cmd *cmd = scsi_cmd_priv(sc);

	if (sc->device->id || sc->device->lun) {
		set_host_byte(sc, DID_BAD_TARGET);
		scsi_done(sc);
	} else if (!mflash_is_data(sc)) {
		mflash_spc(host, sc);
		scsi_done(sc);
	} else if (mflash_decode(host, sc, cmd)) {
		scsi_done(sc);
	} else {
		cmd->error = cmd->type == MFLASH_WRITE ? mflash_copy_in(host, sc, cmd) : 0;
		if (cmd->error)
			end_command(host, cmd);
		else
			submit(host, cmd);
	}
	return 0;
}

/* the model always ends what it took: a long wait is the model's, not a hang */
static enum scsi_timeout_action mflash_timed_out(struct scsi_cmnd *sc)
{
	return SCSI_EH_RESET_TIMER;
}

static int mflash_slave_configure(struct scsi_device *sdev)
{
#ifdef CONFIG_FASTTRACK
	sdev->fasttrack_control = 1;
#endif
	return 0;
}

static const struct scsi_host_template mflash_template = {
	.module			= THIS_MODULE,
	.name			= "mflash",
	.proc_name		= "mflash",
	.queuecommand		= mflash_queuecommand,
	.eh_timed_out		= mflash_timed_out,
	.slave_configure	= mflash_slave_configure,
	.cmd_size		= sizeof(struct mflash_cmd),
	.this_id		= -1,
	.sg_tablesize		= MFLASH_CMD_PAGES,
	.max_segment_size	= UINT_MAX,
	.dma_boundary		= ~0UL,
};

static int host_add(struct mflash_host *host)
{
	const struct mflash_phone *p = host->model.phone;
	struct Scsi_Host *shost = scsi_host_alloc(&mflash_template, sizeof(host));
	int err;

	if (!shost)
		return -ENOMEM;
	host->shost = shost;
	*(struct mflash_host **)shost->hostdata = host;
	/* an eMMC takes one command at a time, but its host has tags for many (mmc block: 64) */
	shost->can_queue = p->queue_depth > 1 ? p->queue_depth : MFLASH_TAGS_MAX;
	shost->cmd_per_lun = p->queue_depth;
	shost->max_sectors = p->max_kib * 2;
	shost->max_id = 1;
	shost->max_lun = 1;
	shost->max_cmd_len = 16;
	host->root = root_device_register("mflash");
	err = PTR_ERR_OR_ZERO(host->root);
	if (err)
		goto put;
	err = scsi_add_host(shost, host->root);
	if (err)
		goto unregister;
	scsi_scan_host(shost);
	return 0;
unregister:
	root_device_unregister(host->root);
put:
	scsi_host_put(shost);
	return err;
}

static int __init mflash_init(void)
{
	struct mflash_config config = {};
	struct mflash_host *host;
	int err = mflash_knobs_config(&config);

	if (err <= 0)
		return err;
	host = kvzalloc(sizeof(*host), GFP_KERNEL);
	if (!host)
		return -ENOMEM;
	spin_lock_init(&host->model_lock);
	host->armed = U64_MAX;
	hrtimer_init(&host->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	host->timer.function = timer_fired;
	err = mflash_model_init(&host->model, &config);
	if (err)
		goto free;
	err = -ENOMEM;
	host->bounce = mflash_scratch(&host->model.store, MFLASH_TAGS_MAX * MFLASH_PAGE_SIZE);
	if (!host->bounce)
		goto exit;
	mflash_knobs_apply(host);
	mflash_debugfs_init(host);
	err = host_add(host);
	if (err)
		goto debugfs;
	kernel_param_lock(THIS_MODULE);
	mflash_host = host;
	kernel_param_unlock(THIS_MODULE);
	return 0;
debugfs:
	mflash_debugfs_exit(host);
exit:
	mflash_model_exit(&host->model);
free:
	pr_err("mflash: no storage: error %d\n", err);
	kvfree(host);
	return err;
}

static void __exit mflash_exit(void)
{
	struct mflash_host *host = mflash_host;

	if (!host)
		return;
	kernel_param_lock(THIS_MODULE); /* no knob is being set any more */
	WRITE_ONCE(mflash_host, NULL);
	kernel_param_unlock(THIS_MODULE);
	scsi_remove_host(host->shost);
	scsi_host_put(host->shost);
	root_device_unregister(host->root);
	mflash_debugfs_exit(host);
	hrtimer_cancel(&host->timer);
	mflash_model_exit(&host->model);
	kvfree(host);
}

module_init(mflash_init);
module_exit(mflash_exit);
MODULE_DESCRIPTION("Emulated phone storage");
MODULE_LICENSE("GPL");
