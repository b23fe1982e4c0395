/*
 * reroll_prove.c: what growing proposed is looked at without trust.
 *
 * Exact: members of a pack are alike in everything `own` hashes (hashes may collide).
 * Acyclic: packs become one node each; the graph of these must have no cycle. Pairwise unreachability is not enough:
 * with a1 -> b1 and b2 -> a2 the packs {a1, a2} and {b1, b2} are made of independent nodes and depend on each other.
 * From each cycle the pack whose members lie most unequally deep is dropped, again and again; after a few rounds all of
 * unequal depth are. What is left is acyclic: an edge leads to a greater depth.
 * Paying: dispatches saved against bytes copied because operands are gathered.
 */
#include "pass/reroll.h"

#include <stdlib.h>

enum { ROUNDS = 8, NOTE_NODES = 12 /* fewer are no near miss */ };

void reroll_drop(reroller *r, int32_t p) {
    pack *k = &r->packs[p];
    if (k->bundle < 0) return;
    bundle *b = &r->bundles[k->bundle];
    for (int32_t c = 0; c < b->columns; c++) r->pack_of[k->members[c]] = -1;
    b->n_packs--;
    k->bundle = -1;
}

static int32_t columns_of(const reroller *r, const pack *k) {
    return r->bundles[k->bundle].columns;
}

static void drop_inexact(reroller *r) {
    for (int32_t p = 0; p < r->n_packs; p++) {
        const pack *k = &r->packs[p];
        if (k->bundle < 0) continue;
        const node *first = reroll_node(r, k->members[0]);
        for (int32_t c = 1; c < columns_of(r, k); c++) {
            if (reroll_alike(r->g, first, reroll_node(r, k->members[c]))) continue;
            reroll_drop(r, p);
            break;
        }
    }
}

/* ---------------------------------------------------------------------------------------------- operands */

operand_kind reroll_operand(const reroller *r, const pack *k, int slot) {
    const graph *g = r->g;
    int32_t n = columns_of(r, k), v = reroll_node(r, k->members[0])->in[slot], maker = reroll_maker(g, v);
    int32_t source = maker < 0 ? -1 : r->pack_of[maker];
    bool shared = true, lane = source >= 0 && r->packs[source].bundle == k->bundle, constants = true;
    for (int32_t c = 0; c < n; c++) {
        int32_t w = reroll_node(r, k->members[c])->in[slot], other = reroll_maker(g, w);
        shared = shared && w == v;
        constants = constants && g->values[w]->constant && g->values[w]->kind == VALUE_CONSTANT;
        lane = lane && other >= 0 && r->pack_of[other] == source && r->column_of[other] == c &&
               r->output_of[w] == r->output_of[v];
    }
    return shared ? OPERAND_SHARED : lane ? OPERAND_LANE : constants ? OPERAND_CONSTANTS : OPERAND_GATHERED;
}

/* ------------------------------------------------------------------------------------------------ cycles */

/* The contraction: node i of the graph is unit[i]. Edges are those of the graph. */
typedef struct contraction {
    reroller *r;
    int32_t n_units;
    int32_t *unit;                /* of each node */
    int32_t *first, *member;      /* nodes of each unit */
    int32_t *order, *low, *stack; /* Tarjan */
    int32_t *component, n_components;
} contraction;

static braid_status contract(contraction *c, arena *memory) {
    reroller *r = c->r;
    int32_t n = r->g->n_nodes;
    c->unit = arena_array(memory, (size_t)n + 1, sizeof *c->unit);
    c->first = arena_array(memory, (size_t)n + 2, sizeof *c->first);
    c->member = arena_array(memory, (size_t)n + 1, sizeof *c->member);
    c->order = arena_array(memory, (size_t)n + 1, sizeof *c->order);
    c->low = arena_array(memory, (size_t)n + 1, sizeof *c->low);
    c->stack = arena_array(memory, (size_t)n + 1, sizeof *c->stack);
    c->component = arena_array(memory, (size_t)n + 1, sizeof *c->component);
    int32_t *unit_of_pack = arena_array(memory, (size_t)r->n_packs + 1, sizeof *unit_of_pack);
    if (!c->unit || !c->first || !c->member || !c->order || !c->low || !c->stack || !c->component || !unit_of_pack)
        return error_memory(r->err);
    for (int32_t i = 0; i < n; i++) {
        int32_t p = r->pack_of[i];
        if (p < 0)
            c->unit[i] = c->n_units++;
        else
            c->unit[i] = (unit_of_pack[p] ? unit_of_pack[p] : (unit_of_pack[p] = ++c->n_units)) - 1;
        c->first[c->unit[i] + 1]++;
    }
    for (int32_t u = 0; u < c->n_units; u++) c->first[u + 1] += c->first[u];
    int32_t *next = arena_copy(memory, c->first, ((size_t)c->n_units + 1) * sizeof *next);
    if (!next) return error_memory(r->err);
    for (int32_t i = 0; i < n; i++) c->member[next[c->unit[i]]++] = i;
    return BRAID_OK;
}

typedef struct visit {
    int32_t unit, node; /* node: index into member */
    int slot;
} visit;

/* The next unit that `v` reads, -1 at the end. */
static int32_t next_read(const contraction *c, visit *v) {
    for (; v->node < c->first[v->unit + 1]; v->node++, v->slot = 0) {
        const node *n = reroll_node(c->r, c->member[v->node]);
        while (v->slot < n->n_in) {
            int32_t maker = reroll_maker(c->r->g, n->in[v->slot++]);
            if (maker >= 0) return c->unit[maker];
        }
    }
    return -1;
}

static void close_component(contraction *c, int32_t unit, int32_t *depth) {
    int32_t top;
    do {
        top = c->stack[--*depth];
        c->component[top] = c->n_components;
    } while (top != unit);
    c->n_components++;
}

/* Strongly connected components, by Tarjan's method without recursion. */
static braid_status find_components(contraction *c, arena *memory) {
    visit *path = arena_array(memory, (size_t)c->n_units + 1, sizeof *path);
    if (!path) return error_memory(c->r->err);
    int32_t counter = 0, depth = 0;
    for (int32_t u = 0; u < c->n_units; u++) c->component[u] = -1;
    for (int32_t root = 0; root < c->n_units; root++) {
        int32_t length = 0;
        if (c->order[root]) continue;
        path[length++] = (visit){root, c->first[root], 0};
        c->order[root] = c->low[root] = ++counter;
        c->stack[depth++] = root;
        while (length) {
            visit *v = &path[length - 1];
            int32_t read = next_read(c, v);
            if (read >= 0 && !c->order[read]) {
                path[length++] = (visit){read, c->first[read], 0};
                c->order[read] = c->low[read] = ++counter;
                c->stack[depth++] = read;
            } else if (read >= 0) {
                if (c->component[read] < 0 && c->order[read] < c->low[v->unit]) c->low[v->unit] = c->order[read];
            } else {
                int32_t done = v->unit, above = --length ? path[length - 1].unit : -1;
                if (c->low[done] == c->order[done]) close_component(c, done, &depth);
                if (above >= 0 && c->low[done] < c->low[above]) c->low[above] = c->low[done];
            }
        }
    }
    return BRAID_OK;
}

static int32_t spread_of(const reroller *r, int32_t p) {
    const pack *k = &r->packs[p];
    int32_t low = INT32_MAX, high = 0;
    for (int32_t c = 0; c < columns_of(r, k); c++) {
        int32_t d = r->depth[k->members[c]];
        if (d < low) low = d;
        if (d > high) high = d;
    }
    return high - low;
}

static bool reads_itself(const contraction *c, int32_t p) {
    visit v = {c->unit[c->r->packs[p].members[0]], 0, 0};
    v.node = c->first[v.unit];
    for (int32_t read; (read = next_read(c, &v)) >= 0;)
        if (read == v.unit) return true;
    return false;
}

/* Drops one pack of each cycle, or all of unequal depth. *any: there was a cycle. */
static braid_status break_cycles(reroller *r, bool all, bool *any) {
    arena *memory = arena_new();
    if (!memory) return error_memory(r->err);
    contraction c = {.r = r};
    braid_status status = contract(&c, memory);
    if (status == BRAID_OK) status = find_components(&c, memory);
    int32_t *size = arena_array(memory, (size_t)c.n_components + 1, sizeof *size);
    int32_t *worst = arena_array(memory, (size_t)c.n_components + 1, sizeof *worst);
    if (status == BRAID_OK && (!size || !worst)) status = error_memory(r->err);
    *any = false;
    for (int32_t u = 0; u < c.n_units && status == BRAID_OK; u++) size[c.component[u]]++;
    for (int32_t p = 0; p < r->n_packs && status == BRAID_OK; p++) {
        if (r->packs[p].bundle < 0) continue;
        int32_t k = c.component[c.unit[r->packs[p].members[0]]];
        if (size[k] == 1 && !reads_itself(&c, p)) continue;
        *any = true;
        if (all && spread_of(r, p) > 0) reroll_drop(r, p);
        if (!all && (!worst[k] || spread_of(r, p) > spread_of(r, worst[k] - 1))) worst[k] = p + 1;
    }
    for (int32_t k = 0; k < c.n_components && status == BRAID_OK && !all; k++)
        if (worst[k]) reroll_drop(r, worst[k] - 1);
    if (status == BRAID_OK && *any) reroll_note(r, "packs that depend on each other were left single");
    arena_free(memory);
    return status;
}

/* ------------------------------------------------------------------------------------------------- paying */

static uint64_t value_bytes(const reroller *r, int32_t v) {
    size_t bytes = 0;
    return tensor_type_bytes(&r->g->values[v]->type, &bytes) ? bytes : 0;
}

/* Graph inputs are uploaded side by side. */
static bool are_inputs(const reroller *r, const pack *k, int slot) {
    for (int32_t c = 0; c < columns_of(r, k); c++)
        if (r->g->values[reroll_node(r, k->members[c])->in[slot]]->kind != VALUE_INPUT) return false;
    return true;
}

/* Bytes of a gathered operand that must be copied: what a single node of this graph makes is made in place. */
static uint64_t gather_bytes(const reroller *r, const pack *k, int slot) {
    uint64_t bytes = 0;
    if (are_inputs(r, k, slot)) return 0;
    for (int32_t c = 0; c < columns_of(r, k); c++) {
        int32_t v = reroll_node(r, k->members[c])->in[slot], maker = reroll_maker(r->g, v);
        if (maker < 0 || r->pack_of[maker] >= 0 || (reroll_node(r, maker)->op->flags & OP_VIEW))
            bytes += value_bytes(r, v);
    }
    return bytes;
}

/* Outputs that a single Concat would have taken in place: that asks for multiples of 16 bytes. */
static uint64_t scatter_bytes(const reroller *r, const pack *k) {
    const node *n = reroll_node(r, k->members[0]);
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] < 0 || value_bytes(r, n->out[i]) % 16) continue;
        for (int32_t u = r->use_start[n->out[i]]; u < r->use_start[n->out[i] + 1]; u++) {
            int32_t reader = r->uses[u].node;
            if (r->pack_of[reader] < 0 && strcmp(reroll_node(r, reader)->type, "Concat") == 0)
                return value_bytes(r, n->out[i]) * (uint64_t)columns_of(r, k);
        }
    }
    return 0;
}

/* The same tensor, or another place with as many bytes that begin alike: good enough for an estimate. */
static bool constants_agree(const reroller *r, const pack *k, int slot) {
    const tensor *first = r->g->values[reroll_node(r, k->members[0])->in[slot]]->constant;
    for (int32_t c = 1; c < columns_of(r, k); c++) {
        const tensor *t = r->g->values[reroll_node(r, k->members[c])->in[slot]]->constant;
        if (!t || t->bytes != first->bytes) return false;
        if (reroll_print(t) != reroll_print(first)) return false;
    }
    return true;
}

static bool is_elementwise(const reroller *r, int32_t i) {
    return reroll_node(r, i)->op && reroll_node(r, i)->op->emit;
}

/* Elementwise nodes that could have been fused with what stands before them, were not one of a pack and the other not.
 */
static uint64_t parts_fusion(const reroller *r, const pack *k) {
    const node *n = reroll_node(r, k->members[0]);
    uint64_t count = 0;
    for (int i = 0; i < n->n_in; i++) {
        int32_t maker = reroll_maker(r->g, n->in[i]);
        bool fuses = maker >= 0 && r->pack_of[maker] < 0 && r->own[maker] && is_elementwise(r, k->members[0]);
        if (fuses && reroll_operand(r, k, i) == OPERAND_GATHERED) count++;
    }
    for (int i = 0; i < n->n_out; i++) {
        int32_t v = n->out[i];
        if (v < 0 || r->use_start[v + 1] - r->use_start[v] != 1) continue;
        int32_t reader = r->uses[r->use_start[v]].node;
        if (r->pack_of[reader] < 0 && is_elementwise(r, reader)) count++;
    }
    return count;
}

static bool is_view(const reroller *r, const pack *k) {
    return reroll_node(r, k->members[0])->op->flags & OP_VIEW;
}

/* One tensor of several rows that all columns read: problems of a product that share it can be solved as one. */
static bool shares_weights(const reroller *r, const pack *k) {
    const node *n = reroll_node(r, k->members[0]);
    for (int i = 0; i < n->n_in && !n->op->emit; i++) {
        const value *v = n->in[i] < 0 ? NULL : r->g->values[n->in[i]];
        if (v && v->constant && v->type.rank > 1 && constants_agree(r, k, i)) return true;
    }
    return false;
}

/*
 * In ns, by the figures that the planner goes by. Single steps may or may not meet in a dispatch: each copy saves one
 * at most; of elementwise nodes, most of which become a part of another step, a third is counted. Products that share
 * their weights are folded into one: each copy saves a small kernel's time. Against that stand waves of copies (a
 * barrier and a dispatch), bytes that are read and written once more, and half a wave for what a border may cost that
 * is not known here.
 */
static double saving(const reroller *r, const pack *k) {
    const device_figures *f = &r->figures;
    if (is_view(r, k)) return 0;
    double each = is_elementwise(r, k->members[0]) ? f->dispatch / 3
                  : shares_weights(r, k)           ? f->least
                                                   : f->dispatch;
    return (columns_of(r, k) - 1) * each;
}

static double spending(const reroller *r, int32_t b) {
    const bundle *k = &r->bundles[b];
    uint64_t in = 0, out = 0, waves = 0;
    double wave = r->figures.barrier + r->figures.dispatch;
    for (int32_t p = k->first; p < k->end; p++) {
        const pack *q = &r->packs[p];
        if (q->bundle != b) continue;
        for (int s = 0; s < reroll_node(r, q->members[0])->n_in; s++)
            if (reroll_node(r, q->members[0])->in[s] >= 0 && reroll_operand(r, q, s) == OPERAND_GATHERED)
                in += gather_bytes(r, q, s);
        out += scatter_bytes(r, q);
        waves += parts_fusion(r, q);
    }
    waves += (in > 0 ? 1u : 0u) + (out > 0 ? 1u : 0u);
    return wave / 2 + 2 * (double)(in + out) / r->figures.bandwidth + (double)waves * wave;
}

static void drop_unpaid(reroller *r, int32_t b) {
    bundle *k = &r->bundles[b];
    double saved = 0;
    if (k->n_packs == 0) return;
    for (int32_t p = k->first; p < k->end; p++)
        if (r->packs[p].bundle == b) saved += saving(r, &r->packs[p]);
    if (saved > spending(r, b)) return;
    const node *n = reroll_node(r, r->packs[k->first].members[0]);
    if (k->columns * k->n_packs >= NOTE_NODES)
        reroll_note(r, "%d copies of %d nodes around %s '%s' would cost more than they save", (int)k->columns,
                    (int)k->n_packs, n->type, n->name);
    for (int32_t p = k->first; p < k->end; p++)
        if (r->packs[p].bundle == b) reroll_drop(r, p);
}

/* ------------------------------------------------------------------------------------------ order of columns */

/*
 * Columns are put in an order in which gathered operands, and what is taken from the results, lie at equal distances:
 * by another bundle's columns, by the outputs of one node, by the inputs of one node, by graph inputs, else as they
 * stand.
 */
typedef struct ordering {
    const reroller *r;
    const bool *ordered; /* bundle */
    int64_t *key;        /* column */
    int32_t n;
} ordering;

static bool order_by_operand(ordering *o, const pack *k, int slot, bool inputs) {
    const reroller *r = o->r;
    int32_t source = INT32_MIN; /* pack, or -1 - node */
    for (int32_t c = 0; c < o->n; c++) {
        int32_t v = reroll_node(r, k->members[c])->in[slot], maker = reroll_maker(r->g, v);
        if (maker < 0) {
            if (!inputs || r->g->values[v]->kind != VALUE_INPUT) return false;
            o->key[c] = v; /* inputs are numbered in their order */
            continue;
        }
        int32_t p = r->pack_of[maker], from = p >= 0 ? p : -1 - maker;
        if (inputs || (p >= 0 && (r->packs[p].bundle == k->bundle || !o->ordered[r->packs[p].bundle]))) return false;
        if (source != INT32_MIN && source != from) return false;
        source = from;
        o->key[c] = p >= 0 ? r->column_of[maker] : r->output_of[v];
    }
    return true;
}

static bool order_by_reader(ordering *o, const pack *k, int output) {
    const reroller *r = o->r;
    int32_t common = -1;
    for (int32_t c = 0; c < o->n; c++) {
        int32_t v = reroll_node(r, k->members[c])->out[output];
        if (v < 0 || r->use_start[v] == r->use_start[v + 1]) return false;
        use first = r->uses[r->use_start[v]];
        int32_t p = r->pack_of[first.node];
        if (p >= 0 && r->packs[p].bundle == k->bundle) return false;
        if (p < 0 && common >= 0 && first.node != common) return false;
        if (p < 0) common = first.node;
        o->key[c] = p < 0 ? first.slot : (int64_t)first.slot << 32 | r->column_of[first.node];
    }
    return true;
}

static bool find_order(ordering *o, int32_t b) {
    const reroller *r = o->r;
    for (int how = 0; how < 3; how++)
        for (int32_t p = r->bundles[b].first; p < r->bundles[b].end; p++) {
            const pack *k = &r->packs[p];
            if (k->bundle != b) continue;
            const node *n = reroll_node(r, k->members[0]);
            for (int i = 0; i < n->n_in && how != 1; i++)
                if (n->in[i] >= 0 && !r->g->values[n->in[i]]->constant && order_by_operand(o, k, i, how == 2))
                    return true;
            for (int i = 0; i < n->n_out && how == 1; i++)
                if (order_by_reader(o, k, i)) return true;
        }
    for (int32_t c = 0; c < o->n; c++) o->key[c] = r->packs[r->bundles[b].first].members[c];
    return true;
}

typedef struct column {
    int64_t key;
    int32_t at;
} column;

static int by_column(const void *x, const void *y) {
    const column *a = x, *b = y;
    return a->key != b->key ? (a->key < b->key ? -1 : 1) : a->at < b->at ? -1 : a->at > b->at;
}

static braid_status order_bundle(reroller *r, int32_t b, bool *ordered, arena *memory) {
    int32_t n = r->bundles[b].columns;
    ordering o = {.r = r, .ordered = ordered, .n = n, .key = arena_array(memory, (size_t)n, sizeof *o.key)};
    column *sorted = arena_array(memory, (size_t)n, sizeof *sorted);
    int32_t *old = arena_array(memory, (size_t)n, sizeof *old);
    if (!o.key || !sorted || !old) return error_memory(r->err);
    find_order(&o, b);
    for (int32_t c = 0; c < n; c++) sorted[c] = (column){o.key[c], c};
    qsort(sorted, (size_t)n, sizeof *sorted, by_column);
    for (int32_t p = r->bundles[b].first; p < r->bundles[b].end; p++) {
        pack *k = &r->packs[p];
        if (k->bundle != b) continue;
        memcpy(old, k->members, (size_t)n * sizeof *old);
        for (int32_t c = 0; c < n; c++) r->column_of[k->members[c] = old[sorted[c].at]] = c;
    }
    ordered[b] = true;
    return BRAID_OK;
}

static braid_status order_columns(reroller *r) {
    arena *memory = arena_new();
    bool *ordered = memory ? arena_array(memory, (size_t)r->n_bundles + 1, sizeof *ordered) : NULL;
    braid_status status = ordered ? BRAID_OK : error_memory(r->err);
    for (int32_t b = 0; b < r->n_bundles && status == BRAID_OK; b++)
        if (r->bundles[b].n_packs) status = order_bundle(r, b, ordered, memory);
    arena_free(memory);
    return status;
}

braid_status reroll_prove(reroller *r) {
    drop_inexact(r);
    bool any = r->n_packs > 0;
    for (int round = 0; any && round <= ROUNDS; round++) TRY(break_cycles(r, round == ROUNDS, &any));
    if (any) TRY(break_cycles(r, true, &any)); /* a last look: nothing of unequal depth is left on a cycle */
    for (int32_t b = 0; b < r->n_bundles && !r->any; b++) drop_unpaid(r, b);
    return order_columns(r);
}
