/*
 * ops_window.c: pooling, resizing, sampling, generators and selections on the CPU: shapes and refusals of infer, and
 * eval against loops that follow the definition or values worked out by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ops/op.h"

/* ------------------------------------------------------------------------------------------------- infer */

typedef struct infer_case {
    const char *header, *node; /* graph inputs; "y = Op(...)" */
    const char *type;          /* of y, ? for a fresh symbol, or the status; then | and constants */
} infer_case;

#define P "kernel_shape = "
static const infer_case infer_cases[] = {
    {"x: float32[N,3,8,8]", "y = MaxPool(x) {" P "[2, 2], strides = [2, 2]}", "float32[N,3,4,4]"},
    {"x: float32[N,3,H,8]", "y = MaxPool(x) {" P "[3, 3], pads = [1, 1, 1, 1]}", "float32[N,3,H,8]"},
    {"x: float32[N,3,H,8]", "y = MaxPool(x) {" P "[3, 3], strides = [2, 2]}", "float32[N,3,?,3]"},
    {"x: float32[N,3,H,8]", "y = MaxPool(x) {" P "[3, 3], auto_pad = \"SAME_UPPER\"}", "float32[N,3,H,8]"},
    {"x: float32[1,1,7]", "y = MaxPool(x) {" P "[3], strides = [2], auto_pad = \"SAME_LOWER\"}", "float32[1,1,4]"},
    {"x: float32[1,1,7]", "y = MaxPool(x) {" P "[2], strides = [2], auto_pad = \"VALID\"}", "float32[1,1,3]"},
    {"x: float32[1,1,7]", "y = MaxPool(x) {" P "[2], strides = [2], ceil_mode = 1}", "float32[1,1,4]"},
    {"x: float32[1,1,2]", "y = MaxPool(x) {" P "[1], strides = [2], ceil_mode = 1}", "float32[1,1,1]"},
    {"x: float32[1,1,9]", "y = MaxPool(x) {" P "[3], dilations = [4]}", "float32[1,1,1]"},
    {"x: float32[1,1,8]", "y = MaxPool(x) {" P "[3], dilations = [4]}", "float32[1,1,0]"},
    {"x: float32[1,1,7]", "y = MaxPool(x) {" P "[3], dilations = [4]}", "SHAPE"},
    {"x: float32[1,1,8,8]", "y = MaxPool(x) {" P "[3]}", "MODEL"},
    {"x: float32[1,1,8]", "y = MaxPool(x)", "MODEL"},
    {"x: float32[1,1,8]", "y = MaxPool(x) {" P "[0]}", "MODEL"},
    {"x: float32[1,1,8]", "y = MaxPool(x) {" P "[2], strides = [0]}", "MODEL"},
    {"x: float32[1,1,8]", "y = MaxPool(x) {" P "[2], dilations = [-1]}", "MODEL"},
    {"x: float32[1,1,8]", "y = MaxPool(x) {" P "[2], pads = [-1, 0]}", "MODEL"},
    {"x: float32[1,1,8]", "y = MaxPool(x) {" P "[2], pads = [2, 0]}", "MODEL"},
    {"x: float32[1,1,8]", "y = MaxPool(x) {" P "[9223372036854775807]}", "LIMIT"},
    {"x: float32[1,1,8]", "y = MaxPool(x) {" P "[2147483647], dilations = [2147483647]}", "SHAPE"},
    {"x: float32[1,1,8]", "y = MaxPool(x) {" P "[2], auto_pad = \"SAME\"}", "MODEL"},
    {"x: float32[1,1,8]", "y = MaxPool(x) {" P "[2], storage_order = 2}", "MODEL"},
    {"x: int64[1,1,8]", "y = MaxPool(x) {" P "[2]}", "TYPE"},
    {"x: int8[1,1,8]", "y = AveragePool(x) {" P "[2]}", "TYPE"},
    {"x: float32[8,8]", "y = AveragePool(x) {" P "[2]}", "SHAPE"},
    {"x: float32[1,1,2,2,2,2]", "y = AveragePool(x) {" P "[1, 1, 1, 1]}", "UNSUPPORTED"},
    {"x: float32[1,1,8]", "y = LpPool(x) {" P "[2], p = 0}", "MODEL"},
    {"x: float32[1,2,3,4]", "y = Resize(x, -, s)", "float32[1,2,6,2]|s: float32[4] = constant {1, 1, 2, 0.5}"},
    {"x: float32[N,2,H,4]", "y = Resize(x, -, s)", "float32[N,2,?,8]|s: float32[4] = constant {1, 1, 2, 2}"},
    {"x: float32[N,2,H,4]", "y = Resize(x, -, -, s) {axes = [3, -2]}",
     "float32[N,2,9,7]|s: int64[2] = constant {7, 9}"},
    {"x: float32[1,1,4,6]", "y = Resize(x, -, -, s) {axes = [2, 3], keep_aspect_ratio_policy = \"not_larger\"}",
     "float32[1,1,5,8]|s: int64[2] = constant {7, 8}"},
    {"x: float32[1,1,5]", "y = Resize(x, -, s)", "float32[1,1,7]|s: float32[3] = constant {1, 1, 1.4}"},
    {"x: float32[1,1,4]", "y = Resize(x, -, s, t)",
     "MODEL|s: float32[3] = constant {1, 1, 2} t: int64[3] = constant {1, 1, 8}"},
    {"x: float32[1,1,4]", "y = Resize(x, -, s, t)",
     "float32[1,1,8]|s: float32[0] = constant {} t: int64[3] = constant {1, 1, 8}"},
    {"x: float32[1,1,4]", "y = Resize(x)", "MODEL"},
    {"x: float32[1,1,4]", "y = Resize(x, -, s)", "MODEL|s: float32[3] = constant {1, 1, 0}"},
    {"x: float32[1,1,4]", "y = Resize(x, -, s)", "MODEL|s: float32[3] = constant {1, 1, -2}"},
    {"x: float32[1,1,4]", "y = Resize(x, -, s)", "LIMIT|s: float32[3] = constant {1, 1, 1000000000000}"},
    {"x: float32[1,1,4]", "y = Resize(x, -, s)", "SHAPE|s: float32[2] = constant {1, 1}"},
    {"x: float32[1,1,0]", "y = Resize(x, -, -, s)", "SHAPE|s: int64[3] = constant {1, 1, 2}"},
    {"x: float32[1,1,4]", "y = Resize(x, -, -, s)", "SHAPE|s: int64[3] = constant {1, 1, -2}"},
    {"x: float32[1,1,4]", "y = Resize(x, -, -, s) {axes = [0, 0]}", "MODEL|s: int64[2] = constant {1, 1}"},
    {"x: float32[1,1,4]", "y = Resize(x, -, -, s) {axes = [3]}", "MODEL|s: int64[1] = constant {1}"},
    {"x: float32[1,1,4]", "y = Resize(x, -, -, s) {mode = \"area\"}", "MODEL|s: int64[3] = constant {1, 1, 2}"},
    {"x: bool[1,1,4]", "y = Resize(x, -, -, s) {mode = \"linear\"}", "TYPE|s: int64[3] = constant {1, 1, 2}"},
    {"x: float32[1,1,4]", "y = Resize(x, -, -, s) {coordinate_transformation_mode = \"tf_crop_and_resize\"}",
     "float32[1,1,2]|s: int64[3] = constant {1, 1, 2}"},
    {"x: float32[N,2,5,5], g: float32[N,3,4,2]", "y = GridSample(x, g)", "float32[N,2,3,4]"},
    {"x: float32[2,2,5,5], g: float32[3,3,4,2]", "y = GridSample(x, g)", "SHAPE"},
    {"x: float32[2,2,5,5], g: float32[2,3,4,3]", "y = GridSample(x, g)", "SHAPE"},
    {"x: float32[2,2,5,0], g: float32[2,3,4,2]", "y = GridSample(x, g)", "SHAPE"},
    {"x: float32[2,2,5,5], g: int32[2,3,4,2]", "y = GridSample(x, g)", "TYPE"},
    {"x: float32[N,2,3]", "y = AffineGrid(x, s)", "float32[4,5,6,2]|s: int64[4] = constant {4, 1, 5, 6}"},
    {"x: float32[N,3,3]", "y = AffineGrid(x, s)", "SHAPE|s: int64[4] = constant {4, 1, 5, 6}"},
    {"", "y = ConstantOfShape(s)", "float32[2,0,3]|s: int64[3] = constant {2, 0, 3}"},
    {"", "y = ConstantOfShape(s)", "float32[]|s: int64[0] = constant {}"},
    {"", "y = ConstantOfShape(s)", "SHAPE|s: int64[1] = constant {-1}"},
    {"", "y = ConstantOfShape(s)", "LIMIT|s: int64[2] = constant {1000000000, 1000000000}"},
    {"x: float32[N,M]", "s = Shape(x)\ny = ConstantOfShape(s)", "float32[N,M]"},
    {"s: int64[3]", "y = ConstantOfShape(s)", "float32[?,?,?]"},
    {"x: float32[N,3]", "y = EyeLike(x) {dtype = 7}", "int64[N,3]"},
    {"x: float32[N,3]", "y = EyeLike(x) {dtype = 8}", "TYPE"},
    {"x: float32[3]", "y = EyeLike(x)", "SHAPE"},
    {"", "y = Range(a, b, c)",
     "int64[3]|a: int64[] = constant {0} b: int64[] = constant {5} c: int64[] = constant {2}"},
    {"", "y = Range(a, b, c)",
     "int64[0]|a: int64[] = constant {9} b: int64[] = constant {5} c: int64[] = constant {2}"},
    {"", "y = Range(a, b, c)", "MODEL|a: int64[] = constant {9} b: int64[] = constant {5} c: int64[] = constant {0}"},
    {"", "y = Range(a, b, c)",
     "LIMIT|a: int64[] = constant {-9000000000000000000} b: int64[] = constant {9000000000000000000} "
     "c: int64[] = constant {1}"},
    {"", "y = Range(a, b, c)",
     "float32[4]|a: float32[] = constant {1} b: float32[] = constant {2} c: float32[] = constant {0.3}"},
    {"x: float32[N,2]", "s = Shape(x) {end = 1}\nq = Squeeze(s)\ny = Range(a, q, c)",
     "int64[N]|a: int64[] = constant {0} c: int64[] = constant {1}"},
    {"x: float32[N,2]", "y = Trilu(x)", "float32[N,2]"},
    {"x: float32[2]", "y = Trilu(x)", "SHAPE"},
    {"x: int64[N,2], v: float16[2]", "y = OneHot(x, d, v)", "float16[N,2,5]|d: int64[] = constant {5}"},
    {"x: int64[N,2], v: float16[2]", "y = OneHot(x, d, v) {axis = 1}", "float16[N,5,2]|d: float32[1] = constant {5}"},
    {"x: int64[N,2], v: float16[2]", "y = OneHot(x, d, v) {axis = 3}", "MODEL|d: int64[] = constant {5}"},
    {"x: int64[N,2], v: float16[3]", "y = OneHot(x, d, v)", "SHAPE|d: int64[] = constant {5}"},
    {"x: int64[N,2], v: float16[2]", "y = OneHot(x, d, v)", "MODEL|d: int64[] = constant {-5}"},
    {"x: int64[N,2], v: float16[2]", "y = OneHot(x, d, v)", "LIMIT|d: int64[] = constant {9000000000000000000}"},
    {"x: float32[4,N,2], l: int64[N]", "y = ReverseSequence(x, l)", "float32[4,N,2]"},
    {"x: float32[4,3,2], l: int64[4]", "y = ReverseSequence(x, l)", "SHAPE"},
    {"x: float32[4,3,2], l: int64[4]", "y = ReverseSequence(x, l) {batch_axis = 0, time_axis = 0}", "MODEL"},
    {"x: float32[4,3,2]", "y = NonZero(x)", "int64[3,?]"},
    {"x: float32[4,3], c: bool[2]", "y = Compress(x, c) {axis = -1}", "float32[4,?]"},
    {"x: float32[4,3], c: bool[2]", "y = Compress(x, c)", "float32[?]"},
    {"x: float32[4,3], c: bool[2]", "y = Compress(x, c) {axis = 2}", "MODEL"},
    {"x: float32[4,3]", "y = Unique(x) {axis = 0}", "float32[?,3]"},
    {"b: float32[1,6,4], s: float32[1,2,6]", "y = NonMaxSuppression(b, s)", "int64[?,3]"},
    {"b: float32[1,6,5], s: float32[1,2,6]", "y = NonMaxSuppression(b, s)", "SHAPE"},
    {"b: float32[1,7,4], s: float32[1,2,6]", "y = NonMaxSuppression(b, s)", "SHAPE"},
    {"x: float32[1,5,5]", "y = Col2Im(x, i, b)", "SHAPE|i: int64[2] = constant {5, 5} b: int64[2] = constant {1, 4}"},
    {"x: float32[1,5,5]", "y = Col2Im(x, i, b)",
     "float32[1,1,5,5]|i: int64[2] = constant {5, 5} b: int64[2] = constant {1, 5}"},
    {"x: float32[1,5,5]", "y = Col2Im(x, i, b)", "SHAPE|i: int64[2] = constant {5, 5} b: int64[2] = constant {0, 5}"},
    {"x: float32[1,5,5]", "y = Col2Im(x, i, b) {strides = [0, 1]}",
     "MODEL|i: int64[2] = constant {5, 5} b: int64[2] = constant {1, 5}"},
    {"x: float32[N,5,7]", "y = CenterCropPad(x, s) {axes = [-1, 1]}", "float32[N,2,9]|s: int64[2] = constant {9, 2}"},
    {"x: float32[N,5,7]", "y = CenterCropPad(x, s) {axes = [-1]}", "SHAPE|s: int64[2] = constant {9, 2}"},
    {"x: float32[N,5,7]", "y = CenterCropPad(x, s) {axes = [2, 2]}", "MODEL|s: int64[2] = constant {9, 2}"},
    {"x: float32[1,1,2,2], i: int64[1,1,2,2]", "y = MaxUnpool(x, i) {" P "[2, 2], strides = [2, 2]}",
     "float32[1,1,4,4]"},
    {"x: float32[1,1,2,2], i: int64[1,1,2,3]", "y = MaxUnpool(x, i) {" P "[2, 2], strides = [2, 2]}", "SHAPE"},
    {"x: float32[1,1,2,2], i: int64[1,1,2,2]", "y = MaxUnpool(x, i, s) {" P "[2, 2], strides = [2, 2]}",
     "SHAPE|s: int64[4] = constant {1, 1, 3, 4}"},
    {"x: float32[2,3,8,8], r: float32[M,4], b: int64[M]", "y = RoiAlign(x, r, b) {output_height = 2, output_width = 3}",
     "float32[M,3,2,3]"},
    {"x: float32[2,3,8,8], r: float32[M,4], b: int64[M]", "y = RoiAlign(x, r, b) {output_height = 0}", "MODEL"},
    {"x: float32[2,3,8,8], r: float32[M,4], b: int64[M]", "y = RoiAlign(x, r, b) {sampling_ratio = -1}", "MODEL"},
    {"x: float32[2,3,8,8], r: float32[M,5]", "y = MaxRoiPool(x, r) {pooled_shape = [2, 3]}", "float32[M,3,2,3]"},
    {"x: float32[2,3,8,8], r: float32[M,5]", "y = MaxRoiPool(x, r) {pooled_shape = [2]}", "MODEL"},
    {"x: float32[N,10,1]", "y = DFT(x) {onesided = 1}", "float32[N,6,2]"},
    {"x: float32[N,10,2]", "y = DFT(x) {onesided = 1}", "SHAPE"},
    {"x: float32[N,6,2]", "y = DFT(x) {onesided = 1, inverse = 1}", "float32[N,10,1]"},
    {"x: float32[N,6,2]", "y = DFT(x, -, a)", "MODEL|a: int64[] = constant {2}"},
    {"x: float32[N,20,1]", "y = STFT(x, s, -, f)",
     "float32[N,5,3,2]|s: int64[] = constant {4} f: int64[] = constant {4}"},
    {"x: float32[N,20,1]", "y = STFT(x, s, -, f)", "MODEL|s: int64[] = constant {0} f: int64[] = constant {4}"},
    {"x: float32[N,20,1]", "y = STFT(x, s, -, f)", "SHAPE|s: int64[] = constant {4} f: int64[] = constant {40}"},
    {"", "y = HannWindow(s)", "float32[6]|s: int64[] = constant {6}"},
    {"", "y = HannWindow(s)", "MODEL|s: int64[] = constant {-6}"},
};

static void type_text(const graph *g, const tensor_type *t, char *out, size_t size) {
    int n = snprintf(out, size, "%s[", braid_type_name(t->type));
    for (int d = 0; d < t->rank; d++) {
        const char *symbol = dim_is_symbol(t->dims[d]) ? g->symbols[dim_symbol(t->dims[d])] : NULL;
        if (dim_known(t->dims[d]))
            n += snprintf(out + n, size - (size_t)n, "%s%lld", d ? "," : "", (long long)t->dims[d]);
        else
            n += snprintf(out + n, size - (size_t)n, "%s%s", d ? "," : "", symbol ? symbol : "?");
    }
    snprintf(out + n, size - (size_t)n, t->rank < 0 ? "*]" : "]");
}

static bool check_infer(const infer_case *c) {
    char source[2048], found[256], wanted[256];
    const char *constants = strchr(c->type, '|');
    snprintf(wanted, sizeof wanted, "%.*s", constants ? (int)(constants - c->type) : 200, c->type);
    snprintf(source, sizeof source, "graph t(%s) {\n%s\n%s\n} -> y", c->header, constants ? constants + 1 : "",
             c->node);
    arena *memory = arena_new();
    graph *g = NULL;
    braid_error err = {0};
    if (graph_parse(memory, source, &g, &err) != BRAID_OK) fail_msg("%s\n%s", err.message, source);
    graph_find_ops(g);
    if (graph_infer(g, &err) == BRAID_OK)
        type_text(g, &g->values[g->outputs[0]]->type, found, sizeof found);
    else
        snprintf(found, sizeof found, "%s", braid_status_name(err.status));
    bool same = strcmp(found, wanted) == 0;
    if (!same) print_error("%s %s: expected %s, found %s (%s)\n", c->header, c->node, c->type, found, err.message);
    arena_free(memory);
    return same;
}

static void test_infer(void **state) {
    (void)state;
    bool passed = true;
    for (size_t i = 0; i < COUNT_OF(infer_cases); i++) passed = check_infer(&infer_cases[i]) && passed;
    assert_true(passed);
}

/* -------------------------------------------------------------------------------------------------- eval */

static uint64_t seed = 11;
static int64_t pick(int64_t low, int64_t high) { /* both included */
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1));
}

/* Evaluates node 0 of a graph text whose values are all constants, or its own. */
static tensor *eval_text(arena *memory, const char *source, int output, braid_status wanted) {
    graph *g = NULL;
    braid_error err = {0};
    if (graph_parse(memory, source, &g, &err) != BRAID_OK) fail_msg("%s\n%s", err.message, source);
    graph_find_ops(g);
    const node *n = g->nodes[0];
    const tensor *in[8] = {0};
    tensor *out[8] = {0};
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0) in[i] = g->values[n->in[i]]->constant;
    braid_status status = op_eval(g, n, memory, in, out, &err);
    if (status != wanted) fail_msg("%s (%s) in\n%s", braid_status_name(status), err.message, source);
    return out[output];
}

typedef struct eval_case {
    const char *source; /* constants and one node */
    int output;
    int n;
    double values[24];
} eval_case;

static const eval_case eval_cases[] = {
    /* the window of the second output starts in the leading padding only; indices count without padding */
    {"x: float32[1,1,4] = constant {1, 5, 2, 5} y, z = MaxPool(x) {kernel_shape = [3], strides = [2], pads = [1, 1]}",
     1, 2, {1, 1}},
    {"x: float32[1,2,2,3] = constant {1, 2, 3, 4, 5, 6, 9, 8, 7, 6, 5, 4} "
     "y, z = MaxPool(x) {kernel_shape = [2, 2], storage_order = 1}", 1, 4, {3, 5, 6, 8}},
    {"x: float32[1,1,3] = constant {1, nan, 2} y = MaxPool(x) {kernel_shape = [2]}", 0, 2, {NAN, NAN}},
    {"x: int8[1,1,3] = constant {-7, -128, -9} y = MaxPool(x) {kernel_shape = [2]}", 0, 2, {-7, -9}},
    {"x: float32[1,1,4] = constant {1, 2, 3, 4} y = AveragePool(x) {kernel_shape = [3], pads = [1, 1]}", 0, 4,
     {1.5, 2, 3, 3.5}},
    {"x: float32[1,1,4] = constant {1, 2, 3, 4} "
     "y = AveragePool(x) {kernel_shape = [3], pads = [1, 1], count_include_pad = 1}", 0, 4, {1, 2, 3, 7.0 / 3}},
    /* ceil_mode: what lies behind the padding is not counted */
    {"x: float32[1,1,4] = constant {1, 2, 3, 4} "
     "y = AveragePool(x) {kernel_shape = [3], strides = [3], ceil_mode = 1, count_include_pad = 1, pads = [0, 1]}", 0,
     2, {2, 2}},
    {"x: float32[1,1,3] = constant {3, -4, 0} y = LpPool(x) {kernel_shape = [2]}", 0, 2, {5, 4}},
    {"x: float32[1,1,3] = constant {3, -4, 1} y = LpPool(x) {kernel_shape = [2], p = 1}", 0, 2, {7, 5}},
    {"x: float32[1,1,2] = constant {1, 2} s: float32[3] = constant {1, 1, 2} y = Resize(x, -, s) {mode = \"linear\"}",
     0, 4, {1, 1.25, 1.75, 2}},
    {"x: float32[1,1,2] = constant {1, 2} s: float32[3] = constant {1, 1, 2} "
     "y = Resize(x, -, s) {mode = \"linear\", coordinate_transformation_mode = \"align_corners\"}", 0, 4,
     {1, 4.0 / 3, 5.0 / 3, 2}},
    {"x: float32[1,1,2] = constant {1, 2} s: float32[3] = constant {1, 1, 2} "
     "y = Resize(x, -, s) {mode = \"linear\", coordinate_transformation_mode = \"asymmetric\"}", 0, 4, {1, 1.5, 2, 2}},
    {"x: uint8[1,1,2] = constant {0, 255} s: float32[3] = constant {1, 1, 3} "
     "y = Resize(x, -, s) {mode = \"linear\", coordinate_transformation_mode = \"asymmetric\"}", 0, 6,
     {0, 85, 170, 255, 255, 255}},
    /* 3 / 0.6 is 5 in float and 4.9999998 in double */
    {"x: int64[6] = constant {0, 1, 2, 3, 4, 5} s: float32[1] = constant {0.6} "
     "y = Resize(x, -, s) {coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"}", 0, 3,
     {0, 1, 3}},
    {"x: int64[2] = constant {7, 9} s: int64[1] = constant {4} "
     "r: float32[2] = constant {-0.5, 1} y = Resize(x, r, -, s) {coordinate_transformation_mode = "
     "\"tf_crop_and_resize\", extrapolation_value = -3.0}", 0, 4, {-3, 7, 7, 9}},
    {"x: float32[1,1,2,2] = constant {1, 2, 3, 4} g: float32[1,1,4,2] = constant {-0.5, -0.5, 0.5, 0.5, 0, 0, 5, 5} "
     "y = GridSample(x, g)", 0, 4, {1, 4, 2.5, 0}},
    {"x: float32[1,1,2,2] = constant {1, 2, 3, 4} g: float32[1,1,3,2] = constant {nan, 0, 9, 9, -1, 1} "
     "y = GridSample(x, g) {mode = \"nearest\", padding_mode = \"border\"}", 0, 3, {1, 4, 3}},
    {"t: float32[1,2,3] = constant {1, 0, 0, 0, 1, 0} s: int64[4] = constant {1, 1, 2, 2} y = AffineGrid(t, s)", 0, 8,
     {-0.5, -0.5, 0.5, -0.5, -0.5, 0.5, 0.5, 0.5}},
    {"x: int64[4] = constant {1, -1, 7, -3} d: int64[] = constant {3} v: int8[2] = constant {0, 5} y = OneHot(x, d, v)",
     0, 12, {0, 5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0}},
    {"x: int8[3,2] = constant {1, 2, 3, 4, 5, 6} l: int64[2] = constant {3, 2} y = ReverseSequence(x, l)", 0, 6,
     {5, 4, 3, 2, 1, 6}},
    {"x: float64[2,3] = constant {1, 2, 3, 4, 5, 6} k: int64[] = constant {1} y = Trilu(x, k)", 0, 6,
     {0, 2, 3, 0, 0, 6}},
    {"x: int16[2,3] = constant {1, 2, 3, 4, 5, 6} y = Trilu(x) {upper = 0}", 0, 6, {1, 0, 0, 4, 5, 0}},
    {"a: int16[] = constant {7} b: int16[] = constant {0} c: int16[] = constant {-3} y = Range(a, b, c)", 0, 3,
     {7, 4, 1}},
    {"x: float32[2,2] = constant {0, 1, nan, 0} y = NonZero(x)", 0, 4, {0, 1, 1, 0}},
    {"x: int8[3,2] = constant {1, 2, 3, 4, 5, 6} c: bool[3] = constant {1, 0, 1} y = Compress(x, c) {axis = 0}", 0, 4,
     {1, 2, 5, 6}},
    {"x: float32[5] = constant {2, 1, 1, 3, 2} y, i, v, n = Unique(x) {sorted = 0}", 2, 5, {0, 1, 1, 2, 0}},
    {"x: float32[5] = constant {2, 1, 1, 3, 2} y, i, v, n = Unique(x)", 3, 3, {2, 2, 1}},
    {"x: float32[1,4,2] = constant {1, 2, 3, 4, 5, 6, 7, 8} i: int64[2] = constant {3, 2} b: int64[2] = constant {2, 2} "
     "y = Col2Im(x, i, b)", 0, 6, {1, 3, 7, 11, 6, 8}},
    {"x: int8[5] = constant {1, 2, 3, 4, 5} s: int64[1] = constant {2} y = CenterCropPad(x, s)", 0, 2, {2, 3}},
    {"x: int8[2] = constant {1, 2} s: int64[1] = constant {5} y = CenterCropPad(x, s)", 0, 5, {0, 1, 2, 0, 0}},
    {"x: float32[1,1,2] = constant {5, 6} i: int64[1,1,2] = constant {3, 3} y = MaxUnpool(x, i) {kernel_shape = [2], "
     "strides = [2]}", 0, 4, {0, 0, 0, 6}},
    {"x: float32[1,1,2,2] = constant {1, 2, 3, 4} r: float32[1,5] = constant {0, 0, 0, 1, 1} "
     "y = MaxRoiPool(x, r) {pooled_shape = [1, 2]}", 0, 2, {3, 4}},
    {"x: float64[1,3,1] = constant {1, 2, 3} y = DFT(x)", 0, 6,
     {6, 0, -1.5, 0.8660254037844386, -1.5, -0.8660254037844386}},
    {"x: float64[1,4,1] = constant {1, 2, 3, 4} y = DFT(x) {onesided = 1}", 0, 6, {10, 0, -2, 2, -2, 0}},
    {"x: float64[1,3,2] = constant {10, 0, -2, 2, -2, 0} y = DFT(x) {onesided = 1, inverse = 1}", 0, 4, {1, 2, 3, 4}},
};

static void test_eval(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(eval_cases); i++) {
        const eval_case *c = &eval_cases[i];
        char source[1024];
        arena *memory = arena_new();
        int64_t count = 0;
        snprintf(source, sizeof source, "graph t() { %s } -> y", c->source);
        tensor *t = eval_text(memory, source, c->output, BRAID_OK);
        assert_true(tensor_type_count(&t->type, &count));
        if (count != c->n) fail_msg("%lld elements, expected %d in\n%s", (long long)count, c->n, source);
        for (int k = 0; k < c->n; k++) {
            double v = element_f64(t->type.type, t->data, k), w = c->values[k];
            if (!(fabs(v - w) <= 1e-6) && !(isnan(v) && isnan(w)))
                fail_msg("element %d: %g, expected %g in\n%s", k, v, w, source);
        }
        arena_free(memory);
    }
}

/* Run-time values that must be refused. */
static void test_refused_values(void **state) {
    (void)state;
    static const struct {
        const char *source;
        braid_status status;
    } cases[] = {
        {"x: int8[3,2] = constant {1, 2, 3, 4, 5, 6} l: int64[2] = constant {4, 2} y = ReverseSequence(x, l)",
         BRAID_INDEX},
        {"x: int8[3] = constant {1, 2, 3} c: bool[4] = constant {0, 0, 0, 1} y = Compress(x, c) {axis = 0}",
         BRAID_INDEX},
        {"x: float32[1,1,1] = constant {5} i: int64[1,1,1] = constant {2} y = MaxUnpool(x, i) {kernel_shape = [2]}",
         BRAID_INDEX},
        {"x: float32[1,1,1] = constant {5} i: int64[1,1,1] = constant {-1} y = MaxUnpool(x, i) {kernel_shape = [2]}",
         BRAID_INDEX},
        {"x: float32[1,1,1,1] = constant {5} r: float32[1,4] = constant {0, 0, 1, 1} b: int64[1] = constant {1} "
         "y = RoiAlign(x, r, b)",
         BRAID_INDEX},
        {"x: float32[1,1,1,1] = constant {5} r: float32[1,4] = constant {0, 0, 1e30, 1} b: int64[1] = constant {0} "
         "y = RoiAlign(x, r, b)",
         BRAID_INDEX},
        {"x: float32[1,1,1,1] = constant {5} r: float32[1,5] = constant {nan, 0, 0, 1, 1} "
         "y = MaxRoiPool(x, r) {pooled_shape = [1, 1]}",
         BRAID_INDEX},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char source[1024];
        arena *memory = arena_new();
        snprintf(source, sizeof source, "graph t() { %s } -> y", cases[i].source);
        eval_text(memory, source, 0, cases[i].status);
        arena_free(memory);
    }
}

/* ------------------------------------------------------------------------- pooling against its definition */
typedef struct pool_round {
    int64_t size[2], kernel[2], stride[2], dilation[2], begin[2], end[2], out[2];
    bool ceil, with_pad;
} pool_round;

static int64_t extent(const pool_round *r, int a) { return r->dilation[a] * (r->kernel[a] - 1) + 1; }

/* Output positions are tried one by one; ceil_mode adds one that sticks out by less than a stride and does not start in
   the trailing padding. */
static void count_outputs(pool_round *r) {
    for (int a = 0; a < 2; a++) {
        int64_t padded = r->size[a] + r->begin[a] + r->end[a], n = 0;
        while (n * r->stride[a] + extent(r, a) <= padded) n++;
        int64_t over = n * r->stride[a] + extent(r, a) - padded;
        if (r->ceil && over < r->stride[a] && n * r->stride[a] < r->size[a] + r->begin[a]) n++;
        r->out[a] = n;
    }
}

static double naive(const pool_round *r, const float *x, int64_t oy, int64_t ox, char what) {
    double best = -INFINITY, sum = 0, n = 0, all = 0;
    for (int64_t i = 0; i < r->kernel[0]; i++)
        for (int64_t k = 0; k < r->kernel[1]; k++) {
            int64_t y = oy * r->stride[0] - r->begin[0] + i * r->dilation[0];
            int64_t z = ox * r->stride[1] - r->begin[1] + k * r->dilation[1];
            if (y < r->size[0] + r->end[0] && z < r->size[1] + r->end[1]) all++;
            if (y < 0 || z < 0 || y >= r->size[0] || z >= r->size[1]) continue;
            double v = (double)x[y * r->size[1] + z];
            best = v > best ? v : best;
            sum += v;
            n++;
        }
    if (what == 'm') return best;
    double by = r->with_pad ? all : n;
    return by > 0 ? sum / by : 0;
}

static void random_round(pool_round *r) {
    do {
        for (int a = 0; a < 2; a++) {
            r->size[a] = pick(1, 9);
            r->kernel[a] = pick(1, 4);
            r->stride[a] = pick(1, 3);
            r->dilation[a] = pick(1, 3);
            r->begin[a] = pick(0, extent(r, a) - 1);
            r->end[a] = pick(0, extent(r, a) - 1);
        }
        r->ceil = pick(0, 1);
        r->with_pad = pick(0, 1);
        count_outputs(r);
    } while (r->out[0] == 0 || r->out[1] == 0);
}

static void check_round(const pool_round *r, char what) {
    char source[2048];
    int n = snprintf(source, sizeof source, "graph t() { x: float32[1,1,%d,%d] = constant {", (int)r->size[0],
                     (int)r->size[1]);
    float x[100];
    for (int64_t i = 0; i < r->size[0] * r->size[1]; i++) {
        x[i] = (float)pick(-50, 50);
        n += snprintf(source + n, sizeof source - (size_t)n, "%s%g", i ? ", " : "", (double)x[i]);
    }
    snprintf(source + n, sizeof source - (size_t)n,
             "} y = %s(x) {kernel_shape = [%d, %d], strides = [%d, %d], dilations = [%d, %d], pads = [%d, %d, %d, %d], "
             "ceil_mode = %d, count_include_pad = %d} } -> y",
             what == 'm' ? "MaxPool" : "AveragePool", (int)r->kernel[0], (int)r->kernel[1], (int)r->stride[0],
             (int)r->stride[1], (int)r->dilation[0], (int)r->dilation[1], (int)r->begin[0], (int)r->begin[1],
             (int)r->end[0], (int)r->end[1], r->ceil, r->with_pad);
    arena *memory = arena_new();
    tensor *y = eval_text(memory, source, 0, BRAID_OK);
    if (y->type.dims[2] != r->out[0] || y->type.dims[3] != r->out[1])
        fail_msg("[%d, %d], expected [%d, %d] in\n%s", (int)y->type.dims[2], (int)y->type.dims[3], (int)r->out[0],
                 (int)r->out[1], source);
    for (int64_t i = 0; i < r->out[0] * r->out[1]; i++) {
        double v = (double)((float *)y->data)[i], w = naive(r, x, i / r->out[1], i % r->out[1], what);
        if (!(fabs(v - w) < 1e-5 * (1 + fabs(w))) && v != w)
            fail_msg("element %d: %g, expected %g in\n%s", (int)i, v, w, source);
    }
    arena_free(memory);
}

static void test_pooling(void **state) {
    (void)state;
    for (int i = 0; i < 400; i++) {
        pool_round r;
        random_round(&r);
        check_round(&r, i % 2 ? 'm' : 'a');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_infer),
        cmocka_unit_test(test_eval),
        cmocka_unit_test(test_refused_values),
        cmocka_unit_test(test_pooling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
