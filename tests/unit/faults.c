/*
 * faults.c: operators that an earlier runtime silently got wrong, each by name, against plain loops. faults_model.c
 * holds the faults of files and of runs. labels: device
 */
#include "faults.h"

/* ------------------------------------------------------------------------------------------ Concat, Split */

/* y = the inputs one behind the other on the axis. */
static braid_tensor concat_of(int n, const braid_tensor *in, int axis) {
    int64_t dims[BRAID_MAX_RANK], outer = 1, inner = 1, at = 0;
    memcpy(dims, in[0].dims, sizeof dims);
    for (int i = 1; i < n; i++) dims[axis] += in[i].dims[axis];
    braid_tensor y = wanted(in[0].rank, dims);
    for (int i = 0; i < axis; i++) outer *= dims[i];
    for (int i = axis + 1; i < y.rank; i++) inner *= dims[i];
    for (int i = 0; i < n; at += in[i++].dims[axis])
        for (int64_t o = 0; o < outer; o++)
            for (int64_t j = 0, width = in[i].dims[axis] * inner; j < width; j++)
                numbers_of(&y)[(o * dims[axis] + at) * inner + j] = ((float *)in[i].data)[o * width + j];
    return y;
}

static void test_concat_axis_1_of_a_batch(void **state) {
    (void)state;
    braid_tensor in[] = {floats("a", DIMS(2, 3, 4)), floats("b", DIMS(2, 5, 4))};
    braid_tensor y = concat_of(2, in, 1);
    expect("graph t(a: float32[2,3,4], b: float32[2,5,4]) { y = Concat(a, b) {axis = 1} } -> y", 2, in, 1, &y, 0, 0);
    braid_tensor images[] = {floats("a", DIMS(3, 2, 5, 3)), floats("b", DIMS(3, 1, 5, 3))};
    y = concat_of(2, images, 1);
    expect("graph t(a: float32[3,2,5,3], b: float32[3,1,5,3]) { y = Concat(a, b) {axis = -3} } -> y", 2, images, 1, &y,
           0, 0);
}

static void test_concat_of_many(void **state) {
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};
    for (int n = 8; n <= (int)COUNT_OF(names); n++) {
        text source = {0};
        braid_tensor in[COUNT_OF(names)];
        text_add(&source, "graph t(");
        for (int i = 0; i < n; i++) {
            text_add(&source, "%s%s: float32[2,%d,3]", i ? ", " : "", names[i], i + 1);
            in[i] = floats(names[i], DIMS(2, i + 1, 3));
        }
        text_add(&source, ") { y = Concat(");
        for (int i = 0; i < n; i++) text_add(&source, "%s%s", i ? ", " : "", names[i]);
        text_add(&source, ") {axis = 1} } -> y");
        braid_tensor y = concat_of(n, in, 1);
        expect(source.data, (size_t)n, in, 1, &y, 0, 0);
        text_free(&source);
    }
}

/* 50 MB, more elements than 65,535 groups of 64 hold. */
static void test_concat_of_a_large_image(void **state) {
    (void)state;
    braid_tensor in[] = {floats("a", DIMS(1, 24, 440, 440)), floats("b", DIMS(1, 40, 440, 440))};
    braid_tensor y = concat_of(2, in, 1);
    expect("graph t(a: float32[1,24,440,440], b: float32[1,40,440,440]) { y = Concat(a, b) {axis = 1} } -> y", 2, in, 1,
           &y, 0, 0);
}

static void test_split_2_3(void **state) {
    (void)state;
    braid_tensor x = floats("x", DIMS(5, 4)), want[] = {wanted(DIMS(2, 4)), wanted(DIMS(3, 4))};
    for (int i = 0; i < 20; i++) numbers_of(&want[i >= 8])[i >= 8 ? i - 8 : i] = ((float *)x.data)[i];
    expect("graph t(x: float32[5,4]) { s: int64[2] = constant {2, 3} u, v = Split(x, s) {axis = 0} } -> u, v", 1, &x, 2,
           want, 0, 0);
    x = floats("x", DIMS(3, 5, 2));
    want[0] = wanted(DIMS(3, 2, 2)), want[1] = wanted(DIMS(3, 3, 2));
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < 10; i++)
            numbers_of(&want[i >= 4])[i >= 4 ? r * 6 + i - 4 : r * 4 + i] = ((float *)x.data)[r * 10 + i];
    expect("graph t(x: float32[3,5,2]) { s: int64[2] = constant {2, 3} u, v = Split(x, s) {axis = 1} } -> u, v", 1, &x,
           2, want, 0, 0);
}

/* ------------------------------------------------------------------------------------------- MatMul, Gemm */

/* y[m,n] += a[m,k] b[k,n], each by its own strides. */
static void multiply(double *y, const float *a, const float *b, int m, int n, int k, const int *as, const int *bs) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int l = 0; l < k; l++)
                y[i * n + j] += (double)a[i * as[0] + l * as[1]] * (double)b[l * bs[0] + j * bs[1]];
}

static void test_matmul_sizes(void **state) {
    (void)state;
    static const int sizes[][3] = {{3, 3, 3},    {5, 5, 5},   {6, 6, 6}, {10, 10, 10},
                                   {50, 50, 50}, {6, 12, 18}, {1, 6, 4}, {1, 10, 10}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        int m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
        char source[128];
        snprintf(source, sizeof source, "graph t(a: float32[%d,%d], b: float32[%d,%d]) { y = MatMul(a, b) } -> y", m, k,
                 k, n);
        braid_tensor in[] = {floats("a", DIMS(m, k)), floats("b", DIMS(k, n))}, y = wanted(DIMS(m, n));
        multiply(y.data, in[0].data, in[1].data, m, n, k, (int[]){k, 1}, (int[]){n, 1});
        expect(source, 2, in, 1, &y, 1e-5, 1e-4);
    }
}

static void test_matmul_stack_by_matrix(void **state) {
    (void)state;
    for (int stacked = 0; stacked < 2; stacked++) {
        braid_tensor a = floats("a", DIMS(2, 4, 4)), b = floats("b", DIMS(4, 4)), y = wanted(DIMS(2, 4, 4));
        braid_tensor in[] = {a, b};
        for (int i = 0; i < 2; i++) {
            const float *slice = (float *)a.data + 16 * i;
            multiply(numbers_of(&y) + 16 * i, stacked ? b.data : slice, stacked ? slice : b.data, 4, 4, 4,
                     (int[]){4, 1}, (int[]){4, 1});
        }
        expect(stacked ? "graph t(a: float32[2,4,4], b: float32[4,4]) { y = MatMul(b, a) } -> y"
                       : "graph t(a: float32[2,4,4], b: float32[4,4]) { y = MatMul(a, b) } -> y",
               2, in, 1, &y, 1e-5, 1e-5);
    }
}

/* alpha A' B' + beta C, C a row. */
static void check_gemm(int m, int n, int k, bool ta, bool tb, double alpha, double beta) {
    char source[320];
    int rows_a = ta ? k : m, columns_a = ta ? m : k, rows_b = tb ? n : k, columns_b = tb ? k : n;
    snprintf(
        source, sizeof source,
        "graph t(a: float32[%d,%d], b: float32[%d,%d], c: float32[%d]) { y = Gemm(a, b, c) {transA = %d, transB = %d, "
        "alpha = %.4f, beta = %.4f} } -> y",
        rows_a, columns_a, rows_b, columns_b, n, ta, tb, alpha, beta);
    braid_tensor in[] = {floats("a", DIMS(rows_a, columns_a)), floats("b", DIMS(rows_b, columns_b)),
                         floats("c", DIMS(n))};
    braid_tensor y = wanted(DIMS(m, n));
    multiply(y.data, in[0].data, in[1].data, m, n, k, ta ? (int[]){1, m} : (int[]){k, 1},
             tb ? (int[]){1, k} : (int[]){n, 1});
    for (int i = 0; i < m * n; i++)
        numbers_of(&y)[i] = alpha * numbers_of(&y)[i] + beta * (double)((float *)in[2].data)[i % n];
    expect(source, 3, in, 1, &y, 1e-5, 1e-4);
}

static void test_gemm_transposed(void **state) {
    (void)state;
    for (int form = 0; form < 4; form++) {
        check_gemm(5, 7, 6, form & 1, form >> 1, 1, 1);
        check_gemm(16, 8, 32, form & 1, form >> 1, 0.5, 2);
    }
}

static void test_gemm_of_two_columns(void **state) {
    (void)state;
    static const int rows[] = {1, 2, 3, 64, 100};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_gemm(rows[i], 2, 8, false, false, 1, 1);
        check_gemm(rows[i], 2, 31, false, true, 1, 1);
    }
}

/* --------------------------------------------------------------------------------------------------- Conv */

typedef struct conv {
    int batch, in, height, width, out, kernel_h, kernel_w, group, stride;
    int top, left, bottom, right; /* pads */
    bool bias;
    double slope; /* of the LeakyRelu behind; 1: none */
    const char *attributes; /* NULL: kernel_shape, strides, group and pads as above */
} conv;

static int64_t conv_height(const conv *c) { return (c->height + c->top + c->bottom - c->kernel_h) / c->stride + 1; }
static int64_t conv_width(const conv *c) { return (c->width + c->left + c->right - c->kernel_w) / c->stride + 1; }

/* One output element, w[out][in / group][kernel_h][kernel_w]. */
static double conv_at(const conv *c, const braid_tensor *in, int64_t b, int64_t o, int64_t y, int64_t x) {
    const float *data = in[0].data, *w = in[1].data;
    int per_group = c->in / c->group, first = (int)(o / (c->out / c->group)) * per_group;
    double sum = c->bias ? (double)((float *)in[2].data)[o] : 0;
    for (int i = 0; i < per_group; i++)
        for (int kh = 0; kh < c->kernel_h; kh++)
            for (int kw = 0; kw < c->kernel_w; kw++) {
                int64_t h = y * c->stride + kh - c->top, v = x * c->stride + kw - c->left;
                if (h < 0 || v < 0 || h >= c->height || v >= c->width) continue;
                sum += (double)data[((b * c->in + first + i) * c->height + h) * c->width + v] *
                       (double)w[((o * per_group + i) * c->kernel_h + kh) * c->kernel_w + kw];
            }
    return sum < 0 ? sum * c->slope : sum;
}

static void conv_source(const conv *c, char *source, size_t size) {
    char attributes[256];
    snprintf(attributes, sizeof attributes,
             "kernel_shape = [%d, %d], strides = [%d, %d], group = %d, pads = [%d, %d, %d, %d]", c->kernel_h,
             c->kernel_w, c->stride, c->stride, c->group, c->top, c->left, c->bottom, c->right);
    char bias[48] = "", leaky[64] = "";
    if (c->bias) snprintf(bias, sizeof bias, ", b: float32[%d]", c->out);
    if (c->slope != 1) snprintf(leaky, sizeof leaky, "z = LeakyRelu(y) {alpha = %g}", c->slope);
    snprintf(source, size,
             "graph t(x: float32[%d,%d,%d,%d], w: float32[%d,%d,%d,%d]%s) { y = Conv(x, w%s) {%s} %s } -> %s", c->batch,
             c->in, c->height, c->width, c->out, c->in / c->group, c->kernel_h, c->kernel_w, bias, c->bias ? ", b" : "",
             c->attributes ? c->attributes : attributes, leaky, *leaky ? "z" : "y");
}

static void conv_inputs(const conv *c, braid_tensor in[3]) {
    in[0] = floats("x", DIMS(c->batch, c->in, c->height, c->width));
    in[1] = floats("w", DIMS(c->out, c->in / c->group, c->kernel_h, c->kernel_w));
    if (c->bias) in[2] = floats("b", DIMS(c->out));
}

static braid_tensor conv_wanted(const conv *c, const braid_tensor *in) {
    braid_tensor y = wanted(DIMS(c->batch, c->out, conv_height(c), conv_width(c)));
    double *to = y.data;
    for (int64_t b = 0; b < y.dims[0]; b++)
        for (int64_t o = 0; o < y.dims[1]; o++)
            for (int64_t i = 0; i < y.dims[2]; i++)
                for (int64_t j = 0; j < y.dims[3]; j++) *to++ = conv_at(c, in, b, o, i, j);
    return y;
}

static void check_conv(conv c) {
    char source[640];
    braid_tensor in[3];
    if (!c.batch) c.batch = 1;
    if (!c.group) c.group = 1;
    if (!c.stride) c.stride = 1;
    if (c.slope == 0) c.slope = 1;
    conv_source(&c, source, sizeof source);
    conv_inputs(&c, in);
    braid_tensor y = conv_wanted(&c, in);
    expect(source, c.bias ? 3 : 2, in, 1, &y, 1e-5, 2e-4);
}
#define SQUARE(k) .kernel_h = k, .kernel_w = k
#define PADS(n) .top = n, .left = n, .bottom = n, .right = n

static void test_conv_3x3_without_bias(void **state) {
    (void)state;
    for (int out = 4; out <= 16; out += 4)
        for (int pad = 0; pad < 2; pad++)
            check_conv((conv){.in = 3, .height = 9, .width = 11, .out = out, SQUARE(3), PADS(pad)});
    check_conv((conv){.batch = 2, .in = 8, .height = 7, .width = 7, .out = 32, SQUARE(3), PADS(1)});
}

static void test_leaky_relu_after_conv(void **state) {
    (void)state;
    for (int bias = 0; bias < 2; bias++) {
        conv base = {.in = 4, .height = 11, .width = 10, .out = 8, SQUARE(3), PADS(1), .bias = bias, .slope = 0.125};
        conv strided = base, five = base, grouped = base, depthwise = base, odd = base;
        strided.stride = 2;
        five.kernel_h = five.kernel_w = 5;
        grouped.group = 2;
        depthwise.group = depthwise.out = 4;
        odd.in = 3, odd.out = 7;
        check_conv(strided);
        check_conv(five);
        check_conv(grouped);
        check_conv(depthwise);
        check_conv(odd);
    }
}

static void test_conv_auto_pad(void **state) {
    (void)state;
    conv base = {.in = 2, .height = 7, .width = 12, .out = 4, SQUARE(3)};
    conv valid = base, upper = base, lower = base, even = base;
    valid.attributes = "kernel_shape = [3, 3], auto_pad = \"VALID\", pads = [0, 0, 0, 0]";
    check_conv(valid);
    valid.stride = 2;
    valid.attributes = "kernel_shape = [3, 3], strides = [2, 2], auto_pad = \"VALID\"";
    check_conv(valid);
    upper.stride = 2; /* 7 -> 4: 2 elements of padding; 12 -> 6: 1 */
    upper.top = upper.bottom = upper.right = 1;
    upper.attributes = "kernel_shape = [3, 3], strides = [2, 2], auto_pad = \"SAME_UPPER\"";
    check_conv(upper);
    lower.stride = 2;
    lower.top = lower.bottom = lower.left = 1;
    lower.attributes = "kernel_shape = [3, 3], strides = [2, 2], auto_pad = \"SAME_LOWER\"";
    check_conv(lower);
    even.kernel_h = 2, even.kernel_w = 5; /* 1 and 4 elements of padding */
    even.bottom = 1, even.left = even.right = 2;
    even.attributes = "kernel_shape = [2, 5], auto_pad = \"SAME_UPPER\"";
    check_conv(even);
}

static void test_conv_without_kernel_shape(void **state) {
    (void)state;
    check_conv(
        (conv){.in = 3, .height = 8, .width = 6, .out = 5, .kernel_h = 3, .kernel_w = 2, .attributes = "group = 1"});
    check_conv((conv){.in = 3, .height = 8, .width = 6, .out = 4, SQUARE(5), PADS(2), .bias = true,
                      .attributes = "pads = [2, 2, 2, 2]"});
}

/* The sum before Relu and the one behind are both wanted, the first by two. */
static void test_conv_with_two_consumers(void **state) {
    (void)state;
    conv c = {.batch = 1, .in = 3, .height = 6, .width = 6, .out = 8, SQUARE(3), PADS(1), .group = 1, .stride = 1,
              .slope = 1};
    braid_tensor in[3], want[3];
    conv_inputs(&c, in);
    for (int i = 0; i < 3; i++) want[i] = conv_wanted(&c, in);
    for (int64_t i = 0, n = count_of(&want[0]); i < n; i++) {
        double y = numbers_of(&want[0])[i];
        numbers_of(&want[0])[i] = y > 0 ? y : 0;
        numbers_of(&want[1])[i] = -y;
    }
    expect("graph t(x: float32[1,3,6,6], w: float32[8,3,3,3]) { y = Conv(x, w) {pads = [1, 1, 1, 1]} u = Relu(y) "
           "v = Neg(y) } -> u, v, y",
           2, in, 3, want, 1e-5, 2e-4);
}

/* 7x7, stride 2, 32 images, Relu and the pooling behind; sampled, since the plain loops are slow. */
static void test_resnet_stem_of_32_images(void **state) {
    (void)state;
    conv c = {.batch = 32, .in = 3, .height = 112, .width = 112, .out = 64, SQUARE(7), PADS(3), .group = 1, .stride = 2,
              .bias = true, .slope = 1};
    braid_tensor in[3], out = {0};
    braid_error err = {0};
    conv_inputs(&c, in);
    const char *source = "graph t(x: float32[32,3,112,112], w: float32[64,3,7,7], b: float32[64]) { "
                         "y = Conv(x, w, b) {strides = [2, 2], pads = [3, 3, 3, 3]} r = Relu(y) "
                         "p = MaxPool(r) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]} } -> p";
    if (ops_run(false, source, 3, in, 1, &out, NULL, &err) != BRAID_OK) fail_msg("%s", err.message);
    assert_int_equal(out.bytes, 4 * 32 * 64 * 28 * 28);
    for (int64_t i = 0; i < 3000; i++) {
        int64_t at = (int64_t)(ops_uniform() * 32 * 64 * 28 * 28), b = at / (64 * 784), o = at / 784 % 64;
        int64_t y = at / 28 % 28, x = at % 28;
        double most = 0;
        for (int64_t h = 2 * y - 1; h <= 2 * y + 1; h++)
            for (int64_t w = 2 * x - 1; w <= 2 * x + 1; w++)
                if (h >= 0 && w >= 0 && h < 56 && w < 56) most = fmax(most, conv_at(&c, in, b, o, h, w));
        if (!ops_close((double)((float *)out.data)[at], most, 1e-5, 1e-3))
            fail_msg("element %d is %.9g, expected %.9g", (int)at, (double)((float *)out.data)[at], most);
    }
    braid_tensor_free(&out);
    for (int i = 0; i < 3; i++) free(in[i].data);
}

/* -------------------------------------------------------------------------------------------- elementwise */

/* y = f(x) for n points evenly spread over [low, high]. */
static void check_curve(const char *call, double (*f)(double), int n, double low, double high, double rtol,
                        double atol) {
    char source[160];
    snprintf(source, sizeof source, "graph t(x: float32[%d]) { y = %s } -> y", n, call);
    braid_tensor x = floats("x", DIMS(n)), y = wanted(DIMS(n));
    for (int i = 0; i < n; i++) {
        float v = (float)(low + (high - low) * i / (n - 1));
        ((float *)x.data)[i] = v;
        numbers_of(&y)[i] = f((double)v);
    }
    expect(source, 1, &x, 1, &y, rtol, atol);
}

static double clipped(double x) { return fmin(fmax(x, 0.25), 0.75); }
static void test_clip(void **state) {
    (void)state;
    braid_tensor x = floats("x", DIMS(101)), y = wanted(DIMS(101));
    for (int i = 0; i < 101; i++) {
        ((float *)x.data)[i] = (float)i / 100;
        numbers_of(&y)[i] = clipped((double)((float *)x.data)[i]);
    }
    expect(
        "graph t(x: float32[101]) { l: float32[] = constant {0.25} h: float32[] = constant {0.75} y = Clip(x, l, h) } "
        "-> y",
        1, &x, 1, &y, 0, 0);
}

static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static void test_softplus_of_100(void **state) {
    (void)state;
    check_curve("Softplus(x)", softplus, 201, -100, 100, 2e-6, 1e-37);
    check_curve("Softplus(x)", softplus, 2, 100, 10000, 2e-6, 0);
}

static void test_erf(void **state) {
    (void)state;
    check_curve("Erf(x)", erf, 2001, -5, 5, 0, 1e-6);
    check_curve("Erf(x)", erf, 201, -1e-3, 1e-3, 1e-6, 0);
    check_curve("Erf(x)", erf, 3, -1e6, 1e6, 0, 0);
}

static void test_tanh_of_large(void **state) {
    (void)state;
    check_curve("Tanh(x)", tanh, 2001, -100, 100, 1e-6, 0);
    check_curve("Tanh(x)", tanh, 3, -1e30, 1e30, 0, 0);
    check_curve("Tanh(x)", tanh, 101, -1e-3, 1e-3, 1e-6, 0);
}

/* Bases of both signs; exponents broadcast over them. */
static void test_pow(void **state) {
    (void)state;
    static const double exponents[] = {0, 1, 2, 3, -1, -2, 0.5, -0.5, 7, 2.5, 1.0 / 3, 10, -3.75, 20};
    enum { BASES = 121, EXPONENTS = COUNT_OF(exponents) };
    braid_tensor in[] = {floats("a", DIMS(BASES, 1)), floats("b", DIMS(EXPONENTS))};
    braid_tensor y = wanted(DIMS(BASES, EXPONENTS));
    for (int i = 0; i < BASES; i++) ((float *)in[0].data)[i] = (float)(i - 60) / 4;
    for (int j = 0; j < EXPONENTS; j++) ((float *)in[1].data)[j] = (float)exponents[j];
    for (int i = 0; i < BASES * EXPONENTS; i++)
        numbers_of(&y)[i] =
            pow((double)((float *)in[0].data)[i / EXPONENTS], (double)((float *)in[1].data)[i % EXPONENTS]);
    expect("graph t(a: float32[121,1], b: float32[14]) { y = Pow(a, b) } -> y", 2, in, 1, &y, 2e-6, 1e-37);
}

/* ----------------------------------------------------------------------------------------- Resize and Pad */

enum { HALF_PIXEL, HALF_PIXEL_SYMMETRIC, PYTORCH, ALIGN_CORNERS, ASYMMETRIC, CROP, COORDINATES };
static const char *const coordinates[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                          "align_corners", "asymmetric",           "tf_crop_and_resize"};
enum { ROI_START = 25, ROI_END = 75 }; /* percent, on every axis */

/* Where output index i of n lies in an axis of `length` elements. align_corners takes the extent before it is rounded
   down: so do the standard's tests. */
static double resize_source(int mode, int64_t i, int64_t n, int64_t length, double scale) {
    double x = (double)i, last = (double)(length - 1);
    switch (mode) {
    case HALF_PIXEL: return (x + 0.5) / scale - 0.5;
    case HALF_PIXEL_SYMMETRIC: {
        double adjusted = (double)n / (scale * (double)length), centre = (double)length / 2;
        return centre * (1 - adjusted) + (x + 0.5) / scale - 0.5;
    }
    case PYTORCH: return n > 1 ? (x + 0.5) / scale - 0.5 : 0;
    case ALIGN_CORNERS: return n > 1 ? x * last / (scale * (double)length - 1) : 0;
    case CROP: return n > 1 ? (ROI_START * last + x * (ROI_END - ROI_START) * last / (double)(n - 1)) / 100
                            : (ROI_START + ROI_END) * last / 200;
    default: return x / scale;
    }
}

static double clamped(const float *row, int64_t i, int64_t length) {
    return (double)row[i < 0 ? 0 : i >= length ? length - 1 : i];
}

/* Resizes the last axis of x[rows, length] to n; linear, or the nearest with a half rounded down. */
static void resize_row(const float *row, int64_t length, double *to, int64_t n, int mode, bool linear, double scale) {
    for (int64_t i = 0; i < n; i++) {
        double at = resize_source(mode, i, n, length, scale), low = floor(at);
        to[i] = linear ? clamped(row, (int64_t)low, length) * (1 - (at - low)) +
                             clamped(row, (int64_t)low + 1, length) * (at - low)
                       : clamped(row, (int64_t)ceil(at - 0.5), length);
    }
}

static void check_resize(int mode, bool linear, const char *decimals) {
    float scale = strtof(decimals, NULL);
    int64_t length = 13, n = (int64_t)floorf(scale * (float)length * (mode == CROP ? 0.5f : 1.0f)); /* of the roi */
    char source[400];
    snprintf(source, sizeof source,
             "graph t(x: float32[2,3,%d]) { r: float32[6] = constant {0, 0, 0.25, 1, 1, 0.75} s: float32[3] = constant "
             "{1, 1, %s} y = Resize(x, r, s) {mode = \"%s\", coordinate_transformation_mode = \"%s\"} } -> y",
             (int)length, decimals, linear ? "linear" : "nearest", coordinates[mode]);
    braid_tensor x = floats("x", DIMS(2, 3, length)), y = wanted(DIMS(2, 3, n));
    for (int row = 0; row < 6; row++)
        resize_row((float *)x.data + row * length, length, numbers_of(&y) + row * n, n, mode, linear, (double)scale);
    expect(source, 1, &x, 1, &y, 1e-5, 2e-5);
}

static void test_resize_coordinates(void **state) {
    (void)state;
    static const char *const scales[] = {"1.2345678806304932", "2.7182817459106445", "0.61803400516510010",
                                         "0.35876429080963135", "3.1415927410125732"};
    for (int mode = 0; mode < COORDINATES; mode++)
        for (size_t i = 0; i < COUNT_OF(scales); i++)
            for (int linear = 0; linear < 2; linear++) check_resize(mode, linear, scales[i]);
}

/* Mirrors an index at both ends, or clamps it. */
static int64_t pad_index(int64_t i, int64_t n, bool reflect) {
    if (!reflect) return i < 0 ? 0 : i >= n ? n - 1 : i;
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
}

static void check_pad(const char *mode, const int *pads) {
    char source[400];
    snprintf(
        source, sizeof source,
        "graph t(x: float32[2,4,5]) { p: int64[6] = constant {%d, %d, %d, %d, %d, %d} c: float32[] = constant {9.5} "
        "y = Pad(x, p, c) {mode = \"%s\"} } -> y",
        pads[0], pads[1], pads[2], pads[3], pads[4], pads[5], mode);
    static const int64_t n[3] = {2, 4, 5};
    int64_t m[3], at[3];
    for (int a = 0; a < 3; a++) m[a] = n[a] + pads[a] + pads[3 + a];
    braid_tensor x = floats("x", 3, n), y = wanted(3, m);
    double *to = y.data;
    for (int64_t i = 0; i < m[0]; i++)
        for (int64_t j = 0; j < m[1]; j++)
            for (int64_t k = 0; k < m[2]; k++) {
                int64_t from[3] = {i, j, k};
                bool inside = true;
                for (int a = 0; a < 3; a++) {
                    from[a] -= pads[a];
                    inside &= from[a] >= 0 && from[a] < n[a];
                    at[a] = pad_index(from[a], n[a], *mode == 'r');
                }
                double v = (double)((float *)x.data)[(at[0] * n[1] + at[1]) * n[2] + at[2]];
                *to++ = inside || *mode != 'c' ? v : 9.5;
            }
    expect(source, 1, &x, 1, &y, 0, 0);
}

static void test_pad_of_3_axes(void **state) {
    (void)state;
    static const int pads[][6] = {{0, 0, 0, 0, 0, 2}, {0, 0, 0, 0, 2, 3}, {1, 2, 3, 1, 3, 4}, {0, 1, 0, 1, 2, 0}};
    static const char *const modes[] = {"constant", "edge", "reflect"};
    for (size_t i = 0; i < COUNT_OF(pads); i++)
        for (size_t j = 0; j < COUNT_OF(modes); j++) check_pad(modes[j], pads[i]);
}

/* ---------------------------------------------------------------------------------------- Gather, Reshape */

static void test_gather_on_every_axis(void **state) {
    (void)state;
    static const int64_t dims[3] = {3, 4, 5};
    static const int picks[4] = {2, -1, 0, -3}; /* 2x2 */
    for (int axis = -3; axis < 3; axis++) {
        int a = axis < 0 ? axis + 3 : axis;
        int64_t outer = 1, inner = 1, shape[4], rank = 0;
        for (int i = 0; i < 3; i++) {
            if (i == a) shape[rank++] = 2, shape[rank++] = 2;
            else shape[rank++] = dims[i];
            if (i < a) outer *= dims[i];
            if (i > a) inner *= dims[i];
        }
        char source[200];
        snprintf(
            source, sizeof source,
            "graph t(x: float32[3,4,5]) { i: int64[2,2] = constant {2, -1, 0, -3} y = Gather(x, i) {axis = %d} } -> y",
            axis);
        braid_tensor x = floats("x", 3, dims), y = wanted(4, shape);
        for (int64_t o = 0; o < outer; o++)
            for (int64_t p = 0; p < 4; p++)
                for (int64_t j = 0; j < inner; j++) {
                    int64_t from = picks[p] < 0 ? picks[p] + dims[a] : picks[p];
                    numbers_of(&y)[(o * 4 + p) * inner + j] =
                        (double)((float *)x.data)[(o * dims[a] + from) * inner + j];
                }
        expect(source, 1, &x, 1, &y, 0, 0);
    }
}

static void test_reshape_to_the_rest(void **state) {
    (void)state;
    static const char *const targets[] = {"int64[2] = constant {0, -1}", "int64[3] = constant {-1, 2, 3}",
                                          "int64[1] = constant {-1}"};
    static const int64_t shapes[][3] = {{2, 12}, {4, 2, 3}, {24}};
    static const int ranks[] = {2, 3, 1};
    for (int i = 0; i < 3; i++) {
        char source[200];
        snprintf(source, sizeof source, "graph t(x: float32[2,3,4]) { s: %s r = Reshape(x, s) y = Abs(r) } -> y",
                 targets[i]);
        braid_tensor x = floats("x", DIMS(2, 3, 4)), y = wanted(ranks[i], shapes[i]);
        for (int j = 0; j < 24; j++) numbers_of(&y)[j] = fabs((double)((float *)x.data)[j]);
        expect(source, 1, &x, 1, &y, 0, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concat_axis_1_of_a_batch),
        cmocka_unit_test(test_concat_of_many),
        cmocka_unit_test(test_concat_of_a_large_image),
        cmocka_unit_test(test_split_2_3),
        cmocka_unit_test(test_matmul_sizes),
        cmocka_unit_test(test_matmul_stack_by_matrix),
        cmocka_unit_test(test_gemm_transposed),
        cmocka_unit_test(test_gemm_of_two_columns),
        cmocka_unit_test(test_conv_3x3_without_bias),
        cmocka_unit_test(test_leaky_relu_after_conv),
        cmocka_unit_test(test_conv_auto_pad),
        cmocka_unit_test(test_conv_without_kernel_shape),
        cmocka_unit_test(test_conv_with_two_consumers),
        cmocka_unit_test(test_resnet_stem_of_32_images),
        cmocka_unit_test(test_clip),
        cmocka_unit_test(test_softplus_of_100),
        cmocka_unit_test(test_erf),
        cmocka_unit_test(test_tanh_of_large),
        cmocka_unit_test(test_pow),
        cmocka_unit_test(test_resize_coordinates),
        cmocka_unit_test(test_pad_of_3_axes),
        cmocka_unit_test(test_gather_on_every_axis),
        cmocka_unit_test(test_reshape_to_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
