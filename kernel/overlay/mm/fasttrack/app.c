// SPDX-License-Identifier: GPL-2.0
/*
 * Apps, interned: who a task is, and whose a file or a bio is, is one number.
 *
 * An app is a UID, a thread group's tag and a cgroup, as far as the configuration
 * goes by them. It gets a number when it is first seen; files and bios carry that
 * number alone. The class of an app is worked out then, and when the configuration
 * changes: asking for it is one look into an array.
 *
 * A task keeps its app's number. Whoever makes it somebody else, by another UID,
 * cgroup or tag, takes the number away (__fasttrack_task_changed()), so that nobody
 * compares these with each page that a task reads.
 *
 * A number holds the app's place in the array and which app of that place it is,
 * so that nobody has to count who still carries it: one that is out of date
 * names no app. Number and class are one word (fasttrack_apps[]), from which the page
 * cache's hooks see both without a call (fasttrack_own_class_is()). When the array is
 * nearly full, places are freed of apps that no task is of and that have no dirty
 * pages, once a second at most.
 *
 * Who may make users or cgroups can fill it. The last places are for who is in front
 * or perceptible. A background app without a place is one of the crowd, an app of
 * its own that is background for ever: what it does stays background's. Others
 * without a place are classified without a number, and what they do is nobody's.
 *
 * Lock order: ft_apps_lock is taken under the locks of the page cache, and takes
 * none.
 */
#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "internal.h"
#include "policy.h"

/* With so few places left for most, look for apps that are gone. */
#define FT_APPS_SPARE	(FASTTRACK_APPS / 8)

/* The place of the crowd. */
#define FT_APP_CROWD	0

/**
 * struct ft_app - one app
 * @node: in ft_app_hash
 * @key: who it is
 *
 * Written under ft_apps_lock. Readers without it compare the number.
 */
struct ft_app {
	struct hlist_node node;
	struct ft_app_key key;
};

static DEFINE_SPINLOCK(ft_apps_lock);
static struct ft_app ft_apps[FASTTRACK_APPS] = {
	/* In no hash: nobody has its key. */
	[FT_APP_CROWD] = { .key.uid = (u32)-1 },
};

/* Written under ft_apps_lock. */
u32 fasttrack_apps[FASTTRACK_APPS] = {
	[FT_APP_CROWD] = (FASTTRACK_APPS + FT_APP_CROWD) ^ FASTTRACK_BACKGROUND,
};

static_assert(FASTTRACK_NR_APP_CLASSES <= FASTTRACK_APPS,
	      "a class changes the bits of the place alone");

/* By place and kind. */
atomic_long_t ft_app_pages[FASTTRACK_APPS][FT_NR_PAGES];

static DEFINE_HASHTABLE(ft_app_hash, FASTTRACK_APP_BITS - 2);
static DECLARE_BITMAP(ft_apps_used, FASTTRACK_APPS) = { BIT(FT_APP_CROWD) };
/* Those of them whose class is foreground. */
static DECLARE_BITMAP(ft_apps_front, FASTTRACK_APPS);
static unsigned int ft_nr_apps = 1;
/* Whose class the last configuration has changed. */
static DECLARE_BITMAP(ft_apps_moved, FASTTRACK_APPS);
/* Of the next number; grows, so that a place's next app has another one. */
static u32 ft_app_serial = 2;
/* When apps that are gone were last looked for. */
static unsigned long ft_apps_reaped = INITIAL_JIFFIES - HZ;

/*
 * So long an app without tasks keeps its place for its dirty pages: longer than they
 * stay dirty. What is counted for it then are pages that changed hands unseen.
 */
#define FT_APP_GONE	(60 * HZ)

/* Places whose apps had no tasks then; guarded by ft_apps_lock. */
static DECLARE_BITMAP(ft_apps_gone, FASTTRACK_APPS);
static unsigned long ft_apps_gone_then = INITIAL_JIFFIES;

static void ft_apps_reap(struct work_struct *work);
static DECLARE_WORK(ft_apps_reap_work, ft_apps_reap);

/* Is @a, which may become another app's meanwhile, the same as @b? */
static bool ft_same_key(const struct ft_app_key *a, const struct ft_app_key *b)
{
	return READ_ONCE(a->uid) == b->uid &&
	       READ_ONCE(a->group) == b->group &&
	       READ_ONCE(a->cgroup) == b->cgroup;
}

/* Does @id name an app? Who sees that sees who it is. */
static bool ft_app_is(u32 id)
{
	/* Pairs with the release in ft_app_set(). */
	return (smp_load_acquire(&fasttrack_apps[ft_app_place(id)]) ^ id) <
	       FASTTRACK_NR_APP_CLASSES;
}

/* The number of the app at @place, or 0. */
static u32 ft_app_at(unsigned int place)
{
	u32 entry = READ_ONCE(fasttrack_apps[place]);

	return entry ? (entry & ~(u32)(FASTTRACK_APPS - 1)) | place : 0;
}

/* The class of the app at @place. */
static enum fasttrack_class ft_class_at(unsigned int place)
{
	return (READ_ONCE(fasttrack_apps[place]) ^ place) & (FASTTRACK_APPS - 1);
}

/* The app @id is of @class from now on. */
static void ft_app_set(u32 id, enum fasttrack_class class)
{
	unsigned int place = ft_app_place(id);

	lockdep_assert_held(&ft_apps_lock);

	/* Who sees the number sees who it is: ft_app_is(). */
	smp_store_release(&fasttrack_apps[place], id ^ class);
	__assign_bit(place, ft_apps_front, class == FASTTRACK_FOREGROUND);
}

static void ft_app_count_anew(unsigned int place)
{
	for (unsigned int kind = 0; kind < FT_NR_PAGES; kind++)
		atomic_long_set(&ft_app_pages[place][kind], 0);
}

static u32 ft_app_hashed(const struct ft_app_key *key)
{
	return key->uid ^ key->group ^ (u32)key->cgroup;
}

/* The number of the app with @key, or 0. Under RCU: one may be missed. */
static u32 ft_app_find(const struct ft_app_key *key)
{
	struct ft_app *app;

	hash_for_each_possible_rcu(ft_app_hash, app, node, ft_app_hashed(key)) {
		unsigned int place = app - ft_apps;
		u32 id = ft_app_at(place);

		/* The place may be freed meanwhile, and be another app's: ft_app_add(). */
		smp_rmb();
		if (!ft_same_key(&app->key, key))
			continue;
		/* Who it is was read before it is seen that the place was not freed. */
		smp_rmb();
		return id == ft_app_at(place) ? id : 0;
	}
	return 0;
}

/* The next number of a place. */
static u32 ft_app_number(unsigned int place)
{
	u32 id = (ft_app_serial << FASTTRACK_APP_BITS) | place;

	lockdep_assert_held(&ft_apps_lock);

	if (!(++ft_app_serial & (U32_MAX >> FASTTRACK_APP_BITS)))
		ft_app_serial = 1;
	return id;
}

/* The array may be nearly full: look for apps that are gone. */
static void ft_apps_spare(void)
{
	unsigned int nr = READ_ONCE(ft_nr_apps);
	unsigned long reaped = READ_ONCE(ft_apps_reaped);

	if (ft_app_has_room(nr + FT_APPS_SPARE, FASTTRACK_APPS, FASTTRACK_NEUTRAL) ||
	    time_in_range_open(jiffies, reaped, reaped + HZ))
		return;
	WRITE_ONCE(ft_apps_reaped, jiffies);
	schedule_work(&ft_apps_reap_work);
}

/* Is there no place for an app of @class? Then @id is what it goes by. */
static bool ft_app_has_no_place(enum fasttrack_class class, u32 *id)
{
	if (ft_app_has_room(READ_ONCE(ft_nr_apps), FASTTRACK_APPS, class))
		return false;
	fasttrack_count(FASTTRACK_APPS_CROWDED);
	*id = class == FASTTRACK_BACKGROUND ?
		ft_app_at(FT_APP_CROWD) : 0;
	return true;
}

/* Give the app with @key and @class, which has none, a number. */
static u32 ft_app_add(const struct ft_app_key *key, enum fasttrack_class class)
{
	unsigned int place = find_first_zero_bit(ft_apps_used, FASTTRACK_APPS);
	u32 id = ft_app_number(place);
	struct ft_app *app = &ft_apps[place];

	/* Who sees who it is sees that the place was freed: ft_app_find(). */
	smp_wmb();
	app->key = *key;
	ft_app_count_anew(place);
	ft_app_set(id, class);
	hash_add_rcu(ft_app_hash, &app->node, ft_app_hashed(key));
	__set_bit(place, ft_apps_used);
	WRITE_ONCE(ft_nr_apps, ft_nr_apps + 1);
	return id;
}

/**
 * ft_app_intern - the number of an app
 * @key: who it is
 *
 * Context: any; under the RCU read lock.
 * Return: its number, given now if need be, or the crowd's; 0: there is no place for
 * it, and it is not background.
 */
u32 ft_app_intern(const struct ft_app_key *key)
{
	u32 id = ft_app_find(key);
	enum fasttrack_class class;
	unsigned long flags;

	if (id)
		return id;
	ft_apps_spare();
	/* Without the lock: there may be many, and they come for each bio. */
	if (!ft_app_has_room(READ_ONCE(ft_nr_apps), FASTTRACK_APPS,
			     FASTTRACK_NEUTRAL) &&
	    ft_app_has_no_place(ft_class_of(rcu_dereference(ft_config), key),
				&id))
		return id;
	spin_lock_irqsave(&ft_apps_lock, flags);
	id = ft_app_find(key);
	/* Whoever replaces the configuration classifies all after that. */
	class = ft_class_of(rcu_dereference(ft_config), key);
	if (!id && !ft_app_has_no_place(class, &id))
		id = ft_app_add(key, class);
	spin_unlock_irqrestore(&ft_apps_lock, flags);
	return id;
}

/* Does any task keep the number of each place of @kept? Mark those. */
static void ft_apps_mark(unsigned long *kept)
{
	struct task_struct *process, *task;

	rcu_read_lock();
	for_each_process_thread(process, task)
		__set_bit(ft_app_place(READ_ONCE(task->fasttrack_app)), kept);
	rcu_read_unlock();
}

/* Free the places of apps that are gone; those in front may come again. */
static void ft_apps_reap(struct work_struct *work)
{
	unsigned long *kept = bitmap_zalloc(FASTTRACK_APPS, GFP_KERNEL);
	unsigned long flags;
	unsigned int place;
	bool lapsed;

	if (!kept)
		return;
	ft_apps_mark(kept);
	spin_lock_irqsave(&ft_apps_lock, flags);
	lapsed = time_after_eq(jiffies, ft_apps_gone_then + FT_APP_GONE);
	for_each_set_bit(place, ft_apps_used, FASTTRACK_APPS) {
		struct ft_app *app = &ft_apps[place];

		if (test_bit(place, kept) || test_bit(place, ft_apps_front) ||
		    place == FT_APP_CROWD) {
			__clear_bit(place, ft_apps_gone);
			continue;
		}
		if (atomic_long_read(&ft_app_pages[place][FT_PAGES_DIRTY]) > 0 &&
		    !(lapsed && __test_and_set_bit(place, ft_apps_gone)))
			continue;
		WRITE_ONCE(fasttrack_apps[place], 0);
		hash_del_rcu(&app->node);
		__clear_bit(place, ft_apps_used);
		__clear_bit(place, ft_apps_gone);
		WRITE_ONCE(ft_nr_apps, ft_nr_apps - 1);
	}
	if (lapsed)
		ft_apps_gone_then = jiffies;
	spin_unlock_irqrestore(&ft_apps_lock, flags);
	bitmap_free(kept);
}

/**
 * ft_apps_renew - every app has another number from now on
 *
 * Before FastTrack is switched on. Nobody has counted what was dirtied and written
 * while it was off: files that are dirty by now are nobody's, and are not counted
 * when they are written either. So it is with pages that are cached by now, until
 * somebody in front uses their file.
 */
void ft_apps_renew(void)
{
	unsigned long flags;
	unsigned int place;

	spin_lock_irqsave(&ft_apps_lock, flags);
	for_each_set_bit(place, ft_apps_used, FASTTRACK_APPS) {
		ft_app_count_anew(place);
		ft_app_set(ft_app_number(place), ft_class_at(place));
	}
	spin_unlock_irqrestore(&ft_apps_lock, flags);
}

/*
 * So many places have their classes at a time with interrupts off: a user can have a place
 * for each of many cgroups, and each of these be in many others.
 */
#define FT_APPS_AT_ONCE		32

static_assert(FASTTRACK_APPS % FT_APPS_AT_ONCE == 0);

/* Those from @place on. Of one that comes meanwhile @config has decided already. */
static void ft_apps_classify_some(const struct ft_config *config, unsigned int place)
{
	unsigned int end = place + FT_APPS_AT_ONCE;
	unsigned long flags;

	rcu_read_lock();
	spin_lock_irqsave(&ft_apps_lock, flags);
	for_each_set_bit_from(place, ft_apps_used, end) {
		enum fasttrack_class class = place == FT_APP_CROWD ?
			FASTTRACK_BACKGROUND :
			ft_class_anew(config, &ft_apps[place].key,
				      ft_class_at(place));

		if (ft_class_at(place) != class)
			__set_bit(place, ft_apps_moved);
		ft_app_set(ft_app_at(place), class);
	}
	spin_unlock_irqrestore(&ft_apps_lock, flags);
	rcu_read_unlock();
}

/**
 * ft_apps_classify - another configuration decides from now on
 * @config: which
 *
 * Context: process context, under ft_config_mutex.
 */
void ft_apps_classify(const struct ft_config *config)
{
	bitmap_zero(ft_apps_moved, FASTTRACK_APPS);
	for (unsigned int at = 0; at < FASTTRACK_APPS; at += FT_APPS_AT_ONCE)
		ft_apps_classify_some(config, at);
}

/**
 * fasttrack_app_moved - has the last change given an app another class?
 * @id: its number
 *
 * Context: any; from the relabel function of an I/O scheduler.
 * Return: if so.
 */
bool fasttrack_app_moved(u32 id)
{
	return ft_app_is(id) && test_bit(ft_app_place(id), ft_apps_moved);
}
EXPORT_SYMBOL_GPL(fasttrack_app_moved);

#ifdef CONFIG_CGROUPS
static u64 ft_task_cgroup_id(struct task_struct *task)
{
	return cgroup_id(task_dfl_cgroup(task));
}
#else
static u64 ft_task_cgroup_id(struct task_struct *task)
{
	return 0;
}
#endif

/*
 * Who @task is, in the terms in which the configuration decides. The cgroup is
 * left out where no cgroup is configured: looking it up costs more than the
 * rest together.
 */
static struct ft_app_key ft_key_of(struct task_struct *task,
				   const struct ft_config *config)
{
	return (struct ft_app_key){
		.uid = from_kuid(&init_user_ns, task_uid(task)),
		.group = READ_ONCE(task->signal->fasttrack_group),
		.cgroup = config->by_cgroup ? ft_task_cgroup_id(task) : 0,
	};
}

/*
 * Who current is, and its number, which it keeps. One of the crowd keeps none: the
 * next configuration may give it a place. Under the RCU read lock.
 */
static u32 ft_app_keep(struct ft_app_key *key)
{
	struct ft_app_key now = ft_key_of(current, rcu_dereference(ft_config));
	u32 id;

	do {
		*key = now;
		id = ft_app_intern(key);
		WRITE_ONCE(current->fasttrack_app,
			   ft_app_place(id) == FT_APP_CROWD ? 0 : id);
		/* Pairs with that of __fasttrack_task_changed(). */
		smp_mb();
		now = ft_key_of(current, rcu_dereference(ft_config));
	} while (!ft_same_key(key, &now));
	return id;
}

/* Who @task is, and its number. Only the task itself keeps it. */
static u32 ft_app_look_up(struct task_struct *task, struct ft_app_key *key)
{
	if (task == current)
		return ft_app_keep(key);
	*key = ft_key_of(task, rcu_dereference(ft_config));
	return ft_app_intern(key);
}

/**
 * ft_app_of - the app of a user task
 * @task: current, or a task that cannot go away meanwhile
 *
 * Context: any; takes the RCU read lock.
 * Return: its number, or 0.
 */
u32 ft_app_of(struct task_struct *task)
{
	u32 id = READ_ONCE(task->fasttrack_app);
	struct ft_app_key key;

	if (ft_app_is(id))
		return id;
	rcu_read_lock();
	id = ft_app_look_up(task, &key);
	rcu_read_unlock();
	return id;
}

/* The class of the app @id; neutral if there is no such app (any more). */
static enum fasttrack_class ft_app_class(u32 id)
{
	u32 class = fasttrack_app_entry(id);

	return class < FASTTRACK_NR_APP_CLASSES ? class : FASTTRACK_NEUTRAL;
}

/**
 * fasttrack_app_class - the class of an app's I/O
 * @id: its number, as files and bios carry it
 *
 * Context: any.
 * Return: a class of I/O; neutral if there is no such app (any more).
 */
enum fasttrack_class fasttrack_app_class(u32 id)
{
	return fasttrack_io_class(ft_app_class(id));
}
EXPORT_SYMBOL_GPL(fasttrack_app_class);

/**
 * fasttrack_app_uid - the UID of an app
 * @id: its number
 *
 * Context: any.
 * Return: a UID of the initial user namespace; (u32)-1 if there is no such app.
 */
u32 fasttrack_app_uid(u32 id)
{
	return ft_app_is(id) ? READ_ONCE(ft_apps[ft_app_place(id)].key.uid) :
			       (u32)-1;
}
EXPORT_SYMBOL_GPL(fasttrack_app_uid);

/* The class of the app of @task, which has kept no number; neutral if it has no app. */
static noinline enum fasttrack_class ft_class_look_up(struct task_struct *task)
{
	enum fasttrack_class class;
	struct ft_app_key key;
	u32 id;

	if (!ft_is_user_task(task))
		return FASTTRACK_NEUTRAL;
	rcu_read_lock();
	id = ft_app_look_up(task, &key);
	class = id ? ft_app_class(id) :
		     ft_class_of(rcu_dereference(ft_config), &key);
	rcu_read_unlock();
	return class;
}

/**
 * __fasttrack_own_class - the class of current's app, which has kept no number
 *
 * Context: any; takes the RCU read lock.
 * Return: its class; neutral for a task of the kernel.
 */
enum fasttrack_class __fasttrack_own_class(void)
{
	return ft_class_look_up(current);
}

enum fasttrack_class __fasttrack_task_class(struct task_struct *task)
{
	u32 class;

	if (task->fasttrack_scope.override)
		return ft_scope_class(task);
	/* Only a user task keeps a number. */
	class = fasttrack_app_entry(READ_ONCE(task->fasttrack_app));
	if (unlikely(class >= FASTTRACK_NR_APP_CLASSES))
		class = ft_class_look_up(task);
	/* Others wait for what a task that is killed gives back. */
	if (class == FASTTRACK_BACKGROUND &&
	    (ft_never_behind(task) || fatal_signal_pending(task)))
		return FASTTRACK_NEUTRAL;
	return unlikely(ft_flushes_for_front(task)) ?
		FASTTRACK_FOREGROUND : class;
}
EXPORT_SYMBOL_GPL(__fasttrack_task_class);

/* The app @id has @nr more pages of a kind; or, negative, fewer. */
void ft_app_count(u32 id, enum ft_pages kind, long nr)
{
	if (ft_app_is(id))
		atomic_long_add(nr, &ft_app_pages[ft_app_place(id)][kind]);
}

/* Pages of a kind that the apps in front have. */
unsigned long ft_front_pages(enum ft_pages kind)
{
	unsigned long pages = 0;
	unsigned int place;

	for_each_set_bit(place, ft_apps_front, FASTTRACK_APPS)
		pages += max(atomic_long_read(&ft_app_pages[place][kind]), 0L);
	return pages;
}

/* So many dirty folios are counted with interrupts off. */
#define FT_COUNTED_FOLIOS	1024

/**
 * struct ft_too_dirty - the file that a processor has last met that has more
 * @mapping: compared only: another one may have its place by now
 * @counted: when, jiffies; believed for FT_COUNTED_FOR
 */
struct ft_too_dirty {
	const struct address_space *mapping;
	unsigned long counted;
};

#define FT_COUNTED_FOR	(HZ / 10)

static DEFINE_PER_CPU(struct ft_too_dirty, ft_too_dirty);

/*
 * Dirty pages of @mapping, whose lock is held, as they were counted: one that write-back
 * has taken is not, though its mark is still there. -1: there are too many.
 */
static long ft_dirty_pages(struct address_space *mapping)
{
	/* The lock keeps interrupts off. */
	struct ft_too_dirty *last = this_cpu_ptr(&ft_too_dirty);
	XA_STATE(xas, &mapping->i_pages, 0);
	unsigned int folios = 0;
	struct folio *folio;
	long pages = 0;

	if (last->mapping == mapping &&
	    time_before(jiffies, last->counted + FT_COUNTED_FOR))
		return -1;
	xas_for_each_marked(&xas, folio, ULONG_MAX, PAGECACHE_TAG_DIRTY) {
		if (folios++ == FT_COUNTED_FOLIOS) {
			last->mapping = mapping;
			last->counted = jiffies;
			return -1;
		}
		if (folio_test_dirty(folio))
			pages += folio_nr_pages(folio);
	}
	return pages;
}

/**
 * ft_file_dirtied - current, a user task, has dirtied pages of a file
 * @mapping: the file's; its lock is held
 *
 * The file is the app's from then on. But as long as it has dirty pages of an app
 * that matters more, or very many, it stays that one's; the other way round those pages
 * change hands with it.
 */
void ft_file_dirtied(struct address_space *mapping)
{
	u32 before = READ_ONCE(mapping->fasttrack_app);
	u32 id = ft_app_of(current);
	long pages;

	if (id == before)
		return;
	if (mapping_tagged(mapping, PAGECACHE_TAG_DIRTY)) {
		if (!ft_takes_over(ft_app_class(before), ft_app_class(id)))
			return;
		pages = ft_dirty_pages(mapping);
		if (pages < 0)
			return;
		ft_app_count(before, FT_PAGES_DIRTY, -pages);
		ft_app_count(id, FT_PAGES_DIRTY, pages);
	}
	WRITE_ONCE(mapping->fasttrack_app, id);
}

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/app-kunit.h"
#endif
