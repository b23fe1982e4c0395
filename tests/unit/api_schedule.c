/*
 * api_schedule.c: the schedules that are there for comparison give the default's results bit for bit, and have the form
 * that they are named after.
 */
#include "ops_gpu.h"

enum { OUTPUTS_MAX = 4 };

static const char *const graphs[] = {
    /* a chain; independent branches that merge; parts of one Concat; a row that needs several kernels; integers */
    "graph t(a: float32[4,6], b: float32[6,9]) { m = MatMul(a, b) y = Softmax(m) {axis = -1} z = Transpose(y) } -> z",
    "graph t(a: float32[1,4,8,8], b: float32[4,4,3,3]) { p = Conv(a, b) {pads = [1, 1, 1, 1]} "
    "q = Conv(a, b) {pads = [1, 1, 1, 1], dilations = [1, 1]} r = AveragePool(a) {kernel_shape = [3, 3], pads = [1, 1, "
    "1, 1]} "
    "y = Concat(p, q, r) {axis = 1} z = GlobalAveragePool(y) } -> y, z",
    "graph t(a: float32[3,5], b: float32[3,5]) { p = Exp(a) q = Exp(b) r = Exp(p) s = Exp(q) y = Concat(r, s, a, b) "
    "{axis = 1} "
    "n: int64[2] = constant {3, 17} u, v = Split(y, n) {axis = 1} } -> u, v, s",
    "graph t(a: int64[6,3], b: int64[6,3]) { p = Add(a, b) q = Mul(a, b) r = Sub(p, q) y = Concat(p, r) {axis = 0} } "
    "-> y, q",
};

typedef struct outcome {
    braid_tensor out[OUTPUTS_MAX];
    braid_plan_stats stats;
} outcome;

static void run(const braid_model *model, braid_schedule schedule, bool no_fuse, braid_tensor *in, outcome *to) {
    braid_error err = {0};
    braid_session_options o = {
        .size = sizeof o, .schedule = schedule, .no_fuse = no_fuse, .no_reroll = true, .verify = true};
    braid_device *device = ops_device(false);
    braid_session *session = NULL;
    size_t n_in = braid_model_input_count(model), n_out = (size_t)model->m->g->n_outputs;
    *to = (outcome){0};
    if (braid_session_create(&device, 1, model, &o, &session, &err) != BRAID_OK) fail_msg("%s", err.message);
    if (braid_session_run(session, 1, in, n_in, to->out, n_out, &err) != BRAID_OK) fail_msg("%s", err.message);
    braid_session_stats(session, &to->stats);
    braid_session_free(session);
}

static void outcome_free(outcome *o) {
    for (int i = 0; i < OUTPUTS_MAX; i++) braid_tensor_free(&o->out[i]);
}

static void check_same(const outcome *got, const outcome *want) {
    assert_int_equal(got->stats.steps, want->stats.steps);
    for (int i = 0; i < OUTPUTS_MAX && want->out[i].data; i++) {
        assert_int_equal(got->out[i].bytes, want->out[i].bytes);
        assert_memory_equal(got->out[i].data, want->out[i].data, want->out[i].bytes);
    }
}

static void check_graph(const char *source, bool no_fuse) {
    braid_error err = {0};
    braid_model *model = ops_model(source, &err);
    if (!model) fail_msg("%s", err.message);
    const graph *g = model->m->g;
    braid_tensor in[2];
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const value *v = g->values[g->inputs[i]];
        in[i] = ops_random(v->name, v->type.type, v->type.rank, v->type.dims);
    }
    outcome merged, apart, serial;
    run(model, BRAID_SCHEDULE_DEFAULT, no_fuse, in, &merged);
    run(model, BRAID_SCHEDULE_UNMERGED, no_fuse, in, &apart);
    run(model, BRAID_SCHEDULE_SERIAL, no_fuse, in, &serial);
    check_same(&apart, &merged);
    check_same(&serial, &merged);
    assert_int_equal(apart.stats.waves, merged.stats.waves);
    assert_int_equal(apart.stats.dispatches, apart.stats.steps);
    assert_int_equal(serial.stats.waves, serial.stats.steps);
    assert_int_equal(serial.stats.dispatches, serial.stats.steps);
    assert_true(merged.stats.dispatches <= merged.stats.steps);
    outcome_free(&merged);
    outcome_free(&apart);
    outcome_free(&serial);
    for (int32_t i = 0; i < g->n_inputs; i++) free(in[i].data);
    braid_model_free(model);
}

static void schedules_agree(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(graphs); i++)
        for (int no_fuse = 0; no_fuse < 2; no_fuse++) check_graph(graphs[i], no_fuse);
}

/* Two equal branches: half as many waves as steps, and every two steps one dispatch. */
static void merging_shows(void **state) {
    (void)state;
    braid_error err = {0};
    braid_model *model = ops_model(
        "graph t(a: float32[64], b: float32[64]) { p = Exp(a) q = Exp(b) r = Exp(p) s = Exp(q) } -> r, s", &err);
    float zero[64] = {0};
    braid_tensor in[2] = {
        {.name = "a", .type = BRAID_FLOAT32, .rank = 1, .dims = {64}, .data = zero, .bytes = sizeof zero}};
    in[1] = in[0];
    in[1].name = "b";
    static const int expected[3][3] = {{4, 2, 2}, {4, 2, 4}, {4, 4, 4}}; /* steps, waves, dispatches */
    for (int schedule = 0; schedule < 3; schedule++) {
        outcome o;
        run(model, (braid_schedule)schedule, true, in, &o);
        assert_int_equal(o.stats.steps, expected[schedule][0]);
        assert_int_equal(o.stats.waves, expected[schedule][1]);
        assert_int_equal(o.stats.dispatches, expected[schedule][2]);
        outcome_free(&o);
    }
    braid_model_free(model);
}

static void unknown_schedule(void **state) {
    (void)state;
    braid_error err = {0};
    braid_model *model = ops_model("graph t(a: float32[2]) { y = Exp(a) } -> y", &err);
    braid_session_options o = {.size = sizeof o, .schedule = (braid_schedule)3};
    braid_device *device = ops_device(false);
    braid_session *session = NULL;
    assert_int_equal(braid_session_create(&device, 1, model, &o, &session, &err), BRAID_ARGUMENT);
    assert_null(session);
    assert_string_equal(err.message, "braid_session_create: no schedule 3");
    braid_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(schedules_agree), cmocka_unit_test(merging_shows),
                                       cmocka_unit_test(unknown_schedule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
