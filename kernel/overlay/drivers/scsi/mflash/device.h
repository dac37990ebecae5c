/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mflash: the state of the emulated phone storage, which every part has a piece of.
 *
 * The model is a discrete-event simulation. Time is an argument of it: u64
 * nanoseconds that never run backwards. Every part that can be busy (the
 * firmware, the link, a channel, a die) is a server with at most one event
 * ahead of it, mflash_model.next[].
 *
 * All fields of the model are guarded by mflash_host.model_lock, taken by
 * scsi.c, data.c, knobs.c and debugfs.c; the KUnit tests own their models. It
 * nests outside the hrtimer base lock and inside everything else.
 *
 * A part calls only what is to its right:
 *
 *   model | power, gc, cache | mapcache, ftl | op, nand | store, sched, phones
 */
#ifndef _MFLASH_DEVICE_H
#define _MFLASH_DEVICE_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/types.h>

#include "cache.h"
#include "ftl.h"
#include "gc.h"
#include "mapcache.h"
#include "nand.h"
#include "phones.h"
#include "sched.h"
#include "store.h"
#include "types.h"

#define MFLASH_STAT(name)	MFLASH_STAT_##name

/* counters; debugfs shows them by name */
enum mflash_stat {
#include "stats.h"
	MFLASH_NR_STATS
};

#undef MFLASH_STAT

/* servers: index into mflash_model.next */
#define MFLASH_EV_FW		0
#define MFLASH_EV_LINK(i)	(1 + (i))
#define MFLASH_EV_IDLE		3
#define MFLASH_EV_BURST		4
#define MFLASH_EV_CHANNEL(i)	(5 + (i))
#define MFLASH_EV_DIE(i)	(5 + MFLASH_CHANNELS_MAX + (i))
#define MFLASH_NR_EVENTS	(5 + MFLASH_CHANNELS_MAX + MFLASH_DIES_MAX)

/**
 * struct mflash_link - one direction of the host link (both, when half duplex)
 * @queue: commands with data to take, operations with data to give
 * @busy: the one that transfers
 * @chunk: pages of a write that are on the way
 */
struct mflash_link {
	struct mflash_queue queue;
	struct mflash_qnode *busy;
	u32 chunk;
};

/**
 * struct mflash_model - the device
 * @phone: its constants
 * @sched: its order
 * @burst: the foreground's commands
 * @store: its memory
 * @now: time of the event that is being handled
 * @next: time of each server's event; U64_MAX: none
 * @seq: last order of arrival given
 * @fw_queue: commands before the firmware
 * @fw_cmd: command in the firmware
 * @link: [0] to the host, [1] from it; half duplex: [0] only
 * @channels: the NAND channels
 * @dies: the dies
 * @sources: who has pages to program, in the order of their registration
 * @nr_sources: entries in @sources
 * @kick_dies: dies that may have something to begin
 * @kick_channels: channels that may have
 * @kick_links: links that may have
 * @next_die: die that is asked first whether it takes a program
 * @kick_gc: the copy job may go on
 * @die_refused: a die was not given what it had room for, so that others stay free
 * @idle: nothing was asked for a while
 * @idle_ns: how long that is
 * @ops: free operations
 * @cache: the volatile cache
 * @ftl: mapping and blocks
 * @gc: copy job
 * @map: cache of map pages
 * @in_flight: commands in the device
 * @active: commands in the device, by tag
 * @done: completed commands, for the caller to take
 * @desc: room for the content of one command's write, by tag
 * @dead: the power is cut
 * @cut_after: commands until the power cut; 0: none
 * @cut_persist: percent of cached pages that a power cut finds programmed
 * @seed: state of the seeded generator
 * @stats: counters
 */
struct mflash_model {
	const struct mflash_phone *phone;
	struct mflash_sched sched;
	struct mflash_burst burst;
	struct mflash_store store;
	u64 now;
	u64 next[MFLASH_NR_EVENTS];
	u64 seq;
	struct mflash_queue fw_queue;
	struct mflash_cmd *fw_cmd;
	struct mflash_link link[2];
	struct mflash_channel channels[MFLASH_CHANNELS_MAX];
	struct mflash_die dies[MFLASH_DIES_MAX];
	const struct mflash_source *sources[MFLASH_SOURCES_MAX];
	u32 nr_sources;
	unsigned long kick_dies, kick_channels, kick_links;
	u32 next_die;
	bool kick_gc, die_refused;
	bool idle;
	u64 idle_ns;
	struct list_head ops;
	struct mflash_cache cache;
	struct mflash_ftl ftl;
	struct mflash_gc gc;
	struct mflash_map_cache map;
	u32 in_flight;
	struct mflash_cmd *active[MFLASH_TAGS_MAX];
	struct list_head done;
	struct mflash_desc *desc;
	bool dead;
	u32 cut_after, cut_persist;
	u64 seed;
	u64 stats[MFLASH_NR_STATS];
};

#define mflash_count(m, name, n) ((m)->stats[MFLASH_STAT_##name] += (n))

#endif /* _MFLASH_DEVICE_H */
