/*
 * api_session.c: sessions through the public header: tensors checked against the model, outputs, shapes at run time,
 * reports. Each refusal is followed by a good run on the same session.
 */
#include "ops_gpu.h"

static const char *const source = "graph t(x: float32[2,N], y: float32[N]) {\n"
                                  "  a = Add(x, y)\n"
                                  "  b = Transpose(a) {perm = [1, 0]}\n"
                                  "  c = Neg(b)\n"
                                  "} -> b, c\n";

static float x_data[256], y_data[128];

typedef struct fixture {
    braid_model *model;
    braid_session *session;
    braid_tensor in[2], out[2];
} fixture;

static braid_tensor tensor_of(const char *name, float *data, int rank, int64_t d0, int64_t d1) {
    braid_tensor t = {.name = name, .type = BRAID_FLOAT32, .rank = rank, .dims = {d0, d1}, .data = data};
    t.bytes = (size_t)(d0 * (rank > 1 ? d1 : 1)) * sizeof(float);
    return t;
}

static int setup(void **state) {
    static fixture f;
    braid_error err = {0};
    f = (fixture){.model = ops_model(source, &err)};
    for (int i = 0; i < 256; i++) x_data[i] = (float)i;
    for (int i = 0; i < 128; i++) y_data[i] = (float)(1000 * i);
    braid_device *device = ops_device(false);
    if (braid_session_create(&device, 1, f.model, NULL, &f.session, &err) != BRAID_OK) fail_msg("%s", err.message);
    f.in[0] = tensor_of("x", x_data, 2, 2, 3);
    f.in[1] = tensor_of("y", y_data, 1, 3, 0);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    braid_session_free(f->session);
    braid_model_free(f->model);
    return 0;
}

static void good_run(fixture *f) {
    braid_error err = {0};
    braid_tensor out[2] = {{0}};
    braid_tensor in[2] = {tensor_of("x", x_data, 2, 2, 3), tensor_of("y", y_data, 1, 3, 0)};
    if (braid_session_run(f->session, 1, in, 2, out, 2, &err) != BRAID_OK) fail_msg("%s", err.message);
    static const float wanted[6] = {0, 3, 1001, 1004, 2002, 2005};
    assert_int_equal(out[0].rank, 2);
    assert_int_equal(out[0].dims[0], 3);
    assert_memory_equal(out[0].data, wanted, sizeof wanted);
    for (int i = 0; i < 6; i++) assert_true(((float *)out[1].data)[i] == -wanted[i]);
    braid_tensor_free(&out[0]);
    braid_tensor_free(&out[1]);
}

static void expect(fixture *f, size_t lanes, size_t n_in, size_t n_out, braid_status wanted, const char *words) {
    braid_error err = {0};
    braid_status found = braid_session_run(f->session, lanes, f->in, n_in, f->out, n_out, &err);
    if (found != wanted)
        fail_msg("%s (%s), expected %s", braid_status_name(found), err.message, braid_status_name(wanted));
    assert_int_equal(err.status, wanted);
    if (!strstr(err.message, words)) fail_msg("'%s' lacks '%s'", err.message, words);
    for (size_t i = 0; i < n_out; i++) assert_true(!(f->out[i].flags & BRAID_TENSOR_OWNED));
    good_run(f);
}

static void refuses_inputs(void **state) {
    fixture *f = *state;
    expect(f, 0, 2, 0, BRAID_ARGUMENT, "0 lanes, the session allows 1 to 1");
    expect(f, 1, 1, 0, BRAID_ARGUMENT, "input 'y' is missing");
    f->in[1] = f->in[0];
    expect(f, 1, 2, 0, BRAID_ARGUMENT, "input 'x' is given twice");
    f->in[1] = tensor_of("z", y_data, 1, 3, 0);
    expect(f, 1, 2, 0, BRAID_ARGUMENT, "no input 'z'");
    f->in[1] = tensor_of(NULL, y_data, 1, 3, 0);
    expect(f, 1, 2, 0, BRAID_ARGUMENT, "has no name");
    f->in[1] = tensor_of("y", y_data, 1, 4, 0);
    expect(f, 1, 2, 0, BRAID_SHAPE, "('N') is 4 here and 3 in another input");
    f->in[1] = tensor_of("y", y_data, 2, 1, 3);
    expect(f, 1, 2, 0, BRAID_SHAPE, "input 'y': rank 2, expected 1");
    f->in[1] = tensor_of("y", y_data, 1, 3, 0);
    f->in[1].type = BRAID_INT32;
    expect(f, 1, 2, 0, BRAID_TYPE, "input 'y': type int32, expected float32");
    f->in[1] = tensor_of("y", y_data, 1, 3, 0);
    f->in[1].bytes--;
    expect(f, 1, 2, 0, BRAID_SHAPE, "input 'y': 11 bytes, its shape needs 12");
    f->in[1] = tensor_of("y", NULL, 1, 3, 0);
    expect(f, 1, 2, 0, BRAID_ARGUMENT, "input 'y': no data");
    f->in[1] = tensor_of("y", y_data, 1, -3, 0);
    f->in[1].bytes = 12;
    expect(f, 1, 2, 0, BRAID_SHAPE, "input 'y': dim 0 is -3");
    f->in[1] = tensor_of("y", y_data, 1, 3, 0);
    f->in[0].dims[0] = 3;
    f->in[0].bytes = 36;
    expect(f, 1, 2, 0, BRAID_SHAPE, "input 'x': dim 0 is 3, expected 2");
}

static void refuses_outputs(void **state) {
    fixture *f = *state;
    float small[5];
    f->out[0] = (braid_tensor){.name = "nobody"};
    expect(f, 1, 2, 1, BRAID_ARGUMENT, "no output 'nobody'");
    f->out[0] = (braid_tensor){.name = "c", .data = small, .bytes = sizeof small};
    expect(f, 1, 2, 1, BRAID_SHAPE, "output 'c': the buffer has 20 bytes, 24 are needed");
    assert_int_equal(f->out[0].type, BRAID_FLOAT32);
    assert_int_equal(f->out[0].rank, 2);
    assert_int_equal(f->out[0].dims[0], 3);
    assert_int_equal(f->out[0].dims[1], 2);
}

/* More shapes than the cache holds, back and forth. */
static void many_shapes(void **state) {
    fixture *f = *state;
    for (int round = 0; round < 3; round++)
        for (int64_t n = 0; n < 20; n++) {
            braid_error err = {0};
            braid_tensor out = {.name = "b"};
            braid_tensor in[2] = {tensor_of("x", x_data, 2, 2, n), tensor_of("y", y_data, 1, n, 0)};
            if (braid_session_run(f->session, 1, in, 2, &out, 1, &err) != BRAID_OK) fail_msg("%s", err.message);
            assert_int_equal(out.dims[0], n);
            for (int64_t i = 0; i < n * 2; i++) {
                float wanted = (float)(i / 2 + i % 2 * n) + 1000.0f * (float)(i / 2);
                assert_true(((float *)out.data)[i] == wanted);
            }
            braid_tensor_free(&out);
        }
    good_run(f);
}

static braid_status create(const fixture *f, const braid_session_options *o, braid_error *err) {
    braid_session *s = NULL;
    braid_device *device = ops_device(false);
    braid_status status = braid_session_create(&device, 1, f->model, o, &s, err);
    assert_true((status == BRAID_OK) == (s != NULL));
    braid_session_free(s);
    return status;
}

static void options(void **state) {
    fixture *f = *state;
    braid_error err = {0};
    braid_dim_value n = {"N", 64}, unknown = {"M", 1}, negative = {"N", -1};
    braid_input_shape shape = {"x", 2, {2, 64}}, wrong = {"x", 2, {3, 64}}, stranger = {"q", 1, {1}};
    const char *outputs[] = {"c"}, *nobody[] = {"d"};
    braid_session_options o = {.size = sizeof o, .dims = &n, .n_dims = 1};
    assert_int_equal(create(f, &o, &err), BRAID_OK);
    o.memory_budget = 100;
    assert_int_equal(create(f, &o, &err), BRAID_DEVICE_MEMORY);
    assert_non_null(strstr(err.message, "budget"));
    o = (braid_session_options){.size = sizeof o, .dims = &unknown, .n_dims = 1};
    assert_int_equal(create(f, &o, &err), BRAID_ARGUMENT);
    o.dims = &negative;
    assert_int_equal(create(f, &o, &err), BRAID_ARGUMENT);
    o = (braid_session_options){.size = sizeof o, .shapes = &shape, .n_shapes = 1};
    assert_int_equal(create(f, &o, &err), BRAID_OK);
    o.shapes = &wrong;
    assert_int_equal(create(f, &o, &err), BRAID_SHAPE);
    o.shapes = &stranger;
    assert_int_equal(create(f, &o, &err), BRAID_ARGUMENT);
    o = (braid_session_options){.size = sizeof o, .outputs = outputs, .n_outputs = 1, .no_fuse = true, .verify = true};
    assert_int_equal(create(f, &o, &err), BRAID_OK);
    o.outputs = nobody;
    assert_int_equal(create(f, &o, &err), BRAID_ARGUMENT);
    braid_session *none = NULL;
    assert_int_equal(braid_session_create(NULL, 0, f->model, NULL, &none, &err), BRAID_ARGUMENT);
    assert_null(none);
}

static void reports(void **state) {
    fixture *f = *state;
    braid_error err = {0};
    char *report = NULL;
    assert_int_equal(braid_session_describe(f->session, &report, &err), BRAID_OK);
    assert_non_null(strstr(report, "not planned yet"));
    braid_text_free(report);
    good_run(f);
    assert_int_equal(braid_session_describe(f->session, &report, &err), BRAID_OK);
    assert_non_null(strstr(report, "waves"));
    braid_text_free(report);
    braid_plan_stats stats;
    braid_session_stats(f->session, &stats);
    assert_int_equal(stats.waves, stats.barriers + 1);
    assert_int_equal(stats.host_steps, 0);
    double worst = 1;
    assert_int_equal(braid_session_compare(f->session, f->in, 2, &worst, &report, &err), BRAID_OK);
    assert_true(worst < 1e-6);
    braid_text_free(report);
    good_run(f);
}

/* Shapes that depend on data: what runs later is not compared, and no more of it is asked for than there is room for. */
static void compare_late(void **state) {
    (void)state;
    braid_error err = {0};
    braid_model *model = ops_model("graph t(x: float32[3,4]) { r = Relu(x) n = NonZero(r) t = Transpose(n) g = GatherND(x, t) "
                                   "a = Neg(g) b = Exp(a) c = Add(b, a) y = ReduceSum(c) {keepdims = 0} } -> y",
                                   &err);
    braid_device *device = ops_device(false);
    braid_session *s = NULL;
    if (!model || braid_session_create(&device, 1, model, NULL, &s, &err) != BRAID_OK) fail_msg("%s", err.message);
    float x[12] = {1, -2, 3, 0, 5, -6, 7, 8, -9, 10, 11, -12};
    braid_tensor in = {.name = "x", .type = BRAID_FLOAT32, .rank = 2, .dims = {3, 4}, .data = x, .bytes = sizeof x};
    double worst = 1;
    char *report = NULL;
    if (braid_session_compare(s, &in, 1, &worst, &report, &err) != BRAID_OK) fail_msg("%s", err.message);
    assert_true(isnan(worst));
    assert_non_null(strstr(report, "whose shapes depend on data: not compared"));
    braid_text_free(report);
    braid_session_free(s);
    braid_model_free(model);
}

static void profile(void **state) {
    fixture *f = *state;
    braid_error err = {0};
    braid_session *s = NULL;
    braid_device *device = ops_device(false);
    braid_session_options o = {.size = sizeof o, .profile = true};
    assert_int_equal(braid_session_create(&device, 1, f->model, &o, &s, &err), BRAID_OK);
    const braid_step_time *times;
    assert_int_equal(braid_session_profile(s, &times), 0);
    assert_int_equal(braid_session_run(s, 1, f->in, 2, NULL, 0, &err), BRAID_OK);
    size_t n = braid_session_profile(s, &times);
    assert_true(n > 0 && times[0].kernel && times[0].op);
    assert_true(braid_session_device_ns(s) > 0);
    braid_run_times spent;
    braid_session_times(s, &spent);
    assert_true(spent.device_ns == braid_session_device_ns(s) &&
                spent.upload_ns + spent.download_ns <= spent.device_ns);
    braid_session_free(s);
}

/* What a probe measures is tested by cli.probe. */
static void probe_refusals(void **state) {
    (void)state;
    braid_error err = {0};
    braid_device_rates rates;
    assert_int_equal(braid_device_probe(NULL, false, &rates, NULL, &err), BRAID_ARGUMENT);
    assert_int_equal(braid_device_probe(ops_device(true), false, NULL, NULL, &err), BRAID_ARGUMENT);
    assert_int_equal(braid_device_probe(ops_device(true), true, &rates, NULL, &err), BRAID_UNSUPPORTED);
    assert_non_null(strstr(err.message, "host"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(refuses_inputs, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_outputs, setup, teardown),
        cmocka_unit_test_setup_teardown(many_shapes, setup, teardown),
        cmocka_unit_test_setup_teardown(options, setup, teardown),
        cmocka_unit_test_setup_teardown(reports, setup, teardown),
        cmocka_unit_test_setup_teardown(profile, setup, teardown),
        cmocka_unit_test(compare_late),
        cmocka_unit_test(probe_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
