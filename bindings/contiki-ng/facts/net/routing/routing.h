#ifndef ROUTING_H_
#define ROUTING_H_
#include "net/linkaddr.h"
struct routing_driver {
    char *name;
    void (*link_callback)(const linkaddr_t *, int status, int tries);
};
#endif
