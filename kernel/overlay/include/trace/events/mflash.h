/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mflash

#if !defined(_TRACE_MFLASH_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_MFLASH_H

#include <linux/tracepoint.h>

#define mflash_type_name(type) __print_symbolic(type,				\
	{ 0, "read" }, { 1, "write" }, { 2, "flush" }, { 3, "unmap" })
#define mflash_class_name(class) __print_symbolic(class,			\
	{ 0, "neutral" }, { 1, "background" }, { 2, "foreground" })

/* queued: commands in the device, with this one; took_ns: so far, 0 at the start */
DECLARE_EVENT_CLASS(mflash_command,
	TP_PROTO(u16 tag, u8 type, u8 class, u32 lpn, u32 pages, u32 queued, u64 took_ns),
	TP_ARGS(tag, type, class, lpn, pages, queued, took_ns),
	TP_STRUCT__entry(
		__field(u16, tag)
		__field(u8, type)
		__field(u8, class)
		__field(u32, lpn)
		__field(u32, pages)
		__field(u32, queued)
		__field(u64, took_ns)
	),
	TP_fast_assign(
		__entry->tag = tag;
		__entry->type = type;
		__entry->class = class;
		__entry->lpn = lpn;
		__entry->pages = pages;
		__entry->queued = queued;
		__entry->took_ns = took_ns;
	),
	TP_printk("tag=%u type=%s class=%s lpn=%u pages=%u queued=%u took_ns=%llu", __entry->tag,
		  mflash_type_name(__entry->type), mflash_class_name(__entry->class),
		  __entry->lpn, __entry->pages, __entry->queued, __entry->took_ns)
);

DEFINE_EVENT(mflash_command, mflash_start,
	TP_PROTO(u16 tag, u8 type, u8 class, u32 lpn, u32 pages, u32 queued, u64 took_ns),
	TP_ARGS(tag, type, class, lpn, pages, queued, took_ns)
);

DEFINE_EVENT(mflash_command, mflash_complete,
	TP_PROTO(u16 tag, u8 type, u8 class, u32 lpn, u32 pages, u32 queued, u64 took_ns),
	TP_ARGS(tag, type, class, lpn, pages, queued, took_ns)
);

DECLARE_EVENT_CLASS(mflash_suspension,
	TP_PROTO(u32 die, bool erase, u64 left_ns, u32 times),
	TP_ARGS(die, erase, left_ns, times),
	TP_STRUCT__entry(
		__field(u32, die)
		__field(bool, erase)
		__field(u64, left_ns)
		__field(u32, times)
	),
	TP_fast_assign(
		__entry->die = die;
		__entry->erase = erase;
		__entry->left_ns = left_ns;
		__entry->times = times;
	),
	TP_printk("die=%u op=%s left_ns=%llu times=%u", __entry->die,
		  __entry->erase ? "erase" : "program", __entry->left_ns, __entry->times)
);

DEFINE_EVENT(mflash_suspension, mflash_suspend,
	TP_PROTO(u32 die, bool erase, u64 left_ns, u32 times),
	TP_ARGS(die, erase, left_ns, times)
);

DEFINE_EVENT(mflash_suspension, mflash_resume,
	TP_PROTO(u32 die, bool erase, u64 left_ns, u32 times),
	TP_ARGS(die, erase, left_ns, times)
);

TRACE_EVENT(mflash_gc,
	TP_PROTO(u32 block, u32 valid, bool urgent),
	TP_ARGS(block, valid, urgent),
	TP_STRUCT__entry(
		__field(u32, block)
		__field(u32, valid)
		__field(bool, urgent)
	),
	TP_fast_assign(
		__entry->block = block;
		__entry->valid = valid;
		__entry->urgent = urgent;
	),
	TP_printk("block=%u valid=%u urgent=%d", __entry->block, __entry->valid,
		  __entry->urgent)
);

TRACE_EVENT(mflash_power_cut,
	TP_PROTO(u32 cached, u32 in_flight),
	TP_ARGS(cached, in_flight),
	TP_STRUCT__entry(
		__field(u32, cached)
		__field(u32, in_flight)
	),
	TP_fast_assign(
		__entry->cached = cached;
		__entry->in_flight = in_flight;
	),
	TP_printk("cached=%u in_flight=%u", __entry->cached, __entry->in_flight)
);

/* The device takes or gives a page, which begins with this word. */
TRACE_EVENT(mflash_block,
	TP_PROTO(bool write, u32 lpn, u64 word),
	TP_ARGS(write, lpn, word),
	TP_STRUCT__entry(
		__field(bool, write)
		__field(u32, lpn)
		__field(u64, word)
	),
	TP_fast_assign(
		__entry->write = write;
		__entry->lpn = lpn;
		__entry->word = word;
	),
	TP_printk("write=%d lpn=%u word=%016llx", __entry->write, __entry->lpn,
		  __entry->word)
);

#endif /* _TRACE_MFLASH_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
