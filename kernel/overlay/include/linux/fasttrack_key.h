/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Is FastTrack switched on? What every hook asks first.
 */
#ifndef _LINUX_FASTTRACK_KEY_H
#define _LINUX_FASTTRACK_KEY_H

#include <linux/jump_label.h>

DECLARE_STATIC_KEY_FALSE(fasttrack_key);

static inline bool fasttrack_enabled(void)
{
	return IS_ENABLED(CONFIG_FASTTRACK) &&
	       static_branch_unlikely(&fasttrack_key);
}

/* The same, for a hook that every cached page passes: its code is in line. */
static inline bool fasttrack_enabled_hot(void)
{
	return IS_ENABLED(CONFIG_FASTTRACK) &&
	       static_branch_likely(&fasttrack_key);
}

#endif /* _LINUX_FASTTRACK_KEY_H */
