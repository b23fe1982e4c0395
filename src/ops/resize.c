/*
 * resize.c: Resize, and Upsample as an older form of it.
 */
#include "ops/follow.h"
#include "ops/resize.h"

/* ------------------------------------------------------------------------------------------------- infer */
static braid_status check_types(infer *c, const resize_attributes *a) {
    braid_type t = c->in[0]->type;
    if (t == BRAID_TYPE_NONE || a->mode == RESIZE_NEAREST || type_is_float(t) || type_is_integer(t)) return BRAID_OK;
    return error_set(c->err, BRAID_TYPE, "input 0: type %s cannot be interpolated", braid_type_name(t));
}

/* Is input i there: 1 yes, 0 no (absent, or empty), -1 not known. */
static int present(const infer *c, int i) {
    if (!infer_has(c, i)) return 0;
    const tensor_type *t = c->in[i];
    if (t->rank < 0) return c->constant[i] ? 1 : -1;
    if (t->rank != 1) return 1;
    return t->dims[0] == 0 ? 0 : dim_known(t->dims[0]) ? 1 : -1;
}

/* Output dims where the extents of the named axes are not known; those of the others are the input's. */
static void infer_open(infer *c, const resize_attributes *a, const int64_t *sizes) {
    for (int i = 0; i < a->n_axes; i++)
        c->out[0].dims[a->axes[i]] =
            sizes && (a->policy == RESIZE_STRETCH || a->n_axes == 1) ? sizes[i] : infer_fresh(c);
}

static bool static_axes(const tensor_type *t, const resize_attributes *a) {
    for (int i = 0; i < a->n_axes; i++)
        if (!dim_known(t->dims[a->axes[i]])) return false;
    return true;
}

/* Axes by scale: each on its own, a scale of 1 keeps a symbol. */
static braid_status infer_scales(infer *c, const resize_attributes *a, const resize_inputs *in) {
    int64_t dims[BRAID_MAX_RANK];
    resize_axis axes[BRAID_MAX_RANK];
    const tensor_type *x = c->in[0];
    for (int i = 0; i < x->rank; i++) dims[i] = dim_known(x->dims[i]) ? x->dims[i] : 1;
    TRY(resize_fit(a, x->rank, dims, in, axes, c->err));
    for (int i = 0; i < x->rank; i++) {
        bool keeps = axes[i].scale == 1 && a->coordinates != RESIZE_TF_CROP;
        if (dim_known(x->dims[i]))
            c->out[0].dims[i] = axes[i].out;
        else if (!keeps)
            c->out[0].dims[i] = infer_fresh(c);
    }
    return BRAID_OK;
}

static braid_status infer_sizes(infer *c, const resize_attributes *a) {
    int count;
    const int64_t *sizes;
    if (!infer_ints(c, 3, &count, &sizes)) {
        infer_open(c, a, NULL);
        return BRAID_OK;
    }
    if (count != a->n_axes)
        return error_set(c->err, BRAID_SHAPE, "input 3: %d elements, expected %d", count, a->n_axes);
    bool known = static_axes(c->in[0], a);
    for (int i = 0; i < count; i++) known = known && dim_known(sizes[i]);
    if (!known) {
        infer_open(c, a, sizes);
        return BRAID_OK;
    }
    int64_t dims[BRAID_MAX_RANK];
    resize_axis axes[BRAID_MAX_RANK];
    for (int i = 0; i < c->in[0]->rank; i++) dims[i] = dim_known(c->in[0]->dims[i]) ? c->in[0]->dims[i] : 1;
    TRY(resize_fit(a, c->in[0]->rank, dims, &(resize_inputs){.sizes = sizes}, axes, c->err));
    for (int i = 0; i < count; i++) c->out[0].dims[a->axes[i]] = axes[a->axes[i]].out;
    return BRAID_OK;
}

static braid_status infer_extents(infer *c) {
    resize_attributes a;
    const tensor_type *x = c->in[0];
    const tensor *roi, *scales;
    c->out[0].type = x->type;
    if (x->rank < 0) return BRAID_OK;
    TRY(resize_read(c->node, x->rank, &a, c->err));
    TRY(check_types(c, &a));
    c->out[0] = *x;
    int by_scale = present(c, 2), by_size = present(c, 3);
    if (by_scale == 1 && by_size == 1) return error_set(c->err, BRAID_MODEL, "both scales and sizes are given");
    if (by_scale == 0 && by_size == 0) return error_set(c->err, BRAID_MODEL, "neither scales nor sizes is given");
    TRY(infer_constant(c, 1, &roi));
    TRY(infer_constant(c, 2, &scales));
    if (by_size == 1) return infer_sizes(c, &a);
    bool crop = a.coordinates == RESIZE_TF_CROP;
    if (by_scale != 1 || !scales || (crop && present(c, 1) != 0 && !roi)) {
        infer_open(c, &a, NULL);
        return BRAID_OK;
    }
    resize_inputs in;
    TRY(resize_take(&a, c->g->memory, roi, scales, NULL, &in, c->err));
    return infer_scales(c, &a, &in);
}

static braid_status resize_infer(infer *c) {
    TRY(infer_extents(c));
    return infer_limit(c, 0);
}

/* ------------------------------------------------------------------------------------------------ upgrade */
/* Gives a node the inputs {x, absent, scales} and the coordinates of the time before opset 11. */
static braid_status to_current(upgrade *u, int32_t scales) {
    node *n = u->node;
    int32_t *in = arena_array(u->g->memory, 3, sizeof *in);
    if (!in || scales < 0) return error_memory(u->err);
    in[0] = n->in[0], in[1] = -1, in[2] = scales;
    n->in = in;
    n->n_in = n->n_root = 3;
    if (!node_add_string(u->g, n, "coordinate_transformation_mode", "asymmetric") ||
        !node_add_string(u->g, n, "nearest_mode", "simple"))
        return error_memory(u->err);
    return BRAID_OK;
}

static braid_status resize_upgrade(upgrade *u) {
    if (u->opset >= 11) return BRAID_OK;
    if (u->node->n_in < 2) return error_set(u->err, BRAID_MODEL, "%d inputs, expected 2", u->node->n_in);
    return to_current(u, u->node->in[1]);
}

static int32_t scales_constant(upgrade *u, int count, const float *values) {
    int64_t dims[1] = {count};
    tensor *t;
    if (tensor_new(u->g->memory, BRAID_FLOAT32, 1, dims, &t, u->err) != BRAID_OK) return -1;
    memcpy(t->data, values, (size_t)count * sizeof *values);
    return graph_constant(u->g, "", t);
}

/* The scales of an Upsample node: an input since opset 9, a list since 7, two numbers before. */
static braid_status upsample_scales(upgrade *u, int32_t *out) {
    const attribute *list = node_attribute(u->node, "scales");
    if (u->opset >= 9 || (u->node->n_in > 1 && !list)) {
        if (u->node->n_in < 2) return error_set(u->err, BRAID_MODEL, "input scales is missing");
        *out = u->node->in[1];
        return BRAID_OK;
    }
    if (list) {
        if (list->kind != ATTRIBUTE_FLOATS || list->count == 0 || list->count > BRAID_MAX_RANK)
            return error_set(u->err, BRAID_MODEL, "attribute scales is no list of up to %d floats", BRAID_MAX_RANK);
        *out = scales_constant(u, (int)list->count, list->floats);
    } else {
        float both[4] = {1, 1, node_float(u->node, "height_scale", 0), node_float(u->node, "width_scale", 0)};
        if (both[2] <= 0 || both[3] <= 0)
            return error_set(u->err, BRAID_MODEL, "height_scale or width_scale is missing");
        *out = scales_constant(u, 4, both);
    }
    return *out < 0 ? error_memory(u->err) : BRAID_OK;
}

static braid_status upsample_upgrade(upgrade *u) {
    int32_t scales = -1;
    node *n = u->node;
    TRY(upsample_scales(u, &scales));
    const char *mode = node_string(n, "mode", "nearest");
    /* "bilinear" was the word of opset 1. */
    const char *current = strcmp(mode, "bilinear") == 0 ? "linear" : mode;
    n->n_attributes = 0;
    n->type = "Resize";
    n->op = op_find("", "Resize");
    if (!node_add_string(u->g, n, "mode", current)) return error_memory(u->err);
    return to_current(u, scales);
}

/* --------------------------------------------------------------------------------------------------- rows */
static const attribute_spec resize_specs[] = {
    {"antialias", ATTRIBUTE_INT, "0"},
    {"axes", ATTRIBUTE_INTS, NULL},
    {"coordinate_transformation_mode", ATTRIBUTE_STRING, "half_pixel"},
    {"cubic_coeff_a", ATTRIBUTE_FLOAT, "-0.75"},
    {"exclude_outside", ATTRIBUTE_INT, "0"},
    {"extrapolation_value", ATTRIBUTE_FLOAT, "0"},
    {"keep_aspect_ratio_policy", ATTRIBUTE_STRING, "stretch"},
    {"mode", ATTRIBUTE_STRING, "nearest"},
    {"nearest_mode", ATTRIBUTE_STRING, "round_prefer_floor"},
    {0},
};
static const attribute_spec upsample_specs[] = {
    {"height_scale", ATTRIBUTE_FLOAT, NULL},
    {"mode", ATTRIBUTE_STRING, "nearest"},
    {"scales", ATTRIBUTE_FLOATS, NULL},
    {"width_scale", ATTRIBUTE_FLOAT, NULL},
    {0},
};

const op resize_ops[] = {
    {.name = "Resize", .flags = OP_READS_FLOATS, .since = 10, .min_in = 1, .max_in = 4, .min_out = 1, .max_out = 1, .attributes = resize_specs,
     .upgrade = resize_upgrade, .infer = resize_infer, .eval = resize_eval, .lower = resize_lower},
    {.name = "Upsample", .since = 1, .until = 9, .min_in = 1, .max_in = 2, .min_out = 1, .max_out = 1,
     .attributes = upsample_specs, .upgrade = upsample_upgrade},
    {0},
};
