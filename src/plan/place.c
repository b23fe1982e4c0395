/*
 * place.c: where each arena storage lies.
 *
 * A storage lives from the wave of its first access to that of its last; two storages may share bytes only when these
 * intervals are disjoint. Since waves are separated by barriers anyway, reuse never costs parallelism. (Reuse by list
 * order instead, as a total order of steps suggests, would put a dependency between steps of one wave.)
 *
 * Greedy first fit, largest first and longest-lived first; the better of the two orders is kept. The lower bound is the
 * largest sum of bytes alive in one wave.
 */
#include "plan/plan.h"

#include <stdlib.h>

enum { GUARD_BYTES = 4096 };

typedef struct placement {
    int32_t *items;  /* storages to place */
    int32_t *sorted; /* those that are placed, by offset */
    int32_t n;
    uint64_t *offsets;  /* by storage */
    uint32_t *blocks;
    uint64_t *block_bytes;
    int32_t n_blocks;
    uint64_t total;
} placement;

static uint64_t footprint(const storage *s, const plan_options *options) {
    return s->stride + (options->redzone ? GUARD_BYTES : 0);
}

static int by_size(const void *x, const void *y, void *user) {
    const plan *p = user;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    uint64_t sa = p->storages[a].stride, sb = p->storages[b].stride;
    return sa != sb ? (sa > sb ? -1 : 1) : a < b ? -1 : a > b;
}

static int by_life(const void *x, const void *y, void *user) {
    const plan *p = user;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    int32_t la = p->storages[a].last - p->storages[a].first, lb = p->storages[b].last - p->storages[b].first;
    return la != lb ? (la > lb ? -1 : 1) : by_size(x, y, user);
}

static int by_start(const void *x, const void *y, void *user) {
    const plan *p = user;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    int32_t fa = p->storages[a].first, fb = p->storages[b].first;
    return fa != fb ? (fa < fb ? -1 : 1) : by_size(x, y, user);
}

static bool alive_together(const storage *a, const storage *b, const plan_options *options) {
    return options->redzone || (a->first <= b->last && b->first <= a->last);
}

/* Lowest place for s in a block, between those of the `done` items that are in its way. */
static uint64_t lowest_gap(const plan *p, const placement *r, int32_t done, const storage *s, uint32_t block,
                           const plan_options *options) {
    uint64_t at = 0, size = footprint(s, options);
    for (int32_t i = 0; i < done; i++) {
        int32_t other = r->sorted[i];
        if (r->blocks[other] != block || !alive_together(s, &p->storages[other], options)) continue;
        uint64_t begin = r->offsets[other], end = begin + footprint(&p->storages[other], options);
        if (begin >= at && begin - at >= size) break;
        if (end > at) at = end;
    }
    return at;
}

static void insert_sorted(placement *r, int32_t done, int32_t item) {
    int32_t low = 0, high = done;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (r->offsets[r->sorted[middle]] <= r->offsets[item]) low = middle + 1;
        else high = middle;
    }
    memmove(r->sorted + low + 1, r->sorted + low, (size_t)(done - low) * sizeof *r->sorted);
    r->sorted[low] = item;
}

static void place_one(const plan *p, placement *r, int32_t done, const plan_options *options) {
    int32_t item = r->items[done];
    const storage *s = &p->storages[item];
    uint64_t size = footprint(s, options);
    for (uint32_t block = 0;; block++) {
        uint64_t at = lowest_gap(p, r, done, s, block, options);
        if (at + size > p->device->max_buffer && at > 0) continue;
        if (block == (uint32_t)r->n_blocks) r->block_bytes[r->n_blocks++] = 0;
        r->blocks[item] = block;
        r->offsets[item] = at;
        if (at + size > r->block_bytes[block]) r->block_bytes[block] = at + size;
        insert_sorted(r, done, item);
        return;
    }
}

static braid_status placement_new(plan *p, const int32_t *items, int32_t n, placement *r, braid_error *err) {
    r->n = n;
    r->items = arena_copy(p->memory, items, ((size_t)n + 1) * sizeof *items);
    r->sorted = arena_array(p->memory, (size_t)n + 1, sizeof *r->sorted);
    r->offsets = arena_array(p->memory, (size_t)p->n_storages + 1, sizeof *r->offsets);
    r->blocks = arena_array(p->memory, (size_t)p->n_storages + 1, sizeof *r->blocks);
    r->block_bytes = arena_array(p->memory, (size_t)n + 1, sizeof *r->block_bytes);
    return r->items && r->sorted && r->offsets && r->blocks && r->block_bytes ? BRAID_OK : error_memory(err);
}

static void placement_keep(plan *p, const placement *r) {
    for (int32_t i = 0; i < r->n; i++) {
        p->storages[r->items[i]].offset = r->offsets[r->items[i]];
        p->storages[r->items[i]].index = r->blocks[r->items[i]];
    }
    p->n_blocks = r->n_blocks;
    p->block_bytes = r->block_bytes;
    p->arena_bytes = r->total;
}

static braid_status lower_bound(plan *p, braid_error *err) {
    uint64_t *change = arena_array(p->memory, (size_t)p->n_waves + 2, sizeof *change);
    if (!change) return error_memory(err);
    for (int32_t i = 0; i < p->n_storages; i++) {
        const storage *s = &p->storages[i];
        if (s->kind != STORAGE_ARENA || s->alias != i || s->first > s->last) continue;
        change[s->first] += s->stride;
        change[s->last + 1] -= s->stride; /* unsigned wrap-around is undone by the running sum */
    }
    uint64_t alive = 0;
    for (int32_t w = 0; w < p->n_waves; w++) {
        alive += change[w];
        if (alive > p->arena_bound) p->arena_bound = alive;
    }
    return BRAID_OK;
}

braid_status plan_place(plan *p, const plan_options *options, braid_error *err) {
    int32_t *items = arena_array(p->memory, (size_t)p->n_storages + 1, sizeof *items);
    if (!items) return error_memory(err);
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_storages; i++) {
        const storage *s = &p->storages[i];
        if (s->kind == STORAGE_ARENA && s->alias == i && s->first <= s->last) items[n++] = i;
        if (s->kind == STORAGE_CONST) p->const_bytes += s->stride;
    }
    TRY(lower_bound(p, err));
    int (*const orders[])(const void *, const void *, void *) = {by_size, by_life, by_start};
    placement best = {.total = UINT64_MAX};
    for (size_t o = 0; o < COUNT_OF(orders); o++) {
        placement r = {0};
        TRY(placement_new(p, items, n, &r, err));
        qsort_r(r.items, (size_t)n, sizeof *r.items, orders[o], p);
        for (int32_t i = 0; i < n; i++) place_one(p, &r, i, options);
        for (int32_t b = 0; b < r.n_blocks; b++) r.total += r.block_bytes[b];
        if (r.total < best.total) best = r;
        if (best.total == p->arena_bound) break;
    }
    placement_keep(p, &best);
    return BRAID_OK;
}
