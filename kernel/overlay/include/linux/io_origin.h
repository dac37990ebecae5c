/* SPDX-License-Identifier: GPL-2.0 */
/*
 * I/O origin, traced: what no tracepoint of the kernel's own says.
 *
 * Bare tracepoints, without an event: mm/fasttrack/trace.c registers probes
 * while a session lasts. Otherwise each is one patched-out branch.
 */
#ifndef _LINUX_IO_ORIGIN_H
#define _LINUX_IO_ORIGIN_H

#include <linux/types.h>

struct buffer_head;
struct dentry;
struct file;
struct folio;
struct journal_s;
struct super_block;
struct transaction_s;

/**
 * enum io_call - the call that a task is in
 * @IO_CALL_OTHER: none of these, or unknown
 * @IO_CALL_READ: read(2) and its like
 * @IO_CALL_WRITE: write(2) and its like
 * @IO_CALL_FSYNC: fsync(2)
 * @IO_CALL_FDATASYNC: fdatasync(2)
 * @IO_CALL_FAULT: a page fault that reads
 * @IO_CALL_SYNC: sync(2)
 * @IO_CALL_SYNCFS: syncfs(2)
 * @IO_CALL_MMAP_WRITE: a page fault that writes
 * @IO_CALL_DIRECT_READ: a direct read
 * @IO_CALL_DIRECT_WRITE: a direct write
 * @IO_CALL_MSYNC: msync(2)
 * @IO_CALL_IO_URING: io_uring_enter(2)
 * @IO_CALL_SPLICE: splice(2), sendfile(2), copy_file_range(2)
 * @IO_CALL_SPLICE_READ: what one of these reads from a file at once
 * @IO_CALL_SPLICE_WRITE: what one of these writes to a file at once
 */
enum io_call {
	IO_CALL_OTHER,
	IO_CALL_READ,
	IO_CALL_WRITE,
	IO_CALL_FSYNC,
	IO_CALL_FDATASYNC,
	IO_CALL_FAULT,
	IO_CALL_SYNC,
	IO_CALL_SYNCFS,
	IO_CALL_MMAP_WRITE,
	IO_CALL_DIRECT_READ,
	IO_CALL_DIRECT_WRITE,
	IO_CALL_MSYNC,
	IO_CALL_IO_URING,
	IO_CALL_SPLICE,
	IO_CALL_SPLICE_READ,
	IO_CALL_SPLICE_WRITE,
};

/**
 * enum io_interface - how a call is asked for
 * @IO_BY_CALL: by a system call or a fault, whose end is the call's
 * @IO_BY_URING: through a ring of io_uring
 * @IO_BY_AIO: by io_submit(2)
 */
enum io_interface {
	IO_BY_CALL,
	IO_BY_URING,
	IO_BY_AIO,
};

/**
 * enum io_wait_kind - what a task has waited for
 * @IO_WAIT_FOLIO: a folio that is locked, read or written back
 * @IO_WAIT_DIRTY_THROTTLE: there are too many dirty pages
 * @IO_WAIT_TRANSACTION: a transaction: its commit, its handles, or room for it
 * @IO_WAIT_TAG: a tag of the I/O scheduler's or of the device's
 * @IO_WAIT_PAUSE: FastTrack has paused it
 * @IO_WAIT_CHECKPOINT: a checkpoint of f2fs
 * @IO_WAIT_BIO: a bio, or the direct I/O, that it has sent
 * @IO_WAIT_BUFFER: a buffer of a file system's metadata
 * @IO_WAIT_FLUSH: the flush of the device's cache that it has sent
 * @IO_WAIT_WRITEBACK: the flusher, which writes back what it has asked for
 *
 * The numbers between are those of FastTrack's own events in a trace.
 */
enum io_wait_kind {
	IO_WAIT_FOLIO = 1,
	IO_WAIT_DIRTY_THROTTLE = 2,
	IO_WAIT_TRANSACTION = 3,
	IO_WAIT_TAG = 4,
	IO_WAIT_PAUSE = 6,
	IO_WAIT_CHECKPOINT = 9,
	IO_WAIT_BIO = 10,
	IO_WAIT_BUFFER = 11,
	IO_WAIT_FLUSH = 12,
	IO_WAIT_WRITEBACK = 13,
};

/**
 * struct io_wait - a wait that is under way
 * @begun: when, ns of the boot-time clock; 0: nobody traces it
 * @number: of a page in its file, of the first sector, or of a transaction
 * @dev: the device, or 0
 * @file: number of a folio's file; 0: none, or unknown
 * @kind: enum io_wait_kind
 */
struct io_wait {
	u64 begun;
	u64 number;
	dev_t dev;
	u32 file;
	u8 kind;
};

#ifdef CONFIG_IO_ORIGIN
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>

/* A handle of current changes a block for the first time in its transaction. */
DECLARE_TRACE(io_journal_dirty,
	      TP_PROTO(struct transaction_s *transaction, struct buffer_head *bh),
	      TP_ARGS(transaction, bh));

/* Current is the first to ask for a commit. */
DECLARE_TRACE(io_commit_asked,
	      TP_PROTO(struct journal_s *journal, unsigned int tid),
	      TP_ARGS(journal, tid));

/* Current asks f2fs's thread for a checkpoint; @waits: and waits, or has waited. */
DECLARE_TRACE(io_checkpoint_asked,
	      TP_PROTO(struct super_block *sb, bool waits),
	      TP_ARGS(sb, waits));

/* @dentry has a new name. */
DECLARE_TRACE(io_renamed, TP_PROTO(struct dentry *dentry), TP_ARGS(dentry));

/* A call of current's on @file, if it has one, that has @begun, ends with @result. */
DECLARE_TRACE(io_called,
	      TP_PROTO(u8 call, struct file *file, loff_t offset, u64 begun,
		       s64 result),
	      TP_ARGS(call, file, offset, begun, result));

/*
 * Current begins a call of @interface on @file, or tries it again: @request, of which
 * the address alone is used, is that of io_async_ended. @offset: -1: the file's own.
 */
DECLARE_TRACE(io_async_begun,
	      TP_PROTO(const void *request, u8 call, u8 interface,
		       struct file *file, loff_t offset),
	      TP_ARGS(request, call, interface, file, offset));

/* In any context: it has ended with @result, and has moved its place to @pos. */
DECLARE_TRACE(io_async_ended,
	      TP_PROTO(const void *request, loff_t pos, s64 result),
	      TP_ARGS(request, pos, result));

/* Current is about to wait for @folio: @wait is to say of which file it is. */
DECLARE_TRACE(io_waits_for_folio,
	      TP_PROTO(struct io_wait *wait, struct folio *folio),
	      TP_ARGS(wait, folio));

/* Current has waited. */
DECLARE_TRACE(io_waited,
	      TP_PROTO(const struct io_wait *wait),
	      TP_ARGS(wait));

/* Does anybody look at calls? */
static inline bool io_calls_traced(void)
{
	return trace_io_called_enabled();
}

/**
 * io_call_begin - a call begins
 *
 * Return: what to give to io_call_end().
 */
static inline u64 io_call_begin(void)
{
	return io_calls_traced() ? ktime_get_boottime_ns() : 0;
}

/**
 * io_call_end - it has ended
 * @begun: result of io_call_begin()
 * @call: which one
 * @file: on which file, or NULL
 * @offset: place in the file, bytes
 * @result: what it returns
 */
static inline void io_call_end(u64 begun, enum io_call call, struct file *file,
			       loff_t offset, s64 result)
{
	if (begun)
		trace_io_called(call, file, offset, begun, result);
}

/* Does anybody look at waits? */
static inline bool io_waits_traced(void)
{
	return trace_io_waited_enabled();
}

/**
 * io_wait_begin - current is about to wait
 * @kind: for what
 * @dev: on which device, or 0
 * @number: see struct io_wait
 *
 * Return: what to give to io_wait_end().
 */
static inline struct io_wait io_wait_begin(enum io_wait_kind kind, dev_t dev,
					   u64 number)
{
	struct io_wait wait;

	/* Nobody looks at the rest of one that has not begun. */
	wait.begun = 0;
	if (io_waits_traced())
		wait = (struct io_wait){
			.begun = ktime_get_boottime_ns(),
			.number = number,
			.dev = dev,
			.kind = kind,
		};
	return wait;
}

/* The same, for a bit of @folio. */
static inline struct io_wait io_folio_wait_begin(struct folio *folio)
{
	struct io_wait wait = io_wait_begin(IO_WAIT_FOLIO, 0, 0);

	if (wait.begun)
		trace_io_waits_for_folio(&wait, folio);
	return wait;
}

/* It has. */
static inline void io_wait_end(const struct io_wait *wait)
{
	if (wait->begun)
		trace_io_waited(wait);
}
#else
static inline bool io_calls_traced(void)
{
	return false;
}

static inline void trace_io_journal_dirty(struct transaction_s *transaction,
					  struct buffer_head *bh)
{
}

static inline void trace_io_commit_asked(struct journal_s *journal,
					 unsigned int tid)
{
}

static inline void trace_io_checkpoint_asked(struct super_block *sb, bool waits)
{
}

static inline void trace_io_renamed(struct dentry *dentry)
{
}

static inline void trace_io_async_begun(const void *request, u8 call,
					u8 interface, struct file *file,
					loff_t offset)
{
}

static inline void trace_io_async_ended(const void *request, loff_t pos,
					s64 result)
{
}

static inline u64 io_call_begin(void)
{
	return 0;
}

static inline void io_call_end(u64 begun, enum io_call call, struct file *file,
			       loff_t offset, s64 result)
{
}

static inline bool io_waits_traced(void)
{
	return false;
}

static inline struct io_wait io_wait_begin(enum io_wait_kind kind, dev_t dev,
					   u64 number)
{
	return (struct io_wait){};
}

static inline struct io_wait io_folio_wait_begin(struct folio *folio)
{
	return (struct io_wait){};
}

static inline void io_wait_end(const struct io_wait *wait)
{
}
#endif /* CONFIG_IO_ORIGIN */

#endif /* _LINUX_IO_ORIGIN_H */
