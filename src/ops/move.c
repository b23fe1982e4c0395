/*
 * move.c: Transpose, Expand, Tile, DepthToSpace, SpaceToDepth: one input, one output, one region.
 */
#include "ops/follow.h"
#include "ops/region.h"
#include "ops/upgrade.h"

/* ---------------------------------------------------------------------------------------------- Transpose */

static braid_status transpose_infer(infer *c) {
    const tensor_type *in = c->in[0];
    tensor_type *out = &c->out[0];
    const int64_t *perm;
    int count = node_ints(c->node, "perm", &perm);
    bool given = node_attribute(c->node, "perm") != NULL;
    out->type = in->type;
    if (in->rank < 0) return BRAID_OK;
    if (given && count != in->rank)
        return error_set(c->err, BRAID_MODEL, "perm has %d axes, the input rank %d", count, in->rank);
    uint32_t seen = 0;
    for (int d = 0; d < in->rank; d++) {
        int axis = in->rank - 1 - d;
        if (given) TRY(axis_normalise(perm[d], in->rank, &axis, c->err));
        if (seen & 1u << axis) return error_set(c->err, BRAID_MODEL, "perm has axis %d twice", axis);
        seen |= 1u << axis;
        out->dims[d] = in->dims[axis];
    }
    out->rank = in->rank;
    if (in->rank <= 1) follow_same(c);
    return BRAID_OK;
}

static void transpose_region(const node *n, const tensor_type *in, const tensor_type *out, region *r) {
    const int64_t *perm;
    bool given = node_ints(n, "perm", &perm) > 0;
    int64_t from[BRAID_MAX_RANK], to[BRAID_MAX_RANK];
    region_strides(in->rank, in->dims, from);
    region_strides(out->rank, out->dims, to);
    for (int d = 0; d < in->rank; d++) {
        int64_t axis = given ? perm[d] : in->rank - 1 - d;
        if (axis < 0) axis += in->rank;
        region_add(r, in->dims[axis], from[axis], to[d]);
    }
}

static braid_status transpose_eval(eval *e) { return region_eval_one(e, transpose_region); }
static braid_status transpose_lower(lowering *l) { return region_lower_one(l, transpose_region); }

/* ------------------------------------------------------------------------------------------------- Expand */

static braid_status expand_dims(infer *c, int count, const int64_t *shape) {
    const tensor_type *in = c->in[0];
    tensor_type *out = &c->out[0];
    if (count > BRAID_MAX_RANK) return error_set(c->err, BRAID_LIMIT, "rank %d, at most %d", count, BRAID_MAX_RANK);
    int rank = count > in->rank ? count : in->rank;
    for (int d = 0; d < rank; d++) {
        int from = d - (rank - in->rank), to = d - (rank - count);
        int64_t a = from < 0 ? 1 : in->dims[from], b = to < 0 ? 1 : shape[to];
        if (dim_known(b) && b < 0) return error_set(c->err, BRAID_SHAPE, "shape: element %d is %lld", to, (long long)b);
        if (!infer_broadcast_dim(c, a, b, &out->dims[d]))
            return error_set(c->err, BRAID_SHAPE, "axis %d: %lld elements do not expand to %lld", d, (long long)a,
                             (long long)b);
    }
    out->rank = rank;
    return BRAID_OK;
}

static void expand_follow(infer *c) {
    followed f;
    const tensor_type *out = &c->out[0];
    if (out->rank > 1 || !follow_wanted(c, 0) || !follow_in(c, 0, &f)) return;
    if (out->rank == 1 && (!dim_known(out->dims[0]) || out->dims[0] > FOLLOW_MAX)) return;
    int n = out->rank == 1 ? (int)out->dims[0] : 1;
    if (f.n != 1 && f.n != n) return;
    int64_t *v = follow_put(c, 0, n);
    for (int i = 0; v && i < n; i++) v[i] = f.v[f.n == 1 ? 0 : i];
}

static braid_status expand_infer(infer *c) {
    const tensor_type *in = c->in[0], *shape = c->in[1];
    c->out[0].type = in->type;
    TRY(infer_rank(c, 1, 1, 1));
    TRY(infer_index_type(c, 1));
    int count;
    const int64_t *dims;
    if (in->rank < 0) return BRAID_OK;
    if (infer_ints(c, 1, &count, &dims)) {
        TRY(expand_dims(c, count, dims));
        expand_follow(c);
    } else if (shape->rank == 1 && dim_known(shape->dims[0]) && shape->dims[0] <= BRAID_MAX_RANK) {
        c->out[0].rank = in->rank > shape->dims[0] ? in->rank : (int)shape->dims[0];
        for (int d = 0; d < c->out[0].rank; d++) c->out[0].dims[d] = infer_fresh(c);
    }
    return infer_limit(c, 0);
}

static void expand_region(const node *n, const tensor_type *in, const tensor_type *out, region *r) {
    (void)n;
    int64_t from[BRAID_MAX_RANK], to[BRAID_MAX_RANK];
    region_strides(in->rank, in->dims, from);
    region_strides(out->rank, out->dims, to);
    for (int d = 0; d < out->rank; d++) {
        int own = d - (out->rank - in->rank);
        region_add(r, out->dims[d], own < 0 || in->dims[own] == 1 ? 0 : from[own], to[d]);
    }
}

static braid_status expand_eval(eval *e) { return region_eval_one(e, expand_region); }
static braid_status expand_lower(lowering *l) { return region_lower_one(l, expand_region); }

/* --------------------------------------------------------------------------------------------------- Tile */

/* One scalar (a number of any type) of the form before opset 6. */
static braid_status tile_scalar(infer *c, int i, const tensor **out) {
    TRY(infer_constant(c, i, out));
    int64_t count;
    if (*out && (!tensor_type_count(&(*out)->type, &count) || count != 1))
        return error_set(c->err, BRAID_SHAPE, "input %d: expected one element", i);
    return BRAID_OK;
}

/* Tile-1: inputs are the tensor, how often, and along which axis; there is no shape at import to rewrite it with. */
static braid_status tile_old_infer(infer *c) {
    const tensor *times, *where;
    TRY(tile_scalar(c, 1, &times));
    TRY(tile_scalar(c, 2, &where));
    c->out[0] = *c->in[0];
    if (c->in[0]->rank < 0) return BRAID_OK;
    if (!where || !times) {
        for (int d = 0; d < c->out[0].rank; d++) c->out[0].dims[d] = infer_fresh(c);
        return BRAID_OK;
    }
    int axis;
    TRY(axis_normalise(element_i64(where->type.type, where->data, 0), c->in[0]->rank, &axis, c->err));
    int64_t n = element_i64(times->type.type, times->data, 0);
    if (n < 0) return error_set(c->err, BRAID_SHAPE, "tiles is %lld", (long long)n);
    TRY(infer_mul(c, c->in[0]->dims[axis], n, &c->out[0].dims[axis]));
    return infer_limit(c, 0);
}

static void tile_follow(infer *c, const int64_t *repeats) {
    followed f;
    if (c->out[0].rank != 1 || !dim_known(repeats[0]) || !follow_wanted(c, 0) || !follow_in(c, 0, &f)) return;
    if (repeats[0] > FOLLOW_MAX || repeats[0] * f.n > FOLLOW_MAX) return;
    int64_t *v = follow_put(c, 0, (int)repeats[0] * f.n);
    for (int i = 0; v && i < (int)repeats[0] * f.n; i++) v[i] = f.v[i % f.n];
}

static braid_status tile_infer(infer *c) {
    if (c->n_in == 3) return tile_old_infer(c);
    const tensor_type *in = c->in[0];
    tensor_type *out = &c->out[0];
    TRY(infer_rank(c, 1, 1, 1));
    TRY(infer_index_type(c, 1));
    *out = *in;
    int count;
    const int64_t *repeats;
    bool known = infer_ints(c, 1, &count, &repeats);
    if (in->rank < 0) return BRAID_OK;
    if (known && count != in->rank)
        return error_set(c->err, BRAID_SHAPE, "repeats has %d elements, the input rank %d", count, in->rank);
    for (int d = 0; d < in->rank; d++) {
        if (!known) {
            out->dims[d] = infer_fresh(c);
            continue;
        }
        if (dim_known(repeats[d]) && repeats[d] < 0)
            return error_set(c->err, BRAID_SHAPE, "repeats: element %d is %lld", d, (long long)repeats[d]);
        TRY(infer_mul(c, in->dims[d], repeats[d], &out->dims[d]));
    }
    if (known) tile_follow(c, repeats);
    return infer_limit(c, 0);
}

static void tile_region(const node *n, const tensor_type *in, const tensor_type *out, region *r) {
    (void)n;
    int64_t from[BRAID_MAX_RANK], to[BRAID_MAX_RANK];
    region_strides(in->rank, in->dims, from);
    region_strides(out->rank, out->dims, to);
    for (int d = 0; d < in->rank; d++) {
        region_add(r, in->dims[d] ? out->dims[d] / in->dims[d] : 0, 0, in->dims[d] * to[d]);
        region_add(r, in->dims[d], from[d], to[d]);
    }
}

static braid_status tile_eval(eval *e) { return region_eval_one(e, tile_region); }
static braid_status tile_lower(lowering *l) { return region_lower_one(l, tile_region); }

/* ----------------------------------------------------------------------------- DepthToSpace, SpaceToDepth */

static braid_status block_check(infer *c, int64_t *block, bool *crd) {
    *block = node_int(c->node, "blocksize", 0);
    if (*block < 1 || *block > 1 << 20)
        return error_set(c->err, BRAID_MODEL, "blocksize is %lld", (long long)*block);
    const char *mode = node_string(c->node, "mode", "DCR");
    *crd = strcmp(mode, "CRD") == 0;
    if (!*crd && strcmp(mode, "DCR") != 0) return error_set(c->err, BRAID_MODEL, "mode is '%s'", mode);
    return infer_rank(c, 0, 4, 4);
}

static braid_status block_divide(infer *c, int axis, int64_t by, int64_t *out) {
    int64_t dim = c->in[0]->dims[axis];
    if (dim_is_symbol(dim)) {
        *out = by == 1 ? dim : infer_fresh(c);
        return BRAID_OK;
    }
    if (dim % by)
        return error_set(c->err, BRAID_SHAPE, "axis %d has %lld elements, no multiple of %lld", axis, (long long)dim,
                         (long long)by);
    *out = dim / by;
    return BRAID_OK;
}

static braid_status depth_to_space_infer(infer *c) {
    int64_t block;
    bool crd;
    TRY(block_check(c, &block, &crd));
    c->out[0] = *c->in[0];
    if (c->in[0]->rank < 0) return BRAID_OK;
    TRY(block_divide(c, 1, block * block, &c->out[0].dims[1]));
    TRY(infer_mul(c, c->in[0]->dims[2], block, &c->out[0].dims[2]));
    return infer_mul(c, c->in[0]->dims[3], block, &c->out[0].dims[3]);
}

static braid_status space_to_depth_infer(infer *c) {
    int64_t block;
    bool crd;
    TRY(block_check(c, &block, &crd));
    c->out[0] = *c->in[0];
    if (c->in[0]->rank < 0) return BRAID_OK;
    TRY(infer_mul(c, c->in[0]->dims[1], block * block, &c->out[0].dims[1]));
    TRY(block_divide(c, 2, block, &c->out[0].dims[2]));
    return block_divide(c, 3, block, &c->out[0].dims[3]);
}

/* Both directions pair a deep tensor [n, c*b*b, h, w] with a wide one [n, c, h*b, w*b]; row and column within the
   block are the outer (DCR) or the inner (CRD) part of the deep channel. The region walks the output in order. */
static void block_region(const node *n, const tensor_type *deep, const tensor_type *wide, bool to_wide, region *r) {
    int64_t b = node_int(n, "blocksize", 1), channels = wide->dims[1], ds[4], ws[4];
    bool crd = strcmp(node_string(n, "mode", "DCR"), "CRD") == 0;
    region_strides(4, deep->dims, ds);
    region_strides(4, wide->dims, ws);
    int64_t row = crd ? b * ds[1] : b * channels * ds[1], column = crd ? ds[1] : channels * ds[1];
    int64_t channel = crd ? b * b * ds[1] : ds[1];
    /* n, c, h, row, w, column of the wide tensor */
    int64_t dims[6] = {wide->dims[0], channels, deep->dims[2], b, deep->dims[3], b};
    int64_t d[6] = {ds[0], channel, ds[2], row, ds[3], column}, w[6] = {ws[0], ws[1], b * ws[2], ws[2], b, 1};
    static const int wide_order[6] = {0, 1, 2, 3, 4, 5}, dcr_order[6] = {0, 3, 5, 1, 2, 4}, crd_order[6] = {0, 1, 3, 5, 2, 4};
    const int *order = to_wide ? wide_order : crd ? crd_order : dcr_order;
    for (int i = 0; i < 6; i++) region_add(r, dims[order[i]], to_wide ? d[order[i]] : w[order[i]], to_wide ? w[order[i]] : d[order[i]]);
}

static void depth_to_space_region(const node *n, const tensor_type *in, const tensor_type *out, region *r) {
    block_region(n, in, out, true, r);
}

static void space_to_depth_region(const node *n, const tensor_type *in, const tensor_type *out, region *r) {
    block_region(n, out, in, false, r);
}

static braid_status depth_to_space_eval(eval *e) { return region_eval_one(e, depth_to_space_region); }
static braid_status depth_to_space_lower(lowering *l) { return region_lower_one(l, depth_to_space_region); }
static braid_status space_to_depth_eval(eval *e) { return region_eval_one(e, space_to_depth_region); }
static braid_status space_to_depth_lower(lowering *l) { return region_lower_one(l, space_to_depth_region); }

static const attribute_spec transpose_attributes[] = {{"perm", ATTRIBUTE_INTS, NULL}, {0}};
static const attribute_spec block_attributes[] = {
    {"blocksize", ATTRIBUTE_INT, NULL}, {"mode", ATTRIBUTE_STRING, "DCR"}, {0}};

const op move_ops[] = {
    {.name = "Transpose", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
     .attributes = transpose_attributes, .infer = transpose_infer, .eval = transpose_eval, .lower = transpose_lower},
    {.name = "Expand", .since = 8, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .infer = expand_infer,
     .eval = expand_eval, .lower = expand_lower},
    {.name = "Tile", .since = 1, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, .infer = tile_infer,
     .eval = tile_eval, .lower = tile_lower},
    {.name = "DepthToSpace", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
     .attributes = block_attributes, .infer = depth_to_space_infer, .eval = depth_to_space_eval,
     .lower = depth_to_space_lower},
    {.name = "SpaceToDepth", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
     .attributes = block_attributes, .infer = space_to_depth_infer, .eval = space_to_depth_eval,
     .lower = space_to_depth_lower},
    {0}};
