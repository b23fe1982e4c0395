/*
 * random_lanes.c: a random graph run with many lanes: every lane's outputs are those of a run alone (../lanes.h).
 */
#include "random.h"

#include "../lanes.h"

enum { SETS = 5, LANES_LIMIT = 70, CHOICES = 3 };

/* Another content for an input: elements drawn from those it has, so that most indices stay indices; real numbers
   shrunk; few integers (a size, an axis, a shape) sometimes others, and rarely one far out of every range. */
static const tensor *another_set(draft *d, const tensor *t) {
    tensor *copy = NULL;
    int64_t count = 0;
    braid_type type = t->type.type;
    if (tensor_new(d->memory, type, t->type.rank, t->type.dims, &copy, NULL) != BRAID_OK) return t;
    tensor_type_count(&t->type, &count);
    for (int64_t i = 0; i < count; i++) {
        int64_t from = (int64_t)draw(d, (uint32_t)count);
        int64_t other = count <= 4 && type != BRAID_BOOL && chance(d, 20) ? (int64_t)draw(d, 3) - 1 : 0;
        if (!type_is_float(type)) element_set_i64(type, copy->data, i, element_i64(type, t->data, from) + other);
        else element_set_f64(type, copy->data, i, element_f64(type, t->data, from) * (chance(d, 50) ? 1 : 0.25 + 0.75 * uniform(d)));
    }
    if (count && (type == BRAID_INT64 || type == BRAID_INT32) && chance(d, 8))
        element_set_i64(type, copy->data, (int64_t)draw(d, (uint32_t)count), chance(d, 50) ? 100000 : -100000);
    return copy;
}

static void find_inputs(draft *d, lane_case *c) {
    static char names[DRAFT_LINES][16];
    for (int i = 0; i < d->n_lines; i++) {
        if (d->lines[i].kind != LINE_INPUT) continue;
        int v = d->lines[i].out[0];
        snprintf(names[c->n_in], sizeof names[0], "v%d", v);
        for (int k = 0; k < SETS; k++) {
            const tensor *t = k ? another_set(d, d->values[v].t) : d->values[v].t;
            braid_tensor *b = &c->in[k][c->n_in];
            *b = (braid_tensor){.name = names[c->n_in], .type = t->type.type, .rank = t->type.rank, .data = t->data, .bytes = t->bytes};
            memcpy(b->dims, t->type.dims, sizeof b->dims);
        }
        c->n_in++;
    }
}

static uint32_t draw_lanes(draft *d) {
    switch (draw(d, 10)) {
    case 0: return 64;
    case 1: return 65 + draw(d, LANES_LIMIT - 64);
    case 2: case 3: case 4: return 9 + draw(d, 56);
    case 5: return 1;
    default: return 2 + draw(d, 7);
    }
}

/* One in six has so little memory that many lanes need several rounds. */
static braid_status create(draft *d, braid_device *device, const braid_model *m, braid_session **out, braid_error *err) {
    braid_session_options o = {.size = sizeof o, .verify = true, .lanes_max = LANES_LIMIT, .no_fuse = chance(d, 15)};
    if (chance(d, 16)) o.memory_budget = (uint64_t)1 << (14 + draw(d, 8));
    braid_status status = braid_session_create(&device, 1, m, &o, out, err);
    if (status != BRAID_DEVICE_MEMORY) return status;
    o.memory_budget = 0; /* not even one lane */
    return braid_session_create(&device, 1, m, &o, out, err);
}

static bool open_case(draft *d, lane_case *c, braid_device *device, const braid_model *m) {
    braid_error err = {0};
    if (create(d, device, m, &c->session, &err) != BRAID_OK) return lanes_wrong(c, "session: %s", err.message);
    if (!chance(d, 25)) return true;
    c->session->test = (session_test){.redzone = chance(d, 50), .shuffle = chance(d, 50), .poison = true,
                                      .poison_byte = chance(d, 50) ? 0xff : 0x3c, .staged = chance(d, 50)};
    stage_cache_clear(c->session, &c->session->stages);
    return true;
}

static bool run_case(draft *d, lane_case *c, int runs) {
    for (int k = 0; k < CHOICES; k++) {
        if (!lanes_share(c, draw(d, 101))) return false;
        for (int i = 0; i < runs / CHOICES; i++)
            if (!lanes_run(c, draw_lanes(d))) return false;
    }
    return true;
}

bool lanes_try(draft *d, braid_device *device, int runs, lanes_total *total, finding *f) {
    static lane_case c;
    braid_error err = {0};
    if (!d->n_outputs) return false;
    braid_model *m = draft_model(d, d->symbolic, &err);
    if (!m) return finding_set(f, -1, "whole graph: %s", err.message);
    d->state = d->seed + 4711;
    memset(&c, 0, sizeof c);
    c.n_out = (size_t)d->n_outputs;
    c.n_sets = SETS;
    c.state = d->seed;
    find_inputs(d, &c);
    bool good = open_case(d, &c, device, m) && run_case(d, &c, runs);
    lanes_end(&c);
    braid_session_free(c.session);
    braid_model_free(m);
    total->runs += c.runs;
    total->lanes += c.lanes;
    total->unlike += c.unlike;
    total->failing += c.failing;
    return !good && finding_set(f, -1, "%s", c.what);
}
