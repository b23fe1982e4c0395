/*
 * host.c: host steps: nodes that the CPU reference computes between device segments. Lanes are computed one by one, each
 * in memory of its own, by several threads when that takes long.
 */
#include "api/session.h"

enum { WORTH_THREADS_NS = 500000 };

typedef struct host_lane {
    arena *memory; /* NULL: passed over */
    tensor **out;
    braid_status status;
    braid_error why;
} host_lane;

typedef struct host_step {
    braid_session *s;
    stage *st;
    const node *n;
    const tensor **in;  /* of lane 0, or of all lanes */
    const place **from; /* NULL: a constant, or absent */
    place *places;
    host_lane *lanes;
    arena *memory;
    braid_error *err;
    uint32_t first; /* lane that parallel work starts at */
} host_step;

braid_status place_to_host(braid_session *s, const tensor_type *type, place *p, arena *memory, braid_error *err) {
    if (p->host && p->host->data) return BRAID_OK;
    if (!p->buffer) {
        size_t bytes;
        if (p->host && tensor_type_bytes(type, &bytes) && bytes == 0) return BRAID_OK;
        return error_set(err, BRAID_INTERNAL, "a value is neither on the host nor on the device");
    }
    tensor *t = arena_alloc(memory, sizeof *t);
    size_t bytes;
    if (!t || !tensor_type_bytes(type, &bytes)) return error_memory(err);
    uint64_t whole = bytes + (p->stride ? (s->lanes - 1) * p->stride : 0);
    *t = (tensor){.type = *type, .data = arena_alloc(memory, (size_t)whole), .bytes = bytes};
    if (!t->data) return error_memory(err);
    TRY(gpu_download(s->device->gpu, p->buffer, p->offset, whole, t->data, err));
    p->host = t;
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- one lane */

static braid_status lane_inputs(const host_step *h, uint32_t lane, arena *memory, const tensor ***out, braid_error *err) {
    const tensor **in = arena_copy(memory, h->in, ((size_t)h->n->n_in + 1) * sizeof *in);
    if (!in) return error_memory(err);
    for (int k = 0; k < h->n->n_in; k++) {
        if (!h->from[k] || !h->from[k]->stride) continue;
        tensor *t = arena_copy(memory, h->from[k]->host, sizeof *t);
        if (!t) return error_memory(err);
        t->data = (void *)(uintptr_t)place_lane(h->from[k], lane);
        in[k] = t;
    }
    *out = in;
    return BRAID_OK;
}

static braid_status compute(const host_step *h, uint32_t lane, host_lane *l) {
    const tensor **in = NULL;
    TRY(lane_inputs(h, lane, l->memory, &in, &l->why));
    if (!(l->out = arena_array(l->memory, (size_t)h->n->n_out + 1, sizeof *l->out))) return error_memory(&l->why);
    return op_eval(h->st->g, h->n, l->memory, in, l->out, &l->why);
}

/* Lanes that failed are passed over: what they would make is zeros. */
static void eval_lane(void *user, size_t i) {
    const host_step *h = user;
    uint32_t lane = h->first + (uint32_t)i;
    host_lane *l = &h->lanes[lane];
    if (!lane_good(h->s, lane)) return;
    l->memory = arena_new();
    l->status = l->memory ? compute(h, lane, l) : error_memory(&l->why);
}

static braid_status keep_lane(const host_step *h, uint32_t lane) {
    const node *n = h->n;
    host_lane *l = &h->lanes[lane];
    char title[256];
    if (l->status != BRAID_OK) {
        error_within(&l->why, l->status, "%s", node_title(n, title));
        return lane_fail(h->s, lane, &l->why, h->err);
    }
    for (int k = 0; l->memory && k < n->n_out; k++) {
        if (n->out[k] < 0) continue;
        braid_status status = place_keep_lane(h->s->lanes, lane, l->out[k], &h->places[n->out[k]], h->memory, h->err);
        if (status != BRAID_OK) return error_within(h->err, status, "%s", node_title(n, title));
    }
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------ all lanes */

/* The first lane tells how long the others will take. */
static void eval_lanes(host_step *h) {
    uint32_t lanes = h->s->lanes;
    uint64_t start = clock_ns(), spent = 0;
    for (h->first = 0; h->first < lanes && !spent; h->first++) {
        eval_lane(h, 0);
        if (h->lanes[h->first].memory) spent = clock_ns() - start + 1;
    }
    bool worth = spent * (lanes - h->first) > WORTH_THREADS_NS;
    parallel_for(lanes - h->first, worth ? 0 : 1, eval_lane, h);
}

static braid_status run_lanes(host_step *h) {
    braid_status status = BRAID_OK;
    if (!(h->lanes = arena_array(h->memory, h->s->lanes, sizeof *h->lanes))) return error_memory(h->err);
    eval_lanes(h);
    for (uint32_t lane = 0; lane < h->s->lanes; lane++) {
        if (status == BRAID_OK) status = keep_lane(h, lane);
        arena_free(h->lanes[lane].memory);
    }
    return status;
}

/* A step whose inputs are the same for every lane. */
static braid_status run_shared(const host_step *h) {
    const node *n = h->n;
    char title[256];
    tensor **out = arena_array(h->memory, (size_t)n->n_out + 1, sizeof *out);
    if (!out) return error_memory(h->err);
    braid_status status = op_eval(h->st->g, n, h->memory, h->in, out, h->err);
    if (status != BRAID_OK) return error_within(h->err, status, "%s", node_title(n, title));
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0) h->places[n->out[k]] = (place){.host = out[k]};
    return BRAID_OK;
}

/* *varies: some input differs between lanes. */
static braid_status find_inputs(host_step *h, bool *varies) {
    const graph *g = h->st->g;
    const node *n = h->n;
    *varies = n->op->flags & OP_RANDOM;
    h->in = arena_array(h->memory, (size_t)n->n_in + 1, sizeof *h->in);
    h->from = arena_array(h->memory, (size_t)n->n_in + 1, sizeof *h->from);
    if (!h->in || !h->from) return error_memory(h->err);
    for (int k = 0; k < n->n_in; k++) {
        int32_t v = n->in[k];
        if (v < 0) continue;
        tensor *constant = g->values[v]->constant;
        if (constant) TRY(tensor_load(constant, h->st->memory, h->err));
        else TRY(place_to_host(h->s, &g->values[v]->type, &h->places[v], h->memory, h->err));
        h->from[k] = constant ? NULL : &h->places[v];
        h->in[k] = constant ? constant : h->places[v].host;
        *varies = *varies || (!constant && h->places[v].stride);
    }
    return BRAID_OK;
}

braid_status host_run(braid_session *s, stage *st, int32_t i, place *places, arena *memory, braid_error *err) {
    const node *n = st->g->nodes[i];
    host_step h = {.s = s, .st = st, .n = n, .places = places, .memory = memory, .err = err};
    bool varies;
    TRY(find_inputs(&h, &varies));
    uint64_t start = clock_ns();
    TRY(varies ? run_lanes(&h) : run_shared(&h));
    if (!s->profile) return BRAID_OK;
    return session_add_time(s, (braid_step_time){.node = n->name, .op = n->type, .kernel = "host", .start_ns = start,
                                                 .time_ns = clock_ns() - start, .rows = 1,
                                                 .copies = (uint32_t)node_copies(n)}, err);
}
