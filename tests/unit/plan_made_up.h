/*
 * plan_made_up.h: what tests of plans share that need no device: two devices, addresses for constants.
 */
#ifndef PLAN_MADE_UP_H
#define PLAN_MADE_UP_H

#include "plan/plan.h"

#define PLAN_GPU                                                                                                       \
    {                                                                                                                  \
        .subgroup = 32, .shared_bytes = 49152, .max_invocations = 1024, .max_groups = 65535, .cores = 528,             \
        .max_buffer = (uint64_t)1 << 32                                                                                \
    }
/* With a CPU's limits; not told to be one. */
#define PLAN_SMALL                                                                                                     \
    {                                                                                                                  \
        .subgroup = 8, .shared_bytes = 32768, .max_invocations = 1024, .max_groups = 65535, .cores = 2,                \
        .max_buffer = 1u << 30                                                                                         \
    }

/* Constants lie 16 MiB apart or as far as they are long, where nothing else is. */
static inline void plan_place_constants(plan *p) {
    uint64_t at = (uint64_t)1 << 44;
    for (int32_t i = 0; i < p->n_storages; i++) {
        storage *s = &p->storages[i];
        if (s->kind != STORAGE_CONST || s->alias != i) continue;
        s->offset = at;
        at += s->stride > 1 << 24 ? s->stride : 1 << 24;
    }
}

#endif
