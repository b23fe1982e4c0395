/*
 * api_steps.c: the plan as a list of steps.
 */
#include "ops_gpu.h"

static braid_session *session_of(const char *source, bool no_fuse, braid_model **model) {
    braid_error err = {0};
    braid_session *session = NULL;
    braid_device *device = ops_device(false);
    braid_session_options o = {.size = sizeof o, .no_fuse = no_fuse, .no_reroll = true};
    *model = ops_model(source, &err);
    if (!*model || braid_session_create(&device, 1, *model, &o, &session, &err) != BRAID_OK)
        fail_msg("%s", err.message);
    return session;
}

static void check(const braid_plan_step *s, const char *type, uint32_t phase, uint32_t wave, uint32_t dispatch,
                  bool host) {
    assert_string_equal(s->op, type);
    assert_int_equal(s->phase, phase);
    assert_int_equal(s->wave, wave);
    assert_int_equal(s->dispatch, dispatch);
    assert_int_equal(strcmp(s->kernel, "host") == 0, host);
    assert_int_equal(s->copies, 1);
    assert_true(host ? !s->cost_ns && !s->tiles : s->cost_ns && s->tiles);
}

/* Two phases on the device around one on the host; two rows in a dispatch. */
static void phases_and_rows(void **state) {
    (void)state;
    braid_model *model;
    braid_session *s = session_of("graph t(a: float32[3,3], b: float32[3,3]) { p = Exp(a) q = Exp(b) r = Mul(p, q) "
                                  "d = Det(r) \"the host's\" z = Neg(d) } -> z",
                                  true, &model);
    const braid_plan_step *list;
    size_t count;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(braid_session_steps(s, &list, &count, NULL), BRAID_OK);
        assert_int_equal(count, 5);
        check(&list[0], "Exp", 0, 0, 0, false);
        check(&list[1], "Exp", 0, 0, 0, false);
        check(&list[2], "Mul", 0, 1, 1, false);
        check(&list[3], "Det", 1, 0, 0, true);
        assert_string_equal(list[3].node, "the host's");
        check(&list[4], "Neg", 2, 0, 0, false);
        assert_int_equal(list[0].bytes, 72);
    }
    braid_session_free(s);
    braid_model_free(model);
}

static void nothing_planned(void **state) {
    (void)state;
    braid_model *model;
    braid_session *s = session_of("graph t(a: float32[N]) { y = Exp(a) } -> y", false, &model);
    const braid_plan_step *list;
    size_t count = 7;
    assert_int_equal(braid_session_steps(s, &list, &count, NULL), BRAID_OK);
    assert_int_equal(count, 0);
    braid_error err = {0};
    assert_int_equal(braid_session_steps(s, NULL, &count, &err), BRAID_ARGUMENT);
    assert_int_equal(braid_session_steps(NULL, &list, &count, &err), BRAID_ARGUMENT);
    assert_string_equal(err.message, "braid_session_steps: a pointer is NULL");
    braid_session_free(s);
    braid_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(phases_and_rows), cmocka_unit_test(nothing_planned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
