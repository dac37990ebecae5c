// SPDX-License-Identifier: GPL-2.0
/* What FastTrack tells: its tracepoints, and what stats/ counts. */
#include <linux/atomic.h>
#include <linux/math64.h>
#include <linux/percpu.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/fasttrack.h>

EXPORT_TRACEPOINT_SYMBOL_GPL(fasttrack_dispatch);
EXPORT_TRACEPOINT_SYMBOL_GPL(fasttrack_hold);
EXPORT_TRACEPOINT_SYMBOL_GPL(fasttrack_promote);

static DEFINE_PER_CPU(unsigned long [FASTTRACK_NR_STATS], ft_stats);

/* The statistics that are maxima, ns. The others are counters. */
static atomic64_t ft_maxima[FASTTRACK_NR_STATS];

/**
 * fasttrack_count - add one to a counter
 * @stat: which
 *
 * Context: any.
 */
void fasttrack_count(enum fasttrack_stat stat)
{
	this_cpu_inc(ft_stats[stat]);
}
EXPORT_SYMBOL_GPL(fasttrack_count);

/**
 * fasttrack_max - raise a maximum
 * @stat: which
 * @ns: seen now
 *
 * Context: any.
 */
void fasttrack_max(enum fasttrack_stat stat, u64 ns)
{
	s64 old = atomic64_read(&ft_maxima[stat]);

	while (old < (s64)ns &&
	       !atomic64_try_cmpxchg(&ft_maxima[stat], &old, ns))
		;
}
EXPORT_SYMBOL_GPL(fasttrack_max);

/* A counter, or a maximum in microseconds. */
unsigned long ft_stat_read(enum fasttrack_stat stat)
{
	unsigned long sum = 0;
	int cpu;

	if (stat >= FASTTRACK_FIRST_MAX)
		return div_u64(atomic64_read(&ft_maxima[stat]), NSEC_PER_USEC);
	for_each_possible_cpu(cpu)
		sum += per_cpu(ft_stats[stat], cpu);
	return sum;
}
