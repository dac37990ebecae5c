/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: the constants of a phone's storage, see phones.c. */
#ifndef _MFLASH_PHONES_H
#define _MFLASH_PHONES_H

#include <linux/types.h>

/**
 * struct mflash_phone - constants of one phone's storage; phones.c has the sources
 * @name: as in mflash.phone=
 * @queue_depth: commands that the device takes at once
 * @max_kib: largest command, KiB
 * @link_read_mbps: link rate to the host, 10^6 bytes a second
 * @link_write_mbps: link rate from the host
 * @half_duplex: both directions share one bus (eMMC)
 * @link_cmd_ns: protocol overhead of a command on the link
 * @fw_read_ns: firmware time of a read command
 * @fw_write_ns: firmware time of a write command
 * @fw_flush_ns: firmware time to make something durable: a flush, and on top a FUA write
 * @fw_unmap_ns: firmware time of an unmap command
 * @fw_page_ns: firmware time of each 4 KiB of a command
 * @channels: NAND channels
 * @dies: dies over all channels; die d is on channel d mod @channels
 * @planes: planes of a die that work in step
 * @page_slots: 4 KiB slots of one NAND page (4: 16 KiB pages)
 * @bits: NAND pages programmed in one go in normal mode (3: one-shot TLC)
 * @rows: program units of a block on one die
 * @channel_mbps: channel transfer rate
 * @t_read_ns: array read of one NAND page on all planes
 * @t_prog_ns: program of one unit in normal mode
 * @t_prog_slc_ns: program of one unit in SLC mode
 * @t_erase_ns: erase of one block on one die
 * @t_susp_prog_ns: from suspending a program to a free die
 * @t_susp_erase_ns: from suspending an erase to a free die
 * @t_resume_ns: added to what was left when an operation goes on
 * @op_percent: over-provisioning, percent of the logical size
 * @map_pages: 4 KiB map pages that the controller caches
 * @slc_mib: size of the SLC buffer; 0: none
 * @cache_kib: volatile write cache
 * @gc_low: free blocks at which garbage collection competes with the host
 */
struct mflash_phone {
	const char *name;
	u32 queue_depth, max_kib;
	u32 link_read_mbps, link_write_mbps;
	bool half_duplex;
	u32 link_cmd_ns;
	u32 fw_read_ns, fw_write_ns, fw_flush_ns, fw_unmap_ns, fw_page_ns;
	u8 channels, dies, planes, page_slots, bits;
	u16 rows;
	u32 channel_mbps;
	u32 t_read_ns, t_prog_ns, t_prog_slc_ns, t_erase_ns;
	u32 t_susp_prog_ns, t_susp_erase_ns, t_resume_ns;
	u8 op_percent;
	u32 map_pages;
	u32 slc_mib, cache_kib, gc_low;
};

const struct mflash_phone *mflash_phone_find(const char *name);

#endif /* _MFLASH_PHONES_H */
