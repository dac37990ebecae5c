// SPDX-License-Identifier: GPL-2.0
/*
 * I/O origin, traced: which calls of whom took how long on which file, and what
 * tasks have waited for meanwhile.
 *
 * Above the block layer: a call that finds all in the page cache is one, too. Those
 * that took less than calls_over_us are left out, syncs excepted.
 *
 * Not covered: calls of io_uring and of asynchronous I/O, which end elsewhere;
 * splice(2) and its like; waits for locks.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/pagemap.h>

#include "trace.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "io_origin."

static unsigned int io_calls_over_us = 100;
module_param_named(calls_over_us, io_calls_over_us, uint, 0644);
MODULE_PARM_DESC(calls_over_us, "Shortest call that io_call tells of, us (default 100)");

static u64 io_took(u64 begun)
{
	return ktime_get_boottime_ns() - begun;
}

static u8 io_direct_call(u8 call, const struct file *file)
{
	if (!(file->f_flags & O_DIRECT))
		return call;
	if (call == IO_CALL_READ)
		return IO_CALL_DIRECT_READ;
	return call == IO_CALL_WRITE ? IO_CALL_DIRECT_WRITE : call;
}

/* How much a call did that returned @result. */
static u64 io_call_bytes(u8 call, s64 result)
{
	if (call == IO_CALL_FAULT || call == IO_CALL_MMAP_WRITE)
		return PAGE_SIZE;
	return io_is_sync(call) || result < 0 ? 0 : result;
}

void io_called(void *data, u8 call, struct file *file, loff_t offset, u64 begun,
	       s64 result)
{
	u64 took = io_took(begun);
	u32 id = 0;

	if (!io_is_sync(call) &&
	    took < READ_ONCE(io_calls_over_us) * (u64)NSEC_PER_USEC)
		return;
	if (file) {
		struct inode *inode = file_inode(file);

		if (!inode->i_sb->s_bdev ||
		    !(S_ISREG(inode->i_mode) || S_ISDIR(inode->i_mode)))
			return;
		call = io_direct_call(call, file);
		id = io_file(inode);
	}
	trace_io_call(io_current(), call, id, offset, io_call_bytes(call, result),
		      took, result);
}

/* Its file may be gone when the wait ends, though not its number. */
void io_waits_for_folio(void *data, struct io_wait *wait, struct folio *folio)
{
	struct address_space *mapping;
	struct inode *inode;

	/* Not locked: its inode is freed a grace period later at the earliest. */
	rcu_read_lock();
	mapping = folio_mapping(folio);
	inode = mapping ? mapping->host : NULL;
	if (inode && S_ISBLK(inode->i_mode)) {
		wait->kind = IO_WAIT_BUFFER;
		wait->dev = inode->i_rdev;
		wait->number = (u64)folio->index << (PAGE_SHIFT - SECTOR_SHIFT);
	} else if (inode && inode->i_sb->s_bdev) {
		wait->dev = inode->i_sb->s_dev;
		wait->number = folio->index;
		wait->file = S_ISREG(inode->i_mode) ? io_file_known(inode) : 0;
	}
	rcu_read_unlock();
}

void io_waited(void *data, const struct io_wait *wait)
{
	u64 took = io_took(wait->begun);

	/* What it was to wait for had come: no sleep is so short. */
	if (took < NSEC_PER_USEC)
		return;
	trace_io_wait(io_current(), wait, took,
		      fasttrack_enabled() ? __fasttrack_task_class(current) :
					    FASTTRACK_NEUTRAL);
}
