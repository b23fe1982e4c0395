/*
 * reroll_colour.c: what nodes look like. `own` covers what the members of a pack must have in common: operator,
 * attributes, types, and the content of inputs that planning reads (shapes, axes, sizes). It knows no weights: copies
 * may have their own. `colour` mixes in the neighbours to a small radius, to tell apart nodes of one copy that look
 * alike; `far` does so from further away. They only choose seeds and settle ties, so that a wrong guess costs a pack
 * and never a result.
 */
#include "pass/reroll.h"

#include "pass/same.h"

enum { RADIUS = 2, RADIUS_FAR = 12, FOLLOWED_MAX = 4096, FLOATS_MAX = 16 };

static uint64_t mix(uint64_t h, uint64_t x) {
    return hash_bytes(h, &x, sizeof x);
}

/* Would planning read this input's content? Then it takes part as an attribute does. */
static bool is_read_early(const graph *g, const node *n, int slot) {
    const value *v = g->values[n->in[slot]];
    int64_t count;
    if (v->n_known >= 0) return true;
    if (!v->constant || v->type.rank > 1 || !tensor_type_count(&v->constant->type, &count)) return false;
    if (type_is_float(v->type.type)) return (n->op->flags & OP_READS_FLOATS) && count <= FLOATS_MAX;
    return (type_is_integer(v->type.type) || v->type.type == BRAID_BOOL) && count <= FOLLOWED_MAX;
}

static uint64_t hash_type(uint64_t h, const tensor_type *t) {
    h = mix(h, (uint64_t)t->type << 8 | (uint64_t)(t->rank & 255));
    return hash_bytes(h, t->dims, (size_t)t->rank * sizeof *t->dims);
}

static uint64_t hash_input(const reroller *r, uint64_t h, const node *n, int slot) {
    if (n->in[slot] < 0) return mix(h, 1);
    const value *v = r->g->values[n->in[slot]];
    h = hash_type(h, &v->type);
    if (!is_read_early(r->g, n, slot)) return h;
    if (v->n_known >= 0) return hash_bytes(h, v->known, (size_t)v->n_known * sizeof *v->known);
    if (tensor_load(v->constant, r->memory, NULL) != BRAID_OK) return h;
    return hash_bytes(h, v->constant->data, v->constant->bytes);
}

static bool early_alike(const graph *g, const node *a, const node *b, int slot) {
    const value *x = g->values[a->in[slot]], *y = g->values[b->in[slot]];
    if (x == y) return true;
    if (x->n_known >= 0)
        return x->n_known == y->n_known &&
               (x->n_known == 0 || memcmp(x->known, y->known, (size_t)x->n_known * sizeof *x->known) == 0);
    return y->constant && x->constant->bytes == y->constant->bytes && x->constant->data && y->constant->data &&
           memcmp(x->constant->data, y->constant->data, x->constant->bytes) == 0;
}

bool reroll_alike(const graph *g, const node *a, const node *b) {
    if (!node_same(a, b)) return false;
    for (int i = 0; i < a->n_in; i++) {
        if (a->in[i] < 0) continue;
        if (!tensor_type_equal(&g->values[a->in[i]]->type, &g->values[b->in[i]]->type)) return false;
        bool early = is_read_early(g, a, i);
        if (early != is_read_early(g, b, i) || (early && !early_alike(g, a, b, i))) return false;
    }
    for (int i = 0; i < a->n_out; i++)
        if (a->out[i] >= 0 && !tensor_type_equal(&g->values[a->out[i]]->type, &g->values[b->out[i]]->type))
            return false;
    return true;
}

static bool value_rolls(const graph *g, int32_t v) {
    const value *x = g->values[v];
    return x->type.type != BRAID_TYPE_NONE && x->type.type != BRAID_STRING && tensor_type_static(&x->type) &&
           type_bits(x->type.type) >= 8 && value_copies(x) == 1;
}

/* late: depends on a shape that is not known yet, and may be planned much later than its neighbours. */
static bool node_rolls(const reroller *r, const node *n, const bool *late) {
    const graph *g = r->g;
    if (!n->op || !n->op->lower || (n->op->flags & OP_RANDOM) || node_copies(n) > 1 || node_is_stack(n) ||
        node_is_unstack(n))
        return false;
    for (int i = 0; i < n->n_attributes; i++)
        if (n->attributes[i].kind == ATTRIBUTE_GRAPH || n->attributes[i].kind == ATTRIBUTE_GRAPHS) return false;
    for (int i = 0; i < n->n_in; i++) {
        int32_t maker = reroll_maker(g, n->in[i]);
        if (n->in[i] >= 0 && (!value_rolls(g, n->in[i]) || (maker >= 0 && late[maker]))) return false;
    }
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && !value_rolls(g, n->out[i])) return false;
    return true;
}

static bool is_late(const graph *g, const node *n, const bool *late) {
    for (int i = 0; i < n->n_in; i++) {
        int32_t maker = reroll_maker(g, n->in[i]);
        if (maker >= 0 && late[maker]) return true;
        if (n->in[i] >= 0 && !g->values[n->in[i]]->constant && !tensor_type_static(&g->values[n->in[i]]->type))
            return true;
    }
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && !tensor_type_static(&g->values[n->out[i]]->type)) return true;
    return false;
}

static uint64_t hash_own(const reroller *r, const node *n) {
    uint64_t h = node_hash(n);
    for (int i = 0; i < n->n_in; i++) h = hash_input(r, h, n, i);
    for (int i = 0; i < n->n_out; i++) h = n->out[i] < 0 ? mix(h, 1) : hash_type(h, &r->g->values[n->out[i]]->type);
    return h | 1;
}

static braid_status own_colours(reroller *r) {
    int32_t n = r->g->n_nodes;
    bool *late = arena_array(r->memory, (size_t)n + 1, sizeof *late);
    r->own = arena_array(r->memory, (size_t)n + 1, sizeof *r->own);
    r->colour = arena_array(r->memory, (size_t)n + 1, sizeof *r->colour);
    if (!late || !r->own || !r->colour) return error_memory(r->err);
    for (int32_t i = 0; i < n; i++) {
        late[i] = is_late(r->g, r->g->nodes[i], late);
        if (node_rolls(r, r->g->nodes[i], late)) r->own[i] = hash_own(r, r->g->nodes[i]);
    }
    return BRAID_OK;
}

static braid_status list_uses(reroller *r) {
    const graph *g = r->g;
    r->use_start = arena_array(r->memory, (size_t)g->n_values + 2, sizeof *r->use_start);
    int32_t *next = arena_array(r->memory, (size_t)g->n_values + 2, sizeof *next), total = 0;
    r->output_of = arena_array(r->memory, (size_t)g->n_values + 2, sizeof *r->output_of);
    if (!r->use_start || !next || !r->output_of) return error_memory(r->err);
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_out; k++)
            if (g->nodes[i]->out[k] >= 0) r->output_of[g->nodes[i]->out[k]] = k;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] >= 0) next[g->nodes[i]->in[k]]++;
    for (int32_t v = 0; v < g->n_values; v++) {
        r->use_start[v] = total;
        total += next[v];
        next[v] = r->use_start[v];
    }
    r->use_start[g->n_values] = total;
    if (!(r->uses = arena_array(r->memory, (size_t)total + 1, sizeof *r->uses))) return error_memory(r->err);
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] >= 0) r->uses[next[g->nodes[i]->in[k]]++] = (use){i, k};
    return BRAID_OK;
}

static braid_status measure_depths(reroller *r) {
    const graph *g = r->g;
    r->depth = arena_array(r->memory, (size_t)g->n_nodes + 1, sizeof *r->depth);
    r->height = arena_array(r->memory, (size_t)g->n_nodes + 1, sizeof *r->height);
    if (!r->depth || !r->height) return error_memory(r->err);
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++) {
            int32_t maker = reroll_maker(g, g->nodes[i]->in[k]);
            if (maker >= 0 && r->depth[maker] >= r->depth[i]) r->depth[i] = r->depth[maker] + 1;
        }
    for (int32_t i = g->n_nodes - 1; i >= 0; i--)
        for (int k = 0; k < g->nodes[i]->n_in; k++) {
            int32_t maker = reroll_maker(g, g->nodes[i]->in[k]);
            if (maker >= 0 && r->height[i] >= r->height[maker]) r->height[maker] = r->height[i] + 1;
        }
    return BRAID_OK;
}

/* One round: what stands before each input, and what reads the outputs, in any order. A variadic reader's slot does not
   count: clones that meet in one Concat stand at different ones. Readers are capped, for values that everything reads.
 */
static uint64_t look_around(const reroller *r, int32_t i, const uint64_t *old) {
    enum { READERS_MAX = 64 };
    const node *n = r->g->nodes[i];
    uint64_t h = old[i], readers = 0;
    for (int k = 0; k < n->n_in; k++) {
        int32_t maker = reroll_maker(r->g, n->in[k]);
        h = mix(h, maker < 0 ? 1 : old[maker]);
    }
    for (int k = 0; k < n->n_out; k++) {
        int32_t v = n->out[k];
        if (v < 0) continue;
        for (int32_t u = r->use_start[v]; u < r->use_start[v + 1] && u < r->use_start[v] + READERS_MAX; u++) {
            const node *reader = r->g->nodes[r->uses[u].node];
            bool variadic = reader->op && (reader->op->flags & OP_VARIADIC_IN);
            readers += mix(old[r->uses[u].node], variadic ? 0 : (uint64_t)r->uses[u].slot + 1);
        }
    }
    return mix(h, readers);
}

braid_status reroll_colours(reroller *r) {
    TRY(own_colours(r));
    TRY(list_uses(r));
    TRY(measure_depths(r));
    size_t n = (size_t)r->g->n_nodes;
    uint64_t *old = arena_array(r->memory, n + 1, sizeof *old);
    r->far = arena_array(r->memory, n + 1, sizeof *r->far);
    if (!old || !r->far) return error_memory(r->err);
    memcpy(r->far, r->own, n * sizeof *r->far);
    for (int round = 0; round < RADIUS_FAR; round++) {
        memcpy(old, r->far, n * sizeof *old);
        for (int32_t i = 0; i < r->g->n_nodes; i++) r->far[i] = look_around(r, i, old);
        if (round + 1 == RADIUS) memcpy(r->colour, r->far, n * sizeof *r->colour);
    }
    return BRAID_OK;
}
