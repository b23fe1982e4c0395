/*
 * sparse.c: SparseTensorProto as a dense tensor. Indices are [nnz], into the flattened tensor, or [nnz, rank].
 */
#include "onnx/import.h"

typedef struct sparse_proto {
    const char *name;
    tensor *values, *indices;
    tensor_type type;
} sparse_proto;

static braid_status read_dims(importer *im, const wire *w, const wire_field *f, tensor_type *t) {
    wire list;
    uint64_t v;
    TRY(wire_scalars(w, f, WIRE_VARINT, &list));
    while (wire_more(&list)) {
        TRY(wire_value(&list, WIRE_VARINT, &v));
        if (t->rank == BRAID_MAX_RANK) return error_set(im->err, BRAID_LIMIT, "more than %d dims", BRAID_MAX_RANK);
        t->dims[t->rank++] = (int64_t)v;
    }
    return BRAID_OK;
}

static braid_status read_sparse(importer *im, wire w, sparse_proto *p) {
    wire_field f, values = {0}, indices = {0};
    wire inner;
    const char *ignored;
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        if (f.number == 1) values = f;
        if (f.number == 2) indices = f;
        if (f.number == 3) TRY(read_dims(im, &w, &f, &p->type));
    }
    if (!values.number || !indices.number) return error_set(im->err, BRAID_MODEL, "values or indices are missing");
    TRY(wire_message(&w, &values, &inner));
    TRY(import_tensor_loaded(im, inner, &p->name, &p->values));
    TRY(wire_message(&w, &indices, &inner));
    return import_tensor_loaded(im, inner, &ignored, &p->indices);
}

/* Flat position of entry i. */
static braid_status position(importer *im, const sparse_proto *p, int64_t count, int64_t i, int64_t *out) {
    const int64_t *index = p->indices->data;
    bool flat = p->indices->type.rank == 1;
    int64_t at = flat ? index[i] : 0;
    bool ok = !flat || (at >= 0 && at < count);
    for (int d = 0; !flat && d < p->type.rank; d++) {
        int64_t k = index[i * p->type.rank + d];
        ok = ok && k >= 0 && k < p->type.dims[d];
        if (ok) at = at * p->type.dims[d] + k; /* stays below count */
    }
    if (!ok) return error_set(im->err, BRAID_INDEX, "index %lld lies outside the tensor", (long long)i);
    *out = at;
    return BRAID_OK;
}

static braid_status check_sparse(importer *im, const sparse_proto *p) {
    const tensor_type *v = &p->values->type, *x = &p->indices->type;
    if (v->rank != 1) return error_set(im->err, BRAID_MODEL, "values have rank %d, expected 1", v->rank);
    if (x->type != BRAID_INT64) return error_set(im->err, BRAID_MODEL, "indices are not int64");
    bool ok = (x->rank == 1 || (x->rank == 2 && x->dims[1] == p->type.rank)) && x->dims[0] == v->dims[0];
    if (!ok) return error_set(im->err, BRAID_MODEL, "values and indices do not fit together");
    if (braid_type_bytes(v->type) == 0)
        return error_set(im->err, BRAID_UNSUPPORTED, "sparse %s elements", braid_type_name(v->type));
    return BRAID_OK;
}

static braid_status densify(importer *im, sparse_proto *p, tensor **out) {
    int64_t count, at = 0;
    size_t bytes;
    TRY(check_sparse(im, p));
    p->type.type = p->values->type.type;
    for (int d = 0; d < p->type.rank; d++)
        if (p->type.dims[d] < 0)
            return error_set(im->err, BRAID_MODEL, "dim %d is %lld", d, (long long)p->type.dims[d]);
    if (!tensor_type_count(&p->type, &count) || !tensor_type_bytes(&p->type, &bytes))
        return error_set(im->err, BRAID_LIMIT, "the shape has too many elements");
    TRY(import_budget(im, bytes));
    TRY(tensor_new(im->memory, p->type.type, p->type.rank, p->type.dims, out, im->err));
    size_t width = braid_type_bytes(p->type.type);
    for (int64_t i = 0; i < p->values->type.dims[0]; i++) {
        TRY(position(im, p, count, i, &at));
        memcpy((uint8_t *)(*out)->data + (size_t)at * width, (uint8_t *)p->values->data + (size_t)i * width, width);
    }
    return BRAID_OK;
}

braid_status import_sparse(importer *im, wire w, const char **name, tensor **out) {
    sparse_proto p = {.name = ""};
    braid_status s = read_sparse(im, w, &p);
    if (s == BRAID_OK) s = densify(im, &p, out);
    *name = p.name;
    return s == BRAID_OK ? s : error_within(im->err, s, "sparse tensor '%.200s'", p.name);
}
