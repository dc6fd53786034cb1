#ifndef LINK_STATS_H_
#define LINK_STATS_H_
#include "net/linkaddr.h"
void link_stats_packet_sent(const linkaddr_t *, int status, int tries);
void link_stats_input_callback(const linkaddr_t *);
#endif
