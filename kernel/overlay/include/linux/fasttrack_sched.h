/* SPDX-License-Identifier: GPL-2.0 */
/*
 * FastTrack for I/O schedulers: the classes of requests, what the core tells a
 * scheduler that promotes them, and what it answers. Included by block/ and by
 * the core itself; the hooks for everybody else are in <linux/fasttrack.h>.
 *
 * Nothing here is without CONFIG_FASTTRACK: schedulers depend on it.
 */
#ifndef _LINUX_FASTTRACK_SCHED_H
#define _LINUX_FASTTRACK_SCHED_H

#include <linux/fasttrack.h>
#include <linux/hash.h>
#include <linux/types.h>

struct bio;
struct block_device;

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
 * @FASTTRACK_DIRTY_WRITTEN: parts of files that the foreground wrote itself
 * @FASTTRACK_RECLAIM_PROTECTED: folios of the foreground's that reclaim passed
 *	over
 * @FASTTRACK_RECLAIM_WAITED: times that reclaim waited for background's dirty
 *	pages
 * @FASTTRACK_PROMOTED: queued requests that became foreground, or neutral, because a
 *	task waited for them
 * @FASTTRACK_DEPENDED: times that the foreground began to wait for others
 * @FASTTRACK_STUCK: times that everybody went because a task slept for long for what
 *	nobody had named
 * @FASTTRACK_STUCK_VAIN: tasks that slept on for a second nevertheless
 * @FASTTRACK_APPS_CROWDED: times that an app was found without a place of its own
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
	FASTTRACK_DIRTY_WRITTEN,
	FASTTRACK_RECLAIM_PROTECTED,
	FASTTRACK_RECLAIM_WAITED,
	FASTTRACK_PROMOTED,
	FASTTRACK_DEPENDED,
	FASTTRACK_STUCK,
	FASTTRACK_STUCK_VAIN,
	FASTTRACK_APPS_CROWDED,
	/* From here on maxima of times. */
	FASTTRACK_FIRST_MAX,
	FASTTRACK_PAUSE_MAX = FASTTRACK_FIRST_MAX,
	FASTTRACK_DISPATCH_WAIT_MAX,
	FASTTRACK_DISPATCH_SYNC_MAX,
	FASTTRACK_NR_STATS,
};

void fasttrack_count(enum fasttrack_stat stat);
void fasttrack_max(enum fasttrack_stat stat, u64 ns);

/**
 * struct fasttrack_queue - an I/O scheduler's queue that promotes requests
 * @node: in the list of all
 * @held: it holds requests back; the scheduler writes it
 * @promote: make the queued requests foreground, or neutral, that move the page with
 *	this frame number, and with a write the others of the page's file if @file;
 *	false if there is none. Under the RCU read lock, from process context.
 * @promote_file: make all queued writes of the file with this mapping foreground;
 *	likewise
 * @promote_task: make the queued requests foreground, or neutral, that the task with
 *	this PID has sent and may wait for; likewise
 * @promote_flushed: make all queued writes of what was dirty neutral, or foreground;
 *	likewise
 * @relabel: apps have come to the front or left it: queued requests of those for
 *	which fasttrack_app_moved() is true have another class; likewise
 * @kick: the foreground has begun to depend on others, or reclaim, for it, on
 *	write-back; likewise
 * @crowded: would background wait for a request tag to write to a disk, which may be on
 *	top of others, for what somebody waits for if @sync? If so, the scheduler calls
 *	fasttrack_room() when some are free again. Does not sleep
 * @wake_senders: senders that wait for a request tag see whether they may take
 *	one now; likewise
 * @check: if somebody waits for a request for longer than anybody may, eject; likewise
 * @front: FastTrack is on and somebody in front, or not any more. From process
 *	context; does not allocate memory
 */
struct fasttrack_queue {
	struct list_head node;
	bool held;
	bool (*promote)(struct fasttrack_queue *queue, unsigned long pfn,
			bool file, enum fasttrack_class class);
	void (*promote_file)(struct fasttrack_queue *queue,
			     const struct address_space *mapping);
	void (*promote_task)(struct fasttrack_queue *queue, pid_t pid,
			     enum fasttrack_class class);
	void (*promote_flushed)(struct fasttrack_queue *queue,
				enum fasttrack_class class);
	void (*relabel)(struct fasttrack_queue *queue);
	void (*kick)(struct fasttrack_queue *queue, bool foreground);
	bool (*crowded)(struct fasttrack_queue *queue,
			struct block_device *disk, bool sync);
	void (*wake_senders)(struct fasttrack_queue *queue);
	void (*check)(struct fasttrack_queue *queue);
	void (*front)(struct fasttrack_queue *queue, bool somebody);
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

/* Who has sent a request: some tasks share a number. */
#define FASTTRACK_SENDER_BITS	8
#define FASTTRACK_SENDERS	BIT(FASTTRACK_SENDER_BITS)

static inline unsigned int fasttrack_sender(pid_t pid)
{
	return hash_32(pid, FASTTRACK_SENDER_BITS);
}

bool fasttrack_room(bool sync, bool all);
void fasttrack_queue_add(struct fasttrack_queue *queue);
void fasttrack_queue_del(struct fasttrack_queue *queue);

enum fasttrack_class __fasttrack_task_class(struct task_struct *task);
enum fasttrack_class fasttrack_app_class(u32 id);
bool fasttrack_app_moved(u32 id);
u32 fasttrack_app_uid(u32 id);
bool fasttrack_inherits(const struct task_struct *task);
bool fasttrack_flushes(void);
bool fasttrack_came_to_front(const struct bio *bio);
const struct address_space *fasttrack_page_file(const struct page *page);
const struct address_space *fasttrack_bio_file(const struct bio *bio);
bool fasttrack_sleeper(unsigned int index, struct fasttrack_sleeper *sleeper);
bool fasttrack_holds_lifted(void);
void fasttrack_eject(const char *why, pid_t pid, const char *where, u64 ns);
u64 fasttrack_eject_bound(void);
void fasttrack_holds(void);
void fasttrack_request(unsigned int sender, int change);
void fasttrack_foreground_io(int change);
u64 fasttrack_idle_window(void);

/**
 * fasttrack_task_class - the class of what @task sends
 * @task: current, or a task that cannot go away meanwhile
 *
 * Context: any; takes the RCU read lock.
 * Return: a class of I/O; FASTTRACK_NEUTRAL while FastTrack is off.
 */
static inline enum fasttrack_class fasttrack_task_class(struct task_struct *task)
{
	return fasttrack_enabled() ?
		fasttrack_io_class(__fasttrack_task_class(task)) :
		FASTTRACK_NEUTRAL;
}

#endif /* _LINUX_FASTTRACK_SCHED_H */
