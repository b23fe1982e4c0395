#include "pass/same.h"

enum { CHUNK = 1 << 16 };

static bool tensor_same(const tensor *a, const tensor *b) {
    if (a == b) return true;
    return tensor_type_equal(&a->type, &b->type) && a->type.type != BRAID_STRING && a->bytes == b->bytes && a->data &&
           b->data && memcmp(a->data, b->data, a->bytes) == 0;
}

bool attribute_same(const attribute *a, const attribute *b) {
    if (strcmp(a->name, b->name) != 0 || a->kind != b->kind || a->count != b->count) return false;
    switch (a->kind) {
    case ATTRIBUTE_INT:
        return a->i == b->i;
    case ATTRIBUTE_FLOAT:
        return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case ATTRIBUTE_STRING:
        return memcmp(a->s, b->s, a->count) == 0;
    case ATTRIBUTE_INTS:
        return a->count == 0 || memcmp(a->ints, b->ints, a->count * sizeof *a->ints) == 0;
    case ATTRIBUTE_FLOATS:
        return a->count == 0 || memcmp(a->floats, b->floats, a->count * sizeof *a->floats) == 0;
    case ATTRIBUTE_STRINGS:
        for (size_t i = 0; i < a->count; i++)
            if (strcmp(a->strings[i], b->strings[i]) != 0) return false;
        return true;
    case ATTRIBUTE_TENSOR:
        return tensor_same(a->t, b->t);
    default:
        return false;
    }
}

static bool epilogue_same(const program *a, const program *b) {
    if (!a || !b) return a == b;
    size_t steps = (size_t)a->n_steps, immediates = (size_t)a->n_immediates;
    return a->n_steps == b->n_steps && a->n_immediates == b->n_immediates &&
           memcmp(a->steps, b->steps, steps * sizeof *a->steps) == 0 &&
           memcmp(a->immediates_f, b->immediates_f, immediates * sizeof *a->immediates_f) == 0 &&
           memcmp(a->immediates_i, b->immediates_i, immediates * sizeof *a->immediates_i) == 0;
}

bool node_same(const node *a, const node *b) {
    if (a->op != b->op || strcmp(a->type, b->type) != 0 || strcmp(a->domain, b->domain) != 0 || a->opset != b->opset)
        return false;
    if (a->n_in != b->n_in || a->n_out != b->n_out || a->n_attributes != b->n_attributes) return false;
    if (a->n_root != b->n_root || node_copies(a) != node_copies(b) || !epilogue_same(a->epilogue, b->epilogue))
        return false;
    for (int i = 0; i < a->n_in; i++)
        if ((a->in[i] < 0) != (b->in[i] < 0)) return false;
    for (int i = 0; i < a->n_out; i++)
        if ((a->out[i] < 0) != (b->out[i] < 0)) return false;
    for (int i = 0; i < a->n_attributes; i++)
        if (!attribute_same(&a->attributes[i], &b->attributes[i])) return false;
    return true;
}

static uint64_t hash_attribute(uint64_t h, const attribute *a) {
    uint64_t head[2] = {a->kind, a->count};
    h = hash_bytes(h, a->name, strlen(a->name));
    h = hash_bytes(h, head, sizeof head);
    switch (a->kind) {
    case ATTRIBUTE_INT:
        return hash_bytes(h, &a->i, sizeof a->i);
    case ATTRIBUTE_FLOAT:
        return hash_bytes(h, &a->f, sizeof a->f);
    case ATTRIBUTE_STRING:
        return hash_bytes(h, a->s, a->count);
    case ATTRIBUTE_INTS:
        return hash_bytes(h, a->ints, a->count * sizeof *a->ints);
    case ATTRIBUTE_FLOATS:
        return hash_bytes(h, a->floats, a->count * sizeof *a->floats);
    case ATTRIBUTE_TENSOR:
        return a->t->data && a->t->type.type != BRAID_STRING ? hash_bytes(h, a->t->data, a->t->bytes) : h;
    default:
        return h;
    }
}

uint64_t node_hash(const node *n) {
    int32_t head[6] = {n->opset, n->n_in, n->n_out, n->n_attributes, n->n_root, n->epilogue != NULL};
    uint64_t h = hash_bytes(0, n->type, strlen(n->type));
    h = hash_bytes(h, n->domain, strlen(n->domain));
    h = hash_bytes(h, head, sizeof head);
    for (int i = 0; i < n->n_attributes; i++) h = hash_attribute(h, &n->attributes[i]);
    if (!n->epilogue) return h;
    h = hash_bytes(h, n->epilogue->steps, (size_t)n->epilogue->n_steps * sizeof *n->epilogue->steps);
    h = hash_bytes(h, n->epilogue->immediates_f, (size_t)n->epilogue->n_immediates * sizeof *n->epilogue->immediates_f);
    return hash_bytes(h, n->epilogue->immediates_i,
                      (size_t)n->epilogue->n_immediates * sizeof *n->epilogue->immediates_i);
}

/* Compares a, in memory, with b, piece by piece. */
static braid_status compare_file(const tensor *a, const tensor *b, bool *out, braid_error *err) {
    uint8_t *chunk = mem_alloc(CHUNK);
    if (!chunk) return error_memory(err);
    braid_status status = BRAID_OK;
    *out = true;
    for (size_t at = 0; at < a->bytes && *out && status == BRAID_OK;) {
        size_t wanted = at == 0 ? 256 : CHUNK, left = a->bytes - at, n = left < wanted ? left : wanted;
        status = file_read(b->source, b->offset + at, chunk, n, err);
        *out = status == BRAID_OK && memcmp((const uint8_t *)a->data + at, chunk, n) == 0;
        at += n;
    }
    mem_free(chunk);
    return status;
}

braid_status constant_same(tensor *a, tensor *b, arena *memory, bool *out, braid_error *err) {
    *out = a == b;
    if (a == b || !tensor_type_equal(&a->type, &b->type) || a->bytes != b->bytes || a->type.type == BRAID_STRING)
        return BRAID_OK;
    *out = a->source && a->source == b->source && a->offset == b->offset;
    if (*out || a->bytes == 0) {
        *out = true;
        return BRAID_OK;
    }
    TRY(tensor_load(a, memory, err));
    if (!b->data) return compare_file(a, b, out, err);
    *out = a->data == b->data || memcmp(a->data, b->data, a->bytes) == 0;
    return BRAID_OK;
}
