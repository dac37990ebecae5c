/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mflash: what the files of the emulated phone storage share.
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
#ifndef _MFLASH_H
#define _MFLASH_H

#include <linux/bitmap.h>
#include <linux/errno.h>
#include <linux/fasttrack_class.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/types.h>

#include "sched.h"

#define MFLASH_PAGE_SIZE	4096U
#define MFLASH_PAGE_SHIFT	12
#define MFLASH_NONE		U32_MAX	/* no page, no block, no die */
#define MFLASH_DIES_MAX		16
#define MFLASH_CHANNELS_MAX	4
#define MFLASH_UNIT_MAX		64	/* 4 KiB slots of the largest program unit */
#define MFLASH_BUCKETS		64	/* victims are sorted this finely by valid pages */
#define MFLASH_MAP_SHIFT	10	/* one 4 KiB map page translates 1024 pages */
#define MFLASH_CMD_PAGES	256	/* largest command: 1 MiB */
#define MFLASH_TAGS_MAX		64
#define MFLASH_HASH_BITS	10

/**
 * struct mflash_phone - constants of one phone's storage; phones.c has the sources
 * @name: as in mflash.phone=
 * @queue_depth: commands that the device takes at once
 * @max_kib: largest command, KiB
 * @link_read_mbps: link rate to the host, 10^6 bytes a second
 * @link_write_mbps: link rate from the host
 * @half_duplex: both directions share one bus (eMMC)
 * @link_cmd_ns: protocol overhead of a command on the link
 * @fw_read_ns: firmware time of a read command
 * @fw_write_ns: firmware time of a write command
 * @fw_flush_ns: firmware time to make something durable: a flush, and on top a FUA write
 * @fw_unmap_ns: firmware time of an unmap command
 * @fw_page_ns: firmware time of each 4 KiB of a command
 * @channels: NAND channels
 * @dies: dies over all channels; die d is on channel d mod @channels
 * @planes: planes of a die that work in step
 * @page_slots: 4 KiB slots of one NAND page (4: 16 KiB pages)
 * @bits: NAND pages programmed in one go in normal mode (3: one-shot TLC)
 * @rows: program units of a block on one die
 * @channel_mbps: channel transfer rate
 * @t_read_ns: array read of one NAND page on all planes
 * @t_prog_ns: program of one unit in normal mode
 * @t_prog_slc_ns: program of one unit in SLC mode
 * @t_erase_ns: erase of one block on one die
 * @t_susp_prog_ns: from suspending a program to a free die
 * @t_susp_erase_ns: from suspending an erase to a free die
 * @t_resume_ns: added to what was left when an operation goes on
 * @op_percent: over-provisioning, percent of the logical size
 * @map_pages: 4 KiB map pages that the controller caches
 * @slc_mib: size of the SLC buffer; 0: none
 * @cache_kib: volatile write cache
 * @gc_low: free blocks at which garbage collection competes with the host
 */
struct mflash_phone {
	const char *name;
	u32 queue_depth, max_kib;
	u32 link_read_mbps, link_write_mbps;
	bool half_duplex;
	u32 link_cmd_ns;
	u32 fw_read_ns, fw_write_ns, fw_flush_ns, fw_unmap_ns, fw_page_ns;
	u8 channels, dies, planes, page_slots, bits;
	u16 rows;
	u32 channel_mbps;
	u32 t_read_ns, t_prog_ns, t_prog_slc_ns, t_erase_ns;
	u32 t_susp_prog_ns, t_susp_erase_ns, t_resume_ns;
	u8 op_percent;
	u32 map_pages;
	u32 slc_mib, cache_kib, gc_low;
};

const struct mflash_phone *mflash_phone_find(const char *name);

/* ---- store.c: content and durable state ------------------------------- */

/**
 * struct mflash_desc - content of one 4 KiB page
 * @word: the repeated 64-bit word, if @slot is 0
 * @slot: where the bytes are in the store's data area, counted from 1
 */
struct mflash_desc {
	u64 word;
	u32 slot;
};

/**
 * struct mflash_oob - durable: one physical page
 * @word: content, see struct mflash_desc
 * @seq: version: order in which host data was programmed; a copy keeps it
 * @lpn: logical page; MFLASH_NONE: torn or padding
 * @slot: content, see struct mflash_desc
 * @gen: erase count of the block plus 1, when programmed; written last
 * @pad: zero
 */
struct mflash_oob {
	u64 word, seq;
	u32 lpn, slot, gen, pad;
};

/**
 * enum mflash_block_state - durable state of a block
 * @MFLASH_FREE: erased, in no use
 * @MFLASH_OPEN: a stream writes it
 * @MFLASH_CLOSED: full, may become a victim
 * @MFLASH_ERASING: nothing in it is needed; the erase may not have ended
 */
enum mflash_block_state { MFLASH_FREE, MFLASH_OPEN, MFLASH_CLOSED, MFLASH_ERASING };

/**
 * struct mflash_header - durable: one block (one erase block of every plane and die)
 * @erases: erases that ended
 * @state: enum mflash_block_state
 * @stream: enum mflash_stream, while open
 * @rows: program units begun, a die
 */
struct mflash_header {
	u32 erases;
	u8 state, stream;
	u16 rows[MFLASH_DIES_MAX];
};

/**
 * struct mflash_super - durable: first page of the image
 * @magic: MFLASH_MAGIC
 * @version: MFLASH_VERSION
 * @phone: name of the phone
 * @pages: logical pages
 * @blocks: blocks
 * @block_pages: slots of a block in normal mode
 * @slc_blocks: blocks of the SLC buffer
 * @seq: last version or trim number given
 * @power_cuts: power cuts so far
 */
struct mflash_super {
	u64 magic;
	u32 version;
	char phone[12];
	u32 pages, blocks, block_pages, slc_blocks;
	u64 seq, power_cuts;
};

#define MFLASH_MAGIC	0x6d666c6173683031ULL
#define MFLASH_VERSION	1

/**
 * struct mflash_store - memory outside the page allocator
 * @durable: survives power cuts: super page, headers, trims, OOB, data
 * @durable_size: bytes
 * @scratch: tables that recovery makes again
 * @scratch_size: bytes
 * @scratch_used: bytes given out by mflash_scratch()
 * @zeroed: @durable was zero where nothing was ever written
 * @release: gives the memory back
 * @super: first page
 * @headers: one a block
 * @trim_used: one a map page: some trim is recorded in it
 * @trims: number of the last trim, a logical page
 * @oob: one a slot
 * @data: out-of-line content; slot s is at (s - 1) * 4 KiB
 * @slots: slots in @data
 * @slots_top: slots ever used
 * @free_slots: stack of slots given back
 * @nr_free_slots: entries on it
 */
struct mflash_store {
	void *durable;
	size_t durable_size;
	void *scratch;
	size_t scratch_size, scratch_used;
	bool zeroed;
	void (*release)(struct mflash_store *st);

	struct mflash_super *super;
	struct mflash_header *headers;
	u8 *trim_used;
	u64 *trims;
	struct mflash_oob *oob;
	u8 *data;
	u32 slots, slots_top;
	u32 *free_slots;
	u32 nr_free_slots;
};

struct mflash_model;
struct mflash_op;

/**
 * struct mflash_place - where the store's memory comes from
 * @image: host file (UML), or NULL
 * @base: physical address of reserved memory, or 0
 * @size: bytes of it
 * @durable: vmalloc memory of an earlier model, to start from (tests), or NULL
 */
struct mflash_place {
	const char *image;
	void *durable;
	phys_addr_t base;
	size_t size;
};

int mflash_store_open(struct mflash_model *m, const struct mflash_place *place);
void mflash_store_close(struct mflash_store *st);
void *mflash_scratch(struct mflash_store *st, size_t size);
u32 mflash_slot_get(struct mflash_store *st);
void mflash_slot_put(struct mflash_store *st, u32 slot);

static inline void *mflash_slot_data(struct mflash_store *st, u32 slot)
{
	return st->data + ((size_t)(slot - 1) << MFLASH_PAGE_SHIFT);
}

/* ---- commands --------------------------------------------------------- */

/**
 * enum mflash_cmd_type - what the model is asked for
 * @MFLASH_READ: read pages
 * @MFLASH_WRITE: write pages
 * @MFLASH_FLUSH: make all acknowledged writes durable
 * @MFLASH_UNMAP: forget pages
 * @MFLASH_NR_CMDS: number of types
 */
enum mflash_cmd_type { MFLASH_READ, MFLASH_WRITE, MFLASH_FLUSH, MFLASH_UNMAP, MFLASH_NR_CMDS };

/**
 * struct mflash_cmd - one command, from mflash_submit() until it is on mflash_model.done
 * @q: place in the firmware's, then the link's queue
 * @done: in mflash_model.done or .flushes
 * @type: what it asks for
 * @class: for whom
 * @fua: a write that must be durable when it completes
 * @tag: below the queue depth, own while it is in the device
 * @lpn: first logical page
 * @pages: logical pages
 * @sent: pages of a write that crossed the link
 * @pending: what must end before it completes: pages of a read, programs of a FUA write
 * @map_wait: map pages that are being read for it
 * @target: what must be durable: cached pages up to this one; 0: its own only
 * @submitted: time
 * @error: 0, -EIO (no power), -ENOSPC (the store is full)
 * @desc: content of a write, one a page
 */
struct mflash_cmd {
	struct mflash_qnode q;
	struct list_head done;
	enum mflash_cmd_type type;
	u8 class;
	bool fua;
	u16 tag;
	u32 lpn, pages, sent, pending, map_wait;
	u64 target, submitted;
	int error;
	struct mflash_desc *desc;
};

/* ---- cache.c ---------------------------------------------------------- */

/**
 * struct mflash_entry - one page on its way to the NAND
 * @order: in mflash_cache.arrival, or free list
 * @dirty: in a dirty list until its program begins
 * @hash: in mflash_cache.hash
 * @seq: order of arrival
 * @since: time of arrival
 * @version: see struct mflash_oob; given when its program begins
 * @lpn: logical page
 * @src: physical page that a copy was read from; MFLASH_NONE: host data
 * @desc: content
 * @class: best class that wrote it
 * @programming: its program has begun
 * @trimmed: unmapped, or overtaken by a newer version, meanwhile
 * @waiter: FUA write that waits for it
 */
struct mflash_entry {
	struct list_head order, dirty;
	struct hlist_node hash;
	u64 seq, since, version;
	u32 lpn, src;
	struct mflash_desc desc;
	u8 class;
	bool programming, trimmed;
	struct mflash_cmd *waiter;
};

/**
 * struct mflash_cache - the volatile write cache
 * @free: entries
 * @arrival: entries in use, oldest first
 * @dirty: entries whose program has not begun, by class, oldest first
 * @hash: entries in use by logical page, newest first
 * @nr_free: free entries that are not promised to a transfer
 * @nr_dirty: entries in @dirty
 * @nr_background: entries in use by the background
 * @nr: all entries
 * @flushes: flush commands that wait, oldest first
 * @fg_flush_seq: what the last flush by the foreground covers
 * @flush_seq: entries up to this one must be written out for a flush
 * @flush_dirty: those of them that are in @dirty
 * @fua_dirty: entries in @dirty that a FUA write waits for
 */
struct mflash_cache {
	struct list_head free, arrival;
	struct list_head dirty[FASTTRACK_NR_CLASSES];
	struct hlist_head hash[1 << MFLASH_HASH_BITS];
	u32 nr_free, nr_dirty, nr_background, nr;
	struct list_head flushes;
	u64 fg_flush_seq, flush_seq;
	u32 flush_dirty, fua_dirty;
};

/* ---- nand.c ----------------------------------------------------------- */

/**
 * enum mflash_op_type - work of a die, or of the link
 * @MFLASH_OP_READ: pages for a read command
 * @MFLASH_OP_RAM: pages for a read command that need no die
 * @MFLASH_OP_GC_READ: pages to copy
 * @MFLASH_OP_MAP_READ: one map page
 * @MFLASH_OP_MAP_PROG: one map page
 * @MFLASH_OP_PROG: one unit of the cache or of copies
 * @MFLASH_OP_ERASE: a block's part on this die
 */
enum mflash_op_type {
	MFLASH_OP_READ,
	MFLASH_OP_RAM,
	MFLASH_OP_GC_READ,
	MFLASH_OP_MAP_READ,
	MFLASH_OP_MAP_PROG,
	MFLASH_OP_PROG,
	MFLASH_OP_ERASE,
};

typedef void mflash_op_end(struct mflash_model *m, struct mflash_op *op);

/**
 * struct mflash_op - one operation
 * @q: in a die's, a channel's or the link's queue, or in the free list
 * @cmd: read command that it is for, or NULL
 * @type: what
 * @end: called once, when it has left its die; whose it is gives it back then or later
 * @die: where
 * @block: of an erase
 * @pages: 4 KiB pages to transfer
 * @copies: entries that a copy's read fills
 */
struct mflash_op {
	struct mflash_qnode q;
	struct mflash_cmd *cmd;
	struct list_head copies;
	mflash_op_end *end;
	enum mflash_op_type type;
	u32 die, block, pages;
};

/**
 * struct mflash_unit - the pages of one program
 * @ppn: first slot
 * @slots: slots
 * @slc: programmed in SLC mode
 * @nr: entries
 * @entries: the entries, in the order of their slots
 */
struct mflash_unit {
	u32 ppn, slots;
	bool slc;
	u32 nr;
	struct mflash_entry *entries[MFLASH_UNIT_MAX];
};

/**
 * struct mflash_source - who has pages to program: a die that is free asks all of them
 * @candidate: what would be programmed on a die next, if anything; changes nothing
 * @take: fill the unit, whose program begins
 * @programmed: the unit's program has ended
 */
struct mflash_source {
	bool (*candidate)(struct mflash_model *m, u32 die, struct mflash_candidate *c);
	void (*take)(struct mflash_model *m, u32 die, struct mflash_unit *unit);
	void (*programmed)(struct mflash_model *m, struct mflash_unit *unit);
};

#define MFLASH_SOURCES_MAX	2

/**
 * enum mflash_die_state - what a die does
 * @MFLASH_DIE_IDLE: nothing
 * @MFLASH_DIE_SENSE: array read, ends at its event
 * @MFLASH_DIE_OUT: waits for, or uses, the channel after a read
 * @MFLASH_DIE_IN: waits for, or uses, the channel before a program
 * @MFLASH_DIE_BUSY: program or erase, ends at its event
 * @MFLASH_DIE_SUSPENDING: on the way to MFLASH_DIE_SUSPENDED, at its event
 * @MFLASH_DIE_SUSPENDED: reads only
 */
enum mflash_die_state {
	MFLASH_DIE_IDLE,
	MFLASH_DIE_SENSE,
	MFLASH_DIE_OUT,
	MFLASH_DIE_IN,
	MFLASH_DIE_BUSY,
	MFLASH_DIE_SUSPENDING,
	MFLASH_DIE_SUSPENDED,
};

/**
 * struct mflash_die - one die
 * @state: what it does
 * @queue: operations that only this die can do
 * @op: operation of the state (the read, while a program is suspended)
 * @array: program or erase that is under way or suspended, or NULL
 * @array_left: what it still needs, while suspended
 * @suspended: suspensions of @array so far
 * @held: when the first of them began
 * @prog: the operation of a program
 * @unit: what is programmed
 * @source: who asked for it
 * @forced: see struct mflash_queue
 */
struct mflash_die {
	enum mflash_die_state state;
	struct mflash_queue queue;
	struct mflash_op *op, *array;
	u64 array_left, held;
	u32 suspended;
	struct mflash_op prog;
	struct mflash_unit unit;
	const struct mflash_source *source;
	u64 forced;
};

/**
 * struct mflash_channel - transfers between the controller and dies
 * @queue: operations that wait
 * @op: the one that transfers
 */
struct mflash_channel {
	struct mflash_queue queue;
	struct mflash_op *op;
};

/* ---- ftl.c ------------------------------------------------------------ */

/**
 * enum mflash_stream - who fills a block
 * @MFLASH_BUFFER: host data into the SLC buffer
 * @MFLASH_DIRECT: host data, normal mode
 * @MFLASH_COPY: garbage collection and migration, normal mode
 * @MFLASH_NR_STREAMS: number of streams
 */
enum mflash_stream { MFLASH_BUFFER, MFLASH_DIRECT, MFLASH_COPY, MFLASH_NR_STREAMS };

/**
 * struct mflash_block - what recovery finds out about a block
 * @link: in mflash_ftl.free or .closed
 * @valid: slots that the map points to
 * @unfinished: programs, or parts of an erase, that are under way
 * @bucket: list that it is in
 * @listed: it is in mflash_ftl.closed
 */
struct mflash_block {
	struct list_head link;
	u32 valid, unfinished, bucket;
	bool listed;
};

/**
 * struct mflash_ftl - the mapping and the blocks
 * @read_slots: slots that one array read gives (all planes)
 * @block_slots: slots of a block, normal mode; also the stride of block numbers
 * @pages: logical pages
 * @nr_blocks: all blocks; the first @slc_blocks are the SLC buffer
 * @slc_blocks: blocks of the SLC buffer
 * @map: physical page + 1 of each logical page; 0: unmapped
 * @blocks: one a block
 * @free: erased blocks, [0] normal, [1] SLC
 * @nr_free: entries in it
 * @closed: full blocks by valid pages, [0] normal, [1] SLC
 * @closed_used: bit i: closed[][i] is not empty
 * @open: block that a stream fills, or MFLASH_NONE
 * @use_buffer: host data goes to the SLC buffer while it has room
 */
struct mflash_ftl {
	u32 read_slots, block_slots, pages, nr_blocks, slc_blocks;
	u32 *map;
	struct mflash_block *blocks;
	struct list_head free[2];
	u32 nr_free[2];
	struct list_head closed[2][MFLASH_BUCKETS];
	u64 closed_used[2];
	u32 open[MFLASH_NR_STREAMS];
	bool use_buffer;
};

/**
 * struct mflash_gc - the copy job that is under way
 * @victim: block being emptied, or MFLASH_NONE
 * @scan: next slot of it to look at
 * @urgent: free blocks are short: it competes with the host
 * @reading: pages being read
 * @buffered: pages read and not yet being programmed
 * @programming: pages being programmed
 * @erasing: blocks being erased
 * @free: entries
 * @nr_free: entries in @free
 * @dirty: entries read
 */
struct mflash_gc {
	u32 victim, scan;
	bool urgent;
	u32 reading, buffered, programming, erasing;
	struct list_head free;
	u32 nr_free;
	struct list_head dirty;
};

/**
 * struct mflash_map_page - one map page in the controller's cache
 * @link: in mflash_map_cache.lru while cached
 * @cached: it is there
 * @dirty: it must be programmed before it is dropped
 */
struct mflash_map_page {
	struct list_head link;
	bool cached, dirty;
};

/**
 * struct mflash_map_cache - bounded cache of map pages (timing only: the content is
 *	mflash_ftl.map, and recovery scans the OOB)
 * @lru: cached pages, least recently used first
 * @pages: one a map page
 * @nr: cached pages
 * @max: most that fit
 * @writes: operations for the write side queued or under way
 * @next_die: die of the next map program
 */
struct mflash_map_cache {
	struct list_head lru;
	struct mflash_map_page *pages;
	u32 nr, max, writes, next_die;
};

/* ---- model.c ---------------------------------------------------------- */

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
#define MFLASH_EV_CHANNEL(i)	(4 + (i))
#define MFLASH_EV_DIE(i)	(4 + MFLASH_CHANNELS_MAX + (i))
#define MFLASH_NR_EVENTS	(4 + MFLASH_CHANNELS_MAX + MFLASH_DIES_MAX)

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
 * @idle: nothing was asked for a while
 * @idle_ns: how long that is
 * @ops: free operations
 * @cache: the volatile cache
 * @ftl: mapping and blocks
 * @gc: copy job
 * @map: cache of map pages
 * @in_flight: commands in the device
 * @fg_in_flight: those of the foreground
 * @fg_last: end of the last of them
 * @fg_seen: there has been one
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
	bool kick_gc;
	bool idle;
	u64 idle_ns;
	struct list_head ops;
	struct mflash_cache cache;
	struct mflash_ftl ftl;
	struct mflash_gc gc;
	struct mflash_map_cache map;
	u32 in_flight, fg_in_flight;
	u64 fg_last;
	bool fg_seen;
	struct mflash_cmd *active[MFLASH_TAGS_MAX];
	struct list_head done;
	struct mflash_desc *desc;
	bool dead;
	u32 cut_after, cut_persist;
	u64 seed;
	u64 stats[MFLASH_NR_STATS];
};

#define mflash_count(m, name, n) ((m)->stats[MFLASH_STAT_##name] += (n))

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

/* power.c */
u64 mflash_random(struct mflash_model *m);
void mflash_power_cut(struct mflash_model *m);

/* op.c */
int mflash_ops_init(struct mflash_model *m, u32 nr);
struct mflash_op *mflash_op_get(struct mflash_model *m, enum mflash_op_type type, u8 class,
				mflash_op_end *end);
void mflash_op_put(struct mflash_model *m, struct mflash_op *op);
void mflash_cmd_done(struct mflash_model *m, struct mflash_cmd *cmd);

/* nand.c */
void mflash_nand_init(struct mflash_model *m);
void mflash_nand_source(struct mflash_model *m, const struct mflash_source *source);
void mflash_nand_hurry(struct mflash_model *m, const struct mflash_source *source);
void mflash_die_add(struct mflash_model *m, struct mflash_op *op);
void mflash_die_kick(struct mflash_model *m, u32 die);
void mflash_kick_all_dies(struct mflash_model *m);
void mflash_die_event(struct mflash_model *m, u32 die);
void mflash_channel_kick(struct mflash_model *m, u32 channel);
void mflash_channel_event(struct mflash_model *m, u32 channel);

static inline u64 mflash_transfer_ns(u32 pages, u32 mbps)
{
	return div_u64((u64)pages * MFLASH_PAGE_SIZE * 1000, mbps);
}

/* cache.c */
u32 mflash_cache_pages(const struct mflash_model *m);
int mflash_cache_init(struct mflash_model *m);
u32 mflash_cache_room(const struct mflash_model *m, u8 class);
struct mflash_entry *mflash_cache_find(struct mflash_model *m, u32 lpn);
void mflash_cache_write(struct mflash_model *m, struct mflash_cmd *cmd, u32 pages);
void mflash_cache_flush(struct mflash_model *m, struct mflash_cmd *cmd);
void mflash_cache_trim(struct mflash_model *m, u32 lpn, u32 pages);
bool mflash_cache_is_due(struct mflash_model *m);

/* ftl.c */
int mflash_ftl_layout(struct mflash_model *m, u32 size_mib);
int mflash_ftl_init(struct mflash_model *m);
void mflash_ftl_recover(struct mflash_model *m);
u32 mflash_unit_slots(const struct mflash_model *m, bool slc);
u32 mflash_block_slots(struct mflash_model *m, u32 block);
bool mflash_block_slc(const struct mflash_model *m, u32 block);
u32 mflash_ftl_die(struct mflash_model *m, u32 ppn);
u32 mflash_ftl_unit(struct mflash_model *m, enum mflash_stream s);
enum mflash_stream mflash_ftl_host_stream(struct mflash_model *m);
bool mflash_ftl_room(struct mflash_model *m, enum mflash_stream s, u32 die);
u32 mflash_ftl_alloc(struct mflash_model *m, enum mflash_stream s, u32 die);
void mflash_ftl_commit(struct mflash_model *m, struct mflash_entry *e, u32 ppn);
void mflash_ftl_program_end(struct mflash_model *m, u32 ppn);
void mflash_ftl_trim_record(struct mflash_model *m, u32 lpn);
void mflash_ftl_trim(struct mflash_model *m, u32 lpn, u32 pages);
u32 mflash_ftl_victim(struct mflash_model *m, bool slc);
void mflash_ftl_take_victim(struct mflash_model *m, u32 block);
void mflash_ftl_erase_begin(struct mflash_model *m, u32 block);
void mflash_ftl_erased(struct mflash_model *m, u32 block);
bool mflash_ftl_is_valid(struct mflash_model *m, u32 ppn);

/* mapcache.c */
int mflash_map_init(struct mflash_model *m);
void mflash_map_read(struct mflash_model *m, struct mflash_cmd *cmd, mflash_op_end *end);
void mflash_map_dirty(struct mflash_model *m, u32 lpn, u8 class);
bool mflash_map_full(const struct mflash_model *m);

/* gc.c */
int mflash_gc_init(struct mflash_model *m);
void mflash_gc_kick(struct mflash_model *m);

#endif /* _MFLASH_H */
