// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: content, between scatterlists and the store.
 *
 * A write's content is taken when the command arrives. A read's is looked up
 * when it completes, page by page under the lock: what the map says then is
 * consistent, also when a page was rewritten or moved meanwhile.
 */
#include <linux/scatterlist.h>
#include <linux/string.h>
#include <scsi/scsi_cmnd.h>
#include <trace/events/mflash.h>

#include "host.h"
#include "model.h"
#include "store.h"

static bool is_one_word(const u64 *p)
{
	u32 i;

	for (i = 1; i < MFLASH_PAGE_SIZE / sizeof(*p); i++)
		if (p[i] != p[0])
			return false;
	return true;
}

static int page_in(struct mflash_host *host, struct mflash_cmd *cmd, u32 page, const void *p)
{
	struct mflash_desc *desc = &cmd->desc[page];
	unsigned long flags;

	desc->word = *(const u64 *)p;
	trace_mflash_block(true, cmd->lpn + page, desc->word);
	desc->slot = 0;
	if (is_one_word(p))
		return 0;
	spin_lock_irqsave(&host->model_lock, flags);
	desc->slot = mflash_slot_get(&host->model.store);
	spin_unlock_irqrestore(&host->model_lock, flags);
	if (!desc->slot)
		return -ENOSPC;
	memcpy(mflash_slot_data(&host->model.store, desc->slot), p, MFLASH_PAGE_SIZE);
	return 0;
}

static void page_out(struct mflash_host *host, u32 lpn, void *p)
{
	struct mflash_desc desc;
	unsigned long flags;

	spin_lock_irqsave(&host->model_lock, flags);
	mflash_resolve(&host->model, lpn, &desc);
	if (desc.slot)
		memcpy(p, mflash_slot_data(&host->model.store, desc.slot), MFLASH_PAGE_SIZE);
	spin_unlock_irqrestore(&host->model_lock, flags);
	if (!desc.slot)
		memset64(p, desc.word, MFLASH_PAGE_SIZE / sizeof(u64));
	trace_mflash_block(false, lpn, *(const u64 *)p);
}

static void give_back(struct mflash_host *host, struct mflash_desc *desc, u32 pages)
{
	unsigned long flags;

	spin_lock_irqsave(&host->model_lock, flags);
	while (pages--)
		mflash_slot_put(&host->model.store, desc++->slot);
	spin_unlock_irqrestore(&host->model_lock, flags);
}

/* one piece of a scatterlist; @have bytes of the current page are in the bounce page */
static int piece_in(struct mflash_host *host, struct mflash_cmd *cmd, const u8 *p, u32 len,
		    u32 *page, u32 *have)
{
	u8 *bounce = host->bounce + cmd->tag * MFLASH_PAGE_SIZE;
	int err = 0;
	u32 n;

	for (; len && !err && *page < cmd->pages; p += n, len -= n) {
		n = min(len, MFLASH_PAGE_SIZE - *have);
		if (n == MFLASH_PAGE_SIZE) {
			err = page_in(host, cmd, (*page)++, p);
			continue;
		}
		memcpy(bounce + *have, p, n);
		*have += n;
		if (*have == MFLASH_PAGE_SIZE) {
			err = page_in(host, cmd, (*page)++, bounce);
			*have = 0;
		}
	}
	return err;
}

/**
 * mflash_copy_in - take the content of a write
 * @host: the device
 * @sc: the SCSI command
 * @cmd: the decoded command; its desc is filled in
 *
 * Return: 0; -ENOSPC: the store is full; -EIO: the buffer is too short.
 */
int mflash_copy_in(struct mflash_host *host, struct scsi_cmnd *sc, struct mflash_cmd *cmd)
{
	struct sg_mapping_iter it;
	u32 page = 0, have = 0;
	int err = 0;

	cmd->desc = host->model.desc + cmd->tag * MFLASH_CMD_PAGES;
	sg_miter_start(&it, scsi_sglist(sc), scsi_sg_count(sc),
		       SG_MITER_ATOMIC | SG_MITER_FROM_SG);
	while (!err && sg_miter_next(&it))
		err = piece_in(host, cmd, it.addr, it.length, &page, &have);
	sg_miter_stop(&it);
	if (!err && page < cmd->pages)
		err = -EIO;
	if (err)
		give_back(host, cmd->desc, page);
	return err;
}

static void piece_out(struct mflash_host *host, struct mflash_cmd *cmd, u8 *p, u32 len, u32 *done)
{
	u8 *bounce = host->bounce + cmd->tag * MFLASH_PAGE_SIZE;
	u32 n;

	for (; len && *done < cmd->pages * MFLASH_PAGE_SIZE; p += n, len -= n, *done += n) {
		u32 lpn = cmd->lpn + *done / MFLASH_PAGE_SIZE;
		u32 in_page = *done % MFLASH_PAGE_SIZE;

		n = min(len, MFLASH_PAGE_SIZE - in_page);
		if (n == MFLASH_PAGE_SIZE) {
			page_out(host, lpn, p);
			continue;
		}
		if (!in_page)
			page_out(host, lpn, bounce);
		memcpy(p, bounce + in_page, n);
	}
}

/**
 * mflash_copy_out - give the content of a read
 * @host: the device
 * @sc: the SCSI command
 * @cmd: the decoded command
 */
void mflash_copy_out(struct mflash_host *host, struct scsi_cmnd *sc, struct mflash_cmd *cmd)
{
	struct sg_mapping_iter it;
	u32 done = 0;

	sg_miter_start(&it, scsi_sglist(sc), scsi_sg_count(sc), SG_MITER_ATOMIC | SG_MITER_TO_SG);
	while (sg_miter_next(&it))
		piece_out(host, cmd, it.addr, it.length, &done);
	sg_miter_stop(&it);
	scsi_set_resid(sc, scsi_bufflen(sc) - done);
}
