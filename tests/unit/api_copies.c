/*
 * api_copies.c: many inputs and many outputs travel in one copy each way, whatever lies between them; what the host does
 * not want is not among it, and what kernels write to the host's memory themselves is not overwritten.
 */
#include "ops_gpu.h"

#include "api/session.h"

enum { INPUTS = 4, OUTPUTS = 5 };

/* Sizes that leave gaps. Det is a host step: b and e cross it on the device, and nobody else wants e. */
static const char *const large = "graph t(a: float32[3,5], b: float32[9,9], c: float32[150,150], d: float32[7]) {\n"
                                 "  s = Softmax(a) {axis = -1}\n"
                                 "  e = Exp(b)\n"
                                 "  t = Det(e)\n"
                                 "  u = Softmax(c) {axis = -1}\n"
                                 "  v = Softmax(d) {axis = -1}\n"
                                 "  w = Mul(e, t)\n"
                                 "  z = Add(v, t)\n"
                                 "} -> s, u, v, w, z\n";
/* v is read by a kernel, so that it is copied; s, u and w are not. */
static const char *const small = "graph t(a: float32[3,5], b: float32[9,9], c: float32[150,15], d: float32[7]) {\n"
                                 "  s = Softmax(a) {axis = -1}\n"
                                 "  v = Softmax(d) {axis = -1}\n"
                                 "  u = Softmax(c) {axis = -1}\n"
                                 "  w = Softmax(b) {axis = -1}\n"
                                 "  z = Softmax(v) {axis = -1}\n"
                                 "} -> s, v, u, w, z\n";

typedef struct found {
    size_t in, out, posted, segments; /* the most copies of a segment; all outputs that kernels write themselves */
} found;

static found run(const char *source, bool staged, bool staged_out, uint8_t poison, braid_tensor out[OUTPUTS]) {
    static float x[150 * 150];
    static const int64_t sizes[INPUTS] = {15, 81, 150 * 150, 7};
    braid_error err = {0};
    braid_session *s;
    braid_model *model = ops_model(source, &err);
    if (!model) fail_msg("%s", err.message);
    braid_device *device = ops_device(false);
    braid_session_options o = {.size = sizeof o, .verify = true};
    if (braid_session_create(&device, 1, model, &o, &s, &err) != BRAID_OK) fail_msg("%s", err.message);
    s->test = (session_test){.staged = staged, .staged_out = staged_out, .poison = true, .poison_byte = poison};
    stage_cache_clear(s, &s->stages);
    braid_tensor in[INPUTS];
    for (int i = 0; i < 150 * 150; i++) x[i] = (float)(i * i % 23) / 16;
    for (int i = 0; i < INPUTS; i++) {
        in[i] = (braid_tensor){.name = (const char *[]){"a", "b", "c", "d"}[i], .type = BRAID_FLOAT32, .data = x + i};
        const tensor_type *t = &model->m->g->values[model->m->g->inputs[i]]->type;
        in[i].rank = t->rank;
        memcpy(in[i].dims, t->dims, sizeof in[i].dims);
        in[i].bytes = (size_t)(source == small && i == 2 ? 150 * 15 : sizes[i]) * sizeof *x;
    }
    in[2].data = x;
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < OUTPUTS; i++) braid_tensor_free(&out[i]);
        if (braid_session_run(s, 1, in, INPUTS, out, OUTPUTS, &err) != BRAID_OK) fail_msg("%s", err.message);
    }
    found f = {0};
    const stage *st = s->stages.first;
    for (int32_t i = 0; i < st->n_segments; i++) {
        const segment *seg = &st->segments[i];
        if (seg->on_host) continue;
        f.segments++;
        if (seg->copies_in > f.in) f.in = seg->copies_in;
        if (seg->copies_out > f.out) f.out = seg->copies_out;
        for (int32_t k = 0; k < seg->p->n_outputs; k++) f.posted += seg->posted[k];
    }
    braid_session_free(s);
    braid_model_free(model);
    return f;
}

static void compare(const char *source, bool staged, bool staged_out, found *f) {
    braid_tensor out[OUTPUTS] = {{0}}, wanted[OUTPUTS] = {{0}};
    run(source, false, false, 0x7f, wanted);
    *f = run(source, staged, staged_out, 0xff, out);
    for (int i = 0; i < OUTPUTS; i++) {
        assert_int_equal(out[i].bytes, wanted[i].bytes);
        assert_memory_equal(out[i].data, wanted[i].data, wanted[i].bytes);
        braid_tensor_free(&out[i]);
        braid_tensor_free(&wanted[i]);
    }
}

static void one_each_way(void **state) {
    (void)state;
    found f;
    compare(large, true, false, &f);
    assert_int_equal(f.segments, 2);
    assert_int_equal(f.in, 1);
    assert_int_equal(f.out, 1);
    compare(large, false, true, &f);
    assert_int_equal(f.in, 0);
}

static void posted_ones_stay(void **state) {
    (void)state;
    found f;
    compare(small, true, false, &f);
    assert_int_equal(f.in, 1);
    assert_int_equal(f.out, 1); /* v alone */
    assert_int_equal(f.posted, OUTPUTS - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_each_way), cmocka_unit_test(posted_ones_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
