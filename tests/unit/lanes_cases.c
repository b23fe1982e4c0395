/*
 * lanes_cases.c: the graphs on which tools that edit dim 0 fail, run with lanes: every lane bit for bit what it gives
 * alone, and alone what the CPU reference gives. Models go through the file format, so that old opsets are upgraded as
 * the importer does it.
 *
 * Refused until there is control flow (If, Loop, Scan), recurrence (LSTM), dynamic quantisation or random operators:
 * each such case is checked to be refused when the session is made, by the node's name (test_refused).
 */
#include "ops_gpu.h"

#include "onnx/import.h"

enum { CASE_LANES = 64, CASE_SETS = 5 };

typedef struct loaded {
    braid_model *model;
    void *bytes;
} loaded;

/* The writer writes the newest opset; the file is to say the graph's own: both are numbers of one byte. */
static void set_opset(uint8_t *bytes, size_t size, int opset) {
    static const uint8_t newest[] = {0x42, 4, 0x0a, 0, 0x10, OPSET_MAX}; /* opset_import {domain, version} */
    assert_true(opset > 0 && opset <= OPSET_MAX);
    for (size_t i = 0; i + sizeof newest <= size; i++)
        if (memcmp(bytes + i, newest, sizeof newest) == 0) {
            bytes[i + 5] = (uint8_t)opset;
            return;
        }
    fail_msg("no opset in the file");
}

static loaded load(const char *source) {
    arena *memory = arena_new();
    braid_error err = {0};
    graph *g;
    loaded l = {0};
    size_t size = 0;
    if (graph_parse(memory, source, &g, &err) != BRAID_OK || onnx_write(g, &l.bytes, &size, &err) != BRAID_OK)
        fail_msg("%s in\n%s", err.message, source);
    set_opset(l.bytes, size, g->opset);
    if (braid_model_load_memory(l.bytes, size, NULL, &l.model, &err) != BRAID_OK)
        fail_msg("%s in\n%s", err.message, source);
    arena_free(memory);
    return l;
}

static void unload(loaded *l) {
    braid_model_free(l->model);
    mem_free(l->bytes);
}

static braid_session *open_on(bool host, const braid_model *m, const char *source) {
    braid_error err = {0};
    braid_session *s = NULL;
    braid_device *device = ops_device(host);
    braid_session_options o = {.size = sizeof o, .lanes_max = CASE_LANES, .verify = true};
    if (braid_session_create(&device, 1, m, &o, &s, &err) != BRAID_OK) fail_msg("%s in\n%s", err.message, source);
    return s;
}

static void draw_inputs(lane_case *c, const braid_model *m, double lo, double hi) {
    c->n_in = braid_model_input_count(m);
    c->n_out = braid_model_output_count(m);
    c->n_sets = CASE_SETS;
    c->state = 7;
    for (int k = 0; k < CASE_SETS; k++)
        for (size_t i = 0; i < c->n_in; i++) {
            const braid_port *p = braid_model_input(m, i);
            c->in[k][i] = ops_random_full(p->name, p->type, p->rank, p->dims, lo, hi, false);
        }
}

static void compare_with_host(const lane_case *c, const braid_model *m, const char *source, double tolerance) {
    braid_session *host = open_on(true, m, source);
    braid_tensor want[4] = {{0}}, got[4] = {{0}};
    braid_error err = {0};
    assert_true(c->n_out <= 4);
    if (braid_session_run(host, 1, c->in[0], c->n_in, want, c->n_out, &err) != BRAID_OK ||
        braid_session_run(c->session, 1, c->in[0], c->n_in, got, c->n_out, &err) != BRAID_OK)
        fail_msg("%s in\n%s", err.message, source);
    for (size_t i = 0; i < c->n_out; i++) {
        ops_compare_tensors(source, &got[i], &want[i], tolerance, tolerance);
        braid_tensor_free(&got[i]);
        braid_tensor_free(&want[i]);
    }
    braid_session_free(host);
}

/* Lanes of 2, 7 and `most`: everything per lane, a random mix, and with poisoned memory. Returns the runs refused for
   outputs of unlike shapes. */
static unsigned long long check_most(const char *source, double lo, double hi, double tolerance, uint32_t most) {
    loaded l = load(source);
    lane_case *c = calloc(1, sizeof *c);
    draw_inputs(c, l.model, lo, hi);
    c->session = open_on(false, l.model, source);
    compare_with_host(c, l.model, source, tolerance);
    bool good = true;
    for (int round = 0; round < 3 && good; round++) {
        if (round == 2) {
            c->session->test =
                (session_test){.redzone = true, .shuffle = true, .poison = true, .poison_byte = 0xff, .staged = true};
            stage_cache_clear(c->session, &c->session->stages);
        }
        good = lanes_share(c, round ? 50 : 0) && lanes_run(c, 2) && lanes_run(c, 7) && (most < 8 || lanes_run(c, most));
    }
    if (!good) fail_msg("%s in\n%s", c->what, source);
    if (!c->runs) fail_msg("no run in\n%s", source);
    unsigned long long unlike = c->unlike;
    lanes_end(c);
    braid_session_free(c->session);
    for (int k = 0; k < CASE_SETS; k++)
        for (size_t i = 0; i < c->n_in; i++) free(c->in[k][i].data);
    free(c);
    unload(&l);
    return unlike;
}

static void check(const char *source) {
    assert_int_equal(check_most(source, -3, 3, 1e-4, CASE_LANES), 0);
}

#define CASE(name, ...)                                                                                                \
    static void name(void **state) {                                                                                   \
        (void)state;                                                                                                   \
        check(__VA_ARGS__);                                                                                            \
    }

CASE(softmax_11_over_a_middle_axis,
     "graph t(x: float32[1,3,4,5]) opset 11 { y = Softmax(x) {axis = 2} z = LogSoftmax(x) } -> y, z")
CASE(flatten_axis_1,
     "graph t(x: float32[1,3,4,5], w: float32[60,7]) opset 13 { f = Flatten(x) {axis = 1} y = MatMul(f, w) } -> y")
CASE(squeeze_without_axes, "graph t(x: float32[1,3,1,5]) opset 13 { s = Squeeze(x) y = Relu(s) } -> y")
CASE(reshape_1_rest,
     "graph t(x: float32[1,6,2,2]) opset 13 { s: int64[2] = constant {1, -1} r = Reshape(x, s) y = Neg(r) } -> y")
CASE(reshape_1_c_rest, "graph t(x: float32[1,6,2,2]) opset 13 { s: int64[3] = constant {1, 6, -1} r = Reshape(x, s) "
                       "y = Softmax(r) {axis = -1} } -> y")
CASE(mvn_default_axes, "graph t(x: float32[2,3,4,5]) opset 13 { y = MeanVarianceNormalization(x) } -> y")
CASE(batch_norm_training,
     "graph t(x: float32[2,3,4], s: float32[3], b: float32[3], m: float32[3], v: float32[3]) opset 15 { "
     "y, rm, rv = BatchNormalization(x, s, b, m, v) {training_mode = 1} } -> y, rm, rv")
CASE(layer_norm_axis_0, "graph t(x: float32[2,3,5], s: float32[2,3,5], b: float32[2,3,5]) opset 17 { "
                        "y = LayerNormalization(x, s, b) {axis = 0} } -> y")
CASE(gather_drops_n, "graph t(x: float32[1,3,5]) opset 13 { i: int64[] = constant {0} g = Gather(x, i) {axis = 0} "
                     "y = Transpose(g) } -> y")
CASE(concat_on_axis_0, "graph t(x: float32[1,3,5], z: float32[2,3,5]) opset 13 { y = Concat(x, z, x) {axis = 0} } -> y")
CASE(arg_max_default_axis,
     "graph t(x: float32[1,9], z: float32[6,4]) opset 13 { a = ArgMax(x) b = ArgMax(z) {keepdims = 0} "
     "c = ArgMin(z) } -> a, b, c")
CASE(reduce_over_everything,
     "graph t(x: float32[1,3,50]) opset 13 { y = ReduceMean(x) {keepdims = 0} z = ReduceMax(x) } -> y, z")
CASE(max_pool_indices,
     "graph t(x: float32[1,2,7,7]) opset 12 { y, i = MaxPool(x) {kernel_shape = [3, 3], strides = [2, 2]} } -> y, i")

/* The large form of the detection head's reshape: fewer lanes, for their size. */
static void reshape_1_3_85_52_52(void **state) {
    (void)state;
    check_most(
        "graph t(x: float32[1,255,52,52]) opset 13 { s: int64[5] = constant {1, 3, 85, 52, 52} r = Reshape(x, s) "
        "y = Transpose(r) {perm = [0, 1, 3, 4, 2]} } -> y",
        -3, 3, 0, 7);
}

/* Sigmoid, split into centre, size and class scores, grid and anchors as constants of batch 1, flattened and joined. */
static void yolo_detect_head(void **state) {
    (void)state;
    check("graph t(x: float32[1,21,4,4], w: float32[21,8,1,1], f: float32[1,8,4,4]) opset 13 {\n"
          "p = Conv(f, w)\n h = Add(x, p)\n"
          "s: int64[5] = constant {1, 3, 7, 4, 4}\n r = Reshape(h, s)\n t = Transpose(r) {perm = [0, 1, 3, 4, 2]}\n"
          "g = Sigmoid(t)\n n: int64[3] = constant {2, 2, 3}\n xy, wh, score = Split(g, n) {axis = 4}\n"
          "two: float32[] = constant {2}\n half: float32[] = constant {0.5}\n stride: float32[] = constant {8}\n"
          "grid: float32[1,1,1,4,2] = constant {0, 0, 1, 0, 2, 0, 3, 0}\n"
          "anchors: float32[1,3,1,1,2] = constant {1.25, 1.625, 2, 3.75, 4.125, 2.875}\n"
          "a = Mul(xy, two)\n b = Sub(a, half)\n c = Add(b, grid)\n centre = Mul(c, stride)\n"
          "d = Mul(wh, two)\n e = Mul(d, d)\n size = Mul(e, anchors)\n"
          "j = Concat(centre, size, score) {axis = 4}\n flat: int64[3] = constant {1, -1, 7}\n y = Reshape(j, flat)\n"
          "} -> y");
}

static void bert_with_a_constant_mask(void **state) {
    (void)state;
    check("graph t(x: float32[1,6,16], q: float32[16,16], k: float32[16,16], v: float32[16,16]) opset 13 {\n"
          "mask: float32[1,1,1,6] = constant {0, 0, 0, 0, -10000, -10000}\n"
          "heads: int64[4] = constant {1, 6, 2, 8}\n whole: int64[3] = constant {1, 6, 16}\n"
          "scale: float32[] = constant {0.35355338}\n"
          "a = MatMul(x, q)\n b = Reshape(a, heads)\n c = Transpose(b) {perm = [0, 2, 1, 3]}\n"
          "d = MatMul(x, k)\n e = Reshape(d, heads)\n f = Transpose(e) {perm = [0, 2, 3, 1]}\n"
          "g = MatMul(x, v)\n h = Reshape(g, heads)\n i = Transpose(h) {perm = [0, 2, 1, 3]}\n"
          "s = MatMul(c, f)\n t = Mul(s, scale)\n u = Add(t, mask)\n p = Softmax(u) {axis = -1}\n"
          "o = MatMul(p, i)\n r = Transpose(o) {perm = [0, 2, 1, 3]}\n y = Reshape(r, whole)\n"
          "} -> y");
}

/* Nothing is suppressed at a threshold of 1: three boxes in every lane, whose gathered rows are outputs of one shape.
 */
static void nms_tail_of_one_length(void **state) {
    (void)state;
    unsigned long long unlike =
        check_most("graph t(b: float32[1,9,4], s: float32[1,1,9]) opset 13 {\n"
                   "k: int64[1] = constant {3}\n iou: float32[1] = constant {1}\n n = NonMaxSuppression(b, s, k, iou)\n"
                   "two: int64[1] = constant {2}\n i = Gather(n, two) {axis = 1}\n one: int64[1] = constant {1}\n"
                   "f = Squeeze(i, one)\n zero: int64[1] = constant {0}\n all = Squeeze(b, zero)\n y = Gather(all, f)\n"
                   "} -> y, n",
                   0, 4, 1e-4, 9);
    assert_int_equal(unlike, 0);
}

/* Lanes that keep more boxes than others: a run of both says so, a run of equal ones is right. */
static void nms_tail_of_unlike_lengths(void **state) {
    (void)state;
    unsigned long long unlike = check_most(
        "graph t(b: float32[1,9,4], s: float32[1,1,9]) opset 13 {\n"
        "k: int64[1] = constant {9}\n iou: float32[1] = constant {0.1}\n n = NonMaxSuppression(b, s, k, iou)\n"
        "} -> n",
        0, 4, 1e-4, 9);
    assert_true(unlike > 0);
}

/* ------------------------------------------------------------------------------------------------- refused */

static const struct {
    const char *source, *message;
} refused[] = {
    {"graph t(x: float32[2,3]) opset 13 { y, s, z = DynamicQuantizeLinear(x) \"q\" } -> y, s, z",
     "node 'q' (DynamicQuantizeLinear-13), domain 'ai.onnx': not supported"},
    {"graph t(x: float32[1,3]) opset 13 { s = Shape(x) i: int64[] = constant {0} n = Gather(s, i) one: int64[] = "
     "constant {1} "
     "c = Equal(n, one) y = If(c) {then_branch = graph a() opset 13 { x = outer x p = Neg(x) } -> (p), "
     "else_branch = graph b() opset 13 { x = outer x q = Abs(x) } -> (q)} \"branch\" } -> y",
     "node 'branch' (If-13), domain 'ai.onnx': not supported"},
    {"graph t(n: int64[], x: float32[3]) opset 13 { c: bool[] = constant {1} y = Loop(n, c, x) {body = graph body(i: "
     "int64[], "
     "k: bool[], v: float32[3]) opset 13 { w = Add(v, v) } -> (k, w)} \"turns\" } -> y",
     "node 'turns' (Loop-13), domain 'ai.onnx': not supported"},
    {"graph t(x: float32[7,1,3], w: float32[1,8,3], r: float32[1,8,2]) opset 14 { y, h, c = LSTM(x, w, r) {hidden_size "
     "= 2} "
     "\"memory\" } -> y, h, c",
     "node 'memory' (LSTM-14), domain 'ai.onnx': not supported"},
    {"graph t(x: float32[3]) opset 13 { r = RandomUniform() {shape = [3]} \"dice\" y = Add(x, r) } -> y",
     "node 'dice' (RandomUniform-13), domain 'ai.onnx': not supported"},
    {"graph t(x: float32[3]) opset 13 { r = RandomUniform() {shape = [3], seed = 4.0} \"dice\" y = Add(x, r) } -> y",
     "node 'dice' (RandomUniform-13), domain 'ai.onnx': not supported"},
};

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        loaded l = load(refused[i].source);
        braid_error err = {0};
        braid_session *s = NULL;
        braid_device *device = ops_device(false);
        braid_session_options o = {.size = sizeof o, .lanes_max = 4};
        braid_status status = braid_session_create(&device, 1, l.model, &o, &s, &err);
        if (status != BRAID_UNSUPPORTED || !strstr(err.message, refused[i].message))
            fail_msg("%s: %s; expected %s", braid_status_name(status), err.message, refused[i].message);
        assert_null(s);
        unload(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_11_over_a_middle_axis),
        cmocka_unit_test(flatten_axis_1),
        cmocka_unit_test(squeeze_without_axes),
        cmocka_unit_test(reshape_1_rest),
        cmocka_unit_test(reshape_1_c_rest),
        cmocka_unit_test(reshape_1_3_85_52_52),
        cmocka_unit_test(mvn_default_axes),
        cmocka_unit_test(batch_norm_training),
        cmocka_unit_test(layer_norm_axis_0),
        cmocka_unit_test(gather_drops_n),
        cmocka_unit_test(concat_on_axis_0),
        cmocka_unit_test(arg_max_default_axis),
        cmocka_unit_test(reduce_over_everything),
        cmocka_unit_test(max_pool_indices),
        cmocka_unit_test(yolo_detect_head),
        cmocka_unit_test(bert_with_a_constant_mask),
        cmocka_unit_test(nms_tail_of_one_length),
        cmocka_unit_test(nms_tail_of_unlike_lengths),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
