/*
 * wire: a bounded reader of protobuf's wire format over a file. Reads through one small window; what is skipped is
 * never read, so weights stay in the file.
 *
 * Bounds: varints of at most 10 bytes, tags of at most 5, lengths checked against what is left before use, messages
 * nested at most WIRE_DEPTH deep, and all bytes looked at (some several times) at most 32 times the file + 64 MiB.
 * Groups, wire types 6 and 7 and field number 0 are refused. Errors are FORMAT or LIMIT and name the position.
 */
#ifndef BRAID_WIRE_H
#define BRAID_WIRE_H

#include "base/base.h"

enum { WIRE_DEPTH = 128, WIRE_WINDOW = 4096 };

typedef enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 } wire_type;

typedef struct wire_source {
    file *f;
    braid_error *err;
    uint64_t size, work, work_limit;
    uint64_t window_at;
    size_t window_length;
    uint8_t window[WIRE_WINDOW];
} wire_source;

/* A message, or the content of a packed field: bytes [at, end). */
typedef struct wire {
    wire_source *source;
    uint64_t at, end;
    int depth;
} wire;

typedef struct wire_field {
    uint32_t number;
    wire_type type;
    uint64_t value;      /* WIRE_VARINT, WIRE_FIXED*: the bits */
    uint64_t at, length; /* where the value, or the content of WIRE_BYTES, lies in the file */
} wire_field;

/* A new source over all of the file; lives in `memory`, borrows the file. */
braid_status wire_open(file *, arena *memory, wire *out, braid_error *err);
static inline bool wire_more(const wire *w) {
    return w->at < w->end;
}
/* Reads one field and steps over its content. */
braid_status wire_next(wire *, wire_field *out);
/* The field must have this wire type. */
braid_status wire_expect(const wire *, const wire_field *, wire_type);
/* The message in a WIRE_BYTES field. */
braid_status wire_message(const wire *, const wire_field *, wire *out);
/* The values of a repeated scalar field, be it packed or a single one: loop wire_value while wire_more. */
braid_status wire_scalars(const wire *, const wire_field *, wire_type, wire *out);
braid_status wire_value(wire *, wire_type, uint64_t *out);
/* Copies the content of a WIRE_BYTES field and adds a NUL. */
braid_status wire_bytes(const wire *, const wire_field *, arena *memory, const char **out);
/* The same for text of at most `limit` bytes (LIMIT) without NULs (MODEL). */
braid_status wire_string(const wire *, const wire_field *, size_t limit, arena *memory, const char **out);

static inline float wire_float(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return f;
}

#endif
