#ifndef MAC_H_
#define MAC_H_
typedef void (*mac_callback_t)(void *ptr, int status, int transmissions);
void mac_call_sent_callback(mac_callback_t, void *, int status, int tries);
struct mac_driver {
    char *name;
    void (*init)(void);
    void (*send)(mac_callback_t, void *);
    void (*input)(void);
    int (*on)(void);
    int (*off)(void);
    int (*max_payload)(void);
};
enum {
    MAC_TX_OK,
    MAC_TX_COLLISION,
    MAC_TX_NOACK,
    MAC_TX_DEFERRED,
    MAC_TX_ERR,
    MAC_TX_ERR_FATAL,
    MAC_TX_QUEUE_FULL,
};
#endif
