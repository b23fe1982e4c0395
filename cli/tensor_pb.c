/*
 * tensor_pb: an ONNX TensorProto from a .pb file.
 *
 * Two walks over the fields: the first learns type and dims and allocates, the second fills the elements. Each length
 * is compared with what is left before it is used.
 */
#include "cli.h"

#include <stdlib.h>

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

typedef struct field {
    uint32_t number, wire;
    uint64_t value; /* wire 0, 1, 5 */
    cursor bytes;   /* wire 2 */
} field;

static bool read_varint(cursor *c, uint64_t *out) {
    uint64_t v = 0;
    for (int shift = 0; shift < 70 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        if (shift == 63 && byte > 1) return false;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = v;
            return true;
        }
    }
    return false;
}

static bool read_fixed(cursor *c, size_t bytes, uint64_t *out) {
    if ((size_t)(c->end - c->at) < bytes) return false;
    *out = 0;
    memcpy(out, c->at, bytes);
    c->at += bytes;
    return true;
}

static bool read_field(cursor *c, field *f) {
    uint64_t key;
    if (!read_varint(c, &key) || key >> 32 || key >> 3 == 0) return false;
    f->number = (uint32_t)(key >> 3);
    f->wire = (uint32_t)(key & 7);
    switch (f->wire) {
    case 0:
        return read_varint(c, &f->value);
    case 1:
        return read_fixed(c, 8, &f->value);
    case 5:
        return read_fixed(c, 4, &f->value);
    case 2:
        if (!read_varint(c, &f->value) || f->value > (uint64_t)(c->end - c->at)) return false;
        f->bytes = (cursor){c->at, c->at + f->value};
        c->at += f->value;
        return true;
    default:
        return false;
    }
}

/* The next number of a repeated numeric field, packed or not: call until false. `size` 0 means varint. */
static bool next_number(field *f, size_t size, uint64_t *out, bool *broken) {
    if (f->wire != 2) {
        if (f->wire != (size == 0 ? 0u : size == 4 ? 5u : 1u)) *broken = true;
        if (*broken || f->bytes.at == NULL) return false;
        f->bytes.at = NULL; /* taken */
        *out = f->value;
        return true;
    }
    if (f->bytes.at == f->bytes.end) return false;
    bool got = size ? read_fixed(&f->bytes, size, out) : read_varint(&f->bytes, out);
    if (!got) *broken = true;
    return got;
}

typedef struct head {
    int64_t type;
    int rank;
    int64_t dims[BRAID_MAX_RANK];
    bool has_raw;
    cursor raw;
    int64_t strings;
} head;

static bool read_dims(field *f, head *h) {
    uint64_t v;
    bool broken = false;
    while (next_number(f, 0, &v, &broken)) {
        if (h->rank < BRAID_MAX_RANK) h->dims[h->rank] = (int64_t)v;
        h->rank++;
    }
    return !broken;
}

/* A SequenceProto or OptionalProto shows by field 3 or later ones that no dense TensorProto has. */
static braid_status read_head(cursor c, head *h, braid_error *err) {
    static const uint8_t mark = 0;
    bool dims_ok = true;
    while (c.at < c.end) {
        field f = {.bytes = {&mark, &mark}};
        if (!read_field(&c, &f)) return cli_error(err, BRAID_FORMAT, "not a TensorProto");
        if (f.number == 1) dims_ok &= read_dims(&f, h);
        if (f.number == 2 && f.wire == 0) h->type = (int64_t)f.value;
        if (f.number == 6) h->strings++;
        if (f.number == 9 && f.wire == 2) h->raw = f.bytes, h->has_raw = true;
        if (f.number == 3)
            return cli_error(err, BRAID_UNSUPPORTED, "unsupported: a sequence, optional or segmented tensor");
        if (f.number == 13 || (f.number == 14 && f.value != 0))
            return cli_error(err, BRAID_UNSUPPORTED, "unsupported: a TensorProto with external data");
    }
    if (!dims_ok) return cli_error(err, BRAID_FORMAT, "not a TensorProto: malformed dims");
    if (h->rank > BRAID_MAX_RANK) return cli_error(err, BRAID_LIMIT, "rank %d, at most %d", h->rank, BRAID_MAX_RANK);
    return BRAID_OK;
}

/* Where typed elements of each type live: field number, bytes there (0: varint), bytes in the tensor for each. */
typedef struct place {
    uint32_t field;
    size_t there, here;
} place;

static place place_of(braid_type type) {
    switch (type) {
    case BRAID_FLOAT32:
    case BRAID_COMPLEX64:
        return (place){4, 4, 4};
    case BRAID_FLOAT64:
    case BRAID_COMPLEX128:
        return (place){10, 8, 8};
    case BRAID_INT64:
        return (place){7, 0, 8};
    case BRAID_UINT32:
        return (place){11, 0, 4};
    case BRAID_UINT64:
        return (place){11, 0, 8};
    case BRAID_INT32:
        return (place){5, 0, 4};
    default:
        return (place){5, 0, value_bits(type) == 16 ? 2 : 1};
    }
}

static braid_status fill_typed(cursor c, braid_tensor *t, braid_error *err) {
    static const uint8_t mark = 0;
    place p = place_of(t->type);
    uint8_t *out = t->data, *end = out + t->bytes;
    while (c.at < c.end) {
        field f = {.bytes = {&mark, &mark}};
        uint64_t v;
        bool broken = !read_field(&c, &f);
        if (!broken && f.number != p.field) continue;
        while (!broken && next_number(&f, p.there, &v, &broken)) {
            if ((size_t)(end - out) < p.here) return cli_error(err, BRAID_FORMAT, "more values than the shape holds");
            memcpy(out, &v, p.here);
            out += p.here;
        }
        if (broken) return cli_error(err, BRAID_FORMAT, "malformed values");
    }
    return out == end ? BRAID_OK : cli_error(err, BRAID_FORMAT, "fewer values than the shape holds");
}

/* Strings: pointers first, the characters behind them in the same block. */
static braid_status fill_strings(cursor c, const head *h, braid_tensor *t, braid_error *err) {
    char **block = realloc(t->data, t->bytes + (size_t)(c.end - c.at) + (size_t)h->strings + 1);
    if (!block) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    t->data = block;
    char *at = (char *)block + t->bytes;
    for (int64_t i = 0; c.at < c.end;) {
        field f = {0};
        if (!read_field(&c, &f)) return cli_error(err, BRAID_FORMAT, "malformed strings");
        if (f.number != 6) continue;
        size_t length = f.wire == 2 ? (size_t)(f.bytes.end - f.bytes.at) : 0;
        if (length) memcpy(at, f.bytes.at, length);
        at[length] = 0;
        block[i++] = at;
        at += length + 1;
    }
    return BRAID_OK;
}

/* What the shape needs against what the file holds, before anything is allocated. A varint of one byte may stand for
   eight, no field for more. */
static braid_status check_size(const head *h, size_t size, braid_error *err) {
    int64_t count;
    size_t span, raw = (size_t)(h->raw.end - h->raw.at);
    if (!tensor_count(h->rank, h->dims, &count) || !tensor_span((braid_type)h->type, count, &span))
        return cli_error(err, BRAID_LIMIT, "a tensor of this shape is too large");
    if (h->type == BRAID_STRING && count != h->strings)
        return cli_error(err, BRAID_FORMAT, "%lld strings do not fit the shape", (long long)h->strings);
    if (h->type != BRAID_STRING && h->has_raw && raw != span)
        return cli_error(err, BRAID_FORMAT, "%zu bytes of data, the shape needs %zu", raw, span);
    if (span / 8 > size) return cli_error(err, BRAID_FORMAT, "fewer values than the shape holds");
    return BRAID_OK;
}

braid_status tensor_pb_parse(const void *bytes, size_t size, braid_tensor *out, braid_error *err) {
    cursor all = {bytes, (const uint8_t *)bytes + size};
    head h = {0};
    TRY(read_head(all, &h, err));
    braid_type type = (braid_type)h.type;
    if (h.type < 1 || h.type > BRAID_INT2)
        return cli_error(err, BRAID_FORMAT, "not a TensorProto: element type %lld", (long long)h.type);
    TRY(check_size(&h, size, err));
    TRY(tensor_alloc(out, type, h.rank, h.dims, err));
    braid_status status = BRAID_OK;
    if (type == BRAID_STRING)
        status = fill_strings(all, &h, out, err);
    else if (!h.has_raw)
        status = fill_typed(all, out, err);
    else if (out->bytes)
        memcpy(out->data, h.raw.at, out->bytes);
    if (status != BRAID_OK) tensor_drop(out);
    return status;
}

braid_status tensor_pb_load(const char *path, braid_tensor *out, braid_error *err) {
    void *bytes;
    size_t size;
    TRY(file_load(path, &bytes, &size, err));
    braid_status status = tensor_pb_parse(bytes, size, out, err);
    free(bytes);
    return status == BRAID_OK ? status : cli_within(err, status, "%s", path);
}
