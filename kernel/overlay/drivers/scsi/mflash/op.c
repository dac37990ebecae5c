// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: operations, from a pool that never runs out, and the end of a command.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/list.h>

#include "device.h"
#include "op.h"
#include "store.h"

#include <trace/events/mflash.h>

/**
 * mflash_ops_init - make the pool
 * @m: the model
 * @nr: most operations at a time
 *
 * Return: 0 or -ENOMEM.
 */
int mflash_ops_init(struct mflash_model *m, u32 nr)
{
	struct mflash_op *op = mflash_scratch(&m->store, nr * sizeof(*op));
	u32 i;

	INIT_LIST_HEAD(&m->ops);
	if (!op)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		list_add_tail(&op[i].q.link, &m->ops);
	return 0;
}

/**
 * mflash_op_get - a free operation
 * @m: the model
 * @type: what it will do
 * @class: for whom
 * @end: see struct mflash_op
 */
struct mflash_op *mflash_op_get(struct mflash_model *m, enum mflash_op_type type, u8 class,
				mflash_op_end *end)
{
	struct mflash_op *op = list_first_entry(&m->ops, struct mflash_op, q.link);

	WARN_ONCE(list_empty(&m->ops), "mflash: out of operations\n");
	list_del_init(&op->q.link);
	op->type = type;
	op->end = end;
	op->cmd = NULL;
	op->q.cmd = false;
	op->q.c = (struct mflash_candidate) {
		.seq = ++m->seq, .since = m->now, .class = class,
		.write = type != MFLASH_OP_READ && type != MFLASH_OP_RAM &&
			 type != MFLASH_OP_MAP_READ,
	};
	return op;
}

/**
 * mflash_op_put - give an operation back
 * @m: the model
 * @op: the operation
 */
void mflash_op_put(struct mflash_model *m, struct mflash_op *op)
{
	list_add(&op->q.link, &m->ops);
}

/**
 * mflash_cmd_done - a command is complete
 * @m: the model
 * @cmd: the command; on m->done afterwards
 */
void mflash_cmd_done(struct mflash_model *m, struct mflash_cmd *cmd)
{
	trace_mflash_complete(cmd->tag, cmd->type, cmd->class, cmd->lpn, cmd->pages,
			      m->in_flight, m->now - cmd->submitted);
	m->active[cmd->tag] = NULL;
	if (cmd->class == FASTTRACK_FOREGROUND)
		mflash_burst_end(&m->burst, mflash_is_sync(cmd), m->now);
	list_add_tail(&cmd->done, &m->done);
	if (!--m->in_flight && !m->dead)
		m->next[MFLASH_EV_IDLE] = m->now + m->idle_ns;
}
