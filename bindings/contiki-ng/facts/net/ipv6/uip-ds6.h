#ifndef UIP_DS6_H_
#define UIP_DS6_H_
void uip_ds6_link_callback(int status, int tries);
#endif
