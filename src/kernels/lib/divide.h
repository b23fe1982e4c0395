/*
 * divide.h: division by a number that the row holds, without the division. C and GLSL.
 *
 * For n < 2^31 and 1 <= by < 2^31:  n / by = high word of (2 n) * magic, shifted right by `shift`, where
 * 2^shift >= by and magic = floor(2^(31 + shift) / by) + 1 (which fits 32 bits): the error n (magic by - 2^(31 + shift))
 * stays below 2^(31 + shift).
 */
#ifndef BRAID_DIVIDE_H
#define BRAID_DIVIDE_H

#ifdef GL_core_profile
uint divide(uint n, uint magic, uint shift) {
    uint high, low;
    umulExtended(n << 1, magic, high, low);
    return high >> shift;
}
#else
#include <stdint.h>
static inline void divide_prepare(uint32_t by, uint32_t *magic, uint32_t *shift) {
    uint32_t s = 0;
    while (((uint64_t)1 << s) < by) s++;
    *shift = s;
    *magic = (uint32_t)(((uint64_t)1 << (31 + s)) / by + 1);
}
static inline uint32_t divide(uint32_t n, uint32_t magic, uint32_t shift) {
    return (uint32_t)((uint64_t)(n << 1) * magic >> 32) >> shift;
}
#endif
#endif
