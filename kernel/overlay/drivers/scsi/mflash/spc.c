// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: command descriptors (SPC-4, SBC-3, as far as UFS has them).
 *
 * Commands without data on the medium are answered at once and take no time.
 */
#include <linux/string.h>
#include <linux/unaligned.h>
#include <scsi/scsi.h>
#include <scsi/scsi_cmnd.h>
#include <scsi/scsi_device.h>
#include <scsi/scsi_proto.h>

#include "host.h"

#define UNMAP_PAGES_MAX	16384	/* 64 MiB a command: the model walks the map under its lock */
#define UNMAP_RANGES	1

#define ASC_INVALID_OPCODE	0x20
#define ASC_OUT_OF_RANGE	0x21
#define ASC_INVALID_FIELD	0x24
#define ASC_PARAMETER_LIST	0x26

static int fail(struct scsi_cmnd *sc, u8 asc)
{
	scsi_build_sense(sc, 0, ILLEGAL_REQUEST, asc, 0);
	return -EINVAL;
}

static void answer(struct scsi_cmnd *sc, const u8 *buf, u32 len, u32 allowed)
{
	u32 n = scsi_sg_copy_from_buffer(sc, buf, min(len, allowed));

	scsi_set_resid(sc, scsi_bufflen(sc) - n);
}

static int vpd_limits(const struct mflash_phone *p, u8 *buf)
{
	put_unaligned_be16(0x3c, buf + 2);
	put_unaligned_be16(p->page_slots, buf + 6);		/* optimal granularity */
	put_unaligned_be32(p->max_kib / 4, buf + 8);		/* longest transfer */
	put_unaligned_be32(p->max_kib / 4, buf + 12);		/* best transfer */
	put_unaligned_be32(UNMAP_PAGES_MAX, buf + 20);
	put_unaligned_be32(UNMAP_RANGES, buf + 24);
	put_unaligned_be32(1, buf + 28);			/* unmap granularity */
	return 0x40;
}

static int vpd(const struct mflash_phone *p, u8 page, u8 *buf)
{
	static const u8 pages[] = { 0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2 };

	buf[1] = page;
	switch (page) {
	case 0x00:
		buf[3] = sizeof(pages);
		memcpy(buf + 4, pages, sizeof(pages));
		return 4 + sizeof(pages);
	case 0x80:
		buf[3] = 8;
		memcpy(buf + 4, "mflash00", 8);
		return 12;
	case 0x83:
		buf[3] = 4 + 24;
		buf[4] = 2;	/* ASCII */
		buf[5] = 1;	/* T10 vendor identification */
		buf[7] = 24;
		memset(buf + 8, ' ', 24);
		memcpy(buf + 8, "MFLASH", 6);
		memcpy(buf + 16, p->name, strlen(p->name));
		return 32;
	case 0xb0:
		return vpd_limits(p, buf);
	case 0xb1:
		buf[3] = 0x3c;
		buf[5] = 1;	/* does not rotate */
		return 0x40;
	case 0xb2:
		buf[3] = 4;
		buf[5] = 0x80 | 0x04;	/* UNMAP works; unmapped pages read as zero */
		return 8;
	default:
		return -1;
	}
}

static void inquiry(struct mflash_host *host, struct scsi_cmnd *sc)
{
	const struct mflash_phone *p = host->model.phone;
	u8 buf[96] = {};
	int len = 36;

	if (sc->cmnd[1] & 1) {
		len = vpd(p, sc->cmnd[2], buf);
		if (len < 0) {
			fail(sc, ASC_INVALID_FIELD);
			return;
		}
	} else {
		buf[2] = 6;	/* SPC-4 */
		buf[3] = 2;
		buf[4] = len - 5;
		buf[7] = 2;	/* command queueing */
		memset(buf + 8, ' ', 28);
		memcpy(buf + 8, "MFLASH", 6);
		memcpy(buf + 16, p->name, strlen(p->name));
		memcpy(buf + 32, "0001", 4);
	}
	answer(sc, buf, len, get_unaligned_be16(sc->cmnd + 3));
}

static void mode_sense(struct scsi_cmnd *sc, bool ten)
{
	u8 page = sc->cmnd[2] & 0x3f;
	bool changeable = (sc->cmnd[2] >> 6) == 1;
	u8 buf[28] = {};
	int len = ten ? 8 : 4;

	if (page != 0x08 && page != 0x3f) {
		fail(sc, ASC_INVALID_FIELD);
		return;
	}
	buf[ten ? 3 : 2] = 0x10;	/* DPO and FUA work */
	buf[len] = 0x08;
	buf[len + 1] = 18;
	if (!changeable)
		buf[len + 2] = 0x04;	/* write cache on */
	len += 20;
	if (ten)
		put_unaligned_be16(len - 2, buf);
	else
		buf[0] = len - 1;
	answer(sc, buf, len, ten ? get_unaligned_be16(sc->cmnd + 7) : sc->cmnd[4]);
}

static void capacity(struct mflash_host *host, struct scsi_cmnd *sc, bool sixteen)
{
	u32 last = host->model.ftl.pages - 1;
	u8 buf[32] = {};

	if (!sixteen) {
		put_unaligned_be32(last, buf);
		put_unaligned_be32(MFLASH_PAGE_SIZE, buf + 4);
		answer(sc, buf, 8, 8);
		return;
	}
	put_unaligned_be64(last, buf);
	put_unaligned_be32(MFLASH_PAGE_SIZE, buf + 8);
	buf[14] = 0x80 | 0x40;	/* thin provisioning; unmapped pages read as zero */
	answer(sc, buf, sizeof(buf), get_unaligned_be32(sc->cmnd + 10));
}

static void report_luns(struct scsi_cmnd *sc)
{
	u8 buf[16] = { [3] = 8 };

	answer(sc, buf, sizeof(buf), get_unaligned_be32(sc->cmnd + 6));
}

/**
 * mflash_spc - answer a command that needs no medium
 * @host: the device
 * @sc: the command
 */
void mflash_spc(struct mflash_host *host, struct scsi_cmnd *sc)
{
	switch (sc->cmnd[0]) {
	case TEST_UNIT_READY:
	case START_STOP:
	case ALLOW_MEDIUM_REMOVAL:
		break;
	case REQUEST_SENSE:
		answer(sc, (u8[18]) { 0x70, [7] = 10 }, 18, sc->cmnd[4]);
		break;
	case INQUIRY:
		inquiry(host, sc);
		break;
	case MODE_SENSE:
	case MODE_SENSE_10:
		mode_sense(sc, sc->cmnd[0] == MODE_SENSE_10);
		break;
	case READ_CAPACITY:
		capacity(host, sc, false);
		break;
	case SERVICE_ACTION_IN_16:
		if ((sc->cmnd[1] & 0x1f) == SAI_READ_CAPACITY_16)
			capacity(host, sc, true);
		else
			fail(sc, ASC_INVALID_FIELD);
		break;
	case REPORT_LUNS:
		report_luns(sc);
		break;
	default:
		fail(sc, ASC_INVALID_OPCODE);
		break;
	}
}

/**
 * mflash_is_data - does a command go through the model
 * @sc: the command
 */
bool mflash_is_data(const struct scsi_cmnd *sc)
{
	switch (sc->cmnd[0]) {
	case READ_6:
	case READ_10:
	case READ_16:
	case WRITE_6:
	case WRITE_10:
	case WRITE_16:
	case SYNCHRONIZE_CACHE:
	case SYNCHRONIZE_CACHE_16:
	case UNMAP:
		return true;
	default:
		return false;
	}
}

static int decode_unmap(struct scsi_cmnd *sc, u64 *lba, u32 *pages)
{
	u8 list[24];

	/* an empty list, or one without a range, is no error and unmaps nothing */
	*lba = 0;
	*pages = 0;
	if (get_unaligned_be16(sc->cmnd + 7) < sizeof(list))
		return 0;
	if (scsi_sg_copy_to_buffer(sc, list, sizeof(list)) < sizeof(list))
		return fail(sc, ASC_PARAMETER_LIST);
	if (get_unaligned_be16(list + 2) > 16 * UNMAP_RANGES)
		return fail(sc, ASC_PARAMETER_LIST);
	if (get_unaligned_be16(list + 2) < 16)
		return 0;
	*lba = get_unaligned_be64(list + 8);
	*pages = get_unaligned_be32(list + 16);
	return *pages > UNMAP_PAGES_MAX ? fail(sc, ASC_PARAMETER_LIST) : 0;
}

/* SYNCHRONIZE CACHE of a range flushes everything, as SBC allows */
static int decode_range(struct scsi_cmnd *sc, struct mflash_cmd *cmd, u64 *lba, u32 *pages)
{
	const u8 *c = sc->cmnd;

	*lba = 0;
	*pages = 0;
	switch (c[0]) {
	case READ_6:
	case WRITE_6:
		*lba = get_unaligned_be24(c + 1) & 0x1fffff;
		*pages = c[4] ?: 256;
		break;
	case READ_10:
	case WRITE_10:
		*lba = get_unaligned_be32(c + 2);
		*pages = get_unaligned_be16(c + 7);
		cmd->fua = c[1] & 0x08;
		break;
	case READ_16:
	case WRITE_16:
		*lba = get_unaligned_be64(c + 2);
		*pages = get_unaligned_be32(c + 10);
		cmd->fua = c[1] & 0x08;
		break;
	case UNMAP:
		return decode_unmap(sc, lba, pages);
	}
	return 0;
}

static enum mflash_cmd_type cmd_type(u8 opcode)
{
	switch (opcode) {
	case READ_6:
	case READ_10:
	case READ_16:
		return MFLASH_READ;
	case WRITE_6:
	case WRITE_10:
	case WRITE_16:
		return MFLASH_WRITE;
	case UNMAP:
		return MFLASH_UNMAP;
	default:
		return MFLASH_FLUSH;
	}
}

/**
 * mflash_decode - what a command for the medium asks for
 * @host: the device
 * @sc: the command
 * @cmd: filled in
 *
 * Return: 0: submit @cmd; else the command is answered already.
 */
int mflash_decode(struct mflash_host *host, struct scsi_cmnd *sc, struct mflash_cmd *cmd)
{
	u32 limit = sc->cmnd[0] == UNMAP ? UNMAP_PAGES_MAX : MFLASH_CMD_PAGES;
	u64 lba;

	memset(cmd, 0, sizeof(*cmd));
	INIT_LIST_HEAD(&cmd->done);
	cmd->type = cmd_type(sc->cmnd[0]);
	if (decode_range(sc, cmd, &lba, &cmd->pages))
		return -EINVAL;
	if (lba + cmd->pages > host->model.ftl.pages || lba + cmd->pages < lba)
		return fail(sc, ASC_OUT_OF_RANGE);
	if (cmd->pages > limit)
		return fail(sc, ASC_INVALID_FIELD);
	if (!cmd->pages && cmd->type != MFLASH_FLUSH)
		return -EALREADY;
	cmd->fua = cmd->fua && cmd->type == MFLASH_WRITE;
	cmd->lpn = lba;
	cmd->tag = scsi_cmd_to_rq(sc)->tag;
	cmd->class = fasttrack_control_class(sc->cmnd[sc->cmd_len - 1]);
	cmd->depends = fasttrack_control_depends(sc->cmnd[sc->cmd_len - 1]);
	return 0;
}
