/* SPDX-License-Identifier: GPL-2.0-only */
/* The list of counters: included where MFLASH_STAT() says what to make of a name. */
/* read commands, by class */
MFLASH_STAT(read_neutral),
MFLASH_STAT(read_background),
MFLASH_STAT(read_foreground),
/* write commands, by class */
MFLASH_STAT(write_neutral),
MFLASH_STAT(write_background),
MFLASH_STAT(write_foreground),
/* flushes, by class */
MFLASH_STAT(flush_neutral),
MFLASH_STAT(flush_background),
MFLASH_STAT(flush_foreground),
/* unmaps, by class */
MFLASH_STAT(unmap_neutral),
MFLASH_STAT(unmap_background),
MFLASH_STAT(unmap_foreground),
/* of read commands */
MFLASH_STAT(read_bytes),
/* of write commands */
MFLASH_STAT(write_bytes),
/* writes that had to be durable at once */
MFLASH_STAT(fua),
/* mapped pages that an unmap forgot */
MFLASH_STAT(unmapped_pages),
/* array reads, of one NAND page on all planes */
MFLASH_STAT(nand_reads),
/* programs of one unit, normal mode */
MFLASH_STAT(nand_programs),
/* the same, SLC mode */
MFLASH_STAT(nand_programs_slc),
/* erases of one block on one die */
MFLASH_STAT(nand_erases),
/* 4 KiB pages in those programs */
MFLASH_STAT(programmed_pages),
/* slots of those programs that stayed empty */
MFLASH_STAT(padded_pages),
/* pages read from the write cache */
MFLASH_STAT(cache_hits),
/* cached pages overwritten before their program */
MFLASH_STAT(cache_merged),
/* times that a write waited for room in the cache */
MFLASH_STAT(cache_full),
/* map pages read */
MFLASH_STAT(map_misses),
/* dirty map pages dropped */
MFLASH_STAT(map_programs),
/* pages copied */
MFLASH_STAT(gc_copies),
/* blocks emptied, for whatever reason */
MFLASH_STAT(gc_victims),
/* of those, beside the host's work */
MFLASH_STAT(gc_urgent),
/* of those, in the SLC buffer */
MFLASH_STAT(slc_migrations),
/* host pages programmed into the SLC buffer */
MFLASH_STAT(slc_pages),
/* host pages programmed past it */
MFLASH_STAT(direct_pages),
/* programs suspended */
MFLASH_STAT(suspensions_program),
/* erases suspended */
MFLASH_STAT(suspensions_erase),
/* programs and erases that went on */
MFLASH_STAT(resumes),
/* most commands in the device at a time */
MFLASH_STAT(max_queue),
/* in this boot */
MFLASH_STAT(power_cuts),
/* of the simulation */
MFLASH_STAT(events),
