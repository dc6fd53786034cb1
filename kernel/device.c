// SPDX-License-Identifier: GPL-2.0-only
/*
 * The character device: for each open file a ring of records, filled by probes and emptied by read(2).
 *
 * Probes run with preemption off, so they may take raw spinlocks alone. One of these orders those who write to a ring; the
 * reader of a kfifo needs none. A blocked read(2) waits in a simple wait queue, which may be woken from there. What
 * poll(2) waits in may not on PREEMPT_RT, and is woken by an irq_work there.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/kfifo.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/swait.h>
#include <linux/wait.h>

#include "sdmac_confirm.h"

static unsigned int records = 512;
module_param(records, uint, 0444);
MODULE_PARM_DESC(records, "Room for each open file, in records; rounded up to a power of two, 16 to 16384 (512)");

/* Files that may be open at once: each frame is copied for each. */
#define MOST_READERS 16

struct reader {
	struct list_head list;
	DECLARE_KFIFO_PTR(ring, struct sdmac_record);
	raw_spinlock_t writers;
	struct mutex readers;
	struct swait_queue_head blocked;
	wait_queue_head_t polling;
	struct irq_work wake;
	u32 lost;
};

static LIST_HEAD(all);
static DEFINE_MUTEX(all_lock);
static unsigned int count;

bool sdmac_wanted(void)
{
	return READ_ONCE(count) > 0;
}

static void wake_polling(struct irq_work *work)
{
	struct reader *reader = container_of(work, struct reader, wake);

	wake_up_interruptible_poll(&reader->polling, EPOLLIN | EPOLLRDNORM);
}

void sdmac_deliver(struct sdmac_record *record)
{
	struct reader *reader;
	unsigned long flags;

	rcu_read_lock();
	list_for_each_entry_rcu(reader, &all, list) {
		raw_spin_lock_irqsave(&reader->writers, flags);
		record->lost = reader->lost;
		if (!kfifo_put(&reader->ring, *record))
			reader->lost++;
		raw_spin_unlock_irqrestore(&reader->writers, flags);
		if (swq_has_sleeper(&reader->blocked))
			swake_up_one(&reader->blocked);
		if (wq_has_sleeper(&reader->polling)) {
			if (IS_ENABLED(CONFIG_PREEMPT_RT))
				irq_work_queue(&reader->wake);
			else
				wake_polling(&reader->wake);
		}
	}
	rcu_read_unlock();
}

static int sdmac_open(struct inode *inode, struct file *file)
{
	struct reader *reader;
	int error;

	/* The frames of all radios of all namespaces come up here. */
	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	reader = kzalloc(sizeof(*reader), GFP_KERNEL);
	if (!reader)
		return -ENOMEM;
	error = kfifo_alloc(&reader->ring, clamp(records, 16U, 16384U), GFP_KERNEL);
	if (error) {
		kfree(reader);
		return error;
	}
	raw_spin_lock_init(&reader->writers);
	mutex_init(&reader->readers);
	init_swait_queue_head(&reader->blocked);
	init_waitqueue_head(&reader->polling);
	init_irq_work(&reader->wake, wake_polling);
	file->private_data = reader;
	stream_open(inode, file);

	mutex_lock(&all_lock);
	if (count < MOST_READERS) {
		list_add_rcu(&reader->list, &all);
		WRITE_ONCE(count, count + 1);
	} else {
		error = -EBUSY;
	}
	mutex_unlock(&all_lock);
	if (error) {
		kfifo_free(&reader->ring);
		kfree(reader);
	}
	return error;
}

static int sdmac_release(struct inode *inode, struct file *file)
{
	struct reader *reader = file->private_data;

	mutex_lock(&all_lock);
	list_del_rcu(&reader->list);
	WRITE_ONCE(count, count - 1);
	mutex_unlock(&all_lock);
	/* Probes that still have it run with preemption off. */
	synchronize_rcu();
	irq_work_sync(&reader->wake);
	kfifo_free(&reader->ring);
	kfree(reader);
	return 0;
}

/* Whole records, as many as there are and fit; waits for the first one unless O_NONBLOCK is set. */
static ssize_t sdmac_read(struct file *file, char __user *to, size_t length, loff_t *at)
{
	struct reader *reader = file->private_data;
	unsigned int copied = 0;
	int error;

	length -= length % sizeof(struct sdmac_record);
	if (!length)
		return -EINVAL;
	do {
		if (kfifo_is_empty(&reader->ring)) {
			if (file->f_flags & O_NONBLOCK)
				return -EAGAIN;
			error = swait_event_interruptible_exclusive(reader->blocked, !kfifo_is_empty(&reader->ring));
			if (error)
				return error;
		}
		if (mutex_lock_interruptible(&reader->readers))
			return -ERESTARTSYS;
		error = kfifo_to_user(&reader->ring, to, length, &copied);
		mutex_unlock(&reader->readers);
		if (error)
			return error;
		/* Another thread with the same file may have been faster. */
	} while (!copied);
	return copied;
}

static __poll_t sdmac_poll(struct file *file, poll_table *wait)
{
	struct reader *reader = file->private_data;

	poll_wait(file, &reader->polling, wait);
	return kfifo_is_empty(&reader->ring) ? 0 : EPOLLIN | EPOLLRDNORM;
}

/* With an owner the module cannot be unloaded while a file is open. */
static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = sdmac_open,
	.release = sdmac_release,
	.read = sdmac_read,
	.poll = sdmac_poll,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "sdmac",
	.mode = 0600,
	.fops = &operations,
};

int sdmac_device_open(void)
{
	return misc_register(&device);
}

void sdmac_device_close(void)
{
	misc_deregister(&device);
}
