/*
 * steps.c: the latest plan as a list of steps.
 */
#include "api/session.h"

typedef struct steps {
    braid_plan_step *list; /* NULL: only counts */
    size_t n;
    uint32_t phase;
} steps;

static void steps_add(steps *l, const node *n, braid_plan_step s) {
    s.node = n->name;
    s.op = n->type;
    s.phase = l->phase;
    if (l->list) l->list[l->n] = s;
    l->n++;
}

static void add_device(steps *l, const segment *seg) {
    const plan *p = seg->p;
    for (int32_t i = 0; i < p->n_dispatches; i++) {
        const plan_dispatch *d = &p->dispatches[i];
        for (int32_t k = 0; k < d->n_steps; k++) {
            const step *s = p->steps[p->order[d->first_step + k]];
            steps_add(l, seg->g->nodes[s->node],
                      (braid_plan_step){.kernel = s->kernel,
                                        .wave = (uint32_t)d->wave,
                                        .dispatch = (uint32_t)i,
                                        .copies = s->copies,
                                        .once = s->once,
                                        .tiles = s->tiles,
                                        .flops = s->flops,
                                        .bytes = s->bytes,
                                        .cost_ns = d->cost_ns});
        }
    }
}

static void add_host(steps *l, const stage *st, const segment *seg) {
    for (int32_t i = 0; i < seg->n_nodes; i++) {
        const node *n = st->g->nodes[seg->nodes[i]];
        steps_add(
            l, n,
            (braid_plan_step){
                .kernel = "host", .wave = (uint32_t)i, .dispatch = (uint32_t)i, .copies = (uint32_t)node_copies(n)});
    }
}

static void add_stages(steps *l, const stage *st) {
    for (; st; st = st->rest ? st->rest_stages.first : NULL) {
        for (int32_t i = 0; i < st->n_segments; i++, l->phase++) {
            if (st->segments[i].on_host)
                add_host(l, st, &st->segments[i]);
            else
                add_device(l, &st->segments[i]);
        }
    }
}

braid_status braid_session_steps(braid_session *s, const braid_plan_step **out, size_t *count, braid_error *err) {
    error_clear(err);
    if (!s || !out || !count) return error_set(err, BRAID_ARGUMENT, "braid_session_steps: a pointer is NULL");
    pthread_mutex_lock(&s->lock);
    steps all = {0};
    add_stages(&all, s->stages.first);
    mem_free(s->plan_steps);
    s->plan_steps = mem_alloc((all.n + 1) * sizeof *s->plan_steps);
    if (s->plan_steps) {
        all = (steps){.list = s->plan_steps};
        add_stages(&all, s->stages.first);
    }
    pthread_mutex_unlock(&s->lock);
    *out = s->plan_steps;
    *count = s->plan_steps ? all.n : 0;
    return s->plan_steps ? BRAID_OK : error_memory(err);
}
