/*
 * reroll_emit.c: the new graph, in an order that suits the packs. Operand kinds are found anew here, from the values
 * themselves; nothing rests on what growing supposed.
 *
 *   shared     one value, or constants of equal bytes
 *   lane       the value of another pack, column by column
 *   else       a Stack of the columns' values (one Stack for each list of values)
 *
 * A pack whose operands are all shared computes one thing several times: it becomes one node.
 */
#include "pass/reroll.h"

#include "pass/same.h"

#include <stdlib.h>

typedef struct stack {
    struct stack *next;
    int32_t n;
    const int32_t *values; /* of the new graph */
    int32_t result;
} stack;

typedef struct emitter {
    reroller *r;
    copier c;
    int32_t **rolled; /* pack -> new value of each output; NULL: not made, or made as one node */
    bool *merged;     /* pack */
    stack **stacks;   /* buckets */
    int32_t *waits;   /* pack or single node (as unit): operands that are not there yet */
    int32_t *heap, n_heap;
} emitter;

enum { BUCKETS = 4096 };

/* ------------------------------------------------------------------------------------------------ values */

/* The single value for an old one: from an Unstack when a pack makes it. */
static braid_status single(emitter *e, int32_t old, int32_t *out) {
    reroller *r = e->r;
    int32_t maker = reroll_maker(r->g, old), p = maker < 0 ? -1 : r->pack_of[maker];
    if (p < 0 || e->merged[p] || e->c.map[old] >= 0) return copier_value(&e->c, old, out);
    int32_t n = r->bundles[r->packs[p].bundle].columns, output = r->output_of[old];
    int32_t *outs = arena_array(r->memory, (size_t)n, sizeof *outs);
    if (!outs) return error_memory(r->err);
    for (int32_t c = 0; c < n; c++) {
        int32_t v = reroll_node(r, r->packs[p].members[c])->out[output];
        if ((outs[c] = copier_like(&e->c, v)) < 0) return error_memory(r->err);
        copier_replace(&e->c, v, outs[c]);
    }
    const node *first = reroll_node(r, r->packs[p].members[0]);
    if (!copier_unstack(&e->c, n, outs, e->rolled[p][output], first)) return error_memory(r->err);
    *out = e->c.map[old];
    return BRAID_OK;
}

static braid_status make_stack(emitter *e, const node *reader, int32_t n, const int32_t *old, int32_t *out) {
    reroller *r = e->r;
    int32_t *values = arena_array(r->memory, (size_t)n, sizeof *values);
    if (!values) return error_memory(r->err);
    for (int32_t c = 0; c < n; c++) TRY(single(e, old[c], &values[c]));
    stack **bucket = &e->stacks[hash_bytes(0, values, (size_t)n * sizeof *values) % BUCKETS];
    for (stack *s = *bucket; s; s = s->next) {
        if (s->n != n || memcmp(s->values, values, (size_t)n * sizeof *values) != 0) continue;
        *out = s->result;
        return BRAID_OK;
    }
    stack *s = arena_alloc(r->memory, sizeof *s);
    int32_t result = copier_like(&e->c, old[0]);
    if (!s || result < 0 || !copier_stack(&e->c, n, values, result, reader)) return error_memory(r->err);
    e->c.to->values[result]->copies = n;
    e->c.to->values[result]->n_known = -1;
    *s = (stack){*bucket, n, values, result};
    *bucket = s;
    *out = result;
    return BRAID_OK;
}

/* Do the columns read the same: one value, equal constants, or results of a pack that became one node. */
static braid_status is_shared(emitter *e, int32_t n, const int32_t *old, bool *out) {
    const graph *g = e->r->g;
    value *first = g->values[old[0]];
    *out = true;
    for (int32_t c = 1; c < n && *out; c++) {
        const value *v = g->values[old[c]];
        if (old[c] == old[0] || (e->c.map[old[c]] >= 0 && e->c.map[old[c]] == e->c.map[old[0]])) continue;
        *out = false;
        if (first->kind == VALUE_CONSTANT && v->kind == VALUE_CONSTANT)
            TRY(constant_same(first->constant, v->constant, g->memory, out, e->r->err));
    }
    return BRAID_OK;
}

static braid_status operand(emitter *e, const pack *k, int slot, int32_t *old, int32_t *out, bool *shared) {
    reroller *r = e->r;
    int32_t n = r->bundles[k->bundle].columns;
    *out = -1;
    *shared = true;
    if (reroll_node(r, k->members[0])->in[slot] < 0) return BRAID_OK;
    for (int32_t c = 0; c < n; c++) old[c] = reroll_node(r, k->members[c])->in[slot];
    TRY(is_shared(e, n, old, shared));
    operand_kind kind = *shared ? OPERAND_SHARED : reroll_operand(r, k, slot);
    bundle *b = &r->bundles[k->bundle];
    b->shared += kind == OPERAND_SHARED;
    b->stacked += kind == OPERAND_CONSTANTS;
    b->gathered += kind == OPERAND_GATHERED;
    if (*shared) return single(e, old[0], out);
    if (kind != OPERAND_LANE) return make_stack(e, reroll_node(r, k->members[0]), n, old, out);
    *out = e->rolled[r->pack_of[reroll_maker(r->g, old[0])]][r->output_of[old[0]]];
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- nodes */

static braid_status emit_merged(emitter *e, int32_t p) {
    reroller *r = e->r;
    const pack *k = &r->packs[p];
    const node *first = reroll_node(r, k->members[0]);
    e->merged[p] = true;
    TRY(copier_node(&e->c, first, NULL));
    for (int32_t c = 1; c < r->bundles[k->bundle].columns; c++)
        for (int i = 0; i < first->n_out; i++)
            if (first->out[i] >= 0)
                copier_replace(&e->c, reroll_node(r, k->members[c])->out[i], e->c.map[first->out[i]]);
    return BRAID_OK;
}

static braid_status emit_pack(emitter *e, int32_t p) {
    reroller *r = e->r;
    const pack *k = &r->packs[p];
    const node *first = reroll_node(r, k->members[0]);
    int32_t n = r->bundles[k->bundle].columns;
    int32_t *in = arena_array(r->memory, (size_t)first->n_in + 1, sizeof *in);
    int32_t *outs = arena_array(r->memory, (size_t)first->n_out + 1, sizeof *outs);
    int32_t *old = mem_alloc((size_t)n * sizeof *old);
    braid_status status = in && outs && old ? BRAID_OK : error_memory(r->err);
    bool all_shared = true;
    for (int i = 0; i < first->n_in && status == BRAID_OK; i++) {
        bool shared;
        status = operand(e, k, i, old, &in[i], &shared);
        all_shared = all_shared && shared;
    }
    mem_free(old);
    if (status != BRAID_OK) return status;
    if (all_shared) return emit_merged(e, p);
    for (int i = 0; i < first->n_out; i++) {
        outs[i] = first->out[i] < 0 ? -1 : copier_like(&e->c, first->out[i]);
        if (first->out[i] >= 0 && outs[i] < 0) return error_memory(r->err);
        if (outs[i] >= 0) e->c.to->values[outs[i]]->copies = n;
    }
    node *m = graph_node_into(e->c.to, first->type, first->domain, first->name, first->n_in, in, first->n_out, outs);
    if (!m) return error_memory(r->err);
    copier_attributes(m, first);
    m->copies = n;
    const char **names = arena_array(e->c.to->memory, (size_t)n, sizeof *names);
    if (!names) return error_memory(r->err);
    for (int32_t c = 0; c < n; c++) names[c] = reroll_node(r, k->members[c])->name;
    m->names = names;
    e->rolled[p] = outs;
    return BRAID_OK;
}

static braid_status emit_single(emitter *e, const node *n) {
    int32_t ignored;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0) TRY(single(e, n->in[i], &ignored));
    return copier_node(&e->c, n, NULL);
}

/* ------------------------------------------------------------------------------------------------- order */

/* A unit is named by its first node; the heap gives the one that stood first in the old graph. */
static int32_t unit_of(const reroller *r, int32_t i) {
    return r->pack_of[i] < 0 ? i : r->packs[r->pack_of[i]].members[0];
}

static void heap_push(emitter *e, int32_t unit) {
    int32_t at = e->n_heap++;
    for (; at && e->heap[(at - 1) / 2] > unit; at = (at - 1) / 2) e->heap[at] = e->heap[(at - 1) / 2];
    e->heap[at] = unit;
}

static int32_t heap_pop(emitter *e) {
    int32_t top = e->heap[0], last = e->heap[--e->n_heap], at = 0;
    for (int32_t child; (child = 2 * at + 1) < e->n_heap; at = child) {
        if (child + 1 < e->n_heap && e->heap[child + 1] < e->heap[child]) child++;
        if (e->heap[child] >= last) break;
        e->heap[at] = e->heap[child];
    }
    e->heap[at] = last;
    return top;
}

static void count_waits(emitter *e) {
    const reroller *r = e->r;
    for (int32_t i = 0; i < r->g->n_nodes; i++)
        for (int k = 0; k < r->g->nodes[i]->n_in; k++)
            if (reroll_maker(r->g, r->g->nodes[i]->in[k]) >= 0) e->waits[unit_of(r, i)]++;
    for (int32_t i = 0; i < r->g->n_nodes; i++)
        if (unit_of(r, i) == i && !e->waits[i]) heap_push(e, i);
}

static void release_readers(emitter *e, const node *n) {
    const reroller *r = e->r;
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] < 0 || r->g->values[n->out[i]]->constant) continue;
        for (int32_t u = r->use_start[n->out[i]]; u < r->use_start[n->out[i] + 1]; u++) {
            int32_t unit = unit_of(r, r->uses[u].node);
            if (--e->waits[unit] == 0) heap_push(e, unit);
        }
    }
}

static braid_status emit_all(emitter *e) {
    reroller *r = e->r;
    int32_t left = r->g->n_nodes;
    count_waits(e);
    while (e->n_heap) {
        int32_t unit = heap_pop(e), p = r->pack_of[unit], n = p < 0 ? 1 : r->bundles[r->packs[p].bundle].columns;
        TRY(p < 0 ? emit_single(e, reroll_node(r, unit)) : emit_pack(e, p));
        for (int32_t c = 0; c < n; c++) release_readers(e, reroll_node(r, p < 0 ? unit : r->packs[p].members[c]));
        left -= n;
    }
    return left == 0 ? BRAID_OK : error_set(r->err, BRAID_INTERNAL, "reroll: packs depend on each other");
}

braid_status reroll_emit(reroller *r, arena *memory, graph **out) {
    emitter e = {.r = r};
    int32_t ignored;
    TRY(copier_new(&e.c, r->g, memory, r->err));
    e.rolled = arena_array(r->memory, (size_t)r->n_packs + 1, sizeof *e.rolled);
    e.merged = arena_array(r->memory, (size_t)r->n_packs + 1, sizeof *e.merged);
    e.stacks = arena_array(r->memory, BUCKETS, sizeof *e.stacks);
    e.waits = arena_array(r->memory, (size_t)r->g->n_nodes + 1, sizeof *e.waits);
    e.heap = arena_array(r->memory, (size_t)r->g->n_nodes + 1, sizeof *e.heap);
    if (!e.rolled || !e.merged || !e.stacks || !e.waits || !e.heap) return error_memory(r->err);
    TRY(emit_all(&e));
    for (int32_t i = 0; i < r->g->n_outputs; i++) TRY(single(&e, r->g->outputs[i], &ignored));
    TRY(copier_outputs(&e.c));
    *out = e.c.to;
    return BRAID_OK;
}
