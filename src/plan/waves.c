/*
 * waves.c: when each step runs, and which steps share a dispatch.
 *
 * A step's wave is one more than the last wave that holds a step it must wait for. On current GPUs every barrier drains
 * the queue, so a schedule is a row of waves with one barrier between; the number of waves is the longest dependency
 * chain, the least there can be. Within a wave, steps with the same kernel and constants become rows of one dispatch.
 * BRAID_SCHEDULE_SERIAL gives every step a wave, in the order of lowering; UNMERGED every step a dispatch.
 */
#include "plan/plan.h"

#include <stdlib.h>

/* One access to a storage, in a list per storage. */
typedef struct touch {
    struct touch *next;
    int32_t step;
    uint64_t begin, end;
    uint8_t access;
} touch;

static bool must_wait(const plan *p, const step *later, const step_operand *o, const touch *t) {
    if (!((o->access | t->access) & ACCESS_WRITE)) return false;
    uint64_t begin = plan_offset(p, o->storage) + o->offset;
    if (begin >= t->end || t->begin >= begin + o->bytes) return false;
    bool both_write_only = o->access == ACCESS_WRITE && t->access == ACCESS_WRITE;
    return !(both_write_only && p->steps[t->step]->node == later->node);
}

static braid_status schedule(plan *p, braid_error *err) {
    touch **touches = arena_array(p->memory, (size_t)p->n_storages + 1, sizeof *touches);
    p->wave = arena_array(p->memory, (size_t)p->n_steps + 1, sizeof *p->wave);
    if (!touches || !p->wave) return error_memory(err);
    for (int32_t i = 0; i < p->n_steps; i++) {
        const step *s = p->steps[i];
        int32_t wave = 0;
        for (int k = 0; k < s->n_operands; k++) {
            const step_operand *o = &s->operands[k];
            for (touch *t = touches[plan_root(p, o->storage)]; t; t = t->next)
                if (t->step != i && p->wave[t->step] >= wave && must_wait(p, s, o, t)) wave = p->wave[t->step] + 1;
        }
        p->wave[i] = wave;
        if (wave >= p->n_waves) p->n_waves = wave + 1;
        for (int k = 0; k < s->n_operands; k++) {
            const step_operand *o = &s->operands[k];
            int32_t root = plan_root(p, o->storage);
            if (p->storages[root].kind == STORAGE_CONST || p->storages[root].kind == STORAGE_INPUT) continue;
            touch *t = arena_alloc(p->memory, sizeof *t);
            if (!t) return error_memory(err);
            uint64_t begin = plan_offset(p, o->storage) + o->offset;
            *t = (touch){touches[root], i, begin, begin + o->bytes, o->access};
            touches[root] = t;
        }
    }
    return BRAID_OK;
}

static braid_status schedule_serial(plan *p, braid_error *err) {
    if (!(p->wave = arena_array(p->memory, (size_t)p->n_steps + 1, sizeof *p->wave))) return error_memory(err);
    for (int32_t i = 0; i < p->n_steps; i++) p->wave[i] = i;
    p->n_waves = p->n_steps;
    return BRAID_OK;
}

static void mark_lifetimes(plan *p) {
    for (int32_t i = 0; i < p->n_steps; i++) {
        for (int k = 0; k < p->steps[i]->n_operands; k++) {
            storage *s = &p->storages[plan_root(p, p->steps[i]->operands[k].storage)];
            if (p->wave[i] < s->first) s->first = p->wave[i];
            if (p->wave[i] > s->last) s->last = p->wave[i];
        }
    }
}

/* ---------------------------------------------------------------------------------------------- dispatches */

static int compare_steps(const step *a, const step *b) {
    int c = strcmp(a->kernel, b->kernel);
    if (c) return c;
    if (a->row_bytes != b->row_bytes) return a->row_bytes < b->row_bytes ? -1 : 1;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    if (a->copies != b->copies) return a->copies < b->copies ? -1 : 1;
    if (a->once != b->once) return a->once ? 1 : -1;
    if (a->folded != b->folded) return a->folded ? 1 : -1;
    if (a->n_spec != b->n_spec) return a->n_spec < b->n_spec ? -1 : 1;
    c = memcmp(a->spec_ids, b->spec_ids, (size_t)a->n_spec * sizeof *a->spec_ids);
    return c ? c : memcmp(a->spec, b->spec, (size_t)a->n_spec * sizeof *a->spec);
}

static int by_wave_and_kernel(const void *x, const void *y, void *user) {
    const plan *p = user;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    if (p->wave[a] != p->wave[b]) return p->wave[a] < p->wave[b] ? -1 : 1;
    int c = compare_steps(p->steps[a], p->steps[b]);
    return c ? c : a < b ? -1 : a > b;
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
    return p->wave[a] == p->wave[b] && compare_steps(p->steps[a], p->steps[b]) == 0 &&
           d->tiles + p->steps[b]->tiles < (uint64_t)1 << 31;
}

/* A rough time for cutting submissions: bytes at 100 GB/s or operations at 1 TFLOP/s (1 GFLOP/s on a CPU). */
static uint64_t step_cost(const plan *p, const step *s) {
    uint64_t scale = p->device->software ? 1000 : 1;
    return 1000 + s->bytes / 100 * (scale > 1 ? 50 : 1) + s->flops / 1000 * scale;
}

static braid_status group(plan *p, const plan_options *options, braid_error *err) {
    bool merge = options->schedule == BRAID_SCHEDULE_DEFAULT;
    p->order = arena_array(p->memory, (size_t)p->n_steps + 1, sizeof *p->order);
    p->dispatches = arena_array(p->memory, (size_t)p->n_steps + 1, sizeof *p->dispatches);
    if (!p->order || !p->dispatches) return error_memory(err);
    for (int32_t i = 0; i < p->n_steps; i++) p->order[i] = i;
    qsort_r(p->order, (size_t)p->n_steps, sizeof *p->order, by_wave_and_kernel, p);
    if (options->shuffle) reverse_waves(p);
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
        p->rows_bytes += (uint64_t)d->row_bytes * (uint64_t)d->n_steps;
    }
    return BRAID_OK;
}

braid_status plan_waves(plan *p, const plan_options *options, braid_error *err) {
    TRY(options->schedule == BRAID_SCHEDULE_SERIAL ? schedule_serial(p, err) : schedule(p, err));
    mark_lifetimes(p);
    return group(p, options, err);
}
