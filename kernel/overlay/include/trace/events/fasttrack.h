/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM fasttrack

#if !defined(_TRACE_FASTTRACK_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_FASTTRACK_H

#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/cred.h>
#include <linux/fasttrack_sched.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>

#define show_fasttrack_class(class)			\
	__print_symbolic(class,				\
		{ 0, "neutral" },			\
		{ 1, "background" },			\
		{ 2, "foreground" })

#define show_fasttrack_cause(cause)			\
	__print_symbolic(cause,				\
		{ 0, "none" },				\
		{ 1, "read" },				\
		{ 2, "writeback" },			\
		{ 3, "fsync" },				\
		{ 4, "fdatasync" },			\
		{ 5, "sync_write" },			\
		{ 6, "journal" },			\
		{ 7, "metadata" },			\
		{ 8, "other" })

/* The foreground set has changed; sizes of its three lists. */
TRACE_EVENT(fasttrack_foreground,

	TP_PROTO(unsigned int uids, unsigned int groups, unsigned int cgroups),

	TP_ARGS(uids, groups, cgroups),

	TP_STRUCT__entry(
		__field(unsigned int, uids)
		__field(unsigned int, groups)
		__field(unsigned int, cgroups)
	),

	TP_fast_assign(
		__entry->uids = uids;
		__entry->groups = groups;
		__entry->cgroups = cgroups;
	),

	TP_printk("uids=%u groups=%u cgroups=%u",
		  __entry->uids, __entry->groups, __entry->cgroups)
);

/* A task has slept for long for what nobody has named: everybody goes. */
TRACE_EVENT(fasttrack_stuck,

	TP_PROTO(struct task_struct *task),

	TP_ARGS(task),

	TP_STRUCT__entry(
		__field(u32, pid)
		__field(unsigned long, where)
	),

	TP_fast_assign(
		__entry->pid = task_pid_nr(task);
		__entry->where = get_wchan(task);
	),

	TP_printk("pid=%u where=%ps",
		  __entry->pid, (void *)__entry->where)
);

/* A bio has got its origin and class. */
TRACE_EVENT(fasttrack_bio,

	TP_PROTO(struct bio *bio, u8 class),

	TP_ARGS(bio, class),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(sector_t, sector)
		__field(unsigned int, bytes)
		__field(u32, uid)
		__field(u32, pid)
		__field(u8, class)
		__field(u8, cause)
	),

	TP_fast_assign(
		__entry->dev = bio_dev(bio);
		__entry->sector = bio->bi_iter.bi_sector;
		__entry->bytes = bio->bi_iter.bi_size;
		__entry->uid = fasttrack_app_uid(bio->bi_origin.app);
		__entry->pid = bio->bi_origin.pid;
		__entry->class = class;
		__entry->cause = bio->bi_origin.cause;
	),

	TP_printk("dev=%d:%d sector=%llu bytes=%u uid=%d pid=%u class=%s cause=%s",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->sector, __entry->bytes,
		  __entry->uid, __entry->pid,
		  show_fasttrack_class(__entry->class),
		  show_fasttrack_cause(__entry->cause))
);

/* The dispatcher sends a request to the device. */
TRACE_EVENT(fasttrack_dispatch,

	TP_PROTO(struct request *rq, u8 class, u64 waited_ns, bool expired,
		 bool boosted),

	TP_ARGS(rq, class, waited_ns, expired, boosted),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(sector_t, sector)
		__field(unsigned int, bytes)
		__field(u64, waited_ns)
		__field(u8, class)
		__field(bool, expired)
		__field(bool, boosted)
	),

	TP_fast_assign(
		__entry->dev = rq->q->disk ? disk_devt(rq->q->disk) : 0;
		__entry->sector = blk_rq_pos(rq);
		__entry->bytes = blk_rq_bytes(rq);
		__entry->waited_ns = waited_ns;
		__entry->class = class;
		__entry->expired = expired;
		__entry->boosted = boosted;
	),

	TP_printk("dev=%d:%d sector=%llu bytes=%u class=%s waited_ns=%llu expired=%d boosted=%d",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->sector, __entry->bytes,
		  show_fasttrack_class(__entry->class), __entry->waited_ns,
		  __entry->expired, __entry->boosted)
);

/*
 * The dispatcher begins to hold background requests back; @bio is of the one that
 * would go next, NULL if it has none. Who has sent it, and for whom.
 */
TRACE_EVENT(fasttrack_hold,

	TP_PROTO(struct request_queue *q, const struct bio *bio,
		 unsigned int queued, unsigned int in_flight, u64 wake_ns),

	TP_ARGS(q, bio, queued, in_flight, wake_ns),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, uid)
		__field(u32, pid)
		__field(unsigned int, queued)
		__field(unsigned int, in_flight)
		__field(u64, wake_ns)
	),

	TP_fast_assign(
		__entry->dev = q->disk ? disk_devt(q->disk) : 0;
		__entry->uid = fasttrack_app_uid(bio ? bio->bi_origin.app : 0);
		__entry->pid = bio ? bio->bi_origin.pid : 0;
		__entry->queued = queued;
		__entry->in_flight = in_flight;
		__entry->wake_ns = wake_ns;
	),

	TP_printk("dev=%d:%d uid=%d pid=%u queued=%u in_flight=%u wake_ns=%llu",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->uid,
		  __entry->pid, __entry->queued, __entry->in_flight,
		  __entry->wake_ns)
);

/* A queued request becomes foreground, because a foreground task waits for it. */
TRACE_EVENT(fasttrack_promote,

	TP_PROTO(struct request *rq, u8 class, u64 waited_ns),

	TP_ARGS(rq, class, waited_ns),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(sector_t, sector)
		__field(unsigned int, bytes)
		__field(u64, waited_ns)
		__field(u8, class)
	),

	TP_fast_assign(
		__entry->dev = rq->q->disk ? disk_devt(rq->q->disk) : 0;
		__entry->sector = blk_rq_pos(rq);
		__entry->bytes = blk_rq_bytes(rq);
		__entry->waited_ns = waited_ns;
		__entry->class = class;
	),

	TP_printk("dev=%d:%d sector=%llu bytes=%u class=%s waited_ns=%llu",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->sector, __entry->bytes,
		  show_fasttrack_class(__entry->class), __entry->waited_ns)
);

/* A background task has paused, or the flusher with its files. */
TRACE_EVENT(fasttrack_pause,

	TP_PROTO(struct task_struct *task, u64 paused_ns),

	TP_ARGS(task, paused_ns),

	TP_STRUCT__entry(
		__field(u32, uid)
		__field(u32, pid)
		__field(u64, paused_ns)
	),

	TP_fast_assign(
		__entry->uid = from_kuid(&init_user_ns, task_uid(task));
		__entry->pid = task_pid_nr(task);
		__entry->paused_ns = paused_ns;
	),

	TP_printk("uid=%u pid=%u paused_ns=%llu",
		  __entry->uid, __entry->pid, __entry->paused_ns)
);

/* Reclaim passes over a folio, because it is the foreground's. */
TRACE_EVENT(fasttrack_protect,

	TP_PROTO(struct folio *folio, int priority),

	TP_ARGS(folio, priority),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, ino)
		__field(pgoff_t, index)
		__field(unsigned int, pages)
		__field(int, priority)
	),

	TP_fast_assign(
		__entry->dev = folio->mapping->host->i_sb->s_dev;
		__entry->ino = folio->mapping->host->i_ino;
		__entry->index = folio->index;
		__entry->pages = folio_nr_pages(folio);
		__entry->priority = priority;
	),

	TP_printk("dev=%d:%d ino=%llu index=%lu pages=%u priority=%d",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->ino,
		  __entry->index, __entry->pages, __entry->priority)
);

#endif /* _TRACE_FASTTRACK_H */

#include <trace/define_trace.h>
