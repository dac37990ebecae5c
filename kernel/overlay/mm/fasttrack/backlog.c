// SPDX-License-Identifier: GPL-2.0
/*
 * Metadata that background makes faster than the storage writes them.
 *
 * A commit of a journal and a checkpoint write what everybody has changed, so an
 * fsync of the foreground's takes as long as the backlog is. While the foreground
 * waits for such a worker now and then, file systems write what there is as soon as
 * it is worth that. Where operations would add more meanwhile than is written, they
 * count as work in the page cache, and who of background owes a pause for it pauses
 * until the backlog is written; like other pauses for background_pause_ms at most.
 *
 * Not here: what counts as work (wait.c), the pause (pause.c), the file systems' part.
 */
#include <linux/jiffies.h>

#include "internal.h"
#include "policy.h"

/* When the foreground last began to wait for a worker, for a commit most likely. */
static unsigned long ft_commit_waited;
/* There is more to be written than the foreground should wait for. */
static bool ft_backlog;

/* The foreground waits for a worker. */
void ft_commit_note(void)
{
	WRITE_ONCE(ft_commit_waited, jiffies ?: 1);
}

/**
 * __fasttrack_commit_due - shall metadata be written, though nobody waits?
 * @blocks: how many blocks there are
 *
 * Context: any.
 * Return: if so: the foreground syncs now and then, and would wait for them.
 */
bool __fasttrack_commit_due(int blocks)
{
	unsigned long waited = READ_ONCE(ft_commit_waited);

	return blocks >= FT_COMMIT_BLOCKS && waited &&
	       READ_ONCE(ft_knobs.promotion) &&
	       time_before(jiffies, waited + FT_COMMIT_WINDOW);
}
EXPORT_SYMBOL_GPL(__fasttrack_commit_due);

/* Is there a backlog that the foreground may wait for? */
bool ft_has_backlog(void)
{
	return READ_ONCE(ft_backlog) && __fasttrack_commit_due(FT_COMMIT_BLOCKS);
}

/* A backlog has so many blocks by now. Is that too many? */
bool ft_backlog_add(int blocks)
{
	if (!__fasttrack_commit_due(blocks))
		return false;
	WRITE_ONCE(ft_backlog, true);
	return true;
}

/**
 * __fasttrack_backlog_done - what there was has been written
 *
 * Context: any.
 */
void __fasttrack_backlog_done(void)
{
	if (!READ_ONCE(ft_backlog))
		return;
	WRITE_ONCE(ft_backlog, false);
	ft_idle_wake();
}
EXPORT_SYMBOL_GPL(__fasttrack_backlog_done);
