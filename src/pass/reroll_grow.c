/*
 * reroll_grow.c: packs from seeds.
 *
 * Seeds are nodes of one colour and one depth (then one height): they cannot reach each other. Each becomes a column of
 * a new bundle; packs are then added along edges, column by column:
 *
 *   producers   the makers of one operand, where they are distinct and alike
 *   consumers   the readers of one output, where every column has as many of a kind
 *
 * Columns that disagree (one attribute differs, two prefixes, two layers of one copy that were taken for copies) split
 * the bundle: it is undone and grown again from each group of columns. Where that would leave crumbs growth ends at that
 * edge instead and the operand is gathered. Wrong guesses are legal: what is not exact is dropped by reroll_prove.c.
 */
#include "pass/reroll.h"

#include <stdlib.h>

enum { SPLITS_MAX = 6, VISITS_PER_NODE = 64 };

typedef struct seed {
    struct seed *next;
    int32_t n, splits;
    bool shared; /* has been split for sharing nodes: once is enough, else trees end in single columns */
    int32_t *members;
} seed;

typedef struct grower {
    reroller *r;
    seed *todo;
    const seed *now; /* what the bundle grows from */
    int32_t bundle;
    uint64_t *keys; /* column -> group, of the split that is asked for */
    bool split, split_shared;
} grower;

/* ------------------------------------------------------------------------------------------------ packs */

static braid_status add_pack(grower *w, const int32_t *members) {
    reroller *r = w->r;
    int32_t n = r->bundles[w->bundle].columns;
    pack *grown = reroll_grow(r->memory, r->packs, r->n_packs, &r->cap_packs, sizeof *grown);
    int32_t *copy = arena_copy(r->memory, members, (size_t)n * sizeof *members);
    if (!grown || !copy) return error_memory(r->err);
    r->packs = grown;
    r->packs[r->n_packs] = (pack){w->bundle, copy};
    for (int32_t c = 0; c < n; c++) {
        r->pack_of[copy[c]] = r->n_packs;
        r->column_of[copy[c]] = c;
    }
    r->n_packs++;
    r->bundles[w->bundle].n_packs++;
    r->bundles[w->bundle].end = r->n_packs;
    return BRAID_OK;
}

static void undo_bundle(grower *w) {
    reroller *r = w->r;
    const bundle *b = &r->bundles[w->bundle];
    for (int32_t p = b->first; p < b->end; p++)
        for (int32_t c = 0; c < b->columns; c++) r->pack_of[r->packs[p].members[c]] = -1;
    r->n_packs = b->first;
    r->n_bundles--;
}

/* May all these nodes become a pack: distinct, and in none. Marks are undone. */
static bool all_free(const reroller *r, const int32_t *nodes, int32_t n) {
    int32_t done = 0;
    while (done < n && r->own[nodes[done]] && r->pack_of[nodes[done]] == -1) r->pack_of[nodes[done++]] = -2;
    for (int32_t c = 0; c < done; c++) r->pack_of[nodes[c]] = -1;
    return done == n;
}

/* ------------------------------------------------------------------------------------------------ splits */

static int by_number(const void *x, const void *y) {
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* Groups of columns with equal keys: not one, few, and not all of them single. */
static braid_status worth_splitting(const grower *w, const uint64_t *keys, bool *out) {
    int32_t n = w->now->n, groups = 0, largest = 0;
    *out = false;
    if (w->now->splits >= SPLITS_MAX) return BRAID_OK;
    uint64_t *sorted = mem_alloc((size_t)n * sizeof *sorted);
    if (!sorted) return error_memory(w->r->err);
    memcpy(sorted, keys, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_number);
    for (int32_t i = 0, end; i < n; i = end, groups++) {
        for (end = i; end < n && sorted[end] == sorted[i];) end++;
        if (end - i > largest) largest = end - i;
    }
    mem_free(sorted);
    *out = groups > 1 && largest > 1 && groups <= (n / 8 > 2 ? n / 8 : 2);
    return BRAID_OK;
}

static braid_status ask_split(grower *w, const uint64_t *keys, const int32_t *at) {
    bool worth;
    TRY(worth_splitting(w, keys, &worth));
    if (!worth) return BRAID_OK;
    memcpy(w->keys, keys, (size_t)w->now->n * sizeof *keys);
    w->split = true;
    const node *n = reroll_node(w->r, at[0]);
    reroll_note(w->r, "%d copies around %s '%s' are not all alike: looked at in groups", (int)w->now->n, n->type,
                n->name);
    return BRAID_OK;
}

typedef struct keyed {
    uint64_t key;
    int32_t column;
} keyed;

static int by_keyed(const void *x, const void *y) {
    const keyed *a = x, *b = y;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->column < b->column ? -1 : a->column > b->column;
}

static braid_status push_group(grower *w, const keyed *columns, int32_t n) {
    seed *s = arena_alloc(w->r->memory, sizeof *s);
    if (!s || !(s->members = arena_array(w->r->memory, (size_t)n, sizeof *s->members))) return error_memory(w->r->err);
    for (int32_t i = 0; i < n; i++) s->members[i] = w->now->members[columns[i].column];
    s->n = n;
    s->splits = w->now->splits + 1;
    s->shared = w->now->shared || w->split_shared;
    s->next = w->todo;
    w->todo = s;
    return BRAID_OK;
}

/* New seeds from the columns of each group. */
static braid_status push_groups(grower *w) {
    int32_t n = w->now->n;
    keyed *sorted = mem_alloc((size_t)n * sizeof *sorted);
    if (!sorted) return error_memory(w->r->err);
    for (int32_t c = 0; c < n; c++) sorted[c] = (keyed){w->keys[c], c};
    qsort(sorted, (size_t)n, sizeof *sorted, by_keyed);
    braid_status status = BRAID_OK;
    for (int32_t i = 0, end; i < n && status == BRAID_OK; i = end) {
        for (end = i; end < n && sorted[end].key == sorted[i].key;) end++;
        if (end - i > 1) status = push_group(w, sorted + i, end - i);
    }
    mem_free(sorted);
    return status;
}

/* Several columns share what makes their operand. As many groups as columns share one, each with distinct nodes; or,
   where few nodes serve many columns, the columns of each node. */
static braid_status ask_split_shared(grower *w, const int32_t *nodes, const int32_t *at) {
    int32_t n = w->now->n, distinct = 0;
    if (w->now->shared) return BRAID_OK;
    uint64_t *keys = mem_alloc((size_t)n * 2 * sizeof *keys), *seen = keys ? keys + n : NULL;
    if (!keys) return error_memory(w->r->err);
    for (int32_t c = 0; c < n; c++) seen[c] = (uint64_t)nodes[c] << 32 | (uint64_t)c;
    qsort(seen, (size_t)n, sizeof *seen, by_number);
    for (int32_t i = 0; i < n; i++) distinct += i == 0 || seen[i] >> 32 != seen[i - 1] >> 32;
    for (int32_t i = 0, rank = 0; i < n; i++) {
        rank = i && seen[i] >> 32 == seen[i - 1] >> 32 ? rank + 1 : 0;
        keys[seen[i] & UINT32_MAX] = distinct >= n / distinct ? (uint64_t)rank : seen[i] >> 32;
    }
    braid_status status = distinct > 1 ? ask_split(w, keys, at) : BRAID_OK;
    w->split_shared = w->split;
    mem_free(keys);
    return status;
}

/* ------------------------------------------------------------------------------------------- producers */

/* What makes each column's operand: its kind in keys[], its node in nodes[]; false when some column has no node. */
static bool list_makers(const grower *w, const int32_t *members, int slot, int32_t *nodes, uint64_t *keys) {
    const graph *g = w->r->g;
    for (int32_t c = 0; c < w->now->n; c++) {
        int32_t v = g->nodes[members[c]]->in[slot];
        nodes[c] = reroll_maker(g, v);
        if (nodes[c] < 0 || !w->r->own[nodes[c]]) return false;
        keys[c] = w->r->own[nodes[c]] ^ (uint64_t)w->r->output_of[v] << 1;
    }
    return true;
}

static bool all_equal(const uint64_t *keys, int32_t n) {
    for (int32_t c = 1; c < n; c++)
        if (keys[c] != keys[0]) return false;
    return true;
}

static bool same_value(const grower *w, const int32_t *members, int slot) {
    const graph *g = w->r->g;
    for (int32_t c = 1; c < w->now->n; c++)
        if (g->nodes[members[c]]->in[slot] != g->nodes[members[0]]->in[slot]) return false;
    return true;
}

static bool any_taken(const grower *w, const int32_t *nodes) {
    for (int32_t c = 0; c < w->now->n; c++)
        if (w->r->pack_of[nodes[c]] >= 0) return true;
    return false;
}

static bool is_constant_slot(const grower *w, int32_t member, int slot) {
    int32_t v = w->r->g->nodes[member]->in[slot];
    return v < 0 || w->r->g->values[v]->constant;
}

static braid_status grow_up(grower *w, const int32_t *members, int slot, int32_t *nodes, uint64_t *keys) {
    if (is_constant_slot(w, members[0], slot) || same_value(w, members, slot)) return BRAID_OK;
    if (!list_makers(w, members, slot, nodes, keys) || any_taken(w, nodes)) return BRAID_OK;
    if (!all_equal(keys, w->now->n)) return ask_split(w, keys, members);
    return all_free(w->r, nodes, w->now->n) ? add_pack(w, nodes) : ask_split_shared(w, nodes, members);
}

/* ------------------------------------------------------------------------------------------- consumers */

typedef struct reader {
    uint64_t kind;         /* own colour and slot */
    uint64_t order, print; /* settle ties within a column: surroundings, then weights */
    int32_t column, node;
} reader;

static int by_kind(const void *x, const void *y) {
    const reader *a = x, *b = y;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->column != b->column) return a->column < b->column ? -1 : 1;
    if (a->order != b->order) return a->order < b->order ? -1 : 1;
    if (a->print != b->print) return a->print < b->print ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

uint64_t reroll_print(const tensor *t) {
    uint8_t head[256];
    size_t size = t->type.type == BRAID_STRING ? 0 : t->bytes < sizeof head ? t->bytes : sizeof head;
    if (!size) return 0;
    if (t->data) return hash_bytes(0, t->data, size);
    return file_read(t->source, t->offset, head, size, NULL) == BRAID_OK ? hash_bytes(0, head, size) : 0;
}

/* Copies that share weights, or have equal ones, agree in this. */
static uint64_t weight_print(const reroller *r, const node *n) {
    uint64_t h = 0;
    for (int i = 0; i < n->n_in; i++) {
        const tensor *t = n->in[i] >= 0 ? r->g->values[n->in[i]]->constant : NULL;
        if (t) h = h * 31 + reroll_print(t);
    }
    return h;
}

static braid_status list_readers(const grower *w, const int32_t *members, int output, reader **out, int32_t *count) {
    reroller *r = w->r;
    int32_t n = 0;
    for (int32_t c = 0; c < w->now->n; c++) {
        int32_t v = r->g->nodes[members[c]]->out[output];
        n += r->use_start[v + 1] - r->use_start[v];
    }
    r->budget -= (uint64_t)n < r->budget ? (uint64_t)n : r->budget;
    reader *list = mem_alloc(((size_t)n + 1) * sizeof *list);
    if (!list) return error_memory(r->err);
    n = 0;
    for (int32_t c = 0; c < w->now->n; c++) {
        int32_t v = r->g->nodes[members[c]]->out[output];
        for (int32_t u = r->use_start[v]; u < r->use_start[v + 1]; u++) {
            int32_t i = r->uses[u].node;
            if (!r->own[i] || r->pack_of[i] >= 0) continue;
            bool variadic = r->g->nodes[i]->op->flags & OP_VARIADIC_IN;
            uint64_t kind = r->own[i] + (variadic ? 0 : (uint64_t)r->uses[u].slot * 2 + 2);
            list[n++] = (reader){kind, r->far[i], 0, c, i};
        }
    }
    qsort(list, (size_t)n, sizeof *list, by_kind);
    *out = list;
    *count = n;
    return BRAID_OK;
}

/* Readers of one kind, `each` to a column: the j-th of every column make a pack. */
static braid_status take_readers(grower *w, reader *list, int32_t each, int32_t *nodes) {
    int32_t n = w->now->n;
    if (each > 1) {
        for (int32_t i = 0; i < n * each; i++) list[i].print = weight_print(w->r, reroll_node(w->r, list[i].node));
        qsort(list, (size_t)(n * each), sizeof *list, by_kind);
    }
    for (int32_t j = 0; j < each; j++) {
        for (int32_t c = 0; c < n; c++) nodes[c] = list[c * each + j].node;
        if (all_free(w->r, nodes, n)) TRY(add_pack(w, nodes)); /* else columns meet here, or the nodes are taken */
    }
    return BRAID_OK;
}

static bool in_every_column(const reader *list, int32_t count, int32_t columns) {
    if (count % columns) return false;
    int32_t each = count / columns;
    for (int32_t c = 0; c < columns; c++)
        if (list[c * each].column != c || list[(c + 1) * each - 1].column != c) return false;
    return true;
}

static int by_node(const void *x, const void *y) {
    const reader *a = x, *b = y;
    return a->node != b->node ? (a->node < b->node ? -1 : 1) : a->column < b->column ? -1 : a->column > b->column;
}

/* Do readers of different columns coincide. */
static bool columns_meet(reader *list, int32_t n) {
    qsort(list, (size_t)n, sizeof *list, by_node);
    for (int32_t i = 1; i < n; i++)
        if (list[i].node == list[i - 1].node && list[i].column != list[i - 1].column) return true;
    return false;
}

/* Takes the kinds of readers that every column has; the others are moved to the front of the list. */
static braid_status take_common(grower *w, reader *list, int32_t *count, int32_t *nodes) {
    int32_t n = w->now->n, left = 0;
    for (int32_t i = 0, end; i < *count; i = end) {
        for (end = i; end < *count && list[end].kind == list[i].kind;) end++;
        if (in_every_column(list + i, end - i, n)) {
            TRY(take_readers(w, list + i, (end - i) / n, nodes));
            continue;
        }
        memmove(list + left, list + i, (size_t)(end - i) * sizeof *list);
        left += end - i;
    }
    *count = left;
    return BRAID_OK;
}

/* Where most columns have readers that not all have, the columns differ; unless these meet in them, as in a tree of
 * sums. */
static braid_status grow_down(grower *w, const int32_t *members, int output, int32_t *nodes, uint64_t *keys) {
    int32_t n = w->now->n, count = 0, others = 0;
    reader *list = NULL;
    if (reroll_node(w->r, members[0])->out[output] < 0) return BRAID_OK;
    TRY(list_readers(w, members, output, &list, &count));
    memset(keys, 0, (size_t)n * sizeof *keys);
    braid_status status = take_common(w, list, &count, nodes);
    for (int32_t k = 0; k < count; k++) {
        others += keys[list[k].column] == 0;
        keys[list[k].column] += list[k].kind;
    }
    if (status == BRAID_OK && others * 2 >= n && others > 0 && !columns_meet(list, count))
        status = ask_split(w, keys, members);
    mem_free(list);
    return status;
}

/* ------------------------------------------------------------------------------------------------ seeds */

static braid_status grow_pack(grower *w, int32_t p, int32_t *nodes, uint64_t *keys) {
    const int32_t *members = w->r->packs[p].members;
    const node *n = reroll_node(w->r, members[0]);
    for (int i = 0; i < n->n_in && !w->split; i++)
        if (n->in[i] >= 0) TRY(grow_up(w, members, i, nodes, keys));
    for (int i = 0; i < n->n_out && !w->split; i++) TRY(grow_down(w, members, i, nodes, keys));
    return BRAID_OK;
}

static braid_status grow_bundle(grower *w) {
    reroller *r = w->r;
    int32_t n = w->now->n;
    int32_t *nodes = mem_alloc((size_t)n * sizeof *nodes);
    uint64_t *keys = mem_alloc((size_t)n * 2 * sizeof *keys);
    bundle *grown = reroll_grow(r->memory, r->bundles, r->n_bundles, &r->cap_bundles, sizeof *grown);
    braid_status status = nodes && keys && grown ? BRAID_OK : error_memory(r->err);
    if (status == BRAID_OK) {
        r->bundles = grown;
        w->bundle = r->n_bundles++;
        w->keys = keys + n;
        w->split = w->split_shared = false;
        r->bundles[w->bundle] = (bundle){.columns = n, .first = r->n_packs, .end = r->n_packs};
        status = add_pack(w, w->now->members);
    }
    for (int32_t p = r->n_packs - 1; p < r->n_packs && status == BRAID_OK && !w->split; p++) {
        if (r->budget < (uint64_t)n) break;
        r->budget -= (uint64_t)n;
        status = grow_pack(w, p, nodes, keys);
    }
    if (status == BRAID_OK && w->split) {
        undo_bundle(w);
        status = push_groups(w);
    }
    mem_free(nodes);
    mem_free(keys);
    return status;
}

static braid_status grow_from(reroller *r, seed *s) {
    grower w = {.r = r, .todo = s};
    s->next = NULL;
    while ((w.now = w.todo) && r->budget) {
        w.todo = w.now->next;
        if (all_free(r, w.now->members, w.now->n)) TRY(grow_bundle(&w));
    }
    return BRAID_OK;
}

typedef struct candidate {
    uint64_t key;
    int32_t node, size;
} candidate;

static int by_key(const void *x, const void *y) {
    const candidate *a = x, *b = y;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* Large classes first; of equal size, the one that begins first in the graph. */
static int by_size(const void *x, const void *y) {
    const candidate *a = x, *b = y;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* Every class of equal (colour, level), those that are still free, is a seed. */
static braid_status seed_classes(reroller *r, const uint64_t *colour, const int32_t *level) {
    int32_t n = 0, n_classes = 0;
    candidate *all = arena_array(r->memory, (size_t)r->g->n_nodes + 1, sizeof *all);
    candidate *classes = arena_array(r->memory, (size_t)r->g->n_nodes + 1, sizeof *classes);
    seed s = {.members = arena_array(r->memory, (size_t)r->g->n_nodes + 1, sizeof *s.members)};
    if (!all || !classes || !s.members) return error_memory(r->err);
    for (int32_t i = 0; i < r->g->n_nodes; i++) {
        if (!r->own[i] || r->pack_of[i] >= 0) continue;
        uint64_t parts[3] = {r->own[i], colour[i], (uint64_t)level[i]};
        all[n++] = (candidate){.key = hash_bytes(0, parts, sizeof parts), .node = i};
    }
    qsort(all, (size_t)n, sizeof *all, by_key);
    for (int32_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && all[end].key == all[i].key;) end++;
        if (end - i > 1) classes[n_classes++] = (candidate){(uint64_t)i, all[i].node, end - i};
    }
    qsort(classes, (size_t)n_classes, sizeof *classes, by_size);
    for (int32_t k = 0; k < n_classes; k++) {
        s.n = s.splits = 0;
        s.shared = false;
        for (int32_t i = 0; i < classes[k].size; i++) {
            int32_t member = all[classes[k].key + (uint64_t)i].node;
            if (r->pack_of[member] < 0) s.members[s.n++] = member;
        }
        if (s.n > 1) TRY(grow_from(r, &s));
    }
    return BRAID_OK;
}

braid_status reroll_seed_all(reroller *r) {
    r->budget = (uint64_t)VISITS_PER_NODE * (uint64_t)r->g->n_nodes;
    TRY(seed_classes(r, r->colour, r->depth));
    TRY(seed_classes(r, r->colour, r->height));
    TRY(seed_classes(r, r->own, r->depth));
    return seed_classes(r, r->own, r->height);
}
