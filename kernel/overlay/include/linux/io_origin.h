/* SPDX-License-Identifier: GPL-2.0 */
/*
 * I/O origin, traced: what no tracepoint of the kernel's own says.
 *
 * Bare tracepoints, without an event: mm/fasttrack/trace.c registers probes
 * while a session lasts. Otherwise each is one patched-out branch.
 */
#ifndef _LINUX_IO_ORIGIN_H
#define _LINUX_IO_ORIGIN_H

struct buffer_head;
struct journal_s;
struct super_block;
struct transaction_s;

#ifdef CONFIG_IO_ORIGIN
#include <linux/tracepoint.h>

/* A handle of current changes a block for the first time in its transaction. */
DECLARE_TRACE(io_journal_dirty,
	      TP_PROTO(struct transaction_s *transaction, struct buffer_head *bh),
	      TP_ARGS(transaction, bh));

/* Current is the first to ask for a commit. */
DECLARE_TRACE(io_commit_asked,
	      TP_PROTO(struct journal_s *journal, unsigned int tid),
	      TP_ARGS(journal, tid));

/* Current asks f2fs's thread for a checkpoint; @waits: and waits, or has waited. */
DECLARE_TRACE(io_checkpoint_asked,
	      TP_PROTO(struct super_block *sb, bool waits),
	      TP_ARGS(sb, waits));
#else
static inline void trace_io_journal_dirty(struct transaction_s *transaction,
					  struct buffer_head *bh)
{
}

static inline void trace_io_commit_asked(struct journal_s *journal,
					 unsigned int tid)
{
}

static inline void trace_io_checkpoint_asked(struct super_block *sb, bool waits)
{
}
#endif /* CONFIG_IO_ORIGIN */

#endif /* _LINUX_IO_ORIGIN_H */
