/*
 * part.c: Concat, Split, Slice: tensors that are parts of others.
 */
#include "ops/follow.h"
#include "ops/region.h"
#include "ops/slice.h"
#include "ops/upgrade.h"

static braid_status find_axis(const node *n, int64_t fallback, int rank, int *axis, braid_error *err) {
    return axis_normalise(node_int(n, "axis", fallback), rank, axis, err);
}

/* A dense copy of all of `part`, which lies within `whole` at `at` along an axis. */
static region part_region(const tensor_type *part, const tensor_type *whole, int axis, int64_t at, bool into_whole) {
    region r = {0};
    int64_t ps[BRAID_MAX_RANK], ws[BRAID_MAX_RANK];
    region_strides(part->rank, part->dims, ps);
    region_strides(whole->rank, whole->dims, ws);
    for (int d = 0; d < part->rank; d++) region_add(&r, part->dims[d], into_whole ? ps[d] : ws[d], into_whole ? ws[d] : ps[d]);
    *(into_whole ? &r.out_at : &r.in_at) = at * ws[axis];
    return r;
}

/* ------------------------------------------------------------------------------------------------- Concat */

static braid_status concat_upgrade(upgrade *u) {
    if (u->opset < 4 && !node_attribute(u->node, "axis") && !node_add_int(u->g, u->node, "axis", 1))
        return error_memory(u->err);
    return BRAID_OK;
}

static braid_status concat_join(infer *c, int i, int axis, tensor_type *out) {
    const tensor_type *in = c->in[i];
    if (in->rank != out->rank)
        return error_set(c->err, BRAID_SHAPE, "input %d: rank %d, input 0 has %d", i, in->rank, out->rank);
    for (int d = 0; d < out->rank; d++) {
        int64_t a = out->dims[d], b = in->dims[d];
        if (d == axis) {
            TRY(infer_add(c, a, b, &out->dims[d]));
        } else if (dim_known(a) && dim_known(b) && a != b) {
            return error_set(c->err, BRAID_SHAPE, "input %d: axis %d has %lld elements, others %lld", i, d, (long long)b,
                             (long long)a);
        } else if (dim_known(b)) {
            out->dims[d] = b;
        }
    }
    return BRAID_OK;
}

static void concat_follow(infer *c) {
    int64_t all[FOLLOW_MAX];
    int n = 0;
    followed f;
    if (!follow_wanted(c, 0)) return;
    for (int i = 0; i < c->n_in; i++) {
        if (!follow_in(c, i, &f) || n + f.n > FOLLOW_MAX) return;
        if (f.n) memcpy(all + n, f.v, (size_t)f.n * sizeof *all);
        n += f.n;
    }
    int64_t *v = follow_put(c, 0, n);
    if (v && n) memcpy(v, all, (size_t)n * sizeof *all);
}

static braid_status concat_infer(infer *c) {
    tensor_type out = {.rank = -1};
    bool ranked = true;
    for (int i = 0; i < c->n_in; i++) {
        if (!infer_has(c, i)) return error_set(c->err, BRAID_MODEL, "input %d is absent", i);
        braid_type type = c->in[i]->type;
        if (out.type != BRAID_TYPE_NONE && type != BRAID_TYPE_NONE && type != out.type)
            return error_set(c->err, BRAID_TYPE, "input %d: %s, others are %s", i, braid_type_name(type),
                             braid_type_name(out.type));
        if (type != BRAID_TYPE_NONE) out.type = type;
        ranked = ranked && c->in[i]->rank >= 0;
    }
    c->out[0].type = out.type;
    if (!node_attribute(c->node, "axis")) return error_set(c->err, BRAID_MODEL, "no attribute axis");
    if (!ranked) return BRAID_OK;
    int axis;
    TRY(find_axis(c->node, 0, c->in[0]->rank, &axis, c->err));
    out.rank = c->in[0]->rank;
    memcpy(out.dims, c->in[0]->dims, sizeof out.dims);
    for (int i = 1; i < c->n_in; i++) TRY(concat_join(c, i, axis, &out));
    c->out[0] = out;
    if (out.rank == 1) concat_follow(c);
    return infer_limit(c, 0);
}

static braid_status concat_eval(eval *e) {
    tensor *out;
    int axis;
    TRY(eval_output(e, 0, &out));
    TRY(find_axis(e->node, 0, out->type.rank, &axis, e->err));
    int64_t at = 0;
    for (int i = 0; i < e->n_in; i++) {
        const tensor *in = eval_in(e, i);
        region r = part_region(&in->type, &out->type, axis, at, true);
        region_copy(&r, in->type.type, in->data, out->data);
        at += in->type.dims[axis];
    }
    return BRAID_OK;
}

/* With nothing but ones before the axis, a part is one run of bytes: *offset is where element `at` of the axis begins. */
static bool part_run(const tensor_type *whole, int axis, int64_t at, uint64_t *offset) {
    int64_t elements = at;
    if (type_bits(whole->type) < 8) return false;
    for (int i = 0; i < axis; i++)
        if (whole->dims[i] != 1) return false;
    for (int i = axis + 1; i < whole->rank; i++) elements *= whole->dims[i]; /* below the checked element count */
    *offset = (uint64_t)elements * (uint64_t)(type_bits(whole->type) / 8);
    return true;
}

static braid_status concat_lower(lowering *l) {
    const tensor_type *out = lower_out(l, 0);
    int axis;
    TRY(find_axis(l->node, 0, out->rank, &axis, l->err));
    int64_t at = 0;
    uint64_t ignored;
    if (part_run(out, axis, 0, &ignored) && lower_side_by_side(l)) return BRAID_OK;
    for (int i = 0; i < l->node->n_in; i++) {
        region r = part_region(lower_in(l, i), out, axis, at, true);
        uint64_t offset;
        if (!part_run(out, axis, at, &offset) || !lower_place(l, i, 0, offset)) TRY(region_lower(l, i, 0, &r));
        at += lower_in(l, i)->dims[axis];
    }
    return BRAID_OK;
}

/* -------------------------------------------------------------------------------------------------- Split */

static braid_status split_upgrade(upgrade *u) { return u->opset < 13 ? upgrade_ints_to_input(u, "split", 1) : BRAID_OK; }

static braid_status split_given(infer *c, int axis, int count, const int64_t *sizes) {
    int64_t dim = c->in[0]->dims[axis], sum = 0;
    if (count != c->n_out)
        return error_set(c->err, BRAID_SHAPE, "split has %d sizes for %d outputs", count, c->n_out);
    for (int i = 0; i < count; i++) {
        if (dim_known(sizes[i]) && sizes[i] < 0)
            return error_set(c->err, BRAID_SHAPE, "split: element %d is %lld", i, (long long)sizes[i]);
        TRY(infer_add(c, sum, sizes[i], &sum));
        c->out[i].dims[axis] = sizes[i];
    }
    if (dim_known(dim) && dim_known(sum) && sum != dim)
        return error_set(c->err, BRAID_SHAPE, "split: the sizes add up to %lld, axis %d has %lld", (long long)sum, axis,
                         (long long)dim);
    return BRAID_OK;
}

/* Equal parts; since opset 18 the last one may be smaller. */
static braid_status split_evenly(infer *c, int axis) {
    int64_t dim = c->in[0]->dims[axis], n = c->n_out;
    if (dim_is_symbol(dim)) {
        for (int i = 0; i < c->n_out; i++) c->out[i].dims[axis] = n == 1 ? dim : infer_fresh(c);
        return BRAID_OK;
    }
    int64_t part = dim / n + (dim % n != 0), last = dim - part * (n - 1);
    bool uneven_ok = c->node->opset >= 18 || node_attribute(c->node, "num_outputs");
    if (last < 0 || (last != part && !uneven_ok))
        return error_set(c->err, BRAID_SHAPE, "axis %d: %lld elements do not split into %lld parts", axis,
                         (long long)dim, (long long)n);
    for (int i = 0; i < c->n_out; i++) c->out[i].dims[axis] = i + 1 < n ? part : last;
    return BRAID_OK;
}

static void split_follow(infer *c) {
    followed f;
    if (c->in[0]->rank != 1 || !follow_wanted(c, 0) || !follow_in(c, 0, &f)) return;
    int at = 0;
    for (int i = 0; i < c->n_out; i++) {
        int64_t n = c->out[i].dims[0];
        if (!dim_known(n) || n > f.n - at) return;
        int64_t *v = follow_put(c, i, (int)n);
        if (v && n) memcpy(v, f.v + at, (size_t)n * sizeof *v);
        at += (int)n;
    }
}

static braid_status split_infer(infer *c) {
    const tensor_type *in = c->in[0];
    int64_t outputs = node_int(c->node, "num_outputs", c->n_out);
    if (outputs != c->n_out || outputs < 1)
        return error_set(c->err, BRAID_MODEL, "num_outputs is %lld, the node has %d", (long long)outputs, c->n_out);
    if (infer_has(c, 1) && node_attribute(c->node, "num_outputs"))
        return error_set(c->err, BRAID_MODEL, "both split and num_outputs");
    for (int i = 0; i < c->n_out; i++) c->out[i].type = in->type;
    TRY(infer_index_type(c, 1));
    TRY(infer_rank(c, 1, 0, 1));
    if (in->rank < 0) return BRAID_OK;
    int axis, count;
    const int64_t *sizes;
    TRY(find_axis(c->node, 0, in->rank, &axis, c->err));
    for (int i = 0; i < c->n_out; i++) {
        c->out[i] = *in;
        c->out[i].dims[axis] = infer_has(c, 1) ? infer_fresh(c) : 0;
    }
    if (!infer_has(c, 1)) TRY(split_evenly(c, axis));
    else if (infer_ints(c, 1, &count, &sizes)) TRY(split_given(c, axis, count, sizes));
    split_follow(c);
    return BRAID_OK;
}

static braid_status split_eval(eval *e) {
    const tensor *in = eval_in(e, 0);
    int axis;
    TRY(find_axis(e->node, 0, in->type.rank, &axis, e->err));
    int64_t at = 0;
    for (int i = 0; i < e->n_out; i++) {
        tensor *out;
        if (eval_wants(e, i)) {
            TRY(eval_output(e, i, &out));
            region r = part_region(&out->type, &in->type, axis, at, false);
            region_copy(&r, in->type.type, in->data, out->data);
        }
        at += e->types[i].dims[axis];
    }
    return BRAID_OK;
}

/* Where the parts begin: the outputs' own shapes say it, as long as none is absent. */
static braid_status split_lower(lowering *l) {
    const tensor_type *in = lower_in(l, 0);
    int axis, count = -1;
    const int64_t *sizes;
    TRY(find_axis(l->node, 0, in->rank, &axis, l->err));
    if (l->node->n_in > 1 && l->node->in[1] >= 0) TRY(lower_ints(l, 1, &count, &sizes));
    int64_t at = 0, n = l->node->n_out, part = in->dims[axis] / n + (in->dims[axis] % n != 0);
    for (int i = 0; i < n; i++) {
        const tensor_type *out = lower_out(l, i);
        if (!out && l->node->n_in > 1 && l->node->in[1] >= 0 && count < 0) return BRAID_UNSUPPORTED;
        if (out) {
            region r = part_region(out, in, axis, at, false);
            uint64_t offset;
            bool in_place = part_run(in, axis, at, &offset) && offset % 16 == 0;
            TRY(in_place ? lower_part(l, i, 0, offset) : region_lower(l, 0, i, &r));
        }
        at += out ? out->dims[axis] : count < 0 ? part : sizes[i];
    }
    return BRAID_OK;
}

/* -------------------------------------------------------------------------------------------------- Slice */

/* starts, ends, axes and steps of one Slice. */
typedef struct slice {
    int n; /* axes that are cut */
    const int64_t *start, *end, *axis, *step; /* axis, step: NULL where absent */
} slice;

static braid_status slice_upgrade(upgrade *u) {
    if (u->opset < 10) {
        TRY(upgrade_ints_to_input(u, "starts", 1));
        TRY(upgrade_ints_to_input(u, "ends", 2));
        TRY(upgrade_ints_to_input(u, "axes", 3));
    }
    return upgrade_has(u, 1) && upgrade_has(u, 2) ? BRAID_OK : error_set(u->err, BRAID_MODEL, "no starts or ends");
}

/* Length of one axis where a dim or bound may be a symbol. */
static braid_status slice_length(infer *c, int64_t dim, int64_t start, int64_t end, int64_t by, int64_t *out) {
    int64_t first;
    if (dim_known(by) && by == 0) return error_set(c->err, BRAID_MODEL, "a step of 0");
    if (dim_known(dim) && dim_known(start) && dim_known(end) && dim_known(by))
        slice_axis(dim, start, end, by, &first, out);
    else if (start == 0 && by == 1 && (end == dim || (dim_known(end) && end >= INT32_MAX)))
        *out = dim;
    else
        *out = infer_fresh(c);
    return BRAID_OK;
}

static braid_status slice_axis_of(const slice *s, int i, int rank, uint32_t *seen, int *axis, braid_error *err) {
    if (s->axis && dim_is_symbol(s->axis[i]))
        return error_set(err, BRAID_UNSUPPORTED, "axes that depend on the input's shape");
    TRY(axis_normalise(s->axis ? s->axis[i] : i, rank, axis, err));
    if (*seen & 1u << *axis) return error_set(err, BRAID_MODEL, "axis %d twice", *axis);
    *seen |= 1u << *axis;
    return BRAID_OK;
}

static void slice_follow(infer *c, const slice *s) {
    followed f;
    int64_t first = 0, count, by = s->n && s->step ? s->step[0] : 1;
    if (c->in[0]->rank != 1 || !follow_wanted(c, 0) || !follow_in(c, 0, &f)) return;
    count = f.n;
    if (s->n && (dim_is_symbol(s->start[0]) || dim_is_symbol(s->end[0]) || dim_is_symbol(by))) return;
    if (s->n) slice_axis(f.n, s->start[0], s->end[0], by, &first, &count);
    int64_t *v = follow_put(c, 0, (int)count);
    for (int i = 0; v && i < count; i++) v[i] = f.v[first + i * by];
}

/* Reads an optional list of the same length as starts; *out NULL when it is absent. False: there, but not known. */
static braid_status slice_list(infer *c, int i, int n, const int64_t **out, bool *known) {
    int count;
    *out = NULL;
    if (!infer_has(c, i)) return BRAID_OK;
    if (!infer_ints(c, i, &count, out)) *known = false;
    else if (count != n) return error_set(c->err, BRAID_SHAPE, "input %d: %d elements, starts has %d", i, count, n);
    return BRAID_OK;
}

/* Bounds are not known: only the axes that are cut become unknown, as far as the axes are known. */
static braid_status slice_unknown(infer *c) {
    const tensor_type *in = c->in[0], *starts = c->in[1];
    int64_t n = starts->rank == 1 && dim_known(starts->dims[0]) ? starts->dims[0] : -1;
    int count = 0;
    const int64_t *axes = NULL;
    bool listed = infer_has(c, 3) && infer_ints(c, 3, &count, &axes);
    c->out[0] = *in;
    for (int d = 0; d < in->rank; d++) {
        bool cut = infer_has(c, 3) ? !listed : n < 0 || d < n;
        for (int i = 0; i < count; i++) cut = cut || axes[i] == d || axes[i] + in->rank == d;
        if (cut) c->out[0].dims[d] = infer_fresh(c);
    }
    return BRAID_OK;
}

static braid_status slice_infer(infer *c) {
    const tensor_type *in = c->in[0];
    slice s = {0};
    int ends;
    for (int i = 1; i < 5; i++) {
        TRY(infer_rank(c, i, 1, 1));
        TRY(infer_index_type(c, i));
    }
    c->out[0].type = in->type;
    if (in->rank < 0) return BRAID_OK;
    bool known = infer_ints(c, 1, &s.n, &s.start) && infer_ints(c, 2, &ends, &s.end);
    if (known && ends != s.n) return error_set(c->err, BRAID_SHAPE, "%d starts, %d ends", s.n, ends);
    if (known) TRY(slice_list(c, 3, s.n, &s.axis, &known));
    if (known) TRY(slice_list(c, 4, s.n, &s.step, &known));
    if (!known) return slice_unknown(c);
    c->out[0] = *in;
    uint32_t seen = 0;
    for (int i = 0; i < s.n; i++) {
        int axis;
        TRY(slice_axis_of(&s, i, in->rank, &seen, &axis, c->err));
        TRY(slice_length(c, in->dims[axis], s.start[i], s.end[i], s.step ? s.step[i] : 1, &c->out[0].dims[axis]));
    }
    slice_follow(c, &s);
    return BRAID_OK;
}

/* The bounds were checked by infer. */
static braid_status slice_region(const slice *s, const tensor_type *in, const tensor_type *out, region *r,
                                 braid_error *err) {
    int64_t from[BRAID_MAX_RANK], to[BRAID_MAX_RANK], by[BRAID_MAX_RANK];
    uint32_t seen = 0;
    region_strides(in->rank, in->dims, from);
    region_strides(out->rank, out->dims, to);
    for (int d = 0; d < in->rank; d++) by[d] = 1;
    for (int i = 0; i < s->n; i++) {
        int axis;
        int64_t first, count;
        TRY(slice_axis_of(s, i, in->rank, &seen, &axis, err));
        by[axis] = s->step ? s->step[i] : 1;
        slice_axis(in->dims[axis], s->start[i], s->end[i], by[axis], &first, &count);
        if (count != out->dims[axis]) return error_set(err, BRAID_INTERNAL, "axis %d: length not as inferred", axis);
        if (count) r->in_at += first * from[axis];
    }
    for (int d = 0; d < in->rank; d++) /* a huge step with one element must not overflow the product */
        region_add(r, out->dims[d], out->dims[d] > 1 ? from[d] * by[d] : 0, to[d]);
    return BRAID_OK;
}

static braid_status eval_ints(eval *e, int i, int64_t **out) {
    const tensor *t = eval_in(e, i);
    *out = NULL;
    if (!t) return BRAID_OK;
    int64_t n = t->type.dims[0];
    if (!(*out = arena_array(e->memory, (size_t)n + 1, sizeof **out))) return error_memory(e->err);
    for (int64_t k = 0; k < n; k++) (*out)[k] = element_i64(t->type.type, t->data, k);
    return BRAID_OK;
}

static braid_status slice_eval(eval *e) {
    const tensor *in = eval_in(e, 0);
    int64_t *lists[4];
    for (int i = 0; i < 4; i++) TRY(eval_ints(e, i + 1, &lists[i]));
    slice s = {(int)eval_in(e, 1)->type.dims[0], lists[0], lists[1], lists[2], lists[3]};
    tensor *out;
    region r = {0};
    TRY(eval_output(e, 0, &out));
    TRY(slice_region(&s, &in->type, &out->type, &r, e->err));
    region_copy(&r, in->type.type, in->data, out->data);
    return BRAID_OK;
}

/* One run of bytes that can stay where it is. */
static bool slice_run(const tensor_type *in, const region *whole, uint64_t *offset) {
    region r = *whole;
    if (type_bits(in->type) < 8 || region_count(&r) == 0) return false;
    region_collapse(&r);
    *offset = (uint64_t)r.in_at * (uint64_t)(type_bits(in->type) / 8);
    return (r.rank == 0 || (r.rank == 1 && r.in_stride[0] == 1 && r.out_stride[0] == 1)) && *offset % 16 == 0;
}

static braid_status slice_lower(lowering *l) {
    const int64_t *lists[4] = {0};
    int count, n = 0;
    for (int i = 0; i < 4; i++) {
        if (i + 1 >= l->node->n_in || l->node->in[i + 1] < 0) continue;
        TRY(lower_ints(l, i + 1, &count, &lists[i]));
        if (count < 0) return BRAID_UNSUPPORTED;
        if (i == 0) n = count;
    }
    slice s = {n, lists[0], lists[1], lists[2], lists[3]};
    region r = {0};
    TRY(slice_region(&s, lower_in(l, 0), lower_out(l, 0), &r, l->err));
    uint64_t offset;
    return slice_run(lower_in(l, 0), &r, &offset) ? lower_part(l, 0, 0, offset) : region_lower(l, 0, 0, &r);
}

static const attribute_spec concat_attributes[] = {{"axis", ATTRIBUTE_INT, NULL}, {0}};
static const attribute_spec split_attributes[] = {
    {"axis", ATTRIBUTE_INT, "0"}, {"num_outputs", ATTRIBUTE_INT, NULL}, {"split", ATTRIBUTE_INTS, NULL}, {0}};
static const attribute_spec slice_attributes[] = {
    {"starts", ATTRIBUTE_INTS, NULL}, {"ends", ATTRIBUTE_INTS, NULL}, {"axes", ATTRIBUTE_INTS, NULL}, {0}};

const op part_ops[] = {
    {.name = "Concat", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .flags = OP_VARIADIC_IN,
     .attributes = concat_attributes, .upgrade = concat_upgrade, .infer = concat_infer, .eval = concat_eval,
     .lower = concat_lower},
    {.name = "Split", .since = 1, .min_in = 1, .max_in = 2, .min_out = 1, .max_out = 1, .flags = OP_VARIADIC_OUT,
     .attributes = split_attributes, .upgrade = split_upgrade, .infer = split_infer, .eval = split_eval,
     .lower = split_lower},
    {.name = "Slice", .since = 1, .min_in = 1, .max_in = 5, .min_out = 1, .max_out = 1, .attributes = slice_attributes,
     .upgrade = slice_upgrade, .infer = slice_infer, .eval = slice_eval, .lower = slice_lower},
    {0}};
