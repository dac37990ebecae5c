// SPDX-License-Identifier: GPL-2.0
/*
 * Who syncs whole file systems: sync(2), syncfs(2), freezing, remounting, unmounting.
 *
 * Such a task waits for all that is dirty there, whoever has made it so. While one that
 * is not background does, flushers work for it: what they write is of its class, and
 * waited for. So what else background does, direct I/O and reads, is no more in its way
 * than in that of an fsync.
 *
 * Not here: what such a task does (wait.c), what is queued already (promote.c), that
 * background makes less dirty meanwhile (backlog.c).
 */
#include <linux/atomic.h>
#include <linux/backing-dev.h>
#include <linux/jiffies.h>
#include <linux/sched.h>

#include "internal.h"

/**
 * struct ft_sync_count - tasks of a class that sync
 * @any: how many
 * @all: those of them that sync all file systems
 * @changed: when one came or went last, jiffies
 */
struct ft_sync_count {
	atomic_t any;
	atomic_t all;
	unsigned long changed;
};

/* Those of others, but not of background's; and of the foreground's. */
static struct ft_sync_count ft_sync_counts[2];
/* Background's. */
static atomic_t ft_syncs_behind;

/**
 * ft_sync_change - a task begins to sync whole file systems, or ends it
 * @class: the task's
 * @bdi: the file system's; NULL: all
 * @change: 1 or -1
 *
 * Context: process context; does not sleep.
 */
void ft_sync_change(enum fasttrack_class class, struct backing_dev_info *bdi,
		    int change)
{
	bool front = class == FASTTRACK_FOREGROUND;
	struct ft_sync_count *count = &ft_sync_counts[front];

	if (class == FASTTRACK_BACKGROUND) {
		atomic_add(change, &ft_syncs_behind);
		return;
	}
	ft_lapse_later(&count->changed);
	atomic_add(change, &count->any);
	atomic_add(change, bdi ? &bdi->fasttrack_syncs[front] : &count->all);
}

/* Has one of background's locks that others may want to freeze or to unmount? */
bool ft_behind_syncs(void)
{
	return atomic_read(&ft_syncs_behind);
}

/* Does one of the foreground's (@front), or of others, wait for what is dirty on @bdi? */
static bool ft_syncs_on(const struct backing_dev_info *bdi, bool front)
{
	const struct ft_sync_count *count = &ft_sync_counts[front];

	return atomic_read(&bdi->fasttrack_syncs[front]) ||
	       ft_lapse_are(&count->all, &count->changed);
}

/**
 * ft_who_syncs - for whom is written what is dirty, beside the files' apps?
 * @bdi: where
 *
 * Context: any.
 * Return: foreground or neutral: such a task waits for it; background: none does.
 */
enum fasttrack_class ft_who_syncs(const struct backing_dev_info *bdi)
{
	if (!READ_ONCE(ft_knobs.promotion))
		return FASTTRACK_BACKGROUND;
	if (ft_syncs_on(bdi, true))
		return FASTTRACK_FOREGROUND;
	return ft_syncs_on(bdi, false) ? FASTTRACK_NEUTRAL : FASTTRACK_BACKGROUND;
}

/* Is @task a flusher at work, and may it work for one of the foreground's that syncs? */
bool ft_flushes_for_front(const struct task_struct *task)
{
	return (READ_ONCE(task->fasttrack_flags) & FT_TASK_FLUSHES) &&
	       READ_ONCE(ft_knobs.promotion) &&
	       ft_lapse_are(&ft_sync_counts[true].any, &ft_sync_counts[true].changed);
}

/**
 * fasttrack_flushes - does current write back what others have made dirty?
 *
 * Context: any.
 * Return: if so: it is a flusher at work.
 */
bool fasttrack_flushes(void)
{
	return current->fasttrack_flags & FT_TASK_FLUSHES;
}
EXPORT_SYMBOL_GPL(fasttrack_flushes);

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/syncs-kunit.h"
#endif
