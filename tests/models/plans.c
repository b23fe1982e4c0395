/*
 * plans.c: whole models under every plan: not a bit changes without re-rolling, without merging, one step after the
 * other, and under smaller and smaller memory budgets, down to the least, with memory poisoned.
 *
 *     model_plans MODEL ...     (settings.h)
 *
 * Exit: 0 right, 1 a wrong bit or an error, 3 the model is unsupported, 77 no device.
 */
#include <stdio.h>

#include "api/session.h"
#include "settings.h"

enum { PORTS = 64 };

typedef struct trial {
    const settings *s;
    braid_device *device;
    const braid_model *model;
    braid_tensor in[PORTS], wanted[PORTS], got[PORTS];
    size_t n_in, n_out;
    uint64_t state;
    braid_error err;
    bool far; /* an arena far above its bound */
} trial;

static double uniform(trial *t) {
    t->state = t->state * 6364136223846793005u + 1442695040888963407u;
    return (double)(t->state >> 40) / (1u << 24);
}

static bool draw_input(trial *t, const braid_port *p, braid_tensor *in) {
    int64_t count = 1;
    *in = (braid_tensor){.name = p->name, .type = p->type, .rank = p->rank};
    for (int k = 0; k < p->rank; k++) count *= in->dims[k] = dim_of(t->s, p, k);
    if (!type_span(p->type, count, &in->bytes) || !(in->data = calloc(in->bytes + 16, 1))) return false;
    for (int64_t i = 0; i < count; i++) {
        double u = uniform(t);
        if (p->type == BRAID_BOOL)
            element_set_i64(p->type, in->data, i, u < 0.5);
        else if (type_is_float(p->type))
            element_set_f64(p->type, in->data, i, t->s->low + (t->s->high - t->s->low) * u);
        else
            element_set_i64(p->type, in->data, i, (int64_t)((double)(t->s->ints + 1) * u));
    }
    return true;
}

typedef struct way {
    const char *name;
    braid_session_options options;
    session_test test;
} way;

/* *fixed and *arena_bytes, which may be NULL, grow to the largest of any plan. */
static braid_status run(trial *t, const way *w, uint64_t budget, braid_tensor *out, uint64_t *fixed,
                        uint64_t *arena_bytes) {
    braid_session *s;
    braid_session_options o = w->options;
    o.size = sizeof o;
    o.shapes = t->s->shapes;
    o.n_shapes = t->s->n_shapes;
    o.dims = t->s->dims;
    o.n_dims = t->s->n_dims;
    o.verify = true;
    TRY(braid_session_create(&t->device, 1, t->model, &o, &s, &t->err));
    s->test = w->test;
    s->memory_budget = budget;
    stage_cache_clear(s, &s->stages);
    braid_status status = braid_session_run(s, 1, t->in, t->n_in, out, t->n_out, &t->err);
    for (stage *st = s->stages.first; st; st = st->next)
        for (int32_t i = 0; i < st->n_segments; i++) {
            const plan *p = st->segments[i].p;
            if (st->segments[i].on_host || !p || !arena_bytes) continue;
            if (fixed && p->fixed_bytes > *fixed) *fixed = p->fixed_bytes;
            if (p->arena_bytes > *arena_bytes) *arena_bytes = p->arena_bytes;
            t->far = t->far || (!w->test.least && p->arena_bytes > p->arena_bound + p->arena_bound / 20);
        }
    braid_session_free(s);
    return status;
}

static bool same(trial *t, const char *what) {
    for (size_t i = 0; i < t->n_out; i++) {
        bool equal =
            t->wanted[i].bytes == t->got[i].bytes &&
            (t->wanted[i].type == BRAID_STRING || memcmp(t->wanted[i].data, t->got[i].data, t->got[i].bytes) == 0);
        braid_tensor_free(&t->got[i]);
        if (!equal) printf(" %s: output %zu differs", what, i);
        if (!equal) return false;
    }
    memset(t->got, 0, sizeof t->got);
    printf(" %s", what);
    fflush(stdout);
    return true;
}

#define POISON .poison = true, .poison_byte = 0xff
static bool try_ways(trial *t, uint64_t arena_bytes) {
    static const way ways[] = {{"not re-rolled", {.no_reroll = true}, {POISON}},
                               {"unmerged", {.schedule = BRAID_SCHEDULE_UNMERGED}, {POISON, .shuffle = true}},
                               {"serial", {.schedule = BRAID_SCHEDULE_SERIAL, .no_reroll = true}, {POISON}},
                               {"least memory", {0}, {POISON, .least = true}},
                               {"least, reversed", {0}, {POISON, .least = true, .shuffle = true}}};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        uint64_t fixed = 0, least = 0;
        if (run(t, &ways[i], UINT64_MAX, t->got, &fixed, &least) != BRAID_OK || !same(t, ways[i].name)) return false;
        if (ways[i].test.least && arena_bytes) printf(" (arena %.0f%%)", (double)least * 100 / (double)arena_bytes);
    }
    return true;
}

static bool try_budgets(trial *t, uint64_t fixed, uint64_t arena_bytes) {
    for (int percent = 85; percent >= 10; percent -= 15) {
        char name[32];
        way w = {.test = {POISON}};
        braid_status status = run(t, &w, fixed + arena_bytes * (uint64_t)percent / 100, t->got, NULL, NULL);
        snprintf(name, sizeof name, "%d%%", percent);
        if (status == BRAID_DEVICE_MEMORY) return printf(" (not %s)", name) > 0;
        if (status != BRAID_OK || !same(t, name)) return false;
    }
    return true;
}

static int run_model(trial *t) {
    uint64_t fixed = 0, arena_bytes = 0;
    t->n_in = braid_model_input_count(t->model);
    t->n_out = braid_model_output_count(t->model);
    bool good = t->n_in <= PORTS && t->n_out <= PORTS;
    for (size_t i = 0; i < t->n_in && good; i++) good = draw_input(t, braid_model_input(t->model, i), &t->in[i]);
    braid_status status =
        good ? run(t, &(way){.test = {0}}, UINT64_MAX, t->wanted, &fixed, &arena_bytes) : BRAID_ARGUMENT;
    good = status == BRAID_OK && try_ways(t, arena_bytes) && try_budgets(t, fixed, arena_bytes);
    printf(" %s\n", t->far ? "an arena is far above its bound" : good ? "" : t->err.message);
    for (size_t i = 0; i < t->n_in && i < PORTS; i++) free(t->in[i].data);
    for (size_t i = 0; i < t->n_out && i < PORTS; i++) braid_tensor_free(&t->wanted[i]);
    return good && !t->far ? 0 : status == BRAID_UNSUPPORTED ? 3 : 1;
}

int main(int argc, char **argv) {
    settings s;
    static trial t;
    braid_model *m = NULL;
    if (!read_settings(&s, argc, argv)) {
        fprintf(stderr, "model_plans: see the head of plans.c\n");
        return 2;
    }
    t = (trial){.s = &s, .state = 11};
    braid_device_options options = {.size = sizeof options, .select = s.device};
    if (braid_device_open(&options, &t.device, &t.err) != BRAID_OK ||
        braid_model_load(s.model, NULL, &m, &t.err) != BRAID_OK) {
        fprintf(stderr, "model_plans: %s\n", t.err.message);
        braid_device_close(t.device);
        return t.err.status == BRAID_NO_DEVICE ? 77 : 1;
    }
    t.model = m;
    printf("%s:", strrchr(s.model, '/') ? strrchr(s.model, '/') + 1 : s.model);
    fflush(stdout);
    int code = run_model(&t);
    braid_model_free(m);
    braid_device_close(t.device);
    return code;
}
