// SPDX-License-Identifier: GPL-2.0
/*
 * Who syncs whole file systems: sync(2), syncfs(2), freezing, remounting, unmounting.
 *
 * Such a task waits for all that is dirty, whoever has made it so. While one that is not
 * background does, flushers work for it: what they write is of its class, and waited
 * for. So what else background does, direct I/O and reads, is no more in its way than in
 * that of an fsync.
 *
 * Not here: what such a task does (wait.c), what is queued already (promote.c), that
 * background makes less dirty meanwhile (backlog.c).
 */
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/sched.h>

#include "internal.h"

/* Tasks that sync: foreground's, background's, and those of all others. */
static atomic_t ft_syncs_front, ft_syncs_behind, ft_syncs_others;
/* When one that is not background came or went last, jiffies. */
static unsigned long ft_sync_changed;

/* A task of @class begins to sync a whole file system, or ends it: @change is 1 or -1. */
void ft_sync_change(enum fasttrack_class class, int change)
{
	if (class == FASTTRACK_BACKGROUND) {
		atomic_add(change, &ft_syncs_behind);
		return;
	}
	WRITE_ONCE(ft_sync_changed, jiffies);
	atomic_add(change, class == FASTTRACK_FOREGROUND ? &ft_syncs_front :
							   &ft_syncs_others);
}

/* Has one of background's locks that others may want to freeze or to unmount? */
bool ft_behind_syncs(void)
{
	return atomic_read(&ft_syncs_behind);
}

/*
 * For whom do flushers work, beside the files' apps: the foreground, somebody neutral,
 * or nobody, which is background? A sync may never end, if a server is gone: it counts no
 * longer when none has come or gone for FT_SYNC_LAPSES.
 */
enum fasttrack_class ft_who_syncs(void)
{
	int front = atomic_read(&ft_syncs_front);

	if ((!front && !atomic_read(&ft_syncs_others)) ||
	    !READ_ONCE(ft_knobs.promotion) ||
	    time_after_eq(jiffies, READ_ONCE(ft_sync_changed) + FT_SYNC_LAPSES))
		return FASTTRACK_BACKGROUND;
	return front ? FASTTRACK_FOREGROUND : FASTTRACK_NEUTRAL;
}

/**
 * ft_flushes_for - for whom does a task flush, beside the files' apps?
 * @task: any
 *
 * Context: any.
 * Return: as ft_who_syncs(); background if @task is no flusher at work.
 */
enum fasttrack_class ft_flushes_for(const struct task_struct *task)
{
	return READ_ONCE(task->fasttrack_flags) & FT_TASK_FLUSHES ?
		ft_who_syncs() : FASTTRACK_BACKGROUND;
}

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/syncs-kunit.h"
#endif
