/*
 * map_select.c: Where, Clip, Dropout and BatchNormalization for inference.
 */
#include "ops/map_rules.h"

#include <math.h>

/* -------------------------------------------------------------------------------------------------- Where */

static braid_status where_infer(infer *c) {
    TRY(map_infer_type(c, 0, BOOLEAN));
    TRY(map_infer_equal_types(c, 1, 2));
    TRY(map_infer_broadcast(c, 0, c->in[1]->type != BRAID_TYPE_NONE ? c->in[1]->type : c->in[2]->type));
    follow_where(c);
    return BRAID_OK;
}

static int where(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    (void)n, (void)out;
    return program_step(p, type_is_float(in[1]) ? MAP_SELECT : MAP_I_SELECT, reg[0], reg[1], reg[2]);
}
MAP_EMIT(where)

static int64_t index_in(const tensor_type *in, const tensor_type *out, int64_t at) {
    int64_t index = 0, stride = 1;
    for (int d = out->rank - 1, k = in->rank - 1; k >= 0; at /= out->dims[d--], k--) {
        index += in->dims[k] == 1 ? 0 : at % out->dims[d] * stride;
        stride *= in->dims[k];
    }
    return index;
}

static braid_status where_eval(eval *e) {
    tensor *out;
    int64_t count;
    if (e->in[1]->type.type != BRAID_STRING) return map_eval(e);
    TRY(eval_output(e, 0, &out));
    if (!tensor_type_count(&out->type, &count)) return error_set(e->err, BRAID_LIMIT, "too many elements");
    for (int64_t i = 0; i < count; i++) {
        bool yes = element_i64(BRAID_BOOL, e->in[0]->data, index_in(&e->in[0]->type, &out->type, i)) != 0;
        const tensor *from = e->in[yes ? 1 : 2];
        ((const char **)out->data)[i] = ((const char *const *)from->data)[index_in(&from->type, &out->type, i)];
    }
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- Clip */

static braid_status clip_infer(infer *c) {
    for (int i = 0; i < c->n_in; i++) {
        TRY(map_infer_type(c, i, NUMERIC));
        TRY(map_infer_equal_types(c, 0, i));
    }
    for (int i = 1; i < c->n_in; i++) {
        int64_t count;
        if (!infer_has(c, i) || !tensor_type_static(c->in[i])) continue;
        if (!tensor_type_count(c->in[i], &count) || count != 1)
            return error_set(c->err, BRAID_SHAPE, "input %d: a bound is a scalar", i);
        if (c->in[0]->rank >= 0 && c->in[i]->rank > c->in[0]->rank)
            return error_set(c->err, BRAID_SHAPE, "input %d: rank %d, expected 0", i, c->in[i]->rank);
    }
    return infer_same(c);
}

/* Register of a bound: input or, before opset 11, attribute; -1 none. */
static int clip_bound(const node *n, program *p, const int *reg, int at, const char *name) {
    if (at < n->n_in && n->in[at] >= 0) return reg[at];
    return node_attribute(n, name) ? program_real(p, (double)node_float(n, name, 0)) : -1;
}

static int clip(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    (void)out;
    bool real = type_is_float(in[0]), plain = map_unsigned(in[0]);
    if (!real && (node_attribute(n, "min") || node_attribute(n, "max"))) return -1;
    int low = clip_bound(n, p, reg, 1, "min"), high = clip_bound(n, p, reg, 2, "max");
    if (low >= 0 && high >= 0)
        return program_step(p, real ? MAP_CLIP : plain ? MAP_U_CLIP : MAP_I_CLIP, reg[0], low, high);
    if (low >= 0) return program_step(p, real ? MAP_MAX : plain ? MAP_U_MAX : MAP_I_MAX, reg[0], low, 0);
    if (high >= 0) return program_step(p, real ? MAP_MIN : plain ? MAP_U_MIN : MAP_I_MIN, reg[0], high, 0);
    return program_step(p, real ? MAP_MOVE : MAP_I_MOVE, reg[0], 0, 0);
}
MAP_EMIT(clip)

/* ------------------------------------------------------------------------------------------------ Dropout */

static braid_status dropout_infer(infer *c) {
    TRY(map_infer_type(c, 1, REAL));
    TRY(map_infer_type(c, 2, BOOLEAN));
    TRY(infer_same(c));
    if (c->n_out > 1) {
        c->out[1] = *c->in[0];
        c->out[1].type = BRAID_BOOL;
    }
    return BRAID_OK;
}

/* Does the training_mode input ask for random zeros. */
static bool dropout_random(const tensor *ratio, const tensor *training, braid_type ratio_type) {
    if (!training || !training->bytes || !element_i64(BRAID_BOOL, training->data, 0)) return false;
    return !ratio || !ratio->bytes || element_f64(ratio_type, ratio->data, 0) != 0;
}

static braid_status dropout_eval(eval *e) {
    const tensor *x = e->in[0], *ratio = eval_in(e, 1);
    tensor *out;
    if (dropout_random(ratio, eval_in(e, 2), ratio ? ratio->type.type : BRAID_FLOAT32))
        return error_set(e->err, BRAID_UNSUPPORTED, "training mode");
    TRY(eval_output(e, 0, &out));
    if (out->bytes) memcpy(out->data, x->data, out->bytes);
    if (!eval_wants(e, 1)) return BRAID_OK;
    TRY(eval_output(e, 1, &out));
    if (out->bytes) memset(out->data, 1, out->bytes);
    return BRAID_OK;
}

static braid_status dropout_lower(lowering *l) {
    const tensor *ratio = NULL, *training = NULL;
    TRY(lower_constant_in(l, 1, &ratio));
    TRY(lower_constant_in(l, 2, &training));
    if (lower_in(l, 2) && (!training || (lower_in(l, 1) && !ratio))) return BRAID_UNSUPPORTED;
    if (dropout_random(ratio, training, ratio ? ratio->type.type : BRAID_FLOAT32)) return BRAID_UNSUPPORTED;
    if (lower_out(l, 1)) {
        program p = {0};
        const int64_t none[PROGRAM_INPUTS][BRAID_MAX_RANK] = {0};
        program_step(&p, MAP_I_MOVE, program_int(&p, 1), 0, 0);
        TRY(map_lower_strided(l, &p, 1, none));
    }
    return lower_alias(l, 0, 0);
}

/* ------------------------------------------------------------------------------------- BatchNormalization */

/* Before opset 14 more than one output meant training. */
static braid_status norm_upgrade(upgrade *u) {
    node *n = u->node;
    bool training = false;
    upgrade_drop_attribute(u, "consumed_inputs");
    if (u->opset >= 14) return BRAID_OK;
    for (int i = 1; i < n->n_out; i++) training = training || n->out[i] >= 0;
    if (u->opset < 7 && node_int(n, "is_test", 0)) training = false;
    upgrade_drop_attribute(u, "is_test");
    if (u->opset >= 9 || node_int(n, "spatial", 1)) upgrade_drop_attribute(u, "spatial");
    return training && !node_add_int(u->g, n, "training_mode", 1) ? error_memory(u->err) : BRAID_OK;
}

static braid_status norm_infer(infer *c) {
    if (node_int(c->node, "spatial", 1) != 1) return error_set(c->err, BRAID_UNSUPPORTED, "spatial is not 1");
    for (int i = 0; i < 5; i++) TRY(map_infer_type(c, i, REAL));
    TRY(infer_rank(c, 0, 1, BRAID_MAX_RANK));
    TRY(infer_same(c));
    for (int i = 1; i < 5; i++) {
        TRY(infer_rank(c, i, 1, 1));
        if (c->in[0]->rank < 0 || c->in[i]->rank < 0) continue;
        int64_t channels = c->in[0]->rank > 1 ? c->in[0]->dims[1] : 1, found = c->in[i]->dims[0];
        if (dim_known(channels) && dim_known(found) && channels != found)
            return error_set(c->err, BRAID_SHAPE, "input %d: %lld elements, expected one per channel (%lld)", i,
                             (long long)found, (long long)channels);
    }
    for (int i = 1; i < c->n_out && i < 3; i++) c->out[i] = *c->in[i + 2];
    return BRAID_OK;
}

/* (x - mean) / sqrt(variance + epsilon) * scale + bias; registers as the inputs: x, scale, bias, mean, variance. */
static void norm_program(const node *n, program *p) {
    int epsilon = program_real(p, (double)node_float(n, "epsilon", 1e-5f));
    int deviation = program_step(p, MAP_SQRT, program_step(p, MAP_ADD, 4, epsilon, 0), 0, 0);
    int unit = program_step(p, MAP_DIV, program_step(p, MAP_SUB, 0, 3, 0), deviation, 0);
    program_step(p, MAP_MUL_ADD, unit, 1, 2);
}

/* Mean and variance over everything but the channel. */
static void norm_statistics(const tensor *x, int64_t channel, double *mean, double *variance) {
    int64_t channels = x->type.rank > 1 ? x->type.dims[1] : 1, images = x->type.dims[0], inside = 1;
    for (int d = 2; d < x->type.rank; d++) inside *= x->type.dims[d];
    double count = (double)(images * inside);
    for (int round = 0; round < 2; round++) {
        double sum = 0;
        for (int64_t n = 0; n < images; n++)
            for (int64_t i = 0; i < inside; i++) {
                double v = element_f64(x->type.type, x->data, (n * channels + channel) * inside + i);
                sum += round ? (v - *mean) * (v - *mean) : v;
            }
        *(round ? variance : mean) = sum / count;
    }
}

static braid_status norm_train(eval *e, tensor *views) {
    double momentum = (double)node_float(e->node, "momentum", 0.9f);
    int64_t channels = e->in[3]->type.dims[0];
    for (int k = 0; k < 2; k++) {
        tensor *now;
        TRY(tensor_new(e->memory, BRAID_FLOAT64, views[k].type.rank, views[k].type.dims, &now, e->err));
        tensor *running = NULL;
        if (eval_wants(e, k + 1)) TRY(eval_output(e, k + 1, &running));
        for (int64_t c = 0; c < channels; c++) {
            double moments[2];
            norm_statistics(e->in[0], c, &moments[0], &moments[1]);
            element_set_f64(BRAID_FLOAT64, now->data, c, moments[k]);
            double old = element_f64(e->in[3 + k]->type.type, e->in[3 + k]->data, c);
            if (running)
                element_set_f64(running->type.type, running->data, c, old * momentum + moments[k] * (1 - momentum));
        }
        views[k] = *now;
    }
    return BRAID_OK;
}

static braid_status norm_eval(eval *e) {
    tensor *out, views[4];
    const tensor *in[5] = {e->in[0], &views[0], &views[1], &views[2], &views[3]};
    program p = {0};
    TRY(eval_output(e, 0, &out));
    int rank = out->type.rank > 1 ? out->type.rank - 1 : out->type.rank;
    for (int i = 0; i < 4; i++) {
        views[i] = *e->in[i + 1];
        views[i].type.rank = rank;
        for (int d = 1; d < rank; d++) views[i].type.dims[d] = 1;
    }
    if (node_int(e->node, "training_mode", 0)) TRY(norm_train(e, views + 2));
    norm_program(e->node, &p);
    return program_eval(&p, 5, in, out, e->err);
}

static braid_status norm_lower(lowering *l) {
    int64_t strides[PROGRAM_INPUTS][BRAID_MAX_RANK] = {0}, stride = 1;
    const tensor_type *x = lower_in(l, 0);
    program p = {0};
    if (node_int(l->node, "training_mode", 0) || l->node->n_in > PROGRAM_INPUTS) return BRAID_UNSUPPORTED;
    for (int d = x->rank - 1; d >= 0; stride *= x->dims[d--]) strides[0][d] = x->dims[d] == 1 ? 0 : stride;
    for (int i = 1; i < 5 && x->rank > 1; i++) strides[i][1] = x->dims[1] == 1 ? 0 : 1;
    norm_program(l->node, &p);
    if (l->node->epilogue) {
        if (!program_append(&p, l->node->epilogue, l->node->n_root)) return BRAID_UNSUPPORTED;
        for (int i = l->node->n_root; i < l->node->n_in; i++)
            if (!lower_in(l, i) || !map_strides(lower_in(l, i), x, strides[i])) return BRAID_UNSUPPORTED;
    }
    return map_lower_strided(l, &p, 0, strides);
}

/* --------------------------------------------------------------------------------------------------- rows */

static const attribute_spec clip_attributes[] = {
    {"min", ATTRIBUTE_FLOAT, NULL}, {"max", ATTRIBUTE_FLOAT, NULL}, {"consumed_inputs", ATTRIBUTE_INTS, NULL}, {0}};
static const attribute_spec dropout_attributes[] = {{"ratio", ATTRIBUTE_FLOAT, "0.5"},
                                                    {"is_test", ATTRIBUTE_INT, "0"},
                                                    {"seed", ATTRIBUTE_INT, NULL},
                                                    {"consumed_inputs", ATTRIBUTE_INTS, NULL},
                                                    {0}};
static const attribute_spec norm_attributes[] = {{"epsilon", ATTRIBUTE_FLOAT, "1e-5"},
                                                 {"momentum", ATTRIBUTE_FLOAT, "0.9"},
                                                 {"training_mode", ATTRIBUTE_INT, "0"},
                                                 {"is_test", ATTRIBUTE_INT, "0"},
                                                 {"spatial", ATTRIBUTE_INT, "1"},
                                                 {"consumed_inputs", ATTRIBUTE_INTS, NULL},
                                                 {0}};

const op map_select_ops[] = {{.name = "BatchNormalization",
                              .since = 1,
                              .min_in = 5,
                              .max_in = 5,
                              .min_out = 1,
                              .max_out = 5,
                              .flags = OP_EPILOGUE,
                              .attributes = norm_attributes,
                              .upgrade = norm_upgrade,
                              .infer = norm_infer,
                              .eval = norm_eval,
                              .lower = norm_lower},
                             {.name = "Clip",
                              .since = 1,
                              .min_in = 1,
                              .max_in = 3,
                              .min_out = 1,
                              .max_out = 1,
                              .attributes = clip_attributes,
                              .upgrade = map_upgrade,
                              .infer = clip_infer,
                              .eval = map_eval,
                              .emit = emit_clip,
                              .lower = map_lower},
                             {.name = "Dropout",
                              .flags = OP_READS_FLOATS,
                              .since = 1,
                              .min_in = 1,
                              .max_in = 3,
                              .min_out = 1,
                              .max_out = 2,
                              .attributes = dropout_attributes,
                              .upgrade = map_upgrade,
                              .infer = dropout_infer,
                              .eval = dropout_eval,
                              .lower = dropout_lower},
                             {.name = "Where",
                              .since = 9,
                              .min_in = 3,
                              .max_in = 3,
                              .min_out = 1,
                              .max_out = 1,
                              .infer = where_infer,
                              .eval = where_eval,
                              .emit = emit_where,
                              .lower = map_lower},
                             {0}};
