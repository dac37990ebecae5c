/* SPDX-License-Identifier: GPL-2.0 */
/* A number in an elevator's sysfs directory. */
#ifndef _BLOCK_ELEVATOR_KNOB_H
#define _BLOCK_ELEVATOR_KNOB_H

#include <linux/compiler.h>
#include <linux/kstrtox.h>
#include <linux/math64.h>
#include <linux/sysfs.h>
#include <linux/types.h>

#include "elevator.h"

/*
 * @unit: what the file's unit is in the knob's. Wrong input, or what is not from
 * @lowest to @highest: -EINVAL, and the knob is as it was.
 */
static inline ssize_t elv_knob_store(u64 *knob, const char *page, size_t count,
				     u64 lowest, u64 highest, u64 unit)
{
	u64 value;

	if (kstrtou64(page, 10, &value) || value < lowest || value > highest)
		return -EINVAL;
	WRITE_ONCE(*knob, value * unit);
	return count;
}

/*
 * The functions _prefix_name_show() and _store() of a u64; @_knob is where it is,
 * an expression of the elevator @e.
 */
#define ELV_KNOB(_prefix, _name, _knob, _lowest, _highest, _unit)		\
static ssize_t _prefix##_##_name##_show(struct elevator_queue *e, char *page)	\
{										\
	return sysfs_emit(page, "%llu\n",					\
			  div_u64(READ_ONCE(*(_knob)), _unit));			\
}										\
										\
static ssize_t _prefix##_##_name##_store(struct elevator_queue *e,		\
					 const char *page, size_t count)	\
{										\
	return elv_knob_store(_knob, page, count, _lowest, _highest, _unit);	\
}

#endif /* _BLOCK_ELEVATOR_KNOB_H */
