/* Ad hoc networks (IBSS) with power save, for C firmware. Made by `cargo xtask c header` from bindings/ibss/src: change it
 * there.
 *
 * MIT OR Apache-2.0 */

#ifndef SDMAC_IBSS_H
#define SDMAC_IBSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* In words, once:
 *
 * - The firmware has a radio: an SDMAC_IBSS_Radio with functions that the library calls. It tells the library what happens:
 *   SDMAC_IBSS_timer(), _received(), _confirm(). Above, it hands payloads down with SDMAC_IBSS_submit(), and gets them
 *   through `deliver` of its radio.
 * - Nothing blocks, nothing is allocated. All memory of a station is where SDMAC_IBSS_init() is told to put it.
 * - Functions of the radio must not call the library. What they cause is told after they have returned, from the same loop;
 *   interrupt handlers set flags.
 * - Times are nanoseconds of one monotonic clock of the firmware. After each call the firmware asks SDMAC_IBSS_deadline()
 *   and calls SDMAC_IBSS_timer() then: never early, as little late as it can.
 * - The firmware has a function SDMAC_IBSS_panicked(), which does not return: it is called when a fault of the library is
 *   found. */


/*
 Octets of a payload at most: the MTU that IPv6 asks for.
 */
#define SDMAC_IBSS_PAYLOAD 1280

/*
 Octets of memory for a station, aligned to 16.
 */
#define SDMAC_IBSS_OCTETS 8448

/*
 No deadline.
 */
#define SDMAC_IBSS_NEVER UINT64_MAX

/*
 How a request ended, or a payload.
 */
typedef enum {
    /*
     An ACK came.
     */
    SDMAC_IBSS_OUTCOME_ACKED = 0,
    /*
     No ACK came; frames that ask for none end like this, too.
     */
    SDMAC_IBSS_OUTCOME_NOT_ACKED = 1,
    /*
     The radio did not take it; a payload: it could not be protected.
     */
    SDMAC_IBSS_OUTCOME_REFUSED = 2,
    /*
     Taken back, or lost in a reset; a payload: the network was left.
     */
    SDMAC_IBSS_OUTCOME_ABORTED = 3,
    /*
     Its time was over; a payload: nobody was there for it in so many beacon intervals.
     */
    SDMAC_IBSS_OUTCOME_EXPIRED = 4,
    /*
     Nobody knows.
     */
    SDMAC_IBSS_OUTCOME_UNKNOWN = 5,
} SDMAC_IBSS_Outcome;

/*
 A station.
 */
typedef struct SDMAC_IBSS_Station SDMAC_IBSS_Station;

/*
 What a radio draws by state, milliwatts.
 */
typedef struct {
    /*
     While it sends.
     */
    uint32_t transmit_mw;
    /*
     While it receives a frame.
     */
    uint32_t receive_mw;
    /*
     While it listens.
     */
    uint32_t listen_mw;
    /*
     While it dozes.
     */
    uint32_t doze_mw;
} SDMAC_IBSS_Power;

/*
 How a station takes part. SDMAC_IBSS_config() fills one in.
 */
typedef struct {
    /*
     Its address.
     */
    uint8_t address[6];
    /*
     Name of the network: UTF-8, 32 octets at most; it must stay where it is for good.
     */
    const char *ssid;
    /*
     Octets of `ssid`.
     */
    size_t ssid_octets;
    /*
     Channel as beacons tell it; 0: they do not (5 GHz).
     */
    uint8_t channel;
    /*
     Beacon interval of a network that it creates, in units of 1024 us, 1 or more.
     */
    uint16_t interval_tu;
    /*
     ATIM window of a network that it creates, in the same units, below the interval; 0: no power save.
     */
    uint16_t atim_window_tu;
    /*
     BSSID of a network that it creates; all zero: random.
     */
    uint8_t bssid[6];
    /*
     EtherType of what it carries, such as 0x86dd for IPv6.
     */
    uint16_t ethertype;
    /*
     How long it looks for a network before it creates one, ms.
     */
    uint16_t scan_ms;
    /*
     It asks for the network instead of only listening.
     */
    bool active_scan;
    /*
     Whether it dozes where the network allows it.
     */
    bool power_save;
    /*
     How long before a beacon is due it wakes up, us: with a window at most half of what that leaves of an interval, which is
     the time for payloads.
     */
    uint32_t wake_ahead_us;
    /*
     That time adapts itself to the host, between 2 and 16 units of 1024 us; `wake_ahead_us` is where it begins.
     */
    bool adapt_wake_ahead;
    /*
     A station that is awake only because it sent the beacon dozes all the same, and sends a beacon whenever so much has passed,
     us, 1000 or more; 0: it listens, as the standard has it.
     */
    uint32_t soft_beacon_us;
    /*
     ATIMs name the final destination and are handed on, so that packets cross several hops in one interval; the radio then has
     `destination` and `next_hop`. For all stations of a network, or none.
     */
    bool multi_hop;
    /*
     16 octets: data frames are protected by CCMP-128 with this key, which all stations of the network have; it is copied. NULL: plain
     data.
     */
    const uint8_t *key;
    /*
     Number of the key, 0 to 3.
     */
    uint8_t key_id;
    /*
     Packet number of the first frame, below 2^48: above all that this station has used with the key, before a restart, too. Who
     has no memory for it takes a clock: seconds since 1970, times 2^16. 0 has no meaning with a key.
     */
    uint64_t first_packet;
    /*
     Rate of data to one station: below 128 in units of 500 kb/s, 128 + MCS for HT.
     */
    uint8_t rate;
    /*
     Rate of everything else; no HT rate.
     */
    uint8_t group_rate;
    /*
     Tries of frames to one station, 1 or more.
     */
    uint8_t tries;
    /*
     Beacon intervals that a frame waits for its receiver at most.
     */
    uint8_t lifetime_intervals;
    /*
     The delay of a beacon is drawn from 0 to 2 `cw_min` slots of this length, us: longer than it takes until a station
     knows that another has sent its beacon. 2 `cw_min` of them end within the interval.
     */
    uint32_t slot_us;
    /*
     See `slot_us`.
     */
    uint16_t cw_min;
    /*
     What is random follows from this and the address.
     */
    uint64_t seed;
    /*
     What the radio draws, for the energy in SDMAC_IBSS_Counters.
     */
    SDMAC_IBSS_Power power;
} SDMAC_IBSS_Config;

/*
 How one frame is to be sent.
 */
typedef struct {
    /*
     Below 128 in units of 500 kb/s, 128 + MCS for HT.
     */
    uint8_t rate;
    /*
     Frames on the air at most.
     */
    uint8_t tries;
    /*
     Whether an ACK is expected.
     */
    bool ack;
    /*
     0 to 4: background, best effort, video, voice, beacons.
     */
    uint8_t queue;
    /*
     The adapter is to write its TSF into the frame, at octet 24, at the moment it is sent: it is a beacon or a probe
     response.
     */
    bool timestamp;
    /*
     No attempt after this time; 0: whenever.
     */
    uint64_t expires_ns;
} SDMAC_IBSS_How;

/*
 What the firmware's radio does, and the layer above. `request`, `abort`, `get_tsf`, `set_tsf` and `set_receiver` have to be there;
 the others may be NULL.
 */
typedef struct {
    /*
     Given to each of the functions.
     */
    void *context;
    /*
     Sends a frame without FCS; the octets are valid until it returns. Exactly one SDMAC_IBSS_confirm() with the token
     has to follow, whatever happens.
     */
    void (*request)(void *context,
                    uint64_t token,
                    const uint8_t *frame,
                    size_t octets,
                    const SDMAC_IBSS_How *how);
    /*
     Takes a request back if it is not too late. Its confirm still has to come.
     */
    void (*abort)(void *context, uint64_t token);
    /*
     The adapter's time, us, into `tsf_us`; false if it cannot be told.
     */
    bool (*get_tsf)(void *context, uint64_t *tsf_us);
    /*
     Sets the adapter's time; false if that cannot be done.
     */
    bool (*set_tsf)(void *context, uint64_t tsf_us);
    /*
     Switches the receiver on or off: off, the radio may sleep until it is to be on again.
     */
    bool (*set_receiver)(void *context, bool on);
    /*
     Tells which network it is in: 6 octets.
     */
    bool (*set_bssid)(void *context, const uint8_t *bssid);
    /*
     Tells the beacon interval of its network and the ATIM window, both in units of 1024 us, and 0 when it has left it. For an adapter
     that follows the clock of its network by itself: the library then leaves it to that. NULL: the library sets the adapter's time.
     */
    bool (*set_beacon_timing)(void *context, uint16_t interval_tu, uint16_t atim_window_tu);
    /*
     A payload for the firmware; the octets are valid until it returns.
     */
    void (*deliver)(void *context, const uint8_t *from, const uint8_t *payload, size_t octets);
    /*
     The payload with this number, which SDMAC_IBSS_submit() told, has come to its end, by an SDMAC_IBSS_OUTCOME: each that was taken
     once. `attempts`: frames of the last try that were on the air. What is for a group ends as not acked.
     */
    void (*sent)(void *context, uint64_t number, uint32_t outcome, uint16_t attempts);
    /*
     With `multi_hop`: whom a payload is for in the end, into 6 octets at `destination`; `next` is the neighbour that it goes to first.
     */
    void (*destination)(void *context,
                        const uint8_t *next,
                        const uint8_t *payload,
                        size_t octets,
                        uint8_t *destination);
    /*
     With `multi_hop`: the neighbour over which `destination` is reached, into 6 octets at `next`; false if there is no way.
     */
    bool (*next_hop)(void *context, const uint8_t *destination, uint8_t *next);
} SDMAC_IBSS_Radio;

/*
 What a station has counted since its start.
 */
typedef struct {
    /*
     Beacons sent.
     */
    uint64_t beacons;
    /*
     Beacons of the network that were heard.
     */
    uint64_t beacons_heard;
    /*
     Times that another network of the name was joined, because its clock was ahead.
     */
    uint64_t merges;
    /*
     ATIMs that were acknowledged, and those to groups.
     */
    uint64_t atims;
    /*
     Beacon intervals, and those that it dozed through after the ATIM window.
     */
    uint64_t intervals;
    /*
     See `intervals`.
     */
    uint64_t intervals_dozed;
    /*
     Payloads from above.
     */
    uint64_t submitted;
    /*
     Of these, without room.
     */
    uint64_t no_room;
    /*
     Of these, given up.
     */
    uint64_t expired;
    /*
     Of these, acknowledged.
     */
    uint64_t acked;
    /*
     Payloads delivered.
     */
    uint64_t delivered;
    /*
     ATIMs sent because others had asked, with `multi_hop`, and those that had no way on.
     */
    uint64_t atims_asked_on;
    /*
     See `atims_asked_on`.
     */
    uint64_t atims_unrouted;
    /*
     With a key: data frames protected, opened, and dropped (without protection, of another key, too old, changed).
     */
    uint64_t sealed;
    /*
     See `sealed`.
     */
    uint64_t opened;
    /*
     See `sealed`.
     */
    uint64_t dropped;
    /*
     How long the radio sent, received for this station, listened and dozed, us; ACKs are in it.
     */
    uint64_t transmit_us;
    /*
     See `transmit_us`.
     */
    uint64_t receive_us;
    /*
     See `transmit_us`.
     */
    uint64_t listen_us;
    /*
     See `transmit_us`.
     */
    uint64_t doze_us;
    /*
     What that cost with `power` of the config, microjoules.
     */
    uint64_t microjoules;
} SDMAC_IBSS_Counters;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Fills in a config for a station with this address: 100 TU without power save, a scan of 7 s, 6 Mb/s, IPv6, slots of
 802.11a, and round numbers for what the radio draws (1500, 800, 800 and 10 mW). The name of the network is missing.
 */
void SDMAC_IBSS_config(SDMAC_IBSS_Config *config,
                       const uint8_t *address);

/*
 Makes a station in `memory` and starts it; it looks for its network from now on. NULL if the memory is too small or not
 aligned, if a number in `config` has no meaning, or if `radio` lacks a function that this config takes. Config and radio are copied; the memory
 is the library's until the firmware uses it for something else.
 */
SDMAC_IBSS_Station *SDMAC_IBSS_init(uint8_t *memory,
                                    size_t memory_octets,
                                    const SDMAC_IBSS_Config *config,
                                    const SDMAC_IBSS_Radio *radio,
                                    uint64_t now_ns);

/*
 When SDMAC_IBSS_timer() is to be called next; SDMAC_IBSS_NEVER: not by itself.
 */
uint64_t SDMAC_IBSS_deadline(const SDMAC_IBSS_Station *station);

/*
 Tells that the deadline has passed. Does nothing if it has not.
 */
void SDMAC_IBSS_timer(SDMAC_IBSS_Station *station, uint64_t now_ns);

/*
 Tells how a request ended: `outcome` is an SDMAC_IBSS_OUTCOME, `attempts` how many frames of it went on the air.
 */
void SDMAC_IBSS_confirm(SDMAC_IBSS_Station *station,
                        uint64_t now_ns,
                        uint64_t token,
                        uint32_t outcome,
                        uint16_t attempts,
                        uint8_t rate);

/*
 Tells a received frame without FCS: every frame to this station or to a group. `tsf_us`: adapter time of its first bit,
 NULL if that is not known; the clock then stays behind that of the network by the time of a beacon on the air and what the host
 takes to tell it.
 */
void SDMAC_IBSS_received(SDMAC_IBSS_Station *station,
                         uint64_t now_ns,
                         const uint8_t *frame,
                         size_t frame_octets,
                         uint8_t rate,
                         const uint64_t *tsf_us);

/*
 Hands a payload down, for `to` (6 octets). False if there is no room for it now, or never: it is longer than
 SDMAC_IBSS_PAYLOAD. `number`, unless it is NULL, gets the number by which `sent` of the radio tells how it ended; it is there before
 anything is done with the payload.
 */
bool SDMAC_IBSS_submit(SDMAC_IBSS_Station *station,
                       uint64_t now_ns,
                       const uint8_t *to,
                       const uint8_t *payload,
                       size_t payload_octets,
                       uint64_t *number);

/*
 Leaves the network; what waits is given up.
 */
void SDMAC_IBSS_leave(SDMAC_IBSS_Station *station, uint64_t now_ns);

/*
 Looks for the network again, after it was left.
 */
void SDMAC_IBSS_begin(SDMAC_IBSS_Station *station, uint64_t now_ns);

/*
 Whether it is in a network; then `bssid` (6 octets, or NULL) tells which.
 */
bool SDMAC_IBSS_network(const SDMAC_IBSS_Station *station, uint8_t *bssid);

/*
 Stations that were heard of late.
 */
size_t SDMAC_IBSS_neighbours(const SDMAC_IBSS_Station *station);

/*
 Payloads that wait for their receivers.
 */
size_t SDMAC_IBSS_waiting(const SDMAC_IBSS_Station *station);

/*
 What it has counted until now.
 */
void SDMAC_IBSS_counters(const SDMAC_IBSS_Station *station, uint64_t now_ns, SDMAC_IBSS_Counters *counters);

/*
 The firmware's: what is to be done when a fault was found in this line of this file of the library; its name has
 `octets` octets and no null octet. Does not return.
 */
extern void SDMAC_IBSS_panicked(const char *file,
                                size_t octets,
                                uint32_t line);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SDMAC_IBSS_H */
