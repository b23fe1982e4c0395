/*
 * matmul.c: MatMul and Gemm. Every type of the standard; the host sums floats in double and wraps integers.
 */
#include "ops/mm.h"
#include "ops/product.h"

static braid_status product_types(const infer *c, int n) {
    braid_type first = c->in[0] ? c->in[0]->type : BRAID_TYPE_NONE;
    for (int i = 0; i < n; i++) {
        braid_type t = c->in[i] ? c->in[i]->type : BRAID_TYPE_NONE;
        if (t == BRAID_TYPE_NONE) continue;
        if (!type_is_float(t) && t != BRAID_INT32 && t != BRAID_INT64 && t != BRAID_UINT32 && t != BRAID_UINT64)
            return error_set(c->err, BRAID_TYPE, "input %d: %s is not a type of this operator", i, braid_type_name(t));
        if (first == BRAID_TYPE_NONE) first = t;
        if (t != first)
            return error_set(c->err, BRAID_TYPE, "input %d: %s, expected %s as input 0", i, braid_type_name(t),
                             braid_type_name(first));
    }
    c->out[0].type = first;
    return BRAID_OK;
}

static braid_status inner_check(const infer *c, int64_t a, int64_t b) {
    if (dim_known(a) && dim_known(b) && a != b)
        return error_set(c->err, BRAID_SHAPE, "inner dims differ: %lld of input 0, %lld of input 1", (long long)a,
                         (long long)b);
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------ MatMul */

static braid_status matmul_infer(infer *c) {
    TRY(product_types(c, 2));
    const tensor_type *a = c->in[0], *b = c->in[1];
    if (!a || !b || a->rank < 0 || b->rank < 0) return BRAID_OK;
    for (int i = 0; i < 2; i++)
        if (c->in[i]->rank == 0) return error_set(c->err, BRAID_SHAPE, "input %d: rank 0, expected at least 1", i);
    bool a_row = a->rank == 1, b_column = b->rank == 1;
    TRY(inner_check(c, a->dims[a->rank - 1], b->dims[b_column ? 0 : b->rank - 2]));
    int a_batch = a_row ? 0 : a->rank - 2, b_batch = b_column ? 0 : b->rank - 2;
    int batch = a_batch > b_batch ? a_batch : b_batch;
    tensor_type *out = &c->out[0];
    for (int i = 0; i < batch; i++) {
        int64_t da = i < batch - a_batch ? 1 : a->dims[i - (batch - a_batch)];
        int64_t db = i < batch - b_batch ? 1 : b->dims[i - (batch - b_batch)];
        if (!infer_broadcast_dim(c, da, db, &out->dims[i]))
            return error_set(c->err, BRAID_SHAPE, "batch dims %lld and %lld do not broadcast", (long long)da,
                             (long long)db);
    }
    out->rank = batch;
    if (!a_row) out->dims[out->rank++] = a->dims[a->rank - 2];
    if (!b_column) out->dims[out->rank++] = b->dims[b->rank - 1];
    return BRAID_OK;
}

static void matmul_shape(const tensor_type *a, const tensor_type *b, mm_shape *s) {
    *s = (mm_shape){.m = a->rank == 1 ? 1 : a->dims[a->rank - 2],
                    .n = b->rank == 1 ? 1 : b->dims[b->rank - 1],
                    .k = a->dims[a->rank - 1]};
    s->a_m = s->k;
    s->a_k = s->b_n = 1;
    s->b_k = s->n;
    int a_batch = a->rank < 2 ? 0 : a->rank - 2, b_batch = b->rank < 2 ? 0 : b->rank - 2;
    s->n_batch = a_batch > b_batch ? a_batch : b_batch;
    int64_t a_step = s->m * s->k, b_step = s->k * s->n;
    for (int i = s->n_batch - 1, ia = a_batch - 1, ib = b_batch - 1; i >= 0; i--, ia--, ib--) {
        int64_t da = ia >= 0 ? a->dims[ia] : 1, db = ib >= 0 ? b->dims[ib] : 1;
        s->batch[i] = da == 1 ? db : da;
        s->a_batch[i] = da == 1 ? 0 : a_step;
        s->b_batch[i] = db == 1 ? 0 : b_step;
        a_step *= da;
        b_step *= db;
    }
}

typedef struct matmul_out {
    tensor *out;
    int64_t at, n;
    bool integer;
} matmul_out;

static void matmul_store(void *user, int64_t m, int64_t n0, int64_t nn, const cell *sums) {
    const matmul_out *o = user;
    cells_store(sums, o->integer, o->out->type.type, o->out->data, o->at + m * o->n + n0, nn);
}

static braid_status matmul_eval(eval *e) {
    const tensor *a = e->in[0], *b = e->in[1];
    matmul_out o = {0};
    TRY(eval_output(e, 0, &o.out));
    mm_shape s;
    matmul_shape(&a->type, &b->type, &s);
    o.n = s.n;
    o.integer = !type_is_float(a->type.type);
    product p = {.m = s.m,
                 .n = s.n,
                 .k = s.k,
                 .integer = o.integer,
                 .a_type = a->type.type,
                 .b_type = b->type.type,
                 .a = a->data,
                 .b = b->data,
                 .a_row = s.a_m,
                 .a_column = s.a_k,
                 .b_row = s.b_k,
                 .b_column = s.b_n,
                 .store = matmul_store,
                 .user = &o};
    TRY(product_prepare(&p, e->memory, e->err));
    int64_t batches = 1;
    for (int i = 0; i < s.n_batch; i++) batches *= s.batch[i];
    for (int64_t i = 0; i < batches; i++) {
        p.a_at = p.b_at = 0;
        int64_t rest = i;
        for (int d = s.n_batch - 1; d >= 0; d--) {
            p.a_at += rest % s.batch[d] * s.a_batch[d];
            p.b_at += rest % s.batch[d] * s.b_batch[d];
            rest /= s.batch[d];
        }
        o.at = i * s.m * s.n;
        product_run(&p);
    }
    return BRAID_OK;
}

static mm_operand operand_of(const lowering *l, const int32_t *values, int count, int i) {
    mm_operand o = {.storage = i < count ? values[i] : -1};
    size_t bytes = 0;
    if (o.storage >= 0 && tensor_type_bytes(lower_type(l, o.storage), &bytes)) o.bytes = bytes;
    return o;
}

mm_operand mm_operand_in(const lowering *l, int i) {
    return operand_of(l, l->node->in, l->node->n_root, i);
}
mm_operand mm_operand_out(const lowering *l) {
    return operand_of(l, l->node->out, l->node->n_out, 0);
}

/* A's batches as further rows of one product where B is the same for all of them. */
static void fold_batches(mm_shape *s) {
    int64_t rows = s->m;
    for (int i = s->n_batch - 1; i >= 0; i--) {
        if (s->batch[i] != 1 && (s->b_batch[i] != 0 || s->a_batch[i] != rows * s->k)) return;
        if (!i64_mul(rows, s->batch[i], &rows)) return;
    }
    s->m = rows;
    s->n_batch = 0;
}

static braid_status matmul_lower(lowering *l) {
    const tensor_type *a = lower_in(l, 0), *b = lower_in(l, 1), *c = lower_out(l, 0);
    mm_problem p = {.type = a->type,
                    .a = mm_operand_in(l, 0),
                    .b = mm_operand_in(l, 1),
                    .c = mm_operand_out(l),
                    .bias = {.storage = -1},
                    .alpha = 1,
                    .beta = 1,
                    .epilogue = true};
    matmul_shape(a, b, &p.s);
    fold_batches(&p.s);
    mm_dense(&p.s);
    /* Batches, rows and columns of the product among the output's axes. */
    p.col_axis = b->rank == 1 ? c->rank : c->rank - 1;
    p.row_axis = p.s.n_batch == 0 ? 0 : a->rank == 1 ? p.col_axis : p.col_axis - 1;
    return mm_lower(l, &p);
}

/* -------------------------------------------------------------------------------------------------- Gemm */

static braid_status gemm_bias_check(const infer *c, const tensor_type *bias, const tensor_type *out) {
    if (!bias || bias->rank < 0) return BRAID_OK;
    for (int i = 1; i <= bias->rank; i++) {
        int64_t d = bias->dims[bias->rank - i], o = out->dims[out->rank - i];
        if (dim_known(d) && dim_known(o) && d != 1 && d != o)
            return error_set(c->err, BRAID_SHAPE, "input 2: dim %lld does not broadcast to %lld", (long long)d,
                             (long long)o);
    }
    return BRAID_OK;
}

static braid_status gemm_infer(infer *c) {
    TRY(product_types(c, c->n_in < 3 ? c->n_in : 3));
    TRY(infer_rank(c, 0, 2, 2));
    TRY(infer_rank(c, 1, 2, 2));
    if (infer_has(c, 2)) TRY(infer_rank(c, 2, 0, 2));
    const tensor_type *a = c->in[0], *b = c->in[1];
    bool at = node_int(c->node, "transA", 0) != 0, bt = node_int(c->node, "transB", 0) != 0;
    tensor_type *out = &c->out[0];
    out->rank = 2;
    out->dims[0] = a && a->rank == 2 ? a->dims[at] : infer_fresh(c);
    out->dims[1] = b && b->rank == 2 ? b->dims[!bt] : infer_fresh(c);
    if (a && b && a->rank == 2 && b->rank == 2) TRY(inner_check(c, a->dims[!at], b->dims[bt]));
    return gemm_bias_check(c, infer_has(c, 2) ? c->in[2] : NULL, out);
}

static void gemm_shape(const node *gemm, const tensor_type *a, const tensor_type *b, mm_shape *s) {
    bool at = node_int(gemm, "transA", 0) != 0, bt = node_int(gemm, "transB", 0) != 0;
    *s = (mm_shape){.m = a->dims[at], .k = a->dims[!at], .n = b->dims[!bt]};
    s->a_m = at ? 1 : s->k;
    s->a_k = at ? s->m : 1;
    s->b_k = bt ? 1 : s->n;
    s->b_n = bt ? s->k : 1;
}

/* Strides of Gemm's C over rows and columns of the output, 0 where it is broadcast. */
static void gemm_bias_strides(const tensor_type *bias, int64_t *row, int64_t *column) {
    int64_t width = bias->rank >= 1 ? bias->dims[bias->rank - 1] : 1;
    *column = width == 1 ? 0 : 1;
    *row = bias->rank < 2 || bias->dims[0] == 1 ? 0 : width;
}

typedef struct gemm_out {
    tensor *out;
    const tensor *bias;
    int64_t n, bias_row, bias_column;
    double alpha, beta;
    bool integer;
} gemm_out;

static void gemm_store(void *user, int64_t m, int64_t n0, int64_t nn, const cell *sums) {
    const gemm_out *o = user;
    braid_type type = o->out->type.type;
    for (int64_t j = 0; j < nn; j++) {
        cell v = sums[j], c = {.u = 0};
        int64_t at = m * o->n + n0 + j;
        if (o->bias) cells_load(&c, o->integer, type, o->bias->data, m * o->bias_row + (n0 + j) * o->bias_column, 0, 1);
        if (!o->integer)
            v.f = o->alpha * v.f + (o->bias ? o->beta * c.f : 0);
        else if (o->alpha == 1 && o->beta == 1)
            v.u += c.u;
        else { /* scaled integers: in double, truncated */
            element_set_f64(type, o->out->data, at, o->alpha * (double)(int64_t)v.u + o->beta * (double)(int64_t)c.u);
            continue;
        }
        cells_store(&v, o->integer, type, o->out->data, at, 1);
    }
}

static braid_status gemm_eval(eval *e) {
    const tensor *a = e->in[0], *b = e->in[1];
    gemm_out o = {.bias = eval_in(e, 2),
                  .alpha = (double)node_float(e->node, "alpha", 1),
                  .beta = (double)node_float(e->node, "beta", 1),
                  .integer = !type_is_float(a->type.type)};
    TRY(eval_output(e, 0, &o.out));
    mm_shape s;
    gemm_shape(e->node, &a->type, &b->type, &s);
    o.n = s.n;
    if (o.bias) gemm_bias_strides(&o.bias->type, &o.bias_row, &o.bias_column);
    product p = {.m = s.m,
                 .n = s.n,
                 .k = s.k,
                 .integer = o.integer,
                 .a_type = a->type.type,
                 .b_type = b->type.type,
                 .a = a->data,
                 .b = b->data,
                 .a_row = s.a_m,
                 .a_column = s.a_k,
                 .b_row = s.b_k,
                 .b_column = s.b_n,
                 .store = gemm_store,
                 .user = &o};
    TRY(product_prepare(&p, e->memory, e->err));
    product_run(&p);
    return BRAID_OK;
}

static braid_status gemm_lower(lowering *l) {
    const tensor_type *a = lower_in(l, 0), *b = lower_in(l, 1), *bias = l->node->n_root > 2 ? lower_in(l, 2) : NULL;
    mm_problem p = {.type = a->type,
                    .a = mm_operand_in(l, 0),
                    .b = mm_operand_in(l, 1),
                    .c = mm_operand_out(l),
                    .bias = mm_operand_in(l, 2),
                    .alpha = node_float(l->node, "alpha", 1),
                    .beta = node_float(l->node, "beta", 1),
                    .epilogue = true,
                    .row_axis = 0,
                    .col_axis = 1};
    gemm_shape(l->node, a, b, &p.s);
    mm_dense(&p.s);
    if (bias) gemm_bias_strides(bias, &p.bias_m, &p.bias_n);
    return mm_lower(l, &p);
}

static const attribute_spec gemm_attributes[] = {{"alpha", ATTRIBUTE_FLOAT, "1"},   {"beta", ATTRIBUTE_FLOAT, "1"},
                                                 {"transA", ATTRIBUTE_INT, "0"},    {"transB", ATTRIBUTE_INT, "0"},
                                                 {"broadcast", ATTRIBUTE_INT, "0"}, {0}};

const op matmul_ops[] = {{.name = "MatMul",
                          .since = 1,
                          .min_in = 2,
                          .max_in = 2,
                          .min_out = 1,
                          .max_out = 1,
                          .flags = OP_EPILOGUE,
                          .lower = matmul_lower,
                          .infer = matmul_infer,
                          .eval = matmul_eval},
                         {.name = "Gemm",
                          .since = 1,
                          .min_in = 2,
                          .max_in = 3,
                          .min_out = 1,
                          .max_out = 1,
                          .flags = OP_EPILOGUE,
                          .attributes = gemm_attributes,
                          .lower = gemm_lower,
                          .infer = gemm_infer,
                          .eval = gemm_eval},
                         {0}};
