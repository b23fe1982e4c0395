/*
 * ops_window_gpu.c: the kernels of pooling, resizing, sampling, generators and region operators against their CPU
 * meaning, with random attributes and shapes. None of them may become a host step.
 * labels: quick gpu
 */
#include "ops_gpu.h"

static int64_t pick(int64_t low, int64_t high) { return low + (int64_t)(ops_uniform() * (double)(high - low + 1)); }
static const char *one_of(int n, const char *const *names) { return names[pick(0, n - 1)]; }
#define ONE_OF(...) one_of(COUNT_OF(((const char *const[]){__VA_ARGS__})), (const char *const[]){__VA_ARGS__})

/* Fills every input of the graph with numbers in [low, high), runs both ways, and wants no host step. */
static void compare_between(const char *source, double rtol, double atol, double low, double high) {
    static char names[4][32];
    braid_error err = {0};
    braid_tensor in[4];
    braid_model *model = ops_model(source, &err);
    if (!model) fail_msg("%s in\n%s", err.message, source);
    const graph *g = model->m->g;
    size_t n = (size_t)g->n_inputs;
    for (size_t i = 0; i < n; i++) {
        const value *v = g->values[g->inputs[i]];
        snprintf(names[i], sizeof names[i], "%s", v->name);
        in[i] = ops_random_full(names[i], v->type.type, v->type.rank, v->type.dims,
                                type_is_unsigned(v->type.type) && low < 0 ? 0 : low, high, false);
    }
    braid_model_free(model);
    if (ops_compare(source, n, in, rtol, atol) != 0) fail_msg("a host step in\n%s", source);
}
static void compare(const char *source, braid_type type) {
    double tolerance = type == BRAID_FLOAT16 ? 2e-3 : type == BRAID_BFLOAT16 ? 1e-2 : 2e-5;
    compare_between(source, tolerance, tolerance, -40, 40);
}

/* ------------------------------------------------------------------------------------------------ pooling */
typedef struct numbers {
    char text[64];
} numbers;

/* "a, b, c" with n random numbers. */
static numbers list(int n, int64_t low, int64_t high) {
    numbers t = {""};
    for (int i = 0; i < n; i++)
        snprintf(t.text + strlen(t.text), sizeof t.text - strlen(t.text), "%s%d", i ? ", " : "", (int)pick(low, high));
    return t;
}

static void test_pool(void **state) {
    (void)state;
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_FLOAT32, BRAID_FLOAT16, BRAID_BFLOAT16, BRAID_INT8,
                                       BRAID_UINT8};
    for (int i = 0; i < 36; i++) {
        char source[512], more[64];
        int rank = (int)pick(1, 3), kind = (int)pick(0, 2);
        braid_type type = types[pick(0, kind == 0 ? 5 : 3)];
        if (kind == 0) snprintf(more, sizeof more, "storage_order = %d", (int)pick(0, 1));
        if (kind == 1) snprintf(more, sizeof more, "count_include_pad = %d", (int)pick(0, 1));
        if (kind == 2) snprintf(more, sizeof more, "p = %d", (int)pick(1, 3));
        char pads[96] = "";
        if (pick(0, 1)) snprintf(pads, sizeof pads, "auto_pad = \"%s\"", ONE_OF("SAME_UPPER", "SAME_LOWER", "VALID"));
        else snprintf(pads, sizeof pads, "pads = [%s]", list(2 * rank, 0, 1).text);
        snprintf(source, sizeof source,
                 "graph t(x: %s[2,3,%s]) { y%s = %s(x) {kernel_shape = [%s], strides = [%s], dilations = [%s], %s, "
                 "ceil_mode = %d, %s} } -> y%s",
                 braid_type_name(type), list(rank, 5, 11).text, kind ? "" : ", z",
                 kind == 0 ? "MaxPool" : kind == 1 ? "AveragePool" : "LpPool", list(rank, 2, 3).text,
                 list(rank, 1, 3).text, list(rank, 1, 2).text, pads, (int)pick(0, 1), more, kind ? "" : ", z");
        compare(source, type);
    }
}

/* ------------------------------------------------------------------------------------------------- resize */
static void resize_source(char *source, size_t size, braid_type type, const char *mode) {
    char more[256] = "";
    bool by_scale = pick(0, 1), inner = pick(0, 3) == 0;
    const char *coordinates = ONE_OF("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                     "asymmetric", "tf_crop_and_resize");
    if (pick(0, 1)) strcat(more, ", antialias = 1");
    if (pick(0, 2) == 0) strcat(more, ", exclude_outside = 1");
    if (pick(0, 2) == 0) strcat(more, ", cubic_coeff_a = -0.5");
    snprintf(more + strlen(more), sizeof more - strlen(more), ", nearest_mode = \"%s\"",
             ONE_OF("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"));
    snprintf(source, size,
             "graph t(x: %s[2,%d,%d,3]) { s: %s = constant {%.4f, %.4f} r: float32[4] = constant {-0.2, 0.1, 0.9, 1.1} "
             "y = Resize(x, r, %s) {mode = \"%s\", coordinate_transformation_mode = \"%s\", axes = [%s], "
             "extrapolation_value = 7.0%s} } -> y",
             braid_type_name(type), (int)pick(3, 8), (int)pick(3, 8), by_scale ? "float32[2]" : "int64[2]",
             by_scale ? 0.4 + 2 * ops_uniform() : (double)pick(1, 12),
             by_scale ? 0.4 + 2 * ops_uniform() : (double)pick(1, 12), by_scale ? "s" : "-, s", mode, coordinates,
             inner ? "2, 3" : pick(0, 1) ? "1, 2" : "1, 3", more);
    char *point; /* integers have none */
    while (!by_scale && (point = strstr(source, ".0000"))) memmove(point, point + 5, strlen(point + 5) + 1);
}

static void test_resize(void **state) {
    (void)state;
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_FLOAT32, BRAID_FLOAT16, BRAID_BFLOAT16, BRAID_INT8,
                                       BRAID_INT64,   BRAID_BOOL,    BRAID_INT16};
    for (int i = 0; i < 36; i++) {
        char source[1024];
        const char *mode = ONE_OF("nearest", "linear", "cubic");
        braid_type type = types[pick(0, *mode == 'n' ? 7 : 3)];
        resize_source(source, sizeof source, type, mode);
        compare(source, type);
    }
    compare("graph t(x: float32[3,4,5,6]) { s: float32[4] = constant {1, 1, 1, 1} y = Resize(x, -, s) } -> y",
            BRAID_FLOAT32);
    compare("graph t(x: float32[2,3,4,5]) { s: float32[4] = constant {2, 1, 1, 0.5} y = Resize(x, -, s) "
            "{mode = \"linear\"} } -> y", BRAID_FLOAT32);
    compare("graph t(x: float32[1,2,3,4,5]) { s: int64[5] = constant {1, 2, 5, 7, 4} y = Resize(x, -, -, s) "
            "{mode = \"cubic\"} } -> y", BRAID_FLOAT32);
    compare("graph t(x: uint8[1,1,9,9]) { s: int64[4] = constant {1, 1, 18, 18} y = Resize(x, -, -, s) "
            "{mode = \"linear\"} } -> y", BRAID_UINT8);
}

/* ----------------------------------------------------------------------------------------------- sampling */
static void test_grid(void **state) {
    (void)state;
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_FLOAT32, BRAID_FLOAT32, BRAID_BFLOAT16};
    for (int i = 0; i < 24; i++) {
        char source[512];
        int rank = (int)pick(1, 3);
        braid_type type = types[pick(0, 3)];
        snprintf(source, sizeof source,
                 "graph t(x: %s[2,3,%s], g: %s[2,%s,%d]) { y = GridSample(x, g) {mode = \"%s\", padding_mode = \"%s\", "
                 "align_corners = %d} } -> y",
                 braid_type_name(type), list(rank, 1, 6).text, braid_type_name(type), list(rank, 2, 5).text, rank,
                 ONE_OF("linear", "nearest", "cubic"), ONE_OF("zeros", "border", "reflection"), (int)pick(0, 1));
        compare_between(source, type == BRAID_BFLOAT16 ? 1e-2 : 1e-4, type == BRAID_BFLOAT16 ? 1e-2 : 1e-4, -1.7, 1.7);
    }
    compare("graph t(x: float32[2,2,3]) { s: int64[4] = constant {2, 1, 5, 6} y = AffineGrid(x, s) } -> y",
            BRAID_FLOAT32);
    compare("graph t(x: float16[2,3,4]) { s: int64[5] = constant {2, 1, 1, 6, 3} y = AffineGrid(x, s) "
            "{align_corners = 1} } -> y", BRAID_FLOAT16);
}

static void test_regions(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        char source[512];
        snprintf(source, sizeof source,
                 "graph t(x: float32[2,3,9,11], r: float32[5,4]) { b: int64[5] = constant {0, 1, 1, 0, 1} "
                 "y = RoiAlign(x, r, b) {mode = \"%s\", sampling_ratio = %d, output_height = %d, output_width = 3, "
                 "spatial_scale = 0.5, coordinate_transformation_mode = \"%s\"} } -> y",
                 ONE_OF("avg", "max"), (int)pick(0, 3), (int)pick(1, 4), ONE_OF("half_pixel", "output_half_pixel"));
        compare_between(source, 1e-4, 1e-4, -2, 24);
    }
    compare("graph t(x: float32[1,1,4,4]) { r: float32[1,4] = constant {0, 0, 2, 2} b: int64[1] = constant {3} "
            "y = RoiAlign(x, r, b) } -> y", BRAID_FLOAT32); /* refused by both */
}

/* --------------------------------------------------------------------------------------------- generators */
static const char *const generators[] = {
    "graph t(x: int64[3,4], v: float32[2]) { d: int64[] = constant {5} y = OneHot(x, d, v) } -> y",
    "graph t(x: int32[3,4], v: int64[2]) { d: int64[] = constant {5} y = OneHot(x, d, v) {axis = 0} } -> y",
    "graph t(x: uint8[3,4], v: bool[2]) { d: int64[] = constant {5} y = OneHot(x, d, v) {axis = 1} } -> y",
    "graph t(x: float32[7], v: float16[2]) { d: int64[] = constant {3} y = OneHot(x, d, v) } -> y",
    "graph t(x: float32[7], v: int8[2]) { d: int64[] = constant {0} y = OneHot(x, d, v) } -> y",
    "graph t(x: float32[2,5,4]) { y = Trilu(x) } -> y",
    "graph t(x: int64[5,4], k: int64[]) { y = Trilu(x, k) {upper = 0} } -> y",
    "graph t(x: bool[5,4], k: int64[]) { y = Trilu(x, k) } -> y",
    "graph t(x: float16[1,5]) { k: int64[] = constant {-2} y = Trilu(x, k) {upper = 0} } -> y",
    "graph t(x: int8[4,6]) { y = EyeLike(x) {k = 1} } -> y",
    "graph t(x: int8[4,6]) { y = EyeLike(x) {k = -2, dtype = 10} } -> y",
    "graph t(x: int8[4,6]) { y = EyeLike(x) {k = 3, dtype = 7} } -> y",
    "graph t(x: float32[4,3,2]) { l: int64[3] = constant {1, 4, 0} y = ReverseSequence(x, l) } -> y",
    "graph t(x: uint8[4,3,5]) { l: int64[4] = constant {1, 3, 2, 0} "
    "y = ReverseSequence(x, l) {time_axis = 1, batch_axis = 0} } -> y",
    "graph t(x: int64[4,3]) { l: int64[3] = constant {1, 5, 0} y = ReverseSequence(x, l) } -> y",
    "graph t(x: float32[2,12,6]) { i: int64[2] = constant {4, 5} b: int64[2] = constant {2, 3} "
    "y = Col2Im(x, i, b) {strides = [1, 2]} } -> y",
    "graph t(x: float16[1,4,25]) { i: int64[2] = constant {5, 5} b: int64[2] = constant {2, 2} "
    "y = Col2Im(x, i, b) {pads = [1, 0, 0, 1]} } -> y",
    "graph t(x: int32[1,8,8]) { i: int64[3] = constant {4, 3, 3} b: int64[3] = constant {2, 2, 2} "
    "y = Col2Im(x, i, b) {dilations = [2, 1, 1]} } -> y",
    "graph t(x: float32[5,6,7]) { s: int64[3] = constant {8, 3, 7} y = CenterCropPad(x, s) } -> y",
    "graph t(x: int8[5,6,7]) { s: int64[2] = constant {4, 10} y = CenterCropPad(x, s) {axes = [2, 0]} } -> y",
    "graph t(x: float32[2,2,6,6]) { a, i = MaxPool(x) {kernel_shape = [2, 2], strides = [2, 2]} "
    "y = MaxUnpool(a, i) {kernel_shape = [2, 2], strides = [2, 2]} } -> y",
    "graph t(x: float32[1,2,7,5]) { a, i = MaxPool(x) {kernel_shape = [3, 3], strides = [2, 2]} "
    "y = MaxUnpool(a, i) {kernel_shape = [3, 3], strides = [2, 2]} } -> y",
    "graph t(x: float32[1,1,4]) { i: int64[1,1,4] = constant {3, 3, 0, 3} s: int64[3] = constant {1, 1, 9} "
    "y = MaxUnpool(x, i, s) {kernel_shape = [2], strides = [2]} } -> y",
    "graph t(x: float32[1,1,2]) { i: int64[1,1,2] = constant {3, 4} y = MaxUnpool(x, i) {kernel_shape = [2], "
    "strides = [2]} } -> y",
};

static void test_generators(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(generators); i++) compare_between(generators[i], 1e-3, 1e-3, -6, 6);
}

/* Zero-sized tensors make no dispatch and no fault. */
static void test_empty(void **state) {
    (void)state;
    static const char *const sources[] = {
        "graph t(x: float32[0,3,4,4]) { y = MaxPool(x) {kernel_shape = [2, 2]} } -> y",
        "graph t(x: float32[2,0,4,4]) { y = AveragePool(x) {kernel_shape = [2, 2]} } -> y",
        "graph t(x: float32[0,3]) { s: float32[2] = constant {1, 2} y = Resize(x, -, s) } -> y",
        "graph t(x: float32[0,3,2,2], g: float32[0,2,2,2]) { y = GridSample(x, g) } -> y",
        "graph t(x: float32[0,5]) { y = Trilu(x) } -> y",
        "graph t(x: float32[3,0]) { y = EyeLike(x) } -> y",
        "graph t(x: int64[0], v: float32[2]) { d: int64[] = constant {5} y = OneHot(x, d, v) } -> y",
        "graph t(x: float32[0,3], r: float32[2,4]) { s: int64[2] = constant {2, 3} y = CenterCropPad(x, s) } -> y",
    };
    for (size_t i = 0; i < COUNT_OF(sources); i++) compare_between(sources[i], 0, 0, -6, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool),    cmocka_unit_test(test_resize),     cmocka_unit_test(test_grid),
        cmocka_unit_test(test_regions), cmocka_unit_test(test_generators), cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
