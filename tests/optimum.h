/*
 * optimum.h: how far a plan's schedule is from the best one, by the planner's own cost model.
 *
 * Steps that are comparable with all others cut the order into parts that every schedule runs one after the other. Of
 * each part: a lower bound (longest chain; all work and as many waves as that has), and, where the part is narrow, the
 * optimum: a shortest way through the sets of steps that can be done, each edge a wave. A set costs at least what is
 * left of the chain or of the work; what is not below the schedule's own time is left.
 */
#ifndef OPTIMUM_H
#define OPTIMUM_H

#include <stdlib.h>

#include "plan/waves.h"

typedef unsigned __int128 step_set;
enum { SET_STEPS = 128, SET_STATES = 1 << 15, SET_READY = 10 };

#define SET_ROOM(n) ((n) > 0 ? (size_t)(n) : 1)

typedef struct part {
    int n;
    const int32_t *steps;
    const costs *c;
    const int32_t *pipeline;
    step_set before[SET_STEPS]; /* what each waits for, all of it */
    double tail[SET_STEPS];     /* the longest chain from here on, its own time included */
    int depth[SET_STEPS];       /* waves in it at least */
} part;

typedef struct reached {
    step_set done;
    double time;
    int32_t next; /* with as many steps done */
} reached;

typedef struct search {
    const part *p;
    reached *at;
    int32_t n, *table, *by_count, cap_table;
    double limit;
    bool failed;
} search;

typedef struct optimum {
    double time, bound;   /* of the whole: the schedule's; the optimum of narrow parts and the bound of others */
    double narrow, exact; /* of the narrow parts: the schedule's; the optimum */
    int parts, solved, widest;
} optimum;

static inline int set_count(step_set s) {
    return __builtin_popcountll((unsigned long long)s) + __builtin_popcountll((unsigned long long)(s >> 64));
}

/* kind: of each ready step, the first of its pipeline among them. */
static inline double ready_time(const part *p, int n, const int *ready, const int *kind, uint32_t choice) {
    double work = 0, longest = 0;
    uint32_t kinds = 0;
    for (int k = 0; k < n; k++) {
        if (!(choice >> k & 1)) continue;
        int32_t id = p->steps[ready[k]];
        work += p->c->work[id];
        if (p->c->alone[id] > longest) longest = p->c->alone[id];
        kinds |= 1u << kind[k];
    }
    return (work > longest ? work : longest) + p->c->barrier + __builtin_popcount(kinds) * p->c->dispatch;
}

/* What is left costs this at least. */
static inline double part_left(const part *p, step_set done) {
    double work = 0, tail = 0;
    int depth = 0;
    for (int i = 0; i < p->n; i++) {
        if (done >> i & 1) continue;
        work += p->c->work[p->steps[i]];
        if (p->tail[i] > tail) tail = p->tail[i];
        if (p->depth[i] > depth) depth = p->depth[i];
    }
    work += depth * (p->c->barrier + p->c->dispatch);
    return work > tail ? work : tail;
}

static inline void search_reach(search *q, step_set done, double time) {
    uint64_t h = ((uint64_t)done ^ (uint64_t)(done >> 64) * 31) * 0x9e3779b97f4a7c15u;
    int32_t at = (int32_t)(h >> 40) & (q->cap_table - 1);
    while (q->table[at] && q->at[q->table[at] - 1].done != done) at = (at + 1) & (q->cap_table - 1);
    if (!q->table[at]) {
        if (time + part_left(q->p, done) >= q->limit) return;
        if (q->n == SET_STATES) {
            q->failed = true;
            return;
        }
        int count = set_count(done);
        q->at[q->n] = (reached){done, time, q->by_count[count]};
        q->by_count[count] = q->n++;
        q->table[at] = q->n;
        return;
    }
    reached *r = &q->at[q->table[at] - 1];
    if (time < r->time) r->time = time;
}

static inline void search_expand(search *q, int32_t from) {
    const part *p = q->p;
    step_set done = q->at[from].done;
    int ready[SET_STEPS], kind[SET_READY], n = 0;
    for (int i = 0; i < p->n; i++)
        if (!(done >> i & 1) && !(p->before[i] & ~done)) ready[n++] = i;
    if (n > SET_READY) q->failed = true;
    for (int k = 0; k < n && !q->failed; k++)
        for (kind[k] = 0; p->pipeline[p->steps[ready[kind[k]]]] != p->pipeline[p->steps[ready[k]]];) kind[k]++;
    for (uint32_t choice = 1; choice < 1u << n && !q->failed; choice++) {
        step_set wave = 0;
        for (int k = 0; k < n; k++)
            if (choice >> k & 1) wave |= (step_set)1 << ready[k];
        double time = ready_time(p, n, ready, kind, choice);
        bool more = false; /* one more would be free: that choice is as good */
        for (int k = 0; k < n && !more; k++)
            more = !(choice >> k & 1) && ready_time(p, n, ready, kind, choice | 1u << k) <= time;
        if (!more) search_reach(q, done | wave, q->at[from].time + time);
    }
}

/* The time of the best schedule below `limit`; `limit` when there is none; -1 when that is too much to find out. */
static inline double part_solve(const part *p, double limit) {
    search q = {.p = p, .limit = limit, .cap_table = SET_STATES * 2};
    double best = limit;
    if (!p->n || p->n > SET_STEPS) return p->n ? -1 : 0;
    q.at = calloc(SET_STATES, sizeof *q.at);
    q.table = calloc((size_t)q.cap_table, sizeof *q.table);
    q.by_count = malloc((size_t)(p->n + 1) * sizeof *q.by_count);
    for (int i = 0; i <= p->n; i++) q.by_count[i] = -1;
    search_reach(&q, 0, 0);
    for (int count = 0; count < p->n; count++)
        for (int32_t i = q.by_count[count]; i >= 0 && !q.failed; i = q.at[i].next)
            if (q.at[i].time + part_left(p, q.at[i].done) < limit) search_expand(&q, i);
    int32_t last = q.by_count[p->n];
    if (last >= 0) best = q.at[last].time;
    free(q.at);
    free(q.table);
    free(q.by_count);
    return q.failed ? -1 : best;
}

/* ------------------------------------------------------------------------------------------------------ the order */

typedef struct order {
    int32_t n;
    size_t words;
    uint64_t *bits; /* of node i: the steps that it waits for, from bits + i * words on */
} order;

static inline bool order_waits(const order *o, int32_t later, int32_t first) {
    return o->bits[(size_t)later * o->words + (size_t)first / 64] >> (first % 64) & 1;
}

static inline void order_make(order *o, const plan *p, const links *l) {
    *o = (order){.n = p->n_steps, .words = (size_t)p->n_steps / 64 + 1};
    o->bits = calloc((size_t)l->n * o->words, sizeof *o->bits);
    for (int32_t i = 0; i < l->n; i++) {
        uint64_t *to = o->bits + (size_t)l->order[i] * o->words;
        for (int32_t k = l->first[l->order[i]]; k < l->first[l->order[i] + 1]; k++) {
            int32_t b = l->before[k];
            for (size_t w = 0; w < o->words; w++) to[w] |= o->bits[(size_t)b * o->words + w];
            if (b < o->n) to[b / 64] |= (uint64_t)1 << (b % 64);
        }
    }
}

/* Steps in topological order. */
static inline void part_order(part *p, const order *o) {
    for (int i = 0; i < p->n; i++) {
        p->before[i] = 0;
        for (int k = 0; k < p->n; k++)
            if (order_waits(o, p->steps[i], p->steps[k])) p->before[i] |= (step_set)1 << k;
    }
    for (int i = p->n - 1; i >= 0; i--) {
        double tail = 0;
        int depth = 0;
        for (int k = i + 1; k < p->n; k++) {
            if (!(p->before[k] >> i & 1)) continue;
            if (p->tail[k] > tail) tail = p->tail[k];
            if (p->depth[k] > depth) depth = p->depth[k];
        }
        p->tail[i] = tail + p->c->alone[p->steps[i]] + p->c->barrier + p->c->dispatch;
        p->depth[i] = depth + 1;
    }
}

typedef struct by_wave {
    int32_t wave, id;
} by_wave;

static inline int by_wave_compare(const void *x, const void *y) {
    const by_wave *a = x, *b = y;
    return a->wave != b->wave ? (a->wave > b->wave) - (a->wave < b->wave) : (a->id > b->id) - (a->id < b->id);
}

static inline int32_t find_root(int32_t *root, int32_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
}

/* Time of steps sorted by wave. */
static inline double sorted_time(const plan *p, const costs *c, const int32_t *wave, int n, const int32_t *steps,
                                 int *widest) {
    double total = 0;
    int32_t *seen = calloc((size_t)p->n_pipelines + 1, sizeof *seen);
    for (int i = 0, end; i < n; i = end) {
        double work = 0, longest = 0;
        int kinds = 0;
        for (end = i; end < n && wave[steps[end]] == wave[steps[i]]; end++) {
            work += c->work[steps[end]];
            if (c->alone[steps[end]] > longest) longest = c->alone[steps[end]];
            if (seen[p->pipeline[steps[end]]] != i + 1) kinds++;
            seen[p->pipeline[steps[end]]] = i + 1;
        }
        if (end - i > *widest) *widest = end - i;
        total += (work > longest ? work : longest) + c->barrier + kinds * c->dispatch;
    }
    free(seen);
    return total;
}

static inline double part_bound(const costs *c, const order *o, int n, const int32_t *steps) {
    double *tail = calloc(SET_ROOM(n), sizeof *tail), work = 0, longest = 0;
    int *depth = calloc(SET_ROOM(n), sizeof *depth), deepest = 0;
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) {
            if (!order_waits(o, steps[k], steps[i])) continue;
            if (tail[k] > tail[i]) tail[i] = tail[k];
            if (depth[k] > depth[i]) depth[i] = depth[k];
        }
        tail[i] += c->alone[steps[i]] + c->barrier + c->dispatch;
        depth[i]++;
        work += c->work[steps[i]];
        if (tail[i] > longest) longest = tail[i];
        if (depth[i] > deepest) deepest = depth[i];
    }
    free(tail);
    free(depth);
    work += deepest * (c->barrier + c->dispatch);
    return work > longest ? work : longest;
}

/* Parts: what is not comparable is in one. */
static inline void part_roots(const order *o, int32_t *root) {
    for (int32_t i = 0; i < o->n; i++) root[i] = i;
    for (int32_t i = 0; i < o->n; i++)
        for (int32_t k = 0; k < i; k++)
            if (!order_waits(o, i, k) && !order_waits(o, k, i)) root[find_root(root, i)] = find_root(root, k);
}

/* n steps by wave are a part. */
static inline void optimum_add(optimum *out, const plan *p, const costs *c, const order *o, int n,
                               const int32_t *steps) {
    double time = sorted_time(p, c, p->wave, n, steps, &out->widest), bound = part_bound(c, o, n, steps), best = -1;
    part q = {.n = n, .steps = steps, .c = c, .pipeline = p->pipeline};
    if (bound > time * 0.999999) {
        best = time;
    } else if (n <= SET_STEPS) {
        part_order(&q, o);
        best = part_solve(&q, time * 0.999999);
    }
    out->time += time;
    out->parts++;
    out->bound += best >= 0 ? best : bound;
    if (best < 0) return;
    out->solved++;
    out->narrow += time;
    out->exact += best;
}

/* Aborts without memory. Takes time and memory of the square of the steps. */
static inline optimum optimum_find(const plan *p) {
    arena *memory = arena_new();
    links l;
    costs c;
    order o;
    optimum out = {0};
    size_t n = p->n_steps < 0 ? 0 : (size_t)p->n_steps;
    braid_error err;
    int32_t *root = calloc(n + 1, sizeof *root), *steps = calloc(n + 1, sizeof *steps);
    by_wave *sorted = calloc(n + 1, sizeof *sorted);
    if (links_make(p, memory, &l, &err) != BRAID_OK || costs_make(p, memory, &c, &err) != BRAID_OK || !root || !steps)
        abort();
    order_make(&o, p, &l);
    part_roots(&o, root);
    for (int32_t i = 0; i < p->n_steps; i++) sorted[i] = (by_wave){p->wave[i], i};
    qsort(sorted, n, sizeof *sorted, by_wave_compare);
    for (int32_t i = 0; i < p->n_steps; i++) steps[i] = sorted[i].id;
    for (int32_t i = 0, end; i < p->n_steps; i = end) {
        for (end = i; end < p->n_steps && find_root(root, steps[end]) == find_root(root, steps[i]);) end++;
        optimum_add(&out, p, &c, &o, end - i, steps + i);
    }
    free(root);
    free(steps);
    free(sorted);
    free(o.bits);
    arena_free(memory);
    return out;
}

#endif
