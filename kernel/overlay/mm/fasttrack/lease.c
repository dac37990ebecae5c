// SPDX-License-Identifier: GPL-2.0
/*
 * The lease: whoever says who is in front says so again before lease_ms have
 * passed. When it has died, nobody is in front any more.
 *
 * The lease stands still while the machine is suspended: its clock is jiffies.
 */
#define pr_fmt(fmt) "fasttrack: " fmt

#include <linux/jiffies.h>
#include <linux/printk.h>
#include <linux/workqueue.h>

#include "internal.h"

static void ft_lease_over(struct work_struct *work);
static DECLARE_DELAYED_WORK(ft_lease_work, ft_lease_over);

/* Guarded by ft_config_mutex: 0 for no lease, and when it runs out. */
static unsigned int ft_lease;
static unsigned long ft_lease_end;

/* Nobody is in front. Return: if somebody was; -ENOMEM. */
static int ft_front_clear(void)
{
	struct ft_config *config;
	int ret = 0;

	if (!ft_foreground_set())
		return 0;
	config = ft_config_change();
	if (!config)
		return -ENOMEM;
	for (enum ft_list i = 0; i < FT_NR_FOREGROUND_LISTS && !ret; i++) {
		struct ft_set *edit = ft_set_edit(NULL);

		ret = edit ? ft_config_set(config, i, edit) : -ENOMEM;
	}
	if (ret) {
		ft_config_drop(config);
		return ret;
	}
	ft_config_publish(config);
	return 1;
}

static void ft_lease_over(struct work_struct *work)
{
	int was;

	mutex_lock(&ft_config_mutex);
	/* Somebody may have renewed it while this waited for the mutex. */
	if (!ft_lease || time_before(jiffies, ft_lease_end))
		goto unlock;
	was = ft_front_clear();
	if (was < 0)
		mod_delayed_work(system_wq, &ft_lease_work, HZ);
	else if (was)
		pr_warn("nobody is in front: the lease of %u ms has run out\n",
			ft_lease);
unlock:
	mutex_unlock(&ft_config_mutex);
}

unsigned int ft_lease_ms(void)
{
	return READ_ONCE(ft_lease);
}

/* Somebody has said who is in front. */
void ft_lease_renew(void)
{
	unsigned long left = msecs_to_jiffies(ft_lease);

	lockdep_assert_held(&ft_config_mutex);

	if (!ft_lease)
		return;
	ft_lease_end = jiffies + left;
	mod_delayed_work(system_wq, &ft_lease_work, left);
}

/* From now on the lease is for @ms; 0: for ever. */
void ft_lease_set(unsigned int ms)
{
	mutex_lock(&ft_config_mutex);
	WRITE_ONCE(ft_lease, ms);
	if (!ms)
		cancel_delayed_work(&ft_lease_work);
	ft_lease_renew();
	mutex_unlock(&ft_config_mutex);
}
