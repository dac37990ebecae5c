/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM io_origin

#if !defined(_TRACE_IO_ORIGIN_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_IO_ORIGIN_H

#include <linux/blk_types.h>
#include <linux/bio.h>
#include <linux/fasttrack.h>
#include <linux/io_origin.h>
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
 * enum io_transaction_kind - what makes a file system's changes durable together
 * @IO_TRANSACTION_JBD2: a transaction of jbd2
 * @IO_TRANSACTION_CHECKPOINT: a checkpoint of f2fs
 */
enum io_transaction_kind {
	IO_TRANSACTION_JBD2,
	IO_TRANSACTION_CHECKPOINT,
};

/**
 * struct io_segment - a run of blocks of a bio
 * @offset: of its first byte in the bio
 * @bytes: how many
 * @index: page of the file that it begins with
 * @file: number of the file; 0: unknown
 * @owner: number of the task that dirtied or reads it; 0: unknown
 * @type: enum io_block_type
 * @call: enum io_call of the owner
 */
struct io_segment {
	u32 offset;
	u32 bytes;
	u64 index;
	u32 file;
	u32 owner;
	u8 type;
	u8 call;
};

/**
 * struct io_transaction - a transaction that has ended
 * @dev: the file system's
 * @transaction: its number there; of a checkpoint: in the session
 * @kind: enum io_transaction_kind
 * @trigger: number of the task that asked for the commit; 0: the timer
 * @trigger_call: enum io_call of that
 * @carrier: number of the task that did it
 * @took_ns: from the begin of the commit to its end
 * @handles: handles in it
 * @blocks: blocks that changed: the sum of all shares
 * @logged: blocks that were written for it
 */
struct io_transaction {
	u32 dev;
	u32 transaction;
	u8 kind;
	u8 trigger_call;
	u32 trigger;
	u32 carrier;
	u64 took_ns;
	u32 handles;
	u32 blocks;
	u32 logged;
};

/**
 * struct io_ended - a call that has ended
 * @begun: when it has begun, ns of the boot-time clock
 * @offset: place in the file, bytes
 * @result: what it returned
 * @task: number of the task that asked for it
 * @thread: id of the thread that began it
 * @file: number of the file; 0: none
 * @call: enum io_call
 * @interface: enum io_interface
 */
struct io_ended {
	u64 begun;
	u64 offset;
	s64 result;
	u32 task;
	u32 thread;
	u32 file;
	u8 call;
	u8 interface;
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

#define show_io_call(call)				\
	__print_symbolic(call,				\
		{ 0, "other" },				\
		{ 1, "read" },				\
		{ 2, "write" },				\
		{ 3, "fsync" },				\
		{ 4, "fdatasync" },			\
		{ 5, "fault" },				\
		{ 6, "sync" },				\
		{ 7, "syncfs" },			\
		{ 8, "mmap_write" },			\
		{ 9, "direct_read" },			\
		{ 10, "direct_write" },			\
		{ 11, "msync" },			\
		{ 12, "io_uring" },			\
		{ 13, "splice" },			\
		{ 14, "splice_read" },			\
		{ 15, "splice_write" })

#define show_io_interface(interface)			\
	__print_symbolic(interface,			\
		{ 0, "system_call" },			\
		{ 1, "io_uring" },			\
		{ 2, "aio" })

#define show_io_wait_kind(kind)				\
	__print_symbolic(kind,				\
		{ IO_WAIT_FOLIO, "folio" },		\
		{ IO_WAIT_DIRTY_THROTTLE, "dirty_throttle" }, \
		{ IO_WAIT_TRANSACTION, "transaction" },	\
		{ IO_WAIT_TAG, "tag" },			\
		{ IO_WAIT_PAUSE, "pause" },		\
		{ IO_WAIT_CHECKPOINT, "checkpoint" },	\
		{ IO_WAIT_BIO, "bio" },		\
		{ IO_WAIT_BUFFER, "buffer" },		\
		{ IO_WAIT_FLUSH, "flush" },		\
		{ IO_WAIT_WRITEBACK, "writeback" })

#define show_io_transaction_kind(kind)			\
	__print_symbolic(kind,				\
		{ 0, "jbd2" },				\
		{ 1, "checkpoint" })

#define show_io_file_event(event)			\
	__print_symbolic(event,				\
		{ 0, "first_use" },			\
		{ 1, "rename" },			\
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

/* A file is met for the first time, has a new name, or is unlinked. */
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
		 bool direct, u32 transaction),

	TP_ARGS(seq, bio, carrier, cause, direct, transaction),

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
		__field(u32, transaction)
	),

	TP_fast_assign(
		__entry->bio = seq;
		__entry->dev = disk_devt(bio->bi_bdev->bd_disk);
		__entry->sector = bio->bi_iter.bi_sector;
		__entry->bytes = bio->bi_iter.bi_size;
		__entry->operation = (__force u8)bio_op(bio);
		__entry->sync = !!(bio->bi_opf & REQ_SYNC);
		__entry->fua = !!(bio->bi_opf & REQ_FUA);
		__entry->preflush = !!(bio->bi_opf & REQ_PREFLUSH);
		__entry->meta = !!(bio->bi_opf & REQ_META);
		__entry->read_ahead = !!(bio->bi_opf & REQ_RAHEAD);
		__entry->direct = direct;
		__entry->class = fasttrack_opf_class(bio->bi_opf);
		__entry->cause = cause;
		__entry->carrier = carrier;
		__entry->transaction = transaction;
	),

	TP_printk("bio=%llu dev=%d:%d sector=%llu bytes=%u operation=%u sync=%d fua=%d preflush=%d meta=%d read_ahead=%d direct=%d class=%u cause=%s carrier=%u transaction=%u",
		  __entry->bio, MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->sector, __entry->bytes, __entry->operation,
		  __entry->sync, __entry->fua, __entry->preflush,
		  __entry->meta, __entry->read_ahead, __entry->direct,
		  __entry->class, show_io_cause(__entry->cause),
		  __entry->carrier, __entry->transaction),

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
		__field(u8, call)
	),

	TP_fast_assign(
		__entry->bio = seq;
		__entry->offset = segment->offset;
		__entry->bytes = segment->bytes;
		__entry->block_type = segment->type;
		__entry->file = segment->file;
		__entry->index = segment->index;
		__entry->owner = segment->owner;
		__entry->call = segment->call;
	),

	TP_printk("bio=%llu offset=%u bytes=%u block_type=%s file=%u index=%llu owner=%u call=%s",
		  __entry->bio, __entry->offset, __entry->bytes,
		  show_io_block_type(__entry->block_type), __entry->file,
		  __entry->index, __entry->owner, show_io_call(__entry->call)),

	io_origin_reg, io_origin_unreg
);

/* A transaction or checkpoint has ended; its shares follow. */
TRACE_EVENT_FN(io_transaction,

	TP_PROTO(const struct io_transaction *said),

	TP_ARGS(said),

	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, transaction)
		__field(u8, kind)
		__field(u8, trigger_call)
		__field(u32, trigger)
		__field(u32, carrier)
		__field(u64, took_ns)
		__field(u32, handles)
		__field(u32, blocks)
		__field(u32, logged)
	),

	TP_fast_assign(
		__entry->dev = said->dev;
		__entry->transaction = said->transaction;
		__entry->kind = said->kind;
		__entry->trigger_call = said->trigger_call;
		__entry->trigger = said->trigger;
		__entry->carrier = said->carrier;
		__entry->took_ns = said->took_ns;
		__entry->handles = said->handles;
		__entry->blocks = said->blocks;
		__entry->logged = said->logged;
	),

	TP_printk("dev=%d:%d transaction=%u kind=%s trigger=%u trigger_call=%s carrier=%u took_ns=%llu handles=%u blocks=%u logged=%u",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->transaction, show_io_transaction_kind(__entry->kind),
		  __entry->trigger, show_io_call(__entry->trigger_call),
		  __entry->carrier, __entry->took_ns, __entry->handles,
		  __entry->blocks, __entry->logged),

	io_origin_reg, io_origin_unreg
);

/* What one task pays of it. */
TRACE_EVENT_FN(io_share,

	TP_PROTO(const struct io_transaction *said, u32 task, u32 handles,
		 u32 blocks, bool through_flusher),

	TP_ARGS(said, task, handles, blocks, through_flusher),

	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, transaction)
		__field(u8, kind)
		__field(u32, task)
		__field(u32, handles)
		__field(u32, blocks)
		__field(bool, through_flusher)
	),

	TP_fast_assign(
		__entry->dev = said->dev;
		__entry->transaction = said->transaction;
		__entry->kind = said->kind;
		__entry->task = task;
		__entry->handles = handles;
		__entry->blocks = blocks;
		__entry->through_flusher = through_flusher;
	),

	TP_printk("dev=%d:%d transaction=%u kind=%s task=%u handles=%u blocks=%u through_flusher=%d",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->transaction, show_io_transaction_kind(__entry->kind),
		  __entry->task, __entry->handles, __entry->blocks,
		  __entry->through_flusher),

	io_origin_reg, io_origin_unreg
);

/* A call has ended that took some time. */
TRACE_EVENT_FN(io_call,

	TP_PROTO(const struct io_ended *ended, u64 bytes, u64 took_ns),

	TP_ARGS(ended, bytes, took_ns),

	TP_STRUCT__entry(
		__field(u32, task)
		__field(u32, thread)
		__field(u32, file)
		__field(u8, call)
		__field(u8, interface)
		__field(u64, offset)
		__field(u64, bytes)
		__field(u64, took_ns)
		__field(s64, result)
	),

	TP_fast_assign(
		__entry->task = ended->task;
		__entry->thread = ended->thread;
		__entry->file = ended->file;
		__entry->call = ended->call;
		__entry->interface = ended->interface;
		__entry->offset = ended->offset;
		__entry->bytes = bytes;
		__entry->took_ns = took_ns;
		__entry->result = ended->result;
	),

	TP_printk("task=%u thread=%u call=%s interface=%s file=%u offset=%llu bytes=%llu took_ns=%llu result=%lld",
		  __entry->task, __entry->thread, show_io_call(__entry->call),
		  show_io_interface(__entry->interface), __entry->file,
		  __entry->offset, __entry->bytes, __entry->took_ns,
		  __entry->result),

	io_origin_reg, io_origin_unreg
);

/* A task has waited. */
TRACE_EVENT_FN(io_wait,

	TP_PROTO(u32 task, const struct io_wait *wait, u64 took_ns, u8 class),

	TP_ARGS(task, wait, took_ns, class),

	TP_STRUCT__entry(
		__field(u32, task)
		__field(u32, dev)
		__field(u32, file)
		__field(u8, kind)
		__field(u8, class)
		__field(u64, number)
		__field(u64, took_ns)
	),

	TP_fast_assign(
		__entry->task = task;
		__entry->dev = wait->dev;
		__entry->file = wait->file;
		__entry->kind = wait->kind;
		__entry->class = class;
		__entry->number = wait->number;
		__entry->took_ns = took_ns;
	),

	TP_printk("task=%u kind=%s class=%u dev=%d:%d file=%u number=%llu took_ns=%llu",
		  __entry->task, show_io_wait_kind(__entry->kind), __entry->class,
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->file,
		  __entry->number, __entry->took_ns),

	io_origin_reg, io_origin_unreg
);

#endif /* _TRACE_IO_ORIGIN_H */

#include <trace/define_trace.h>
