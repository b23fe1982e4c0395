/*
 * Fusion programs in other kernels' epilogues.
 */
#include "ops/map.h"

#include <stddef.h>

#include "kernels/abi.h"
#include "kernels/lib/epilogue.h"

static bool type_on_device(braid_type t, bool float64) {
    return t == BRAID_FLOAT32 || t == BRAID_FLOAT16 || t == BRAID_BFLOAT16 || type_is_integer(t) || t == BRAID_BOOL ||
           (float64 && t == BRAID_FLOAT64);
}

braid_status map_lower_words(lowering *l, step *s, const program *p) {
    for (int i = 0; i < p->n_steps; i++) {
        const instruction t = p->steps[i];
        TRY(lower_spec(l, s, (uint32_t)(SPEC_PROGRAM + i),
                       t.op | (uint32_t)t.a << 8 | (uint32_t)t.b << 13 | (uint32_t)t.c << 18));
    }
    return BRAID_OK;
}

/* Element strides of `in` walked over out's dims; 0 where broadcast. */
bool map_strides(const tensor_type *in, const tensor_type *out, int64_t strides[static BRAID_MAX_RANK]) {
    int shift = out->rank - in->rank;
    int64_t stride = 1;
    if (shift < 0) return false;
    for (int d = out->rank - 1; d >= 0; d--) {
        int64_t dim = d < shift ? 1 : in->dims[d - shift];
        if (dim != 1 && dim != out->dims[d]) return false;
        strides[d] = dim == 1 ? 0 : stride;
        stride *= dim;
    }
    return true;
}

/* The one stride that walks dims [first, last) flattened; false when there is none. */
static bool flat_stride(const tensor_type *out, const int64_t *strides, int first, int last, int64_t *stride) {
    int64_t unit = 0, inside = 1;
    bool any = false;
    for (int d = last - 1; d >= first; d--) {
        if (out->dims[d] == 1) continue;
        if (!any)
            unit = strides[d];
        else if (strides[d] != unit * inside)
            return false;
        any = true;
        inside *= out->dims[d];
    }
    *stride = unit;
    return unit <= INT32_MAX;
}

/* Strides {outer, inner, row, col} of every extra operand, and the number of inner batches. */
static bool epilogue_strides(const tensor_type *out, int n, const tensor_type *const *extra, int row_axis, int col_axis,
                             int64_t (*strides)[4], uint32_t *inner) {
    int64_t each[EPILOGUE_INPUTS][BRAID_MAX_RANK] = {0}, batches = 1;
    for (int i = 0; i < n; i++)
        if (!map_strides(extra[i], out, each[i]) || !flat_stride(out, each[i], row_axis, col_axis, &strides[i][2]) ||
            !flat_stride(out, each[i], col_axis, out->rank, &strides[i][3]))
            return false;
    for (int cut = row_axis; cut >= 0; cut--) { /* outer = [0, cut), inner = [cut, row_axis) */
        bool fits = true;
        for (int i = 0; i < n && fits; i++)
            fits = flat_stride(out, each[i], 0, cut, &strides[i][0]) &&
                   flat_stride(out, each[i], cut, row_axis, &strides[i][1]);
        if (cut < row_axis) batches *= out->dims[cut];
        if (fits && batches <= INT32_MAX) {
            *inner = batches > 0 ? (uint32_t)batches : 1;
            return true;
        }
    }
    return false;
}

bool map_epilogue_fits(const program *p, braid_type root, const tensor_type *out, int n_extra,
                       const tensor_type *const *extra, int row_axis, int col_axis) {
    bool real[1 + EPILOGUE_INPUTS] = {true}, result;
    int64_t strides[EPILOGUE_INPUTS][4], count;
    uint32_t inner;
    if (n_extra > EPILOGUE_INPUTS || !type_is_float(root) || root == BRAID_FLOAT64 || !type_is_float(out->type) ||
        out->type == BRAID_FLOAT64 || row_axis < 0 || row_axis > col_axis || col_axis > out->rank)
        return false;
    for (int i = 0; i < n_extra; i++) {
        if (!type_on_device(extra[i]->type, false) || !tensor_type_count(extra[i], &count) || count > INT32_MAX)
            return false;
        real[1 + i] = type_is_float(extra[i]->type);
    }
    return program_check(p, 1 + n_extra, real, &result) && result &&
           epilogue_strides(out, n_extra, extra, row_axis, col_axis, strides, &inner);
}

braid_status map_lower_epilogue(lowering *l, step *s, size_t at, int row_axis, int col_axis) {
    const node *n = l->node;
    const program *p = n->epilogue;
    const tensor_type *extra[EPILOGUE_INPUTS], *out = lower_out(l, 0);
    int64_t strides[EPILOGUE_INPUTS][4];
    int n_extra = n->n_in - n->n_root;
    epilogue e = {.inner = 1};
    if (!p) return BRAID_OK;
    if (n_extra > EPILOGUE_INPUTS || !out) return BRAID_UNSUPPORTED;
    for (int i = 0; i < n_extra; i++)
        if (!(extra[i] = lower_in(l, n->n_root + i))) return BRAID_UNSUPPORTED;
    if (!map_epilogue_fits(p, out->type, out, n_extra, extra, row_axis, col_axis) ||
        !epilogue_strides(out, n_extra, extra, row_axis, col_axis, strides, &e.inner))
        return BRAID_UNSUPPORTED;
    for (int i = 0; i < n_extra; i++)
        for (int k = 0; k < 4; k++) e.strides[4 * i + k] = (int32_t)strides[i][k];
    for (int i = 0; i < p->n_immediates; i++) {
        e.immediates_f[i] = (float)p->immediates_f[i];
        e.immediates_i[i] = p->immediates_i[i];
    }
    memcpy(s->row + at, &e, sizeof e);
    for (int i = 0; i < n_extra; i++) {
        TRY(lower_operand_in(l, s, at + offsetof(epilogue, operands) + (size_t)i * sizeof(operand), n->n_root + i));
        TRY(lower_spec(l, s, (uint32_t)(SPEC_TYPES + 1 + i), (uint32_t)extra[i]->type));
    }
    return map_lower_words(l, s, p);
}
