/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of interned apps, included by app.c. */
#include <kunit/test.h>

/* UIDs that nobody has. */
#define FT_TEST_UID	4000010101U

static u32 ft_test_intern(u32 uid, u32 group, u64 cgroup)
{
	const struct ft_app_key key = {
		.uid = uid, .group = group, .cgroup = cgroup,
	};
	u32 id;

	rcu_read_lock();
	id = ft_app_intern(&key);
	rcu_read_unlock();
	return id;
}

static void ft_test_one_number_an_app(struct kunit *test)
{
	u32 id = ft_test_intern(FT_TEST_UID, 0, 0);

	KUNIT_EXPECT_NE(test, id, 0);
	KUNIT_EXPECT_EQ(test, ft_test_intern(FT_TEST_UID, 0, 0), id);
	KUNIT_EXPECT_NE(test, ft_test_intern(FT_TEST_UID, 7, 0), id);
	KUNIT_EXPECT_NE(test, ft_test_intern(FT_TEST_UID, 0, 7), id);
	KUNIT_EXPECT_EQ(test, fasttrack_app_uid(id), FT_TEST_UID);
}

/* Root is an app like any other; nobody is none. */
static void ft_test_nobody(struct kunit *test)
{
	u32 root = ft_test_intern(0, 0, 0);

	KUNIT_EXPECT_NE(test, root, 0);
	KUNIT_EXPECT_EQ(test, fasttrack_app_uid(root), 0);
	KUNIT_EXPECT_EQ(test, fasttrack_app_uid(0), (u32)-1);
	KUNIT_EXPECT_EQ(test, fasttrack_app_class(0), FASTTRACK_NEUTRAL);
	KUNIT_EXPECT_FALSE(test, fasttrack_app_moved(0));
	KUNIT_EXPECT_GE(test, fasttrack_app_entry(0),
			(u32)FASTTRACK_NR_APP_CLASSES);
	/* Who runs this is of the kernel. */
	KUNIT_EXPECT_TRUE(test, fasttrack_own_class_is(FASTTRACK_NEUTRAL));
}

static void ft_test_classes_follow_the_configuration(struct kunit *test)
{
	struct ft_config config = ft_config_boot;
	struct ft_set *set = ft_set_edit(NULL);
	u32 id = ft_test_intern(FT_TEST_UID, 0, 0);
	u32 other = ft_test_intern(FT_TEST_UID + 1, 0, 0);

	KUNIT_ASSERT_NOT_NULL(test, set);
	KUNIT_ASSERT_EQ(test, ft_set_add(set, FT_TEST_UID, FT_TEST_UID), 0);
	set = ft_set_finish(set);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, set);
	mutex_lock(&ft_config_mutex);
	/* What is perceptible travels as neutral. */
	config.list[FT_PERCEPTIBLE_UIDS] = set;
	ft_apps_classify(&config);
	KUNIT_EXPECT_EQ(test, ft_app_class(id), FASTTRACK_PERCEPTIBLE);
	KUNIT_EXPECT_EQ(test, fasttrack_app_class(id), FASTTRACK_NEUTRAL);
	config.list[FT_PERCEPTIBLE_UIDS] = NULL;
	config.list[FT_FOREGROUND_UIDS] = set;
	ft_apps_classify(&config);
	KUNIT_EXPECT_EQ(test, fasttrack_app_class(id), FASTTRACK_FOREGROUND);
	KUNIT_EXPECT_TRUE(test, fasttrack_app_moved(id));
	KUNIT_EXPECT_FALSE(test, fasttrack_app_moved(other));
	/* What the page cache's hooks see. */
	KUNIT_EXPECT_EQ(test, fasttrack_app_entry(id),
			(u32)FASTTRACK_FOREGROUND);
	KUNIT_EXPECT_EQ(test, fasttrack_app_entry(other),
			(u32)ft_app_class(other));
	ft_app_count(id, FT_PAGES_DIRTY, 5);
	ft_app_count(other, FT_PAGES_DIRTY, 3);
	KUNIT_EXPECT_EQ(test, ft_front_pages(FT_PAGES_DIRTY), 5);
	/* More written than dirtied is a fault, and counts as none. */
	ft_app_count(id, FT_PAGES_DIRTY, -9);
	KUNIT_EXPECT_EQ(test, ft_front_pages(FT_PAGES_DIRTY), 0);
	ft_app_count(id, FT_PAGES_DIRTY, 4);
	ft_app_count(other, FT_PAGES_DIRTY, -3);
	/* Each kind by itself; what leaves the front takes its pages along. */
	ft_app_count(id, FT_PAGES_CACHED, 7);
	KUNIT_EXPECT_EQ(test, ft_front_pages(FT_PAGES_CACHED), 7);
	KUNIT_EXPECT_EQ(test, ft_front_pages(FT_PAGES_DIRTY), 0);
	config.list[FT_FOREGROUND_UIDS] = NULL;
	ft_apps_classify(&config);
	KUNIT_EXPECT_EQ(test, ft_front_pages(FT_PAGES_CACHED), 0);
	ft_app_count(id, FT_PAGES_CACHED, -7);
	ft_apps_classify(rcu_dereference_protected(ft_config, true));
	mutex_unlock(&ft_config_mutex);
	kvfree(set);
	KUNIT_EXPECT_NE(test, fasttrack_app_class(id), FASTTRACK_FOREGROUND);
}

/* When FastTrack is switched on again nobody has counted what happened meanwhile. */
static void ft_test_renew(struct kunit *test)
{
	u32 before = ft_test_intern(FT_TEST_UID, 0, 0), id;
	const atomic_long_t *pages;

	if (fasttrack_enabled())
		kunit_skip(test, "FastTrack is on");
	ft_app_count(before, FT_PAGES_DIRTY, 5);
	ft_apps_renew();
	id = ft_test_intern(FT_TEST_UID, 0, 0);
	KUNIT_EXPECT_NE(test, id, before);
	KUNIT_EXPECT_EQ(test, fasttrack_app_uid(id), FT_TEST_UID);
	KUNIT_EXPECT_EQ(test, fasttrack_app_uid(before), (u32)-1);
	/* They are written now. */
	ft_app_count(before, FT_PAGES_DIRTY, -5);
	pages = ft_app_pages[ft_app_place(id)];
	KUNIT_EXPECT_EQ(test, atomic_long_read(&pages[FT_PAGES_DIRTY]), 0);
}

/* An app that is gone leaves its place; its number names nobody from then on. */
static void ft_test_reap(struct kunit *test)
{
	u32 gone = ft_test_intern(FT_TEST_UID + 2, 0, 0);
	u32 dirty = ft_test_intern(FT_TEST_UID + 3, 0, 0);
	u32 next;

	ft_app_count(dirty, FT_PAGES_DIRTY, 1);
	ft_apps_reap(NULL);
	KUNIT_EXPECT_EQ(test, fasttrack_app_uid(gone), (u32)-1);
	KUNIT_EXPECT_GE(test, fasttrack_app_entry(gone),
			(u32)FASTTRACK_NR_APP_CLASSES);
	KUNIT_EXPECT_EQ(test, fasttrack_app_uid(dirty), FT_TEST_UID + 3);
	next = ft_test_intern(FT_TEST_UID + 4, 0, 0);
	KUNIT_EXPECT_NE(test, next, gone);
	KUNIT_EXPECT_EQ(test, fasttrack_app_uid(gone), (u32)-1);
	ft_app_count(dirty, FT_PAGES_DIRTY, -1);
	ft_apps_reap(NULL);
	KUNIT_EXPECT_EQ(test, fasttrack_app_uid(dirty), (u32)-1);
}

/*
 * Interns apps until one gets @last instead of a number of its own, or none has. However
 * slow the machine is, nobody looks meanwhile for those that are gone: that was just now.
 */
static u32 ft_test_intern_until(u32 last)
{
	u32 id = !last;

	for (unsigned int i = 0; id != last && i <= FASTTRACK_APPS; i++) {
		WRITE_ONCE(ft_apps_reaped, jiffies);
		id = ft_test_intern(FT_TEST_UID + 10 + i, 0, 0);
	}
	return id;
}

/* When all places are taken there is no number, until somebody has gone. */
static void ft_test_full(struct kunit *test)
{
	unsigned long crowded = ft_stat_read(FASTTRACK_APPS_CROWDED);

	KUNIT_EXPECT_EQ(test, ft_test_intern_until(0), 0);
	KUNIT_EXPECT_GE(test, FASTTRACK_APPS - ft_nr_apps, FASTTRACK_APPS / 8);
	KUNIT_EXPECT_GT(test, ft_stat_read(FASTTRACK_APPS_CROWDED), crowded);
	/* The next one has those that are gone looked for, and may come too early. */
	ft_apps_reaped = jiffies - HZ;
	ft_test_intern(FT_TEST_UID + 9, 0, 0);
	flush_work(&ft_apps_reap_work);
	KUNIT_EXPECT_NE(test, ft_test_intern(FT_TEST_UID, 0, 0), 0);
	ft_apps_reap(NULL);
}

/* A configuration in which the UIDs @first to @last are in @list, and no others. */
static struct ft_config *ft_test_config(struct kunit *test, enum ft_list list,
					u64 first, u64 last)
{
	struct ft_config *config = kunit_kzalloc(test, sizeof(*config),
						 GFP_KERNEL);
	struct ft_set *set = ft_set_edit(NULL);

	KUNIT_ASSERT_NOT_NULL(test, config);
	KUNIT_ASSERT_NOT_NULL(test, set);
	KUNIT_ASSERT_EQ(test, ft_set_add(set, first, last), 0);
	config->list[list] = ft_set_finish(set);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, config->list[list]);
	return config;
}

/*
 * However many apps a user makes: background without a place stays background, and
 * who comes to the front has one.
 */
static void ft_test_crowd(struct kunit *test)
{
	struct ft_config *behind = ft_test_config(test, FT_APP_UIDS, 0,
						  FT_UIDS_PER_USER - 1);
	struct ft_config *front = ft_test_config(test, FT_FOREGROUND_UIDS,
						 FT_TEST_UID + 5,
						 FT_TEST_UID + 5);
	u32 id, crowd = ft_app_at(FT_APP_CROWD);
	struct ft_config *old;

	if (fasttrack_enabled())
		kunit_skip(test, "FastTrack is on");
	mutex_lock(&ft_config_mutex);
	old = ft_config_replace(behind);
	id = ft_test_intern_until(crowd);
	KUNIT_EXPECT_EQ(test, id, crowd);
	KUNIT_EXPECT_EQ(test, fasttrack_app_class(id), FASTTRACK_BACKGROUND);
	KUNIT_EXPECT_EQ(test, fasttrack_app_uid(id), (u32)-1);
	/* One that is seen first when it is in front. */
	ft_config_replace(front);
	id = ft_test_intern(FT_TEST_UID + 5, 0, 0);
	KUNIT_EXPECT_EQ(test, fasttrack_app_uid(id), FT_TEST_UID + 5);
	KUNIT_EXPECT_EQ(test, fasttrack_app_class(id), FASTTRACK_FOREGROUND);
	/* Whatever is configured. */
	ft_apps_classify(front);
	KUNIT_EXPECT_EQ(test, fasttrack_app_class(crowd), FASTTRACK_BACKGROUND);
	ft_config_replace(old);
	ft_apps_classify(old);
	mutex_unlock(&ft_config_mutex);
	synchronize_rcu();
	kvfree(behind->list[FT_APP_UIDS]);
	kvfree(front->list[FT_FOREGROUND_UIDS]);
	ft_apps_reaped = jiffies - HZ;
	ft_apps_reap(NULL);
	KUNIT_EXPECT_EQ(test, fasttrack_app_class(crowd), FASTTRACK_BACKGROUND);
}

static void ft_test_who_takes_over(struct kunit *test)
{
	const u8 order[] = { FASTTRACK_BACKGROUND, FASTTRACK_NEUTRAL,
			     FASTTRACK_PERCEPTIBLE, FASTTRACK_FOREGROUND };

	for (int i = 0; i < ARRAY_SIZE(order); i++)
		for (int j = 0; j < ARRAY_SIZE(order); j++)
			KUNIT_EXPECT_EQ(test, ft_takes_over(order[i], order[j]),
					j > i);
}

static struct kunit_case ft_app_test_cases[] = {
	KUNIT_CASE(ft_test_one_number_an_app),
	KUNIT_CASE(ft_test_nobody),
	KUNIT_CASE(ft_test_classes_follow_the_configuration),
	KUNIT_CASE(ft_test_renew),
	KUNIT_CASE(ft_test_reap),
	KUNIT_CASE(ft_test_full),
	KUNIT_CASE(ft_test_crowd),
	KUNIT_CASE(ft_test_who_takes_over),
	{}
};

static struct kunit_suite ft_app_test_suite = {
	.name = "fasttrack_app",
	.test_cases = ft_app_test_cases,
};

kunit_test_suite(ft_app_test_suite);
