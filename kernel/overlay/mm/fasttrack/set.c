// SPDX-License-Identifier: GPL-2.0
/*
 * Sets of numbers, of which the lists of apps consist: UIDs and ranges of them,
 * tags of thread groups, IDs of cgroups.
 *
 * A set that decides is sorted, never changes, and takes no more memory than it
 * needs. A change is made in a copy with room for all that there may be. The
 * empty set is NULL.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "internal.h"

/* How many ranges of @set begin at @value or below. */
static unsigned int ft_set_below(const struct ft_set *set, u64 value)
{
	unsigned int low = 0, high = set->nr;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (set->range[middle].first <= value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/**
 * ft_set_has - is a number in one of the ranges of a set?
 * @set: one that is finished, or NULL
 * @value: the number
 *
 * Context: any; about as many steps as the set's size has bits.
 * Return: if so.
 */
bool ft_set_has(const struct ft_set *set, u64 value)
{
	unsigned int below;

	if (!set)
		return false;
	below = ft_set_below(set, value);
	return below && set->range[below - 1].reach >= value;
}

/* Where in @set the range @first to @last is, or would be. */
static unsigned int ft_set_place(const struct ft_set *set, u64 first, u64 last)
{
	unsigned int place = ft_set_below(set, first);

	while (place && set->range[place - 1].first == first &&
	       set->range[place - 1].last >= last)
		place--;
	return place;
}

static bool ft_set_holds(const struct ft_set *set, unsigned int place,
			 u64 first, u64 last)
{
	return place < set->nr && set->range[place].first == first &&
	       set->range[place].last == last;
}

/**
 * ft_set_edit - begin a change
 * @set: what is to be changed; NULL: begin with nothing
 *
 * Return: a copy for ft_set_add() and ft_set_remove(), to be given to
 * ft_set_finish() or kvfree(); NULL without memory.
 */
struct ft_set *ft_set_edit(const struct ft_set *set)
{
	struct ft_set *edit = kvmalloc(struct_size(edit, range, FT_MAX_ENTRIES),
				       GFP_KERNEL);

	if (!edit)
		return NULL;
	edit->nr = ft_set_nr(set);
	if (set)
		memcpy(edit->range, set->range,
		       flex_array_size(set, range, set->nr));
	return edit;
}

/**
 * ft_set_add - one range more, unless it is there
 * @edit: a copy of ft_set_edit()
 * @first: its lowest number
 * @last: its highest
 *
 * Return: 0, or -ENOSPC.
 */
int ft_set_add(struct ft_set *edit, u64 first, u64 last)
{
	unsigned int place = ft_set_place(edit, first, last);

	if (ft_set_holds(edit, place, first, last))
		return 0;
	if (edit->nr == FT_MAX_ENTRIES)
		return -ENOSPC;
	memmove(&edit->range[place + 1], &edit->range[place],
		(edit->nr - place) * sizeof(edit->range[0]));
	edit->range[place] = (struct ft_range){ .first = first, .last = last };
	edit->nr++;
	return 0;
}

/* The range @first to @last is no more in @edit; if it was. */
void ft_set_remove(struct ft_set *edit, u64 first, u64 last)
{
	unsigned int place = ft_set_place(edit, first, last);

	if (!ft_set_holds(edit, place, first, last))
		return;
	edit->nr--;
	memmove(&edit->range[place], &edit->range[place + 1],
		(edit->nr - place) * sizeof(edit->range[0]));
}

/**
 * ft_set_finish - end a change
 * @edit: a copy of ft_set_edit(); is freed
 *
 * Return: a set that can decide, NULL if it is empty; -ENOMEM.
 */
struct ft_set *ft_set_finish(struct ft_set *edit)
{
	struct ft_set *set = NULL;
	u64 reach = 0;

	for (unsigned int i = 0; i < edit->nr; i++) {
		reach = max(reach, edit->range[i].last);
		edit->range[i].reach = reach;
	}
	if (edit->nr) {
		set = kvmemdup(edit, struct_size(edit, range, edit->nr),
			       GFP_KERNEL);
		if (!set)
			set = ERR_PTR(-ENOMEM);
	}
	kvfree(edit);
	return set;
}

/* Do @a and @b have the same ranges? */
bool ft_set_equal(const struct ft_set *a, const struct ft_set *b)
{
	if (!a || !b)
		return a == b;
	return a->nr == b->nr &&
	       !memcmp(a->range, b->range, flex_array_size(a, range, a->nr));
}

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/set-kunit.h"
#endif
