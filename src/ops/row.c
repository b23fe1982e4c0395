/*
 * row.c: views of tensors as rows, runs of elements, and the checks that the operators of this family share.
 */
#include "ops/row.h"

/* Can `next` continue axis `a`: every operand steps over a whole `next` from one place of `a` to the following. */
static bool axis_joins(const row_axis *a, const row_axis *next) {
    bool joins = a->stride == next->stride * next->size;
    for (int k = 0; k < ROW_EXTRA; k++) joins = joins && a->extra[k] == next->extra[k] * next->size;
    return joins;
}

static void push_axis(row_axis *axes, int *n, const row_axis *next, bool neighbours) {
    if (neighbours && axis_joins(&axes[*n - 1], next)) {
        int64_t size = axes[*n - 1].size * next->size;
        axes[*n - 1] = *next;
        axes[*n - 1].size = size;
    } else {
        axes[(*n)++] = *next;
    }
}

void row_view_extra(int rank, const int64_t *dims, uint32_t reduced, int64_t *const extra[ROW_EXTRA], row_view *out) {
    int64_t strides[BRAID_MAX_RANK], stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= dims[d];
    }
    *out = (row_view){.rows = 1, .length = 1};
    int last = -1; /* sort of the axis before: 1 reduced, 0 kept */
    for (int d = 0; d < rank; d++) {
        int sort = (int)(reduced >> d & 1u);
        if (sort) out->length *= dims[d];
        else out->rows *= dims[d];
        if (dims[d] == 1) continue;
        row_axis next = {dims[d], strides[d], {0}};
        for (int k = 0; extra && k < ROW_EXTRA; k++) next.extra[k] = extra[k] ? extra[k][d] : 0;
        if (sort) push_axis(out->reduce, &out->n_reduce, &next, last == 1);
        else push_axis(out->keep, &out->n_keep, &next, last == 0);
        last = sort;
    }
}

void row_view_make(int rank, const int64_t *dims, uint32_t reduced, row_view *out) {
    row_view_extra(rank, dims, reduced, NULL, out);
}

int64_t row_offset(const row_axis *axes, int n, int64_t i) {
    int64_t offset = 0;
    for (int d = n - 1; d >= 0; d--) {
        offset += i % axes[d].size * axes[d].stride;
        i /= axes[d].size;
    }
    return offset;
}

int64_t row_offset_extra(const row_axis *axes, int n, int64_t i, int k) {
    int64_t offset = 0;
    for (int d = n - 1; d >= 0; d--) {
        offset += i % axes[d].size * axes[d].extra[k];
        i /= axes[d].size;
    }
    return offset;
}

braid_status row_broadcast(const tensor_type *operand, int rank, const int64_t *dims, int64_t *strides,
                           const char *what, braid_error *err) {
    int64_t stride = 1;
    for (int d = 0; d < rank; d++) strides[d] = 0;
    if (operand->rank > rank)
        return error_set(err, BRAID_SHAPE, "%s has rank %d, at most %d fits", what, operand->rank, rank);
    for (int d = operand->rank - 1; d >= 0; d--) {
        int at = rank - operand->rank + d;
        if (operand->dims[d] != 1 && operand->dims[d] != dims[at])
            return error_set(err, BRAID_SHAPE, "%s: dim %d is %lld, expected 1 or %lld", what, d,
                             (long long)operand->dims[d], (long long)dims[at]);
        if (operand->dims[d] != 1) strides[at] = stride;
        stride *= operand->dims[d];
    }
    return BRAID_OK;
}

braid_status row_mask(int count, const int64_t *axes, int rank, uint32_t *mask, braid_error *err) {
    *mask = 0;
    for (int i = 0; i < count; i++) {
        int axis;
        TRY(axis_normalise(axes[i], rank, &axis, err));
        if (*mask >> axis & 1u) return error_set(err, BRAID_MODEL, "axis %d is listed twice", axis);
        *mask |= 1u << axis;
    }
    return BRAID_OK;
}

int64_t row_count(const tensor *t) {
    int64_t count = 0;
    return tensor_type_count(&t->type, &count) ? count : 0;
}

/* ------------------------------------------------------------------------------------------------ elements */

#define LOAD_CASE(NAME, type, to)                              \
    case BRAID_##NAME: {                                       \
        const type *p = (const type *)data + at;               \
        for (int64_t i = 0; i < n; i++) out[i] = (to)p[i];     \
        return;                                                \
    }
#define INTEGER_CASES(X, to)                                                                                 \
    X(INT8, int8_t, to)                                                                                      \
    X(UINT8, uint8_t, to)                                                                                    \
    X(INT16, int16_t, to)                                                                                    \
    X(UINT16, uint16_t, to)                                                                                  \
    X(INT32, int32_t, to)                                                                                    \
    X(UINT32, uint32_t, to)                                                                                  \
    X(INT64, int64_t, to)                                                                                    \
    X(UINT64, uint64_t, to)

void row_load_f64(const tensor *t, int64_t at, int64_t n, double *out) {
    const void *data = t->data;
    switch (t->type.type) {
        LOAD_CASE(FLOAT32, float, double)
        LOAD_CASE(FLOAT64, double, double)
        INTEGER_CASES(LOAD_CASE, double)
    default:
        for (int64_t i = 0; i < n; i++) out[i] = element_f64(t->type.type, data, at + i);
    }
}

void row_load_i64(const tensor *t, int64_t at, int64_t n, int64_t *out) {
    const void *data = t->data;
    switch (t->type.type) {
        INTEGER_CASES(LOAD_CASE, int64_t)
    default:
        for (int64_t i = 0; i < n; i++) out[i] = element_i64(t->type.type, data, at + i);
    }
}

#define STORE_CASE(NAME, type, to)                             \
    case BRAID_##NAME: {                                       \
        type *p = (type *)data + at;                           \
        for (int64_t i = 0; i < n; i++) p[i] = (type)v[i];     \
        return;                                                \
    }

void row_store_f64(tensor *t, int64_t at, int64_t n, const double *v) {
    void *data = t->data;
    switch (t->type.type) {
        STORE_CASE(FLOAT32, float, float)
        STORE_CASE(FLOAT64, double, double)
    default:
        for (int64_t i = 0; i < n; i++) element_set_f64(t->type.type, data, at + i, v[i]);
    }
}

void row_store_i64(tensor *t, int64_t at, int64_t n, const int64_t *v) {
    void *data = t->data;
    switch (t->type.type) {
        INTEGER_CASES(STORE_CASE, int)
    default:
        for (int64_t i = 0; i < n; i++) element_set_i64(t->type.type, data, at + i, v[i]);
    }
}

/* Calls `move` for each run of the row: contiguous along the innermost reduced axis, or single elements. */
#define FOR_RUNS(view, base, move_run, move_one)                                           \
    do {                                                                                   \
        const row_axis *inner_ = view->n_reduce ? &view->reduce[view->n_reduce - 1] : NULL; \
        int64_t size_ = inner_ ? inner_->size : 1, stride_ = inner_ ? inner_->stride : 1;  \
        for (int64_t r = 0; r < view->length; r += size_) {                                \
            int64_t at = base + row_offset(view->reduce, view->n_reduce, r);               \
            if (stride_ == 1) {                                                            \
                int64_t n = size_;                                                         \
                move_run;                                                                  \
            } else {                                                                       \
                for (int64_t i = 0; i < size_; i++, at += stride_) move_one;               \
            }                                                                              \
        }                                                                                  \
    } while (0)

void row_gather(const tensor *t, int64_t base, const row_view *view, double *out) {
    FOR_RUNS(view, base, row_load_f64(t, at, n, out + r), row_load_f64(t, at, 1, out + r + i));
}

void row_scatter(tensor *t, int64_t base, const row_view *view, const double *v) {
    FOR_RUNS(view, base, row_store_f64(t, at, n, v + r), row_store_f64(t, at, 1, v + r + i));
}

void row_gather_i64(const tensor *t, int64_t base, const row_view *view, int64_t *out) {
    FOR_RUNS(view, base, row_load_i64(t, at, n, out + r), row_load_i64(t, at, 1, out + r + i));
}

void row_scatter_i64(tensor *t, int64_t base, const row_view *view, const int64_t *v) {
    FOR_RUNS(view, base, row_store_i64(t, at, n, v + r), row_store_i64(t, at, 1, v + r + i));
}

double *row_doubles(arena *memory, const tensor *t) {
    int64_t count = row_count(t);
    double *v = arena_array(memory, (size_t)count + 1, sizeof *v);
    if (v) row_load_f64(t, 0, count, v);
    return v;
}

/* ------------------------------------------------------------------------------------------------- checks */

braid_status row_types(infer *c, int i, uint64_t set) {
    if (!infer_has(c, i) || c->in[i]->type == BRAID_TYPE_NONE) return BRAID_OK;
    if (set >> c->in[i]->type & 1u) return BRAID_OK;
    return error_set(c->err, BRAID_TYPE, "input %d: type %s not allowed", i, braid_type_name(c->in[i]->type));
}

braid_status row_ints_to_input(upgrade *u, const char *name, int at) {
    const int64_t *list = NULL;
    const attribute *a = node_attribute(u->node, name);
    if (!a) return BRAID_OK;
    int count = 1;
    if (a->kind == ATTRIBUTE_INT) list = &a->i;
    else count = node_ints(u->node, name, &list);
    int32_t axes = graph_constant_ints(u->g, name, count, list);
    int32_t *in = arena_array(u->g->memory, (size_t)at + 1, sizeof *in);
    if (axes < 0 || !in) return error_memory(u->err);
    for (int i = 0; i < at; i++) in[i] = i < u->node->n_in ? u->node->in[i] : -1;
    in[at] = axes;
    u->node->in = in;
    u->node->n_in = u->node->n_root = at + 1;
    return BRAID_OK;
}
