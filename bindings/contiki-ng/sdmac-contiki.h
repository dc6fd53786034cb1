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
/* The clock of Contiki-NG tells the time in ticks, so a beacon may be late by one: a slot is as long as that. */
#ifndef SDMAC_CONF_SLOT_US
#define SDMAC_CONF_SLOT_US 1000
#endif
#ifndef SDMAC_CONF_CW_MIN
#define SDMAC_CONF_CW_MIN 7
#endif
/* Packets to one neighbour that wait here for those before them, and received ones that wait for the stack. */
#ifndef SDMAC_CONF_QUEUE
#define SDMAC_CONF_QUEUE 4
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

/* A frame was received, without FCS; `tsf_us` as SDMAC_IBSS_received() has it. */
void sdmac_frame_received(const uint8_t *frame, size_t octets, uint8_t rate, const uint64_t *tsf_us);
/* A request of the radio has ended: see SDMAC_IBSS_confirm(). */
void sdmac_frame_sent(uint64_t token, uint32_t outcome, uint16_t attempts, uint8_t rate);

/* The station, once the MAC driver is up; NULL before. */
SDMAC_IBSS_Station *sdmac_station(void);

/* MAC addresses are the 48-bit half of Contiki-NG's 64-bit ones: ff fe in the middle, the local bit turned. */
void sdmac_to_linkaddr(linkaddr_t *to, const uint8_t from[6]);
void sdmac_from_linkaddr(uint8_t to[6], const linkaddr_t *from);

extern const struct mac_driver sdmac_mac_driver;
extern const struct network_driver sdmac_network_driver;
extern const struct radio_driver sdmac_radio_driver;

#endif
