/*
 * ops_product.c: MatMul, Gemm, Conv, ConvTranspose on the host against loops written straight from the standard.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ops/op.h"

static uint64_t seed = 1;
static int64_t below(int64_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(seed >> 33) % n;
}
static int64_t between(int64_t low, int64_t high) {
    return low + below(high - low + 1);
}

static tensor *random_tensor(arena *m, braid_type type, int rank, const int64_t *dims) {
    tensor *t;
    int64_t count;
    assert_int_equal(tensor_new(m, type, rank, dims, &t, NULL), BRAID_OK);
    assert_true(dims_count(rank, dims, &count));
    for (int64_t i = 0; i < count; i++) {
        if (type_is_float(type))
            element_set_f64(type, t->data, i, (double)between(-8, 8) / 4);
        else
            element_set_i64(type, t->data, i, between(-1000000000, 1000000000));
    }
    return t;
}

static int32_t input(graph *g, const char *name, const tensor *t) {
    int32_t v = graph_value(g, name, VALUE_INPUT);
    g->values[v]->type = t->type;
    return v;
}

/* A graph of one node whose inputs have these tensors' types. */
static node *one_node(arena *m, const char *type, int n_in, tensor *const *in, graph **out) {
    static const char *const names[] = {"a", "b", "c"};
    graph *g = graph_new(m, "test");
    int32_t values[3];
    for (int i = 0; i < n_in; i++) values[i] = in[i] ? input(g, names[i], in[i]) : -1;
    node *n = graph_node(g, type, "", "", n_in, values, 1);
    n->op = op_find("", type);
    assert_non_null(n->op);
    *out = g;
    return n;
}

static tensor *evaluate(arena *m, graph *g, node *n, tensor *const *in) {
    braid_error err = {0};
    tensor *out = NULL;
    if (op_eval(g, n, m, (const tensor *const *)in, &out, &err) != BRAID_OK) fail_msg("%s", err.message);
    return out;
}

static void check(const tensor *t, int64_t at, double wanted) {
    double found = element_f64(t->type.type, t->data, at);
    double slack = t->type.type == BRAID_FLOAT16 ? 1e-3 : t->type.type == BRAID_BFLOAT16 ? 8e-3 : 1e-6;
    if (!(fabs(found - wanted) <= slack * (1 + fabs(wanted))))
        fail_msg("element %lld: %g, expected %g", (long long)at, found, wanted);
}

static const braid_type product_types[] = {BRAID_FLOAT32, BRAID_FLOAT16, BRAID_BFLOAT16, BRAID_FLOAT64,
                                           BRAID_INT32,   BRAID_INT64,   BRAID_UINT32,   BRAID_UINT64};

static void matmul_one(braid_type type, int64_t m, int64_t k, int64_t n, int a_batch, int b_batch) {
    arena *memory = arena_new();
    int64_t a_dims[4] = {a_batch > 1 ? 3 : 1, 2, m, k}, b_dims[4] = {3, b_batch > 1 ? 2 : 1, k, n};
    int ra = 2 + a_batch, rb = 2 + b_batch;
    tensor *in[2] = {random_tensor(memory, type, ra, a_dims + 4 - ra),
                     random_tensor(memory, type, rb, b_dims + 4 - rb)};
    graph *g;
    node *node_ = one_node(memory, "MatMul", 2, in, &g);
    tensor *out = evaluate(memory, g, node_, in);
    int rank = ra > rb ? ra : rb;
    assert_int_equal(out->type.rank, rank);
    int64_t batch0 = rank > 3 ? out->type.dims[0] : 1, batch1 = rank > 2 ? out->type.dims[rank - 3] : 1;
    for (int64_t i = 0; i < batch0 * batch1 * m * n; i++) {
        int64_t e1 = i / (m * n) % batch1, e0 = i / (m * n) / batch1, row = i / n % m, col = i % n;
        int64_t at = ra < 3 ? 0 : ra < 4 ? e1 : (a_dims[0] == 1 ? 0 : e0 * 2) + e1;
        int64_t bt = rb < 3 ? 0 : rb < 4 ? (b_dims[1] == 1 ? 0 : e1) : e0 * b_dims[1] + (b_dims[1] == 1 ? 0 : e1);
        double sum = 0;
        uint64_t wrapped = 0;
        for (int64_t j = 0; j < k; j++) {
            int64_t ia = (at * m + row) * k + j, ib = (bt * k + j) * n + col;
            sum += element_f64(type, in[0]->data, ia) * element_f64(type, in[1]->data, ib);
            wrapped += (uint64_t)element_i64(type, in[0]->data, ia) * (uint64_t)element_i64(type, in[1]->data, ib);
        }
        if (type_is_float(type))
            check(out, i, sum);
        else if (braid_type_bytes(type) == 8)
            assert_int_equal(element_i64(type, out->data, i), (int64_t)wrapped);
        else
            assert_int_equal((uint32_t)element_i64(type, out->data, i), (uint32_t)wrapped);
    }
    arena_free(memory);
}

static void matmul_shapes(void **state) {
    static const int64_t shapes[][3] = {{3, 3, 3}, {5, 5, 5},   {10, 10, 10}, {50, 50, 50}, {6, 12, 18},
                                        {1, 6, 4}, {1, 10, 10}, {4, 4, 4},    {7, 0, 5},    {0, 3, 4},
                                        {3, 4, 0}, {1, 300, 1}, {270, 3, 2},  {2, 3, 140},  {65, 257, 67}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        for (size_t t = 0; t < COUNT_OF(product_types); t++)
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++)
                    if (i < 9 || (a + b == 0 && t < 5))
                        matmul_one(product_types[t], shapes[i][0], shapes[i][1], shapes[i][2], a, b);
}

static void matmul_vectors(void **state) {
    (void)state;
    arena *m = arena_new();
    tensor *v = random_tensor(m, BRAID_FLOAT32, 1, (int64_t[]){5}),
           *w = random_tensor(m, BRAID_FLOAT32, 1, (int64_t[]){5});
    tensor *cube = random_tensor(m, BRAID_FLOAT32, 3, (int64_t[]){2, 5, 3});
    graph *g;
    tensor *in[2] = {v, w};
    node *n = one_node(m, "MatMul", 2, in, &g);
    tensor *out = evaluate(m, g, n, in);
    assert_int_equal(out->type.rank, 0);
    double sum = 0;
    for (int i = 0; i < 5; i++) sum += (double)((float *)v->data)[i] * (double)((float *)w->data)[i];
    check(out, 0, sum);
    in[1] = cube;
    n = one_node(m, "MatMul", 2, in, &g);
    out = evaluate(m, g, n, in);
    assert_int_equal(out->type.rank, 2);
    assert_int_equal(out->type.dims[1], 3);
    arena_free(m);
}

static void gemm_forms(void **state) {
    (void)state;
    for (int form = 0; form < 200; form++) {
        arena *memory = arena_new();
        bool at = form & 1, bt = form & 2;
        int bias = form / 4 % 5;
        int64_t m = between(1, 9), n = between(1, 9), k = between(0, 9);
        braid_type type = product_types[form % 4];
        tensor *in[3] = {random_tensor(memory, type, 2, at ? (int64_t[]){k, m} : (int64_t[]){m, k}),
                         random_tensor(memory, type, 2, bt ? (int64_t[]){n, k} : (int64_t[]){k, n}), NULL};
        if (bias == 1) in[2] = random_tensor(memory, type, 0, NULL);
        if (bias == 2) in[2] = random_tensor(memory, type, 1, &n);
        if (bias == 3) in[2] = random_tensor(memory, type, 2, (int64_t[]){m, 1});
        if (bias == 4) in[2] = random_tensor(memory, type, 2, (int64_t[]){m, n});
        graph *g;
        node *gemm = one_node(memory, "Gemm", 3, in, &g);
        node_add_int(g, gemm, "transA", at);
        node_add_int(g, gemm, "transB", bt);
        node_add_float(g, gemm, "alpha", 0.5f);
        node_add_float(g, gemm, "beta", 2.0f);
        tensor *out = evaluate(memory, g, gemm, in);
        for (int64_t i = 0; i < m * n; i++) {
            int64_t r = i / n, c = i % n;
            double sum = 0;
            for (int64_t j = 0; j < k; j++)
                sum += element_f64(type, in[0]->data, at ? j * m + r : r * k + j) *
                       element_f64(type, in[1]->data, bt ? c * k + j : j * n + c);
            sum *= 0.5;
            if (bias) sum += 2 * element_f64(type, in[2]->data, bias == 1 ? 0 : bias == 2 ? c : bias == 3 ? r : i);
            check(out, i, sum);
        }
        arena_free(memory);
    }
}

/* ------------------------------------------------------------------------------------------ convolutions */

typedef struct geometry {
    int axes;
    int64_t batch, groups, channels, outputs; /* channels and outputs of one group */
    int64_t in[3], kernel[3], stride[3], dilation[3], pads[6], extra[3];
} geometry;

static geometry random_geometry(int axes, bool transposed) {
    geometry c = {.axes = axes,
                  .batch = between(1, 2),
                  .groups = between(1, 3),
                  .channels = between(1, 3),
                  .outputs = between(1, 3)};
    for (int i = 0; i < axes; i++) {
        c.kernel[i] = between(1, 3);
        c.stride[i] = between(1, 3);
        c.dilation[i] = between(1, 2);
        c.pads[i] = between(0, transposed ? 1 : 2);
        c.pads[axes + i] = between(0, transposed ? 1 : 2);
        int64_t reach = (c.kernel[i] - 1) * c.dilation[i] + 1;
        c.in[i] = between(transposed ? 2 : reach, 8);
        c.extra[i] = transposed ? below(c.stride[i]) : 0;
    }
    return c;
}

static void add_geometry(graph *g, node *n, const geometry *c, bool kernel_shape) {
    node_add_int(g, n, "group", c->groups);
    node_add_ints(g, n, "strides", c->axes, c->stride);
    node_add_ints(g, n, "dilations", c->axes, c->dilation);
    node_add_ints(g, n, "pads", 2 * c->axes, c->pads);
    if (kernel_shape) node_add_ints(g, n, "kernel_shape", c->axes, c->kernel);
}

static int64_t product_of(int n, const int64_t *d) {
    int64_t p = 1;
    while (n--) p *= *d++;
    return p;
}

/* Flat index of coordinates. */
static int64_t flat(int n, const int64_t *dims, const int64_t *at) {
    int64_t f = 0;
    for (int i = 0; i < n; i++) f = f * dims[i] + at[i];
    return f;
}
static void split(int n, const int64_t *dims, int64_t f, int64_t *at) {
    for (int i = n - 1; i >= 0; i--) {
        at[i] = f % dims[i];
        f /= dims[i];
    }
}

/* Adds every (input pixel, tap, output pixel) triple of either kind to the plane of output channel `o`. */
static void naive_channel(const geometry *c, bool transposed, const tensor *x, const tensor *w, const int64_t *out,
                          int64_t image, int64_t o, double *plane) {
    int64_t taps = product_of(c->axes, c->kernel), pixels = product_of(c->axes, transposed ? c->in : out);
    int64_t group = o / c->outputs, in_plane = product_of(c->axes, c->in);
    for (int64_t ch = 0; ch < c->channels; ch++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t t = 0; t < taps; t++) {
                int64_t from[3], tap[3], to[3];
                bool inside = true;
                split(c->axes, transposed ? c->in : out, p, from);
                split(c->axes, c->kernel, t, tap);
                for (int i = 0; i < c->axes; i++) {
                    to[i] = from[i] * c->stride[i] - c->pads[i] + tap[i] * c->dilation[i];
                    inside = inside && to[i] >= 0 && to[i] < (transposed ? out : c->in)[i];
                }
                if (!inside) continue;
                int64_t x_at = (image * c->groups + group) * c->channels + ch;
                int64_t other = flat(c->axes, transposed ? out : c->in, to);
                int64_t w_at =
                    transposed ? (group * c->channels + ch) * c->outputs + o % c->outputs : o * c->channels + ch;
                plane[transposed ? other : p] +=
                    element_f64(x->type.type, x->data, x_at * in_plane + (transposed ? p : other)) *
                    element_f64(w->type.type, w->data, w_at * taps + t);
            }
}

static void conv_one(int round, bool transposed) {
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_FLOAT64, BRAID_FLOAT16, BRAID_BFLOAT16};
    arena *memory = arena_new();
    geometry c = random_geometry(round % 3 + 1, transposed);
    braid_type type = types[round % 4];
    int64_t x_dims[5] = {c.batch, c.groups * c.channels}, w_dims[5], outputs = c.groups * c.outputs;
    w_dims[0] = transposed ? c.groups * c.channels : outputs;
    w_dims[1] = transposed ? c.outputs : c.channels;
    memcpy(x_dims + 2, c.in, sizeof c.in);
    memcpy(w_dims + 2, c.kernel, sizeof c.kernel);
    tensor *in[3] = {random_tensor(memory, type, c.axes + 2, x_dims), random_tensor(memory, type, c.axes + 2, w_dims),
                     round % 2 ? random_tensor(memory, type, 1, &outputs) : NULL};
    graph *g;
    node *n = one_node(memory, transposed ? "ConvTranspose" : "Conv", 3, in, &g);
    add_geometry(g, n, &c, round % 5 != 0);
    if (transposed) node_add_ints(g, n, "output_padding", c.axes, c.extra);
    tensor *out = evaluate(memory, g, n, in);
    const int64_t *o = out->type.dims + 2;
    for (int i = 0; i < c.axes; i++) {
        int64_t reach = (c.kernel[i] - 1) * c.dilation[i] + 1, pads = c.pads[i] + c.pads[c.axes + i];
        assert_int_equal(o[i], transposed ? (c.in[i] - 1) * c.stride[i] + c.extra[i] + reach - pads
                                          : (c.in[i] + pads - reach) / c.stride[i] + 1);
    }
    int64_t pixels = product_of(c.axes, o);
    double *plane = arena_array(memory, (size_t)pixels + 1, sizeof *plane);
    for (int64_t i = 0; i < c.batch * outputs; i++) {
        for (int64_t p = 0; p < pixels; p++) plane[p] = in[2] ? element_f64(type, in[2]->data, i % outputs) : 0;
        naive_channel(&c, transposed, in[0], in[1], o, i / outputs, i % outputs, plane);
        for (int64_t p = 0; p < pixels; p++) check(out, i * pixels + p, plane[p]);
    }
    arena_free(memory);
}

static void conv_random(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) conv_one(i, false);
}
static void conv_transpose_random(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) conv_one(i, true);
}

/* Extent of one axis in automatic padding modes. */
static void automatic_pads(void **state) {
    (void)state;
    static const char *const modes[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    for (int i = 0; i < 90; i++) {
        arena *m = arena_new();
        int64_t h = between(5, 9), w = between(5, 9), k = between(1, 4), s = between(1, 3);
        tensor *in[2] = {random_tensor(m, BRAID_FLOAT32, 4, (int64_t[]){1, 2, h, w}),
                         random_tensor(m, BRAID_FLOAT32, 4, (int64_t[]){2, 2, k, k})};
        graph *g;
        bool transposed = i % 2;
        node *n = one_node(m, transposed ? "ConvTranspose" : "Conv", 2, in, &g);
        node_add_string(g, n, "auto_pad", modes[i % 3]);
        node_add_ints(g, n, "strides", 2, (int64_t[]){s, s});
        tensor *out = evaluate(m, g, n, in);
        int64_t same = transposed ? h * s : (h + s - 1) / s, valid = transposed ? (h - 1) * s + k : (h - k) / s + 1;
        assert_int_equal(out->type.dims[2], i % 3 == 2 ? valid : same);
        /* the upper left corner of a 1-wide kernel sees the first pixel whatever the mode */
        if (k == 1 && !transposed) {
            const float *x = in[0]->data, *f = in[1]->data;
            check(out, 0, (double)(x[0] * f[0] + x[h * w] * f[1]));
        }
        arena_free(m);
    }
}

/* ------------------------------------------------------------------------------------------------ Einsum */

/* Sums terms of an equation of plain letters by visiting every index; letters a..h. */
static void einsum_one(const char *equation, int n_in, int64_t extent_a) {
    arena *memory = arena_new();
    int64_t extent[8] = {extent_a, 3, 4, 2, 5, 2, 3, 2}, count = 1;
    tensor *in[3];
    const char *terms[3], *at = equation, *out_text = strchr(equation, '>') + 1;
    for (int i = 0; i < n_in; i++) {
        int64_t dims[8];
        int rank = 0;
        terms[i] = at;
        for (; *at != ',' && *at != '-'; at++) dims[rank++] = extent[*at - 'a'];
        at++;
        in[i] = random_tensor(memory, BRAID_FLOAT64, rank, dims);
    }
    graph *g;
    node *n = one_node(memory, "Einsum", n_in, in, &g);
    node_add_string(g, n, "equation", equation);
    tensor *out = evaluate(memory, g, n, in);
    assert_int_equal(out->type.rank, (int)strlen(out_text));
    int64_t out_count;
    assert_true(dims_count(out->type.rank, out->type.dims, &out_count));
    double *sums = arena_array(memory, (size_t)out_count + 1, sizeof *sums);
    for (int l = 0; l < 8; l++)
        if (!strchr(equation, 'a' + l)) extent[l] = 1;
    for (int l = 0; l < 8; l++) count *= extent[l];
    for (int64_t i = 0; i < count; i++) {
        int64_t index[8], rest = i, to = 0;
        split(8, extent, rest, index);
        double v = 1;
        for (int t = 0; t < n_in; t++) {
            int64_t f = 0;
            for (const char *c = terms[t]; *c != ',' && *c != '-'; c++) f = f * extent[*c - 'a'] + index[*c - 'a'];
            v *= element_f64(BRAID_FLOAT64, in[t]->data, f);
        }
        for (const char *c = out_text; *c; c++) to = to * extent[*c - 'a'] + index[*c - 'a'];
        sums[to] += v;
    }
    for (int64_t i = 0; i < out_count; i++) check(out, i, sums[i]);
    arena_free(memory);
}

static void einsum_forms(void **state) {
    (void)state;
    static const struct {
        const char *equation;
        int n_in;
    } forms[] = {{"ab->ba", 1},          {"aa->a", 1},        {"aab->b", 1},       {"abc->", 1},
                 {"a,a->", 2},           {"a,b->ab", 2},      {"abc,acd->abd", 2}, {"abcd,aecd->abec", 2},
                 {"abec,aecd->abed", 2}, {"ab,bc,cd->ad", 3}, {"ab,ab,ab->b", 3},  {"abc,ab->ac", 2},
                 {"ab,cb->ca", 2},       {"a,ab,b->", 3},     {"abcd->dbca", 1}};
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        for (int64_t a = 0; a < 4; a++) einsum_one(forms[i].equation, forms[i].n_in, a);
}

static void einsum_shapes(void **state) {
    (void)state;
    static const struct {
        const char *equation;
        int rank;
        int64_t dims[5];
    } forms[] = {{"...ij,...jk->...ik", 4, {5, 2, 3, 6}},
                 {"...ij, ...jk", 4, {5, 2, 3, 6}},
                 {"i...j,...jk->k...i", 4, {6, 5, 3, 2}}};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        arena *m = arena_new();
        tensor *in[2] = {random_tensor(m, BRAID_FLOAT32, 4, i == 2 ? (int64_t[]){2, 5, 3, 4} : (int64_t[]){5, 1, 3, 4}),
                         random_tensor(m, BRAID_FLOAT32, 3, i == 2 ? (int64_t[]){3, 4, 6} : (int64_t[]){2, 4, 6})};
        graph *g;
        node *n = one_node(m, "Einsum", 2, in, &g);
        node_add_string(g, n, "equation", forms[i].equation);
        tensor *out = evaluate(m, g, n, in);
        assert_int_equal(out->type.rank, forms[i].rank);
        for (int d = 0; d < forms[i].rank; d++) assert_int_equal(out->type.dims[d], forms[i].dims[d]);
        arena_free(m);
    }
}

/* ---------------------------------------------------------------------------------------------- refusals */

static void refuses(const char *source, braid_status wanted, const char *words) {
    arena *m = arena_new();
    braid_error err = {0};
    graph *g;
    braid_status status = graph_parse(m, source, &g, &err);
    if (status == BRAID_OK) {
        for (int32_t i = 0; i < g->n_nodes; i++) g->nodes[i]->op = op_find(g->nodes[i]->domain, g->nodes[i]->type);
        status = graph_infer(g, &err);
    }
    if (status != wanted || !strstr(err.message, words)) fail_msg("%s: %s", source, err.message);
    arena_free(m);
}

static void bad_input(void **state) {
    (void)state;
    refuses("graph t(a: float32[2,3], b: float32[4,5]) { y = MatMul(a, b) } -> y", BRAID_SHAPE, "inner dims");
    refuses("graph t(a: float32[2,2,3], b: float32[3,3,5]) { y = MatMul(a, b) } -> y", BRAID_SHAPE, "batch dims");
    refuses("graph t(a: float32[], b: float32[4,5]) { y = MatMul(a, b) } -> y", BRAID_SHAPE, "rank 0");
    refuses("graph t(a: float32[2,3], b: float64[3,5]) { y = MatMul(a, b) } -> y", BRAID_TYPE, "input 1");
    refuses("graph t(a: bool[2,3], b: bool[3,5]) { y = MatMul(a, b) } -> y", BRAID_TYPE, "bool");
    refuses("graph t(a: float32[2,3], b: float32[3,5], c: float32[3,5]) { y = Gemm(a, b, c) } -> y", BRAID_SHAPE,
            "input 2");
#define CONV(x, w, attributes) "graph t(x: float32[" x "], w: float32[" w "]) { y = Conv(x, w) {" attributes "} } -> y"
    refuses(CONV("1,3,8,8", "4,3,3,3", "strides = [0, 1]"), BRAID_MODEL, "strides[0]");
    refuses(CONV("1,3,8,8", "4,3,3,3", "strides = [1]"), BRAID_MODEL, "strides: 1 values");
    refuses(CONV("1,3,8,8", "4,3,3,3", "dilations = [1, -1]"), BRAID_MODEL, "dilations[1]");
    refuses(CONV("1,3,8,8", "4,3,3,3", "dilations = [1, 9223372036854775807]"), BRAID_MODEL, "dilations[1]");
    refuses(CONV("1,3,8,8", "4,3,3,3", "pads = [0, 0, 0, -1]"), BRAID_MODEL, "pads[3]");
    refuses(CONV("1,3,8,8", "4,3,3,3", "group = 0"), BRAID_MODEL, "group is 0");
    refuses(CONV("1,3,8,8", "4,3,3,3", "group = 2"), BRAID_SHAPE, "groups");
    refuses(CONV("1,3,8,8", "4,2,3,3", "group = 1"), BRAID_SHAPE, "channels in a group");
    refuses(CONV("1,3,2,8", "4,3,3,3", "group = 1"), BRAID_SHAPE, "kernel spans 3");
    refuses(CONV("1,3,8,8", "4,3,3,3", "kernel_shape = [3, 2]"), BRAID_SHAPE, "kernel_shape[1]");
    refuses(CONV("1,3,8,8", "4,3,3", "group = 1"), BRAID_SHAPE, "rank 3");
    refuses(CONV("1,3,8,8", "4,3,3,3", "auto_pad = \"SOME\""), BRAID_MODEL, "auto_pad");
    refuses(CONV("1,3", "4,3", "group = 1"), BRAID_SHAPE, "rank 2");
#define EINSUM(equation)                                                                                               \
    "graph t(x: float32[2,3], y: float32[3,4]) { z = Einsum(x, y) {equation = \"" equation "\"} } -> z"
    refuses(EINSUM("ab,bc,cd->ad"), BRAID_MODEL, "more terms");
    refuses(EINSUM("ab->ad"), BRAID_MODEL, "1 terms for 2");
    refuses(EINSUM("ab,bc->ad"), BRAID_MODEL, "'d' is in no input");
    refuses(EINSUM("ab,bc->aa"), BRAID_MODEL, "'a' is repeated");
    refuses(EINSUM("ab,ba->a"), BRAID_SHAPE, "input 1");
    refuses(EINSUM("abc,bc->a"), BRAID_SHAPE, "rank 2");
    refuses(EINSUM("ab,b1->a"), BRAID_MODEL, "unexpected character '1'");
    refuses(EINSUM("ab,bc-a"), BRAID_MODEL, "without '>'");
    refuses(EINSUM("a......b,bc->a"), BRAID_MODEL, "more than one");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_shapes), cmocka_unit_test(matmul_vectors),        cmocka_unit_test(gemm_forms),
        cmocka_unit_test(conv_random),   cmocka_unit_test(conv_transpose_random), cmocka_unit_test(automatic_pads),
        cmocka_unit_test(einsum_forms),  cmocka_unit_test(einsum_shapes),         cmocka_unit_test(bad_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
