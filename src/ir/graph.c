/*
 * graph.c: building graphs and reading attributes.
 */
#include "ir/graph.h"

/* Room for one more element in an arena array that doubles. False on failure. */
static bool grow(arena *memory, void *array, int32_t count, int32_t *capacity, size_t size) {
    if (count < *capacity) return true;
    if (count > INT32_MAX / 2) return false;
    int32_t larger = *capacity ? *capacity * 2 : 8;
    void *fresh = arena_array(memory, (size_t)larger, size), **place = array;
    if (!fresh) return false;
    if (count) memcpy(fresh, *place, (size_t)count * size);
    *place = fresh;
    *capacity = larger;
    return true;
}

static const char *keep(arena *memory, const char *s) {
    return s && *s ? arena_string(memory, s, strlen(s)) : "";
}

graph *graph_new(arena *memory, const char *name) {
    graph *g = arena_alloc(memory, sizeof *g);
    if (!g || !(g->name = keep(memory, name))) return NULL;
    g->memory = memory;
    return g;
}

int32_t graph_value(graph *g, const char *name, value_kind kind) {
    value *v = arena_alloc(g->memory, sizeof *v);
    if (!v || !(v->name = keep(g->memory, name))) return -1;
    if (!grow(g->memory, &g->values, g->n_values, &g->cap_values, sizeof *g->values)) return -1;
    v->kind = kind;
    v->producer = v->outer = -1;
    v->type.rank = -1;
    v->n_known = -1;
    g->values[g->n_values] = v;
    return g->n_values++;
}

static node *append_node(graph *g, const char *type, const char *domain, const char *name, int n_in, const int32_t *in,
                         int n_out) {
    node *n = arena_alloc(g->memory, sizeof *n);
    if (!n || n_in < 0 || n_out < 0) return NULL;
    n->type = keep(g->memory, type);
    n->domain = keep(g->memory, domain);
    n->name = keep(g->memory, name);
    n->n_in = n->n_root = n_in;
    n->n_out = n_out;
    n->in = arena_array(g->memory, (size_t)n_in + 1, sizeof *n->in);
    n->out = arena_array(g->memory, (size_t)n_out + 1, sizeof *n->out);
    if (!n->type || !n->domain || !n->name || !n->in || !n->out) return NULL;
    if (n_in) memcpy(n->in, in, (size_t)n_in * sizeof *in);
    if (!*n->domain) n->opset = g->opset;
    if (!grow(g->memory, &g->nodes, g->n_nodes, &g->cap_nodes, sizeof *g->nodes)) return NULL;
    g->nodes[g->n_nodes++] = n;
    return n;
}

node *graph_node_into(graph *g, const char *type, const char *domain, const char *name, int n_in, const int32_t *in,
                      int n_out, const int32_t *out) {
    node *n = append_node(g, type, domain, name, n_in, in, n_out);
    if (!n) return NULL;
    for (int i = 0; i < n_out; i++) {
        n->out[i] = out[i];
        if (out[i] < 0) continue;
        g->values[out[i]]->kind = VALUE_NODE;
        g->values[out[i]]->producer = g->n_nodes - 1;
    }
    return n;
}

node *graph_node(graph *g, const char *type, const char *domain, const char *name, int n_in, const int32_t *in,
                 int n_out) {
    node *n = append_node(g, type, domain, name, n_in, in, n_out);
    if (!n) return NULL;
    for (int i = 0; i < n_out; i++) {
        if ((n->out[i] = graph_value(g, NULL, VALUE_NODE)) < 0) return NULL;
        g->values[n->out[i]]->producer = g->n_nodes - 1;
    }
    return n;
}

int32_t graph_constant(graph *g, const char *name, tensor *t) {
    int32_t v = t ? graph_value(g, name, VALUE_CONSTANT) : -1;
    if (v < 0) return -1;
    g->values[v]->constant = t;
    g->values[v]->type = t->type;
    return v;
}

int32_t graph_constant_ints(graph *g, const char *name, int count, const int64_t *ints) {
    tensor *t;
    int64_t dims[1] = {count};
    if (tensor_new(g->memory, BRAID_INT64, count < 0 ? 0 : 1, dims, &t, NULL) != BRAID_OK) return -1;
    if (count) memcpy(t->data, ints, t->bytes);
    return graph_constant(g, name, t);
}

int32_t graph_constant_scalar(graph *g, const char *name, braid_type type, double v) {
    tensor *t;
    if (tensor_new(g->memory, type, 0, NULL, &t, NULL) != BRAID_OK) return -1;
    element_set_f64(type, t->data, 0, v);
    return graph_constant(g, name, t);
}

uint32_t graph_symbol(graph *g, const char *name) {
    while (g->parent) g = g->parent;
    if (name)
        for (int32_t i = 0; i < g->n_symbols; i++)
            if (g->symbols[i] && strcmp(g->symbols[i], name) == 0) return (uint32_t)i;
    if (!grow(g->memory, &g->symbols, g->n_symbols, &g->cap_symbols, sizeof *g->symbols)) return UINT32_MAX;
    const char *kept = NULL;
    if (name && !(kept = keep(g->memory, name))) return UINT32_MAX;
    g->symbols[g->n_symbols] = kept;
    return (uint32_t)g->n_symbols++;
}

bool node_add_attribute(graph *g, node *n, attribute a) {
    /* The array has room for the next power of two. */
    if ((n->n_attributes & (n->n_attributes - 1)) == 0) {
        attribute *larger = arena_array(g->memory, (size_t)n->n_attributes * 2 + 1, sizeof *larger);
        if (!larger) return false;
        if (n->n_attributes) memcpy(larger, n->attributes, (size_t)n->n_attributes * sizeof *larger);
        n->attributes = larger;
    }
    n->attributes[n->n_attributes++] = a;
    return true;
}

static bool add_named(graph *g, node *n, const char *name, attribute a) {
    a.name = keep(g->memory, name);
    return a.name && node_add_attribute(g, n, a);
}

bool node_add_int(graph *g, node *n, const char *name, int64_t i) {
    return add_named(g, n, name, (attribute){.kind = ATTRIBUTE_INT, .count = 1, .i = i});
}

bool node_add_float(graph *g, node *n, const char *name, float f) {
    return add_named(g, n, name, (attribute){.kind = ATTRIBUTE_FLOAT, .count = 1, .f = f});
}

bool node_add_ints(graph *g, node *n, const char *name, int count, const int64_t *ints) {
    if (count < 0) return false;
    int64_t *copy = arena_array(g->memory, (size_t)count + 1, sizeof *ints);
    if (!copy) return false;
    if (count) memcpy(copy, ints, (size_t)count * sizeof *ints);
    return add_named(g, n, name, (attribute){.kind = ATTRIBUTE_INTS, .count = (size_t)count, .ints = copy});
}

bool node_add_string(graph *g, node *n, const char *name, const char *s) {
    const char *copy = keep(g->memory, s);
    return copy && add_named(g, n, name, (attribute){.kind = ATTRIBUTE_STRING, .count = strlen(copy), .s = copy});
}

const attribute *node_attribute(const node *n, const char *name) {
    for (int i = 0; i < n->n_attributes; i++)
        if (strcmp(n->attributes[i].name, name) == 0) return &n->attributes[i];
    return NULL;
}

static const attribute *attribute_of(const node *n, const char *name, attribute_kind kind) {
    const attribute *a = node_attribute(n, name);
    return a && a->kind == kind ? a : NULL;
}

int64_t node_int(const node *n, const char *name, int64_t fallback) {
    const attribute *a = attribute_of(n, name, ATTRIBUTE_INT);
    return a ? a->i : fallback;
}

float node_float(const node *n, const char *name, float fallback) {
    const attribute *a = attribute_of(n, name, ATTRIBUTE_FLOAT);
    return a ? a->f : fallback;
}

const char *node_string(const node *n, const char *name, const char *fallback) {
    const attribute *a = attribute_of(n, name, ATTRIBUTE_STRING);
    return a ? a->s : fallback;
}

int node_ints(const node *n, const char *name, const int64_t **out) {
    const attribute *a = attribute_of(n, name, ATTRIBUTE_INTS);
    *out = a ? a->ints : NULL;
    return a ? (int)a->count : 0;
}
