/*
 * pool_window.c: reads, checks and places sliding windows.
 */
#include "ops/pool.h"

braid_status pool_list(const node *n, const char *name, int count, int64_t low, int64_t fallback, int64_t *out,
                       braid_error *err) {
    const int64_t *list;
    int given = node_ints(n, name, &list);
    for (int i = 0; i < count; i++) out[i] = fallback;
    if (given == 0) return BRAID_OK;
    if (given != count) return error_set(err, BRAID_MODEL, "%s has %d values, expected %d", name, given, count);
    for (int i = 0; i < count; i++) {
        if (list[i] < low)
            return error_set(err, BRAID_MODEL, "%s[%d] is %lld, expected at least %lld", name, i, (long long)list[i],
                             (long long)low);
        if (list[i] > INT32_MAX)
            return error_set(err, BRAID_LIMIT, "%s[%d] is %lld, more than 2^31 - 1", name, i, (long long)list[i]);
        out[i] = list[i];
    }
    return BRAID_OK;
}

static braid_status read_padding(const node *n, pool_padding *out, braid_error *err) {
    static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const char *mode = node_string(n, "auto_pad", "NOTSET");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(mode, names[i]) != 0) continue;
        *out = (pool_padding)i;
        return BRAID_OK;
    }
    return error_set(err, BRAID_MODEL, "auto_pad '%s' is none of NOTSET, SAME_UPPER, SAME_LOWER, VALID", mode);
}

braid_status pool_read(const node *n, int rank, pool_window *w, braid_error *err) {
    *w = (pool_window){.rank = rank - 2};
    if (w->rank < 1 || w->rank > POOL_AXES)
        return error_set(err, w->rank < 1 ? BRAID_SHAPE : BRAID_UNSUPPORTED, "input 0: rank %d, expected 3 to 5", rank);
    int count = w->rank, lead = POOL_AXES - count;
    int64_t kernel[POOL_AXES], stride[POOL_AXES], dilation[POOL_AXES], pads[2 * POOL_AXES];
    if (!node_attribute(n, "kernel_shape")) return error_set(err, BRAID_MODEL, "attribute kernel_shape is missing");
    TRY(pool_list(n, "kernel_shape", count, 1, 0, kernel, err));
    TRY(pool_list(n, "strides", count, 1, 1, stride, err));
    TRY(pool_list(n, "dilations", count, 1, 1, dilation, err));
    TRY(pool_list(n, "pads", 2 * count, 0, 0, pads, err));
    if (kernel[0] < 1) return error_set(err, BRAID_MODEL, "kernel_shape is empty");
    TRY(read_padding(n, &w->padding, err));
    w->ceil = node_int(n, "ceil_mode", 0) != 0;
    for (int i = 0; i < lead; i++) w->axis[i] = (pool_axis){1, 1, 1, 0, 0};
    bool given = w->padding == POOL_EXPLICIT;
    for (int i = 0; i < count; i++)
        w->axis[lead + i] = (pool_axis){kernel[i], stride[i], dilation[i], given ? pads[i] : 0,
                                        given ? pads[count + i] : 0};
    return BRAID_OK;
}

/* Extent of a window; below 2^62, so that sums with sizes and pads stay in range. */
static int64_t pool_extent(const pool_axis *a) { return a->dilation * (a->kernel - 1) + 1; }

static int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

static void fit_same(pool_window *w, pool_axis *x, int64_t size, int64_t *out) {
    *out = size == 0 ? 0 : (size - 1) / x->stride + 1;
    int64_t total = size == 0 ? 0 : (*out - 1) * x->stride + pool_extent(x) - size;
    if (total < 0) total = 0;
    int64_t less = total / 2;
    x->begin = w->padding == POOL_SAME_UPPER ? less : total - less;
    x->end = total - x->begin;
}

braid_status pool_fit(pool_window *w, int a, int64_t size, int64_t *out, braid_error *err) {
    pool_axis *x = &w->axis[a];
    int axis = a - (POOL_AXES - w->rank) + 2;
    if (w->padding == POOL_SAME_UPPER || w->padding == POOL_SAME_LOWER) {
        fit_same(w, x, size, out);
        return BRAID_OK;
    }
    int64_t extent = pool_extent(x);
    if (x->begin >= extent || x->end >= extent)
        return error_set(err, BRAID_MODEL, "axis %d: padding %lld, %lld is not below the window's extent %lld", axis,
                         (long long)x->begin, (long long)x->end, (long long)extent);
    int64_t room = size + x->begin + x->end - extent;
    bool up = w->ceil && w->padding == POOL_EXPLICIT;
    *out = divide_down(room + (up ? x->stride - 1 : 0), x->stride) + 1;
    if (up && *out > 0 && (*out - 1) * x->stride >= size + x->begin) --*out;
    if (*out < 0)
        return error_set(err, BRAID_SHAPE, "axis %d: a window of extent %lld does not fit the padded input of %lld",
                         axis, (long long)extent, (long long)(size + x->begin + x->end));
    return BRAID_OK;
}

/* Number of taps at start, start + step, ... that lie below `limit`. */
static int64_t taps_below(int64_t start, const pool_axis *x, int64_t limit) {
    if (start >= limit) return 0;
    int64_t n = (limit - 1 - start) / x->dilation + 1;
    return n < x->kernel ? n : x->kernel;
}

pool_taps pool_place(const pool_axis *x, int64_t o, int64_t size) {
    int64_t start = o * x->stride - x->begin;
    int64_t skipped = start < 0 ? (-start + x->dilation - 1) / x->dilation : 0;
    int64_t inside = taps_below(start, x, size) - skipped;
    return (pool_taps){start + skipped * x->dilation, inside > 0 ? inside : 0, taps_below(start, x, size + x->end)};
}

double pool_exponent(const node *n) {
    const attribute *a = node_attribute(n, "p");
    if (!a) return 2;
    return a->kind == ATTRIBUTE_FLOAT ? (double)a->f : (double)a->i;
}

braid_status pool_float(const infer *c, int i, braid_type extra, braid_type extra2) {
    if (!infer_has(c, i)) return BRAID_OK;
    braid_type t = c->in[i]->type;
    if (t == BRAID_TYPE_NONE || type_is_float(t) || t == extra || t == extra2) return BRAID_OK;
    return error_set(c->err, BRAID_TYPE, "input %d: type %s is not allowed", i, braid_type_name(t));
}
