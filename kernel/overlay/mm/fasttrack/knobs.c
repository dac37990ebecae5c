// SPDX-License-Identifier: GPL-2.0
/* The knobs of /sys/kernel/fasttrack/, as they are after boot. */
#include <linux/sizes.h>
#include <linux/time64.h>

#include "internal.h"

struct ft_knobs ft_knobs = {
	.page_allocator = true,
	.page_reclaimer = true,
	.promotion = true,
	/* What a user does not feel. */
	.stuck = 10 * NSEC_PER_MSEC,
	/* Far more than any bound that is kept. */
	.eject = 30ULL * NSEC_PER_SEC,
	/* An app decodes an image or lays out a view between reads. */
	.idle_window = 20 * NSEC_PER_MSEC,
	.background_pause = NSEC_PER_SEC,
	/* One request of the usual size is read, and copied. */
	.segment_pages = SZ_512K >> PAGE_SHIFT,
	/* What a phone's storage reads in 50 ms. */
	.reserve_pages = SZ_16M >> PAGE_SHIFT,
	.foreground_cache_percent = 60,
};
