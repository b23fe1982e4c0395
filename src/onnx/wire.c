#include "onnx/wire.h"

static braid_status wire_error(const wire *w, uint64_t at, const char *what) {
    return error_set(w->source->err, BRAID_FORMAT, "byte %llu: %s", (unsigned long long)at, what);
}

braid_status wire_open(file *f, arena *memory, wire *out, braid_error *err) {
    wire_source *s = arena_alloc(memory, sizeof *s);
    if (!s) return error_memory(err);
    s->f = f;
    s->err = err;
    s->size = file_size(f);
    if (s->size > (uint64_t)1 << 40) return error_set(err, BRAID_LIMIT, "the file has more than 2^40 bytes");
    s->work_limit = s->size * 32 + ((uint64_t)64 << 20);
    *out = (wire){s, 0, s->size, 0};
    return BRAID_OK;
}

static braid_status wire_work(wire_source *s, uint64_t bytes) {
    s->work += bytes;
    return s->work <= s->work_limit ? BRAID_OK : error_set(s->err, BRAID_LIMIT, "the file asks for too much work");
}

/* Points *out at `n` bytes (at most 10) at `at`; they lie before w->end. */
static braid_status wire_peek(const wire *w, uint64_t at, size_t n, const uint8_t **out) {
    wire_source *s = w->source;
    if (at < s->window_at || at + n > s->window_at + s->window_length) {
        uint64_t left = s->size - at;
        s->window_length = 0;
        size_t take = left < WIRE_WINDOW ? (size_t)left : WIRE_WINDOW;
        TRY(file_read(s->f, at, s->window, take, s->err));
        s->window_at = at;
        s->window_length = take;
    }
    *out = s->window + (at - s->window_at);
    return BRAID_OK;
}

static braid_status wire_varint(wire *w, uint64_t *out) {
    uint64_t left = w->end - w->at;
    size_t n = left < 10 ? (size_t)left : 10;
    const uint8_t *p;
    TRY(wire_peek(w, w->at, n, &p));
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 9 && p[i] > 1) return wire_error(w, w->at, "a varint has more than 64 bits");
        value |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] & 0x80) continue;
        w->at += i + 1;
        *out = value;
        return BRAID_OK;
    }
    return wire_error(w, w->at, n < 10 ? "a varint is cut short" : "a varint has more than 10 bytes");
}

static braid_status wire_fixed(wire *w, size_t n, uint64_t *out) {
    const uint8_t *p;
    if (w->end - w->at < n) return wire_error(w, w->at, "a number is cut short");
    TRY(wire_peek(w, w->at, n, &p));
    *out = 0;
    for (size_t i = 0; i < n; i++) *out |= (uint64_t)p[i] << (8 * i);
    w->at += n;
    return BRAID_OK;
}

braid_status wire_value(wire *w, wire_type type, uint64_t *out) {
    switch (type) {
    case WIRE_VARINT:
        return wire_varint(w, out);
    case WIRE_FIXED64:
        return wire_fixed(w, 8, out);
    case WIRE_FIXED32:
        return wire_fixed(w, 4, out);
    default:
        return wire_error(w, w->at, "not a number");
    }
}

static braid_status wire_tag(wire *w, wire_field *out) {
    uint64_t start = w->at, tag = 0;
    TRY(wire_varint(w, &tag));
    if (w->at - start > 5 || tag > UINT32_MAX) return wire_error(w, start, "a tag has more than 32 bits");
    out->number = (uint32_t)(tag >> 3);
    out->type = (wire_type)(tag & 7);
    if (out->number == 0) return wire_error(w, start, "field number 0");
    bool known =
        out->type == WIRE_VARINT || out->type == WIRE_FIXED64 || out->type == WIRE_BYTES || out->type == WIRE_FIXED32;
    return known ? BRAID_OK : wire_error(w, start, "wire types 3, 4, 6 and 7 are not allowed");
}

braid_status wire_next(wire *w, wire_field *out) {
    uint64_t start = w->at, length = 0;
    TRY(wire_tag(w, out));
    if (out->type == WIRE_BYTES) {
        TRY(wire_varint(w, &length));
        if (length > w->end - w->at) return wire_error(w, start, "a length goes beyond the end of its message");
        out->value = 0;
        out->at = w->at;
        out->length = length;
        TRY(wire_work(w->source, w->at - start));
        w->at += length;
        return BRAID_OK;
    }
    out->at = w->at;
    TRY(wire_value(w, out->type, &out->value));
    out->length = w->at - out->at;
    return wire_work(w->source, w->at - start);
}

braid_status wire_expect(const wire *w, const wire_field *f, wire_type type) {
    if (f->type == type) return BRAID_OK;
    return error_set(w->source->err, BRAID_FORMAT, "byte %llu: field %u has wire type %d, expected %d",
                     (unsigned long long)f->at, (unsigned)f->number, (int)f->type, (int)type);
}

braid_status wire_message(const wire *w, const wire_field *f, wire *out) {
    TRY(wire_expect(w, f, WIRE_BYTES));
    if (w->depth + 1 > WIRE_DEPTH)
        return error_set(w->source->err, BRAID_LIMIT, "byte %llu: messages are nested deeper than %d",
                         (unsigned long long)f->at, WIRE_DEPTH);
    *out = (wire){w->source, f->at, f->at + f->length, w->depth + 1};
    return BRAID_OK;
}

braid_status wire_scalars(const wire *w, const wire_field *f, wire_type type, wire *out) {
    if (f->type != WIRE_BYTES) TRY(wire_expect(w, f, type));
    *out = (wire){w->source, f->at, f->at + f->length, w->depth};
    return wire_work(w->source, f->length);
}

braid_status wire_bytes(const wire *w, const wire_field *f, arena *memory, const char **out) {
    TRY(wire_expect(w, f, WIRE_BYTES));
    TRY(wire_work(w->source, f->length));
    char *s = arena_alloc(memory, (size_t)f->length + 1);
    if (!s) return error_memory(w->source->err);
    *out = s;
    if (f->length > WIRE_WINDOW) return file_read(w->source->f, f->at, s, (size_t)f->length, w->source->err);
    const uint8_t *p;
    if (f->length) {
        TRY(wire_peek(w, f->at, (size_t)f->length, &p));
        memcpy(s, p, (size_t)f->length);
    }
    return BRAID_OK;
}

braid_status wire_string(const wire *w, const wire_field *f, size_t limit, arena *memory, const char **out) {
    TRY(wire_expect(w, f, WIRE_BYTES));
    if (f->length > limit)
        return error_set(w->source->err, BRAID_LIMIT, "byte %llu: a name of %llu bytes, at most %zu are allowed",
                         (unsigned long long)f->at, (unsigned long long)f->length, limit);
    TRY(wire_bytes(w, f, memory, out));
    if (strlen(*out) == f->length) return BRAID_OK;
    return error_set(w->source->err, BRAID_MODEL, "byte %llu: a name holds a NUL", (unsigned long long)f->at);
}
