/* Interface facts of Contiki-NG 5.0, as far as the glue needs them, in our own words: so that it can be compiled, and tried out
 * (bindings/contiki-ng/facts/try.c), where there is no Contiki-NG. Never used in a build of Contiki-NG. */
#ifndef CONTIKI_H_
#define CONTIKI_H_

#include <stddef.h>
#include <stdint.h>

typedef unsigned long clock_time_t;
#ifndef CLOCK_SECOND
#define CLOCK_SECOND 1000
#endif

typedef unsigned char process_event_t;
typedef void *process_data_t;
#define PROCESS_EVENT_INIT 0x81
#define PROCESS_EVENT_POLL 0x82
#define PROCESS_EVENT_TIMER 0x88

/* A protothread: it goes on where it waited. */
struct process {
    char (*thread)(struct process *, process_event_t, process_data_t);
    unsigned line;
    int polled;
};
#define PROCESS(name, text) \
    static char process_thread_##name(struct process *, process_event_t, process_data_t); \
    struct process name = {process_thread_##name, 0, 0}
#define PROCESS_THREAD(name, ev, data) \
    static char process_thread_##name(struct process *process_pt, process_event_t ev, process_data_t data)
#define PROCESS_BEGIN() switch (process_pt->line) { case 0:
#define PROCESS_END() } return 3
#define PROCESS_WAIT_EVENT_UNTIL(condition) \
    do { process_pt->line = __LINE__; return 1; case __LINE__: if (!(condition)) return 1; } while (0)
void process_start(struct process *, process_data_t);
void process_poll(struct process *);

struct etimer {
    clock_time_t at;
    int runs;
};
void etimer_set(struct etimer *, clock_time_t);
void etimer_stop(struct etimer *);

#endif
