/*
 * function.c: local functions. A call is replaced by the nodes of the function's body: inputs and outputs of the body
 * are the caller's values, everything else gets new values under "<first output of the call>/<name>". A body sees
 * nothing of its caller but its inputs and attributes.
 */
#include "onnx/import.h"

static const char *function_key(arena *memory, const char *domain, const char *name, const char *overload) {
    return arena_format(memory, "%s\x1f%s\x1f%s", domain, name, overload);
}

static braid_status read_function(importer *im, wire w, function *f) {
    wire_field field;
    *f = (function){.domain = "", .name = "", .overload = "", .body = w};
    TRY(import_opsets(im, &w, 9, &f->opsets, &f->n_opsets));
    while (wire_more(&w)) {
        TRY(wire_next(&w, &field));
        if (field.number == 1) TRY(import_name(im, &w, &field, &f->name));
        if (field.number == 10) TRY(import_name(im, &w, &field, &f->domain));
        if (field.number == 13) TRY(import_name(im, &w, &field, &f->overload));
    }
    f->domain = import_domain(f->domain);
    return *f->name ? BRAID_OK : error_set(im->err, BRAID_MODEL, "a function has no name");
}

static braid_status add_function(importer *im, wire w) {
    function *f = &im->functions[im->n_functions];
    braid_status status = read_function(im, w, f);
    if (status != BRAID_OK) return error_within(im->err, status, "function %zu", im->n_functions);
    const char *key = function_key(im->memory, f->domain, f->name, f->overload);
    if (!key) return error_memory(im->err);
    if (names_get(&im->function_index, key) != NAMES_NONE)
        return error_set(im->err, BRAID_MODEL, "function '%.200s' is defined twice", f->name);
    if (!names_put(&im->function_index, key, (int32_t)im->n_functions)) return error_memory(im->err);
    im->n_functions++;
    return import_budget(im, 0);
}

braid_status import_functions(importer *im, wire w) {
    wire_field f;
    wire inner;
    size_t count = 0;
    for (wire at = w; wire_more(&at);) {
        TRY(wire_next(&at, &f));
        count += f.number == 25;
    }
    if (count > FUNCTIONS_MAX) return error_set(im->err, BRAID_LIMIT, "more than %d functions", FUNCTIONS_MAX);
    im->functions = arena_array(im->memory, count + 1, sizeof *im->functions);
    if (!im->functions) return error_memory(im->err);
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number != 25) continue;
        TRY(wire_message(&w, &f, &inner));
        TRY(add_function(im, inner));
    }
    im->model->n_functions = count;
    return BRAID_OK;
}

const function *function_find(const importer *im, const node_proto *n) {
    if (!im->n_functions) return NULL;
    const char *key = function_key(im->memory, n->domain, n->type, n->overload);
    int32_t at = key ? names_get(&im->function_index, key) : NAMES_NONE;
    return at >= 0 ? &im->functions[at] : NULL;
}

/* ---- a call */

static bool has_attribute(const call *c, const char *name) {
    for (int i = 0; i < c->n_attributes; i++)
        if (strcmp(c->attributes[i].name, name) == 0) return true;
    return false;
}

/* The call's attributes, then the function's defaults for those that it does not give. */
static braid_status bind_attributes(scope *s, wire w, const node_proto *n, call *c) {
    importer *im = s->im;
    wire_field f;
    wire inner;
    int most = n->n_attributes;
    for (wire at = w; wire_more(&at);) {
        TRY(wire_next(&at, &f));
        most += f.number == 11;
        if (most > ATTRIBUTES_MAX) return error_set(im->err, BRAID_LIMIT, "too many attributes");
    }
    attribute *list = arena_array(im->memory, (size_t)most + 1, sizeof *list);
    if (!list) return error_memory(im->err);
    if (n->n_attributes) memcpy(list, n->attributes, (size_t)n->n_attributes * sizeof *list);
    c->attributes = list;
    c->n_attributes = n->n_attributes;
    while (wire_more(&w)) {
        bool present;
        attribute a;
        TRY(wire_next(&w, &f));
        if (f.number != 11) continue;
        TRY(wire_message(&w, &f, &inner));
        TRY(import_attribute(s, inner, &a, &present));
        if (present && !has_attribute(c, a.name)) list[c->n_attributes++] = a;
    }
    return BRAID_OK;
}

/* Gives the names in `field` the caller's values; missing ones are absent. */
static braid_status bind_names(scope *s, wire w, uint32_t field, const int32_t *values, int n_values, names *to) {
    importer *im = s->im;
    wire_field f;
    const char *name;
    int n = 0;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number != field) continue;
        TRY(import_name(im, &w, &f, &name));
        bool twice = names_get(to, name) != NAMES_NONE;
        if (twice && field == 4) return error_set(im->err, BRAID_MODEL, "'%.200s' is two inputs of the function", name);
        if (!twice && !names_put(to, name, n < n_values ? values[n] : -1)) return error_memory(im->err);
        n++;
    }
    if (n_values <= n) return BRAID_OK;
    return error_set(im->err, BRAID_MODEL, "the function has %d %s, the node has %d", n,
                     field == 4 ? "inputs" : "outputs", n_values);
}

/* Outputs that no node of the body wrote into the caller's value: inputs passed through, or a value given twice. */
static braid_status bind_results(scope *s, wire w, const node_proto *n) {
    importer *im = s->im;
    wire_field f;
    const char *name;
    for (int i = 0; wire_more(&w) && i < n->n_out;) {
        int32_t v;
        TRY(wire_next(&w, &f));
        if (f.number != 5) continue;
        TRY(import_name(im, &w, &f, &name));
        int32_t wanted = n->out[i++];
        if (wanted < 0) continue;
        TRY(scope_find(s, name, &v));
        if (v < 0) return error_set(im->err, BRAID_MODEL, "output '%.200s' is absent", name);
        bool made = s->g->values[v]->kind != VALUE_NODE || s->g->values[v]->producer >= 0;
        if (v == wanted && made) continue; /* otherwise the call feeds itself, and sorting says so */
        node *copy = graph_node_into(s->g, "Identity", "", n->name, 1, &v, 1, &wanted);
        if (!copy) return error_memory(im->err);
        int64_t opset = import_opset(s, "");
        copy->opset = opset > 0 ? (int)opset : OPSET_MAX;
    }
    return BRAID_OK;
}

static braid_status check_call(importer *im, const function *callee, const call *outer) {
    for (const call *c = outer; c; c = c->outer)
        if (c->callee == callee) return error_set(im->err, BRAID_MODEL, "function '%.200s' calls itself", callee->name);
    if (outer && outer->depth >= CALL_DEPTH_MAX)
        return error_set(im->err, BRAID_LIMIT, "calls are nested deeper than %d", CALL_DEPTH_MAX);
    return BRAID_OK;
}

braid_status function_inline(scope *in, const function *callee, const node_proto *n) {
    importer *im = in->im;
    TRY(check_call(im, callee, in->call));
    int first = 0;
    while (first < n->n_out && n->out[first] < 0) first++;
    call c = {.outer = in->call, .callee = callee, .depth = in->call ? in->call->depth + 1 : 1};
    c.prefix = first < n->n_out ? in->g->values[n->out[first]]->name : n->name;
    scope s = {.im = im, .g = in->g, .call = &c, .depth = in->depth};
    s.names.memory = s.pending.memory = im->memory;
    TRY(bind_attributes(&s, callee->body, n, &c));
    TRY(bind_names(&s, callee->body, 4, n->in, n->n_in, &s.names));
    TRY(bind_names(&s, callee->body, 5, n->out, n->n_out, &s.pending));
    TRY(import_declare(&s, callee->body, 7));
    TRY(import_nodes(&s, callee->body, 7));
    return bind_results(&s, callee->body, n);
}
