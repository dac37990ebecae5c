/* SPDX-License-Identifier: GPL-2.0 */
/*
 * FastTrack's hooks where a task is about to sleep: for what, and for whom
 * (mm/fasttrack/wait.c). Others include <linux/fasttrack.h>, which has these, too.
 */
#ifndef _LINUX_FASTTRACK_WAIT_H
#define _LINUX_FASTTRACK_WAIT_H

#include <linux/fasttrack_key.h>
#include <linux/sched.h>
#include <linux/types.h>

struct address_space;
struct file_lock_core;
struct folio;
struct task_struct;

/**
 * struct fasttrack_file_lock_wait - a wait for a lock of a file
 * @node: in the list of all
 * @waiter: who waits
 * @lock: what it asks for; NULL: nothing comes of it
 * @holder: the leader of the process that does not pause for it, or NULL
 */
struct fasttrack_file_lock_wait {
	struct list_head	node;
	struct task_struct	*waiter;
	struct file_lock_core	*lock;
	struct task_struct	*holder;
};

bool __fasttrack_flush_wait_begin(void);
void __fasttrack_flush_wait_end(void);
bool __fasttrack_cache_flush_begin(void);
void __fasttrack_cache_flush_end(void);
unsigned int __fasttrack_folio_wait_begin(struct folio *folio, bool writeback);
void __fasttrack_folio_wait_end(unsigned int done);
void __fasttrack_file_wait(const struct address_space *mapping);
unsigned int __fasttrack_inode_wait_begin(const struct address_space *mapping);
void __fasttrack_op(bool open);
bool __fasttrack_fetch_begin(void);
struct task_struct *__fasttrack_wait_begin(struct task_struct *worker);
void __fasttrack_wait_end(struct task_struct *worker);
void __fasttrack_file_lock_wait_begin(struct fasttrack_file_lock_wait *wait,
				      struct file_lock_core *lock);
void __fasttrack_file_lock_wait_end(struct fasttrack_file_lock_wait *wait);
void __fasttrack_lock_refused(pid_t pid);
bool __fasttrack_others_begin(struct task_struct *holder);
void __fasttrack_others_end(void);
unsigned int __fasttrack_lock_wait_begin(struct task_struct *holder);
void __fasttrack_lock_wait_end(unsigned int begun);

/**
 * fasttrack_folio_wait_begin - current is about to sleep on a bit of @folio
 * @folio: what the foreground waits for is promoted
 * @writeback: it is the write-back bit
 *
 * Return: what to give to fasttrack_folio_wait_end().
 */
static inline unsigned int fasttrack_folio_wait_begin(struct folio *folio,
						      bool writeback)
{
	return fasttrack_enabled() ?
		__fasttrack_folio_wait_begin(folio, writeback) : 0;
}

/* Current has slept. */
static inline void fasttrack_folio_wait_end(unsigned int done)
{
	if (IS_ENABLED(CONFIG_FASTTRACK) && done)
		__fasttrack_folio_wait_end(done);
}

/**
 * fasttrack_file_wait - current is about to wait for all write-back of a file
 * @mapping: what the foreground, or a worker for it, waits for is promoted
 */
static inline void fasttrack_file_wait(const struct address_space *mapping)
{
	if (fasttrack_enabled())
		__fasttrack_file_wait(mapping);
}

/**
 * fasttrack_inode_wait_begin - current is about to wait for who writes a file back now
 * @mapping: the file's
 *
 * Return: what to give to fasttrack_folio_wait_end().
 */
static inline unsigned int
fasttrack_inode_wait_begin(const struct address_space *mapping)
{
	return fasttrack_enabled() ? __fasttrack_inode_wait_begin(mapping) : 0;
}

/**
 * fasttrack_op_begin - current has an operation open that a checkpoint waits for
 *
 * When the foreground depends on others, what current sleeps on is promoted; what
 * it sends is not. Does not nest.
 */
static inline void fasttrack_op_begin(void)
{
	if (fasttrack_enabled())
		__fasttrack_op(true);
}

/* It has ended, or FastTrack was switched on in the middle of it. */
static inline void fasttrack_op_end(void)
{
#ifdef CONFIG_FASTTRACK
	if (current->fasttrack_flags)
		__fasttrack_op(false);
#endif
}

/**
 * fasttrack_fetch_begin - current has a file system look for a name, or for pages
 *
 * Whoever wants the same waits for current: as an operation that a checkpoint waits
 * for. One may be in another, or in an operation.
 *
 * Return: what to give to fasttrack_fetch_end().
 */
static inline bool fasttrack_fetch_begin(void)
{
	return fasttrack_enabled() && __fasttrack_fetch_begin();
}

/* It has an answer. */
static inline void fasttrack_fetch_end(bool begun)
{
	if (IS_ENABLED(CONFIG_FASTTRACK) && begun)
		__fasttrack_op(false);
}

/**
 * fasttrack_wait_begin - current is about to wait for what @worker does
 * @worker: a kernel thread that works in scopes, NULL or an error pointer;
 *	cannot go away before this returns
 *
 * While a foreground task waits, the scopes of @worker are foreground.
 *
 * Return: what to give to fasttrack_wait_end().
 */
static inline struct task_struct *
fasttrack_wait_begin(struct task_struct *worker)
{
	return fasttrack_enabled() ? __fasttrack_wait_begin(worker) : NULL;
}

/* Current has waited. */
static inline void fasttrack_wait_end(struct task_struct *worker)
{
	if (IS_ENABLED(CONFIG_FASTTRACK) && worker)
		__fasttrack_wait_end(worker);
}

/**
 * fasttrack_file_lock_wait_begin - current is about to wait for a lock of a file
 * @wait: to be given to fasttrack_file_lock_wait_end()
 * @lock: what current asks for, which is blocked
 *
 * While somebody waits who is not background, the process that has it does not pause.
 */
static inline void
fasttrack_file_lock_wait_begin(struct fasttrack_file_lock_wait *wait,
			       struct file_lock_core *lock)
{
	wait->lock = NULL;
	if (fasttrack_enabled())
		__fasttrack_file_lock_wait_begin(wait, lock);
}

/* Current has waited. */
static inline void
fasttrack_file_lock_wait_end(struct fasttrack_file_lock_wait *wait)
{
	if (IS_ENABLED(CONFIG_FASTTRACK) && wait->lock)
		__fasttrack_file_lock_wait_end(wait);
}

/* Current does not get a lock of a file that the process @pid has, and may try again. */
static inline void fasttrack_lock_refused(pid_t pid)
{
	if (fasttrack_enabled())
		__fasttrack_lock_refused(pid);
}

/**
 * fasttrack_others_begin - current is about to wait for whoever holds something
 * @holder: who holds it, if that is known; preemption is off then
 *
 * While the foreground does, the I/O scheduler holds nobody back, and @holder
 * inherits its class.
 *
 * Return: what to give to fasttrack_others_end().
 */
static inline bool fasttrack_others_begin(struct task_struct *holder)
{
	return fasttrack_enabled() && __fasttrack_others_begin(holder);
}

/* It has it. */
static inline void fasttrack_others_end(bool begun)
{
	if (IS_ENABLED(CONFIG_FASTTRACK) && begun)
		__fasttrack_others_end();
}

/* The same for a lock. Return: what to give to fasttrack_lock_wait_end(). */
static inline unsigned int fasttrack_lock_wait_begin(struct task_struct *holder)
{
	return fasttrack_enabled() ? __fasttrack_lock_wait_begin(holder) : 0;
}

/* Current has slept. The foreground may wait for the lock too, behind current. */
static inline void fasttrack_lock_wait_end(unsigned int begun)
{
	if (IS_ENABLED(CONFIG_FASTTRACK) && begun)
		__fasttrack_lock_wait_end(begun);
}

/**
 * fasttrack_flush_wait_begin - current is about to wait for a flusher
 *
 * Return: what to give to fasttrack_flush_wait_end().
 */
static inline bool fasttrack_flush_wait_begin(void)
{
	return fasttrack_enabled() && __fasttrack_flush_wait_begin();
}

/* It has waited. */
static inline void fasttrack_flush_wait_end(bool begun)
{
	if (IS_ENABLED(CONFIG_FASTTRACK) && begun)
		__fasttrack_flush_wait_end();
}

/**
 * fasttrack_cache_flush_begin - current is about to wait for a flush of a device's cache
 *
 * Return: what to give to fasttrack_cache_flush_end().
 */
static inline bool fasttrack_cache_flush_begin(void)
{
	return fasttrack_enabled() && __fasttrack_cache_flush_begin();
}

/* It has waited. */
static inline void fasttrack_cache_flush_end(bool begun)
{
	if (IS_ENABLED(CONFIG_FASTTRACK) && begun)
		__fasttrack_cache_flush_end();
}

#endif /* _LINUX_FASTTRACK_WAIT_H */
