// SPDX-License-Identifier: GPL-2.0
/*
 * A catch-all for waits that nobody has named.
 *
 * A task that is not background may wait for one that is held back or paused, in
 * a place that has no hook: for a name that is looked up, an inode that is made,
 * a position in a file. While anybody is held back, look every stuck_ms whether
 * such a task has slept uninterruptibly since the last look, and nothing that it
 * waits for is under way. Then everybody goes until it is awake; or for
 * FT_LIFT_LIMIT, if that does not help it: it waits for somebody else, for a server
 * that is gone or a child, and is left alone until it sleeps anew. With hundreds of
 * those nobody goes for anybody for FT_VAIN_REST at a time. While background
 * syncs a whole file system, which others may want to unmount, that takes longer.
 *
 * Under way is, and needs no lift:
 *  - what has a hook that promotes it: fasttrack_named;
 *  - a request of its own in a queue or device, and a flush;
 *  - what a worker does for it, a journal's thread for one, as long as that one is
 *    not asleep for nothing itself. Of kernel threads, only such workers are
 *    looked at: who waits for another one sleeps, and is looked at. The flusher is one
 *    while the foreground syncs all;
 *  - a page that a request moves. It is promoted, and then has some time.
 *
 * A look at some thousand tasks would take long. Those that sleep are remembered,
 * and looked at each time; of all others it is FT_LOOK_TASKS' turn.
 */
#include <linux/array_size.h>
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/workqueue.h>

#include <trace/events/fasttrack.h>

#include "internal.h"
#include "policy.h"

/* Tasks asleep that are remembered from one look to the next: far more than wait. */
#define FT_SLEEPERS_SEEN	64

/*
 * So many tasks at a look: less than 1 % of a processor, at 100 ns or so for each
 * of which nothing is in its caches.
 */
#define FT_LOOK_TASKS		512

/**
 * struct ft_asleep - a task that was asleep at a look
 * @task: referenced in ft_seen, elsewhere compared only
 * @switches: how often it had gone to sleep
 * @since: when it was seen first, ns
 * @lifted: since when everybody goes for it, ns; 0: nobody does
 */
struct ft_asleep {
	struct task_struct *task;
	unsigned long switches;
	u64 since;
	u64 lifted;
};

/* Only the work touches these. */
static struct ft_asleep ft_seen[FT_SLEEPERS_SEEN];
static unsigned int ft_nr_seen;
/* The PID at which the next look goes on. */
static int ft_next_pid = 1;

/* Whom that has not helped, the last ones; more than wait for one server. */
static struct ft_asleep ft_vain[256];

/* There are more of them: nobody goes for anybody until then, ns. */
static u64 ft_rests_until;

/* Somebody is stuck: everybody goes. */
static bool ft_stuck;

/* Something has been held back since the last look. */
static bool ft_held_lately;

/*
 * Requests in queues and devices of those that are not background, by the sender's
 * PID; shared by some tasks.
 */
static atomic_t ft_requests[FASTTRACK_SENDERS];

static void ft_stuck_look(struct work_struct *work);
static DECLARE_DELAYED_WORK(ft_stuck_work, ft_stuck_look);

/**
 * fasttrack_request - a request is queued, or has ended
 * @sender: fasttrack_sender() of its first bio
 * @change: 1 or -1
 *
 * Context: any.
 */
void fasttrack_request(unsigned int sender, int change)
{
	atomic_add(change, &ft_requests[sender]);
}
EXPORT_SYMBOL_GPL(fasttrack_request);

/* Is there a task for which nobody is to pause? */
bool ft_anybody_stuck(void)
{
	return READ_ONCE(ft_stuck);
}

static void ft_look_later(u64 every)
{
	queue_delayed_work(ft_workqueue, &ft_stuck_work,
			   nsecs_to_jiffies(every) + 1);
}

/**
 * fasttrack_holds - something is held back from now on
 *
 * Context: any.
 */
void fasttrack_holds(void)
{
	u64 every = READ_ONCE(ft_knobs.stuck);

	if (!READ_ONCE(ft_held_lately)) {
		WRITE_ONCE(ft_held_lately, true);
		/* The look that is pending sees this, or does not pend any more. */
		smp_mb();
	}
	if (every && !delayed_work_pending(&ft_stuck_work))
		ft_look_later(every);
}
EXPORT_SYMBOL_GPL(fasttrack_holds);

/* Is anybody held back or paused, or was since this was asked last? */
static bool ft_anybody_held(void)
{
	bool lately = READ_ONCE(ft_held_lately);

	WRITE_ONCE(ft_held_lately, false);
	return lately || ft_queues_hold() || ft_anybody_paused();
}

/* Is @task a background app's that is killed? */
static bool ft_is_killed_behind(struct task_struct *task)
{
	return fatal_signal_pending(task) &&
	       fasttrack_app_class(ft_app_of(task)) == FASTTRACK_BACKGROUND;
}

/* Is @task a background app's, killed or not? */
static bool ft_is_behind(struct task_struct *task)
{
	return __fasttrack_task_class(task) == FASTTRACK_BACKGROUND ||
	       ft_is_killed_behind(task);
}

/* Does the kernel thread @task work for somebody who is not background? */
static bool ft_is_waited_for(const struct task_struct *task)
{
	return READ_ONCE(task->fasttrack_waiters) ||
	       ft_worker_is_watched(task) || ft_flushes_for_front(task) ||
	       (READ_ONCE(task->fasttrack_scope.override) &&
		READ_ONCE(task->fasttrack_scope.class) == FASTTRACK_FOREGROUND);
}

/* Are requests of @task's own in a queue or device? */
bool ft_has_sent_requests(const struct task_struct *task)
{
	pid_t pid = task_pid_nr((struct task_struct *)task);

	return atomic_read(&ft_requests[fasttrack_sender(pid)]) > 0;
}

/*
 * Does @task sleep for a request of its own in a queue or device? Not for a lock
 * that a background task has, whatever it has sent. Of a flush, which no I/O
 * scheduler sees, it waits for the block layer and has sent no data last.
 */
static bool ft_has_request(const struct task_struct *task)
{
	if (READ_ONCE(task->fasttrack_flags) & FT_TASK_LOCK)
		return false;
	return ft_has_sent_requests(task) ||
	       (task->in_iowait &&
		!READ_ONCE(task->fasttrack_folio) &&
		!READ_ONCE(task->fasttrack_others) &&
		!READ_ONCE(task->fasttrack_sends));
}

/* Does @task sleep, and for nothing that has a name or a request? */
static bool ft_sleeps_unnamed(struct task_struct *task)
{
	unsigned int state = READ_ONCE(task->__state);

	if (!(state & TASK_UNINTERRUPTIBLE) || (state & TASK_NOLOAD) ||
	    READ_ONCE(task->fasttrack_named) || ft_has_request(task))
		return false;
	return ft_is_user_task(task) ? !ft_is_behind(task) :
				       ft_is_waited_for(task);
}

/* What is remembered of @task, compared only: it was not helped; or NULL. */
static struct ft_asleep *ft_vain_of(const struct task_struct *task)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(ft_vain); i++)
		if (ft_vain[i].task == task)
			return &ft_vain[i];
	return NULL;
}

/* The place of whom everybody went for first; or an empty one. */
static struct ft_asleep *ft_vain_oldest(void)
{
	struct ft_asleep *oldest = ft_vain;

	for (unsigned int i = 1; i < ARRAY_SIZE(ft_vain); i++)
		if (ft_vain[i].lifted < oldest->lifted)
			oldest = &ft_vain[i];
	return oldest;
}

static bool ft_is_vain(const struct task_struct *task, unsigned long switches)
{
	const struct ft_asleep *vain = ft_vain_of(task);

	return vain && vain->switches == switches;
}

/*
 * Remember who is not helped. With the table full of such who have come lately, the one
 * that leaves it would be helped in vain again, and all of them for ever.
 */
static void ft_note_vain(const struct ft_asleep *asleep, u64 now)
{
	struct ft_asleep *place = ft_vain_of(asleep->task);

	if (!place) {
		place = ft_vain_oldest();
		if (ft_vain_too_many(place->lifted, now))
			ft_rests_until = now + FT_VAIN_REST;
	}
	*place = *asleep;
	fasttrack_count(FASTTRACK_STUCK_VAIN);
}

/* It has slept on since it was seen last. Is it stuck, and may be helped? */
static bool ft_is_stuck(struct ft_asleep *asleep, u64 now)
{
	const struct folio *folio = READ_ONCE(asleep->task->fasttrack_folio);
	bool front = __fasttrack_task_class(asleep->task) == FASTTRACK_FOREGROUND;
	u64 slept = now - asleep->since;

	if (folio && (ft_promote(folio, false) ||
		      ft_page_comes(slept, READ_ONCE(ft_knobs.stuck), front)))
		return false;
	if (!asleep->lifted && ft_stuck)
		asleep->lifted = now;
	return true;
}

/*
 * Look at those that are remembered, and forget who is awake, or is not helped.
 * Returns whether one is stuck.
 */
static bool ft_look_at_seen(u64 now)
{
	unsigned int kept = 0;
	bool stuck = false;

	for (unsigned int i = 0; i < ft_nr_seen; i++) {
		struct ft_asleep asleep = ft_seen[i];
		unsigned long switches = READ_ONCE(asleep.task->nvcsw);
		bool sleeps = ft_sleeps_unnamed(asleep.task);

		if (sleeps && switches != asleep.switches) {
			asleep.switches = switches;
			asleep.since = now;
			asleep.lifted = 0;
		} else if (sleeps && ft_is_stuck(&asleep, now)) {
			sleeps = !ft_lift_in_vain(asleep.lifted,
						  ft_behind_syncs(), now);
			if (sleeps && !stuck && !ft_stuck) {
				fasttrack_count(FASTTRACK_STUCK);
				trace_fasttrack_stuck(asleep.task);
			}
			stuck |= sleeps;
			if (!sleeps)
				ft_note_vain(&asleep, now);
		}
		if (sleeps)
			ft_seen[kept++] = asleep;
		else
			put_task_struct(asleep.task);
	}
	ft_nr_seen = kept;
	return stuck;
}

/*
 * Remember @task if it may be stuck. Of one that is killed go what it has sent and what
 * it sends: others wait for what it gives back.
 */
static void ft_look_at(struct task_struct *task, u64 now)
{
	unsigned long switches = READ_ONCE(task->nvcsw);

	if (ft_is_killed_behind(task))
		ft_promote_task(task, FASTTRACK_NEUTRAL);
	if (!ft_sleeps_unnamed(task) || ft_nr_seen == FT_SLEEPERS_SEEN ||
	    ft_is_vain(task, switches))
		return;
	for (unsigned int i = 0; i < ft_nr_seen; i++)
		if (ft_seen[i].task == task)
			return;
	ft_seen[ft_nr_seen++] = (struct ft_asleep){
		.task = get_task_struct(task),
		.switches = switches,
		.since = now,
	};
}

/*
 * Look at the next tasks, by PID: at @most, and not beyond the last one.
 * Returns how many PIDs there were.
 */
static unsigned int ft_look_at_next(u64 now, unsigned int most)
{
	struct task_struct *task;
	unsigned int looked;
	struct pid *pid;

	rcu_read_lock();
	for (looked = 0; looked < most; looked++) {
		pid = find_ge_pid(ft_next_pid, &init_pid_ns);
		if (!pid) {
			ft_next_pid = 1;
			break;
		}
		ft_next_pid = pid_nr(pid) + 1;
		task = pid_task(pid, PIDTYPE_PID);
		if (task)
			ft_look_at(task, now);
	}
	rcu_read_unlock();
	return looked;
}

static void ft_forget_seen(void)
{
	while (ft_nr_seen)
		put_task_struct(ft_seen[--ft_nr_seen].task);
}

/* Returns whether a task is stuck. */
static bool ft_look(u64 now)
{
	bool stuck = false;

	if (now < ft_rests_until)
		ft_forget_seen();
	else
		stuck = ft_look_at_seen(now);
	ft_look_at_next(now, FT_LOOK_TASKS);
	return stuck;
}

static void ft_stuck_set(bool stuck)
{
	if (ft_stuck == stuck)
		return;
	WRITE_ONCE(ft_stuck, stuck);
	if (stuck) {
		ft_lift_begin();
		ft_kick(false);
		ft_wake_all();
	} else {
		ft_lift_end();
	}
}

static void ft_stuck_look(struct work_struct *work)
{
	u64 every = READ_ONCE(ft_knobs.stuck);
	bool held = ft_anybody_held();

	/* Nobody else looks at requests that no event lets go. */
	if (held) {
		ft_queues_check();
		ft_file_lock_waits_look();
	}
	ft_stuck_set(every && fasttrack_enabled() && ft_look(ktime_get_ns()));
	/* Who is held back later says so. But for whom everybody goes ends that. */
	if (ft_stuck || (every && held && fasttrack_enabled()))
		ft_look_later(every);
	else
		ft_forget_seen();
}

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/stuck-kunit.h"
#endif
