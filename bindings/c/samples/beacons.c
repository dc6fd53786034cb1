/* SDMAC_beacon_ind: one station sends beacons, another waits for each and answers with a one-shot half an interval later, as
 * the SDMAC paper keeps measurement and beacons apart. Run it with the name of a host of two stations: "simulator:2", "ar9170:2",
 * "linux:phy0@5180,phy1@5180". The one-shots are plain data, for which Linux has one queue: best effort. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sdmac.h"

#define BEACONS 10
#define INTERVAL_TU 40
#define INTERVAL_NS (UINT64_C(1024000) * INTERVAL_TU)
#define RATE_6M 12

/* A beacon without elements: header, timestamp (the adapter fills it in), interval, capabilities. */
static size_t make_beacon(uint8_t *out, const uint8_t address[6], uint16_t sequence)
{
    memset(out, 0, 36);
    out[0] = 0x80;
    memset(out + 4, 0xff, 6);
    memcpy(out + 10, address, 6);
    memcpy(out + 16, address, 6);
    out[22] = (uint8_t)(sequence << 4);
    out[23] = (uint8_t)(sequence >> 4);
    out[32] = INTERVAL_TU;
    return 36;
}

int main(int count, char **words)
{
    const char *name = count > 1 ? words[1] : "simulator:2";
    char why[200];
    SDMAC_Host *host = SDMAC_open(name, why, sizeof why);
    if (host == NULL) {
        fprintf(stderr, "error: %s\n", why);
        return 1;
    }
    SDMAC_Value ap, me;
    if (SDMAC_DATA_get(host, 0, SDMAC_NAME_ADDRESS, &ap, 0, 0) != SDMAC_STATUS_OK ||
        SDMAC_DATA_get(host, 1, SDMAC_NAME_ADDRESS, &me, 0, 0) != SDMAC_STATUS_OK ||
        SDMAC_DATA_set(host, 1, SDMAC_NAME_BSSID, &ap, 0, 0, SDMAC_FOREVER) != SDMAC_STATUS_OK) {
        fprintf(stderr, "error: two interfaces, and a BSSID that can be set, are wanted\n");
        SDMAC_close(host);
        return 1;
    }

    SDMAC_How beacon_how = SDMAC_one_shot(RATE_6M);
    beacon_how.no_ack = 1;
    const SDMAC_How one_shot = SDMAC_one_shot(RATE_6M);
    uint64_t next = SDMAC_now(host) + INTERVAL_NS;
    unsigned heard = 0, acked = 0;
    for (uint16_t i = 0; i < BEACONS; i++, next += INTERVAL_NS) {
        uint8_t frame[100];
        SDMAC_wait(host, next - SDMAC_now(host));
        size_t octets = make_beacon(frame, ap.address, i);
        SDMAC_DATA_req(host, 0, i, frame, octets, SDMAC_QUEUE_BEACON, &beacon_how);

        SDMAC_Beacon beacon;
        if (SDMAC_beacon_ind(host, 1, &beacon, NULL, 0, INTERVAL_NS / 4) != SDMAC_STATUS_OK)
            continue;
        if (memcmp(beacon.bssid, ap.address, 6) != 0 || beacon.interval_tu != INTERVAL_TU)
            break;
        heard++;
        SDMAC_wait(host, INTERVAL_NS / 2);
        ptrdiff_t length = SDMAC_data_frame(frame, sizeof frame, ap.address, me.address, ap.address, i, 0x88b5,
                                            (const uint8_t *)"after", 5);
        SDMAC_Confirm confirm;
        if (SDMAC_DATA_req(host, 1, i, frame, (size_t)length, SDMAC_QUEUE_BEST_EFFORT, &one_shot) == SDMAC_STATUS_OK &&
            SDMAC_DATA_con(host, 1, &confirm, INTERVAL_NS / 4) == SDMAC_STATUS_OK)
            acked += confirm.outcome == SDMAC_OUTCOME_ACKED;
    }
    printf("%s: %u beacons heard of %u, %u one-shots acked\n", name, heard, BEACONS, acked);
    SDMAC_close(host);
    return heard == BEACONS && acked == BEACONS ? 0 : 1;
}
