/*
 * resize_eval.c: Resize on the CPU. Nearest moves elements of any type; the other modes weigh one axis after another
 * in double.
 */
#include "ops/resize.h"
#include <math.h>

typedef struct resize_job {
    resize_attributes a;
    int rank;
    const tensor *x;
    tensor *y;
    resize_axis axis[BRAID_MAX_RANK];
    resize_table table[BRAID_MAX_RANK];
} resize_job;

static braid_status job_new(eval *e, resize_job *j) {
    resize_inputs in;
    int64_t dims[BRAID_MAX_RANK];
    j->x = eval_in(e, 0);
    j->rank = j->x->type.rank;
    TRY(resize_read(e->node, j->rank, &j->a, e->err));
    TRY(resize_take(&j->a, e->memory, eval_in(e, 1), eval_in(e, 2), eval_in(e, 3), &in, e->err));
    TRY(resize_fit(&j->a, j->rank, j->x->type.dims, &in, j->axis, e->err));
    for (int i = 0; i < j->rank; i++) {
        dims[i] = j->axis[i].out;
        TRY(resize_table_new(e->memory, &j->a, &j->axis[i], &j->table[i], e->err));
    }
    return eval_output_shaped(e, 0, j->x->type.type, j->rank, dims, &j->y);
}

/* ------------------------------------------------------------------------------------------------ nearest */
static void set_extrapolation(resize_job *j, int64_t o, size_t size) {
    braid_type t = j->x->type.type;
    if (type_is_float(t) || type_is_integer(t) || t == BRAID_BOOL)
        element_set_f64(t, j->y->data, o, j->a.extrapolation);
    else
        memset((char *)j->y->data + (size_t)o * size, 0, size);
}

/* Offset of the first element of the input row that output row `row` is taken from; -1 outside. Rows run along the last
   axis. */
static int64_t nearest_row(const resize_job *j, int64_t row) {
    int64_t at = 0, stride = j->axis[j->rank - 1].in;
    for (int i = j->rank - 2; i >= 0; i--) {
        int32_t first = j->table[i].first[row % j->axis[i].out];
        if (first == RESIZE_OUTSIDE) return -1;
        at += first * stride;
        stride *= j->axis[i].in;
        row /= j->axis[i].out;
    }
    return at;
}

static void nearest_copy(const resize_job *j, int64_t from, int64_t to, size_t size) {
    const char *x = (const char *)j->x->data + (size_t)from * size;
    memcpy((char *)j->y->data + (size_t)to * size, x, size);
}

static braid_status resize_nearest(resize_job *j) {
    size_t size = j->x->type.type == BRAID_STRING ? sizeof(char *) : braid_type_bytes(j->x->type.type);
    int64_t count;
    if (!tensor_type_count(&j->y->type, &count) || count == 0) return BRAID_OK;
    const resize_table *last = &j->table[j->rank - 1];
    for (int64_t row = 0; row < count / last->out; row++) {
        int64_t from = nearest_row(j, row), to = row * last->out;
        for (int64_t o = 0; o < last->out; o++) {
            if (from < 0 || last->first[o] == RESIZE_OUTSIDE)
                set_extrapolation(j, to + o, size);
            else
                nearest_copy(j, from + last->first[o], to + o, size);
        }
    }
    return BRAID_OK;
}

/* ----------------------------------------------------------------------------------------------- weighted */
/* One axis of a slice [outer][axis->in][inner] to [outer][axis->out][inner]. */
static void weigh_axis(const resize_axis *x, const resize_table *t, double extrapolation, const double *in,
                       double *out, int64_t outer, int64_t inner) {
    for (int64_t b = 0; b < outer; b++)
        for (int64_t o = 0; o < x->out; o++) {
            double *to = out + (b * x->out + o) * inner;
            bool off = t->first[o] == RESIZE_OUTSIDE;
            for (int64_t i = 0; i < inner; i++) to[i] = off ? extrapolation : 0;
            for (int k = 0; k < t->taps && !off; k++) {
                int64_t at = (int64_t)t->first[o] + k;
                at = at < 0 ? 0 : at >= x->in ? x->in - 1 : at;
                double weight = t->weight[o * t->taps + k];
                const double *from = in + (b * x->in + at) * inner;
                for (int64_t i = 0; i < inner && weight != 0; i++) to[i] += weight * from[i];
            }
        }
}

static void store(const resize_job *j, int64_t at, const double *values, int64_t n) {
    braid_type t = j->y->type.type;
    bool integer = type_is_integer(t);
    for (int64_t i = 0; i < n; i++) {
        double v = integer ? nearbyint(values[i]) : values[i];
        if (type_is_unsigned(t) && v < 0) v = 0;
        int bits = type_bits(t);
        if (integer && bits < 64) {
            double high = ldexp(1, bits - type_is_signed(t)) - 1, low = type_is_signed(t) ? -high - 1 : 0;
            v = v < low ? low : v > high ? high : v;
        }
        element_set_f64(t, j->y->data, at + i, v);
    }
}

/* Elements of the widest intermediate of a slice that starts at axis `first`. */
static bool slice_room(const resize_job *j, int first, int64_t *out) {
    int64_t room = 1;
    for (int i = first; i < j->rank; i++) {
        int64_t wide = j->axis[i].in > j->axis[i].out ? j->axis[i].in : j->axis[i].out;
        if (!i64_mul(room, wide, &room)) return false;
    }
    *out = room;
    return room <= ELEMENTS_MAX;
}

static void weigh_slice(resize_job *j, int first, int64_t slice, int64_t n_in, int64_t n_out, double *both[2]) {
    for (int64_t i = 0; i < n_in; i++) both[0][i] = element_f64(j->x->type.type, j->x->data, slice * n_in + i);
    int now = 0;
    for (int a = first; a < j->rank; a++) {
        if (j->axis[a].same) continue;
        int64_t outer = 1, inner = 1;
        for (int i = first; i < a; i++) outer *= j->axis[i].out;
        for (int i = a + 1; i < j->rank; i++) inner *= j->axis[i].in;
        weigh_axis(&j->axis[a], &j->table[a], j->a.extrapolation, both[now], both[!now], outer, inner);
        now = !now;
    }
    store(j, slice * n_out, both[now], n_out);
}

static braid_status resize_weighted(eval *e, resize_job *j) {
    int first = 0;
    int64_t slices = 1, n_in = 1, n_out = 1, room;
    while (first < j->rank && j->axis[first].same) slices *= j->axis[first++].in;
    if (!slice_room(j, first, &room)) return error_set(e->err, BRAID_LIMIT, "more than 2^40 elements in between");
    for (int i = first; i < j->rank; i++) n_in *= j->axis[i].in, n_out *= j->axis[i].out;
    double *both[2];
    for (int i = 0; i < 2; i++)
        if (!(both[i] = arena_array(e->memory, (size_t)room + 1, sizeof(double)))) return error_memory(e->err);
    for (int64_t s = 0; s < slices && n_out > 0; s++) weigh_slice(j, first, s, n_in, n_out, both);
    return BRAID_OK;
}

braid_status resize_eval(eval *e) {
    resize_job j;
    TRY(job_new(e, &j));
    if (j.rank == 0) {
        memcpy(j.y->data, j.x->data, j.x->bytes);
        return BRAID_OK;
    }
    if (j.a.mode == RESIZE_NEAREST) return resize_nearest(&j);
    return resize_weighted(e, &j);
}
