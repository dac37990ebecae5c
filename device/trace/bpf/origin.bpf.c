// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who dirties which page, and which pages of which files are in each bio, on a kernel that is not patched.
 *
 * Tracepoints alone; src/bpf/mod.rs has which. Nothing is judged here: src/bpf/ reads what is sent, and joins it to the
 * kernel's other events. What finds no room in the ring is counted by processor.
 */
#include "kernel.h"

#define PAGE_SHIFT 12
#define PAGE_BYTES (1 << PAGE_SHIFT)

/* Of linux/magic.h, and f2fs's inodes of its own areas. */
#define BDEVFS_MAGIC 0x62646576
#define F2FS_MAGIC 0xf2f52010
#define F2FS_NODE_INODE 1
#define F2FS_META_INODE 2

#define REQ_OP_MASK 0xff
#define OP_READ 0
#define OP_WRITE 1

/* Numbers of records, beyond those that ftrace gives to its events: src/bpf/layout.rs has them, too. */
enum {
	DIRTY = 0xff01,
	FAULT,
	RUNS,
	BIO,
	/* A run, as an event of its own, is the reader's. */
	WRITTEN = 0xff06,
	TASK,
};

/* Whose the pages of a run are. */
enum kind {
	NOBODY,
	FILE_DATA,
	DEVICE,
	NODE,
	CHECKPOINT,
	DIRECT,
};

enum {
	SYNC = 1,
	FUA = 2,
	PREFLUSH = 4,
	META = 8,
	READ_AHEAD = 16,
};

struct head {
	__u16 type;
	__u16 runs;
	__u32 cpu;
	__u64 time;
	__u32 pid;
	__u32 tgid;
	__u32 uid;
	__u32 kernel_thread;
	__u64 cgroup;
	char comm[16];
};

struct page_record {
	struct head head;
	__u64 inode;
	__u64 index;
	__u32 dev;
	__u32 kind;
	__u64 pages;
};

struct run {
	__u64 inode;
	__u64 index;
	__u32 dev;
	__u32 bytes;
	__u32 kind;
	__u32 generation;
};

/* More runs than that go in several records; a bio of 256 pages of f2fs can be of as many files. */
#define RUNS_MAX 256

struct bio_record {
	struct head head;
	__u64 sector;
	__u32 dev;
	__u32 bytes;
	__u32 operation;
	__u32 flags;
	struct run run[RUNS_MAX];
};

struct lost {
	__u64 count;
	__u64 until;
};

struct {
	NUMBER(type, RINGBUF);
	NUMBER(max_entries, 1 << 20);
} ring SEC(".maps");

struct {
	NUMBER(type, PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, __u32);
	TYPE(value, struct lost);
} lost SEC(".maps");

struct {
	NUMBER(type, PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, __u32);
	TYPE(value, struct bio_record);
} scratch SEC(".maps");

/* Inode -> the one process and user that has dirtied its pages, or several. An inode that is not there is anybody's. */
#define SEVERAL 0

struct {
	NUMBER(type, LRU_HASH);
	NUMBER(max_entries, 4096);
	TYPE(key, __u64);
	TYPE(value, __u64);
} dirtiers SEC(".maps");

/* Set before loading: the reader is woken when there are so many bytes; who ends a bio of direct I/O, 0 if unknown. */
const volatile __u64 wake_bytes = 1 << 18;
const volatile __u64 direct_ended = 0;

INLINE void count_lost(__u64 time)
{
	__u32 only = 0;
	struct lost *mine = bpf_map_lookup_elem(&lost, &only);

	if (mine) {
		__sync_fetch_and_add(&mine->count, 1);
		mine->until = time;
	}
}

INLINE void send(struct head *head, __u64 size)
{
	__u64 flags = bpf_ringbuf_query(&ring, RB_AVAILABLE) >= wake_bytes ? RB_FORCE_WAKEUP : RB_NO_WAKEUP;

	if (bpf_ringbuf_output(&ring, head, size, flags))
		count_lost(head->time);
}

INLINE void begin(struct head *head, __u16 type)
{
	__u64 id = bpf_get_current_pid_tgid();

	head->type = type;
	head->runs = 0;
	head->cpu = bpf_get_smp_processor_id();
	head->time = bpf_ktime_get_boot_ns();
	head->pid = id;
	head->tgid = id >> 32;
	head->uid = bpf_get_current_uid_gid();
	head->kernel_thread = (bpf_get_current_task_btf()->flags & PF_KTHREAD) != 0;
	head->cgroup = bpf_get_current_cgroup_id();
	bpf_get_current_comm(head->comm, sizeof(head->comm));
}

/* The inode that a run's pages belong to. */
INLINE void name(struct inode *inode, __u64 *number, __u32 *dev, __u32 *kind)
{
	struct super_block *sb = READ(inode, i_sb);
	unsigned long magic = READ(sb, s_magic);

	*number = READ(inode, i_ino);
	*dev = READ(sb, s_dev);
	*kind = FILE_DATA;
	if (magic == BDEVFS_MAGIC) {
		*dev = READ(inode, i_rdev);
		*kind = DEVICE;
	} else if (magic == F2FS_MAGIC && *number == F2FS_NODE_INODE) {
		*kind = NODE;
	} else if (magic == F2FS_MAGIC && *number == F2FS_META_INODE) {
		*kind = CHECKPOINT;
	}
}

/* Where a walk through the pages of a bio is. */
struct walk {
	struct bio_record *record;
	struct summed *summed;
	__u64 vectors;
	__u64 page;
	__u64 mapping;
	__u64 inode;
	__u64 next;
	__u32 dev;
	__u32 kind;
	__u32 generation;
	__u32 at;
	__u32 done;
	__u32 left;
	__u32 runs;
	__u32 length;
	__u32 offset;
};

INLINE __u32 flag(unsigned int opf, __u64 bit, __u32 shown)
{
	return opf & 1U << bit ? shown : 0;
}

#include "sums.h"

INLINE void pages_of(__u16 type, struct inode *inode, __u64 index, __u64 pages)
{
	struct page_record record = {};

	begin(&record.head, type);
	record.index = index;
	record.pages = pages;
	name(inode, &record.inode, &record.dev, &record.kind);
	send(&record.head, sizeof(record));
}

INLINE __u64 app(void)
{
	return (bpf_get_current_pid_tgid() & ~0xffffffffULL) | (__u32)bpf_get_current_uid_gid();
}

/* A folio is dirtied as a whole. It has several pages if the next one says that it is not the first of its own. */
INLINE __u64 pages_in(struct folio *folio)
{
	struct page *second = (void *)folio + TYPE_SIZE(struct page);
	__u32 pages = 1;

	if (!FIELD_EXISTS(struct page, compound_head) || !(READ(second, compound_head) & 1))
		return 1;
	if (FIELD_EXISTS(struct folio, _nr_pages))
		pages = READ(folio, _nr_pages);
	else if (FIELD_EXISTS(struct folio, _folio_nr_pages))
		pages = READ(folio, _folio_nr_pages);
	else if (FIELD_EXISTS(struct page, compound_nr))
		pages = READ(second, compound_nr);
	return pages ? pages : 1;
}

SEC("tp_btf/writeback_dirty_folio")
int dirty(__u64 *arguments)
{
	struct folio *folio = (void *)arguments[0];
	struct address_space *mapping = (void *)arguments[1];
	__u64 inode, mine = app(), several = SEVERAL, *before;

	if (!mapping)
		return 0;
	inode = (__u64)mapping->host;
	if (!inode)
		return 0;
	before = bpf_map_lookup_elem(&dirtiers, &inode);
	if (!before)
		bpf_map_update_elem(&dirtiers, &inode, &mine, 0);
	else if (*before != mine && *before != SEVERAL)
		bpf_map_update_elem(&dirtiers, &inode, &several, 0);
	if (summing)
		sum_dirty((void *)inode, folio->index, pages_in(folio));
	else
		pages_of(DIRTY, (void *)inode, folio->index, pages_in(folio));
	return 0;
}

/*
 * The file system begins to write to pages of an inode: those that are dirty are not dirtied again. Of those that one app
 * alone has dirtied it knows already.
 */
SEC("raw_tp/write_begin")
int written(__u64 *arguments)
{
	__u64 inode = arguments[0], at = arguments[1], end = at + (__u32)arguments[2];
	__u64 *before = bpf_map_lookup_elem(&dirtiers, &inode);

	if (before && *before == app())
		return 0;
	at >>= PAGE_SHIFT;
	end = (end + PAGE_BYTES - 1) >> PAGE_SHIFT;
	if (summing)
		sum_written((void *)inode, at, end - at);
	else
		pages_of(WRITTEN, (void *)inode, at, end - at);
	return 0;
}

/* Who syncs, or takes part in a transaction, of which other events have the thread alone. */
SEC("raw_tp/task")
int task(void)
{
	struct head head = {};

	begin(&head, TASK);
	send(&head, sizeof(head));
	return 0;
}

/* A page that somebody maps to write to it can be dirty already: then nothing else says that it is written over. */
SEC("tp_btf/mm_filemap_fault")
int fault(__u64 *arguments)
{
	struct address_space *mapping = (void *)arguments[0];

	if (mapping->i_mmap_writable.counter <= 0 || !mapping->host)
		return 0;
	if (summing)
		sum_fault(mapping->host, arguments[1]);
	else
		pages_of(FAULT, mapping->host, arguments[1], 1);
	return 0;
}

INLINE void belongs(struct walk *walk, struct inode *inode)
{
	name(inode, &walk->inode, &walk->dev, &walk->kind);
	walk->generation = READ(inode, i_generation);
}

/* The mapping is an inode's own: what is in the place of a mapping in pages of other uses is not. */
INLINE void owner(struct walk *walk, __u64 mapping)
{
	struct inode *inode;

	walk->mapping = mapping;
	walk->kind = NOBODY;
	walk->inode = 0;
	walk->dev = 0;
	/* The lower bits say that it is no file's. */
	if (!mapping || mapping & 3)
		return;
	inode = READ((struct address_space *)mapping, host);
	if (inode && (__u64)inode + FIELD_OFFSET(struct inode, i_data) == mapping)
		belongs(walk, inode);
}

/* Adds bytes at a place of a file to the last run, or begins one. */
INLINE void extend(struct walk *walk, __u64 place, __u32 bytes)
{
	struct bio_record *record = walk->record;
	__u32 last = walk->runs - 1;

	if (summing) {
		sum_page(walk, place, bytes);
		return;
	}
	if (walk->runs && last < RUNS_MAX) {
		struct run *run = &record->run[last];
		int follows = walk->next == place || (run->kind != FILE_DATA && run->kind != DIRECT);

		if (run->inode == walk->inode && run->dev == walk->dev && run->kind == walk->kind && follows) {
			run->bytes += bytes;
			walk->next = place + bytes;
			return;
		}
	}
	if (walk->runs >= RUNS_MAX) {
		record->head.type = RUNS;
		record->head.runs = RUNS_MAX;
		send(&record->head, sizeof(*record));
		walk->runs = 0;
	}
	last = walk->runs;
	if (last < RUNS_MAX) {
		struct run *run = &record->run[last];

		run->inode = walk->inode;
		run->index = place >> PAGE_SHIFT;
		run->dev = walk->dev;
		run->bytes = bytes;
		run->kind = walk->kind;
		run->generation = walk->generation;
		walk->runs = last + 1;
	}
	walk->next = place + bytes;
}

/* One page of the bio; 1 ends the walk. */
static long step(__u32 number __attribute__((unused)), struct walk *walk)
{
	struct page *page, *head;
	struct folio *folio;
	__u64 mapping, index = 0;
	__u32 offset, bytes;

	if (!walk->length) {
		struct bio_vec *vector = (void *)(walk->vectors + (__u64)walk->at * sizeof(struct bio_vec));

		walk->page = (__u64)READ(vector, bv_page);
		walk->length = READ(vector, bv_len) - walk->done;
		walk->offset = READ(vector, bv_offset) + walk->done;
		walk->done = 0;
		walk->at++;
		if (!walk->page || !walk->length)
			return 1;
	}
	offset = walk->offset % PAGE_BYTES;
	bytes = PAGE_BYTES - offset;
	if (bytes > walk->length)
		bytes = walk->length;
	if (bytes > walk->left)
		bytes = walk->left;
	/* A vector's pages are one after the other in the kernel's array of pages. */
	page = (void *)(walk->page + (__u64)(walk->offset >> PAGE_SHIFT) * TYPE_SIZE(struct page));
	head = page;
	if (FIELD_EXISTS(struct page, compound_head)) {
		__u64 compound = READ(page, compound_head);

		if (compound & 1)
			head = (void *)(compound - 1);
	}
	folio = (void *)head;
	mapping = (__u64)READ(folio, mapping);
	if (mapping != walk->mapping)
		owner(walk, mapping);
	if (walk->kind == FILE_DATA)
		index = READ(folio, index) + ((__u64)page - (__u64)head) / TYPE_SIZE(struct page);
	extend(walk, (index << PAGE_SHIFT) + offset, bytes);
	walk->offset += bytes;
	walk->length -= bytes;
	walk->left -= bytes;
	return !walk->left;
}

/* A direct bio has an app's pages; who ends it knows the file. Its place is that behind what was sent of the call. */
INLINE int direct(struct walk *walk, struct bio *bio)
{
	struct iomap_dio *dio;
	struct kiocb *call;
	struct file *file;
	struct inode *inode;
	__u32 bytes = walk->left;

	if (!direct_ended || (__u64)bio->bi_end_io != direct_ended)
		return 0;
	dio = bio->bi_private;
	call = READ(dio, iocb);
	file = READ(call, ki_filp);
	inode = READ(file, f_inode);
	if (!inode)
		return 0;
	belongs(walk, inode);
	if (walk->kind != FILE_DATA)
		return 0;
	walk->kind = DIRECT;
	extend(walk, READ(call, ki_pos) + READ(dio, size) - bytes, bytes);
	return 1;
}

SEC("tp_btf/block_bio_queue")
int bio_queue(__u64 *arguments)
{
	struct bio *bio = (void *)arguments[0];
	__u32 only = 0, opf = bio->bi_opf;
	struct bio_record *record = bpf_map_lookup_elem(&scratch, &only);
	struct walk walk = {};

	if (!record)
		return 0;
	if (summing)
		walk.summed = sum_begin(bio, opf);
	begin(&record->head, BIO);
	record->sector = bio->bi_iter.bi_sector;
	record->dev = bio->bi_bdev->bd_dev;
	record->bytes = bio->bi_iter.bi_size;
	record->operation = opf & REQ_OP_MASK;
	record->flags = flag(opf, ENUM_VALUE(enum req_flag_bits, __REQ_SYNC), SYNC) |
			flag(opf, ENUM_VALUE(enum req_flag_bits, __REQ_FUA), FUA) |
			flag(opf, ENUM_VALUE(enum req_flag_bits, __REQ_PREFLUSH), PREFLUSH) |
			flag(opf, ENUM_VALUE(enum req_flag_bits, __REQ_META), META) |
			flag(opf, ENUM_VALUE(enum req_flag_bits, __REQ_RAHEAD), READ_AHEAD);
	if (record->bytes && record->operation <= OP_WRITE) {
		walk.record = record;
		walk.vectors = (__u64)bio->bi_io_vec;
		walk.at = bio->bi_iter.bi_idx;
		walk.done = bio->bi_iter.bi_bvec_done;
		walk.left = record->bytes;
		/* No mapping is that. */
		walk.mapping = 1;
		if (!direct(&walk, bio))
			bpf_loop(1 << 20, step, &walk, 0);
	}
	if (summing) {
		sum_end(walk.summed);
		return 0;
	}
	record->head.type = BIO;
	record->head.runs = walk.runs;
	if (walk.runs <= RUNS_MAX)
		send(&record->head, sizeof(*record) - (RUNS_MAX - walk.runs) * sizeof(struct run));
	return 0;
}

char license_text[] SEC("license") = "GPL";
