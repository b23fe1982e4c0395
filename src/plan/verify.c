/*
 * verify.c: proves a plan from its bytes.
 *
 * Dispatches: every step stands in exactly one row, its wave is its dispatch's, waves ascend, row numbers and tiles add
 * up, what a row holds beside operands is what the step was lowered to.
 * Order: of two steps that touch the same bytes of a storage, one of them writing, the earlier one (by lowering) is in an
 * earlier wave; write-only parts of one node excepted.
 * What a step reads and writes through different operands, it does element by element.
 * Places: constants, inputs and outputs are where they belong. The row table is decoded, problem by problem, into byte
 * ranges of arena blocks, inputs and outputs, and the dispatches are walked in order. Every written range is painted with
 * the storage it was meant for and where that begins; then
 *   - a range that is read carries the paint of the storage it is meant to read, from the same beginning, put there in
 *     an earlier wave
 *   - within one wave no range is written that another step reads or writes (write-only parts of one node excepted)
 *   - nothing lies outside its buffer, and every output is painted as a whole at the end
 *   - a step that is done once for all lanes reads only what they share, and no other step writes that
 * Sync validation cannot do this: it is blind to addresses.
 */
#include "plan/plan.h"

#include <stdlib.h>

typedef struct range {
    uint32_t space; /* binding number */
    uint64_t begin, end;
    uint8_t access;
    int32_t step;
    int64_t tag;     /* storage and problem that the bytes are meant for */
    uint64_t origin; /* where the copy of the storage that owns the bytes begins, by this operand's account */
    uint64_t copy;   /* which one that is */
} range;

typedef struct paint {
    uint64_t begin, end;
    int64_t tag;
    int32_t wave;
    uint64_t origin, copy;
} paint;

typedef struct space {
    paint *paints; /* sorted, disjoint */
    int32_t n, capacity;
} space;

/* Where the operands met so far say that an arena storage lies. */
typedef struct home {
    bool known;
    uint32_t space;
    uint64_t origin, lane_stride;
} home;

typedef struct touch {
    uint64_t begin, end;
    int32_t step;
    uint8_t access;
} touch;

typedef struct verifier {
    const plan *p;
    uint32_t lanes;
    int32_t *wave; /* of each step, by the dispatch it is in; -1: not seen */
    space *spaces;
    home *homes; /* by storage */
    range *ranges; /* of the current wave */
    int32_t n_ranges, cap_ranges;
    int32_t *open; /* ranges that reach beyond the current one */
    int32_t cap_open;
    arena *memory;
    braid_error *err;
} verifier;

static braid_status fault(const verifier *v, int32_t step_id, const char *what, uint64_t at) {
    const struct step *s = v->p->steps[step_id];
    char title[256];
    return error_set(v->err, BRAID_INTERNAL, "plan: %s, kernel %s, wave %d: %s at byte %llu",
                     node_title(v->p->g->nodes[s->node], title), s->kernel, v->p->wave[step_id], what,
                     (unsigned long long)at);
}

/* ----------------------------------------------------------------------------------------------- dispatches */

/* The row as it must be where the operands are as they are. */
static braid_status check_row(verifier *v, const plan_dispatch *d, int32_t step_id, const uint8_t *row,
                              uint64_t first_tile) {
    const step *s = v->p->steps[step_id];
    uint8_t *wanted = arena_copy(v->memory, s->row, s->row_bytes);
    if (!wanted) return error_memory(v->err);
    row_header header = {(uint)first_tile, (uint)s->tiles, v->p->first_copy[s->node], 0};
    memcpy(wanted, &header, sizeof header);
    for (int i = 0; i < s->n_operands; i++) memcpy(wanted + s->operands[i].at, row + s->operands[i].at, sizeof(operand));
    if (memcmp(wanted, row, s->row_bytes) != 0) return fault(v, step_id, "the row is another", d->rows_offset);
    return BRAID_OK;
}

static braid_status check_dispatch(verifier *v, const plan_dispatch *d, int32_t first_step, uint64_t rows_offset) {
    const plan *p = v->p;
    if (d->first_step != first_step || d->n_steps < 1 || d->n_steps > p->n_steps - first_step ||
        d->rows_offset != rows_offset || (uint64_t)d->row_bytes * (uint64_t)d->n_steps > p->rows_bytes - rows_offset)
        return error_set(v->err, BRAID_INTERNAL, "plan: the dispatch of row byte %llu holds other rows than its own",
                         (unsigned long long)d->rows_offset);
    uint64_t tiles = 0;
    int32_t head = p->order[first_step];
    for (int32_t k = 0; k < d->n_steps; k++) {
        int32_t id = p->order[first_step + k];
        if (id < 0 || id >= p->n_steps || v->wave[id] >= 0)
            return error_set(v->err, BRAID_INTERNAL, "plan: step %d runs twice", id);
        const step *s = p->steps[id];
        v->wave[id] = d->wave;
        if (d->wave != p->wave[id] || d->wave < 0) return fault(v, id, "the dispatch is in another wave", 0);
        if (!plan_steps_join(p->steps[head], s) || s->row_bytes != d->row_bytes || s->copies != d->copies ||
            s->once != d->once || s->folded != d->folded)
            return fault(v, id, "the dispatch is another kernel's", 0);
        if (d->row_tiles && s->tiles != d->row_tiles) return fault(v, id, "the dispatch's rows are not equal", 0);
        TRY(check_row(v, d, id, p->rows + rows_offset + (uint64_t)k * d->row_bytes, tiles));
        tiles += s->tiles;
    }
    if (tiles != d->tiles || tiles > INT32_MAX) return fault(v, head, "the dispatch's tiles do not add up", d->tiles);
    return BRAID_OK;
}

static braid_status check_dispatches(verifier *v) {
    const plan *p = v->p;
    uint64_t rows_offset = 0;
    int32_t first_step = 0;
    for (int32_t i = 0; i < p->n_steps; i++) v->wave[i] = -1;
    for (int32_t i = 0; i < p->n_dispatches; i++) {
        const plan_dispatch *d = &p->dispatches[i];
        if (i && d->wave < p->dispatches[i - 1].wave)
            return error_set(v->err, BRAID_INTERNAL, "plan: dispatch %d comes after a later wave", i);
        TRY(check_dispatch(v, d, first_step, rows_offset));
        first_step += d->n_steps;
        rows_offset += (uint64_t)d->row_bytes * (uint64_t)d->n_steps;
    }
    if (first_step != p->n_steps) return error_set(v->err, BRAID_INTERNAL, "plan: a step is missing");
    return BRAID_OK;
}

/* ---------------------------------------------------------------------------------------------------- order */

static bool written(const plan *p, int32_t root) {
    return p->storages[root].kind == STORAGE_ARENA || p->storages[root].kind == STORAGE_OUTPUT;
}

/* Each copy is at a place of its own, or all are at one. */
static uint32_t places_of(const plan *p, const struct step *s, const step_operand *o) {
    return plan_operand_stride(p, s, o) ? s->copies : 1;
}

/* All accesses to written storages, by storage and in the order of lowering: those of storage i are at[first[i]] ... */
static braid_status list_touches(const verifier *v, touch **out, int64_t **first_out) {
    const plan *p = v->p;
    int64_t *first = arena_array(v->memory, (size_t)p->n_storages + 2, sizeof *first), n = 0;
    if (!first) return error_memory(v->err);
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i]->n_operands; k++) {
            uint32_t places = places_of(p, p->steps[i], &p->steps[i]->operands[k]);
            first[plan_root(p, p->steps[i]->operands[k].storage) + 2] += places;
            n += places;
        }
    for (int32_t i = 2; i <= p->n_storages; i++) first[i] += first[i - 1];
    touch *at = arena_array(v->memory, (size_t)n + 1, sizeof *at);
    if (!at) return error_memory(v->err);
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i]->n_operands; k++) {
            const step_operand *o = &p->steps[i]->operands[k];
            uint64_t begin = plan_offset(p, o->storage) + o->offset, stride = plan_operand_stride(p, p->steps[i], o);
            for (uint32_t c = 0; c < places_of(p, p->steps[i], o); c++, begin += stride)
                at[first[plan_root(p, o->storage) + 1]++] = (touch){begin, begin + o->bytes, i, o->access};
        }
    *out = at;
    *first_out = first;
    return BRAID_OK;
}

static bool must_wait(const plan *p, const touch *later, const touch *earlier) {
    if (!((earlier->access | later->access) & ACCESS_WRITE) || earlier->step == later->step) return false;
    if (earlier->begin >= later->end || later->begin >= earlier->end) return false;
    return !(earlier->access == ACCESS_WRITE && later->access == ACCESS_WRITE &&
             p->steps[earlier->step]->node == p->steps[later->step]->node);
}

/* Every pair with a write among the accesses to one storage; `writes` has room for all. */
static braid_status check_storage(const verifier *v, const touch *at, int64_t n, int64_t *writes) {
    int32_t last = -1; /* last wave of any access so far: most later ones are behind it */
    int64_t n_writes = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t wave = v->wave[at[i].step];
        bool writer = at[i].access & ACCESS_WRITE;
        for (int64_t k = 0; wave <= last && k < (writer ? i : n_writes); k++) {
            const touch *before = &at[writer ? k : writes[k]];
            if (v->wave[before->step] >= wave && must_wait(v->p, &at[i], before))
                return fault(v, at[i].step, "two steps of one wave meet, or come in the wrong order,", at[i].begin);
        }
        if (writer) writes[n_writes++] = i;
        if (wave > last) last = wave;
    }
    return BRAID_OK;
}

/* A step may read through one operand what it writes through another only element by element, in place. */
static braid_status check_in_place(const verifier *v, int32_t step_id) {
    const plan *p = v->p;
    const step *s = p->steps[step_id];
    for (int i = 0; i < s->n_operands; i++)
        for (int k = 0; k < s->n_operands; k++) {
            const step_operand *a = &s->operands[i], *b = &s->operands[k];
            if (a->access != ACCESS_READ || !(b->access & ACCESS_WRITE) || plan_root(p, a->storage) != plan_root(p, b->storage))
                continue;
            uint64_t begin = plan_offset(p, a->storage) + a->offset, other = plan_offset(p, b->storage) + b->offset;
            bool same = a->dense && begin == other && a->bytes == b->bytes &&
                        plan_operand_stride(p, s, a) == plan_operand_stride(p, s, b);
            if (begin < other + b->bytes && other < begin + a->bytes && !same)
                return fault(v, step_id, "a step writes over what it still reads", begin);
        }
    return BRAID_OK;
}

static braid_status check_order(const verifier *v) {
    touch *at = NULL;
    int64_t *first = NULL;
    for (int32_t i = 0; i < v->p->n_steps; i++) TRY(check_in_place(v, i));
    TRY(list_touches(v, &at, &first));
    int64_t *writes = arena_array(v->memory, (size_t)first[v->p->n_storages] + 1, sizeof *writes);
    if (!writes) return error_memory(v->err);
    for (int32_t i = 0; i < v->p->n_storages; i++)
        if (written(v->p, i)) TRY(check_storage(v, at + first[i], first[i + 1] - first[i], writes));
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- decoding */

static uint64_t space_bytes(const verifier *v, uint32_t index) {
    const plan *p = v->p;
    if (index < (uint32_t)p->n_blocks) return p->block_bytes[index] * v->lanes;
    if (index < plan_binding_input(p, (uint32_t)p->g->n_inputs))
        return p->storages[p->g->inputs[index - (uint32_t)p->n_blocks]].bytes;
    if (index < plan_binding_output(p, 0))
        return p->storages[p->joins[index - plan_binding_input(p, (uint32_t)p->g->n_inputs)].storage].bytes;
    return p->storages[p->outputs[index - plan_binding_output(p, 0)]].bytes;
}

static braid_status add_range(verifier *v, range r) {
    if (v->n_ranges == v->cap_ranges) {
        int32_t wanted = v->cap_ranges ? v->cap_ranges * 2 : 256;
        range *grown = arena_array(v->memory, (size_t)wanted, sizeof *grown);
        if (!grown) return error_memory(v->err);
        if (v->n_ranges) memcpy(grown, v->ranges, (size_t)v->n_ranges * sizeof *grown);
        v->ranges = grown;
        v->cap_ranges = wanted;
    }
    v->ranges[v->n_ranges++] = r;
    return BRAID_OK;
}

/* Constants, inputs and outputs have one place each. */
static braid_status check_place(const verifier *v, int32_t step_id, const step_operand *o, const operand *e) {
    const plan *p = v->p;
    const storage *s = &p->storages[plan_root(p, o->storage)];
    uint64_t inside = plan_offset(p, o->storage) + o->offset;
    bool ok = false;
    switch (s->kind) {
    case STORAGE_CONST:
        if (o->access & ACCESS_WRITE) return fault(v, step_id, "a constant is written", e->base);
        ok = e->kind == OPERAND_DIRECT && e->base == s->offset + inside && !e->lane_stride;
        break;
    case STORAGE_INPUT:
        if (o->access & ACCESS_WRITE) return fault(v, step_id, "an input is written", e->base);
        ok = e->kind == OPERAND_BINDING && e->index == plan_binding_input(p, s->index) && e->base == inside && !e->lane_stride;
        break;
    case STORAGE_OUTPUT:
        ok = e->kind == OPERAND_BINDING && e->index == plan_binding_output(p, s->index) && e->base == inside && !e->lane_stride;
        break;
    case STORAGE_ARENA:
        ok = e->kind == OPERAND_BINDING && e->index < (uint32_t)p->n_blocks;
        break;
    case STORAGE_NONE:
        break;
    }
    return ok ? BRAID_OK : fault(v, step_id, "an operand lies elsewhere", e->base);
}

/* All operands agree on where a storage lies: what is overwritten in place must not leave its old bytes behind. */
static braid_status check_home(const verifier *v, int32_t step_id, const step_operand *o, const operand *e) {
    int32_t root = plan_root(v->p, o->storage);
    home *at = &v->homes[root], here = {true, e->index, e->base - plan_offset(v->p, o->storage) - o->offset, e->lane_stride};
    if (v->p->storages[root].kind != STORAGE_ARENA) return BRAID_OK;
    if (!at->known) *at = here;
    bool same = at->space == here.space && at->origin == here.origin && at->lane_stride == here.lane_stride;
    return same ? BRAID_OK : fault(v, step_id, "an operand lies elsewhere than others of its tensor,", e->base);
}

/* One operand of one problem, which by its account begins `inside` its storage. Of a storage with copies each has an
   origin of its own; a view that is read may reach over several. */
static braid_status add_place(verifier *v, range r, const storage *root, uint64_t bytes, uint64_t inside) {
    uint64_t whole = root->copies > 1 ? root->copy_stride : 0;
    if (whole && (r.access & ACCESS_WRITE) && inside % whole + bytes > whole)
        return fault(v, r.step, "a write reaches into the next copy", r.begin);
    while (bytes) {
        uint64_t within = whole ? inside % whole : inside, piece = whole && whole - within < bytes ? whole - within : bytes;
        r.end = r.begin + piece;
        r.copy = whole ? inside / whole : 0;
        r.origin = r.begin - within; /* may wrap around: then nothing equals it */
        if (r.end < r.begin || r.end > space_bytes(v, r.space))
            return fault(v, r.step, "an operand ends outside its buffer", r.begin);
        TRY(add_range(v, r));
        r.begin += piece;
        inside += piece;
        bytes -= piece;
    }
    return BRAID_OK;
}

/* Each copy of each lane; what all lanes share counts as lane 0's. */
static braid_status decode_ranges(verifier *v, int32_t step_id, const step_operand *o, const operand *e) {
    bool in_arena = e->index < (uint32_t)v->p->n_blocks;
    uint32_t copies = e->copy_stride ? v->p->steps[step_id]->copies : 1;
    int32_t root = plan_root(v->p, o->storage);
    bool once = v->p->steps[step_id]->once, shared = v->p->storages[root].once;
    uint64_t inside = plan_offset(v->p, o->storage) + o->offset, expected = plan_copy_stride(v->p, o->storage);
    for (uint32_t lane = 0; lane < (in_arena && !once ? v->lanes : 1); lane++)
        for (uint32_t copy = 0; copy < copies; copy++) {
            range r = {e->index, e->base + lane * e->lane_stride + copy * e->copy_stride, 0, o->access, step_id,
                       (int64_t)root * v->lanes + (shared ? 0 : lane), 0, 0};
            TRY(add_place(v, r, &v->p->storages[root], o->bytes, inside + copy * expected));
        }
    return BRAID_OK;
}

/* Copies must not write over each other, nor all into one. */
static braid_status check_copies(const verifier *v, int32_t step_id, const step_operand *o, const operand *e) {
    bool many = v->p->steps[step_id]->copies > 1;
    if (e->copy_stride != plan_operand_stride(v->p, v->p->steps[step_id], o))
        return fault(v, step_id, "copies lie elsewhere", e->base);
    if (many && (o->access & ACCESS_WRITE) && e->copy_stride < o->bytes)
        return fault(v, step_id, "copies write the same bytes", e->base);
    return BRAID_OK;
}

static braid_status check_once(const verifier *v, int32_t step_id, const step_operand *o, const operand *e) {
    bool once = v->p->steps[step_id]->once, shared = v->p->storages[plan_root(v->p, o->storage)].once;
    if (once && !shared) return fault(v, step_id, "a step done once meets one lane's tensor", e->base);
    if (!once && shared && (o->access & ACCESS_WRITE)) return fault(v, step_id, "a lane writes what all share", e->base);
    return BRAID_OK;
}

static braid_status decode_operand(verifier *v, int32_t step_id, const step_operand *o, const uint8_t *row) {
    operand e;
    memcpy(&e, row + o->at, sizeof e);
    if (!o->bytes) return BRAID_OK;
    TRY(check_place(v, step_id, o, &e));
    TRY(check_home(v, step_id, o, &e));
    TRY(check_copies(v, step_id, o, &e));
    if (e.kind == OPERAND_DIRECT) return BRAID_OK;
    TRY(check_once(v, step_id, o, &e));
    return decode_ranges(v, step_id, o, &e);
}

static braid_status decode_dispatch(verifier *v, const plan_dispatch *d) {
    const uint8_t *row = v->p->rows + d->rows_offset;
    for (int32_t k = 0; k < d->n_steps; k++, row += d->row_bytes) {
        int32_t step_id = v->p->order[d->first_step + k];
        for (int i = 0; i < v->p->steps[step_id]->n_operands; i++)
            TRY(decode_operand(v, step_id, &v->p->steps[step_id]->operands[i], row));
    }
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- checking */

static int by_place(const void *x, const void *y) {
    const range *a = x, *b = y;
    if (a->space != b->space) return a->space < b->space ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* What one step does to one storage for one problem is its own affair. */
static bool conflict(const verifier *v, const range *a, const range *b) {
    if ((a->step == b->step && a->tag == b->tag) || !((a->access | b->access) & ACCESS_WRITE)) return false;
    bool parts = a->access == ACCESS_WRITE && b->access == ACCESS_WRITE && a->tag == b->tag &&
                 v->p->steps[a->step]->node == v->p->steps[b->step]->node;
    return !parts;
}

/* Sweeps over the ranges by their beginnings. Open ranges are kept in two lists, written ones from the front and others
   from the back, so that readers of the same bytes do not look at each other. */
static braid_status check_wave(verifier *v) {
    int32_t n = v->n_ranges, writes = 0, reads = 0;
    if (n > v->cap_open) {
        v->cap_open = v->cap_ranges;
        if (!(v->open = arena_array(v->memory, (size_t)v->cap_open, sizeof *v->open))) return error_memory(v->err);
    }
    int32_t *end = v->open + v->cap_open;
    qsort(v->ranges, (size_t)n, sizeof *v->ranges, by_place);
    for (int32_t i = 0; i < n; i++) {
        const range *a = &v->ranges[i];
        int32_t kept = 0;
        for (int32_t k = 0; k < writes; k++) {
            const range *b = &v->ranges[v->open[k]];
            if (b->space != a->space || b->end <= a->begin) continue;
            if (conflict(v, a, b)) return fault(v, a->step, "two steps of one wave meet", a->begin);
            v->open[kept++] = v->open[k];
        }
        writes = kept;
        if (!(a->access & ACCESS_WRITE)) {
            end[-++reads] = i;
            continue;
        }
        kept = 0;
        for (int32_t k = 1; k <= reads; k++) {
            const range *b = &v->ranges[end[-k]];
            if (b->space != a->space || b->end <= a->begin) continue;
            if (conflict(v, a, b)) return fault(v, a->step, "two steps of one wave meet", a->begin);
            end[-++kept] = end[-k];
        }
        reads = kept;
        v->open[writes++] = i;
    }
    return BRAID_OK;
}

/* First paint that ends behind `at`. */
static int32_t paint_find(const space *s, uint64_t at) {
    int32_t low = 0, high = s->n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (s->paints[middle].end <= at) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Inputs are written by the caller; everything else must carry the right paint over the whole range. */
static braid_status check_read(const verifier *v, const range *r, int32_t wave) {
    const plan *p = v->p;
    if (r->space >= (uint32_t)p->n_blocks && r->space < plan_binding_output(p, 0)) return BRAID_OK;
    const space *s = &v->spaces[r->space];
    uint64_t at = r->begin;
    for (int32_t i = paint_find(s, at); i < s->n && at < r->end; i++) {
        const paint *q = &s->paints[i];
        if (q->begin > at) break;
        if (q->tag != r->tag || q->origin != r->origin || q->copy != r->copy) return fault(v, r->step, "a read finds another tensor's bytes", at);
        if (q->wave >= wave) return fault(v, r->step, "a read has no barrier before it", at);
        at = q->end;
    }
    return at >= r->end ? BRAID_OK : fault(v, r->step, "a read finds bytes that nobody wrote", at);
}

static bool insert(verifier *v, space *s, int32_t at, paint q) {
    if (s->n == s->capacity) {
        int32_t wanted = s->capacity ? s->capacity * 2 : 32;
        paint *grown = arena_array(v->memory, (size_t)wanted, sizeof *grown);
        if (!grown) return false;
        if (s->n) memcpy(grown, s->paints, (size_t)s->n * sizeof *grown);
        s->paints = grown;
        s->capacity = wanted;
    }
    memmove(&s->paints[at + 1], &s->paints[at], (size_t)(s->n - at) * sizeof *s->paints);
    s->paints[at] = q;
    s->n++;
    return true;
}

/* Paints over whatever was there, cutting it where it sticks out. */
static braid_status paint_range(verifier *v, const range *r, int32_t wave) {
    space *s = &v->spaces[r->space];
    int32_t first = paint_find(s, r->begin), end = first;
    paint left = {0}, right = {0};
    while (end < s->n && s->paints[end].begin < r->end) end++;
    if (end > first) {
        left = s->paints[first];
        right = s->paints[end - 1];
        memmove(&s->paints[first], &s->paints[end], (size_t)(s->n - end) * sizeof *s->paints);
        s->n -= end - first;
    }
    bool ok = true;
    if (end > first && right.end > r->end) {
        right.begin = r->end;
        ok = insert(v, s, first, right);
    }
    ok = ok && insert(v, s, first, (paint){r->begin, r->end, r->tag, wave, r->origin, r->copy});
    if (ok && end > first && left.begin < r->begin) {
        left.end = r->begin;
        ok = insert(v, s, first, left);
    }
    return ok ? BRAID_OK : error_memory(v->err);
}

static braid_status verify_wave(verifier *v, int32_t wave) {
    TRY(check_wave(v));
    for (int32_t i = 0; i < v->n_ranges; i++)
        if (v->ranges[i].access & ACCESS_READ) TRY(check_read(v, &v->ranges[i], wave));
    for (int32_t i = 0; i < v->n_ranges; i++)
        if (v->ranges[i].access & ACCESS_WRITE) TRY(paint_range(v, &v->ranges[i], wave));
    v->n_ranges = 0;
    return BRAID_OK;
}

static braid_status check_outputs(const verifier *v) {
    for (int32_t i = 0; i < v->p->n_outputs; i++) {
        const space *s = &v->spaces[plan_binding_output(v->p, (uint32_t)i)];
        const storage *x = &v->p->storages[v->p->outputs[i]];
        int32_t k = 0;
        for (int32_t copy = 0; copy < x->copies; copy++) { /* between copies there may be gaps */
            uint64_t begin = x->copy_stride * (uint64_t)copy, at = begin;
            while (k < s->n && s->paints[k].end <= begin) k++;
            for (; k < s->n && s->paints[k].begin <= at && at < begin + x->one; k++) at = s->paints[k].end;
            if (k > 0) k--; /* it may reach into the next copy */
            if (at < begin + x->one)
                return error_set(v->err, BRAID_INTERNAL, "plan: nobody writes byte %llu of output %d",
                                 (unsigned long long)at, i);
        }
    }
    return BRAID_OK;
}

static braid_status verify_all(verifier *v) {
    const plan *p = v->p;
    v->spaces = arena_array(v->memory, (size_t)plan_bindings(p) + 1, sizeof *v->spaces);
    v->wave = arena_array(v->memory, (size_t)p->n_steps + 1, sizeof *v->wave);
    v->homes = arena_array(v->memory, (size_t)p->n_storages + 1, sizeof *v->homes);
    if (!v->spaces || !v->wave || !v->homes) return error_memory(v->err);
    TRY(check_dispatches(v));
    TRY(check_order(v));
    for (int32_t i = 0; i < p->n_dispatches; i++) {
        if (i && p->dispatches[i].wave != p->dispatches[i - 1].wave) TRY(verify_wave(v, p->dispatches[i - 1].wave));
        TRY(decode_dispatch(v, &p->dispatches[i]));
    }
    if (p->n_dispatches) TRY(verify_wave(v, p->dispatches[p->n_dispatches - 1].wave));
    return check_outputs(v);
}

braid_status plan_verify(const plan *p, uint32_t lanes, braid_error *err) {
    verifier v = {.p = p, .lanes = lanes, .err = err, .memory = arena_new()};
    if (!v.memory) return error_memory(err);
    braid_status status = verify_all(&v);
    arena_free(v.memory);
    return status;
}
