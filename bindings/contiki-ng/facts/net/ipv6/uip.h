#ifndef UIP_H_
#define UIP_H_
#include <stdint.h>
#define UIP_BUFSIZE UIP_CONF_BUFFER_SIZE
extern uint8_t uip_buf[UIP_BUFSIZE];
extern uint16_t uip_len;
#endif
