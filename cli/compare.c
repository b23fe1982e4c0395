/* compare: a result against what was expected. */
#include "cli.h"

#include <math.h>

static bool close_enough(double got, double want, double rtol, double atol, comparison *c) {
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want)) return got == want;
    double absolute = fabs(got - want);
    if (absolute > c->worst_absolute) c->worst_absolute = absolute;
    if (want != 0 && absolute / fabs(want) > c->worst_relative) c->worst_relative = absolute / fabs(want);
    return absolute <= atol + rtol * fabs(want);
}

static double imaginary(const braid_tensor *t, int64_t i) {
    braid_tensor parts = *t;
    parts.type = t->type == BRAID_COMPLEX64 ? BRAID_FLOAT32 : BRAID_FLOAT64;
    return value_get(&parts, 2 * i + 1);
}

static bool equal_text(const braid_tensor *a, const braid_tensor *b, int64_t i) {
    const char *x = ((const char *const *)a->data)[i], *y = ((const char *const *)b->data)[i];
    return !strcmp(x ? x : "", y ? y : "");
}

static bool element_matches(const braid_tensor *got, const braid_tensor *want, int64_t i, double rtol, double atol,
                            comparison *c) {
    if (got->type == BRAID_STRING) return equal_text(got, want, i);
    if (got->type == BRAID_COMPLEX64 || got->type == BRAID_COMPLEX128)
        return close_enough(value_get(got, i), value_get(want, i), rtol, atol, c) &&
               close_enough(imaginary(got, i), imaginary(want, i), rtol, atol, c);
    if (value_is_float(got->type)) return close_enough(value_get(got, i), value_get(want, i), rtol, atol, c);
    return value_get_int(got, i) == value_get_int(want, i);
}

static void index_text(const braid_tensor *t, int64_t flat, char *out, size_t capacity) {
    int64_t index[BRAID_MAX_RANK] = {0};
    for (int d = t->rank - 1; d >= 0; d--) {
        index[d] = flat % t->dims[d];
        flat /= t->dims[d];
    }
    dims_text(t->rank, index, out, capacity);
}

static bool same_form(const braid_tensor *got, const braid_tensor *want, comparison *c) {
    char a[96], b[96];
    dims_text(got->rank, got->dims, a, sizeof a);
    dims_text(want->rank, want->dims, b, sizeof b);
    bool same = got->type == want->type && got->rank == want->rank &&
                !memcmp(got->dims, want->dims, (size_t)got->rank * sizeof got->dims[0]);
    if (!same)
        snprintf(c->text, sizeof c->text, "is %s %s, expected %s %s", braid_type_name(got->type), a,
                 braid_type_name(want->type), b);
    return same;
}

void tensor_compare(const braid_tensor *got, const braid_tensor *want, double rtol, double atol, comparison *c) {
    *c = (comparison){0};
    if (!same_form(got, want, c) || !tensor_count(got->rank, got->dims, &c->count)) return;
    int64_t first = -1;
    for (int64_t i = 0; i < c->count; i++) {
        if (element_matches(got, want, i, rtol, atol, c)) continue;
        if (first < 0) first = i;
        c->differing++;
    }
    c->ok = c->differing == 0;
    if (c->ok) {
        if (value_is_float(got->type))
            snprintf(c->text, sizeof c->text, "max error %.3g", c->worst_absolute);
        else
            snprintf(c->text, sizeof c->text, "equal");
        return;
    }
    char at[96], g[48], w[48];
    index_text(got, first, at, sizeof at);
    value_text(got, first, g, sizeof g);
    value_text(want, first, w, sizeof w);
    snprintf(c->text, sizeof c->text, "%lld of %lld values differ, first at %s: %s, expected %s",
             (long long)c->differing, (long long)c->count, at, g, w);
}
