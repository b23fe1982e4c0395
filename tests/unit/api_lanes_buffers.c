/*
 * api_lanes_buffers.c: inputs and outputs with a buffer for each lane (BRAID_TENSOR_LANES) are those of one buffer with
 * a stride, on the device and on the host, for views of inputs, host steps and lanes one by one. Outputs may be written
 * where inputs lie.
 */
#include "ops_gpu.h"

enum { LANES = 6, LANE_BYTES = 12 * sizeof(float), GAP = 5 };

static const char *const graphs[] = {
    "graph t(a: float32[3,4], b: float32[4]) { y = Add(a, b) } -> y",
    "graph t(a: float32[3,4], b: float32[4]) { s: int64[1] = constant {12} y = Reshape(a, s) z = Neg(b) } -> y, z",
    "graph t(a: float32[3,4], b: float32[4]) { n: int64[2] = constant {1, 2} p, q = Split(a, n) {axis = 0} } -> p, q",
    "graph t(a: float32[3,4], b: float32[4]) {\n"
    "  s: int64[2] = constant {2, 2} h = Reshape(b, s) d = Det(h) y = Mul(a, d) } -> y, d",
    /* views of inputs that are read on both sides of a host step */
    "graph t(a: float32[3,4], b: float32[4]) { s: int64[2] = constant {2, 2} n: int64[2] = constant {1, 2}\n"
    "  h = Reshape(b, s) d = Det(h) y = Add(h, d) p, q = Split(a, n) {axis = 0} z = Mul(q, d) } -> y, z",
    "graph t(a: float32[3,4], b: float32[4]) { c = Abs(b) n = NonZero(c) m = Shape(n) y = Exp(a) } -> m, y",
};

typedef struct problem {
    braid_model *model;
    braid_session *session;
    float a[LANES * 12], b[LANES * 4];
    void *a_each[LANES], *b_each[LANES]; /* in reversed order, apart from each other */
    uint8_t *a_block, *b_block;
    braid_tensor dense[2], each[2];
    size_t n_out;
} problem;

static void **scatter(void **each, uint8_t **block, const void *data, size_t bytes) {
    *block = malloc(LANES * (bytes + GAP * 4));
    for (size_t lane = 0; lane < LANES; lane++) {
        each[lane] = *block + (LANES - 1 - lane) * (bytes + GAP * 4) + 4;
        memcpy(each[lane], (const uint8_t *)data + lane * bytes, bytes);
    }
    return each;
}

static void problem_new(problem *p, const char *source, bool host) {
    braid_error err = {0};
    *p = (problem){.model = ops_model(source, &err)};
    if (!p->model) fail_msg("%s", err.message);
    p->n_out = (size_t)p->model->m->g->n_outputs;
    for (int i = 0; i < LANES * 12; i++) p->a[i] = (float)(i % 7) - 2.5f;
    for (int i = 0; i < LANES * 4; i++) p->b[i] = (float)(i * i % 5);
    p->dense[0] = (braid_tensor){
        .name = "a", .type = BRAID_FLOAT32, .rank = 2, .dims = {3, 4}, .data = p->a, .bytes = sizeof p->a};
    p->dense[1] =
        (braid_tensor){.name = "b", .type = BRAID_FLOAT32, .rank = 1, .dims = {4}, .data = p->b, .bytes = sizeof p->b};
    memcpy(p->each, p->dense, sizeof p->each);
    p->each[0].data = scatter(p->a_each, &p->a_block, p->a, 48);
    p->each[1].data = scatter(p->b_each, &p->b_block, p->b, 16);
    p->each[0].bytes = 48;
    p->each[1].bytes = 16;
    p->each[0].flags = p->each[1].flags = BRAID_TENSOR_LANES;
    braid_session_options o = {.size = sizeof o, .lanes_max = LANES, .verify = true};
    braid_device *device = ops_device(host);
    if (braid_session_create(&device, 1, p->model, &o, &p->session, &err) != BRAID_OK)
        fail_msg("%s\n%s", err.message, source);
}

static void problem_free(problem *p) {
    free(p->a_block);
    free(p->b_block);
    braid_session_free(p->session);
    braid_model_free(p->model);
}

static void run(problem *p, size_t lanes, const braid_tensor *in, braid_tensor *out) {
    braid_error err = {0};
    if (braid_session_run(p->session, lanes, in, 2, out, p->n_out, &err) != BRAID_OK) fail_msg("%s", err.message);
}

static size_t lane_bytes(const braid_tensor *t) {
    size_t bytes = braid_type_bytes(t->type);
    for (int i = 0; i < t->rank; i++) bytes *= (size_t)t->dims[i];
    return bytes;
}

static void compare(const problem *p, size_t lanes, const braid_tensor *expected, const braid_tensor *list) {
    for (size_t i = 0; i < p->n_out; i++)
        for (size_t lane = 0; lane < lanes; lane++)
            assert_memory_equal(((void **)list[i].data)[lane],
                                (uint8_t *)expected[i].data + lane * expected[i].lane_stride, lane_bytes(&expected[i]));
}

static void check(const char *source, bool host, size_t lanes, unsigned which) {
    problem p;
    uint8_t rooms[2][LANES][LANE_BYTES + 1];
    void *list[2][LANES];
    braid_tensor expected[2] = {0}, out[2], in[2];
    problem_new(&p, source, host);
    run(&p, lanes, p.dense, expected);
    for (int i = 0; i < 2; i++) {
        in[i] = which >> i & 1 ? p.each[i] : p.dense[i];
        for (int lane = 0; lane < LANES; lane++) list[i][lane] = rooms[i][lane];
        out[i] = (braid_tensor){.data = list[i], .bytes = LANE_BYTES, .flags = BRAID_TENSOR_LANES};
    }
    memset(rooms, 0xEE, sizeof rooms);
    run(&p, lanes, in, out);
    compare(&p, lanes, expected, out);
    for (size_t i = 0; i < p.n_out; i++) {
        assert_int_equal(out[i].bytes, lane_bytes(&expected[i]));
        for (size_t lane = 0; lane < LANES; lane++)
            assert_int_equal(rooms[i][lane][lane < lanes ? lane_bytes(&out[i]) : 0], 0xEE);
        braid_tensor_free(&expected[i]);
    }
    problem_free(&p);
}

static void equal_to_strides(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(graphs); i++)
        for (int host = 0; host < 2; host++)
            for (unsigned which = 0; which < 4; which++) {
                check(graphs[i], host, 1, which);
                check(graphs[i], host, 3, which);
                check(graphs[i], host, LANES, which);
            }
}

static void refused(problem *p, const braid_tensor *in, braid_tensor *out, braid_status status, const char *message) {
    braid_error err = {0};
    assert_int_equal(braid_session_run(p->session, LANES, in, 2, out, 1, &err), status);
    if (!strstr(err.message, message)) fail_msg("%s", err.message);
}

static void refusals(void **state) {
    (void)state;
    problem p;
    float room[LANES * 12];
    void *list[LANES];
    braid_tensor out = {0}, to = {.data = list, .bytes = LANE_BYTES, .flags = BRAID_TENSOR_LANES};
    problem_new(&p, graphs[0], false);
    for (int lane = 0; lane < LANES; lane++) list[lane] = room + lane * 12;
    p.a_each[2] = NULL;
    refused(&p, p.each, &out, BRAID_ARGUMENT, "input 'a': lane 2 has no buffer");
    p.a_each[2] = p.a;
    p.each[0].bytes = 47;
    refused(&p, p.each, &out, BRAID_SHAPE, "input 'a': 47 bytes, its shape needs 48");
    p.each[0].bytes = 48;
    p.each[1].lane_stride = 16;
    refused(&p, p.each, &out, BRAID_ARGUMENT, "input 'b': a list of lanes has no lane stride");
    p.each[1].lane_stride = 0;
    p.each[1].flags |= BRAID_TENSOR_SHARED;
    refused(&p, p.each, &out, BRAID_ARGUMENT, "input 'b': a list of lanes is not shared by all lanes");
    p.each[1].flags = BRAID_TENSOR_LANES;
    p.each[1].data = NULL;
    refused(&p, p.each, &out, BRAID_ARGUMENT, "input 'b': no list of lanes");
    p.each[1].data = p.b_each;
    list[5] = NULL;
    refused(&p, p.each, &to, BRAID_ARGUMENT, "output 'y': lane 5 has no buffer");
    list[5] = room + 60;
    to.bytes = 47;
    refused(&p, p.each, &to, BRAID_SHAPE, "output 'y': the buffer has 47 bytes, 48 are needed");
    assert_int_equal(to.rank, 2);
    to.bytes = 48;
    to.data = NULL;
    refused(&p, p.each, &to, BRAID_ARGUMENT, "output 'y': no list of lanes");
    to.data = list;
    run(&p, LANES, p.each, &to);
    problem_free(&p);
}

/* So many bytes that several threads move them, in pieces. */
static void many_bytes(void **state) {
    (void)state;
    enum { ELEMENTS = 1300 * 1000, BYTES = ELEMENTS * sizeof(float) };
    braid_error err = {0};
    braid_session *session;
    braid_session_options o = {.size = sizeof o, .lanes_max = 3};
    braid_device *device = ops_device(false);
    braid_model *model = ops_model("graph t(x: float32[1300,1000]) { y = Neg(x) } -> y", &err);
    if (braid_session_create(&device, 1, model, &o, &session, &err) != BRAID_OK) fail_msg("%s", err.message);
    float *in = malloc(3 * BYTES), *out = malloc(3 * BYTES);
    for (int i = 0; i < 3 * ELEMENTS; i++) in[i] = (float)i;
    void *each[] = {out + 2 * ELEMENTS, out, out + ELEMENTS};
    braid_tensor x = {
        .name = "x", .type = BRAID_FLOAT32, .rank = 2, .dims = {1300, 1000}, .data = in, .bytes = 3 * BYTES};
    braid_tensor y = {.data = each, .bytes = BYTES, .flags = BRAID_TENSOR_LANES};
    for (size_t lanes = 1; lanes <= 3; lanes += 2) {
        if (braid_session_run(session, lanes, &x, 1, &y, 1, &err) != BRAID_OK) fail_msg("%s", err.message);
        int wrong = 0;
        for (size_t lane = 0; lane < lanes; lane++)
            for (int i = 0; i < ELEMENTS; i++) wrong += ((float *)each[lane])[i] != -in[lane * ELEMENTS + (size_t)i];
        assert_int_equal(wrong, 0);
    }
    free(in);
    free(out);
    braid_session_free(session);
    braid_model_free(model);
}

/* Each graph on the device is what it is on the host. */
static void equal_to_the_host(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(graphs); i++) {
        problem p[2];
        braid_tensor out[2][2] = {{{0}}};
        for (int host = 0; host < 2; host++) {
            problem_new(&p[host], graphs[i], host);
            run(&p[host], LANES, p[host].dense, out[host]);
        }
        for (size_t k = 0; k < p[0].n_out; k++) {
            assert_int_equal(out[0][k].bytes, out[1][k].bytes);
            if (i + 1 < COUNT_OF(graphs) || k == 0) /* the last has an Exp */
                assert_memory_equal(out[0][k].data, out[1][k].data, out[0][k].bytes);
        }
        for (int host = 0; host < 2; host++) {
            for (size_t k = 0; k < p[host].n_out; k++) braid_tensor_free(&out[host][k]);
            problem_free(&p[host]);
        }
    }
}

/* y is made from x, p and q are views of it; all go to where x is. */
static void into_the_inputs(void **state) {
    (void)state;
    for (int host = 0; host < 2; host++) {
        braid_error err = {0};
        braid_model *model = ops_model("graph t(x: float32[4]) { y = Neg(x) s: int64[2] = constant {2, 2} "
                                       "p = Reshape(x, s) q, r = Split(x) {num_outputs = 2} } "
                                       "-> y, p, q, r", &err);
        braid_session_options o = {.size = sizeof o, .lanes_max = 3};
        braid_device *device = ops_device(host);
        braid_session *session;
        if (!model || braid_session_create(&device, 1, model, &o, &session, &err)) fail_msg("%s", err.message);
        float room[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, other[12], more[6];
        void *lanes[3] = {room, room + 4, room + 8}, *reversed[3] = {room + 8, room + 4, room};
        braid_tensor in = {.name = "x", .type = BRAID_FLOAT32, .rank = 1, .dims = {4}, .data = lanes, .bytes = 16,
                           .flags = BRAID_TENSOR_LANES};
        braid_tensor swapped[2] = {{.name = "y", .data = other, .bytes = sizeof other},
                                   {.name = "p", .data = reversed, .bytes = 16, .flags = BRAID_TENSOR_LANES}};
        assert_int_equal(braid_session_run(session, 3, &in, 1, swapped, 2, &err), BRAID_OK);
        for (int i = 0; i < 12; i++) {
            assert_true(other[i] == -(float)(i + 1));
            assert_true(room[i] == (float)((2 - i / 4) * 4 + i % 4 + 1));
        }
        for (int i = 0; i < 12; i++) room[i] = (float)i;
        in = (braid_tensor){.name = "x", .type = BRAID_FLOAT32, .rank = 1, .dims = {4}, .data = room, .bytes = 48};
        braid_tensor out[3] = {{.name = "y", .data = room, .bytes = 48},
                               {.name = "p", .data = other, .bytes = sizeof other},
                               {.name = "r", .data = more, .bytes = sizeof more}};
        assert_int_equal(braid_session_run(session, 3, &in, 1, out, 3, &err), BRAID_OK);
        for (int i = 0; i < 12; i++) assert_true(room[i] == -(float)i && other[i] == (float)i);
        for (int i = 0; i < 6; i++) assert_true(more[i] == (float)(i / 2 * 4 + 2 + i % 2));
        for (int i = 0; i < 16; i++) room[i] = (float)i;
        braid_tensor further = {.name = "p", .data = room + 3, .bytes = 48}; /* each lane a little behind its input */
        assert_int_equal(braid_session_run(session, 3, &in, 1, &further, 1, &err), BRAID_OK);
        for (int i = 0; i < 12; i++) assert_true(room[i + 3] == (float)i);
        braid_session_free(session);
        braid_model_free(model);
    }
}

static void allocations(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(graphs); i++) {
        problem p;
        braid_tensor expected[2] = {0};
        problem_new(&p, graphs[i], false);
        run(&p, LANES, p.dense, expected);
        for (uint64_t n = 1;; n++) {
            braid_error err = {0};
            uint8_t rooms[2][LANES][LANE_BYTES];
            void *list[2][LANES];
            braid_tensor out[2];
            for (int k = 0; k < 2; k++) {
                for (int lane = 0; lane < LANES; lane++) list[k][lane] = rooms[k][lane];
                out[k] = (braid_tensor){.data = list[k], .bytes = LANE_BYTES, .flags = BRAID_TENSOR_LANES};
            }
            mem_fail_after(n, n % 2 == 0);
            braid_status status = braid_session_run(p.session, LANES, p.each, 2, out, p.n_out, &err);
            mem_fail_after(0, false);
            if (status == BRAID_OK) {
                compare(&p, LANES, expected, out);
                break;
            }
            if (status != BRAID_HOST_MEMORY) fail_msg("%s", err.message);
        }
        for (size_t k = 0; k < p.n_out; k++) braid_tensor_free(&expected[k]);
        problem_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_strides), cmocka_unit_test(equal_to_the_host), cmocka_unit_test(refusals),
        cmocka_unit_test(many_bytes),       cmocka_unit_test(into_the_inputs),   cmocka_unit_test(allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
