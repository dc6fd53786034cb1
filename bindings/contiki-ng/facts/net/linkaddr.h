#ifndef LINKADDR_H_
#define LINKADDR_H_
#include <stdint.h>
#define LINKADDR_SIZE 8
typedef union {
    unsigned char u8[LINKADDR_SIZE];
    uint16_t u16[LINKADDR_SIZE / 2];
} linkaddr_t;
extern linkaddr_t linkaddr_node_addr;
extern const linkaddr_t linkaddr_null;
void linkaddr_copy(linkaddr_t *, const linkaddr_t *);
int linkaddr_cmp(const linkaddr_t *, const linkaddr_t *);
#endif
