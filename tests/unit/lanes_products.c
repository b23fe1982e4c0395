/*
 * lanes_products.c: products and convolutions with lanes, bit for bit what each lane alone gives: what a plan for many
 * lanes may fold (lanes into rows of a matrix or pixels of an image) or give to another kernel. Random sizes around the
 * borders of tiles and chunks, weights as constants, as shared and as per-lane inputs, and tails that kernels take
 * along. A software device gets the kernels of one; every second problem takes it for a GPU of a few or many cores, so
 * that the tiled kernels, the skinny one and folding run everywhere. BRAID_TEST_ALL=N: N problems of each kind;
 * BRAID_TEST_SEED. labels: lanes
 */
#include "ops_gpu.h"
#include "ops/mm_code.h"

typedef struct problem {
    char source[2048];
    braid_type type;
    bool constant[6]; /* of the inputs x, w, b, r */
} problem;

static const char *type_text(const problem *p) {
    return braid_type_name(p->type);
}

/* The tail of a product m of shape `shape`, whose last dim (or channel dim) has n elements. */
static void add_tail(problem *p, const char *shape, const char *per_channel) {
    char *at = p->source + strlen(p->source);
    size_t room = sizeof p->source - strlen(p->source);
    switch (ops_below(6)) {
    case 0:
        snprintf(at, room, "y = Relu(m) } -> y");
        break;
    case 1:
        snprintf(at, room, "t = Sigmoid(m) y = Mul(m, t) } -> y");
        break;
    case 2:
        snprintf(at, room, "t = Add(m, b) y = Relu(t) } -> y");
        break;
    case 3:
        snprintf(at, room, "t = Add(m, r) y = Tanh(t) } -> y");
        break;
    case 4:
        snprintf(at, room, "t = Mul(m, b) u = Add(t, r) y = Clip(u) } -> y, m");
        break;
    default:
        snprintf(at, room, "y = Identity(m) } -> y");
        break;
    }
    char head[512];
    snprintf(head, sizeof head, ", b: %s[%s], r: %s[%s]) { ", type_text(p), per_channel, type_text(p), shape);
    char *hole = strstr(p->source, "@");
    memmove(hole + strlen(head), hole + 1, strlen(hole + 1) + 1);
    memcpy(hole, head, strlen(head));
}

static void draw_matmul(problem *p) {
    int64_t m = OPS_ONE_OF(1, 1, 2, 3, 5, 8, 16, 17, 33, 70), k = OPS_ONE_OF(1, 7, 31, 64, 65, 128, 200, 300, 513),
            n = OPS_ONE_OF(1, 3, 8, 17, 64, 65, 130, 256);
    int64_t outer = OPS_ONE_OF(0, 0, 1, 2, 3);
    char shape[96] = "", columns[32];
    if (outer) snprintf(shape, sizeof shape, "%lld,", (long long)outer);
    snprintf(p->source, sizeof p->source, "graph t(x: %s[%s%lld,%lld], w: %s[%lld,%lld]@m = MatMul(x, w) ",
             type_text(p), shape, (long long)m, (long long)k, type_text(p), (long long)k, (long long)n);
    snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld,%lld", (long long)m, (long long)n);
    snprintf(columns, sizeof columns, "%lld", (long long)n);
    add_tail(p, shape, columns);
}

static void draw_gemm(problem *p) {
    int64_t m = OPS_ONE_OF(1, 1, 2, 5, 8, 17, 40), k = OPS_ONE_OF(1, 9, 64, 65, 190, 400),
            n = OPS_ONE_OF(1, 10, 33, 64, 100);
    int ta = (int)ops_below(2), tb = (int)ops_below(2);
    char shape[64], columns[32];
    snprintf(p->source, sizeof p->source,
             "graph t(x: %s[%lld,%lld], w: %s[%lld,%lld], c: %s[%s%lld]@m = Gemm(x, w, c) {transA = %d, transB = %d, "
             "alpha = %s, "
             "beta = %s} ",
             type_text(p), (long long)(ta ? k : m), (long long)(ta ? m : k), type_text(p), (long long)(tb ? n : k),
             (long long)(tb ? k : n), type_text(p), ops_below(2) ? "" : "1,", (long long)n, ta, tb,
             ops_below(2) ? "1.0" : "0.5", ops_below(2) ? "1.0" : "-2.0");
    snprintf(shape, sizeof shape, "%lld,%lld", (long long)m, (long long)n);
    snprintf(columns, sizeof columns, "%lld", (long long)n);
    add_tail(p, shape, columns);
}

static void draw_conv(problem *p) {
    int64_t batch = OPS_ONE_OF(1, 1, 1, 2), group = OPS_ONE_OF(1, 1, 1, 2, 0), c = OPS_ONE_OF(1, 3, 4, 8, 16, 24),
            k = OPS_ONE_OF(1, 1, 2, 3, 5), out = OPS_ONE_OF(1, 4, 6, 8, 16, 32, 70);
    int64_t h = k + ops_below(12), w = k + ops_below(12), stride = OPS_ONE_OF(1, 1, 2), pad = ops_below(k / 2 + 1),
            dilation = OPS_ONE_OF(1, 1, 1, 2);
    if (!group) group = out = c; /* depthwise */
    if (c % group || out % group) group = 1;
    int64_t reach = dilation * (k - 1) + 1;
    if (h + 2 * pad < reach || w + 2 * pad < reach) dilation = 1;
    reach = dilation * (k - 1) + 1;
    char shape[128], channel[32];
    snprintf(p->source, sizeof p->source,
             "graph t(x: %s[%lld,%lld,%lld,%lld], w: %s[%lld,%lld,%lld,%lld], c: %s[%lld]@m = Conv(x, w, c) {group = "
             "%lld, pads = "
             "[%lld, %lld, %lld, %lld], strides = [%lld, %lld], dilations = [%lld, %lld]} ",
             type_text(p), (long long)batch, (long long)c, (long long)h, (long long)w, type_text(p), (long long)out,
             (long long)(c / group), (long long)k, (long long)k, type_text(p), (long long)out, (long long)group,
             (long long)pad, (long long)pad, (long long)pad, (long long)pad, (long long)stride, (long long)stride,
             (long long)dilation, (long long)dilation);
    snprintf(shape, sizeof shape, "%lld,%lld,%lld,%lld", (long long)batch, (long long)out,
             (long long)((h + 2 * pad - reach) / stride + 1), (long long)((w + 2 * pad - reach) / stride + 1));
    snprintf(channel, sizeof channel, "%lld,1,1", (long long)out);
    add_tail(p, shape, channel);
}

static void draw_transposed(problem *p) {
    int64_t c = OPS_ONE_OF(1, 2, 4, 8), out = OPS_ONE_OF(1, 3, 4, 8), k = OPS_ONE_OF(1, 2, 3, 4), h = 1 + ops_below(8),
            w = 1 + ops_below(8), stride = OPS_ONE_OF(1, 2, 3);
    char shape[128], channel[32];
    snprintf(p->source, sizeof p->source,
             "graph t(x: %s[1,%lld,%lld,%lld], w: %s[%lld,%lld,%lld,%lld], c: %s[%lld]@m = ConvTranspose(x, w, c) "
             "{strides = [%lld, "
             "%lld]} ",
             type_text(p), (long long)c, (long long)h, (long long)w, type_text(p), (long long)c, (long long)out,
             (long long)k, (long long)k, type_text(p), (long long)out, (long long)stride, (long long)stride);
    snprintf(shape, sizeof shape, "1,%lld,%lld,%lld", (long long)out, (long long)(stride * (h - 1) + k),
             (long long)(stride * (w - 1) + k));
    snprintf(channel, sizeof channel, "%lld,1,1", (long long)out);
    add_tail(p, shape, channel);
}

/* What is constant in all of the model's runs: inputs that become constants with these bytes. */
static void make_constants(braid_model *model, const problem *p, const braid_tensor *in) {
    graph *g = model->m->g;
    int32_t n = 0;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        value *v = g->values[g->inputs[i]];
        if (!p->constant[i]) {
            g->inputs[n++] = g->inputs[i];
            continue;
        }
        tensor *t = NULL;
        if (tensor_new(model->memory, v->type.type, v->type.rank, v->type.dims, &t, NULL) != BRAID_OK)
            fail_msg("memory");
        memcpy(t->data, in[i].data, in[i].bytes);
        v->kind = VALUE_CONSTANT;
        v->constant = t;
    }
    g->n_inputs = n;
}

static unsigned n_steps, n_folded, n_folded_split;

/* Is it a product of which every workgroup takes one chunk. */
static bool is_split(const step *s) {
    text words = {0};
    mm_describe(s->kernel, (uint32_t)s->n_spec, s->spec_ids, s->spec, &words);
    bool split = words.data && strstr(words.data, ", split");
    text_free(&words);
    return split;
}

static void count_folded(const braid_session *s) {
    for (const stage *st = s->stages.first; st; st = st->next)
        for (int32_t i = 0; i < st->n_segments; i++)
            for (int32_t k = 0; !st->segments[i].on_host && k < st->segments[i].p->n_steps; k++) {
                n_steps++;
                n_folded += st->segments[i].p->steps[k]->folded;
                n_folded_split += st->segments[i].p->steps[k]->folded && is_split(st->segments[i].p->steps[k]);
            }
}

static void run_problem(problem *p, bool as_gpu) {
    static char names[6][16];
    braid_error err = {0};
    braid_tensor in[6], given[6];
    braid_model *model = ops_model(p->source, &err);
    if (!model) fail_msg("%s\n%s", err.message, p->source);
    int32_t n = model->m->g->n_inputs, n_given = 0;
    for (int32_t i = 0; i < n; i++) {
        const value *v = model->m->g->values[model->m->g->inputs[i]];
        snprintf(names[i], sizeof names[i], "%s", v->name);
        in[i] = ops_random_full(names[i], v->type.type, v->type.rank, v->type.dims, -1, 1, false);
        p->constant[i] = i && ops_below(10) < 7;
        if (!p->constant[i]) given[n_given++] = in[i];
    }
    make_constants(model, p, in);
    ops_lanes_as_gpu = as_gpu;
    ops_lanes_closing = count_folded;
    ops_compare_lanes(ops_device(false), p->source, model, (size_t)n_given, given, ops_seed);
    braid_model_free(model);
    for (int32_t i = 0; i < n; i++) free(in[i].data);
}

static void run_kind(void (*make)(problem *)) {
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_FLOAT32, BRAID_FLOAT32,
                                       BRAID_FLOAT16, BRAID_FLOAT16, BRAID_BFLOAT16};
    const char *all = getenv("BRAID_TEST_ALL"), *seed = getenv("BRAID_TEST_SEED");
    int count = all ? atoi(all) : 10;
    ops_seed = seed ? strtoull(seed, NULL, 0) * 7919 : 1;
    for (int i = 0; i < count; i++) {
        problem p = {.type = types[ops_below((int64_t)COUNT_OF(types))]};
        make(&p);
        run_problem(&p, i % 2);
    }
}

static void matmul(void **state) {
    (void)state;
    run_kind(draw_matmul);
}
static void gemm(void **state) {
    (void)state;
    run_kind(draw_gemm);
}
static void convolutions(void **state) {
    (void)state;
    run_kind(draw_conv);
}
static void transposed(void **state) {
    (void)state;
    run_kind(draw_transposed);
}

/* What the others ran is what this file is for. */
static void folded(void **state) {
    (void)state;
    print_message("%u of %u steps folded, %u of them split\n", n_folded, n_steps, n_folded_split);
    assert_true(n_folded_split > 0 && n_folded > n_folded_split);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(matmul), cmocka_unit_test(gemm), cmocka_unit_test(convolutions),
                                       cmocka_unit_test(transposed), cmocka_unit_test(folded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
