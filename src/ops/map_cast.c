/*
 * map_cast.c: Cast, CastLike, BitCast.
 */
#include "ops/map_rules.h"
#include "ops/tiny.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static braid_type cast_target(const node *n, braid_type like) {
    return strcmp(n->type, "CastLike") == 0 ? like : (braid_type)node_int(n, "to", 0);
}

static braid_status cast_infer(infer *c) {
    bool like = strcmp(c->node->type, "CastLike") == 0;
    int64_t to = node_int(c->node, "to", 0);
    if (!like && (to < 0 || to > INT32_MAX || !type_known((int)to)))
        return error_set(c->err, BRAID_MODEL, "attribute 'to': %lld is no element type", (long long)to);
    TRY(infer_same(c));
    c->out[0].type = like ? c->in[1]->type : (braid_type)to;
    follow_same(c);
    return BRAID_OK;
}

static bool cast_plain(braid_type t) {
    return type_is_float(t) || type_is_integer(t) || t == BRAID_BOOL;
}

static int cast(const node *n, const braid_type *in, braid_type out, program *p, const int *reg) {
    (void)n;
    if (!cast_plain(in[0]) || !cast_plain(out)) return -1;
    return map_cast(p, in[0], out, reg[0]);
}
MAP_EMIT(cast)

/* ------------------------------------------------------------------------------------------------ strings */

static double parse_real(const char *s) {
    static const char *const specials[] = {"inf", "+inf", "-inf", "nan"};
    static const double values[] = {INFINITY, INFINITY, -INFINITY, NAN};
    char lower[8] = "";
    size_t length = strlen(s);
    for (size_t i = 0; i < length && length < sizeof lower; i++) lower[i] = (char)tolower((unsigned char)s[i]);
    for (size_t i = 0; i < COUNT_OF(specials); i++)
        if (strcmp(lower, specials[i]) == 0) return values[i];
    return strtod(s, NULL);
}

static void parse_element(tensor *out, int64_t i, const char *s) {
    const braid_type t = out->type.type;
    char *end;
    if (type_is_float(t) || t == BRAID_BOOL) {
        element_set_f64(t, out->data, i, parse_real(s));
        return;
    }
    long long whole = strtoll(s, &end, 10);
    if (t == BRAID_UINT64 && s[0] != '-') whole = (long long)strtoull(s, &end, 10);
    if (*end == '\0')
        element_set_i64(t, out->data, i, whole);
    else
        element_set_f64(t, out->data, i, parse_real(s));
}

/* Shortest decimal that reads back as the same value of its type, as Python and numpy write it. */
static void format_real(char *buffer, size_t size, braid_type t, double v) {
    int digits = 1, most = t == BRAID_FLOAT64 ? 17 : 9;
    if (isnan(v) || isinf(v)) {
        snprintf(buffer, size, "%s", isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
        return;
    }
    for (; digits < most; digits++) {
        snprintf(buffer, size, "%.*e", digits - 1, v);
        uint64_t back[1] = {0}, same[1] = {0};
        element_set_f64(t, back, 0, strtod(buffer, NULL));
        element_set_f64(t, same, 0, v);
        if (back[0] == same[0]) break;
    }
    snprintf(buffer, size, "%.*e", digits - 1, v);
    int exponent = atoi(strchr(buffer, 'e') + 1);
    if (v != 0 && (exponent < -4 || exponent >= 16)) return;
    int decimals = digits - 1 - exponent;
    snprintf(buffer, size, "%.*f", decimals < 1 ? 1 : decimals, v);
}

static braid_status format_element(eval *e, const char **out, const tensor *in, int64_t i) {
    const braid_type t = in->type.type;
    char buffer[400];
    if (type_is_float(t))
        format_real(buffer, sizeof buffer, t, element_f64(t, in->data, i));
    else if (t == BRAID_BOOL)
        snprintf(buffer, sizeof buffer, "%s", element_i64(t, in->data, i) ? "True" : "False");
    else if (t == BRAID_UINT64)
        snprintf(buffer, sizeof buffer, "%llu", (unsigned long long)element_i64(t, in->data, i));
    else
        snprintf(buffer, sizeof buffer, "%lld", (long long)element_i64(t, in->data, i));
    *out = arena_string(e->memory, buffer, strlen(buffer));
    return *out ? BRAID_OK : error_memory(e->err);
}

static braid_status cast_strings(eval *e, const tensor *in, tensor *out) {
    int64_t count;
    if (!tensor_type_count(&out->type, &count)) return error_set(e->err, BRAID_LIMIT, "too many elements");
    for (int64_t i = 0; i < count; i++) {
        const char *s = in->type.type == BRAID_STRING ? ((const char *const *)in->data)[i] : NULL;
        if (out->type.type != BRAID_STRING)
            parse_element(out, i, s ? s : "");
        else if (in->type.type == BRAID_STRING)
            ((const char **)out->data)[i] = s;
        else
            TRY(format_element(e, &((const char **)out->data)[i], in, i));
    }
    return BRAID_OK;
}

/* From or to a type below 16 bits, element by element. */
static braid_status cast_tiny(eval *e, const tensor *in, tensor *out) {
    const char *how = node_string(e->node, "round_mode", "up");
    bool saturate = node_int(e->node, "saturate", 1) != 0;
    tiny_round round = strcmp(how, "down") == 0 ? TINY_DOWN : strcmp(how, "nearest") == 0 ? TINY_NEAREST : TINY_UP;
    braid_type from = in->type.type, to = out->type.type;
    int64_t count;
    if (!tensor_type_count(&out->type, &count)) return error_set(e->err, BRAID_LIMIT, "too many elements");
    for (int64_t i = 0; i < count; i++) {
        double v = type_is_tiny(from) ? tiny_get(from, in->data, i) : element_f64(from, in->data, i);
        if (type_is_tiny(to))
            tiny_set(to, out->data, i, v, saturate, round);
        else
            element_set_f64(to, out->data, i, v);
    }
    return BRAID_OK;
}

static braid_status cast_eval(eval *e) {
    const tensor *in = e->in[0];
    braid_type from = in->type.type, to = cast_target(e->node, e->n_in > 1 ? e->in[1]->type.type : from);
    bool strings = from == BRAID_STRING || to == BRAID_STRING;
    tensor *out;
    bool tiny = type_is_tiny(from) || type_is_tiny(to);
    if ((!cast_plain(from) && !type_is_tiny(from) && from != BRAID_STRING) ||
        (!cast_plain(to) && !type_is_tiny(to) && to != BRAID_STRING) || (tiny && strings))
        return error_set(e->err, BRAID_UNSUPPORTED, "from %s to %s", braid_type_name(from), braid_type_name(to));
    TRY(eval_output(e, 0, &out));
    if (strings) return cast_strings(e, in, out);
    if (tiny) return cast_tiny(e, in, out);
    program p = {0};
    if (map_cast(&p, from, to, 0) < 0) return error_set(e->err, BRAID_INTERNAL, "no program");
    return program_eval(&p, 1, e->in, out, e->err);
}

static braid_status cast_lower(lowering *l) {
    program p = {0};
    braid_type from = lower_in(l, 0)->type, to = lower_out(l, 0)->type;
    if (!cast_plain(from) || !cast_plain(to)) return BRAID_UNSUPPORTED;
    if (from == to) return lower_alias(l, 0, 0);
    if (map_cast(&p, from, to, 0) < 0) return BRAID_UNSUPPORTED;
    return map_lower_program(l, &p);
}

/* Before opset 6 the type was a name. */
static braid_status cast_upgrade(upgrade *u) {
    const attribute *a = node_attribute(u->node, "to");
    if (!a || a->kind != ATTRIBUTE_STRING) return BRAID_OK;
    char name[32] = "";
    for (size_t i = 0; i < a->count && i + 1 < sizeof name; i++) name[i] = (char)tolower((unsigned char)a->s[i]);
    braid_type type = strcmp(name, "float") == 0    ? BRAID_FLOAT32
                      : strcmp(name, "double") == 0 ? BRAID_FLOAT64
                                                    : type_from_name(name);
    if (type == BRAID_TYPE_NONE) return error_set(u->err, BRAID_MODEL, "attribute 'to': '%s' is no element type", a->s);
    upgrade_drop_attribute(u, "to");
    return node_add_int(u->g, u->node, "to", (int64_t)type) ? BRAID_OK : error_memory(u->err);
}

/* ------------------------------------------------------------------------------------------------ BitCast */

static braid_status bitcast_infer(infer *c) {
    int64_t to = node_int(c->node, "to", 0);
    if (to < 0 || to > INT32_MAX || !type_known((int)to))
        return error_set(c->err, BRAID_MODEL, "attribute 'to': %lld is no element type", (long long)to);
    if (c->in[0]->type != BRAID_TYPE_NONE &&
        (type_bits(c->in[0]->type) != type_bits((braid_type)to) || type_bits(c->in[0]->type) == 0))
        return error_set(c->err, BRAID_TYPE, "input 0: %s has another size than %s", braid_type_name(c->in[0]->type),
                         braid_type_name((braid_type)to));
    TRY(infer_same(c));
    c->out[0].type = (braid_type)to;
    return BRAID_OK;
}

static braid_status bitcast_eval(eval *e) {
    tensor *out;
    TRY(eval_output(e, 0, &out));
    if (out->bytes != e->in[0]->bytes) return error_set(e->err, BRAID_INTERNAL, "sizes differ");
    if (out->bytes) memcpy(out->data, e->in[0]->data, out->bytes);
    return BRAID_OK;
}

static braid_status bitcast_lower(lowering *l) {
    return lower_alias(l, 0, 0);
}

/* --------------------------------------------------------------------------------------------------- rows */

static const attribute_spec cast_attributes[] = {{"to", ATTRIBUTE_INT, NULL},
                                                 {"to", ATTRIBUTE_STRING, NULL},
                                                 {"saturate", ATTRIBUTE_INT, "1"},
                                                 {"round_mode", ATTRIBUTE_STRING, "up"},
                                                 {0}};

const op map_cast_ops[] = {{.name = "Cast",
                            .since = 1,
                            .min_in = 1,
                            .max_in = 1,
                            .min_out = 1,
                            .max_out = 1,
                            .attributes = cast_attributes,
                            .upgrade = cast_upgrade,
                            .infer = cast_infer,
                            .eval = cast_eval,
                            .emit = emit_cast,
                            .lower = cast_lower},
                           {.name = "CastLike",
                            .since = 15,
                            .min_in = 2,
                            .max_in = 2,
                            .min_out = 1,
                            .max_out = 1,
                            .attributes = cast_attributes,
                            .infer = cast_infer,
                            .eval = cast_eval,
                            .lower = cast_lower},
                           {.name = "BitCast",
                            .since = 26,
                            .min_in = 1,
                            .max_in = 1,
                            .min_out = 1,
                            .max_out = 1,
                            .attributes = cast_attributes,
                            .infer = bitcast_infer,
                            .eval = bitcast_eval,
                            .lower = bitcast_lower},
                           {0}};
