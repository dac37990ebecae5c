/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash: the volatile write cache, see cache.c. */
#ifndef _MFLASH_CACHE_H
#define _MFLASH_CACHE_H

#include <linux/fasttrack_class.h>
#include <linux/list.h>
#include <linux/types.h>

struct mflash_cmd;
struct mflash_entry;
struct mflash_model;

#define MFLASH_HASH_BITS	10

/**
 * struct mflash_cache - the volatile write cache
 * @free: entries
 * @arrival: entries in use whose data were acknowledged, oldest first
 * @through: entries in use whose data are acknowledged when they are durable
 * @dirty: entries whose program has not begun, by class, oldest first
 * @hash: entries in use by logical page, newest first
 * @nr_free: free entries that are not promised to a transfer
 * @nr_dirty: entries in @dirty
 * @nr_background: those of them that are the background's
 * @nr_through: those of them that are in @through
 * @nr: all entries
 * @flushes: flush commands that wait, oldest first
 * @fg_flush_seq: what the last flush by the foreground covers
 * @fg_flushed: time of the foreground's last flush or FUA write; 0: never
 * @forced: when a unit of overdue pages was last written out
 * @flush_seq: entries up to this one must be written out for a flush
 * @flush_dirty: those of them that are in @dirty
 * @fua_dirty: entries in @dirty, and not in @through, that a write waits for
 */
struct mflash_cache {
	struct list_head free, arrival, through;
	struct list_head dirty[FASTTRACK_NR_CLASSES];
	struct hlist_head hash[1 << MFLASH_HASH_BITS];
	u32 nr_free, nr_dirty, nr_background, nr_through, nr;
	struct list_head flushes;
	u64 fg_flush_seq, fg_flushed, flush_seq, forced;
	u32 flush_dirty, fua_dirty;
};

u32 mflash_cache_pages(const struct mflash_model *m);
int mflash_cache_init(struct mflash_model *m);
u32 mflash_cache_room(const struct mflash_model *m, u8 class);
struct mflash_entry *mflash_cache_find(struct mflash_model *m, u32 lpn);
void mflash_cache_write(struct mflash_model *m, struct mflash_cmd *cmd, u32 pages);
void mflash_cache_flush(struct mflash_model *m, struct mflash_cmd *cmd);
void mflash_cache_trim(struct mflash_model *m, u32 lpn, u32 pages);
bool mflash_cache_is_due(struct mflash_model *m);

#endif /* _MFLASH_CACHE_H */
