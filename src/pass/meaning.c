/*
 * meaning: what each graph output computes, as a hash of its whole history: operators, attributes and constants' bytes,
 * whatever order and names; copies one by one. Two graphs with equal hashes compute the same, though one may share what
 * the other repeats. This is how re-rolling is verified: it knows nothing of packs.
 */
#include "pass/pass.h"
#include "pass/same.h"

enum { CHUNK = 1 << 16 };

typedef struct teller {
    const graph *g;
    arena *memory;
    uint64_t **of; /* value -> hash of each copy */
    braid_error *err;
} teller;

static uint64_t mix(uint64_t h, uint64_t x) {
    return hash_bytes(h, &x, sizeof x);
}

static uint64_t *room(teller *t, int32_t v) {
    return t->of[v] = arena_array(t->memory, (size_t)value_copies(t->g->values[v]), sizeof **t->of);
}

static braid_status hash_file(const tensor *x, uint64_t *h, braid_error *err) {
    uint8_t *chunk = mem_alloc(CHUNK);
    if (!chunk) return error_memory(err);
    braid_status status = BRAID_OK;
    for (size_t at = 0; at < x->bytes && status == BRAID_OK; at += CHUNK) {
        size_t n = x->bytes - at < CHUNK ? x->bytes - at : CHUNK;
        status = file_read(x->source, x->offset + at, chunk, n, err);
        *h = hash_bytes(*h, chunk, n);
    }
    mem_free(chunk);
    return status;
}

static braid_status tell_constant(teller *t, int32_t v) {
    const tensor *x = t->g->values[v]->constant;
    uint64_t *h = room(t, v);
    if (!h) return error_memory(t->err);
    *h = hash_bytes(mix(2, (uint64_t)x->type.type), x->type.dims, (size_t)x->type.rank * sizeof *x->type.dims);
    if (x->type.type == BRAID_STRING || !x->bytes) return BRAID_OK; /* strings: by shape, and they are never rolled */
    if (!x->data) return hash_file(x, h, t->err);
    for (size_t at = 0; at < x->bytes; at += CHUNK) /* in the pieces of hash_file */
        *h = hash_bytes(*h, (const uint8_t *)x->data + at, x->bytes - at < CHUNK ? x->bytes - at : CHUNK);
    return BRAID_OK;
}

static uint64_t copy_of(const teller *t, int32_t v, int32_t c) {
    return v < 0 ? 0 : t->of[v][value_copies(t->g->values[v]) > 1 ? c : 0];
}

static braid_status tell_node(teller *t, const node *n) {
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && !room(t, n->out[i])) return error_memory(t->err);
    if (node_is_stack(n)) {
        for (int i = 0; i < n->n_in; i++) t->of[n->out[0]][i] = copy_of(t, n->in[i], 0);
        return BRAID_OK;
    }
    uint64_t own = node_hash(n);
    for (int32_t c = 0; c < node_copies(n); c++) {
        uint64_t h = own;
        for (int i = 0; i < n->n_in; i++) h = mix(h, copy_of(t, n->in[i], c));
        for (int i = 0; i < n->n_out; i++)
            if (n->out[i] >= 0)
                t->of[n->out[i]][c] = node_is_unstack(n) ? copy_of(t, n->in[0], i) : mix(h, (uint64_t)i);
    }
    return BRAID_OK;
}

braid_status pass_meaning(const graph *g, arena *memory, uint64_t **out, braid_error *err) {
    teller t = {.g = g, .memory = memory, .err = err, .of = arena_array(memory, (size_t)g->n_values + 1, sizeof *t.of)};
    *out = arena_array(memory, (size_t)g->n_outputs + 1, sizeof **out);
    if (!t.of || !*out) return error_memory(err);
    for (int32_t v = 0; v < g->n_values; v++) {
        if (g->values[v]->constant)
            TRY(tell_constant(&t, v));
        else if (g->values[v]->kind != VALUE_NODE && !room(&t, v))
            return error_memory(err);
    }
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (!g->values[g->inputs[i]]->constant) *t.of[g->inputs[i]] = mix(1, (uint64_t)i);
    for (int32_t i = 0; i < g->n_nodes; i++) TRY(tell_node(&t, g->nodes[i]));
    for (int32_t i = 0; i < g->n_outputs; i++) (*out)[i] = copy_of(&t, g->outputs[i], 0);
    return BRAID_OK;
}
