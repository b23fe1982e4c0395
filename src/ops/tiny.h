/*
 * tiny: element types below 16 bits that only the host converts: the float8 types, float4e2m1, and the 2- and 4-bit
 * integers, which are packed from the low bits of each byte up.
 */
#ifndef BRAID_TINY_H
#define BRAID_TINY_H

#include "base/base.h"

bool type_is_tiny(braid_type);
double tiny_get(braid_type, const void *data, int64_t i);
/* How values are rounded to float8e8m0, which has powers of two alone. */
typedef enum tiny_round { TINY_UP, TINY_DOWN, TINY_NEAREST } tiny_round;
/* Floats round to nearest even. Out of range: the largest value when `saturate`, else NaN or infinity as the type has
   it. Integers truncate and wrap. The bytes of packed types must be cleared before. */
void tiny_set(braid_type, void *data, int64_t i, double v, bool saturate, tiny_round);

#endif
