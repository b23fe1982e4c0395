/*
 * ops_move_gpu.c: operators that move elements, on the device against the reference: every element size, ranks 0 to 6,
 * tensors without elements, shapes that meet and miss the 16-byte path. Nothing here may need a host step.
 * labels: gpu
 */
#include "ops_gpu.h"

static const char *const type_names[] = {"int8", "float16", "float32", "int64", "bool", "bfloat16"};
static const braid_type type_numbers[] = {BRAID_INT8,  BRAID_FLOAT16, BRAID_FLOAT32,
                                          BRAID_INT64, BRAID_BOOL,    BRAID_BFLOAT16};

typedef struct port {
    int rank;
    int64_t dims[8];
    int64_t low, high; /* indices in [low, high) where high > low */
} port;
typedef struct move_case {
    const char *body; /* statements; T stands for the element type, y is the output */
    int n;
    port in[3]; /* x, i, u; those with bounds are int64 */
} move_case;

static void shape_text(char *out, size_t size, const port *p) {
    size_t n = 0;
    out[0] = 0;
    for (int d = 0; d < p->rank; d++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", d ? "," : "", (long long)p->dims[d]);
}

/* The body with T replaced, into out. */
static void with_type(const char *body, const char *type, char *out) {
    for (; *body; body++) {
        if (*body == 'T' && (body[1] == '[' || body[1] == ' ')) {
            strcpy(out, type);
            out += strlen(type);
        } else {
            *out++ = *body;
        }
    }
    *out = 0;
}

static void check(const move_case *c, size_t type) {
    static const char *const names[] = {"x", "i", "u"};
    char source[2048] = "graph t(", body[1024], shape[128];
    braid_tensor in[3];
    for (int i = 0; i < c->n; i++) {
        const port *p = &c->in[i];
        bool index = p->high > p->low;
        shape_text(shape, sizeof shape, p);
        snprintf(source + strlen(source), sizeof source - strlen(source), "%s%s: %s[%s]", i ? ", " : "", names[i],
                 index ? "int64" : type_names[type], shape);
        in[i] = index ? ops_random_full(names[i], BRAID_INT64, p->rank, p->dims, (double)p->low, (double)p->high, false)
                      : ops_random(names[i], type_numbers[type], p->rank, p->dims);
    }
    with_type(c->body, type_names[type], body);
    snprintf(source + strlen(source), sizeof source - strlen(source), ") {\n%s\n} -> y", body);
    uint64_t host = ops_compare(source, (size_t)c->n, in, 0, 0);
    if (host) fail_msg("%d host steps in\n%s", (int)host, source);
}

/* Two types for each case, in turns; all of them with BRAID_TEST_ALL in the environment. */
static void check_all(const move_case *cases, size_t n) {
    bool all = getenv("BRAID_TEST_ALL") != NULL;
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < COUNT_OF(type_numbers); t++)
            if (all || t == i % 6 || t == (i + 2) % 6) check(&cases[i], t);
}

#define X(...) {.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), .dims = {__VA_ARGS__}}
#define INDEX(low_, high_, ...) \
    {.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), .dims = {__VA_ARGS__}, .low = low_, .high = high_}
#define SCALAR {.rank = 0}

static const move_case copy_cases[] = {
    {"y = Transpose(x)", 1, {SCALAR}},
    {"y = Transpose(x)", 1, {X(7)}},
    {"y = Transpose(x)", 1, {X(3, 5)}},
    {"y = Transpose(x)", 1, {X(64, 48)}},
    {"y = Transpose(x)", 1, {X(70, 33)}},
    {"y = Transpose(x) {perm = [0, 2, 1, 3]}", 1, {X(2, 5, 3, 16)}},
    {"y = Transpose(x) {perm = [0, 2, 1, 3]}", 1, {X(2, 5, 3, 7)}},
    {"y = Transpose(x) {perm = [0, 3, 1, 2]}", 1, {X(2, 9, 8, 32)}},
    {"y = Transpose(x) {perm = [2, 0, 1]}", 1, {X(33, 2, 40)}},
    {"y = Transpose(x) {perm = [5, 1, 3, 0, 4, 2]}", 1, {X(2, 3, 2, 3, 2, 4)}},
    {"y = Transpose(x) {perm = [1, 0]}", 1, {X(0, 4)}},
    {"s: int64[4] = constant {2, 1, 5, 4}\ny = Expand(x, s)", 1, {X(3, 1, 4)}},
    {"s: int64[3] = constant {4, 6, 8}\ny = Expand(x, s)", 1, {SCALAR}},
    {"s: int64[3] = constant {3, 1, 32}\ny = Expand(x, s)", 1, {X(3, 2, 1)}},
    {"s: int64[2] = constant {0, 3}\ny = Expand(x, s)", 1, {X(1, 3)}},
    {"s: int64[3] = constant {2, 1, 3}\ny = Tile(x, s)", 1, {X(2, 3, 16)}},
    {"s: int64[4] = constant {2, 3, 1, 3}\ny = Tile(x, s)", 1, {X(2, 3, 2, 5)}},
    {"s: int64[2] = constant {0, 3}\ny = Tile(x, s)", 1, {X(2, 3)}},
    {"y = DepthToSpace(x) {blocksize = 2}", 1, {X(2, 12, 3, 5)}},
    {"y = DepthToSpace(x) {blocksize = 3, mode = \"CRD\"}", 1, {X(1, 18, 2, 4)}},
    {"y = SpaceToDepth(x) {blocksize = 2}", 1, {X(2, 3, 4, 6)}},
    {"y = SpaceToDepth(x) {blocksize = 2, mode = \"CRD\"}", 1, {X(2, 3, 4, 6)}},
};

static const move_case part_cases[] = {
    {"y = Concat(x, i) {axis = 1}", 2, {X(2, 3, 4), X(2, 5, 4)}},
    {"y = Concat(x, i) {axis = 0}", 2, {X(2, 3), X(5, 3)}},
    {"y = Concat(x, i) {axis = -1}", 2, {X(4, 16), X(4, 32)}},
    {"y = Concat(x, i) {axis = -1}", 2, {X(4, 3), X(4, 0)}},
    {"y = Concat(x, i, x, x, u, i, x, u, x) {axis = 1}", 3, {X(2, 3, 2), X(2, 1, 2), X(2, 4, 2)}},
    {"s: int64[2] = constant {2, 5}\nz, y = Split(x, s) {axis = 1}", 1, {X(3, 7, 4)}},
    {"y, z = Split(x) {axis = 0, num_outputs = 2}", 1, {X(7, 3)}},
    {"z, y = Split(x) {axis = 1, num_outputs = 2}", 1, {X(1, 32, 16)}},
    {"z, y = Split(x) {axis = 1, num_outputs = 2}", 1, {X(1, 6)}},
    {"s: int64[3] = constant {0, 4, 0}\nz, y, w = Split(x, s)", 1, {X(4, 3)}},
    {"a: int64[2] = constant {1, 2}\nb: int64[2] = constant {9, 4}\ny = Slice(x, a, b)", 1, {X(5, 6, 3)}},
    {"a: int64[1] = constant {-1}\nb: int64[1] = constant {-100}\nc: int64[1] = constant {-1}\nd: int64[1] = constant "
     "{-1}\n"
     "y = Slice(x, a, b, c, d)",
     1,
     {X(3, 37)}},
    {"a: int64[2] = constant {5, 1}\nb: int64[2] = constant {0, 9223372036854775807}\nc: int64[2] = constant {0, 2}\n"
     "d: int64[2] = constant {-2, 3}\ny = Slice(x, a, b, c, d)", 1, {X(6, 3, 11)}},
    {"a: int64[1] = constant {16}\nb: int64[1] = constant {48}\nc: int64[1] = constant {1}\ny = Slice(x, a, b, c)", 1,
     {X(3, 64)}},
    {"a: int64[1] = constant {0}\nb: int64[1] = constant {5}\nc: int64[1] = constant {0}\nd: int64[1] = constant {-1}\n"
     "y = Slice(x, a, b, c, d)",
     1,
     {X(6, 3)}},
    /* views between copies */
    {"s: int64[2] = constant {-1, 4}\na = Transpose(x) {perm = [1, 0, 2]}\nb = Reshape(a, s)\nc = Transpose(b)\ny = "
     "Flatten(c)",
     1,
     {X(2, 3, 4)}},
    {"y = Identity(x)", 1, {X(2, 3)}},
    {"a: int64[1] = constant {0}\nb = Unsqueeze(x, a)\ny = Squeeze(b)", 1, {X(2, 3)}},
};

#define PADS(n, ...) "p: int64[" #n "] = constant {" #__VA_ARGS__ "}\n"
static const move_case pad_cases[] = {
    {PADS(8, 0, 0, 1, 1, 0, 0, 1, 1) "y = Pad(x, p)", 1, {X(2, 3, 5, 5)}},
    {PADS(8, 0, 0, 1, 1, 0, 0, 2, 0) "y = Pad(x, p) {mode = \"reflect\"}", 1, {X(2, 3, 5, 5)}},
    {PADS(8, 0, 0, 1, 1, 0, 0, 2, 0) "y = Pad(x, p) {mode = \"edge\"}", 1, {X(2, 3, 5, 5)}},
    {PADS(8, 1, 0, 1, 1, 0, 0, 2, 9) "y = Pad(x, p) {mode = \"wrap\"}", 1, {X(2, 3, 5, 5)}},
    {PADS(6, 0, 2, 0, 0, 1, 0) "y = Pad(x, p)", 1, {X(2, 3, 32)}},
    {PADS(6, 0, 2, 0, 0, 1, 0) "y = Pad(x, p) {mode = \"reflect\"}", 1, {X(2, 3, 32)}},
    {PADS(4, 0, -2, -1, 3) "y = Pad(x, p)", 1, {X(3, 5)}},
    {PADS(4, 0, -2, -1, 3) "y = Pad(x, p) {mode = \"edge\"}", 1, {X(3, 5)}},
    {PADS(4, 0, -1, -1, 8) "y = Pad(x, p) {mode = \"reflect\"}", 1, {X(3, 5)}},
    {PADS(2, 3, 4) "y = Pad(x, p)", 1, {X(0)}},
    {PADS(2, 3, 4) "y = Pad(x, p) {mode = \"reflect\"}", 1, {X(1)}},
    {PADS(0, ) "y = Pad(x, p)", 1, {SCALAR}},
    {PADS(2, 16, 32) "a: int64[1] = constant {-1}\ny = Pad(x, p, u, a)", 3, {X(2, 16), INDEX(0, 1, 1), SCALAR}},
    {PADS(12, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 3) "y = Pad(x, p)", 1, {X(2, 1, 2, 2, 3, 2)}},
};

static const move_case index_cases[] = {
    {"y = Gather(x, i)", 2, {X(5, 3), INDEX(-5, 5, 4)}},
    {"y = Gather(x, i)", 2, {X(50, 64), INDEX(0, 50, 3, 7)}},
    {"y = Gather(x, i) {axis = 1}", 2, {X(5, 3, 4), INDEX(-3, 3, 2, 2)}},
    {"y = Gather(x, i) {axis = -1}", 2, {X(5, 3, 9), INDEX(-9, 9, 11)}},
    {"y = Gather(x, i)", 2, {X(5), {.rank = 0, .low = -5, .high = 5}}},
    {"y = Gather(x, i)", 2, {X(5, 3), INDEX(-5, 5, 0)}},
    {"j = Cast(i) {to = 6}\ny = Gather(x, j)", 2, {X(5, 3), INDEX(-5, 5, 4)}},
    {"y = GatherElements(x, i) {axis = 1}", 2, {X(5, 3, 4), INDEX(-3, 3, 5, 7, 4)}},
    {"y = GatherElements(x, i)", 2, {X(5, 3, 4), INDEX(-5, 5, 2, 2, 3)}},
    {"y = GatherElements(x, i) {axis = 2}", 2, {X(5, 3, 4), INDEX(-4, 4, 5, 3, 1)}},
    {"y = GatherND(x, i)", 2, {X(3, 3, 16), INDEX(-3, 3, 5, 2)}},
    {"y = GatherND(x, i)", 2, {X(3, 3), INDEX(-3, 3, 2, 5, 2)}},
    {"y = GatherND(x, i) {batch_dims = 1}", 2, {X(3, 4, 2), INDEX(-2, 2, 3, 6, 2)}},
    {"y = GatherND(x, i) {batch_dims = 2}", 2, {X(2, 3, 4, 5), INDEX(-4, 4, 2, 3, 1)}},
};

static const move_case scatter_cases[] = {
    {"y = ScatterElements(x, i, u) {axis = 1}", 3, {X(4, 5), INDEX(-5, 5, 4, 7), X(4, 7)}},
    {"y = ScatterElements(x, i, u)", 3, {X(4, 5, 2), INDEX(-4, 4, 9, 3, 1), X(9, 3, 1)}},
    {"y = ScatterND(x, i, u)", 3, {X(4, 4, 16), INDEX(-4, 4, 10, 1), X(10, 4, 16)}},
    {"y = ScatterND(x, i, u)", 3, {X(4, 4, 3), INDEX(-4, 4, 2, 5, 2), X(2, 5, 3)}},
    {"y = ScatterND(x, i, u)", 3, {X(4), INDEX(-4, 4, 30, 1), X(30)}},
    {"y = ScatterND(x, i, u)", 3, {X(4, 2), INDEX(-4, 4, 0, 1), X(0, 2)}},
    {"y = TensorScatter(x, u, i)", 3, {X(2, 3, 8, 4), INDEX(0, 6, 2), X(2, 3, 3, 4)}},
    {"y = TensorScatter(x, u, i) {mode = \"circular\"}", 3, {X(2, 3, 8, 16), INDEX(-20, 20, 2), X(2, 3, 5, 16)}},
    {"y = TensorScatter(x, u, i) {mode = \"circular\", axis = 1}", 3, {X(3, 8, 3), INDEX(-20, 20, 3), X(3, 8, 3)}},
};

static void test_copies(void **state) { (void)state; check_all(copy_cases, COUNT_OF(copy_cases)); }
static void test_parts(void **state) { (void)state; check_all(part_cases, COUNT_OF(part_cases)); }
static void test_pads(void **state) { (void)state; check_all(pad_cases, COUNT_OF(pad_cases)); }
static void test_gathers(void **state) { (void)state; check_all(index_cases, COUNT_OF(index_cases)); }
static void test_scatters(void **state) { (void)state; check_all(scatter_cases, COUNT_OF(scatter_cases)); }

/* Small integers, so that sums and products are exact in every type but the narrow floats. */
static void test_reductions(void **state) {
    (void)state;
    static const char *const hows[] = {"add", "mul", "max", "min"};
    static const braid_type reduced[] = {BRAID_FLOAT32, BRAID_FLOAT16, BRAID_BFLOAT16, BRAID_INT8,
                                         BRAID_UINT8,   BRAID_INT16,   BRAID_UINT16,   BRAID_INT32,
                                         BRAID_UINT32,  BRAID_INT64,   BRAID_UINT64,   BRAID_BOOL};
    for (size_t h = 0; h < COUNT_OF(hows); h++)
        for (size_t t = 0; t < COUNT_OF(reduced); t++) {
            char source[512];
            const char *name = braid_type_name(reduced[t]);
            snprintf(source, sizeof source,
                     "graph t(x: %s[4,6], i: int64[3,9], u: %s[3,9], j: int64[5,1], v: %s[5,6]) {\n"
                     "y = ScatterElements(x, i, u) {axis = 1, reduction = \"%s\"}\n"
                     "z = ScatterND(x, j, v) {reduction = \"%s\"}\n} -> y, z", name, name, name, hows[h], hows[h]);
            bool special = reduced[t] == BRAID_FLOAT32 && h != 1;
            double low = type_is_unsigned(reduced[t]) ? 0 : -4;
            braid_tensor in[5] = {
                ops_random_full("x", reduced[t], 2, (int64_t[]){4, 6}, low, 5, special),
                ops_random_full("i", BRAID_INT64, 2, (int64_t[]){3, 9}, -6, 6, false),
                ops_random_full("u", reduced[t], 2, (int64_t[]){3, 9}, low, 5, special),
                ops_random_full("j", BRAID_INT64, 2, (int64_t[]){5, 1}, -4, 4, false),
                ops_random_full("v", reduced[t], 2, (int64_t[]){5, 6}, low, 5, special),
            };
            assert_int_equal(ops_compare(source, 5, in, type_bits(reduced[t]) == 16 ? 1e-2 : 1e-5, 1e-5), 0);
        }
}

static void test_indices_out_of_range(void **state) {
    (void)state;
    static const char *const bodies[] = {
        "y = Gather(x, i)", "y = GatherElements(x, i)", "y = GatherND(x, i)", "y = ScatterElements(x, i, x)",
        "u = Slice(x, a, b)\n y = ScatterND(x, i, u)"};
    static const int64_t bad[] = {3, -4, INT64_MAX, INT64_MIN, (int64_t)1 << 32};
    for (size_t b = 0; b < COUNT_OF(bodies); b++)
        for (size_t k = 0; k < COUNT_OF(bad); k++) {
            char source[512];
            bool nd = strstr(bodies[b], "ND") != NULL;
            snprintf(source, sizeof source, "graph t(x: float32[3,1], i: int64[%d,1]) {\na: int64[1] = constant {0}\n"
                     "b: int64[1] = constant {2}\n%s\n} -> y", nd ? 2 : 3, bodies[b]);
            braid_tensor in[2] = {ops_random("x", BRAID_FLOAT32, 2, (int64_t[]){3, 1}),
                                  ops_random_full("i", BRAID_INT64, 2, (int64_t[]){nd ? 2 : 3, 1}, 0, 1, false)};
            ((int64_t *)in[1].data)[1] = bad[k];
            braid_tensor out[1] = {0};
            braid_error err = {0};
            uint64_t host = 0;
            braid_status status = ops_run(false, source, 2, in, 1, out, &host, &err);
            if (status != BRAID_INDEX || host)
                fail_msg("%s, %d host steps in\n%s", braid_status_name(status), (int)host, source);
            braid_tensor_free(&out[0]);
            free(in[0].data);
            free(in[1].data);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_parts),      cmocka_unit_test(test_pads),
        cmocka_unit_test(test_gathers),  cmocka_unit_test(test_scatters),   cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_indices_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
