/*
 * tensor.c: tensor types and tensors on the host.
 */
#include "ir/graph.h"

bool tensor_type_equal(const tensor_type *a, const tensor_type *b) {
    if (a->type != b->type || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

bool tensor_type_static(const tensor_type *t) {
    if (t->rank < 0) return false;
    for (int i = 0; i < t->rank; i++)
        if (!dim_known(t->dims[i])) return false;
    return true;
}

bool tensor_type_count(const tensor_type *t, int64_t *out) {
    return tensor_type_static(t) && dims_count(t->rank, t->dims, out);
}

bool tensor_type_bytes(const tensor_type *t, size_t *out) {
    int64_t count;
    if (!tensor_type_count(t, &count)) return false;
    if (t->type == BRAID_STRING) return size_mul((size_t)count, sizeof(char *), out);
    return type_span(t->type, count, out);
}

braid_status tensor_load(tensor *t, arena *memory, braid_error *err) {
    if (t->data) return BRAID_OK;
    void *data = arena_alloc(memory, t->bytes ? t->bytes : 1);
    if (!data) return error_memory(err);
    if (t->bytes && t->source) TRY(file_read(t->source, t->offset, data, t->bytes, err));
    t->data = data;
    return BRAID_OK;
}

braid_status tensor_new(arena *memory, braid_type type, int rank, const int64_t *dims, tensor **out, braid_error *err) {
    if (rank < 0 || rank > BRAID_MAX_RANK)
        return error_set(err, BRAID_LIMIT, "rank %d outside [0, %d]", rank, BRAID_MAX_RANK);
    tensor *t = arena_alloc(memory, sizeof *t);
    if (!t) return error_memory(err);
    t->type.type = type;
    t->type.rank = rank;
    if (rank) memcpy(t->type.dims, dims, (size_t)rank * sizeof *dims);
    if (!tensor_type_bytes(&t->type, &t->bytes))
        return error_set(err, BRAID_LIMIT, "%s tensor of rank %d has no valid size", braid_type_name(type), rank);
    t->data = arena_alloc(memory, t->bytes ? t->bytes : 1);
    if (!t->data) return error_memory(err);
    *out = t;
    return BRAID_OK;
}
