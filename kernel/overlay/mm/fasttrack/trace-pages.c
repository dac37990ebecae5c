// SPDX-License-Identifier: GPL-2.0
/*
 * I/O origin, traced: who dirtied each page, and by which call.
 *
 *  - A page's owner is in a table by page frame, with a tag of the file and the
 *    index: a page that has moved or is another's by now has no owner. What was
 *    dirtied before the session has none either. None is 0: unknown.
 *  - A write to a page that is dirty already changes its owner. The kernel's
 *    generic tracepoint does not see that; those of ext4's buffers and of f2fs do.
 *    Folios of several pages have no owner.
 *  - Writes by mmap are seen at the fault that makes the page writable.
 */
#include <linux/hash.h>
#include <linux/memblock.h>
#include <linux/pagemap.h>
#include <linux/vmalloc.h>

#include "trace.h"

/* The low half of an owner's entry: a tag, its call, and whether it was written since. */
#define IO_TAG_BITS	27
#define IO_CALL_SHIFT	IO_TAG_BITS
#define IO_WRITTEN	BIT(31)

static u64 *io_owners;
static unsigned long io_nr_owners;

/* The number of pages that can have an owner. */
unsigned long io_pages_begin(void)
{
	io_nr_owners = max_pfn;
	io_owners = vcalloc(io_nr_owners, sizeof(*io_owners));
	if (!io_owners) {
		pr_err("io_origin: no memory for the owners of %lu pages: they are unknown\n",
		       io_nr_owners);
		io_nr_owners = 0;
	}
	return io_nr_owners;
}

/* No probe runs any more. */
void io_pages_end(void)
{
	io_nr_owners = 0;
	vfree(io_owners);
	io_owners = NULL;
}

static u32 io_tag(const struct address_space *mapping, pgoff_t index)
{
	return hash_64((u64)(unsigned long)mapping ^ (index * GOLDEN_RATIO_64),
		       IO_TAG_BITS);
}

static u64 *io_entry_of(struct folio *folio)
{
	unsigned long pfn = folio_pfn(folio);

	return !folio_test_large(folio) && pfn < io_nr_owners ? &io_owners[pfn] : NULL;
}

/* Files, and directories of f2fs: those of others are the journal's. */
bool io_is_owned(const struct inode *inode)
{
	return S_ISREG(inode->i_mode) || S_ISDIR(inode->i_mode);
}

/* Current dirties @folio; @again: it does so though somebody else has. */
static void io_dirty(struct folio *folio, struct address_space *mapping, bool again)
{
	u64 *entry, now;
	u8 call;
	u32 tag;

	if (!mapping || !mapping->host || !io_is_owned(mapping->host))
		return;
	entry = io_entry_of(folio);
	if (!entry)
		return;
	tag = io_tag(mapping, folio->index);
	now = READ_ONCE(*entry);
	/* Whoever writes back may make a page dirty again: it stays its owner's. */
	if ((!again || !ft_is_user_task(current)) &&
	    ((u32)now & (IO_WRITTEN | GENMASK(IO_TAG_BITS - 1, 0))) == tag)
		return;
	call = io_call();
	if (call == IO_CALL_FAULT)
		call = IO_CALL_MMAP_WRITE;
	WRITE_ONCE(*entry, (u64)io_current() << 32 | (u32)call << IO_CALL_SHIFT | tag);
}

void io_dirty_folio(void *data, struct folio *folio,
		    struct address_space *mapping)
{
	io_dirty(folio, mapping, false);
}

void io_dirty_buffer(void *data, struct buffer_head *bh)
{
	io_dirty(bh->b_folio, READ_ONCE(bh->b_folio->mapping), true);
}

static void io_dirty_index(struct inode *inode, pgoff_t index)
{
	struct folio *folio;

	rcu_read_lock();
	folio = xa_load(&inode->i_mapping->i_pages, index);
	if (folio && !xa_is_value(folio))
		io_dirty(folio, inode->i_mapping, true);
	rcu_read_unlock();
}

/* f2fs has the folio locked: it is the one that was written. */
void io_f2fs_write_end(void *data, struct inode *inode, loff_t pos,
		       unsigned int len, unsigned int copied)
{
	if (copied)
		io_dirty_index(inode, pos >> PAGE_SHIFT);
}

void io_f2fs_mkwrite(void *data, struct inode *inode, pgoff_t index,
		     vm_flags_t vm_flags, vm_fault_t ret)
{
	if (!(ret & VM_FAULT_ERROR))
		io_dirty_index(inode, index);
}

/* Who dirtied a page; nobody, if it has an entry of another page. */
static struct io_owner io_owner_get(const u64 *entry, u32 tag)
{
	u64 now = entry ? READ_ONCE(*entry) : 0;

	if (((u32)now & GENMASK(IO_TAG_BITS - 1, 0)) != tag)
		return (struct io_owner){};
	return (struct io_owner){
		.task = now >> 32,
		.call = ((u32)now & ~IO_WRITTEN) >> IO_CALL_SHIFT,
	};
}

/* The same of a page that is on its way to the disk. */
struct io_owner io_owner_take(struct folio *folio,
			      const struct address_space *mapping)
{
	u64 *entry = io_entry_of(folio);
	struct io_owner owner = io_owner_get(entry, io_tag(mapping, folio->index));

	if (owner.task)
		WRITE_ONCE(*entry, READ_ONCE(*entry) | IO_WRITTEN);
	return owner;
}

/* Who dirtied a page of a file; 0: unknown. */
u32 io_page_owner(struct inode *inode, pgoff_t index)
{
	struct folio *folio;
	u32 owner = 0;

	rcu_read_lock();
	folio = xa_load(&inode->i_mapping->i_pages, index);
	if (folio && !xa_is_value(folio))
		owner = io_owner_get(io_entry_of(folio),
				     io_tag(inode->i_mapping, index)).task;
	rcu_read_unlock();
	return owner;
}
