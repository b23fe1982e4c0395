/*
 * attribute.c: AttributeProto, and what a reference to an attribute of the enclosing function's call means.
 */
#include "onnx/import.h"

enum { KINDS = 15, KIND_SPARSE = 11 };

typedef struct attribute_proto {
    const char *name, *reference;
    int kind;               /* as declared, 0: not */
    wire_field last[KINDS]; /* per kind, the last field with content; number 0: none */
    uint64_t count[KINDS];  /* how often */
    uint64_t bytes[KINDS];
} attribute_proto;

/* The kind whose content is in a field of AttributeProto; 0: none. */
static int kind_of_field(uint32_t field) {
    static const uint8_t kinds[] = {[2] = 1, [3] = 2,  [4] = 3,   [5] = 4,   [6] = 5,   [7] = 6,   [8] = 7,
                                    [9] = 8, [10] = 9, [11] = 10, [14] = 13, [15] = 14, [22] = 11, [23] = 12};
    return field < COUNT_OF(kinds) ? kinds[field] : 0;
}

static uint32_t field_of_kind(int kind) {
    for (uint32_t field = 2; field < 24; field++)
        if (kind_of_field(field) == kind) return field;
    return 0;
}

static braid_status read_proto(importer *im, wire w, attribute_proto *p) {
    wire_field f;
    *p = (attribute_proto){.name = "", .reference = ""};
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        int kind = kind_of_field(f.number);
        if (kind) {
            p->last[kind] = f;
            p->count[kind]++;
            p->bytes[kind] += f.length;
        } else if (f.number == 1) {
            TRY(import_name(im, &w, &f, &p->name));
        } else if (f.number == 21) {
            TRY(import_name(im, &w, &f, &p->reference));
        } else if (f.number == 20) {
            TRY(wire_expect(&w, &f, WIRE_VARINT));
            p->kind = f.value < KINDS ? (int)f.value : KINDS;
        }
    }
    return BRAID_OK;
}

/* Files of the first IR versions do not declare the kind. */
static braid_status settle_kind(importer *im, attribute_proto *p) {
    int found = 0;
    for (int k = KINDS - 1; k > 0; k--)
        if (p->count[k]) found = k;
    if (!p->kind) p->kind = found;
    if (!p->kind) return error_set(im->err, BRAID_MODEL, "it has neither a type nor content");
    if (found && p->kind < KINDS && !p->count[p->kind])
        return error_set(im->err, BRAID_MODEL, "its type is %d, but its content has type %d", p->kind, found);
    return BRAID_OK;
}

static braid_status read_numbers(importer *im, wire w, const attribute_proto *p, bool floats, attribute *out) {
    uint32_t field = field_of_kind(p->kind);
    size_t width = floats ? sizeof(float) : sizeof(int64_t);
    wire_type type = floats ? WIRE_FIXED32 : WIRE_VARINT;
    uint64_t most = floats ? p->bytes[p->kind] / 4 : p->bytes[p->kind], v;
    TRY(import_budget(im, most * width));
    uint8_t *list = arena_array(im->memory, (size_t)most + 1, width);
    if (!list) return error_memory(im->err);
    wire_field f;
    wire values;
    out->count = 0;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number != field) continue;
        TRY(wire_scalars(&w, &f, type, &values));
        while (wire_more(&values)) {
            TRY(wire_value(&values, type, &v));
            memcpy(list + out->count++ * width, &v, width);
        }
    }
    if (floats)
        out->floats = (const float *)(void *)list;
    else
        out->ints = (const int64_t *)(void *)list;
    return BRAID_OK;
}

static braid_status read_one(scope *s, const wire *w, const wire_field *f, int kind, const void **out) {
    importer *im = s->im;
    wire inner;
    const char *ignored;
    TRY(import_budget(im, f->length));
    if (kind == ATTRIBUTE_STRINGS) {
        TRY(wire_bytes(w, f, im->memory, (const char **)out));
        if (strlen(*out) != f->length) return error_set(im->err, BRAID_UNSUPPORTED, "a string holds a NUL");
        return BRAID_OK;
    }
    TRY(wire_message(w, f, &inner));
    if (kind == ATTRIBUTE_TENSORS) return import_tensor(im, inner, &ignored, (tensor **)out);
    return import_subgraph(s, inner, (graph **)out);
}

/* Strings, tensors, graphs: lists of pointers. */
static braid_status read_pointers(scope *s, wire w, const attribute_proto *p, attribute *out) {
    uint32_t field = field_of_kind(p->kind);
    TRY(import_budget(s->im, p->count[p->kind] * sizeof(void *)));
    const void **list = arena_array(s->im->memory, (size_t)p->count[p->kind] + 1, sizeof *list);
    if (!list) return error_memory(s->im->err);
    wire_field f;
    out->count = 0;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number == field) TRY(read_one(s, &w, &f, p->kind, &list[out->count++]));
    }
    out->strings = (const char *const *)list;
    return BRAID_OK;
}

static braid_status read_message(scope *s, const wire *w, const attribute_proto *p, attribute *out) {
    const wire_field *f = &p->last[p->kind];
    const char *ignored;
    wire inner;
    if (!f->number) return error_set(s->im->err, BRAID_MODEL, "it has no content");
    TRY(wire_message(w, f, &inner));
    if (p->kind == ATTRIBUTE_GRAPH) return import_subgraph(s, inner, &out->g);
    out->kind = ATTRIBUTE_TENSOR; /* sparse tensors are made dense */
    if (p->kind == KIND_SPARSE) return import_sparse(s->im, inner, &ignored, &out->t);
    return import_tensor(s->im, inner, &ignored, &out->t);
}

static braid_status read_single(scope *s, const wire *w, const attribute_proto *p, attribute *out) {
    const wire_field *f = &p->last[p->kind];
    switch (p->kind) {
    case ATTRIBUTE_FLOAT:
        if (f->number) TRY(wire_expect(w, f, WIRE_FIXED32));
        out->f = wire_float(f->value);
        return BRAID_OK;
    case ATTRIBUTE_INT:
        if (f->number) TRY(wire_expect(w, f, WIRE_VARINT));
        out->i = (int64_t)f->value;
        return BRAID_OK;
    default:
        out->s = "";
        out->count = (size_t)f->length;
        TRY(import_budget(s->im, f->length));
        return f->number ? wire_bytes(w, f, s->im->memory, &out->s) : BRAID_OK;
    }
}

static braid_status read_content(scope *s, wire w, const attribute_proto *p, attribute *out) {
    out->kind = p->kind <= ATTRIBUTE_GRAPHS ? (attribute_kind)p->kind : ATTRIBUTE_OTHER;
    out->count = 1;
    switch (p->kind) {
    case ATTRIBUTE_FLOAT:
    case ATTRIBUTE_INT:
    case ATTRIBUTE_STRING:
        return read_single(s, &w, p, out);
    case ATTRIBUTE_TENSOR:
    case ATTRIBUTE_GRAPH:
    case KIND_SPARSE:
        return read_message(s, &w, p, out);
    case ATTRIBUTE_FLOATS:
        return read_numbers(s->im, w, p, true, out);
    case ATTRIBUTE_INTS:
        return read_numbers(s->im, w, p, false, out);
    case ATTRIBUTE_STRINGS:
    case ATTRIBUTE_TENSORS:
    case ATTRIBUTE_GRAPHS:
        return read_pointers(s, w, p, out);
    default:
        return BRAID_OK;
    }
}

static braid_status resolve(scope *s, const attribute_proto *p, attribute *out, bool *present) {
    importer *im = s->im;
    if (!s->call) return error_set(im->err, BRAID_MODEL, "it refers to '%.200s' outside of a function", p->reference);
    for (int i = 0; i < s->call->n_attributes; i++) {
        const attribute *a = &s->call->attributes[i];
        if (strcmp(a->name, p->reference) != 0) continue;
        if (a->kind == ATTRIBUTE_GRAPH || a->kind == ATTRIBUTE_GRAPHS)
            return error_set(im->err, BRAID_UNSUPPORTED, "graphs as arguments of a function");
        if (p->kind && p->kind <= ATTRIBUTE_GRAPHS && (int)a->kind != p->kind)
            return error_set(im->err, BRAID_MODEL, "'%.200s' has type %d, expected %d", p->reference, (int)a->kind,
                             p->kind);
        const char *name = out->name;
        *out = *a;
        out->name = name;
        return BRAID_OK;
    }
    *present = false;
    return BRAID_OK;
}

braid_status import_attribute(scope *s, wire w, attribute *out, bool *present) {
    attribute_proto p;
    TRY(read_proto(s->im, w, &p));
    if (!*p.name) return error_set(s->im->err, BRAID_MODEL, "an attribute has no name");
    *out = (attribute){.name = p.name};
    *present = true;
    braid_status status;
    if (*p.reference) {
        status = resolve(s, &p, out, present);
    } else {
        status = settle_kind(s->im, &p);
        if (status == BRAID_OK) status = read_content(s, w, &p, out);
    }
    if (status == BRAID_OK || import_names_node(s->im)) return status;
    return error_within(s->im->err, status, "attribute '%.200s'", p.name);
}
