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

struct address_space;
struct signal_struct;
struct task_struct;

/**
 * enum fasttrack_stat - counters, one file each in /sys/kernel/fasttrack/stats/
 * @FASTTRACK_BIO_NEUTRAL: bios of neutral tasks
 * @FASTTRACK_BIO_BACKGROUND: bios of background apps
 * @FASTTRACK_BIO_FOREGROUND: bios of foreground apps
 * @FASTTRACK_DISPATCH_BOOSTED: foreground requests that the dispatcher sent
 *	ahead of others that had waited longer
 * @FASTTRACK_DISPATCH_HELD: times the dispatcher began to hold background back
 * @FASTTRACK_DISPATCH_EXPIRED: background requests sent because they had
 *	waited for the bound
 * @FASTTRACK_NR_STATS: number of counters
 */
enum fasttrack_stat {
	/* The first three are indexed by enum fasttrack_class. */
	FASTTRACK_BIO_NEUTRAL,
	FASTTRACK_BIO_BACKGROUND,
	FASTTRACK_BIO_FOREGROUND,
	FASTTRACK_DISPATCH_BOOSTED,
	FASTTRACK_DISPATCH_HELD,
	FASTTRACK_DISPATCH_EXPIRED,
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

static inline bool fasttrack_enabled(void)
{
	return static_branch_unlikely(&fasttrack_key);
}

enum fasttrack_class __fasttrack_task_class(struct task_struct *task);
enum fasttrack_class __fasttrack_owner_class(const struct fasttrack_owner *owner);
void __fasttrack_mapping_dirtied(struct address_space *mapping);
void __fasttrack_bio_submit(struct bio *bio);
void fasttrack_count(enum fasttrack_stat stat);

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
 * fasttrack_mapping_dirtied - current has dirtied a folio of @mapping
 * @mapping: remembers the app, so that write-back by kworkers is its I/O
 */
static inline void fasttrack_mapping_dirtied(struct address_space *mapping)
{
	if (fasttrack_enabled())
		__fasttrack_mapping_dirtied(mapping);
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

struct fasttrack_scope fasttrack_scope_enter(enum fasttrack_class class,
					     enum fasttrack_cause cause);
void fasttrack_scope_leave(struct fasttrack_scope outer);
struct fasttrack_scope fasttrack_cause_enter(enum fasttrack_cause cause);
struct task_struct *fasttrack_wait_begin(struct task_struct *worker);
void fasttrack_wait_end(struct task_struct *worker);

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

static inline void fasttrack_mapping_dirtied(struct address_space *mapping)
{
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

static inline void fasttrack_scope_leave(struct fasttrack_scope outer)
{
}

static inline struct fasttrack_scope
fasttrack_cause_enter(enum fasttrack_cause cause)
{
	return (struct fasttrack_scope){};
}

static inline struct task_struct *
fasttrack_wait_begin(struct task_struct *worker)
{
	return NULL;
}

static inline void fasttrack_wait_end(struct task_struct *worker)
{
}

static inline void fasttrack_count(enum fasttrack_stat stat)
{
}

#endif /* CONFIG_FASTTRACK */

#endif /* _LINUX_FASTTRACK_H */
