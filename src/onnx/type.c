/*
 * type.c: ValueInfoProto: a name and a tensor type whose dims are numbers or symbols. Sequences, optionals, maps and
 * sparse tensors have no tensor type: unknown.
 */
#include "onnx/import.h"

typedef struct dim_proto {
    bool has_value;
    int64_t value;
    const char *param;
} dim_proto;

static braid_status read_dim(importer *im, wire w, dim_proto *out) {
    wire_field f;
    *out = (dim_proto){.param = ""};
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number == 1) {
            TRY(wire_expect(&w, &f, WIRE_VARINT));
            *out = (dim_proto){true, (int64_t)f.value, ""};
        } else if (f.number == 2) {
            *out = (dim_proto){.param = ""};
            TRY(import_name(im, &w, &f, &out->param));
        }
    }
    return BRAID_OK;
}

static braid_status add_dim(scope *s, const dim_proto *d, bool strict, tensor_type *t) {
    importer *im = s->im;
    if (t->rank == BRAID_MAX_RANK) return error_set(im->err, BRAID_LIMIT, "more than %d dims", BRAID_MAX_RANK);
    if (d->has_value && d->value < -1 && strict)
        return error_set(im->err, BRAID_MODEL, "dim %d is %lld", t->rank, (long long)d->value);
    int64_t *dim = &t->dims[t->rank++];
    if (!d->has_value || d->value < 0) return import_symbol(im, s->g, d->param, dim);
    *dim = d->value;
    return BRAID_OK;
}

/* TensorShapeProto. A hint of too high a rank is no hint. */
static braid_status read_shape(scope *s, wire w, bool strict, tensor_type *t) {
    wire_field f;
    wire inner;
    t->rank = 0;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number != 1) continue;
        dim_proto d;
        TRY(wire_message(&w, &f, &inner));
        TRY(read_dim(s->im, inner, &d));
        if (!strict && t->rank == BRAID_MAX_RANK) {
            t->rank = -1;
            return BRAID_OK;
        }
        TRY(add_dim(s, &d, strict, t));
    }
    return BRAID_OK;
}

static braid_status read_tensor_type(scope *s, wire w, bool strict, tensor_type *t) {
    wire_field f, shape = {0};
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number == 1) {
            TRY(wire_expect(&w, &f, WIRE_VARINT));
            bool known = f.value <= INT32_MAX && type_known((int)f.value);
            if (strict && !known && f.value != 0)
                return error_set(s->im->err, BRAID_MODEL, "element type %lld is unknown", (long long)f.value);
            t->type = known ? (braid_type)f.value : BRAID_TYPE_NONE;
        } else if (f.number == 2) {
            shape = f;
        }
    }
    if (!shape.number) return BRAID_OK;
    TRY(wire_message(&w, &shape, &w));
    return read_shape(s, w, strict, t);
}

/* TypeProto, a oneof: the last one counts. */
static braid_status read_type(scope *s, wire w, bool strict, tensor_type *t) {
    wire_field f, last = {0};
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        bool kind = f.number == 1 || f.number == 4 || f.number == 5 || f.number == 7 || f.number == 8 || f.number == 9;
        if (kind) last = f;
    }
    if (last.number != 1) return BRAID_OK;
    TRY(wire_message(&w, &last, &w));
    return read_tensor_type(s, w, strict, t);
}

braid_status import_value_info(scope *s, wire w, bool strict, const char **name, tensor_type *out) {
    wire_field f, type = {0};
    *name = "";
    *out = (tensor_type){.rank = -1};
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number == 1) TRY(import_name(s->im, &w, &f, name));
        if (f.number == 2) type = f;
    }
    if (!type.number) return BRAID_OK;
    TRY(wire_message(&w, &type, &w));
    braid_status status = read_type(s, w, strict, out);
    return status == BRAID_OK ? status : error_within(s->im->err, status, "'%.200s'", *name);
}
