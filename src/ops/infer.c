/*
 * infer.c: walks a graph in order and asks each row for its output types; the helpers that rows use.
 */
#include "ops/op.h"

#include <stdio.h>

/* ------------------------------------------------------------------------------------------------ helpers */

braid_status infer_constant(infer *c, int i, const tensor **out) {
    *out = NULL;
    if (!infer_has(c, i) || !c->constant[i]) return BRAID_OK;
    TRY(tensor_load(c->constant[i], c->g->memory, c->err));
    *out = c->constant[i];
    return BRAID_OK;
}

enum { FOLLOWED_MAX = 4096 }; /* elements, or one for each output: a Split may have more */

/* Elements of small integer constants become followed values; floats are not followed. */
static bool follow_constant(infer *c, const tensor *t, followed *out) {
    int64_t count, most = c->n_out > FOLLOWED_MAX ? c->n_out : FOLLOWED_MAX;
    if (!tensor_type_count(&t->type, &count) || count > most || t->type.rank > 1) return false;
    if (!type_is_integer(t->type.type) && t->type.type != BRAID_BOOL) return false;
    int64_t *v = arena_array(c->g->memory, (size_t)count + 1, sizeof *v);
    if (!v) return false;
    for (int64_t i = 0; i < count; i++) {
        v[i] = element_i64(t->type.type, t->data, i);
        if (dim_is_symbol(v[i])) v[i] = DIM_SYMBOL_BASE;
    }
    out->n = (int)count;
    out->v = v;
    return true;
}

bool infer_ints(infer *c, int i, int *count, const int64_t **out) {
    if (!infer_has(c, i)) return false;
    followed f = c->known[i];
    if (f.n < 0) {
        tensor *t = c->constant[i];
        if (!t || tensor_load(t, c->g->memory, NULL) != BRAID_OK || !follow_constant(c, t, &f)) return false;
    }
    *count = f.n;
    *out = f.v;
    return true;
}

int64_t infer_fresh(infer *c) {
    uint32_t id = graph_symbol(c->g, NULL);
    return dim_from_symbol(id == UINT32_MAX ? 0 : id);
}

bool infer_broadcast_dim(infer *c, int64_t a, int64_t b, int64_t *out) {
    if (a == b || b == 1) {
        *out = a;
    } else if (a == 1) {
        *out = b;
    } else if (dim_known(a) && dim_known(b)) {
        return false;
    } else if (dim_known(a)) {
        *out = a; /* the symbol must be 1 or a, and a is not 1 */
    } else if (dim_known(b)) {
        *out = b;
    } else {
        *out = infer_fresh(c);
    }
    return true;
}

static int64_t dim_from_end(const tensor_type *t, int back) {
    return back < t->rank ? t->dims[t->rank - 1 - back] : 1;
}

static void format_shape(const tensor_type *t, char *buffer, size_t size) {
    size_t n = 0;
    n += (size_t)snprintf(buffer, size, "[");
    for (int i = 0; i < t->rank && n < size; i++) {
        if (dim_known(t->dims[i])) n += (size_t)snprintf(buffer + n, size - n, "%s%lld", i ? "," : "", (long long)t->dims[i]);
        else n += (size_t)snprintf(buffer + n, size - n, "%s?", i ? "," : "");
    }
    if (n < size) snprintf(buffer + n, size - n, "]");
}

braid_status infer_broadcast(infer *c, int first, int last, tensor_type *out) {
    int rank = 0;
    for (int i = first; i < last; i++) {
        if (!infer_has(c, i)) continue;
        if (c->in[i]->rank < 0) {
            out->rank = -1;
            return BRAID_OK;
        }
        if (c->in[i]->rank > rank) rank = c->in[i]->rank;
    }
    out->rank = rank;
    for (int d = 0; d < rank; d++) {
        int64_t dim = 1;
        for (int i = first; i < last; i++) {
            if (!infer_has(c, i)) continue;
            int64_t merged;
            if (!infer_broadcast_dim(c, dim, dim_from_end(c->in[i], d), &merged)) {
                char shape[160], other[160] = "";
                format_shape(c->in[i], shape, sizeof shape);
                for (int j = first; j < i; j++)
                    if (infer_has(c, j) && dim_from_end(c->in[j], d) == dim) format_shape(c->in[j], other, sizeof other);
                return error_set(c->err, BRAID_SHAPE, "input %d: shape %s does not broadcast with %s", i, shape, other);
            }
            dim = merged;
        }
        out->dims[rank - 1 - d] = dim;
    }
    return BRAID_OK;
}

braid_status infer_same(infer *c) {
    if (infer_has(c, 0)) c->out[0] = *c->in[0];
    return BRAID_OK;
}

braid_status infer_add(infer *c, int64_t a, int64_t b, int64_t *out) {
    if (dim_known(a) && dim_known(b))
        return i64_add(a, b, out) && dim_known(*out) ? BRAID_OK : error_set(c->err, BRAID_SHAPE, "a dim overflows");
    *out = a == 0 ? b : b == 0 ? a : infer_fresh(c);
    return BRAID_OK;
}

braid_status infer_mul(infer *c, int64_t a, int64_t b, int64_t *out) {
    if (dim_known(a) && dim_known(b))
        return i64_mul(a, b, out) && dim_known(*out) ? BRAID_OK : error_set(c->err, BRAID_SHAPE, "a dim overflows");
    *out = a == 0 || b == 0 ? 0 : a == 1 ? b : b == 1 ? a : infer_fresh(c);
    return BRAID_OK;
}

braid_status axis_normalise(int64_t axis, int rank, int *out, braid_error *err) {
    if (rank == 0) return error_set(err, BRAID_MODEL, "axis %lld of a scalar", (long long)axis);
    if (axis < -rank || axis >= rank)
        return error_set(err, BRAID_MODEL, "axis %lld outside [%d, %d]", (long long)axis, -rank, rank - 1);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return BRAID_OK;
}

braid_status infer_rank(infer *c, int i, int lo, int hi) {
    if (!infer_has(c, i) || c->in[i]->rank < 0 || (c->in[i]->rank >= lo && c->in[i]->rank <= hi)) return BRAID_OK;
    if (lo == hi) return error_set(c->err, BRAID_SHAPE, "input %d: rank %d, expected %d", i, c->in[i]->rank, lo);
    return error_set(c->err, BRAID_SHAPE, "input %d: rank %d, expected %d to %d", i, c->in[i]->rank, lo, hi);
}

/* ------------------------------------------------------------------------------------------------- walking */

/* Joins what infer found with what was known: numbers win over symbols, named symbols over fresh ones. What the operator
   cannot tell is unknown, whatever the model says: a plan that believed it would compute another shape than asked for. */
static braid_status merge_type(const graph *g, const tensor_type *found, tensor_type *known, int output,
                               braid_error *err) {
    if (known->type == BRAID_TYPE_NONE) known->type = found->type;
    else if (found->type != BRAID_TYPE_NONE && found->type != known->type)
        return error_set(err, BRAID_TYPE, "output %d: the model says %s, the operator gives %s", output,
                         braid_type_name(known->type), braid_type_name(found->type));
    if (found->rank < 0) {
        known->rank = -1;
        return BRAID_OK;
    }
    if (known->rank >= 0 && known->rank != found->rank) known->rank = -1; /* a stale hint: the operator is right */
    for (int d = 0; d < found->rank; d++) {
        int64_t f = found->dims[d], k = known->rank < 0 ? f : known->dims[d];
        bool named = dim_is_symbol(k) && g->symbols[dim_symbol(k)];
        known->dims[d] = dim_is_symbol(f) && !g->symbols[dim_symbol(f)] && named ? k : f;
    }
    known->rank = found->rank;
    return BRAID_OK;
}

typedef struct node_frame {
    const tensor_type **in;
    tensor **constant;
    followed *known;
    tensor_type *out;
    followed *out_known;
} node_frame;

static bool frame_new(node_frame *f, arena *memory, size_t n_in, size_t n_out) {
    f->in = arena_array(memory, n_in + 1, sizeof *f->in);
    f->constant = arena_array(memory, n_in + 1, sizeof *f->constant);
    f->known = arena_array(memory, n_in + 1, sizeof *f->known);
    f->out = arena_array(memory, n_out + 1, sizeof *f->out);
    f->out_known = arena_array(memory, n_out + 1, sizeof *f->out_known);
    return f->in && f->constant && f->known && f->out && f->out_known;
}

static void frame_outputs_unknown(node_frame *f, int n_out) {
    for (int i = 0; i < n_out; i++) {
        f->out[i] = (tensor_type){.rank = -1};
        f->out_known[i] = (followed){.n = -1};
    }
}

static void frame_inputs(node_frame *f, const graph *g, const node *n) {
    for (int i = 0; i < n->n_in; i++) {
        const value *v = n->in[i] >= 0 ? g->values[n->in[i]] : NULL;
        f->in[i] = v ? &v->type : NULL;
        f->constant[i] = v ? v->constant : NULL;
        f->known[i] = v ? (followed){v->n_known, v->known} : (followed){.n = -1};
    }
}

/* A shape hint from value_info is no proof: dims come from the operator alone. */
static braid_status infer_node(graph *g, node *n, braid_error *err) {
    node_frame f;
    if (!frame_new(&f, g->memory, (size_t)n->n_in, (size_t)n->n_out)) return error_memory(err);
    frame_inputs(&f, g, n);
    frame_outputs_unknown(&f, n->n_out);
    infer c = {.node = n, .g = g, .n_in = n->epilogue ? n->n_root : n->n_in, .n_out = n->n_out, .in = f.in,
               .constant = f.constant, .known = f.known, .out = f.out, .out_known = f.out_known, .err = err};
    TRY(n->op->infer(&c));
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] < 0) continue;
        value *v = g->values[n->out[i]];
        TRY(merge_type(g, &f.out[i], &v->type, i, err));
        v->n_known = f.out_known[i].n;
        v->known = f.out_known[i].v;
    }
    return BRAID_OK;
}

void graph_find_ops(graph *g) {
    for (int32_t i = 0; i < g->n_nodes; i++) g->nodes[i]->op = op_find(g->nodes[i]->domain, g->nodes[i]->type);
}

braid_status graph_infer(graph *g, braid_error *err) {
    char title[256];
    for (int32_t i = 0; i < g->n_nodes; i++) {
        node *n = g->nodes[i];
        if (!n->op || !n->op->infer) continue;
        braid_status status = infer_node(g, n, err);
        if (status != BRAID_OK) return error_within(err, status, "%s", node_title(n, title));
    }
    return BRAID_OK;
}
