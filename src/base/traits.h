/*
 * What the planner and the operators may know of a device. Filled by gpu, read by ops and plan.
 */
#ifndef BRAID_TRAITS_H
#define BRAID_TRAITS_H

#include "base/base.h"

typedef struct device_traits {
    bool software;            /* a CPU behind Vulkan: small tiles, few threads */
    bool float64, float16;    /* arithmetic in shaders; 8/16-bit storage and int64 are required of every device */
    bool int8, int16;         /* arithmetic on these types in shaders */
    bool nan_kept;            /* SignedZeroInfNanPreserve for float32; modules may always ask for it, gpu takes the mode
                                 out where the device lacks it */
    uint32_t subgroup;        /* pinned subgroup size */
    uint32_t shared_bytes;    /* shared memory of a workgroup */
    uint32_t max_invocations; /* of a workgroup */
    uint32_t max_groups;      /* smallest of the x, y, z limits */
    uint32_t cores;           /* workgroups that run at once, estimated */
    uint64_t max_buffer;      /* bytes */
    /* Measured figures for the planner's cost model (plan/cost.c), 0: unknown. They choose schedules and what is
       re-rolled, never what is computed. */
    uint32_t barrier_ns;  /* what a barrier between waves takes */
    uint32_t dispatch_ns; /* what each dispatch of a wave adds */
    uint32_t bandwidth;   /* GB/s, read and written together */
    uint32_t flop_rate;   /* GFLOP/s, float32 */
    uint32_t resident;    /* dispatches that run at once; not probed */
    bool fold_always;     /* for tests: problems are folded wherever that is possible, and */
    bool split_always;    /* sums of many problems are split wherever one alone takes them in several chunks */
} device_traits;

/* The same figures with defaults for what was not measured: one set for all that weighs costs. ns; bytes and operations
   per ns. NULL: a GPU of which nothing is known. */
typedef struct device_figures {
    double barrier, dispatch; /* of a wave; of each dispatch in it */
    double bandwidth, rate;
    double least;             /* what the smallest kernel takes */
    double resident;          /* dispatches at once */
} device_figures;
device_figures device_figures_of(const device_traits *);

#endif
