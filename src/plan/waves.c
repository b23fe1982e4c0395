/*
 * waves.c: when each step runs, and which steps share a dispatch.
 *
 * On current GPUs every barrier drains the queue, so a schedule is a row of waves with one barrier between (schedule.c).
 * Within a wave, steps with the same kernel and constants become rows of one dispatch; long ones come first.
 * BRAID_SCHEDULE_SERIAL gives every step a wave, in the order of lowering; UNMERGED every step a dispatch.
 */
#include "plan/waves.h"

#include <stdlib.h>

static void schedule_serial(const plan *p, schedule *out) {
    for (int32_t i = 0; i < p->n_steps; i++) out->wave[i] = i;
    out->n_waves = p->n_steps;
}

static braid_status schedule_with(plan *p, const plan_options *options, uint64_t budget, arena *memory, braid_error *err) {
    links l;
    costs c;
    schedule best = {.wave = arena_array(memory, (size_t)p->n_steps + 1, sizeof *best.wave)};
    if (!best.wave) return error_memory(err);
    TRY(costs_make(p, memory, &c, err));
    if (options->schedule == BRAID_SCHEDULE_SERIAL) {
        schedule_serial(p, &best);
        TRY(schedule_rate(p, &c, &best, err));
    } else {
        TRY(links_make(p, memory, &l, err));
        TRY(schedule_make(p, &l, &c, budget, memory, &best, err));
    }
    p->n_waves = best.n_waves;
    p->time_ns = best.time;
    p->arena_bound = best.bytes;
    p->wave = arena_copy(p->memory, best.wave, ((size_t)p->n_steps + 1) * sizeof *p->wave);
    p->alone_ns = arena_copy(p->memory, c.alone, ((size_t)p->n_steps + 1) * sizeof *p->alone_ns);
    return p->wave && p->alone_ns ? BRAID_OK : error_memory(err);
}

static braid_status schedule_waves(plan *p, const plan_options *options, uint64_t budget, braid_error *err) {
    arena *memory = arena_new();
    if (!memory) return error_memory(err);
    braid_status status = schedule_with(p, options, budget, memory, err);
    arena_free(memory);
    return status;
}

/* What costs no time comes first: the fastest schedule, then that one with results in place, then slower ones. */
static braid_status schedule_within(plan *p, const plan_options *options, uint64_t budget, braid_error *err) {
    TRY(schedule_waves(p, options, UINT64_MAX, err));
    if (p->arena_bound <= budget) return BRAID_OK;
    if (!p->in_place) TRY(plan_in_place(p, &p->in_place, err));
    if (p->in_place) TRY(schedule_waves(p, options, UINT64_MAX, err));
    return p->arena_bound <= budget ? BRAID_OK : schedule_waves(p, options, budget, err);
}

static void mark_lifetimes(plan *p) {
    for (int32_t i = 0; i < p->n_storages; i++) {
        p->storages[i].first = INT32_MAX;
        p->storages[i].last = -1;
    }
    for (int32_t i = 0; i < p->n_steps; i++) {
        for (int k = 0; k < p->steps[i]->n_operands; k++) {
            storage *s = &p->storages[plan_root(p, p->steps[i]->operands[k].storage)];
            if (p->wave[i] < s->first) s->first = p->wave[i];
            if (p->wave[i] > s->last) s->last = p->wave[i];
        }
    }
}

/* ---------------------------------------------------------------------------------------------- dispatches */

bool plan_steps_join(const step *a, const step *b) {
    size_t spec_bytes = (size_t)a->n_spec * sizeof *a->spec;
    return strcmp(a->kernel, b->kernel) == 0 && a->row_bytes == b->row_bytes && a->group == b->group &&
           a->copies == b->copies && a->once == b->once && a->folded == b->folded && a->n_spec == b->n_spec &&
           memcmp(a->spec_ids, b->spec_ids, spec_bytes) == 0 && memcmp(a->spec, b->spec, spec_bytes) == 0;
}

/* Numbers the steps' pipelines by first appearance. */
static braid_status number_pipelines(plan *p, braid_error *err) {
    uint32_t size = 16;
    while (size < (uint32_t)p->n_steps * 2) size *= 2;
    int32_t *table = arena_array(p->memory, size, sizeof *table); /* step + 1 */
    p->n_pipelines = 0;
    if (!(p->pipeline = arena_array(p->memory, (size_t)p->n_steps + 1, sizeof *p->pipeline)) || !table)
        return error_memory(err);
    for (int32_t i = 0; i < p->n_steps; i++) {
        const step *s = p->steps[i];
        uint64_t hash = hash_bytes(s->group, s->kernel, strlen(s->kernel));
        hash = hash_bytes(hash ^ s->row_bytes, s->spec, (size_t)s->n_spec * sizeof *s->spec);
        uint32_t at = (uint32_t)(hash ^ hash >> 32) & (size - 1);
        while (table[at] && !plan_steps_join(p->steps[table[at] - 1], s)) at = (at + 1) & (size - 1);
        if (!table[at]) {
            table[at] = i + 1;
            p->pipeline[i] = p->n_pipelines++;
        } else {
            p->pipeline[i] = p->pipeline[table[at] - 1];
        }
    }
    return BRAID_OK;
}

typedef struct sorting {
    const plan *p;
    double *longest; /* of each step: the longest alone of its pipeline in its wave; 0 at first */
} sorting;

/* By wave; in it what takes longest first, so that nothing long starts last; steps of one pipeline together. */
static int by_wave_and_pipeline(const void *x, const void *y, void *user) {
    const sorting *q = user;
    const plan *p = q->p;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    if (p->wave[a] != p->wave[b]) return p->wave[a] < p->wave[b] ? -1 : 1;
    if (q->longest[a] > q->longest[b]) return -1;
    if (q->longest[a] < q->longest[b]) return 1;
    if (p->pipeline[a] != p->pipeline[b]) return p->pipeline[a] < p->pipeline[b] ? -1 : 1;
    if (p->alone_ns[a] > p->alone_ns[b]) return -1;
    if (p->alone_ns[a] < p->alone_ns[b]) return 1;
    return a < b ? -1 : a > b;
}

static braid_status sort_steps(plan *p, braid_error *err) {
    sorting q = {p, arena_array(p->memory, (size_t)p->n_steps + 1, sizeof *q.longest)};
    if (!(p->order = arena_array(p->memory, (size_t)p->n_steps + 1, sizeof *p->order)) || !q.longest)
        return error_memory(err);
    for (int32_t i = 0; i < p->n_steps; i++) p->order[i] = i;
    qsort_r(p->order, (size_t)p->n_steps, sizeof *p->order, by_wave_and_pipeline, &q);
    for (int32_t i = 0, head = -1; i < p->n_steps; i++) {
        int32_t id = p->order[i];
        if (head < 0 || p->wave[id] != p->wave[head] || p->pipeline[id] != p->pipeline[head]) head = id;
        q.longest[id] = p->alone_ns[head]; /* the first of its pipeline is the longest */
    }
    qsort_r(p->order, (size_t)p->n_steps, sizeof *p->order, by_wave_and_pipeline, &q);
    return BRAID_OK;
}

static void reverse(int32_t *items, int32_t n) {
    for (int32_t i = 0; i < n / 2; i++) {
        int32_t t = items[i];
        items[i] = items[n - 1 - i];
        items[n - 1 - i] = t;
    }
}

/* The test order: within each wave everything is turned round. */
static void reverse_waves(plan *p) {
    for (int32_t i = 0, end; i < p->n_steps; i = end) {
        for (end = i; end < p->n_steps && p->wave[p->order[end]] == p->wave[p->order[i]];) end++;
        reverse(p->order + i, end - i);
    }
}

/* 2^31 tiles is what the kernels' 32-bit tile numbers leave room for. */
static bool may_join(const plan *p, const plan_dispatch *d, int32_t a, int32_t b) {
    return p->wave[a] == p->wave[b] && p->pipeline[a] == p->pipeline[b] &&
           d->tiles + p->steps[b]->tiles < (uint64_t)1 << 31;
}

/* A rough time for cutting submissions: bytes at 100 GB/s or operations at 1 TFLOP/s (1 GFLOP/s on a CPU). */
static uint64_t step_cost(const plan *p, const step *s) {
    uint64_t scale = p->device->software ? 1000 : 1;
    return 1000 + s->bytes / 100 * (scale > 1 ? 50 : 1) + s->flops / 1000 * scale;
}

static uint32_t equal_tiles(const plan *p, const plan_dispatch *d) {
    uint64_t tiles = p->steps[p->order[d->first_step]]->tiles;
    for (int32_t k = 1; k < d->n_steps; k++)
        if (p->steps[p->order[d->first_step + k]]->tiles != tiles) return 0;
    return d->n_steps > 1 ? (uint32_t)tiles : 0;
}

static braid_status group(plan *p, const plan_options *options, braid_error *err) {
    bool merge = options->schedule == BRAID_SCHEDULE_DEFAULT;
    p->dispatches = arena_array(p->memory, (size_t)p->n_steps + 1, sizeof *p->dispatches);
    if (!p->dispatches) return error_memory(err);
    TRY(sort_steps(p, err));
    if (options->shuffle) reverse_waves(p);
    p->n_dispatches = 0;
    p->rows_bytes = 0;
    for (int32_t i = 0, end; i < p->n_steps; i = end) {
        plan_dispatch *d = &p->dispatches[p->n_dispatches++];
        int32_t head = p->order[i];
        *d = (plan_dispatch){.wave = p->wave[head], .first_step = i, .rows_offset = p->rows_bytes,
                             .row_bytes = p->steps[head]->row_bytes, .copies = p->steps[head]->copies,
                             .once = p->steps[head]->once, .folded = p->steps[head]->folded};
        for (end = i; end < p->n_steps && (end == i || (merge && may_join(p, d, head, p->order[end]))); end++) {
            d->tiles += p->steps[p->order[end]]->tiles;
            d->cost_ns += step_cost(p, p->steps[p->order[end]]);
        }
        d->n_steps = end - i;
        d->row_tiles = equal_tiles(p, d);
        p->rows_bytes += (uint64_t)d->row_bytes * (uint64_t)d->n_steps;
    }
    return BRAID_OK;
}

braid_status plan_waves(plan *p, const plan_options *options, uint64_t budget, braid_error *err) {
    TRY(number_pipelines(p, err));
    TRY(schedule_within(p, options, budget, err));
    mark_lifetimes(p);
    return group(p, options, err);
}
