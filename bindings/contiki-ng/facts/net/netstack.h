#ifndef NETSTACK_H
#define NETSTACK_H
#include "contiki.h"
#include "dev/radio.h"
#include "net/linkaddr.h"
#include "net/mac/mac.h"
struct network_driver {
    char *name;
    void (*init)(void);
    void (*input)(void);
    uint8_t (*output)(const linkaddr_t *);
};
#define NETSTACK_MAC NETSTACK_CONF_MAC
#define NETSTACK_NETWORK NETSTACK_CONF_NETWORK
#define NETSTACK_RADIO NETSTACK_CONF_RADIO
#define NETSTACK_ROUTING facts_routing
extern const struct mac_driver NETSTACK_MAC;
extern const struct network_driver NETSTACK_NETWORK;
extern const struct radio_driver NETSTACK_RADIO;
extern const struct routing_driver NETSTACK_ROUTING;
#endif
