#ifndef LOG_H_
#define LOG_H_
/* A level is an expression of C, which may be told while the program runs. */
#define LOG_LEVEL_NONE 0
#define LOG_LEVEL_ERR 1
void facts_log(const char *module, const char *text);
#define LOG_ERR(text) \
    do { if (LOG_LEVEL_ERR <= (LOG_LEVEL)) facts_log(LOG_MODULE, text); } while (0)
#endif
