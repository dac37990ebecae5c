/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sums by app, file and call, for `top`: they are made here and read once a picture, and no record is sent.
 *
 * Whose each dirty page is, is kept as src/join/pages.rs keeps it for records, and src/join/segments.rs says what blocks
 * hold. src/bpf/sums.rs reads the sums.
 */
#ifndef FASTTRACK_BPF_SUMS_H
#define FASTTRACK_BPF_SUMS_H

#include "kernel.h"

#define PAGE_SECTOR_SHIFT 3
#define SECTOR_SHIFT 9

/* Set before loading: sums are made, and not records. */
const volatile __u64 summing = 0;

/* Types of blocks, as contract/trace.toml numbers them. */
enum {
	OF_UNKNOWN,
	OF_DATA,
	OF_JOURNAL,
	OF_METADATA,
	OF_NODE,
	OF_CHECKPOINT,
};

/* What a sum is of: blocks of a type that are written or read, syncs, or requests. */
enum {
	SUM_READ = 0x100,
	SUM_FSYNC = 0x200,
	SUM_FDATASYNC = 0x201,
	SUM_REQUEST = 0x300,
};

struct who {
	__u32 pid;
	__u32 tgid;
	__u32 uid;
	__u32 kernel_thread;
	char comm[16];
};

struct sum_key {
	struct who who;
	__u64 inode;
	__u32 dev;
	__u32 generation;
	__u32 what;
	/* Sums of a turn are read in the next one. */
	__u32 turn;
};

struct sum {
	__u64 count;
	__u64 bytes;
	__u64 ns;
	__u64 longest;
};

/* A page of a file; those of a device have no inode. */
struct page_key {
	__u64 inode;
	__u64 index;
	__u64 dev;
};

struct sync_begun {
	__u64 time;
	__u64 datasync;
};

/* A bio whose pages are summed up. */
struct summed {
	struct sum_key key;
	struct who sender;
	/* Place of the next page on its device. */
	__u64 sector;
	/* Bytes of key, and where in the file they end. */
	__u64 bytes;
	__u64 next;
	__u32 dev;
	__u32 write;
	__u32 meta;
	__u32 pad;
};

struct {
	NUMBER(type, HASH);
	NUMBER(max_entries, 1);
	TYPE(key, struct sum_key);
	TYPE(value, struct sum);
} sums SEC(".maps");

/* Who has dirtied a page. The oldest go where there are too many: they are nobody's then. */
struct {
	NUMBER(type, LRU_HASH);
	NUMBER(max_entries, 1);
	TYPE(key, struct page_key);
	TYPE(value, struct who);
} pages SEC(".maps");

/* When requests went to their device. */
struct {
	NUMBER(type, LRU_HASH);
	NUMBER(max_entries, 1);
	TYPE(key, __u64);
	TYPE(value, __u64);
} issued SEC(".maps");

/* By thread. */
struct {
	NUMBER(type, LRU_HASH);
	NUMBER(max_entries, 1);
	TYPE(key, __u64);
	TYPE(value, struct sync_begun);
} syncing SEC(".maps");

struct {
	NUMBER(type, ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, __u32);
	TYPE(value, __u32);
} turn SEC(".maps");

struct {
	NUMBER(type, PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, __u32);
	TYPE(value, struct summed);
} bio_summed SEC(".maps");

INLINE void current_is(struct who *who)
{
	__u64 id = bpf_get_current_pid_tgid();

	who->pid = id;
	who->tgid = id >> 32;
	who->uid = bpf_get_current_uid_gid();
	who->kernel_thread = (bpf_get_current_task_btf()->flags & PF_KTHREAD) != 0;
	bpf_get_current_comm(who->comm, sizeof(who->comm));
}

INLINE int same_who(const struct who *one, const struct who *other)
{
	const __u64 *left = (const void *)one, *right = (const void *)other;

	return left[0] == right[0] && left[1] == right[1] && left[2] == right[2] && left[3] == right[3];
}

INLINE void add(struct sum_key *key, __u64 bytes, __u64 ns)
{
	__u32 only = 0, *now = bpf_map_lookup_elem(&turn, &only);
	struct sum *sum;

	key->turn = now ? *now : 0;
	sum = bpf_map_lookup_elem(&sums, key);
	if (!sum) {
		struct sum none = {};

		bpf_map_update_elem(&sums, key, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&sums, key);
	}
	if (!sum) {
		count_lost(bpf_ktime_get_boot_ns());
		return;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->bytes, bytes);
	__sync_fetch_and_add(&sum->ns, ns);
	if (ns > sum->longest)
		sum->longest = ns;
}

/* Pages that somebody dirties or writes to. */
struct range {
	struct page_key page;
	struct who who;
};

static long dirty_page(__u32 number, struct range *range)
{
	struct page_key page = range->page;

	page.index += number;
	bpf_map_update_elem(&pages, &page, &range->who, 0);
	return 0;
}

static long write_page(__u32 number, struct range *range)
{
	struct page_key page = range->page;
	struct who *before;

	page.index += number;
	before = bpf_map_lookup_elem(&pages, &page);
	if (before && before->pid != range->who.pid)
		bpf_map_update_elem(&pages, &page, &range->who, 0);
	return 0;
}

/* 0 where nobody is known for such pages. */
INLINE int range_of(struct range *range, struct inode *inode, __u64 index)
{
	__u64 number;
	__u32 dev, kind;

	name(inode, &number, &dev, &kind);
	if (kind != FILE_DATA && kind != DEVICE)
		return 0;
	range->page.inode = kind == DEVICE ? 0 : number;
	range->page.index = index;
	range->page.dev = dev;
	current_is(&range->who);
	return 1;
}

INLINE void sum_dirty(struct inode *inode, __u64 index, __u64 count)
{
	struct range range = {};

	if (!range_of(&range, inode, index))
		return;
	if (count == 1)
		dirty_page(0, &range);
	else
		bpf_loop(count, dirty_page, &range, 0);
}

INLINE void sum_written(struct inode *inode, __u64 index, __u64 count)
{
	struct range range = {};

	if (range_of(&range, inode, index))
		bpf_loop(count, write_page, &range, 0);
}

/* A page that another app has dirtied, and this one maps, is nobody's. */
INLINE void sum_fault(struct inode *inode, __u64 index)
{
	struct range range = {};
	struct who *before;

	if (!range_of(&range, inode, index))
		return;
	before = bpf_map_lookup_elem(&pages, &range.page);
	if (before && (before->tgid != range.who.tgid || before->uid != range.who.uid))
		bpf_map_delete_elem(&pages, &range.page);
}

INLINE struct summed *sum_begin(struct bio *bio, unsigned int opf)
{
	__u32 only = 0;
	struct summed *state = bpf_map_lookup_elem(&bio_summed, &only);

	if (!state)
		return 0;
	current_is(&state->sender);
	state->dev = bio->bi_bdev->bd_dev;
	state->sector = bio->bi_iter.bi_sector - bio->bi_bdev->bd_start_sect;
	state->write = (opf & REQ_OP_MASK) == OP_WRITE;
	state->meta = flag(opf, ENUM_VALUE(enum req_flag_bits, __REQ_META), META) != 0;
	state->bytes = 0;
	return state;
}

INLINE void sum_end(struct summed *state)
{
	if (state && state->bytes)
		add(&state->key, state->bytes, 0);
}

/* What blocks hold of which no file is known. */
INLINE __u32 other_type(const struct summed *state, int owned)
{
	const char *comm = state->sender.comm;

	if (state->write && owned)
		return OF_METADATA;
	if (state->write && comm[0] == 'j' && comm[1] == 'b' && comm[2] == 'd' && comm[3] == '2' && comm[4] == '/')
		return OF_JOURNAL;
	return state->meta ? OF_METADATA : OF_UNKNOWN;
}

/* Adds bytes of the bio that are at a place of a file, if it is of one. */
INLINE void sum_page(struct walk *walk, __u64 place, __u32 bytes)
{
	struct summed *state = walk->summed;
	struct page_key page = {};
	struct who who = {}, *before = 0;
	int data = walk->kind == FILE_DATA || walk->kind == DIRECT;
	__u64 inode = data ? walk->inode : 0, generation = data ? walk->generation : 0;
	__u32 dev = data ? walk->dev : 0, type = OF_DATA, what;

	if (!state)
		return;
	page.dev = data ? dev : state->dev;
	page.inode = inode;
	page.index = data ? place >> PAGE_SHIFT : state->sector >> PAGE_SECTOR_SHIFT;
	if (state->write && walk->kind != DIRECT) {
		if (walk->kind != NODE && walk->kind != CHECKPOINT)
			before = bpf_map_lookup_elem(&pages, &page);
		if (before) {
			who = *before;
			bpf_map_delete_elem(&pages, &page);
		}
	} else if (!state->sender.kernel_thread) {
		who = state->sender;
	}
	if (walk->kind == NODE)
		type = OF_NODE;
	else if (walk->kind == CHECKPOINT)
		type = OF_CHECKPOINT;
	else if (!data)
		type = other_type(state, before != 0);
	what = type | (state->write ? 0 : SUM_READ);
	if (state->bytes && state->key.what == what && state->key.inode == inode && state->key.dev == dev &&
	    (!data || state->next == place) && same_who(&state->key.who, &who)) {
		state->bytes += bytes;
	} else {
		sum_end(state);
		state->key.who = who;
		state->key.inode = inode;
		state->key.dev = dev;
		state->key.generation = generation;
		state->key.what = what;
		state->bytes = bytes;
	}
	state->next = place + bytes;
	state->sector += bytes >> SECTOR_SHIFT;
}

INLINE void sync_begins(__u64 datasync)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct sync_begun begun = { .time = bpf_ktime_get_boot_ns(), .datasync = datasync };

	bpf_map_update_elem(&syncing, &id, &begun, 0);
}

INLINE void sync_ends(struct inode *inode, __u32 datasync)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct sync_begun *begun = bpf_map_lookup_elem(&syncing, &id);
	struct sum_key key = {};
	__u32 kind;
	__u64 took;

	if (!begun)
		return;
	took = bpf_ktime_get_boot_ns() - begun->time;
	key.what = datasync || begun->datasync ? SUM_FDATASYNC : SUM_FSYNC;
	bpf_map_delete_elem(&syncing, &id);
	name(inode, &key.inode, &key.dev, &kind);
	key.generation = READ(inode, i_generation);
	current_is(&key.who);
	add(&key, 0, took);
}

SEC("raw_tp/ext4_sync_file_enter")
int ext4_sync_begins(__u64 *arguments)
{
	sync_begins((__u32)arguments[1] != 0);
	return 0;
}

SEC("raw_tp/f2fs_sync_file_enter")
int f2fs_sync_begins(void)
{
	sync_begins(0);
	return 0;
}

SEC("raw_tp/ext4_sync_file_exit")
int ext4_sync_ends(__u64 *arguments)
{
	sync_ends((void *)arguments[0], 0);
	return 0;
}

SEC("raw_tp/f2fs_sync_file_exit")
int f2fs_sync_ends(__u64 *arguments)
{
	sync_ends((void *)arguments[0], (__u32)arguments[2] != 0);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int rq_issue(__u64 *arguments)
{
	__u64 request = arguments[0], now = bpf_ktime_get_boot_ns();

	bpf_map_update_elem(&issued, &request, &now, 0);
	return 0;
}

/* A part of it, mostly all, is done. One with a flush around it ends a second time, without bytes. */
SEC("tp_btf/block_rq_complete")
int rq_complete(__u64 *arguments)
{
	struct request *request = (void *)arguments[0];
	__u64 at = arguments[0], *begun = bpf_map_lookup_elem(&issued, &at);
	__u32 bytes = arguments[2];
	struct sum_key key = { .what = SUM_REQUEST };

	if (!bytes && (request->cmd_flags & REQ_OP_MASK) <= OP_WRITE)
		return 0;
	add(&key, bytes, begun ? bpf_ktime_get_boot_ns() - *begun : 0);
	return 0;
}

#endif
