/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: the way of a command through the device, see model.c. */
#ifndef _MFLASH_MODEL_H
#define _MFLASH_MODEL_H

#include <linux/types.h>

#include "device.h"

/**
 * struct mflash_config - what a model is made from
 * @phone: constants
 * @size_mib: logical size
 * @place: memory of the store
 * @write_buffer: use the SLC buffer
 * @seed: of the generator for power cuts
 */
struct mflash_config {
	const struct mflash_phone *phone;
	u32 size_mib;
	struct mflash_place place;
	bool write_buffer;
	u64 seed;
};

int mflash_model_init(struct mflash_model *m, const struct mflash_config *config);
void mflash_model_exit(struct mflash_model *m);
void mflash_submit(struct mflash_model *m, struct mflash_cmd *cmd, u64 now);
void mflash_advance(struct mflash_model *m, u64 now);
u64 mflash_next_event(const struct mflash_model *m);
u64 mflash_next_completion(const struct mflash_model *m);
bool mflash_resolve(struct mflash_model *m, u32 lpn, struct mflash_desc *desc);

#endif /* _MFLASH_MODEL_H */
