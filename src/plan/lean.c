/*
 * lean.c: schedules within a limit of bytes.
 *
 * Wave by wave, ready steps are taken while the tensors alive stay below the limit: first those that free more than
 * they make, then those with the longest chain behind them. When none fits, the one that grows memory least goes alone.
 * So a limit delays steps inside their slack, then splits waves, down to one step at a time.
 */
#include "plan/waves.h"

#include <stdlib.h>

enum { WINDOW = 256 };

typedef struct want {
    int32_t step;
    double grows; /* bytes that it makes less those that die with it */
} want;

typedef struct lean {
    const scheduler *s;
    schedule *out;
    uint64_t limit, alive;
    int32_t *waiting; /* of each node: how many it still waits for */
    int32_t *left;    /* of each storage: accesses to come; those of a storage not made yet are all of them */
    bool *made;       /* of each storage */
    want *ready;
    int32_t n_ready, *joins, *chosen, n_chosen;
} lean;

static int32_t arena_root(const plan *p, const step_operand *o) {
    int32_t root = plan_root(p, o->storage);
    return p->storages[root].kind == STORAGE_ARENA ? root : -1;
}

/* How often a step touches a storage, counted at its first touch only. */
static int32_t touches_of(const plan *p, int32_t id, int k) {
    const step *s = p->steps[id];
    int32_t root = plan_root(p, s->operands[k].storage), n = 0;
    for (int i = 0; i < s->n_operands; i++) {
        if (plan_root(p, s->operands[i].storage) != root) continue;
        if (i < k) return 0;
        n++;
    }
    return n;
}

static uint64_t bytes_made(const lean *r, int32_t id) {
    const plan *p = r->s->p;
    uint64_t bytes = 0;
    for (int k = 0; k < p->steps[id]->n_operands; k++) {
        int32_t root = arena_root(p, &p->steps[id]->operands[k]);
        if (root >= 0 && !r->made[root] && touches_of(p, id, k)) bytes += p->storages[root].stride;
    }
    return bytes;
}

static double growth(const lean *r, int32_t id) {
    const plan *p = r->s->p;
    double bytes = (double)bytes_made(r, id);
    for (int k = 0; k < p->steps[id]->n_operands; k++) {
        int32_t root = arena_root(p, &p->steps[id]->operands[k]), n = root < 0 ? 0 : touches_of(p, id, k);
        if (n && r->left[root] == n) bytes -= (double)p->storages[root].stride;
    }
    return bytes;
}

static int by_growth(const void *x, const void *y, void *user) {
    const lean *r = user;
    const want *a = x, *b = y;
    bool frees_a = a->grows <= 0, frees_b = b->grows <= 0;
    if (frees_a != frees_b) return frees_a ? -1 : 1;
    int32_t da = r->s->depth[a->step], db = r->s->depth[b->step];
    if (!frees_a && da != db) return da > db ? -1 : 1;
    if (a->grows < b->grows) return -1;
    if (a->grows > b->grows) return 1;
    return a->step < b->step ? -1 : a->step > b->step;
}

static void choose_step(lean *r, int32_t i) {
    const plan *p = r->s->p;
    int32_t id = r->ready[i].step;
    r->alive += bytes_made(r, id);
    for (int k = 0; k < p->steps[id]->n_operands; k++) {
        int32_t root = arena_root(p, &p->steps[id]->operands[k]);
        if (root >= 0) r->made[root] = true;
    }
    r->chosen[r->n_chosen++] = id;
    r->ready[i].step = -1;
}

static void list_ready(lean *r, int32_t id) {
    const links *after = &r->s->after;
    r->joins[0] = id;
    for (int32_t n = 1; n > 0;) {
        int32_t from = r->joins[--n];
        for (int32_t k = after->first[from]; k < after->first[from + 1]; k++) {
            int32_t next = after->before[k];
            if (--r->waiting[next]) continue;
            if (next < r->s->p->n_steps)
                r->ready[r->n_ready++].step = next;
            else
                r->joins[n++] = next;
        }
    }
}

/* The wave's steps are done: what nobody needs any more is free. */
static void end_wave(lean *r, int32_t wave) {
    const plan *p = r->s->p;
    int32_t kept = r->n_ready > WINDOW ? r->n_ready - WINDOW : 0;
    for (int32_t i = kept; i < r->n_ready; i++)
        if (r->ready[i].step >= 0) r->ready[kept++] = r->ready[i];
    r->n_ready = kept;
    for (int32_t i = 0; i < r->n_chosen; i++) {
        int32_t id = r->chosen[i];
        r->out->wave[id] = wave;
        for (int k = 0; k < p->steps[id]->n_operands; k++) {
            int32_t root = arena_root(p, &p->steps[id]->operands[k]);
            if (root >= 0 && --r->left[root] == 0) r->alive -= p->storages[root].stride;
        }
        list_ready(r, id);
    }
    r->n_chosen = 0;
}

/* Looks at those that became ready last, which lead on from what was made last; the others wait. */
static void make_wave(lean *r) {
    int32_t first = r->n_ready > WINDOW ? r->n_ready - WINDOW : 0, least = first;
    for (int32_t i = first; i < r->n_ready; i++) {
        r->ready[i].grows = growth(r, r->ready[i].step);
        if (r->ready[i].grows < r->ready[least].grows) least = i;
    }
    int32_t alone = r->ready[least].step;
    qsort_r(r->ready + first, (size_t)(r->n_ready - first), sizeof *r->ready, by_growth, r);
    for (int32_t i = first; i < r->n_ready; i++) {
        uint64_t more = bytes_made(r, r->ready[i].step);
        if (r->alive <= r->limit && more <= r->limit - r->alive) choose_step(r, i);
    }
    for (int32_t i = first; !r->n_chosen; i++)
        if (r->ready[i].step == alone) choose_step(r, i);
}

static void start(lean *r) {
    const plan *p = r->s->p;
    const links *l = r->s->l;
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i]->n_operands; k++) r->left[plan_root(p, p->steps[i]->operands[k].storage)]++;
    for (int32_t i = 0; i < l->n; i++) r->waiting[i] = l->first[i + 1] - l->first[i];
    for (int32_t i = 0; i < p->n_steps; i++)
        if (!r->waiting[i]) r->ready[r->n_ready++].step = i;
}

braid_status schedule_lean(const scheduler *s, uint64_t limit, schedule *out, braid_error *err) {
    arena *memory = arena_new();
    if (!memory) return error_memory(err);
    size_t n = (size_t)s->l->n + 1, n_storages = (size_t)s->p->n_storages + 1;
    lean r = {.s = s,
              .out = out,
              .limit = limit,
              .waiting = arena_array(memory, n, sizeof *r.waiting),
              .left = arena_array(memory, n_storages, sizeof *r.left),
              .made = arena_array(memory, n_storages, sizeof *r.made),
              .ready = arena_array(memory, n, sizeof *r.ready),
              .joins = arena_array(memory, n, sizeof *r.joins),
              .chosen = arena_array(memory, n, sizeof *r.chosen)};
    bool ok = r.waiting && r.left && r.made && r.ready && r.joins && r.chosen;
    out->n_waves = 0;
    if (ok) start(&r);
    while (ok && r.n_ready) {
        make_wave(&r);
        end_wave(&r, out->n_waves++);
    }
    arena_free(memory);
    return ok ? BRAID_OK : error_memory(err);
}
