/* SPDX-License-Identifier: GPL-2.0 */
/*
 * FastTrack: the app in front does not wait for the apps behind it.
 *
 * The hooks: what the rest of the kernel tells the core (mm/fasttrack/), and asks
 * it. Those of waits are in <linux/fasttrack_wait.h>. I/O schedulers that serve the
 * foreground first also include <linux/fasttrack_sched.h>.
 *
 * Everything is behind the static key @fasttrack_key: with FastTrack switched
 * off (the default) a hook costs one patched-out branch and changes nothing.
 * Scopes are kept all the same, so that a switch in the middle of one leaves it
 * balanced; they are a few stores a commit or fsync. So is whether a task is still
 * who it was: one store when its UID or cgroup changes.
 *
 * With FastTrack configured off no hook is there: the compiler drops the calls,
 * so that none of the functions that are declared here has to exist.
 */
#ifndef _LINUX_FASTTRACK_H
#define _LINUX_FASTTRACK_H

#include <linux/blk_types.h>
#include <linux/fasttrack_class.h>
#include <linux/fasttrack_key.h>
#include <linux/fasttrack_types.h>
#include <linux/fasttrack_wait.h>
#include <linux/sched.h>
#include <linux/sizes.h>

struct address_space;
struct bdi_writeback;
struct folio;
struct pglist_data;
struct task_struct;
struct writeback_control;
struct zone;

/*
 * Places of apps: far more than there are; in cgroup mode each service is one. The
 * lowest bits of an app's number are its place.
 */
#define FASTTRACK_APP_BITS	10
#define FASTTRACK_APPS		BIT(FASTTRACK_APP_BITS)

/* By place: the app's number ^ its class; 0: nobody's. See mm/fasttrack/app.c. */
extern u32 fasttrack_apps[FASTTRACK_APPS];

/* The class of the app @id; if there is none (any more) no class, but a higher number. */
static inline u32 fasttrack_app_entry(u32 id)
{
	return READ_ONCE(fasttrack_apps[id % FASTTRACK_APPS]) ^ id;
}

enum fasttrack_class __fasttrack_own_class(void);

/*
 * Is current's app of @class, whomever current works for? Most tasks have kept the
 * app's number; those of the kernel never do, and are neutral.
 */
static inline bool fasttrack_own_class_is(enum fasttrack_class class)
{
#ifdef CONFIG_FASTTRACK
	u32 entry = fasttrack_app_entry(READ_ONCE(current->fasttrack_app));

	return entry == class || (unlikely(entry >= FASTTRACK_NR_APP_CLASSES) &&
				  __fasttrack_own_class() == class);
#else
	return false;
#endif
}

void __fasttrack_task_changed(struct task_struct *task);
void __fasttrack_mapping_dirtied(struct address_space *mapping, long nr);
void __fasttrack_mapping_cleaned(struct address_space *mapping, long nr);
void __fasttrack_mapping_used(struct address_space *mapping);
void __fasttrack_mapping_cached(struct address_space *mapping, long nr);
void __fasttrack_bio_submit(struct bio *bio);
void __fasttrack_cache_work(unsigned long pages);
void __fasttrack_resume_user(void);
bool __fasttrack_fsync(struct address_space *mapping, loff_t start, loff_t end,
		       bool datasync);
unsigned int __fasttrack_sync_begin(struct backing_dev_info *bdi);
void __fasttrack_sync_end(struct backing_dev_info *bdi, unsigned int begun);
bool __fasttrack_writeback_over(struct address_space *mapping,
				struct writeback_control *wbc);
bool __fasttrack_writeback_skips(struct bdi_writeback *wb,
				 const struct address_space *mapping, bool over);
bool __fasttrack_extent_full(const struct address_space *mapping,
			     unsigned long pages);
void __fasttrack_writeback_begin(void);
void __fasttrack_writeback_end(void);
void __fasttrack_writeback_pause(struct bdi_writeback *wb);
bool __fasttrack_writeback_wait(struct bdi_writeback *wb);
void __fasttrack_writeback_queued(void);
bool __fasttrack_commit_due(int blocks, bool rare);
bool __fasttrack_commit_copies(void);
void __fasttrack_commit_asked(void);
u64 __fasttrack_commit_rest(u64 ns, unsigned int wasted, unsigned int written);
bool __fasttrack_backlog(int blocks);
void __fasttrack_backlog_done(void);
bool __fasttrack_may_drain(struct backing_dev_info *bdi);
bool __fasttrack_may_wait_first(struct backing_dev_info *bdi);
void __fasttrack_drain_begin(void);
void __fasttrack_drain_end(void);
void __fasttrack_drain_adds(void);
int __fasttrack_shared_part(int most);
unsigned long __fasttrack_zone_reserve(struct zone *zone);
unsigned long __fasttrack_alloc_mark(struct zone *zone, unsigned long mark,
				     unsigned int alloc_flags, gfp_t gfp);
bool __fasttrack_alloc_spent(unsigned int *alloc_flags);
bool __fasttrack_allocates_foreground(void);
bool __fasttrack_reclaims_foreground(void);
gfp_t __fasttrack_reclaim_gfp(gfp_t gfp);
bool __fasttrack_dirty_exempt(struct bdi_writeback *wb);
void __fasttrack_dirty_write(struct address_space *mapping);
void __fasttrack_dirty_pace(struct bdi_writeback *wb);
bool __fasttrack_dirty_over(struct bdi_writeback *wb);
void __fasttrack_written(struct bdi_writeback *wb);
bool __fasttrack_protects(struct folio *folio, int priority, bool dirty);
bool __fasttrack_ages(u8 *epoch);
bool __fasttrack_dirty_first(struct pglist_data *pgdat, gfp_t gfp, int priority,
			     unsigned long *since);
struct fasttrack_scope __fasttrack_scope_enter(enum fasttrack_class class,
					       enum fasttrack_cause cause);
struct fasttrack_scope __fasttrack_owner_enter(const struct address_space *mapping,
					       enum fasttrack_cause cause);
struct fasttrack_scope __fasttrack_bio_enter(blk_opf_t opf);
struct fasttrack_scope __fasttrack_cause_enter(enum fasttrack_cause cause);
void __fasttrack_scope_leave(struct fasttrack_scope outer);
bool fasttrack_foreground_depends(void);

/* The class of a bio or a request, from its flags. */
static inline enum fasttrack_class fasttrack_opf_class(blk_opf_t opf)
{
	if (!IS_ENABLED(CONFIG_FASTTRACK))
		return FASTTRACK_NEUTRAL;
	if (opf & REQ_FASTTRACK_FOREGROUND)
		return FASTTRACK_FOREGROUND;
	if (opf & REQ_FASTTRACK_BACKGROUND)
		return FASTTRACK_BACKGROUND;
	return FASTTRACK_NEUTRAL;
}

/* The flags that hold the class; none with FastTrack configured off. */
#define REQ_FASTTRACK_MASK						\
	(IS_ENABLED(CONFIG_FASTTRACK) ?					\
	 REQ_FASTTRACK_BACKGROUND | REQ_FASTTRACK_FOREGROUND :		\
	 (__force blk_opf_t)0)

/**
 * fasttrack_task_changed - @task has another UID or another cgroup from now on
 * @task: may be of another app
 */
static inline void fasttrack_task_changed(struct task_struct *task)
{
	if (IS_ENABLED(CONFIG_FASTTRACK))
		__fasttrack_task_changed(task);
}

/**
 * fasttrack_mapping_dirtied - current has dirtied pages of @mapping
 * @mapping: remembers the app, so that write-back by kworkers is its I/O
 * @nr: pages
 */
static inline void fasttrack_mapping_dirtied(struct address_space *mapping,
					     long nr)
{
	if (fasttrack_enabled())
		__fasttrack_mapping_dirtied(mapping, nr);
}

/**
 * fasttrack_mapping_cleaned - dirty pages of @mapping are written or dropped
 * @mapping: whose
 * @nr: pages
 */
static inline void fasttrack_mapping_cleaned(struct address_space *mapping,
					     long nr)
{
	if (fasttrack_enabled())
		__fasttrack_mapping_cleaned(mapping, nr);
}

/**
 * fasttrack_mapping_used - current reads or maps @mapping's file or folder
 * @mapping: the foreground's from now on, if current is
 */
static inline void fasttrack_mapping_used(struct address_space *mapping)
{
	if (fasttrack_enabled_hot() &&
	    fasttrack_own_class_is(FASTTRACK_FOREGROUND))
		__fasttrack_mapping_used(mapping);
}

/**
 * fasttrack_mapping_cached - pages have come into, or left, the page cache
 * @mapping: whose; its lock is held
 * @nr: how many; negative: they have left
 */
static inline void fasttrack_mapping_cached(struct address_space *mapping,
					    long nr)
{
#ifdef CONFIG_FASTTRACK
	if (fasttrack_enabled() && READ_ONCE(mapping->fasttrack_user))
		__fasttrack_mapping_cached(mapping, nr);
#endif
}

/**
 * fasttrack_cache_work - current has brought pages into the page cache
 * @pages: how many, or has copied; a background task owes a pause for a segment
 */
static inline void fasttrack_cache_work(unsigned long pages)
{
	if (fasttrack_enabled_hot() &&
	    fasttrack_own_class_is(FASTTRACK_BACKGROUND))
		__fasttrack_cache_work(pages);
}

/**
 * fasttrack_resume_user - current returns to user mode, without locks
 *
 * A background task may pause here.
 */
static inline void fasttrack_resume_user(void)
{
	if (fasttrack_enabled())
		__fasttrack_resume_user();
}

/**
 * fasttrack_fsync - current is about to sync a file, and holds no locks
 * @mapping: the file's
 * @start: first byte
 * @end: last byte
 * @datasync: only what is needed to read its data
 *
 * A background task may write back a part at a time here, and pause.
 *
 * Return: false if it has been killed meanwhile: then it need not sync.
 */
static inline bool fasttrack_fsync(struct address_space *mapping, loff_t start,
				   loff_t end, bool datasync)
{
	return !fasttrack_enabled() ||
	       __fasttrack_fsync(mapping, start, end, datasync);
}

/**
 * fasttrack_sync_begin - current is about to wait for all of a file system
 * @sb: the file system; NULL: all
 *
 * For sync(2), freezing and the like. What is dirty is written as the task's own, if it
 * does not belong to the background; for one that is not of the foreground either,
 * nobody is held back.
 *
 * Return: what to give to fasttrack_sync_end().
 */
static inline unsigned int fasttrack_sync_begin(struct super_block *sb)
{
	return fasttrack_enabled() ? __fasttrack_sync_begin(sb ? sb->s_bdi : NULL) :
				     0;
}

/* It has waited. */
static inline void fasttrack_sync_end(struct super_block *sb, unsigned int begun)
{
	if (IS_ENABLED(CONFIG_FASTTRACK) && begun)
		__fasttrack_sync_end(sb ? sb->s_bdi : NULL, begun);
}

/**
 * fasttrack_writeback_over - shall this turn of write-back end before a folio?
 * @mapping: the folio's
 * @wbc: the turn; says so from then on, so that whoever looks sees the same
 */
static inline bool fasttrack_writeback_over(struct address_space *mapping,
					    struct writeback_control *wbc)
{
	return fasttrack_enabled() && __fasttrack_writeback_over(mapping, wbc);
}

/* May write-back pass over @mapping's file, in a turn that is @over or not? */
static inline bool
fasttrack_writeback_skips(struct bdi_writeback *wb,
			  const struct address_space *mapping, bool over)
{
	return fasttrack_enabled() &&
	       __fasttrack_writeback_skips(wb, mapping, over);
}

/*
 * Are so many pages of @mapping enough to be sent with one handle, or lock, that all
 * of the file system waits for?
 */
static inline bool fasttrack_extent_full(const struct address_space *mapping,
					 unsigned long pages)
{
	return fasttrack_enabled() && __fasttrack_extent_full(mapping, pages);
}

/* The flusher begins a work: what it has done before does not count. */
static inline void fasttrack_writeback_begin(void)
{
	if (fasttrack_enabled())
		__fasttrack_writeback_begin();
}

/* The flusher has done it. */
static inline void fasttrack_writeback_end(void)
{
	if (IS_ENABLED(CONFIG_FASTTRACK))
		__fasttrack_writeback_end();
}

/**
 * fasttrack_writeback_pause - between two turns of write-back
 * @wb: whose
 *
 * The flusher may pause here.
 */
static inline void fasttrack_writeback_pause(struct bdi_writeback *wb)
{
	if (fasttrack_enabled())
		__fasttrack_writeback_pause(wb);
}

/* Nothing else is left: wait until more can be written. False: end the work. */
static inline bool fasttrack_writeback_wait(struct bdi_writeback *wb)
{
	return fasttrack_enabled() && __fasttrack_writeback_wait(wb);
}

/* The flusher has other work to do: it neither pauses nor waits. */
static inline void fasttrack_writeback_queued(void)
{
	if (fasttrack_enabled())
		__fasttrack_writeback_queued();
}

/*
 * Shall so many blocks of a transaction's, or of a checkpoint's, be written, though
 * nobody waits?
 */
static inline bool fasttrack_commit_due(int blocks, bool rare)
{
	return fasttrack_enabled() && __fasttrack_commit_due(blocks, rare);
}

/*
 * Shall a commit write copies of its blocks? Nobody who changes one waits then until it
 * is in the log.
 */
static inline bool fasttrack_commit_copies(void)
{
	return fasttrack_enabled() && __fasttrack_commit_copies();
}

/*
 * Current has written such metadata for @ns, though nobody waits. Of the last @written blocks
 * @wasted are removed or changed again. How long shall it write no more, in ns?
 */
static inline u64 fasttrack_commit_rest(u64 ns, unsigned int wasted,
					unsigned int written)
{
	return fasttrack_enabled() ?
		__fasttrack_commit_rest(ns, wasted, written) : 0;
}

/* May it rest at all? Not while others than background wait for commits now and then. */
static inline bool fasttrack_commit_may_rest(void)
{
	return fasttrack_commit_rest(1, 1, 1);
}

/* Current makes the file system commit what all have changed. */
static inline void fasttrack_commit_asked(void)
{
	if (fasttrack_enabled())
		__fasttrack_commit_asked();
}

/* As commit_due, and current has added to them: background waits until they are written. */
static inline bool fasttrack_backlog(int blocks)
{
	return fasttrack_enabled() && __fasttrack_backlog(blocks);
}

/* They have been written. */
static inline void fasttrack_backlog_done(void)
{
	if (fasttrack_enabled())
		__fasttrack_backlog_done();
}

/*
 * Current is about to stop all operations of a file system on @bdi until its metadata
 * is written. May it write what there is before that?
 */
static inline bool fasttrack_may_drain(struct backing_dev_info *bdi)
{
	return fasttrack_enabled() && __fasttrack_may_drain(bdi);
}

/* May it wait for what others have begun before that? */
static inline bool fasttrack_may_wait_first(struct backing_dev_info *bdi)
{
	return fasttrack_enabled() && __fasttrack_may_wait_first(bdi);
}

/* It does so, and then stops them. */
static inline void fasttrack_drain_begin(void)
{
	if (IS_ENABLED(CONFIG_FASTTRACK))
		__fasttrack_drain_begin();
}

/* They go on. */
static inline void fasttrack_drain_end(void)
{
	if (IS_ENABLED(CONFIG_FASTTRACK))
		__fasttrack_drain_end();
}

/* Current has added to what is written before. */
static inline void fasttrack_drain_adds(void)
{
	if (fasttrack_enabled())
		__fasttrack_drain_adds();
}

/**
 * fasttrack_shared_part - how much may be taken of what all wait for?
 * @most: all of it, in any unit: held until I/O is done, as a journal's credits are
 *
 * Return: up to how much current may take, with what others have.
 */
static inline int fasttrack_shared_part(int most)
{
	return fasttrack_enabled() ? __fasttrack_shared_part(most) : most;
}

/* Free pages of @zone that are kept for the foreground. */
static inline unsigned long fasttrack_zone_reserve(struct zone *zone)
{
	return fasttrack_enabled() ? __fasttrack_zone_reserve(zone) : 0;
}

/* The watermark for an allocation from @zone; stock's is @mark. */
static inline unsigned long fasttrack_alloc_mark(struct zone *zone,
						 unsigned long mark,
						 unsigned int alloc_flags,
						 gfp_t gfp)
{
	return fasttrack_enabled() ?
		__fasttrack_alloc_mark(zone, mark, alloc_flags, gfp) : mark;
}

/* A background allocation has reclaimed in vain: may it try again as stock? */
static inline bool fasttrack_alloc_spent(unsigned int *alloc_flags)
{
	return fasttrack_enabled() && __fasttrack_alloc_spent(alloc_flags);
}

/* May current's allocation go below the watermark as a real-time task's? */
static inline bool fasttrack_allocates_foreground(void)
{
	return fasttrack_enabled() && __fasttrack_allocates_foreground();
}

/* Does current, in reclaim, allocate for the foreground? */
static inline bool fasttrack_reclaims_foreground(void)
{
	return fasttrack_enabled() && __fasttrack_reclaims_foreground();
}

/* What an allocation may enter in its first direct reclaim. */
static inline gfp_t fasttrack_reclaim_gfp(gfp_t gfp)
{
	return fasttrack_enabled() ? __fasttrack_reclaim_gfp(gfp) : gfp;
}

/* Is current not to be throttled for the dirty pages that there are? */
static inline bool fasttrack_dirty_exempt(struct bdi_writeback *wb)
{
	return fasttrack_enabled() && __fasttrack_dirty_exempt(wb);
}

/* current has dirtied pages of @mapping, and would be throttled for all there are. */
static inline void fasttrack_dirty_write(struct address_space *mapping)
{
	if (fasttrack_enabled())
		__fasttrack_dirty_write(mapping);
}

/* current has dirtied pages of @wb's: background pauses for too many at a sync. */
static inline void fasttrack_dirty_pace(struct bdi_writeback *wb)
{
	if (fasttrack_enabled())
		__fasttrack_dirty_pace(wb);
}

/* Shall the flusher write for @wb, though few pages are dirty? */
static inline bool fasttrack_dirty_over(struct bdi_writeback *wb)
{
	return fasttrack_enabled() && __fasttrack_dirty_over(wb);
}

/* Pages of @wb's have been written. */
static inline void fasttrack_written(struct bdi_writeback *wb)
{
	if (fasttrack_enabled())
		__fasttrack_written(wb);
}

/* Shall reclaim at @priority pass over @folio, which is locked? */
static inline bool fasttrack_protects(struct folio *folio, int priority,
				      bool dirty)
{
	return fasttrack_enabled() &&
	       __fasttrack_protects(folio, priority, dirty);
}

/* Shall folios become old, which last did so in @epoch? An idle foreground's are young. */
static inline bool fasttrack_ages(u8 *epoch)
{
	return fasttrack_enabled() && __fasttrack_ages(epoch);
}

/* Shall reclaim stay at @priority, because background's dirty pages go first? */
static inline bool fasttrack_dirty_first(struct pglist_data *pgdat, gfp_t gfp,
					 int priority, unsigned long *since)
{
	return fasttrack_enabled() &&
	       __fasttrack_dirty_first(pgdat, gfp, priority, since);
}

/**
 * fasttrack_bio_submit - give @bio its origin and class
 * @bio: about to enter the block layer; a clone or split keeps what it has
 */
static inline void fasttrack_bio_submit(struct bio *bio)
{
	if (fasttrack_enabled())
		__fasttrack_bio_submit(bio);
}

/* A control group has chosen the I/O priority of @bio. */
static inline void fasttrack_prio_chosen(struct bio *bio)
{
#ifdef CONFIG_FASTTRACK
	bio->bi_origin.own_prio = 1;
#endif
}

/* Requests of different classes must not merge: the slower would win. */
static inline bool fasttrack_may_merge(blk_opf_t a, blk_opf_t b)
{
	return !((a ^ b) & REQ_FASTTRACK_MASK);
}

/*
 * How large a request with @opf gets that may have @max sectors, where those of
 * background are to have @background at most; 0: there is no such bound. Reads, which
 * take less time than writes, have twice as many.
 */
static inline unsigned int fasttrack_max_sectors(blk_opf_t opf,
						 unsigned int max,
						 unsigned int background)
{
	bool reads = (opf & REQ_OP_MASK) == REQ_OP_READ;
	bool moves = reads || (opf & REQ_OP_MASK) == REQ_OP_WRITE;

	/* Who may not wait cannot have a bio split, either. */
	if (!background || !moves || opf & (REQ_ATOMIC | REQ_NOWAIT) ||
	    fasttrack_opf_class(opf) != FASTTRACK_BACKGROUND)
		return max;
	return min(max, reads ? 2 * background : background);
}

/* About the largest request of phones' devices. */
#define FASTTRACK_BIO_BYTES	SZ_512K

/*
 * May @page come to @bio, a write that has some, maybe of other files? A file system
 * that sends a larger one with locks held waits for a tag for each of its requests,
 * and so does who waits for the locks.
 */
static inline bool fasttrack_bio_takes(struct bio *bio, const struct page *page)
{
	if (!fasttrack_enabled() || !op_is_write(bio_op(bio)))
		return true;
	if (bio->bi_iter.bi_size >= FASTTRACK_BIO_BYTES)
		return false;
#ifdef CONFIG_FASTTRACK
	if (page->mapping != bio->bi_io_vec->bv_page->mapping)
		bio->bi_origin.mixed = true;
#endif
	return true;
}

/**
 * fasttrack_scope_enter - current works for somebody else for a while
 * @class: for whom
 * @cause: why
 *
 * For kernel threads that serve waiters, the journal's for one. Scopes nest.
 *
 * Return: what to give to fasttrack_scope_leave().
 */
static inline struct fasttrack_scope
fasttrack_scope_enter(enum fasttrack_class class, enum fasttrack_cause cause)
{
	if (!IS_ENABLED(CONFIG_FASTTRACK))
		return (struct fasttrack_scope){};
	return __fasttrack_scope_enter(class, cause);
}

/**
 * fasttrack_owner_enter - current works for the app that has dirtied a file
 * @mapping: the file's
 * @cause: why
 *
 * For workers that serve one file after the other.
 *
 * Return: what to give to fasttrack_scope_leave().
 */
static inline struct fasttrack_scope
fasttrack_owner_enter(const struct address_space *mapping,
		      enum fasttrack_cause cause)
{
	if (!IS_ENABLED(CONFIG_FASTTRACK))
		return (struct fasttrack_scope){};
	return __fasttrack_owner_enter(mapping, cause);
}

/**
 * fasttrack_bio_enter - current works on a bio, or a request, that was queued
 * @opf: its flags
 *
 * For workers of a device on top of another.
 *
 * Return: what to give to fasttrack_scope_leave().
 */
static inline struct fasttrack_scope fasttrack_bio_enter(blk_opf_t opf)
{
	if (!IS_ENABLED(CONFIG_FASTTRACK))
		return (struct fasttrack_scope){};
	return __fasttrack_bio_enter(opf);
}

/**
 * fasttrack_cause_enter - what current sends from here on, it sends for @cause
 * @cause: an outer scope's cause stays
 *
 * Return: what to give to fasttrack_scope_leave().
 */
static inline struct fasttrack_scope
fasttrack_cause_enter(enum fasttrack_cause cause)
{
	if (!IS_ENABLED(CONFIG_FASTTRACK))
		return (struct fasttrack_scope){};
	return __fasttrack_cause_enter(cause);
}

/* End what an enter function began, with its result. */
static inline void fasttrack_scope_leave(struct fasttrack_scope outer)
{
	if (IS_ENABLED(CONFIG_FASTTRACK))
		__fasttrack_scope_leave(outer);
}

#endif /* _LINUX_FASTTRACK_H */
