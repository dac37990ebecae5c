// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: where content and durable state are.
 *
 * Not in the page allocator's memory, which is the phone's RAM:
 *
 *   image     UML: a sparse host file, mapped shared; the kernel is a host process
 *   reserved  memory kept back at boot (memmap=), at a physical address
 *   vmalloc   for small devices and tests only
 *
 * Durable, in this order: super page, block headers, trims, OOB, data. A page
 * of one repeated 64-bit word is that word in its OOB; any other has a 4 KiB
 * slot of the data area. Scratch memory holds what recovery makes again.
 */
#include <linux/errno.h>
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "device.h"
#include "store.h"
#ifdef MFLASH_IMAGE
#include "mflash_user.h"
#endif

/**
 * mflash_scratch - a piece of the scratch memory
 * @st: the store
 * @size: bytes
 *
 * Return: zeroed memory, aligned to 64 bytes; NULL: there is no more.
 */
void *mflash_scratch(struct mflash_store *st, size_t size)
{
	size_t at = ALIGN(st->scratch_used, 64);

	if (at + size > st->scratch_size)
		return NULL;
	st->scratch_used = at + size;
	return st->scratch + at;
}

/**
 * mflash_slot_get - a 4 KiB slot for out-of-line content
 * @st: the store
 *
 * Return: its number, or 0: the data area is full.
 */
u32 mflash_slot_get(struct mflash_store *st)
{
	if (st->nr_free_slots)
		return st->free_slots[--st->nr_free_slots];
	return st->slots_top < st->slots ? ++st->slots_top : 0;
}

/**
 * mflash_slot_put - give a slot back
 * @st: the store
 * @slot: its number; 0: nothing to do
 */
void mflash_slot_put(struct mflash_store *st, u32 slot)
{
	if (slot)
		st->free_slots[st->nr_free_slots++] = slot;
}

#ifdef MFLASH_IMAGE
static void image_release(struct mflash_store *st)
{
	mflash_user_unmap(st->durable, st->durable_size);
	mflash_user_unmap(st->scratch, st->scratch_size);
}

static int image_open(struct mflash_store *st, const struct mflash_place *place)
{
	int err = mflash_user_map(place->image, st->durable_size, &st->durable);

	if (err) {
		pr_err("mflash: image %s: error %d: %s\n", place->image, err,
		       err == -EAGAIN ? "another guest uses it" :
					"check its directory, its owner and the room there");
		return err;
	}
	err = mflash_user_map(NULL, st->scratch_size, &st->scratch);
	if (err) {
		mflash_user_unmap(st->durable, st->durable_size);
		return err;
	}
	st->zeroed = true;
	st->release = image_release;
	return 0;
}
#else
static int image_open(struct mflash_store *st, const struct mflash_place *place)
{
	pr_err("mflash: image %s: only a UML kernel with mflash built in has images\n",
	       place->image);
	return -EOPNOTSUPP;
}
#endif

#ifdef CONFIG_HAS_IOMEM
static void reserved_release(struct mflash_store *st)
{
	memunmap(st->durable);
}

/* scratch is at the end of the region; the data area has what is left */
static int reserved_open(struct mflash_store *st, const struct mflash_place *place)
{
	void *p;

	if (place->size <= st->scratch_size) {
		pr_err("mflash: mem: %zu bytes are reserved, the tables alone need %zu\n",
		       place->size, st->scratch_size);
		return -EINVAL;
	}
	p = memremap(place->base, place->size, MEMREMAP_WB);
	if (!p) {
		pr_err("mflash: mem: cannot map %zu bytes at %pa; is memmap= right?\n",
		       place->size, &place->base);
		return -ENOMEM;
	}
	st->durable = p;
	st->durable_size = place->size - st->scratch_size;
	st->scratch = p + st->durable_size;
	memset(st->scratch, 0, st->scratch_size);
	st->release = reserved_release;
	return 0;
}
#else
static int reserved_open(struct mflash_store *st, const struct mflash_place *place)
{
	pr_err("mflash: mem: this machine has no memory to reserve; use mflash.image=\n");
	return -EOPNOTSUPP;
}
#endif

static void vmalloc_release(struct mflash_store *st)
{
	vfree(st->durable);
	vfree(st->scratch);
}

static int vmalloc_open(struct mflash_store *st, const struct mflash_place *place)
{
	st->durable = place->durable ?: vzalloc(st->durable_size);
	st->scratch = vzalloc(st->scratch_size);
	st->zeroed = true;
	st->release = vmalloc_release;
	if (st->durable && st->scratch)
		return 0;
	vmalloc_release(st);
	return -ENOMEM;
}

static void *piece(struct mflash_store *st, size_t *at, size_t size)
{
	void *p = st->durable + *at;

	*at += PAGE_ALIGN(size);
	return p;
}

/* returns the size of everything before the data area */
static size_t layout(struct mflash_model *m)
{
	struct mflash_store *st = &m->store;
	struct mflash_ftl *f = &m->ftl;
	size_t at = 0;

	st->super = piece(st, &at, sizeof(*st->super));
	st->headers = piece(st, &at, f->nr_blocks * sizeof(*st->headers));
	st->trim_used = piece(st, &at, DIV_ROUND_UP(f->pages, 1U << MFLASH_MAP_SHIFT));
	st->trims = piece(st, &at, f->pages * sizeof(*st->trims));
	st->oob = piece(st, &at, (size_t)f->nr_blocks * f->block_slots * sizeof(*st->oob));
	st->data = st->durable + at;
	return at;
}

static int super_init(struct mflash_model *m, size_t meta)
{
	struct mflash_super want = {
		.magic = MFLASH_MAGIC, .version = MFLASH_VERSION, .pages = m->ftl.pages,
		.blocks = m->ftl.nr_blocks, .block_pages = m->ftl.block_slots,
		.slc_blocks = m->ftl.slc_blocks,
	};
	struct mflash_super *s = m->store.super;

	strscpy(want.phone, m->phone->name, sizeof(want.phone));
	if (s->magic != MFLASH_MAGIC) {
		if (!m->store.zeroed)
			memset(m->store.durable, 0, meta);
		want.magic = 0;
		*s = want;
		smp_wmb(); /* the host process may die here */
		WRITE_ONCE(s->magic, MFLASH_MAGIC);
		return 0;
	}
	if (!memcmp(s, &want, offsetof(struct mflash_super, seq)))
		return 0;
	pr_err("mflash: the storage was made for phone %.11s, %u pages, version %u; this is %s, %u pages, version %u: remove it, or ask for that phone\n",
	       s->phone, s->pages, s->version, want.phone, want.pages, want.version);
	return -EINVAL;
}

/**
 * mflash_store_open - get the memory and check what is there
 * @m: the model, with its layout and @m->store.scratch_size
 * @place: where the memory is
 *
 * Return: 0 or a negative error, which has been explained in the log.
 */
int mflash_store_open(struct mflash_model *m, const struct mflash_place *place)
{
	struct mflash_store *st = &m->store;
	/* beside what is mapped: content in the cache and of writes in flight */
	u32 slots = m->ftl.pages + m->cache.nr +
		    m->phone->queue_depth * (m->phone->max_kib >> (MFLASH_PAGE_SHIFT - 10));
	size_t meta = layout(m);
	int err;

	st->durable_size = meta + ((size_t)slots << MFLASH_PAGE_SHIFT);
	if (place->image)
		err = image_open(st, place);
	else if (place->size)
		err = reserved_open(st, place);
	else
		err = vmalloc_open(st, place);
	if (err)
		return err;
	layout(m);
	if (st->durable_size <= meta) {
		pr_err("mflash: mem: %zu bytes for data, the tables alone need %zu; reserve more or lower mflash.size_mb\n",
		       st->durable_size, meta);
		err = -EINVAL;
	} else {
		st->slots = min_t(u64, slots, (st->durable_size - meta) >> MFLASH_PAGE_SHIFT);
		err = super_init(m, meta);
	}
	st->free_slots = err ? NULL : mflash_scratch(st, st->slots * sizeof(u32));
	if (!err && !st->free_slots)
		err = -ENOMEM;
	if (err)
		mflash_store_close(st);
	return err;
}

/**
 * mflash_store_close - give the memory back
 * @st: the store
 */
void mflash_store_close(struct mflash_store *st)
{
	if (st->release)
		st->release(st);
	st->release = NULL;
}
