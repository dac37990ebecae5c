// SPDX-License-Identifier: GPL-2.0
/*
 * I/O origin, traced: who pays for a transaction of jbd2, or a checkpoint of f2fs.
 *
 *  - The trigger is the task that asks for the commit first, and its call. Without
 *    one the journal's timer was first.
 *  - The payers of a transaction are those whose handles it has, and whose handle
 *    changed each of its blocks first. What is counted are the blocks that go to
 *    the journal: a block that was forgotten is nobody's any more.
 *  - A handle of write-back is paid for by who dirtied the page that it finds a
 *    place for; by who changed the file last, where there is no such page.
 *  - The payers of a checkpoint are the owners of the blocks of directories and
 *    nodes that its bios hold; its own area is in what it wrote, not in what it pays.
 *  - The carrier is the task that does it.
 *
 * The shares of one sum to its handles and blocks: what nobody is known for is the
 * share of task 0.
 *
 * Not covered: ext4's fast commits; the handle that a restart ends, if a kernel
 * thread has it.
 */
#include <linux/list.h>
#include <linux/magic.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "trace.h"

/* Transactions at once: one runs and one commits, of each file system. */
#define IO_COMMITS_MAX	256

/* Payers of one; who comes later is in the share of task 0, and counted. */
#define IO_SHARES	64

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "io_origin."

/* Under io_journal_lock. */
static unsigned int io_payers_left_out;
module_param_named(payers_left_out, io_payers_left_out, uint, 0444);
MODULE_PARM_DESC(payers_left_out,
		 "Handles and blocks of payers that had no room in a transaction");

/* Kernel threads that work for files at once; another's has no payer. */
#define IO_AGENT_BITS	8

/**
 * struct io_share - what one payer pays of a transaction
 * @task: number of the payer; 0: unknown
 * @through_flusher: others' handles, charged to it
 * @handles: how many
 * @blocks: that it changed
 */
struct io_share {
	u32 task;
	bool through_flusher;
	u32 handles;
	u32 blocks;
};

/**
 * struct io_shares - who pays
 * @nr: shares in use; the first is that of nobody
 * @of: shares
 */
struct io_shares {
	unsigned int nr;
	struct io_share of[IO_SHARES];
};

/**
 * struct io_commit - a transaction, from its first handle to its end
 * @list: of all
 * @carrier: who commits it, from then on
 * @began: when that began
 * @dirtied: block -> payer
 * @said: what its event says
 * @shares: who pays
 */
struct io_commit {
	struct list_head list;
	struct task_struct *carrier;
	u64 began;
	struct xarray dirtied;
	struct io_transaction said;
	struct io_shares shares;
};

/**
 * struct io_agent - a task that writes back for somebody
 * @task: it; NULL: free
 * @payer: for whom; 0: unknown
 * @pages: it is in ext4_writepages(), and is its file's until that ends
 */
struct io_agent {
	struct task_struct *task;
	u32 payer;
	bool pages;
};

/* Guards all below; taken under any lock, before that of names. */
static DEFINE_SPINLOCK(io_journal_lock);
static LIST_HEAD(io_commits);
static unsigned int io_nr_commits;
static u32 io_last_checkpoint;
static struct io_agent *io_agents;

/* --- shares */

/* A payer as a number, for a table by block. */
static unsigned long io_payer_pack(u32 task, bool through_flusher)
{
	return task ? (unsigned long)task << 1 | through_flusher : 0;
}

static void io_share_add(struct io_shares *shares, unsigned long payer,
			 u32 handles, u32 blocks)
{
	u32 task = payer >> 1;
	bool through = payer & 1;
	unsigned int i = 0;

	if (!shares->nr)
		shares->nr = 1;
	while (i < shares->nr && (shares->of[i].task != task ||
				  shares->of[i].through_flusher != through))
		i++;
	if (i == IO_SHARES) {
		io_payers_left_out += handles + blocks;
		i = 0;
	}
	if (i == shares->nr) {
		shares->of[i].task = task;
		shares->of[i].through_flusher = through;
		shares->nr++;
	}
	shares->of[i].handles += handles;
	shares->of[i].blocks += blocks;
}

/* Handles that were begun before the session, or of nobody. */
static void io_shares_complete(struct io_shares *shares, u32 handles)
{
	u32 known = 0;
	unsigned int i;

	for (i = 0; i < shares->nr; i++)
		known += shares->of[i].handles;
	if (known < handles)
		io_share_add(shares, 0, handles - known, 0);
}

/* --- who pays for what current does */

static struct io_agent *io_agent_of(struct task_struct *task)
{
	return &io_agents[hash_ptr(task, IO_AGENT_BITS)];
}

static void io_agent_set(u32 payer, bool pages)
{
	struct io_agent *agent = io_agent_of(current);

	spin_lock(&io_journal_lock);
	agent->task = current;
	agent->payer = payer;
	agent->pages = pages;
	spin_unlock(&io_journal_lock);
}

static void io_agent_clear(bool pages)
{
	struct io_agent *agent = io_agent_of(current);

	spin_lock(&io_journal_lock);
	if (agent->task == current && (pages || !agent->pages))
		agent->task = NULL;
	spin_unlock(&io_journal_lock);
}

static bool io_agent_get(struct io_agent *copy)
{
	spin_lock(&io_journal_lock);
	*copy = *io_agent_of(current);
	spin_unlock(&io_journal_lock);
	return copy->task == current;
}

static unsigned long io_payer(void)
{
	struct io_agent agent;

	if (io_agent_get(&agent))
		return io_payer_pack(agent.payer, true);
	return ft_is_user_task(current) ? io_payer_pack(io_current(), false) : 0;
}

/* Current writes back a file, whosever that is. */
void io_writepages(void *data, struct inode *inode, struct writeback_control *wbc)
{
	io_agent_set(io_file_owner(inode->i_sb->s_dev, inode->i_ino), true);
}

void io_writepages_end(void *data, struct inode *inode,
		       struct writeback_control *wbc, int ret, int pages)
{
	io_agent_clear(true);
}

/* A handle is about to be made; a kernel thread's is the file's owner's. */
void io_handle_of(void *data, struct inode *inode, int blocks, int rsv_blocks,
		  int revoke_creds, int type, unsigned long ip)
{
	struct io_agent agent;

	if (!ft_is_user_task(current) && !io_agent_get(&agent))
		io_agent_set(io_file_owner(inode->i_sb->s_dev, inode->i_ino), false);
}

/* One that was reserved: whose, io_map_blocks() will tell. */
void io_handle_reserved(void *data, struct super_block *sb, int blocks,
			unsigned long ip)
{
	struct io_agent agent;

	if (!ft_is_user_task(current) && !io_agent_get(&agent))
		io_agent_set(0, false);
}

/* An agent finds the place of a page: it works for who dirtied that. */
void io_map_blocks(void *data, struct inode *inode, u32 block, unsigned int len,
		   unsigned int flags)
{
	pgoff_t index = block >> (PAGE_SHIFT - inode->i_blkbits);
	struct io_agent agent;
	u32 owner;

	if (!io_agent_get(&agent))
		return;
	owner = io_page_owner(inode, index) ?:
		io_file_owner(inode->i_sb->s_dev, inode->i_ino);
	io_agent_set(owner, agent.pages);
}

/* --- transactions */

/* Under the lock. */
static struct io_commit *io_commit_find(u8 kind, u32 dev, u32 tid)
{
	struct io_commit *commit;

	list_for_each_entry(commit, &io_commits, list)
		if (commit->said.kind == kind && commit->said.dev == dev &&
		    commit->said.transaction == tid)
			return commit;
	return NULL;
}

/* The same; NULL: there is no room. */
static struct io_commit *io_commit_get(u8 kind, u32 dev, u32 tid)
{
	struct io_commit *commit = io_commit_find(kind, dev, tid);

	if (commit || io_nr_commits >= IO_COMMITS_MAX)
		return commit;
	commit = kzalloc(sizeof(*commit), GFP_NOWAIT | __GFP_NOWARN);
	if (!commit)
		return NULL;
	xa_init(&commit->dirtied);
	commit->said.kind = kind;
	commit->said.dev = dev;
	commit->said.transaction = tid;
	list_add(&commit->list, &io_commits);
	io_nr_commits++;
	return commit;
}

/* Under the lock: takes it from the list. */
static void io_commit_take(struct io_commit *commit)
{
	if (commit) {
		list_del(&commit->list);
		io_nr_commits--;
	}
}

static void io_commit_free(struct io_commit *commit)
{
	if (commit) {
		xa_destroy(&commit->dirtied);
		kfree(commit);
	}
}

/* Tells of one that has ended and is on no list. */
static void io_commit_tell(struct io_commit *commit)
{
	struct io_transaction *said = &commit->said;
	unsigned int i;

	if (commit->began)
		said->took_ns = ktime_get_ns() - commit->began;
	io_shares_complete(&commit->shares, said->handles);
	trace_io_transaction(said);
	for (i = 0; i < commit->shares.nr; i++) {
		const struct io_share *share = &commit->shares.of[i];

		if (share->handles || share->blocks)
			trace_io_share(said, share->task, share->handles,
				       share->blocks, share->through_flusher);
	}
}

static void io_commit_asked_by(u8 kind, u32 dev, u32 tid, u32 task, u8 call)
{
	struct io_commit *commit;

	spin_lock(&io_journal_lock);
	commit = io_commit_get(kind, dev, tid);
	if (commit && !commit->said.trigger) {
		commit->said.trigger = task;
		commit->said.trigger_call = call;
	}
	spin_unlock(&io_journal_lock);
}

static void io_commit_begin(struct io_commit *commit, u32 carrier)
{
	commit->carrier = current;
	commit->began = ktime_get_ns();
	commit->said.carrier = carrier;
}

/* The transaction that current commits; 0: none. */
u32 io_journal_of_current(void)
{
	struct io_commit *commit;
	u32 tid = 0;

	spin_lock(&io_journal_lock);
	list_for_each_entry(commit, &io_commits, list)
		if (commit->carrier == current)
			tid = commit->said.transaction;
	spin_unlock(&io_journal_lock);
	return tid;
}

/* --- jbd2 */

static void io_handle_counts(dev_t dev, tid_t tid)
{
	unsigned long payer = io_payer();
	struct io_commit *commit;

	spin_lock(&io_journal_lock);
	commit = io_commit_get(IO_TRANSACTION_JBD2, dev, tid);
	if (commit)
		io_share_add(&commit->shares, payer, 1, 0);
	spin_unlock(&io_journal_lock);
}

/* Or it is restarted, in another transaction. */
void io_handle_start(void *data, dev_t dev, tid_t tid, unsigned int type,
		     unsigned int line, int blocks)
{
	if (tid && ft_is_user_task(current))
		io_handle_counts(dev, tid);
}

/* By now it is known for whom a kernel thread has worked. */
void io_handle_stop(void *data, dev_t dev, tid_t tid, unsigned int type,
		    unsigned int line, int interval, int sync, int requested,
		    int dirtied)
{
	if (ft_is_user_task(current))
		return;
	io_handle_counts(dev, tid);
	io_agent_clear(false);
}

void io_journal_dirty(void *data, transaction_t *transaction,
		      struct buffer_head *bh)
{
	dev_t dev = transaction->t_journal->j_fs_dev->bd_dev;
	unsigned long payer = io_payer();
	struct io_commit *commit;

	spin_lock(&io_journal_lock);
	commit = io_commit_get(IO_TRANSACTION_JBD2, dev, transaction->t_tid);
	if (commit)
		xa_store(&commit->dirtied, bh->b_blocknr, xa_mk_value(payer),
			 GFP_NOWAIT | __GFP_NOWARN);
	spin_unlock(&io_journal_lock);
}

void io_commit_asked(void *data, journal_t *journal, unsigned int tid)
{
	io_commit_asked_by(IO_TRANSACTION_JBD2, journal->j_fs_dev->bd_dev, tid,
			   io_current(), io_call());
}

void io_commit_start(void *data, journal_t *journal, transaction_t *transaction)
{
	u32 carrier = io_current();
	struct io_commit *commit;

	spin_lock(&io_journal_lock);
	commit = io_commit_get(IO_TRANSACTION_JBD2, journal->j_fs_dev->bd_dev,
			       transaction->t_tid);
	if (commit)
		io_commit_begin(commit, carrier);
	spin_unlock(&io_journal_lock);
}

/* From here on its blocks are those that go to the journal. */
void io_commit_logging(void *data, journal_t *journal, transaction_t *transaction)
{
	struct journal_head *jh, *first;
	struct io_commit *commit;
	void *payer;

	spin_lock(&journal->j_list_lock);
	spin_lock(&io_journal_lock);
	commit = io_commit_find(IO_TRANSACTION_JBD2, journal->j_fs_dev->bd_dev,
				transaction->t_tid);
	first = transaction->t_buffers;
	for (jh = first; commit && jh; jh = jh->b_tnext == first ? NULL : jh->b_tnext) {
		payer = xa_load(&commit->dirtied, jh2bh(jh)->b_blocknr);
		io_share_add(&commit->shares, payer ? xa_to_value(payer) : 0, 0, 1);
		commit->said.blocks++;
	}
	spin_unlock(&io_journal_lock);
	spin_unlock(&journal->j_list_lock);
}

void io_commit_end(void *data, dev_t dev, tid_t tid,
		   struct transaction_run_stats_s *stats)
{
	struct io_commit *commit;

	spin_lock(&io_journal_lock);
	commit = io_commit_find(IO_TRANSACTION_JBD2, dev, tid);
	io_commit_take(commit);
	spin_unlock(&io_journal_lock);
	if (commit) {
		commit->said.handles = stats->rs_handle_count;
		commit->said.logged = stats->rs_blocks_logged;
		io_commit_tell(commit);
	}
	io_commit_free(commit);
}

/* --- f2fs. Who asks waits for the next one: it has no number yet, which is 0. */

void io_checkpoint_asked(void *data, struct super_block *sb, bool waits)
{
	u32 task = io_current();
	struct io_commit *commit;

	if (waits) {
		io_commit_asked_by(IO_TRANSACTION_CHECKPOINT, sb->s_dev, 0, task,
				   io_call());
		return;
	}
	/* There was none to do: the next one is not for it. */
	spin_lock(&io_journal_lock);
	commit = io_commit_find(IO_TRANSACTION_CHECKPOINT, sb->s_dev, 0);
	if (commit && commit->said.trigger != task)
		commit = NULL;
	io_commit_take(commit);
	spin_unlock(&io_journal_lock);
	io_commit_free(commit);
}

static void io_checkpoint_begin(struct super_block *sb)
{
	u32 carrier = io_current();
	struct io_commit *commit, *next;

	spin_lock(&io_journal_lock);
	/* One that failed did not end. */
	list_for_each_entry_safe(commit, next, &io_commits, list)
		if (commit->said.kind == IO_TRANSACTION_CHECKPOINT &&
		    commit->said.dev == sb->s_dev && commit->said.transaction) {
			io_commit_take(commit);
			io_commit_free(commit);
		}
	commit = io_commit_get(IO_TRANSACTION_CHECKPOINT, sb->s_dev, 0);
	if (commit) {
		commit->said.transaction = ++io_last_checkpoint ?: ++io_last_checkpoint;
		io_commit_begin(commit, carrier);
		if (!commit->said.trigger && ft_is_user_task(current)) {
			commit->said.trigger = carrier;
			commit->said.trigger_call = io_call();
		}
	}
	spin_unlock(&io_journal_lock);
}

static void io_checkpoint_end(void)
{
	struct io_commit *commit, *ended = NULL;

	spin_lock(&io_journal_lock);
	list_for_each_entry(commit, &io_commits, list)
		if (commit->said.kind == IO_TRANSACTION_CHECKPOINT &&
		    commit->carrier == current)
			ended = commit;
	io_commit_take(ended);
	spin_unlock(&io_journal_lock);
	if (ended)
		io_commit_tell(ended);
	io_commit_free(ended);
}

void io_checkpoint(void *data, struct super_block *sb, int reason,
		   const char *step)
{
	if (!strcmp(step, "start block_ops"))
		io_checkpoint_begin(sb);
	else if (!strcmp(step, "finish checkpoint"))
		io_checkpoint_end();
}

/* Current writes a run of blocks: they are of the checkpoint that it does. */
void io_journal_wrote(const struct io_segment *segment)
{
	u32 blocks = segment->bytes >> PAGE_SHIFT;
	struct io_commit *commit;

	spin_lock(&io_journal_lock);
	list_for_each_entry(commit, &io_commits, list)
		if (commit->said.kind == IO_TRANSACTION_CHECKPOINT &&
		    commit->carrier == current) {
			commit->said.logged += blocks;
			if (segment->type != IO_BLOCK_CHECKPOINT) {
				commit->said.blocks += blocks;
				io_share_add(&commit->shares,
					     io_payer_pack(segment->owner, false),
					     0, blocks);
			}
		}
	spin_unlock(&io_journal_lock);
}

/* --- life of a session */

bool io_journal_begin(void)
{
	io_agents = kvcalloc(1 << IO_AGENT_BITS, sizeof(*io_agents), GFP_KERNEL);
	return io_agents;
}

/* No probe runs any more. */
void io_journal_end(void)
{
	struct io_commit *commit, *next;

	list_for_each_entry_safe(commit, next, &io_commits, list) {
		io_commit_take(commit);
		io_commit_free(commit);
	}
	kvfree(io_agents);
	io_agents = NULL;
}
