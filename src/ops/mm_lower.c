/*
 * mm_lower.c: steps of a product: checks and simplifies the problem, picks the kernel, fills its row.
 */
#include "kernels/abi.h"
#include "kernels/lib/epilogue.h"
#include "kernels/rows/mm.h"
#include "ops/map.h"
#include "ops/mm.h"

#include <stddef.h>

/* Specialization constants of lib/mm.glsl and mm.comp. */
enum {
    SPEC_TYPE = 8,
    SPEC_BM,
    SPEC_BN,
    SPEC_BK,
    SPEC_TM,
    SPEC_TN,
    SPEC_LOAD_A,
    SPEC_LOAD_B,
    SPEC_MODE,
    SPEC_KERNEL,
    SPEC_STAGES = 20,
    SPEC_STORE4,
    SPEC_SWAP
};
enum { MODE_WHOLE, MODE_CHUNKED, MODE_SPLIT };
enum { LOAD_K4, LOAD_ROW4, LOAD_K, LOAD_ROW, LOAD_IMAGE, LOAD_TRANSPOSED };
enum { SUM_GROUP = 256, SUM_ITEMS = 4 };

/* Drops batch dims of 1 and joins neighbours that every operand walks alike; false when more than three remain. */
static bool merge_batch(mm_shape *s) {
    int n = 0;
    for (int i = 0; i < s->n_batch; i++) {
        if (s->batch[i] == 1) continue;
        int64_t d = s->batch[i];
        if (n > 0 && s->a_batch[n - 1] == s->a_batch[i] * d && s->b_batch[n - 1] == s->b_batch[i] * d &&
            s->bias_batch[n - 1] == s->bias_batch[i] * d) {
            d *= s->batch[--n];
        }
        s->a_batch[n] = s->a_batch[i];
        s->b_batch[n] = s->b_batch[i];
        s->bias_batch[n] = s->bias_batch[i];
        s->batch[n++] = d;
    }
    s->n_batch = n;
    return n <= 3;
}

static int64_t batches_of(const mm_shape *s) {
    int64_t n = 1;
    for (int i = 0; i < s->n_batch; i++) n *= s->batch[i];
    return n;
}

/* Is the last index of a matrix below 2^31 elements. */
static bool reachable(int64_t rows, int64_t row, int64_t columns, int64_t column) {
    int64_t a, b, sum;
    return i64_mul(rows - 1, row, &a) && i64_mul(columns - 1, column, &b) && i64_add(a, b, &sum) && sum < INT32_MAX;
}

static bool mm_reachable(const mm_problem *p) {
    const mm_shape *s = &p->s;
    int64_t k = s->k ? s->k : 1;
    if (s->m > INT32_MAX || s->n > INT32_MAX || s->k > INT32_MAX - 65536 || batches_of(s) > INT32_MAX) return false;
    if (!reachable(s->m, s->n, s->n, 1)) return false;
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

static bool fours(int64_t bytes_of_element, const mm_operand *o, const int64_t *batch, int n_batch) {
    for (int i = 0; i < n_batch; i++)
        if (batch[i] % 4 != 0) return false;
    return o->bytes % (uint64_t)(4 * bytes_of_element) == 0;
}

/* How mm.comp fetches a matrix of `rows` (m of A, n of B) by k. */
static uint32_t load_kind(const mm_problem *p, const mm_operand *o, const int64_t *batch, int64_t rows, int64_t row,
                          int64_t k_stride) {
    bool vectors = fours((int64_t)braid_type_bytes(p->type), o, batch, p->s.n_batch);
    if (vectors && k_stride == 1 && p->s.k % 4 == 0 && (row % 4 == 0 || rows == 1)) return LOAD_K4;
    if (vectors && row == 1 && rows % 4 == 0 && (k_stride % 4 == 0 || p->s.k == 1)) return LOAD_ROW4;
    return k_stride <= row ? LOAD_K : LOAD_ROW;
}

static void row_image(row_mm *row, const conv *c) {
    for (int i = 0; i < 3; i++) {
        int from = i - (3 - c->axes);
        bool is = from >= 0;
        row->in_size[i] = is ? (uint32_t)c->in[from] : 1;
        row->out_size[i] = is ? (uint32_t)c->out[from] : 1;
        row->stride[i] = is ? (uint32_t)c->stride[from] : 1;
        row->dilation[i] = is ? (uint32_t)c->dilation[from] : 1;
        row->pad[i] = is ? (int32_t)c->begin[from] : 0;
    }
}

static row_mm row_fill(const mm_problem *p, const mm_cut *cut) {
    const mm_shape *s = &p->s;
    row_mm row = {.m = (uint32_t)s->m,
                  .n = (uint32_t)s->n,
                  .k = (uint32_t)s->k,
                  .chunk = cut->chunk,
                  .splits = cut->splits,
                  .a_m = (uint32_t)s->a_m,
                  .a_k = (uint32_t)s->a_k,
                  .b_k = (uint32_t)s->b_k,
                  .b_n = (uint32_t)s->b_n,
                  .c_m = (uint32_t)s->n,
                  .c_n = 1,
                  .bias_m = (uint32_t)p->bias_m,
                  .bias_n = (uint32_t)p->bias_n,
                  .alpha = p->alpha,
                  .beta = p->beta,
                  .groups = (uint32_t)p->groups,
                  .batch = {1, 1, 1}};
    for (int i = 0; i < s->n_batch; i++) {
        int to = 3 - s->n_batch + i;
        row.batch[to] = (uint32_t)s->batch[i];
        row.a_batch[to] = (uint64_t)s->a_batch[i];
        row.b_batch[to] = (uint64_t)s->b_batch[i];
        row.bias_batch[to] = (uint64_t)s->bias_batch[i];
    }
    row.tiles_m = (row.m - 1) / cut->bm + 1;
    row.tiles_n = (row.n - 1) / cut->bn + 1;
    if (p->image) row_image(&row, p->image);
    return row;
}

/* C^T = B^T A^T: exchanges m and n. */
static void row_swap(row_mm *r) {
#define SWAP(a, b)                                                                                                     \
    do {                                                                                                               \
        uint32_t t_ = r->a;                                                                                            \
        r->a = r->b;                                                                                                   \
        r->b = t_;                                                                                                     \
    } while (0)
    SWAP(m, n);
    SWAP(a_m, b_n);
    SWAP(a_k, b_k);
    SWAP(c_m, c_n);
    SWAP(bias_m, bias_n);
    for (int i = 0; i < 3; i++) {
        uint64_t t = r->a_batch[i];
        r->a_batch[i] = r->b_batch[i];
        r->b_batch[i] = t;
    }
#undef SWAP
}

/* Operands that finish a sum: C, bias, the epilogue's. */
static braid_status finish_operands(lowering *l, step *s, const mm_problem *p) {
    TRY(lower_operand(l, s, offsetof(row_mm, c), p->c.storage, 0, p->c.bytes, ACCESS_WRITE));
    if (p->bias.storage >= 0)
        TRY(lower_operand(l, s, offsetof(row_mm, bias), p->bias.storage, 0, p->bias.bytes, ACCESS_READ));
    TRY(lower_spec(l, s, SPEC_TYPE, (uint32_t)p->type));
    if (!p->epilogue || !l->node->epilogue) return BRAID_OK;
    return map_lower_epilogue(l, s, offsetof(row_mm, e), p->row_axis, p->col_axis);
}

static braid_status tile_specs(lowering *l, step *s, const mm_problem *p, const mm_cut *cut) {
    uint32_t specs[][2] = {
        {SPEC_BM, cut->bm}, {SPEC_BN, cut->bn}, {SPEC_BK, cut->bk}, {SPEC_TM, cut->tm}, {SPEC_TN, cut->tn}};
    for (size_t i = 0; i < COUNT_OF(specs); i++) TRY(lower_spec(l, s, specs[i][0], specs[i][1]));
    for (int i = 0; p->image && i < p->image->axes; i++)
        TRY(lower_spec(l, s, (uint32_t)(SPEC_KERNEL + 3 - p->image->axes + i), (uint32_t)p->image->kernel[i]));
    return BRAID_OK;
}

static const char *kernel_of(const lowering *l, const mm_problem *p, const char *const names[4]) {
    if (p->type == BRAID_FLOAT64) return names[3];
    if (!type_is_float(p->type)) return names[2];
    return names[p->epilogue && l->node->epilogue ? 1 : 0];
}

static void step_cost(step *s, const mm_problem *p) {
    s->flops = 2 * (uint64_t)p->s.m * (uint64_t)p->s.n * (uint64_t)p->s.k * (uint64_t)batches_of(&p->s);
    s->bytes = p->a.bytes + p->b.bytes + p->c.bytes;
}

/* Kernel mms; m and n exchanged where n is too narrow for its invocations. */
static braid_status lower_direct(lowering *l, const mm_problem *p, mm_cut cut) {
    static const char *const names[] = {"mms_real", "mms_fused", "mms_int", "mms_f64"};
    bool swap = !p->image && p->s.n < 8 && p->s.m > p->s.n;
    if (swap) {
        mm_problem q = *p;
        q.s.m = p->s.n;
        q.s.n = p->s.m;
        cut = mm_choose(l->device, &q);
    }
    row_mm row = row_fill(p, &cut);
    if (swap) row_swap(&row);
    if (p->image && !p->transposed) row.a_k = row.k / (uint32_t)(p->image->channels / p->image->groups);
    row.tiles_m = (row.m - 1) / cut.bm + 1;
    row.tiles_n = (row.n - 1) / cut.bn + 1;
    uint64_t tiles = 0, entries = (uint64_t)batches_of(&p->s);
    if (__builtin_mul_overflow((uint64_t)row.tiles_m * row.tiles_n, entries, &tiles) || tiles > UINT32_MAX)
        return BRAID_UNSUPPORTED;
    step *s = lower_step(l, kernel_of(l, p, names), &row, sizeof row, tiles, cut.group);
    if (!s) return error_memory(l->err);
    const mm_operand *a = swap ? &p->b : &p->a, *b = swap ? &p->a : &p->b;
    TRY(lower_operand(l, s, offsetof(row_mm, a), a->storage, 0, a->bytes, ACCESS_READ));
    TRY(lower_operand(l, s, offsetof(row_mm, b), b->storage, 0, b->bytes, ACCESS_READ));
    TRY(tile_specs(l, s, p, &cut));
    TRY(lower_spec(l, s, SPEC_LOAD_B, p->transposed ? LOAD_TRANSPOSED : p->image ? LOAD_IMAGE : LOAD_ROW));
    TRY(lower_spec(l, s, SPEC_SWAP, swap));
    step_cost(s, p);
    return finish_operands(l, s, p);
}

/* The second step of a split product: adds the chunks' sums and finishes. */
static braid_status lower_sum(lowering *l, const mm_problem *p, row_mm row, int32_t partial, uint64_t bytes) {
    static const char *const names[] = {"mmsum_real", "mmsum_fused", "mmsum_int", "mmsum_f64"};
    uint64_t entry = (uint64_t)row.m * row.n;
    row.tiles_m = (uint32_t)((entry - 1) / (SUM_GROUP * SUM_ITEMS) + 1);
    row.tiles_n = 1;
    step *s =
        lower_step(l, kernel_of(l, p, names), &row, sizeof row, row.tiles_m * (uint64_t)batches_of(&p->s), SUM_GROUP);
    if (!s) return error_memory(l->err);
    s->bytes = bytes + p->c.bytes;
    TRY(lower_operand(l, s, offsetof(row_mm, partial), partial, 0, bytes, ACCESS_READ));
    return finish_operands(l, s, p);
}

static braid_status lower_tiled(lowering *l, const mm_problem *p, mm_cut cut) {
    static const char *const names[] = {"mm_real", "mm_fused", "mm_int", "mm_f64"};
    const mm_shape *m = &p->s;
    bool split = cut.splits > 1;
    row_mm row = row_fill(p, &cut);
    uint64_t entries = (uint64_t)batches_of(m), tiles = 0, bytes = 0;
    if (__builtin_mul_overflow((uint64_t)row.tiles_m * row.tiles_n, entries * cut.splits, &tiles) || tiles > UINT32_MAX)
        return BRAID_UNSUPPORTED;
    uint64_t sums = (uint64_t)m->m * (uint64_t)m->n * entries;
    uint32_t accumulator = p->type == BRAID_FLOAT64 || !type_is_float(p->type) ? 8 : 4;
    if (split && __builtin_mul_overflow(sums, (uint64_t)cut.splits * accumulator, &bytes)) return BRAID_UNSUPPORTED;
    step *s = lower_step(l, split && accumulator == 4 ? names[0] : kernel_of(l, p, names), &row, sizeof row, tiles,
                         cut.group);
    if (!s) return error_memory(l->err);
    step_cost(s, p);
    TRY(lower_operand(l, s, offsetof(row_mm, a), p->a.storage, 0, p->a.bytes, ACCESS_READ));
    TRY(lower_operand(l, s, offsetof(row_mm, b), p->b.storage, 0, p->b.bytes, ACCESS_READ));
    TRY(tile_specs(l, s, p, &cut));
    TRY(lower_spec(l, s, SPEC_LOAD_A, load_kind(p, &p->a, m->a_batch, m->m, m->a_m, m->a_k)));
    TRY(lower_spec(l, s, SPEC_LOAD_B, p->image ? LOAD_IMAGE : load_kind(p, &p->b, m->b_batch, m->n, m->b_n, m->b_k)));
    TRY(lower_spec(l, s, SPEC_MODE, split ? MODE_SPLIT : m->k > cut.chunk ? MODE_CHUNKED : MODE_WHOLE));
    TRY(lower_spec(l, s, SPEC_STAGES, accumulator == 8 ? 1 : 2));
    if (split) {
        int32_t partial = lower_scratch(l, bytes);
        TRY(lower_operand(l, s, offsetof(row_mm, partial), partial, 0, bytes, ACCESS_WRITE));
        TRY(lower_spec(l, s, SPEC_TYPE, (uint32_t)p->type));
        return lower_sum(l, p, row, partial, bytes);
    }
    TRY(lower_spec(l, s, SPEC_STORE4, m->n % 4 == 0 && p->c.bytes % 16 == 0));
    return finish_operands(l, s, p);
}

braid_status mm_lower(lowering *l, const mm_problem *problem) {
    mm_problem p = *problem;
    bool real = type_is_float(p.type) && p.type != BRAID_FLOAT64;
    bool integer = type_is_integer(p.type) && braid_type_bytes(p.type) >= 4;
    if (!real && !(integer && p.alpha == 1 && p.beta == 1) && !(p.type == BRAID_FLOAT64 && l->device->float64))
        return BRAID_UNSUPPORTED;
    if (!real && l->node->epilogue) return BRAID_UNSUPPORTED;
    if (p.s.m == 0 || p.s.n == 0 || batches_of(&p.s) == 0) return BRAID_OK;
    if (!merge_batch(&p.s) || !mm_reachable(&p)) return BRAID_UNSUPPORTED;
    if (p.groups == 0) p.groups = 1;
    mm_cut cut = mm_choose(l->device, &p);
    return cut.bk == 0 ? lower_direct(l, &p, cut) : lower_tiled(l, &p, cut);
}
