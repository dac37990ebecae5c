/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types that FastTrack puts into structs of the kernel. Free of includes that
 * those structs' headers could meet again.
 */
#ifndef _LINUX_FASTTRACK_TYPES_H
#define _LINUX_FASTTRACK_TYPES_H

#include <linux/types.h>

/**
 * enum fasttrack_cause - why a bio was sent
 * @FASTTRACK_CAUSE_NONE: not known yet
 * @FASTTRACK_CAUSE_READ: a read, or its readahead
 * @FASTTRACK_CAUSE_WRITEBACK: buffered write-back
 * @FASTTRACK_CAUSE_FSYNC: fsync(2)
 * @FASTTRACK_CAUSE_FDATASYNC: fdatasync(2)
 * @FASTTRACK_CAUSE_SYNC_WRITE: O_SYNC, O_DSYNC or O_DIRECT write
 * @FASTTRACK_CAUSE_JOURNAL: a commit of the file system's journal
 * @FASTTRACK_CAUSE_METADATA: metadata of the file system
 * @FASTTRACK_CAUSE_OTHER: flush, discard, zone management, swap
 */
enum fasttrack_cause {
	FASTTRACK_CAUSE_NONE,
	FASTTRACK_CAUSE_READ,
	FASTTRACK_CAUSE_WRITEBACK,
	FASTTRACK_CAUSE_FSYNC,
	FASTTRACK_CAUSE_FDATASYNC,
	FASTTRACK_CAUSE_SYNC_WRITE,
	FASTTRACK_CAUSE_JOURNAL,
	FASTTRACK_CAUSE_METADATA,
	FASTTRACK_CAUSE_OTHER,
};

/**
 * struct fasttrack_origin - whose bio it is, and why
 * @app: the app's number, see mm/fasttrack/app.c; 0: nobody's
 * @pid: the task that sent it, as a PID of the initial PID namespace; those are
 *	below 2^22 (PID_MAX_LIMIT)
 * @cause: enum fasttrack_cause
 * @direct: it moves a process's memory, or what one splices, though that may be pages
 *	of a file
 * @mixed: it writes pages of several files
 * @own_prio: somebody has chosen the bio's I/O priority
 *
 * The class is not here but in bi_opf, where a request inherits it.
 */
struct fasttrack_origin {
	u32	app;
	u32	pid : 23;
	u32	cause : 6;
	u32	direct : 1;
	u32	mixed : 1;
	u32	own_prio : 1;
};

/**
 * struct fasttrack_scope - what a task works for right now
 * @class: enum fasttrack_class, valid if @override
 * @cause: enum fasttrack_cause, or FASTTRACK_CAUSE_NONE
 * @override: @class replaces the task's own
 *
 * Only the task itself writes its scope.
 */
struct fasttrack_scope {
	u8	class;
	u8	cause;
	bool	override;
};

#endif /* _LINUX_FASTTRACK_TYPES_H */
