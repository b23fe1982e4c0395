/*
 * api_lanes_bad.c: what braid_session_run refuses of lanes: one status and a message each, nothing written, nothing
 * kept (ASan), and the next good run is right.
 */
#include "ops_gpu.h"

enum { LANES = 4, A_BYTES = 24, B_BYTES = 12, Y_BYTES = 24, Z_BYTES = 8 };
static const char source[] =
    "graph t(a: float32[2,3], b: float32[3], c: float16[5]) { y = Add(a, b) n: int64[1] = constant "
    "{1} z = ReduceSum(y, n) {keepdims = 0} w = Neg(c) } -> y, z, w";

static braid_model *model;
static braid_session *session;
static float a[LANES * 6], b[3], y[LANES * 6 + 64], z[LANES * 2 + 64];
static uint16_t c[LANES * 5], w[LANES * 5 + 64];
static braid_tensor in[3], out[3];

/* A good run's tensors. */
static void good(void) {
    for (int i = 0; i < LANES * 6; i++) a[i] = (float)i;
    for (int i = 0; i < 3; i++) b[i] = 100.0f * (float)(i + 1);
    in[0] = (braid_tensor){.name = "a", .type = BRAID_FLOAT32, .rank = 2, .dims = {2, 3}, .data = a, .bytes = sizeof a};
    in[1] = (braid_tensor){.name = "b",
                           .type = BRAID_FLOAT32,
                           .rank = 1,
                           .dims = {3},
                           .data = b,
                           .bytes = sizeof b,
                           .flags = BRAID_TENSOR_SHARED};
    in[2] = (braid_tensor){.name = "c", .type = BRAID_FLOAT16, .rank = 1, .dims = {5}, .data = c, .bytes = sizeof c};
    out[0] = (braid_tensor){.data = y, .bytes = sizeof y};
    out[1] = (braid_tensor){.data = z, .bytes = sizeof z};
    out[2] = (braid_tensor){.data = w, .bytes = sizeof w};
    memset(y, 0x77, sizeof y);
    memset(z, 0x77, sizeof z);
    memset(w, 0x77, sizeof w);
}

static void expect_good(void) {
    braid_error err = {0};
    good();
    if (braid_session_run(session, LANES, in, 3, out, 3, &err) != BRAID_OK) fail_msg("%s", err.message);
    for (int i = 0; i < LANES * 6; i++) assert_true(y[i] == a[i] + b[i % 3]);
    for (int i = 0; i < LANES * 2; i++) assert_true(z[i] == y[3 * i] + y[3 * i + 1] + y[3 * i + 2]);
    for (int i = 0; i < LANES * 5; i++) assert_int_equal(w[i], c[i] ^ 0x8000);
}

static void expect(size_t lanes, braid_status wanted, const char *message) {
    braid_error err = {0};
    braid_status status = braid_session_run(session, lanes, in, 3, out, 3, &err);
    if (status != wanted || !strstr(err.message, message))
        fail_msg("%s: %s; expected %s: %s", braid_status_name(status), err.message, braid_status_name(wanted), message);
    assert_int_equal(err.status, wanted);
    for (size_t i = 0; i < sizeof y; i++) assert_int_equal(((uint8_t *)y)[i], 0x77);
    for (size_t i = 0; i < sizeof z; i++) assert_int_equal(((uint8_t *)z)[i], 0x77);
    for (int i = 0; i < 3; i++) assert_false(out[i].flags & BRAID_TENSOR_OWNED);
    expect_good();
    good();
}

static void lane_counts(void **state) {
    (void)state;
    good();
    expect(0, BRAID_ARGUMENT, "0 lanes, the session allows 1 to 4");
    expect(LANES + 1, BRAID_ARGUMENT, "5 lanes, the session allows 1 to 4");
    expect(SIZE_MAX, BRAID_ARGUMENT, "18446744073709551615 lanes");
    expect((size_t)1 << 32, BRAID_ARGUMENT, "4294967296 lanes"); /* no wrap to 0 */
    expect(((size_t)1 << 32) + 1, BRAID_ARGUMENT, "4294967297 lanes");
}

static void input_strides(void **state) {
    (void)state;
    good();
    in[0].lane_stride = A_BYTES - 4;
    expect(LANES, BRAID_ARGUMENT, "input 'a': lane stride 20, a lane has 24 bytes");
    in[0].lane_stride = A_BYTES + 2;
    in[0].bytes = 3 * (A_BYTES + 2) + A_BYTES;
    expect(LANES, BRAID_ARGUMENT, "input 'a': lane stride 26 is no multiple of an element's 4 bytes");
    in[2].lane_stride = 11;
    expect(LANES, BRAID_ARGUMENT, "input 'c': lane stride 11 is no multiple of an element's 2 bytes");
    in[0].lane_stride = SIZE_MAX - 3;
    expect(LANES, BRAID_LIMIT, "input 'a': too large");
    in[0].lane_stride = A_BYTES + 4; /* the buffer ends before the last lane does */
    expect(LANES, BRAID_SHAPE, "input 'a': 96 bytes, its shape needs 108");
    in[0].bytes = LANES * A_BYTES - 1;
    expect(LANES, BRAID_SHAPE, "input 'a': 95 bytes, its shape needs 96");
    in[1].flags = 0; /* a tensor of one lane that is not said to be shared */
    expect(LANES, BRAID_SHAPE, "input 'b': 12 bytes, its shape needs 48");
    in[2].data = NULL;
    expect(LANES, BRAID_ARGUMENT, "input 'c': no data");
    in[0].data = (uint8_t *)a + 2;
    expect(LANES, BRAID_ARGUMENT, "input 'a': data at an address that is no multiple of an element's 4 bytes");
    void *each[LANES] = {a, a + 6, a + 12, (uint8_t *)a + 1};
    in[0] = (braid_tensor){.name = "a", .type = BRAID_FLOAT32, .rank = 2, .dims = {2, 3}, .data = each, .bytes = A_BYTES,
                           .flags = BRAID_TENSOR_LANES};
    expect(LANES, BRAID_ARGUMENT, "input 'a': data at an address that is no multiple of an element's 4 bytes");
}

/* dims are one lane's: what differs among lanes cannot even be said, and what is another shape is refused. */
static void shapes(void **state) {
    (void)state;
    good();
    in[0].rank = 3;
    memcpy(in[0].dims, ((int64_t[]){LANES, 2, 3}), 3 * sizeof(int64_t));
    expect(LANES, BRAID_SHAPE, "input 'a': rank 3, expected 2");
    in[0].dims[0] = 2 * LANES;
    expect(LANES, BRAID_SHAPE, "input 'a': dim 0 is 8, expected 2");
    in[0].type = BRAID_INT32;
    expect(LANES, BRAID_TYPE, "input 'a': type int32, expected float32");
    in[0].dims[1] = INT64_MAX;
    expect(LANES, BRAID_SHAPE, "input 'a': dim 1 is 9223372036854775807, expected 3");
}

static void output_strides(void **state) {
    (void)state;
    good();
    out[0].lane_stride = Y_BYTES - 4; /* lanes would overlap */
    expect(LANES, BRAID_ARGUMENT, "output 'y': lane stride 20, a lane has 24 bytes");
    out[0].lane_stride = Y_BYTES + 1;
    expect(LANES, BRAID_ARGUMENT, "output 'y': lane stride 25 is no multiple of an element's 4 bytes");
    out[2].lane_stride = 13;
    expect(LANES, BRAID_ARGUMENT, "output 'w': lane stride 13 is no multiple of an element's 2 bytes");
    out[0].bytes = LANES * Y_BYTES - 1;
    expect(LANES, BRAID_SHAPE, "output 'y': the buffer has 95 bytes, 96 are needed");
    out[1].lane_stride = 1 << 20;
    expect(LANES, BRAID_SHAPE, "output 'z': the buffer has 288 bytes, 3145736 are needed");
    out[1].lane_stride = SIZE_MAX - 3;
    expect(LANES, BRAID_LIMIT, "output 'z': too large");
}

static void outputs_without_names(void **state) {
    (void)state;
    braid_error err = {0};
    braid_tensor more[4] = {{0}};
    good();
    assert_int_equal(braid_session_run(session, LANES, in, 3, more, 4, &err), BRAID_ARGUMENT);
    assert_string_equal(err.message, "output tensor 3 has no name, and the session has 3 outputs");
    for (int i = 0; i < 4; i++) assert_null(more[i].data);
}

static void output_overlaps(void **state) {
    (void)state;
    good();
    out[1].data = y + LANES * 6 - 1; /* the last element of y is z's first */
    expect(LANES, BRAID_ARGUMENT, "output 'z': the buffer of lane 0 overlaps that of output 'y', lane 3");
    out[1].data = y;
    expect(LANES, BRAID_ARGUMENT, "overlaps");
    out[0].lane_stride = 32; /* records of y and z, one element too narrow */
    out[1] = (braid_tensor){.data = y + 5, .lane_stride = 32, .bytes = sizeof y - 20};
    expect(LANES, BRAID_ARGUMENT, "output 'z': the buffer of lane 0 overlaps that of output 'y', lane 0");
    out[1] = (braid_tensor){.name = "y", .data = y, .bytes = sizeof y}; /* one output twice into one buffer */
    expect(LANES, BRAID_ARGUMENT, "overlaps");
    out[1].data = y + 3; /* also with one lane */
    expect(1, BRAID_ARGUMENT, "output 'z': the buffer of lane 0 overlaps that of output 'y', lane 0");
}

/* Records of y and z side by side share no byte. */
static void interleaved(void **state) {
    (void)state;
    braid_error err = {0};
    good();
    out[0].lane_stride = 32;
    out[1] = (braid_tensor){.data = y + 6, .lane_stride = 32, .bytes = sizeof y - 24};
    if (braid_session_run(session, LANES, in, 3, out, 3, &err) != BRAID_OK) fail_msg("%s", err.message);
    for (int lane = 0; lane < LANES; lane++) {
        const float *record = y + 8 * lane;
        for (int i = 0; i < 6; i++) assert_true(record[i] == a[6 * lane + i] + b[i % 3]);
        for (int i = 0; i < 2; i++) assert_true(record[6 + i] == record[3 * i] + record[3 * i + 1] + record[3 * i + 2]);
    }
    expect_good();
}

static void lists(void **state) {
    (void)state;
    void *lanes_of_a[LANES] = {a, a + 6, NULL, a + 18}, *lanes_of_y[LANES] = {y, y + 6, y + 12, y + 15};
    good();
    in[0].data = lanes_of_a;
    in[0].bytes = A_BYTES;
    in[0].flags = BRAID_TENSOR_LANES;
    expect(LANES, BRAID_ARGUMENT, "input 'a': lane 2 has no buffer");
    out[0].data = lanes_of_y;
    out[0].bytes = Y_BYTES;
    out[0].flags = BRAID_TENSOR_LANES;
    expect(LANES, BRAID_ARGUMENT, "output 'y': the buffer of lane 3 overlaps that of output 'y', lane 2");
    lanes_of_y[3] = y + 12;
    out[0] = (braid_tensor){.data = lanes_of_y, .bytes = Y_BYTES, .flags = BRAID_TENSOR_LANES};
    expect(LANES, BRAID_ARGUMENT, "overlaps");
    in[0] = (braid_tensor){.name = "a",
                           .type = BRAID_FLOAT32,
                           .rank = 2,
                           .dims = {2, 3},
                           .data = lanes_of_a,
                           .bytes = A_BYTES,
                           .flags = BRAID_TENSOR_LANES | BRAID_TENSOR_SHARED};
    expect(LANES, BRAID_ARGUMENT, "input 'a': a list of lanes is not shared by all lanes");
}

/* Lanes whose own data give outputs of unlike shapes. */
static void unlike_results(void **state) {
    (void)state;
    braid_error err = {0};
    static const char rows[] = "graph t(x: float32[4]) { y = NonZero(x) } -> y";
    braid_model *m = ops_model(rows, &err);
    braid_session_options o = {.size = sizeof o, .lanes_max = 3};
    braid_device *device = ops_device(false);
    braid_session *s = NULL;
    float x[] = {1, 0, 2, 0, 0, 3, 4, 0, 1, 2, 3, 0};
    braid_tensor of = {.name = "x", .type = BRAID_FLOAT32, .rank = 1, .dims = {4}, .data = x, .bytes = sizeof x},
                 to = {0};
    assert_int_equal(braid_session_create(&device, 1, m, &o, &s, &err), BRAID_OK);
    braid_status status = braid_session_run(s, 3, &of, 1, &to, 1, &err);
    assert_true(status == BRAID_UNSUPPORTED || status == BRAID_SHAPE);
    assert_non_null(
        strstr(err.message, "output 'y': lane 2 gives another shape than the lanes before it: [1,3] after [1,2]"));
    braid_tensor_free(&to);
    to = (braid_tensor){0};
    assert_int_equal(braid_session_run(s, 2, &of, 1, &to, 1, &err), BRAID_OK);
    const int64_t want[] = {0, 2, 1, 2};
    assert_memory_equal(to.data, want, sizeof want);
    braid_tensor_free(&to);
    braid_session_free(s);
    braid_model_free(m);
}

static int open_session(void **state) {
    (void)state;
    braid_error err = {0};
    braid_session_options o = {.size = sizeof o, .lanes_max = LANES};
    braid_device *device = ops_device(false);
    if (!(model = ops_model(source, &err))) return -1;
    return braid_session_create(&device, 1, model, &o, &session, &err) == BRAID_OK ? 0 : -1;
}

static int close_session(void **state) {
    (void)state;
    braid_session_free(session);
    braid_model_free(model);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lane_counts),           cmocka_unit_test(input_strides),   cmocka_unit_test(shapes),
        cmocka_unit_test(output_strides),        cmocka_unit_test(output_overlaps), cmocka_unit_test(interleaved),
        cmocka_unit_test(outputs_without_names), cmocka_unit_test(lists),           cmocka_unit_test(unlike_results),
    };
    return cmocka_run_group_tests(tests, open_session, close_session);
}
