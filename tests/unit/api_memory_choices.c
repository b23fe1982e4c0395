/*
 * api_memory_choices.c: braid_session_memory, and that each choice's memory_budget gives that plan and the same bits.
 */
#include "ops_gpu.h"

enum { SIDE = 64, BRANCHES = 8 };

/* Branches that do not depend on each other; each makes something large and ends in something small. */
static const char *source(void) {
    static char out[4096];
    size_t at = (size_t)snprintf(out, sizeof out, "graph t(x: float32[%d,%d]) {\n", SIDE, SIDE);
    for (int i = 0; i < BRANCHES; i++)
        at += (size_t)snprintf(out + at, sizeof out - at,
                               "  a%d = LeakyRelu(x) {alpha = 0.%d}\n  b%d = Transpose(a%d)\n  c%d = Sigmoid(b%d)\n"
                               "  d%d = MatMul(c%d, x)\n  e%d = ReduceSum(d%d)\n",
                               i, i + 1, i, i, i, i, i, i, i, i);
    at += (size_t)snprintf(out + at, sizeof out - at, "  y = Sum(");
    for (int i = 0; i < BRANCHES; i++) at += (size_t)snprintf(out + at, sizeof out - at, "%se%d", i ? ", " : "", i);
    snprintf(out + at, sizeof out - at, ")\n} -> y\n");
    return out;
}

static braid_session *session_of(const braid_model *model, uint64_t budget) {
    braid_error err = {0};
    braid_session *session = NULL;
    braid_device *device = ops_device(false);
    braid_session_options o = {
        .size = sizeof o, .no_reroll = true, .no_fuse = true, .verify = true, .memory_budget = budget};
    if (braid_session_create(&device, 1, model, &o, &session, &err) != BRAID_OK) fail_msg("%s", err.message);
    return session;
}

static float run(braid_session *s) {
    static float x[SIDE * SIDE];
    float y = 0;
    braid_error err = {0};
    for (int i = 0; i < SIDE * SIDE; i++) x[i] = (float)(i % 37) / 37 - 0.4f;
    braid_tensor in = {
        .name = "x", .type = BRAID_FLOAT32, .rank = 2, .dims = {SIDE, SIDE}, .data = x, .bytes = sizeof x};
    braid_tensor out = {.data = &y, .bytes = sizeof y};
    if (braid_session_run(s, 1, &in, 1, &out, 1, &err) != BRAID_OK) fail_msg("%s", err.message);
    return y;
}

static void choices(void **state) {
    (void)state;
    braid_error err = {0};
    braid_model *model = ops_model(source(), &err);
    if (!model) fail_msg("%s", err.message);
    braid_session *s = session_of(model, 0);
    const braid_memory_choice *list;
    size_t count = 0;
    assert_int_equal(braid_session_memory(s, &list, &count, &err), BRAID_OK);
    assert_true(count >= 2);
    assert_true(list[count - 1].arena_bytes * 2 < list[0].arena_bytes);
    float wanted = run(s);
    for (size_t i = 0; i < count; i++) {
        braid_plan_stats stats;
        if (i) assert_true(list[i].bytes < list[i - 1].bytes);
        braid_session *other = session_of(model, list[i].bytes);
        float got = run(other);
        assert_memory_equal(&got, &wanted, sizeof got);
        braid_session_stats(other, &stats);
        assert_true(stats.arena_bytes <= list[i].arena_bytes);
        braid_session_free(other);
    }
    braid_session *none = NULL;
    braid_device *device = ops_device(false);
    braid_session_options o = {
        .size = sizeof o, .no_reroll = true, .no_fuse = true, .memory_budget = list[count - 1].bytes / 2};
    assert_int_equal(braid_session_create(&device, 1, model, &o, &none, &err), BRAID_DEVICE_MEMORY);
    const char *told = strstr(err.message, "the plan needs"); /* all of it: each part is rounded up */
    unsigned long long needs, part[4];
    assert_non_null(told);
    assert_int_equal(sscanf(told,
                            "the plan needs %llu KiB (arena %llu, constants %llu, tables of steps %llu, "
                            "inputs and outputs %llu)",
                            &needs, &part[0], &part[1], &part[2], &part[3]),
                     5);
    assert_in_range(part[0] + part[1] + part[2] + part[3], needs, needs + 3);
    braid_session_free(s);
    braid_model_free(model);
}

static void bad_input(void **state) {
    (void)state;
    braid_error err = {0};
    braid_model *model = ops_model("graph t(a: float32[N]) { y = Exp(a) } -> y", &err);
    braid_session *s = session_of(model, 0);
    const braid_memory_choice *list;
    size_t count = 7;
    assert_int_equal(braid_session_memory(s, &list, &count, NULL), BRAID_OK);
    assert_int_equal(count, 0);
    assert_int_equal(braid_session_memory(s, NULL, &count, &err), BRAID_ARGUMENT);
    assert_int_equal(braid_session_memory(NULL, &list, &count, &err), BRAID_ARGUMENT);
    assert_string_equal(err.message, "braid_session_memory: a pointer is NULL");
    braid_session_free(s);
    braid_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(choices), cmocka_unit_test(bad_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
