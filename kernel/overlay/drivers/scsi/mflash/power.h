/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: the power cut, see power.c. */
#ifndef _MFLASH_POWER_H
#define _MFLASH_POWER_H

#include <linux/types.h>

struct mflash_model;

u64 mflash_random(struct mflash_model *m);
void mflash_power_cut(struct mflash_model *m);

#endif /* _MFLASH_POWER_H */
