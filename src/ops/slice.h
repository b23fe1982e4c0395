/*
 * slice.h: the arithmetic of Slice on one axis.
 */
#ifndef BRAID_SLICE_H
#define BRAID_SLICE_H

#include <stdint.h>

/* First index and number of elements of [start:end:by] on an axis of `dim` elements; by is not 0. Any start and
   end are allowed: negative ones count from the back, what lies outside is clamped. */
static inline void slice_axis(int64_t dim, int64_t start, int64_t end, int64_t by, int64_t *first, int64_t *count) {
    int64_t low = by > 0 ? 0 : -1, high = by > 0 ? dim : dim - 1;
    if (start < 0) start += dim;
    if (end < 0) end += dim;
    start = start < low ? low : start > high ? high : start;
    end = end < low ? low : end > high ? high : end;
    uint64_t span = by > 0 ? (end > start ? (uint64_t)(end - start) : 0) : (start > end ? (uint64_t)(start - end) : 0);
    uint64_t stride = by > 0 ? (uint64_t)by : 0 - (uint64_t)by;
    *first = start;
    *count = span ? (int64_t)((span - 1) / stride) + 1 : 0;
}

#endif
