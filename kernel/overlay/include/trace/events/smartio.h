/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM smartio

#if !defined(_TRACE_SMARTIO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_SMARTIO_H

#include <linux/blk-mq.h>
#include <linux/tracepoint.h>

#define show_smartio_turn(turn)				\
	__print_symbolic(turn,				\
		{ 0, "nobody" },			\
		{ 1, "read" },				\
		{ 2, "write" },				\
		{ 3, "aged_read" },			\
		{ 4, "overdue_write" })

/* The elevator smartio sends a request of a process to the device. */
TRACE_EVENT(smartio_dispatch,

	TP_PROTO(struct request *rq, u8 turn, pid_t process, u64 waited_ns),

	TP_ARGS(rq, turn, process, waited_ns),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(sector_t, sector)
		__field(unsigned int, bytes)
		__field(pid_t, process)
		__field(u64, waited_ns)
		__field(u8, turn)
	),

	TP_fast_assign(
		__entry->dev = rq->q->disk ? disk_devt(rq->q->disk) : 0;
		__entry->sector = blk_rq_pos(rq);
		__entry->bytes = blk_rq_bytes(rq);
		__entry->process = process;
		__entry->waited_ns = waited_ns;
		__entry->turn = turn;
	),

	TP_printk("dev=%d:%d sector=%llu bytes=%u process=%d turn=%s waited_ns=%llu",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->sector, __entry->bytes,
		  __entry->process, show_smartio_turn(__entry->turn),
		  __entry->waited_ns)
);

#endif /* _TRACE_SMARTIO_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
