// SPDX-License-Identifier: GPL-2.0
/*
 * I/O origin: whose I/O is a bio, of which class, and why was it sent?
 *
 * A bio gets its origin once, where it enters the block layer. Clones and
 * splits copy it (__bio_clone()), requests inherit the class through the flags.
 *
 *  - What a task sends itself (reads, fsync, direct writes) is its own.
 *  - What a kernel thread writes back from the page cache belongs to the app
 *    that dirtied the file (app.c). The paper finds that app by the LBA; the page
 *    cache knows it: the mapping remembers it. While somebody who is not background
 *    waits for all that is dirty, it is theirs (syncs.c).
 *  - A kernel thread that works for a waiter says so by a scope
 *    (fasttrack_scope_enter()).
 *
 * Not covered: a file system that encrypts or checksums into bounce pages and
 * sends those from a worker; such a bio has the worker's class, neutral.
 */
#include <linux/backing-dev.h>
#include <linux/bio.h>
#include <linux/fs.h>
#include <linux/ioprio.h>
#include <linux/pagemap.h>
#include <linux/sched.h>

#include <trace/events/fasttrack.h>

#include "internal.h"

/* Current, if it is of an app, of @class, has dirtied pages of @mapping. */
static void ft_dirtied_by(struct address_space *mapping, u32 class, long nr)
{
	if (class == FASTTRACK_FOREGROUND)
		ft_file_used(mapping);
	else if (class == FASTTRACK_BACKGROUND)
		__fasttrack_cache_work(nr);
}

/* The file may be another app's by now; @class is current's, or none. */
static noinline void ft_dirtied_first(struct address_space *mapping, u32 class,
				      long nr)
{
	/* A kernel thread passes on what an app has dirtied before. */
	if (ft_is_user_task(current)) {
		ft_file_dirtied(mapping);
		if (class >= FASTTRACK_NR_APP_CLASSES)
			class = __fasttrack_own_class();
		ft_dirtied_by(mapping, class, nr);
	}
	ft_app_count(READ_ONCE(mapping->fasttrack_app), FT_PAGES_DIRTY, nr);
	ft_data_dirtied(mapping, nr);
}

void __fasttrack_mapping_dirtied(struct address_space *mapping, long nr)
{
	u32 app = READ_ONCE(current->fasttrack_app);
	u32 class = fasttrack_app_entry(app);

	if (class >= FASTTRACK_NR_APP_CLASSES ||
	    app != READ_ONCE(mapping->fasttrack_app)) {
		ft_dirtied_first(mapping, class, nr);
		return;
	}
	ft_dirtied_by(mapping, class, nr);
	atomic_long_add(nr, &ft_app_pages[ft_app_place(app)][FT_PAGES_DIRTY]);
	ft_data_dirtied(mapping, nr);
}

void __fasttrack_mapping_cleaned(struct address_space *mapping, long nr)
{
	ft_app_count(READ_ONCE(mapping->fasttrack_app), FT_PAGES_DIRTY, -nr);
	ft_data_dirtied(mapping, -nr);
}

/*
 * The mapping whose folio @bio writes; NULL for direct I/O and for what has no
 * page-cache folio. For write-back the mapping stays until the bio has ended.
 * For direct I/O from a mapped file that somebody else writes back it may go
 * away; inodes are freed by RCU, whose read lock the caller holds.
 */
static struct address_space *ft_bio_mapping(struct bio *bio)
{
	struct address_space *mapping;
	struct folio *folio;

	if (!bio_has_data(bio) || !op_is_write(bio_op(bio)) ||
	    bio_flagged(bio, BIO_CLONED))
		return NULL;
	folio = page_folio(bio_first_page_all(bio));
	if (!folio_test_writeback(folio) || folio_test_anon(folio) ||
	    folio_test_slab(folio))
		return NULL;
	mapping = READ_ONCE(folio->mapping);
	return mapping && mapping->host ? mapping : NULL;
}

static enum fasttrack_cause ft_bio_cause(struct bio *bio,
					 const struct address_space *mapping)
{
	enum fasttrack_cause cause = current->fasttrack_scope.cause;

	if (bio_op(bio) == REQ_OP_READ)
		return bio->bi_opf & REQ_META ? FASTTRACK_CAUSE_METADATA :
						FASTTRACK_CAUSE_READ;
	if (bio_op(bio) != REQ_OP_WRITE)
		return cause ?: FASTTRACK_CAUSE_OTHER;
	if (cause)
		return cause;
	if (!bio_has_data(bio) || (bio->bi_opf & REQ_SWAP))
		return FASTTRACK_CAUSE_OTHER;
	if ((bio->bi_opf & REQ_META) ||
	    (mapping && S_ISBLK(mapping->host->i_mode)))
		return FASTTRACK_CAUSE_METADATA;
	return mapping ? FASTTRACK_CAUSE_WRITEBACK : FASTTRACK_CAUSE_SYNC_WRITE;
}

/**
 * fasttrack_came_to_front - is the app of a background bio in front by now?
 * @bio: on its way
 *
 * Context: any.
 */
bool fasttrack_came_to_front(const struct bio *bio)
{
	return fasttrack_opf_class(bio->bi_opf) == FASTTRACK_BACKGROUND &&
	       fasttrack_app_class(bio->bi_origin.app) == FASTTRACK_FOREGROUND;
}
EXPORT_SYMBOL_GPL(fasttrack_came_to_front);

/**
 * fasttrack_page_file - the file that a page belongs to
 * @page: it may be gone
 *
 * Context: any.
 * Return: its mapping, to be compared only; NULL for memory that has none.
 */
const struct address_space *fasttrack_page_file(const struct page *page)
{
	const struct folio *folio = page_folio(page);

	/* A journal sends copies of its blocks, which are slabs. */
	return folio_test_slab(folio) ? NULL : READ_ONCE(folio->mapping);
}
EXPORT_SYMBOL_GPL(fasttrack_page_file);

/**
 * fasttrack_bio_file - the file whose pages a bio moves, by its first one
 * @bio: on its way
 *
 * Context: any.
 * Return: as fasttrack_page_file(); NULL without data, and for direct I/O: whoever waits for
 * a page of a file does not wait for one that is written elsewhere from it.
 */
const struct address_space *fasttrack_bio_file(const struct bio *bio)
{
	return bio_has_data((struct bio *)bio) && !bio->bi_origin.direct ?
		fasttrack_page_file(bio_iovec(bio).bv_page) : NULL;
}
EXPORT_SYMBOL_GPL(fasttrack_bio_file);

/*
 * Does @bio of current's move what a process has mapped, or splices, which come by the
 * page or as a whole vector? Nobody locks those pages for it.
 */
static bool ft_bio_is_direct(struct bio *bio)
{
	return bio_has_data(bio) &&
	       (bio_flagged(bio, BIO_PAGE_PINNED) ||
		(bio_flagged(bio, BIO_CLONED) && bio->bi_vcnt &&
		 ft_is_user_task(current)));
}

/*
 * What is left of a large bio comes again. Its app may have come to the front
 * since the first part was sent, and may wait for it.
 */
static void ft_bio_again(struct bio *bio)
{
	if (!fasttrack_came_to_front(bio))
		return;
	bio->bi_opf = fasttrack_opf_with_class(bio->bi_opf,
					       FASTTRACK_FOREGROUND);
}

/*
 * Has somebody chosen the I/O priority of current's @bio? Else it follows from
 * the nice value.
 */
static bool ft_has_own_prio(const struct bio *bio)
{
	int nice = IOPRIO_PRIO_VALUE(task_nice_ioclass(current),
				     task_nice_ioprio(current));

	return __get_task_ioprio(current) != nice ||
	       (IOPRIO_PRIO_CLASS(bio->bi_ioprio) != IOPRIO_CLASS_NONE &&
		bio->bi_ioprio != nice);
}

/*
 * Current, a flusher, sends @bio, which is of @class by itself. Who waits for all that is
 * dirty waits for each bio of it.
 */
static enum fasttrack_class ft_flushed_class(struct bio *bio,
					     const struct address_space *mapping,
					     enum fasttrack_class class)
{
	const struct backing_dev_info *bdi =
		mapping ? inode_to_bdi(mapping->host) : bio->bi_bdev->bd_disk->bdi;
	enum fasttrack_class waits = ft_who_syncs(bdi);

	if (bio_op(bio) != REQ_OP_WRITE || waits == FASTTRACK_BACKGROUND)
		return class;
	bio->bi_opf |= REQ_SYNC;
	return class == FASTTRACK_FOREGROUND ? class : waits;
}

void __fasttrack_bio_submit(struct bio *bio)
{
	struct fasttrack_origin *origin = &bio->bi_origin;
	enum fasttrack_class class;
	struct address_space *mapping;

	if (origin->cause) {
		ft_bio_again(bio);
		return;
	}

	rcu_read_lock();
	mapping = ft_bio_mapping(bio);
	origin->cause = ft_bio_cause(bio, mapping);
	origin->pid = task_pid_nr(current);
	origin->direct = ft_bio_is_direct(bio);
	origin->own_prio |= ft_is_user_task(current) && ft_has_own_prio(bio);
	if (mapping && !ft_is_user_task(current) &&
	    !S_ISBLK(mapping->host->i_mode)) {
		origin->app = READ_ONCE(mapping->fasttrack_app);
		class = current->fasttrack_scope.override ?
			ft_scope_class(current) :
			fasttrack_app_class(origin->app);
	} else {
		if (ft_is_user_task(current))
			origin->app = ft_app_of(current);
		class = __fasttrack_task_class(current);
	}
	if (current->fasttrack_flags & FT_TASK_FLUSHES)
		class = ft_flushed_class(bio, mapping, class);
	rcu_read_unlock();
	WRITE_ONCE(current->fasttrack_sends, fasttrack_bio_file(bio));
	/* Made from another bio's flags, by dm-crypt for one: keep that class. */
	if (!(bio->bi_opf & REQ_FASTTRACK_MASK))
		bio->bi_opf |= fasttrack_class_opf(class);
	class = fasttrack_opf_class(bio->bi_opf);
	fasttrack_count(FASTTRACK_BIO_NEUTRAL + class);
	trace_fasttrack_bio(bio, class);
}
EXPORT_SYMBOL_GPL(__fasttrack_bio_submit);
