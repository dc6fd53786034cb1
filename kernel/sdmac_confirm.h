/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a program reads from /dev/sdmac: one record for each frame whose outcome the driver has told. All numbers are in the
 * byte order of the computer. What is below the line is between the parts of the module.
 */
#ifndef SDMAC_CONFIRM_H
#define SDMAC_CONFIRM_H

#include <linux/types.h>

/* Goes up when the meaning or the size of anything here changes. */
#define SDMAC_VERSION 1

/* An ACK came. */
#define SDMAC_ACKED 1
/* The frame was sent without asking for an ACK, and it was sent. */
#define SDMAC_NOACK_SENT 2
/* It was seen on its way down from a socket, so `mark` is that of the socket (SO_MARK). */
#define SDMAC_MARKED 4

#define SDMAC_SERIES 4
#define SDMAC_HEAD 24
#define SDMAC_NAME 16
/* t2 to t8; plane tN is at index N - 2. */
#define SDMAC_PLANES 7

/* A rate, and how often it was tried. */
struct sdmac_series {
	__s8 index;      /* in the band's list of rates, or MCS; negative: this series and those behind it were not used */
	__u8 count;      /* frames on the air */
	__u16 flags;     /* enum mac80211_rate_control_flags: 8 MCS, 0x20 40 MHz, 0x80 short guard interval, ... */
	__u16 rate_100k; /* of a legacy rate, in 100 kb/s; else 0 */
	__u16 reserved;
};

struct sdmac_record {
	__u16 version;   /* SDMAC_VERSION */
	__u16 size;      /* of this record, octets */
	__u32 lost;      /* records that found no room in the ring of this open file so far, wrapping */
	__u64 number;    /* of finished frames since the module was loaded, from 1 */
	__u32 mark;      /* SO_MARK of the socket; 0 unless SDMAC_MARKED */
	__u16 flags;
	__u16 length;    /* octets of the frame, without FCS */
	char wiphy[SDMAC_NAME]; /* name of the radio, cut if it is longer, with a zero at the end */
	struct sdmac_series series[SDMAC_SERIES];
	__u8 head[SDMAC_HEAD]; /* the frame's first octets: addresses and sequence number; zeroes behind a shorter frame */
	__u64 plane_ns[SDMAC_PLANES]; /* CLOCK_MONOTONIC; 0: not seen, or out of order */
	__u64 reserved;
};

#ifdef __KERNEL__
/* ----------------------------------------------------------------------------------------------------------------- */

/* device.c */
int sdmac_device_open(void);
void sdmac_device_close(void);
/* Whether somebody listens. */
bool sdmac_wanted(void);
/* Hands a record to everybody who listens. From any context; sleeps nowhere, also not on PREEMPT_RT. */
void sdmac_deliver(struct sdmac_record *record);

/* probes.c */
int sdmac_probes_open(void);
void sdmac_probes_close(void);
#endif

#endif
