/*
 * progress.c: a schedule made wave by wave, of which each shall get the graph on as far as it can for its time.
 *
 * A wave takes as long as its longest step: one product in it costs as much as all products that are ready. So waves
 * alternate, those of short steps with those of all, where chains of unlike steps run side by side. Ready steps are
 * sorted by time; the wave takes all up to a length, the one with the most progress for the wave's time: the sum of the
 * steps' own times with their barriers, where a step counts the less the further the longest way behind it is from the
 * longest of all. `patience` is the distance at which it counts a third.
 */
#include "plan/waves.h"

#include <math.h>
#include <stdlib.h>

enum { LOOKS = 64 }; /* at each step, on average; then it is too wide and too long for this */

typedef struct mover {
    const scheduler *s;
    double patience;
    double *rest;     /* of each node: time of the longest way from it to the end, itself included */
    int32_t *ready, n_ready; /* the shortest first */
    int32_t *fresh, n_fresh; /* become ready by this wave */
    int32_t *merged;
    int32_t *waiting, *stack;
    int32_t *seen;    /* by pipeline: wave + 1 */
    int64_t looks;
} mover;

static bool mover_new(const scheduler *s, double patience, arena *memory, mover *m) {
    size_t n = (size_t)s->l->n + 1;
    *m = (mover){.s = s,
                 .patience = patience,
                 .rest = arena_array(memory, n, sizeof *m->rest),
                 .ready = arena_array(memory, n, sizeof *m->ready),
                 .fresh = arena_array(memory, n, sizeof *m->fresh),
                 .merged = arena_array(memory, n, sizeof *m->merged),
                 .waiting = arena_array(memory, n, sizeof *m->waiting),
                 .stack = arena_array(memory, n, sizeof *m->stack),
                 .seen = arena_array(memory, (size_t)s->p->n_pipelines + 1, sizeof *m->seen),
                 .looks = (int64_t)LOOKS * s->p->n_steps};
    return m->rest && m->ready && m->fresh && m->merged && m->waiting && m->stack && m->seen;
}

static void measure_rest(mover *m) {
    const scheduler *s = m->s;
    for (int32_t i = s->l->n - 1; i >= 0; i--) {
        int32_t id = s->l->order[i];
        double most = 0;
        for (int32_t k = s->after.first[id]; k < s->after.first[id + 1]; k++)
            if (m->rest[s->after.before[k]] > most) most = m->rest[s->after.before[k]];
        m->rest[id] = id < s->p->n_steps ? most + s->costs->alone[id] + s->costs->barrier : most;
    }
}

static int shorter_first(const void *x, const void *y, void *user) {
    const double *alone = user;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    if (alone[a] < alone[b]) return -1;
    if (alone[a] > alone[b]) return 1;
    return a < b ? -1 : a > b;
}

/* Sorts what is fresh in among what is ready. */
static void merge_fresh(mover *m) {
    double *alone = m->s->costs->alone;
    int32_t n = 0, i = 0, k = 0;
    qsort_r(m->fresh, (size_t)m->n_fresh, sizeof *m->fresh, shorter_first, alone);
    while (i < m->n_ready || k < m->n_fresh) {
        bool old = k == m->n_fresh || (i < m->n_ready && shorter_first(&m->ready[i], &m->fresh[k], alone) < 0);
        m->merged[n++] = old ? m->ready[i++] : m->fresh[k++];
    }
    int32_t *swap = m->ready;
    m->ready = m->merged;
    m->merged = swap;
    m->n_ready = n;
    m->n_fresh = 0;
}

/* How many of the ready steps the wave takes. */
static int32_t choose_length(mover *m, int32_t wave) {
    const costs *c = m->s->costs;
    double last = 0, gain = 0, work = 0, dispatches = 0, best = -1;
    int32_t taken = 0;
    for (int32_t i = 0; i < m->n_ready; i++)
        if (m->rest[m->ready[i]] > last) last = m->rest[m->ready[i]];
    for (int32_t i = 0; i < m->n_ready; i++) {
        int32_t id = m->ready[i], kind = m->s->p->pipeline[id];
        gain += (c->alone[id] + c->barrier) * exp((m->rest[id] - last) / m->patience);
        work += c->work[id];
        dispatches += m->seen[kind] != wave + 1;
        m->seen[kind] = wave + 1;
        if (i + 1 < m->n_ready && c->alone[m->ready[i + 1]] <= c->alone[id]) continue;
        double length = work > c->alone[id] ? work : c->alone[id];
        double rate = gain / (length + c->barrier + dispatches * c->dispatch);
        if (rate <= best) continue;
        best = rate;
        taken = i + 1;
    }
    return taken;
}

static void run_wave(mover *m, int32_t wave, schedule *out) {
    int32_t taken = choose_length(m, wave);
    for (int32_t i = 0; i < taken; i++) {
        out->wave[m->ready[i]] = wave;
        m->n_fresh += schedule_release(m->s, m->ready[i], m->waiting, m->stack, m->fresh + m->n_fresh);
    }
    m->looks -= m->n_ready;
    m->n_ready -= taken;
    memmove(m->ready, m->ready + taken, (size_t)m->n_ready * sizeof *m->ready);
    merge_fresh(m);
}

braid_status schedule_progress(const scheduler *s, double patience, schedule *out, bool *made, braid_error *err) {
    arena *memory = arena_new();
    if (!memory) return error_memory(err);
    mover m;
    if (!mover_new(s, patience, memory, &m)) {
        arena_free(memory);
        return error_memory(err);
    }
    measure_rest(&m);
    for (int32_t i = 0; i < s->l->n; i++) m.waiting[i] = s->l->first[i + 1] - s->l->first[i];
    for (int32_t i = 0; i < s->p->n_steps; i++)
        if (!m.waiting[i]) m.fresh[m.n_fresh++] = i;
    merge_fresh(&m);
    out->n_waves = 0;
    while (m.n_ready && m.looks > 0) run_wave(&m, out->n_waves++, out);
    *made = m.n_ready == 0;
    arena_free(memory);
    return BRAID_OK;
}
