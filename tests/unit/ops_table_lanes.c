/*
 * ops_table_lanes.c: every row of the operator table with lanes: random shapes, types and shared inputs, L in {2, 7,
 * 64}, bit for bit what each lane alone gives. A row that takes no inputs of one type and shape with default attributes
 * has a line here; one that runs in neither way fails. The families' own cases run with lanes too (ctest -R ^lanes).
 * labels: quick
 */
#include "ops_gpu.h"

#include "ops/op.h"

typedef struct line {
    const char *op, *source;
    double lo, hi; /* of every input */
} line;

static const line lines[] = {
    {"DepthToSpace", "graph t(x: float32[1,8,2,3]) { y = DepthToSpace(x) {blocksize = 2} } -> y", -3, 3},
    {"SpaceToDepth", "graph t(x: float16[1,3,4,6]) { y = SpaceToDepth(x) {blocksize = 2} } -> y", -3, 3},
    {"Concat", "graph t(x: float32[2,3,4], z: float32[2,1,4]) { y = Concat(x, z, x) {axis = 1} } -> y", -3, 3},
    {"Concat", "graph t(x: int8[1,5], z: int8[1,7]) { y = Concat(x, z) {axis = 1} } -> y", -9, 9},
    {"Slice",
     "graph t(x: float32[6,5]) { a: int64[1] = constant {4} b: int64[1] = constant {-9} c: int64[1] = constant "
     "{0} d: int64[1] = constant {-2} y = Slice(x, a, b, c, d) } -> y",
     -3, 3},
    {"Slice", "graph t(x: float32[6,5], a: int64[1]) { b: int64[1] = constant {6} y = Slice(x, a, b) } -> y", 0, 3},
    {"Gather", "graph t(x: float32[9,4], i: int64[5]) { y = Gather(x, i) } -> y", -4, 4},
    {"Gather", "graph t(x: float16[3,7], i: int32[]) { y = Gather(x, i) {axis = 1} } -> y", 0, 7},
    {"GatherElements", "graph t(x: float32[5,3], i: int64[4,3]) { y = GatherElements(x, i) } -> y", -5, 5},
    {"GatherND", "graph t(x: float32[3,3,6], i: int64[4,2]) { y = GatherND(x, i) } -> y", -3, 3},
    {"ScatterElements",
     "graph t(x: float32[4,6], i: int64[3,6], u: float32[3,6]) { y = ScatterElements(x, i, u) "
     "{reduction = \"add\"} } -> y",
     -4, 4},
    {"ScatterND", "graph t(x: float32[5,4], i: int64[3,1], u: float32[3,4]) { y = ScatterND(x, i, u) } -> y", -5, 5},
    {"TensorScatter",
     "graph t(x: float32[2,3,8,4], u: float32[2,3,3,4], i: int64[2]) { y = TensorScatter(x, u, i) } -> y", 0, 5},
    {"CumSum", "graph t(x: float32[3,40]) { a: int64[] = constant {1} y = CumSum(x, a) {reverse = 1} } -> y", -3, 3},
    {"CumSum", "graph t(x: float32[7,5], a: int64[]) { y = CumSum(x, a) } -> y", -2, 2},
    {"CumProd", "graph t(x: float32[7,5], a: int64[]) { y = CumProd(x, a) } -> y", 0, 2},
    {"TopK", "graph t(x: float32[3,30]) { k: int64[1] = constant {4} y, z = TopK(x, k) } -> y, z", -4, 4},
    {"TopK", "graph t(x: float32[3,9], k: int64[1]) { y, z = TopK(x, k) } -> y, z", 1, 4},
    {"InstanceNormalization",
     "graph t(x: float32[2,3,5,4], s: float32[3], b: float32[3]) { y = InstanceNormalization(x, s, b) } -> y", 0.1, 2},
    {"GroupNormalization",
     "graph t(x: float32[2,4,5,4], s: float32[4], b: float32[4]) { y = GroupNormalization(x, s, b) "
     "{num_groups = 2} } -> y",
     0.1, 2},
    {"LRN", "graph t(x: float32[2,5,4,4]) { y = LRN(x) {size = 3} } -> y", -3, 3},
    {"NegativeLogLikelihoodLoss",
     "graph t(x: float32[3,5,7], t: int64[3,7], w: float32[5]) { y = NegativeLogLikelihoodLoss(x, t, w) } -> y", 0, 5},
    {"SoftmaxCrossEntropyLoss",
     "graph t(x: float32[3,5], t: int64[3]) { y, z = SoftmaxCrossEntropyLoss(x, t) } -> y, z", 0, 5},
    {"Det", "graph t(x: float32[2,3,3]) { y = Det(x) } -> y", -3, 3},
    {"MaxPool", "graph t(x: float32[1,2,9,9]) { y, z = MaxPool(x) {kernel_shape = [3, 3], strides = [2, 2]} } -> y, z",
     -3, 3},
    {"AveragePool",
     "graph t(x: float32[1,2,9,9]) { y = AveragePool(x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]} } -> y", -3, 3},
    {"LpPool", "graph t(x: float32[1,2,9]) { y = LpPool(x) {kernel_shape = [3]} } -> y", -3, 3},
    {"Resize",
     "graph t(x: float32[1,2,5,6]) { s: float32[4] = constant {1, 1, 2, 0.5} y = Resize(x, -, s) {mode = \"linear\"} } "
     "-> y",
     -3, 3},
    {"Resize", "graph t(x: float32[1,2,5,6], s: int64[4]) { y = Resize(x, -, -, s) } -> y", 1, 4},
    {"GridSample", "graph t(x: float32[2,3,5,6], g: float32[2,4,3,2]) { y = GridSample(x, g) } -> y", -1.2, 1.2},
    {"AffineGrid", "graph t(x: float32[2,2,3]) { s: int64[4] = constant {2, 1, 5, 6} y = AffineGrid(x, s) } -> y", -1,
     1},
    {"MatMul", "graph t(a: float32[1,33], b: float32[33,17]) { y = MatMul(a, b) } -> y", -2, 2},
    {"MatMul", "graph t(a: float32[3,5,8], b: float32[8,4]) { y = MatMul(a, b) } -> y", -2, 2},
    {"MatMul", "graph t(a: float32[70,130], b: float32[130,70]) { y = MatMul(a, b) } -> y", -2, 2},
    {"MatMul", "graph t(a: float16[6,40], b: float16[40,24]) { y = MatMul(a, b) } -> y", -2, 2},
    {"Gemm",
     "graph t(a: float32[20,6], b: float32[9,20], c: float32[9]) { y = Gemm(a, b, c) {transA = 1, transB = 1, alpha = "
     "0.5} } -> y",
     -2, 2},
    {"Conv",
     "graph t(x: float32[1,3,9,7], w: float32[5,3,3,3], b: float32[5]) { y = Conv(x, w, b) {pads = [1, 1, 1, 1], "
     "strides = [2, 1]} } -> y",
     -2, 2},
    {"Conv", "graph t(x: float32[1,6,8,8], w: float32[6,1,3,3]) { y = Conv(x, w) {group = 6} } -> y", -2, 2},
    {"Conv", "graph t(x: float16[2,8,5,5], w: float16[16,8,1,1]) { m = Conv(x, w) y = Relu(m) } -> y", -2, 2},
    {"ConvTranspose",
     "graph t(x: float32[1,2,5,5], w: float32[2,3,3,3]) { y = ConvTranspose(x, w) {strides = [2, 2]} } -> y", -2, 2},
    {"BitShift", "graph t(x: uint32[3,5], s: uint32[5]) { y = BitShift(x, s) {direction = \"LEFT\"} } -> y", 0, 9},
    {"BatchNormalization",
     "graph t(x: float32[2,3,4], s: float32[3], b: float32[3], m: float32[3], v: float32[3]) { "
     "y = BatchNormalization(x, s, b, m, v) } -> y",
     0.1, 2},
    {"Clip", "graph t(x: float32[3,4], a: float32[], b: float32[]) { y = Clip(x, a, b) } -> y", -3, 3},
    {"Dropout", "graph t(x: float32[3,4]) { y, m = Dropout(x) } -> y, m", -3, 3},
    {"Cast", "graph t(x: float32[3,40]) { y = Cast(x) {to = 7} z = Cast(x) {to = 10} } -> y, z", -90, 90},
    {"BitCast", "graph t(x: float32[3,40]) { y = BitCast(x) {to = 6} } -> y", -90, 90},
    {"Where", "graph t(c: bool[4,1], x: float32[4,6], z: float32[6]) { y = Where(c, x, z) } -> y", -3, 3},
    {"Squeeze", "graph t(x: float32[1,3,1,4]) { y = Squeeze(x) z = Relu(y) } -> z", -3, 3},
    {"Tile", "graph t(x: float32[2,3], r: int64[2]) { y = Tile(x, r) } -> y", 2, 3},
    {"Split", "graph t(x: float32[2,6]) { n: int64[2] = constant {2, 4} y, z = Split(x, n) {axis = 1} } -> y, z", -3,
     3},
    {"Pad", "graph t(x: float32[2,3], c: float32[]) { p: int64[4] = constant {1, 0, 0, 2} y = Pad(x, p, c) } -> y", -3,
     3},
    {"Pad", "graph t(x: float32[4,5], p: int64[4]) { y = Pad(x, p) {mode = \"reflect\"} } -> y", 1, 2},
    {"MeanVarianceNormalization", "graph t(x: float32[2,3,4,5]) { y = MeanVarianceNormalization(x) } -> y", -3, 3},
    {"Col2Im",
     "graph t(x: float32[1,12,6]) { i: int64[2] = constant {4, 5} b: int64[2] = constant {2, 3} y = Col2Im(x, i, b) "
     "{strides = [1, 2]} } -> y",
     -3, 3},
    {"CenterCropPad", "graph t(x: float32[5,6,7]) { s: int64[3] = constant {8, 3, 7} y = CenterCropPad(x, s) } -> y",
     -3, 3},
    {"ReduceMean", "graph t(x: float32[3,4,5], a: int64[1]) { y = ReduceMean(x, a) } -> y", 0, 2},
    {"ReduceSum", "graph t(x: float32[3,4,5]) { a: int64[1] = constant {1} y = ReduceSum(x, a) } -> y", 0.5, 2},
    {"ReduceMax",
     "graph t(x: float32[3,4,5]) { a: int64[2] = constant {0, 2} y = ReduceMax(x, a) {keepdims = 0} } -> y", 0.5, 2},
    {"ReduceMin", "graph t(x: float32[3,40,5]) { a: int64[1] = constant {1} y = ReduceMin(x, a) } -> y", 0.5, 2},
    {"ReduceProd", "graph t(x: float32[3,4,5]) { a: int64[1] = constant {-1} y = ReduceProd(x, a) } -> y", 0.5, 2},
    {"ReduceL1", "graph t(x: float32[3,7,5]) { a: int64[1] = constant {0} y = ReduceL1(x, a) } -> y", 0.5, 2},
    {"ReduceL2", "graph t(x: float32[3,4,5]) { a: int64[3] = constant {0, 1, 2} y = ReduceL2(x, a) } -> y", 0.5, 2},
    {"ReduceLogSum", "graph t(x: float32[3,4,5]) { a: int64[1] = constant {1} y = ReduceLogSum(x, a) } -> y", 0.5, 2},
    {"ReduceLogSumExp", "graph t(x: float32[3,4,5]) { a: int64[1] = constant {2} y = ReduceLogSumExp(x, a) } -> y", 0.5,
     2},
    {"ReduceSumSquare", "graph t(x: float32[3,33,5]) { a: int64[2] = constant {1, 2} y = ReduceSumSquare(x, a) } -> y",
     0.5, 2},
    {"Reshape",
     "graph t(x: float32[1,85,2,2]) { s: int64[3] = constant {1, 85, -1} y = Reshape(x, s) z = Relu(y) } -> z", -3, 3},
    {"Expand", "graph t(x: float32[3,1], s: int64[2]) { y = Expand(x, s) } -> y", 3, 4},
    {"Range", "graph t(a: int64[], b: int64[]) { d: int64[] = constant {1} y = Range(a, b, d) } -> y", 2, 4},
    {"OneHot", "graph t(x: int64[3,4], v: float32[2]) { d: int64[] = constant {5} y = OneHot(x, d, v) } -> y", -4, 4},
    {"ReverseSequence", "graph t(x: float32[4,3,2], l: int64[3]) { y = ReverseSequence(x, l) } -> y", 1, 5},
    {"Compress", "graph t(x: float32[9], c: bool[9]) { y = Compress(x, c) {axis = 0} } -> y", -3, 3},
    {"NonMaxSuppression",
     "graph t(b: float32[1,9,4], s: float32[1,2,9]) { k: int64[] = constant {3} t: float32[] = constant {0.4} "
     "y = NonMaxSuppression(b, s, k, t) } -> y",
     0, 3},
    {"RoiAlign",
     "graph t(x: float32[2,3,9,11], r: float32[3,4], b: int64[3]) { y = RoiAlign(x, r, b) {output_height = 2, "
     "output_width = 3} } -> y",
     0, 2},
    {"MaxRoiPool",
     "graph t(x: float32[2,3,9,11], r: float32[3,5]) { y = MaxRoiPool(x, r) {pooled_shape = [2, 2]} } -> y", 0, 2},
    {"MaxUnpool",
     "graph t(x: float32[1,2,6,6]) { a, i = MaxPool(x) {kernel_shape = [2, 2], strides = [2, 2]} "
     "y = MaxUnpool(a, i) {kernel_shape = [2, 2], strides = [2, 2]} } -> y",
     -3, 3},
    {"HannWindow", "graph t(n: int64[]) { y = HannWindow(n) } -> y", 5, 6},
    {"HammingWindow", "graph t(n: int64[]) { y = HammingWindow(n) } -> y", 5, 6},
    {"BlackmanWindow", "graph t(n: int64[]) { y = BlackmanWindow(n) } -> y", 5, 7},
    {"MelWeightMatrix",
     "graph t(l: float32[]) { n: int64[] = constant {4} d: int64[] = constant {16} r: int64[] = constant {8000} "
     "h: float32[] = constant {4000} y = MelWeightMatrix(n, d, r, l, h) } -> y",
     0, 50},
    {"DFT", "graph t(x: float32[1,12,1]) { y = DFT(x) } -> y", -3, 3},
    {"STFT", "graph t(x: float32[1,32,1], w: float32[8]) { n: int64[] = constant {4} y = STFT(x, n, w) } -> y", -3, 3},
    {"Einsum", "graph t(a: float32[2,3,4], b: float32[2,4,5]) { y = Einsum(a, b) {equation = \"bij,bjk->bik\"} } -> y",
     -3, 3},
};

static const braid_type types[] = {BRAID_FLOAT32,  BRAID_FLOAT16, BRAID_INT64,  BRAID_FLOAT32,
                                   BRAID_BFLOAT16, BRAID_INT32,   BRAID_BOOL,   BRAID_UINT8,
                                   BRAID_FLOAT64,  BRAID_INT8,    BRAID_UINT32, BRAID_INT16};

static uint32_t below(uint32_t n) {
    return (uint32_t)(ops_uniform() * n);
}

/* What each lane holds is drawn from [lo, hi). */
static void run_source(const char *source, const braid_model *model, double lo, double hi) {
    static char names[8][16];
    const graph *g = model->m->g;
    braid_tensor in[8];
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const value *v = g->values[g->inputs[i]];
        snprintf(names[i], sizeof names[i], "%s", v->name);
        bool natural = type_is_unsigned(v->type.type) && lo < 0;
        in[i] = ops_random_full(names[i], v->type.type, v->type.rank, v->type.dims, natural ? 0 : lo, hi, false);
    }
    ops_compare_lanes(ops_device(false), source, model, (size_t)g->n_inputs, in, 1);
    for (int32_t i = 0; i < g->n_inputs; i++) free(in[i].data);
}

/* Tells whether there were data that it takes. */
static bool run_text(const char *source, double lo, double hi) {
    braid_error err = {0};
    unsigned long long before = ops_lane_runs;
    braid_model *model = ops_model(source, &err);
    if (!model) return false;
    run_source(source, model, lo, hi);
    braid_model_free(model);
    return ops_lane_runs > before;
}

typedef struct form {
    braid_type type;
    int n_in, rank, dims[4];
    int drop; /* leading dims that the later inputs lack: they broadcast */
} form;

static form draw_form(int n_in, braid_type type) {
    form f = {.type = type, .n_in = n_in, .rank = 1 + (int)below(4)};
    for (int d = 0; d < f.rank; d++) f.dims[d] = 1 + (int)below(f.rank > 2 ? 5 : 9);
    if (below(2) && f.rank > 1) f.dims[f.rank - 2] = f.dims[f.rank - 1]; /* for products */
    if (n_in > 1 && below(2)) f.drop = (int)below((uint32_t)f.rank);
    return f;
}

/* One node on inputs of one type. */
static void form_text(const op *o, const form *f, char *source) {
    strcpy(source, "graph t(");
    for (int i = 0; i < f->n_in; i++) {
        sprintf(source + strlen(source), "%sx%d: %s[", i ? ", " : "", i, braid_type_name(f->type));
        int first = i ? f->drop : 0;
        for (int d = first; d < f->rank; d++)
            sprintf(source + strlen(source), "%s%d", d > first ? "," : "", f->dims[d]);
        strcat(source, "]");
    }
    sprintf(source + strlen(source), ") { y = %s%s%s(", o->domain ? o->domain : "", o->domain ? ":" : "", o->name);
    for (int i = 0; i < f->n_in; i++) sprintf(source + strlen(source), "%sx%d", i ? ", " : "", i);
    strcat(source, ") } -> y");
}

static bool run_form(const op *o, int n_in, braid_type type) {
    char source[1024];
    form f = draw_form(n_in, type);
    bool real = type_is_float(type);
    form_text(o, &f, source);
    if (run_text(source, real ? 0.1 : 1, real ? 0.9 : 4)) return true;
    if (!f.drop) return false;
    f.drop = 0;
    form_text(o, &f, source);
    return run_text(source, real ? 0.1 : 1, real ? 0.9 : 4);
}

/* BRAID_TEST_ALL: many forms of each row. */
static void check_row(void **state) {
    const op *o = *state;
    int most = o->flags & OP_VARIADIC_IN ? o->min_in + 2 : o->max_in, wanted = getenv("BRAID_TEST_ALL") ? 12 : 2,
        ran = 0;
    int least = o->upgrade && !o->emit ? most : o->min_in; /* an input may have been an attribute once */
    ops_seed = 1;
    for (const char *c = o->name; *c; c++) ops_seed = ops_seed * 31 + (uint64_t)*c;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        if (strcmp(lines[i].op, o->name) != 0) continue;
        if (!run_text(lines[i].source, lines[i].lo, lines[i].hi)) fail_msg("no lane of it runs: %s", lines[i].source);
        ran++;
    }
    for (int tries = 0, found = 0; tries < 8 * wanted && found < wanted; tries++) {
        int n_in = least + (int)below((uint32_t)(most - least + 1));
        if (n_in <= 4) found += run_form(o, n_in, types[(size_t)tries % COUNT_OF(types)]);
        ran += found;
    }
    if (!ran) fail_msg("%s runs with no inputs of one type: it needs a line in this file", o->name);
}

/* What a row of the fused graph alone stands for is in every fused case; what is rewritten at import has no row left.
 */
static bool has_meaning(const op *o) {
    return o->infer && (o->eval || o->lower) && !(o->domain && strcmp(o->domain, "braid") == 0);
}

int main(void) {
    static struct CMUnitTest tests[512];
    const op *o;
    size_t n = 0;
    for (size_t i = 0; (o = op_at(i)) != NULL && n < COUNT_OF(tests); i++)
        if (has_meaning(o) && !(o->flags & OP_RANDOM))
            tests[n++] = (struct CMUnitTest){o->name, check_row, NULL, NULL, (void *)(uintptr_t)o};
    return _cmocka_run_group_tests("rows", tests, n, NULL, NULL);
}
