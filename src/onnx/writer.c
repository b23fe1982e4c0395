/*
 * writer.c: graph -> ModelProto. Nodes are canonical, so they are written for the newest opset. Every value gets a name
 * that no other value of the model has; inputs and outputs of the outermost graph keep theirs.
 */
#include "onnx/import.h"

typedef struct message {
    uint8_t *data;
    size_t n, capacity;
} message;

typedef struct writer {
    arena *memory;
    braid_error *err;
    names used; /* names given out */
    const graph *root;
    int unnamed;
} writer;

typedef struct labels {
    const char **of; /* of each value */
    const struct labels *parent;
} labels;

static braid_status write_graph(writer *, const graph *, const labels *parent, message *);

/* ---- wire */

static braid_status put(writer *w, message *m, const void *bytes, size_t n) {
    size_t need;
    if (!size_add(m->n, n, &need)) return error_memory(w->err);
    if (need > m->capacity) {
        size_t larger;
        if (!size_mul(need, 2, &larger) || !size_add(larger, 64, &larger)) return error_memory(w->err);
        uint8_t *data = mem_realloc(m->data, larger);
        if (!data) return error_memory(w->err);
        m->data = data;
        m->capacity = larger;
    }
    if (n) memcpy(m->data + m->n, bytes, n);
    m->n = need;
    return BRAID_OK;
}

static braid_status put_varint(writer *w, message *m, uint64_t v) {
    uint8_t bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
    return put(w, m, bytes, n);
}

static braid_status put_int(writer *w, message *m, uint32_t field, int64_t v) {
    TRY(put_varint(w, m, (uint64_t)field << 3));
    return put_varint(w, m, (uint64_t)v);
}

static braid_status put_float(writer *w, message *m, uint32_t field, float v) {
    TRY(put_varint(w, m, (uint64_t)field << 3 | WIRE_FIXED32));
    return put(w, m, &v, sizeof v);
}

static braid_status put_bytes(writer *w, message *m, uint32_t field, const void *bytes, size_t n) {
    TRY(put_varint(w, m, (uint64_t)field << 3 | WIRE_BYTES));
    TRY(put_varint(w, m, n));
    return put(w, m, bytes, n);
}

static braid_status put_text(writer *w, message *m, uint32_t field, const char *s) {
    return put_bytes(w, m, field, s, strlen(s));
}

/* Adds `inner`, when making it went well, and releases it in any case. */
static braid_status put_message(writer *w, message *m, uint32_t field, message *inner, braid_status made) {
    if (made == BRAID_OK) made = put_bytes(w, m, field, inner->data, inner->n);
    mem_free(inner->data);
    return made;
}

/* ---- names */

static braid_status reserve(writer *w, const char *name) {
    return names_put(&w->used, name, 0) ? BRAID_OK : error_memory(w->err);
}

static braid_status label(writer *w, const char *name, const char **out) {
    *out = name;
    while (!**out || names_get(&w->used, *out) != NAMES_NONE) {
        *out = arena_format(w->memory, "%s%%%d", name, w->unnamed++);
        if (!*out) return error_memory(w->err);
    }
    return reserve(w, *out);
}

static braid_status label_interface(writer *w, const graph *g, labels *l) {
    for (int32_t i = 0; i < g->n_inputs; i++) TRY(label(w, g->values[g->inputs[i]]->name, &l->of[g->inputs[i]]));
    for (int32_t i = 0; i < g->n_outputs && !g->parent; i++) {
        int32_t v = g->outputs[i];
        const char *name = g->output_names[i];
        if (names_get(&w->used, name) != NAMES_NONE) continue;
        if (!l->of[v]) l->of[v] = name;
        TRY(reserve(w, name));
    }
    return BRAID_OK;
}

static braid_status label_values(writer *w, const graph *g, labels *l) {
    l->of = arena_array(w->memory, (size_t)g->n_values + 1, sizeof *l->of);
    if (!l->of) return error_memory(w->err);
    TRY(label_interface(w, g, l));
    for (int32_t v = 0; v < g->n_values; v++) {
        const value *x = g->values[v];
        if (l->of[v]) continue;
        if (x->kind == VALUE_OUTER)
            l->of[v] = l->parent->of[x->outer];
        else
            TRY(label(w, x->name, &l->of[v]));
    }
    return BRAID_OK;
}

/* ---- types and tensors */

static braid_status write_dim(writer *w, int64_t d, message *m) {
    if (dim_known(d)) return put_int(w, m, 1, d);
    uint32_t id = dim_symbol(d);
    const char *name = id < (uint32_t)w->root->n_symbols ? w->root->symbols[id] : NULL;
    return name ? put_text(w, m, 2, name) : BRAID_OK;
}

static braid_status write_shape(writer *w, const tensor_type *t, message *m) {
    for (int i = 0; i < t->rank; i++) {
        message dim = {0};
        braid_status s = write_dim(w, t->dims[i], &dim);
        TRY(put_message(w, m, 1, &dim, s));
    }
    return BRAID_OK;
}

static braid_status write_tensor_type(writer *w, const tensor_type *t, message *m) {
    message shape = {0};
    TRY(put_int(w, m, 1, t->type));
    if (t->rank < 0) return BRAID_OK;
    braid_status s = write_shape(w, t, &shape);
    return put_message(w, m, 2, &shape, s);
}

static braid_status write_type(writer *w, const tensor_type *t, message *m) {
    message inner = {0};
    braid_status s = write_tensor_type(w, t, &inner);
    return put_message(w, m, 1, &inner, s);
}

static braid_status write_value_info(writer *w, const char *name, const tensor_type *t, message *m) {
    message type = {0};
    TRY(put_text(w, m, 1, name));
    if (!t->type) return BRAID_OK;
    braid_status s = write_type(w, t, &type);
    return put_message(w, m, 2, &type, s);
}

static braid_status write_content(writer *w, const tensor *t, message *m) {
    int64_t count = 0;
    tensor_type_count(&t->type, &count);
    if (t->type.type == BRAID_STRING) {
        const char *const *strings = t->data;
        for (int64_t i = 0; i < count; i++) TRY(put_text(w, m, 6, strings[i] ? strings[i] : ""));
        return BRAID_OK;
    }
    if (t->data) return put_bytes(w, m, 9, t->data, t->bytes);
    void *data = mem_alloc(t->bytes ? t->bytes : 1);
    if (!data) return error_memory(w->err);
    braid_status s = file_read(t->source, t->offset, data, t->bytes, w->err);
    if (s == BRAID_OK) s = put_bytes(w, m, 9, data, t->bytes);
    mem_free(data);
    return s;
}

static braid_status write_tensor(writer *w, const char *name, const tensor *t, message *m) {
    for (int i = 0; i < t->type.rank; i++) TRY(put_int(w, m, 1, t->type.dims[i]));
    TRY(put_int(w, m, 2, t->type.type));
    if (*name) TRY(put_text(w, m, 8, name));
    return write_content(w, t, m);
}

/* ---- attributes and nodes */

static braid_status write_item(writer *w, const attribute *a, size_t i, const labels *l, message *m) {
    message inner = {0};
    switch (a->kind) {
    case ATTRIBUTE_FLOATS:
        return put_float(w, m, 7, a->floats[i]);
    case ATTRIBUTE_INTS:
        return put_int(w, m, 8, a->ints[i]);
    case ATTRIBUTE_STRINGS:
        return put_text(w, m, 9, a->strings[i]);
    case ATTRIBUTE_TENSORS:
        return put_message(w, m, 10, &inner, write_tensor(w, "", a->tensors[i], &inner));
    default:
        return put_message(w, m, 11, &inner, write_graph(w, a->graphs[i], l, &inner));
    }
}

static braid_status write_attribute(writer *w, const attribute *a, const labels *l, message *m) {
    message inner = {0};
    TRY(put_text(w, m, 1, a->name));
    TRY(put_int(w, m, 20, a->kind));
    switch (a->kind) {
    case ATTRIBUTE_FLOAT:
        return put_float(w, m, 2, a->f);
    case ATTRIBUTE_INT:
        return put_int(w, m, 3, a->i);
    case ATTRIBUTE_STRING:
        return put_bytes(w, m, 4, a->s, a->count);
    case ATTRIBUTE_TENSOR:
        return put_message(w, m, 5, &inner, write_tensor(w, "", a->t, &inner));
    case ATTRIBUTE_GRAPH:
        return put_message(w, m, 6, &inner, write_graph(w, a->g, l, &inner));
    case ATTRIBUTE_OTHER:
        return error_set(w->err, BRAID_UNSUPPORTED, "attribute '%.200s' was not read", a->name);
    default:
        for (size_t i = 0; i < a->count; i++) TRY(write_item(w, a, i, l, m));
        return BRAID_OK;
    }
}

static braid_status write_node(writer *w, const node *n, const labels *l, message *m) {
    if (n->epilogue) return error_set(w->err, BRAID_UNSUPPORTED, "node '%.120s' (%.60s) is fused", n->name, n->type);
    for (int i = 0; i < n->n_in; i++) TRY(put_text(w, m, 1, n->in[i] < 0 ? "" : l->of[n->in[i]]));
    for (int i = 0; i < n->n_out; i++) TRY(put_text(w, m, 2, n->out[i] < 0 ? "" : l->of[n->out[i]]));
    TRY(put_text(w, m, 3, n->name));
    TRY(put_text(w, m, 4, n->type));
    if (*n->domain) TRY(put_text(w, m, 7, n->domain));
    for (int i = 0; i < n->n_attributes; i++) {
        message inner = {0};
        braid_status s = write_attribute(w, &n->attributes[i], l, &inner);
        TRY(put_message(w, m, 5, &inner, s));
    }
    return BRAID_OK;
}

/* ---- graphs */

/* An output whose value goes by another name is a copy of it. */
static braid_status write_output(writer *w, const graph *g, int32_t i, const labels *l, message *m) {
    int32_t v = g->outputs[i];
    const char *name = g->parent ? l->of[v] : g->output_names[i];
    message info = {0}, copy = {0};
    if (strcmp(name, l->of[v]) != 0) {
        braid_status s = put_text(w, &copy, 1, l->of[v]);
        if (s == BRAID_OK) s = put_text(w, &copy, 2, name);
        if (s == BRAID_OK) s = put_text(w, &copy, 4, "Identity");
        TRY(put_message(w, m, 1, &copy, s));
    }
    return put_message(w, m, 12, &info, write_value_info(w, name, &g->values[v]->type, &info));
}

static braid_status write_values(writer *w, const graph *g, const labels *l, message *m) {
    for (int32_t v = 0; v < g->n_values; v++) {
        const value *x = g->values[v];
        message inner = {0};
        if (x->kind == VALUE_CONSTANT)
            TRY(put_message(w, m, 5, &inner, write_tensor(w, l->of[v], x->constant, &inner)));
        else if (x->kind == VALUE_NODE && x->producer >= 0 && x->type.type)
            TRY(put_message(w, m, 13, &inner, write_value_info(w, l->of[v], &x->type, &inner)));
    }
    return BRAID_OK;
}

static braid_status write_graph(writer *w, const graph *g, const labels *parent, message *m) {
    labels l = {.parent = parent};
    TRY(label_values(w, g, &l));
    TRY(put_text(w, m, 2, *g->name ? g->name : "graph"));
    for (int32_t i = 0; i < g->n_nodes; i++) {
        message inner = {0};
        TRY(put_message(w, m, 1, &inner, write_node(w, g->nodes[i], &l, &inner)));
    }
    TRY(write_values(w, g, &l, m));
    for (int32_t i = 0; i < g->n_inputs; i++) {
        int32_t v = g->inputs[i];
        message inner = {0};
        TRY(put_message(w, m, 11, &inner, write_value_info(w, l.of[v], &g->values[v]->type, &inner)));
    }
    for (int32_t i = 0; i < g->n_outputs; i++) TRY(write_output(w, g, i, &l, m));
    return BRAID_OK;
}

/* ---- the model */

static braid_status write_opset(writer *w, const char *domain, int64_t version, message *m) {
    message inner = {0};
    braid_status s = put_text(w, &inner, 1, domain);
    if (s == BRAID_OK) s = put_int(w, &inner, 2, version);
    return put_message(w, m, 8, &inner, s);
}

static braid_status write_domains(writer *w, const graph *g, names *seen, message *m) {
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const node *n = g->nodes[i];
        if (*n->domain && names_get(seen, n->domain) == NAMES_NONE) {
            if (!names_put(seen, n->domain, 0)) return error_memory(w->err);
            TRY(write_opset(w, n->domain, n->opset > 0 ? n->opset : 1, m));
        }
        for (int k = 0; k < n->n_attributes; k++) {
            const attribute *a = &n->attributes[k];
            if (a->kind == ATTRIBUTE_GRAPH) TRY(write_domains(w, a->g, seen, m));
            for (size_t j = 0; a->kind == ATTRIBUTE_GRAPHS && j < a->count; j++)
                TRY(write_domains(w, a->graphs[j], seen, m));
        }
    }
    return BRAID_OK;
}

static braid_status write_model(writer *w, const graph *g, message *m) {
    names seen = {.memory = w->memory};
    message inner = {0};
    TRY(put_int(w, m, 1, 13));
    TRY(put_text(w, m, 2, "braid"));
    TRY(put_text(w, m, 3, BRAID_VERSION));
    TRY(write_opset(w, "", OPSET_MAX, m));
    TRY(write_domains(w, g, &seen, m));
    return put_message(w, m, 7, &inner, write_graph(w, g, NULL, &inner));
}

braid_status onnx_write(const graph *g, void **bytes, size_t *size, braid_error *err) {
    message m = {0};
    writer w = {.memory = arena_new(), .err = err, .root = g};
    w.used.memory = w.memory;
    braid_status s = w.memory ? write_model(&w, g, &m) : error_memory(err);
    arena_free(w.memory);
    if (s != BRAID_OK) {
        mem_free(m.data);
        return s;
    }
    *bytes = m.data;
    *size = m.n;
    return BRAID_OK;
}
