/* SPDX-License-Identifier: GPL-2.0 */
/* KUnit tests of what the foreground sleeps on, included by wait.c. */
#include <kunit/test.h>

static struct fasttrack_sleeper ft_test_sleeper(const struct address_space *file)
{
	return (struct fasttrack_sleeper){ .file = file, .pages = 1 };
}

static void ft_test_sleep(struct kunit *test)
{
	struct address_space *file = kunit_kzalloc(test, 2 * sizeof(*file),
						   GFP_KERNEL);
	unsigned int first, second;

	KUNIT_ASSERT_NOT_NULL(test, file);
	if (ft_nr_sleepers)
		kunit_skip(test, "the foreground sleeps");
	KUNIT_EXPECT_FALSE(test, ft_file_is_waited_for(NULL));
	KUNIT_EXPECT_FALSE(test, ft_file_is_waited_for(file));

	/* Two tasks, one file; and one on a block device. */
	first = ft_sleep_begin(ft_test_sleeper(file));
	second = ft_sleep_begin(ft_test_sleeper(file));
	ft_sleep_end(ft_sleep_begin(ft_test_sleeper(NULL)));
	KUNIT_EXPECT_TRUE(test, ft_file_is_waited_for(file));
	KUNIT_EXPECT_FALSE(test, ft_file_is_waited_for(file + 1));
	ft_sleep_end(first | FT_WAIT_FOREGROUND | FT_WAIT_OTHERS);
	KUNIT_EXPECT_TRUE(test, ft_file_is_waited_for(file));
	ft_sleep_end(second);
	KUNIT_EXPECT_FALSE(test, ft_file_is_waited_for(file));
}

static void ft_test_sleep_many(struct kunit *test)
{
	struct address_space *files = kunit_kcalloc(test, FASTTRACK_SLEEPERS + 1,
						    sizeof(*files), GFP_KERNEL);
	unsigned int done[FASTTRACK_SLEEPERS];

	KUNIT_ASSERT_NOT_NULL(test, files);
	if (ft_nr_sleepers)
		kunit_skip(test, "the foreground sleeps");
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS; i++)
		done[i] = ft_sleep_begin(ft_test_sleeper(&files[i]));
	/* No room: nobody knows of it, and there is nothing to end. */
	KUNIT_EXPECT_EQ(test, ft_sleep_begin(ft_test_sleeper(files)), 0);
	ft_sleep_end(0);
	for (unsigned int i = 0; i < FASTTRACK_SLEEPERS; i++) {
		KUNIT_EXPECT_TRUE(test, ft_file_is_waited_for(&files[i]));
		ft_sleep_end(done[i]);
		KUNIT_EXPECT_FALSE(test, ft_file_is_waited_for(&files[i]));
	}
	KUNIT_EXPECT_EQ(test, ft_nr_sleepers, 0);
}

static struct kunit_case ft_wait_test_cases[] = {
	KUNIT_CASE(ft_test_sleep),
	KUNIT_CASE(ft_test_sleep_many),
	{}
};

static struct kunit_suite ft_wait_test_suite = {
	.name = "fasttrack_wait",
	.test_cases = ft_wait_test_cases,
};

kunit_test_suite(ft_wait_test_suite);
