/*
 * view.c: operators whose output is the input's bytes under another shape: Identity, Reshape, Flatten, Squeeze,
 * Unsqueeze. (Split and Slice along the outermost dim that is not 1 are views at an offset, too; they copy.)
 */
#include "ops/follow.h"
#include "ops/upgrade.h"

static braid_status view_eval(eval *e) {
    tensor *out;
    const tensor *in = eval_in(e, 0);
    TRY(eval_output(e, 0, &out));
    if (out->bytes != in->bytes || out->type.type != in->type.type)
        return error_set(e->err, BRAID_SHAPE, "%zu bytes under a shape of %zu", in->bytes, out->bytes);
    if (in->bytes) memcpy(out->data, in->data, in->bytes);
    return BRAID_OK;
}

static braid_status view_lower(lowering *l) {
    if (lower_in(l, 0)->type == BRAID_STRING) return BRAID_UNSUPPORTED;
    return lower_alias(l, 0, 0);
}

static braid_status identity_infer(infer *c) {
    TRY(infer_same(c));
    follow_same(c);
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------ Reshape */

/* Number of elements as a number times symbols. */
typedef struct product {
    int64_t number;
    int n;
    int64_t symbols[BRAID_MAX_RANK];
} product;

static bool product_add(product *p, int64_t dim) {
    if (dim_known(dim)) return i64_mul(p->number, dim, &p->number);
    p->symbols[p->n++] = dim;
    return true;
}

/* Drops the symbols that both have. */
static void product_cancel(product *a, product *b) {
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++)
            if (a->symbols[i] == b->symbols[j]) {
                a->symbols[i--] = a->symbols[--a->n];
                b->symbols[j] = b->symbols[--b->n];
                break;
            }
}

/* What a -1 stands for where `in` elements are spread over `out` ones; symbolic counts may leave it unknown. */
static braid_status reshape_rest(infer *c, product *in, product *out, int64_t *rest) {
    product_cancel(in, out);
    if (out->number == 0)
        return error_set(c->err, BRAID_SHAPE, "shape: -1 beside a dim of 0 can be anything");
    if (!out->n && !in->n) {
        if (in->number % out->number)
            return error_set(c->err, BRAID_SHAPE, "shape: %lld elements do not divide by %lld", (long long)in->number,
                             (long long)out->number);
        *rest = in->number / out->number;
    } else if (!out->n && in->n == 1 && in->number == out->number) {
        *rest = in->symbols[0];
    } else {
        *rest = in->number == 0 ? 0 : infer_fresh(c);
    }
    return BRAID_OK;
}

static braid_status reshape_same(infer *c, product *in, product *out) {
    product_cancel(in, out);
    bool certain = !in->n && !out->n;
    if (certain && in->number != out->number)
        return error_set(c->err, BRAID_SHAPE, "shape: %lld elements, the input has %lld", (long long)out->number,
                         (long long)in->number);
    return BRAID_OK;
}

/* Reads the shape input into dims: copies for 0, *hole the place of -1. copied: dims that are the input's own. */
static braid_status reshape_read(infer *c, int count, const int64_t *shape, int *hole, uint32_t *copied) {
    const tensor_type *in = c->in[0];
    bool allow_zero = node_int(c->node, "allowzero", 0) != 0, zero = false;
    for (int i = 0; i < count; i++) {
        int64_t v = shape[i];
        c->out[0].dims[i] = v;
        if (dim_is_symbol(v)) continue;
        if (v < -1) return error_set(c->err, BRAID_SHAPE, "shape: element %d is %lld", i, (long long)v);
        if (v == -1) {
            if (*hole >= 0) return error_set(c->err, BRAID_SHAPE, "shape: more than one -1");
            *hole = i;
            c->out[0].dims[i] = infer_fresh(c);
        } else if (v == 0 && !allow_zero) {
            if (in->rank >= 0 && i >= in->rank)
                return error_set(c->err, BRAID_SHAPE, "shape: element %d is 0, but the input has rank %d", i, in->rank);
            c->out[0].dims[i] = in->rank < 0 ? infer_fresh(c) : in->dims[i];
            *copied |= 1u << i;
        } else if (v == 0) {
            zero = true;
        }
    }
    if (zero && *hole >= 0) return error_set(c->err, BRAID_SHAPE, "shape: both 0 and -1 with allowzero");
    return BRAID_OK;
}

static braid_status reshape_unknown(infer *c) {
    const tensor_type *shape = c->in[1];
    if (shape->rank != 1 || !dim_known(shape->dims[0])) return BRAID_OK;
    if (shape->dims[0] > BRAID_MAX_RANK)
        return error_set(c->err, BRAID_LIMIT, "rank %lld, at most %d", (long long)shape->dims[0], BRAID_MAX_RANK);
    c->out[0].rank = (int)shape->dims[0];
    for (int d = 0; d < c->out[0].rank; d++) c->out[0].dims[d] = infer_fresh(c);
    return BRAID_OK;
}

static braid_status reshape_dims(infer *c, int count, const int64_t *shape) {
    if (count > BRAID_MAX_RANK) return error_set(c->err, BRAID_LIMIT, "rank %d, at most %d", count, BRAID_MAX_RANK);
    int hole = -1;
    uint32_t copied = 0;
    TRY(reshape_read(c, count, shape, &hole, &copied));
    c->out[0].rank = count;
    const tensor_type *in = c->in[0];
    if (in->rank < 0) return BRAID_OK;
    product from = {.number = 1}, to = {.number = 1};
    bool fit = true;
    for (int d = 0; d < in->rank; d++)
        if (!(copied & 1u << d)) fit = fit && product_add(&from, in->dims[d]);
    for (int d = 0; d < count; d++)
        if (d != hole && !(copied & 1u << d)) fit = fit && product_add(&to, c->out[0].dims[d]);
    if (!fit) return error_set(c->err, BRAID_SHAPE, "the number of elements overflows");
    for (int d = 0; d < count; d++) /* a copied dim of 0: no elements on either side, whatever the others are */
        if (hole < 0 && (copied & 1u << d) && c->out[0].dims[d] == 0) return BRAID_OK;
    return hole < 0 ? reshape_same(c, &from, &to) : reshape_rest(c, &from, &to, &c->out[0].dims[hole]);
}

static braid_status reshape_infer(infer *c) {
    c->out[0].type = c->in[0]->type;
    if (c->in[1]->type != BRAID_TYPE_NONE && c->in[1]->type != BRAID_INT64)
        return error_set(c->err, BRAID_TYPE, "input 1: %s, expected int64", braid_type_name(c->in[1]->type));
    TRY(infer_rank(c, 1, 1, 1));
    int count;
    const int64_t *shape;
    if (infer_ints(c, 1, &count, &shape)) TRY(reshape_dims(c, count, shape));
    else TRY(reshape_unknown(c));
    follow_same(c);
    return infer_limit(c, 0);
}

static braid_status reshape_upgrade(upgrade *u) {
    upgrade_drop_attribute(u, "consumed_inputs");
    if (u->opset < 5) TRY(upgrade_ints_to_input(u, "shape", 1));
    if (!upgrade_has(u, 1)) return error_set(u->err, BRAID_MODEL, "no shape");
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------ Flatten */

static braid_status flatten_infer(infer *c) {
    const tensor_type *in = c->in[0];
    tensor_type *out = &c->out[0];
    out->type = in->type;
    out->rank = 2;
    int64_t axis = node_int(c->node, "axis", 1);
    if (in->rank < 0) {
        out->dims[0] = axis == 0 ? 1 : infer_fresh(c);
        out->dims[1] = infer_fresh(c);
        return BRAID_OK;
    }
    if (axis < -in->rank || axis > in->rank)
        return error_set(c->err, BRAID_MODEL, "axis %lld outside [%d, %d]", (long long)axis, -in->rank, in->rank);
    if (axis < 0) axis += in->rank;
    out->dims[0] = out->dims[1] = 1;
    for (int d = 0; d < in->rank; d++) TRY(infer_mul(c, out->dims[d >= axis], in->dims[d], &out->dims[d >= axis]));
    return BRAID_OK;
}

/* -------------------------------------------------------------------------------------- Squeeze, Unsqueeze */

static braid_status axes_upgrade(upgrade *u) {
    return u->opset < 13 ? upgrade_ints_to_input(u, "axes", 1) : BRAID_OK;
}

/* Marks axes (normalised for `rank`) in a bit set; a repeated one is an error. */
static braid_status axes_set(infer *c, int count, const int64_t *axes, int rank, uint32_t *set) {
    *set = 0;
    for (int i = 0; i < count; i++) {
        int axis;
        if (dim_is_symbol(axes[i])) return error_set(c->err, BRAID_UNSUPPORTED, "axes that depend on the input's shape");
        TRY(axis_normalise(axes[i], rank, &axis, c->err));
        if (*set & 1u << axis) return error_set(c->err, BRAID_MODEL, "axis %d twice", axis);
        *set |= 1u << axis;
    }
    return BRAID_OK;
}

/* Every dim of 1 goes; nothing is known while a dim may be 1 or not. */
static bool squeeze_ones(const tensor_type *in, uint32_t *set) {
    *set = 0;
    for (int d = 0; d < in->rank; d++) {
        if (dim_is_symbol(in->dims[d])) return false;
        if (in->dims[d] == 1) *set |= 1u << d;
    }
    return true;
}

static braid_status squeeze_infer(infer *c) {
    const tensor_type *in = c->in[0];
    tensor_type *out = &c->out[0];
    out->type = in->type;
    TRY(infer_index_type(c, 1));
    TRY(infer_rank(c, 1, 0, 1));
    if (in->rank < 0) return BRAID_OK;
    int count;
    const int64_t *axes;
    uint32_t set;
    if (!infer_has(c, 1)) {
        if (!squeeze_ones(in, &set)) return BRAID_OK;
    } else if (infer_ints(c, 1, &count, &axes)) {
        TRY(axes_set(c, count, axes, in->rank, &set));
    } else {
        return BRAID_OK;
    }
    int rank = 0;
    for (int d = 0; d < in->rank; d++) {
        if (!(set & 1u << d)) out->dims[rank++] = in->dims[d];
        else if (dim_known(in->dims[d]) && in->dims[d] != 1)
            return error_set(c->err, BRAID_SHAPE, "axis %d has %lld elements, expected 1", d, (long long)in->dims[d]);
    }
    out->rank = rank;
    follow_same(c);
    return BRAID_OK;
}

static braid_status unsqueeze_infer(infer *c) {
    const tensor_type *in = c->in[0];
    tensor_type *out = &c->out[0];
    out->type = in->type;
    TRY(infer_index_type(c, 1));
    TRY(infer_rank(c, 1, 0, 1));
    int count;
    const int64_t *axes;
    if (in->rank < 0 || !infer_ints(c, 1, &count, &axes)) return BRAID_OK;
    int rank = in->rank + count;
    if (count > BRAID_MAX_RANK || rank > BRAID_MAX_RANK)
        return error_set(c->err, BRAID_LIMIT, "rank %d, at most %d", rank, BRAID_MAX_RANK);
    uint32_t set;
    TRY(axes_set(c, count, axes, rank, &set));
    for (int d = 0, from = 0; d < rank; d++) out->dims[d] = set & 1u << d ? 1 : in->dims[from++];
    out->rank = rank;
    follow_same(c);
    return BRAID_OK;
}

static braid_status unsqueeze_upgrade(upgrade *u) {
    TRY(axes_upgrade(u));
    return upgrade_has(u, 1) ? BRAID_OK : error_set(u->err, BRAID_MODEL, "no axes");
}

static const attribute_spec reshape_attributes[] = {
    {"allowzero", ATTRIBUTE_INT, "0"}, {"shape", ATTRIBUTE_INTS, NULL}, {"consumed_inputs", ATTRIBUTE_INTS, NULL}, {0}};
static const attribute_spec flatten_attributes[] = {{"axis", ATTRIBUTE_INT, "1"}, {0}};
static const attribute_spec axes_attributes[] = {{"axes", ATTRIBUTE_INTS, NULL}, {0}};

const op view_ops[] = {
    {.name = "Identity", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .flags = OP_VIEW,
     .infer = identity_infer, .eval = view_eval, .lower = view_lower},
    {.name = "Reshape", .since = 1, .min_in = 1, .max_in = 2, .min_out = 1, .max_out = 1, .flags = OP_VIEW,
     .attributes = reshape_attributes, .upgrade = reshape_upgrade, .infer = reshape_infer, .eval = view_eval,
     .lower = view_lower},
    {.name = "Flatten", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .flags = OP_VIEW,
     .attributes = flatten_attributes, .infer = flatten_infer, .eval = view_eval, .lower = view_lower},
    {.name = "Squeeze", .since = 1, .min_in = 1, .max_in = 2, .min_out = 1, .max_out = 1, .flags = OP_VIEW,
     .attributes = axes_attributes, .upgrade = axes_upgrade, .infer = squeeze_infer, .eval = view_eval,
     .lower = view_lower},
    {.name = "Unsqueeze", .since = 1, .min_in = 1, .max_in = 2, .min_out = 1, .max_out = 1, .flags = OP_VIEW,
     .attributes = axes_attributes, .upgrade = unsqueeze_upgrade, .infer = unsqueeze_infer, .eval = view_eval,
     .lower = view_lower},
    {0}};
