/*
 * map_unary.c: elementwise operators of one input.
 */
#include "ops/map_rules.h"

typedef struct unary_rule {
    const char *name;
    map_opcode real, sint, uint; /* 0: not for these types; both 0 but allowed by `via`: through reals */
    bool via;                    /* integers are computed as reals */
    char follow;
    struct {
        const char *name;
        float value;
    } parameters[2]; /* real operands b and c */
} unary_rule;

static const unary_rule rules[] = {
    {.name = "Abs", .real = MAP_ABS, .sint = MAP_I_ABS, .uint = MAP_I_MOVE, .follow = 'a'},
    {.name = "Neg", .real = MAP_NEG, .sint = MAP_I_NEG, .follow = '-'},
    {.name = "Sign", .real = MAP_SIGN, .sint = MAP_I_SIGN, .uint = MAP_U_SIGN, .follow = '0'},
    {.name = "Not", .uint = MAP_NOT, .follow = '!'},
    {.name = "BitwiseNot", .sint = MAP_I_NOT, .uint = MAP_I_NOT},
    {.name = "Relu", .real = MAP_RELU, .sint = MAP_I_RELU},
    {.name = "Erf", .real = MAP_ERF, .via = true},
    {.name = "Shrink", .real = MAP_SHRINK, .via = true, .parameters = {{"bias", 0.0f}, {"lambd", 0.5f}}},
    {.name = "Acos", .real = MAP_ACOS},
    {.name = "Acosh", .real = MAP_ACOSH},
    {.name = "Asin", .real = MAP_ASIN},
    {.name = "Asinh", .real = MAP_ASINH},
    {.name = "Atan", .real = MAP_ATAN},
    {.name = "Atanh", .real = MAP_ATANH},
    {.name = "Ceil", .real = MAP_CEIL},
    {.name = "Cos", .real = MAP_COS},
    {.name = "Cosh", .real = MAP_COSH},
    {.name = "Exp", .real = MAP_EXP},
    {.name = "Floor", .real = MAP_FLOOR},
    {.name = "HardSwish", .real = MAP_HARD_SWISH},
    {.name = "IsNaN", .real = MAP_IS_NAN},
    {.name = "Log", .real = MAP_LOG},
    {.name = "Mish", .real = MAP_MISH},
    {.name = "Reciprocal", .real = MAP_RECIPROCAL},
    {.name = "Round", .real = MAP_ROUND},
    {.name = "Sigmoid", .real = MAP_SIGMOID},
    {.name = "Sin", .real = MAP_SIN},
    {.name = "Sinh", .real = MAP_SINH},
    {.name = "Softplus", .real = MAP_SOFTPLUS},
    {.name = "Softsign", .real = MAP_SOFTSIGN},
    {.name = "Sqrt", .real = MAP_SQRT},
    {.name = "Tan", .real = MAP_TAN},
    {.name = "Tanh", .real = MAP_TANH},
    {.name = "Elu", .real = MAP_ELU, .parameters = {{"alpha", 1.0f}}},
    {.name = "Celu", .real = MAP_CELU, .parameters = {{"alpha", 1.0f}}},
    {.name = "Selu",
     .real = MAP_SELU,
     .parameters = {{"alpha", 1.67326319217681884765625f}, {"gamma", 1.05070102214813232421875f}}},
    {.name = "LeakyRelu", .real = MAP_LEAKY_RELU, .parameters = {{"alpha", 0.01f}}},
    {.name = "HardSigmoid", .real = MAP_HARD_SIGMOID, .parameters = {{"alpha", 0.2f}, {"beta", 0.5f}}},
    {.name = "ThresholdedRelu", .real = MAP_THRESHOLDED_RELU, .parameters = {{"alpha", 1.0f}}},
    {.name = "Swish", .real = MAP_SWISH, .parameters = {{"alpha", 1.0f}}},
};

static const unary_rule *rule_of(const node *n) {
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        if (strcmp(rules[i].name, n->type) == 0) return &rules[i];
    return NULL;
}

static braid_status unary_infer(infer *c) {
    const unary_rule *r = rule_of(c->node);
    unsigned allowed = (r->real ? REAL : 0u) | (r->sint || r->via ? SIGNED : 0u) | (r->uint || r->via ? UNSIGNED : 0u);
    if (r->uint == MAP_NOT) allowed = BOOLEAN;
    TRY(map_infer_type(c, 0, allowed));
    TRY(infer_same(c));
    if (r->real == MAP_IS_NAN) c->out[0].type = BRAID_BOOL;
    if (r->follow) follow_unary(c, r->follow);
    return BRAID_OK;
}

static int unary(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    const unary_rule *r = rule_of(n);
    bool real = type_is_float(in[0]);
    map_opcode code = real || r->via ? r->real : map_unsigned(in[0]) ? r->uint : r->sint;
    int x = r->via ? map_to_real(p, in[0], reg[0]) : reg[0], extra[2] = {0};
    if (!code) return -1;
    for (int i = 0; i < 2 && r->parameters[i].name; i++)
        extra[i] = program_real(p, (double)node_float(n, r->parameters[i].name, r->parameters[i].value));
    int y = program_step(p, code, x, extra[0], extra[1]);
    return real || out == BRAID_BOOL ? y : r->via ? map_from_real(p, out, y) : map_wrap(p, out, y);
}
MAP_EMIT(unary)

/* Before opset 6 Selu had other constants. */
static braid_status selu_upgrade(upgrade *u) {
    TRY(map_upgrade(u));
    if (u->opset >= 6) return BRAID_OK;
    if (!node_attribute(u->node, "alpha") && !node_add_float(u->g, u->node, "alpha", 1.6732f))
        return error_memory(u->err);
    if (!node_attribute(u->node, "gamma") && !node_add_float(u->g, u->node, "gamma", 1.0507f))
        return error_memory(u->err);
    return BRAID_OK;
}

/* ---------------------------------------------------------------------------------------------- Gelu, IsInf */

static braid_status gelu_infer(infer *c) {
    const char *how = node_string(c->node, "approximate", "none");
    if (strcmp(how, "none") != 0 && strcmp(how, "tanh") != 0)
        return error_set(c->err, BRAID_MODEL, "approximate '%s'", how);
    TRY(map_infer_type(c, 0, REAL));
    return infer_same(c);
}

static int gelu(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    (void)in, (void)out;
    bool tanh = strcmp(node_string(n, "approximate", "none"), "tanh") == 0;
    return program_step(p, tanh ? MAP_GELU_TANH : MAP_GELU, reg[0], 0, 0);
}
MAP_EMIT(gelu)

static braid_status isinf_infer(infer *c) {
    TRY(map_infer_type(c, 0, REAL));
    TRY(infer_same(c));
    c->out[0].type = BRAID_BOOL;
    return BRAID_OK;
}

static int is_infinite(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    (void)in, (void)out;
    bool positive = node_int(n, "detect_positive", 1) != 0, negative = node_int(n, "detect_negative", 1) != 0;
    if (positive && negative) return program_step(p, MAP_IS_INF, reg[0], 0, 0);
    if (positive) return program_step(p, MAP_IS_INF_POSITIVE, reg[0], 0, 0);
    if (negative) return program_step(p, MAP_IS_INF_NEGATIVE, reg[0], 0, 0);
    return program_step(p, MAP_I_MOVE, program_int(p, 0), 0, 0);
}
MAP_EMIT(is_infinite)

/* -------------------------------------------------------------------------------------------------- rows */

#define OLD                                                                                                            \
    { "consumed_inputs", ATTRIBUTE_INTS, NULL }
static const attribute_spec old_attributes[] = {OLD, {0}};
static const attribute_spec alpha_attributes[] = {{"alpha", ATTRIBUTE_FLOAT, "1.0"}, OLD, {0}};
static const attribute_spec leaky_attributes[] = {{"alpha", ATTRIBUTE_FLOAT, "0.01"}, OLD, {0}};
static const attribute_spec selu_attributes[] = {
    {"alpha", ATTRIBUTE_FLOAT, "1.67326319"}, {"gamma", ATTRIBUTE_FLOAT, "1.05070102"}, OLD, {0}};
static const attribute_spec hard_attributes[] = {
    {"alpha", ATTRIBUTE_FLOAT, "0.2"}, {"beta", ATTRIBUTE_FLOAT, "0.5"}, OLD, {0}};
static const attribute_spec shrink_attributes[] = {
    {"bias", ATTRIBUTE_FLOAT, "0.0"}, {"lambd", ATTRIBUTE_FLOAT, "0.5"}, {0}};
static const attribute_spec gelu_attributes[] = {{"approximate", ATTRIBUTE_STRING, "none"}, {0}};
static const attribute_spec isinf_attributes[] = {
    {"detect_positive", ATTRIBUTE_INT, "1"}, {"detect_negative", ATTRIBUTE_INT, "1"}, {0}};

#define UNARY(name, since, attributes) MAP_ROW(name, since, 0, 1, attributes, unary_infer, emit_unary)

const op map_unary_ops[] = {UNARY("Abs", 1, old_attributes),
                            UNARY("Acos", 7, NULL),
                            UNARY("Acosh", 9, NULL),
                            UNARY("Asin", 7, NULL),
                            UNARY("Asinh", 9, NULL),
                            UNARY("Atan", 7, NULL),
                            UNARY("Atanh", 9, NULL),
                            UNARY("BitwiseNot", 18, NULL),
                            UNARY("Ceil", 1, old_attributes),
                            UNARY("Celu", 12, alpha_attributes),
                            UNARY("Cos", 7, NULL),
                            UNARY("Cosh", 9, NULL),
                            UNARY("Elu", 1, alpha_attributes),
                            UNARY("Erf", 9, NULL),
                            UNARY("Exp", 1, old_attributes),
                            UNARY("Floor", 1, old_attributes),
                            MAP_ROW("Gelu", 20, 0, 1, gelu_attributes, gelu_infer, emit_gelu),
                            UNARY("HardSigmoid", 1, hard_attributes),
                            UNARY("HardSwish", 14, NULL),
                            MAP_ROW("IsInf", 10, 0, 1, isinf_attributes, isinf_infer, emit_is_infinite),
                            UNARY("IsNaN", 9, NULL),
                            UNARY("LeakyRelu", 1, leaky_attributes),
                            UNARY("Log", 1, old_attributes),
                            UNARY("Mish", 18, NULL),
                            UNARY("Neg", 1, old_attributes),
                            UNARY("Not", 1, NULL),
                            UNARY("Reciprocal", 1, old_attributes),
                            UNARY("Relu", 1, old_attributes),
                            UNARY("Round", 11, NULL),
                            {.name = "Selu",
                             .since = 1,
                             .min_in = 1,
                             .max_in = 1,
                             .min_out = 1,
                             .max_out = 1,
                             .attributes = selu_attributes,
                             .upgrade = selu_upgrade,
                             .infer = unary_infer,
                             .eval = map_eval,
                             .emit = emit_unary,
                             .lower = map_lower},
                            UNARY("Shrink", 9, shrink_attributes),
                            UNARY("Sigmoid", 1, old_attributes),
                            UNARY("Sign", 9, NULL),
                            UNARY("Sin", 7, NULL),
                            UNARY("Sinh", 9, NULL),
                            UNARY("Softplus", 1, NULL),
                            UNARY("Softsign", 1, NULL),
                            UNARY("Sqrt", 1, old_attributes),
                            UNARY("Swish", 24, alpha_attributes),
                            UNARY("Tan", 7, NULL),
                            UNARY("Tanh", 1, old_attributes),
                            UNARY("ThresholdedRelu", 10, alpha_attributes),
                            {0}};
