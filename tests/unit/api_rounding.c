/*
 * labels: device
 *
 * api_rounding.c: what fuses never shows in a result. float16 and bfloat16 values that stay inside a fused step are
 * rounded as those that are stored, so re-rolling, which changes what fuses, changes no bit.
 */
#include "ops_gpu.h"

enum { OUTPUTS_MAX = 6, INPUTS_MAX = 4 };

/* T is the type; each has several outputs so that equal parts fuse in unlike ways. */
static const char *const graphs[] = {
    /* a chain, and the same chain with its middle seen */
    "graph t(a: T[4,6], b: T[4,6]) { c = Mul(a, b) d = Add(c, a) e = Sub(d, b) y = Mul(e, c) "
    "f = Mul(a, b) g = Add(f, b) h = Mul(g, g) z = Transpose(h) } -> y, z, g",
    /* epilogues of products, sums and convolutions; a tiny negative number that becomes -0 in front of Relu */
    "graph t(a: T[4,6], b: T[6,9]) { s: T[] = constant {1e-7} m = MatMul(a, b) n = Tanh(m) o = Add(m, n) p = Mul(o, o) "
    "q = Mul(m, s) r = Relu(q) u = Reciprocal(r) } -> p, u",
    "graph t(a: T[1,4,8,8], b: T[4,4,3,3]) { p = Conv(a, b) {pads = [1, 1, 1, 1]} q = Sigmoid(p) r = Mul(p, q) "
    "s = Add(r, a) y = Relu(s) } -> y",
    "graph t(a: T[5,7]) { x: int64[1] = constant {1} m = ReduceMean(a, x) n = Mul(m, m) o = Add(n, m) y = Sqrt(n) } -> "
    "o, y",
    /* selections round nothing; conversions do */
    "graph t(a: T[4,6], b: T[4,6]) { c = Add(a, b) d = Max(c, a) e = Neg(d) f = Abs(e) g = Cast(f) {to = 1} h = Mul(g, "
    "g) } "
    "-> h",
    /* copies of which one shows what is inside the others */
    "graph t(a: T[4,6], b: T[6,6], c: T[6]) { m0 = MatMul(a, b) n0 = Add(m0, c) y0 = Tanh(n0) m1 = MatMul(y0, b) "
    "n1 = Add(m1, c) y1 = Tanh(n1) p0 = Neg(a) q0 = MatMul(p0, b) r0 = Add(q0, c) z0 = Tanh(r0) p1 = Abs(a) "
    "q1 = MatMul(p1, b) r1 = Add(q1, c) z1 = Tanh(r1) p2 = Exp(a) q2 = MatMul(p2, b) r2 = Add(q2, c) z2 = Tanh(r2) "
    "s = Transpose(q1) } -> y1, z0, z1, z2, s",
};

typedef struct outcome {
    braid_tensor out[OUTPUTS_MAX];
} outcome;

static void run(const braid_model *model, bool no_fuse, bool any, const braid_tensor *in, outcome *to) {
    braid_error err = {0};
    braid_session_options o = {.size = sizeof o, .no_fuse = no_fuse, .no_reroll = !any, .verify = true};
    braid_device *device = ops_device(false);
    braid_session *s = NULL;
    const graph *g = model->m->g;
    *to = (outcome){0};
    if (braid_session_create(&device, 1, model, &o, &s, &err) != BRAID_OK) fail_msg("%s", err.message);
    s->test.reroll_any = any;
    if (any) stage_cache_clear(s, &s->stages);
    if (braid_session_run(s, 1, in, (size_t)g->n_inputs, to->out, (size_t)g->n_outputs, &err) != BRAID_OK)
        fail_msg("%s", err.message);
    braid_session_free(s);
}

static void compare(outcome *got, const outcome *want, const char *what, const char *source) {
    for (int i = 0; i < OUTPUTS_MAX && want->out[i].data; i++) {
        assert_int_equal(got->out[i].bytes, want->out[i].bytes);
        if (memcmp(got->out[i].data, want->out[i].data, want->out[i].bytes) != 0)
            fail_msg("%s: output %d differs in\n%s", what, i, source);
        braid_tensor_free(&got->out[i]);
    }
}

static void check(const char *source) {
    braid_error err = {0};
    braid_model *model = ops_model(source, &err);
    if (!model) fail_msg("%s in\n%s", err.message, source);
    const graph *g = model->m->g;
    braid_tensor in[INPUTS_MAX];
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const value *v = g->values[g->inputs[i]];
        in[i] = ops_random(v->name, v->type.type, v->type.rank, v->type.dims);
    }
    outcome fused, rolled, apart;
    run(model, true, false, in, &apart);
    run(model, false, false, in, &fused);
    compare(&fused, &apart, "fused", source);
    run(model, false, true, in, &rolled);
    compare(&rolled, &apart, "re-rolled", source);
    for (int i = 0; i < OUTPUTS_MAX; i++) braid_tensor_free(&apart.out[i]);
    for (int32_t i = 0; i < g->n_inputs; i++) free(in[i].data);
    braid_model_free(model);
}

static void fusing_rounds(void **state) {
    (void)state;
    const char *const types[] = {"float16", "bfloat16"};
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        for (size_t i = 0; i < COUNT_OF(graphs); i++) {
            char source[2048], *at = source;
            for (const char *p = graphs[i]; *p; p++) {
                if (p[0] == 'T' && p[1] == '[') at += sprintf(at, "%s", types[t]);
                else *at++ = *p;
            }
            *at = 0;
            check(source);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fusing_rounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
