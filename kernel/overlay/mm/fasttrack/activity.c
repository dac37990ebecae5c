// SPDX-License-Identifier: GPL-2.0
/*
 * Activity: does the foreground work? It does while one of its tasks sleeps in
 * the kernel, and for a while (idle_window_us) after the last thing that any of
 * them did. Whoever sees the foreground do something notes it here.
 */
#include <linux/atomic.h>
#include <linux/ktime.h>

#include "internal.h"
#include "policy.h"

/* Foreground tasks asleep, and the last thing any of them did. */
static atomic_t ft_asleep;
static atomic64_t ft_last;

/* What it has done until now. */
struct ft_activity ft_activity_read(void)
{
	u64 last = atomic64_read(&ft_last);

	return (struct ft_activity){
		.asleep = atomic_read(&ft_asleep),
		.seen = last,
		.last = last,
	};
}

/* The foreground does something now. */
void ft_activity_note(void)
{
	atomic64_set(&ft_last, ktime_get_ns());
}

/* A foreground task is about to sleep in the kernel. */
void ft_activity_sleep(void)
{
	ft_activity_note();
	atomic_inc(&ft_asleep);
}

/* It has slept. */
void ft_activity_wake(void)
{
	ft_activity_note();
	atomic_dec(&ft_asleep);
}

/* Does the foreground work now? */
bool ft_foreground_works(void)
{
	struct ft_activity activity = ft_activity_read();

	return READ_ONCE(ft_knobs.page_allocator) &&
	       ft_works(&activity, READ_ONCE(ft_knobs.idle_window),
			ktime_get_ns());
}

/**
 * fasttrack_foreground_io - a request of the foreground's was sent or has ended
 *
 * Context: any.
 */
void fasttrack_foreground_io(void)
{
	ft_activity_note();
}
EXPORT_SYMBOL_GPL(fasttrack_foreground_io);
