/*
 * memory.c: what a session's largest piece of device work could do with less memory.
 */
#include "api/session.h"

enum { CHOICES = 12 };

static const segment *largest(const stage *st) {
    const segment *best = NULL;
    for (int32_t i = 0; st && i < st->n_segments; i++) {
        const segment *seg = &st->segments[i];
        if (!seg->on_host && seg->p && (!best || seg->p->arena_bytes > best->p->arena_bytes)) best = seg;
    }
    return best;
}

/* Plans it again under a budget, in the memory of the plan there is: constants loaded for it stay loaded. */
static braid_status choose(const braid_session *s, const segment *seg, uint64_t budget, braid_memory_choice *out,
                           braid_error *err) {
    plan_options options = segment_plan_options(s, seg);
    plan *p;
    options.memory_budget = budget;
    TRY(plan_new(seg->g, seg->p->memory, &options, &p, err));
    *out = (braid_memory_choice){.bytes = p->fixed_bytes + p->arena_bytes * seg->bucket,
                                 .arena_bytes = p->arena_bytes * seg->bucket,
                                 .waves = (uint64_t)p->n_waves,
                                 .dispatches = (uint64_t)p->n_dispatches,
                                 .time_ns = (uint64_t)p->time_ns,
                                 .in_place = (uint64_t)p->in_place};
    return BRAID_OK;
}

/* From no budget down to the least, in equal steps; what saves nothing is left out. */
static braid_status list_choices(const braid_session *s, const segment *seg, braid_memory_choice *out, size_t *count,
                                 braid_error *err) {
    braid_memory_choice least;
    TRY(choose(s, seg, 0, &out[0], err));
    TRY(choose(s, seg, 1, &least, err));
    *count = 1;
    for (uint64_t i = 1; i < CHOICES - 1 && least.bytes < out[0].bytes; i++) {
        uint64_t saved = (out[0].bytes - least.bytes) / (CHOICES - 1) * i;
        braid_memory_choice c;
        TRY(choose(s, seg, out[0].bytes - saved, &c, err));
        if (c.bytes < out[*count - 1].bytes && c.bytes > least.bytes) out[(*count)++] = c;
    }
    if (least.bytes < out[*count - 1].bytes) out[(*count)++] = least;
    return BRAID_OK;
}

braid_status braid_session_memory(braid_session *s, const braid_memory_choice **out, size_t *count, braid_error *err) {
    error_clear(err);
    if (!s || !out || !count) return error_set(err, BRAID_ARGUMENT, "braid_session_memory: a pointer is NULL");
    *count = 0;
    pthread_mutex_lock(&s->lock);
    const segment *seg = largest(session_stage(s));
    mem_free(s->choices);
    *out = s->choices = mem_alloc(CHOICES * sizeof *s->choices);
    braid_status status = s->choices ? BRAID_OK : error_memory(err);
    if (status == BRAID_OK && seg) status = list_choices(s, seg, s->choices, count, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}
