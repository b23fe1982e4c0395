/*
 * map_rules.c: type rules and program pieces of the elementwise operators; operators of domain braid that serve them.
 */
#include "ops/map_rules.h"

static unsigned type_class(braid_type t) {
    return type_is_float(t)      ? REAL
           : type_is_signed(t)   ? SIGNED
           : type_is_unsigned(t) ? UNSIGNED
           : t == BRAID_BOOL     ? BOOLEAN
           : t == BRAID_STRING   ? STRING
                                 : 0;
}

braid_status map_infer_type(infer *c, int i, unsigned allowed) {
    if (!infer_has(c, i) || c->in[i]->type == BRAID_TYPE_NONE || type_class(c->in[i]->type) & allowed) return BRAID_OK;
    return error_set(c->err, BRAID_TYPE, "input %d: type %s", i, braid_type_name(c->in[i]->type));
}

braid_status map_infer_equal_types(infer *c, int i, int j) {
    if (!infer_has(c, i) || !infer_has(c, j)) return BRAID_OK;
    braid_type a = c->in[i]->type, b = c->in[j]->type;
    if (a == b || a == BRAID_TYPE_NONE || b == BRAID_TYPE_NONE) return BRAID_OK;
    return error_set(c->err, BRAID_TYPE, "input %d: type %s, but input %d has %s", j, braid_type_name(b), i,
                     braid_type_name(a));
}

braid_status map_infer_broadcast(infer *c, int first, braid_type type) {
    c->out[0].type = type;
    TRY(infer_broadcast(c, first, c->n_in, &c->out[0]));
    return infer_limit(c, 0);
}

int map_wrap(program *p, braid_type type, int reg) {
    switch (type) {
    case BRAID_INT8:
        return program_step(p, MAP_WRAP_I8, reg, 0, 0);
    case BRAID_INT16:
        return program_step(p, MAP_WRAP_I16, reg, 0, 0);
    case BRAID_INT32:
        return program_step(p, MAP_WRAP_I32, reg, 0, 0);
    case BRAID_UINT8:
        return program_step(p, MAP_WRAP_U8, reg, 0, 0);
    case BRAID_UINT16:
        return program_step(p, MAP_WRAP_U16, reg, 0, 0);
    case BRAID_UINT32:
        return program_step(p, MAP_WRAP_U32, reg, 0, 0);
    default:
        return reg;
    }
}

int map_to_real(program *p, braid_type type, int reg) {
    if (type_is_float(type)) return reg;
    return program_step(p, type == BRAID_UINT64 ? MAP_FROM_U64 : MAP_FROM_I64, reg, 0, 0);
}

int map_from_real(program *p, braid_type type, int reg) {
    if (type == BRAID_FLOAT16) return program_step(p, MAP_ROUND_FLOAT16, reg, 0, 0);
    if (type == BRAID_BFLOAT16) return program_step(p, MAP_ROUND_BFLOAT16, reg, 0, 0);
    if (type_is_float(type)) return reg;
    if (type == BRAID_BOOL) return program_step(p, MAP_TO_BOOL, reg, 0, 0);
    if (type == BRAID_UINT64) return program_step(p, MAP_TO_U64, reg, 0, 0);
    int i = program_step(p, MAP_TO_I64, reg, 0, 0), bits = type_bits(type);
    if (bits == 64) return i;
    int64_t high = type_is_signed(type) ? ((int64_t)1 << (bits - 1)) - 1 : ((int64_t)1 << bits) - 1;
    int64_t low = type_is_signed(type) ? -high - 1 : 0;
    return program_step(p, MAP_I_CLIP, i, program_int(p, low), program_int(p, high));
}

int map_cast(program *p, braid_type from, braid_type to, int reg) {
    if (type_is_float(from)) {
        int r = to == BRAID_FLOAT32 && from == BRAID_FLOAT64 ? program_step(p, MAP_ROUND_FLOAT32, reg, 0, 0)
                                                             : map_from_real(p, to, reg);
        return r == reg && r >= 0 ? program_step(p, MAP_MOVE, reg, 0, 0) : r;
    }
    if (type_is_float(to)) return map_from_real(p, to, map_to_real(p, from, reg));
    if (to == BRAID_BOOL) return program_step(p, MAP_I_TO_BOOL, reg, 0, 0);
    int r = map_wrap(p, to, reg);
    return r == reg && r >= 0 ? program_step(p, MAP_I_MOVE, reg, 0, 0) : r;
}

bool map_emit(map_emit_fn *function, const node *n, const braid_type *in, braid_type out, program *p, const int *reg,
              int *reg_out) {
    program before = *p;
    int r = function(n, in, out, p, reg);
    if (r < 0) {
        *p = before;
        return false;
    }
    *reg_out = r;
    return true;
}

/* ---------------------------------------------------------------------------------------------- older opsets */

static braid_status align_input(upgrade *u, int64_t axis) {
    int32_t in[2] = {u->node->in[0], u->node->in[1]};
    node *align = graph_node(u->g, "Align", "braid", u->node->name, 2, in, 1);
    if (!align || !node_add_int(u->g, align, "axis", axis)) return error_memory(u->err);
    return upgrade_set_input(u, 1, align->out[0]);
}

braid_status map_upgrade(upgrade *u) {
    upgrade_drop_attribute(u, "consumed_inputs");
    const attribute *axis = node_attribute(u->node, "axis");
    if (u->opset < 7 && axis && axis->kind == ATTRIBUTE_INT && node_int(u->node, "broadcast", 0) && upgrade_has(u, 0) &&
        upgrade_has(u, 1))
        TRY(align_input(u, axis->i));
    if (u->opset < 7 && strcmp(u->node->type, "PRelu") == 0 && upgrade_has(u, 0) && upgrade_has(u, 1))
        TRY(align_input(u, 1));
    upgrade_drop_attribute(u, "axis");
    upgrade_drop_attribute(u, "broadcast");
    return BRAID_OK;
}

/* braid.Align(like, x) {axis}: x with ones behind, so that its dims stand from `axis` of like on. A single element and
   an x of like's rank stay. */
static braid_status align_infer(infer *c) {
    int64_t axis = node_int(c->node, "axis", 0);
    const tensor_type *like = c->in[0], *x = c->in[1];
    c->out[0].type = x->type;
    if (x->rank < 0 || like->rank < 0) return BRAID_OK;
    if (axis < 0) axis += like->rank;
    c->out[0].rank = x->rank;
    memcpy(c->out[0].dims, x->dims, sizeof x->dims);
    if (x->rank == 0 || (x->rank == 1 && x->dims[0] == 1)) return BRAID_OK;
    if (axis < 0 || axis > like->rank - x->rank)
        return error_set(c->err, BRAID_MODEL, "axis %lld: rank %d does not fit into rank %d", (long long)axis, x->rank,
                         like->rank);
    c->out[0].rank = like->rank - (int)axis;
    for (int d = x->rank; d < c->out[0].rank; d++) c->out[0].dims[d] = 1;
    return BRAID_OK;
}

static braid_status align_eval(eval *e) {
    tensor *out;
    TRY(eval_output(e, 0, &out));
    if (out->bytes) memcpy(out->data, e->in[1]->data, out->bytes);
    return BRAID_OK;
}

static braid_status align_lower(lowering *l) {
    return lower_alias(l, 0, 1);
}

/* braid.Map: the node's program is its meaning. */
static braid_status fused_infer(infer *c) {
    const program *p = c->node->epilogue;
    if (!p) return error_set(c->err, BRAID_MODEL, "no program");
    TRY(map_infer_broadcast(c, 0, (braid_type)node_int(c->node, "type", 0)));
    return BRAID_OK;
}

static braid_status fused_eval(eval *e) {
    tensor *out;
    TRY(eval_output(e, 0, &out));
    return program_eval(e->node->epilogue, e->n_in, e->in, out, e->err);
}

static braid_status fused_lower(lowering *l) {
    return map_lower_program(l, l->node->epilogue);
}

static const attribute_spec align_attributes[] = {{"axis", ATTRIBUTE_INT, NULL}, {0}};
static const attribute_spec fused_attributes[] = {{"type", ATTRIBUTE_INT, NULL}, {0}};

const op map_internal_ops[] = {{.name = "Align",
                                .domain = "braid",
                                .since = 1,
                                .min_in = 2,
                                .max_in = 2,
                                .min_out = 1,
                                .max_out = 1,
                                .attributes = align_attributes,
                                .infer = align_infer,
                                .eval = align_eval,
                                .lower = align_lower},
                               {.name = "Map",
                                .domain = "braid",
                                .since = 1,
                                .min_in = 1,
                                .max_in = PROGRAM_INPUTS,
                                .min_out = 1,
                                .max_out = 1,
                                .attributes = fused_attributes,
                                .infer = fused_infer,
                                .eval = fused_eval,
                                .lower = fused_lower},
                               {0}};
