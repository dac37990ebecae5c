/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mflash: a small device for the tests. Times are the phone's constants or
 * sums of them, never numbers of their own.
 */
#ifndef _MFLASH_MODEL_KUNIT_H
#define _MFLASH_MODEL_KUNIT_H

#include <kunit/test.h>
#include <linux/vmalloc.h>

#include "../model.h"

static const struct mflash_phone kunit_phone = {
	.name = "kunit", .queue_depth = 4, .max_kib = 256,
	.link_read_mbps = 500, .link_write_mbps = 500, .link_cmd_ns = 1000,
	.fw_read_ns = 10000, .fw_write_ns = 10000, .fw_flush_ns = 10000, .fw_unmap_ns = 10000,
	.channels = 1, .dies = 2, .planes = 1, .page_slots = 4, .bits = 1, .rows = 8,
	.channel_mbps = 400,
	.t_read_ns = 50000, .t_prog_ns = 1000000, .t_prog_slc_ns = 1000000,
	.t_erase_ns = 3000000, .t_susp_prog_ns = 100000, .t_susp_erase_ns = 700000,
	.t_resume_ns = 20000,
	.op_percent = 10, .map_pages = 64, .cache_kib = 128, .gc_low = 4,
};

#define KUNIT_MIB	4

/**
 * struct kunit_dev - a model and commands for it
 * @m: the model
 * @phone: its constants
 * @cmds: commands, by tag
 * @desc: content of their writes
 */
struct kunit_dev {
	struct mflash_model m;
	struct mflash_phone phone;
	struct mflash_cmd cmds[4];
	struct mflash_desc desc[4][64];
};

static inline void kunit_dev_exit(void *data)
{
	mflash_model_exit(&((struct kunit_dev *)data)->m);
}

/* @durable: what an earlier device left, or NULL */
static inline struct kunit_dev *kunit_dev(struct kunit *test, const struct mflash_phone *phone,
					  void *durable, u64 seed)
{
	struct kunit_dev *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct mflash_config config = {
		.size_mib = KUNIT_MIB, .place.durable = durable, .write_buffer = true,
		.seed = seed,
	};

	KUNIT_ASSERT_NOT_NULL(test, d);
	d->phone = *phone;
	config.phone = &d->phone;
	KUNIT_ASSERT_EQ(test, mflash_model_init(&d->m, &config), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kunit_dev_exit, d), 0);
	return d;
}

static inline struct mflash_cmd *kunit_submit(struct kunit_dev *d, u16 tag,
					      enum mflash_cmd_type type, u8 class, u32 lpn,
					      u32 pages, u64 word)
{
	struct mflash_cmd *cmd = &d->cmds[tag];
	bool fua = cmd->fua;
	u32 i;

	*cmd = (struct mflash_cmd) {
		.type = type, .class = class, .tag = tag, .lpn = lpn, .pages = pages,
		.desc = d->desc[tag], .fua = fua,
	};
	for (i = 0; i < pages && type == MFLASH_WRITE; i++)
		d->desc[tag][i] = (struct mflash_desc) { .word = word };
	mflash_submit(&d->m, cmd, d->m.now);
	return cmd;
}

static inline bool kunit_is_done(struct kunit_dev *d, struct mflash_cmd *cmd)
{
	struct mflash_cmd *c;

	list_for_each_entry(c, &d->m.done, done)
		if (c == cmd)
			return true;
	return false;
}

/* returns the time that the command took */
static inline u64 kunit_wait(struct kunit *test, struct kunit_dev *d, struct mflash_cmd *cmd)
{
	u64 next, bound;

	while (!kunit_is_done(d, cmd)) {
		next = mflash_next_event(&d->m);
		bound = mflash_next_completion(&d->m);
		KUNIT_ASSERT_NE_MSG(test, next, U64_MAX,
				    "hangs: type %d pending %u free %u victim %d urgent %d erasing %u reading %u buffered %u programming %u dirty %u open %d %d",
				    cmd->type, cmd->pending, d->m.ftl.nr_free[0],
				    (int)d->m.gc.victim, d->m.gc.urgent, d->m.gc.erasing,
				    d->m.gc.reading, d->m.gc.buffered, d->m.gc.programming,
				    d->m.cache.nr_dirty, (int)d->m.ftl.open[1],
				    (int)d->m.ftl.open[2]);
		mflash_advance(&d->m, next);
		if (!list_empty(&d->m.done))
			KUNIT_ASSERT_GE(test, d->m.now, bound);
	}
	list_del_init(&cmd->done);
	return d->m.now - cmd->submitted;
}

static inline u64 kunit_do(struct kunit *test, struct kunit_dev *d, enum mflash_cmd_type type,
			   u8 class, u32 lpn, u32 pages, u64 word)
{
	return kunit_wait(test, d, kunit_submit(d, 0, type, class, lpn, pages, word));
}

static inline u64 kunit_flush(struct kunit *test, struct kunit_dev *d)
{
	return kunit_do(test, d, MFLASH_FLUSH, FASTTRACK_NEUTRAL, 0, 0, 0);
}

static inline u64 kunit_word(struct kunit_dev *d, u32 lpn)
{
	struct mflash_desc desc;

	mflash_resolve(&d->m, lpn, &desc);
	return desc.word;
}

/* the device's books: what blocks say is valid is what is mapped */
static inline void kunit_check_books(struct kunit *test, struct kunit_dev *d)
{
	u32 i, mapped = 0, valid = 0;

	for (i = 0; i < d->m.ftl.pages; i++) {
		u32 cur = d->m.ftl.map[i];

		if (!cur)
			continue;
		mapped++;
		KUNIT_EXPECT_EQ(test, d->m.store.oob[cur - 1].lpn, i);
	}
	for (i = 0; i < d->m.ftl.nr_blocks; i++)
		valid += d->m.ftl.blocks[i].valid;
	KUNIT_EXPECT_EQ(test, valid, mapped);
}

#endif /* _MFLASH_MODEL_KUNIT_H */
