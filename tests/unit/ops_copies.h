/*
 * ops_copies.h: a graph given as text, several times in one graph, against the graph alone. Part of ops_gpu.h.
 *
 * With BRAID_TEST_COPIES=SEED in the environment ops_compare does this instead of comparing with the reference, so that
 * every case of the operators' tests is a case of re-rolling: COPIES clones with data of their own, which inputs are
 * shared being drawn, constants shared or repeated; then two lanes of that. Every copy of every lane gives the bits of
 * a run alone.
 */
#ifndef OPS_COPIES_H
#define OPS_COPIES_H

#include "ops_lanes.h"

enum { COPIES = 5, COPIES_INPUTS = 8, COPIES_OUTPUTS = 4 };

static int ops_copies_cases, ops_copies_rolled;

/* At the end: how many cases were re-rolled. Those that are not are of operators without a kernel, and views. */
static inline void ops_copies_tell(void) {
    fprintf(stderr, "%d of %d cases were re-rolled\n", ops_copies_rolled, ops_copies_cases);
}

typedef struct copies_case {
    const braid_model *model;
    const char *source;
    size_t n_in, n_out;
    braid_tensor in[COPIES][COPIES_INPUTS]; /* data sets */
    braid_tensor alone[COPIES][COPIES_OUTPUTS];
    bool shared[COPIES_INPUTS], repeat;
    braid_status expected[COPIES];
} copies_case;

static inline int32_t copies_value(const copies_case *c, graph *to, const graph *from, int32_t *map, int32_t v,
                                   int copy) {
    if (v < 0 || map[v] >= 0) return v < 0 ? -1 : map[v];
    const value *x = from->values[v];
    map[v] = graph_value(to, arena_format(to->memory, "%s.%d", x->name, copy), x->kind);
    to->values[map[v]]->type = x->type;
    to->values[map[v]]->constant = x->constant;
    (void)c;
    return map[v];
}

static inline void copies_add(const copies_case *c, graph *to, const graph *from, int32_t *first, int copy) {
    int32_t *map = arena_array(to->memory, (size_t)from->n_values + 1, sizeof *map);
    for (int32_t v = 0; v < from->n_values; v++)
        map[v] = from->values[v]->kind == VALUE_CONSTANT && !c->repeat && copy ? first[v] : -1;
    for (int32_t i = 0; i < from->n_inputs; i++) {
        int32_t v = from->inputs[i];
        bool old = c->shared[i] && copy;
        map[v] = old ? first[v] : copies_value(c, to, from, map, v, copy);
        if (!old) to->inputs[to->n_inputs++] = map[v];
    }
    for (int32_t i = 0; i < from->n_nodes; i++) {
        const node *n = from->nodes[i];
        int32_t *in = arena_array(to->memory, (size_t)n->n_in + 1, sizeof *in),
                *out = arena_array(to->memory, (size_t)n->n_out + 1, sizeof *out);
        for (int k = 0; k < n->n_in; k++) in[k] = copies_value(c, to, from, map, n->in[k], copy);
        for (int k = 0; k < n->n_out; k++) out[k] = copies_value(c, to, from, map, n->out[k], copy);
        node *m = graph_node_into(to, n->type, n->domain, n->name, n->n_in, in, n->n_out, out);
        m->opset = n->opset;
        m->op = n->op;
        m->attributes = n->attributes;
        m->n_attributes = n->n_attributes;
    }
    for (int32_t i = 0; i < from->n_outputs; i++) {
        to->outputs[to->n_outputs] = copies_value(c, to, from, map, from->outputs[i], copy);
        to->output_names[to->n_outputs] = arena_format(to->memory, "%s#%d", from->output_names[i], copy);
        to->n_outputs++;
    }
    if (copy == 0) memcpy(first, map, (size_t)from->n_values * sizeof *map);
}

static inline braid_model *copies_model(const copies_case *c) {
    const graph *from = c->model->m->g;
    braid_model *model = mem_alloc(sizeof *model);
    memset(model, 0, sizeof *model);
    model->memory = arena_new();
    model->references = 1;
    model->m = arena_alloc(model->memory, sizeof *model->m);
    graph *g = model->m->g = graph_new(model->memory, "copies");
    g->opset = from->opset;
    g->inputs = arena_array(model->memory, (size_t)from->n_inputs * COPIES + 1, sizeof *g->inputs);
    g->outputs = arena_array(model->memory, (size_t)from->n_outputs * COPIES + 1, sizeof *g->outputs);
    g->output_names = arena_array(model->memory, (size_t)from->n_outputs * COPIES + 1, sizeof *g->output_names);
    int32_t *first = arena_array(model->memory, (size_t)from->n_values + 1, sizeof *first);
    for (int copy = 0; copy < COPIES; copy++) copies_add(c, g, from, first, copy);
    braid_error err = {0};
    if (graph_infer(g, &err) != BRAID_OK) fail_msg("%s\n%s", err.message, c->source);
    return model;
}

/* Inputs of a run: copy c of lane l has data set (c + l) % COPIES; shared inputs have that of copy 0. */
static inline size_t copies_inputs(const copies_case *c, const braid_model *clones, uint32_t lanes, braid_tensor *out) {
    size_t n = 0;
    for (int copy = 0; copy < COPIES; copy++)
        for (size_t i = 0; i < c->n_in; i++) {
            if (c->shared[i] && copy) continue;
            const graph *g = clones->m->g;
            braid_tensor *t = &out[n];
            *t = c->in[0][i];
            t->name = g->values[g->inputs[n++]]->name;
            t->data = calloc(c->in[0][i].bytes * lanes + 16, 1);
            t->bytes = c->in[0][i].bytes * lanes;
            for (uint32_t lane = 0; lane < lanes; lane++) {
                const braid_tensor *from = &c->in[c->shared[i] ? 0 : (copy + (int)lane) % COPIES][i];
                memcpy((uint8_t *)t->data + lane * from->bytes, from->data, from->bytes);
            }
        }
    return n;
}

static inline void copies_check(const copies_case *c, const braid_tensor *out, uint32_t lanes) {
    for (uint32_t lane = 0; lane < lanes; lane++)
        for (int copy = 0; copy < COPIES; copy++)
            for (size_t i = 0; i < c->n_out; i++) {
                const braid_tensor *got = &out[(size_t)copy * c->n_out + i],
                                   *want = &c->alone[(copy + (int)lane) % COPIES][i];
                size_t stride = lanes > 1 ? got->lane_stride : 0, bytes = want->bytes;
                if (memcmp((uint8_t *)got->data + lane * stride, want->data, bytes) != 0)
                    fail_msg("output %zu of copy %d, lane %u, differs from a run alone in\n%s", i, copy, lane,
                             c->source);
            }
}

/* Shapes that depend on data: lanes must have one. */
static inline bool copies_differ(const copies_case *c) {
    for (int k = 1; k < COPIES; k++)
        for (size_t i = 0; i < c->n_out; i++)
            if (memcmp(c->alone[k][i].dims, c->alone[0][i].dims, sizeof c->alone[0][i].dims) != 0) return true;
    return false;
}

static inline void copies_run(const copies_case *c, braid_device *device, bool poison) {
    braid_model *clones = copies_model(c);
    braid_session_options o = {.size = sizeof o, .verify = true, .lanes_max = 2};
    braid_session *s = NULL;
    braid_error err = {0};
    if (braid_session_create(&device, 1, clones, &o, &s, &err) != BRAID_OK) fail_msg("%s\n%s", err.message, c->source);
    s->test.reroll_any = true;
    if (poison) {
        s->test =
            (session_test){.reroll_any = true, .redzone = true, .shuffle = true, .poison = true, .poison_byte = 0xff};
    }
    stage_cache_clear(s, &s->stages);
    bool good = true;
    for (int k = 0; k < COPIES; k++) good = good && c->expected[k] == BRAID_OK;
    for (uint32_t lanes = 1; lanes <= 2; lanes++) {
        braid_tensor in[COPIES * COPIES_INPUTS], out[COPIES * COPIES_OUTPUTS] = {{0}};
        size_t n_in = copies_inputs(c, clones, lanes, in), n_out = c->n_out * COPIES;
        braid_status status = braid_session_run(s, lanes, in, n_in, out, n_out, &err);
        if (lanes > 1 && status == BRAID_UNSUPPORTED && copies_differ(c)) good = false;
        if ((status == BRAID_OK) != good)
            fail_msg("%u lanes of copies: %s, alone it is %s\n%s", lanes, status ? err.message : "OK",
                     good ? "OK" : "refused", c->source);
        if (good && s->stages.first) ops_copies_rolled += lanes == 1 && s->stages.first->packs.n_bundles > 0;
        if (good) copies_check(c, out, lanes);
        for (size_t i = 0; i < n_out; i++) braid_tensor_free(&out[i]);
        for (size_t i = 0; i < n_in; i++) free(in[i].data);
    }
    braid_session_free(s);
    braid_model_free(clones);
}

static inline uint64_t ops_compare_copies(braid_device *device, const char *source, const braid_model *model,
                                          size_t n_in, const braid_tensor *in, uint64_t seed) {
    copies_case *c = calloc(1, sizeof *c);
    braid_error err = {0};
    braid_session *s = NULL;
    braid_session_options o = {.size = sizeof o, .no_reroll = true};
    braid_plan_stats stats = {0};
    *c = (copies_case){.model = model, .source = source, .n_in = n_in, .n_out = (size_t)model->m->g->n_outputs};
    uint64_t draw = (seed ^ ops_seed) * 6364136223846793005u + 1442695040888963407u;
    assert_true(n_in <= COPIES_INPUTS && c->n_out <= COPIES_OUTPUTS);
    for (size_t i = 0; i < n_in; i++) c->shared[i] = n_in > 1 && (draw >> (8 + i) & 3) == 0;
    c->repeat = draw >> 40 & 1;
    for (int k = 0; k < COPIES; k++)
        for (size_t i = 0; i < n_in; i++)
            c->in[k][i] = k == 0 ? in[i] : c->shared[i] ? c->in[0][i] : ops_lane_data(&in[i], (uint32_t)k);
    if (braid_session_create(&device, 1, model, &o, &s, &err) == BRAID_OK) {
        for (int k = 0; k < COPIES; k++)
            c->expected[k] = braid_session_run(s, 1, c->in[k], n_in, c->alone[k], c->n_out, &err);
        braid_session_stats(s, &stats);
        if (!ops_copies_cases++) atexit(ops_copies_tell);
        copies_run(c, device, draw >> 41 & 1);
    }
    braid_session_free(s);
    for (int k = 0; k < COPIES; k++) {
        for (size_t i = 0; i < c->n_out; i++) braid_tensor_free(&c->alone[k][i]);
        for (size_t i = 0; i < n_in && k; i++)
            if (!c->shared[i]) free(c->in[k][i].data);
    }
    free(c);
    return stats.host_steps;
}

#endif
