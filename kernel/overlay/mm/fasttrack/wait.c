// SPDX-License-Identifier: GPL-2.0
/*
 * Promotion on wait: who the foreground waits for works for the foreground.
 *
 *  1. It waits for a folio that requests in an I/O scheduler's queue will
 *     unlock, all those of one bio: they are made foreground (promoted), and
 *     with a write the others of its file; those too that come while it waits,
 *     for who sends them may have to wait for tags.
 *  2. It waits for a worker, the journal's thread for one: the worker's scopes
 *     are foreground meanwhile, and what the worker itself waits for is promoted.
 *     Others who are not background wait for who has a lock: what that one sleeps
 *     on then is neutral.
 *  3. It, or such a worker, waits for somebody that cannot be named: who holds
 *     a lock or a transaction open, write-back that has not reached the queue. The
 *     foreground depends on others then. As long as none of its own requests is
 *     under way the I/O scheduler holds nobody back: whoever it is, is among
 *     them.
 *  4. As long as it depends on others, tasks that are likely to be among them
 *     inherit its class (fasttrack_inherits()): who holds the lock that it waits
 *     for, who got a lock that others wanted too, who has a transaction open. Of
 *     those with an operation of f2fs open, for which a checkpoint waits, or in the
 *     middle of a lookup or of a read, what they sleep on is promoted, and not what
 *     they send: write-back is, too.
 *
 * Who depends and who sleeps is kept in depend.c; promote.c tells the schedulers.
 */
#include <linux/blkdev.h>
#include <linux/build_bug.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/task.h>
#include <linux/stddef.h>

#include "internal.h"
#include "policy.h"

/**
 * __fasttrack_file_wait - current is about to wait for all write-back of a file
 * @mapping: the file's
 *
 * Context: process context; does not sleep.
 */
void __fasttrack_file_wait(const struct address_space *mapping)
{
	if (__fasttrack_task_class(current) == FASTTRACK_FOREGROUND ||
	    fasttrack_inherits(current))
		ft_promote_file(mapping);
}
EXPORT_SYMBOL_GPL(__fasttrack_file_wait);

static_assert(offsetofend(struct task_struct, fasttrack_paused_ms) -
	      offsetof(struct task_struct, fasttrack_folio) <= 40,
	      "task_struct has room for 40 bytes of FastTrack's");

/**
 * __fasttrack_op - current has an operation open that a checkpoint waits for
 * @open: it begins; else it ends
 *
 * Context: process context; does not sleep.
 */
void __fasttrack_op(bool open)
{
	ft_flag(open ? FT_TASK_OP : FT_TASK_OP | FT_TASK_FETCHES, open);
}
EXPORT_SYMBOL_GPL(__fasttrack_op);

/**
 * __fasttrack_fetch_begin - current has a file system look for a name, or for pages
 *
 * Context: process context; does not sleep.
 * Return: whether __fasttrack_op(false) is to be called.
 */
bool __fasttrack_fetch_begin(void)
{
	if (current->fasttrack_flags & (FT_TASK_OP | FT_TASK_FETCHES))
		return false;
	ft_flag(FT_TASK_FETCHES, true);
	return true;
}

/* What __fasttrack_sync_begin() has done. */
#define FT_SYNC_WAITS	BIT(0)
#define FT_SYNC_LIFTS	BIT(1)
#define FT_SYNC_WORKS	BIT(2)
#define FT_SYNC_BEHIND	BIT(3)

/*
 * Current, of the foreground, is about to sleep for something known: it works, and is not
 * stuck.
 */
static void ft_known_sleep(void)
{
	ft_activity_sleep();
	current->fasttrack_named++;
}

/* It has slept. */
static void ft_known_wake(void)
{
	current->fasttrack_named--;
	ft_activity_wake();
}

/* What @holder sleeps on or has sent is of @class now: somebody waits for it. */
static void ft_help(struct task_struct *holder, enum fasttrack_class class)
{
	const struct folio *folio;

	/* Pairs with the barrier in __fasttrack_folio_wait_begin(). */
	smp_mb();
	folio = READ_ONCE(holder->fasttrack_folio);
	if (folio)
		ft_promote_to(folio, false, class);
	ft_promote_task(holder, class);
}

/* The foreground depends on @holder, and on what that sleeps on or has sent. */
static void ft_inherit(struct task_struct *holder)
{
	ft_inherits_set(holder);
	ft_help(holder, FASTTRACK_FOREGROUND);
}

/**
 * __fasttrack_others_begin - current may be about to wait for others
 * @holder: one of them, or NULL; cannot go away before this returns
 *
 * For waits that have no folio and no request: for a lock, for handles of a
 * transaction to be closed. Matters for foreground tasks, and for workers in
 * their scopes. What is inside another one of a worker's does nothing.
 *
 * Context: process context; does not sleep.
 * Return: whether __fasttrack_others_end() is to be called.
 */
bool __fasttrack_others_begin(struct task_struct *holder)
{
	if (current->fasttrack_others)
		return false;
	if (!current->fasttrack_scope.override) {
		if (__fasttrack_task_class(current) != FASTTRACK_FOREGROUND)
			return false;
		ft_activity_sleep();
	}
	if (!ft_others_begin())
		return true;
	if (holder)
		ft_inherit(holder);
	ft_kick(true);
	return true;
}
EXPORT_SYMBOL_GPL(__fasttrack_others_begin);

/**
 * __fasttrack_others_end - current has what it waited for
 *
 * After __fasttrack_others_begin() has returned true.
 */
void __fasttrack_others_end(void)
{
	ft_others_end();
	if (!current->fasttrack_scope.override)
		ft_activity_wake();
}
EXPORT_SYMBOL_GPL(__fasttrack_others_end);

/**
 * __fasttrack_sync_begin - current is about to wait for all of a file system
 * @bdi: the file system's; NULL: for all of all file systems
 *
 * What is dirty is written as current's from now on. For the foreground that is enough;
 * for others nobody is held back meanwhile.
 *
 * Context: process context; does not sleep.
 * Return: what to give to __fasttrack_sync_end().
 */
unsigned int __fasttrack_sync_begin(struct backing_dev_info *bdi)
{
	enum fasttrack_class class = __fasttrack_task_class(current);
	unsigned int begun = FT_SYNC_WAITS;

	ft_sync_change(class, bdi, 1);
	if (class == FASTTRACK_BACKGROUND)
		return FT_SYNC_BEHIND;
	if (class == FASTTRACK_FOREGROUND) {
		ft_sync_note(false);
		ft_activity_sleep();
		ft_flag(FT_TASK_SYNCS, true);
		begun |= FT_SYNC_WORKS;
	}
	if (class != FASTTRACK_FOREGROUND || !READ_ONCE(ft_knobs.promotion)) {
		/* All go: it is not stuck. */
		current->fasttrack_named++;
		ft_lift_begin();
		ft_kick(false);
		begun |= FT_SYNC_LIFTS;
	}
	ft_promote_flushed(fasttrack_io_class(class));
	return begun;
}

/**
 * __fasttrack_sync_end - it has waited
 * @bdi: as at the beginning
 * @begun: result of __fasttrack_sync_begin()
 */
void __fasttrack_sync_end(struct backing_dev_info *bdi, unsigned int begun)
{
	if (begun & FT_SYNC_BEHIND) {
		ft_sync_change(FASTTRACK_BACKGROUND, bdi, -1);
		return;
	}
	if (begun & FT_SYNC_LIFTS) {
		ft_lift_end();
		current->fasttrack_named--;
	}
	if (begun & FT_SYNC_WORKS) {
		ft_flag(FT_TASK_SYNCS, false);
		ft_sync_note(true);
		ft_activity_wake();
	}
	ft_sync_change(begun & FT_SYNC_WORKS ? FASTTRACK_FOREGROUND :
					       FASTTRACK_NEUTRAL, bdi, -1);
}

/**
 * __fasttrack_flush_wait_begin - current is about to wait for a flusher
 *
 * One that works for the foreground is looked at itself, if it is stuck.
 *
 * Context: process context; does not sleep.
 * Return: whether __fasttrack_flush_wait_end() is to be called.
 */
bool __fasttrack_flush_wait_begin(void)
{
	if (!(current->fasttrack_flags & FT_TASK_SYNCS))
		return false;
	current->fasttrack_named++;
	return true;
}

/**
 * __fasttrack_flush_wait_end - it has waited
 */
void __fasttrack_flush_wait_end(void)
{
	current->fasttrack_named--;
}

/**
 * __fasttrack_cache_flush_begin - current is about to wait for a flush of a device's cache
 *
 * No I/O scheduler sees it: the foreground has no request in the device then, and works.
 *
 * Context: process context; does not sleep.
 * Return: whether __fasttrack_cache_flush_end() is to be called.
 */
bool __fasttrack_cache_flush_begin(void)
{
	if (__fasttrack_task_class(current) != FASTTRACK_FOREGROUND)
		return false;
	ft_known_sleep();
	return true;
}
EXPORT_SYMBOL_GPL(__fasttrack_cache_flush_begin);

/**
 * __fasttrack_cache_flush_end - it has waited
 */
void __fasttrack_cache_flush_end(void)
{
	ft_known_wake();
}
EXPORT_SYMBOL_GPL(__fasttrack_cache_flush_end);

/* What __fasttrack_lock_wait_begin() has done. */
#define FT_LOCK_SHOWN	BIT(0)
#define FT_LOCK_OTHERS	BIT(1)

/**
 * __fasttrack_lock_wait_begin - current is about to sleep for a lock
 * @holder: who has it, or NULL; cannot go away before this returns
 *
 * Context: process context; does not sleep.
 * Return: what to give to __fasttrack_lock_wait_end().
 */
unsigned int __fasttrack_lock_wait_begin(struct task_struct *holder)
{
	bool behind = holder &&
		      __fasttrack_task_class(holder) == FASTTRACK_BACKGROUND;

	/* Of others, who has the lock is looked at itself, if it is stuck. */
	ft_flag(FT_TASK_LOCK, behind);
	if (behind && ft_is_user_task(current) &&
	    fasttrack_io_class(__fasttrack_task_class(current)) == FASTTRACK_NEUTRAL)
		ft_help(holder, FASTTRACK_NEUTRAL);
	return FT_LOCK_SHOWN |
	       (__fasttrack_others_begin(holder) ? FT_LOCK_OTHERS : 0);
}
EXPORT_SYMBOL_GPL(__fasttrack_lock_wait_begin);

/**
 * __fasttrack_lock_wait_end - current has slept
 * @begun: result of __fasttrack_lock_wait_begin()
 *
 * If it is not foreground: others want the lock too, the foreground maybe. Until
 * that depends on nobody, current inherits.
 */
void __fasttrack_lock_wait_end(unsigned int begun)
{
	ft_flag(FT_TASK_LOCK, false);
	if (begun & FT_LOCK_OTHERS)
		__fasttrack_others_end();
	else if (ft_foreground_waits())
		ft_inherits_set(current);
}
EXPORT_SYMBOL_GPL(__fasttrack_lock_wait_end);

/*
 * Does whoever sleeps on @folio, which no request in a queue covers, wait for
 * others? A lock of a folio that is up to date, or under write-back, is a
 * task's; another one is being read: by the device now, or by a sender who gets
 * a tag for it. Write-back of a background app's may not have come to the queue
 * yet, nor has all of a file's that the flusher is at.
 */
static bool ft_folio_of_others(struct folio *folio, bool writeback)
{
	struct address_space *mapping;
	bool others = false;

	if (!writeback)
		return folio_test_uptodate(folio) ||
		       folio_test_writeback(folio);
	if (folio_test_anon(folio))
		return false;
	/* Not locked: its inode is freed a grace period later at the earliest. */
	rcu_read_lock();
	mapping = READ_ONCE(folio->mapping);
	if (mapping) {
		others = (mapping->host &&
			  READ_ONCE(mapping->host->i_state) & I_SYNC) ||
			 ft_file_class(mapping) == FASTTRACK_BACKGROUND;
	}
	rcu_read_unlock();
	return others;
}

static bool ft_is_served(const struct super_block *sb)
{
	return !(sb->s_type->fs_flags & FS_REQUIRES_DEV) ||
	       sb->s_magic == FUSE_SUPER_MAGIC;
}

/*
 * Everybody's metadata is in a block device's mapping: that names no file.
 *
 * @served: is @folio of a file system without a block device, or of FUSE with one? A
 * task brings its pages, who may be background and must not pause for it.
 */
static struct fasttrack_sleeper ft_sleeper_on(struct folio *folio,
					      bool writeback, bool *served)
{
	struct fasttrack_sleeper sleeper = {
		.pfn = folio_pfn(folio),
		.pages = folio_nr_pages(folio),
		.writeback = writeback,
	};
	struct address_space *mapping;

	*served = false;
	/* Not locked, as above. */
	rcu_read_lock();
	mapping = folio_mapping(folio);
	if (mapping && mapping->host && !S_ISBLK(mapping->host->i_mode)) {
		sleeper.file = mapping;
		*served = ft_is_served(mapping->host->i_sb);
	}
	rcu_read_unlock();
	return sleeper;
}

/* The foreground waits for a server: it depends on it, and does not work. */
static void ft_served_begin(void)
{
	ft_depend_begin();
	ft_kick(true);
}

static void ft_served_end(void)
{
	ft_depend_end();
	ft_activity_note();
}

/* Is @folio one of the file that current has sent last, and being read? */
static bool ft_is_read(struct folio *folio)
{
	return !folio_test_uptodate(folio) &&
	       READ_ONCE(folio->mapping) == current->fasttrack_sends;
}

/**
 * __fasttrack_folio_wait_begin - current is about to sleep on a bit of @folio
 * @folio: referenced by the caller; NULL for a buffer without one
 * @writeback: it is the write-back bit
 *
 * Context: process context; does not sleep.
 * Return: what to give to __fasttrack_folio_wait_end().
 */
unsigned int __fasttrack_folio_wait_begin(struct folio *folio, bool writeback)
{
	enum fasttrack_class class = __fasttrack_task_class(current);
	bool foreground = class == FASTTRACK_FOREGROUND;
	bool worker = current->fasttrack_scope.override;
	u8 has_op = current->fasttrack_flags & (FT_TASK_OP | FT_TASK_FETCHES);
	struct fasttrack_sleeper sleeper;
	unsigned int done = 0;
	bool served;

	if (!folio)
		return 0;
	if (!foreground || worker) {
		WRITE_ONCE(current->fasttrack_folio, folio);
		done |= FT_WAIT_SHOWN;
		if (has_op && !foreground)
			done |= ft_op_sleep_begin(folio, has_op & FT_TASK_FETCHES);
		/* Pairs with those of whoever looks for it. */
		smp_mb();
	}
	if (class == FASTTRACK_BACKGROUND && !writeback && ft_is_read(folio))
		ft_has_sent();
	if (!foreground) {
		if (fasttrack_inherits(current) ||
		    (has_op && ft_ops_are_waited_for())) {
			/* What it sleeps on may still be in its plug. */
			if (current->plug)
				blk_flush_plug(current->plug, true);
			ft_promote(folio, false);
		}
		if (!worker)
			return done;
	}
	if (foreground) {
		sleeper = ft_sleeper_on(folio, writeback, &served);
		if (served) {
			ft_served_begin();
			return done | FT_WAIT_SERVED;
		}
		ft_known_sleep();
		done |= FT_WAIT_FOREGROUND;
		/* Before it is looked for: it may come to the queue now. */
		done |= ft_sleep_begin(sleeper);
		if (ft_promote(folio, sleeper.file))
			return done;
		/* Some of its requests may have come, others wait for tags. */
		if (writeback)
			ft_promote_file(sleeper.file);
		else if (sleeper.file)
			ft_wake_senders();
		/*
		 * Its request is in the device, if it is current's own. Else there may
		 * be none yet: who reads it sleeps for metadata, or for what the
		 * catch-all is to find out.
		 */
		if (!writeback && !folio_test_uptodate(folio) && ft_queues_promote() &&
		    !(ft_is_read(folio) && ft_has_sent_requests(current))) {
			ft_fetch_wait_begin();
			ft_promote_ops();
			WRITE_ONCE(current->fasttrack_folio, folio);
			current->fasttrack_named--;
			done |= FT_WAIT_SHOWN | FT_WAIT_UNNAMED;
		}
	}
	if (ft_folio_of_others(folio, writeback) &&
	    __fasttrack_others_begin(NULL))
		done |= FT_WAIT_OTHERS;
	return done;
}

/**
 * __fasttrack_folio_wait_end - current has slept
 * @done: result of __fasttrack_folio_wait_begin()
 */
void __fasttrack_folio_wait_end(unsigned int done)
{
	if (done & FT_WAIT_SHOWN)
		WRITE_ONCE(current->fasttrack_folio, NULL);
	ft_sleep_end(done);
	if (done & FT_WAIT_SERVED)
		ft_served_end();
	if (done & FT_WAIT_OTHERS)
		__fasttrack_others_end();
	if (done & FT_WAIT_UNNAMED) {
		current->fasttrack_named++;
		ft_fetch_wait_end();
	}
	if (done & FT_WAIT_FOREGROUND)
		ft_known_wake();
}

/**
 * __fasttrack_inode_wait_begin - current is about to wait for who writes a file back
 * @mapping: the file's; what comes to the queue of it is promoted
 *
 * Context: process context; does not sleep.
 * Return: what to give to __fasttrack_folio_wait_end().
 */
unsigned int __fasttrack_inode_wait_begin(const struct address_space *mapping)
{
	unsigned int done = 0;

	__fasttrack_file_wait(mapping);
	if (__fasttrack_task_class(current) == FASTTRACK_FOREGROUND)
		/* A page that no file has: only by its file is a request known. */
		done |= ft_sleep_begin((struct fasttrack_sleeper){
			.file = mapping,
			.pages = 1,
			.writeback = true,
		});
	if (__fasttrack_others_begin(NULL))
		done |= FT_WAIT_OTHERS;
	return done;
}

/* In what __fasttrack_wait_begin() returns: current is not foreground. */
#define FT_WATCHES	1UL

/* Current, neither foreground nor background, is about to wait for @worker. */
static struct task_struct *ft_watch_begin(struct task_struct *worker)
{
	if (!ft_worker_watch_begin(worker))
		return NULL;
	get_task_struct(worker);
	current->fasttrack_named++;
	return (struct task_struct *)((unsigned long)worker | FT_WATCHES);
}

/**
 * __fasttrack_wait_begin - current is about to wait for what @worker does
 * @worker: a kernel thread that works in scopes, NULL or an error pointer;
 *	cannot go away before this returns
 *
 * While a foreground task waits, the scopes of @worker are foreground. While
 * another one does that is not background, @worker is looked at if it is stuck,
 * and not who waits for it.
 *
 * Context: process context; does not sleep.
 * Return: what to give to __fasttrack_wait_end(): @worker with a reference, or
 * NULL if current is background.
 */
struct task_struct *__fasttrack_wait_begin(struct task_struct *worker)
{
	enum fasttrack_class class = __fasttrack_task_class(current);
	const struct folio *folio;

	if (IS_ERR_OR_NULL(worker) || class == FASTTRACK_BACKGROUND)
		return NULL;
	ft_commit_note(class);
	if (class != FASTTRACK_FOREGROUND)
		return ft_watch_begin(worker);
	get_task_struct(worker);
	ft_known_sleep();

	ft_worker_wait_begin(worker);
	ft_kick(true);

	/* Pairs with the barrier in __fasttrack_folio_wait_begin(). */
	smp_mb();
	folio = READ_ONCE(worker->fasttrack_folio);
	if (folio)
		ft_promote(folio, true);
	return worker;
}
EXPORT_SYMBOL_GPL(__fasttrack_wait_begin);

/**
 * __fasttrack_backlog - current has added to a backlog of metadata
 * @blocks: how many blocks it has; only some syncs need a commit
 *
 * While the foreground waits for commits now and then, a background task pauses on its
 * way back to user mode until it is written.
 *
 * Context: any process context; does not sleep.
 * Return: shall it be written, though nobody waits? See __fasttrack_commit_due().
 */
bool __fasttrack_backlog(int blocks)
{
	if (ft_backlog_add(blocks))
		fasttrack_cache_work(FT_OPERATION_PAGES);
	return __fasttrack_commit_due(blocks, true);
}
EXPORT_SYMBOL_GPL(__fasttrack_backlog);

/**
 * __fasttrack_shared_part - how much may be taken of what all wait for?
 * @most: all of it: credits of a journal, for one
 *
 * Some of it is for the foreground while anybody is in front: who has the rest gives
 * it back when its I/O is done, at background's speed.
 *
 * Context: any process context; does not sleep.
 * Return: up to how much current may take, with what others have.
 */
int __fasttrack_shared_part(int most)
{
	return ft_shared_part(most, ft_foreground_set() &&
			      READ_ONCE(ft_knobs.promotion) &&
			      __fasttrack_task_class(current) !=
				      FASTTRACK_FOREGROUND &&
			      !fasttrack_inherits(current));
}
EXPORT_SYMBOL_GPL(__fasttrack_shared_part);

/**
 * __fasttrack_wait_end - the wait is over
 * @begun: result of __fasttrack_wait_begin()
 */
void __fasttrack_wait_end(struct task_struct *begun)
{
	unsigned long watches = (unsigned long)begun & FT_WATCHES;
	struct task_struct *worker =
		(struct task_struct *)((unsigned long)begun - watches);

	current->fasttrack_named--;
	if (watches) {
		ft_worker_watch_end(worker);
	} else {
		ft_worker_wait_end(worker);
		ft_activity_wake();
	}
	put_task_struct(worker);
}
EXPORT_SYMBOL_GPL(__fasttrack_wait_end);
