/* The primitives of SDMAC for C programs. Made by `cargo xtask c header` from bindings/c/src: change it there.
 *
 * MIT OR Apache-2.0 */

#ifndef SDMAC_H
#define SDMAC_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* In words, once:
 *
 * - A host is what frames go over: the simulator, the 802.11 stack of Linux, emulated AR9170 sticks. It has interfaces,
 *   counted from 0. SDMAC_open() makes one, SDMAC_close() ends it.
 * - Everything happens within calls, in the thread that calls; a host may be used by one thread at a time. Between calls of
 *   a simulated host no time passes.
 * - Calls that wait take the time that they wait at most, in nanoseconds of the host's clock: 0 is the non-blocking form,
 *   SDMAC_FOREVER blocks.
 * - Functions that return int return SDMAC_STATUS_OK (0) or another SDMAC_STATUS, which are all negative.
 * - Times of the host are nanoseconds of its clock, SDMAC_now(). */


/*
 Time to wait that never ends.
 */
#define SDMAC_FOREVER UINT64_MAX

/*
 How a call ended. Everything but OK is negative.
 */
typedef enum {
    /*
     Done.
     */
    SDMAC_STATUS_OK = 0,
    /*
     Nothing came within the time.
     */
    SDMAC_STATUS_NOTHING = -1,
    /*
     A null pointer, a number without a meaning, or an interface that is not there.
     */
    SDMAC_STATUS_ARGUMENT = -2,
    /*
     A request of this interface with this identifier is open.
     */
    SDMAC_STATUS_ID_IN_USE = -3,
    /*
     Too much waits: fetch confirms first.
     */
    SDMAC_STATUS_FULL = -4,
    /*
     The buffer is too small; what came is lost, and its length is told.
     */
    SDMAC_STATUS_TOO_SMALL = -5,
    /*
     This host or adapter cannot do it.
     */
    SDMAC_STATUS_NOT_SUPPORTED = -6,
    /*
     The value is outside of what the adapter takes.
     */
    SDMAC_STATUS_OUT_OF_RANGE = -7,
    /*
     The regulatory domain forbids it.
     */
    SDMAC_STATUS_FORBIDDEN = -8,
    /*
     The process lacks a permission.
     */
    SDMAC_STATUS_NO_PERMISSION = -9,
    /*
     There is no such packet or queue.
     */
    SDMAC_STATUS_NOT_FOUND = -10,
    /*
     The host ended with an error; SDMAC_why() tells it.
     */
    SDMAC_STATUS_BROKEN = -11,
} SDMAC_Status;

/*
 How a request ended (SDMAC_Confirm.outcome).
 */
typedef enum {
    /*
     An ACK came.
     */
    SDMAC_OUTCOME_ACKED = 0,
    /*
     All tries are used up and no ACK came; frames that ask for none end like this, too.
     */
    SDMAC_OUTCOME_NOT_ACKED = 1,
    /*
     The host did not take it; SDMAC_Confirm.refusal says why.
     */
    SDMAC_OUTCOME_REFUSED = 2,
    /*
     Taken back.
     */
    SDMAC_OUTCOME_ABORTED = 3,
    /*
     Its time was over.
     */
    SDMAC_OUTCOME_EXPIRED = 4,
    /*
     Nobody knows: it may have been sent or not.
     */
    SDMAC_OUTCOME_UNKNOWN = 5,
} SDMAC_Outcome;

/*
 Why a request was refused (SDMAC_Confirm.refusal).
 */
typedef enum {
    /*
     It was not.
     */
    SDMAC_REFUSAL_NONE = 0,
    /*
     Not a frame that can be sent.
     */
    SDMAC_REFUSAL_BAD_FRAME = 1,
    /*
     The queue is full.
     */
    SDMAC_REFUSAL_QUEUE_FULL = 2,
    /*
     The band or the adapter does not have the rate.
     */
    SDMAC_REFUSAL_RATE_NOT_SUPPORTED = 3,
    /*
     The regulatory domain forbids sending on this channel.
     */
    SDMAC_REFUSAL_CHANNEL_FORBIDDEN = 4,
    /*
     The transmitter address is not one of this adapter's.
     */
    SDMAC_REFUSAL_ADDRESS_FORBIDDEN = 5,
    /*
     The host cannot do what SDMAC_How asks for.
     */
    SDMAC_REFUSAL_NOT_SUPPORTED = 6,
    /*
     The adapter is gone or down.
     */
    SDMAC_REFUSAL_NO_ADAPTER = 7,
    /*
     The process lacks a permission.
     */
    SDMAC_REFUSAL_NO_PERMISSION = 8,
} SDMAC_Refusal;

/*
 Queues of an adapter, `ac` of the primitives.
 */
typedef enum {
    /*
     AC_BK.
     */
    SDMAC_QUEUE_BACKGROUND = 0,
    /*
     AC_BE.
     */
    SDMAC_QUEUE_BEST_EFFORT = 1,
    /*
     AC_VI.
     */
    SDMAC_QUEUE_VIDEO = 2,
    /*
     AC_VO.
     */
    SDMAC_QUEUE_VOICE = 3,
    /*
     Before all others, without backoff.
     */
    SDMAC_QUEUE_BEACON = 4,
} SDMAC_Queue;

/*
 Whether RTS/CTS goes before a frame (SDMAC_How.rts).
 */
typedef enum {
    /*
     As the threshold says.
     */
    SDMAC_RTS_THRESHOLD = 0,
    /*
     Always.
     */
    SDMAC_RTS_ALWAYS = 1,
    /*
     Never.
     */
    SDMAC_RTS_NEVER = 2,
} SDMAC_Rts;

/*
 Attributes, `name` of SDMAC_DATA_set() and SDMAC_DATA_get(), with the field of SDMAC_Value that holds them.
 */
typedef enum {
    /*
     `address`: the adapter's own.
     */
    SDMAC_NAME_ADDRESS = 0,
    /*
     `address`.
     */
    SDMAC_NAME_BSSID = 1,
    /*
     `number`: centre frequency, MHz.
     */
    SDMAC_NAME_CHANNEL = 2,
    /*
     `number`: ACK timeout, microseconds.
     */
    SDMAC_NAME_ACK_TIMEOUT = 3,
    /*
     `number`: slot time, microseconds.
     */
    SDMAC_NAME_SLOT_TIME = 4,
    /*
     `number`: adapter time, microseconds.
     */
    SDMAC_NAME_TSF = 5,
    /*
     `number`: dBm.
     */
    SDMAC_NAME_TX_POWER = 6,
    /*
     `number`: bit i is the i-th of 1, 2, 5.5, 11, 6, 9, 12, 18, 24, 36, 48, 54 Mb/s.
     */
    SDMAC_NAME_BASIC_RATES = 7,
    /*
     `number`: octets above which RTS/CTS goes first.
     */
    SDMAC_NAME_RTS_THRESHOLD = 8,
    /*
     `number`, 0 or 1: physical carrier sense.
     */
    SDMAC_NAME_CARRIER_SENSE = 9,
    /*
     `number`, 0 or 1: NAV.
     */
    SDMAC_NAME_VIRTUAL_CARRIER_SENSE = 10,
    /*
     `number`, 0 or 1: receiver.
     */
    SDMAC_NAME_RECEPTION = 11,
    /*
     `number`, 0 or 1: whether the adapter answers with ACKs.
     */
    SDMAC_NAME_ACK_GENERATION = 12,
    /*
     `number`, 0 or 1: whether frames for others are indicated.
     */
    SDMAC_NAME_PROMISCUOUS = 13,
    /*
     `counters`; read only.
     */
    SDMAC_NAME_COUNTERS = 14,
    /*
     `edca`, of the queue `ac`.
     */
    SDMAC_NAME_EDCA = 15,
    /*
     `number`: requests that wait in the queue `ac`; read only.
     */
    SDMAC_NAME_QUEUE_LENGTH = 16,
    /*
     `number`: tries of the packet `id` so far, `stamps_ns`: its planes so far; read only.
     */
    SDMAC_NAME_PACKET = 17,
    /*
     `series` and `series_count`: another retry chain for the packet `id`, while it waits; write only.
     */
    SDMAC_NAME_PACKET_SERIES = 18,
    /*
     `number`: received frames that are told: 0 all, 1 management frames, 2 all but beacons and ATIMs, 3 of
     these what is for this station alone.
     */
    SDMAC_NAME_RECEIVE_FILTER = 19,
    /*
     `timing`: the ad hoc network whose clock the adapter follows by itself.
     */
    SDMAC_NAME_BEACON_TIMING = 20,
} SDMAC_Name;

/*
 A host with its interfaces.
 */
typedef struct SDMAC_Host SDMAC_Host;

/*
 Some tries at one rate.
 */
typedef struct {
    /*
     Below 128: units of 500 kb/s, such as 108 for 54 Mb/s; 128 + MCS: HT on 20 MHz with the long guard interval.
     */
    uint8_t rate;
    /*
     Frames on the air at most, 1 or more.
     */
    uint8_t tries;
} SDMAC_Series;

/*
 How a frame is to be sent. SDMAC_one_shot() makes one.
 */
typedef struct {
    /*
     Tried in order until an ACK comes.
     */
    SDMAC_Series series[4];
    /*
     How many of `series` count, 1 to 4.
     */
    uint8_t series_count;
    /*
     Other than 0: no ACK is expected, and the frame is sent once.
     */
    uint8_t no_ack;
    /*
     An SDMAC_RTS.
     */
    uint32_t rts;
    /*
     No attempt before this time of the host; 0: as soon as it may.
     */
    uint64_t not_before_ns;
    /*
     No attempt begins after this time of the host, with its RTS if there is one; 0: whenever.
     */
    uint64_t expires_ns;
} SDMAC_How;

/*
 The end of a request.
 */
typedef struct {
    /*
     Which one.
     */
    uint64_t id;
    /*
     An SDMAC_OUTCOME.
     */
    uint32_t outcome;
    /*
     An SDMAC_REFUSAL.
     */
    uint32_t refusal;
    /*
     Frames of it that went on the air.
     */
    uint16_t attempts;
    /*
     Series of the last one, from 0.
     */
    uint8_t series;
    /*
     An SDMAC_QUEUE: `ac` of the request.
     */
    uint32_t ac;
    /*
     Rate of the last one, in units of 100 kb/s.
     */
    uint32_t rate_100kbps;
    /*
     When the frame was at the planes t1 to t9, host time; 0 where this host cannot see the plane.
     */
    uint64_t stamps_ns[9];
} SDMAC_Confirm;

/*
 What came with a received frame.
 */
typedef struct {
    /*
     Its number on this interface, from 1: a gap says that as many were lost for want of being fetched.
     */
    uint64_t idr;
    /*
     Octets of the frame without FCS.
     */
    size_t octets;
    /*
     When it was told, host time.
     */
    uint64_t at_ns;
    /*
     Adapter time of its first bit, microseconds; 0 where the adapter does not tell.
     */
    uint64_t tsf_us;
    /*
     Rate in units of 100 kb/s.
     */
    uint32_t rate_100kbps;
    /*
     An SDMAC_QUEUE: the access category it was sent with.
     */
    uint32_t ac;
    /*
     dBm; 0 where the adapter does not tell.
     */
    int32_t signal_dbm;
} SDMAC_Indication;

/*
 A received beacon.
 */
typedef struct {
    /*
     The frame.
     */
    SDMAC_Indication received;
    /*
     Whose.
     */
    uint8_t bssid[6];
    /*
     Time between beacons, in units of 1024 microseconds.
     */
    uint16_t interval_tu;
    /*
     The sender's TSF, microseconds.
     */
    uint64_t timestamp_us;
} SDMAC_Beacon;

/*
 EDCA parameters of a queue.
 */
typedef struct {
    /*
     Slots after SIFS before the countdown starts, 1 to 15.
     */
    uint8_t aifsn;
    /*
     First contention window, 2^n - 1 slots.
     */
    uint16_t cw_min;
    /*
     Largest contention window, 2^n - 1 slots.
     */
    uint16_t cw_max;
    /*
     TXOP limit, microseconds; 0: one MSDU.
     */
    uint32_t txop_us;
} SDMAC_Edca;

/*
 What an adapter has counted since its start.
 */
typedef struct {
    /*
     Frames sent, without responses.
     */
    uint64_t tx_frames;
    /*
     Of these, frames that were acknowledged.
     */
    uint64_t tx_acked;
    /*
     ACKs and CTSs sent.
     */
    uint64_t tx_responses;
    /*
     Frames received without error, for whomever.
     */
    uint64_t rx_frames;
    /*
     Frames whose reception began and failed.
     */
    uint64_t rx_errors;
    /*
     Repetitions that were dropped.
     */
    uint64_t rx_duplicates;
    /*
     Time on the air, microseconds.
     */
    uint64_t tx_time_us;
    /*
     Time in which the medium was sensed busy, microseconds.
     */
    uint64_t busy_time_us;
} SDMAC_Counters;

/*
 What an adapter follows the clock of an ad hoc network by.
 */
typedef struct {
    /*
     Beacon interval, in units of 1024 us; 0: it follows none.
     */
    uint16_t interval_tu;
    /*
     ATIM window, in the same units.
     */
    uint16_t atim_window_tu;
} SDMAC_BeaconTiming;

/*
 The value of an attribute: SDMAC_NAME says which of the fields counts.
 */
typedef struct {
    /*
     See SDMAC_NAME.
     */
    int64_t number;
    /*
     See SDMAC_NAME.
     */
    uint8_t address[6];
    /*
     See SDMAC_NAME.
     */
    SDMAC_Edca edca;
    /*
     See SDMAC_NAME.
     */
    SDMAC_Counters counters;
    /*
     See SDMAC_NAME.
     */
    SDMAC_Series series[4];
    /*
     How many of `series` count.
     */
    uint8_t series_count;
    /*
     See SDMAC_NAME.
     */
    SDMAC_BeaconTiming timing;
    /*
     Planes t1 to t9, host time; 0 where this host cannot see the plane.
     */
    uint64_t stamps_ns[9];
} SDMAC_Value;

/*
 The answer to a change of an attribute that SDMAC_DATA_set() did not wait for.
 */
typedef struct {
    /*
     The attribute, an SDMAC_NAME.
     */
    uint32_t name;
    /*
     As it was asked for.
     */
    uint64_t id;
    /*
     As it was asked for.
     */
    uint32_t ac;
    /*
     An SDMAC_STATUS: whether the adapter has taken it.
     */
    int32_t status;
} SDMAC_SetAnswer;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Opens a host by its name:

 - "simulator:2": stations of 802.11a that hear each other, in virtual time; ",seed=7" and ",loss=0.1" (of data frames) may
   follow.
 - "ar9170:2": the same of 802.11g, each with the project's driver over an emulated AR9170 stick.
 - "usb:any@2412": an AR9170 stick of this computer, or "usb:1-2@2412" by where it is plugged in; ",firmware=FILE" may
   follow, where it is not that of Debian. Only emulated ones have been tried: one of hardware also wants the tables of its PHY,
   which are not here, so expect it to hear nothing.
 - "linux:phy0@5180,phy1@5180": radios of this computer with their channels in MHz; it needs CAP_NET_ADMIN and CAP_NET_RAW.

 NULL if that fails; then `why`, unless NULL, has a sentence of at most `room` octets, with the null octet.
 */
SDMAC_Host *SDMAC_open(const char *name,
                       char *why,
                       size_t room);

/*
 Ends a host; frames on their way end as they may. NULL is nothing to end.
 */
void SDMAC_close(SDMAC_Host *host);

/*
 Interfaces of a host; 0 for NULL.
 */
uint32_t SDMAC_interfaces(const SDMAC_Host *host);

/*
 The host's clock, ns; 0 for NULL.
 */
uint64_t SDMAC_now(const SDMAC_Host *host);

/*
 Lets `wait_ns` pass; the host works meanwhile.
 */
int SDMAC_wait(SDMAC_Host *host, uint64_t wait_ns);

/*
 Why the host is broken (SDMAC_STATUS_BROKEN): a sentence, empty if it is not. Valid until the next call with this host.
 */
const char *SDMAC_why(const SDMAC_Host *host);

/*
 An SDMAC_STATUS in words.
 */
const char *SDMAC_text(int status);

/*
 A confirmed one-shot: one frame on the air at this rate, in the units of SDMAC_Series.
 */
SDMAC_How SDMAC_one_shot(uint8_t rate);

/*
 Up to `tries` frames at this rate, in the units of SDMAC_Series.
 */
SDMAC_How SDMAC_multi_shot(uint8_t rate, uint8_t tries);

/*
 Writes a data frame between stations into `frame`: header, LLC and SNAP, payload. Its length, or an SDMAC_STATUS.
 `sequence` is the number of the frame, of which 12 bits count: one more for each new frame. The addresses have 6 octets each.
 */
ptrdiff_t SDMAC_data_frame(uint8_t *frame,
                           size_t room,
                           const uint8_t *to,
                           const uint8_t *from,
                           const uint8_t *bssid,
                           uint16_t sequence,
                           uint16_t ethertype,
                           const uint8_t *payload,
                           size_t payload_octets);

/*
 Asks for `frame` (an MPDU without FCS; the adapter fills in Duration and FCS, the program everything else) to be sent on
 the queue `ac` of an interface, as `how` says. `id` is the program's own and must not be that of an open request of this
 interface. Returns at once; exactly one confirm follows.
 */
int SDMAC_DATA_req(SDMAC_Host *host,
                   uint32_t interface,
                   uint64_t id,
                   const uint8_t *frame,
                   size_t frame_octets,
                   uint32_t ac,
                   const SDMAC_How *how);

/*
 The next confirm of an interface, waiting for `wait_ns` at most. Without an open request it returns at once.
 */
int SDMAC_DATA_con(SDMAC_Host *host, uint32_t interface, SDMAC_Confirm *confirm, uint64_t wait_ns);

/*
 The next frame that an interface has received, without FCS, waiting for `wait_ns` at most. A frame longer than `room` is
 lost; its length is told.
 */
int SDMAC_DATA_ind(SDMAC_Host *host,
                   uint32_t interface,
                   SDMAC_Indication *about,
                   uint8_t *frame,
                   size_t room,
                   uint64_t wait_ns);

/*
 The next beacon that an interface has received, waiting for `wait_ns` at most. `frame` may be NULL, for a program that
 only wants to know that there was one.
 */
int SDMAC_beacon_ind(SDMAC_Host *host,
                     uint32_t interface,
                     SDMAC_Beacon *about,
                     uint8_t *frame,
                     size_t room,
                     uint64_t wait_ns);

/*
 Sets the attribute `name` (an SDMAC_NAME) of an interface, of its packet `id` or its queue `ac` where the name says so;
 otherwise these do not matter. Waits for `wait_ns` at most until the adapter has answered: without an answer by then it
 ends with SDMAC_STATUS_NOTHING, and SDMAC_DATA_set_con() tells the answer once it is there.
 */
int SDMAC_DATA_set(SDMAC_Host *host,
                   uint32_t interface,
                   uint32_t name,
                   const SDMAC_Value *value,
                   uint64_t id,
                   uint32_t ac,
                   uint64_t wait_ns);

/*
 The next answer to a change that SDMAC_DATA_set() did not wait for, in the order of the answers, waiting for `wait_ns` at most.
 Without a change that has no answer it returns at once.
 */
int SDMAC_DATA_set_con(SDMAC_Host *host,
                       uint32_t interface,
                       SDMAC_SetAnswer *answer,
                       uint64_t wait_ns);

/*
 Reads the attribute `name` (an SDMAC_NAME) of an interface, of its packet `id` or its queue `ac` where the name says so;
 otherwise these do not matter. It does not wait for the adapter: the answer is what the host knows.
 */
int SDMAC_DATA_get(SDMAC_Host *host,
                   uint32_t interface,
                   uint32_t name,
                   SDMAC_Value *value,
                   uint64_t id,
                   uint32_t ac);

/*
 Takes the request `id` back if it is not too late. Its confirm still comes.
 */
int SDMAC_DATA_abort(SDMAC_Host *host, uint32_t interface, uint64_t id);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SDMAC_H */
