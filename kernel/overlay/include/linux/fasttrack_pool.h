/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Background's part of a pool whose elements are given back when what is sent with them
 * has ended.
 *
 * What is held back has its elements as long as it is. With all of them the one in front
 * would wait for what waits for it: the worker that sends for background waits before it
 * takes any, with nothing held, until those of background are few enough.
 */
#ifndef _LINUX_FASTTRACK_POOL_H
#define _LINUX_FASTTRACK_POOL_H

#include <linux/atomic.h>
#include <linux/fasttrack_key.h>
#include <linux/wait.h>

#ifdef CONFIG_FASTTRACK
/**
 * struct fasttrack_pool - what background has of a pool
 * @taken: elements
 * @wait: workers that wait to take some
 */
struct fasttrack_pool {
	atomic_long_t taken;
	wait_queue_head_t wait;
};

static inline void fasttrack_pool_init(struct fasttrack_pool *pool)
{
	atomic_long_set(&pool->taken, 0);
	init_waitqueue_head(&pool->wait);
}

/*
 * May background, which has @taken, take @count more of @size elements? If it has none,
 * it may: nothing else would ever end.
 */
static inline bool fasttrack_pool_has_room(long taken, long count, long size)
{
	return !taken || taken + count <= size / 2;
}

/**
 * fasttrack_pool_take - current is about to take elements for background
 * @pool: what background has
 * @count: how many
 * @size: how many there are for all
 *
 * Current must be nobody whom those wait for that have some.
 *
 * Context: may sleep; no locks are held.
 */
static inline void fasttrack_pool_take(struct fasttrack_pool *pool, long count,
				       long size)
{
	wait_event(pool->wait,
		   !fasttrack_enabled() ||
		   fasttrack_pool_has_room(atomic_long_read(&pool->taken),
					   count, size));
	atomic_long_add(count, &pool->taken);
}

/**
 * fasttrack_pool_give - background has given elements back
 * @pool: what background has; goes away no sooner than this returns
 * @count: as taken
 *
 * Context: any.
 */
static inline void fasttrack_pool_give(struct fasttrack_pool *pool, long count)
{
	atomic_long_sub(count, &pool->taken);
	if (wq_has_sleeper(&pool->wait))
		wake_up_all(&pool->wait);
}
#else
struct fasttrack_pool {
};

static inline void fasttrack_pool_init(struct fasttrack_pool *pool)
{
}

static inline void fasttrack_pool_take(struct fasttrack_pool *pool, long count,
				       long size)
{
}

static inline void fasttrack_pool_give(struct fasttrack_pool *pool, long count)
{
}
#endif

#endif /* _LINUX_FASTTRACK_POOL_H */
