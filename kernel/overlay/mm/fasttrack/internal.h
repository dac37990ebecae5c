/* SPDX-License-Identifier: GPL-2.0 */
/* FastTrack: what the files of this folder share. */
#ifndef _MM_FASTTRACK_INTERNAL_H
#define _MM_FASTTRACK_INTERNAL_H

#include <linux/fasttrack.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

struct cgroup;

/* Split screen, picture in picture and a helper or two: far below this. */
#define FT_MAX_ENTRIES	32

/**
 * struct ft_range - UIDs @first to @last, both included
 * @first: lowest
 * @last: highest
 */
struct ft_range {
	u32 first;
	u32 last;
};

/**
 * struct ft_cgroups - a list of cgroups, each with a reference held
 * @nr: how many
 * @cgroup: the subtrees' roots
 */
struct ft_cgroups {
	unsigned int nr;
	struct cgroup *cgroup[FT_MAX_ENTRIES];
};

/**
 * struct ft_config - who is in front, and who is an app
 * @rcu: frees a replaced configuration
 * @nr_uids: length of @uids
 * @uids: foreground UIDs
 * @nr_groups: length of @groups
 * @groups: foreground thread groups, by tag (signal_struct.fasttrack_group)
 * @cgroups: foreground cgroups
 * @nr_app_uids: length of @app_uids
 * @app_uids: UIDs of apps, modulo FT_UIDS_PER_USER; such a UID that is not in
 *	front is background
 * @app_cgroups: cgroups of apps, likewise
 *
 * Never changed once published: a change is a new one. Readers hold the RCU
 * read lock, writers ft_config_mutex.
 */
struct ft_config {
	struct rcu_head rcu;
	unsigned int nr_uids;
	u32 uids[FT_MAX_ENTRIES];
	unsigned int nr_groups;
	u32 groups[FT_MAX_ENTRIES];
	struct ft_cgroups cgroups;
	unsigned int nr_app_uids;
	struct ft_range app_uids[FT_MAX_ENTRIES];
	struct ft_cgroups app_cgroups;
};

/* Android gives each user of the phone this many UIDs (AID_USER_OFFSET). */
#define FT_UIDS_PER_USER	100000

/* An app's task, or a worker that acts with its rights (io_uring, vhost). */
static inline bool ft_is_user_task(const struct task_struct *task)
{
	return !(task->flags & PF_KTHREAD) || (task->flags & PF_USER_WORKER);
}

/**
 * struct ft_knobs - what the mechanisms go by
 * @page_allocator: pause background work, keep the reserve, exempt the
 *	foreground from dirty throttling
 * @page_reclaimer: protect the foreground's pages
 * @promotion: promote what the foreground waits for
 * @idle_window: the foreground still works this long after what it did last, ns
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
	u64 idle_window;
	u64 background_pause;
	unsigned long segment_pages;
	unsigned long reserve_pages;
	unsigned int foreground_cache_percent;
};

extern struct ft_knobs ft_knobs;
extern struct mutex ft_config_mutex;
extern struct ft_config __rcu *ft_config;

struct ft_config *ft_config_copy(void);
void ft_config_publish(struct ft_config *config);
void ft_config_drop(struct ft_config *config);
int ft_group_tag(pid_t tgid, u32 *tag);
pid_t ft_group_tgid(u32 tag);

unsigned long ft_stat_read(enum fasttrack_stat stat);
void ft_set_enabled(bool on);
bool ft_foreground_set(void);

int ft_cgroups_add(struct ft_cgroups *cgroups, const char *path);
void ft_cgroups_put(struct ft_cgroups *cgroups);
void ft_cgroups_get(struct ft_cgroups *cgroups);
enum fasttrack_class ft_scope_class(const struct task_struct *task);
void ft_owner_of(struct task_struct *task, const struct ft_config *config,
		 struct fasttrack_owner *owner);
void ft_owner_note(struct fasttrack_owner *kept);
struct fasttrack_owner ft_owner_read(const struct fasttrack_owner *kept);

void ft_relabel(u32 uid, enum fasttrack_class class);
void ft_activity_note(void);
void ft_activity_sleep(void);
void ft_activity_wake(void);
void ft_pause_end_all(void);
void ft_writeback_go(void);
void ft_dirty_account(struct address_space *mapping, long nr);
void ft_dirty_forget(void);
unsigned long ft_dirty_own(void);
void ft_reclaim_wait_begin(void);
void ft_reclaim_wait_end(void);
void ft_reclaim_forget(void);

#endif /* _MM_FASTTRACK_INTERNAL_H */
