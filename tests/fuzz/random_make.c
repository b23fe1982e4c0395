/*
 * random_make.c: one generator per family of operators. A generator proposes a line; inference and the CPU reference
 * decide whether it stands, so it only has to be right most of the time.
 */
#include <stdarg.h>

#include "random.h"

enum { F32 = 1, F16 = 2, BF16 = 4, FLOATS = 7, I32 = 8, I64 = 16, SMALL = 32, UINT = 64, INTS = 120, BOOLS = 128,
       F64 = 256, NUMBERS = FLOATS | INTS, ANY = 511 };

static int mask_of(braid_type t) {
    switch (t) {
    case BRAID_FLOAT32: return F32;
    case BRAID_FLOAT16: return F16;
    case BRAID_BFLOAT16: return BF16;
    case BRAID_FLOAT64: return F64;
    case BRAID_INT32: return I32;
    case BRAID_INT64: return I64;
    case BRAID_BOOL: return BOOLS;
    case BRAID_INT8: case BRAID_INT16: return SMALL;
    default: return type_is_unsigned(t) ? UINT : 0;
    }
}

static braid_type random_type(draft *d, int mask) {
    static const braid_type list[] = {BRAID_FLOAT32,  BRAID_FLOAT32, BRAID_FLOAT32, BRAID_FLOAT32, BRAID_FLOAT32,
                                      BRAID_FLOAT32,  BRAID_FLOAT32, BRAID_FLOAT32, BRAID_FLOAT16, BRAID_FLOAT16,
                                      BRAID_BFLOAT16, BRAID_INT32,   BRAID_INT64,   BRAID_INT64,   BRAID_INT8,
                                      BRAID_INT16,    BRAID_UINT8,   BRAID_UINT16,  BRAID_UINT32,  BRAID_UINT64,
                                      BRAID_BOOL,     BRAID_FLOAT64};
    for (;;) {
        braid_type t = list[draw(d, COUNT_OF(list))];
        if (mask_of(t) & mask) return t;
    }
}

static int64_t random_dim(draft *d) {
    static const int64_t list[] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 8, 16, 17, 32, 33, 64};
    if (chance(d, 4)) return (int64_t[]){96, 128, 130, 255, 257, 300}[draw(d, 6)];
    return chance(d, 2) ? 0 : list[draw(d, COUNT_OF(list))];
}

static int random_shape(draft *d, int least, int most, int64_t *dims) {
    int rank = least + (int)draw(d, (uint32_t)(most - least + 1));
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        dims[i] = random_dim(d);
        if (count * dims[i] > 6000) dims[i] = 1 + (int64_t)draw(d, 2);
        count *= dims[i] ? dims[i] : 1;
    }
    return rank;
}

static int fresh(draft *d, braid_type t, int rank, const int64_t *dims, int constant_percent) {
    return draft_tensor(d, chance(d, constant_percent) ? LINE_CONSTANT : LINE_INPUT,
                        random_tensor(d, t, rank, dims, type_is_unsigned(t) ? 0 : -4, 5));
}

/* A value of these types and ranks, mostly one that exists, mostly a late one. */
static int pick(draft *d, int mask, int least, int most, bool exact) {
    for (int tries = 0; tries < 12 && d->n_values && chance(d, 95); tries++) {
        int back = (int)draw(d, (uint32_t)(tries < 8 && d->n_values > 6 ? 6 : d->n_values));
        const content *c = &d->values[d->n_values - 1 - back];
        if (!(mask_of(c->t->type.type) & mask) || c->t->type.rank < least || c->t->type.rank > most) continue;
        if (exact && !c->exact) continue;
        return d->n_values - 1 - back;
    }
    int64_t dims[BRAID_MAX_RANK];
    int rank = random_shape(d, least, most, dims);
    return fresh(d, random_type(d, mask), rank, dims, 15);
}

static const tensor_type *type_of(const draft *d, int v) { return &d->values[v].t->type; }

/* Something that broadcasts against v; of v's type when t is NONE. */
static int partner(draft *d, int v, braid_type t, bool exact) {
    const tensor_type *a = type_of(d, v);
    if (t == BRAID_TYPE_NONE) t = a->type;
    for (int tries = 0; tries < 6; tries++) {
        int other = (int)draw(d, (uint32_t)d->n_values);
        const tensor_type *b = type_of(d, other);
        bool fits = b->type == t && (!exact || d->values[other].exact);
        for (int i = 1; fits && i <= a->rank && i <= b->rank; i++)
            fits =
                a->dims[a->rank - i] == b->dims[b->rank - i] || b->dims[b->rank - i] == 1 || a->dims[a->rank - i] == 1;
        if (fits) return other;
    }
    int64_t dims[BRAID_MAX_RANK];
    int drop = chance(d, 60) ? 0 : (int)draw(d, (uint32_t)a->rank + 1), rank = a->rank - drop;
    bool full = chance(d, 40);
    for (int i = 0; i < rank; i++) dims[i] = full || chance(d, 60) ? a->dims[drop + i] : 1;
    return fresh(d, t, rank, dims, 40);
}

static int ints(draft *d, int n, const int64_t *v) {
    tensor *t = NULL;
    tensor_new(d->memory, BRAID_INT64, 1, (int64_t[]){n}, &t, NULL);
    if (n) memcpy(t->data, v, (size_t)n * sizeof *v);
    return draft_tensor(d, LINE_CONSTANT, t);
}

static bool add(draft *d, const char *type, bool exact, int n_out, int n_in, const int *in, const char *format, ...) {
    line l = {.kind = LINE_NODE, .n_in = n_in, .n_out = n_out, .exact = exact};
    snprintf(l.type, sizeof l.type, "%s", type);
    for (int i = 0; i < n_in; i++) l.in[i] = in[i];
    va_list list;
    va_start(list, format);
    vsnprintf(l.attributes, sizeof l.attributes, format, list);
    va_end(list);
    return draft_add(d, &l);
}
#define IN(...) (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__}

static int axis_of(draft *d, int v) {
    int rank = type_of(d, v)->rank;
    return rank ? (int)draw(d, (uint32_t)rank * 2) - rank : 0;
}

/* -------------------------------------------------------------------------------------------- elementwise */

static bool make_unary(draft *d) {
    static const char *const smooth[] = {
        "Erf",       "Acos",        "Acosh",     "Asin", "Asinh", "Atan",       "Atanh",   "Cos",
        "Cosh",      "Exp",         "HardSwish", "Log",  "Mish",  "Reciprocal", "Sigmoid", "Sin",
        "Sinh",      "Softplus",    "Softsign",  "Sqrt", "Tanh",  "Elu",        "Celu",    "Selu",
        "LeakyRelu", "HardSigmoid", "Swish",     "Gelu", "Tanh",  "Sigmoid",    "Exp"};
    return add(d, smooth[draw(d, COUNT_OF(smooth))], false, 1,
               IN(pick(d, FLOATS | (chance(d, 10) ? F64 : 0), 0, 6, false)), "%s", "");
}

static bool make_unary_exact(draft *d) {
    static const char *const any[] = {"Abs", "Neg", "Relu", "Identity"};
    static const char *const jumps[] = {"Sign",  "Ceil",  "Floor",           "Round",
                                        "IsNaN", "IsInf", "ThresholdedRelu", "Shrink"};
    switch (draw(d, 4)) {
    case 0: return add(d, any[draw(d, 4)], true, 1, IN(pick(d, NUMBERS | F64, 0, 6, false)), "%s", "");
    case 1: return add(d, jumps[draw(d, COUNT_OF(jumps))], true, 1, IN(pick(d, FLOATS, 0, 6, true)), "%s", "");
    case 2: return add(d, "Not", true, 1, IN(pick(d, BOOLS, 0, 6, true)), "%s", "");
    default: return add(d, chance(d, 50) ? "BitwiseNot" : "Sign", true, 1, IN(pick(d, INTS, 0, 6, true)), "%s", "");
    }
}

static bool make_arithmetic(draft *d) {
    static const char *const names[] = {"Add", "Sub", "Mul", "Max", "Min", "Div"};
    int v = pick(d, NUMBERS | (chance(d, 10) ? F64 : 0), 0, 6, false);
    bool real = type_is_float(type_of(d, v)->type);
    uint32_t which = draw(d, real ? 6 : 5);
    int w = partner(d, v, BRAID_TYPE_NONE, !real);
    return add(d, names[which], !real || which == 3 || which == 4, 1, IN(chance(d, 50) ? v : w, chance(d, 80) ? w : v),
               "%s", "");
}

static bool make_variadic(draft *d) {
    static const char *const names[] = {"Sum", "Mean", "Max", "Min"};
    uint32_t which = draw(d, 4);
    int v = pick(d, which < 2 ? FLOATS : NUMBERS, 0, 5, false), in[5] = {v}, n = 1 + (int)draw(d, 4);
    for (int i = 1; i < n; i++) in[i] = partner(d, v, BRAID_TYPE_NONE, false);
    return add(d, names[which], which >= 2, 1, n, in, "%s", "");
}

static bool make_integer(draft *d) {
    int v = pick(d, INTS, 0, 6, true);
    const tensor_type *t = type_of(d, v);
    tensor *by = random_tensor(d, t->type, chance(d, 50) ? 0 : t->rank, t->dims, 1, 6);
    int w = draft_tensor(d, chance(d, 60) ? LINE_CONSTANT : LINE_INPUT, by);
    switch (draw(d, 4)) {
    case 0: return add(d, "Div", true, 1, IN(v, w), "%s", "");
    case 1: return add(d, "Mod", true, 1, IN(v, w), "fmod = %u", draw(d, 2));
    case 2: return add(d, "BitShift", true, 1, IN(v, w), "direction = \"%s\"", chance(d, 50) ? "LEFT" : "RIGHT");
    default: return add(d, chance(d, 50) ? "BitwiseAnd" : chance(d, 50) ? "BitwiseOr" : "BitwiseXor", true, 1,
                        IN(v, partner(d, v, BRAID_TYPE_NONE, true)), "%s", "");
    }
}

static bool make_compare(draft *d) {
    static const char *const names[] = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
    static const char *const logic[] = {"And", "Or", "Xor"};
    if (chance(d, 30)) {
        int v = pick(d, BOOLS, 0, 5, true);
        return add(d, logic[draw(d, 3)], true, 1, IN(v, partner(d, v, BRAID_TYPE_NONE, true)), "%s", "");
    }
    int v = pick(d, NUMBERS, 0, 5, true);
    return add(d, names[draw(d, 5)], true, 1, IN(v, partner(d, v, BRAID_TYPE_NONE, true)), "%s", "");
}

static bool make_where(draft *d) {
    int v = pick(d, ANY, 0, 5, false), c = partner(d, v, BRAID_BOOL, true);
    return add(d, "Where", true, 1, IN(c, v, partner(d, v, BRAID_TYPE_NONE, false)), "%s", "");
}

static bool make_cast(draft *d) {
    braid_type to = random_type(d, ANY);
    int v = pick(d, ANY, 0, 6, !type_is_float(to));
    return add(d, "Cast", true, 1, IN(v), "to = %d", (int)to);
}

static bool make_clip(draft *d) {
    int v = pick(d, NUMBERS, 0, 5, false);
    braid_type t = type_of(d, v)->type;
    int low = draft_tensor(d, chance(d, 70) ? LINE_CONSTANT : LINE_INPUT, random_tensor(d, t, 0, NULL, 0, 2));
    int high = draft_tensor(d, LINE_CONSTANT, random_tensor(d, t, 0, NULL, 2, 5));
    if (chance(d, 40)) return add(d, "Clip", true, 1, IN(v, chance(d, 70) ? low : -1, high), "%s", "");
    int64_t one[1] = {type_of(d, v)->rank > 1 ? type_of(d, v)->dims[1] : 1};
    if (type_is_float(t) && chance(d, 50))
        return add(d, "PRelu", false, 1, IN(v, partner(d, v, BRAID_TYPE_NONE, false)), "%s", "");
    if (type_is_float(t) && type_of(d, v)->rank > 1) {
        int p[4];
        for (int i = 0; i < 4; i++)
            p[i] = draft_tensor(d, chance(d, 70) ? LINE_CONSTANT : LINE_INPUT, random_tensor(d, t, 1, one, 0.5, 2));
        return add(d, "BatchNormalization", false, 1, IN(v, p[0], p[1], p[2], p[3]), "%s", "");
    }
    return add(d, "Clip", true, 1, IN(v, low), "%s", "");
}

static bool make_pow(draft *d) {
    int v = pick(d, FLOATS, 0, 5, false);
    double e = (double[]){2, 3, 0.5, -1, 1, 0}[draw(d, 6)];
    return add(d, "Pow", false, 1,
               IN(v, draft_tensor(d, LINE_CONSTANT, random_tensor(d, type_of(d, v)->type, 0, NULL, e, e + 1e-9))), "%s",
               "");
}

/* A chain as activations are written: x * sigmoid(x), GELU, residuals. */
static bool make_chain(draft *d) {
    int v = pick(d, F32 | F16, 1, 5, false);
    if (!add(d, chance(d, 50) ? "Sigmoid" : "Tanh", false, 1, IN(v), "%s", "")) return false;
    if (!add(d, "Mul", false, 1, IN(v, d->n_values - 1), "%s", "")) return false;
    int x = d->n_values - 1;
    return add(d, "Add", false, 1, IN(x, partner(d, x, BRAID_TYPE_NONE, false)), "%s", "");
}

/* What may follow a product, a reduction or a normalisation: up to four elementwise nodes, with broadcast operands. */
static bool make_epilogue(draft *d) {
    static const char *const steps[] = {"Add",  "Mul",       "Sub", "Relu", "Sigmoid",
                                        "Tanh", "LeakyRelu", "Max", "Gelu", "Neg"};
    int root = d->n_values - 1, v = root;
    if (chance(d, 35)) return true;
    for (int n = 1 + (int)draw(d, 4); n > 0; n--) {
        uint32_t which = draw(d, COUNT_OF(steps));
        bool two = which < 3 || which == 7;
        int w = two ? chance(d, 15) ? root : partner(d, v, BRAID_TYPE_NONE, false) : -1;
        if (two ? !add(d, steps[which], which == 7, 1, IN(chance(d, 70) ? v : w, chance(d, 70) ? w : v), "%s", "")
                : !add(d, steps[which], which == 3 || which == 9, 1, IN(v), "%s", ""))
            return true;
        v = d->n_values - 1;
    }
    return true;
}

/* -------------------------------------------------------------------------------------------------- rows */

static int some_axes(draft *d, int v, int64_t *axes) {
    int rank = type_of(d, v)->rank, n = 0;
    for (int i = 0; i < rank; i++)
        if (chance(d, 45)) axes[n++] = chance(d, 50) ? i : i - rank;
    return n;
}

static bool make_reduce(draft *d) {
    static const char *const names[] = {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
                                        "ReduceLogSumExp", "ReduceSumSquare", "ReduceMax", "ReduceMin"};
    uint32_t which = draw(d, 10);
    int v = pick(d, which == 0 || which >= 7 ? FLOATS | I32 | I64 : FLOATS, 0, 6, false);
    int64_t axes[BRAID_MAX_RANK];
    int n = some_axes(d, v, axes), keep = (int)draw(d, 2);
    int64_t count = 0;
    if (which == 2 && (!tensor_type_count(type_of(d, v), &count) || count > 100))
        which = 0; /* its order decides over overflow */
    bool exact = which >= 8 || !type_is_float(type_of(d, v)->type);
    if (n == 0 || chance(d, 10)) return add(d, names[which], exact, 1, IN(v), "keepdims = %d", keep);
    return add(d, names[which], exact, 1, IN(v, ints(d, n, axes)), "keepdims = %d", keep);
}

static bool make_arg(draft *d) {
    int v = pick(d, FLOATS | INTS, 1, 5, true), axis = axis_of(d, v);
    if (chance(d, 50))
        return add(d, chance(d, 50) ? "ArgMax" : "ArgMin", true, 1, IN(v),
                   "axis = %d, keepdims = %u, select_last_index = %u", axis, draw(d, 2), draw(d, 2));
    int64_t dim = type_of(d, v)->dims[axis < 0 ? axis + type_of(d, v)->rank : axis];
    int64_t k = (int64_t)draw(d, (uint32_t)dim + 1);
    return add(d, "TopK", true, 2, IN(v, ints(d, 1, &k)), "axis = %d, largest = %u", axis, draw(d, 2));
}

static bool make_softmax(draft *d) {
    int v = pick(d, FLOATS, 1, 5, false), axis = axis_of(d, v);
    switch (draw(d, 4)) {
    case 0: return add(d, "LogSoftmax", false, 1, IN(v), "axis = %d", axis);
    case 1:
        return add(d, "CumSum", false, 1,
                   IN(v, draft_tensor(d, LINE_CONSTANT, random_tensor(d, BRAID_INT64, 0, NULL, axis, axis + 1))),
                   "exclusive = %u, reverse = %u", draw(d, 2), draw(d, 2));
    case 2: return add(d, "LpNormalization", false, 1, IN(v), "axis = %d, p = %u", axis, 1 + draw(d, 2));
    default: return add(d, "Softmax", false, 1, IN(v), "axis = %d", axis);
    }
}

static bool make_norm(draft *d) {
    int v = pick(d, FLOATS, 2, 5, false);
    const tensor_type *t = type_of(d, v);
    int axis = (int)draw(d, (uint32_t)t->rank);
    int scale = fresh(d, t->type, t->rank - axis, t->dims + axis, 60),
        bias = fresh(d, t->type, t->rank - axis, t->dims + axis, 60);
    int channel = fresh(d, t->type, 1, t->dims + 1, 60), shift = fresh(d, t->type, 1, t->dims + 1, 60);
    int64_t groups = t->dims[1] % 4 == 0 ? 4 : t->dims[1] % 2 == 0 ? 2 : 1;
    switch (draw(d, 6)) {
    case 0: return add(d, "LayerNormalization", false, 1, IN(v, scale, bias), "axis = %d", axis);
    case 1: return add(d, "LayerNormalization", false, 1, IN(v, scale), "axis = %d", axis - t->rank);
    case 2: return add(d, "RMSNormalization", false, 1, IN(v, scale), "axis = %d", axis);
    case 3:
        return add(d, "GroupNormalization", false, 1, IN(v, channel, shift), "num_groups = %lld", (long long)groups);
    case 4: return add(d, "LRN", false, 1, IN(v), "size = %u, alpha = 0.01", 1 + 2 * draw(d, 3));
    default: return add(d, "InstanceNormalization", false, 1, IN(v, channel, shift), "epsilon = 0.01");
    }
}

/* ------------------------------------------------------------------------------------------------ products */

static bool make_matmul(draft *d) {
    int v = pick(d, FLOATS | (chance(d, 10) ? I32 : 0), 1, 4, false);
    const tensor_type *t = type_of(d, v);
    int64_t dims[BRAID_MAX_RANK];
    int n = 0;
    for (int i = 0; i + 2 < t->rank; i++)
        if (n || chance(d, 70)) dims[n++] = chance(d, 70) ? t->dims[i] : 1;
    dims[n++] = t->dims[t->rank - 1];
    if (chance(d, 90)) dims[n++] = random_dim(d);
    return add(d, "MatMul", !type_is_float(t->type), 1, IN(v, fresh(d, t->type, n, dims, 60)), "%s", "");
}

static bool make_gemm(draft *d) {
    int v = pick(d, FLOATS, 2, 2, false), ta = (int)draw(d, 2), tb = (int)draw(d, 2);
    const tensor_type *t = type_of(d, v);
    int64_t k = t->dims[ta ? 0 : 1], m = t->dims[ta ? 1 : 0], n = random_dim(d);
    int w = fresh(d, t->type, 2, tb ? (int64_t[]){n, k} : (int64_t[]){k, n}, 60);
    int64_t bias[3][2] = {{m, n}, {1, n}, {m, 1}};
    int form = (int)draw(d, 5);
    int c = form < 3 ? fresh(d, t->type, 2, bias[form], 50) : form == 3 ? fresh(d, t->type, 1, &n, 50) : -1;
    return add(d, "Gemm", false, 1, IN(v, w, c), "transA = %d, transB = %d, alpha = %s, beta = %s", ta, tb,
               chance(d, 50) ? "1.0" : "0.5", chance(d, 50) ? "1.0" : "-2.0");
}

typedef struct window {
    char text[200];
    int64_t kernel[3];
} window;

static window random_window(draft *d, int n) {
    window w = {0};
    const char *names[] = {"kernel_shape", "strides", "dilations", "pads"};
    size_t at = 0;
    bool same = chance(d, 20);
    for (int part = 0; part < (same ? 2 : 4); part++) {
        at += (size_t)snprintf(w.text + at, sizeof w.text - at, "%s%s = [", part ? ", " : "", names[part]);
        for (int i = 0; i < (part == 3 ? 2 * n : n); i++) {
            int64_t x = part == 0 ? 1 + draw(d, 3) : part == 3 ? draw(d, 2) : chance(d, 65) ? 1 : 2;
            if (part == 0) w.kernel[i] = x;
            at += (size_t)snprintf(w.text + at, sizeof w.text - at, "%s%lld", i ? ", " : "", (long long)x);
        }
        at += (size_t)snprintf(w.text + at, sizeof w.text - at, "]");
    }
    if (same)
        snprintf(w.text + at, sizeof w.text - at, ", auto_pad = \"%s\"", chance(d, 50) ? "SAME_UPPER" : "SAME_LOWER");
    return w;
}

static bool make_conv(draft *d) {
    int v = pick(d, F32 | F16, 3, 5, false);
    const tensor_type *t = type_of(d, v);
    window w = random_window(d, t->rank - 2);
    int64_t c = t->dims[1], group = chance(d, 60) ? 1 : chance(d, 50) ? c : c % 2 == 0 ? 2 : 1;
    if (group < 1) group = 1;
    int64_t m = group * (1 + draw(d, group == 1 ? 17 : 3));
    bool back = chance(d, 25);
    int64_t dims[5] = {back ? c : m, back ? m / group : c / group, w.kernel[0], w.kernel[1], w.kernel[2]};
    bool specials = d->specials;
    d->specials = false; /* what an infinite weight does where it meets padding is nobody's promise */
    int filter = fresh(d, t->type, t->rank, dims, 70);
    d->specials = specials;
    int bias = chance(d, 60) ? fresh(d, t->type, 1, &m, 70) : -1;
    if (!add(d, back ? "ConvTranspose" : "Conv", false, 1, IN(v, filter, bias), "group = %lld, %s", (long long)group,
             w.text))
        return false;
    int y = d->n_values - 1;
    if (chance(d, 30)) add(d, "Relu", true, 1, IN(y), "%s", "");
    if (chance(d, 30)) add(d, "Add", false, 1, IN(d->n_values - 1, partner(d, y, BRAID_TYPE_NONE, false)), "%s", "");
    return true;
}

static bool make_pool(draft *d) {
    int v = pick(d, F32 | F16 | BF16, 3, 5, false);
    window w = random_window(d, type_of(d, v)->rank - 2);
    bool exact = d->values[v].exact;
    switch (draw(d, 6)) {
    case 0:
        return add(d, "AveragePool", false, 1, IN(v), "%s, count_include_pad = %u, ceil_mode = %u", w.text, draw(d, 2),
                   draw(d, 2));
    case 1: return add(d, "LpPool", false, 1, IN(v), "%s, p = %u", w.text, 1 + draw(d, 3));
    case 2: return add(d, chance(d, 50) ? "GlobalAveragePool" : "GlobalLpPool", false, 1, IN(v), "%s", "");
    case 3: return add(d, "GlobalMaxPool", true, 1, IN(v), "%s", "");
    default:
        return add(d, "MaxPool", true, exact && chance(d, 40) ? 2 : 1, IN(v), "%s, ceil_mode = %u", w.text, draw(d, 2));
    }
}

/* ------------------------------------------------------------------------------------------------ movement */

static bool make_view(draft *d) {
    int v = pick(d, ANY, 0, 6, false);
    const tensor_type *t = type_of(d, v);
    int64_t count = 1, dims[BRAID_MAX_RANK];
    for (int i = 0; i < t->rank; i++) count *= t->dims[i];
    int n = 0;
    switch (draw(d, 5)) {
    case 0: return add(d, "Flatten", true, 1, IN(v), "axis = %d", axis_of(d, v));
    case 1:
        for (int i = 0; i < t->rank; i++)
            if (t->dims[i] == 1 && chance(d, 70)) dims[n++] = i;
        return add(d, "Squeeze", true, 1, IN(v, ints(d, n, dims)), "%s", "");
    case 2:
        dims[0] = (int64_t)draw(d, (uint32_t)t->rank + 1);
        return add(d, "Unsqueeze", true, 1, IN(v, ints(d, 1, dims)), "%s", "");
    default:
        for (int64_t f = 2; count > 0 && n < 4; f = 2 + draw(d, 7))
            if (chance(d, 25)) dims[n++] = 1;
            else if (count % f == 0) dims[n++] = f, count /= f;
            else if (chance(d, 40)) break;
        dims[n++] = chance(d, 60) && count ? -1 : count;
        return add(d, "Reshape", true, 1, IN(v, ints(d, n, dims)), "%s", "");
    }
}

static bool make_transpose(draft *d) {
    int v = pick(d, ANY, 2, 6, false), rank = type_of(d, v)->rank, p[BRAID_MAX_RANK];
    char list[64] = "";
    for (int i = 0; i < rank; i++) p[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int j = (int)draw(d, (uint32_t)i + 1), x = p[i];
        p[i] = p[j], p[j] = x;
    }
    for (int i = 0; i < rank; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", i ? ", " : "", p[i]);
    return add(d, "Transpose", true, 1, IN(v), "perm = [%s]", list);
}

static bool make_concat(draft *d) {
    int v = pick(d, ANY, 1, 5, false), axis = chance(d, 60) ? 0 : axis_of(d, v), n = 1 + (int)draw(d, 4), in[5] = {v};
    const tensor_type *t = type_of(d, v);
    int at = axis < 0 ? axis + t->rank : axis;
    for (int k = 1; k < n; k++) {
        int other = -1;
        for (int tries = 0; tries < 10 && other < 0; tries++) {
            int w = (int)draw(d, (uint32_t)d->n_values);
            bool fits = type_of(d, w)->type == t->type && type_of(d, w)->rank == t->rank;
            for (int i = 0; fits && i < t->rank; i++) fits = i == at || type_of(d, w)->dims[i] == t->dims[i];
            if (fits) other = w;
        }
        int64_t dims[BRAID_MAX_RANK];
        memcpy(dims, t->dims, sizeof dims);
        dims[at] = random_dim(d);
        in[k] = other >= 0 ? other : fresh(d, t->type, t->rank, dims, 30);
    }
    if (n > 1 && chance(d, 30)) in[draw(d, (uint32_t)n)] = v;
    for (int k = 0; k < n; k++) /* parts that this plan makes, so that they may be written in place */
        if (chance(d, 40) && mask_of(t->type) & NUMBERS && add(d, "Relu", true, 1, IN(in[k]), "%s", ""))
            in[k] = d->n_values - 1;
    return add(d, "Concat", true, 1, n, in, "axis = %d", axis);
}

static bool make_split(draft *d) {
    int v = pick(d, ANY, 1, 5, false), axis = chance(d, 60) ? 0 : axis_of(d, v), n = 1 + (int)draw(d, 3);
    int64_t dim = type_of(d, v)->dims[axis < 0 ? axis + type_of(d, v)->rank : axis], parts[3];
    if (chance(d, 30)) return add(d, "Split", true, n, IN(v), "axis = %d, num_outputs = %d", axis, n);
    for (int i = 0; i < n; i++) {
        parts[i] = i == n - 1 ? dim : (int64_t)draw(d, (uint32_t)dim + 1);
        dim -= parts[i];
    }
    return add(d, "Split", true, n, IN(v, ints(d, n, parts)), "axis = %d", axis);
}

static bool make_slice(draft *d) {
    int v = pick(d, ANY, 1, 5, false), n = 0;
    int64_t starts[6], ends[6], axes[6], steps[6];
    for (int i = 0; i < type_of(d, v)->rank && i < 6; i++) {
        int64_t dim = type_of(d, v)->dims[i];
        if (chance(d, 40)) continue;
        axes[n] = chance(d, 50) ? i : i - type_of(d, v)->rank;
        steps[n] = (int64_t[]){1, 1, 1, 2, -1, -2, 3}[draw(d, 7)];
        int64_t a = (int64_t)draw(d, (uint32_t)dim + 1), b = (int64_t)draw(d, (uint32_t)dim + 2);
        starts[n] = steps[n] > 0 ? (a < b ? a : b) : (a < b ? b : a);
        ends[n] = steps[n] > 0 ? (chance(d, 30) ? INT64_MAX : a < b ? b : a)
                               : (chance(d, 50) ? INT64_MIN : a < b ? a : b);
        n++;
    }
    if (!n) return false;
    return add(d, "Slice", true, 1, IN(v, ints(d, n, starts), ints(d, n, ends), ints(d, n, axes), ints(d, n, steps)),
               "%s", "");
}

static int indices(draft *d, int64_t dim, int rank, const int64_t *dims) {
    int64_t least = chance(d, 50) ? -dim : 0;
    braid_type t = chance(d, 70) ? BRAID_INT64 : BRAID_INT32;
    return draft_tensor(d, chance(d, 40) ? LINE_CONSTANT : LINE_INPUT,
                        random_tensor(d, t, rank, dims, (double)least, (double)dim));
}

static bool make_gather(draft *d) {
    int v = pick(d, ANY, 1, 5, false), axis = axis_of(d, v);
    const tensor_type *t = type_of(d, v);
    int at = axis < 0 ? axis + t->rank : axis;
    int64_t dims[BRAID_MAX_RANK], dim = t->dims[at];
    if (dim == 0) return false;
    switch (draw(d, 4)) {
    case 0: case 1: {
        int rank = random_shape(d, 0, 2, dims);
        return add(d, "Gather", true, 1, IN(v, indices(d, dim, rank, dims)), "axis = %d", axis);
    }
    case 2:
        memcpy(dims, t->dims, sizeof dims);
        dims[at] = 1 + draw(d, 6);
        return add(d, "GatherElements", true, 1, IN(v, indices(d, dim, t->rank, dims)), "axis = %d", axis);
    default:
        dims[0] = 1 + draw(d, 5), dims[1] = 1;
        return add(d, "GatherND", true, 1, IN(v, indices(d, t->dims[0] ? t->dims[0] : 1, 2, dims)), "%s", "");
    }
}

static bool make_scatter(draft *d) {
    int v = pick(d, FLOATS | I32 | I64, 1, 4, false), axis = axis_of(d, v);
    const tensor_type *t = type_of(d, v);
    int at = axis < 0 ? axis + t->rank : axis;
    int64_t dims[BRAID_MAX_RANK], dim = t->dims[at];
    if (dim == 0) return false;
    memcpy(dims, t->dims, sizeof dims);
    dims[at] = 1;
    static const char *const kinds[] = {"add", "mul", "max", "min", "none"};
    uint32_t kind = draw(d, 5);
    int where = indices(d, dim, t->rank, dims), what = fresh(d, t->type, t->rank, dims, 20);
    return add(d, "ScatterElements", kind >= 2 || !type_is_float(t->type), 1, IN(v, where, what),
               "axis = %d, reduction = \"%s\"", axis, kinds[kind]);
}

static bool make_pad(draft *d) {
    int v = pick(d, ANY, 1, 5, false), rank = type_of(d, v)->rank;
    static const char *const modes[] = {"constant", "constant", "reflect", "edge", "wrap"};
    const char *mode = modes[draw(d, 5)];
    int64_t pads[2 * BRAID_MAX_RANK];
    for (int i = 0; i < 2 * rank; i++)
        pads[i] = chance(d, 50) ? 0 : (int64_t)draw(d, 4) - (mode[0] == 'c' && chance(d, 20) ? 2 : 0);
    int by = ints(d, 2 * rank, pads);
    if (mode[0] != 'c' || chance(d, 50)) return add(d, "Pad", true, 1, IN(v, by), "mode = \"%s\"", mode);
    return add(d, "Pad", true, 1,
               IN(v, by, draft_tensor(d, LINE_CONSTANT, random_tensor(d, type_of(d, v)->type, 0, NULL, 0, 3))),
               "mode = \"constant\"");
}

static bool make_repeat(draft *d) {
    int v = pick(d, ANY, 0, 5, false), rank = type_of(d, v)->rank;
    int64_t dims[BRAID_MAX_RANK];
    int lead = (int)draw(d, 2);
    if (chance(d, 50)) {
        for (int i = 0; i < rank; i++) dims[i] = chance(d, 60) ? 1 : 1 + draw(d, 3);
        return rank && add(d, "Tile", true, 1, IN(v, ints(d, rank, dims)), "%s", "");
    }
    for (int i = 0; i < lead; i++) dims[i] = 1 + draw(d, 3);
    for (int i = 0; i < rank; i++)
        dims[lead + i] = type_of(d, v)->dims[i] == 1 && chance(d, 60) ? random_dim(d) : type_of(d, v)->dims[i];
    return add(d, "Expand", true, 1, IN(v, ints(d, rank + lead, dims)), "%s", "");
}

static bool make_resize(draft *d) {
    int v = pick(d, F32 | F16, 3, 4, false), rank = type_of(d, v)->rank;
    if (rank == 4 && chance(d, 30))
        return add(d, chance(d, 50) ? "DepthToSpace" : "SpaceToDepth", true, 1, IN(v), "blocksize = 2");
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const places[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
    int64_t sizes[BRAID_MAX_RANK];
    for (int i = 0; i < rank; i++) sizes[i] = i < 2 ? type_of(d, v)->dims[i] : 1 + draw(d, 12);
    uint32_t mode = draw(d, 3);
    return add(d, "Resize", mode == 0, 1, IN(v, -1, -1, ints(d, rank, sizes)),
               "mode = \"%s\", coordinate_transformation_mode = \"%s\"", modes[mode], places[draw(d, 4)]);
}

static bool make_other(draft *d) {
    int v = pick(d, NUMBERS, 2, 4, false);
    const tensor_type *t = type_of(d, v);
    switch (draw(d, 6)) {
    case 0: return add(d, "Trilu", true, 1, IN(v), "upper = %u", draw(d, 2));
    case 1: return add(d, "Shape", true, 1, IN(v), "start = %u", draw(d, 2));
    case 2: return add(d, "Size", true, 1, IN(v), "%s", "");
    case 3: return add(d, "NonZero", true, 1, IN(pick(d, NUMBERS | BOOLS, 1, 3, true)), "%s", "");
    case 4: {
        int64_t depth = 1 + draw(d, 6);
        int hot = pick(d, I32 | I64, 0, 3, true);
        return add(d, "OneHot", true, 1, IN(hot, ints(d, 1, &depth), fresh(d, BRAID_FLOAT32, 1, (int64_t[]){2}, 80)),
                   "axis = -1");
    }
    default: {
        int64_t lengths = t->dims[0];
        int by = fresh(d, BRAID_BOOL, 1, &lengths, 50);
        return add(d, "Compress", true, 1, IN(v, by), "axis = 0");
    }
    }
}

/* A shape computed at run time: Shape, some of it changed, Reshape or Expand by it. */
static bool make_follow(draft *d) {
    int v = pick(d, F32, 1, 4, false);
    if (!add(d, "Shape", true, 1, IN(v), "%s", "")) return false;
    int s = d->n_values - 1, w = pick(d, F32, 1, 4, false);
    if (chance(d, 50)) return add(d, "ConstantOfShape", true, 1, IN(s), "%s", "");
    int64_t one = -1;
    if (chance(d, 50)) return add(d, "Expand", true, 1, IN(fresh(d, BRAID_FLOAT32, 0, NULL, 10), s), "%s", "");
    (void)w;
    if (!add(d, "Gather", true, 1, IN(s, ints(d, 1, (int64_t[]){0})), "axis = 0")) return false;
    if (!add(d, "Concat", true, 1, IN(d->n_values - 1, ints(d, 1, &one)), "axis = 0")) return false;
    return add(d, "Reshape", true, 1, IN(v, d->n_values - 1), "%s", "");
}

/* A step that no kernel takes, and what stood before it read again behind it. */
static bool make_bridge(draft *d) {
    int v = pick(d, F32, 1, 4, false);
    int64_t count = 1;
    for (int i = 0; i < type_of(d, v)->rank; i++) count *= type_of(d, v)->dims[i];
    if (count % 4) v = fresh(d, BRAID_FLOAT32, 2, (int64_t[]){2 + 2 * draw(d, 2), 2}, 0);
    if (!add(d, "Reshape", true, 1, IN(v, ints(d, 3, (int64_t[]){-1, 2, 2})), "%s", "")) return false;
    int matrices = d->n_values - 1;
    if (!add(d, "Det", false, 1, IN(matrices), "%s", "")) return false;
    int det = d->n_values - 1;
    if (!add(d, "Unsqueeze", true, 1, IN(det, ints(d, 2, (int64_t[]){1, 2})), "%s", "")) return false;
    return add(d, chance(d, 50) ? "Add" : "Max", true, 1, IN(matrices, d->n_values - 1), "%s", "");
}

static bool make_rows(draft *d) {
    int v = pick(d, FLOATS, 1, 5, false), axis = axis_of(d, v);
    switch (draw(d, 5)) {
    case 0: return add(d, "Hardmax", true, 1, IN(pick(d, FLOATS, 1, 4, true)), "axis = -1");
    case 1: return add(d, "MeanVarianceNormalization", false, 1, IN(v), "axes = [%d]", axis);
    case 2: return add(d, "Dropout", true, 1, IN(v), "%s", "");
    case 3:
        return add(d, "SwiGLU", false, 1,
                   IN(v, fresh(d, type_of(d, v)->type, type_of(d, v)->rank, type_of(d, v)->dims, 20)), "%s", "");
    default: return add(d, "Tan", false, 1, IN(v), "%s", "");
    }
}

static bool make_places(draft *d) {
    int v = pick(d, FLOATS | I32 | I64, 2, 4, false);
    const tensor_type *t = type_of(d, v);
    int64_t dims[BRAID_MAX_RANK], n = 1 + draw(d, 5);
    if (t->dims[0] == 0 || t->dims[1] == 0) return false;
    switch (draw(d, 4)) {
    case 0:
        dims[0] = n, dims[1] = 1;
        int where = indices(d, t->dims[0], 2, dims);
        for (int i = 1; i < t->rank; i++) dims[i] = t->dims[i];
        return add(d, "ScatterND", true, 1, IN(v, where, fresh(d, t->type, t->rank, dims, 20)), "reduction = \"%s\"",
                   chance(d, 50) ? "max" : "none");
    case 1:
        dims[0] = t->dims[0], dims[1] = 1;
        return add(d, "GatherND", true, 1, IN(v, indices(d, t->dims[1], 2, dims)), "batch_dims = 1");
    case 2: {
        tensor *lengths = random_tensor(d, BRAID_INT64, 1, &t->dims[1], 1, (double)t->dims[0] + 1);
        return add(d, "ReverseSequence", true, 1, IN(v, draft_tensor(d, LINE_INPUT, lengths)),
                   "time_axis = 0, batch_axis = 1");
    }
    default:
        for (int i = 0; i < t->rank; i++) dims[i] = 1 + draw(d, 9);
        return add(d, "CenterCropPad", true, 1, IN(v, ints(d, t->rank, dims)), "%s", "");
    }
}

static bool make_einsum(draft *d) {
    static const char *const equations[] = {"ij,jk->ik", "ij,kj->ki",  "ij,ij->i", "ij,ij->",
                                            "ij,jk",     "ij,jk->kij", "ij,jk->j"};
    int v = pick(d, FLOATS, 2, 2, false);
    const tensor_type *t = type_of(d, v);
    uint32_t which = draw(d, COUNT_OF(equations));
    int64_t k = random_dim(d), dims[2] = {which == 1 ? k : which == 2 || which == 3 ? t->dims[0] : t->dims[1],
                                          which >= 1 && which <= 3 ? t->dims[1] : k};
    return add(d, "Einsum", false, 1, IN(v, fresh(d, t->type, 2, dims, 50)), "equation = \"%s\"", equations[which]);
}

static bool make_generated(draft *d) {
    int v = pick(d, NUMBERS, 2, 2, false);
    switch (draw(d, 4)) {
    case 0: return add(d, "EyeLike", true, 1, IN(v), "k = %d", (int)draw(d, 5) - 2);
    case 1: {
        int p[3];
        for (int i = 0; i < 3; i++)
            p[i] = draft_tensor(d, chance(d, 50) ? LINE_CONSTANT : LINE_INPUT,
                                random_tensor(d, BRAID_INT64, 0, NULL, i == 1 ? 5 : 1, i == 1 ? 40 : 4));
        return add(d, "Range", true, 1, IN(p[0], p[1], p[2]), "%s", "");
    }
    case 2: return add(d, "CastLike", true, 1, IN(pick(d, ANY, 0, 4, true), v), "%s", "");
    default:
        return add(d, "BitCast", true, 1, IN(pick(d, d->specials ? I32 : F32 | I32, 0, 4, true)), "to = %d",
                   chance(d, 50) ? (int)BRAID_INT32 : (int)BRAID_UINT32);
    }
}

static bool make_sample(draft *d) {
    int v = pick(d, F32, 4, 4, false);
    const tensor_type *t = type_of(d, v);
    static const char *const modes[] = {"linear", "nearest", "cubic"}, *const paddings[] = {"zeros", "border",
                                                                                            "reflection"};
    int64_t dims[4] = {t->dims[0], 1 + draw(d, 6), 1 + draw(d, 6), 2};
    int grid = draft_tensor(d, LINE_INPUT, random_tensor(d, t->type, 4, dims, -1.2, 1.2));
    return add(d, "GridSample", false, 1, IN(v, grid), "mode = \"%s\", padding_mode = \"%s\", align_corners = %u",
               modes[draw(d, 2) * 2], paddings[draw(d, 3)], draw(d, 2));
}

static bool make_product(draft *d) { return (chance(d, 50) ? make_matmul(d) : make_gemm(d)) && make_epilogue(d); }
static bool make_conv_chain(draft *d) { return make_conv(d) && make_epilogue(d); }
static bool make_reduce_chain(draft *d) { return make_reduce(d) && make_epilogue(d); }
static bool make_norm_chain(draft *d) { return make_norm(d) && make_epilogue(d); }

static const struct {
    bool (*make)(draft *);
    int weight;
} makers[] = {
    {make_unary, 9},     {make_unary_exact, 8}, {make_arithmetic, 14}, {make_variadic, 3},     {make_integer, 4},
    {make_compare, 4},   {make_where, 3},       {make_cast, 5},        {make_clip, 4},         {make_pow, 2},
    {make_chain, 4},     {make_reduce, 8},      {make_arg, 3},         {make_softmax, 4},      {make_norm, 4},
    {make_matmul, 5},    {make_gemm, 4},        {make_conv, 8},        {make_pool, 4},         {make_view, 10},
    {make_transpose, 6}, {make_concat, 9},      {make_split, 8},       {make_slice, 5},        {make_gather, 5},
    {make_scatter, 2},   {make_pad, 3},         {make_repeat, 4},      {make_resize, 3},       {make_other, 4},
    {make_follow, 3},    {make_rows, 3},        {make_places, 4},      {make_einsum, 2},       {make_generated, 3},
    {make_sample, 1},    {make_product, 6},     {make_conv_chain, 4},  {make_reduce_chain, 4}, {make_norm_chain, 4},
    {make_bridge, 3}};

static bool (*random_maker(draft *d))(draft *) {
    int total = 0;
    for (size_t i = 0; i < COUNT_OF(makers); i++) total += makers[i].weight;
    int at = (int)draw(d, (uint32_t)total);
    for (size_t i = 0;; i++)
        if ((at -= makers[i].weight) < 0) return makers[i].make;
}

/* Inputs and constants that no node took. */
static void drop_unused(draft *d) {
    int n = 0;
    for (int i = 0; i < d->n_lines; i++)
        if (d->lines[i].kind == LINE_NODE || d->values[d->lines[i].out[0]].uses) d->lines[n++] = d->lines[i];
    d->n_lines = n;
}

void draft_make(draft *d, uint64_t seed, int nodes) {
    arena *memory = d->memory;
    *d = (draft){.seed = seed, .memory = memory, .state = seed * 0x9e3779b97f4a7c15u + 1};
    for (int i = 0; i < 4; i++) draw(d, 2);
    d->specials = chance(d, 10);
    d->symbolic = chance(d, 30);
    int wanted = 1 + (int)draw(d, (uint32_t)nodes);
    int64_t dims[BRAID_MAX_RANK];
    int rank = random_shape(d, 1, 5, dims);
    fresh(d, random_type(d, NUMBERS), rank, dims, 0);
    for (int tries = 0; tries < 4 * nodes && d->n_nodes < wanted && d->n_lines + 12 < DRAFT_LINES; tries++)
        random_maker(d)(d);
    drop_unused(d);
    draft_finish(d);
}
