/* rows/probe.h: kernels that measure a device (gpu/probe.c). stream: to[i] = from[i] on 16-byte words. fma: chains of
   multiply-adds, `loops` times PROBE_CHAINS an invocation; the sums go to `to`, so that they have to be made. */
#ifndef BRAID_ROW_PROBE_H
#define BRAID_ROW_PROBE_H
#include "../abi.h"

#define PROBE_CHAINS 16u

ROW_BEGIN(probe)
    row_header header;
    operand to;
    operand from;
    uint n;        /* stream: 16-byte words */
    uint per_tile; /* of a tile */
    uint loops;    /* fma */
    float multiply;
    float add;
    uint reserved;
ROW_END(probe)

#endif
