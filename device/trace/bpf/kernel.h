/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs read of the kernel: fields by name, which the loader finds in the BTF of the kernel that runs. What
 * is not read is not here.
 */
#ifndef FASTTRACK_BPF_KERNEL_H
#define FASTTRACK_BPF_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef long long __s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static __attribute__((always_inline)) inline
#define RELOCATED __attribute__((preserve_access_index))

/* Maps are described by the types of a struct's members. */
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) typeof(type) *name

enum map_type {
	HASH = 1,
	ARRAY = 2,
	PERCPU_ARRAY = 6,
	LRU_HASH = 9,
	RINGBUF = 27,
};

/* Helpers by their numbers in linux/bpf.h. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static __u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static __u64 (*const bpf_get_current_uid_gid)(void) = (void *)15;
static long (*const bpf_get_current_comm)(void *to, __u32 size) = (void *)16;
static __u64 (*const bpf_get_current_cgroup_id)(void) = (void *)80;
static long (*const bpf_probe_read_kernel)(void *to, __u32 size, const void *from) = (void *)113;
static __u64 (*const bpf_ktime_get_boot_ns)(void) = (void *)125;
static long (*const bpf_ringbuf_output)(void *ring, void *data, __u64 size, __u64 flags) = (void *)130;
static __u64 (*const bpf_ringbuf_query)(void *ring, __u64 flags) = (void *)134;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static long (*const bpf_loop)(__u32 times, void *step, void *context, __u64 flags) = (void *)181;

#define BPF_NOEXIST 1
#define RB_NO_WAKEUP 1
#define RB_FORCE_WAKEUP 2
#define RB_AVAILABLE 0

/* A field behind an address that the verifier knows nothing of; 0 where there is no memory. */
#define READ(pointer, field)                                                                          \
	({                                                                                            \
		typeof((pointer)->field) value;                                                       \
		bpf_probe_read_kernel(&value, sizeof(value),                                          \
				      __builtin_preserve_access_index(&(pointer)->field));            \
		value;                                                                                \
	})
#define FIELD_EXISTS(type, field) __builtin_preserve_field_info(((type *)0)->field, 2)
#define FIELD_OFFSET(type, field) __builtin_preserve_field_info(((type *)0)->field, 0)
#define TYPE_SIZE(type) __builtin_preserve_type_info(*(type *)0, 1)
#define ENUM_VALUE(type, name) __builtin_preserve_enum_value(*(typeof(type) *)name, 1)

#define PF_KTHREAD 0x00200000

struct task_struct {
	unsigned int flags;
} RELOCATED;

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
} RELOCATED;

struct address_space {
	struct inode *host;
	struct {
		int counter;
	} i_mmap_writable;
} RELOCATED;

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	__u32 i_rdev;
	__u32 i_generation;
	struct address_space i_data;
} RELOCATED;

/* Pages of a folio that has several: the first name is that of 6.16 and newer, compound_nr that of 6.0 and older. */
struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned int _nr_pages;
	unsigned int _folio_nr_pages;
} RELOCATED;

struct page {
	unsigned long compound_head;
	unsigned int compound_nr;
} RELOCATED;

struct file {
	struct inode *f_inode;
} RELOCATED;

struct kiocb {
	struct file *ki_filp;
	__s64 ki_pos;
} RELOCATED;

/* fs/iomap/direct-io.c */
struct iomap_dio {
	struct kiocb *iocb;
	__s64 size;
} RELOCATED;

struct block_device {
	__u64 bd_start_sect;
	__u32 bd_dev;
} RELOCATED;

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
} RELOCATED;

struct bvec_iter {
	__u64 bi_sector;
	unsigned int bi_size;
	unsigned int bi_idx;
	unsigned int bi_bvec_done;
} RELOCATED;

struct bio {
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
	void *bi_end_io;
	void *bi_private;
	struct bio_vec *bi_io_vec;
} RELOCATED;

struct request {
	unsigned int cmd_flags;
} RELOCATED;

enum req_flag_bits {
	__REQ_SYNC = 100,
	__REQ_META,
	__REQ_FUA,
	__REQ_PREFLUSH,
	__REQ_RAHEAD,
};

#endif
