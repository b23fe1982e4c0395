/*
 * einsum_lower.c: Einsum on the device: a batched product where two operands have one row, one column and one inner
 * label left after joining; else the general contraction.
 */
#include "kernels/abi.h"
#include "kernels/rows/contract.h"
#include "ops/einsum.h"
#include "ops/mm.h"

#include <stddef.h>

enum { SPEC_TYPE = 8, SPEC_INPUTS };

static bool is_row(const einsum_label *l) {
    return !l->summed && l->in[0] != 0 && l->in[1] == 0;
}
static bool is_column(const einsum_label *l) {
    return !l->summed && l->in[0] == 0 && l->in[1] != 0;
}

/* The label of the largest extent that satisfies `is`, -1 when none does. */
static int largest(const einsum_label *labels, int n, bool (*is)(const einsum_label *)) {
    int best = -1;
    for (int i = 0; i < n; i++)
        if (is(&labels[i]) && (best < 0 || labels[i].extent > labels[best].extent)) best = i;
    return best;
}

/* Two operands as a product; false when it is none. first: the operand whose label is m. */
static bool as_product(const einsum_label *labels, int n, mm_problem *p, int *first) {
    int row = largest(labels, n, is_row), column = largest(labels, n, is_column), inner = -1;
    for (int i = 0; i < n; i++) {
        if (!labels[i].summed) continue;
        if (inner >= 0) return false;
        inner = i;
    }
    if (row < 0 && column < 0) return false;
    *first = row >= 0 && labels[row].out == 1 ? 1 : 0; /* the label that C holds contiguously is n */
    int m = *first == 0 ? row : column, c = *first == 0 ? column : row, a = *first, b = 1 - a;
    mm_shape *s = &p->s;
    *s = (mm_shape){.m = 1, .n = 1, .k = 1, .c_n = 1, .c_m = 1};
    if (m >= 0) {
        s->m = labels[m].extent;
        s->a_m = labels[m].in[a];
        s->c_m = labels[m].out;
    }
    if (c >= 0) {
        s->n = labels[c].extent;
        s->b_n = labels[c].in[b];
        s->c_n = labels[c].out;
    }
    if (inner >= 0) {
        s->k = labels[inner].extent;
        s->a_k = labels[inner].in[a];
        s->b_k = labels[inner].in[b];
    }
    for (int i = 0; i < n; i++) {
        if (i == m || i == c || i == inner) continue;
        s->batch[s->n_batch] = labels[i].extent;
        s->a_batch[s->n_batch] = labels[i].in[a];
        s->b_batch[s->n_batch] = labels[i].in[b];
        s->c_batch[s->n_batch++] = labels[i].out;
    }
    return s->n_batch <= 3;
}

static braid_status lower_contract(lowering *l, const einsum_label *labels, int n, int64_t count) {
    const tensor_type *out = lower_out(l, 0);
    braid_type type = out->type;
    if (l->node->n_in > CONTRACT_INPUTS || count > INT32_MAX) return BRAID_UNSUPPORTED;
    if (type == BRAID_FLOAT64 && !l->device->float64) return BRAID_UNSUPPORTED;
    row_contract row = {.count = (uint32_t)count, .inputs = (uint32_t)l->node->n_in};
    for (int i = 0; i < CONTRACT_LABELS; i++) row.out_extent[i] = row.sum_extent[i] = 1;
    int n_out = 0;
    int64_t terms = 1;
    while (n_out < n && !labels[n_out].summed) n_out++;
    if (n_out > CONTRACT_LABELS || n - n_out > CONTRACT_LABELS) return BRAID_UNSUPPORTED;
    for (int i = 0; i < n; i++) {
        int at = i < n_out ? CONTRACT_LABELS - n_out + i : CONTRACT_LABELS - n + i;
        (i < n_out ? row.out_extent : row.sum_extent)[at] = (uint32_t)labels[i].extent;
        if (i >= n_out && !i64_mul(terms, labels[i].extent, &terms)) return BRAID_UNSUPPORTED;
        for (int j = 0; j < l->node->n_in; j++)
            (i < n_out ? row.out_stride : row.sum_stride)[CONTRACT_LABELS * j + at] = (uint32_t)labels[i].in[j];
    }
    if (terms > INT32_MAX) return BRAID_UNSUPPORTED;
    const char *kernel = type == BRAID_FLOAT64 ? "contract_f64"
                         : type_is_float(type) ? "contract_real"
                                               : "contract_int";
    uint32_t group = l->device->software ? 8 : 128;
    step *s = lower_step(l, kernel, &row, sizeof row, (uint64_t)(count - 1) / group + 1, group);
    if (!s) return error_memory(l->err);
    s->flops = (uint64_t)count * (uint64_t)terms * (uint64_t)l->node->n_in;
    TRY(lower_spec(l, s, SPEC_TYPE, (uint32_t)type));
    TRY(lower_spec(l, s, SPEC_INPUTS, (uint32_t)l->node->n_in));
    for (int i = 0; i < l->node->n_in; i++)
        TRY(lower_operand_in(l, s, offsetof(row_contract, in_) + (size_t)i * sizeof(operand), i));
    return lower_operand_out(l, s, offsetof(row_contract, result), 0);
}

braid_status einsum_lower(lowering *l) {
    einsum e;
    bool explicit_out;
    int ranks[EINSUM_INPUTS];
    const tensor_type *types[EINSUM_INPUTS];
    einsum_label labels[EINSUM_LABELS];
    int64_t count, elements;
    TRY(einsum_parse(l->node, l->node->n_in, &e, &explicit_out, l->err));
    for (int i = 0; i < e.n_terms; i++) {
        types[i] = lower_in(l, i);
        ranks[i] = types[i]->rank;
        if (!tensor_type_count(types[i], &elements) || elements > INT32_MAX) return BRAID_UNSUPPORTED;
    }
    TRY(einsum_expand(&e, ranks, explicit_out, l->err));
    if (!tensor_type_count(lower_out(l, 0), &count)) return BRAID_UNSUPPORTED;
    if (count == 0) return BRAID_OK;
    int n = einsum_merge(labels, einsum_labels(&e, types, labels), e.n_terms), first;
    mm_problem p = {.type = types[0]->type, .bias = {.storage = -1}, .alpha = 1, .beta = 1, .c = mm_operand_out(l)};
    if (e.n_terms == 2 && as_product(labels, n, &p, &first)) {
        p.a = mm_operand_in(l, first);
        p.b = mm_operand_in(l, 1 - first);
        braid_status status = mm_lower(l, &p);
        if (status != BRAID_UNSUPPORTED) return status;
    }
    return lower_contract(l, labels, n, count);
}
