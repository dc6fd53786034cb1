/* Three stations in a line, with power save over both hops and a key, in one program, on an air of a few lines: what a firmware has
 * to do for its one station, and nothing that needs an operating system. It runs on a computer, and on a Cortex-M3 in QEMU.
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
    _Alignas(16) uint8_t memory[SDMAC_IBSS_OCTETS];
    SDMAC_IBSS_Station *station;
    uint8_t address[6];
    int64_t tsf_offset_us;
    bool receives, follows;
    unsigned delivered, sent, acked, expired;
    uint64_t last;
    /* What it has to hand on, or to send back. */
    uint8_t onward[64];
    size_t onward_octets;
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

/* An adapter that follows its network's clock by itself. Clocks do not drift here, so there is nothing to be done. */
static bool set_beacon_timing(void *context, uint16_t interval_tu, uint16_t atim_window_tu)
{
    ((struct node *)context)->follows = interval_tu == 100 && atim_window_tu == 20;
    return true;
}

/* A payload has come to its end. */
static void sent(void *context, uint64_t number, uint32_t outcome, uint16_t attempts)
{
    struct node *node = context;
    node->sent++;
    node->acked += outcome == SDMAC_IBSS_OUTCOME_ACKED && attempts > 0;
    node->expired += outcome == SDMAC_IBSS_OUTCOME_EXPIRED;
    node->last = number;
}

/* The first octet of a payload says whom it is for in the end, the second whom it is from: the last octets of their addresses, which
 * are 1, 2 and 3 along the line. */
static void destination(void *context, const uint8_t *next, const uint8_t *payload, size_t octets, uint8_t *to)
{
    (void)context;
    memcpy(to, next, 6);
    if (octets > 0)
        to[5] = payload[0];
}

static bool next_hop(void *context, const uint8_t *to, uint8_t *next)
{
    const struct node *node = context;
    memcpy(next, node->address, 6);
    if (to[5] < 1 || to[5] > STATIONS || to[5] == node->address[5])
        return false;
    next[5] = (uint8_t)(node->address[5] + (to[5] > node->address[5] ? 1 : -1));
    return true;
}

/* What is for others is handed on, and the last station sends everything back: later, since this is called by the library. */
static void deliver(void *context, const uint8_t *from, const uint8_t *payload, size_t octets)
{
    struct node *node = context;
    (void)from;
    if (octets < 2 || octets > sizeof node->onward)
        return;
    bool mine = payload[0] == node->address[5];
    node->delivered += mine;
    if (mine && node != &nodes[STATIONS - 1])
        return;
    memcpy(node->onward, payload, octets);
    if (mine) {
        node->onward[0] = payload[1];
        node->onward[1] = payload[0];
    }
    node->onward_octets = octets;
}

static uint64_t send_on(struct node *node, const uint8_t *payload, size_t octets)
{
    uint8_t to[6], next[6];
    uint64_t number = 0;
    memcpy(to, node->address, 6);
    to[5] = payload[0];
    if (!next_hop(node, to, next) || !SDMAC_IBSS_submit(node->station, now, next, payload, octets, &number))
        refused++;
    return number;
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
        if (node - it.from > 1 || it.from - node > 1)
            continue; /* out of reach */
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
        for (struct node *node = nodes; node < nodes + STATIONS; node++) {
            if (node->onward_octets > 0)
                send_on(node, node->onward, node->onward_octets);
            node->onward_octets = 0;
        }
    }
}

void SDMAC_IBSS_panicked(const char *file, size_t octets, uint32_t line)
{
    printf("a fault in line %u of %.*s\n", (unsigned)line, (int)octets, file);
    for (;;)
        ;
}

/* What the network is to be called. */
static const uint8_t network[6] = {2, 0, 0, 0, 0, 0xaa};
/* What all of them have been given before. */
static const uint8_t key[16] = {0x5d, 0x0c, 0xa1, 0x77, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

/* Numbers that have no meaning: there is no station with them. */
static bool are_refused(const SDMAC_IBSS_Config *good, const SDMAC_IBSS_Radio *radio)
{
    SDMAC_IBSS_Config bad[6];
    for (int i = 0; i < 6; i++)
        bad[i] = *good;
    bad[0].atim_window_tu = bad[0].interval_tu;
    bad[1].wake_ahead_us = 40 * 1024 + 1; /* more than half of what the window leaves */
    bad[2].slot_us = 102400 / 30 + 1;     /* 30 of them do not end within the interval */
    bad[3].slot_us = UINT32_MAX;
    bad[4].group_rate = 128; /* HT */
    bad[5].soft_beacon_us = 999;
    for (int i = 0; i < 6; i++)
        if (SDMAC_IBSS_init(nodes[0].memory, sizeof nodes[0].memory, &bad[i], radio, now) != NULL)
            return false;
    return true;
}

int main(void)
{
    for (int i = 0; i < STATIONS; i++) {
        struct node *node = &nodes[i];
        memcpy(node->address, (uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)(i + 1)}, 6);
        node->tsf_offset_us = 1000000 * i;
        node->receives = true;
        SDMAC_IBSS_Radio radio = {
            .context = node,
            .request = request,
            .abort = take_back,
            .get_tsf = get_tsf,
            .set_tsf = set_tsf,
            .set_receiver = set_receiver,
            .set_bssid = set_bssid,
            .set_beacon_timing = set_beacon_timing,
            .deliver = deliver,
            .sent = sent,
        };
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
        config.soft_beacon_us = 25000;
        config.power = (SDMAC_IBSS_Power){.transmit_mw = 1320, .receive_mw = 700, .listen_mw = 660, .doze_mw = 33};
        if (i == 0 && !are_refused(&config, &radio)) {
            printf("a number without a meaning was taken\n");
            return 1;
        }
        config.key = key;
        if (SDMAC_IBSS_init(node->memory, sizeof node->memory, &config, &radio, now) != NULL) {
            printf("a key without a number for the first packet\n");
            return 1;
        }
        /* a firmware takes a clock, or remembers the last one */
        config.first_packet = 1;
        config.multi_hop = true;
        if (SDMAC_IBSS_init(node->memory, sizeof node->memory, &config, &radio, now) != NULL) {
            printf("nobody knows the ways\n");
            return 1;
        }
        radio.destination = destination;
        radio.next_hop = next_hop;
        node->station = SDMAC_IBSS_init(node->memory, sizeof node->memory, &config, &radio, now);
        if (node->station == NULL) {
            printf("no station %d\n", i);
            return 1;
        }
    }
    run_until(3 * SECOND);
    bool in_order = true;
    for (int i = 0; i < PAYLOADS; i++) {
        char payload[32];
        int octets = snprintf(payload, sizeof payload, "%c%cnumber %d", STATIONS, 1, i);
        in_order &= send_on(&nodes[0], (uint8_t *)payload, (size_t)octets) == (uint64_t)i;
        run_until(now + 500 * MS);
    }
    /* to nobody */
    uint8_t nobody[6] = {2, 0, 0, 0, 0, 9}, lost[2] = {9, 1};
    SDMAC_IBSS_submit(nodes[0].station, now, nobody, lost, sizeof lost, NULL);
    run_until(now + 2 * SECOND);
    uint8_t bssid[6], other[6];
    bool one = in_order;
    for (int i = 0; i < STATIONS; i++) {
        SDMAC_IBSS_Counters c;
        SDMAC_IBSS_counters(nodes[i].station, now, &c);
        one &= SDMAC_IBSS_network(nodes[i].station, i == 0 ? bssid : other);
        one &= memcmp(i == 0 ? bssid : other, network, 6) == 0;
        printf("station %d: neighbours %u, beacons %u, intervals %u, dozed %u, delivered %u, energy %u mJ\n", i,
               (unsigned)SDMAC_IBSS_neighbours(nodes[i].station), (unsigned)c.beacons, (unsigned)c.intervals,
               (unsigned)c.intervals_dozed, (unsigned)c.delivered, (unsigned)(c.microjoules / 1000));
        printf("  sent %u, acknowledged %u, expired %u; asked on %u; sealed %u, opened %u, dropped %u\n", nodes[i].sent,
               nodes[i].acked, nodes[i].expired, (unsigned)c.atims_asked_on, (unsigned)c.sealed, (unsigned)c.opened,
               (unsigned)c.dropped);
        one &= c.intervals_dozed > c.intervals / 5 && nodes[i].follows && c.dropped == 0 && c.atims_unrouted == 0;
        /* mW times us are nJ; each of the four is cut off at a microsecond */
        uint64_t nj = 1320 * c.transmit_us + 700 * c.receive_us + 660 * c.listen_us + 33 * c.doze_us;
        one &= c.transmit_us > 0 && c.receive_us > 0 && c.doze_us > 0;
        one &= nj / 1000 <= c.microjoules && c.microjoules <= nj / 1000 + 4;
        /* each end was told once, nothing went on the air without protection, and who is in the middle asks on: on the way back all are
         * awake already */
        one &= nodes[i].sent == c.submitted && nodes[i].last + 1 == c.submitted && c.sealed == nodes[i].acked;
        one &= nodes[i].expired == (i == 0) && nodes[i].acked == (i == 1 ? 2 * PAYLOADS : PAYLOADS);
        one &= c.atims_asked_on == (i == 1 ? PAYLOADS : 0) && c.opened == nodes[i].acked;
    }
    one &= nodes[0].delivered == PAYLOADS && nodes[STATIONS - 1].delivered == PAYLOADS && refused == 0;
    printf("%s\n", one ? "all came back" : "NOT all came back");
    return one ? 0 : 1;
}
