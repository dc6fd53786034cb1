/* What a Cortex-M3 wants before main(): its vectors. The rest is newlib's start code, with QEMU's semihosting below it. */
#include <stdint.h>

extern uint32_t __stack;
extern void _start(void);

static void fault(void)
{
    for (;;)
        ;
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &__stack, (const void *)_start, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault,
};
