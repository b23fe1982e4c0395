/* Division by a number that is fixed for a row, as a multiplication: exact for dividends below 2^31. */
#ifndef BRAID_ROW_DIVIDE_H
#define BRAID_ROW_DIVIDE_H
#include "../abi.h"

#ifdef GL_core_profile
struct divider {
    uint by, magic, shift;
};
// n / d.by
uint divide(uint n, divider d) {
    uint high, low;
    umulExtended(n, d.magic, high, low);
    return (high + n) >> d.shift;
}
// n / d.by, and n becomes the remainder.
uint divide_step(inout uint n, divider d) {
    uint q = divide(n, d);
    n -= q * d.by;
    return q;
}
#else
typedef struct divider {
    uint by, magic, shift;
} divider;
/* by: 1 .. 2^31. With shift = ceil(log2(by)), 2^32 + magic is 2^(32 + shift) / by rounded up. */
static inline divider divider_of(uint32_t by) {
    divider d = {by ? by : 1, 1, 0};
    while (((uint64_t)1 << d.shift) < d.by) d.shift++;
    d.magic = (uint32_t)(((((uint64_t)1 << d.shift) - d.by) << 32) / d.by + 1);
    return d;
}
#endif
#endif
