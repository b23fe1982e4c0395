/*
 * schedule.c: in which wave each step runs.
 *
 * Candidates are made and rated by the cost model; the fastest that keeps to the memory limits wins:
 *   as soon as possible   every step in the wave behind the last one it waits for: the fewest waves, wide at the start
 *   by critical path      wave by wave, for the least number of waves and some more: steps that can wait no longer set
 *                         the wave's length; ready steps that fit beside them go along, longer ones wait for a longer
 *                         wave
 *   by progress           wave by wave, each as long as gets the graph on furthest for its time (progress.c)
 *   polished              these after moves of single steps within their slack: to where they merge, fill a wave, or
 *                         shorten the lives of tensors (polish.c)
 *   narrow                the best of these, with short windows of few steps scheduled exactly (narrow.c)
 *   lean                  where these need more than the budget: steps run while their tensors fit (lean.c)
 *   one by one            in the order of lowering
 * On current GPUs every barrier drains the queue, hence waves; the longest chain of steps is the least number of them.
 */
#include "plan/waves.h"

enum {
    RELAXED = 4,    /* candidates with as many waves as the longest chain and more */
    LEAN_TRIES = 4, /* limits below the budget */
    PATIENCES = 3
};
static const double patiences[PATIENCES] = {1.5, 5, 12}; /* barriers */

/* ------------------------------------------------------------------------------------------------ the graph */

/* The edges the other way round, and how many waves must follow each node. */
static braid_status turn_round(const links *l, arena *memory, links *out, braid_error *err) {
    int32_t n_edges = l->first[l->n];
    *out = (links){.n = l->n,
                   .order = l->order,
                   .first = arena_array(memory, (size_t)l->n + 3, sizeof *out->first),
                   .before = arena_array(memory, (size_t)n_edges + 1, sizeof *out->before)};
    if (!out->first || !out->before) return error_memory(err);
    for (int32_t i = 0; i < n_edges; i++) out->first[l->before[i] + 2]++;
    for (int32_t i = 2; i <= l->n; i++) out->first[i] += out->first[i - 1];
    for (int32_t i = 0; i < l->n; i++)
        for (int32_t k = l->first[i]; k < l->first[i + 1]; k++) out->before[out->first[l->before[k] + 1]++] = i;
    return BRAID_OK;
}

static void as_soon_as_possible(const scheduler *s, schedule *out, int32_t *wave) {
    out->n_waves = 0;
    for (int32_t i = 0; i < s->l->n; i++) {
        int32_t id = s->l->order[i], last = -1; /* a join's wave is that of the last step in it */
        for (int32_t k = s->l->first[id]; k < s->l->first[id + 1]; k++)
            if (wave[s->l->before[k]] > last) last = wave[s->l->before[k]];
        wave[id] = id < s->p->n_steps ? last + 1 : last;
        if (id < s->p->n_steps) out->wave[id] = wave[id];
        if (wave[id] >= out->n_waves) out->n_waves = wave[id] + 1;
    }
}

/* depth: length of the longest chain of steps behind each node. */
static void measure_depth(scheduler *s) {
    for (int32_t i = s->l->n - 1; i >= 0; i--) {
        int32_t id = s->l->order[i], most = 0;
        for (int32_t k = s->after.first[id]; k < s->after.first[id + 1]; k++) {
            int32_t next = s->after.before[k], depth = s->depth[next] + (next < s->p->n_steps);
            if (depth > most) most = depth;
        }
        s->depth[id] = most;
    }
}

static bool any_slack(const scheduler *s, const schedule *soon) {
    for (int32_t i = 0; i < s->p->n_steps; i++)
        if (soon->wave[i] + s->depth[i] + 1 < soon->n_waves) return true;
    return false;
}

static braid_status schedule_new(const plan *p, arena *memory, schedule *out, braid_error *err) {
    *out = (schedule){.wave = arena_array(memory, (size_t)p->n_steps + 1, sizeof *out->wave)};
    return out->wave ? BRAID_OK : error_memory(err);
}

/* -------------------------------------------------------------------------------------------- critical path */

/* Ready steps, the shortest first: a binary heap. */
typedef struct heap {
    int32_t *at, n;
    const double *key;
} heap;

static void heap_push(heap *h, int32_t id) {
    int32_t i = h->n++;
    for (; i && h->key[h->at[(i - 1) / 2]] > h->key[id]; i = (i - 1) / 2) h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = id;
}

static int32_t heap_pop(heap *h) {
    int32_t top = h->at[0], last = h->at[--h->n], i = 0;
    for (int32_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && h->key[h->at[child + 1]] < h->key[h->at[child]]) child++;
        if (h->key[h->at[child]] >= h->key[last]) break;
        h->at[i] = h->at[child];
    }
    h->at[i] = last;
    return top;
}

typedef struct lister {
    const scheduler *s;
    schedule *out;
    heap ready;
    int32_t *waiting;        /* of each node: how many it still waits for */
    int32_t *due, *next_due; /* by wave: steps that can wait no longer, as lists */
    int32_t *done, n_done;   /* of the wave being made */
    int32_t *joins, *fresh;  /* room for a stack; for what one step lets go of */
} lister;

int32_t schedule_release(const scheduler *s, int32_t id, int32_t *waiting, int32_t *stack, int32_t *out) {
    const links *after = &s->after;
    int32_t found = 0;
    stack[0] = id;
    for (int32_t n = 1; n > 0;) {
        int32_t from = stack[--n];
        for (int32_t k = after->first[from]; k < after->first[from + 1]; k++) {
            int32_t next = after->before[k];
            if (--waiting[next]) continue;
            if (next < s->p->n_steps)
                out[found++] = next;
            else
                stack[n++] = next;
        }
    }
    return found;
}

static void push_ready(lister *r, int32_t id) {
    int32_t n = schedule_release(r->s, id, r->waiting, r->joins, r->fresh);
    for (int32_t i = 0; i < n; i++) heap_push(&r->ready, r->fresh[i]);
}

static void take(lister *r, int32_t id, int32_t wave, double *work) {
    r->out->wave[id] = wave;
    r->done[r->n_done++] = id;
    *work += r->s->costs->work[id];
}

static void make_wave(lister *r, int32_t wave) {
    const costs *c = r->s->costs;
    double length = 0, work = 0;
    r->n_done = 0;
    for (int32_t id = r->due[wave]; id >= 0; id = r->next_due[id]) {
        if (r->out->wave[id] >= 0) continue;
        take(r, id, wave, &work);
        if (c->alone[id] > length) length = c->alone[id];
    }
    while (r->ready.n) {
        int32_t id = r->ready.at[0];
        bool taken = r->out->wave[id] >= 0;
        if (!taken && r->n_done && (c->alone[id] > length || work + c->work[id] > length)) break;
        heap_pop(&r->ready);
        if (taken) continue;
        take(r, id, wave, &work);
        if (c->alone[id] > length) length = c->alone[id];
    }
    for (int32_t i = 0; i < r->n_done; i++) push_ready(r, r->done[i]);
}

/* Schedules into n_waves waves, which must be as many as the longest chain or more. */
static braid_status by_critical_path(const scheduler *s, int32_t n_waves, schedule *out, braid_error *err) {
    arena *memory = arena_new();
    if (!memory) return error_memory(err);
    size_t n = (size_t)s->l->n + 1;
    lister r = {.s = s,
                .out = out,
                .ready = {arena_array(memory, n, sizeof(int32_t)), 0, s->costs->alone},
                .waiting = arena_array(memory, n, sizeof(int32_t)),
                .next_due = arena_array(memory, n, sizeof(int32_t)),
                .done = arena_array(memory, n, sizeof(int32_t)),
                .joins = arena_array(memory, n, sizeof(int32_t)),
                .fresh = arena_array(memory, n, sizeof(int32_t)),
                .due = arena_array(memory, (size_t)n_waves + 1, sizeof(int32_t))};
    bool ok = r.ready.at && r.waiting && r.next_due && r.done && r.joins && r.fresh && r.due;
    out->n_waves = n_waves;
    for (int32_t w = 0; ok && w < n_waves; w++) r.due[w] = -1;
    for (int32_t i = 0; ok && i < s->p->n_steps; i++) {
        int32_t wave = n_waves - 1 - s->depth[i];
        out->wave[i] = -1;
        r.next_due[i] = r.due[wave];
        r.due[wave] = i;
    }
    for (int32_t i = 0; ok && i < s->l->n; i++) r.waiting[i] = s->l->first[i + 1] - s->l->first[i];
    for (int32_t i = 0; ok && i < s->p->n_steps; i++)
        if (!r.waiting[i]) heap_push(&r.ready, i);
    for (int32_t w = 0; ok && w < n_waves; w++) make_wave(&r, w);
    arena_free(memory);
    return ok ? BRAID_OK : error_memory(err);
}

/* --------------------------------------------------------------------------------------------------- choice */

/* Numbers the waves that hold steps without gaps. */
static braid_status close_gaps(const plan *p, schedule *s, arena *memory, braid_error *err) {
    int32_t *number = arena_array(memory, (size_t)s->n_waves + 1, sizeof *number), n = 0;
    if (!number) return error_memory(err);
    for (int32_t i = 0; i < p->n_steps; i++) number[s->wave[i]] = 1;
    for (int32_t w = 0; w < s->n_waves; w++) number[w] = number[w] ? n++ : -1;
    for (int32_t i = 0; i < p->n_steps; i++) s->wave[i] = number[s->wave[i]];
    s->n_waves = n;
    return BRAID_OK;
}

/* Is a to be preferred to b: within the limit of bytes, then faster, where twice the bytes of the schedule as soon as
   possible are worth a twentieth of the time. */
static bool better(const schedule *a, const schedule *b, uint64_t limit) {
    bool fits_a = a->bytes <= limit, fits_b = b->bytes <= limit;
    if (fits_a != fits_b) return fits_a;
    if (!fits_a && a->bytes != b->bytes) return a->bytes < b->bytes;
    return a->score < b->score;
}

static braid_status rate(const scheduler *s, schedule *candidate, braid_error *err) {
    TRY(schedule_rate(s->p, s->costs, candidate, err));
    candidate->score = candidate->time;
    if (s->soon_bytes) candidate->score *= 1 + (double)candidate->bytes / (double)s->soon_bytes / 20;
    return BRAID_OK;
}

static braid_status offer(const scheduler *s, schedule *candidate, uint64_t limit, schedule *best, arena *memory,
                          braid_error *err) {
    TRY(close_gaps(s->p, candidate, memory, err));
    TRY(rate(s, candidate, err));
    if (better(candidate, best, limit)) *best = *candidate;
    return BRAID_OK;
}

static braid_status schedule_copy(const scheduler *s, const schedule *from, arena *memory, schedule *out,
                                  braid_error *err) {
    *out = *from;
    out->wave = arena_copy(memory, from->wave, ((size_t)s->p->n_steps + 1) * sizeof *out->wave);
    return out->wave ? BRAID_OK : error_memory(err);
}

static braid_status polished(const scheduler *s, const schedule *from, bool lean, uint64_t limit, schedule *best,
                             arena *memory, braid_error *err) {
    schedule now;
    TRY(schedule_copy(s, from, memory, &now, err));
    TRY(schedule_polish(s, &now, lean, err));
    return offer(s, &now, limit, best, memory, err);
}

static braid_status by_progress(const scheduler *s, double patience, uint64_t limit, schedule *best, arena *memory,
                                braid_error *err) {
    schedule now;
    bool made;
    TRY(schedule_new(s->p, memory, &now, err));
    TRY(schedule_progress(s, patience, &now, &made, err));
    return made ? offer(s, &now, limit, best, memory, err) : BRAID_OK;
}

/* With slack there is a choice. Memory may grow by half where time is gained that is worth it. */
static braid_status choose(const scheduler *s, const schedule *soon, uint64_t budget, schedule *best, arena *memory,
                           braid_error *err) {
    uint64_t limit = soon->bytes + soon->bytes / 2;
    int32_t extra[RELAXED] = {0, 1, soon->n_waves / 8, soon->n_waves / 3};
    if (limit > budget) limit = budget;
    for (int i = 0; i < RELAXED; i++) {
        schedule listed;
        if (i > 1 && extra[i] <= extra[i - 1]) continue;
        TRY(schedule_new(s->p, memory, &listed, err));
        TRY(by_critical_path(s, soon->n_waves + extra[i], &listed, err));
        TRY(offer(s, &listed, limit, best, memory, err));
    }
    schedule listed = *best;
    for (int i = 0; i < PATIENCES; i++) TRY(by_progress(s, patiences[i] * s->costs->barrier, limit, best, memory, err));
    schedule moved = *best;
    TRY(polished(s, soon, false, limit, best, memory, err));
    TRY(polished(s, soon, true, limit, best, memory, err));
    if (listed.wave != soon->wave) TRY(polished(s, &listed, false, limit, best, memory, err));
    if (moved.wave != listed.wave) TRY(polished(s, &moved, false, limit, best, memory, err));
    schedule now;
    TRY(schedule_copy(s, best, memory, &now, err));
    TRY(schedule_narrow(s, &now, err));
    return offer(s, &now, limit, best, memory, err);
}

/* Narrower and narrower, until the budget is kept. */
static braid_status save_memory(const scheduler *s, uint64_t budget, schedule *best, arena *memory, braid_error *err) {
    for (int i = 0; i < LEAN_TRIES; i++) {
        schedule now;
        TRY(schedule_new(s->p, memory, &now, err));
        TRY(schedule_lean(s, i + 1 < LEAN_TRIES ? budget / LEAN_TRIES * (uint64_t)(LEAN_TRIES - i) : 0, &now, err));
        TRY(offer(s, &now, budget, best, memory, err));
        TRY(polished(s, &now, false, budget, best, memory, err));
        TRY(polished(s, &now, true, budget, best, memory, err));
    }
    schedule now;
    TRY(schedule_new(s->p, memory, &now, err));
    for (int32_t i = 0; i < s->p->n_steps; i++) now.wave[i] = i;
    now.n_waves = s->p->n_steps;
    TRY(offer(s, &now, budget, best, memory, err));
    return polished(s, &now, true, budget, best, memory, err);
}

braid_status schedule_make(const plan *p, const links *l, const costs *c, uint64_t budget, arena *memory, schedule *out,
                           braid_error *err) {
    scheduler s = {.p = p, .l = l, .costs = c, .depth = arena_array(memory, (size_t)l->n + 1, sizeof *s.depth)};
    int32_t *wave = arena_array(memory, (size_t)l->n + 1, sizeof *wave);
    if (!s.depth || !wave) return error_memory(err);
    TRY(turn_round(l, memory, &s.after, err));
    schedule soon;
    TRY(schedule_new(p, memory, &soon, err));
    as_soon_as_possible(&s, &soon, wave);
    measure_depth(&s);
    TRY(schedule_rate(p, c, &soon, err));
    s.soon_bytes = soon.bytes;
    TRY(rate(&s, &soon, err));
    *out = soon;
    if (any_slack(&s, &soon)) TRY(choose(&s, &soon, budget, out, memory, err));
    return out->bytes > budget ? save_memory(&s, budget, out, memory, err) : BRAID_OK;
}
