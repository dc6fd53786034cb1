// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames followed through mac80211 as it is, from the socket to the outcome, by kprobes.
 *
 * The address of the socket buffer names a frame from t2 (or t3, for what the kernel has made itself) until its outcome was
 * told; the table that holds what was seen of it has room for a thousand, and forgets the oldest: nothing guarantees that a
 * frame ever ends. What has no address is found by CPU: an interrupt and a tasklet are those that came last before
 * the status.
 *
 * Which function is which plane was found in the sources of Linux 6.1, and tried with mac80211_hwsim. Those of ath9k are
 * in Debian's module under these names; no such adapter was at hand.
 */
#define pr_fmt(text) KBUILD_MODNAME ": " text

#include <linux/hash.h>
#include <linux/ieee80211.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/timekeeping.h>
#include <net/mac80211.h>

#include "sdmac_confirm.h"

/* Frames that are known at once: buckets by address, and places in each. */
#define BUCKET_BITS 8
#define PLACES 4

enum plane { T2, T3, T4, T5, T6, T7, T8 };

struct track {
	struct sk_buff *skb; /* NULL: free */
	u64 serial;
	u64 ns[SDMAC_PLANES];
	u32 mark;
	bool marked;
	struct sdmac_record record; /* from t7 on */
};

struct bucket {
	raw_spinlock_t lock;
	struct track tracks[PLACES];
};

static struct bucket buckets[1 << BUCKET_BITS];
static atomic64_t serials;
static atomic64_t finished;

/* What a function that is told no socket buffer belongs to. */
struct here {
	u64 interrupt;
	u64 tasklet;
	u64 interrupt_of_tasklet;
	/* The frame whose status this CPU is telling. */
	struct sk_buff *status;
	u64 serial;
	/* The thread that has asked for a management frame, and when. */
	struct task_struct *asking;
	u64 asked;
};

static DEFINE_PER_CPU(struct here, here);

static u64 now_ns(void)
{
	/* Does not hang if the probed function has interrupted a change of the clock. */
	return ktime_get_mono_fast_ns();
}

static struct bucket *lock_bucket(struct sk_buff *skb, unsigned long *flags)
{
	struct bucket *bucket = &buckets[hash_ptr(skb, BUCKET_BITS)];

	raw_spin_lock_irqsave(&bucket->lock, *flags);
	return bucket;
}

static struct track *find(struct bucket *bucket, struct sk_buff *skb)
{
	unsigned int i;

	for (i = 0; i < PLACES; i++)
		if (bucket->tracks[i].skb == skb)
			return &bucket->tracks[i];
	return NULL;
}

/* A place for a frame that begins: its own, if an earlier one with this address is still there, a free one, or the oldest. */
static struct track *begin(struct bucket *bucket, struct sk_buff *skb)
{
	struct track *track = find(bucket, skb);
	unsigned int i;

	for (i = 0; !track && i < PLACES; i++)
		if (!bucket->tracks[i].skb)
			track = &bucket->tracks[i];
	if (!track) {
		track = &bucket->tracks[0];
		for (i = 1; i < PLACES; i++)
			if (bucket->tracks[i].serial < track->serial)
				track = &bucket->tracks[i];
	}
	memset(track, 0, sizeof(*track));
	track->skb = skb;
	track->serial = atomic64_inc_return(&serials);
	return track;
}

/* t2: a socket has sent something. */
static int on_entry(struct kprobe *probe, struct pt_regs *regs)
{
	struct sk_buff *skb = (struct sk_buff *)regs_get_kernel_argument(regs, 0);
	struct bucket *bucket;
	struct track *track;
	unsigned long flags;

	if (!sdmac_wanted())
		return 0;
	bucket = lock_bucket(skb, &flags);
	track = begin(bucket, skb);
	track->ns[T2] = now_ns();
	track->mark = skb->mark;
	track->marked = true;
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	return 0;
}

/* t2 of a management frame that was asked for through nl80211, which has no buffer yet. */
static int on_ask(struct kretprobe_instance *call, struct pt_regs *regs)
{
	struct here *cpu = this_cpu_ptr(&here);

	cpu->asked = now_ns();
	cpu->asking = current;
	return 0;
}

static int on_asked(struct kretprobe_instance *call, struct pt_regs *regs)
{
	struct here *cpu = this_cpu_ptr(&here);

	if (cpu->asking == current)
		cpu->asking = NULL;
	return 0;
}

struct call {
	struct sk_buff *skb;
	u64 serial;
};

/* t3: the driver has it. */
static int on_driver(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct sk_buff *skb = (struct sk_buff *)regs_get_kernel_argument(regs, 2);
	struct call *call = (struct call *)instance->data;
	struct here *cpu = this_cpu_ptr(&here);
	struct bucket *bucket;
	struct track *track;
	unsigned long flags;

	if (!sdmac_wanted())
		return 1; /* Its return is of no interest. */
	bucket = lock_bucket(skb, &flags);
	track = find(bucket, skb);
	if (!track || track->ns[T3])
		track = begin(bucket, skb); /* Not from a socket, or left over. */
	if (!track->ns[T2] && cpu->asking == current) {
		track->ns[T2] = cpu->asked;
		cpu->asking = NULL;
	}
	track->ns[T3] = now_ns();
	call->skb = skb;
	call->serial = track->serial;
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	return 0;
}

/* t4: the driver has put it where the hardware takes it from. */
static int on_driver_done(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;
	struct bucket *bucket;
	struct track *track;
	unsigned long flags;

	bucket = lock_bucket(call->skb, &flags);
	track = find(bucket, call->skb);
	if (track && track->serial == call->serial)
		track->ns[T4] = now_ns();
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	return 0;
}

/* t5 where the driver tells which frame it is about. */
static int on_done(struct kprobe *probe, struct pt_regs *regs)
{
	struct sk_buff *skb = (struct sk_buff *)regs_get_kernel_argument(regs, 1);
	struct bucket *bucket;
	struct track *track;
	unsigned long flags;

	if (!sdmac_wanted())
		return 0;
	bucket = lock_bucket(skb, &flags);
	track = find(bucket, skb);
	if (track && !track->ns[T5])
		track->ns[T5] = now_ns();
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	return 0;
}

/* t5 where it does not. */
static int on_interrupt(struct kprobe *probe, struct pt_regs *regs)
{
	this_cpu_write(here.interrupt, now_ns());
	return 0;
}

static int on_tasklet(struct kprobe *probe, struct pt_regs *regs)
{
	struct here *cpu = this_cpu_ptr(&here);

	cpu->tasklet = now_ns();
	cpu->interrupt_of_tasklet = cpu->interrupt;
	return 0;
}

/* Outcome, rates and the head of the frame, while the driver's words about it are whole. */
static void describe(struct track *track, struct ieee80211_hw *hw, struct ieee80211_tx_status *status)
{
	struct ieee80211_tx_info *info = status->info ? status->info : IEEE80211_SKB_CB(status->skb);
	struct sdmac_record *record = &track->record;
	struct ieee80211_supported_band *band = NULL;
	unsigned int i;

	record->version = SDMAC_VERSION;
	record->size = sizeof(*record);
	if (info->flags & IEEE80211_TX_STAT_ACK)
		record->flags |= SDMAC_ACKED;
	if (info->flags & IEEE80211_TX_STAT_NOACK_TRANSMITTED)
		record->flags |= SDMAC_NOACK_SENT;
	if (track->marked)
		record->flags |= SDMAC_MARKED;
	record->mark = track->mark;
	record->length = min_t(unsigned int, status->skb->len, U16_MAX);
	memcpy(record->head, status->skb->data, min_t(unsigned int, skb_headlen(status->skb), SDMAC_HEAD));
	strscpy(record->wiphy, dev_name(&hw->wiphy->dev), sizeof(record->wiphy));
	if (info->band < NUM_NL80211_BANDS)
		band = hw->wiphy->bands[info->band];
	for (i = 0; i < SDMAC_SERIES; i++)
		record->series[i].index = -1;
	for (i = 0; i < min(SDMAC_SERIES, IEEE80211_TX_MAX_RATES); i++) {
		struct ieee80211_tx_rate *rate = &info->status.rates[i];
		struct sdmac_series *series = &record->series[i];

		if (rate->idx < 0 || !rate->count)
			break;
		series->index = rate->idx;
		series->count = rate->count;
		series->flags = rate->flags;
		if (!(rate->flags & (IEEE80211_TX_RC_MCS | IEEE80211_TX_RC_VHT_MCS)) && band && rate->idx < band->n_bitrates)
			series->rate_100k = band->bitrates[rate->idx].bitrate;
	}
}

/* Leaves out what is out of order: found by CPU it may be another frame's, and hwsim's own medium ends a frame too soon. */
static void put_in_order(struct track *track)
{
	static const u8 sure[] = { T2, T3, T7, T8 };
	u64 *ns = track->ns;
	unsigned int plane, i;

	for (plane = T4; plane <= T6; plane++) {
		for (i = 0; ns[plane] && i < ARRAY_SIZE(sure); i++)
			if (ns[sure[i]] && (sure[i] < plane ? ns[sure[i]] > ns[plane] : ns[sure[i]] < ns[plane]))
				ns[plane] = 0;
	}
	if (ns[T4] && ((ns[T5] && ns[T4] > ns[T5]) || (ns[T6] && ns[T4] > ns[T6])))
		ns[T4] = 0;
	if (ns[T5] && ns[T6] && ns[T5] > ns[T6])
		ns[T6] = 0;
}

/* Tells what is known of a frame, and forgets it. With its bucket locked. */
static void finish(struct track *track, struct sdmac_record *record)
{
	put_in_order(track);
	memcpy(track->record.plane_ns, track->ns, sizeof(track->ns));
	track->record.number = atomic64_inc_return(&finished);
	*record = track->record;
	track->skb = NULL;
}

/* If the frame is still known, it has an outcome, and nobody was told: tells it. `at` is t8, or 0. */
static void tell(struct sk_buff *skb, u64 serial, u64 at)
{
	struct sdmac_record record;
	struct bucket *bucket;
	struct track *track;
	unsigned long flags;
	bool found;

	bucket = lock_bucket(skb, &flags);
	track = find(bucket, skb);
	found = track && track->ns[T7] && (!serial || track->serial == serial);
	if (found) {
		track->ns[T8] = at;
		finish(track, &record);
	}
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	if (found)
		sdmac_deliver(&record);
}

/* t7: mac80211 has the outcome. */
static int on_status(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct ieee80211_hw *hw = (struct ieee80211_hw *)regs_get_kernel_argument(regs, 0);
	struct ieee80211_tx_status *status = (struct ieee80211_tx_status *)regs_get_kernel_argument(regs, 1);
	struct call *call = (struct call *)instance->data;
	struct here *cpu = this_cpu_ptr(&here);
	struct bucket *bucket;
	struct track *track;
	unsigned long flags;

	if (!sdmac_wanted() || !status->skb)
		return 1;
	bucket = lock_bucket(status->skb, &flags);
	track = find(bucket, status->skb);
	if (!track)
		track = begin(bucket, status->skb);
	track->ns[T7] = now_ns();
	if (cpu->tasklet) {
		track->ns[T6] = cpu->tasklet;
		if (!track->ns[T5])
			track->ns[T5] = cpu->interrupt_of_tasklet;
	}
	describe(track, hw, status);
	call->skb = cpu->status = status->skb;
	call->serial = cpu->serial = track->serial;
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	return 0;
}

/* The status was told to all, and nobody in user space had asked. */
static int on_status_done(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;

	this_cpu_write(here.status, NULL);
	tell(call->skb, call->serial, 0);
	return 0;
}

/* t8: it goes to the monitors, ... */
static int on_monitor(struct kprobe *probe, struct pt_regs *regs)
{
	if (sdmac_wanted())
		tell((struct sk_buff *)regs_get_kernel_argument(regs, 1), 0, now_ns());
	return 0;
}

/* ... or, before that, to the socket or the program that has asked for it. That is told a copy, or a cookie. */
static int on_asker(struct kprobe *probe, struct pt_regs *regs)
{
	struct here *cpu = this_cpu_ptr(&here);

	if (sdmac_wanted() && cpu->status)
		tell(cpu->status, cpu->serial, now_ns());
	return 0;
}

#define PROBE(function, on) { .symbol_name = function, .pre_handler = on }
static struct kprobe entries[] = {
	PROBE("ieee80211_monitor_start_xmit", on_entry),
	PROBE("ieee80211_subif_start_xmit", on_entry),
	PROBE("ieee80211_subif_start_xmit_8023", on_entry),
	PROBE("ieee80211_tx_status_irqsafe", on_done),
	PROBE("ath_isr", on_interrupt),
	PROBE("ieee80211_tasklet_handler", on_tasklet),
	PROBE("ath9k_tasklet", on_tasklet),
	PROBE("skb_complete_wifi_ack", on_asker),
	PROBE("cfg80211_mgmt_tx_status_ext", on_asker),
	PROBE("ieee80211_tx_monitor", on_monitor),
};

#define CALL(function, on, back) { .kp.symbol_name = function, .entry_handler = on, .handler = back, \
	.data_size = sizeof(struct call), .maxactive = 64 }
static struct kretprobe calls[] = {
	/* Without the first there are no outcomes. */
	CALL("ieee80211_tx_status_ext", on_status, on_status_done),
	CALL("ieee80211_mgmt_tx", on_ask, on_asked),
	CALL("mac80211_hwsim_tx", on_driver, on_driver_done),
	CALL("ath9k_tx", on_driver, on_driver_done),
};

void sdmac_probes_close(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(entries); i++)
		if (entries[i].addr)
			unregister_kprobe(&entries[i]);
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].kp.addr)
			unregister_kretprobe(&calls[i]);
}

/* Functions that are not there are planes that stay empty. */
int sdmac_probes_open(void)
{
	unsigned int i;
	int error;

	for (i = 0; i < ARRAY_SIZE(buckets); i++)
		raw_spin_lock_init(&buckets[i].lock);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		error = register_kretprobe(&calls[i]);
		if (!error)
			continue;
		calls[i].kp.addr = NULL;
		if (i == 0) {
			pr_err("cannot probe %s (error %d), so there are no outcomes: load mac80211 first; without it or without kprobes this module is of no use\n",
			       calls[i].kp.symbol_name, error);
			return -ENOENT;
		}
		pr_info("no %s here: its planes stay empty until this module is loaded again\n", calls[i].kp.symbol_name);
	}
	for (i = 0; i < ARRAY_SIZE(entries); i++) {
		error = register_kprobe(&entries[i]);
		if (!error)
			continue;
		entries[i].addr = NULL;
		pr_info("no %s here: its plane stays empty until this module is loaded again\n", entries[i].symbol_name);
	}
	return 0;
}

static int __init sdmac_init(void)
{
	int error = sdmac_probes_open();

	if (error)
		return error;
	error = sdmac_device_open();
	if (error) {
		pr_err("cannot make /dev/sdmac (error %d)\n", error);
		sdmac_probes_close();
	}
	return error;
}

static void __exit sdmac_exit(void)
{
	sdmac_device_close();
	sdmac_probes_close();
}

module_init(sdmac_init);
module_exit(sdmac_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Outcome, tries and planes of each 802.11 frame, for sdmac");
