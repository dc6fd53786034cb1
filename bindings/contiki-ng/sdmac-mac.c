/* The MAC driver: the library with its timer, and the queues between it and the stack.
 *
 * Payloads go down as the library has room for them, and it tells of each how it ended. */
#include <string.h>

#include "contiki.h"
#include "net/ipv6/uip.h"
#include "net/netstack.h"
#include "net/packetbuf.h"
#include "sdmac-contiki.h"
#include "sys/log.h"

#define LOG_MODULE "sdmac"
#define LOG_LEVEL SDMAC_CONF_LOG_LEVEL

#if LINKADDR_SIZE != 8
#error "sdmac: link addresses of 8 octets are wanted: leave LINKADDR_CONF_SIZE as it is"
#endif
#if PACKETBUF_SIZE < SDMAC_IBSS_PAYLOAD
#error "sdmac: a whole packet of IPv6 goes through the packetbuf: set PACKETBUF_CONF_SIZE to 1280 or more"
#endif

/* no #if: CLOCK_SECOND may have a cast */
_Static_assert(SDMAC_CONF_ALARM || CLOCK_SECOND >= 1000,
               "sdmac: a tick of this clock is too long for ATIM windows: set SDMAC_CONF_ALARM to 1 and have "
               "sdmac_platform_alarm()");

struct outgoing {
    linkaddr_t to;
    enum { WAITS, BELOW, ENDED } state;
    uint64_t number;
    int status, tries;
    mac_callback_t sent;
    void *ptr;
    uint16_t octets;
    uint8_t payload[SDMAC_IBSS_PAYLOAD];
};

struct incoming {
    uint8_t from[6];
    uint16_t octets;
    uint8_t payload[SDMAC_IBSS_PAYLOAD];
};

static uint8_t memory[SDMAC_IBSS_OCTETS] __attribute__((aligned(16)));
static SDMAC_IBSS_Station *station;
static struct outgoing queue[SDMAC_CONF_QUEUE];
static struct incoming heard[SDMAC_CONF_QUEUE];
struct sdmac_drops sdmac_drops;
static unsigned queue_first, queue_length, heard_first, heard_length;

PROCESS(sdmac_process, "sdmac");

SDMAC_IBSS_Station *sdmac_station(void)
{
    return station;
}

void sdmac_to_linkaddr(linkaddr_t *to, const uint8_t from[6])
{
    memcpy(to->u8, from, 3);
    to->u8[3] = 0xff;
    to->u8[4] = 0xfe;
    memcpy(to->u8 + 5, from + 3, 3);
    to->u8[0] ^= 2;
}

void sdmac_from_linkaddr(uint8_t to[6], const linkaddr_t *from)
{
    memcpy(to, from->u8, 3);
    memcpy(to + 3, from->u8 + 5, 3);
    to[0] ^= 2;
}

/* From within a call of the library: the stack gets it later. */
static void deliver(void *context, const uint8_t *from, const uint8_t *payload, size_t octets)
{
    struct incoming *place = &heard[(heard_first + heard_length) % SDMAC_CONF_QUEUE];
    (void)context;
    if (octets > sizeof place->payload) {
        sdmac_drops.in_too_long++;
        return;
    }
    if (heard_length == SDMAC_CONF_QUEUE) {
        sdmac_drops.in_no_room++;
        return;
    }
    memcpy(place->from, from, 6);
    memcpy(place->payload, payload, octets);
    place->octets = (uint16_t)octets;
    heard_length++;
    process_poll(&sdmac_process);
}

void sdmac_frame_received(const uint8_t *frame, size_t octets, uint8_t rate, const uint64_t *tsf_us)
{
    SDMAC_IBSS_received(station, sdmac_platform_now(), frame, octets, rate, tsf_us);
    process_poll(&sdmac_process);
}

void sdmac_frame_sent(uint64_t token, uint32_t outcome, uint16_t attempts, uint8_t rate)
{
    SDMAC_IBSS_confirm(station, sdmac_platform_now(), token, outcome, attempts, rate);
    process_poll(&sdmac_process);
}

static int status_of(uint32_t outcome)
{
    switch (outcome) {
    case SDMAC_IBSS_OUTCOME_ACKED:
        return MAC_TX_OK;
    case SDMAC_IBSS_OUTCOME_NOT_ACKED:
    case SDMAC_IBSS_OUTCOME_EXPIRED:
        return MAC_TX_NOACK;
    default:
        return MAC_TX_ERR;
    }
}

/* From within a call of the library, too. What was for everybody has no place in the queue. */
static void ended(void *context, uint64_t number, uint32_t outcome, uint16_t attempts)
{
    (void)context;
    sdmac_drops.out_refused += outcome == SDMAC_IBSS_OUTCOME_REFUSED;
    for (unsigned i = 0; i < queue_length; i++) {
        struct outgoing *of = &queue[(queue_first + i) % SDMAC_CONF_QUEUE];
        if (of->state == BELOW && of->number == number) {
            of->status = status_of(outcome);
            of->tries = attempts;
            of->state = ENDED;
        }
    }
    process_poll(&sdmac_process);
}

/* The stack finds in the packetbuf whom a callback is about. */
static void tell(const struct outgoing *of)
{
    packetbuf_clear();
    packetbuf_set_addr(PACKETBUF_ADDR_RECEIVER, &of->to);
    mac_call_sent_callback(of->sent, of->ptr, of->status, of->tries);
}

static void work_queue(void)
{
    for (unsigned i = 0; i < queue_length; i++) {
        struct outgoing *of = &queue[(queue_first + i) % SDMAC_CONF_QUEUE];
        uint8_t to[6];
        if (of->state != WAITS)
            continue;
        sdmac_from_linkaddr(to, &of->to);
        of->state = BELOW; /* it may end before the call does */
        if (!SDMAC_IBSS_submit(station, sdmac_platform_now(), to, of->payload, of->octets, &of->number)) {
            of->state = WAITS;
            break; /* the library is full: later */
        }
    }
    while (queue_length > 0 && queue[queue_first].state == ENDED) {
        const struct outgoing *first = &queue[queue_first];
        /* the callback may send, and take the place */
        struct outgoing done = {
            .to = first->to, .sent = first->sent, .ptr = first->ptr, .status = first->status, .tries = first->tries};
        queue_first = (queue_first + 1) % SDMAC_CONF_QUEUE;
        queue_length--;
        tell(&done);
    }
}

static void work_heard(void)
{
    while (heard_length > 0) {
        struct incoming *first = &heard[heard_first];
        linkaddr_t from;
        packetbuf_clear();
        packetbuf_copyfrom(first->payload, first->octets);
        sdmac_to_linkaddr(&from, first->from);
        packetbuf_set_addr(PACKETBUF_ADDR_SENDER, &from);
        packetbuf_set_addr(PACKETBUF_ADDR_RECEIVER, &linkaddr_node_addr);
        heard_first = (heard_first + 1) % SDMAC_CONF_QUEUE;
        heard_length--;
        NETSTACK_MAC.input();
    }
}

#if SDMAC_CONF_ALARM
static void wake_at(uint64_t deadline)
{
    sdmac_platform_alarm(deadline);
}

void sdmac_alarm(void)
{
    process_poll(&sdmac_process);
}
#else
static struct etimer timer;

/* In ticks, rounded up, since early does nothing. */
static void wake_at(uint64_t deadline)
{
    uint64_t now = sdmac_platform_now(), left = deadline > now ? deadline - now : 0;
    /* a day at most: early does no harm, either */
    uint64_t day = UINT64_C(86400000000000), ticks;
    if (deadline == SDMAC_IBSS_NEVER) {
        etimer_stop(&timer);
        return;
    }
    ticks = ((left < day ? left : day) * CLOCK_SECOND + UINT64_C(999999999)) / UINT64_C(1000000000);
    etimer_set(&timer, ticks > 0 ? (clock_time_t)ticks : 1);
}
#endif

/* What is due, then the next deadline. */
static void work(void)
{
    SDMAC_IBSS_timer(station, sdmac_platform_now());
    work_heard();
    work_queue();
    wake_at(SDMAC_IBSS_deadline(station));
}

PROCESS_THREAD(sdmac_process, ev, data)
{
    PROCESS_BEGIN();
    (void)data;
    for (;;) {
        work();
        PROCESS_WAIT_EVENT_UNTIL(ev == PROCESS_EVENT_POLL || ev == PROCESS_EVENT_TIMER);
    }
    PROCESS_END();
}

static void init(void)
{
    static const char ssid[] = SDMAC_CONF_SSID;
    SDMAC_IBSS_Radio radio;
    SDMAC_IBSS_Config config;
    uint8_t address[6];
    static bool is_done;
    if (is_done)
        return;
    is_done = true;
    sdmac_platform_address(address);
    sdmac_to_linkaddr(&linkaddr_node_addr, address);
    memset(&radio, 0, sizeof radio);
    sdmac_platform_radio(&radio);
    radio.deliver = deliver;
    radio.sent = ended;
    SDMAC_IBSS_config(&config, address);
    config.ssid = ssid;
    config.ssid_octets = sizeof ssid - 1;
    config.channel = SDMAC_CONF_CHANNEL;
    config.interval_tu = SDMAC_CONF_INTERVAL;
    config.atim_window_tu = SDMAC_CONF_ATIM_WINDOW;
    config.slot_us = SDMAC_CONF_SLOT_US;
    config.cw_min = SDMAC_CONF_CW_MIN;
    config.wake_ahead_us = SDMAC_CONF_WAKE_AHEAD_US;
    config.adapt_wake_ahead = SDMAC_CONF_ADAPT_WAKE_AHEAD;
    config.soft_beacon_us = SDMAC_CONF_SOFT_BEACON_US;
    config.multi_hop = SDMAC_CONF_MULTI_HOP;
#ifdef SDMAC_CONF_KEY
    static const uint8_t key[16] = SDMAC_CONF_KEY;
    config.key = key;
    config.first_packet = sdmac_platform_first_packet();
#endif
    station = SDMAC_IBSS_init(memory, sizeof memory, &config, &radio, sdmac_platform_now());
    if (station != NULL)
        process_start(&sdmac_process, NULL);
    else
        LOG_ERR("no station, so nothing will be sent or received: a setting SDMAC_CONF_* has no meaning, or the radio of "
                "sdmac_platform_radio() lacks a function; sdmac_ibss.h says which are wanted\n");
}

static void send(mac_callback_t sent, void *ptr)
{
    const linkaddr_t *to = packetbuf_addr(PACKETBUF_ADDR_RECEIVER);
    struct outgoing *place = &queue[(queue_first + queue_length) % SDMAC_CONF_QUEUE];
    int status = MAC_TX_QUEUE_FULL;
    if (station == NULL || packetbuf_datalen() > SDMAC_IBSS_PAYLOAD) {
        sdmac_drops.out_no_station += station == NULL;
        sdmac_drops.out_too_long += station != NULL;
        mac_call_sent_callback(sent, ptr, MAC_TX_ERR_FATAL, 0);
        return;
    }
    if (linkaddr_cmp(to, &linkaddr_null)) {
        static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
        if (SDMAC_IBSS_submit(station, sdmac_platform_now(), everybody, packetbuf_dataptr(), packetbuf_datalen(),
                              NULL))
            status = MAC_TX_OK;
        else
            sdmac_drops.out_refused++;
        process_poll(&sdmac_process);
        mac_call_sent_callback(sent, ptr, status, 1);
        return;
    }
    if (queue_length == SDMAC_CONF_QUEUE) {
        sdmac_drops.out_no_room++;
        mac_call_sent_callback(sent, ptr, status, 0);
        return;
    }
    linkaddr_copy(&place->to, to);
    place->sent = sent;
    place->ptr = ptr;
    place->state = WAITS;
    place->octets = packetbuf_datalen();
    memcpy(place->payload, packetbuf_dataptr(), place->octets);
    queue_length++;
    process_poll(&sdmac_process);
}

static void input(void)
{
    NETSTACK_NETWORK.input();
}

static int on(void)
{
    if (station == NULL)
        return 0;
    SDMAC_IBSS_begin(station, sdmac_platform_now());
    process_poll(&sdmac_process);
    return 1;
}

static int off(void)
{
    if (station == NULL)
        return 0;
    SDMAC_IBSS_leave(station, sdmac_platform_now());
    process_poll(&sdmac_process);
    return 1;
}

static int max_payload(void)
{
    return SDMAC_IBSS_PAYLOAD;
}

const struct mac_driver sdmac_mac_driver = {
    .name = "sdmac",
    .init = init,
    .send = send,
    .input = input,
    .on = on,
    .off = off,
    .max_payload = max_payload,
};
