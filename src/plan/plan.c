/*
 * plan.c: the planner's entry, and how a plan is made to fit a memory budget.
 */
#include "plan/plan.h"

enum { FIT_TRIES = 4 };

static uint64_t fixed_bytes(const plan *p) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < p->n_storages; i++) {
        const storage *s = &p->storages[i];
        bool own = s->alias == i;
        if (s->kind == STORAGE_CONST) bytes += s->stride;
        if (own && (s->kind == STORAGE_INPUT || s->kind == STORAGE_OUTPUT)) bytes += s->stride * p->lanes;
    }
    for (int32_t i = 0; i < p->n_steps; i++) bytes += p->steps[i]->row_bytes;
    return bytes;
}

/* Placement may need more than what is alive at once: then the schedule has to stay below the budget by as much. */
static braid_status plan_fit(plan *p, const plan_options *options, braid_error *err) {
    uint64_t budget = UINT64_MAX, wanted;
    p->fixed_bytes = fixed_bytes(p);
    if (options->memory_budget)
        budget = options->memory_budget > p->fixed_bytes ? (options->memory_budget - p->fixed_bytes) / p->lanes : 0;
    wanted = budget;
    for (int i = 0; i < FIT_TRIES; i++) {
        TRY(plan_waves(p, options, wanted, err));
        TRY(plan_place(p, options, err));
        if (p->arena_bytes <= budget || p->arena_bound > wanted || options->schedule == BRAID_SCHEDULE_SERIAL) break;
        wanted = p->arena_bound - (p->arena_bytes - budget < p->arena_bound ? p->arena_bytes - budget : p->arena_bound);
    }
    return BRAID_OK;
}

braid_status plan_new(const graph *g, arena *memory, const plan_options *options, plan **out, braid_error *err) {
    plan *p = arena_alloc(memory, sizeof *p);
    if (!p) return error_memory(err);
    p->memory = memory;
    p->g = g;
    p->device = options->device;
    p->lanes = options->lanes ? options->lanes : 1;
    p->free_order = options->free_order;
    p->joinable = options->joinable;
    TRY(plan_varies(g, options->varies, memory, &p->varies, err));
    TRY(plan_lower(p, err));
    *out = p;
    if (p->n_host_nodes || options->lower_only) return BRAID_OK;
    return plan_fit(p, options, err);
}
