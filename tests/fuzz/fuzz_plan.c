/*
 * Fuzz target: a byte of choices, then a graph in text form or a model file. Whatever infers goes through every pass;
 * its free dims become small numbers; what can be planned for a made-up device must encode to rows that the verifier
 * accepts. INTERNAL from any step is a fault.
 */
#include "onnx/onnx.h"
#include "pass/copy.h"
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>

static const device_traits devices[] = {
    {.software = true, .float64 = true, .float16 = true, .int8 = true, .int16 = true, .nan_kept = true, .subgroup = 8,
     .shared_bytes = 32768, .max_invocations = 1024, .max_groups = 65535, .cores = 2, .max_buffer = 1u << 27},
    {.float64 = true, .float16 = true, .int8 = true, .int16 = true, .nan_kept = true, .subgroup = 32,
     .shared_bytes = 49152, .max_invocations = 1024, .max_groups = 65535, .cores = 528,
     .max_buffer = (uint64_t)1 << 32},
    {.subgroup = 64, .shared_bytes = 16384, .max_invocations = 128, .max_groups = 65535, .cores = 8,
     .max_buffer = 1u << 30},
    {.software = true, .subgroup = 4, .shared_bytes = 16384, .max_invocations = 128, .max_groups = 16, .cores = 1,
     .max_buffer = 1u << 27},
};

/* The input's length chooses the memory budget: every third plan takes as little as it can.
   bits 0-1: device, 2: shuffle, 3: red zones, 4: three lanes, 5: without fusion, 6-7: value of free dims */
typedef struct choices {
    const device_traits *device;
    int shuffle;
    bool redzone, no_fuse;
    uint32_t lanes;
    int64_t dim;
    uint64_t budget;
} choices;

static choices choices_of(uint8_t byte) {
    static const int64_t dims[] = {1, 2, 5, 17};
    return (choices){.device = &devices[byte & 3], .shuffle = byte >> 2 & 1, .redzone = byte >> 3 & 1,
                     .lanes = byte & 16 ? 3 : 1, .no_fuse = byte >> 5 & 1, .dim = dims[byte >> 6]};
}

/* Status as it is; INTERNAL ends the run. */
static braid_status sound(braid_status status, const char *where, const braid_error *err) {
    if (status != BRAID_INTERNAL) return status;
    fprintf(stderr, "%s: %s\n", where, err->message);
    abort();
}

/* A graph in text form gets the checks and upgrades that the importer gives every node: rows' infer relies on them. */
static bool checked(graph *g, braid_error *err) {
    graph_find_ops(g);
    int32_t n_nodes = g->n_nodes; /* upgrades append nodes that are canonical already */
    for (int32_t i = 0; i < n_nodes; i++) {
        node *n = g->nodes[i];
        if (!n->op) continue;
        if (op_check_attributes(n, err) != BRAID_OK) return false;
        upgrade u = {.g = g, .node = n, .opset = 28, .err = err};
        if (n->op->upgrade && sound(n->op->upgrade(&u), "upgrade", err) != BRAID_OK) return false;
    }
    graph_find_ops(g);
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op && op_check(g->nodes[i], err) != BRAID_OK) return false;
    return graph_sort(g, err) == BRAID_OK;
}

static graph *read_graph(const uint8_t *data, size_t size, arena *memory, braid_error *err) {
    graph *g = NULL;
    char *source = arena_string(memory, (const char *)data, size);
    if (source && strncmp(source, "graph", 5) == 0)
        return graph_parse(memory, source, &g, err) == BRAID_OK && graph_verify(g, err) == BRAID_OK && checked(g, err)
                   ? g
                   : NULL;
    file *bytes, **files;
    size_t n_files;
    onnx_model *m;
    if (file_from_memory(data, size, &bytes, err) != BRAID_OK) return NULL;
    if (onnx_read(bytes, &(onnx_options){0}, memory, &m, &files, &n_files, err) == BRAID_OK) g = m->g;
    file_unref(bytes);
    return g;
}

/* Weights move into memory, since the file that they lie in is gone. */
static bool load_constants(graph *g, arena *memory) {
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->constant && tensor_load(g->values[i]->constant, memory, NULL) != BRAID_OK) return false;
    return true;
}

static void bind_dims(graph *g, int64_t dim) {
    for (int32_t i = 0; i < g->n_inputs; i++) {
        tensor_type *t = &g->values[g->inputs[i]]->type;
        if (t->rank < 0) *t = (tensor_type){t->type, 2, {0}};
        for (int k = 0; k < t->rank; k++)
            if (!dim_known(t->dims[k]) || t->dims[k] == 0) t->dims[k] = dim;
    }
}

static graph *run_passes(graph *g, arena *memory, const choices *c, braid_error *err) {
    static const char *const names[] = {"prune", "fold", "simplify", "fold", "simplify", "reroll_any", "fuse", "prune"};
    pass_options options = {.fold_budget = 1 << 20, .no_fuse = c->no_fuse};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (c->no_fuse && strcmp(names[i], "fuse") == 0) continue;
        if (sound(pass_run(names[i], g, memory, &options, &g, err), names[i], err) != BRAID_OK) return NULL;
    }
    return g;
}

static bool all_static(const graph *g) {
    for (int32_t i = 0; i < g->n_values; i++)
        if (!tensor_type_static(&g->values[i]->type)) return false;
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->op) return false;
    return true;
}

/* The graph without the nodes that have no kernel: what they make becomes an input. */
static graph *without(const graph *g, arena *memory, const bool *gone, braid_error *err) {
    copier c;
    if (copier_new(&c, g, memory, err) != BRAID_OK) abort();
    int32_t *inputs = arena_array(memory, (size_t)(g->n_inputs + g->n_values) + 1, sizeof *inputs);
    if (!inputs) abort();
    if (c.to->n_inputs) memcpy(inputs, c.to->inputs, (size_t)c.to->n_inputs * sizeof *inputs);
    c.to->inputs = inputs;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const node *n = g->nodes[i];
        if (!gone[i] && sound(copier_node(&c, n, NULL), "copy", err) != BRAID_OK) abort();
        for (int k = 0; gone[i] && k < n->n_out; k++) {
            if (n->out[k] < 0) continue;
            int32_t v = copier_like(&c, n->out[k]);
            if (v < 0) abort();
            c.to->values[v]->kind = VALUE_INPUT;
            c.to->values[v]->producer = -1;
            copier_replace(&c, n->out[k], v);
            c.to->inputs[c.to->n_inputs++] = v;
        }
    }
    if (copier_outputs(&c) != BRAID_OK) abort();
    return c.to;
}

static plan *plan_once(const graph *g, arena *memory, const choices *c, braid_error *err) {
    plan_options options = {.device = c->device, .redzone = c->redzone, .shuffle = c->shuffle,
                            .memory_budget = c->budget};
    plan *p;
    return sound(plan_new(g, memory, &options, &p, err), "plan", err) == BRAID_OK ? p : NULL;
}

/* Nodes that the plan leaves to the host lose their epilogue if they have one, else they leave the graph. */
static plan *make_plan(graph *g, arena *memory, const choices *c, braid_error *err) {
    plan *p = plan_once(g, memory, c, err);
    for (bool taken_apart = false; p && p->n_host_nodes;) {
        bool *flags = arena_array(memory, (size_t)g->n_nodes + 1, sizeof *flags), any = false;
        if (!flags) abort();
        for (int32_t i = 0; i < p->n_host_nodes; i++) {
            const node *n = g->nodes[p->host_nodes[i]];
            any |= flags[p->host_nodes[i]] = taken_apart || (n->epilogue && !node_is_map(n));
        }
        if (taken_apart) g = without(g, memory, flags, err);
        if (!taken_apart && any && sound(pass_unfuse(g, memory, flags, &g, err), "unfuse", err) != BRAID_OK)
            return NULL;
        taken_apart = taken_apart || !any;
        if (any) p = plan_once(g, memory, c, err);
    }
    return p;
}

static void check_plan(plan *p, const choices *c, braid_error *err) {
    uint64_t at = (uint64_t)1 << 44;
    for (int32_t i = 0; i < p->n_storages; i++) {
        storage *s = &p->storages[i];
        if (s->kind != STORAGE_CONST || s->alias != i) continue;
        s->offset = at;
        at += s->stride + 256;
    }
    if (sound(plan_encode(p, c->lanes, err), "encode", err) != BRAID_OK) return;
    braid_status status = sound(plan_verify(p, c->lanes, err), "verify", err);
    if (status == BRAID_OK || status == BRAID_HOST_MEMORY) return;
    fprintf(stderr, "verify: %s\n", err->message);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size) return 0;
    choices c = choices_of(data[0]);
    c.budget = size % 3 == 0;
    braid_error err = {0};
    arena *memory = arena_new();
    if (!memory) return 0;
    graph *g = read_graph(data + 1, size - 1, memory, &err);
    if (g && load_constants(g, memory)) {
        bind_dims(g, c.dim);
        if (sound(graph_infer(g, &err), "infer", &err) == BRAID_OK) g = run_passes(g, memory, &c, &err);
        else g = NULL;
        if (g && all_static(g)) {
            plan *p = make_plan(g, memory, &c, &err);
            if (p) check_plan(p, &c, &err);
        }
    }
    arena_free(memory);
    return 0;
}
