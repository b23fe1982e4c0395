/*
 * depend.c: which steps a step must wait for, from the byte ranges that they touch.
 *
 * Each storage is cut into segments of bytes with a common history:
 *
 *     |  writers 3 4 (parts of node 7), prior 1  |  writers 5, readers 6 8  |  ...
 *
 *   writers  the step that wrote these bytes last, or the write-only steps of one node, which do not wait for one
 *            another
 *   prior    what those writers waited for: a further part of the same node waits for it too
 *   readers  since then
 *
 * Lists are shared cells, longest-lived last; a list that grows long is replaced by one join. Time and memory are about
 * linear in the number of accesses, whatever the graph: a storage that 10,000 steps read, 10,000 parts of one Concat
 * that 10,000 steps read. To that end what is read across more than SEGMENTS_MANY segments, and parts of one node whose
 * extents overlap (Concat along an inner axis), become one segment: a later reader of a single part then waits for all.
 */
#include "plan/waves.h"

enum { LIST_LONG = 4, SEGMENTS_MANY = 64, NONE = -1 };

typedef struct cell {
    int32_t step, next; /* next: cell number or NONE */
    int32_t join;       /* node that stands for the list from here on, or NONE */
} cell;

typedef struct list {
    int32_t head, count;
} list;

static const list empty = {NONE, 0};

typedef struct segment {
    uint64_t begin, end;
    int32_t node; /* whose write-only parts the writers are, or NONE */
    list writers, prior, readers;
} segment;

typedef struct history {
    segment *at; /* sorted, disjoint */
    int32_t n, capacity;
} history;

typedef struct edge {
    int32_t from, to;
} edge;

typedef struct depend {
    const plan *p;
    arena *memory;
    history *histories; /* by storage */
    bool *whole;        /* by storage: all copies are written at the same time, so that one stands for them */
    cell *cells;
    edge *edges;
    int32_t n_cells, cap_cells, n_edges, cap_edges;
    int32_t *order, *mark; /* mark[from]: the last node that got an edge from it */
    int32_t n, n_order, cap_nodes;
    bool failed; /* out of memory or of numbers; checked at the end of each step */
} depend;

static bool room(depend *d, void *items, int32_t n, int32_t *capacity, size_t size) {
    if (n < *capacity) return true;
    void **array = items, *grown;
    int64_t wanted = *capacity ? (int64_t)*capacity * 2 : 256;
    if (d->failed || wanted > INT32_MAX || !(grown = arena_array(d->memory, (size_t)wanted, size))) {
        d->failed = true;
        return false;
    }
    if (n) memcpy(grown, *array, (size_t)n * size);
    *array = grown;
    *capacity = (int32_t)wanted;
    return true;
}

/* --------------------------------------------------------------------------------------------------- lists */

static list with(depend *d, list l, int32_t id) {
    if (l.head != NONE && d->cells[l.head].step == id) return l;
    if (!room(d, &d->cells, d->n_cells, &d->cap_cells, sizeof *d->cells)) return l;
    d->cells[d->n_cells] = (cell){id, l.head, NONE};
    return (list){d->n_cells++, l.count + 1};
}

static list joined(depend *d, list a, list b) {
    if (a.head == b.head || b.count == 0) return a;
    if (a.count == 0) return b;
    for (int32_t c = b.head; c != NONE; c = d->cells[c].next) a = with(d, a, d->cells[c].step);
    return a;
}

static void add_edge(depend *d, int32_t from, int32_t to) {
    if (from == to || d->mark[from] == to) return;
    if (!room(d, &d->edges, d->n_edges, &d->cap_edges, sizeof *d->edges)) return;
    d->mark[from] = to;
    d->edges[d->n_edges++] = (edge){from, to};
}

static void wait_for(depend *d, list l, int32_t to) {
    for (int32_t c = l.head; c != NONE; c = d->cells[c].next) add_edge(d, d->cells[c].step, to);
}

/* Number of a new join, put into the order; NONE on failure. */
static int32_t add_join(depend *d) {
    if (d->n == d->cap_nodes) {
        int32_t old = d->cap_nodes, capacity = old;
        if (!room(d, &d->order, old, &capacity, sizeof *d->order) ||
            !room(d, &d->mark, old, &d->cap_nodes, sizeof *d->mark))
            return NONE;
        for (int32_t i = old; i < d->cap_nodes; i++) d->mark[i] = NONE;
    }
    d->order[d->n_order++] = d->n;
    return d->n++;
}

/* A long list becomes a join, unless the step being looked at is in it. */
static void condense(depend *d, list *l, int32_t id) {
    if (l->count <= LIST_LONG || d->failed) return;
    int32_t join = d->cells[l->head].join;
    if (join == NONE) {
        for (int32_t c = l->head; c != NONE; c = d->cells[c].next)
            if (d->cells[c].step == id) return;
        if ((join = add_join(d)) == NONE) return;
        wait_for(d, *l, join);
        d->cells[l->head].join = join;
    }
    *l = with(d, empty, join);
}

/* ------------------------------------------------------------------------------------------------ segments */

/* First segment that ends behind `at`. */
static int32_t segment_find(const history *h, uint64_t at) {
    int32_t low = 0, high = h->n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (h->at[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void segment_insert(depend *d, history *h, int32_t i, segment s) {
    if (!room(d, &h->at, h->n, &h->capacity, sizeof *h->at)) return;
    memmove(&h->at[i + 1], &h->at[i], (size_t)(h->n - i) * sizeof s);
    h->at[i] = s;
    h->n++;
}

static void segments_remove(history *h, int32_t i, int32_t n) {
    memmove(&h->at[i], &h->at[i + n], (size_t)(h->n - i - n) * sizeof *h->at);
    h->n -= n;
}

static void split_at(depend *d, history *h, uint64_t at) {
    int32_t i = segment_find(h, at);
    if (i == h->n || h->at[i].begin >= at) return;
    segment left = h->at[i];
    left.end = at;
    h->at[i].begin = at;
    segment_insert(d, h, i, left);
}

/* Segments first .. end-1 become one with the history of all. */
static void segments_merge(depend *d, history *h, int32_t first, int32_t end, int32_t id) {
    segment *s = &h->at[first];
    for (int32_t i = first + 1; i < end; i++) {
        const segment *o = &h->at[i];
        if (s->node != o->node) s->node = NONE;
        s->writers = joined(d, s->writers, o->writers);
        s->prior = joined(d, s->prior, o->prior);
        s->readers = joined(d, s->readers, o->readers);
        s->end = o->end;
    }
    condense(d, &s->prior, id);
    segments_remove(h, first + 1, end - first - 1);
}

/* Cuts the history at begin and end and fills gaps between: [*first, *end) are the segments of the range. */
static void segments_of(depend *d, history *h, uint64_t begin, uint64_t end, int32_t *first, int32_t *last) {
    split_at(d, h, begin);
    split_at(d, h, end);
    int32_t i = *first = segment_find(h, begin);
    for (uint64_t at = begin; at < end; at = h->at[i++].end) {
        if (i < h->n && h->at[i].begin == at) continue;
        uint64_t until = i < h->n && h->at[i].begin < end ? h->at[i].begin : end;
        segment_insert(d, h, i, (segment){at, until, NONE, empty, empty, empty});
        if (d->failed) break;
    }
    *last = i;
}

/* ------------------------------------------------------------------------------------------------ accesses */

static void read_range(depend *d, history *h, uint64_t begin, uint64_t end, int32_t id) {
    int32_t first, last;
    segments_of(d, h, begin, end, &first, &last);
    if (last - first > SEGMENTS_MANY && !d->failed) {
        segments_merge(d, h, first, last, id);
        last = first + 1;
    }
    for (int32_t i = first; i < last && !d->failed; i++) {
        segment *s = &h->at[i];
        condense(d, &s->writers, id);
        wait_for(d, s->writers, id);
        s->readers = with(d, s->readers, id);
    }
}

/* The whole range is its own now; it waits for everything before. */
static void write_range(depend *d, history *h, uint64_t begin, uint64_t end, int32_t id, int32_t node_id) {
    int32_t first, last;
    list prior = empty;
    segments_of(d, h, begin, end, &first, &last);
    for (int32_t i = first; i < last && !d->failed; i++) {
        condense(d, &h->at[i].writers, id);
        condense(d, &h->at[i].readers, id);
        wait_for(d, h->at[i].writers, id);
        wait_for(d, h->at[i].readers, id);
        if (node_id != NONE) prior = joined(d, joined(d, prior, h->at[i].writers), h->at[i].readers);
    }
    if (d->failed) return;
    condense(d, &prior, id);
    h->at[first] = (segment){begin, end, node_id, with(d, empty, id), prior, empty};
    segments_remove(h, first + 1, last - first - 1);
}

/* Write-only: joins the parts of the same node where it overlaps them. */
static void write_part(depend *d, history *h, uint64_t begin, uint64_t end, int32_t id, int32_t node_id) {
    int32_t i = segment_find(h, begin), first = i;
    bool own = i < h->n && h->at[i].begin < end, alone = true;
    for (; i < h->n && h->at[i].begin < end; i++) {
        if (h->at[i].node != node_id) own = false;
        alone = false;
    }
    if (alone || !own) {
        write_range(d, h, begin, end, id, node_id);
        return;
    }
    segments_merge(d, h, first, i, id);
    segment *s = &h->at[first];
    condense(d, &s->readers, id);
    wait_for(d, s->prior, id);
    wait_for(d, s->readers, id);
    s->writers = with(d, s->writers, id);
    if (begin < s->begin) s->begin = begin;
    if (end > s->end) s->end = end;
}

static void touch(depend *d, int32_t step_id, const step_operand *o) {
    int32_t root = plan_root(d->p, o->storage);
    storage_kind kind = d->p->storages[root].kind;
    if (kind == STORAGE_CONST || kind == STORAGE_INPUT || !o->bytes || d->failed) return;
    history *h = &d->histories[root];
    uint64_t begin = plan_offset(d->p, o->storage) + o->offset, end = begin + o->bytes;
    const struct step *s = d->p->steps[step_id];
    uint64_t whole = d->p->storages[root].copy_stride, stride = plan_operand_stride(d->p, s, o);
    if (d->whole[root] && whole) { /* the history is that of one copy, and of all alike */
        uint64_t inside = begin % whole;
        bool alike = inside + o->bytes <= whole && stride % whole == 0; /* else other copies touch other parts */
        begin = alike ? inside : 0;
        end = alike ? inside + o->bytes : whole;
    } else {
        end += stride * (s->copies - 1);
    }
    if (o->access == ACCESS_WRITE)
        write_part(d, h, begin, end, step_id, d->p->steps[step_id]->node);
    else if (o->access & ACCESS_WRITE)
        write_range(d, h, begin, end, step_id, NONE);
    else
        read_range(d, h, begin, end, step_id);
}

/* -------------------------------------------------------------------------------------------------- result */

/* Edges by the node they lead to. */
static braid_status collect(const depend *d, links *out, braid_error *err) {
    out->n = d->n;
    out->order = d->order;
    out->first = arena_array(d->memory, (size_t)d->n + 2, sizeof *out->first);
    out->before = arena_array(d->memory, (size_t)d->n_edges + 1, sizeof *out->before);
    if (!out->first || !out->before) return error_memory(err);
    for (int32_t i = 0; i < d->n_edges; i++) out->first[d->edges[i].to + 2]++;
    for (int32_t i = 2; i <= d->n; i++) out->first[i] += out->first[i - 1];
    for (int32_t i = 0; i < d->n_edges; i++) out->before[out->first[d->edges[i].to + 1]++] = d->edges[i].from;
    return BRAID_OK;
}

/* Storages of several copies that no step of one copy writes. (Where single steps write the copies of a Stack one by
   one, ranges are those of all copies together.) */
static void find_whole(depend *d) {
    const plan *p = d->p;
    for (int32_t i = 0; i < p->n_storages; i++) d->whole[i] = p->storages[i].alias == i && p->storages[i].copies > 1;
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i]->n_operands; k++) {
            const step_operand *o = &p->steps[i]->operands[k];
            int32_t root = plan_root(p, o->storage);
            bool all = p->steps[i]->copies == (uint32_t)p->storages[root].copies &&
                       plan_operand_stride(p, p->steps[i], o) == p->storages[root].copy_stride;
            if ((o->access & ACCESS_WRITE) && !all) d->whole[root] = false;
        }
}

braid_status links_make(const plan *p, arena *memory, links *out, braid_error *err) {
    depend d = {.p = p, .memory = memory, .n = p->n_steps, .cap_nodes = p->n_steps + 64};
    d.histories = arena_array(memory, (size_t)p->n_storages + 1, sizeof *d.histories);
    d.order = arena_array(memory, (size_t)d.cap_nodes, sizeof *d.order);
    d.mark = arena_array(memory, (size_t)d.cap_nodes, sizeof *d.mark);
    if (!(d.whole = arena_array(memory, (size_t)p->n_storages + 1, sizeof *d.whole))) return error_memory(err);
    if (!d.histories || !d.order || !d.mark) return error_memory(err);
    find_whole(&d);
    for (int32_t i = 0; i < d.cap_nodes; i++) d.mark[i] = NONE;
    for (int32_t i = 0; i < p->n_steps; i++) {
        for (int k = 0; k < p->steps[i]->n_operands; k++) touch(&d, i, &p->steps[i]->operands[k]);
        if (d.failed) return error_memory(err);
        d.order[d.n_order++] = i;
    }
    return collect(&d, out, err);
}
