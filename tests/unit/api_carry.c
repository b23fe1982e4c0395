/*
 * api_carry.c: bytes of many inputs and outputs that travel together, by several threads: of unlike sizes, empty ones
 * among them, shared by the lanes or not, with a buffer for each lane or not.
 */
#include "ops_gpu.h"

enum { INPUTS = 12, LANES = 5 };

/* Elements: below and above the MiB that a thread takes at once, and just that. */
static const int64_t sizes[INPUTS] = {0, 1, 300000, 262144, 0, 0, 262145, 7, 524288, 600001, 3, 0};

typedef struct work {
    braid_model *model;
    braid_session *session;
    braid_tensor in[INPUTS], out[INPUTS];
    char names[INPUTS][16];
    void *each[INPUTS][LANES];
} work;

static braid_model *model_new(void) {
    char source[4096];
    int n = snprintf(source, sizeof source, "graph t(");
    for (int i = 0; i < INPUTS; i++)
        n += snprintf(source + n, sizeof source - (size_t)n, "%sx%d: float32[%lld]", i ? ", " : "", i, (long long)sizes[i]);
    n += snprintf(source + n, sizeof source - (size_t)n, ") {");
    for (int i = 0; i < INPUTS; i++) n += snprintf(source + n, sizeof source - (size_t)n, " y%d = Neg(x%d)", i, i);
    n += snprintf(source + n, sizeof source - (size_t)n, " } -> ");
    for (int i = 0; i < INPUTS; i++) n += snprintf(source + n, sizeof source - (size_t)n, "%sy%d", i ? ", " : "", i);
    assert_true((size_t)n < sizeof source);
    braid_error err = {0};
    braid_model *m = ops_model(source, &err);
    if (!m) fail_msg("%s", err.message);
    return m;
}

static float value_at(int input, size_t lane, int64_t at) {
    return (float)(input * 31 + (int)lane * 7 + (int)(at % 9973));
}

/* Every third input is shared, every other third has a buffer for each lane. */
static bool shared(int i) {
    return i % 3 == 0;
}

static void make_input(work *w, int i, size_t lanes) {
    size_t of_lane = (size_t)sizes[i] * sizeof(float), n = shared(i) ? 1 : lanes;
    float *data = malloc(of_lane * n + 1);
    for (size_t lane = 0; lane < n; lane++)
        for (int64_t at = 0; at < sizes[i]; at++) data[lane * (size_t)sizes[i] + (size_t)at] = value_at(i, lane, at);
    snprintf(w->names[i], sizeof w->names[i], "x%d", i);
    w->in[i] = (braid_tensor){
        .name = w->names[i], .type = BRAID_FLOAT32, .rank = 1, .dims = {sizes[i]}, .data = data, .bytes = of_lane * n};
    if (shared(i)) w->in[i].flags = BRAID_TENSOR_SHARED;
    if (i % 3 != 1 || lanes == 1) return;
    for (size_t lane = 0; lane < lanes; lane++) w->each[i][lane] = data + (n - 1 - lane) * (size_t)sizes[i];
    for (size_t lane = 0; lane < lanes; lane++) /* in reversed order */
        for (int64_t at = 0; at < sizes[i]; at++) ((float *)w->each[i][lane])[at] = value_at(i, lane, at);
    w->in[i].data = w->each[i];
    w->in[i].bytes = of_lane;
    w->in[i].flags = BRAID_TENSOR_LANES;
}

static void check_output(const work *w, int i, size_t lanes) {
    const braid_tensor *t = &w->out[i];
    assert_int_equal(t->dims[0], sizes[i]);
    for (size_t lane = 0; lane < lanes; lane++) {
        const float *y = (const float *)(const void *)((const uint8_t *)t->data + lane * t->lane_stride);
        for (int64_t at = 0; at < sizes[i]; at++)
            if (y[at] != -value_at(i, shared(i) ? 0 : lane, at))
                fail_msg("output %d, lane %zu, element %lld", i, lane, (long long)at);
    }
}

static void run(size_t lanes) {
    braid_error err = {0};
    work w = {.model = model_new()};
    braid_session_options o = {.size = sizeof o, .lanes_max = (uint32_t)lanes, .verify = true};
    braid_device *device = ops_device(false);
    if (braid_session_create(&device, 1, w.model, &o, &w.session, &err) != BRAID_OK) fail_msg("%s", err.message);
    for (int i = 0; i < INPUTS; i++) make_input(&w, i, lanes);
    for (int round = 0; round < 2; round++)
        if (braid_session_run(w.session, lanes, w.in, INPUTS, w.out, INPUTS, &err) != BRAID_OK) fail_msg("%s", err.message);
    for (int i = 0; i < INPUTS; i++) {
        check_output(&w, i, lanes);
        braid_tensor_free(&w.out[i]);
        free(w.in[i].flags == BRAID_TENSOR_LANES ? w.each[i][lanes - 1] : w.in[i].data);
    }
    braid_session_free(w.session);
    braid_model_free(w.model);
}

static void one_lane(void **state) {
    (void)state;
    run(1);
}

static void several_lanes(void **state) {
    (void)state;
    run(LANES);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_lane), cmocka_unit_test(several_lanes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
