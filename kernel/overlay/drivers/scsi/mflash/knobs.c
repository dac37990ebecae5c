// SPDX-License-Identifier: GPL-2.0-only
/*
 * mflash: module parameters. Those that are writable at run time take effect
 * on the next decision of the model.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "host.h"
#include "model.h"
#include "phones.h"
#include "sched.h"

#define DEFAULT_MIB	16384	/* sparse; wide enough for a full phone's map to miss */
#define VMALLOC_MIB	64	/* the phone's RAM has to hold it */

struct mflash_host *mflash_host;
bool mflash_cut_halt = true;

static char *phone;
module_param(phone, charp, 0444);
MODULE_PARM_DESC(phone, "which phone: n5 n6 s6 p1 ufs31 ufs40; none: no device");

static char *image;
module_param(image, charp, 0444);
MODULE_PARM_DESC(image, "UML: host file with the storage, made on first use");

static char *mem;
module_param(mem, charp, 0444);
MODULE_PARM_DESC(mem, "SIZE@ADDRESS: reserved memory (memmap=) with the storage");

static uint size_mb;
module_param(size_mb, uint, 0444);
MODULE_PARM_DESC(size_mb, "logical size, MiB (16384; 64 without image and mem)");

static bool write_buffer = true;
module_param(write_buffer, bool, 0444);
MODULE_PARM_DESC(write_buffer, "use the SLC write buffer");

static ulong seed = 1;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of what a power cut draws");

module_param_named(power_cut_halt, mflash_cut_halt, bool, 0644);
MODULE_PARM_DESC(power_cut_halt, "end the machine at a power cut, without a sync (else commands fail)");

/* knobs that the model is told about: value, range, where it goes */
struct knob {
	const char *name;
	uint value, max;
	void (*apply)(struct mflash_model *m, uint value);
};

static void apply_scheduler(struct mflash_model *m, uint value)
{
	m->sched.policy = value;
}

static void apply_cut_after(struct mflash_model *m, uint value)
{
	m->cut_after = value;
}

static void apply_cut_persist(struct mflash_model *m, uint value)
{
	m->cut_persist = value;
}

static void apply_wait_max(struct mflash_model *m, uint value)
{
	m->sched.wait_max_ns = (u64)value * NSEC_PER_MSEC;
}

static void apply_suspend_max(struct mflash_model *m, uint value)
{
	m->sched.suspend_max = value;
}

static void apply_slc_reserve(struct mflash_model *m, uint value)
{
	m->sched.slc_reserve = value;
}

static void apply_idle(struct mflash_model *m, uint value)
{
	m->idle_ns = (u64)value * NSEC_PER_MSEC;
}

static struct knob knobs[] = {
	{ "scheduler", MFLASH_READ_FIRST, MFLASH_NR_POLICIES - 1, apply_scheduler },
	{ "power_cut_after", 0, UINT_MAX, apply_cut_after },
	{ "power_cut_persist", 0, 100, apply_cut_persist },
	{ "wait_max_ms", 100, 60000, apply_wait_max },
	{ "suspend_max", 16, 1000, apply_suspend_max },
	{ "idle_ms", 50, 60000, apply_idle },
	{ "slc_reserve_percent", 25, 100, apply_slc_reserve },
};

static void knob_set(struct knob *k, uint value)
{
	struct mflash_host *host = READ_ONCE(mflash_host);
	unsigned long flags;

	k->value = value;
	if (!host)
		return;
	spin_lock_irqsave(&host->model_lock, flags);
	mflash_advance(&host->model, ktime_get_ns());
	k->apply(&host->model, value);
	spin_unlock_irqrestore(&host->model_lock, flags);
}

static int number_set(const char *val, const struct kernel_param *kp)
{
	struct knob *k = kp->arg;
	uint value;
	int err = kstrtouint(val, 0, &value);

	if (!err && value > k->max)
		err = -EINVAL;
	if (err) {
		pr_err("mflash: %s: not a number from 0 to %u\n", k->name, k->max);
		return err;
	}
	knob_set(k, value);
	return 0;
}

static int number_get(char *buffer, const struct kernel_param *kp)
{
	struct knob *k = kp->arg;

	return sysfs_emit(buffer, "%u\n", k->value);
}

static int scheduler_set(const char *val, const struct kernel_param *kp)
{
	char name[16];
	int i;

	strscpy(name, val, sizeof(name));
	i = match_string(mflash_policy_names, MFLASH_NR_POLICIES, strim(name));
	if (i < 0) {
		pr_err("mflash: scheduler=%s: not one of fifo read-first foreground\n", name);
		return -EINVAL;
	}
	knob_set(kp->arg, i);
	return 0;
}

static int scheduler_get(char *buffer, const struct kernel_param *kp)
{
	struct knob *k = kp->arg;

	return sysfs_emit(buffer, "%s\n", mflash_policy_names[k->value]);
}

static const struct kernel_param_ops number_ops = { .set = number_set, .get = number_get };
static const struct kernel_param_ops scheduler_ops = { .set = scheduler_set, .get = scheduler_get };

module_param_cb(scheduler, &scheduler_ops, &knobs[0], 0644);
MODULE_PARM_DESC(scheduler, "order in the device's queues: fifo, read-first or foreground");
module_param_cb(power_cut_after, &number_ops, &knobs[1], 0644);
MODULE_PARM_DESC(power_cut_after, "cut the power at the Nth command from now (0: never)");
module_param_cb(power_cut_persist, &number_ops, &knobs[2], 0644);
MODULE_PARM_DESC(power_cut_persist, "percent of cached pages that a power cut finds programmed");
module_param_cb(wait_max_ms, &number_ops, &knobs[3], 0644);
MODULE_PARM_DESC(wait_max_ms, "what waited so long is served out of order (0: never): lower bounds background's delay, higher keeps the order");
module_param_cb(suspend_max, &number_ops, &knobs[4], 0644);
MODULE_PARM_DESC(suspend_max, "suspensions of one program or erase: more is quicker for the foreground, and longer for what is suspended");
module_param_cb(idle_ms, &number_ops, &knobs[5], 0644);
MODULE_PARM_DESC(idle_ms, "time without commands before the device does its own work");
module_param_cb(slc_reserve_percent, &number_ops, &knobs[6], 0644);
MODULE_PARM_DESC(slc_reserve_percent, "scheduler foreground: part of the SLC buffer that background does not use up");

/**
 * mflash_knobs_apply - tell a new device the knobs' values
 * @host: the device
 */
void mflash_knobs_apply(struct mflash_host *host)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		knobs[i].apply(&host->model, knobs[i].value);
}

static bool parse_mem(struct mflash_place *place)
{
	char *at;
	unsigned long long size = memparse(mem, &at);

	if (*at == '@')
		place->base = memparse(at + 1, &at);
	place->size = size;
	if (!*at && place->base && size)
		return true;
	pr_err("mflash: mem=%s: not SIZE@ADDRESS, for example 2G@4G\n", mem);
	return false;
}

/**
 * mflash_knobs_config - what device is asked for
 * @config: filled in
 *
 * Return: 1; 0: none; -EINVAL: a mistake, which has been explained.
 */
int mflash_knobs_config(struct mflash_config *config)
{
	if (!phone || !*phone)
		return 0;
	config->phone = mflash_phone_find(phone);
	if (!config->phone) {
		pr_err("mflash: phone=%s: not one of n5 n6 s6 p1 ufs31 ufs40\n", phone);
		return -EINVAL;
	}
	config->place.image = image && *image ? image : NULL;
	if (!config->place.image && mem && !parse_mem(&config->place))
		return -EINVAL;
	config->size_mib = size_mb ?: config->place.image || config->place.size ?
				      DEFAULT_MIB : VMALLOC_MIB;
	config->write_buffer = write_buffer;
	config->seed = seed;
	return 1;
}
