/*
 * sort.c: topological order by Kahn's algorithm, iterative. Among ready nodes the one that came first in the file goes
 * first, so a sorted graph stays as it is.
 *
 * A node depends on the producers of its inputs and of the outer values that its subgraphs name. An inner graph's
 * outer value always names a value of its direct parent, so one level is enough.
 */
#include "ir/graph.h"

typedef struct edges {
    int32_t *first, *to; /* node i feeds to[first[i] .. first[i + 1]) */
    int32_t *waiting;    /* inputs of node i whose producers are not placed yet */
    int32_t *heap;
    int32_t n_heap;
} edges;

typedef void visit_fn(void *user, int32_t producer, int32_t consumer);

static void visit_value(const graph *g, int32_t v, int32_t consumer, visit_fn *visit, void *user) {
    if (v >= 0 && g->values[v]->producer >= 0) visit(user, g->values[v]->producer, consumer);
}

static void visit_subgraph(const graph *g, const graph *inner, int32_t consumer, visit_fn *visit, void *user) {
    for (int32_t i = 0; i < inner->n_values; i++)
        if (inner->values[i]->kind == VALUE_OUTER) visit_value(g, inner->values[i]->outer, consumer, visit, user);
}

static void visit_node(const graph *g, int32_t i, visit_fn *visit, void *user) {
    const node *n = g->nodes[i];
    for (int k = 0; k < n->n_in; k++) visit_value(g, n->in[k], i, visit, user);
    for (int k = 0; k < n->n_attributes; k++) {
        const attribute *a = &n->attributes[k];
        if (a->kind == ATTRIBUTE_GRAPH) visit_subgraph(g, a->g, i, visit, user);
        if (a->kind == ATTRIBUTE_GRAPHS)
            for (size_t s = 0; s < a->count; s++) visit_subgraph(g, a->graphs[s], i, visit, user);
    }
}

static void set_producers(graph *g) {
    for (int32_t v = 0; v < g->n_values; v++) g->values[v]->producer = -1;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_out; k++)
            if (g->nodes[i]->out[k] >= 0) g->values[g->nodes[i]->out[k]]->producer = i;
}

static void note_backward(void *user, int32_t producer, int32_t consumer) {
    if (producer >= consumer) *(bool *)user = true;
}

static bool is_sorted(const graph *g) {
    bool backward = false;
    for (int32_t i = 0; i < g->n_nodes && !backward; i++) visit_node(g, i, note_backward, &backward);
    return !backward;
}

static void count_edge(void *user, int32_t producer, int32_t consumer) {
    edges *e = user;
    e->first[producer + 1]++;
    e->waiting[consumer]++;
}

static void put_edge(void *user, int32_t producer, int32_t consumer) {
    edges *e = user;
    e->to[e->first[producer]++] = consumer;
}

/* A binary heap of node numbers, smallest on top. */
static void heap_push(edges *e, int32_t i) {
    int32_t at = e->n_heap++;
    for (; at > 0 && e->heap[(at - 1) / 2] > i; at = (at - 1) / 2) e->heap[at] = e->heap[(at - 1) / 2];
    e->heap[at] = i;
}

static int32_t heap_pop(edges *e) {
    int32_t top = e->heap[0], last = e->heap[--e->n_heap], at = 0;
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= e->n_heap) break;
        if (child + 1 < e->n_heap && e->heap[child + 1] < e->heap[child]) child++;
        if (e->heap[child] >= last) break;
        e->heap[at] = e->heap[child];
        at = child;
    }
    e->heap[at] = last;
    return top;
}

typedef struct predecessor {
    const int32_t *waiting;
    int32_t found;
} predecessor;

static void find_unplaced(void *user, int32_t producer, int32_t consumer) {
    (void)consumer;
    predecessor *p = user;
    if (p->found < 0 && p->waiting[producer] > 0) p->found = producer;
}

static int32_t unplaced_producer(const graph *g, const int32_t *waiting, int32_t at) {
    predecessor p = {waiting, -1};
    visit_node(g, at, find_unplaced, &p);
    return p.found;
}

/* Every unplaced node waits for another unplaced one: walking up must come back to a node seen before. */
static braid_status report_cycle(const graph *g, const edges *e, int32_t at, braid_error *err) {
    memset(e->heap, 0, (size_t)g->n_nodes * sizeof *e->heap);
    for (; !e->heap[at]; at = unplaced_producer(g, e->waiting, at)) e->heap[at] = 1;
    text names = {0};
    int32_t start = at;
    int listed = 0;
    do {
        if (++listed > 8) {
            text_add(&names, ", ...");
            break;
        }
        text_add(&names, "%s'%s' (%s)", listed > 1 ? ", " : "", g->nodes[at]->name, g->nodes[at]->type);
        at = unplaced_producer(g, e->waiting, at);
    } while (at != start);
    braid_status s =
        error_set(err, BRAID_MODEL, "the graph has a cycle through node %s", names.data ? names.data : "?");
    text_free(&names);
    return s;
}

static braid_status place(graph *g, edges *e, node **order, braid_error *err) {
    int32_t placed = 0;
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (e->waiting[i] == 0) heap_push(e, i);
    while (e->n_heap) {
        int32_t i = heap_pop(e);
        order[placed++] = g->nodes[i];
        for (int32_t k = e->first[i]; k < e->first[i + 1]; k++)
            if (--e->waiting[e->to[k]] == 0) heap_push(e, e->to[k]);
    }
    if (placed == g->n_nodes) return BRAID_OK;
    int32_t left = 0;
    while (e->waiting[left] == 0) left++;
    return report_cycle(g, e, left, err);
}

static braid_status sort_with(graph *g, edges *e, int32_t *first, braid_error *err) {
    int32_t n = g->n_nodes;
    e->first = first;
    for (int32_t i = 0; i < n; i++) visit_node(g, i, count_edge, e);
    for (int32_t i = 0; i < n; i++) first[i + 1] += first[i];
    e->to = mem_alloc(((size_t)first[n] + 1) * sizeof *e->to);
    node **order = mem_alloc((size_t)n * sizeof *order);
    braid_status s = e->to && order ? BRAID_OK : error_memory(err);
    if (s == BRAID_OK) {
        for (int32_t i = 0; i < n; i++) visit_node(g, i, put_edge, e);
        memmove(first + 1, first, (size_t)n * sizeof *first); /* put_edge moved each start to its end */
        first[0] = 0;
        s = place(g, e, order, err);
    }
    if (s == BRAID_OK) memcpy(g->nodes, order, (size_t)n * sizeof *order);
    mem_free(order);
    mem_free(e->to);
    return s;
}

braid_status graph_sort(graph *g, braid_error *err) {
    set_producers(g);
    if (is_sorted(g)) return BRAID_OK;
    size_t n = (size_t)g->n_nodes;
    int32_t *scratch = mem_alloc((3 * n + 1) * sizeof *scratch);
    if (!scratch) return error_memory(err);
    memset(scratch, 0, (3 * n + 1) * sizeof *scratch);
    edges e = {.waiting = scratch, .heap = scratch + n};
    braid_status s = sort_with(g, &e, scratch + 2 * n, err);
    mem_free(scratch);
    if (s == BRAID_OK) set_producers(g);
    return s;
}
