#ifndef RADIO_H_
#define RADIO_H_
#include <stddef.h>
typedef int radio_value_t;
typedef unsigned radio_param_t;
enum { RADIO_PARAM_POWER_MODE, RADIO_PARAM_CHANNEL, RADIO_CONST_MAX_PAYLOAD_LEN = 27 };
enum { RADIO_POWER_MODE_OFF, RADIO_POWER_MODE_ON };
enum { RADIO_TX_OK, RADIO_TX_ERR, RADIO_TX_COLLISION, RADIO_TX_NOACK };
typedef enum {
    RADIO_RESULT_OK,
    RADIO_RESULT_NOT_SUPPORTED,
    RADIO_RESULT_INVALID_VALUE,
    RADIO_RESULT_ERROR,
} radio_result_t;
struct radio_driver {
    int (*init)(void);
    int (*prepare)(const void *, unsigned short);
    int (*transmit)(unsigned short);
    int (*send)(const void *, unsigned short);
    int (*read)(void *, unsigned short);
    int (*channel_clear)(void);
    int (*receiving_packet)(void);
    int (*pending_packet)(void);
    int (*on)(void);
    int (*off)(void);
    radio_result_t (*get_value)(radio_param_t, radio_value_t *);
    radio_result_t (*set_value)(radio_param_t, radio_value_t);
    radio_result_t (*get_object)(radio_param_t, void *, size_t);
    radio_result_t (*set_object)(radio_param_t, const void *, size_t);
};
#endif
