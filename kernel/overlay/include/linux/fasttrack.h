/* SPDX-License-Identifier: GPL-2.0 */
/*
 * FastTrack: the app in front does not wait for the apps behind it.
 *
 * This is the inner interface of the core (mm/fasttrack/). It answers two
 * questions for the rest of the kernel:
 *
 *  1. To which class does a task belong (enum fasttrack_class)?
 *  2. Whose I/O is a bio, and why was it sent (struct fasttrack_origin)?
 *
 * Everything is behind the static key @fasttrack_key: with FastTrack switched
 * off (the default) a hook costs one patched-out branch and changes nothing.
 * Scopes are kept all the same, so that a switch in the middle of one leaves it
 * balanced; they are a few stores a commit or fsync.
 */
#ifndef _LINUX_FASTTRACK_H
#define _LINUX_FASTTRACK_H

#include <linux/blk_types.h>
#include <linux/fasttrack_class.h>
#include <linux/fasttrack_types.h>
#include <linux/jump_label.h>
#include <linux/sizes.h>

struct address_space;
struct bdi_writeback;
struct folio;
struct iov_iter;
struct kiocb;
struct pglist_data;
struct signal_struct;
struct task_struct;
struct writeback_control;
struct zone;

/**
 * enum fasttrack_stat - one file each in /sys/kernel/fasttrack/stats/
 * @FASTTRACK_BIO_NEUTRAL: bios of neutral tasks
 * @FASTTRACK_BIO_BACKGROUND: bios of background apps
 * @FASTTRACK_BIO_FOREGROUND: bios of foreground apps
 * @FASTTRACK_DISPATCH_BOOSTED: foreground requests that the dispatcher sent
 *	ahead of others that had waited longer
 * @FASTTRACK_DISPATCH_HELD: times the dispatcher began to hold background back
 * @FASTTRACK_DISPATCH_EXPIRED: background and neutral requests sent because
 *	they had waited for the bound
 * @FASTTRACK_PAUSE: pauses of background tasks in the page cache, and of
 *	write-back of their files
 * @FASTTRACK_RESERVE_SPENT: background allocations that took from the reserve
 *	after they had reclaimed
 * @FASTTRACK_FOREGROUND_RECLAIM: foreground allocations that had to reclaim
 * @FASTTRACK_DIRTY_EXEMPT: times that the foreground was not throttled for
 *	dirty pages of others
 * @FASTTRACK_RECLAIM_PROTECTED: folios of the foreground's that reclaim passed
 *	over
 * @FASTTRACK_RECLAIM_WAITED: times that reclaim waited for background's dirty
 *	pages
 * @FASTTRACK_PROMOTED: queued requests that became foreground because a
 *	foreground task waited for them
 * @FASTTRACK_DEPENDED: times that the foreground began to wait for others
 * @FASTTRACK_PAUSE_MAX: longest pause
 * @FASTTRACK_DISPATCH_WAIT_MAX: longest time that a background read waited in
 *	the dispatcher
 * @FASTTRACK_DISPATCH_SYNC_MAX: likewise, of its writes that a task waits for
 * @FASTTRACK_NR_STATS: number of statistics
 */
enum fasttrack_stat {
	/* The first three are indexed by enum fasttrack_class. */
	FASTTRACK_BIO_NEUTRAL,
	FASTTRACK_BIO_BACKGROUND,
	FASTTRACK_BIO_FOREGROUND,
	FASTTRACK_DISPATCH_BOOSTED,
	FASTTRACK_DISPATCH_HELD,
	FASTTRACK_DISPATCH_EXPIRED,
	FASTTRACK_PAUSE,
	FASTTRACK_RESERVE_SPENT,
	FASTTRACK_FOREGROUND_RECLAIM,
	FASTTRACK_DIRTY_EXEMPT,
	FASTTRACK_RECLAIM_PROTECTED,
	FASTTRACK_RECLAIM_WAITED,
	FASTTRACK_PROMOTED,
	FASTTRACK_DEPENDED,
	/* From here on maxima of times. */
	FASTTRACK_FIRST_MAX,
	FASTTRACK_PAUSE_MAX = FASTTRACK_FIRST_MAX,
	FASTTRACK_DISPATCH_WAIT_MAX,
	FASTTRACK_DISPATCH_SYNC_MAX,
	FASTTRACK_NR_STATS,
};

/* The class of a bio or a request, from its flags. */
static inline enum fasttrack_class fasttrack_opf_class(blk_opf_t opf)
{
#ifdef CONFIG_FASTTRACK
	if (opf & REQ_FASTTRACK_FOREGROUND)
		return FASTTRACK_FOREGROUND;
	if (opf & REQ_FASTTRACK_BACKGROUND)
		return FASTTRACK_BACKGROUND;
#endif
	return FASTTRACK_NEUTRAL;
}

#ifdef CONFIG_FASTTRACK

DECLARE_STATIC_KEY_FALSE(fasttrack_key);

#define REQ_FASTTRACK_MASK	(REQ_FASTTRACK_BACKGROUND | \
				 REQ_FASTTRACK_FOREGROUND)

static inline blk_opf_t fasttrack_class_opf(enum fasttrack_class class)
{
	if (class == FASTTRACK_FOREGROUND)
		return REQ_FASTTRACK_FOREGROUND;
	if (class == FASTTRACK_BACKGROUND)
		return REQ_FASTTRACK_BACKGROUND;
	return 0;
}

static inline blk_opf_t fasttrack_opf_with_class(blk_opf_t opf,
						 enum fasttrack_class class)
{
	return (opf & ~REQ_FASTTRACK_MASK) | fasttrack_class_opf(class);
}

static inline bool fasttrack_enabled(void)
{
	return static_branch_unlikely(&fasttrack_key);
}

enum fasttrack_class __fasttrack_task_class(struct task_struct *task);
enum fasttrack_class __fasttrack_owner_class(const struct fasttrack_owner *owner);
void __fasttrack_mapping_dirtied(struct address_space *mapping, long nr);
void __fasttrack_mapping_cleaned(struct address_space *mapping, long nr);
void __fasttrack_mapping_used(struct address_space *mapping);
bool fasttrack_came_to_front(const struct bio *bio);
const struct address_space *fasttrack_bio_file(const struct bio *bio);
void __fasttrack_bio_submit(struct bio *bio);
void __fasttrack_cache_work(unsigned long pages);
void __fasttrack_segment(struct kiocb *iocb, const struct iov_iter *iter,
			 unsigned long pages);
void __fasttrack_resume_user(void);
bool __fasttrack_writeback_over(struct address_space *mapping,
				struct writeback_control *wbc);
bool __fasttrack_writeback_due(struct writeback_control *wbc);
void __fasttrack_writeback_segment(struct address_space *mapping,
				   struct writeback_control *wbc);
void __fasttrack_writeback_begin(void);
void __fasttrack_writeback_pause(struct bdi_writeback *wb);
unsigned int __fasttrack_folio_wait_begin(struct folio *folio, bool writeback);
void __fasttrack_folio_wait_end(unsigned int done);
void __fasttrack_file_wait(const struct address_space *mapping);
void __fasttrack_op(bool open);
unsigned long __fasttrack_zone_reserve(struct zone *zone);
unsigned long __fasttrack_alloc_mark(struct zone *zone, unsigned long mark,
				     unsigned int alloc_flags, gfp_t gfp);
bool __fasttrack_alloc_spent(unsigned int *alloc_flags);
bool __fasttrack_allocates_foreground(void);
bool __fasttrack_reclaims_foreground(void);
gfp_t __fasttrack_reclaim_gfp(gfp_t gfp);
bool __fasttrack_dirty_exempt(void);
bool __fasttrack_protects(struct folio *folio, int priority, bool dirty);
bool __fasttrack_dirty_first(struct pglist_data *pgdat, gfp_t gfp, int priority,
			     unsigned long *since);
void fasttrack_count(enum fasttrack_stat stat);
void fasttrack_max(enum fasttrack_stat stat, u64 ns);

/**
 * struct fasttrack_queue - an I/O scheduler's queue that promotes requests
 * @node: in the list of all
 * @promote: make the queued requests foreground that move the page with this
 *	frame number, and with a write the others of the page's file if @file;
 *	false if there is none. Under the RCU read lock, from process context.
 * @promote_file: make all queued writes of the file with this mapping foreground;
 *	likewise
 * @promote_task: make the queued requests foreground that the task with this
 *	PID has sent and may wait for; likewise
 * @relabel: queued requests of the app with this UID are of a new class, because
 *	it came to the front or left it; likewise
 * @kick: the foreground has begun to depend on others, or reclaim, for it, on
 *	write-back; likewise
 * @wake_senders: senders that wait for a request tag see whether they may take
 *	one now; likewise
 */
struct fasttrack_queue {
	struct list_head node;
	bool (*promote)(struct fasttrack_queue *queue, unsigned long pfn,
			bool file);
	void (*promote_file)(struct fasttrack_queue *queue,
			     const struct address_space *mapping);
	void (*promote_task)(struct fasttrack_queue *queue, pid_t pid);
	void (*relabel)(struct fasttrack_queue *queue, u32 uid,
			enum fasttrack_class class);
	void (*kick)(struct fasttrack_queue *queue, bool foreground);
	void (*wake_senders)(struct fasttrack_queue *queue);
};

/* Foreground tasks that are known to sleep on a folio: more than apps have. */
#define FASTTRACK_SLEEPERS	16

/**
 * struct fasttrack_sleeper - what a foreground task sleeps on
 * @file: the folio's mapping, compared only; NULL for a block device's, and if
 *	it belongs to no file
 * @pfn: the folio's first frame number
 * @pages: how many pages it has; 0: nobody sleeps
 * @writeback: until it has been written; else until its lock is free
 */
struct fasttrack_sleeper {
	const struct address_space *file;
	unsigned long pfn;
	unsigned long pages;
	bool writeback;
};

void fasttrack_queue_add(struct fasttrack_queue *queue);
void fasttrack_queue_del(struct fasttrack_queue *queue);
bool fasttrack_foreground_depends(void);
bool fasttrack_sleeper(unsigned int index, struct fasttrack_sleeper *sleeper);
void fasttrack_foreground_io(void);

/**
 * fasttrack_task_class - the class that @task works for
 * @task: current, or a task that cannot go away meanwhile
 *
 * Context: any; takes the RCU read lock.
 * Return: FASTTRACK_NEUTRAL while FastTrack is off.
 */
static inline enum fasttrack_class fasttrack_task_class(struct task_struct *task)
{
	return fasttrack_enabled() ? __fasttrack_task_class(task) :
				     FASTTRACK_NEUTRAL;
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
 * fasttrack_mapping_used - current reads or maps @mapping's file
 * @mapping: the foreground's from now on, if current is
 */
static inline void fasttrack_mapping_used(struct address_space *mapping)
{
	if (fasttrack_enabled())
		__fasttrack_mapping_used(mapping);
}

/**
 * fasttrack_cache_work - current has brought pages into the page cache
 * @pages: how many; a background task pauses after a segment of them
 */
static inline void fasttrack_cache_work(unsigned long pages)
{
	if (fasttrack_enabled())
		__fasttrack_cache_work(pages);
}

/**
 * fasttrack_segment - between two chunks of a buffered read or write
 * @iocb: the call
 * @iter: what it copies from or to
 * @pages: copied since the last time
 *
 * A background task may pause here.
 */
static inline void fasttrack_segment(struct kiocb *iocb,
				     const struct iov_iter *iter,
				     unsigned long pages)
{
	if (fasttrack_enabled())
		__fasttrack_segment(iocb, iter, pages);
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
 * fasttrack_writeback_over - shall this turn of write-back end before a folio?
 * @mapping: the folio's
 * @wbc: the turn; says so from then on, so that whoever looks sees the same
 */
static inline bool fasttrack_writeback_over(struct address_space *mapping,
					    struct writeback_control *wbc)
{
	return fasttrack_enabled() && __fasttrack_writeback_over(mapping, wbc);
}

/**
 * fasttrack_writeback_due - shall current, in its fsync, pause before a folio?
 * @wbc: its write-back
 *
 * If so, the caller sends what it has collected and calls
 * __fasttrack_writeback_segment().
 */
static inline bool fasttrack_writeback_due(struct writeback_control *wbc)
{
	return fasttrack_enabled() && __fasttrack_writeback_due(wbc);
}

/* The flusher begins a work: what it has done before does not count. */
static inline void fasttrack_writeback_begin(void)
{
	if (fasttrack_enabled())
		__fasttrack_writeback_begin();
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
	if (done)
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

/* It has ended. One that began before FastTrack was switched off ends later. */
static inline void fasttrack_op_end(void)
{
	if (fasttrack_enabled())
		__fasttrack_op(false);
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
static inline bool fasttrack_dirty_exempt(void)
{
	return fasttrack_enabled() && __fasttrack_dirty_exempt();
}

/* Shall reclaim at @priority pass over @folio, which is locked? */
static inline bool fasttrack_protects(struct folio *folio, int priority,
				      bool dirty)
{
	return fasttrack_enabled() &&
	       __fasttrack_protects(folio, priority, dirty);
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

/* Requests of different classes must not merge: the slower would win. */
static inline bool fasttrack_may_merge(blk_opf_t a, blk_opf_t b)
{
	return !((a ^ b) & REQ_FASTTRACK_MASK);
}

/* About the largest request of phones' devices. */
#define FASTTRACK_BIO_BYTES	SZ_512K

/*
 * Is @bio, a write that is being put together, large enough? A file system that
 * sends a larger one with locks held waits for a tag for each of its requests,
 * and so does who waits for the locks.
 */
static inline bool fasttrack_bio_full(const struct bio *bio)
{
	return fasttrack_enabled() && op_is_write(bio_op(bio)) &&
	       bio->bi_iter.bi_size >= FASTTRACK_BIO_BYTES;
}

struct fasttrack_scope fasttrack_scope_enter(enum fasttrack_class class,
					     enum fasttrack_cause cause);
struct fasttrack_scope fasttrack_owner_enter(const struct address_space *mapping,
					     enum fasttrack_cause cause);
void fasttrack_scope_leave(struct fasttrack_scope outer);
struct fasttrack_scope fasttrack_cause_enter(enum fasttrack_cause cause);
struct task_struct *fasttrack_wait_begin(struct task_struct *worker);
void fasttrack_wait_end(struct task_struct *worker);
bool __fasttrack_others_begin(struct task_struct *holder);
void __fasttrack_others_end(void);
void __fasttrack_lock_got(void);
bool fasttrack_inherits(const struct task_struct *task);

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
	if (begun)
		__fasttrack_others_end();
}

/* It has it: a lock. The foreground may wait for that too, behind current. */
static inline void fasttrack_lock_wait_end(bool begun)
{
	if (begun)
		__fasttrack_others_end();
	else if (fasttrack_enabled())
		__fasttrack_lock_got();
}

#else /* !CONFIG_FASTTRACK */

#define REQ_FASTTRACK_MASK	((__force blk_opf_t)0)

static inline blk_opf_t fasttrack_class_opf(enum fasttrack_class class)
{
	return 0;
}

static inline bool fasttrack_enabled(void)
{
	return false;
}

static inline enum fasttrack_class fasttrack_task_class(struct task_struct *task)
{
	return FASTTRACK_NEUTRAL;
}

static inline void fasttrack_mapping_dirtied(struct address_space *mapping,
					     long nr)
{
}

static inline void fasttrack_mapping_cleaned(struct address_space *mapping,
					     long nr)
{
}

static inline void fasttrack_mapping_used(struct address_space *mapping)
{
}

static inline void fasttrack_cache_work(unsigned long pages)
{
}

static inline void fasttrack_segment(struct kiocb *iocb,
				     const struct iov_iter *iter,
				     unsigned long pages)
{
}

static inline void fasttrack_resume_user(void)
{
}

static inline bool fasttrack_writeback_over(struct address_space *mapping,
					    struct writeback_control *wbc)
{
	return false;
}

static inline bool fasttrack_writeback_due(struct writeback_control *wbc)
{
	return false;
}

static inline void __fasttrack_writeback_segment(struct address_space *mapping,
						 struct writeback_control *wbc)
{
}

static inline void fasttrack_writeback_begin(void)
{
}

static inline void fasttrack_writeback_pause(struct bdi_writeback *wb)
{
}

static inline unsigned int fasttrack_folio_wait_begin(struct folio *folio,
						      bool writeback)
{
	return 0;
}

static inline void fasttrack_folio_wait_end(unsigned int done)
{
}

static inline void fasttrack_file_wait(const struct address_space *mapping)
{
}

static inline void fasttrack_op_begin(void)
{
}

static inline void fasttrack_op_end(void)
{
}

static inline unsigned long fasttrack_zone_reserve(struct zone *zone)
{
	return 0;
}

static inline unsigned long fasttrack_alloc_mark(struct zone *zone,
						 unsigned long mark,
						 unsigned int alloc_flags,
						 gfp_t gfp)
{
	return mark;
}

static inline bool fasttrack_alloc_spent(unsigned int *alloc_flags)
{
	return false;
}

static inline bool fasttrack_allocates_foreground(void)
{
	return false;
}

static inline bool fasttrack_reclaims_foreground(void)
{
	return false;
}

static inline gfp_t fasttrack_reclaim_gfp(gfp_t gfp)
{
	return gfp;
}

static inline bool fasttrack_dirty_exempt(void)
{
	return false;
}

static inline bool fasttrack_protects(struct folio *folio, int priority,
				      bool dirty)
{
	return false;
}

static inline bool fasttrack_dirty_first(struct pglist_data *pgdat, gfp_t gfp,
					 int priority, unsigned long *since)
{
	return false;
}

static inline void fasttrack_bio_submit(struct bio *bio)
{
}

static inline bool fasttrack_may_merge(blk_opf_t a, blk_opf_t b)
{
	return true;
}

static inline struct fasttrack_scope
fasttrack_scope_enter(enum fasttrack_class class, enum fasttrack_cause cause)
{
	return (struct fasttrack_scope){};
}

static inline struct fasttrack_scope
fasttrack_owner_enter(const struct address_space *mapping,
		      enum fasttrack_cause cause)
{
	return (struct fasttrack_scope){};
}

static inline void fasttrack_scope_leave(struct fasttrack_scope outer)
{
}

static inline struct fasttrack_scope
fasttrack_cause_enter(enum fasttrack_cause cause)
{
	return (struct fasttrack_scope){};
}

static inline bool fasttrack_bio_full(const struct bio *bio)
{
	return false;
}

static inline struct task_struct *
fasttrack_wait_begin(struct task_struct *worker)
{
	return NULL;
}

static inline void fasttrack_wait_end(struct task_struct *worker)
{
}

static inline bool fasttrack_others_begin(struct task_struct *holder)
{
	return false;
}

static inline void fasttrack_others_end(bool begun)
{
}

static inline void fasttrack_lock_wait_end(bool begun)
{
}

static inline void fasttrack_count(enum fasttrack_stat stat)
{
}

#endif /* CONFIG_FASTTRACK */

#endif /* _LINUX_FASTTRACK_H */
