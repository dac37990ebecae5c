/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of what lists.c accepts, included by it. */
#include <kunit/test.h>

static void ft_test_good_and_bad(struct kunit *test, const struct ft_kind *kind,
				 const char * const *words, int nr, int ret)
{
	for (int i = 0; i < nr; i++) {
		struct ft_word word = { .text = words[i] };

		KUNIT_EXPECT_EQ_MSG(test, kind->parse(&word), ret, "%s",
				    words[i]);
	}
}

#define FT_TEST_WORDS(_kind, _words, _ret)				\
	ft_test_good_and_bad(test, _kind, _words, ARRAY_SIZE(_words), _ret)

static void ft_test_words(struct kunit *test)
{
	static const char * const numbers[] = { "0", "10101", "4294967294" };
	static const char * const no_uids[] = {
		"", "x", "-1", "+1", "1x", "1-2", "4294967295", "99999999999",
	};
	static const char * const ranges[] = { "0", "77", "0-99999", "5-5" };
	static const char * const no_ranges[] = {
		"", "x", "5-", "-5", "6-5", "1-2-3", "1-2x", "0-100000", "100000",
		"1--2", "1-+2", "4294967296", "4294967296-4294967297",
		"1-4294967298",
	};
	static const char * const tgids[] = { "1", "2147483647" };
	static const char * const no_tgids[] = { "0", "-3", "init",
						 "2147483648" };

	FT_TEST_WORDS(&ft_kind_uid, numbers, 0);
	FT_TEST_WORDS(&ft_kind_uid, no_uids, -EINVAL);
	FT_TEST_WORDS(&ft_kind_uids, ranges, 0);
	FT_TEST_WORDS(&ft_kind_uids, no_ranges, -EINVAL);
	FT_TEST_WORDS(&ft_kind_tgid, tgids, 0);
	FT_TEST_WORDS(&ft_kind_tgid, no_tgids, -EINVAL);
}

/* What @text does to @edit, or how many words it would have. */
static int ft_test_write(struct kunit *test, const struct ft_list_attr *attr,
			 struct ft_set *edit, const char *text)
{
	char *copy = kunit_kstrdup(test, text, GFP_KERNEL);
	const char *end = copy + strlen(text);
	char *words;
	int nr;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	words = ft_words_split(copy, end);
	nr = ft_words_check(attr->kind, words, end);
	if (nr < 0 || !edit)
		return nr;
	return ft_words_apply(attr, edit, words, end, nr);
}

static void ft_test_signs(struct kunit *test)
{
	static const struct {
		const char *text;
		int nr;
	} writes[] = {
		{ "", 0 }, { "\n\t ", 0 }, { "1", 1 }, { " 1  2\n", 2 },
		{ "+1 -2", 2 }, { "+1 2", -EINVAL }, { "1 -2", -EINVAL },
		{ "+", -EINVAL }, { "+-1", -EINVAL }, { "+ 1", -EINVAL },
		{ "1 x", -EINVAL },
	};

	for (int i = 0; i < ARRAY_SIZE(writes); i++) {
		int nr = ft_test_write(test, &ft_list_foreground_uids, NULL,
				       writes[i].text);

		KUNIT_EXPECT_EQ_MSG(test, nr, writes[i].nr, "%s",
				    writes[i].text);
	}
}

static void ft_test_changes(struct kunit *test)
{
	struct ft_set *edit = ft_set_edit(NULL);

	KUNIT_ASSERT_NOT_NULL(test, edit);
	KUNIT_EXPECT_EQ(test, ft_test_write(test, &ft_list_app_uids, edit,
					    "1-5 7"), 0);
	KUNIT_EXPECT_EQ(test, ft_test_write(test, &ft_list_app_uids, edit,
					    "+9 -7 -8 +1-5"), 0);
	KUNIT_EXPECT_EQ(test, edit->nr, 2);
	KUNIT_EXPECT_EQ(test, edit->range[0].last, 5);
	KUNIT_EXPECT_EQ(test, edit->range[1].first, 9);
	kvfree(edit);
}

/* A thread group that is dead fails alone, and by itself the whole write. */
static void ft_test_dead_tgid(struct kunit *test)
{
	struct ft_set *edit = ft_set_edit(NULL);

	KUNIT_ASSERT_NOT_NULL(test, edit);
	mutex_lock(&ft_config_mutex);
	KUNIT_EXPECT_EQ(test, ft_test_write(test, &ft_list_foreground_tgids,
					    edit, "4194305"), -ESRCH);
	KUNIT_EXPECT_EQ(test, ft_test_write(test, &ft_list_foreground_tgids,
					    edit, "4194305 1"), 0);
	KUNIT_EXPECT_EQ(test, edit->nr, 1);
	KUNIT_EXPECT_EQ(test, ft_test_write(test, &ft_list_foreground_tgids,
					    edit, "-4194305 -1"), 0);
	KUNIT_EXPECT_EQ(test, edit->nr, 0);
	mutex_unlock(&ft_config_mutex);
	kvfree(edit);
}

/* What a page has no room for is left out whole. */
static void ft_test_shown(struct kunit *test)
{
	char *page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	struct ft_set *set = ft_set_edit(NULL);
	size_t len;

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_NOT_NULL(test, set);
	for (u32 i = 0; i < FT_MAX_ENTRIES; i++)
		ft_set_add(set, 4000000000U + i, 4000000000U + i);
	len = ft_set_show(&ft_kind_uid, set, page);
	KUNIT_EXPECT_LT(test, len, PAGE_SIZE);
	KUNIT_EXPECT_GT(test, len, PAGE_SIZE - 2 * strlen("4000000000 "));
	KUNIT_EXPECT_EQ(test, len % strlen("4000000000 "), 0);
	KUNIT_EXPECT_EQ(test, page[len - 1], '\n');
	KUNIT_EXPECT_EQ(test, strlen(page), len);
	kvfree(set);
	len = ft_set_show(&ft_kind_uid, NULL, page);
	KUNIT_EXPECT_STREQ(test, page, "\n");
	KUNIT_EXPECT_EQ(test, len, 1);
}

static struct kunit_case ft_lists_test_cases[] = {
	KUNIT_CASE(ft_test_words),
	KUNIT_CASE(ft_test_signs),
	KUNIT_CASE(ft_test_changes),
	KUNIT_CASE(ft_test_dead_tgid),
	KUNIT_CASE(ft_test_shown),
	{}
};

static struct kunit_suite ft_lists_test_suite = {
	.name = "fasttrack_lists",
	.test_cases = ft_lists_test_cases,
};

kunit_test_suite(ft_lists_test_suite);
