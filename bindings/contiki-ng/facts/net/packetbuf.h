#ifndef PACKETBUF_H_
#define PACKETBUF_H_
#include "contiki.h"
#include "net/linkaddr.h"
#ifdef PACKETBUF_CONF_SIZE
#define PACKETBUF_SIZE PACKETBUF_CONF_SIZE
#else
#define PACKETBUF_SIZE 128
#endif
enum { PACKETBUF_ADDR_SENDER, PACKETBUF_ADDR_RECEIVER };
void packetbuf_clear(void);
int packetbuf_copyfrom(const void *, uint16_t);
void *packetbuf_dataptr(void);
uint16_t packetbuf_datalen(void);
int packetbuf_set_addr(uint8_t, const linkaddr_t *);
const linkaddr_t *packetbuf_addr(uint8_t);
#endif
