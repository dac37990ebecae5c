/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: what the SCSI side's files share. */
#ifndef _MFLASH_HOST_H
#define _MFLASH_HOST_H

#include <linux/hrtimer.h>
#include <linux/spinlock.h>

#include "model.h"

struct dentry;
struct device;
struct scsi_cmnd;
struct Scsi_Host;

/**
 * struct mflash_host - the device and what drives it
 * @model_lock: guards @model and @armed
 * @model: the device
 * @armed: when @timer fires; U64_MAX: it does not
 * @timer: fires when a command may complete
 * @bounce: one page a tag, for buffers that are not made of whole pages
 * @shost: the SCSI host
 * @root: its parent
 * @debugfs: directory
 */
struct mflash_host {
	spinlock_t model_lock; /* guards model and armed */
	struct mflash_model model;
	u64 armed;
	struct hrtimer timer;
	u8 *bounce;
	struct Scsi_Host *shost;
	struct device *root;
	struct dentry *debugfs;
};

/* knobs.c */
extern struct mflash_host *mflash_host;
extern bool mflash_cut_halt;
int mflash_knobs_config(struct mflash_config *config);
void mflash_knobs_apply(struct mflash_host *host);

/* spc.c */
void mflash_spc(struct mflash_host *host, struct scsi_cmnd *sc);
bool mflash_is_data(const struct scsi_cmnd *sc);
int mflash_decode(struct mflash_host *host, struct scsi_cmnd *sc, struct mflash_cmd *cmd);

/* data.c */
int mflash_copy_in(struct mflash_host *host, struct scsi_cmnd *sc, struct mflash_cmd *cmd);
void mflash_copy_out(struct mflash_host *host, struct scsi_cmnd *sc, struct mflash_cmd *cmd);

/* debugfs.c */
void mflash_debugfs_init(struct mflash_host *host);
void mflash_debugfs_exit(struct mflash_host *host);

#endif /* _MFLASH_HOST_H */
