// SPDX-License-Identifier: GPL-2.0
/*
 * Scopes: for whom a task works right now, where that is not itself.
 *
 * A kernel thread that serves waiters enters a scope, and its class is the
 * scope's, or foreground while a foreground task waits for it.
 */
#include <linux/fs.h>
#include <linux/sched.h>

#include "internal.h"

/**
 * __fasttrack_scope_enter - current works for somebody else for a while
 * @class: for whom
 * @cause: why
 *
 * For kernel threads that serve waiters, the journal's for one. Scopes nest.
 *
 * Return: what to give to fasttrack_scope_leave().
 */
struct fasttrack_scope __fasttrack_scope_enter(enum fasttrack_class class,
					       enum fasttrack_cause cause)
{
	struct fasttrack_scope outer = current->fasttrack_scope;

	current->fasttrack_scope = (struct fasttrack_scope){
		.class = class,
		.cause = cause,
		.override = true,
	};
	return outer;
}
EXPORT_SYMBOL_GPL(__fasttrack_scope_enter);

/*
 * A shared worker that is held back for one is held back for all behind it:
 * background's work is neutral there.
 */
static enum fasttrack_class ft_class_for_all(enum fasttrack_class class)
{
	return class == FASTTRACK_BACKGROUND ? FASTTRACK_NEUTRAL : class;
}

/**
 * __fasttrack_owner_enter - current works for the app that has dirtied a file
 * @mapping: the file's
 * @cause: why
 *
 * For workers that serve one file after the other.
 *
 * Return: what to give to fasttrack_scope_leave().
 */
struct fasttrack_scope __fasttrack_owner_enter(const struct address_space *mapping,
					       enum fasttrack_cause cause)
{
	enum fasttrack_class class = FASTTRACK_NEUTRAL;

	if (fasttrack_enabled())
		class = ft_file_class(mapping);
	return __fasttrack_scope_enter(ft_class_for_all(class), cause);
}
EXPORT_SYMBOL_GPL(__fasttrack_owner_enter);

/**
 * __fasttrack_bio_enter - current works on a bio, or a request, that was queued
 * @opf: its flags
 *
 * For workers of a device on top of another.
 *
 * Return: what to give to fasttrack_scope_leave().
 */
struct fasttrack_scope __fasttrack_bio_enter(blk_opf_t opf)
{
	return __fasttrack_scope_enter(ft_class_for_all(fasttrack_opf_class(opf)),
				       FASTTRACK_CAUSE_NONE);
}
EXPORT_SYMBOL_GPL(__fasttrack_bio_enter);

/**
 * __fasttrack_cause_enter - what current sends from here on, it sends for @cause
 * @cause: an outer scope's cause stays: O_SYNC calls the fsync code
 *
 * Return: what to give to fasttrack_scope_leave().
 */
struct fasttrack_scope __fasttrack_cause_enter(enum fasttrack_cause cause)
{
	struct fasttrack_scope outer = current->fasttrack_scope;

	if (!outer.cause)
		current->fasttrack_scope.cause = cause;
	return outer;
}
EXPORT_SYMBOL_GPL(__fasttrack_cause_enter);

/**
 * __fasttrack_scope_leave - end what an enter function began
 * @outer: its result
 */
void __fasttrack_scope_leave(struct fasttrack_scope outer)
{
	current->fasttrack_scope = outer;
}
EXPORT_SYMBOL_GPL(__fasttrack_scope_leave);

#ifdef CONFIG_FASTTRACK_KUNIT_TEST
#include "tests/scope-kunit.h"
#endif
