/*
 * The interpreter of fusion programs: blocks of elements, one loop per instruction; reals as double.
 */
#include "ops/map.h"

#include <math.h>

#include "kernels/lib/math.h"

#define R(c) c
#define TO_REAL(i) ((double)(i))
#define M_ABS(x) fabs(x)
#define M_CEIL(x) ceil(x)
#define M_FLOOR(x) floor(x)
#define M_ROUND_EVEN(x) rint(x)
#define M_SQRT(x) sqrt(x)
#define M_NAN(x) isnan(x)
#define M_DIV(x, y) ((x) / (y))
#define M_NONZERO(x) ((x) != 0)
#define M_SIGN(x) ((x) > 0 ? 1.0 : (x) < 0 ? -1.0 : (x))
#define M_INF(x) isinf(x)
#define M_MIN(x, y) min_f64(x, y)
#define M_MAX(x, y) max_f64(x, y)
#define M_MOD(x, y) fmod(x, y)
#define M_PYMOD(x, y) pymod_f64(x, y)
#define M_ROUND_FLOAT16(x) ((double)half_to_float(double_to_half(x)))
#define M_ROUND_BFLOAT16(x) ((double)bfloat_to_float(double_to_bfloat(x)))
#define M_ROUND_FLOAT32(x) ((double)(float)(x))
#define M_TO_I64(x) i64_from_f64(x)
#define M_TO_U64(x) u64_from_f64(x)
#define M_TO_BITS(x) ((int64_t)(int32_t)b_float_bits((float)(x)))
#define M_FROM_BITS(i) ((double)b_bits_float((uint32_t)(i)))
#define M_EXP(x) exp(x)
#define M_EXPM1(x) expm1(x)
#define M_LOG(x) log(x)
#define M_LOG1P(x) log1p(x)
#define M_SIN(x) sin(x)
#define M_COS(x) cos(x)
#define M_TAN(x) tan(x)
#define M_ASIN(x) asin(x)
#define M_ACOS(x) acos(x)
#define M_ATAN(x) atan(x)
#define M_SINH(x) sinh(x)
#define M_COSH(x) cosh(x)
#define M_TANH(x) tanh(x)
#define M_ASINH(x) asinh(x)
#define M_ACOSH(x) acosh(x)
#define M_ATANH(x) atanh(x)
#define M_ERF(x) erf(x)
#define M_POW(x, y) pow(x, y)
#define M_SIGMOID(x) sigmoid_f64(x)
#define M_SOFTPLUS(x) softplus_f64(x)

static inline double min_f64(double x, double y) {
    return isnan(x) ? x : isnan(y) ? y : x < y ? x : y;
}
static inline double max_f64(double x, double y) {
    return isnan(x) ? x : isnan(y) ? y : x > y ? x : y;
}
static inline double sigmoid_f64(double x) {
    double t = exp(-fabs(x));
    return (x < 0 ? t : 1) / (1 + t);
}
static inline double softplus_f64(double x) {
    return log1p(exp(-fabs(x))) + (x > 0 ? x : isnan(x) ? x : 0);
}
static inline double pymod_f64(double x, double y) {
    double r = fmod(x, y);
    if (r == 0) return copysign(r, y);
    return (r < 0) != (y < 0) ? r + y : r;
}
static inline int64_t i64_from_f64(double x) {
    if (isnan(x)) return 0;
    return x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}
static inline int64_t u64_from_f64(double x) {
    if (isnan(x) || x <= 0) return 0;
    return x >= 0x1p64 ? -1 : (int64_t)(uint64_t)x;
}

enum { BLOCK = 128, REGISTERS = PROGRAM_INPUTS + PROGRAM_IMMEDIATES + PROGRAM_STEPS };

typedef union cell {
    double f;
    int64_t i;
} cell;

typedef struct machine {
    cell r[REGISTERS][BLOCK];
} machine;

/* One instruction on n elements. The opcode text sees x, y, z and i, j, k. */
static void run_step(machine *m, instruction s, int to, int n) {
    const cell *a = m->r[s.a], *b = m->r[s.b], *c = m->r[s.c];
    cell *r = m->r[to];
    switch (s.op) {
#define LOOP(member, kind, text)                                                                                       \
    for (int e = 0; e < n; e++) {                                                                                      \
        READ_##kind;                                                                                                   \
        r[e].member = (text);                                                                                          \
    }                                                                                                                  \
    break;
#define READ_f const double x = a[e].f
#define READ_ff const double x = a[e].f, y = b[e].f
#define READ_fff const double x = a[e].f, y = b[e].f, z = c[e].f
#define READ_i const int64_t i = a[e].i
#define READ_ii const int64_t i = a[e].i, j = b[e].i
#define READ_iii const int64_t i = a[e].i, j = b[e].i, k = c[e].i
#define READ_iff                                                                                                       \
    const int64_t i = a[e].i;                                                                                          \
    const double y = b[e].f, z = c[e].f
#define TO_R(name, code, operands, text)                                                                               \
    case code:                                                                                                         \
        LOOP(f, operands, text)
#define TO_I(name, code, operands, text)                                                                               \
    case code:                                                                                                         \
        LOOP(i, operands, text)
        MAP_OPS_EXACT(TO_R)
        MAP_OPS_MATH(TO_R)
        MAP_OPS_CAST_R(TO_R)
        MAP_OPS_TEST(TO_I)
        MAP_OPS_CAST_I(TO_I)
        MAP_OPS_INT(TO_I)
    default:
        break;
    }
}

static void round_block(cell *r, int n) {
    for (int e = 0; e < n; e++) r[e].f = (double)(float)r[e].f;
}

/* How an input is read: element strides of the output's dims, right-aligned broadcast. */
typedef struct source {
    const tensor *t;
    int64_t strides[BRAID_MAX_RANK];
    bool dense, single, real;
} source;

static braid_status source_set(source *s, const tensor *t, const tensor *out, int number, braid_error *err) {
    int shift = out->type.rank - t->type.rank;
    int64_t stride = 1;
    *s = (source){.t = t, .dense = true, .single = true, .real = type_is_float(t->type.type)};
    if (shift < 0) return error_set(err, BRAID_SHAPE, "input %d: rank above the output's", number);
    for (int d = out->type.rank - 1; d >= 0; d--) {
        int64_t dim = d < shift ? 1 : t->type.dims[d - shift];
        if (dim != 1 && dim != out->type.dims[d])
            return error_set(err, BRAID_SHAPE, "input %d: dim %lld does not broadcast to %lld", number, (long long)dim,
                             (long long)out->type.dims[d]);
        s->strides[d] = dim == 1 ? 0 : stride;
        if (dim != out->type.dims[d]) s->dense = false;
        if (dim != 1) s->single = false;
        stride *= dim;
    }
    return BRAID_OK;
}

/* Position in the input of output element `at`. */
static int64_t source_index(const source *s, const tensor_type *out, int64_t at) {
    int64_t index = 0;
    for (int d = out->rank - 1; d >= 0; d--) {
        index += at % out->dims[d] * s->strides[d];
        at /= out->dims[d];
    }
    return index;
}

static void read_cell(cell *c, const source *s, int64_t index) {
    if (s->real)
        c->f = element_f64(s->t->type.type, s->t->data, index);
    else
        c->i = element_i64(s->t->type.type, s->t->data, index);
}

static void load_dense(cell *r, const source *s, int64_t at, int n) {
    const braid_type type = s->t->type.type;
    if (type == BRAID_FLOAT32)
        for (int e = 0; e < n; e++) r[e].f = (double)((const float *)s->t->data)[at + e];
    else if (type == BRAID_INT64)
        memcpy(r, (const int64_t *)s->t->data + at, (size_t)n * sizeof *r);
    else
        for (int e = 0; e < n; e++) read_cell(&r[e], s, at + e);
}

static void load_block(cell *r, const source *s, const tensor_type *out, int64_t at, int n) {
    if (s->dense) {
        load_dense(r, s, at, n);
        return;
    }
    int64_t last = out->rank ? out->dims[out->rank - 1] : 1, stride = out->rank ? s->strides[out->rank - 1] : 0;
    for (int e = 0; e < n;) {
        int64_t left = last - (at + e) % last, index = source_index(s, out, at + e);
        for (; left-- > 0 && e < n; e++, index += stride) read_cell(&r[e], s, index);
    }
}

static void store_block(const cell *r, bool real, tensor *out, int64_t at, int n) {
    const braid_type type = out->type.type;
    if (real && type == BRAID_FLOAT32)
        for (int e = 0; e < n; e++) ((float *)out->data)[at + e] = (float)r[e].f;
    else if (real)
        for (int e = 0; e < n; e++) element_set_f64(type, out->data, at + e, r[e].f);
    else
        for (int e = 0; e < n; e++) element_set_i64(type, out->data, at + e, r[e].i);
}

static void load_immediates(machine *m, const program *p) {
    for (int i = 0; i < p->n_immediates; i++)
        for (int e = 0; e < BLOCK; e++) m->r[PROGRAM_INPUTS + i][e].i = p->immediates_i[i];
}

/* Immediates are reals or integers as their reader asks: a copy per kind would double the registers, so each block
   writes those that the next instruction reads. */
static void fix_immediates(machine *m, const program *p, instruction s) {
    const char *kinds = map_opcode_operands(s.op);
    const uint8_t from[3] = {s.a, s.b, s.c};
    for (int k = 0; kinds[k]; k++) {
        int i = from[k] - PROGRAM_INPUTS;
        if (i < 0 || i >= p->n_immediates) continue;
        cell v = {.i = p->immediates_i[i]};
        if (kinds[k] == 'f') v.f = p->immediates_f[i];
        if (memcmp(&m->r[from[k]][0], &v, sizeof v) == 0) continue;
        for (int e = 0; e < BLOCK; e++) m->r[from[k]][e] = v;
    }
}

braid_status program_eval(const program *p, int n_in, const tensor *const *in, tensor *out, braid_error *err) {
    source sources[PROGRAM_INPUTS];
    bool real[PROGRAM_INPUTS] = {0}, result_real, wide = out->type.type == BRAID_FLOAT64;
    int64_t count;
    if (n_in < 1 || n_in > PROGRAM_INPUTS) return error_set(err, BRAID_LIMIT, "a program with %d inputs", n_in);
    for (int i = 0; i < n_in; i++) {
        sources[i] = (source){.single = true};
        if (!in[i]) continue;
        TRY(source_set(&sources[i], in[i], out, i, err));
        real[i] = sources[i].real;
        wide = wide || in[i]->type.type == BRAID_FLOAT64;
    }
    if (!program_check(p, n_in, real, &result_real) || result_real != type_is_float(out->type.type))
        return error_set(err, BRAID_TYPE, "a fusion program does not fit its types");
    if (!tensor_type_count(&out->type, &count)) return error_set(err, BRAID_LIMIT, "too many elements");
    machine *m = mem_alloc(sizeof *m);
    if (!m) return error_memory(err);
    memset(m, 0, sizeof *m);
    load_immediates(m, p);
    for (int i = 0; i < n_in && count; i++)
        if (sources[i].t && sources[i].single)
            for (int e = 0; e < BLOCK; e++) read_cell(&m->r[i][e], &sources[i], 0);
    for (int64_t at = 0; at < count; at += BLOCK) {
        int n = count - at < BLOCK ? (int)(count - at) : BLOCK;
        for (int i = 0; i < n_in; i++)
            if (!sources[i].single) load_block(m->r[i], &sources[i], &out->type, at, n);
        for (int s = 0; s < p->n_steps; s++) {
            int to = PROGRAM_INPUTS + PROGRAM_IMMEDIATES + s;
            fix_immediates(m, p, p->steps[s]);
            run_step(m, p->steps[s], to, n);
            if (!wide && map_opcode_real(p->steps[s].op)) round_block(m->r[to], n);
        }
        store_block(m->r[program_result(p)], result_real, out, at, n);
    }
    mem_free(m);
    return BRAID_OK;
}
