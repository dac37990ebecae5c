/* SPDX-License-Identifier: GPL-2.0 */
/* FastTrack: what the files of this folder share. */
#ifndef _MM_FASTTRACK_INTERNAL_H
#define _MM_FASTTRACK_INTERNAL_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/fasttrack_sched.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/rt.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

struct attribute_group;
struct ft_activity;
struct kernfs_node;
struct workqueue_struct;

/* All apps of a phone, one by one. */
#define FT_MAX_ENTRIES	512

/**
 * struct ft_range - numbers @first to @last, both included
 * @first: lowest
 * @last: highest
 * @reach: highest of this range and of all before it
 */
struct ft_range {
	u64 first;
	u64 last;
	u64 reach;
};

/**
 * struct ft_set - a set of numbers
 * @rcu: frees a replaced set
 * @nr: length of @range
 * @range: ranges, by @first, then @last
 */
struct ft_set {
	struct rcu_head rcu;
	unsigned int nr;
	struct ft_range range[];
};

static inline unsigned int ft_set_nr(const struct ft_set *set)
{
	return set ? set->nr : 0;
}

/**
 * enum ft_list - what the configuration consists of
 * @FT_FOREGROUND_UIDS: UIDs in front
 * @FT_FOREGROUND_TGIDS: thread groups in front, by tag
 *	(signal_struct.fasttrack_group)
 * @FT_FOREGROUND_CGROUPS: cgroups in front, by ID
 * @FT_PERCEPTIBLE_UIDS: perceptible UIDs
 * @FT_PERCEPTIBLE_TGIDS: perceptible thread groups, by tag
 * @FT_PERCEPTIBLE_CGROUPS: perceptible cgroups, by ID
 * @FT_NEUTRAL_UIDS: UIDs modulo FT_UIDS_PER_USER that are no apps in spite of
 *	@FT_APP_UIDS and @FT_APP_CGROUPS
 * @FT_NEUTRAL_CGROUPS: cgroups that are none, likewise, by ID
 * @FT_APP_UIDS: UIDs of apps, modulo FT_UIDS_PER_USER
 * @FT_APP_CGROUPS: cgroups of apps, by ID
 * @FT_NR_LISTS: how many
 */
enum ft_list {
	FT_FOREGROUND_UIDS,
	FT_FOREGROUND_TGIDS,
	FT_FOREGROUND_CGROUPS,
	FT_PERCEPTIBLE_UIDS,
	FT_PERCEPTIBLE_TGIDS,
	FT_PERCEPTIBLE_CGROUPS,
	FT_NEUTRAL_UIDS,
	FT_NEUTRAL_CGROUPS,
	FT_APP_UIDS,
	FT_APP_CGROUPS,
	FT_NR_LISTS,
};

/* The lists that say who is in front come first. */
#define FT_NR_FOREGROUND_LISTS	FT_PERCEPTIBLE_UIDS

/**
 * struct ft_config - who is in front, who is perceptible, and who is an app
 * @rcu: frees a replaced configuration
 * @list: its lists
 * @by_cgroup: any of them is of cgroups
 *
 * Never changes once published: a change is a new one, which shares those lists
 * that stay. Readers hold the RCU read lock, writers ft_config_mutex.
 */
struct ft_config {
	struct rcu_head rcu;
	struct ft_set *list[FT_NR_LISTS];
	bool by_cgroup;
};

/* A listed cgroup is at most so many below the root: far more than anybody has. */
#define FT_CGROUP_LEVELS	64

/* Android gives each user of the phone this many UIDs (AID_USER_OFFSET). */
#define FT_UIDS_PER_USER	100000

/* An app's task, or a worker that acts with its rights (io_uring, vhost). */
static inline bool ft_is_user_task(const struct task_struct *task)
{
	return !(task->flags & PF_KTHREAD) || (task->flags & PF_USER_WORKER);
}

/* What PR_SET_IO_FLUSHER sets; the kernel's own sections set the first alone. */
#define FT_IO_FLUSHER	(PF_MEMALLOC_NOIO | PF_LOCAL_THROTTLE)

/* Is @task in KVM_RUN, or another call to one of its virtual processors? */
static inline bool ft_is_vcpu(const struct task_struct *task)
{
#ifdef CONFIG_PREEMPT_NOTIFIERS
	return !hlist_empty(&task->preempt_notifiers);
#else
	return false;
#endif
}

/**
 * struct ft_app_key - who an app is
 * @uid: in the initial user namespace
 * @group: the tag of its thread group, see signal_struct.fasttrack_group
 * @cgroup: its cgroup's id, 0 where cgroups do not decide the class
 */
struct ft_app_key {
	u32 uid;
	u32 group;
	u64 cgroup;
};

/* The scope's class, or foreground while a foreground task waits for @task. */
static inline enum fasttrack_class ft_scope_class(const struct task_struct *task)
{
	return READ_ONCE(task->fasttrack_waiters) ?
		FASTTRACK_FOREGROUND : task->fasttrack_scope.class;
}

/*
 * Is nothing about @task that makes it of another class than its app, or keeps it from
 * a pause? A few tests, for what runs with each page; true for most tasks.
 */
static inline bool ft_is_ordinary(struct task_struct *task)
{
	return !(READ_ONCE(task->flags) &
		 (PF_KTHREAD | PF_USER_WORKER | FT_IO_FLUSHER)) &&
	       !task->fasttrack_scope.override && !rt_or_dl_task(task) &&
	       !task_sigpending(task) && !ft_is_vcpu(task);
}

/**
 * enum ft_pages - kinds of pages that are counted by app
 * @FT_PAGES_DIRTY: those that it has dirtied, and that nobody has written yet
 * @FT_PAGES_CACHED: in the page cache, of files that it was the last in front to use
 * @FT_NR_PAGES: how many
 */
enum ft_pages {
	FT_PAGES_DIRTY,
	FT_PAGES_CACHED,
	FT_NR_PAGES,
};

/**
 * struct ft_knobs - what the mechanisms go by
 * @page_allocator: pause background work, keep the reserve, exempt the
 *	foreground from dirty throttling
 * @page_reclaimer: protect the foreground's pages
 * @promotion: promote what the foreground waits for
 * @stuck: a task that has slept for so long for what nobody has named is helped,
 *	ns; 0: none
 * @eject: nobody is kept waiting for longer, or FastTrack switches itself off, ns
 * @idle_window: longest time that the foreground still works after what it did
 *	last, ns
 * @background_pause: longest pause of a background task, ns
 * @segment_pages: pages that it works on between two pauses
 * @reserve_pages: free pages that are the foreground's
 * @foreground_cache_percent: the foreground's part of the pages that reclaim
 *	scans, up to which they are protected
 *
 * Written by sysfs.c with WRITE_ONCE(), one by one.
 */
struct ft_knobs {
	bool page_allocator;
	bool page_reclaimer;
	bool promotion;
	u64 stuck;
	u64 eject;
	u64 idle_window;
	u64 background_pause;
	unsigned long segment_pages;
	unsigned long reserve_pages;
	unsigned int foreground_cache_percent;
};

/*
 * What follows is in the order of the files' layers: a file calls those above it
 * in this list, and none below.
 */

/* knobs.c */
extern struct ft_knobs ft_knobs;

/* stats.c */
unsigned long ft_stat_read(enum fasttrack_stat stat);

/* eject.c */
extern struct workqueue_struct *ft_workqueue;

/* A kind of list, and a number of 64 bits. */
#define FT_FRONT_LEN	sizeof("cgroup 18446744073709551615")

void ft_eject_name(const char *front);
bool ft_eject_stands(void);
void ft_eject_forget(void);
ssize_t ft_eject_print(char *buf, size_t size);
void ft_eject_init(void (*off)(void));

/* set.c */
bool ft_set_has(const struct ft_set *set, u64 value);
struct ft_set *ft_set_edit(const struct ft_set *set);
int ft_set_add(struct ft_set *edit, u64 first, u64 last);
void ft_set_remove(struct ft_set *edit, u64 first, u64 last);
struct ft_set *ft_set_finish(struct ft_set *edit);
bool ft_set_equal(const struct ft_set *a, const struct ft_set *b);

/* class.c */
extern struct mutex ft_config_mutex;
extern struct ft_config ft_config_boot;
extern struct ft_config __rcu *ft_config;
extern bool ft_switching_off;

bool ft_foreground_set(void);
struct ft_config *ft_config_replace(struct ft_config *config);
enum fasttrack_class ft_class_of(const struct ft_config *config,
				 const struct ft_app_key *key);
enum fasttrack_class ft_class_anew(const struct ft_config *config,
				   const struct ft_app_key *key,
				   enum fasttrack_class before);
bool ft_never_behind(struct task_struct *task);

/* syncs.c */
/*
 * task_struct's fasttrack_flags: a checkpoint waits for it; it sleeps for a lock that
 * a background task has; it is in ft_idle_wait(); it is a flusher at work; it is of the
 * foreground, and syncs a whole file system; it owes a pause for what it has added to
 * metadata that is drained; who wants the same name or page waits for it; it has paused for
 * pages that it syncs, and so for the next commit that it asks for.
 */
#define FT_TASK_OP		BIT(0)
#define FT_TASK_LOCK		BIT(1)
#define FT_TASK_PAUSED		BIT(2)
#define FT_TASK_FLUSHES		BIT(3)
#define FT_TASK_SYNCS		BIT(4)
#define FT_TASK_ADDS		BIT(5)
#define FT_TASK_FETCHES		BIT(6)
#define FT_TASK_PAID		BIT(7)

/* A flag of current's, which nobody else writes. */
static inline void ft_flag(u8 flag, bool on)
{
	u8 others = current->fasttrack_flags & ~flag;

	WRITE_ONCE(current->fasttrack_flags, on ? others | flag : others);
}

/*
 * A sync, or a wait for a page, may never end, if a server is gone: those that are counted
 * are believed no longer when none has come or gone for so many jiffies.
 */
#define FT_SYNC_LAPSES		(60 * HZ)

/* One is about to come, or to go. */
static inline void ft_lapse_later(unsigned long *changed)
{
	WRITE_ONCE(*changed, jiffies);
	/* Who sees the number sees when that was. */
	smp_wmb();
}

/* Are there any, still believed? */
static inline bool ft_lapse_are(const atomic_t *nr, const unsigned long *changed)
{
	unsigned long at;

	if (!atomic_read(nr))
		return false;
	/* Pairs with the barrier in ft_lapse_later(). */
	smp_rmb();
	at = READ_ONCE(*changed);
	/* Of 32 bits, jiffies go round in 50 days at 1000 a second. */
	return time_in_range_open(jiffies, at, at + FT_SYNC_LAPSES);
}

void ft_sync_change(enum fasttrack_class class, struct backing_dev_info *bdi,
		    int change);
bool ft_behind_syncs(void);
enum fasttrack_class ft_who_syncs(const struct backing_dev_info *bdi);
bool ft_flushes_for_front(const struct task_struct *task);

/* app.c */
extern atomic_long_t ft_app_pages[FASTTRACK_APPS][FT_NR_PAGES];

static inline unsigned int ft_app_place(u32 id)
{
	return id % FASTTRACK_APPS;
}

u32 ft_app_intern(const struct ft_app_key *key);
u32 ft_app_of(struct task_struct *task);
void ft_apps_classify(const struct ft_config *config);
void ft_apps_renew(void);
void ft_app_count(u32 id, enum ft_pages kind, long nr);
unsigned long ft_front_pages(enum ft_pages kind);
void ft_file_used(struct address_space *mapping);
void ft_file_dirtied(struct address_space *mapping);

/* The class of the app whose write-back a file's is. */
static inline enum fasttrack_class
ft_file_class(const struct address_space *mapping)
{
	return fasttrack_app_class(READ_ONCE(mapping->fasttrack_app));
}

/* backlog.c */
void ft_commit_note(enum fasttrack_class class);
bool ft_has_backlog(void);
void ft_backlog_forget(void);
bool ft_backlog_add(int blocks);
unsigned int ft_drained(void);
bool ft_draining(unsigned int drained);
void ft_sync_note(bool done);
bool ft_syncs(void);
void ft_data_dirtied(struct address_space *mapping, long nr);
unsigned long ft_data_pages(void);
bool ft_data_has_backlog(void);
void ft_data_backlog_set(bool backlog);

/* activity.c */
struct ft_activity ft_activity_read(void);
void ft_activity_note(void);
void ft_activity_sleep(void);
void ft_activity_wake(void);
bool ft_foreground_works(void);

/*
 * Who waits until the foreground does not work: who pauses, for nothing else; who
 * syncs, or until there are tags; the flusher, or until the device has caught up.
 */
enum ft_wait_queue {
	FT_QUEUE_IDLE,
	FT_QUEUE_TAGS,
	FT_QUEUE_FLUSHER,
	FT_NR_QUEUES,
};

void ft_wake(enum ft_wait_queue queue);
bool ft_wake_one(enum ft_wait_queue queue);
void ft_wake_all(void);
void ft_idle_wait(enum ft_wait_queue queue, unsigned int state, u64 ns,
		  bool (*may)(void *what), void *what);
bool ft_anybody_paused(void);

/* depend.c */
/* What fasttrack_folio_wait_begin() has done; the rest: ft_sleep_begin(). */
#define FT_WAIT_SHOWN		BIT(0)
#define FT_WAIT_FOREGROUND	BIT(1)
#define FT_WAIT_OTHERS		BIT(2)
#define FT_WAIT_SERVED		BIT(3)
#define FT_WAIT_OP		BIT(4)
#define FT_WAIT_UNNAMED		BIT(5)
#define FT_WAIT_SLEEPER_SHIFT	6

bool ft_foreground_waits(void);
bool ft_ops_are_waited_for(void);
void ft_fetch_wait_begin(void);
void ft_fetch_wait_end(void);
void ft_depend_begin(void);
void ft_depend_end(void);
bool ft_others_begin(void);
void ft_others_end(void);
void ft_worker_wait_begin(struct task_struct *worker);
void ft_worker_wait_end(struct task_struct *worker);
bool ft_worker_watch_begin(struct task_struct *worker);
void ft_worker_watch_end(struct task_struct *worker);
bool ft_worker_is_watched(const struct task_struct *worker);
bool ft_dirty_is_waited_for(const struct backing_dev_info *bdi);
void ft_reclaim_wait_begin(void);
void ft_reclaim_wait_end(void);
void ft_lift_begin(void);
void ft_lift_end(void);
void ft_has_sent(void);
void ft_inherits_set(struct task_struct *task);
const struct folio *ft_op_sleeper(unsigned int index);
unsigned int ft_sleep_begin(struct fasttrack_sleeper sleeper);
unsigned int ft_op_sleep_begin(const struct folio *folio, bool looks);
void ft_sleep_end(unsigned int done);

/* promote.c */
bool ft_promote_to(const struct folio *folio, bool file, enum fasttrack_class class);
bool ft_promote(const struct folio *folio, bool file);
void ft_promote_file(const struct address_space *mapping);
void ft_promote_ops(void);
bool ft_queues_promote(void);
void ft_promote_task(struct task_struct *task, enum fasttrack_class class);
void ft_promote_flushed(enum fasttrack_class class);
void ft_wake_senders(void);
void ft_relabel(void);
void ft_kick(bool foreground);
void ft_queues_front(void);
void ft_queues_release(void);
bool ft_queues_hold(void);
void ft_queues_check(void);
bool ft_queues_crowded(const struct address_space *mapping, bool sync);

/* filelock.c */
void ft_file_lock_waits_look(void);

/* stuck.c */
bool ft_anybody_stuck(void);
bool ft_has_sent_requests(const struct task_struct *task);

/* pause.c */
bool ft_may_owe(void);
void ft_owe_segment(void);
bool ft_front_is_exempt(void);
bool ft_writeback_caught_up(struct bdi_writeback *wb);

/* reclaim.c */
void ft_reclaim_forget(void);

/* front.c */
extern struct kernfs_node *ft_generation_file;

u64 ft_generation(void);
int ft_group_tag(pid_t tgid, u32 *tag);
pid_t ft_group_pid(u32 tag);
pid_t ft_group_tgid(u32 tag);
struct ft_config *ft_config_change(void);
int ft_config_set(struct ft_config *config, enum ft_list list,
		  struct ft_set *edit);
void ft_config_publish(struct ft_config *config);
void ft_config_drop(struct ft_config *config);
void ft_set_enabled(bool on);

/* lease.c */
unsigned int ft_lease_ms(void);
void ft_lease_set(unsigned int ms);
void ft_lease_renew(void);

/* lists.c */
extern const struct attribute_group ft_list_group;

#endif /* _MM_FASTTRACK_INTERNAL_H */
