/* The radio driver: what the stack may ask of a radio whose frames are the library's affair. It sends none by itself. */
#include "contiki.h"
#include "dev/radio.h"
#include "sdmac-contiki.h"

static SDMAC_IBSS_Radio radio;
static bool is_on;

static int init(void)
{
    if (!sdmac_platform_init())
        return 0;
    sdmac_platform_radio(&radio);
    is_on = true;
    return 1;
}

static int prepare(const void *payload, unsigned short octets)
{
    (void)payload;
    (void)octets;
    return 1;
}

static int transmit(unsigned short octets)
{
    (void)octets;
    return RADIO_TX_ERR;
}

static int send(const void *payload, unsigned short octets)
{
    (void)payload;
    return transmit(octets);
}

static int read_frame(void *buffer, unsigned short octets)
{
    (void)buffer;
    (void)octets;
    return 0;
}

static int channel_clear(void)
{
    return 1;
}

static int none(void)
{
    return 0;
}

static int set_power(bool to)
{
    if (radio.set_receiver == NULL || !radio.set_receiver(radio.context, to))
        return 0;
    is_on = to;
    return 1;
}

static int on(void)
{
    return set_power(true);
}

static int off(void)
{
    return set_power(false);
}

static radio_result_t get_value(radio_param_t name, radio_value_t *value)
{
    if (value == NULL)
        return RADIO_RESULT_INVALID_VALUE;
    switch (name) {
    case RADIO_PARAM_POWER_MODE:
        *value = is_on ? RADIO_POWER_MODE_ON : RADIO_POWER_MODE_OFF;
        return RADIO_RESULT_OK;
    case RADIO_PARAM_CHANNEL:
        *value = SDMAC_CONF_CHANNEL;
        return RADIO_RESULT_OK;
    case RADIO_CONST_MAX_PAYLOAD_LEN:
        *value = SDMAC_IBSS_PAYLOAD;
        return RADIO_RESULT_OK;
    default:
        return RADIO_RESULT_NOT_SUPPORTED;
    }
}

static radio_result_t set_value(radio_param_t name, radio_value_t value)
{
    if (name != RADIO_PARAM_POWER_MODE)
        return RADIO_RESULT_NOT_SUPPORTED;
    return set_power(value == RADIO_POWER_MODE_ON) ? RADIO_RESULT_OK : RADIO_RESULT_ERROR;
}

static radio_result_t get_object(radio_param_t name, void *to, size_t octets)
{
    (void)name;
    (void)to;
    (void)octets;
    return RADIO_RESULT_NOT_SUPPORTED;
}

static radio_result_t set_object(radio_param_t name, const void *from, size_t octets)
{
    (void)name;
    (void)from;
    (void)octets;
    return RADIO_RESULT_NOT_SUPPORTED;
}

const struct radio_driver sdmac_radio_driver = {
    .init = init,
    .prepare = prepare,
    .transmit = transmit,
    .send = send,
    .read = read_frame,
    .channel_clear = channel_clear,
    .receiving_packet = none,
    .pending_packet = none,
    .on = on,
    .off = off,
    .get_value = get_value,
    .set_value = set_value,
    .get_object = get_object,
    .set_object = set_object,
};
