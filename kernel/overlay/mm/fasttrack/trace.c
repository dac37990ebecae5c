// SPDX-License-Identifier: GPL-2.0
/*
 * I/O origin, traced: which task and which file each run of blocks belongs to.
 *
 * The events of the system io_origin. While any of them is registered, probes of
 * the kernel's own tracepoints keep who dirtied each page of a regular file, and
 * take each bio apart where it enters the block layer. Nothing of that is there
 * otherwise but the patched-out branches of <linux/io_origin.h>, and no byte of an
 * inode, a bio or a task. FastTrack need not be switched on.
 *
 *  - The file of direct I/O is that of the extent that iomap works on.
 *  - A node of f2fs belongs to who changed its file last.
 *
 * Not covered: bios that a file system sends from a worker with other pages than
 * the file's (compression); that a file is elsewhere because its directory is.
 *
 * Registration only queues work, because tracepoints cannot register others:
 * io_session says when everything is in place.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/f2fs_fs.h>
#include <linux/fscrypt.h>
#include <linux/hash.h>
#include <linux/highmem.h>
#include <linux/io_origin.h>
#include <linux/iomap.h>
#include <linux/jbd2.h>
#include <linux/magic.h>
#include <linux/pagemap.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

/* Tasks that do direct I/O at once; another one's has no file. */
#define IO_DIRECT_BITS	8

DEFINE_TRACE(io_journal_dirty,
	     TP_PROTO(struct transaction_s *transaction, struct buffer_head *bh),
	     TP_ARGS(transaction, bh));
DEFINE_TRACE(io_commit_asked,
	     TP_PROTO(struct journal_s *journal, unsigned int tid),
	     TP_ARGS(journal, tid));
DEFINE_TRACE(io_checkpoint_asked,
	     TP_PROTO(struct super_block *sb, bool waits),
	     TP_ARGS(sb, waits));
DEFINE_TRACE(io_renamed, TP_PROTO(struct dentry *dentry), TP_ARGS(dentry));
DEFINE_TRACE(io_called,
	     TP_PROTO(u8 call, struct file *file, loff_t offset, u64 begun, s64 result),
	     TP_ARGS(call, file, offset, begun, result));
DEFINE_TRACE(io_async_begun,
	     TP_PROTO(const void *request, u8 call, u8 interface, struct file *file,
		      loff_t offset),
	     TP_ARGS(request, call, interface, file, offset));
DEFINE_TRACE(io_async_ended,
	     TP_PROTO(const void *request, loff_t pos, s64 result),
	     TP_ARGS(request, pos, result));
DEFINE_TRACE(io_waits_for_folio,
	     TP_PROTO(struct io_wait *wait, struct folio *folio),
	     TP_ARGS(wait, folio));
DEFINE_TRACE(io_waited, TP_PROTO(const struct io_wait *wait), TP_ARGS(wait));
EXPORT_TRACEPOINT_SYMBOL_GPL(io_journal_dirty);
EXPORT_TRACEPOINT_SYMBOL_GPL(io_commit_asked);
EXPORT_TRACEPOINT_SYMBOL_GPL(io_checkpoint_asked);
EXPORT_TRACEPOINT_SYMBOL_GPL(io_waited);

/**
 * struct io_direct - the extent that a task's direct I/O works on
 * @task: whose; NULL: free
 * @file: the file's number
 * @dev: the disk
 * @start: first byte on it
 * @length: bytes
 * @offset: first byte in the file
 */
struct io_direct {
	struct task_struct *task;
	u32 file;
	dev_t dev;
	u64 start, length, offset;
};

/* Guards the table. */
static DEFINE_SPINLOCK(io_direct_lock);
static struct io_direct *io_directs;

static atomic64_t io_seq = ATOMIC64_INIT(0);

/* --- direct I/O */

static struct io_direct *io_direct_of(struct task_struct *task)
{
	return &io_directs[hash_ptr(task, IO_DIRECT_BITS)];
}

static void io_direct_begin(void *data, struct inode *inode, struct iomap *iomap)
{
	struct io_direct *direct = io_direct_of(current);
	unsigned long flags;
	u32 file;

	if (!iomap->bdev || iomap->addr == IOMAP_NULL_ADDR)
		return;
	/* Not the inode: after an error the end is not told, and the file may go. */
	file = io_file(inode);
	spin_lock_irqsave(&io_direct_lock, flags);
	*direct = (struct io_direct){
		.task = current,
		.file = file,
		.dev = disk_devt(iomap->bdev->bd_disk),
		.start = iomap->addr + ((u64)get_start_sect(iomap->bdev) << SECTOR_SHIFT),
		.length = iomap->length,
		.offset = iomap->offset,
	};
	spin_unlock_irqrestore(&io_direct_lock, flags);
}

/* Its next extent, if there is one, begins after this. */
static void io_direct_end(void *data, struct iomap_iter *iter, const void *ops,
			  unsigned long caller)
{
	struct io_direct *direct = io_direct_of(current);
	unsigned long flags;

	spin_lock_irqsave(&io_direct_lock, flags);
	if (direct->task == current)
		direct->task = NULL;
	spin_unlock_irqrestore(&io_direct_lock, flags);
}

static bool io_direct_has(const struct bio *bio, struct io_direct *copy)
{
	u64 at = (u64)bio->bi_iter.bi_sector << SECTOR_SHIFT;
	unsigned long flags;

	spin_lock_irqsave(&io_direct_lock, flags);
	*copy = *io_direct_of(current);
	spin_unlock_irqrestore(&io_direct_lock, flags);
	return copy->task == current &&
	       copy->dev == disk_devt(bio->bi_bdev->bd_disk) &&
	       at >= copy->start &&
	       at + bio->bi_iter.bi_size <= copy->start + copy->length;
}

/* --- bios */

/* Who sends a bio, and why. */
struct io_sender {
	u32 carrier;
	u8 call;
	enum fasttrack_cause cause;
};

static u8 io_type(const struct inode *inode, enum fasttrack_cause cause)
{
	if (S_ISREG(inode->i_mode) && inode->i_ino > 2)
		return IO_BLOCK_DATA;
	if (inode->i_sb->s_magic == F2FS_SUPER_MAGIC && inode->i_ino <= 2)
		return inode->i_ino == 1 ? IO_BLOCK_NODE : IO_BLOCK_CHECKPOINT;
	/* a checkpoint of f2fs writes directories where they belong, not into a log */
	if (cause != FASTTRACK_CAUSE_JOURNAL || S_ISDIR(inode->i_mode))
		return IO_BLOCK_METADATA;
	return IO_BLOCK_JOURNAL;
}

/* The file of a bio's page, most often that of the page before: looked up once a run. */
struct io_last {
	const struct address_space *mapping;
	u32 file;
};

static u32 io_file_of(struct address_space *mapping, struct io_last *last)
{
	if (last->mapping != mapping) {
		last->mapping = mapping;
		last->file = io_file(mapping->host);
	}
	return last->file;
}

/* Who changed the file last that a node of f2fs is of. */
static u32 io_node_owner(const struct inode *nodes, struct page *page)
{
	const struct f2fs_node *node = kmap_local_page(page);
	u32 ino = le32_to_cpu(node->footer.ino);

	kunmap_local(node);
	return io_file_owner(nodes->i_sb->s_dev, ino);
}

static void io_written(struct io_segment *segment, struct page *page,
		       struct folio *folio, struct address_space *mapping)
{
	struct io_owner owner = {};

	if (io_is_owned(mapping->host))
		owner = io_owner_take(folio, mapping);
	else if (segment->type == IO_BLOCK_NODE)
		owner.task = io_node_owner(mapping->host, page);
	segment->owner = owner.task;
	segment->call = owner.call;
}

/* Is it memory of current's own, which is not being swapped? */
static bool io_is_memory(const struct folio *folio)
{
	return folio_test_anon(folio) && !folio_test_swapcache(folio) &&
	       ft_is_user_task(current);
}

/* Current reads into its memory, or writes from there. */
static struct io_segment io_of_memory(const struct bio *bio,
				      const struct io_sender *sender)
{
	return (struct io_segment){
		.owner = sender->carrier,
		.call = op_is_write(bio_op(bio)) ? IO_CALL_DIRECT_WRITE :
						   IO_CALL_DIRECT_READ,
	};
}

/* What is known of one page of a bio. */
static struct io_segment io_page(const struct bio *bio, struct page *page,
				 const struct io_sender *sender, struct io_last *last)
{
	struct io_segment segment = {};
	struct address_space *mapping;
	bool journal = sender->cause == FASTTRACK_CAUSE_JOURNAL;
	struct folio *folio;

	if (fscrypt_is_bounce_page(page))
		page = fscrypt_pagecache_page(page);
	folio = page_folio(page);
	if (folio_test_slab(folio)) {
		segment.type = journal ? IO_BLOCK_JOURNAL : IO_BLOCK_UNKNOWN;
		return segment;
	}
	mapping = READ_ONCE(folio->mapping);
	if (!mapping || (unsigned long)mapping & PAGE_MAPPING_FLAGS || !mapping->host) {
		if (journal)
			segment.type = IO_BLOCK_JOURNAL;
		else if (io_is_memory(folio))
			segment = io_of_memory(bio, sender);
		return segment;
	}
	segment.type = io_type(mapping->host, sender->cause);
	segment.index = folio->index + folio_page_idx(folio, page);
	if (segment.type == IO_BLOCK_DATA)
		segment.file = io_file_of(mapping, last);
	if (op_is_write(bio_op(bio))) {
		io_written(&segment, page, folio, mapping);
	} else {
		segment.owner = sender->carrier;
		segment.call = sender->call;
	}
	return segment;
}

static bool io_continues(const struct io_segment *run, const struct io_segment *next)
{
	u32 pages = run->bytes >> PAGE_SHIFT;

	return run->bytes && run->type == next->type && run->file == next->file &&
	       run->owner == next->owner && run->call == next->call &&
	       (next->type != IO_BLOCK_DATA || next->index == run->index + pages);
}

static void io_give(u64 seq, const struct io_segment *run)
{
	trace_io_segment(seq, run);
	if (in_task())
		io_journal_wrote(run);
}

static void io_segments(u64 seq, struct bio *bio, const struct io_sender *sender)
{
	struct io_segment run = {}, next;
	struct io_last last = {};
	struct bvec_iter iter;
	struct bio_vec bv;
	u32 offset = 0;

	bio_for_each_segment(bv, bio, iter) {
		next = io_page(bio, bv.bv_page, sender, &last);
		if (!io_continues(&run, &next)) {
			if (run.bytes)
				io_give(seq, &run);
			run = next;
			run.offset = offset;
		}
		run.bytes += bv.bv_len;
		offset += bv.bv_len;
	}
	if (run.bytes)
		io_give(seq, &run);
}

static enum fasttrack_cause io_cause(const struct bio *bio, bool direct)
{
	enum fasttrack_cause cause = current->fasttrack_scope.cause;

	if (bio_op(bio) == REQ_OP_READ)
		return bio->bi_opf & REQ_META ? FASTTRACK_CAUSE_METADATA :
						FASTTRACK_CAUSE_READ;
	if (cause)
		return cause;
	if (bio_op(bio) != REQ_OP_WRITE || !bio->bi_iter.bi_size)
		return FASTTRACK_CAUSE_OTHER;
	if (bio->bi_opf & REQ_META)
		return FASTTRACK_CAUSE_METADATA;
	return direct ? FASTTRACK_CAUSE_SYNC_WRITE : FASTTRACK_CAUSE_WRITEBACK;
}

static void io_bio(void *data, struct bio *bio)
{
	u64 seq = atomic64_inc_return(&io_seq);
	struct io_direct direct;
	bool is_direct = io_direct_has(bio, &direct);
	struct io_sender sender = {
		.carrier = io_current(),
		.call = io_call(),
		.cause = io_cause(bio, is_direct),
	};
	struct io_segment segment;

	trace_io_bio(seq, bio, sender.carrier, sender.cause, is_direct,
		     in_task() ? io_journal_of_current() : 0);
	if (!bio_has_data(bio))
		return;
	/* Pinned pages can be of a file's map: it is not the one that is written. */
	if (!is_direct && !bio_flagged(bio, BIO_PAGE_PINNED)) {
		io_segments(seq, bio, &sender);
		return;
	}
	segment = io_of_memory(bio, &sender);
	segment.bytes = bio->bi_iter.bi_size;
	if (is_direct) {
		segment.type = IO_BLOCK_DATA;
		segment.index = (((u64)bio->bi_iter.bi_sector << SECTOR_SHIFT) -
				 direct.start + direct.offset) >> PAGE_SHIFT;
		segment.file = direct.file;
	}
	trace_io_segment(seq, &segment);
}

/* --- life of a session */

struct io_probe {
	const char *name;
	void *probe;
	struct tracepoint *tp;
};

/* By name: those of file systems that are not there are missing, and counted. */
static struct io_probe io_probes[] = {
	{ "writeback_dirty_folio", io_dirty_folio },
	{ "block_dirty_buffer", io_dirty_buffer },
	{ "f2fs_write_end", io_f2fs_write_end },
	{ "f2fs_vm_page_mkwrite", io_f2fs_mkwrite },
	{ "ext4_unlink_enter", io_unlink },
	{ "f2fs_unlink_enter", io_unlink },
	{ "io_renamed", io_renamed },
	{ "iomap_iter_dstmap", io_direct_begin },
	{ "iomap_iter", io_direct_end },
	{ "writeback_mark_inode_dirty", io_inode_dirty },
	{ "ext4_writepages", io_writepages },
	{ "ext4_writepages_result", io_writepages_end },
	{ "ext4_journal_start_inode", io_handle_of },
	{ "ext4_journal_start_reserved", io_handle_reserved },
	{ "ext4_ext_map_blocks_enter", io_map_blocks },
	{ "ext4_ind_map_blocks_enter", io_map_blocks },
	{ "jbd2_handle_start", io_handle_start },
	{ "jbd2_handle_restart", io_handle_start },
	{ "jbd2_handle_stats", io_handle_stop },
	{ "jbd2_start_commit", io_commit_start },
	{ "jbd2_commit_logging", io_commit_logging },
	{ "jbd2_run_stats", io_commit_end },
	{ "io_journal_dirty", io_journal_dirty },
	{ "io_commit_asked", io_commit_asked },
	{ "io_checkpoint_asked", io_checkpoint_asked },
	{ "f2fs_write_checkpoint", io_checkpoint },
	{ "block_bio_queue", io_bio },
	{ "io_waits_for_folio", io_waits_for_folio },
	{ "io_waited", io_waited },
	{ "io_called", io_called },
	/* Whose end nobody would tell is not begun. */
	{ "io_uring_complete", io_uring_done },
	{ "io_async_ended", io_async_ended },
	{ "io_uring_submit_req", io_uring_new },
	{ "io_async_begun", io_async_begun },
};

static atomic_t io_users = ATOMIC_INIT(0);

static void io_find(struct tracepoint *tp, void *data)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(io_probes); i++)
		if (!strcmp(tp->name, io_probes[i].name))
			io_probes[i].tp = tp;
}

static void io_begin(void)
{
	unsigned int missing = 0;
	unsigned long pages;
	bool known;
	int i;

	pages = io_pages_begin();
	io_directs = kvcalloc(1 << IO_DIRECT_BITS, sizeof(*io_directs), GFP_KERNEL);
	known = io_names_begin() && io_journal_begin() && io_calls_begin();
	if (io_directs && known)
		for_each_kernel_tracepoint(io_find, NULL);
	else
		pr_err("io_origin: no memory for names: nothing is traced\n");
	for (i = 0; i < ARRAY_SIZE(io_probes); i++) {
		struct io_probe *one = &io_probes[i];

		if (one->tp && tracepoint_probe_register(one->tp, one->probe, NULL))
			one->tp = NULL;
		missing += !one->tp;
	}
	trace_io_session(pages, missing);
}

static void io_end(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(io_probes); i++) {
		if (io_probes[i].tp)
			tracepoint_probe_unregister(io_probes[i].tp,
						    io_probes[i].probe, NULL);
		io_probes[i].tp = NULL;
	}
	tracepoint_synchronize_unregister();
	io_pages_end();
	kvfree(io_directs);
	io_directs = NULL;
	io_calls_end();
	io_journal_end();
	io_names_end();
}

/* One at a time: a work does not run beside itself. */
static void io_switch(struct work_struct *work)
{
	static bool on;
	bool wanted = atomic_read(&io_users) > 0;

	if (wanted == on)
		return;
	on = wanted;
	if (on)
		io_begin();
	else
		io_end();
}

static DECLARE_WORK(io_work, io_switch);

/* An event of the system has its first user. */
int io_origin_reg(void)
{
	atomic_inc(&io_users);
	schedule_work(&io_work);
	return 0;
}

/* It has none any more. */
void io_origin_unreg(void)
{
	atomic_dec(&io_users);
	schedule_work(&io_work);
}
