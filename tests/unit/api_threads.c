/*
 * api_threads.c: objects shared by threads give what one thread gets, bit for bit: one session, several sessions over
 * one device and one model, sessions and models made and freed meanwhile.
 *
 * labels: quick thread
 */
#include <pthread.h>
#include <stdatomic.h>

#include "ops_gpu.h"

enum { THREADS = 8, ROUNDS = 6, ROWS = 5, INPUTS = 4 };

static const char *const source = "graph t(x: float32[N,12]) {\n"
                                  "  w: float32[3,4] = constant {1, 2, -1, 3, 0.5, 2, 7, -3, 1, 0.25, 4, -2}\n"
                                  "  shape: int64[3] = constant {-1, 4, 3}\n"
                                  "  r = Reshape(x, shape)\n"
                                  "  m = MatMul(r, w)\n"
                                  "  t = Tanh(m)\n"
                                  "  s = Softmax(t) {axis = -1}\n"
                                  "} -> s, t\n";

/* Input i has i + 1 rows; what one thread alone makes of it. */
typedef struct sample {
    float data[ROWS * 12];
    braid_tensor in, wanted[2];
} sample;

typedef struct work {
    braid_device *device;
    braid_model *model;
    braid_session *sessions[4];
    sample samples[INPUTS];
    atomic_int failures;
} work;

typedef struct job {
    work *w;
    int index;
} job;

static bool run_equals(braid_session *session, const sample *s) {
    braid_error err = {0};
    braid_tensor out[2] = {0};
    bool same = braid_session_run(session, 1, &s->in, 1, out, 2, &err) == BRAID_OK;
    if (!same) fprintf(stderr, "%s\n", err.message);
    for (int i = 0; i < 2; i++) {
        same = same && out[i].bytes == s->wanted[i].bytes && memcmp(out[i].data, s->wanted[i].data, out[i].bytes) == 0;
        braid_tensor_free(&out[i]);
    }
    return same;
}

static braid_session *session_of(const work *w) {
    braid_error err = {0};
    braid_device *device = w->device;
    braid_session *session = NULL;
    braid_session_options options = {.size = sizeof options, .verify = true};
    if (braid_session_create(&device, 1, w->model, &options, &session, &err) != BRAID_OK)
        fprintf(stderr, "%s\n", err.message);
    return session;
}

/* ------------------------------------------------------------------------------------------------- threads */

static void *share_session(void *user) {
    const job *j = user;
    for (int i = 0; i < ROUNDS; i++)
        if (!run_equals(j->w->sessions[0], &j->w->samples[(i + j->index) % INPUTS])) j->w->failures++;
    return NULL;
}

static void *share_device(void *user) {
    const job *j = user;
    for (int i = 0; i < ROUNDS; i++)
        if (!run_equals(j->w->sessions[j->index % 4], &j->w->samples[(i + j->index) % INPUTS])) j->w->failures++;
    return NULL;
}

/* Odd threads make and free sessions, ask and describe; even ones run a shared one. */
static void *mix(void *user) {
    const job *j = user;
    braid_plan_stats stats;
    if (j->index % 2 == 0) return share_session(user);
    for (int i = 0; i < ROUNDS / 2; i++) {
        char *report = NULL;
        braid_session *own = session_of(j->w);
        if (!own || !run_equals(own, &j->w->samples[(i + j->index) % INPUTS])) j->w->failures++;
        braid_session_free(own);
        braid_session_stats(j->w->sessions[0], &stats);
        if (braid_session_describe(j->w->sessions[0], &report, NULL) != BRAID_OK) j->w->failures++;
        braid_text_free(report);
        if (braid_model_describe(j->w->model, BRAID_REPORT_GRAPH, &report, NULL) != BRAID_OK) j->w->failures++;
        braid_text_free(report);
    }
    return NULL;
}

static void on_threads(work *w, void *(*run)(void *)) {
    pthread_t threads[THREADS];
    job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){w, i};
        assert_int_equal(pthread_create(&threads[i], NULL, run, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(w->failures, 0);
}

/* --------------------------------------------------------------------------------------------------- tests */

static void make_samples(work *w) {
    braid_session *alone = session_of(w);
    assert_non_null(alone);
    for (int i = 0; i < INPUTS; i++) {
        sample *s = &w->samples[i];
        for (int k = 0; k < ROWS * 12; k++) s->data[k] = (float)(ops_uniform() * 8 - 4);
        s->in = (braid_tensor){.name = "x", .type = BRAID_FLOAT32, .rank = 2, .dims = {i + 1, 12}, .data = s->data,
                               .bytes = (size_t)(i + 1) * 12 * sizeof(float)};
        braid_error err = {0};
        if (braid_session_run(alone, 1, &s->in, 1, s->wanted, 2, &err) != BRAID_OK) fail_msg("%s", err.message);
    }
    braid_session_free(alone);
}

static void with_sessions(bool host, int n_sessions, void *(*run)(void *)) {
    static work w;
    braid_error err = {0};
    w = (work){.device = ops_device(host), .model = ops_model(source, &err)};
    assert_non_null(w.model);
    make_samples(&w);
    for (int i = 0; i < n_sessions; i++) assert_non_null(w.sessions[i] = session_of(&w));
    on_threads(&w, run);
    for (int i = 0; i < n_sessions; i++) braid_session_free(w.sessions[i]);
    for (int i = 0; i < INPUTS; i++)
        for (int k = 0; k < 2; k++) braid_tensor_free(&w.samples[i].wanted[k]);
    braid_model_free(w.model);
}

static void one_session(void **state) {
    (void)state;
    with_sessions(false, 1, share_session);
    with_sessions(true, 1, share_session);
}

static void four_sessions(void **state) {
    (void)state;
    with_sessions(false, 4, share_device);
    with_sessions(true, 4, share_device);
}

static void made_and_freed(void **state) {
    (void)state;
    with_sessions(false, 1, mix);
    with_sessions(true, 1, mix);
}

/* Each thread opens a device of its own and lists all devices. */
static void *own_device(void *user) {
    const job *j = user;
    work own = {.model = j->w->model};
    braid_device_options options = {.size = sizeof options, .no_cache = j->index % 2 == 0};
    size_t count;
    if (braid_device_list(NULL, 0, &count, NULL) != BRAID_OK || !count) j->w->failures++;
    if (braid_device_open(&options, &own.device, NULL) != BRAID_OK) {
        j->w->failures++;
        return NULL;
    }
    braid_session *session = session_of(&own);
    if (!session || !run_equals(session, &j->w->samples[j->index % INPUTS])) j->w->failures++;
    braid_device_close(own.device); /* the session keeps it */
    if (session && !run_equals(session, &j->w->samples[0])) j->w->failures++;
    braid_session_free(session);
    return NULL;
}

static void devices(void **state) {
    (void)state;
    with_sessions(false, 0, own_device);
}

static int close_devices(void **state) {
    (void)state;
    braid_device_close(ops_device(false));
    braid_device_close(ops_device(true));
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_session), cmocka_unit_test(four_sessions),
                                       cmocka_unit_test(made_and_freed), cmocka_unit_test(devices)};
    return cmocka_run_group_tests(tests, NULL, close_devices);
}
