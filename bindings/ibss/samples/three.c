/* Three stations with power save in one program, on an air of a few lines: what a firmware has to do for its one station,
 * and nothing that needs an operating system. It runs on a computer, and on a Cortex-M3 in QEMU.
 *
 * A real firmware has one station, a radio in place of `air`, and a hardware timer in place of the loop. */
#include <stdio.h>
#include <string.h>

#include "sdmac_ibss.h"

#define STATIONS 3
#define IN_AIR 8
#define FRAME 1400
#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define PAYLOADS 20

static struct node {
    uint64_t memory[SDMAC_IBSS_OCTETS / 8];
    SDMAC_IBSS_Station *station;
    uint8_t address[6];
    int64_t tsf_offset_us;
    bool receives;
    unsigned delivered;
} nodes[STATIONS];

/* What has been asked for and is not over yet. */
static struct sending {
    struct node *from;
    uint64_t token, ends;
    SDMAC_IBSS_How how;
    size_t octets;
    uint8_t frame[FRAME];
} air[IN_AIR];

static uint64_t now, air_is_free;
static unsigned refused;

static uint64_t tsf(const struct node *node)
{
    return (uint64_t)((int64_t)(now / 1000) + node->tsf_offset_us);
}

static void request(void *context, uint64_t token, const uint8_t *frame, size_t octets, const SDMAC_IBSS_How *how)
{
    for (struct sending *s = air; s < air + IN_AIR; s++) {
        if (s->from == NULL && octets <= FRAME) {
            /* one after the other: 100 us each, and a few more for each octet */
            uint64_t begins = now > air_is_free ? now : air_is_free;
            air_is_free = begins + 100000 + 1500 * octets;
            *s = (struct sending){.from = context, .token = token, .ends = air_is_free, .how = *how, .octets = octets};
            memcpy(s->frame, frame, octets);
            return;
        }
    }
    refused++;
}

static void take_back(void *context, uint64_t token)
{
    (void)context;
    (void)token; /* it will be sent, which is allowed */
}

static bool get_tsf(void *context, uint64_t *tsf_us)
{
    *tsf_us = tsf(context);
    return true;
}

static bool set_tsf(void *context, uint64_t tsf_us)
{
    struct node *node = context;
    node->tsf_offset_us = (int64_t)tsf_us - (int64_t)(now / 1000);
    return true;
}

static bool set_receiver(void *context, bool on)
{
    ((struct node *)context)->receives = on;
    return true;
}

static bool set_bssid(void *context, const uint8_t *bssid)
{
    (void)context;
    (void)bssid;
    return true;
}

/* The last station sends everything back. */
static bool echo_due;
static uint8_t echo[64];
static size_t echo_octets;

static void deliver(void *context, const uint8_t *from, const uint8_t *payload, size_t octets)
{
    struct node *node = context;
    (void)from;
    node->delivered++;
    if (node == &nodes[STATIONS - 1] && octets <= sizeof echo) {
        memcpy(echo, payload, octets);
        echo_octets = octets;
        echo_due = true;
    }
}

static void put_timestamp(uint8_t *frame, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        frame[24 + i] = (uint8_t)(value >> (8 * i));
}

/* A frame is over: whoever hears it is told, then whoever sent it. */
static void over(struct sending *s)
{
    struct sending it = *s;
    bool acked = false;
    s->from = NULL;
    if (it.how.timestamp)
        put_timestamp(it.frame, tsf(it.from));
    for (struct node *node = nodes; node < nodes + STATIONS; node++) {
        bool to_it = memcmp(it.frame + 4, node->address, 6) == 0;
        if (node == it.from || !node->receives || !(to_it || (it.frame[4] & 1)))
            continue;
        acked |= to_it;
        uint64_t time = tsf(node);
        SDMAC_IBSS_received(node->station, now, it.frame, it.octets, it.how.rate, &time);
    }
    SDMAC_IBSS_confirm(it.from->station, now, it.token,
                       acked && it.how.ack ? SDMAC_IBSS_OUTCOME_ACKED : SDMAC_IBSS_OUTCOME_NOT_ACKED,
                       it.how.ack && !acked ? it.how.tries : 1, it.how.rate);
}

static void run_until(uint64_t end)
{
    for (;;) {
        uint64_t next = end;
        struct sending *first = NULL;
        struct node *due = NULL;
        for (struct sending *s = air; s < air + IN_AIR; s++)
            if (s->from != NULL && s->ends <= next)
                next = s->ends, first = s;
        for (struct node *node = nodes; node < nodes + STATIONS; node++) {
            uint64_t deadline = SDMAC_IBSS_deadline(node->station);
            if (deadline < next)
                next = deadline, due = node;
        }
        if (next > now)
            now = next;
        if (due != NULL)
            SDMAC_IBSS_timer(due->station, now);
        else if (first != NULL)
            over(first);
        else
            return;
        if (echo_due) {
            echo_due = false;
            SDMAC_IBSS_submit(nodes[STATIONS - 1].station, now, nodes[0].address, echo, echo_octets);
        }
    }
}

void SDMAC_IBSS_panicked(uint32_t line)
{
    printf("a fault in line %u\n", (unsigned)line);
    for (;;)
        ;
}

/* What the network is to be called. */
static const uint8_t network[6] = {2, 0, 0, 0, 0, 0xaa};

int main(void)
{
    for (int i = 0; i < STATIONS; i++) {
        struct node *node = &nodes[i];
        memcpy(node->address, (uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)(i + 1)}, 6);
        node->tsf_offset_us = 1000000 * i;
        node->receives = true;
        SDMAC_IBSS_Radio radio = {node,         request,   take_back, get_tsf, set_tsf,
                                  set_receiver, set_bssid, deliver};
        SDMAC_IBSS_Config config;
        SDMAC_IBSS_config(&config, node->address);
        config.ssid = "robots";
        config.ssid_octets = 6;
        config.atim_window_tu = 20;
        /* longer than a beacon on this air, or everybody sends one in each interval and nobody dozes */
        config.slot_us = 250;
        config.scan_ms = (uint16_t)(300 + 300 * i);
        /* the first one creates the network */
        memcpy(config.bssid, network, 6);
        /* who sent the beacon dozes, too, and sends others */
        config.soft_beacon_us = 999;
        if (SDMAC_IBSS_init((uint8_t *)node->memory, sizeof node->memory, &config, &radio, now) != NULL) {
            printf("999 us are too short\n");
            return 1;
        }
        config.soft_beacon_us = 25000;
        node->station = SDMAC_IBSS_init((uint8_t *)node->memory, sizeof node->memory, &config, &radio, now);
        if (node->station == NULL) {
            printf("no station %d\n", i);
            return 1;
        }
    }
    run_until(3 * SECOND);
    for (int i = 0; i < PAYLOADS; i++) {
        char payload[32];
        int octets = snprintf(payload, sizeof payload, "number %d", i);
        SDMAC_IBSS_submit(nodes[0].station, now, nodes[STATIONS - 1].address, (uint8_t *)payload, (size_t)octets);
        run_until(now + 500 * MS);
    }
    uint8_t bssid[6], other[6];
    bool one = true;
    for (int i = 0; i < STATIONS; i++) {
        SDMAC_IBSS_Counters c;
        SDMAC_IBSS_counters(nodes[i].station, now, &c);
        one &= SDMAC_IBSS_network(nodes[i].station, i == 0 ? bssid : other);
        one &= memcmp(i == 0 ? bssid : other, network, 6) == 0;
        printf("station %d: neighbours %u, beacons %u, intervals %u, dozed %u, delivered %u, energy %u mJ\n", i,
               (unsigned)SDMAC_IBSS_neighbours(nodes[i].station), (unsigned)c.beacons, (unsigned)c.intervals,
               (unsigned)c.intervals_dozed, (unsigned)c.delivered, (unsigned)(c.microjoules / 1000));
        one &= c.intervals_dozed > c.intervals / 4;
    }
    one &= nodes[0].delivered == PAYLOADS && nodes[STATIONS - 1].delivered == PAYLOADS && refused == 0;
    printf("%s\n", one ? "all came back" : "NOT all came back");
    return one ? 0 : 1;
}
