/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM io_origin

#if !defined(_TRACE_IO_ORIGIN_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_IO_ORIGIN_H

#include <linux/blk_types.h>
#include <linux/bio.h>
#include <linux/fasttrack.h>
#include <linux/tracepoint.h>

#ifndef _IO_ORIGIN_TYPES
#define _IO_ORIGIN_TYPES

/**
 * enum io_block_type - what the blocks of a segment hold
 * @IO_BLOCK_UNKNOWN: nobody knows
 * @IO_BLOCK_DATA: a regular file's data
 * @IO_BLOCK_JOURNAL: blocks of the journal
 * @IO_BLOCK_METADATA: the file system's own, directories with it
 * @IO_BLOCK_NODE: f2fs's nodes
 * @IO_BLOCK_CHECKPOINT: f2fs's checkpoint area
 */
enum io_block_type {
	IO_BLOCK_UNKNOWN,
	IO_BLOCK_DATA,
	IO_BLOCK_JOURNAL,
	IO_BLOCK_METADATA,
	IO_BLOCK_NODE,
	IO_BLOCK_CHECKPOINT,
};

/**
 * struct io_segment - a run of blocks of a bio
 * @offset: of its first byte in the bio
 * @bytes: how many
 * @index: page of the file that it begins with
 * @file: number of the file; 0: unknown
 * @owner: number of the task that dirtied or reads it; 0: unknown
 * @type: enum io_block_type
 */
struct io_segment {
	u32 offset;
	u32 bytes;
	u64 index;
	u32 file;
	u32 owner;
	u8 type;
};

int io_origin_reg(void);
void io_origin_unreg(void);

#endif /* _IO_ORIGIN_TYPES */

#define show_io_block_type(type)			\
	__print_symbolic(type,				\
		{ 0, "unknown" },			\
		{ 1, "data" },				\
		{ 2, "journal" },			\
		{ 3, "metadata" },			\
		{ 4, "node" },				\
		{ 5, "checkpoint" })

#define show_io_cause(cause)				\
	__print_symbolic(cause,				\
		{ 0, "none" },				\
		{ 1, "read" },				\
		{ 2, "writeback" },			\
		{ 3, "fsync" },				\
		{ 4, "fdatasync" },			\
		{ 5, "sync_write" },			\
		{ 6, "journal" },			\
		{ 7, "metadata" },			\
		{ 8, "other" })

#define show_io_file_event(event)			\
	__print_symbolic(event,				\
		{ 0, "first_use" },			\
		{ 2, "unlink" })

/* Everything is in place: what is dirtied from now on has an owner. */
TRACE_EVENT_FN(io_session,

	TP_PROTO(unsigned long pages, unsigned int missing),

	TP_ARGS(pages, missing),

	TP_STRUCT__entry(
		__field(u64, pages)
		__field(u32, missing)
	),

	TP_fast_assign(
		__entry->pages = pages;
		__entry->missing = missing;
	),

	TP_printk("pages=%llu missing=%u", __entry->pages, __entry->missing),

	io_origin_reg, io_origin_unreg
);

/* A task is met for the first time, as it is now. */
TRACE_EVENT_FN(io_task,

	TP_PROTO(u32 task, u32 tgid, u32 uid, const char *name, bool kernel),

	TP_ARGS(task, tgid, uid, name, kernel),

	TP_STRUCT__entry(
		__field(u32, task)
		__field(u32, tgid)
		__field(u32, uid)
		__string(name, name)
		__field(bool, kernel_thread)
	),

	TP_fast_assign(
		__entry->task = task;
		__entry->tgid = tgid;
		__entry->uid = uid;
		__assign_str(name);
		__entry->kernel_thread = kernel;
	),

	TP_printk("task=%u tgid=%u uid=%u kernel_thread=%d name=%s",
		  __entry->task, __entry->tgid, __entry->uid,
		  __entry->kernel_thread, __get_str(name)),

	io_origin_reg, io_origin_unreg
);

/* A file is met for the first time, or is unlinked. */
TRACE_EVENT_FN(io_file,

	TP_PROTO(u32 file, u8 event, const struct inode *inode, u64 created_ns,
		 const char *path),

	TP_ARGS(file, event, inode, created_ns, path),

	TP_STRUCT__entry(
		__field(u32, file)
		__field(u8, event)
		__field(u32, dev)
		__field(u64, inode)
		__field(u32, generation)
		__field(u64, created_ns)
		__field(u64, bytes)
		__string(path, path)
	),

	TP_fast_assign(
		__entry->file = file;
		__entry->event = event;
		__entry->dev = inode->i_sb->s_dev;
		__entry->inode = inode->i_ino;
		__entry->generation = inode->i_generation;
		__entry->created_ns = created_ns;
		__entry->bytes = i_size_read(inode);
		__assign_str(path);
	),

	TP_printk("file=%u event=%s dev=%d:%d inode=%llu generation=%u created_ns=%llu bytes=%llu path=%s",
		  __entry->file, show_io_file_event(__entry->event),
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->inode,
		  __entry->generation, __entry->created_ns, __entry->bytes,
		  __get_str(path)),

	io_origin_reg, io_origin_unreg
);

/* A bio enters the block layer; its segments follow. */
TRACE_EVENT_FN(io_bio,

	TP_PROTO(u64 seq, const struct bio *bio, u32 carrier, u8 cause,
		 bool direct),

	TP_ARGS(seq, bio, carrier, cause, direct),

	TP_STRUCT__entry(
		__field(u64, bio)
		__field(u32, dev)
		__field(u64, sector)
		__field(u32, bytes)
		__field(u8, operation)
		__field(bool, sync)
		__field(bool, fua)
		__field(bool, preflush)
		__field(bool, meta)
		__field(bool, read_ahead)
		__field(bool, direct)
		__field(u8, class)
		__field(u8, cause)
		__field(u32, carrier)
	),

	TP_fast_assign(
		__entry->bio = seq;
		__entry->dev = disk_devt(bio->bi_bdev->bd_disk);
		__entry->sector = bio->bi_iter.bi_sector;
		__entry->bytes = bio->bi_iter.bi_size;
		__entry->operation = bio_op(bio);
		__entry->sync = !!(bio->bi_opf & REQ_SYNC);
		__entry->fua = !!(bio->bi_opf & REQ_FUA);
		__entry->preflush = !!(bio->bi_opf & REQ_PREFLUSH);
		__entry->meta = !!(bio->bi_opf & REQ_META);
		__entry->read_ahead = !!(bio->bi_opf & REQ_RAHEAD);
		__entry->direct = direct;
		__entry->class = fasttrack_opf_class(bio->bi_opf);
		__entry->cause = cause;
		__entry->carrier = carrier;
	),

	TP_printk("bio=%llu dev=%d:%d sector=%llu bytes=%u operation=%u sync=%d fua=%d preflush=%d meta=%d read_ahead=%d direct=%d class=%u cause=%s carrier=%u",
		  __entry->bio, MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->sector, __entry->bytes, __entry->operation,
		  __entry->sync, __entry->fua, __entry->preflush,
		  __entry->meta, __entry->read_ahead, __entry->direct,
		  __entry->class, show_io_cause(__entry->cause),
		  __entry->carrier),

	io_origin_reg, io_origin_unreg
);

/* A run of blocks of a bio: of one file, one owner and one type. */
TRACE_EVENT_FN(io_segment,

	TP_PROTO(u64 seq, const struct io_segment *segment),

	TP_ARGS(seq, segment),

	TP_STRUCT__entry(
		__field(u64, bio)
		__field(u32, offset)
		__field(u32, bytes)
		__field(u8, block_type)
		__field(u32, file)
		__field(u64, index)
		__field(u32, owner)
	),

	TP_fast_assign(
		__entry->bio = seq;
		__entry->offset = segment->offset;
		__entry->bytes = segment->bytes;
		__entry->block_type = segment->type;
		__entry->file = segment->file;
		__entry->index = segment->index;
		__entry->owner = segment->owner;
	),

	TP_printk("bio=%llu offset=%u bytes=%u block_type=%s file=%u index=%llu owner=%u",
		  __entry->bio, __entry->offset, __entry->bytes,
		  show_io_block_type(__entry->block_type), __entry->file,
		  __entry->index, __entry->owner),

	io_origin_reg, io_origin_unreg
);

#endif /* _TRACE_IO_ORIGIN_H */

#include <trace/define_trace.h>
