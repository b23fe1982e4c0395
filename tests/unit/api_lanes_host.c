/*
 * api_lanes_host.c: a host step that takes long computes its lanes by several threads: the same bits, the same
 * failures. labels: quick thread
 */
#include "ops_gpu.h"

enum { LANES = 24, SIDE = 96, PICKS = 4 };

static const char *const source = "graph t(a: float32[96,96], i: int64[4]) {\n"
                                  "  d = MatMul(a, a) g = Gather(d, i) {axis = 0} y = Softmax(g) {axis = -1}\n"
                                  "} -> y";

static void long_steps(void **state) {
    (void)state;
    braid_error err = {0};
    braid_session *session;
    braid_session_options o = {.size = sizeof o, .lanes_max = LANES};
    braid_device *device = ops_device(true);
    braid_model *model = ops_model(source, &err);
    if (!model || braid_session_create(&device, 1, model, &o, &session, &err) != BRAID_OK) fail_msg("%s", err.message);
    float *a = malloc(LANES * SIDE * SIDE * sizeof *a);
    int64_t i[LANES * PICKS];
    for (int k = 0; k < LANES * SIDE * SIDE; k++) a[k] = (float)(k % 101) / 64 - 0.7f;
    for (int k = 0; k < LANES * PICKS; k++) i[k] = k % SIDE;
    i[5 * PICKS] = i[17 * PICKS + 3] = SIDE;
    braid_tensor in[] = {{.name = "a",
                          .type = BRAID_FLOAT32,
                          .rank = 2,
                          .dims = {SIDE, SIDE},
                          .data = a,
                          .bytes = LANES * SIDE * SIDE * sizeof *a},
                         {.name = "i", .type = BRAID_INT64, .rank = 1, .dims = {PICKS}, .data = i, .bytes = sizeof i}};
    braid_tensor out = {0};
    assert_int_equal(braid_session_run(session, LANES, in, 2, &out, 1, &err), BRAID_INDEX);
    assert_int_equal(strncmp(err.message, "lane 5: ", 8), 0);
    assert_non_null(strstr(err.message, "2 of 24 lanes failed"));
    for (size_t lane = 0; lane < LANES; lane++)
        assert_int_equal(braid_session_lane_status(session, lane), lane == 5 || lane == 17 ? BRAID_INDEX : BRAID_OK);
    for (size_t lane = 0; lane < LANES; lane++) {
        braid_tensor one[2] = {in[0], in[1]}, alone = {0};
        one[0].data = a + lane * SIDE * SIDE;
        one[1].data = i + lane * PICKS;
        bool bad = lane == 5 || lane == 17;
        assert_int_equal(braid_session_run(session, 1, one, 2, &alone, 1, &err), bad ? BRAID_INDEX : BRAID_OK);
        if (!bad) assert_memory_equal((uint8_t *)out.data + lane * out.lane_stride, alone.data, alone.bytes);
        braid_tensor_free(&alone);
    }
    braid_tensor_free(&out);
    free(a);
    braid_session_free(session);
    braid_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(long_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
