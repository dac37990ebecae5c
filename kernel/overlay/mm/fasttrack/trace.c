// SPDX-License-Identifier: GPL-2.0
/*
 * I/O origin, traced: which task and which file each run of blocks belongs to.
 *
 * The events of the system io_origin. While any of them is registered, probes of
 * the kernel's own tracepoints keep who dirtied each page of a regular file, and
 * take each bio apart where it enters the block layer. Nothing of that is there
 * otherwise: no hook, and no byte of an inode, a bio or a task. FastTrack need not
 * be switched on.
 *
 *  - A page's owner is in a table by page frame, with a tag of the file and the
 *    index: a page that has moved or is another's by now has no owner. What was
 *    dirtied before the session has none either. None is 0: unknown.
 *  - A write to a page that is dirty already changes its owner. The kernel's
 *    generic tracepoint does not see that; those of ext4's buffers and of f2fs do.
 *    Folios of several pages have no owner.
 *  - Writes by mmap are seen at the fault that makes the page writable.
 *  - The file of direct I/O is that of the extent that iomap works on.
 *
 * Not covered: bios that a file system sends from a worker with other pages than
 * the file's (compression); renames.
 *
 * Registration only queues work, because tracepoints cannot register others:
 * io_session says when everything is in place.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/buffer_head.h>
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/iomap.h>
#include <linux/magic.h>
#include <linux/memblock.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/stat.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#define CREATE_TRACE_POINTS
#include <trace/events/io_origin.h>

#include "internal.h"

/* Names that a session keeps; the next one makes it forget and name all again. */
#define IO_NAMES_MAX	16384
#define IO_HASH_BITS	10

/* Tasks that do direct I/O at once; another one's has no file. */
#define IO_DIRECT_BITS	8

/* The low half of an owner's entry: a tag, and whether it was written since. */
#define IO_WRITTEN	BIT(31)

struct io_task {
	struct hlist_node node;
	u64 born;
	u32 id, tgid, uid;
	char name[TASK_COMM_LEN];
};

struct io_file {
	struct hlist_node node;
	u64 ino;
	u32 id, dev, generation;
	bool named;
};

/**
 * struct io_direct - the extent that a task's direct I/O works on
 * @task: whose; NULL: free
 * @inode: the file, which the task has open
 * @dev: the disk
 * @start: first byte on it
 * @length: bytes
 * @offset: first byte in the file
 */
struct io_direct {
	struct task_struct *task;
	struct inode *inode;
	dev_t dev;
	u64 start, length, offset;
};

/**
 * struct io_tables - what is known by now; there only while a session lasts
 * @tasks: that have a number
 * @files: that have one
 * @directs: by task
 */
struct io_tables {
	DECLARE_HASHTABLE(tasks, IO_HASH_BITS);
	DECLARE_HASHTABLE(files, IO_HASH_BITS);
	struct io_direct directs[1 << IO_DIRECT_BITS];
};

/* Guards the tables and the numbers; taken under any lock. */
static DEFINE_SPINLOCK(io_names_lock);
static struct io_tables *io_known;
static unsigned int io_nr_names;
static u32 io_last_id;

static u64 *io_owners;
static unsigned long io_nr_owners;
static atomic64_t io_seq = ATOMIC64_INIT(0);

static void io_names_forget(void)
{
	struct hlist_node *next;
	struct io_task *task;
	struct io_file *file;
	int i;

	hash_for_each_safe(io_known->tasks, i, next, task, node) {
		hash_del(&task->node);
		kfree(task);
	}
	hash_for_each_safe(io_known->files, i, next, file, node) {
		hash_del(&file->node);
		kfree(file);
	}
	io_nr_names = 0;
}

static u32 io_next_id(void)
{
	if (++io_nr_names > IO_NAMES_MAX) {
		io_names_forget();
		io_nr_names = 1;
	}
	return ++io_last_id ?: ++io_last_id;
}

static bool io_task_is(const struct io_task *known, const struct task_struct *task,
		       u32 uid)
{
	return known->tgid == task->tgid && known->born == task->start_time &&
	       known->uid == uid && !strncmp(known->name, task->comm, TASK_COMM_LEN);
}

/* The number of current's process, as it is now; 0: there is no memory. */
static u32 io_current(void)
{
	struct task_struct *leader = current->group_leader;
	u32 uid = from_kuid(&init_user_ns, current_uid());
	struct io_task *known, copy = {};
	unsigned long flags;

	spin_lock_irqsave(&io_names_lock, flags);
	hash_for_each_possible(io_known->tasks, known, node, leader->tgid)
		if (io_task_is(known, leader, uid)) {
			copy.id = known->id;
			goto unlock;
		}
	known = kzalloc(sizeof(*known), GFP_NOWAIT | __GFP_NOWARN);
	if (!known)
		goto unlock;
	known->id = io_next_id();
	known->tgid = leader->tgid;
	known->born = leader->start_time;
	known->uid = uid;
	strscpy_pad(known->name, leader->comm);
	hash_add(io_known->tasks, &known->node, known->tgid);
	copy = *known;
unlock:
	spin_unlock_irqrestore(&io_names_lock, flags);
	if (copy.tgid)
		trace_io_task(copy.id, copy.tgid, uid, copy.name,
			      !ft_is_user_task(current));
	return copy.id;
}

/* The number of a file; @fresh: nobody has named it. */
static u32 io_file_id(const struct inode *inode, bool *fresh)
{
	u32 dev = inode->i_sb->s_dev, id = 0;
	struct io_file *file;
	unsigned long flags;

	spin_lock_irqsave(&io_names_lock, flags);
	hash_for_each_possible(io_known->files, file, node, inode->i_ino)
		if (file->ino == inode->i_ino && file->dev == dev &&
		    file->generation == inode->i_generation)
			goto found;
	file = kzalloc(sizeof(*file), GFP_NOWAIT | __GFP_NOWARN);
	if (!file)
		goto unlock;
	file->id = io_next_id();
	file->ino = inode->i_ino;
	file->dev = dev;
	file->generation = inode->i_generation;
	hash_add(io_known->files, &file->node, file->ino);
found:
	/* Looking for the name takes locks of a task. */
	*fresh = !file->named && in_task();
	file->named |= *fresh;
	id = file->id;
unlock:
	spin_unlock_irqrestore(&io_names_lock, flags);
	return id;
}

/* When a file was made; 0: its file system does not say so without sleeping. */
static u64 io_created(struct dentry *dentry)
{
	unsigned long magic = dentry->d_sb->s_magic;
	const struct path path = { .dentry = dentry };
	struct inode *inode = d_inode(dentry);
	struct kstat stat = {};

	if ((magic != EXT4_SUPER_MAGIC && magic != F2FS_SUPER_MAGIC) ||
	    !S_ISREG(inode->i_mode) || !inode->i_op->getattr ||
	    inode->i_op->getattr(&nop_mnt_idmap, &path, &stat, STATX_BTIME, 0))
		return 0;
	return stat.result_mask & STATX_BTIME ?
		stat.btime.tv_sec * NSEC_PER_SEC + stat.btime.tv_nsec : 0;
}

static void io_file_name(u32 id, u8 event, struct inode *inode,
			 struct dentry *dentry)
{
	char *buf = kmalloc(PATH_MAX, GFP_NOWAIT | __GFP_NOWARN);
	const char *path = "";

	if (dentry && buf) {
		path = dentry_path_raw(dentry, buf, PATH_MAX);
		if (IS_ERR(path))
			path = "";
	}
	trace_io_file(id, event, inode,
		      dentry && d_inode(dentry) ? io_created(dentry) : 0, path);
	kfree(buf);
}

/* The number of a file that a bio moves; it is named at its first use. */
static u32 io_file(struct inode *inode)
{
	bool fresh = false;
	u32 id = io_file_id(inode, &fresh);

	if (fresh) {
		rcu_read_lock();
		io_file_name(id, 0, inode, d_find_alias_rcu(inode));
		rcu_read_unlock();
	}
	return id;
}

static void io_unlink(void *data, struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(dentry);
	bool fresh;

	if (inode)
		io_file_name(io_file_id(inode, &fresh), 2, inode, dentry);
}

/* --- owners of dirty pages */

static u32 io_tag(const struct address_space *mapping, pgoff_t index)
{
	return hash_64((u64)(unsigned long)mapping ^ (index * GOLDEN_RATIO_64), 31);
}

static u64 *io_owner_of(struct folio *folio)
{
	unsigned long pfn = folio_pfn(folio);

	return !folio_test_large(folio) && pfn < io_nr_owners ? &io_owners[pfn] : NULL;
}

/* Current dirties @folio; @again: it does so though somebody else has. */
static void io_dirty(struct folio *folio, struct address_space *mapping, bool again)
{
	u64 *owner, now;
	u32 tag;

	if (!mapping || !mapping->host || !S_ISREG(mapping->host->i_mode))
		return;
	owner = io_owner_of(folio);
	if (!owner)
		return;
	tag = io_tag(mapping, folio->index);
	now = READ_ONCE(*owner);
	/* Whoever writes back may make a page dirty again: it stays its owner's. */
	if ((!again || !ft_is_user_task(current)) && (u32)now == tag)
		return;
	WRITE_ONCE(*owner, (u64)io_current() << 32 | tag);
}

static void io_dirty_folio(void *data, struct folio *folio,
			   struct address_space *mapping)
{
	io_dirty(folio, mapping, false);
}

static void io_dirty_buffer(void *data, struct buffer_head *bh)
{
	io_dirty(bh->b_folio, READ_ONCE(bh->b_folio->mapping), true);
}

static void io_dirty_index(struct inode *inode, pgoff_t index)
{
	struct folio *folio;

	rcu_read_lock();
	folio = xa_load(&inode->i_mapping->i_pages, index);
	if (folio && !xa_is_value(folio))
		io_dirty(folio, inode->i_mapping, true);
	rcu_read_unlock();
}

/* f2fs has the folio locked: it is the one that was written. */
static void io_f2fs_write_end(void *data, struct inode *inode, loff_t pos,
			      unsigned int len, unsigned int copied)
{
	if (copied)
		io_dirty_index(inode, pos >> PAGE_SHIFT);
}

static void io_f2fs_mkwrite(void *data, struct inode *inode, pgoff_t index,
			    vm_flags_t vm_flags, vm_fault_t ret)
{
	if (!(ret & VM_FAULT_ERROR))
		io_dirty_index(inode, index);
}

/* Who dirtied a page that is on its way to the disk. */
static u32 io_owner_take(struct folio *folio,
			 const struct address_space *mapping)
{
	u64 *owner = io_owner_of(folio);
	u64 now = owner ? READ_ONCE(*owner) : 0;

	if (((u32)now & ~IO_WRITTEN) != io_tag(mapping, folio->index))
		return 0;
	WRITE_ONCE(*owner, now | IO_WRITTEN);
	return now >> 32;
}

/* --- direct I/O */

static struct io_direct *io_direct_of(struct task_struct *task)
{
	return &io_known->directs[hash_ptr(task, IO_DIRECT_BITS)];
}

static void io_direct_begin(void *data, struct inode *inode, struct iomap *iomap)
{
	struct io_direct *direct = io_direct_of(current);
	unsigned long flags;

	if (!iomap->bdev || iomap->addr == IOMAP_NULL_ADDR)
		return;
	spin_lock_irqsave(&io_names_lock, flags);
	*direct = (struct io_direct){
		.task = current,
		.inode = inode,
		.dev = disk_devt(iomap->bdev->bd_disk),
		.start = iomap->addr + ((u64)get_start_sect(iomap->bdev) << SECTOR_SHIFT),
		.length = iomap->length,
		.offset = iomap->offset,
	};
	spin_unlock_irqrestore(&io_names_lock, flags);
}

/* Its next extent, if there is one, begins after this. */
static void io_direct_end(void *data, struct iomap_iter *iter, const void *ops,
			  unsigned long caller)
{
	struct io_direct *direct = io_direct_of(current);
	unsigned long flags;

	spin_lock_irqsave(&io_names_lock, flags);
	if (direct->task == current)
		direct->task = NULL;
	spin_unlock_irqrestore(&io_names_lock, flags);
}

static bool io_direct_has(const struct bio *bio, struct io_direct *copy)
{
	u64 at = (u64)bio->bi_iter.bi_sector << SECTOR_SHIFT;
	unsigned long flags;

	spin_lock_irqsave(&io_names_lock, flags);
	*copy = *io_direct_of(current);
	spin_unlock_irqrestore(&io_names_lock, flags);
	return copy->task == current &&
	       copy->dev == disk_devt(bio->bi_bdev->bd_disk) &&
	       at >= copy->start &&
	       at + bio->bi_iter.bi_size <= copy->start + copy->length;
}

/* --- bios */

static u8 io_type(const struct inode *inode, enum fasttrack_cause cause)
{
	if (S_ISREG(inode->i_mode) && inode->i_ino > 2)
		return IO_BLOCK_DATA;
	if (inode->i_sb->s_magic == F2FS_SUPER_MAGIC && inode->i_ino <= 2)
		return inode->i_ino == 1 ? IO_BLOCK_NODE : IO_BLOCK_CHECKPOINT;
	return cause == FASTTRACK_CAUSE_JOURNAL ? IO_BLOCK_JOURNAL : IO_BLOCK_METADATA;
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

/* What is known of one page of a bio. */
static struct io_segment io_page(const struct bio *bio, struct page *page,
				 u32 carrier, enum fasttrack_cause cause,
				 struct io_last *last)
{
	struct io_segment segment = {};
	struct address_space *mapping;
	struct folio *folio;

	if (fscrypt_is_bounce_page(page))
		page = fscrypt_pagecache_page(page);
	folio = page_folio(page);
	if (folio_test_slab(folio)) {
		segment.type = cause == FASTTRACK_CAUSE_JOURNAL ?
			IO_BLOCK_JOURNAL : IO_BLOCK_UNKNOWN;
		return segment;
	}
	mapping = READ_ONCE(folio->mapping);
	if (!mapping || (unsigned long)mapping & PAGE_MAPPING_FLAGS || !mapping->host) {
		if (cause == FASTTRACK_CAUSE_JOURNAL)
			segment.type = IO_BLOCK_JOURNAL;
		return segment;
	}
	segment.type = io_type(mapping->host, cause);
	segment.index = folio->index + folio_page_idx(folio, page);
	if (segment.type == IO_BLOCK_DATA)
		segment.file = io_file_of(mapping, last);
	if (!op_is_write(bio_op(bio)))
		segment.owner = carrier;
	else if (segment.type == IO_BLOCK_DATA)
		segment.owner = io_owner_take(folio, mapping);
	return segment;
}

static bool io_continues(const struct io_segment *run, const struct io_segment *next)
{
	u32 pages = run->bytes >> PAGE_SHIFT;

	return run->bytes && run->type == next->type && run->file == next->file &&
	       run->owner == next->owner &&
	       (next->type != IO_BLOCK_DATA || next->index == run->index + pages);
}

static void io_segments(u64 seq, struct bio *bio, u32 carrier,
			enum fasttrack_cause cause)
{
	struct io_segment run = {}, next;
	struct io_last last = {};
	struct bvec_iter iter;
	struct bio_vec bv;
	u32 offset = 0;

	bio_for_each_segment(bv, bio, iter) {
		next = io_page(bio, bv.bv_page, carrier, cause, &last);
		if (!io_continues(&run, &next)) {
			if (run.bytes)
				trace_io_segment(seq, &run);
			run = next;
			run.offset = offset;
		}
		run.bytes += bv.bv_len;
		offset += bv.bv_len;
	}
	if (run.bytes)
		trace_io_segment(seq, &run);
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
	enum fasttrack_cause cause = io_cause(bio, is_direct);
	u32 carrier = io_current();
	struct io_segment segment = {};

	trace_io_bio(seq, bio, carrier, cause, is_direct);
	if (!bio_has_data(bio))
		return;
	if (!is_direct) {
		io_segments(seq, bio, carrier, cause);
		return;
	}
	segment.bytes = bio->bi_iter.bi_size;
	segment.type = IO_BLOCK_DATA;
	segment.index = (((u64)bio->bi_iter.bi_sector << SECTOR_SHIFT) - direct.start +
			 direct.offset) >> PAGE_SHIFT;
	segment.file = io_file(direct.inode);
	segment.owner = carrier;
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
	{ "iomap_iter_dstmap", io_direct_begin },
	{ "iomap_iter", io_direct_end },
	{ "block_bio_queue", io_bio },
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
	int i;

	io_nr_owners = max_pfn;
	io_owners = vcalloc(io_nr_owners, sizeof(*io_owners));
	if (!io_owners) {
		pr_err("io_origin: no memory for the owners of %lu pages: they are unknown\n",
		       io_nr_owners);
		io_nr_owners = 0;
	}
	io_known = kvzalloc(sizeof(*io_known), GFP_KERNEL);
	if (io_known)
		for_each_kernel_tracepoint(io_find, NULL);
	else
		pr_err("io_origin: no memory for names: nothing is traced\n");
	for (i = 0; i < ARRAY_SIZE(io_probes); i++) {
		struct io_probe *one = &io_probes[i];

		if (one->tp && tracepoint_probe_register(one->tp, one->probe, NULL))
			one->tp = NULL;
		missing += !one->tp;
	}
	trace_io_session(io_nr_owners, missing);
}

static void io_end(void)
{
	unsigned long flags;
	int i;

	for (i = 0; i < ARRAY_SIZE(io_probes); i++) {
		if (io_probes[i].tp)
			tracepoint_probe_unregister(io_probes[i].tp,
						    io_probes[i].probe, NULL);
		io_probes[i].tp = NULL;
	}
	tracepoint_synchronize_unregister();
	vfree(io_owners);
	io_owners = NULL;
	if (!io_known)
		return;
	/* No probe runs any more. */
	spin_lock_irqsave(&io_names_lock, flags);
	io_names_forget();
	spin_unlock_irqrestore(&io_names_lock, flags);
	kvfree(io_known);
	io_known = NULL;
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
