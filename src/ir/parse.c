/*
 * parse.c: text -> graph, the inverse of print.c. Operators are not looked up here (node.op stays NULL).
 */
#include "ir/lex.h"

enum { DEPTH_MAX = 32, COPIES_MAX = 1 << 17 };

typedef struct scope {
    graph *g;
    struct scope *parent;
    const char **keys; /* what each value is called in the text */
    int32_t capacity;
    int depth;
} scope;

typedef struct parser {
    lexer l;
    graph *root;
    uint32_t *fresh; /* symbol of `?i`, plus one */
    size_t n_fresh;
} parser;

static braid_status parse_graph(parser *, scope *parent, graph **out);

/* ---- values */

/* A name, `name%3`, or `%3`; *key tells values apart, *name is what the value is called. */
static braid_status parse_key(parser *p, const char **key, const char **name) {
    *name = "";
    if (lex_peek(&p->l) != '%') TRY(lex_name(&p->l, name, NULL));
    *key = *name;
    if (*p->l.at != '%') return BRAID_OK;
    p->l.at++;
    int64_t n;
    TRY(lex_int(&p->l, 0, INT32_MAX, &n));
    *key = arena_format(p->l.memory, "%s%%%lld", *name, (long long)n);
    return *key ? BRAID_OK : error_memory(p->l.err);
}

static int32_t find_value(const scope *in, const char *key) {
    for (int32_t v = in->g->n_values - 1; v >= 0; v--)
        if (in->keys[v] && strcmp(in->keys[v], key) == 0) return v;
    return -1;
}

static braid_status add_key(parser *p, scope *in, int32_t v, const char *key) {
    if (v < 0) return error_memory(p->l.err);
    if (v >= in->capacity) {
        int32_t larger = v * 2 + 16;
        const char **keys = arena_array(p->l.memory, (size_t)larger, sizeof *keys);
        if (!keys) return error_memory(p->l.err);
        if (in->capacity) memcpy(keys, in->keys, (size_t)in->capacity * sizeof *keys);
        in->keys = keys;
        in->capacity = larger;
    }
    in->keys[v] = key;
    return BRAID_OK;
}

static braid_status parse_reference(parser *p, const scope *in, int32_t *out) {
    const char *key, *name;
    TRY(parse_key(p, &key, &name));
    *out = in ? find_value(in, key) : -1;
    if (*out >= 0) return BRAID_OK;
    return error_within(p->l.err, lex_error(&p->l, "a known value"), "'%s' is not defined", key);
}

static braid_status parse_fresh(parser *p, int64_t *out) {
    int64_t n;
    TRY(lex_int(&p->l, 0, 1 << 16, &n));
    if ((size_t)n >= p->n_fresh) {
        size_t larger = (size_t)n * 2 + 16;
        uint32_t *fresh = arena_array(p->l.memory, larger, sizeof *fresh);
        if (!fresh) return error_memory(p->l.err);
        if (p->n_fresh) memcpy(fresh, p->fresh, p->n_fresh * sizeof *fresh);
        p->fresh = fresh;
        p->n_fresh = larger;
    }
    if (!p->fresh[n]) {
        uint32_t id = graph_symbol(p->root, NULL);
        if (id == UINT32_MAX) return error_memory(p->l.err);
        p->fresh[n] = id + 1;
    }
    *out = dim_from_symbol(p->fresh[n] - 1);
    return BRAID_OK;
}

static braid_status parse_dim(parser *p, int64_t *out) {
    char c = lex_peek(&p->l);
    if (c >= '0' && c <= '9') return lex_int(&p->l, 0, INT64_MAX, out);
    if (lex_accept(&p->l, "?")) return parse_fresh(p, out);
    const char *name;
    TRY(lex_name(&p->l, &name, NULL));
    uint32_t id = graph_symbol(p->root, name);
    if (id == UINT32_MAX) return error_memory(p->l.err);
    *out = dim_from_symbol(id);
    return BRAID_OK;
}

static braid_status parse_type(parser *p, tensor_type *t) {
    *t = (tensor_type){.rank = -1};
    if (!lex_accept(&p->l, "?")) {
        const char *name;
        TRY(lex_name(&p->l, &name, NULL));
        t->type = type_from_name(name);
        if (!t->type) return lex_error(&p->l, "an element type before this");
    }
    if (!lex_accept(&p->l, "[")) return BRAID_OK;
    t->rank = 0;
    if (lex_accept(&p->l, "]")) return BRAID_OK;
    do {
        if (t->rank == BRAID_MAX_RANK) return lex_error(&p->l, "at most 8 dims");
        TRY(parse_dim(p, &t->dims[t->rank]));
        t->rank++;
    } while (lex_accept(&p->l, ","));
    return lex_expect(&p->l, "]");
}

static braid_status parse_declaration(parser *p, scope *in, value_kind kind, int32_t *out) {
    const char *key, *name;
    TRY(parse_key(p, &key, &name));
    if (find_value(in, key) >= 0)
        return error_within(p->l.err, lex_error(&p->l, "a new name"), "'%s' is defined twice", key);
    *out = graph_value(in->g, name, kind);
    TRY(add_key(p, in, *out, key));
    if (!lex_accept(&p->l, ":")) return BRAID_OK;
    char digit = lex_peek(&p->l);
    if (digit >= '0' && digit <= '9') {
        int64_t copies;
        TRY(lex_int(&p->l, 1, COPIES_MAX, &copies));
        TRY(lex_expect(&p->l, "x"));
        in->g->values[*out]->copies = (int32_t)copies;
    }
    return parse_type(p, &in->g->values[*out]->type);
}

/* ---- tensors */

static braid_status parse_element(parser *p, tensor *t, int64_t i) {
    if (t->type.type == BRAID_STRING) return lex_string(&p->l, (const char **)t->data + i, NULL);
    number n;
    TRY(lex_number(&p->l, &n));
    if (type_is_float(t->type.type))
        element_set_f64(t->type.type, t->data, i, n.f);
    else if (n.is_float)
        return lex_error(&p->l, "an integer before this");
    else
        element_set_i64(t->type.type, t->data, i, t->type.type == BRAID_UINT64 ? (int64_t)n.u : n.i);
    return BRAID_OK;
}

static braid_status parse_hex(parser *p, tensor *t) {
    const char *s;
    size_t n;
    TRY(lex_string(&p->l, &s, &n));
    if (n != t->bytes * 2 || strspn(s, "0123456789abcdef") != n) return lex_error(&p->l, "two digits for each byte");
    for (size_t i = 0; i < n; i++) {
        int digit = s[i] <= '9' ? s[i] - '0' : s[i] - 'a' + 10;
        uint8_t *byte = (uint8_t *)t->data + i / 2;
        *byte = (uint8_t)(*byte << 4 | digit);
    }
    return BRAID_OK;
}

static braid_status parse_content(parser *p, const tensor_type *type, tensor **out) {
    tensor *t;
    if (!type->type || !tensor_type_static(type)) return lex_error(&p->l, "a type with known dims before this");
    int64_t count = 0;
    tensor_type_count(type, &count);
    if (count > (int64_t)strlen(p->l.at) * 4) return lex_error(&p->l, "as many elements as its type says");
    TRY(tensor_new(p->l.memory, type->type, type->rank, type->dims, &t, p->l.err));
    *out = t;
    if (lex_accept(&p->l, "hex")) return parse_hex(p, t);
    TRY(lex_expect(&p->l, "{"));
    for (int64_t i = 0; i < count; i++) {
        if (i) TRY(lex_expect(&p->l, ","));
        TRY(parse_element(p, t, i));
    }
    return lex_expect(&p->l, "}");
}

/* After the word `tensor`. */
static braid_status parse_tensor(parser *p, tensor **out) {
    tensor_type type;
    TRY(parse_type(p, &type));
    return parse_content(p, &type, out);
}

/* ---- attributes */

/* Appends one element of `size` bytes to an arena array that doubles at powers of two. */
static braid_status append(parser *p, void *array, size_t count, const void *element, size_t size) {
    char **place = array;
    if ((count & (count - 1)) == 0) {
        char *larger = arena_array(p->l.memory, count * 2 + 1, size);
        if (!larger) return error_memory(p->l.err);
        if (count) memcpy(larger, *place, count * size);
        *place = larger;
    }
    memcpy(*place + count * size, element, size);
    return BRAID_OK;
}

static braid_status parse_numbers(parser *p, attribute *a) {
    number *list = NULL, n;
    bool any_float = false;
    do {
        TRY(lex_number(&p->l, &n));
        any_float |= n.is_float;
        TRY(append(p, &list, a->count++, &n, sizeof n));
    } while (lex_accept(&p->l, ","));
    float *floats = arena_array(p->l.memory, a->count, sizeof *floats);
    int64_t *ints = arena_array(p->l.memory, a->count, sizeof *ints);
    if (!floats || !ints) return error_memory(p->l.err);
    for (size_t i = 0; i < a->count; i++) {
        floats[i] = (float)list[i].f;
        ints[i] = list[i].i;
    }
    a->kind = any_float ? ATTRIBUTE_FLOATS : ATTRIBUTE_INTS;
    if (any_float)
        a->floats = floats;
    else
        a->ints = ints;
    return BRAID_OK;
}

static braid_status parse_list(parser *p, scope *in, attribute *a) {
    a->kind = lex_accept(&p->l, "floats")    ? ATTRIBUTE_FLOATS
              : lex_accept(&p->l, "strings") ? ATTRIBUTE_STRINGS
              : lex_accept(&p->l, "tensors") ? ATTRIBUTE_TENSORS
              : lex_accept(&p->l, "graphs")  ? ATTRIBUTE_GRAPHS
                                             : ATTRIBUTE_INTS;
    TRY(lex_expect(&p->l, "["));
    a->count = 0;
    a->ints = NULL;
    if (lex_accept(&p->l, "]")) return BRAID_OK;
    char c = lex_peek(&p->l);
    const void *element = NULL;
    if (c == '-' || (c >= '0' && c <= '9') || strncmp(p->l.at, "nan", 3) == 0 || strncmp(p->l.at, "inf", 3) == 0) {
        TRY(parse_numbers(p, a));
        return lex_expect(&p->l, "]");
    }
    do {
        if (c == '"') {
            a->kind = ATTRIBUTE_STRINGS;
            TRY(lex_string(&p->l, (const char **)&element, NULL));
        } else if (lex_accept(&p->l, "tensor")) {
            a->kind = ATTRIBUTE_TENSORS;
            TRY(parse_tensor(p, (tensor **)&element));
        } else {
            a->kind = ATTRIBUTE_GRAPHS;
            TRY(parse_graph(p, in, (graph **)&element));
        }
        TRY(append(p, &a->strings, a->count++, &element, sizeof element));
    } while (lex_accept(&p->l, ",") && lex_peek(&p->l) == c);
    return lex_expect(&p->l, "]");
}

static braid_status parse_attribute_value(parser *p, scope *in, attribute *a) {
    char c = lex_peek(&p->l);
    a->count = 1;
    if (c == '"') {
        a->kind = ATTRIBUTE_STRING;
        return lex_string(&p->l, &a->s, &a->count);
    }
    if (lex_accept(&p->l, "other")) {
        a->kind = ATTRIBUTE_OTHER;
        return BRAID_OK;
    }
    if (lex_accept(&p->l, "tensor")) {
        a->kind = ATTRIBUTE_TENSOR;
        return parse_tensor(p, &a->t);
    }
    if (strncmp(p->l.at, "graph", 5) == 0 && p->l.at[5] != 's') {
        a->kind = ATTRIBUTE_GRAPH;
        return parse_graph(p, in, &a->g);
    }
    if (c != '-' && (c < '0' || c > '9') && strncmp(p->l.at, "nan", 3) && strncmp(p->l.at, "inf", 3))
        return parse_list(p, in, a);
    number n;
    TRY(lex_number(&p->l, &n));
    a->kind = n.is_float ? ATTRIBUTE_FLOAT : ATTRIBUTE_INT;
    if (n.is_float)
        a->f = (float)n.f;
    else
        a->i = n.i;
    return BRAID_OK;
}

static braid_status parse_attributes(parser *p, scope *in, node *n) {
    if (!lex_accept(&p->l, "{") || lex_accept(&p->l, "}")) return BRAID_OK;
    do {
        attribute a = {0};
        TRY(lex_name(&p->l, &a.name, NULL));
        TRY(lex_expect(&p->l, "="));
        TRY(parse_attribute_value(p, in, &a));
        if (!node_add_attribute(in->g, n, a)) return error_memory(p->l.err);
    } while (lex_accept(&p->l, ","));
    return lex_expect(&p->l, "}");
}

/* ---- nodes */

static braid_status parse_instruction(parser *p, program *e) {
    int64_t v[4];
    if (e->n_steps == PROGRAM_STEPS) return lex_error(&p->l, "fewer instructions");
    for (int i = 0; i < 4; i++) TRY(lex_int(&p->l, 0, 255, &v[i]));
    e->steps[e->n_steps++] = (instruction){(uint8_t)v[0], (uint8_t)v[1], (uint8_t)v[2], (uint8_t)v[3]};
    return BRAID_OK;
}

static braid_status parse_immediate(parser *p, program *e) {
    number f;
    if (e->n_immediates == PROGRAM_IMMEDIATES) return lex_error(&p->l, "fewer immediates");
    TRY(lex_number(&p->l, &f));
    e->immediates_f[e->n_immediates] = f.f;
    return lex_int(&p->l, INT64_MIN, INT64_MAX, &e->immediates_i[e->n_immediates++]);
}

static braid_status parse_epilogue(parser *p, node *n) {
    program *e = arena_alloc(p->l.memory, sizeof *e);
    if (!e) return error_memory(p->l.err);
    int64_t root;
    TRY(lex_expect(&p->l, "{"));
    TRY(lex_int(&p->l, 0, n->n_in, &root));
    n->n_root = (int)root;
    n->epilogue = e;
    while (lex_accept(&p->l, ";")) TRY(parse_instruction(p, e));
    TRY(lex_expect(&p->l, "}"));
    TRY(lex_expect(&p->l, "{"));
    if (lex_accept(&p->l, "}")) return BRAID_OK;
    do TRY(parse_immediate(p, e));
    while (lex_accept(&p->l, ";"));
    return lex_expect(&p->l, "}");
}

static braid_status parse_inputs(parser *p, const scope *in, int32_t **list, int *count) {
    TRY(lex_expect(&p->l, "("));
    if (lex_accept(&p->l, ")")) return BRAID_OK;
    do {
        int32_t v = -1;
        if (!lex_accept(&p->l, "-")) TRY(parse_reference(p, in, &v));
        TRY(append(p, list, (size_t)(*count)++, &v, sizeof v));
    } while (lex_accept(&p->l, ","));
    return lex_expect(&p->l, ")");
}

/* After `outputs =`. */
static braid_status parse_node(parser *p, scope *in, const int32_t *out, int n_out) {
    const char *domain = "", *type, *name = "";
    int64_t opset = -1;
    int32_t *list = NULL;
    int n_in = 0;
    TRY(lex_name(&p->l, &type, NULL));
    if (lex_accept(&p->l, ":")) {
        domain = type;
        TRY(lex_name(&p->l, &type, NULL));
    }
    if (lex_accept(&p->l, "@")) TRY(lex_int(&p->l, 0, 1 << 20, &opset));
    TRY(parse_inputs(p, in, &list, &n_in));
    node *n = graph_node_into(in->g, type, domain, "", n_in, list, n_out, out);
    if (!n) return error_memory(p->l.err);
    if (opset >= 0) n->opset = (int)opset;
    for (int i = 0; i < n_out && !node_is_stack(n); i++)
        if (out[i] >= 0) n->copies = in->g->values[out[i]]->copies;
    TRY(parse_attributes(p, in, n));
    if (lex_accept(&p->l, "epilogue")) TRY(parse_epilogue(p, n));
    p->l.at += strspn(p->l.at, " \t"); /* the name stands on the same line: the next may begin with a value's name */
    if (*p->l.at == '"') TRY(lex_string(&p->l, &name, NULL));
    n->name = name;
    return BRAID_OK;
}

static braid_status parse_constant(parser *p, const scope *in, int32_t v) {
    value *x = in->g->values[v];
    x->kind = VALUE_CONSTANT;
    return parse_content(p, &x->type, &x->constant);
}

static braid_status parse_outer(parser *p, const scope *in, int32_t v) {
    in->g->values[v]->kind = VALUE_OUTER;
    return parse_reference(p, in->parent, &in->g->values[v]->outer);
}

/* The word, unless it begins a call: an operator may have the same name. */
static bool accept_keyword(parser *p, const char *word) {
    const char *at = p->l.at;
    if (!lex_accept(&p->l, word)) return false;
    if (lex_peek(&p->l) != '(' && *p->l.at != ':' && *p->l.at != '@') return true;
    p->l.at = at;
    return false;
}

static braid_status parse_statement(parser *p, scope *in) {
    int32_t *out = NULL, v;
    int n_out = 0;
    bool nothing = lex_accept(&p->l, "=");
    while (!nothing) {
        v = -1;
        if (!lex_accept(&p->l, "-")) TRY(parse_declaration(p, in, VALUE_NODE, &v));
        TRY(append(p, &out, (size_t)n_out++, &v, sizeof v));
        if (!lex_accept(&p->l, ",")) break;
    }
    if (!nothing) TRY(lex_expect(&p->l, "="));
    if (n_out == 1 && v >= 0 && accept_keyword(p, "constant")) return parse_constant(p, in, v);
    if (n_out == 1 && v >= 0 && accept_keyword(p, "outer")) return parse_outer(p, in, v);
    return parse_node(p, in, out, n_out);
}

/* ---- graphs */

static braid_status parse_parameters(parser *p, scope *in) {
    TRY(lex_expect(&p->l, "("));
    if (lex_accept(&p->l, ")")) return BRAID_OK;
    do {
        int32_t v;
        TRY(parse_declaration(p, in, VALUE_INPUT, &v));
        TRY(append(p, &in->g->inputs, (size_t)in->g->n_inputs++, &v, sizeof v));
    } while (lex_accept(&p->l, ","));
    return lex_expect(&p->l, ")");
}

static braid_status parse_outputs(parser *p, const scope *in) {
    graph *g = in->g;
    bool closed = lex_accept(&p->l, "(");
    if (closed ? lex_accept(&p->l, ")") : !lex_peek(&p->l)) return BRAID_OK;
    do {
        int32_t v;
        TRY(parse_reference(p, in, &v));
        const char *name = g->values[v]->name;
        if (lex_accept(&p->l, "as")) TRY(lex_string(&p->l, &name, NULL));
        TRY(append(p, &g->outputs, (size_t)g->n_outputs, &v, sizeof v));
        TRY(append(p, &g->output_names, (size_t)g->n_outputs++, &name, sizeof name));
    } while (lex_accept(&p->l, ","));
    return closed ? lex_expect(&p->l, ")") : BRAID_OK;
}

static braid_status parse_header(parser *p, graph *g) {
    int64_t n;
    if (lex_accept(&p->l, "opset")) {
        TRY(lex_int(&p->l, 0, 1 << 20, &n));
        g->opset = (int)n;
    }
    if (lex_accept(&p->l, "ir")) {
        TRY(lex_int(&p->l, 0, 1 << 20, &n));
        g->ir_version = (int)n;
    }
    return BRAID_OK;
}

static braid_status parse_graph(parser *p, scope *parent, graph **out) {
    const char *name = "";
    scope in = {.parent = parent, .depth = parent ? parent->depth + 1 : 0};
    if (in.depth > DEPTH_MAX) return lex_error(&p->l, "fewer nested graphs");
    TRY(lex_expect(&p->l, "graph"));
    if (lex_peek(&p->l) != '(') TRY(lex_name(&p->l, &name, NULL));
    graph *g = in.g = graph_new(p->l.memory, name);
    if (!g) return error_memory(p->l.err);
    g->parent = parent ? parent->g : NULL;
    if (!p->root) p->root = g;
    TRY(parse_parameters(p, &in));
    TRY(parse_header(p, g));
    TRY(lex_expect(&p->l, "{"));
    while (!lex_accept(&p->l, "}")) TRY(parse_statement(p, &in));
    TRY(lex_expect(&p->l, "->"));
    TRY(parse_outputs(p, &in));
    *out = g;
    return BRAID_OK;
}

braid_status graph_parse(arena *memory, const char *source, graph **out, braid_error *err) {
    parser p = {.l = {.at = source, .start = source, .memory = memory, .err = err}};
    TRY(parse_graph(&p, NULL, out));
    return lex_peek(&p.l) ? lex_error(&p.l, "the end") : BRAID_OK;
}
