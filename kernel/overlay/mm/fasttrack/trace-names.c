// SPDX-License-Identifier: GPL-2.0
/*
 * I/O origin, traced: tasks and files get numbers, and are named once.
 *
 * io_task and io_file tell of each at its first use, as it is then: a name that
 * changes is another number. A file also has an owner: the task that changed its
 * inode last. Write-back of its metadata is charged to that.
 */
#include <linux/compat.h>
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/hashtable.h>
#include <linux/magic.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/stat.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "trace.h"

/* Names that a session keeps; the next one makes it forget and name all again. */
#define IO_NAMES_MAX	16384
#define IO_HASH_BITS	10

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
	u32 owner;
	bool named;
};

/**
 * struct io_names - what has a number; there only while a session lasts
 * @tasks: by process
 * @files: by inode
 */
struct io_names {
	DECLARE_HASHTABLE(tasks, IO_HASH_BITS);
	DECLARE_HASHTABLE(files, IO_HASH_BITS);
};

/**
 * struct io_named - the process that a processor was asked for last: most often it
 *	is asked for again
 * @leader: compared only
 * @born: when it began
 * @uid: its user then
 * @name: its name then
 * @id: its number
 * @epoch: io_epoch when it was looked up
 */
struct io_named {
	const struct task_struct *leader;
	u64 born;
	kuid_t uid;
	char name[TASK_COMM_LEN];
	u32 id;
	unsigned int epoch;
};

static DEFINE_PER_CPU(struct io_named, io_named);

/* Guards the tables and the numbers; taken under any lock. */
static DEFINE_SPINLOCK(io_names_lock);
static struct io_names *io_names;
static unsigned int io_nr_names;
static u32 io_last_id;

/* How often all names were forgotten, and one. */
static unsigned int io_epoch = 1;

static void io_names_forget(void)
{
	struct hlist_node *next;
	struct io_task *task;
	struct io_file *file;
	int i;

	hash_for_each_safe(io_names->tasks, i, next, task, node) {
		hash_del(&task->node);
		kfree(task);
	}
	hash_for_each_safe(io_names->files, i, next, file, node) {
		hash_del(&file->node);
		kfree(file);
	}
	io_nr_names = 0;
	WRITE_ONCE(io_epoch, io_epoch + 1);
}

bool io_names_begin(void)
{
	io_names = kvzalloc(sizeof(*io_names), GFP_KERNEL);
	return io_names;
}

/* No probe runs any more. */
void io_names_end(void)
{
	if (!io_names)
		return;
	spin_lock_irq(&io_names_lock);
	io_names_forget();
	spin_unlock_irq(&io_names_lock);
	kvfree(io_names);
	io_names = NULL;
}

static u32 io_next_id(void)
{
	if (++io_nr_names > IO_NAMES_MAX) {
		io_names_forget();
		io_nr_names = 1;
	}
	return ++io_last_id ?: ++io_last_id;
}

/* --- tasks */

static bool io_task_is(const struct io_task *known, const struct task_struct *task,
		       u32 uid)
{
	return known->tgid == task->tgid && known->born == task->start_time &&
	       known->uid == uid && !strncmp(known->name, task->comm, TASK_COMM_LEN);
}

/* With interrupts off: is this the process that was asked for last? */
static bool io_is_named(const struct io_named *named, const struct task_struct *leader)
{
	return named->leader == leader && named->born == leader->start_time &&
	       named->epoch == READ_ONCE(io_epoch) &&
	       uid_eq(named->uid, current_uid()) &&
	       !memcmp(named->name, leader->comm, TASK_COMM_LEN);
}

/* With interrupts off: the number of @leader; @copy is it if it is new. */
static u32 io_task_get(struct task_struct *leader, struct io_task *copy)
{
	u32 uid = from_kuid(&init_user_ns, current_uid());
	struct io_task *known;
	u32 id = 0;

	spin_lock(&io_names_lock);
	hash_for_each_possible(io_names->tasks, known, node, leader->tgid)
		if (io_task_is(known, leader, uid)) {
			id = known->id;
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
	hash_add(io_names->tasks, &known->node, known->tgid);
	*copy = *known;
	id = known->id;
unlock:
	spin_unlock(&io_names_lock);
	return id;
}

/* The number of current's process, as it is now; 0: there is no memory. */
u32 io_current(void)
{
	struct task_struct *leader = current->group_leader;
	struct io_task new = {};
	struct io_named *named;
	unsigned long flags;
	u32 id;

	local_irq_save(flags);
	named = this_cpu_ptr(&io_named);
	if (io_is_named(named, leader)) {
		id = named->id;
	} else {
		/* Before: it may be forgotten as soon as it is found. */
		named->epoch = READ_ONCE(io_epoch);
		named->leader = leader;
		named->born = leader->start_time;
		named->uid = current_uid();
		memcpy(named->name, leader->comm, TASK_COMM_LEN);
		id = io_task_get(leader, &new);
		named->id = id;
		if (!id)
			named->leader = NULL;
	}
	local_irq_restore(flags);
	if (new.tgid)
		trace_io_task(new.id, new.tgid, new.uid, new.name,
			      !ft_is_user_task(current));
	return id;
}

/* The call that current is in; a fault is none, and has no number. */
u8 io_call(void)
{
	if (!ft_is_user_task(current) || in_compat_syscall())
		return IO_CALL_OTHER;
	switch (syscall_get_nr(current, task_pt_regs(current))) {
	case -1:
		return IO_CALL_FAULT;
	case __NR_read:
	case __NR_pread64:
	case __NR_readv:
	case __NR_preadv:
	case __NR_preadv2:
		return IO_CALL_READ;
	case __NR_write:
	case __NR_pwrite64:
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
		return IO_CALL_WRITE;
	case __NR_sendfile:
	case __NR_splice:
	case __NR_copy_file_range:
		return IO_CALL_SPLICE;
	case __NR_fsync:
		return IO_CALL_FSYNC;
	case __NR_fdatasync:
		return IO_CALL_FDATASYNC;
	case __NR_sync:
		return IO_CALL_SYNC;
	case __NR_syncfs:
		return IO_CALL_SYNCFS;
	case __NR_msync:
		return IO_CALL_MSYNC;
	case __NR_io_uring_enter:
		return IO_CALL_IO_URING;
	default:
		return IO_CALL_OTHER;
	}
}

/* --- files */

/* Under the lock; NULL: it has no number. */
static struct io_file *io_file_find(const struct inode *inode)
{
	struct io_file *file;

	hash_for_each_possible(io_names->files, file, node, inode->i_ino)
		if (file->ino == inode->i_ino && file->dev == inode->i_sb->s_dev &&
		    file->generation == inode->i_generation)
			return file;
	return NULL;
}

/* Under the lock; NULL: there is no memory. */
static struct io_file *io_file_get(const struct inode *inode)
{
	struct io_file *file = io_file_find(inode);

	if (file)
		return file;
	file = kzalloc(sizeof(*file), GFP_NOWAIT | __GFP_NOWARN);
	if (!file)
		return NULL;
	file->id = io_next_id();
	file->ino = inode->i_ino;
	file->dev = inode->i_sb->s_dev;
	file->generation = inode->i_generation;
	hash_add(io_names->files, &file->node, file->ino);
	return file;
}

/* The number of a file; @fresh, or NULL: nobody has named it, and current is to. */
static u32 io_file_id(const struct inode *inode, bool *fresh)
{
	struct io_file *file;
	unsigned long flags;
	u32 id = 0;

	spin_lock_irqsave(&io_names_lock, flags);
	file = io_file_get(inode);
	if (file) {
		/* Looking for the name takes locks of a task. */
		if (fresh) {
			*fresh = !file->named && in_task();
			file->named |= *fresh;
		}
		id = file->id;
	}
	spin_unlock_irqrestore(&io_names_lock, flags);
	return id;
}

/*
 * When a file was made; 0: its file system does not say so without sleeping, or the
 * dentry, which nobody may hold, is @inode's no more.
 */
static u64 io_created(struct dentry *dentry, const struct inode *inode)
{
	unsigned long magic = inode->i_sb->s_magic;
	const struct path path = { .dentry = dentry };
	struct kstat stat = {};

	if ((magic != EXT4_SUPER_MAGIC && magic != F2FS_SUPER_MAGIC) ||
	    !(S_ISREG(inode->i_mode) || S_ISDIR(inode->i_mode)) ||
	    !inode->i_op->getattr)
		return 0;
	spin_lock(&dentry->d_lock);
	if (d_inode(dentry) != inode ||
	    inode->i_op->getattr(&nop_mnt_idmap, &path, &stat, STATX_BTIME, 0))
		stat.result_mask = 0;
	spin_unlock(&dentry->d_lock);
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
	trace_io_file(id, event, inode, dentry ? io_created(dentry, inode) : 0,
		      path);
	kfree(buf);
}

/* The number of a file that is used; it is named at its first use. */
u32 io_file(struct inode *inode)
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

/* The same where nothing can be looked up: who uses the file next names it. */
u32 io_file_known(const struct inode *inode)
{
	return io_file_id(inode, NULL);
}

/* A file that has another name lives on. */
void io_unlink(void *data, struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(dentry);
	bool fresh;

	if (inode && inode->i_nlink < 2)
		io_file_name(io_file_id(inode, &fresh), 2, inode, dentry);
}

/* Of a file that has been named in this session: nobody needs another's new name. */
void io_renamed(void *data, struct dentry *dentry)
{
	struct inode *inode = d_inode(dentry);
	struct io_file *file;
	unsigned long flags;
	u32 id = 0;

	if (!inode || !inode->i_sb->s_bdev)
		return;
	spin_lock_irqsave(&io_names_lock, flags);
	file = io_file_find(inode);
	if (file && file->named)
		id = file->id;
	spin_unlock_irqrestore(&io_names_lock, flags);
	if (id)
		io_file_name(id, 1, inode, dentry);
}

bool io_is_sync(u8 call)
{
	return call == IO_CALL_FSYNC || call == IO_CALL_FDATASYNC ||
	       call == IO_CALL_SYNC || call == IO_CALL_SYNCFS ||
	       call == IO_CALL_MSYNC;
}

/* Whoever writes an inode back may change it: it stays its owner's. */
void io_inode_dirty(void *data, struct inode *inode, int flags)
{
	struct io_file *file;
	unsigned long irq;
	u32 owner;

	if (!inode->i_sb->s_bdev || !ft_is_user_task(current) ||
	    io_is_sync(io_call()))
		return;
	owner = io_current();
	spin_lock_irqsave(&io_names_lock, irq);
	file = io_file_get(inode);
	if (file)
		file->owner = owner;
	spin_unlock_irqrestore(&io_names_lock, irq);
}

/* Who changed a file last; 0: nobody, in this session. */
u32 io_file_owner(dev_t dev, u64 ino)
{
	struct io_file *file;
	unsigned long flags;
	u32 owner = 0;

	spin_lock_irqsave(&io_names_lock, flags);
	/* The newest is the first. */
	hash_for_each_possible(io_names->files, file, node, ino)
		if (file->ino == ino && file->dev == dev) {
			owner = file->owner;
			break;
		}
	spin_unlock_irqrestore(&io_names_lock, flags);
	return owner;
}
