/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of changes of the configuration, included by front.c. */
#include <kunit/test.h>

/* Init's thread group is in @list, or not. */
static void ft_test_change(struct kunit *test, enum ft_list list, bool in)
{
	struct ft_config *config = ft_config_change();
	struct ft_set *edit = ft_set_edit(NULL);
	u32 tag;

	KUNIT_ASSERT_NOT_NULL(test, config);
	KUNIT_ASSERT_NOT_NULL(test, edit);
	if (in) {
		KUNIT_EXPECT_EQ(test, ft_group_tag(1, &tag), 0);
		KUNIT_EXPECT_EQ(test, ft_set_add(edit, tag, tag), 0);
	}
	KUNIT_EXPECT_EQ(test, ft_config_set(config, list, edit), 0);
	ft_config_publish(config);
}

static void ft_test_group_tags(struct kunit *test)
{
	struct ft_config *config;
	u32 tag = 0, again = 0;

	mutex_lock(&ft_config_mutex);
	KUNIT_EXPECT_EQ(test, ft_group_tag(PID_MAX_LIMIT, &tag), -ESRCH);
	KUNIT_EXPECT_EQ(test, ft_group_tag(1, &tag), 0);
	KUNIT_EXPECT_EQ(test, ft_group_tag(1, &again), 0);
	KUNIT_EXPECT_EQ(test, tag, again);
	KUNIT_EXPECT_EQ(test, ft_group_tgid(tag), 1);

	/* A change that fails leaves nothing behind. */
	config = ft_config_change();
	KUNIT_EXPECT_NOT_NULL(test, config);
	if (config)
		ft_config_drop(config);
	KUNIT_EXPECT_EQ(test, ft_group_tgid(tag), 0);
	mutex_unlock(&ft_config_mutex);
}

/* A thread group has one tag, until no list names it. */
static void ft_test_shared_tag(struct kunit *test)
{
	u32 tag = 0, again = 0;

	mutex_lock(&ft_config_mutex);
	ft_test_change(test, FT_FOREGROUND_TGIDS, true);
	KUNIT_EXPECT_EQ(test, ft_group_tag(1, &tag), 0);
	ft_test_change(test, FT_PERCEPTIBLE_TGIDS, true);
	KUNIT_EXPECT_TRUE(test, ft_foreground_set());
	ft_test_change(test, FT_FOREGROUND_TGIDS, false);
	KUNIT_EXPECT_FALSE(test, ft_foreground_set());
	KUNIT_EXPECT_EQ(test, ft_group_tgid(tag), 1);
	KUNIT_EXPECT_EQ(test, ft_group_tag(1, &again), 0);
	KUNIT_EXPECT_EQ(test, again, tag);
	ft_test_change(test, FT_PERCEPTIBLE_TGIDS, false);
	KUNIT_EXPECT_EQ(test, ft_group_tgid(tag), 0);
	mutex_unlock(&ft_config_mutex);
}

/* A thread group that gets a tag is another app; one that keeps it is not. */
static void ft_test_tagged_task(struct kunit *test)
{
	struct task_struct *init = get_pid_task(find_vpid(1), PIDTYPE_TGID);

	KUNIT_ASSERT_NOT_NULL(test, init);
	mutex_lock(&ft_config_mutex);
	WRITE_ONCE(init->fasttrack_app, 1);
	ft_test_change(test, FT_FOREGROUND_TGIDS, true);
	KUNIT_EXPECT_EQ(test, init->fasttrack_app, 0);
	WRITE_ONCE(init->fasttrack_app, 1);
	ft_test_change(test, FT_PERCEPTIBLE_TGIDS, true);
	KUNIT_EXPECT_EQ(test, init->fasttrack_app, 1);
	ft_test_change(test, FT_FOREGROUND_TGIDS, false);
	ft_test_change(test, FT_PERCEPTIBLE_TGIDS, false);
	mutex_unlock(&ft_config_mutex);
	__fasttrack_task_changed(init);
	put_task_struct(init);
}

static void ft_test_cgroups(struct kunit *test, bool any)
{
	struct ft_config *config = ft_config_change();
	struct ft_set *edit = ft_set_edit(NULL);

	KUNIT_ASSERT_NOT_NULL(test, config);
	KUNIT_ASSERT_NOT_NULL(test, edit);
	/* The root of the hierarchy. */
	if (any)
		KUNIT_EXPECT_EQ(test, ft_set_add(edit, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, ft_config_set(config, FT_NEUTRAL_CGROUPS, edit), 0);
	ft_config_publish(config);
}

/* When cgroups begin to decide, and when they cease, every task is looked up anew. */
static void ft_test_changed_tasks(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_CGROUPS))
		kunit_skip(test, "needs CONFIG_CGROUPS");
	mutex_lock(&ft_config_mutex);
	for (int any = 1; any >= 0; any--) {
		WRITE_ONCE(current->fasttrack_app, 1);
		ft_test_change(test, FT_FOREGROUND_TGIDS, true);
		ft_test_change(test, FT_FOREGROUND_TGIDS, false);
		KUNIT_EXPECT_EQ(test, current->fasttrack_app, 1);
		ft_test_cgroups(test, any);
		KUNIT_EXPECT_EQ(test, current->fasttrack_app, 0);
	}
	mutex_unlock(&ft_config_mutex);
}

/* Who is in front has a generation; the other lists, and no change, have not. */
static void ft_test_generation(struct kunit *test)
{
	u64 before;

	mutex_lock(&ft_config_mutex);
	before = ft_generation();
	ft_test_change(test, FT_PERCEPTIBLE_TGIDS, true);
	KUNIT_EXPECT_EQ(test, ft_generation(), before);
	ft_test_change(test, FT_FOREGROUND_TGIDS, true);
	KUNIT_EXPECT_EQ(test, ft_generation(), before + 1);
	ft_test_change(test, FT_FOREGROUND_TGIDS, true);
	KUNIT_EXPECT_EQ(test, ft_generation(), before + 1);
	ft_test_change(test, FT_FOREGROUND_TGIDS, false);
	KUNIT_EXPECT_EQ(test, ft_generation(), before + 2);
	ft_test_change(test, FT_PERCEPTIBLE_TGIDS, false);
	KUNIT_EXPECT_EQ(test, ft_generation(), before + 2);
	mutex_unlock(&ft_config_mutex);
}

static struct kunit_case ft_front_test_cases[] = {
	KUNIT_CASE(ft_test_group_tags),
	KUNIT_CASE(ft_test_shared_tag),
	KUNIT_CASE(ft_test_tagged_task),
	KUNIT_CASE(ft_test_changed_tasks),
	KUNIT_CASE(ft_test_generation),
	{}
};

static struct kunit_suite ft_front_test_suite = {
	.name = "fasttrack_front",
	.test_cases = ft_front_test_cases,
};

kunit_test_suite(ft_front_test_suite);
