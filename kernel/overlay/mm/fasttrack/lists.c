// SPDX-License-Identifier: GPL-2.0
/*
 * The lists of /sys/kernel/fasttrack/: who is in front, who is perceptible, and
 * who is an app. See Documentation/ABI/testing/sysfs-kernel-fasttrack.
 *
 * A write is words, separated by white space. Words with a sign change the list,
 * each by one entry; words without replace it, no words empty it. A word that is
 * none, or one too many, refuses the whole write. A thread group or a cgroup that
 * is not there fails alone: the detector raced with an exit, and the others it
 * named are in front nevertheless.
 */
#define pr_fmt(fmt) "fasttrack: " fmt

#include <linux/cgroup.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"

/**
 * struct ft_word - one word of a write
 * @text: it, without its sign
 * @first: what it says, if that is a number or a range
 * @last: likewise
 */
struct ft_word {
	const char *text;
	u32 first;
	u32 last;
};

/**
 * struct ft_kind - what a list is of
 * @parse: fill in a word's numbers; -EINVAL if it cannot be one of the list's
 * @find: the entry that a word stands for, or why there is none: -ESRCH, -ENOENT,
 *	-ENOTDIR; for want of anything else the write fails. NULL: its numbers
 * @remove: the entry leaves, if it is there
 * @print: show an entry, in up to @room bytes with the final zero. Return: what
 *	that takes without the zero, 0 if it is not to be shown
 */
struct ft_kind {
	int (*parse)(struct ft_word *word);
	int (*find)(const struct ft_word *word, u64 *value);
	void (*remove)(struct ft_set *edit, const struct ft_word *word);
	int (*print)(const struct ft_range *range, char *buf, size_t room);
};

/**
 * struct ft_list_attr - the file of a list
 * @attr: read and written by root alone: who uses which app when is nobody's
 *	business
 * @list: which
 * @kind: what it is of
 */
struct ft_list_attr {
	struct kobj_attribute attr;
	enum ft_list list;
	const struct ft_kind *kind;
};

/* --- UIDs, and ranges of them */

static int ft_parse_uid(struct ft_word *word)
{
	if (!isdigit(*word->text) || kstrtou32(word->text, 10, &word->first) ||
	    word->first == (u32)-1)
		return -EINVAL;
	word->last = word->first;
	return 0;
}

static int ft_parse_uids(struct ft_word *word)
{
	char end;
	/* No more digits than fit: sscanf() cuts larger numbers. */
	int n = sscanf(word->text, "%9u-%9u%c", &word->first, &word->last,
		       &end);

	if (n == 1 && !ft_parse_uid(word))
		n = 2;
	if (n != 2 || word->first > word->last ||
	    word->last >= FT_UIDS_PER_USER)
		return -EINVAL;
	return 0;
}

static void ft_remove_uids(struct ft_set *edit, const struct ft_word *word)
{
	ft_set_remove(edit, word->first, word->last);
}

static int ft_print_uid(const struct ft_range *range, char *buf, size_t room)
{
	return snprintf(buf, room, "%llu", range->first);
}

static int ft_print_uids(const struct ft_range *range, char *buf, size_t room)
{
	return snprintf(buf, room, "%llu-%llu", range->first, range->last);
}

static const struct ft_kind ft_kind_uid = {
	.parse = ft_parse_uid,
	.remove = ft_remove_uids,
	.print = ft_print_uid,
};

static const struct ft_kind ft_kind_uids = {
	.parse = ft_parse_uids,
	.remove = ft_remove_uids,
	.print = ft_print_uids,
};

/* --- thread groups */

static int ft_parse_tgid(struct ft_word *word)
{
	if (ft_parse_uid(word) || !word->first || word->first > INT_MAX)
		return -EINVAL;
	return 0;
}

static int ft_find_tgid(const struct ft_word *word, u64 *value)
{
	u32 tag;
	int ret = ft_group_tag(word->first, &tag);

	if (!ret)
		*value = tag;
	return ret;
}

/* Its leader may be dead, and the PID another's by now: both leave. */
static void ft_remove_tgid(struct ft_set *edit, const struct ft_word *word)
{
	for (unsigned int i = edit->nr; i--; ) {
		u64 tag = edit->range[i].first;

		if (ft_group_pid(tag) == word->first)
			ft_set_remove(edit, tag, tag);
	}
}

static int ft_print_tgid(const struct ft_range *range, char *buf, size_t room)
{
	pid_t tgid = ft_group_tgid(range->first);

	return tgid ? snprintf(buf, room, "%d", tgid) : 0;
}

static const struct ft_kind ft_kind_tgid = {
	.parse = ft_parse_tgid,
	.find = ft_find_tgid,
	.remove = ft_remove_tgid,
	.print = ft_print_tgid,
};

/* --- cgroups */

#ifdef CONFIG_CGROUPS
static int ft_parse_cgroup(struct ft_word *word)
{
	return *word->text == '/' ? 0 : -EINVAL;
}

static int ft_find_cgroup(const struct ft_word *word, u64 *value)
{
	struct cgroup *cgroup = cgroup_get_from_path(word->text);
	int ret = 0;

	if (IS_ERR(cgroup))
		return PTR_ERR(cgroup);
	if (cgroup->level > FT_CGROUP_LEVELS)
		ret = -ENAMETOOLONG;
	*value = cgroup_id(cgroup);
	cgroup_put(cgroup);
	return ret;
}

/* One that is dead has left already. */
static void ft_remove_cgroup(struct ft_set *edit, const struct ft_word *word)
{
	u64 id;

	if (!ft_find_cgroup(word, &id))
		ft_set_remove(edit, id, id);
}

static int ft_print_cgroup(const struct ft_range *range, char *buf, size_t room)
{
	struct cgroup *cgroup = __cgroup_get_from_id(range->first);
	int len;

	if (IS_ERR(cgroup))
		return 0;
	len = cgroup_path(cgroup, buf, room);
	cgroup_put(cgroup);
	/* What is too long is cut, with -E2BIG or without an error. */
	return len < 0 ? room : len;
}

static const struct ft_kind ft_kind_cgroup = {
	.parse = ft_parse_cgroup,
	.find = ft_find_cgroup,
	.remove = ft_remove_cgroup,
	.print = ft_print_cgroup,
};
#endif /* CONFIG_CGROUPS */

/* --- writes and reads */

/* Words end with a zero: white space is replaced. Return: the first word. */
static char *ft_words_split(char *words, const char *end)
{
	for (char *c = words; c < end; c++)
		if (isspace(*c))
			*c = '\0';
	while (words < end && !*words)
		words++;
	return words;
}

static char *ft_word_next(char *word, const char *end)
{
	word += strlen(word);
	while (word < end && !*word)
		word++;
	return word;
}

/* The sign that a word begins with, or 0. */
static char ft_word_sign(const char *word)
{
	return *word == '+' || *word == '-' ? *word : 0;
}

/*
 * Are the words from @words to @end all of the list's kind, and all with a sign,
 * or all without? Return: how many; -EINVAL.
 */
static int ft_words_check(const struct ft_kind *kind, char *words,
			  const char *end)
{
	bool sign = words < end && ft_word_sign(words);
	int nr = 0;

	for (char *word = words; word < end; word = ft_word_next(word, end)) {
		struct ft_word parsed = { .text = word + sign };

		if (sign != !!ft_word_sign(word) || kind->parse(&parsed))
			return -EINVAL;
		nr++;
	}
	return nr;
}

/* Do what one word, which is a good one, says. */
static int ft_word_apply(const struct ft_kind *kind, struct ft_set *edit,
			 const char *text)
{
	char sign = ft_word_sign(text);
	struct ft_word word = { .text = text + !!sign };
	u64 value;
	int ret;

	kind->parse(&word);
	if (sign == '-') {
		kind->remove(edit, &word);
		return 0;
	}
	if (!kind->find)
		return ft_set_add(edit, word.first, word.last);
	ret = kind->find(&word, &value);
	return ret ?: ft_set_add(edit, value, value);
}

/* Is this what becomes of a word that names what is not there, or too deep? */
static bool ft_fails_alone(int ret)
{
	return ret == -ESRCH || ret == -ENOENT || ret == -ENOTDIR ||
	       ret == -ENAMETOOLONG;
}

/* Do what all words say. Return: 0; why nothing could be done. */
static int ft_words_apply(const struct ft_list_attr *attr, struct ft_set *edit,
			  char *words, const char *end, int nr)
{
	for (char *word = words; word < end; word = ft_word_next(word, end)) {
		int ret = ft_word_apply(attr->kind, edit, word);

		if (ret && (nr == 1 || !ft_fails_alone(ret)))
			return ret;
		if (ret)
			pr_notice_ratelimited("%s: %s is left out: %pe\n",
					      attr->attr.attr.name, word,
					      ERR_PTR(ret));
	}
	return 0;
}

static int ft_list_change(const struct ft_list_attr *attr, char *words,
			  const char *end, int nr)
{
	struct ft_config *config = ft_config_change();
	bool replaces = !nr || !ft_word_sign(words);
	struct ft_set *edit;
	int ret = -ENOMEM;

	if (!config)
		return ret;
	edit = ft_set_edit(replaces ? NULL : config->list[attr->list]);
	if (!edit)
		goto drop;
	ret = ft_words_apply(attr, edit, words, end, nr);
	if (ret) {
		kvfree(edit);
		goto drop;
	}
	ret = ft_config_set(config, attr->list, edit);
	if (ret)
		goto drop;
	ft_config_publish(config);
	return 0;
drop:
	ft_config_drop(config);
	return ret;
}

static ssize_t ft_list_store(struct kobject *kobj, struct kobj_attribute *kattr,
			     const char *buf, size_t count)
{
	const struct ft_list_attr *attr =
		container_of(kattr, struct ft_list_attr, attr);
	char *copy, *words;
	int ret;

	/* A longer write arrives as its first page. */
	if (count >= PAGE_SIZE)
		return -E2BIG;
	copy = kmemdup_nul(buf, count, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	words = ft_words_split(copy, copy + count);
	ret = ft_words_check(attr->kind, words, copy + count);
	if (ret >= 0) {
		mutex_lock(&ft_config_mutex);
		ret = ft_list_change(attr, words, copy + count, ret);
		if (!ret && attr->list < FT_NR_FOREGROUND_LISTS)
			ft_lease_renew();
		mutex_unlock(&ft_config_mutex);
	}
	kfree(copy);
	return ret ?: count;
}

/* As much of @set as a page takes, entry by entry. */
static ssize_t ft_set_show(const struct ft_kind *kind, const struct ft_set *set,
			   char *buf)
{
	size_t len = 0;

	for (unsigned int i = 0; i < ft_set_nr(set); i++) {
		size_t room = PAGE_SIZE - len - 1;
		int n = kind->print(&set->range[i], buf + len, room);

		if (n >= room - 1)
			break;
		if (!n)
			continue;
		len += n;
		buf[len++] = ' ';
	}
	if (len)
		len--;
	buf[len++] = '\n';
	buf[len] = '\0';
	return len;
}

static ssize_t ft_list_show(struct kobject *kobj, struct kobj_attribute *kattr,
			    char *buf)
{
	const struct ft_list_attr *attr =
		container_of(kattr, struct ft_list_attr, attr);
	struct ft_config *config;
	ssize_t len;

	mutex_lock(&ft_config_mutex);
	/* What is dead leaves the lists. */
	config = ft_config_change();
	if (config)
		ft_config_publish(config);
	config = rcu_dereference_protected(ft_config, true);
	len = ft_set_show(attr->kind, config->list[attr->list], buf);
	mutex_unlock(&ft_config_mutex);
	return len;
}

#define FT_LIST(_name, _list, _kind)					\
static struct ft_list_attr ft_list_##_name = {				\
	.attr = __ATTR(_name, 0600, ft_list_show, ft_list_store),	\
	.list = (_list),						\
	.kind = &ft_kind_##_kind,					\
}

FT_LIST(foreground_uids, FT_FOREGROUND_UIDS, uid);
FT_LIST(foreground_tgids, FT_FOREGROUND_TGIDS, tgid);
FT_LIST(perceptible_uids, FT_PERCEPTIBLE_UIDS, uid);
FT_LIST(perceptible_tgids, FT_PERCEPTIBLE_TGIDS, tgid);
FT_LIST(neutral_uids, FT_NEUTRAL_UIDS, uids);
FT_LIST(app_uids, FT_APP_UIDS, uids);
#ifdef CONFIG_CGROUPS
FT_LIST(foreground_cgroups, FT_FOREGROUND_CGROUPS, cgroup);
FT_LIST(perceptible_cgroups, FT_PERCEPTIBLE_CGROUPS, cgroup);
FT_LIST(neutral_cgroups, FT_NEUTRAL_CGROUPS, cgroup);
FT_LIST(app_cgroups, FT_APP_CGROUPS, cgroup);
#endif

static struct attribute *ft_list_attrs[] = {
	&ft_list_foreground_uids.attr.attr,
	&ft_list_foreground_tgids.attr.attr,
	&ft_list_perceptible_uids.attr.attr,
	&ft_list_perceptible_tgids.attr.attr,
	&ft_list_neutral_uids.attr.attr,
	&ft_list_app_uids.attr.attr,
#ifdef CONFIG_CGROUPS
	&ft_list_foreground_cgroups.attr.attr,
	&ft_list_perceptible_cgroups.attr.attr,
	&ft_list_neutral_cgroups.attr.attr,
	&ft_list_app_cgroups.attr.attr,
#endif
	NULL
};

const struct attribute_group ft_list_group = {
	.attrs = ft_list_attrs,
};

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/lists-kunit.h"
#endif
