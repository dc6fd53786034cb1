/* The measurement task of the SDMAC paper, in small: confirmed one-shots from one station to another, and what became of
 * each. The frames are plain data, for which Linux has one queue: best effort. Run it with the name of a host of two stations:
 * "simulator:2", "ar9170:2", "linux:phy0@5180,phy1@5180"; or of one, and the address of a station elsewhere, which acknowledges:
 * "usb:any@2437" 02:00:00:00:00:01. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sdmac.h"

#define MEASUREMENTS 100
#define RATE_54M 108
#define SECOND UINT64_C(1000000000)

static uint8_t frame[2000];

static int failed(SDMAC_Host *host, const char *what, int status)
{
    fprintf(stderr, "error: %s: %s %s\n", what, SDMAC_text(status), SDMAC_why(host));
    SDMAC_close(host);
    return 1;
}

/* Six octets in hexadecimal, with colons between them. */
static int read_address(const char *text, uint8_t address[6])
{
    int octets = 0;
    return sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &address[0], &address[1], &address[2], &address[3],
                  &address[4], &address[5], &octets) == 6 &&
           text[octets] == '\0';
}

int main(int count, char **words)
{
    const char *name = count > 1 ? words[1] : "simulator:2,seed=1,loss=0.1";
    char why[200];
    SDMAC_Host *host = SDMAC_open(name, why, sizeof why);
    if (host == NULL) {
        fprintf(stderr, "error: %s\n", why);
        return 1;
    }
    SDMAC_Value from, to;
    const int elsewhere = count > 2;
    if (elsewhere ? !read_address(words[2], to.address) : SDMAC_interfaces(host) != 2) {
        fprintf(stderr, "error: this wants a host with two interfaces, or the address of another station\n");
        SDMAC_close(host);
        return 1;
    }

    int status = SDMAC_DATA_get(host, 0, SDMAC_NAME_ADDRESS, &from, 0, 0);
    if (status == SDMAC_STATUS_OK && !elsewhere)
        status = SDMAC_DATA_get(host, 1, SDMAC_NAME_ADDRESS, &to, 0, 0);
    if (status != SDMAC_STATUS_OK)
        return failed(host, "address", status);

    const SDMAC_How one_shot = SDMAC_one_shot(RATE_54M);
    unsigned acked = 0, lost = 0, received = 0;
    uint64_t least = UINT64_MAX, most = 0;
    for (uint64_t id = 0; id < MEASUREMENTS; id++) {
        char payload[50];
        memset(payload, 0, sizeof payload);
        snprintf(payload, sizeof payload, "number %" PRIu64, id);
        ptrdiff_t octets = SDMAC_data_frame(frame, sizeof frame, to.address, from.address, from.address,
                                            (uint16_t)id, 0x88b5, (const uint8_t *)payload, sizeof payload);
        if (octets < 0)
            return failed(host, "frame", (int)octets);

        uint64_t begun = SDMAC_now(host);
        status = SDMAC_DATA_req(host, 0, id, frame, (size_t)octets, SDMAC_QUEUE_BEST_EFFORT, &one_shot);
        if (status != SDMAC_STATUS_OK)
            return failed(host, "request", status);
        SDMAC_Confirm confirm;
        status = SDMAC_DATA_con(host, 0, &confirm, 2 * SECOND);
        if (status != SDMAC_STATUS_OK)
            return failed(host, "confirm", status);
        if (confirm.id != id || confirm.attempts > 1)
            return failed(host, "not what was asked for", SDMAC_STATUS_BROKEN);
        uint64_t took = SDMAC_now(host) - begun;
        if (confirm.outcome == SDMAC_OUTCOME_ACKED) {
            acked++;
            least = took < least ? took : least;
            most = took > most ? took : most;
        } else {
            lost++;
        }

        /* the other station, without waiting */
        SDMAC_Indication about;
        while (!elsewhere && SDMAC_DATA_ind(host, 1, &about, frame, sizeof frame, 0) == SDMAC_STATUS_OK)
            received++;
        SDMAC_wait(host, SECOND / 1000);
    }
    SDMAC_Indication about;
    while (!elsewhere && SDMAC_DATA_ind(host, 1, &about, frame, sizeof frame, SECOND / 100) == SDMAC_STATUS_OK)
        received++;
    printf("%s: %u acked, %u lost, %u received here; acked after %" PRIu64 " to %" PRIu64 " us\n", name, acked, lost,
           received, acked > 0 ? least / 1000 : 0, most / 1000);
    SDMAC_close(host);
    return acked > 0 && acked + lost == MEASUREMENTS && (elsewhere || received >= acked) ? 0 : 1;
}
