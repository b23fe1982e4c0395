/*
 * random_lanes.c: a random graph run with many lanes: every lane's outputs are those of a run alone (../lanes.h).
 */
#include "random.h"

#include "../lanes.h"

enum { SETS = 5, CHOICES = 3 };

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
        if (!type_is_float(type))
            element_set_i64(type, copy->data, i, element_i64(type, t->data, from) + other);
        else
            element_set_f64(type, copy->data, i,
                            element_f64(type, t->data, from) * (chance(d, 50) ? 1 : 0.25 + 0.75 * uniform(d)));
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
            *b = (braid_tensor){
                .name = names[c->n_in], .type = t->type.type, .rank = t->type.rank, .data = t->data, .bytes = t->bytes};
            memcpy(b->dims, t->type.dims, sizeof b->dims);
        }
        c->n_in++;
    }
}

static uint32_t draw_lanes(draft *d, uint32_t most) {
    uint32_t n;
    switch (draw(d, 10)) {
    case 0:
        n = 64;
        break;
    case 1:
        n = 65 + draw(d, 6);
        break;
    case 2:
    case 3:
    case 4:
        n = 9 + draw(d, 56);
        break;
    case 5:
        n = 1;
        break;
    default:
        n = 2 + draw(d, 7);
    }
    return n < most ? n : most;
}

/* The same graph several times side by side, as far as there is room: some copies read the constants or inputs of the
   first. What re-rolling makes of it runs with lanes too. */
static void multiply(draft *d, int copies) {
    int n_lines = d->n_lines, n_values = d->n_values, n_outputs = d->n_outputs, at[DRAFT_VALUES];
    for (int c = 1; c < copies; c++) {
        if (d->n_lines + n_lines > DRAFT_LINES || d->n_values + n_values > DRAFT_VALUES) return;
        int percent = (int)draw(d, 3) * 50;
        for (int i = 0; i < n_lines; i++) {
            line l = d->lines[i];
            bool same = l.kind == LINE_CONSTANT ? chance(d, percent) : l.kind == LINE_INPUT && chance(d, percent / 5);
            for (int k = 0; k < l.n_in; k++)
                if (l.in[k] >= 0) l.in[k] = at[l.in[k]];
            for (int k = 0; k < l.n_out; k++) {
                int v = l.out[k];
                at[v] = same ? v : d->n_values;
                if (!same) d->values[d->n_values++] = d->values[v];
                l.out[k] = at[v];
            }
            if (!same) d->lines[d->n_lines++] = l;
        }
        for (int i = 0; i < n_outputs; i++) d->outputs[d->n_outputs++] = at[d->outputs[i]];
    }
}

static bool rolled(const braid_session *s) {
    const stage *st = s->stages.first;
    for (int32_t i = 0; st && i < st->n_segments; i++)
        for (int32_t k = 0; !st->segments[i].on_host && k < st->segments[i].p->n_steps; k++)
            if (st->segments[i].p->steps[k]->copies > 1) return true;
    return false;
}

typedef struct plan_choice {
    bool no_fuse, as_gpu;
    uint32_t most_lanes;
    device_traits made_up; /* as_gpu: what plans are made for, so that a software device runs a GPU's kernels too */
} plan_choice;

static plan_choice draw_choice(draft *d, int as_gpu) {
    static const uint32_t cores[] = {1, 2, 8, 132};
    plan_choice p = {.no_fuse = chance(d, 15), .as_gpu = chance(d, as_gpu)};
    p.made_up.cores = cores[draw(d, COUNT_OF(cores))];
    p.made_up.fold_always = chance(d, 50);
    p.made_up.split_always = chance(d, 50);
    return p;
}

static void plan_as_chosen(braid_session *s, plan_choice *p) {
    if (!p->as_gpu) return;
    const device_traits chosen = p->made_up;
    p->made_up = *s->traits;
    p->made_up.software = false;
    p->made_up.cores = chosen.cores;
    p->made_up.fold_always = chosen.fold_always;
    p->made_up.split_always = chosen.split_always;
    s->traits = &p->made_up;
    stage_cache_clear(s, &s->stages);
}

/* One in six has so little memory that many lanes need several rounds. */
static braid_status create(draft *d, plan_choice *p, braid_device *device, const braid_model *m, braid_session **out,
                           braid_error *err) {
    braid_session_options o = {.size = sizeof o, .verify = true, .lanes_max = p->most_lanes, .no_fuse = p->no_fuse};
    if (chance(d, 16)) o.memory_budget = (uint64_t)1 << (14 + draw(d, 8));
    braid_status status = braid_session_create(&device, 1, m, &o, out, err);
    o.memory_budget = 0;
    if (status == BRAID_DEVICE_MEMORY)
        status = braid_session_create(&device, 1, m, &o, out, err); /* not even one lane */
    if (status == BRAID_OK) plan_as_chosen(*out, p);
    return status;
}

static bool open_case(draft *d, plan_choice *p, lane_case *c, braid_device *device, const braid_model *m) {
    braid_error err = {0};
    if (create(d, p, device, m, &c->session, &err) != BRAID_OK) return lanes_wrong(c, "session: %s", err.message);
    if (!chance(d, 25)) return true;
    c->session->test = (session_test){.redzone = chance(d, 50),
                                      .shuffle = chance(d, 50),
                                      .poison = true,
                                      .poison_byte = chance(d, 50) ? 0xff : 0x3c,
                                      .staged = chance(d, 50),
                                      .staged_out = chance(d, 50),
                                      .memory = chance(d, 40) ? 1u << (10 + draw(d, 9)) : 0};
    stage_cache_clear(c->session, &c->session->stages);
    return true;
}

/* Copies left as they are and another schedule change no bit. */
static bool run_plainly(draft *d, plan_choice *p, lane_case *c, braid_device *device, const braid_model *m) {
    static const braid_schedule schedules[] = {BRAID_SCHEDULE_DEFAULT, BRAID_SCHEDULE_UNMERGED, BRAID_SCHEDULE_SERIAL};
    static lane_run r;
    braid_error err = {0};
    braid_session *s = NULL;
    braid_session_options o = {.size = sizeof o,
                               .verify = true,
                               .no_fuse = p->no_fuse,
                               .no_reroll = true,
                               .schedule = schedules[draw(d, COUNT_OF(schedules))]};
    if (!c->n_usable || !chance(d, 30)) return true;
    memset(&r, 0, sizeof r);
    r.lanes = 1;
    r.set[0] = c->usable[0];
    for (size_t i = 0; i < c->n_in; i++) r.in[i] = *lanes_input(c, i, r.set[0]);
    if (braid_session_create(&device, 1, m, &o, &s, &err) != BRAID_OK)
        return lanes_wrong(c, "plain session: %s", err.message);
    if (p->as_gpu) s->traits = &p->made_up;
    stage_cache_clear(s, &s->stages);
    bool good = braid_session_run(s, 1, r.in, c->n_in, r.out, c->n_out, &err) == BRAID_OK ||
                lanes_wrong(c, "plainly: %s", err.message);
    for (size_t i = 0; i < c->n_out; i++) {
        if (good && !lanes_check_output(c, &r, i)) {
            size_t n = strlen(c->what);
            snprintf(c->what + n, sizeof c->what - n, " (alone, not re-rolled, schedule %d)", (int)o.schedule);
            good = false;
        }
        braid_tensor_free(&r.out[i]);
    }
    braid_session_free(s);
    return good;
}

static bool run_case(draft *d, const lanes_total *total, lane_case *c, int runs) {
    for (int k = 0; k < CHOICES; k++) {
        if (!lanes_share(c, draw(d, 101))) return false;
        for (int i = 0; i < runs / CHOICES; i++) {
            if (total->deadline_ns && clock_ns() > total->deadline_ns) return true;
            if (!lanes_run(c, draw_lanes(d, (uint32_t)total->most_lanes))) return false;
        }
    }
    return true;
}

bool lanes_try(draft *given, braid_device *device, int runs, lanes_total *total, finding *f) {
    static lane_case c;
    static draft several;
    braid_error err = {0};
    if (!given->n_outputs) return false;
    draft *d = &several;
    *d = *given;
    d->state = d->seed + 4711;
    if (chance(d, 25)) multiply(d, 2 + (int)draw(d, 4));
    braid_model *m = draft_model(d, d->symbolic, &err);
    if (!m) return finding_set(f, -1, "whole graph: %s", err.message);
    memset(&c, 0, sizeof c);
    c.n_out = (size_t)d->n_outputs;
    c.n_sets = SETS;
    c.state = d->seed;
    find_inputs(d, &c);
    plan_choice p = draw_choice(d, total->as_gpu);
    p.most_lanes = (uint32_t)total->most_lanes;
    c.nan_alike = p.as_gpu;
    bool good = open_case(d, &p, &c, device, m) && run_case(d, total, &c, runs) && run_plainly(d, &p, &c, device, m);
    total->rolled += c.session && rolled(c.session);
    lanes_end(&c);
    braid_session_free(c.session);
    braid_model_free(m);
    total->runs += c.runs;
    total->lanes += c.lanes;
    total->unlike += c.unlike;
    total->failing += c.failing;
    return !good && finding_set(f, -1, "%s", c.what);
}
