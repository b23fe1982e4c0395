/*
 * depthwise.c: kernel depthwise against mms, bit for bit where the device is a software one, and against the CPU: plans
 * for made-up GPUs of few to many cores, so that an invocation makes 1 to 7 rows of outputs. One and two axes, unlike
 * pads, strides and dilations, lanes, tails. BRAID_TEST_ALL=N: N convolutions; BRAID_TEST_SEED.
 */
#include "ops_gpu.h"

enum { LANES = 3 };

typedef struct drawn {
    char source[1024];
    braid_type type;
    int axes;
    int64_t batch, channels, in[2], kernel[2], stride[2], dilation[2], pads[4];
} drawn;

static void list(char *to, size_t room, const int64_t *of, int n) {
    int at = 0;
    for (int i = 0; i < n; i++) at += snprintf(to + at, room - (size_t)at, "%s%lld", i ? ", " : "", (long long)of[i]);
}

static void draw(drawn *d) {
    static const char *const tails[] = {"y = Identity(m)", "y = Relu(m)", "y = Add(m, m)", "t = Sigmoid(m) y = Mul(m, t)"};
    char in[64], kernel[64], strides[64], dilations[64], pads[64];
    *d = (drawn){.type = (braid_type)OPS_ONE_OF(BRAID_FLOAT32, BRAID_FLOAT32, BRAID_FLOAT16, BRAID_BFLOAT16),
                 .axes = (int)OPS_ONE_OF(1, 2, 2, 2), .batch = OPS_ONE_OF(1, 1, 2), .channels = OPS_ONE_OF(1, 2, 7, 20)};
    for (int i = 0; i < d->axes; i++) {
        d->kernel[i] = OPS_ONE_OF(1, 2, 3, 3, 5, 7);
        d->stride[i] = OPS_ONE_OF(1, 1, 2, 3);
        d->dilation[i] = OPS_ONE_OF(1, 1, 2);
        d->pads[i] = ops_below(d->kernel[i]);
        d->pads[d->axes + i] = ops_below(d->kernel[i]);
        d->in[i] = (d->kernel[i] - 1) * d->dilation[i] + 1 + ops_below(20);
    }
    list(in, sizeof in, d->in, d->axes);
    list(kernel, sizeof kernel, d->kernel, d->axes);
    list(strides, sizeof strides, d->stride, d->axes);
    list(dilations, sizeof dilations, d->dilation, d->axes);
    list(pads, sizeof pads, d->pads, 2 * d->axes);
    const char *t = braid_type_name(d->type);
    snprintf(d->source, sizeof d->source,
             "graph t(x: %s[%lld,%lld,%s], w: %s[%lld,1,%s], b: %s[%lld]) { m = Conv(x, w, b) {group = %lld, strides = "
             "[%s], dilations = [%s], pads = [%s]} %s } -> y",
             t, (long long)d->batch, (long long)d->channels, in, t, (long long)d->channels, kernel, t,
             (long long)d->channels, (long long)d->channels, strides, dilations, pads, tails[ops_below(4)]);
}

typedef struct seen {
    int rows[8];
} seen;

/* Rows of outputs that an invocation makes; 0: another kernel took the convolution. */
static int rows_of(const braid_session *s) {
    enum { TM = 12 };
    const plan *p = s->stages.first->segments[0].p;
    for (int32_t i = 0; i < p->n_steps; i++) {
        const step *st = p->steps[i];
        for (int k = 0; strncmp(st->kernel, "depthwise_", 10) == 0 && k < st->n_spec; k++)
            if (st->spec_ids[k] == TM) return (int)st->spec[k];
    }
    return 0;
}

/* cores: of a made-up GPU; 0: the device as it is. */
static int run(const drawn *d, const braid_model *model, bool host, uint32_t cores, size_t lanes, const braid_tensor *in,
               braid_tensor *out) {
    braid_error err = {0};
    braid_session *s;
    braid_device *device = ops_device(host);
    braid_session_options o = {.size = sizeof o, .lanes_max = LANES, .verify = true};
    if (braid_session_create(&device, 1, model, &o, &s, &err) != BRAID_OK) fail_msg("%s\n%s", err.message, d->source);
    device_traits made_up;
    if (cores) {
        made_up = *s->traits;
        made_up.software = false;
        made_up.cores = cores;
        s->traits = &made_up;
        stage_cache_clear(s, &s->stages);
    }
    if (braid_session_run(s, lanes, in, 3, out, 1, &err) != BRAID_OK) fail_msg("%s\n%s", err.message, d->source);
    int rows = host ? 0 : rows_of(s);
    braid_session_free(s);
    return rows;
}

/* within: of the largest magnitude; 0: bit for bit, but for what a NaN holds. */
static void compare(const drawn *d, const braid_tensor *want, const braid_tensor *got, double within) {
    int64_t n = (int64_t)(want->bytes / braid_type_bytes(d->type));
    double most = 0;
    assert_int_equal(want->bytes, got->bytes);
    for (int64_t i = 0; i < n; i++) {
        double v = fabs(element_f64(d->type, want->data, i));
        if (isfinite(v) && v > most) most = v;
    }
    for (int64_t i = 0; i < n; i++) {
        double a = element_f64(d->type, want->data, i), b = element_f64(d->type, got->data, i);
        bool same = (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
        if (!same && !(within > 0 && fabs(a - b) <= within * most))
            fail_msg("element %lld: %g, %g expected\n%s", (long long)i, b, a, d->source);
    }
}

static void check(const drawn *d, seen *all) {
    static const uint32_t cores[] = {1, 4, 1000};
    braid_error err = {0};
    braid_model *model = ops_model(d->source, &err);
    if (!model) fail_msg("%s\n%s", err.message, d->source);
    size_t lanes = ops_below(2) ? LANES : 1;
    int64_t x[4] = {d->batch, d->channels, d->in[0], d->in[1]}, w[4] = {d->channels, 1, d->kernel[0], d->kernel[1]};
    braid_tensor in[3], plain = {0}, cpu = {0};
    x[0] *= (int64_t)lanes;
    in[0] = ops_random_full("x", d->type, d->axes + 2, x, -4, 4, ops_below(4) == 0);
    in[0].dims[0] = d->batch;
    in[1] = ops_random("w", d->type, d->axes + 2, w);
    in[2] = ops_random("b", d->type, 1, &d->channels);
    in[1].flags = in[2].flags = BRAID_TENSOR_SHARED;
    run(d, model, true, 0, lanes, in, &cpu);
    run(d, model, false, 0, lanes, in, &plain);
    compare(d, &cpu, &plain, d->type == BRAID_FLOAT32 ? 1e-5 : d->type == BRAID_FLOAT16 ? 2e-3 : 2e-2);
    for (size_t i = 0; i < COUNT_OF(cores); i++) {
        braid_tensor out = {0};
        int rows = run(d, model, false, cores[i], lanes, in, &out);
        bool matrix = d->kernel[0] * (d->axes > 1 ? d->kernel[1] : 1) == 1; /* unless it has strides or pads */
        if (rows > 7 || (rows < 1 && !matrix)) fail_msg("another kernel\n%s", d->source);
        all->rows[rows]++;
        compare(d, &plain, &out, 0);
        braid_tensor_free(&out);
    }
    braid_tensor_free(&cpu);
    braid_tensor_free(&plain);
    for (int i = 0; i < 3; i++) free(in[i].data);
    braid_model_free(model);
}

/* A product of nothing but zeros: +0, as a sum that begins with +0 has it, whatever the weights' signs. */
static void signs_of_zeros(void **state) {
    (void)state;
    seen all = {0};
    drawn d = {.type = BRAID_FLOAT32, .axes = 2, .batch = 1, .channels = 3, .in = {6, 6}, .kernel = {1, 1}};
    snprintf(d.source, sizeof d.source,
             "graph t(x: float32[1,3,6,6], w: float32[3,1,1,1], b: float32[3]) { y = Conv(x, w) {group = 3, strides = "
             "[2, 4], pads = [0, 1, 0, 0]} z = Neg(b) } -> y");
    for (int i = 0; i < 4; i++) check(&d, &all);
}

static void random_convolutions(void **state) {
    (void)state;
    seen all = {0};
    int count = getenv("BRAID_TEST_ALL") ? atoi(getenv("BRAID_TEST_ALL")) : 60;
    if (getenv("BRAID_TEST_SEED")) ops_seed = strtoull(getenv("BRAID_TEST_SEED"), NULL, 0);
    for (int i = 0; i < count; i++) {
        drawn d;
        draw(&d);
        check(&d, &all);
    }
    printf("%d convolutions; rows of an invocation: 1: %d, 2: %d, 4: %d, 7: %d\n", count, all.rows[1], all.rows[2],
           all.rows[4], all.rows[7]);
    assert_true(all.rows[1] && all.rows[2] && all.rows[4] && all.rows[7]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_convolutions), cmocka_unit_test(signs_of_zeros)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
