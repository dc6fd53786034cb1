#ifndef TCPIP_H_
#define TCPIP_H_
void tcpip_input(void);
#endif
