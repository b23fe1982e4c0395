/*
 * pad.c: Pad. Negative pads crop first; the modes then extend what is left.
 */
#include "kernels/lib/divide.h"
#include "kernels/rows/pad.h"
#include "ops/bytes.h"
#include "ops/follow.h"
#include "ops/lowering.h"
#include "ops/pad.h"
#include "ops/upgrade.h"

#include <stddef.h>

/* One Pad, every axis: begin and end may be negative. */
typedef struct padding {
    uint mode;
    int64_t begin[BRAID_MAX_RANK], end[BRAID_MAX_RANK];
} padding;

static braid_status pad_upgrade(upgrade *u) {
    if (u->opset >= 11) return BRAID_OK;
    TRY(upgrade_ints_to_input(u, u->opset < 2 ? "paddings" : "pads", 1));
    if (!upgrade_has(u, 1)) return error_set(u->err, BRAID_MODEL, "no pads");
    const attribute *fill = node_attribute(u->node, "value");
    if (fill && fill->f != 0) { /* Pad-2 knows float types only; the kernel and eval convert */
        TRY(upgrade_set_input(u, 2, graph_constant_scalar(u->g, "", BRAID_FLOAT32, (double)fill->f)));
    }
    upgrade_drop_attribute(u, "value");
    return BRAID_OK;
}

static braid_status pad_mode(const node *n, uint *mode, braid_error *err) {
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    static const uint modes[] = {PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP};
    const char *name = node_string(n, "mode", "constant");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *mode = modes[i];
        return BRAID_OK;
    }
    return error_set(err, BRAID_MODEL, "mode is '%s'", name);
}

/* Spreads the lists of the inputs over the axes; axes NULL: all of them. */
static braid_status pad_spread(int rank, int count, const int64_t *pads, int n_axes, const int64_t *axes, padding *p,
                               braid_error *err) {
    int n = axes ? n_axes : rank;
    uint32_t seen = 0;
    if (count != 2 * n) return error_set(err, BRAID_SHAPE, "pads has %d elements, expected %d", count, 2 * n);
    for (int i = 0; i < n; i++) {
        int axis;
        TRY(axis_normalise(axes ? axes[i] : i, rank, &axis, err));
        if (seen & 1u << axis) return error_set(err, BRAID_MODEL, "axis %d twice", axis);
        seen |= 1u << axis;
        p->begin[axis] = pads[i];
        p->end[axis] = pads[n + i];
    }
    return BRAID_OK;
}

/* What is left of an axis after cropping: [*first, *first + *length). */
static void pad_crop(int64_t dim, int64_t begin, int64_t end, int64_t *first, int64_t *length) {
    int64_t low = begin < 0 ? -begin : 0, high = dim + (end < 0 ? end : 0);
    *first = low > dim ? dim : low;
    *length = high > *first ? high - *first : 0;
}

static braid_status pad_length(infer *c, const padding *p, int axis, int64_t *out) {
    int64_t dim = c->in[0]->dims[axis], begin = p->begin[axis], end = p->end[axis], first, length;
    if (dim_is_symbol(dim) || dim_is_symbol(begin) || dim_is_symbol(end)) {
        *out = begin == 0 && end == 0 ? dim : infer_fresh(c);
        return BRAID_OK;
    }
    const int64_t most = ELEMENTS_MAX;
    if (begin > most || end > most || begin < -most || end < -most)
        return error_set(c->err, BRAID_LIMIT, "axis %d: pads of %lld and %lld", axis, (long long)begin, (long long)end);
    *out = dim + begin + end;
    if (*out < 0)
        return error_set(c->err, BRAID_SHAPE, "axis %d: pads of %lld and %lld on %lld elements", axis, (long long)begin,
                         (long long)end, (long long)dim);
    pad_crop(dim, begin, end, &first, &length);
    if (p->mode != PAD_CONSTANT && !length && *out)
        return error_set(c->err, BRAID_SHAPE, "axis %d: nothing is left to be repeated", axis);
    return BRAID_OK;
}

static braid_status pad_unknown(infer *c) {
    c->out[0] = *c->in[0];
    for (int d = 0; d < c->out[0].rank; d++) c->out[0].dims[d] = infer_fresh(c);
    return BRAID_OK;
}

/* The constant has the data's type; only the float attribute of older forms may differ. */
static braid_status pad_fill_type(infer *c) {
    if (!infer_has(c, 2)) return BRAID_OK;
    braid_type data = c->in[0]->type, fill = c->in[2]->type;
    if (data == fill || data == BRAID_TYPE_NONE || fill == BRAID_TYPE_NONE) return BRAID_OK;
    if (fill == BRAID_FLOAT32 && type_is_float(data)) return BRAID_OK;
    return error_set(c->err, BRAID_TYPE, "input 2: %s, input 0 is %s", braid_type_name(fill), braid_type_name(data));
}

static braid_status pad_infer(infer *c) {
    const tensor_type *in = c->in[0];
    padding p = {0};
    int count, n_axes = 0;
    const int64_t *pads, *axes = NULL;
    TRY(pad_mode(c->node, &p.mode, c->err));
    if (!infer_has(c, 1)) return error_set(c->err, BRAID_MODEL, "no pads");
    TRY(infer_index_type(c, 1));
    TRY(infer_index_type(c, 3));
    TRY(pad_fill_type(c));
    TRY(infer_rank(c, 1, 1, 1));
    TRY(infer_rank(c, 3, 1, 1));
    c->out[0].type = in->type;
    if (in->rank < 0) return BRAID_OK;
    if (!infer_ints(c, 1, &count, &pads)) return pad_unknown(c);
    if (infer_has(c, 3) && !infer_ints(c, 3, &n_axes, &axes)) return pad_unknown(c);
    TRY(pad_spread(in->rank, count, pads, n_axes, axes, &p, c->err));
    c->out[0] = *in;
    for (int d = 0; d < in->rank; d++) TRY(pad_length(c, &p, d, &c->out[0].dims[d]));
    return infer_limit(c, 0);
}

/* -------------------------------------------------------------------------------------------------- eval */

/* Where index i of the extended axis lies within the n elements it was made from; -1: in the constant part. */
static int64_t pad_source(uint mode, int64_t i, int64_t n) {
    if (i >= 0 && i < n) return i;
    if (mode == PAD_CONSTANT) return -1;
    if (mode == PAD_EDGE) return i < 0 ? 0 : n - 1;
    int64_t period = mode == PAD_WRAP ? n : 2 * (n - 1);
    if (period == 0) return 0;
    int64_t m = i % period;
    if (m < 0) m += period;
    return m < n ? m : period - m;
}

/* For each axis the table output index -> offset in the input, in elements; -1 in the constant part. */
static braid_status pad_tables(eval *e, const padding *p, const tensor_type *in, const tensor_type *out,
                               int64_t **tables) {
    int64_t strides[BRAID_MAX_RANK], first, length;
    region_strides(in->rank, in->dims, strides);
    for (int d = 0; d < in->rank; d++) {
        if (!(tables[d] = arena_array(e->memory, (size_t)out->dims[d] + 1, sizeof **tables))) return error_memory(e->err);
        pad_crop(in->dims[d], p->begin[d], p->end[d], &first, &length);
        int64_t shift = p->mode == PAD_CONSTANT ? p->begin[d] : p->begin[d] > 0 ? p->begin[d] : 0;
        if (p->mode == PAD_CONSTANT) {
            first = 0;
            length = in->dims[d];
        }
        for (int64_t i = 0; i < out->dims[d]; i++) {
            int64_t at = pad_source(p->mode, i - shift, length);
            tables[d][i] = at < 0 ? -1 : (first + at) * strides[d];
        }
    }
    return BRAID_OK;
}

static braid_status pad_fill_value(eval *e, braid_type type, uint8_t *out, size_t size) {
    const tensor *fill = eval_in(e, 2);
    size_t from_size;
    memset(out, 0, 16);
    if (!fill || fill->bytes == 0) {
        const char *nothing = "";
        if (type == BRAID_STRING) memcpy(out, &nothing, sizeof nothing);
        return BRAID_OK;
    }
    if (fill->type.type != type) { /* the float of an old form */
        element_set_f64(type, out, 0, element_f64(fill->type.type, fill->data, 0));
        return BRAID_OK;
    }
    const uint8_t *from = bytes_in(e->memory, fill, &from_size);
    if (!from) return error_memory(e->err);
    memcpy(out, from, size);
    return BRAID_OK;
}

static void pad_row(uint8_t *to, const uint8_t *in, int64_t base, const int64_t *table, int64_t n, const uint8_t *fill,
                    size_t size) {
    for (int64_t i = 0; i < n; i++, to += size)
        memcpy(to, base < 0 || table[i] < 0 ? fill : in + (size_t)(base + table[i]) * size, size);
}

static void pad_copy(const tensor_type *type, int64_t *const *tables, const uint8_t *in, uint8_t *out,
                     const uint8_t *fill, size_t size) {
    int64_t at[BRAID_MAX_RANK] = {0}, count;
    int last = type->rank - 1;
    if (!tensor_type_count(type, &count) || count == 0) return;
    if (last < 0) {
        memcpy(out, in, size);
        return;
    }
    for (int64_t done = 0; done < count; done += type->dims[last], out += (size_t)type->dims[last] * size) {
        int64_t base = 0;
        for (int d = 0; d < last && base >= 0; d++) base = tables[d][at[d]] < 0 ? -1 : base + tables[d][at[d]];
        pad_row(out, in, base, tables[last], type->dims[last], fill, size);
        for (int d = last - 1; d >= 0 && ++at[d] == type->dims[d]; d--) at[d] = 0;
    }
}

static braid_status pad_read(eval *e, padding *p) {
    const tensor *pads = eval_in(e, 1), *axes = eval_in(e, 3);
    int64_t lists[2][2 * BRAID_MAX_RANK] = {{0}};
    int n = (int)pads->type.dims[0], n_axes = axes ? (int)axes->type.dims[0] : 0;
    if (n > 2 * BRAID_MAX_RANK || n_axes > BRAID_MAX_RANK) return error_set(e->err, BRAID_SHAPE, "too many pads");
    for (int i = 0; i < n; i++) lists[0][i] = element_i64(pads->type.type, pads->data, i);
    for (int i = 0; i < n_axes; i++) lists[1][i] = element_i64(axes->type.type, axes->data, i);
    TRY(pad_mode(e->node, &p->mode, e->err));
    return pad_spread(eval_in(e, 0)->type.rank, n, lists[0], n_axes, axes ? lists[1] : NULL, p, e->err);
}

static braid_status pad_eval(eval *e) {
    const tensor *in = eval_in(e, 0);
    tensor *result;
    padding p = {0};
    int64_t *tables[BRAID_MAX_RANK];
    uint8_t fill[16];
    size_t size;
    TRY(pad_read(e, &p));
    TRY(eval_output(e, 0, &result));
    const uint8_t *from = bytes_in(e->memory, in, &size);
    uint8_t *to = bytes_out(e->memory, result, &size);
    if (!from || !to) return error_memory(e->err);
    TRY(pad_fill_value(e, in->type.type, fill, size));
    TRY(pad_tables(e, &p, &in->type, &result->type, tables));
    pad_copy(&result->type, tables, from, to, fill, size);
    bytes_done(result, to);
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- lower */

static bool narrow(int64_t v) { return v > -MOVE_MAX && v < MOVE_MAX; }

/* One axis of the row, or the run of axes it was joined from: nothing is padded in the inner ones. */
typedef struct pad_axis {
    int64_t out, in, begin, stride; /* stride of the input in elements; `in` after cropping */
} pad_axis;

static int pad_axes(const padding *p, const tensor_type *in, const tensor_type *out, pad_axis *axes, int64_t *in_at) {
    int64_t strides[BRAID_MAX_RANK], first, length;
    int n = 0;
    region_strides(in->rank, in->dims, strides);
    *in_at = 0;
    for (int d = 0; d < in->rank; d++) {
        bool plain = p->begin[d] == 0 && p->end[d] == 0;
        pad_axis a = {out->dims[d], in->dims[d], p->begin[d], strides[d]};
        if (p->mode != PAD_CONSTANT) {
            pad_crop(in->dims[d], p->begin[d], p->end[d], &first, &length);
            a.in = length;
            a.begin = p->begin[d] > 0 ? p->begin[d] : 0;
            *in_at += first * strides[d];
        }
        pad_axis *outer = n ? &axes[n - 1] : NULL;
        bool outer_plain = outer && outer->begin == 0 && outer->in == outer->out;
        /* constant mode may join a padded outer axis, too: its pads become runs */
        if (outer && plain && (outer_plain || p->mode == PAD_CONSTANT)) {
            *outer = (pad_axis){outer->out * a.out, outer->in * a.in, outer->begin * a.in, a.stride};
        } else {
            axes[n++] = a;
        }
    }
    if (n == 0) axes[n++] = (pad_axis){1, 1, 0, 1};
    return n;
}

static uint32_t pad_unit(const pad_axis *axes, int n, int64_t in_at, uint mode, uint32_t bytes) {
    int64_t unit = 16 / bytes;
    const pad_axis *last = &axes[n - 1];
    bool plain = last->begin == 0 && last->in == last->out;
    if (last->stride != 1 || last->out % unit || last->in % unit || last->begin % unit || in_at % unit) return 1;
    if (mode != PAD_CONSTANT && !plain) return 1;
    for (int i = 0; i + 1 < n; i++)
        if (axes[i].stride % unit) return 1;
    return (uint32_t)unit;
}

/* The float of an old form is converted here. */
static braid_status pad_fill_operand(lowering *l, step *s, uint32_t bytes) {
    const tensor_type *fill = lower_in(l, 2), *out = lower_out(l, 0);
    uint8_t converted[16] = {0};
    const tensor *t;
    if (!fill || fill->type == out->type) return lower_operand_in(l, s, offsetof(row_pad, fill), 2);
    TRY(lower_constant_in(l, 2, &t));
    if (!t) return BRAID_UNSUPPORTED;
    element_set_f64(out->type, converted, 0, element_f64(fill->type, t->data, 0));
    return lower_operand(l, s, offsetof(row_pad, fill), lower_constant(l, converted, bytes), 0, bytes, ACCESS_READ);
}

static braid_status pad_emit(lowering *l, const pad_axis *axes, int n, int64_t in_at, uint mode, uint32_t bytes,
                             int64_t count) {
    row_pad row = {0};
    uint32_t unit = pad_unit(axes, n, in_at, mode, bytes);
    for (int d = 0; d < PAD_RANK; d++) row.dims[d] = row.in_dims[d] = 1;
    for (int i = 0; i < n; i++) {
        int d = PAD_RANK - n + i, by = i == n - 1 ? (int)unit : 1;
        if (!narrow(axes[i].begin) || !narrow(axes[i].in * 2) || !narrow(axes[i].stride)) return BRAID_UNSUPPORTED;
        row.dims[d] = (uint)(axes[i].out / by);
        divide_prepare(row.dims[d], &row.magic[d], &row.shift[d]);
        row.in_dims[d] = (uint)(axes[i].in / by);
        row.in_stride[d] = (uint)axes[i].stride;
        row.begin[d] = (int)(axes[i].begin / by);
    }
    row.in_at = (uint)in_at;
    row.count = (uint)(count / unit);
    move_grid g = move_grid_for(l->device, row.count);
    step *s = lower_step(l, MOVE_KERNEL("pad", bytes), &row, sizeof row, g.tiles, g.group);
    if (!s) return error_memory(l->err);
    s->bytes = 2 * (uint64_t)count * bytes;
    TRY(lower_spec(l, s, PAD_SPEC_RANK, (uint32_t)n));
    TRY(lower_spec(l, s, PAD_SPEC_UNIT, unit));
    TRY(lower_spec(l, s, PAD_SPEC_ITEMS, g.items));
    TRY(lower_spec(l, s, PAD_SPEC_MODE, mode));
    TRY(lower_operand_in(l, s, offsetof(row_pad, source), 0));
    if (mode == PAD_CONSTANT) TRY(pad_fill_operand(l, s, bytes));
    return lower_operand_out(l, s, offsetof(row_pad, target), 0);
}

static braid_status pad_lower_axes(lowering *l, const padding *p) {
    const tensor_type *in = lower_in(l, 0), *out = lower_out(l, 0);
    uint32_t bytes;
    int64_t parts, in_at, count, in_count;
    pad_axis joined[BRAID_MAX_RANK];
    if (!move_element(in->type, &bytes, &parts) || parts != 1) return BRAID_UNSUPPORTED;
    if (!tensor_type_count(out, &count) || !tensor_type_count(in, &in_count) || !narrow(count) || !narrow(in_count))
        return BRAID_UNSUPPORTED;
    if (count == 0) return BRAID_OK;
    int n = pad_axes(p, in, out, joined, &in_at);
    return pad_emit(l, joined, n, in_at, p->mode, bytes, count);
}

braid_status pad_lower_zeros(lowering *l, const int64_t *begin, const int64_t *end) {
    padding p = {.mode = PAD_CONSTANT};
    size_t bytes = (size_t)lower_in(l, 0)->rank * sizeof *begin;
    memcpy(p.begin, begin, bytes);
    memcpy(p.end, end, bytes);
    return pad_lower_axes(l, &p);
}

static braid_status pad_lower(lowering *l) {
    const tensor_type *fill = lower_in(l, 2);
    padding p = {0};
    int64_t fill_count = 0;
    int n_pads, n_axes;
    const int64_t *pads, *axes;
    TRY(pad_mode(l->node, &p.mode, l->err));
    TRY(lower_ints(l, 1, &n_pads, &pads));
    TRY(lower_ints(l, 3, &n_axes, &axes));
    bool has_axes = l->node->n_in > 3 && l->node->in[3] >= 0;
    if (n_pads < 0 || (has_axes && n_axes < 0)) return BRAID_UNSUPPORTED;
    if (fill && (!tensor_type_count(fill, &fill_count) || !fill_count)) return BRAID_UNSUPPORTED;
    TRY(pad_spread(lower_in(l, 0)->rank, n_pads, pads, n_axes, has_axes ? axes : NULL, &p, l->err));
    return pad_lower_axes(l, &p);
}

static const attribute_spec pad_attributes[] = {{"mode", ATTRIBUTE_STRING, "constant"},
                                                {"pads", ATTRIBUTE_INTS, NULL},
                                                {"paddings", ATTRIBUTE_INTS, NULL},
                                                {"value", ATTRIBUTE_FLOAT, "0"},
                                                {0}};

const op pad_ops[] = {
    {.name = "Pad", .flags = OP_READS_FLOATS, .since = 1, .min_in = 1, .max_in = 4, .min_out = 1, .max_out = 1, .attributes = pad_attributes,
     .upgrade = pad_upgrade, .infer = pad_infer, .eval = pad_eval, .lower = pad_lower},
    {0}};
