/* Ad hoc 802.11 with power save below Contiki-NG: three drivers for its NETSTACK over the library of bindings/ibss.
 *
 *   uIP, RPL, UDP, CoAP             Contiki-NG
 *   sdmac_network_driver            uIP's packets as they are, without 6LoWPAN: a frame of 802.11 holds a whole one
 *   sdmac_mac_driver                queue, timer, and the library
 *   sdmac_radio_driver              on, off and what can be asked of the radio
 *   sdmac_platform_*                the port: a radio that sends and receives frames of 802.11
 *
 * docs/src/c.md of the project says how it is built. MIT OR Apache-2.0 */
#ifndef SDMAC_CONTIKI_H
#define SDMAC_CONTIKI_H

#include <stdbool.h>
#include <stdint.h>

#include "net/linkaddr.h"
#include "sdmac_ibss.h"

/* Name of the network. */
#ifndef SDMAC_CONF_SSID
#define SDMAC_CONF_SSID "contiki"
#endif
/* Channel, as beacons tell it; 0 at 5 GHz. */
#ifndef SDMAC_CONF_CHANNEL
#define SDMAC_CONF_CHANNEL 1
#endif
/* Beacon interval and ATIM window of a network that is created, in units of 1024 us. A window of 0: no power save. */
#ifndef SDMAC_CONF_INTERVAL
#define SDMAC_CONF_INTERVAL 100
#endif
#ifndef SDMAC_CONF_ATIM_WINDOW
#define SDMAC_CONF_ATIM_WINDOW 20
#endif
/* 1: the port has sdmac_platform_alarm(), a timer of its own. 0: the clock of Contiki-NG is the timer, whose ticks then have to be a
 * millisecond or less: ATIM windows and the contention of beacons are some milliseconds long. */
#ifndef SDMAC_CONF_ALARM
#define SDMAC_CONF_ALARM 0
#endif
/* A slot of the contention of beacons, us. With the clock of Contiki-NG a beacon may be late by a tick: a slot is as long as that. */
#ifndef SDMAC_CONF_SLOT_US
#define SDMAC_CONF_SLOT_US (SDMAC_CONF_ALARM ? 250 : 1000)
#endif
/* How long before a beacon is due the radio is woken, us: two ticks, or less with an alarm; and whether that time adapts itself to how
 * late it turns out to be. */
#ifndef SDMAC_CONF_WAKE_AHEAD_US
#define SDMAC_CONF_WAKE_AHEAD_US (SDMAC_CONF_ALARM ? 1024 : 2000000L / CLOCK_SECOND)
#endif
#ifndef SDMAC_CONF_ADAPT_WAKE_AHEAD
#define SDMAC_CONF_ADAPT_WAKE_AHEAD 1
#endif
/* Who is awake only because it sent the beacon dozes, and sends others in this period, us, 1000 or more; 0: it listens. */
#ifndef SDMAC_CONF_SOFT_BEACON_US
#define SDMAC_CONF_SOFT_BEACON_US 0
#endif
/* 1: packets cross several hops in one interval. The port's radio then has `destination` and `next_hop`. */
#ifndef SDMAC_CONF_MULTI_HOP
#define SDMAC_CONF_MULTI_HOP 0
#endif
/* SDMAC_CONF_KEY: 16 octets, {1, 2, ...}: packets are protected with this key. The port then has sdmac_platform_first_packet(). */
#ifndef SDMAC_CONF_CW_MIN
#define SDMAC_CONF_CW_MIN 7
#endif
/* Packets to one neighbour that wait here for those before them, and received ones that wait for the stack. */
#ifndef SDMAC_CONF_QUEUE
#define SDMAC_CONF_QUEUE 4
#endif

/* What of this is written to the log of Contiki-NG: errors. */
#ifndef SDMAC_CONF_LOG_LEVEL
#define SDMAC_CONF_LOG_LEVEL LOG_LEVEL_ERR
#endif

/* What the port has. It calls sdmac_frame_received() and sdmac_frame_sent() from a process, not from an interrupt handler. */

/* Switches the radio on; false if there is none. */
bool sdmac_platform_init(void);
/* A monotonic clock, ns. */
uint64_t sdmac_platform_now(void);
/* The address of the radio. */
void sdmac_platform_address(uint8_t address[6]);
/* The functions of the radio; `deliver` is set by the MAC driver. */
void sdmac_platform_radio(SDMAC_IBSS_Radio *radio);

#if SDMAC_CONF_ALARM
/* Sets the timer, in place of what it was set to: it calls sdmac_alarm() at this time of sdmac_platform_now(), or as soon as it can;
 * UINT64_MAX: never. */
void sdmac_platform_alarm(uint64_t at);
/* From an interrupt handler, too. */
void sdmac_alarm(void);
#endif
#ifdef SDMAC_CONF_KEY
/* What SDMAC_IBSS_Config has as `first_packet`. */
uint64_t sdmac_platform_first_packet(void);
#endif

/* A frame was received, without FCS; `tsf_us` as SDMAC_IBSS_received() has it. */
void sdmac_frame_received(const uint8_t *frame, size_t octets, uint8_t rate, const uint64_t *tsf_us);
/* A request of the radio has ended: see SDMAC_IBSS_confirm(). */
void sdmac_frame_sent(uint64_t token, uint32_t outcome, uint16_t attempts, uint8_t rate);

/* The station, once the MAC driver is up; NULL before. It stays NULL where a setting has no meaning, or the port's radio lacks a function:
 * that is in the log, once, and whatever is sent then ends with MAC_TX_ERR_FATAL. */
SDMAC_IBSS_Station *sdmac_station(void);

/* Packets that were dropped between the stack and the air, since the start, or since the application has cleared them. */
struct sdmac_drops {
    /* To be sent, while there was no station. */
    uint32_t out_no_station;
    /* To be sent, and longer than a packetbuf or SDMAC_IBSS_PAYLOAD. */
    uint32_t out_too_long;
    /* To be sent, while the queue to the library was full: MAC_TX_QUEUE_FULL. */
    uint32_t out_no_room;
    /* To be sent, and refused by the library or the radio. What is for everybody does not wait until the library has room. */
    uint32_t out_refused;
    /* Received, while the queue to the stack was full. */
    uint32_t in_no_room;
    /* Received, and longer than a packet may be or than the buffer of uIP. */
    uint32_t in_too_long;
};
extern struct sdmac_drops sdmac_drops;

/* MAC addresses are the 48-bit half of Contiki-NG's 64-bit ones: ff fe in the middle, the local bit turned. */
void sdmac_to_linkaddr(linkaddr_t *to, const uint8_t from[6]);
void sdmac_from_linkaddr(uint8_t to[6], const linkaddr_t *from);

extern const struct mac_driver sdmac_mac_driver;
extern const struct network_driver sdmac_network_driver;
extern const struct radio_driver sdmac_radio_driver;

#endif
