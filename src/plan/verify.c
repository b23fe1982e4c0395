/*
 * verify.c: proves a plan from its bytes.
 *
 * It decodes the row table, lane by lane, into byte ranges of arena blocks, inputs, outputs and constants, and walks the
 * dispatches in order. Every written range is painted with the storage it was meant for and where that begins; then
 *   - a range that is read carries the paint of the storage it is meant to read, from the same beginning, put there in
 *     an earlier wave
 *   - within one wave no range is written that another step reads or writes (write-only parts of one node excepted)
 *   - nothing lies outside its buffer
 * Sync validation cannot do this: it is blind to addresses.
 */
#include "plan/plan.h"

#include <stdlib.h>

typedef struct range {
    uint32_t space; /* binding number; UINT32_MAX: constants */
    uint64_t begin, end;
    uint8_t access;
    int32_t step, tag;
    uint64_t origin; /* where the storage that owns the bytes begins, by this operand's account */
} range;

typedef struct paint {
    uint64_t begin, end;
    int32_t tag, wave;
    uint64_t origin;
} paint;

typedef struct space {
    paint *paints; /* sorted, disjoint */
    int32_t n, capacity;
} space;

typedef struct verifier {
    const plan *p;
    uint32_t lanes;
    space *spaces;
    range *ranges; /* of the current wave */
    int32_t n_ranges, cap_ranges;
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

/* ------------------------------------------------------------------------------------------------- decoding */

static uint64_t space_bytes(const verifier *v, uint32_t index) {
    const plan *p = v->p;
    if (index < (uint32_t)p->n_blocks) return p->block_bytes[index] * v->lanes;
    if (index >= plan_binding_output(p, 0)) {
        uint32_t i = index - plan_binding_output(p, 0);
        return i < (uint32_t)p->n_outputs ? p->storages[p->outputs[i]].bytes : 0;
    }
    return p->storages[p->g->inputs[index - (uint32_t)p->n_blocks]].bytes;
}

static bool in_constants(const plan *p, uint64_t begin, uint64_t end) {
    for (int32_t i = 0; i < p->n_storages; i++) {
        const storage *s = &p->storages[i];
        if (s->kind == STORAGE_CONST && begin >= s->offset && end <= s->offset + s->bytes) return true;
    }
    return false;
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

static braid_status decode_operand(verifier *v, int32_t step_id, const step_operand *o, const uint8_t *row) {
    operand e;
    memcpy(&e, row + o->at, sizeof e);
    if (!o->bytes) return BRAID_OK;
    if (e.kind == OPERAND_DIRECT) {
        if (!in_constants(v->p, e.base, e.base + o->bytes)) return fault(v, step_id, "a constant lies elsewhere", e.base);
        return (o->access & ACCESS_WRITE) ? fault(v, step_id, "a constant is written", e.base) : BRAID_OK;
    }
    if (e.kind != OPERAND_BINDING || e.index >= plan_bindings(v->p)) return fault(v, step_id, "an operand has no place", 0);
    bool in_arena = e.index < (uint32_t)v->p->n_blocks;
    int32_t root = plan_root(v->p, o->storage);
    for (uint32_t lane = 0; lane < (in_arena ? v->lanes : 1); lane++) {
        range r = {e.index, e.base + lane * e.lane_stride, 0, o->access, step_id,
                   (int32_t)((uint32_t)root * v->lanes + lane), 0};
        r.end = r.begin + o->bytes;
        r.origin = r.begin - plan_offset(v->p, o->storage) - o->offset; /* may wrap around: then nothing equals it */
        if (r.end > space_bytes(v, e.index)) return fault(v, step_id, "an operand ends outside its buffer", r.begin);
        TRY(add_range(v, r));
    }
    return BRAID_OK;
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

static bool conflict(const verifier *v, const range *a, const range *b) {
    if (a->step == b->step || !((a->access | b->access) & ACCESS_WRITE)) return false;
    bool parts = a->access == ACCESS_WRITE && b->access == ACCESS_WRITE && a->tag == b->tag &&
                 v->p->steps[a->step]->node == v->p->steps[b->step]->node;
    return !parts;
}

static braid_status check_wave(verifier *v) {
    qsort(v->ranges, (size_t)v->n_ranges, sizeof *v->ranges, by_place);
    for (int32_t i = 0; i < v->n_ranges; i++) {
        const range *a = &v->ranges[i];
        for (int32_t k = i + 1; k < v->n_ranges; k++) {
            const range *b = &v->ranges[k];
            if (b->space != a->space || b->begin >= a->end) break;
            if (conflict(v, a, b)) return fault(v, b->step, "two steps of one wave meet", b->begin);
        }
    }
    return BRAID_OK;
}

/* Inputs are written by the caller; everything else must carry the right paint over the whole range. */
static braid_status check_read(const verifier *v, const range *r, int32_t wave) {
    const plan *p = v->p;
    if (r->space >= (uint32_t)p->n_blocks && r->space < plan_binding_output(p, 0)) return BRAID_OK;
    const space *s = &v->spaces[r->space];
    uint64_t at = r->begin;
    for (int32_t i = 0; i < s->n && at < r->end; i++) {
        const paint *q = &s->paints[i];
        if (q->end <= at) continue;
        if (q->begin > at) break;
        if (q->tag != r->tag || q->origin != r->origin) return fault(v, r->step, "a read finds another tensor's bytes", at);
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
    int32_t i = 0;
    while (i < s->n && s->paints[i].end <= r->begin) i++;
    while (i < s->n && s->paints[i].begin < r->end) {
        paint old = s->paints[i];
        memmove(&s->paints[i], &s->paints[i + 1], (size_t)(s->n - i - 1) * sizeof *s->paints);
        s->n--;
        if (old.begin < r->begin && !insert(v, s, i++, (paint){old.begin, r->begin, old.tag, old.wave, old.origin}))
            return error_memory(v->err);
        if (old.end > r->end && !insert(v, s, i, (paint){r->end, old.end, old.tag, old.wave, old.origin})) return error_memory(v->err);
        if (old.end > r->end) break;
    }
    return insert(v, s, i, (paint){r->begin, r->end, r->tag, wave, r->origin}) ? BRAID_OK : error_memory(v->err);
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

static braid_status verify_all(verifier *v) {
    const plan *p = v->p;
    if (!(v->spaces = arena_array(v->memory, (size_t)plan_bindings(p) + 1, sizeof *v->spaces)))
        return error_memory(v->err);
    for (int32_t i = 0; i < p->n_dispatches; i++) {
        if (i && p->dispatches[i].wave < p->dispatches[i - 1].wave)
            return error_set(v->err, BRAID_INTERNAL, "plan: dispatch %d comes after a later wave", i);
        if (i && p->dispatches[i].wave != p->dispatches[i - 1].wave) TRY(verify_wave(v, p->dispatches[i - 1].wave));
        TRY(decode_dispatch(v, &p->dispatches[i]));
    }
    return p->n_dispatches ? verify_wave(v, p->dispatches[p->n_dispatches - 1].wave) : BRAID_OK;
}

braid_status plan_verify(const plan *p, uint32_t lanes, braid_error *err) {
    verifier v = {.p = p, .lanes = lanes, .err = err, .memory = arena_new()};
    if (!v.memory) return error_memory(err);
    braid_status status = verify_all(&v);
    arena_free(v.memory);
    return status;
}
