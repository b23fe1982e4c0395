/*
 * rest.c: what a stage could not plan, run when the shapes and small integer values that reach it are known.
 *
 * Several lanes take what was planned together, and the rest too where those values are the same in all of them and
 * settle every shape. Otherwise the rest runs lane by lane: each lane then has shapes of its own.
 */
#include "api/session.h"

typedef struct rest {
    braid_session *s;
    stage *st;
    place *in, *out; /* of st->rest */
    arena *memory;
    braid_error *err;
} rest;

/* The device content of an input that is needed as a number. */
static braid_status bring(const rest *r, place *p, const tensor_type *t) {
    if (p->host && p->host->data) return BRAID_OK;
    if (stage_bakes(t)) return place_to_host(r->s, t, p, r->memory, r->err);
    if (p->host) return BRAID_OK;
    if (!(p->host = arena_alloc(r->memory, sizeof *p->host))) return error_memory(r->err);
    p->host->type = *t; /* type only; the bytes stay on the device */
    return BRAID_OK;
}

static bool any_varies(const rest *r) {
    for (int32_t i = 0; i < r->st->rest->n_inputs; i++)
        if (r->in[i].stride) return true;
    return false;
}

/* Is a value the same in every lane that is in order; *first is one of those. */
static bool is_uniform(const braid_session *s, const place *p, uint32_t *first) {
    bool found = false;
    for (uint32_t lane = 0; lane < s->lanes; lane++) {
        if (!lane_good(s, lane)) continue;
        if (!found) *first = lane;
        found = true;
        if (memcmp(place_lane(p, lane), place_lane(p, *first), p->host->bytes) != 0) return false;
    }
    return found;
}

/* Takes one lane for all where they are equal. False: some value that plans are made for differs. */
static braid_status make_uniform(const rest *r, bool *uniform) {
    *uniform = true;
    for (int32_t i = 0; *uniform && i < r->st->rest->n_inputs; i++) {
        place *p = &r->in[i];
        uint32_t lane = 0;
        if (!p->stride || !stage_bakes(&p->host->type)) continue;
        if (!(*uniform = is_uniform(r->s, p, &lane))) break;
        tensor *t = arena_copy(r->memory, p->host, sizeof *t);
        if (!t) return error_memory(r->err);
        t->data = (void *)(uintptr_t)place_lane(p, lane);
        *p = (place){.host = t};
    }
    return BRAID_OK;
}

/* Does every shape follow from what is known before the stage runs. */
static bool settled(const stage *st) {
    for (int32_t i = 0; i < st->g->n_values; i++)
        if (st->g->values[i]->kind == VALUE_NODE && !tensor_type_static(&st->g->values[i]->type)) return false;
    return !st->rest;
}

static braid_status together(const rest *r, bool *done) {
    braid_session *s = r->s;
    stage *next;
    TRY(stage_get(s, &r->st->rest_stages, r->st->rest, r->in, true, &next, r->err));
    *done = s->lanes == 1 || (settled(next) && next->bucket >= s->lanes);
    return *done ? stage_run(s, next, r->in, r->out, r->memory, r->err) : BRAID_OK;
}

/* ---------------------------------------------------------------------------------------------- lane by lane */

static braid_status run_lane(const rest *r, const place *in, place *out, arena *memory, braid_error *err) {
    braid_session *s = r->s;
    const graph *g = r->st->rest;
    stage *next;
    TRY(stage_get(s, &r->st->rest_stages, g, in, true, &next, err));
    TRY(stage_run(s, next, in, out, memory, err));
    for (int32_t i = 0; i < g->n_outputs; i++) TRY(place_to_host(s, &out[i].host->type, &out[i], memory, err));
    return BRAID_OK;
}

/* With the session set to this lane alone. */
static braid_status keep_lane(const rest *r, uint32_t lanes, uint32_t lane, const place *in, arena *memory) {
    braid_error why = {0};
    place *out = arena_array(memory, (size_t)r->st->rest->n_outputs + 1, sizeof *out);
    if (!out) return error_memory(r->err);
    braid_status status = run_lane(r, in, out, memory, &why);
    if (status != BRAID_OK) return lane_failed(r->s, status, &why, r->err);
    const graph *g = r->st->rest;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        status = place_keep_lane(lanes, lane, out[i].host, &r->out[i], r->memory, r->err);
        if (status != BRAID_OK) return error_within(r->err, status, "output '%s'", g->output_names[i]);
    }
    return BRAID_OK;
}

static braid_status one_lane(const rest *r, uint32_t lane) {
    braid_session *s = r->s;
    const graph *g = r->st->rest;
    uint32_t lanes = s->lanes, failed = s->log_lanes.failed_now;
    arena *memory = arena_new();
    place *in = memory ? arena_array(memory, (size_t)g->n_inputs + 1, sizeof *in) : NULL;
    braid_status status = in ? place_take(r->in, g->n_inputs, lane, in, memory, r->err) : error_memory(r->err);
    if (status == BRAID_OK) {
        for (int32_t i = 0; i < g->n_inputs; i++) in[i].stride = 0;
        s->lanes = 1;
        s->lane_base += lane;
        s->log_lanes.failed_now = 0;
        status = keep_lane(r, lanes, lane, in, memory);
        s->lanes = lanes;
        s->lane_base -= lane;
        s->log_lanes.failed_now += failed;
    }
    arena_free(memory);
    return status;
}

static braid_status lane_by_lane(const rest *r) {
    braid_session *s = r->s;
    for (uint32_t lane = 0; lane < s->lanes; lane++)
        if (lane_good(s, lane)) TRY(one_lane(r, lane));
    return s->log_lanes.failed_now == s->lanes ? lanes_verdict(s, r->err) : BRAID_OK;
}

/* What no lane-varying value reaches is run as if for one lane. */
static braid_status once(const rest *r) {
    bool done;
    uint32_t lanes = r->s->lanes;
    r->s->lanes = 1;
    braid_status status = together(r, &done);
    r->s->lanes = lanes;
    return status;
}

static braid_status of_lanes(const rest *r) {
    bool uniform = false, done = false;
    if (!any_varies(r)) return once(r);
    TRY(make_uniform(r, &uniform));
    if (uniform) TRY(together(r, &done));
    return done ? BRAID_OK : lane_by_lane(r);
}

braid_status rest_run(braid_session *s, stage *st, place *places, arena *memory, braid_error *err) {
    const graph *g = st->rest;
    bool done;
    rest r = {.s = s, .st = st, .memory = memory, .err = err,
              .in = arena_array(memory, (size_t)g->n_inputs + 1, sizeof *r.in),
              .out = arena_array(memory, (size_t)g->n_outputs + 1, sizeof *r.out)};
    if (!r.in || !r.out) return error_memory(err);
    for (int32_t i = 0; i < g->n_inputs; i++) {
        int32_t v = st->rest_input_of[i];
        TRY(bring(&r, &places[v], &st->g->values[v]->type));
        r.in[i] = places[v];
    }
    TRY(s->lanes > 1 ? of_lanes(&r) : together(&r, &done));
    for (int32_t i = 0; i < g->n_outputs; i++) places[st->rest_output_of[i]] = r.out[i];
    return BRAID_OK;
}
