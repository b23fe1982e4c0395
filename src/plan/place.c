/*
 * place.c: where each arena storage lies.
 *
 * A storage lives from the wave of its first access to that of its last; two storages may share bytes only when these
 * intervals are disjoint. Since waves are separated by barriers anyway, reuse never costs parallelism. (Reuse by list
 * order instead, as a total order of steps suggests, would put a dependency between steps of one wave.)
 *
 * Greedy first fit in several orders (largest first, longest-lived first, as they come); the best is kept and repaired:
 * the storage that sticks out is placed earlier, and all again. The lower bound is the largest sum of bytes alive in
 * one wave.
 *
 * Who may be in the way of a storage is found in one of two ways, whichever is cheaper: lists by wave of the
 * short-lived storages placed so far, with the long-lived ones apart, or the list of all of them by offset.
 */
#include "plan/plan.h"

#include <stdlib.h>

enum { GUARD_BYTES = 4096 };

enum { LIFE_SHORT = 32 /* waves */, TRIES_MOST = 400, TRIES_WORK = 100000 /* storages placed */ };

typedef struct cell {
    int32_t item, next;
} cell;

typedef struct placement {
    int32_t *items; /* storages to place, in the order in which that happens */
    int32_t n;
    int32_t *sorted; /* those that are placed: the first n_sorted by offset, the others as they came */
    int32_t n_sorted, done;
    cell *cells;
    int32_t n_cells, *by_wave, *count; /* by wave: first cell and number of short-lived storages alive, placed */
    int32_t *longer, n_longer;         /* the others that are placed */
    int32_t *found, *mark; /* those in the way of the current one; mark: by storage, 1 + item that found it */
    uint64_t *offsets;     /* by storage */
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

static int by_area(const void *x, const void *y, void *user) {
    const plan *p = user;
    const storage *a = &p->storages[*(const int32_t *)x], *b = &p->storages[*(const int32_t *)y];
    double sa = (double)a->stride * (a->last - a->first + 1), sb = (double)b->stride * (b->last - b->first + 1);
    return sa > sb ? -1 : sa < sb ? 1 : by_size(x, y, user);
}

/* What is alive in the fullest wave first. */
static int by_peak(const void *x, const void *y, void *user) {
    const plan *p = user;
    const storage *a = &p->storages[*(const int32_t *)x], *b = &p->storages[*(const int32_t *)y];
    bool at_a = a->first <= p->peak_wave && a->last >= p->peak_wave,
         at_b = b->first <= p->peak_wave && b->last >= p->peak_wave;
    return at_a != at_b ? (at_a ? -1 : 1) : by_life(x, y, user);
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

static int by_offset(const void *x, const void *y, void *user) {
    const uint64_t *offsets = user;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return offsets[a] != offsets[b] ? (offsets[a] < offsets[b] ? -1 : 1) : a < b ? -1 : a > b;
}

/* Takes what was placed since the last time into the sorted list; `found` is free for that. */
static void sort_placed(placement *r) {
    int32_t n = r->done - r->n_sorted, at = r->n_sorted - 1;
    if (!n) return;
    memcpy(r->found, r->sorted + r->n_sorted, (size_t)n * sizeof *r->found);
    if (n > 1) qsort_r(r->found, (size_t)n, sizeof *r->found, by_offset, r->offsets);
    for (int32_t to = r->done - 1; n > 0; to--) {
        bool old = at >= 0 && by_offset(&r->sorted[at], &r->found[n - 1], r->offsets) > 0;
        r->sorted[to] = old ? r->sorted[at--] : r->found[--n];
    }
    r->n_sorted = r->done;
}

static bool short_lived(const storage *s) {
    return s->last - s->first < LIFE_SHORT;
}

/* Storages placed that may be in the way of `item`, by offset, and maybe others. */
static int32_t find_others(const plan *p, placement *r, int32_t item, const int32_t **out,
                           const plan_options *options) {
    const storage *s = &p->storages[item];
    int64_t most = r->n_longer, n = 0;
    for (int32_t w = s->first; short_lived(s) && w <= s->last; w++) most += r->count[w];
    if (options->redzone || !short_lived(s) || most > r->done / 8) {
        sort_placed(r);
        *out = r->sorted;
        return r->done;
    }
    for (int32_t w = s->first; w <= s->last; w++)
        for (int32_t c = r->by_wave[w]; c >= 0; c = r->cells[c].next) {
            int32_t other = r->cells[c].item;
            if (r->mark[other] == item + 1) continue;
            r->mark[other] = item + 1;
            r->found[n++] = other;
        }
    for (int32_t i = 0; i < r->n_longer; i++)
        if (alive_together(s, &p->storages[r->longer[i]], options)) r->found[n++] = r->longer[i];
    if (n > 1) qsort_r(r->found, (size_t)n, sizeof *r->found, by_offset, r->offsets);
    *out = r->found;
    return (int32_t)n;
}

static void remember(const plan *p, placement *r, int32_t item) {
    const storage *s = &p->storages[item];
    r->sorted[r->done++] = item;
    if (!short_lived(s)) {
        r->longer[r->n_longer++] = item;
        return;
    }
    for (int32_t w = s->first; w <= s->last; w++) {
        r->cells[r->n_cells] = (cell){item, r->by_wave[w]};
        r->by_wave[w] = r->n_cells++;
        r->count[w]++;
    }
}

/* Lowest place for s in a block, between those of others (by offset) that are in its way. */
static uint64_t lowest_gap(const plan *p, const placement *r, const int32_t *others, int32_t n, const storage *s,
                           uint32_t block, const plan_options *options) {
    uint64_t at = 0, size = footprint(s, options);
    for (int32_t i = 0; i < n; i++) {
        int32_t other = others[i];
        uint64_t begin = r->offsets[other], end = begin + footprint(&p->storages[other], options);
        if (end <= at || r->blocks[other] != block || !alive_together(s, &p->storages[other], options)) continue;
        if (begin >= at && begin - at >= size) break;
        at = end;
    }
    return at;
}

static void place_one(const plan *p, placement *r, int32_t item, const plan_options *options) {
    const storage *s = &p->storages[item];
    const int32_t *others;
    int32_t n = find_others(p, r, item, &others, options);
    uint64_t size = footprint(s, options);
    for (uint32_t block = 0;; block++) {
        uint64_t at = lowest_gap(p, r, others, n, s, block, options);
        if (at + size > p->device->max_buffer && at > 0) continue;
        if (block == (uint32_t)r->n_blocks) r->block_bytes[r->n_blocks++] = 0;
        r->blocks[item] = block;
        r->offsets[item] = at;
        if (at + size > r->block_bytes[block]) r->block_bytes[block] = at + size;
        remember(p, r, item);
        return;
    }
}

static braid_status placement_new(const plan *p, arena *memory, const int32_t *items, int32_t n, placement *r,
                                  braid_error *err) {
    size_t count = (size_t)n + 1, n_storages = (size_t)p->n_storages + 1, n_waves = (size_t)p->n_waves + 1, n_cells = 1;
    for (int32_t i = 0; i < n; i++) {
        const storage *s = &p->storages[items[i]];
        if (short_lived(s)) n_cells += (size_t)(s->last - s->first) + 1;
    }
    if (n_cells > INT32_MAX) return error_set(err, BRAID_LIMIT, "too many tensors to place");
    *r = (placement){.n = n,
                     .items = arena_copy(memory, items, count * sizeof *items),
                     .sorted = arena_array(memory, count, sizeof *r->sorted),
                     .cells = arena_array(memory, n_cells, sizeof *r->cells),
                     .by_wave = arena_array(memory, n_waves, sizeof *r->by_wave),
                     .count = arena_array(memory, n_waves, sizeof *r->count),
                     .longer = arena_array(memory, count, sizeof *r->longer),
                     .found = arena_array(memory, count, sizeof *r->found),
                     .mark = arena_array(memory, n_storages, sizeof *r->mark),
                     .offsets = arena_array(memory, n_storages, sizeof *r->offsets),
                     .blocks = arena_array(memory, n_storages, sizeof *r->blocks),
                     .block_bytes = arena_array(memory, count, sizeof *r->block_bytes)};
    bool ok = r->items && r->sorted && r->cells && r->by_wave && r->count && r->longer && r->found && r->mark &&
              r->offsets && r->blocks && r->block_bytes;
    for (size_t w = 0; ok && w < n_waves; w++) r->by_wave[w] = -1;
    return ok ? BRAID_OK : error_memory(err);
}

static braid_status placement_keep(plan *p, const placement *r, braid_error *err) {
    for (int32_t i = 0; i < r->n; i++) {
        p->storages[r->items[i]].offset = r->offsets[r->items[i]];
        p->storages[r->items[i]].index = r->blocks[r->items[i]];
    }
    p->n_blocks = r->n_blocks;
    p->block_bytes = arena_copy(p->memory, r->block_bytes, ((size_t)r->n_blocks + 1) * sizeof *r->block_bytes);
    p->arena_bytes = r->total;
    return p->block_bytes ? BRAID_OK : error_memory(err);
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
        if (alive <= p->arena_bound) continue;
        p->arena_bound = alive;
        p->peak_wave = w;
    }
    return BRAID_OK;
}

static braid_status place_in_order(const plan *p, arena *memory, const int32_t *items, int32_t n, placement *out,
                                   const plan_options *options, braid_error *err) {
    TRY(placement_new(p, memory, items, n, out, err));
    for (int32_t i = 0; i < n; i++) place_one(p, out, out->items[i], options);
    for (int32_t b = 0; b < out->n_blocks; b++) out->total += out->block_bytes[b];
    return BRAID_OK;
}

/* What sticks out: the storage that reaches furthest, by its place in the order. */
static int32_t furthest(const plan *p, const placement *r, const plan_options *options) {
    int32_t top = 0;
    uint64_t reach = 0;
    for (int32_t i = 0; i < r->n; i++) {
        uint64_t end = r->offsets[r->items[i]] + footprint(&p->storages[r->items[i]], options);
        if (end <= reach) continue;
        reach = end;
        top = i;
    }
    return top;
}

static uint32_t draw(uint64_t *state, int32_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % (uint64_t)below);
}

/* Any storage that is alive together with the one at `top`, by its place in the order. */
static int32_t near(const plan *p, const placement *r, int32_t top, uint64_t *state) {
    const storage *s = &p->storages[r->items[top]];
    int32_t from = (int32_t)draw(state, r->n);
    for (int32_t i = 0; i < r->n; i++, from = from + 1 < r->n ? from + 1 : 0) {
        const storage *other = &p->storages[r->items[from]];
        if (s->first <= other->last && other->first <= s->last) break;
    }
    return from;
}

static void move_to(const placement *r, int32_t from, int32_t to, int32_t *items) {
    memcpy(items, r->items, (size_t)r->n * sizeof *items);
    memmove(items + to + 1, items + to, (size_t)(from - to) * sizeof *items);
    items[to] = r->items[from];
}

/* What sticks out is placed earlier, right behind what stuck out before it, or to the front when it does so again;
   then, by turns, anything that is alive beside it anywhere. The same plan is always repaired in the same way. */
static braid_status repair(const plan *p, arena *memory, int32_t *items, int32_t n, placement *best,
                           const plan_options *options, braid_error *err) {
    placement r = *best;
    uint64_t state = 1;
    int32_t promoted = 0;
    uint64_t enough = p->arena_bound + p->arena_bound / 256;
    for (int32_t i = 0; i < TRIES_MOST && i < TRIES_WORK / n && best->total > enough; i++) {
        bool promote = i < TRIES_MOST / 3 || i % 2 == 0;
        if (i > TRIES_MOST / 3 && i % 16 == 0) r = *best;
        int32_t top = furthest(p, &r, options), from = promote ? top : near(p, &r, top, &state), to = 0;
        if (!promote || i % 8 == 0)
            to = (int32_t)draw(&state, from + 1);
        else if (from >= promoted)
            to = promoted++;
        move_to(&r, from, to, items);
        TRY(place_in_order(p, memory, items, n, &r, options, err));
        if (r.total <= best->total) *best = r;
    }
    return BRAID_OK;
}

/* Fills *best with the best of several orders, and of what becomes of that one when what sticks out goes first. */
static braid_status place_all(const plan *p, arena *memory, int32_t *items, int32_t n, placement *best,
                              const plan_options *options, braid_error *err) {
    int (*const orders[])(const void *, const void *, void *) = {by_size, by_life, by_area, by_start, by_peak};
    placement r;
    for (size_t o = 0; o < COUNT_OF(orders) && best->total > p->arena_bound; o++) {
        qsort_r(items, (size_t)n, sizeof *items, orders[o], (void *)p);
        TRY(place_in_order(p, memory, items, n, &r, options, err));
        if (r.total < best->total) *best = r;
    }
    if (options->redzone || n == 0) return BRAID_OK;
    return repair(p, memory, items, n, best, options, err);
}

braid_status plan_place(plan *p, const plan_options *options, braid_error *err) {
    int32_t *items = arena_array(p->memory, (size_t)p->n_storages + 1, sizeof *items), n = 0;
    if (!items) return error_memory(err);
    p->arena_bound = p->const_bytes = 0;
    for (int32_t i = 0; i < p->n_storages; i++) {
        const storage *s = &p->storages[i];
        if (s->kind == STORAGE_ARENA && s->alias == i && s->first <= s->last) items[n++] = i;
        if (s->kind == STORAGE_CONST && s->first <= s->last) p->const_bytes += s->stride; /* what a step reads */
    }
    TRY(lower_bound(p, err));
    arena *memory = arena_new();
    placement best = {.total = UINT64_MAX};
    braid_status status = memory ? place_all(p, memory, items, n, &best, options, err) : error_memory(err);
    if (status == BRAID_OK) status = placement_keep(p, &best, err);
    arena_free(memory);
    return status;
}
