/* The network driver: packets of uIP as they are. A frame of 802.11 holds what IPv6 asks of a link, so there is neither
 * compression nor fragmentation. */
#include <string.h>

#include "contiki.h"
#include "net/ipv6/tcpip.h"
#include "net/ipv6/uip-ds6.h"
#include "net/ipv6/uip.h"
#include "net/link-stats.h"
#include "net/netstack.h"
#include "net/packetbuf.h"
#include "net/routing/routing.h"
#include "sdmac-contiki.h"

static void init(void)
{
}

static void input(void)
{
    uint16_t octets = packetbuf_datalen();
    if (octets > UIP_BUFSIZE) {
        sdmac_drops.in_too_long++;
        return;
    }
    memcpy(uip_buf, packetbuf_dataptr(), octets);
    uip_len = octets;
    link_stats_input_callback(packetbuf_addr(PACKETBUF_ADDR_SENDER));
    tcpip_input();
}

/* Without it no route learns of its neighbours. */
static void sent(void *ptr, int status, int tries)
{
    const linkaddr_t *to = packetbuf_addr(PACKETBUF_ADDR_RECEIVER);
    (void)ptr;
    if (linkaddr_cmp(to, &linkaddr_null))
        return;
    link_stats_packet_sent(to, status, tries);
    NETSTACK_ROUTING.link_callback(to, status, tries);
    uip_ds6_link_callback(status, tries);
}

static uint8_t output(const linkaddr_t *to)
{
    packetbuf_clear();
    if (packetbuf_copyfrom(uip_buf, uip_len) != uip_len) {
        sdmac_drops.out_too_long++;
        return 0;
    }
    packetbuf_set_addr(PACKETBUF_ADDR_RECEIVER, to != NULL ? to : &linkaddr_null);
    packetbuf_set_addr(PACKETBUF_ADDR_SENDER, &linkaddr_node_addr);
    NETSTACK_MAC.send(sent, NULL);
    return 1;
}

const struct network_driver sdmac_network_driver = {
    .name = "sdmac",
    .init = init,
    .input = input,
    .output = output,
};
