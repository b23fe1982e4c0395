/* tensor: allocation, sizes and printing of host tensors. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>

/* More elements than this are refused before anything is allocated. */
#define ELEMENTS_MAX ((int64_t)1 << 40)

int value_bits(braid_type type) {
    switch (type) {
#define ROW(name, number, bits, text)                                                                                  \
    case BRAID_##name:                                                                                                 \
        return bits;
        BRAID_TYPE_MAP(ROW)
#undef ROW
    case BRAID_TYPE_NONE:
        break;
    }
    return 0;
}

bool value_is_float(braid_type type) {
    switch (type) {
    case BRAID_FLOAT32:
    case BRAID_FLOAT16:
    case BRAID_FLOAT64:
    case BRAID_BFLOAT16:
    case BRAID_FLOAT8E4M3FN:
    case BRAID_FLOAT8E4M3FNUZ:
    case BRAID_FLOAT8E5M2:
    case BRAID_FLOAT8E5M2FNUZ:
    case BRAID_FLOAT8E8M0:
    case BRAID_FLOAT4E2M1:
        return true;
    default:
        return false;
    }
}

bool tensor_count(int rank, const int64_t *dims, int64_t *out) {
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) return false;
        if (dims[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(product, dims[i], &product) || product > ELEMENTS_MAX)
            return false;
    }
    *out = empty ? 0 : product;
    return true;
}

bool tensor_span(braid_type type, int64_t count, size_t *bytes) {
    int bits = type == BRAID_STRING ? 8 * (int)sizeof(char *) : value_bits(type);
    int64_t total;
    if (bits == 0 || __builtin_mul_overflow(count, (int64_t)bits, &total) || total > INT64_MAX - 7) return false;
    *bytes = (size_t)((total + 7) / 8);
    return true;
}

braid_status tensor_alloc(braid_tensor *t, braid_type type, int rank, const int64_t *dims, braid_error *err) {
    int64_t count;
    size_t bytes;
    if (rank > BRAID_MAX_RANK) return cli_error(err, BRAID_LIMIT, "rank %d, at most %d", rank, BRAID_MAX_RANK);
    if (!tensor_count(rank, dims, &count) || !tensor_span(type, count, &bytes))
        return cli_error(err, BRAID_LIMIT, "a tensor of this shape is too large");
    void *data = calloc(1, bytes ? bytes : 1);
    if (!data) return cli_error(err, BRAID_HOST_MEMORY, "no memory for %zu bytes", bytes);
    braid_tensor made = {.name = t->name, .type = type, .rank = rank, .data = data, .bytes = bytes};
    for (int i = 0; i < rank; i++) made.dims[i] = dims[i]; /* dims may be those of t */
    *t = made;
    return BRAID_OK;
}

void tensor_drop(braid_tensor *t) {
    if (t->flags & BRAID_TENSOR_OWNED)
        braid_tensor_free(t);
    else
        free(t->data);
    t->data = NULL;
}

void tensors_free(braid_tensor *tensors, size_t count) {
    for (size_t i = 0; tensors && i < count; i++) tensor_drop(&tensors[i]);
    free(tensors);
}

void dims_text(int rank, const int64_t *dims, char *out, size_t capacity) {
    size_t n = (size_t)snprintf(out, capacity, "[");
    for (int i = 0; i < rank && n < capacity; i++)
        n += (size_t)(dims[i] < 0 ? snprintf(out + n, capacity - n, i ? ",?" : "?")
                                  : snprintf(out + n, capacity - n, i ? ",%lld" : "%lld", (long long)dims[i]));
    if (n < capacity) snprintf(out + n, capacity - n, "]");
}

bool dims_parse(const char *text, int *rank, int64_t *dims) {
    *rank = 0;
    if (!*text) return true;
    for (;;) {
        char *end;
        long long v = strtoll(text, &end, 10);
        if (end == text || v < 0 || *rank == BRAID_MAX_RANK) return false;
        dims[(*rank)++] = v;
        if (!*end) return true;
        if (*end != ',' && *end != 'x') return false;
        text = end + 1;
    }
}

bool tensor_in_failed(const braid_tensor *t, const bool *failed, int64_t count, int64_t i) {
    return failed && failed[i / (count / t->dims[0])];
}

static void print_range(const braid_tensor *t, const bool *failed, int64_t count, FILE *out) {
    double low = INFINITY, high = -INFINITY, sum = 0;
    int64_t nans = 0, finite = 0, numbers = 0;
    for (int64_t i = 0; i < count; i++) {
        if (tensor_in_failed(t, failed, count, i)) continue;
        double v = value_get(t, i);
        if (isnan(v)) {
            nans++;
            continue;
        }
        numbers++;
        low = fmin(low, v);
        high = fmax(high, v);
        if (isfinite(v)) sum += v, finite++;
    }
    if (numbers) fprintf(out, " min %.6g max %.6g", low, high);
    if (finite) fprintf(out, " mean %.6g", sum / (double)finite);
    if (nans) fprintf(out, " nan %lld", (long long)nans);
}

static void print_failed(const bool *failed, int64_t lanes, FILE *out) {
    int64_t n = 0;
    for (int64_t i = 0; failed && i < lanes; i++) n += failed[i];
    if (n) fprintf(out, " (%lld of %lld lanes failed)", (long long)n, (long long)lanes);
}

void tensor_summary(const braid_tensor *t, const bool *failed, size_t values, FILE *out) {
    int64_t count;
    if (!tensor_count(t->rank, t->dims, &count)) return;
    if (t->type != BRAID_STRING && count > 1) print_range(t, failed, count, out);
    print_failed(failed, t->dims[0], out);
    fprintf(out, count ? " values" : " no values");
    for (int64_t i = 0; i < count && i < (int64_t)values; i++) {
        char text[80] = "-";
        if (!tensor_in_failed(t, failed, count, i)) value_text(t, i, text, sizeof text);
        fprintf(out, " %s", text);
    }
    if (count > (int64_t)values) fputs(" ...", out);
}
