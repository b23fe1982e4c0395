/*
 * mm_lower.c: steps of a product: checks and simplifies the problem, picks the kernel, names its operands.
 */
#include "ops/map.h"
#include "ops/mm_code.h"

#include <stddef.h>

/* Is the last index of a matrix below 2^31 elements. */
static bool reachable(int64_t rows, int64_t row, int64_t columns, int64_t column) {
    int64_t a, b, sum;
    return i64_mul(rows - 1, row, &a) && i64_mul(columns - 1, column, &b) && i64_add(a, b, &sum) && sum < INT32_MAX;
}

static bool mm_reachable(const mm_problem *p) {
    const mm_shape *s = &p->s;
    int64_t k = s->k ? s->k : 1;
    if (s->m > INT32_MAX || s->n > INT32_MAX || s->k > INT32_MAX - 65536 || mm_batches(s) > INT32_MAX) return false;
    if (!reachable(s->m, s->n, s->n, 1) || !reachable(s->m, s->c_m, s->n, s->c_n)) return false;
    if (!p->image) return reachable(s->m, s->a_m, k, s->a_k) && reachable(k, s->b_k, s->n, s->b_n);
    if (!reachable(s->m, k, k, 1)) return false;
    const conv *c = p->image;
    for (int i = 0; i < c->axes; i++) { /* coordinates, pads included, are 32-bit too */
        int64_t reach = c->in[i] + c->begin[i] + c->end[i];
        if (reach >= INT32_MAX || c->out[i] * c->stride[i] >= INT32_MAX || c->dilation[i] * c->kernel[i] >= INT32_MAX)
            return false;
    }
    return reachable(c->channels / c->groups, s->b_k, s->b_k, 1);
}

static step *step_new(lowering *l, const mm_code *c, const char *apart) {
    if (c->tiles > UINT32_MAX) return NULL;
    step *s = lower_step(l, c->kernel, &c->row, sizeof c->row, c->tiles, c->group);
    if (!s) return NULL;
    s->folded = c->folded;
    s->latency = c->latency;
    s->apart = apart;
    for (uint32_t i = 0; i < c->n_spec; i++)
        if (lower_spec(l, s, c->spec_ids[i], c->spec[i]) != BRAID_OK) return NULL;
    return s;
}

/* Operands that finish a sum: C, bias, the epilogue's. */
static braid_status finish_operands(lowering *l, step *s, const mm_problem *p) {
    TRY(lower_operand(l, s, offsetof(row_mm, c), p->c.storage, 0, p->c.bytes, ACCESS_WRITE));
    if (p->bias.storage >= 0)
        TRY(lower_operand(l, s, offsetof(row_mm, bias), p->bias.storage, 0, p->bias.bytes, ACCESS_READ));
    if (!p->epilogue || !l->node->epilogue) return BRAID_OK;
    return map_lower_epilogue(l, s, offsetof(row_mm, e), p->row_axis, p->col_axis);
}

braid_status mm_lower(lowering *l, const mm_problem *problem) {
    mm_problem p = *problem;
    bool real = type_is_float(p.type) && p.type != BRAID_FLOAT64;
    bool integer = type_is_integer(p.type) && braid_type_bytes(p.type) >= 4;
    if (!real && !(integer && p.alpha == 1 && p.beta == 1) && !(p.type == BRAID_FLOAT64 && l->device->float64))
        return BRAID_UNSUPPORTED;
    if (!real && l->node->epilogue) return BRAID_UNSUPPORTED;
    if (p.s.m == 0 || p.s.n == 0 || mm_batches(&p.s) == 0) return BRAID_OK;
    if (!mm_merge_batch(&p.s) || !mm_reachable(&p)) return BRAID_UNSUPPORTED;
    p.fused = p.epilogue && l->node->epilogue;
    p.free_order = l->free_order;
    p.a_shared = lower_shared(l, p.a.storage);
    p.b_shared = lower_shared(l, p.b.storage);
    mm_cut cut = mm_choose(l->device, &p, l->problems);
    mm_code c = mm_encode(l->device, &p, cut, l->problems);
    uint64_t bytes = 0;
    if (c.tiles > UINT32_MAX || !mm_partial_bytes(&p, cut, &bytes)) return BRAID_UNSUPPORTED;
    bool can_fold = !p.transposed && (p.a_shared || (p.b_shared && !p.image));
    step *s = step_new(l, &c, can_fold ? "cheaper than folded" : "its matrices differ");
    if (!s) return error_memory(l->err);
    s->flops = 2 * (uint64_t)p.s.m * (uint64_t)p.s.n * (uint64_t)p.s.k * (uint64_t)mm_batches(&p.s);
    s->bytes = p.a.bytes + p.b.bytes + p.c.bytes;
    const mm_operand *a = c.swapped ? &p.b : &p.a, *b = c.swapped ? &p.a : &p.b;
    TRY(lower_operand(l, s, offsetof(row_mm, a), a->storage, 0, a->bytes, ACCESS_READ));
    TRY(lower_operand(l, s, offsetof(row_mm, b), b->storage, 0, b->bytes, ACCESS_READ));
    if (cut.splits == 1) return finish_operands(l, s, &p);
    int32_t partial = lower_scratch(l, bytes);
    TRY(lower_operand(l, s, offsetof(row_mm, partial), partial, 0, bytes, ACCESS_WRITE));
    c = mm_encode_sum(l->device, &p, cut, l->problems);
    if (c.tiles > UINT32_MAX) return BRAID_UNSUPPORTED;
    if (!(s = step_new(l, &c, "a sum of parts"))) return error_memory(l->err);
    s->bytes = bytes + p.c.bytes;
    TRY(lower_operand(l, s, offsetof(row_mm, partial), partial, 0, bytes, ACCESS_READ));
    return finish_operands(l, s, &p);
}
