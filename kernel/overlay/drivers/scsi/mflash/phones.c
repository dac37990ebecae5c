// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: the six phones.
 *
 * Where the constants come from:
 *
 *  - NAND times lie in the ranges of public simulators (MQSim, FEMU, SimpleSSD):
 *    read 40-75 us, program 0.5-1.9 ms (MLC/TLC) and 200-300 us (SLC), erase
 *    3.5-3.8 ms, suspension of a program 100 us, of an erase 700 us,
 *    over-provisioning 7-25 %.
 *  - Channels: eMMC and the first UFS devices had one.
 *  - Link: eMMC 4.5 is HS200, 5.0 is HS400; UFS 2.0 has up to two HS-G3 lanes,
 *    3.1 HS-G4, 4.0 HS-G5. The rate here is what is left after the protocol
 *    and what the controller takes, fitted to the sequential figures.
 *  - Firmware times are fitted to the random figures, channel rates and
 *    program times within their ranges to the sequential ones. Published
 *    figures, work loads and measured figures: lab/phones/.
 *
 * All phones have 16 GiB, so that images stay small; blocks of the many-die
 * phones have fewer rows than real ones, to have enough of them for GC.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "phones.h"

#define US	1000

/* what all of them share; a phone's own values follow it */
#define NAND_COMMON							\
	.page_slots = 4, .t_erase_ns = 3500 * US,			\
	.t_susp_prog_ns = 100 * US, .t_susp_erase_ns = 700 * US,	\
	.t_resume_ns = 20 * US

static const struct mflash_phone phones[] = {
	{
		/* eMMC 4.5, MLC, aged as the measured one: one die works at a time */
		.name = "n5",
		NAND_COMMON,
		.queue_depth = 1, .max_kib = 512,
		.half_duplex = true, .link_read_mbps = 180, .link_write_mbps = 180,
		.link_cmd_ns = 20 * US,
		.fw_read_ns = 120 * US, .fw_write_ns = 1000 * US,
		.fw_flush_ns = 2300 * US, /* programs the controller's own journal */
		.fw_unmap_ns = 500 * US, .fw_page_ns = 500,
		.channels = 1, .dies = 1, .planes = 2, .bits = 1, .rows = 256,
		.channel_mbps = 100,
		.t_read_ns = 75 * US, .t_prog_ns = 1850 * US, .t_prog_slc_ns = 1850 * US,
		.op_percent = 7, .map_pages = 32, .cache_kib = 256, .gc_low = 6,
	},
	{
		/* eMMC 5.0, MLC */
		.name = "n6",
		NAND_COMMON,
		.queue_depth = 1, .max_kib = 512,
		.half_duplex = true, .link_read_mbps = 380, .link_write_mbps = 380,
		.link_cmd_ns = 5 * US,
		.fw_read_ns = 54 * US, .fw_write_ns = 60 * US, .fw_flush_ns = 100 * US,
		.fw_unmap_ns = 300 * US, .fw_page_ns = 200,
		.channels = 1, .dies = 2, .planes = 2, .bits = 1, .rows = 256,
		.channel_mbps = 285,
		.t_read_ns = 60 * US, .t_prog_ns = 610 * US, .t_prog_slc_ns = 610 * US,
		.op_percent = 7, .map_pages = 512, .cache_kib = 512, .gc_low = 6,
	},
	{
		/* UFS 2.0, MLC */
		.name = "s6",
		NAND_COMMON,
		.queue_depth = 32, .max_kib = 1024,
		.link_read_mbps = 330, .link_write_mbps = 300, .link_cmd_ns = 5 * US,
		.fw_read_ns = 49 * US, .fw_write_ns = 195 * US, .fw_flush_ns = 50 * US,
		.fw_unmap_ns = 200 * US, .fw_page_ns = 500,
		.channels = 1, .dies = 4, .planes = 2, .bits = 1, .rows = 256,
		.channel_mbps = 400,
		.t_read_ns = 50 * US, .t_prog_ns = 850 * US, .t_prog_slc_ns = 300 * US,
		.op_percent = 10, .map_pages = 1024, .cache_kib = 2048, .gc_low = 6,
	},
	{
		/* UFS 2.0 of 2016, MLC */
		.name = "p1",
		NAND_COMMON,
		.queue_depth = 32, .max_kib = 1024,
		.link_read_mbps = 870, .link_write_mbps = 600, .link_cmd_ns = 3 * US,
		.fw_read_ns = 21 * US, .fw_write_ns = 24 * US, .fw_flush_ns = 50 * US,
		.fw_unmap_ns = 200 * US, .fw_page_ns = 200,
		.channels = 2, .dies = 8, .planes = 2, .bits = 1, .rows = 128,
		.channel_mbps = 480,
		.t_read_ns = 50 * US, .t_prog_ns = 930 * US, .t_prog_slc_ns = 300 * US,
		.op_percent = 10, .map_pages = 2048, .cache_kib = 4096, .gc_low = 6,
	},
	{
		/* UFS 3.1, one-shot TLC behind an SLC buffer (WriteBooster) */
		.name = "ufs31",
		NAND_COMMON,
		.queue_depth = 32, .max_kib = 1024,
		.link_read_mbps = 2180, .link_write_mbps = 1800, .link_cmd_ns = 2 * US,
		.fw_read_ns = 9800, .fw_write_ns = 14 * US, .fw_flush_ns = 30 * US,
		.fw_unmap_ns = 100 * US, .fw_page_ns = 100,
		.channels = 2, .dies = 8, .planes = 2, .bits = 3, .rows = 128,
		.channel_mbps = 1200,
		.t_read_ns = 45 * US, .t_prog_ns = 1450 * US, .t_prog_slc_ns = 200 * US,
		.op_percent = 10, .map_pages = 4096, .slc_mib = 2048, .cache_kib = 8192,
		.gc_low = 5,
	},
	{
		/* UFS 4.0, one-shot TLC behind an SLC buffer (WriteBooster) */
		.name = "ufs40",
		NAND_COMMON,
		.queue_depth = 32, .max_kib = 1024,
		.link_read_mbps = 4350, .link_write_mbps = 2900, .link_cmd_ns = 2 * US,
		.fw_read_ns = 9800, .fw_write_ns = 14 * US, .fw_flush_ns = 30 * US,
		.fw_unmap_ns = 100 * US, .fw_page_ns = 50,
		.channels = 4, .dies = 16, .planes = 4, .bits = 3, .rows = 32,
		.channel_mbps = 1600,
		.t_read_ns = 45 * US, .t_prog_ns = 1200 * US, .t_prog_slc_ns = 200 * US,
		.op_percent = 10, .map_pages = 4096, .slc_mib = 2048, .cache_kib = 16384,
		.gc_low = 5,
	},
};

/**
 * mflash_phone_find - constants of a phone
 * @name: its name
 *
 * Return: the phone, or NULL.
 */
const struct mflash_phone *mflash_phone_find(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(phones); i++)
		if (!strcmp(phones[i].name, name))
			return &phones[i];
	return NULL;
}
