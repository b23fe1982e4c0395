/*
 * scope.c: names, and what a file of a given size may cost.
 */
#include "onnx/import.h"

static size_t names_slot(const names *t, const char *key) {
    size_t at = hash_bytes(t->seed, key, strlen(key)) & (t->capacity - 1);
    while (t->keys[at] && strcmp(t->keys[at], key) != 0) at = (at + 1) & (t->capacity - 1);
    return at;
}

int32_t names_get(const names *t, const char *key) {
    if (!t->capacity) return NAMES_NONE;
    size_t at = names_slot(t, key);
    return t->keys[at] ? t->values[at] : NAMES_NONE;
}

static bool names_grow(names *t) {
    names larger = *t;
    larger.capacity = t->capacity ? t->capacity * 2 : 16;
    if (!t->seed) larger.seed = clock_ns() ^ (uint64_t)(uintptr_t)t; /* so that a file cannot choose collisions */
    larger.keys = arena_array(t->memory, larger.capacity, sizeof *larger.keys);
    larger.values = arena_array(t->memory, larger.capacity, sizeof *larger.values);
    if (!larger.keys || !larger.values) return false;
    for (size_t i = 0; i < t->capacity; i++) {
        if (!t->keys[i]) continue;
        size_t at = names_slot(&larger, t->keys[i]);
        larger.keys[at] = t->keys[i];
        larger.values[at] = t->values[i];
    }
    *t = larger;
    return true;
}

bool names_put(names *t, const char *key, int32_t number) {
    if (t->count * 4 >= t->capacity * 3 && !names_grow(t)) return false;
    size_t at = names_slot(t, key);
    if (!t->keys[at]) t->count++;
    t->keys[at] = key;
    t->values[at] = number;
    return true;
}

braid_status import_budget(importer *im, uint64_t more) {
    uint64_t used = arena_bytes(im->memory) - im->arena_start;
    if (used <= im->budget && more <= im->budget - used) return BRAID_OK;
    return error_set(im->err, BRAID_LIMIT, "decoding takes more than %llu bytes", (unsigned long long)im->budget);
}

braid_status import_name(importer *im, const wire *w, const wire_field *f, const char **out) {
    return wire_string(w, f, NAME_BYTES_MAX, im->memory, out);
}

/* The value under its name in g; a value of an outer graph becomes an outer value, a constant is shared. */
static braid_status scope_take(scope *s, const char *name, int32_t outer, int32_t *out) {
    const value *from = s->parent->g->values[outer];
    *out = graph_value(s->g, name, from->kind == VALUE_CONSTANT ? VALUE_CONSTANT : VALUE_OUTER);
    if (*out < 0 || !names_put(&s->names, name, *out)) return error_memory(s->im->err);
    value *v = s->g->values[*out];
    v->type = from->type;
    if (from->kind == VALUE_CONSTANT)
        v->constant = from->constant;
    else
        v->outer = outer;
    return BRAID_OK;
}

braid_status scope_find(scope *s, const char *name, int32_t *out) {
    *out = -1;
    if (!*name) return BRAID_OK;
    int32_t v = names_get(&s->names, name);
    if (v != NAMES_NONE) {
        *out = v;
        return BRAID_OK;
    }
    if (!s->parent) return error_set(s->im->err, BRAID_MODEL, "'%.200s' is not defined", name);
    TRY(scope_find(s->parent, name, &v));
    return v < 0 ? BRAID_OK : scope_take(s, name, v, out);
}

braid_status scope_define(scope *s, const char *name, value_kind kind, int32_t *out) {
    for (const scope *at = s; at; at = at->parent)
        if (names_get(&at->names, name) != NAMES_NONE)
            return error_set(s->im->err, BRAID_MODEL,
                             at == s ? "'%.200s' is defined twice" : "'%.200s' hides a value of the outer graph", name);
    const char *full = s->call ? arena_format(s->g->memory, "%s/%s", s->call->prefix, name) : name;
    *out = full ? graph_value(s->g, full, kind) : -1;
    if (*out < 0 || !names_put(&s->names, name, *out)) return error_memory(s->im->err);
    return BRAID_OK;
}

braid_status import_symbol(importer *im, graph *g, const char *name, int64_t *dim) {
    int32_t known = *name ? names_get(&im->symbols, name) : NAMES_NONE;
    if (known == NAMES_NONE) {
        while (g->parent) g = g->parent;
        /* The table above holds every name, so the graph need not search its list. */
        uint32_t id = graph_symbol(g, NULL);
        if (id == UINT32_MAX) return error_memory(im->err);
        known = (int32_t)id;
        if (*name) g->symbols[id] = name;
        if (*name && !names_put(&im->symbols, name, known)) return error_memory(im->err);
    }
    *dim = dim_from_symbol((uint32_t)known);
    return BRAID_OK;
}

const char *import_domain(const char *domain) {
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static int64_t find_opset(const onnx_opset *list, size_t n, const char *domain) {
    int64_t version = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].domain, domain) == 0) version = list[i].version;
    return version;
}

int64_t import_opset(const scope *s, const char *domain) {
    const onnx_model *m = s->im->model;
    const function *f = s->call ? s->call->callee : NULL;
    int64_t version = f ? find_opset(f->opsets, f->n_opsets, domain) : 0;
    return version ? version : find_opset(m->opsets, m->n_opsets, domain);
}

static braid_status read_opset(importer *im, wire w, onnx_opset *out) {
    wire_field f;
    *out = (onnx_opset){"", 0};
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number == 1) {
            TRY(import_name(im, &w, &f, &out->domain));
            out->domain = import_domain(out->domain);
        } else if (f.number == 2) {
            TRY(wire_expect(&w, &f, WIRE_VARINT));
            out->version = (int64_t)f.value;
        }
    }
    if (*out->domain) return BRAID_OK;
    if (out->version < 1) return error_set(im->err, BRAID_MODEL, "opset %lld of ai.onnx", (long long)out->version);
    if (out->version > OPSET_MAX)
        return error_set(im->err, BRAID_UNSUPPORTED, "opset %lld of ai.onnx, at most %d is known",
                         (long long)out->version, OPSET_MAX);
    return BRAID_OK;
}

braid_status import_opsets(importer *im, const wire *message, uint32_t field, onnx_opset **out, size_t *n) {
    wire w = *message, inner;
    wire_field f;
    size_t count = 0;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        count += f.number == field;
    }
    TRY(import_budget(im, count * sizeof **out));
    *n = 0;
    *out = arena_array(im->memory, count + 1, sizeof **out);
    if (!*out) return error_memory(im->err);
    for (w = *message; wire_more(&w);) {
        TRY(wire_next(&w, &f));
        if (f.number != field) continue;
        TRY(wire_message(&w, &f, &inner));
        TRY(read_opset(im, inner, *out + *n));
        ++*n;
    }
    return BRAID_OK;
}
