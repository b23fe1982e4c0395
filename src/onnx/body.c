/*
 * body.c: GraphProto and NodeProto.
 */
#include "onnx/import.h"

/* Calls `each` for the content of every `field` of a message. */
typedef braid_status each_fn(scope *, wire content);
static braid_status for_each(scope *s, wire w, uint32_t field, each_fn *each) {
    wire_field f;
    wire inner;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number != field) continue;
        TRY(wire_message(&w, &f, &inner));
        TRY(each(s, inner));
    }
    return BRAID_OK;
}

static braid_status count_fields(wire w, uint32_t field, size_t *out) {
    wire_field f;
    *out = 0;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        *out += f.number == field;
    }
    return BRAID_OK;
}

/* ---- initializers, inputs, outputs */

static braid_status add_initializer(scope *s, const char *name, tensor *t) {
    importer *im = s->im;
    int32_t v;
    if (++im->n_initializers > INITIALIZERS_MAX)
        return error_set(im->err, BRAID_LIMIT, "more than %d initializers", INITIALIZERS_MAX);
    if (!*name) return error_set(im->err, BRAID_MODEL, "an initializer has no name");
    TRY(scope_define(s, name, VALUE_CONSTANT, &v));
    s->g->values[v]->constant = t;
    s->g->values[v]->type = t->type;
    int64_t count = 0;
    tensor_type_count(&t->type, &count);
    im->model->parameters += (uint64_t)count;
    im->model->parameter_bytes += t->bytes;
    return import_budget(im, 0);
}

static braid_status read_initializer(scope *s, wire w) {
    const char *name;
    tensor *t;
    TRY(import_tensor(s->im, w, &name, &t));
    return add_initializer(s, name, t);
}

static braid_status read_sparse_initializer(scope *s, wire w) {
    const char *name;
    tensor *t;
    TRY(import_sparse(s->im, w, &name, &t));
    return add_initializer(s, name, t);
}

/* An input of the outermost graph that has an initializer is a constant. */
static braid_status read_input(scope *s, wire w) {
    const char *name;
    tensor_type type;
    int32_t v;
    TRY(import_value_info(s, w, true, &name, &type));
    if (!*name) return error_set(s->im->err, BRAID_MODEL, "a graph input has no name");
    int32_t known = names_get(&s->names, name);
    if (!s->parent && known >= 0 && s->g->values[known]->kind == VALUE_CONSTANT) return BRAID_OK;
    TRY(scope_define(s, name, VALUE_INPUT, &v));
    s->g->values[v]->type = type;
    s->g->inputs[s->g->n_inputs++] = v;
    return import_budget(s->im, 0);
}

static void take_hint(scope *s, const char *name, const tensor_type *type) {
    int32_t v = names_get(&s->names, name);
    if (v < 0 || s->g->values[v]->kind != VALUE_NODE) return;
    s->g->values[v]->type = *type;
}

static braid_status read_hint(scope *s, wire w) {
    const char *name;
    tensor_type type;
    TRY(import_value_info(s, w, false, &name, &type));
    take_hint(s, name, &type);
    return import_budget(s->im, 0);
}

static braid_status read_output_type(scope *s, wire w) {
    const char *name;
    tensor_type type;
    TRY(import_value_info(s, w, true, &name, &type));
    take_hint(s, name, &type);
    return BRAID_OK;
}

static braid_status read_output(scope *s, wire w) {
    graph *g = s->g;
    const char *name = "";
    wire_field f;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number == 1) TRY(import_name(s->im, &w, &f, &name));
    }
    if (!*name) return error_set(s->im->err, BRAID_MODEL, "a graph output has no name");
    braid_status status = scope_find(s, name, &g->outputs[g->n_outputs]);
    if (status == BRAID_OK && g->outputs[g->n_outputs] < 0)
        status = error_set(s->im->err, BRAID_MODEL, "'%.200s' is absent", name);
    if (status != BRAID_OK) return error_within(s->im->err, status, "graph output %d", (int)g->n_outputs);
    g->output_names[g->n_outputs++] = name;
    return import_budget(s->im, 0);
}

/* ---- nodes */

static braid_status declare_outputs(scope *s, wire w) {
    const char *name;
    wire_field f;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number != 2) continue;
        TRY(import_name(s->im, &w, &f, &name));
        if (!*name) continue;
        int32_t v = names_get(&s->pending, name);
        bool taken = v >= 0 && names_get(&s->names, name) == NAMES_NONE;
        if (!taken) TRY(scope_define(s, name, VALUE_NODE, &v));
        if (taken && !names_put(&s->names, name, v)) return error_memory(s->im->err);
    }
    return import_budget(s->im, 0);
}

braid_status import_declare(scope *s, wire message, uint32_t field) {
    return for_each(s, message, field, declare_outputs);
}

static braid_status read_node_head(scope *s, wire w, node_proto *n) {
    importer *im = s->im;
    wire_field f;
    *n = (node_proto){.name = "", .type = "", .domain = "", .overload = ""};
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        switch (f.number) {
        case 1:
            n->n_in++;
            break;
        case 2:
            n->n_out++;
            break;
        case 3:
            TRY(import_name(im, &w, &f, &n->name));
            break;
        case 4:
            TRY(import_name(im, &w, &f, &n->type));
            break;
        case 5:
            n->n_attributes++;
            break;
        case 7:
            TRY(import_name(im, &w, &f, &n->domain));
            break;
        case 8:
            TRY(import_name(im, &w, &f, &n->overload));
            break;
        default:
            break;
        }
        if (n->n_in > NODES_MAX || n->n_out > NODES_MAX || n->n_attributes > ATTRIBUTES_MAX)
            return error_set(im->err, BRAID_LIMIT, "a node has too many inputs, outputs or attributes");
    }
    n->domain = import_domain(n->domain);
    return BRAID_OK;
}

static braid_status settle_opset(scope *s, node_proto *n) {
    if (!*n->type) return error_set(s->im->err, BRAID_MODEL, "a node has no operator");
    int64_t opset = import_opset(s, n->domain);
    if (!opset && !*n->domain) return error_set(s->im->err, BRAID_MODEL, "the model does not import ai.onnx");
    n->opset = opset >= 1 && opset <= INT32_MAX ? (int)opset : 1;
    return BRAID_OK;
}

static braid_status read_outputs(scope *s, wire w, node_proto *n) {
    importer *im = s->im;
    wire_field f;
    const char *name;
    n->out = arena_array(im->memory, (size_t)n->n_out + 1, sizeof *n->out);
    if (!n->out) return error_memory(im->err);
    for (int out = 0; wire_more(&w);) {
        TRY(wire_next(&w, &f));
        if (f.number != 2) continue;
        TRY(import_name(im, &w, &f, &name));
        n->out[out++] = *name ? names_get(&s->names, name) : -1;
    }
    return BRAID_OK;
}

static braid_status read_inputs(scope *s, wire w, node_proto *n) {
    importer *im = s->im;
    wire_field f;
    const char *name;
    n->in = arena_array(im->memory, (size_t)n->n_in + 1, sizeof *n->in);
    if (!n->in) return error_memory(im->err);
    for (int in = 0; wire_more(&w); in += f.number == 1) {
        TRY(wire_next(&w, &f));
        if (f.number != 1) continue;
        TRY(import_name(im, &w, &f, &name));
        braid_status status = scope_find(s, name, &n->in[in]);
        if (status != BRAID_OK) return error_within(im->err, status, "input %d", in);
    }
    return BRAID_OK;
}

/* A node without a name goes by its first output's. */
static braid_status settle_name(scope *s, node_proto *n) {
    int first = 0;
    while (first < n->n_out && n->out[first] < 0) first++;
    if (!*n->name)
        n->name = first < n->n_out ? s->g->values[n->out[first]]->name : "";
    else if (s->call)
        n->name = arena_format(s->im->memory, "%s/%s", s->call->prefix, n->name);
    return n->name ? BRAID_OK : error_memory(s->im->err);
}

static braid_status read_attributes(scope *s, wire w, node_proto *n) {
    importer *im = s->im;
    n->attributes = arena_array(im->memory, (size_t)n->n_attributes + 1, sizeof *n->attributes);
    if (!n->attributes) return error_memory(im->err);
    n->n_attributes = 0;
    wire_field f;
    wire inner;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number != 5) continue;
        attribute *a = &n->attributes[n->n_attributes];
        bool present;
        TRY(wire_message(&w, &f, &inner));
        TRY(import_attribute(s, inner, a, &present));
        for (int i = 0; i < n->n_attributes; i++)
            if (strcmp(n->attributes[i].name, a->name) == 0)
                return error_set(im->err, BRAID_MODEL, "attribute '%.200s' is given twice", a->name);
        n->n_attributes += present;
    }
    return BRAID_OK;
}

/* ---- Constant: its output becomes a constant value */

static braid_status constant_list(importer *im, const attribute *a, braid_type type, bool scalar, tensor **out) {
    int64_t dims[1] = {(int64_t)a->count};
    TRY(tensor_new(im->memory, type, scalar ? 0 : 1, dims, out, im->err));
    const void *from = a->kind == ATTRIBUTE_FLOAT    ? (const void *)&a->f
                       : a->kind == ATTRIBUTE_INT    ? (const void *)&a->i
                       : a->kind == ATTRIBUTE_STRING ? (const void *)&a->s
                                                     : (const void *)a->strings;
    if ((*out)->bytes) memcpy((*out)->data, from, (*out)->bytes);
    return BRAID_OK;
}

static braid_status constant_tensor(importer *im, const attribute *a, tensor **out) {
    static const struct {
        const char *name;
        attribute_kind kind;
        braid_type type;
    } forms[] = {
        {"value", ATTRIBUTE_TENSOR, BRAID_TYPE_NONE},     {"sparse_value", ATTRIBUTE_TENSOR, BRAID_TYPE_NONE},
        {"value_float", ATTRIBUTE_FLOAT, BRAID_FLOAT32},  {"value_floats", ATTRIBUTE_FLOATS, BRAID_FLOAT32},
        {"value_int", ATTRIBUTE_INT, BRAID_INT64},        {"value_ints", ATTRIBUTE_INTS, BRAID_INT64},
        {"value_string", ATTRIBUTE_STRING, BRAID_STRING}, {"value_strings", ATTRIBUTE_STRINGS, BRAID_STRING},
    };
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        if (strcmp(a->name, forms[i].name) != 0) continue;
        if (a->kind != forms[i].kind)
            return error_set(im->err, BRAID_MODEL, "attribute '%s' has type %d, expected %d", a->name, (int)a->kind,
                             (int)forms[i].kind);
        if (a->kind != ATTRIBUTE_TENSOR) return constant_list(im, a, forms[i].type, a->kind <= ATTRIBUTE_STRING, out);
        *out = a->t;
        return BRAID_OK;
    }
    *out = NULL;
    return BRAID_OK;
}

static braid_status make_constant(scope *s, const node_proto *n) {
    tensor *t = NULL;
    for (int i = 0; i < n->n_attributes && !t; i++) TRY(constant_tensor(s->im, &n->attributes[i], &t));
    if (!t) return error_set(s->im->err, BRAID_MODEL, "it has no value");
    if (n->n_in || n->n_out != 1) return error_set(s->im->err, BRAID_MODEL, "it has inputs or not exactly one output");
    if (n->out[0] < 0) return BRAID_OK;
    value *v = s->g->values[n->out[0]];
    v->kind = VALUE_CONSTANT;
    v->constant = t;
    v->type = t->type;
    return BRAID_OK;
}

static braid_status make_node(scope *s, const node_proto *n) {
    node *made = graph_node_into(s->g, n->type, n->domain, n->name, n->n_in, n->in, n->n_out, n->out);
    if (!made) return error_memory(s->im->err);
    made->opset = n->opset;
    for (int i = 0; i < n->n_attributes; i++)
        if (!node_add_attribute(s->g, made, n->attributes[i])) return error_memory(s->im->err);
    return BRAID_OK;
}

static braid_status read_node_body(scope *s, wire w, node_proto *n) {
    TRY(read_outputs(s, w, n));
    TRY(settle_name(s, n));
    TRY(read_inputs(s, w, n));
    TRY(read_attributes(s, w, n));
    const function *callee = function_find(s->im, n);
    if (callee) return function_inline(s, callee, n);
    if (strcmp(n->type, "Constant") == 0 && !*n->domain) return make_constant(s, n);
    return make_node(s, n);
}

/* An error names its innermost node and the outermost one: a chain of all between might push the reason out. */
bool import_names_node(const importer *im) {
    return im->err && strncmp(im->err->message, "node '", 6) == 0;
}

static braid_status read_node(scope *s, wire w) {
    importer *im = s->im;
    node_proto n;
    if (++im->n_nodes > NODES_MAX) return error_set(im->err, BRAID_LIMIT, "more than %d nodes", NODES_MAX);
    TRY(read_node_head(s, w, &n));
    TRY(settle_opset(s, &n));
    TRY(import_budget(im, ((uint64_t)n.n_in + (uint64_t)n.n_out) * 4));
    braid_status status = read_node_body(s, w, &n);
    if (status == BRAID_OK) return import_budget(im, 0);
    if ((s->parent || s->call) && import_names_node(im)) return status;
    return error_within(im->err, status, "node '%.120s' (%s%s%.60s-%d)", n.name ? n.name : "", n.domain,
                        *n.domain ? "." : "", n.type, n.opset);
}

braid_status import_nodes(scope *s, wire message, uint32_t field) {
    return for_each(s, message, field, read_node);
}

/* ---- graphs */

static braid_status make_room(scope *s, wire w) {
    importer *im = s->im;
    graph *g = s->g;
    size_t n_in, n_out;
    TRY(count_fields(w, 11, &n_in));
    TRY(count_fields(w, 12, &n_out));
    if (n_in > NODES_MAX || n_out > NODES_MAX)
        return error_set(im->err, BRAID_LIMIT, "too many graph inputs or outputs");
    TRY(import_budget(im, n_in * 4 + n_out * 12));
    g->inputs = arena_array(im->memory, n_in + 1, sizeof *g->inputs);
    g->outputs = arena_array(im->memory, n_out + 1, sizeof *g->outputs);
    g->output_names = arena_array(im->memory, n_out + 1, sizeof *g->output_names);
    return g->inputs && g->outputs && g->output_names ? BRAID_OK : error_memory(im->err);
}

static braid_status read_graph_name(scope *s, wire w) {
    wire_field f;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number == 2) TRY(import_name(s->im, &w, &f, &s->g->name));
    }
    return BRAID_OK;
}

braid_status import_graph(scope *s, wire w) {
    s->names.memory = s->pending.memory = s->im->memory;
    s->g->opset = (int)import_opset(s, "");
    s->g->ir_version = (int)s->im->model->ir_version;
    TRY(read_graph_name(s, w));
    TRY(make_room(s, w));
    TRY(for_each(s, w, 5, read_initializer));
    TRY(for_each(s, w, 15, read_sparse_initializer));
    TRY(for_each(s, w, 11, read_input));
    TRY(import_declare(s, w, 1));
    TRY(for_each(s, w, 13, read_hint));
    TRY(for_each(s, w, 12, read_output_type));
    TRY(import_nodes(s, w, 1));
    TRY(for_each(s, w, 12, read_output));
    return import_finish(s->im, s->g);
}

braid_status import_subgraph(scope *outer, wire message, graph **out) {
    importer *im = outer->im;
    if (outer->depth >= GRAPH_DEPTH_MAX)
        return error_set(im->err, BRAID_LIMIT, "graphs are nested deeper than %d", GRAPH_DEPTH_MAX);
    graph *g = graph_new(im->memory, "");
    if (!g) return error_memory(im->err);
    g->parent = outer->g;
    scope s = {.im = im, .g = g, .parent = outer, .call = outer->call, .depth = outer->depth + 1};
    *out = g;
    return import_graph(&s, message);
}
