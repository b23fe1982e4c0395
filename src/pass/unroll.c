/*
 * unroll: nodes of several copies become single ones again (for kernels that turn them down, for values that leave the
 * device, for tests). A value is at hand in one form or the other; an Unstack or Stack is made when the other is
 * wanted, and one that is not wanted is not copied.
 */
#include "pass/copy.h"

typedef struct unroller {
    copier c;
    int32_t **singles; /* old value of several copies -> its copies in the new graph; NULL: not at hand */
} unroller;

/* The copies of an old value, one by one. */
static braid_status singles_of(unroller *u, int32_t old, const int32_t **out) {
    int32_t n = value_copies(u->c.from->values[old]), now;
    if (!u->singles[old]) {
        int32_t *made = arena_array(u->c.to->memory, (size_t)n, sizeof *made);
        TRY(copier_value(&u->c, old, &now));
        for (int32_t c = 0; made && c < n; c++) {
            if ((made[c] = copier_like(&u->c, old)) < 0) return error_memory(u->c.err);
            u->c.to->values[made[c]]->copies = 1;
        }
        const node *maker = u->c.from->nodes[u->c.from->values[old]->producer];
        if (!made || !copier_unstack(&u->c, n, made, now, maker)) return error_memory(u->c.err);
        u->singles[old] = made;
    }
    *out = u->singles[old];
    return BRAID_OK;
}

/* The old value as one of several copies. */
static braid_status stacked_of(unroller *u, const node *reader, int32_t old) {
    if (u->c.map[old] >= 0 || !u->singles[old]) return BRAID_OK;
    int32_t now = copier_like(&u->c, old);
    int32_t copies = value_copies(u->c.from->values[old]);
    if (now < 0 || !copier_stack(&u->c, copies, u->singles[old], now, reader)) return error_memory(u->c.err);
    copier_replace(&u->c, old, now);
    return BRAID_OK;
}

static braid_status take_stack(unroller *u, const node *n) {
    int32_t *in = arena_array(u->c.to->memory, (size_t)n->n_in + 1, sizeof *in);
    if (!in) return error_memory(u->c.err);
    for (int i = 0; i < n->n_in; i++) TRY(copier_value(&u->c, n->in[i], &in[i]));
    if (n->n_in == 1) copier_replace(&u->c, n->out[0], in[0]);
    else u->singles[n->out[0]] = in;
    return BRAID_OK;
}

static braid_status take_unstack(unroller *u, const node *n) {
    const int32_t *singles;
    int32_t now;
    if (n->n_out == 1) {
        TRY(copier_value(&u->c, n->in[0], &now));
        copier_replace(&u->c, n->out[0], now);
        return BRAID_OK;
    }
    TRY(singles_of(u, n->in[0], &singles));
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0) copier_replace(&u->c, n->out[i], singles[i]);
    return BRAID_OK;
}

static braid_status split_copy(unroller *u, const node *n, int32_t c) {
    graph *g = u->c.to;
    int32_t *in = arena_array(g->memory, (size_t)n->n_in + 1, sizeof *in);
    int32_t *out = arena_array(g->memory, (size_t)n->n_out + 1, sizeof *out);
    if (!in || !out) return error_memory(u->c.err);
    for (int i = 0; i < n->n_in; i++) {
        const int32_t *singles;
        if (n->in[i] < 0 || value_copies(u->c.from->values[n->in[i]]) == 1) {
            TRY(copier_value(&u->c, n->in[i], &in[i]));
            continue;
        }
        TRY(singles_of(u, n->in[i], &singles));
        in[i] = singles[c];
    }
    for (int i = 0; i < n->n_out; i++) {
        out[i] = -1;
        if (n->out[i] < 0) continue;
        if ((out[i] = copier_like(&u->c, n->out[i])) < 0) return error_memory(u->c.err);
        g->values[out[i]]->copies = 1;
        u->singles[n->out[i]][c] = out[i];
    }
    node *m = graph_node_into(g, n->type, n->domain, n->names ? n->names[c] : n->name, n->n_in, in, n->n_out, out);
    if (!m) return error_memory(u->c.err);
    copier_attributes(m, n);
    m->copies = 1;
    m->names = NULL;
    return BRAID_OK;
}

static braid_status split_node(unroller *u, const node *n) {
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] < 0) continue;
        u->singles[n->out[i]] = arena_array(u->c.to->memory, (size_t)node_copies(n), sizeof **u->singles);
        if (!u->singles[n->out[i]]) return error_memory(u->c.err);
    }
    for (int32_t c = 0; c < node_copies(n); c++) TRY(split_copy(u, n, c));
    return BRAID_OK;
}

static braid_status keep_node(unroller *u, const node *n) {
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0) TRY(stacked_of(u, n, n->in[i]));
    return copier_node(&u->c, n, NULL);
}

braid_status pass_unroll(const graph *g, arena *memory, const bool *flags, graph **out, braid_error *err) {
    unroller u = {0};
    TRY(copier_new(&u.c, g, memory, err));
    if (!(u.singles = arena_array(memory, (size_t)g->n_values + 1, sizeof *u.singles))) return error_memory(err);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const node *n = g->nodes[i];
        if (node_is_stack(n))
            TRY(take_stack(&u, n));
        else if (node_is_unstack(n))
            TRY(take_unstack(&u, n));
        else if (node_copies(n) > 1 && (!flags || flags[i]))
            TRY(split_node(&u, n));
        else
            TRY(keep_node(&u, n));
    }
    TRY(copier_outputs(&u.c));
    *out = u.c.to;
    return graph_infer(*out, err);
}
