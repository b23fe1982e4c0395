/*
 * proto.c: TensorProto. Content is raw (then it stays in the file, or is read at once when it is small), in a typed
 * field (decoded), or in another file. Whatever it is, it must have exactly the size that the shape asks for.
 */
#include "onnx/import.h"

enum { FIELD_FLOAT = 4, FIELD_INT32 = 5, FIELD_STRING = 6, FIELD_INT64 = 7, FIELD_DOUBLE = 10, FIELD_UINT64 = 11 };

typedef struct tensor_proto {
    const char *name;
    tensor_type type;
    bool raw, segment, external;
    wire_field raw_field;
    uint32_t typed;       /* number of the typed field that has content; 0: none */
    uint64_t typed_bytes; /* of it */
    uint64_t typed_count; /* how often the field occurs */
} tensor_proto;

static const char *field_name(uint32_t field) {
    switch (field) {
    case FIELD_FLOAT:
        return "float_data";
    case FIELD_INT32:
        return "int32_data";
    case FIELD_STRING:
        return "string_data";
    case FIELD_INT64:
        return "int64_data";
    case FIELD_DOUBLE:
        return "double_data";
    default:
        return "uint64_data";
    }
}

/* The typed field that holds elements of a type. */
static uint32_t field_of_type(braid_type t) {
    switch (t) {
    case BRAID_FLOAT32:
    case BRAID_COMPLEX64:
        return FIELD_FLOAT;
    case BRAID_FLOAT64:
    case BRAID_COMPLEX128:
        return FIELD_DOUBLE;
    case BRAID_INT64:
        return FIELD_INT64;
    case BRAID_UINT32:
    case BRAID_UINT64:
        return FIELD_UINT64;
    case BRAID_STRING:
        return FIELD_STRING;
    default:
        return FIELD_INT32;
    }
}

static wire_type field_wire(uint32_t field) {
    return field == FIELD_FLOAT    ? WIRE_FIXED32
           : field == FIELD_DOUBLE ? WIRE_FIXED64
           : field == FIELD_STRING ? WIRE_BYTES
                                   : WIRE_VARINT;
}

static braid_status read_dims(importer *im, const wire *w, const wire_field *f, tensor_type *t) {
    wire values;
    uint64_t v;
    TRY(wire_scalars(w, f, WIRE_VARINT, &values));
    while (wire_more(&values)) {
        TRY(wire_value(&values, WIRE_VARINT, &v));
        if (t->rank == BRAID_MAX_RANK) return error_set(im->err, BRAID_LIMIT, "more than %d dims", BRAID_MAX_RANK);
        if ((int64_t)v < 0) return error_set(im->err, BRAID_MODEL, "dim %d is %lld", t->rank, (long long)v);
        t->dims[t->rank++] = (int64_t)v;
    }
    return BRAID_OK;
}

static braid_status note_typed(importer *im, const wire_field *f, tensor_proto *p) {
    if (f->length == 0 && f->number != FIELD_STRING) return BRAID_OK;
    if (p->typed && p->typed != f->number)
        return error_set(im->err, BRAID_MODEL, "%s and %s are both set", field_name(p->typed), field_name(f->number));
    p->typed = f->number;
    p->typed_bytes += f->length;
    p->typed_count++;
    return BRAID_OK;
}

static braid_status read_field(importer *im, const wire *w, const wire_field *f, tensor_proto *p) {
    switch (f->number) {
    case 1:
        return read_dims(im, w, f, &p->type);
    case 2:
        TRY(wire_expect(w, f, WIRE_VARINT));
        if (f->value > INT32_MAX || !type_known((int)f->value))
            return error_set(im->err, BRAID_MODEL, "element type %lld is unknown", (long long)f->value);
        p->type.type = (braid_type)f->value;
        return BRAID_OK;
    case 3:
        p->segment = true;
        return BRAID_OK;
    case FIELD_FLOAT:
    case FIELD_INT32:
    case FIELD_STRING:
    case FIELD_INT64:
    case FIELD_DOUBLE:
    case FIELD_UINT64:
        return note_typed(im, f, p);
    case 8:
        return import_name(im, w, f, &p->name);
    case 9:
        TRY(wire_expect(w, f, WIRE_BYTES));
        p->raw = true;
        p->raw_field = *f;
        return BRAID_OK;
    case 14:
        TRY(wire_expect(w, f, WIRE_VARINT));
        if (f->value > 1)
            return error_set(im->err, BRAID_MODEL, "data_location %llu is unknown", (unsigned long long)f->value);
        p->external = f->value == 1;
        return BRAID_OK;
    default:
        return BRAID_OK;
    }
}

static void put_bits(void *data, int64_t i, size_t width, uint64_t bits) {
    memcpy((uint8_t *)data + (size_t)i * width, &bits, width); /* little endian, as the file */
}

/* Does the number fit an element of `bits` bits, as a signed or as an unsigned number. */
static bool fits(uint64_t v, int bits) {
    if (bits >= 64) return true;
    int64_t s = (int64_t)v;
    return s >= -((int64_t)1 << (bits - 1)) && s < (int64_t)1 << bits;
}

static braid_status mismatch(importer *im, const tensor_proto *p, uint64_t want) {
    return error_set(im->err, BRAID_MODEL, "%s does not have the %llu elements of its shape", field_name(p->typed),
                     (unsigned long long)want);
}

/* Decodes `want` numbers of `width` bytes from every occurrence of the typed field. */
static braid_status decode_numbers(importer *im, wire w, const tensor_proto *p, uint64_t want, size_t width,
                                   void *data) {
    bool is_bool = p->type.type == BRAID_BOOL, exact = p->typed == FIELD_FLOAT || p->typed == FIELD_DOUBLE;
    wire_field f;
    wire values;
    uint64_t v, n = 0;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number != p->typed) continue;
        TRY(wire_scalars(&w, &f, field_wire(p->typed), &values));
        while (wire_more(&values)) {
            TRY(wire_value(&values, field_wire(p->typed), &v));
            if (n == want) return mismatch(im, p, want);
            if (is_bool) v = v != 0;
            if (!exact && !fits(v, (int)width * 8))
                return error_set(im->err, BRAID_MODEL, "element %llu is %lld, beyond its type", (unsigned long long)n,
                                 (long long)v);
            put_bits(data, (int64_t)n++, width, v);
        }
    }
    return n == want ? BRAID_OK : mismatch(im, p, want);
}

static braid_status decode_strings(importer *im, wire w, const tensor_proto *p, int64_t want, const char **data) {
    wire_field f;
    if (p->typed_count != (uint64_t)want) return mismatch(im, p, (uint64_t)want);
    for (int64_t n = 0; wire_more(&w);) {
        TRY(wire_next(&w, &f));
        if (f.number != FIELD_STRING) continue;
        TRY(import_budget(im, f.length));
        TRY(wire_bytes(&w, &f, im->memory, &data[n]));
        if (strlen(data[n]) != f.length)
            return error_set(im->err, BRAID_UNSUPPORTED, "string %lld holds a NUL", (long long)n);
        n++;
    }
    return BRAID_OK;
}

static braid_status decode_typed(importer *im, wire w, const tensor_proto *p, int64_t count, tensor *t) {
    braid_type type = p->type.type;
    if (p->typed != field_of_type(type))
        return error_set(im->err, BRAID_MODEL, "%s cannot hold %s elements", field_name(p->typed),
                         braid_type_name(type));
    size_t width = p->typed == FIELD_FLOAT ? 4 : p->typed == FIELD_DOUBLE ? 8 : braid_type_bytes(type);
    if (type_bits(type) < 8) width = 1; /* packed bytes */
    uint64_t want = type == BRAID_STRING ? (uint64_t)count : t->bytes / width;
    size_t least = p->typed == FIELD_FLOAT || p->typed == FIELD_DOUBLE ? width : 1;
    if (type != BRAID_STRING && want > p->typed_bytes / least) return mismatch(im, p, want);
    TRY(import_budget(im, t->bytes));
    t->data = arena_alloc(im->memory, t->bytes + 1);
    if (!t->data) return error_memory(im->err);
    if (type == BRAID_STRING) return decode_strings(im, w, p, count, t->data);
    return decode_numbers(im, w, p, want, width, t->data);
}

static braid_status take_raw(importer *im, const wire_field *raw, tensor *t) {
    if (t->type.type == BRAID_STRING) return error_set(im->err, BRAID_MODEL, "strings cannot be raw_data");
    if (raw->length != t->bytes)
        return error_set(im->err, BRAID_MODEL, "raw_data has %llu bytes, its shape asks for %zu",
                         (unsigned long long)raw->length, t->bytes);
    t->source = im->source;
    t->offset = raw->at;
    return t->bytes <= EAGER_BYTES ? tensor_load(t, im->memory, im->err) : BRAID_OK;
}

static braid_status take_external(importer *im, const wire *w, const tensor_proto *p, tensor *t) {
    if ((p->raw && p->raw_field.length) || p->typed)
        return error_set(im->err, BRAID_MODEL, "external data and data in the file are both set");
    if (t->type.type == BRAID_STRING) return error_set(im->err, BRAID_MODEL, "strings cannot be external data");
    external e;
    TRY(import_external_entries(im, *w, 13, &e));
    TRY(import_external(im, &e, t));
    return t->bytes <= EAGER_BYTES ? tensor_load(t, im->memory, im->err) : BRAID_OK;
}

static braid_status take_content(importer *im, const wire *w, const tensor_proto *p, tensor *t) {
    int64_t count;
    if (!p->type.type) return error_set(im->err, BRAID_MODEL, "no element type");
    if (p->segment) return error_set(im->err, BRAID_UNSUPPORTED, "segmented tensors");
    if (!tensor_type_count(&t->type, &count) || !tensor_type_bytes(&t->type, &t->bytes))
        return error_set(im->err, BRAID_LIMIT, "the shape has too many elements");
    if (p->external) return take_external(im, w, p, t);
    bool raw = p->raw && (p->raw_field.length || !p->typed);
    if (raw && p->typed) return error_set(im->err, BRAID_MODEL, "raw_data and %s are both set", field_name(p->typed));
    if (raw) return take_raw(im, &p->raw_field, t);
    if (p->typed) return decode_typed(im, *w, p, count, t);
    if (count) return error_set(im->err, BRAID_MODEL, "no data for %lld elements", (long long)count);
    return tensor_load(t, im->memory, im->err);
}

braid_status import_tensor(importer *im, wire w, const char **name, tensor **out) {
    tensor_proto p = {.name = ""};
    wire_field f;
    braid_status s = BRAID_OK;
    for (wire at = w; s == BRAID_OK && wire_more(&at);) {
        s = wire_next(&at, &f);
        if (s == BRAID_OK) s = read_field(im, &at, &f, &p);
    }
    tensor *t = s == BRAID_OK ? arena_alloc(im->memory, sizeof *t) : NULL;
    if (s == BRAID_OK && !t) s = error_memory(im->err);
    if (s == BRAID_OK) {
        t->type = p.type;
        s = take_content(im, &w, &p, t);
    }
    if (s != BRAID_OK) return error_within(im->err, s, "tensor '%.200s'", p.name);
    *name = p.name;
    *out = t;
    return import_budget(im, 0);
}

braid_status import_tensor_loaded(importer *im, wire w, const char **name, tensor **out) {
    TRY(import_tensor(im, w, name, out));
    if (!(*out)->data) TRY(import_budget(im, (*out)->bytes));
    return tensor_load(*out, im->memory, im->err);
}
