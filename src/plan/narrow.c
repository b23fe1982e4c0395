/*
 * narrow.c: improves a schedule where few steps stand side by side.
 *
 * Consecutive waves that hold few steps are a window. Its best schedule is found exactly, in the manner of
 * inter-operator scheduling: the sets of its steps that can be done are points, a wave leads from one to another, and
 * the cheapest way from none to all is wanted. So steps move together, which moves of single steps (polish.c) do not
 * find: a long step that fills the device goes well with long ones that leave it idle, and both may have to wait for
 * that. A wave costs its time and, as there, a price for the bytes that are alive in it.
 *
 * Windows follow each other; the next pass cuts them elsewhere. The number of waves looked at is limited by the size of
 * the graph.
 */
#include "plan/waves.h"

#include <math.h>

enum {
    PASSES = 4,
    MOST = 14,     /* steps of a window */
    WIDEST = 8,    /* steps that could run at once */
    STORAGES = 64, /* whose lives a window may change; more do not count */
    WALK = 4096,   /* edges followed in one window */
    TRIES = 300,   /* waves looked at, for each step of the graph */
    TRIES_ANY = 100000,
};

static const double LEAST_GAIN = 0.5; /* ns */

typedef uint32_t set; /* of a window's steps */

typedef struct life {
    int32_t root;
    set touched;
    bool before, after; /* by steps outside the window as well */
    double price;       /* of a wave in which it is alive */
} life;

typedef struct window {
    int n, n_lives;
    int32_t steps[MOST];
    set waits[MOST]; /* for these */
    uint32_t kind[MOST];
    double alone[MOST], work[MOST];
    life lives[STORAGES];
} window;

typedef struct narrower {
    const scheduler *s;
    schedule *now;
    double price;             /* of a byte that is alive in a wave */
    int32_t *sorted, *start;  /* steps by wave; where each wave begins in them */
    int32_t *place;           /* step: its number in the window + 1 */
    int32_t *seen, walk;      /* node: last walk that came by */
    int32_t *stack;
    int32_t *first, *last;    /* storage: waves that touch it */
    double *best;             /* by set of steps done */
    set *from;                /* the set before the last wave */
    int64_t tries;
} narrower;

/* ------------------------------------------------------------------------------------------------- the window */

/* What steps of the window `id` waits for; false: too far to look. */
static bool waits_of(narrower *q, int32_t id, int *walk, set *out) {
    const links *l = q->s->l;
    int32_t n = 0;
    q->walk++;
    q->stack[n++] = id;
    for (*out = 0; n;) {
        int32_t at = q->stack[--n];
        for (int32_t k = l->first[at]; k < l->first[at + 1]; k++) {
            int32_t next = l->before[k];
            if (--*walk < 0) return false;
            if (q->seen[next] == q->walk) continue;
            q->seen[next] = q->walk;
            if (next >= q->s->p->n_steps) q->stack[n++] = next;
            else if (q->place[next]) *out |= (set)1 << (q->place[next] - 1);
        }
    }
    return true;
}

static void add_life(const narrower *q, window *w, int k, int32_t root, int32_t first, int32_t last) {
    const storage *s = &q->s->p->storages[root];
    int i = 0;
    bool before = q->first[root] < first, after = q->last[root] > last;
    if (s->kind != STORAGE_ARENA || (before && after)) return;
    while (i < w->n_lives && w->lives[i].root != root) i++;
    if (i == STORAGES) return;
    if (i == w->n_lives) w->lives[w->n_lives++] = (life){root, 0, before, after, q->price * (double)s->stride};
    w->lives[i].touched |= (set)1 << k;
}

/* The steps of waves [first, end). */
static bool open_window(narrower *q, int32_t first, int32_t end, window *w) {
    const plan *p = q->s->p;
    int walk = WALK;
    bool good = true;
    *w = (window){.n = q->start[end] - q->start[first]};
    for (int k = 0; k < w->n; k++) q->place[w->steps[k] = q->sorted[q->start[first] + k]] = k + 1;
    for (int k = 0; k < w->n && good; k++) {
        int32_t id = w->steps[k], same = 0;
        good = waits_of(q, id, &walk, &w->waits[k]);
        while (p->pipeline[w->steps[same]] != p->pipeline[id]) same++;
        w->kind[k] = 1u << same;
        w->alone[k] = q->s->costs->alone[id];
        w->work[k] = q->s->costs->work[id];
        for (int i = 0; i < p->steps[id]->n_operands; i++)
            add_life(q, w, k, plan_root(p, p->steps[id]->operands[i].storage), first, end - 1);
    }
    for (int k = 0; k < w->n; k++) q->place[w->steps[k]] = 0;
    return good;
}

/* ------------------------------------------------------------------------------------------------ the best way */

static double wave_time(const narrower *q, const window *w, set wave) {
    double work = 0, longest = 0;
    uint32_t kinds = 0;
    for (set left = wave; left; left &= left - 1) {
        int k = __builtin_ctz(left);
        work += w->work[k];
        if (w->alone[k] > longest) longest = w->alone[k];
        kinds |= w->kind[k];
    }
    return (work > longest ? work : longest) + q->s->costs->barrier +
           __builtin_popcount(kinds) * q->s->costs->dispatch;
}

/* Of what is alive in a wave with `done` done before. */
static double lives_price(const window *w, set done, set wave) {
    double price = 0;
    for (int i = 0; i < w->n_lives; i++) {
        const life *l = &w->lives[i];
        if ((l->before || l->touched & (done | wave)) && (l->after || l->touched & ~done)) price += l->price;
    }
    return price;
}

static double cost_now(const narrower *q, const window *w) {
    double cost = 0;
    set done = 0;
    for (int k = 0; k < w->n;) {
        set wave = 0;
        for (int32_t number = q->now->wave[w->steps[k]]; k < w->n && q->now->wave[w->steps[k]] == number; k++)
            wave |= (set)1 << k;
        cost += wave_time(q, w, wave) + lives_price(w, done, wave);
        done |= wave;
    }
    return cost;
}

/* No schedule of the window takes less: its longest chain, or all work in as many waves. */
static double cost_least(const narrower *q, const window *w) {
    double each = q->s->costs->barrier + q->s->costs->dispatch, head[MOST], chain = 0, work = 0;
    int depth[MOST], deepest = 0;
    for (int k = 0; k < w->n; k++) {
        head[k] = depth[k] = 0;
        for (set left = w->waits[k]; left; left &= left - 1) {
            int i = __builtin_ctz(left);
            if (head[i] > head[k]) head[k] = head[i];
            if (depth[i] > depth[k]) depth[k] = depth[i];
        }
        head[k] += w->alone[k] + each;
        if (head[k] > chain) chain = head[k];
        if (++depth[k] > deepest) deepest = depth[k];
        work += w->work[k];
    }
    work += deepest * each;
    return work > chain ? work : chain;
}

/* All waves that could come next, where that costs less than `limit`. false: too many. */
static bool look_on(narrower *q, const window *w, set done, double limit) {
    set ready = 0;
    for (int k = 0; k < w->n; k++)
        if (!(done >> k & 1) && !(w->waits[k] & ~done)) ready |= (set)1 << k;
    if (__builtin_popcount(ready) > WIDEST || (q->tries -= 1 << __builtin_popcount(ready)) < 0) return false;
    for (set wave = ready; wave; wave = (wave - 1) & ready) {
        double cost = q->best[done] + wave_time(q, w, wave), least = q->best[done | wave];
        if (least > limit) least = limit;
        if (cost >= least || (cost += lives_price(w, done, wave)) >= least) continue;
        q->best[done | wave] = cost;
        q->from[done | wave] = done;
    }
    return true;
}

/* Writes the best schedule, waves from `number` on, where it is better than the one that is; *n_waves: how many. */
static bool solve(narrower *q, const window *w, int32_t number, int32_t *n_waves) {
    double limit = cost_now(q, w) - LEAST_GAIN;
    set all = ((set)1 << w->n) - 1;
    if (cost_least(q, w) >= limit) return false;
    for (set i = 1; i <= all; i++) q->best[i] = INFINITY;
    q->best[0] = 0;
    for (set done = 0; done < all; done++)
        if (q->best[done] < limit && !look_on(q, w, done, limit)) return false;
    if (q->best[all] >= limit) return false;
    *n_waves = 0;
    for (set at = all; at; at = q->from[at]) ++*n_waves;
    int32_t wave = number + *n_waves;
    for (set at = all; at; at = q->from[at]) {
        wave--;
        for (set left = at & ~q->from[at]; left; left &= left - 1) q->now->wave[w->steps[__builtin_ctz(left)]] = wave;
    }
    return true;
}

/* --------------------------------------------------------------------------------------------------- passes */

static void sort_steps(narrower *q) {
    const plan *p = q->s->p;
    memset(q->start, 0, (size_t)(p->n_steps + 2) * sizeof *q->start);
    for (int32_t i = 0; i < p->n_steps; i++) q->start[q->now->wave[i] + 1]++;
    for (int32_t w = 0; w < q->now->n_waves; w++) q->start[w + 1] += q->start[w];
    for (int32_t i = p->n_steps - 1; i >= 0; i--) q->sorted[--q->start[q->now->wave[i] + 1]] = i;
    memmove(q->start, q->start + 1, (size_t)q->now->n_waves * sizeof *q->start);
    q->start[q->now->n_waves] = p->n_steps;
}

/* Also the price of a byte in a wave: that all lives together are worth a twentieth of the time. */
static void measure_lives(narrower *q, double time) {
    const plan *p = q->s->p;
    double sum = 0;
    for (int32_t i = 0; i < p->n_storages; i++) {
        q->first[i] = INT32_MAX;
        q->last[i] = -1;
    }
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i]->n_operands; k++) {
            int32_t root = plan_root(p, p->steps[i]->operands[k].storage), wave = q->now->wave[i];
            if (wave < q->first[root]) q->first[root] = wave;
            if (wave > q->last[root]) q->last[root] = wave;
        }
    for (int32_t i = 0; i < p->n_storages; i++)
        if (p->storages[i].kind == STORAGE_ARENA && q->last[i] >= 0)
            sum += (double)(q->last[i] - q->first[i] + 1) * (double)p->storages[i].stride;
    q->price = sum > 0 ? time / 20 / sum : 0;
}

/* The first window has at most `most` steps. true: something changed. */
static bool pass(narrower *q, int32_t most) {
    int32_t number = 0, n_waves = q->now->n_waves;
    bool changed = false;
    for (int32_t first = 0, end; first < n_waves; first = end, most = MOST) {
        window w;
        int32_t made = 0;
        for (end = first; end < n_waves && q->start[end + 1] - q->start[first] <= most;) end++;
        if (end - first > 1 && open_window(q, first, end, &w) && solve(q, &w, number, &made)) {
            changed = true;
        } else {
            if (end == first) end++;
            made = end - first;
            for (int32_t k = q->start[first]; k < q->start[end]; k++)
                q->now->wave[q->sorted[k]] += number - first;
        }
        number += made;
    }
    q->now->n_waves = number;
    return changed;
}

static bool narrower_new(narrower *q, arena *memory) {
    const plan *p = q->s->p;
    size_t n = (size_t)q->s->l->n + 2, n_steps = (size_t)p->n_steps + 2, n_storages = (size_t)p->n_storages + 1;
    q->sorted = arena_array(memory, n_steps, sizeof *q->sorted);
    q->start = arena_array(memory, n_steps, sizeof *q->start);
    q->place = arena_array(memory, n_steps, sizeof *q->place);
    q->seen = arena_array(memory, n, sizeof *q->seen);
    q->stack = arena_array(memory, n, sizeof *q->stack);
    q->first = arena_array(memory, n_storages, sizeof *q->first);
    q->last = arena_array(memory, n_storages, sizeof *q->last);
    q->best = arena_array(memory, (size_t)1 << MOST, sizeof *q->best);
    q->from = arena_array(memory, (size_t)1 << MOST, sizeof *q->from);
    return q->sorted && q->start && q->place && q->seen && q->stack && q->first && q->last && q->best && q->from;
}

braid_status schedule_narrow(const scheduler *s, schedule *now, braid_error *err) {
    arena *memory = arena_new();
    narrower q = {.s = s, .now = now, .tries = TRIES_ANY + (int64_t)TRIES * s->p->n_steps};
    bool ok = memory && narrower_new(&q, memory), changed = true, before = true;
    for (int i = 0; ok && i < PASSES && (changed || before); i++) {
        before = changed;
        sort_steps(&q);
        measure_lives(&q, now->time);
        changed = pass(&q, i % 2 ? MOST / 2 : MOST);
    }
    arena_free(memory);
    return ok ? BRAID_OK : error_memory(err);
}
