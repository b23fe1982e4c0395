/*
 * map_binary.c: elementwise operators of several inputs with numpy broadcasting.
 */
#include "ops/map_rules.h"

typedef struct binary_rule {
    const char *name;
    unsigned types;
    map_opcode real, sint, uint;
    bool to_bool; /* the result is bool */
    char follow;
} binary_rule;

static const binary_rule rules[] = {
    {.name = "Add", .types = NUMERIC, .real = MAP_ADD, .sint = MAP_I_ADD, .uint = MAP_I_ADD, .follow = '+'},
    {.name = "Sub", .types = NUMERIC, .real = MAP_SUB, .sint = MAP_I_SUB, .uint = MAP_I_SUB, .follow = '-'},
    {.name = "Mul", .types = NUMERIC, .real = MAP_MUL, .sint = MAP_I_MUL, .uint = MAP_I_MUL, .follow = '*'},
    {.name = "Div", .types = NUMERIC, .real = MAP_DIV, .sint = MAP_I_DIV, .uint = MAP_U_DIV, .follow = '/'},
    {.name = "And", .types = BOOLEAN, .uint = MAP_I_AND, .to_bool = true, .follow = '&'},
    {.name = "Or", .types = BOOLEAN, .uint = MAP_I_OR, .to_bool = true, .follow = '|'},
    {.name = "Xor", .types = BOOLEAN, .uint = MAP_I_XOR, .to_bool = true, .follow = '^'},
    {.name = "BitwiseAnd", .types = INTEGER, .sint = MAP_I_AND, .uint = MAP_I_AND},
    {.name = "BitwiseOr", .types = INTEGER, .sint = MAP_I_OR, .uint = MAP_I_OR},
    {.name = "BitwiseXor", .types = INTEGER, .sint = MAP_I_XOR, .uint = MAP_I_XOR},
    {.name = "Equal",
     .types = ANY,
     .real = MAP_EQUAL,
     .sint = MAP_I_EQUAL,
     .uint = MAP_I_EQUAL,
     .to_bool = true,
     .follow = '='},
    {.name = "Less",
     .types = NUMERIC,
     .real = MAP_LESS,
     .sint = MAP_I_LESS,
     .uint = MAP_U_LESS,
     .to_bool = true,
     .follow = 'l'},
    {.name = "LessOrEqual",
     .types = NUMERIC,
     .real = MAP_LESS_EQUAL,
     .sint = MAP_I_LESS_EQUAL,
     .uint = MAP_U_LESS_EQUAL,
     .to_bool = true},
    {.name = "Greater",
     .types = NUMERIC,
     .real = MAP_GREATER,
     .sint = MAP_I_GREATER,
     .uint = MAP_U_GREATER,
     .to_bool = true,
     .follow = 'g'},
    {.name = "GreaterOrEqual",
     .types = NUMERIC,
     .real = MAP_GREATER_EQUAL,
     .sint = MAP_I_GREATER_EQUAL,
     .uint = MAP_U_GREATER_EQUAL,
     .to_bool = true},
    {.name = "PRelu", .types = NUMERIC, .real = MAP_LEAKY_RELU, .sint = MAP_I_LEAKY_RELU, .uint = MAP_I_MOVE},
    {.name = "Max", .types = NUMERIC, .real = MAP_MAX, .sint = MAP_I_MAX, .uint = MAP_U_MAX, .follow = '>'},
    {.name = "Min", .types = NUMERIC, .real = MAP_MIN, .sint = MAP_I_MIN, .uint = MAP_U_MIN, .follow = '<'},
    {.name = "Sum", .types = NUMERIC, .real = MAP_ADD, .sint = MAP_I_ADD, .uint = MAP_I_ADD},
    {.name = "Mean", .types = REAL, .real = MAP_ADD},
};

static const binary_rule *rule_of(const node *n) {
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        if (strcmp(rules[i].name, n->type) == 0) return &rules[i];
    return NULL;
}

static braid_status binary_infer(infer *c) {
    const binary_rule *r = rule_of(c->node);
    braid_type type = BRAID_TYPE_NONE;
    for (int i = 0; i < c->n_in; i++) {
        if (!infer_has(c, i)) return error_set(c->err, BRAID_MODEL, "input %d is missing", i);
        TRY(map_infer_type(c, i, r->types));
        TRY(map_infer_equal_types(c, 0, i));
        if (type == BRAID_TYPE_NONE) type = c->in[i]->type;
    }
    TRY(map_infer_broadcast(c, 0, r->to_bool ? BRAID_BOOL : type));
    if (r->follow && c->n_in == 2) follow_binary(c, r->follow);
    if (r->follow && c->n_in == 1) follow_same(c);
    return BRAID_OK;
}

static int binary(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    const binary_rule *r = rule_of(n);
    bool real = type_is_float(in[0]);
    map_opcode code = real ? r->real : map_unsigned(in[0]) ? r->uint : r->sint;
    int x = reg[0];
    if (!code || in[0] == BRAID_STRING) return -1;
    for (int i = 1; i < n->n_in; i++) x = program_step(p, code, x, reg[i], 0);
    if (n->n_in == 1) x = program_step(p, real ? MAP_MOVE : MAP_I_MOVE, x, 0, 0);
    if (r->to_bool || real) return x;
    return map_wrap(p, out, x);
}
MAP_EMIT(binary)

/* Mean of `count` values (default: as many as inputs): the sum of a longer list's part is scaled later. */
static int mean(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    int sum = binary(n, in, out, p, reg);
    return program_step(p, MAP_DIV, sum, program_real(p, (double)node_int(n, "count", n->n_in)), 0);
}
MAP_EMIT(mean)

static braid_status string_equal(eval *e, tensor *out) {
    const tensor *in[2] = {e->in[0], e->in[1]};
    int64_t count, strides[2][BRAID_MAX_RANK] = {0};
    if (!tensor_type_count(&out->type, &count)) return error_set(e->err, BRAID_LIMIT, "too many elements");
    for (int i = 0; i < 2; i++) {
        int64_t stride = 1;
        for (int d = in[i]->type.rank - 1; d >= 0; d--) {
            int64_t dim = in[i]->type.dims[d];
            strides[i][d + out->type.rank - in[i]->type.rank] = dim == 1 ? 0 : stride;
            stride *= dim;
        }
    }
    for (int64_t at = 0; at < count; at++) {
        int64_t rest = at, index[2] = {0};
        for (int d = out->type.rank - 1; d >= 0; rest /= out->type.dims[d--])
            for (int i = 0; i < 2; i++) index[i] += rest % out->type.dims[d] * strides[i][d];
        const char *a = ((const char *const *)in[0]->data)[index[0]], *b = ((const char *const *)in[1]->data)[index[1]];
        element_set_i64(BRAID_BOOL, out->data, at, strcmp(a ? a : "", b ? b : "") == 0);
    }
    return BRAID_OK;
}

static braid_status equal_eval(eval *e) {
    tensor *out;
    if (e->in[0]->type.type != BRAID_STRING) return map_eval(e);
    TRY(eval_output(e, 0, &out));
    return string_equal(e, out);
}

/* ------------------------------------------------------------------------------------- Max, Min, Sum, Mean */

enum { LIST_MAX = 6 }; /* inputs of one node; longer lists become trees */

/* Folds the list level by level: each run of LIST_MAX inputs becomes one, until few enough are left. */
static braid_status list_upgrade(upgrade *u) {
    node *n = u->node;
    bool is_mean = strcmp(n->type, "Mean") == 0;
    TRY(map_upgrade(u));
    if (n->n_in > LIST_MAX && is_mean && !node_add_int(u->g, n, "count", n->n_in)) return error_memory(u->err);
    while (n->n_in > LIST_MAX) {
        int kept = 0;
        for (int i = 0; i < n->n_in; i += LIST_MAX) {
            int count = n->n_in - i < LIST_MAX ? n->n_in - i : LIST_MAX;
            node *part = graph_node(u->g, is_mean ? "Sum" : n->type, n->domain, n->name, count, n->in + i, 1);
            if (!part) return error_memory(u->err);
            part->opset = n->opset;
            n->in[kept++] = part->out[0];
        }
        n->n_in = n->n_root = kept;
    }
    return BRAID_OK;
}

/* ----------------------------------------------------------------------------------------- Mod, BitShift, Pow */

static braid_status mod_infer(infer *c) {
    int64_t fmod = node_int(c->node, "fmod", 0);
    if (fmod != 0 && fmod != 1) return error_set(c->err, BRAID_MODEL, "fmod %lld", (long long)fmod);
    for (int i = 0; i < 2; i++) TRY(map_infer_type(c, i, NUMERIC));
    TRY(map_infer_equal_types(c, 0, 1));
    TRY(map_infer_broadcast(c, 0, c->in[0]->type));
    if (!fmod) follow_binary(c, '%');
    return BRAID_OK;
}

static int mod(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    bool fmod = node_int(n, "fmod", 0) != 0;
    map_opcode code = type_is_float(in[0])  ? (fmod ? MAP_MOD : MAP_PYMOD)
                      : map_unsigned(in[0]) ? MAP_U_REM
                                            : (fmod ? MAP_I_REM : MAP_I_PYMOD);
    int r = program_step(p, code, reg[0], reg[1], 0);
    return type_is_float(in[0]) ? r : map_wrap(p, out, r);
}
MAP_EMIT(mod)

static braid_status shift_infer(infer *c) {
    const char *direction = node_string(c->node, "direction", "");
    if (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0)
        return error_set(c->err, BRAID_MODEL, "direction '%s'", direction);
    for (int i = 0; i < 2; i++) TRY(map_infer_type(c, i, INTEGER));
    TRY(map_infer_equal_types(c, 0, 1));
    return map_infer_broadcast(c, 0, c->in[0]->type);
}

static int bit_shift(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    bool left = strcmp(node_string(n, "direction", ""), "LEFT") == 0;
    return map_wrap(p, out,
                    program_step(p,
                                 left                  ? MAP_SHL
                                 : map_unsigned(in[0]) ? MAP_SHR
                                                       : MAP_SAR,
                                 reg[0], reg[1], 0));
}
MAP_EMIT(bit_shift)

static braid_status pow_infer(infer *c) {
    for (int i = 0; i < 2; i++) TRY(map_infer_type(c, i, NUMERIC));
    return map_infer_broadcast(c, 0, c->in[0]->type);
}

static int power(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    (void)n;
    if (!type_is_float(in[0]) && !type_is_float(in[1]))
        return map_wrap(p, out, program_step(p, MAP_I_POW, reg[0], reg[1], 0));
    int x = map_to_real(p, in[0], reg[0]), y = map_to_real(p, in[1], reg[1]);
    int r = program_step(p, MAP_POW, x, y, 0);
    return type_is_float(out) ? r : map_from_real(p, out, r);
}
MAP_EMIT(power)

/* ------------------------------------------------------------------------------------------------- SwiGLU */

static braid_status swiglu_infer(infer *c) {
    for (int i = 0; i < 2; i++) TRY(map_infer_type(c, i, REAL));
    TRY(map_infer_equal_types(c, 0, 1));
    const tensor_type *a = c->in[0], *b = c->in[1];
    if (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank)
        return error_set(c->err, BRAID_SHAPE, "input 1: rank %d, expected %d", b->rank, a->rank);
    for (int d = 0; a->rank >= 0 && d < a->rank && b->rank >= 0; d++)
        if (dim_known(a->dims[d]) && dim_known(b->dims[d]) && a->dims[d] != b->dims[d])
            return error_set(c->err, BRAID_SHAPE, "input 1: dim %d is %lld, expected %lld", d, (long long)b->dims[d],
                             (long long)a->dims[d]);
    return map_infer_broadcast(c, 0, a->type);
}

static int swiglu(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    (void)in, (void)out;
    int alpha = program_real(p, (double)node_float(n, "alpha", 1.0f));
    return program_step(p, MAP_MUL, program_step(p, MAP_SWISH, reg[0], alpha, 0), reg[1], 0);
}
MAP_EMIT(swiglu)

/* -------------------------------------------------------------------------------------------------- rows */

#define OLD                                                                                                            \
    { "consumed_inputs", ATTRIBUTE_INTS, NULL }
static const attribute_spec old_attributes[] = {OLD, {0}};
static const attribute_spec mean_attributes[] = {{"count", ATTRIBUTE_INT, NULL}, OLD, {0}};
static const attribute_spec axis_attributes[] = {
    {"axis", ATTRIBUTE_INT, NULL}, {"broadcast", ATTRIBUTE_INT, "0"}, OLD, {0}};
static const attribute_spec mod_attributes[] = {{"fmod", ATTRIBUTE_INT, "0"}, {0}};
static const attribute_spec shift_attributes[] = {{"direction", ATTRIBUTE_STRING, NULL}, {0}};
static const attribute_spec alpha_attributes[] = {{"alpha", ATTRIBUTE_FLOAT, "1.0"}, {0}};

#define BINARY(name, since, attributes) MAP_ROW(name, since, 0, 2, attributes, binary_infer, emit_binary)
#define LIST(name_, attributes_, emit_)                                                                                \
    {                                                                                                                  \
        .name = name_, .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .flags = OP_VARIADIC_IN,      \
        .attributes = attributes_, .upgrade = list_upgrade, .infer = binary_infer, .eval = map_eval, .emit = emit_,    \
        .lower = map_lower                                                                                             \
    }

const op map_binary_ops[] = {BINARY("Add", 1, axis_attributes),
                             BINARY("And", 1, axis_attributes),
                             MAP_ROW("BitShift", 11, 0, 2, shift_attributes, shift_infer, emit_bit_shift),
                             BINARY("BitwiseAnd", 18, NULL),
                             BINARY("BitwiseOr", 18, NULL),
                             BINARY("BitwiseXor", 18, NULL),
                             BINARY("Div", 1, axis_attributes),
                             {.name = "Equal",
                              .since = 1,
                              .min_in = 2,
                              .max_in = 2,
                              .min_out = 1,
                              .max_out = 1,
                              .attributes = axis_attributes,
                              .upgrade = map_upgrade,
                              .infer = binary_infer,
                              .eval = equal_eval,
                              .emit = emit_binary,
                              .lower = map_lower},
                             BINARY("Greater", 1, axis_attributes),
                             BINARY("GreaterOrEqual", 12, NULL),
                             BINARY("Less", 1, axis_attributes),
                             BINARY("LessOrEqual", 12, NULL),
                             LIST("Max", old_attributes, emit_binary),
                             LIST("Mean", mean_attributes, emit_mean),
                             LIST("Min", old_attributes, emit_binary),
                             MAP_ROW("Mod", 10, 0, 2, mod_attributes, mod_infer, emit_mod),
                             BINARY("Mul", 1, axis_attributes),
                             BINARY("Or", 1, axis_attributes),
                             MAP_ROW("Pow", 1, 0, 2, axis_attributes, pow_infer, emit_power),
                             BINARY("PRelu", 1, old_attributes),
                             BINARY("Sub", 1, axis_attributes),
                             LIST("Sum", old_attributes, emit_binary),
                             MAP_ROW("SwiGLU", 28, 0, 2, alpha_attributes, swiglu_infer, emit_swiglu),
                             BINARY("Xor", 1, axis_attributes),
                             {0}};
