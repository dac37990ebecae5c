/* SPDX-License-Identifier: GPL-2.0 */
/* I/O origin, traced: what its files share; see trace.c. */
#ifndef _MM_FASTTRACK_TRACE_H
#define _MM_FASTTRACK_TRACE_H

#include <linux/buffer_head.h>
#include <linux/fs.h>
#include <linux/io_origin.h>
#include <linux/jbd2.h>

#include "internal.h"

struct io_kiocb;

#include <trace/events/io_origin.h>

/**
 * struct io_owner - who dirtied a page
 * @task: number of the task; 0: unknown
 * @call: enum io_call
 */
struct io_owner {
	u32 task;
	u8 call;
};

/* trace-names.c, false: there is no memory */
bool io_names_begin(void);
void io_names_end(void);
u32 io_current(void);
u32 io_file(struct inode *inode);
u32 io_file_known(const struct inode *inode);
u32 io_file_owner(dev_t dev, u64 ino);
u8 io_call(void);
bool io_is_sync(u8 call);

/* trace-pages.c */
unsigned long io_pages_begin(void);
void io_pages_end(void);
bool io_is_owned(const struct inode *inode);
struct io_owner io_owner_take(struct folio *folio,
			      const struct address_space *mapping);
u32 io_page_owner(struct inode *inode, pgoff_t index);

/* trace-journal.c, false: there is no memory */
bool io_journal_begin(void);
void io_journal_end(void);
u32 io_journal_of_current(void);
void io_journal_wrote(const struct io_segment *segment);

/* trace-calls.c, false: there is no memory */
bool io_calls_begin(void);
void io_calls_end(void);

/* Probes; their first argument is not used. */
void io_unlink(void *data, struct inode *dir, struct dentry *dentry);
void io_renamed(void *data, struct dentry *dentry);
void io_inode_dirty(void *data, struct inode *inode, int flags);

void io_dirty_folio(void *data, struct folio *folio,
		    struct address_space *mapping);
void io_dirty_buffer(void *data, struct buffer_head *bh);
void io_f2fs_write_end(void *data, struct inode *inode, loff_t pos,
		       unsigned int len, unsigned int copied);
void io_f2fs_mkwrite(void *data, struct inode *inode, pgoff_t index,
		     vm_flags_t vm_flags, vm_fault_t ret);

void io_writepages(void *data, struct inode *inode, struct writeback_control *wbc);
void io_writepages_end(void *data, struct inode *inode,
		       struct writeback_control *wbc, int ret, int pages);
void io_handle_of(void *data, struct inode *inode, int blocks, int rsv_blocks,
		  int revoke_creds, int type, unsigned long ip);
void io_handle_reserved(void *data, struct super_block *sb, int blocks,
			unsigned long ip);
void io_map_blocks(void *data, struct inode *inode, u32 block, unsigned int len,
		   unsigned int flags);
void io_handle_start(void *data, dev_t dev, tid_t tid, unsigned int type,
		     unsigned int line, int blocks);
void io_handle_stop(void *data, dev_t dev, tid_t tid, unsigned int type,
		    unsigned int line, int interval, int sync, int requested,
		    int dirtied);
void io_journal_dirty(void *data, transaction_t *transaction,
		      struct buffer_head *bh);
void io_commit_asked(void *data, journal_t *journal, unsigned int tid);
void io_commit_start(void *data, journal_t *journal, transaction_t *transaction);
void io_commit_logging(void *data, journal_t *journal, transaction_t *transaction);
void io_commit_end(void *data, dev_t dev, tid_t tid,
		   struct transaction_run_stats_s *stats);
void io_checkpoint_asked(void *data, struct super_block *sb, bool waits);
void io_checkpoint(void *data, struct super_block *sb, int reason,
		   const char *step);

void io_called(void *data, u8 call, struct file *file, loff_t offset, u64 begun,
	       s64 result);
void io_async_begun(void *data, const void *request, u8 call, u8 interface,
		    struct file *file, loff_t offset);
void io_async_ended(void *data, const void *request, loff_t pos, s64 result);
void io_uring_new(void *data, struct io_kiocb *req);
void io_uring_done(void *data, void *ctx, void *req, u64 user_data, int res,
		   unsigned int cflags, u64 extra1, u64 extra2);
void io_waits_for_folio(void *data, struct io_wait *wait, struct folio *folio);
void io_waited(void *data, const struct io_wait *wait);

#endif /* _MM_FASTTRACK_TRACE_H */
