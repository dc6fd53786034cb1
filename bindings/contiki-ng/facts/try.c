/* The glue at work: one node made of the three drivers, with just enough of an operating system around them, and a station of
 * the library as its neighbour, which sends everything back. */
#include <stdio.h>
#include <string.h>

#include "contiki.h"
#include "net/ipv6/uip.h"
#include "net/netstack.h"
#include "net/packetbuf.h"
#include "net/routing/routing.h"
#include "sdmac-contiki.h"

#define MS UINT64_C(1000000)
#define PACKETS 20
#define IN_AIR 8
/* 1: it is compiled with settings without a meaning. */
#ifndef TRY_NO_STATION
#define TRY_NO_STATION 0
#endif

static const uint8_t us[6] = {2, 0, 0, 0, 0, 1}, them[6] = {2, 0, 0, 0, 0, 2}, nobody[6] = {2, 0, 0, 0, 0, 9};
static uint64_t now, air_is_free;
static _Alignas(16) uint8_t memory[SDMAC_IBSS_OCTETS];
static SDMAC_IBSS_Station *peer;
static bool receives[2] = {true, true};
static int64_t offset_us[2] = {0, 5000000};
static struct sending {
    bool used, from_peer;
    uint64_t token, ends;
    SDMAC_IBSS_How how;
    size_t octets;
    uint8_t frame[1400];
} air[IN_AIR];
static unsigned in, acked, failed, link_told, said;
static int last_status;
/* The stack has other things to do: nothing of the glue gets its turn. */
static bool is_busy;

/* The operating system. */
linkaddr_t linkaddr_node_addr;
const linkaddr_t linkaddr_null;
uint8_t uip_buf[UIP_BUFSIZE];
uint16_t uip_len;
static struct process *process;
static struct etimer *timer;
static uint8_t packet[PACKETBUF_SIZE];
static uint16_t packet_octets;
static linkaddr_t packet_addresses[2];

void linkaddr_copy(linkaddr_t *to, const linkaddr_t *from) { *to = *from; }
int linkaddr_cmp(const linkaddr_t *a, const linkaddr_t *b) { return memcmp(a, b, sizeof *a) == 0; }
void packetbuf_clear(void) { packet_octets = 0; memset(packet_addresses, 0, sizeof packet_addresses); }
void *packetbuf_dataptr(void) { return packet; }
uint16_t packetbuf_datalen(void) { return packet_octets; }
const linkaddr_t *packetbuf_addr(uint8_t which) { return &packet_addresses[which]; }

int packetbuf_set_addr(uint8_t which, const linkaddr_t *to)
{
    packet_addresses[which] = *to;
    return 1;
}

int packetbuf_copyfrom(const void *from, uint16_t octets)
{
    packet_octets = octets < sizeof packet ? octets : sizeof packet;
    memcpy(packet, from, packet_octets);
    return packet_octets;
}

void mac_call_sent_callback(mac_callback_t sent, void *ptr, int status, int tries)
{
    sent(ptr, status, tries);
}

void facts_log(const char *module, const char *text)
{
    printf("%s: %s", module, text);
    said++;
}

void process_poll(struct process *which) { which->polled = 1; }
void etimer_stop(struct etimer *t) { t->runs = 0; }

void process_start(struct process *which, process_data_t data)
{
    process = which;
    process->thread(process, PROCESS_EVENT_INIT, data);
}

#define SECOND (1000 * MS)

void etimer_set(struct etimer *t, clock_time_t ticks)
{
    t->at = (clock_time_t)(now * CLOCK_SECOND / SECOND) + ticks;
    t->runs = 1;
    timer = t;
}

/* The stack. */
void link_stats_input_callback(const linkaddr_t *from) { (void)from; }
void tcpip_input(void) { in += uip_len == 600; }
void uip_ds6_link_callback(int status, int tries) { (void)status, (void)tries; }

void link_stats_packet_sent(const linkaddr_t *to, int status, int tries)
{
    (void)to, (void)tries;
    acked += status == MAC_TX_OK;
    failed += status != MAC_TX_OK;
}

static void link_callback(const linkaddr_t *to, int status, int tries)
{
    (void)to, (void)status, (void)tries;
    link_told++;
}

const struct routing_driver facts_routing = {.name = "none", .link_callback = link_callback};

/* The port: a radio of a few lines for both. */
static void request(void *context, uint64_t token, const uint8_t *frame, size_t octets, const SDMAC_IBSS_How *how)
{
    for (struct sending *s = air; s < air + IN_AIR; s++) {
        if (!s->used && octets <= sizeof s->frame) {
            air_is_free = (now > air_is_free ? now : air_is_free) + 100000 + 1500 * octets;
            *s = (struct sending){true, context != NULL, token, air_is_free, *how, octets, {0}};
            memcpy(s->frame, frame, octets);
            return;
        }
    }
}

static void take_back(void *context, uint64_t token) { (void)context, (void)token; }
static int of(void *context) { return context != NULL; }

static bool get_tsf(void *context, uint64_t *tsf_us)
{
    *tsf_us = now / 1000 + (uint64_t)offset_us[of(context)];
    return true;
}

static bool set_tsf(void *context, uint64_t tsf_us)
{
    offset_us[of(context)] = (int64_t)tsf_us - (int64_t)(now / 1000);
    return true;
}

static bool set_receiver(void *context, bool to)
{
    receives[of(context)] = to;
    return true;
}

bool sdmac_platform_init(void) { return true; }
uint64_t sdmac_platform_now(void) { return now; }
void sdmac_platform_address(uint8_t address[6]) { memcpy(address, us, 6); }

void sdmac_platform_radio(SDMAC_IBSS_Radio *radio)
{
    *radio = (SDMAC_IBSS_Radio){.request = request,
                                .abort = take_back,
                                .get_tsf = get_tsf,
                                .set_tsf = set_tsf,
                                .set_receiver = set_receiver};
}

void SDMAC_IBSS_panicked(const char *file, size_t octets, uint32_t line)
{
    printf("a fault in line %u of %.*s\n", (unsigned)line, (int)octets, file);
    for (;;)
        ;
}

static bool echo_due;
static uint8_t echo[SDMAC_IBSS_PAYLOAD];
static size_t echo_octets;

static void peer_deliver(void *context, const uint8_t *from, const uint8_t *payload, size_t octets)
{
    (void)context, (void)from;
    memcpy(echo, payload, octets);
    echo_octets = octets;
    echo_due = true;
}

static void over(struct sending *s)
{
    struct sending it = *s;
    int to = !it.from_peer;
    const uint8_t *address = to ? them : us;
    bool for_it = memcmp(it.frame + 4, address, 6) == 0, got = false;
    uint64_t sent_at = now / 1000 + (uint64_t)offset_us[it.from_peer], time = now / 1000 + (uint64_t)offset_us[to];
    s->used = false;
    if (it.how.timestamp)
        for (int i = 0; i < 8; i++)
            it.frame[24 + i] = (uint8_t)(sent_at >> (8 * i));
    if (receives[to] && (for_it || (it.frame[4] & 1))) {
        got = for_it;
        if (to)
            SDMAC_IBSS_received(peer, now, it.frame, it.octets, it.how.rate, &time);
        else
            sdmac_frame_received(it.frame, it.octets, it.how.rate, &time);
    }
    uint32_t outcome = got ? SDMAC_IBSS_OUTCOME_ACKED : SDMAC_IBSS_OUTCOME_NOT_ACKED;
    if (it.from_peer)
        SDMAC_IBSS_confirm(peer, now, it.token, outcome, 1, it.how.rate);
    else
        sdmac_frame_sent(it.token, outcome, 1, it.how.rate);
}

#if SDMAC_CONF_ALARM
static uint64_t alarm_at = UINT64_MAX;

void sdmac_platform_alarm(uint64_t at) { alarm_at = at; }
static uint64_t timer_at(void) { return alarm_at; }

static void timer_is_over(void)
{
    alarm_at = UINT64_MAX;
    sdmac_alarm();
}
#else
static uint64_t timer_at(void)
{
    return timer != NULL && timer->runs ? timer->at * SECOND / CLOCK_SECOND : UINT64_MAX;
}

static void timer_is_over(void)
{
    timer->runs = 0;
    process->thread(process, PROCESS_EVENT_TIMER, timer);
}
#endif

#ifdef SDMAC_CONF_KEY
uint64_t sdmac_platform_first_packet(void) { return 1; }
#endif

static void run_until(uint64_t end)
{
    while (now < end) {
        struct sending *first = NULL;
        uint64_t next = end, deadline = SDMAC_IBSS_deadline(peer);
        if (process->polled && !is_busy) {
            process->polled = 0;
            process->thread(process, PROCESS_EVENT_POLL, NULL);
            continue;
        }
        if (echo_due) {
            echo_due = false;
            SDMAC_IBSS_submit(peer, now, us, echo, echo_octets, NULL);
            continue;
        }
        for (struct sending *s = air; s < air + IN_AIR; s++)
            if (s->used && s->ends <= next)
                next = s->ends, first = s;
        if (!is_busy && timer_at() < next)
            next = timer_at(), first = NULL;
        if (deadline < next) {
            now = deadline > now ? deadline : now;
            SDMAC_IBSS_timer(peer, now);
            continue;
        }
        now = next > now ? next : now;
        if (first != NULL) {
            over(first);
        } else if (!is_busy && timer_at() <= now) {
            timer_is_over();
        }
    }
}

static void output(const uint8_t to[6])
{
    linkaddr_t address;
    sdmac_to_linkaddr(&address, to);
    memset(uip_buf, 7, 600);
    uip_len = 600;
    NETSTACK_NETWORK.output(&address);
}

static void told(void *ptr, int status, int tries)
{
    (void)ptr, (void)tries;
    last_status = status;
}

/* For everybody, if `to` is NULL. */
static int status_of_a_packet(const linkaddr_t *to, uint16_t octets)
{
    last_status = -1;
    packetbuf_clear();
    packet_octets = octets;
    packetbuf_set_addr(PACKETBUF_ADDR_RECEIVER, to != NULL ? to : &linkaddr_null);
    NETSTACK_MAC.send(told, NULL);
    return last_status;
}

/* Whatever the glue drops is counted, each where it belongs. */
static bool counts_what_is_dropped(void)
{
    static const struct sdmac_drops none;
    const struct sdmac_drops *drops = &sdmac_drops;
    linkaddr_t address;
    sdmac_to_linkaddr(&address, them);
    if (memcmp(drops, &none, sizeof none) != 0)
        return printf("something was dropped before\n"), false;
    uip_len = PACKETBUF_SIZE + 1;
    bool well = NETSTACK_NETWORK.output(&address) == 0 && drops->out_too_long == 1;
    well = status_of_a_packet(&address, SDMAC_IBSS_PAYLOAD + 1) == MAC_TX_ERR_FATAL && well;
    packet_octets = UIP_BUFSIZE + 1;
    NETSTACK_NETWORK.input();
    for (int i = 0; i < SDMAC_CONF_QUEUE; i++)
        output(them);
    well = status_of_a_packet(&address, 600) == MAC_TX_QUEUE_FULL && well;
    run_until(now + 2000 * MS);
    for (int i = 0; i < 10; i++)
        last_status = status_of_a_packet(NULL, 600);
    well = last_status == MAC_TX_QUEUE_FULL && well;
    run_until(now + 2000 * MS);
    is_busy = true;
    for (int i = 0; i < 2 * SDMAC_CONF_QUEUE; i++) {
        SDMAC_IBSS_submit(peer, now, us, echo, 600, NULL);
        run_until(now + 200 * MS);
    }
    is_busy = false;
    run_until(now + 2000 * MS);
    printf("dropped: %u for no station, %u too long, %u for no room, %u refused; received: %u for no room, %u too long\n",
           (unsigned)drops->out_no_station, (unsigned)drops->out_too_long, (unsigned)drops->out_no_room,
           (unsigned)drops->out_refused, (unsigned)drops->in_no_room, (unsigned)drops->in_too_long);
    return well && drops->out_no_station == 0 && drops->out_too_long == 2 && drops->out_no_room == 1 &&
           drops->out_refused > 0 && drops->in_no_room > 0 && drops->in_too_long == 1;
}

/* Settings without a meaning: that is said once, and whatever is asked for fails. */
static bool fails_without_a_station(void)
{
    linkaddr_t address;
    static const uint8_t frame[40];
    sdmac_to_linkaddr(&address, them);
    NETSTACK_MAC.init();
    sdmac_frame_received(frame, sizeof frame, 12, NULL);
    sdmac_frame_sent(1, SDMAC_IBSS_OUTCOME_ACKED, 1, 12);
    return sdmac_station() == NULL && said == 1 && status_of_a_packet(&address, 600) == MAC_TX_ERR_FATAL &&
           status_of_a_packet(NULL, 600) == MAC_TX_ERR_FATAL && sdmac_drops.out_no_station == 2 &&
           NETSTACK_MAC.on() == 0 && NETSTACK_MAC.off() == 0;
}

int main(void)
{
    int peer_context;
    SDMAC_IBSS_Radio radio;
    SDMAC_IBSS_Config config;
    SDMAC_IBSS_Counters counters;
    radio_value_t on;
    uint8_t back[6];
    NETSTACK_RADIO.init();
    NETSTACK_MAC.init();
    NETSTACK_NETWORK.init();
    if (TRY_NO_STATION)
        return fails_without_a_station() ? 0 : 1;
    sdmac_from_linkaddr(back, &linkaddr_node_addr);
    sdmac_platform_radio(&radio);
    radio.context = &peer_context;
    radio.deliver = peer_deliver;
    SDMAC_IBSS_config(&config, them);
    config.ssid = SDMAC_CONF_SSID;
    config.ssid_octets = sizeof SDMAC_CONF_SSID - 1;
    config.channel = SDMAC_CONF_CHANNEL;
    config.atim_window_tu = SDMAC_CONF_ATIM_WINDOW;
    config.scan_ms = 100;
#ifdef SDMAC_CONF_KEY
    static const uint8_t key[16] = SDMAC_CONF_KEY;
    config.key = key;
    config.first_packet = 1;
#endif
    peer = SDMAC_IBSS_init(memory, sizeof memory, &config, &radio, now);
    if (peer == NULL || sdmac_station() == NULL || memcmp(back, us, 6) != 0)
        return printf("no stations\n"), 1;
    run_until(10000 * MS);
    /* two at a time, so that one waits for the other */
    for (int i = 0; i < PACKETS / 2; i++) {
        output(them);
        output(them);
        run_until(now + 1000 * MS);
    }
    output(nobody);
    run_until(now + 5000 * MS);
    SDMAC_IBSS_counters(sdmac_station(), now, &counters);
    NETSTACK_RADIO.get_value(RADIO_PARAM_POWER_MODE, &on);
#ifdef SDMAC_CONF_KEY
    bool is_protected = counters.sealed >= PACKETS && counters.opened >= PACKETS && counters.dropped == 0;
#else
    bool is_protected = true;
#endif
    printf("acked %u, failed %u, came back %u, link callbacks %u, dozed %u of %u intervals\n", acked, failed, in,
           link_told, (unsigned)counters.intervals_dozed, (unsigned)counters.intervals);
    return acked == PACKETS && failed == 1 && in == PACKETS && link_told == PACKETS + 1 && is_protected &&
                   counters.intervals_dozed > 0 && on == RADIO_POWER_MODE_ON && said == 0 &&
                   counts_what_is_dropped()
               ? 0
               : 1;
}
