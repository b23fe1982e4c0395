/*
 * simplify: rewrites that keep every value.
 *   - a view that changes nothing (Identity, Reshape to the same shape) disappears
 *   - nodes that compute the same thing from the same inputs are one node
 *   - BatchNormalization of a convolution's only use moves into its weights
 *
 * Requires: sorted, inferred.
 */
#include "pass/copy.h"
#include "pass/same.h"

#include <math.h>

typedef struct simplifier {
    copier c;
    int32_t *uses;
    int32_t *consumer; /* node that uses a value, when exactly one does */
    bool *done;        /* nodes already merged into another */
    int32_t *buckets;  /* hash -> node of the new graph, chained by next */
    int32_t *next;
    uint32_t n_buckets;
} simplifier;

/* ------------------------------------------------------------------------------------------- same nodes */

static bool node_equal(const node *a, const node *b) {
    return node_same(a, b) && !a->epilogue &&
           (a->n_in == 0 || memcmp(a->in, b->in, (size_t)a->n_in * sizeof *a->in) == 0);
}

static uint32_t node_bucket(const simplifier *s, const node *n) {
    uint64_t h = hash_bytes(0, n->type, strlen(n->type));
    h = hash_bytes(h, n->in, (size_t)n->n_in * sizeof *n->in);
    return (uint32_t)(h % s->n_buckets);
}

/* The node just added last repeats an earlier one: its outputs are taken from there and it is removed again. */
static void merge_repeated(simplifier *s, const node *old) {
    graph *g = s->c.to;
    const node *last = g->nodes[g->n_nodes - 1];
    if (!last->op || (last->op->flags & OP_RANDOM)) return;
    uint32_t b = node_bucket(s, last);
    for (int32_t i = s->buckets[b]; i >= 0; i = s->next[i]) {
        if (!node_equal(g->nodes[i], last)) continue;
        for (int k = 0; k < old->n_out; k++) {
            if (old->out[k] < 0) continue;
            g->values[last->out[k]]->producer = -1;
            copier_replace(&s->c, old->out[k], g->nodes[i]->out[k]);
        }
        g->n_nodes--;
        return;
    }
    s->next[g->n_nodes - 1] = s->buckets[b];
    s->buckets[b] = g->n_nodes - 1;
}

/* --------------------------------------------------------------------------------------- idle views */

static bool is_idle_view(const graph *g, const node *n) {
    if (!n->op || !(n->op->flags & OP_VIEW) || n->n_in < 1 || n->in[0] < 0 || n->out[0] < 0) return false;
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i] >= 0) return false;
    const tensor_type *a = &g->values[n->in[0]]->type, *b = &g->values[n->out[0]]->type;
    if (value_copies(g->values[n->in[0]]) != node_copies(n)) return false; /* one tensor becomes many */
    return strcmp(n->type, "Identity") == 0 || (a->rank >= 0 && tensor_type_equal(a, b));
}

/* ------------------------------------------------------------------------- BatchNormalization into Conv */

static tensor *constant_of(const graph *g, int32_t v) { return v < 0 ? NULL : g->values[v]->constant; }

static bool is_norm_of_conv(const simplifier *s, const node *conv, const node *norm) {
    const graph *g = s->c.from;
    if (strcmp(norm->type, "BatchNormalization") != 0 || norm->domain[0] || norm->n_in < 5) return false;
    if (norm->in[0] != conv->out[0] || node_int(norm, "training_mode", 0) != 0) return false;
    for (int i = 1; i < 5; i++) {
        const tensor *t = constant_of(g, norm->in[i]);
        if (!t || !type_is_float(t->type.type) || t->type.rank != 1) return false;
    }
    for (int i = 1; i < norm->n_out; i++)
        if (norm->out[i] >= 0) return false;
    return true;
}

static const node *norm_after(const simplifier *s, const node *n) {
    const graph *g = s->c.from;
    if (strcmp(n->type, "Conv") != 0 || n->domain[0] || n->epilogue || n->n_out != 1 || n->n_in < 2 || node_copies(n) > 1)
        return NULL;
    const tensor *w = constant_of(g, n->in[1]);
    if (!w || w->type.rank < 3 || (w->type.type != BRAID_FLOAT32 && w->type.type != BRAID_FLOAT16)) return NULL;
    if (n->n_in > 2 && n->in[2] >= 0 && !constant_of(g, n->in[2])) return NULL;
    int32_t user = s->uses[n->out[0]] == 1 ? s->consumer[n->out[0]] : -1;
    if (user < 0 || !is_norm_of_conv(s, n, g->nodes[user])) return NULL;
    for (int i = 1; i < 5; i++)
        if (constant_of(g, g->nodes[user]->in[i])->type.dims[0] != w->type.dims[0]) return NULL;
    return g->nodes[user];
}

/* w' = w * s, b' = (b - mean) * s + shift with s = scale / sqrt(var + epsilon), in double, stored in w's type. */
static void fold_channels(const tensor *const p[5], const tensor *w, const tensor *b, double epsilon, tensor *w2,
                          tensor *b2) {
    int64_t channels = w->type.dims[0], per, count = 0;
    tensor_type_count(&w->type, &count);
    per = channels ? count / channels : 0;
    for (int64_t m = 0; m < channels; m++) {
        double scale = element_f64(p[1]->type.type, p[1]->data, m) /
                       sqrt(element_f64(p[4]->type.type, p[4]->data, m) + epsilon);
        for (int64_t k = m * per; k < (m + 1) * per; k++)
            element_set_f64(w2->type.type, w2->data, k, element_f64(w->type.type, w->data, k) * scale);
        double bias = b ? element_f64(b->type.type, b->data, m) : 0;
        double mean = element_f64(p[3]->type.type, p[3]->data, m);
        element_set_f64(b2->type.type, b2->data, m,
                        (bias - mean) * scale + element_f64(p[2]->type.type, p[2]->data, m));
    }
}

static braid_status load_at(simplifier *s, int32_t v, tensor **out) {
    *out = constant_of(s->c.from, v);
    return *out ? tensor_load(*out, s->c.to->memory, s->c.err) : BRAID_OK;
}

static braid_status fold_norm(simplifier *s, const node *conv, const node *norm) {
    arena *memory = s->c.to->memory;
    tensor *p[5] = {0}, *w, *b = NULL, *w2, *b2;
    for (int i = 1; i < 5; i++) TRY(load_at(s, norm->in[i], &p[i]));
    TRY(load_at(s, conv->in[1], &w));
    if (conv->n_in > 2) TRY(load_at(s, conv->in[2], &b));
    TRY(tensor_new(memory, w->type.type, w->type.rank, w->type.dims, &w2, s->c.err));
    TRY(tensor_new(memory, w->type.type, 1, w->type.dims, &b2, s->c.err));
    fold_channels((const tensor *const *)p, w, b, node_float(norm, "epsilon", 1e-5f), w2, b2);
    int32_t in[3], out = copier_like(&s->c, norm->out[0]);
    TRY(copier_value(&s->c, conv->in[0], &in[0]));
    in[1] = graph_constant(s->c.to, s->c.from->values[conv->in[1]]->name, w2);
    in[2] = graph_constant(s->c.to, s->c.from->values[norm->in[2]]->name, b2);
    node *n = in[1] < 0 || in[2] < 0 || out < 0
                  ? NULL
                  : graph_node_into(s->c.to, conv->type, conv->domain, conv->name, 3, in, 1, &out);
    if (!n) return error_memory(s->c.err);
    n->op = conv->op;
    n->opset = conv->opset;
    n->attributes = conv->attributes;
    n->n_attributes = conv->n_attributes;
    copier_replace(&s->c, norm->out[0], out);
    s->done[s->consumer[conv->out[0]]] = true;
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- the pass */

static braid_status simplifier_new(simplifier *s, const graph *g, arena *memory, braid_error *err) {
    TRY(copier_new(&s->c, g, memory, err));
    s->n_buckets = (uint32_t)g->n_nodes * 2 + 1;
    s->uses = graph_uses(g, memory);
    s->consumer = arena_array(memory, (size_t)g->n_values + 1, sizeof *s->consumer);
    s->done = arena_array(memory, (size_t)g->n_nodes + 1, sizeof *s->done);
    s->buckets = arena_array(memory, s->n_buckets, sizeof *s->buckets);
    s->next = arena_array(memory, (size_t)g->n_nodes + 1, sizeof *s->next);
    if (!s->uses || !s->consumer || !s->done || !s->buckets || !s->next) return error_memory(err);
    for (uint32_t i = 0; i < s->n_buckets; i++) s->buckets[i] = -1;
    for (int32_t i = 0; i < g->n_values; i++) s->consumer[i] = -1;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] >= 0) s->consumer[g->nodes[i]->in[k]] = i;
    return BRAID_OK;
}

static braid_status simplify_node(simplifier *s, int32_t i) {
    const node *n = s->c.from->nodes[i];
    if (s->done[i]) return BRAID_OK;
    if (is_idle_view(s->c.from, n)) {
        int32_t now;
        TRY(copier_value(&s->c, n->in[0], &now));
        copier_replace(&s->c, n->out[0], now);
        return BRAID_OK;
    }
    const node *norm = norm_after(s, n);
    if (norm) return fold_norm(s, n, norm);
    TRY(copier_node(&s->c, n, NULL));
    merge_repeated(s, n);
    return BRAID_OK;
}

braid_status pass_simplify(const graph *g, arena *memory, const pass_options *o, graph **out, braid_error *err) {
    (void)o;
    simplifier s;
    TRY(simplifier_new(&s, g, memory, err));
    for (int32_t i = 0; i < g->n_nodes; i++) TRY(simplify_node(&s, i));
    TRY(copier_outputs(&s.c));
    *out = s.c.to;
    return BRAID_OK;
}
