// SPDX-License-Identifier: GPL-2.0
/*
 * I/O origin, traced: which calls of whom took how long on which file, and what
 * tasks have waited for meanwhile.
 *
 * Above the block layer: a call that finds all in the page cache is one, too. Those
 * that took less than calls_over_us are left out, syncs excepted.
 *
 * A call of io_uring or of asynchronous I/O begins when it is first tried, and ends
 * when its I/O does, in whatever context: what is under way is in a table by the
 * address of its request.
 *
 * Not covered: waits for locks; what a file system copies without reading it.
 */
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/pagemap.h>
#include <linux/slab.h>

#include "trace.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "io_origin."

static unsigned int io_calls_over_us = 100;
module_param_named(calls_over_us, io_calls_over_us, uint, 0644);
MODULE_PARM_DESC(calls_over_us, "Shortest call that io_call tells of, us (default 100)");

/* Guards the table and the count; taken under any lock, in any context. */
static DEFINE_SPINLOCK(io_async_lock);

static unsigned int io_calls_left_out;
module_param_named(calls_left_out, io_calls_left_out, uint, 0444);
MODULE_PARM_DESC(calls_left_out, "Calls of io_uring and asynchronous I/O that there was no room for");

/* Requests under way, and most of them: nobody makes the table slow for others. */
#define IO_ASYNC_BITS	12
#define IO_ASYNC_MOST	(4U << IO_ASYNC_BITS)

/**
 * struct io_async - a request of io_uring or of asynchronous I/O that is under way
 * @node: in the table, by @request
 * @request: compared only
 * @ended: what is known of the call
 */
struct io_async {
	struct hlist_node node;
	const void *request;
	struct io_ended ended;
};

struct io_asyncs {
	unsigned int nr;
	DECLARE_HASHTABLE(requests, IO_ASYNC_BITS);
};

static struct io_asyncs *io_asyncs;

bool io_calls_begin(void)
{
	io_asyncs = kvzalloc(sizeof(*io_asyncs), GFP_KERNEL);
	return io_asyncs;
}

/* No probe runs any more. */
void io_calls_end(void)
{
	struct hlist_node *next;
	struct io_async *one;
	int i;

	if (!io_asyncs)
		return;
	hash_for_each_safe(io_asyncs->requests, i, next, one, node)
		kfree(one);
	kvfree(io_asyncs);
	io_asyncs = NULL;
}

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

/* Is it a file of a block device's file system? */
static bool io_has_file(const struct inode *inode)
{
	return inode->i_sb->s_bdev &&
	       (S_ISREG(inode->i_mode) || S_ISDIR(inode->i_mode));
}

/* How much a call did that returned @result. */
static u64 io_call_bytes(u8 call, s64 result)
{
	if (call == IO_CALL_FAULT || call == IO_CALL_MMAP_WRITE)
		return PAGE_SIZE;
	return io_is_sync(call) || result < 0 ? 0 : result;
}

/* Is a call that took @took left out? */
static bool io_is_short(u8 call, u64 took)
{
	return !io_is_sync(call) &&
	       took < READ_ONCE(io_calls_over_us) * (u64)NSEC_PER_USEC;
}

void io_called(void *data, u8 call, struct file *file, loff_t offset, u64 begun,
	       s64 result)
{
	struct io_ended ended = {
		.begun = begun,
		.offset = offset,
		.result = result,
		.thread = current->pid,
		.call = call,
		.interface = IO_BY_CALL,
	};
	u64 took = io_took(begun);

	if (io_is_short(call, took))
		return;
	if (file) {
		if (!io_has_file(file_inode(file)))
			return;
		ended.call = io_direct_call(call, file);
		ended.file = io_file(file_inode(file));
	}
	ended.task = io_current();
	trace_io_call(&ended, io_call_bytes(call, result), took);
}

/* --- calls that end elsewhere */

/* Under the lock; NULL: it is not under way. */
static struct io_async *io_async_find(const void *request)
{
	struct io_async *one;

	hash_for_each_possible(io_asyncs->requests, one, node, (unsigned long)request)
		if (one->request == request)
			return one;
	return NULL;
}

/* The same, and it is no more. */
static struct io_async *io_async_take(const void *request)
{
	struct io_async *one;
	unsigned long flags;

	/* Who has added it did so before it was sent. */
	if (!READ_ONCE(io_asyncs->nr))
		return NULL;
	spin_lock_irqsave(&io_async_lock, flags);
	one = io_async_find(request);
	if (one) {
		hash_del(&one->node);
		WRITE_ONCE(io_asyncs->nr, io_asyncs->nr - 1);
	}
	spin_unlock_irqrestore(&io_async_lock, flags);
	return one;
}

static bool io_async_is_known(const void *request)
{
	unsigned long flags;
	bool known;

	spin_lock_irqsave(&io_async_lock, flags);
	known = io_async_find(request);
	spin_unlock_irqrestore(&io_async_lock, flags);
	return known;
}

/* NULL: there is no room, which is counted. */
static struct io_async *io_async_new(void)
{
	struct io_async *new = NULL;
	unsigned long flags;

	if (READ_ONCE(io_asyncs->nr) < IO_ASYNC_MOST)
		new = kmalloc(sizeof(*new), GFP_NOWAIT | __GFP_NOWARN);
	if (new)
		return new;
	spin_lock_irqsave(&io_async_lock, flags);
	io_calls_left_out++;
	spin_unlock_irqrestore(&io_async_lock, flags);
	return NULL;
}

/* One task at a time has a request: nobody adds it meanwhile. */
void io_async_begun(void *data, const void *request, u8 call, u8 interface,
		    struct file *file, loff_t offset)
{
	struct inode *inode = file_inode(file);
	struct io_async *new;
	unsigned long flags;

	if (!io_has_file(inode))
		return;
	/* One of asynchronous I/O is tried once: another one had this address. */
	if (interface == IO_BY_AIO)
		kfree(io_async_take(request));
	else if (io_async_is_known(request))
		return;
	new = io_async_new();
	if (!new)
		return;
	new->request = request;
	new->ended = (struct io_ended){
		.begun = ktime_get_boottime_ns(),
		.offset = offset < 0 ? file->f_pos : offset,
		.task = io_current(),
		.thread = current->pid,
		.file = io_file(inode),
		.call = io_direct_call(call, file),
		.interface = interface,
	};
	spin_lock_irqsave(&io_async_lock, flags);
	hash_add(io_asyncs->requests, &new->node, (unsigned long)request);
	WRITE_ONCE(io_asyncs->nr, io_asyncs->nr + 1);
	spin_unlock_irqrestore(&io_async_lock, flags);
}

/* A write that appends has found its place meanwhile. */
void io_async_ended(void *data, const void *request, loff_t pos, s64 result)
{
	struct io_async *one = io_async_take(request);
	struct io_ended *ended;
	u64 took;

	if (!one)
		return;
	ended = &one->ended;
	took = io_took(ended->begun);
	if (!io_is_short(ended->call, took)) {
		if (pos >= 0 && result > 0)
			ended->offset = pos - result;
		ended->result = result;
		trace_io_call(ended, io_call_bytes(ended->call, result), took);
	}
	kfree(one);
}

/* A request that has been another one: of that nobody has told the end. */
void io_uring_new(void *data, struct io_kiocb *req)
{
	kfree(io_async_take(req));
}

/* Failed or cancelled, or completed by whoever polls for it: not told before. */
void io_uring_done(void *data, void *ctx, void *req, u64 user_data, int res,
		   unsigned int cflags, u64 extra1, u64 extra2)
{
	if (req)
		io_async_ended(NULL, req, -1, res);
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
