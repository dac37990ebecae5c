/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of sets of numbers, included by set.c. */
#include <kunit/test.h>

static struct ft_set *ft_test_edit(struct kunit *test, const struct ft_set *set)
{
	struct ft_set *edit = ft_set_edit(set);

	KUNIT_ASSERT_NOT_NULL(test, edit);
	return edit;
}

/* Ranges may lie in each other, touch, and come in any order. */
static void ft_test_set_has(struct kunit *test)
{
	static const struct ft_range ranges[] = {
		{ 30, 39 }, { 10, 90 }, { 12, 13 }, { 100, 100 }, { 101, 110 },
		{ U64_MAX, U64_MAX },
	};
	struct ft_set *set = ft_test_edit(test, NULL);

	for (int i = 0; i < ARRAY_SIZE(ranges); i++)
		KUNIT_EXPECT_EQ(test, ft_set_add(set, ranges[i].first,
						 ranges[i].last), 0);
	set = ft_set_finish(set);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, set);
	for (u64 value = 0; value < 120; value++) {
		bool in = false;

		for (int i = 0; i < ARRAY_SIZE(ranges); i++)
			in |= value >= ranges[i].first &&
			      value <= ranges[i].last;
		KUNIT_EXPECT_EQ_MSG(test, ft_set_has(set, value), in, "%llu",
				    value);
	}
	KUNIT_EXPECT_TRUE(test, ft_set_has(set, U64_MAX));
	KUNIT_EXPECT_FALSE(test, ft_set_has(set, U64_MAX - 1));
	KUNIT_EXPECT_FALSE(test, ft_set_has(NULL, 0));
	kvfree(set);
}

static void ft_test_set_changes(struct kunit *test)
{
	struct ft_set *edit = ft_test_edit(test, NULL), *set, *same;

	KUNIT_EXPECT_EQ(test, ft_set_add(edit, 5, 9), 0);
	KUNIT_EXPECT_EQ(test, ft_set_add(edit, 5, 7), 0);
	KUNIT_EXPECT_EQ(test, ft_set_add(edit, 5, 9), 0);
	KUNIT_EXPECT_EQ(test, edit->nr, 2);
	/* Only what was added can be taken away, and that once. */
	ft_set_remove(edit, 5, 8);
	ft_set_remove(edit, 6, 7);
	KUNIT_EXPECT_EQ(test, edit->nr, 2);
	set = ft_set_finish(edit);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, set);

	/* What has been published does not change with a copy of it. */
	edit = ft_test_edit(test, set);
	ft_set_remove(edit, 5, 9);
	same = ft_set_finish(edit);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, same);
	KUNIT_EXPECT_FALSE(test, ft_set_has(same, 9));
	KUNIT_EXPECT_TRUE(test, ft_set_has(set, 9));
	KUNIT_EXPECT_FALSE(test, ft_set_equal(set, same));

	edit = ft_test_edit(test, same);
	KUNIT_EXPECT_EQ(test, ft_set_add(edit, 5, 9), 0);
	kvfree(same);
	same = ft_set_finish(edit);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, same);
	KUNIT_EXPECT_TRUE(test, ft_set_equal(set, same));
	KUNIT_EXPECT_FALSE(test, ft_set_equal(set, NULL));
	KUNIT_EXPECT_TRUE(test, ft_set_equal(NULL, NULL));
	kvfree(same);

	edit = ft_test_edit(test, set);
	ft_set_remove(edit, 5, 9);
	ft_set_remove(edit, 5, 7);
	KUNIT_EXPECT_NULL(test, ft_set_finish(edit));
	kvfree(set);
}

/* Full is full, whatever the order; what is there already still fits. */
static void ft_test_set_full(struct kunit *test)
{
	struct ft_set *set = ft_test_edit(test, NULL);

	for (u64 i = 0; i < FT_MAX_ENTRIES; i++)
		KUNIT_EXPECT_EQ(test, ft_set_add(set, (i * 77) % FT_MAX_ENTRIES,
						 (i * 77) % FT_MAX_ENTRIES), 0);
	KUNIT_EXPECT_EQ(test, set->nr, FT_MAX_ENTRIES);
	KUNIT_EXPECT_EQ(test, ft_set_add(set, FT_MAX_ENTRIES, FT_MAX_ENTRIES),
			-ENOSPC);
	KUNIT_EXPECT_EQ(test, ft_set_add(set, 7, 7), 0);
	set = ft_set_finish(set);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, set);
	for (u64 i = 0; i < FT_MAX_ENTRIES; i++)
		KUNIT_EXPECT_TRUE(test, ft_set_has(set, i));
	KUNIT_EXPECT_FALSE(test, ft_set_has(set, FT_MAX_ENTRIES));
	kvfree(set);
}

static struct kunit_case ft_set_test_cases[] = {
	KUNIT_CASE(ft_test_set_has),
	KUNIT_CASE(ft_test_set_changes),
	KUNIT_CASE(ft_test_set_full),
	{}
};

static struct kunit_suite ft_set_test_suite = {
	.name = "fasttrack_set",
	.test_cases = ft_set_test_cases,
};

kunit_test_suite(ft_set_test_suite);
