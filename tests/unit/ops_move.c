/*
 * ops_move.c: operators that move elements, on the CPU: types and shapes that infer finds or refuses, and eval against
 * loops that follow the definition index by index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ops/op.h"

/* ------------------------------------------------------------------------------------------------- infer */

typedef struct infer_case {
    const char *header, *node; /* graph inputs and constants; "y = Op(...)" */
    const char *type;          /* of y, ? for a fresh symbol; or the start of the error */
} infer_case;

static const infer_case infer_cases[] = {
    {"x: float32[2,N,12]", "y = Reshape(x, s)", "float32[2,N,3,4]|s: int64[4] = constant {0, 0, 3, 4}"},
    {"x: float32[2,N,12]", "y = Reshape(x, s)", "float32[2,N,12]|s: int64[3] = constant {2, -1, 12}"},
    {"x: float32[2,N,12]", "y = Reshape(x, s)", "float32[?,4]|s: int64[2] = constant {-1, 4}"},
    {"x: float32[1,1]", "y = Reshape(x, s)", "float32[]|s: int64[0] = constant {}"},
    {"x: float32[2,3]", "y = Reshape(x, s)", "SHAPE|s: int64[0] = constant {}"},
    {"x: float32[0,3]", "y = Reshape(x, s)", "float32[0,7]|s: int64[2] = constant {0, 7}"},
    {"x: float32[0,3]", "y = Reshape(x, s)", "float32[0,3]|s: int64[2] = constant {0, -1}"},
    {"x: float32[0,3]", "y = Reshape(x, s) {allowzero = 1}", "float32[3,0]|s: int64[2] = constant {3, 0}"},
    {"x: float32[0,3]", "y = Reshape(x, s) {allowzero = 1}", "SHAPE|s: int64[2] = constant {-1, 0}"},
    {"x: float32[2,3]", "y = Reshape(x, s)", "SHAPE|s: int64[2] = constant {-1, 4}"},
    {"x: float32[2,3]", "y = Reshape(x, s)", "SHAPE|s: int64[2] = constant {-1, -1}"},
    {"x: float32[2,3]", "y = Reshape(x, s)", "SHAPE|s: int64[2] = constant {-2, 3}"},
    {"x: float32[2,3]", "y = Reshape(x, s)", "SHAPE|s: int64[3] = constant {2, 3, 0}"},
    {"x: float32[N,3]", "y = Reshape(x, s)", "float32[1,3]|s: int64[2] = constant {1, 3}"},
    {"x: float32[N,3]", "y = Reshape(x, s)", "SHAPE|s: int64[2] = constant {0, 4}"},
    {"x: float32[2,3]", "y = Reshape(x, s)", "LIMIT|s: int64[9] = constant {1, 1, 1, 1, 1, 1, 1, 2, 3}"},
    {"x: float32[2,3], s: int64[3]", "y = Reshape(x, s)", "float32[?,?,?]"},
    {"x: float32[2,3], s: float32[3]", "y = Reshape(x, s)", "TYPE"},
    {"x: float32[2,3,N]", "y = Flatten(x) {axis = 2}", "float32[6,N]"},
    {"x: float32[2,3,4]", "y = Flatten(x) {axis = -3}", "float32[1,24]"},
    {"x: float32[]", "y = Flatten(x) {axis = 0}", "float32[1,1]"},
    {"x: float32[2,3]", "y = Flatten(x) {axis = 3}", "MODEL"},
    {"x: float32[1,N,1,3]", "y = Squeeze(x, a)", "float32[N,3]|a: int64[2] = constant {0, -2}"},
    {"x: float32[1,2,1,3]", "y = Squeeze(x)", "float32[2,3]"},
    {"x: float32[1,2]", "y = Squeeze(x, a)", "SHAPE|a: int64[1] = constant {1}"},
    {"x: float32[1,2]", "y = Squeeze(x, a)", "MODEL|a: int64[2] = constant {0, -2}"},
    {"x: float32[N,2]", "y = Unsqueeze(x, a)", "float32[1,N,2,1]|a: int64[2] = constant {-1, 0}"},
    {"x: float32[N,2]", "y = Unsqueeze(x, a)", "MODEL|a: int64[1] = constant {3}"},
    {"x: float32[N,2,5]", "y = Shape(x) {start = -2}", "int64[2]"},
    {"x: float32[N,2,5]", "y = Shape(x) {start = 2, end = 1}", "int64[0]"},
    {"x: float32[N,2,5]", "y = Transpose(x)", "float32[5,2,N]"},
    {"x: float32[N,2,5]", "y = Transpose(x) {perm = [0, 2]}", "MODEL"},
    {"x: float32[N,2,5]", "y = Transpose(x) {perm = [0, 2, 2]}", "MODEL"},
    {"x: float32[N,2,5]", "y = Transpose(x) {perm = [0, 2, 3]}", "MODEL"},
    {"x: float32[N,1]", "y = Expand(x, s)", "float32[2,N,4]|s: int64[3] = constant {2, 1, 4}"},
    {"x: float32[3]", "y = Expand(x, s)", "SHAPE|s: int64[1] = constant {2}"},
    {"x: float32[3]", "y = Expand(x, s)", "LIMIT|s: int64[2] = constant {4611686018427387904, 3}"},
    {"x: float32[3,N]", "y = Tile(x, s)", "float32[6,N]|s: int64[2] = constant {2, 1}"},
    {"x: float32[3,N]", "y = Tile(x, s)", "SHAPE|s: int64[1] = constant {2}"},
    {"x: float32[3,2]", "y = Tile(x, s)", "SHAPE|s: int64[2] = constant {2, -1}"},
    {"x: float32[3,2]", "y = Tile(x, s)", "SHAPE|s: int64[2] = constant {2, 9223372036854775807}"},
    {"x: float32[1,8,N,3]", "y = DepthToSpace(x) {blocksize = 2}", "float32[1,2,?,6]"},
    {"x: float32[1,6,2,3]", "y = DepthToSpace(x) {blocksize = 2}", "SHAPE"},
    {"x: float32[1,6,2,3]", "y = DepthToSpace(x) {blocksize = 0}", "MODEL"},
    {"x: float32[1,8,2]", "y = SpaceToDepth(x) {blocksize = 2}", "SHAPE"},
    {"x: float32[2,N], z: float32[3,N]", "y = Concat(x, z) {axis = 0}", "float32[5,N]"},
    {"x: float32[2,N], z: float32[2,3]", "y = Concat(x, z) {axis = -1}", "float32[2,?]"},
    {"x: float32[2,N], z: float32[3,4]", "y = Concat(x, z) {axis = 1}", "SHAPE"},
    {"x: float32[2,N], z: float64[2,4]", "y = Concat(x, z) {axis = 1}", "TYPE"},
    {"x: float32[2], z: float32[2]", "y = Concat(x, z) {axis = 1}", "MODEL"},
    {"x: float32[2], z: float32[2,1]", "y = Concat(x, z) {axis = 0}", "SHAPE"},
    {"x: float32[7,N]", "y, z = Split(x) {num_outputs = 2}", "float32[4,N]"},
    {"x: float32[7,N]", "y, z = Split(x, s)", "float32[2,N]|s: int64[2] = constant {2, 5}"},
    {"x: float32[7,N]", "y, z = Split(x, s)", "SHAPE|s: int64[2] = constant {2, 4}"},
    {"x: float32[7,N]", "y, z = Split(x, s)", "SHAPE|s: int64[2] = constant {8, -1}"},
    {"x: float32[7,N]", "y, z = Split(x, s)", "SHAPE|s: int64[3] = constant {2, 4, 1}"},
    {"x: float32[5]", "y, z, v, w = Split(x) {num_outputs = 4}", "SHAPE"},
    {"x: float32[10,N]", "y = Slice(x, a, b)", "float32[4,N]|a: int64[1] = constant {2} b: int64[1] = constant {6}"},
    {"x: float32[10,N]", "y = Slice(x, a, b)",
     "float32[10,N]|a: int64[2] = constant {0, 0} b: int64[2] = constant {9223372036854775807, 9223372036854775807}"},
    {"x: float32[10,N]", "y = Slice(x, a, b)",
     "MODEL|a: int64[3] = constant {0, 0, 0} b: int64[3] = constant {1, 1, 1}"},
    {"x: float32[10]", "y = Slice(x, a, b, c, d)",
     "float32[10]|a: int64[1] = constant {9223372036854775807} b: int64[1] = constant {-9223372036854775808} "
     "c: int64[1] = constant {0} d: int64[1] = constant {-1}"},
    {"x: float32[10]", "y = Slice(x, a, b, c, d)",
     "MODEL|a: int64[1] = constant {0} b: int64[1] = constant {1} c: int64[1] = constant {0} d: int64[1] = constant "
     "{0}"},
    {"x: float32[10]", "y = Slice(x, a, b)", "TYPE|a: float32[1] = constant {2} b: int64[1] = constant {6}"},
    {"x: float32[10,4], a: int64[1], b: int64[1]", "y = Slice(x, a, b)", "float32[?,4]"},
    {"x: float32[2,3]", "y = Pad(x, p)", "float32[4,1]|p: int64[4] = constant {1, -1, 1, -1}"},
    {"x: float32[2,N]", "y = Pad(x, p)", "float32[4,N]|p: int64[4] = constant {1, 0, 1, 0}"},
    {"x: float32[2,3]", "y = Pad(x, p)", "SHAPE|p: int64[4] = constant {-2, 0, -1, 0}"},
    {"x: float32[2,3]", "y = Pad(x, p)", "SHAPE|p: int64[2] = constant {1, 1}"},
    {"x: float32[2,3]", "y = Pad(x, p)", "LIMIT|p: int64[4] = constant {4294967297, 4294967297, 0, 0}"},
    {"x: float32[2,3]", "y = Pad(x, p)", "LIMIT|p: int64[4] = constant {9223372036854775807, 1, 1, 0}"},
    {"x: float32[2,0]", "y = Pad(x, p) {mode = \"edge\"}", "SHAPE|p: int64[4] = constant {0, 1, 0, 0}"},
    {"x: float32[2,3]", "y = Pad(x, p) {mode = \"mirror\"}", "MODEL|p: int64[4] = constant {0, 1, 0, 0}"},
    {"x: float32[2,3], i: int64[4,N]", "y = Gather(x, i) {axis = 1}", "float32[2,4,N]"},
    {"x: float32[2,3]", "y = Gather(x, i)", "INDEX|i: int64[2] = constant {0, 7}"},
    {"x: float32[2,3]", "y = Gather(x, i)", "INDEX|i: int64[2] = constant {0, -9223372036854775808}"},
    {"x: float32[2,3]", "y = Gather(x, i)", "float32[3]|i: int64[] = constant {-2}"},
    {"x: float32[2,3], i: float32[4]", "y = Gather(x, i)", "TYPE"},
    {"x: float32[2,3], i: int64[4]", "y = Gather(x, i) {axis = 2}", "MODEL"},
    {"x: float32[2,3], i: int64[2,1]", "y = GatherElements(x, i) {axis = 1}", "float32[2,1]"},
    {"x: float32[2,3], i: int64[3,1]", "y = GatherElements(x, i) {axis = 1}", "SHAPE"},
    {"x: float32[2,3,4], i: int64[5,2]", "y = GatherND(x, i)", "float32[5,4]"},
    {"x: float32[2,3,4], i: int64[2,2]", "y = GatherND(x, i) {batch_dims = 1}", "float32[2]"},
    {"x: float32[2,3,4], i: int64[2,4]", "y = GatherND(x, i)", "SHAPE"},
    {"x: float32[2,3,4], i: int64[2,2]", "y = GatherND(x, i) {batch_dims = 2}", "MODEL"},
    {"x: float32[4,4,4], i: int64[2,1], u: float32[2,4,4]", "y = ScatterND(x, i, u)", "float32[4,4,4]"},
    {"x: float32[4,4,4], i: int64[2,1], u: float32[2,4]", "y = ScatterND(x, i, u)", "SHAPE"},
    {"x: float32[4,4,4], i: int64[2,1], u: float32[2,4,4]", "y = ScatterND(x, i, u) {reduction = \"avg\"}", "MODEL"},
    {"x: string[4], i: int64[2,1], u: string[2]", "y = ScatterND(x, i, u) {reduction = \"add\"}", "TYPE"},
    {"x: float32[4,4], i: int64[2,1], u: float32[2,1]", "y = ScatterElements(x, i, u) {axis = 1}", "float32[4,4]"},
    {"x: float32[4,4], i: int64[2,1], u: float32[2,2]", "y = ScatterElements(x, i, u) {axis = 1}", "SHAPE"},
    {"x: float32[2,3,8,4], u: float32[2,3,2,4], i: int64[2]", "y = TensorScatter(x, u, i)", "float32[2,3,8,4]"},
    {"x: float32[2,3,8,4], u: float32[2,3,9,4], i: int64[2]", "y = TensorScatter(x, u, i)", "SHAPE"},
    {"x: float32[2,8], u: float32[2,8], i: int64[2]", "y = TensorScatter(x, u, i)", "MODEL"},
    /* chains of followed values */
    {"x: float32[B,S,12]",
     "h = Shape(x)\n n = Gather(h, zero)\n m = Unsqueeze(n, zero1)\n t = Concat(m, r) {axis = 0}\n y = Reshape(x, t)",
     "float32[B,S,3,4]|zero: int64[] = constant {0} zero1: int64[1] = constant {0} r: int64[3] = constant {-1, 3, 4}"},
    {"x: float32[B,S,12]", "h = Shape(x)\n t, u = Split(h, n)\n v = Concat(u, t) {axis = 0}\n y = Expand(one, v)",
     "float32[S,12,B]|n: int64[2] = constant {1, 2} one: float32[] = constant {1}"},
    {"x: float32[B,S,12]", "h = Shape(x)\n t = Slice(h, a, b, c, d)\n y = Expand(one, t)",
     "float32[12,S]|a: int64[1] = constant {-1} b: int64[1] = constant {0} c: int64[1] = constant {0} d: int64[1] = "
     "constant {-1} one: float32[] = constant {1}"},
};

static void type_text(const graph *g, const tensor_type *t, char *out, size_t size) {
    int n = snprintf(out, size, "%s[", braid_type_name(t->type));
    for (int d = 0; d < t->rank; d++) {
        const char *symbol = dim_is_symbol(t->dims[d]) ? g->symbols[dim_symbol(t->dims[d])] : NULL;
        if (dim_known(t->dims[d]))
            n += snprintf(out + n, size - (size_t)n, "%s%lld", d ? "," : "", (long long)t->dims[d]);
        else n += snprintf(out + n, size - (size_t)n, "%s%s", d ? "," : "", symbol ? symbol : "?");
    }
    snprintf(out + n, size - (size_t)n, t->rank < 0 ? "*]" : "]");
}

static bool check_infer(const infer_case *c) {
    char source[2048], found[256], wanted[256];
    const char *constants = strchr(c->type, '|');
    snprintf(wanted, sizeof wanted, "%.*s", constants ? (int)(constants - c->type) : 200, c->type);
    snprintf(source, sizeof source, "graph t(%s) {\n%s\n%s\n} -> y", c->header, constants ? constants + 1 : "",
             c->node);
    arena *memory = arena_new();
    graph *g = NULL;
    braid_error err = {0};
    braid_status status = graph_parse(memory, source, &g, &err);
    if (status != BRAID_OK) fail_msg("%s\n%s", err.message, source);
    graph_find_ops(g);
    status = graph_infer(g, &err);
    if (status == BRAID_OK) type_text(g, &g->values[g->outputs[0]]->type, found, sizeof found);
    else snprintf(found, sizeof found, "%s", braid_status_name(status));
    bool same = strcmp(found, wanted) == 0;
    if (!same) print_error("%s %s: expected %s, found %s (%s)\n", c->header, c->node, c->type, found, err.message);
    arena_free(memory);
    return same;
}

static void test_infer(void **state) {
    (void)state;
    bool passed = true;
    for (size_t i = 0; i < COUNT_OF(infer_cases); i++) passed = check_infer(&infer_cases[i]) && passed;
    assert_true(passed);
}

/* The sizes of more parts than elements of a constant are followed otherwise. */
static void test_many_parts(void **state) {
    (void)state;
    enum { PARTS = 5000 };
    char *source = malloc(64 + PARTS * 16), *at = source;
    braid_error err = {0};
    graph *g = NULL;
    arena *memory = arena_new();
    at += sprintf(at, "graph t(x: int8[%d,3]) { s: int64[%d] = constant {", PARTS + 1, PARTS);
    for (int i = 0; i < PARTS; i++) at += sprintf(at, i ? ", %d" : "%d", i == 7 ? 2 : 1);
    at += sprintf(at, "} y0");
    for (int i = 1; i < PARTS; i++) at += sprintf(at, ", y%d", i);
    sprintf(at, " = Split(x, s) } -> y7, y%d", PARTS - 1);
    if (graph_parse(memory, source, &g, &err) != BRAID_OK) fail_msg("%s", err.message);
    graph_find_ops(g);
    if (graph_infer(g, &err) != BRAID_OK) fail_msg("%s", err.message);
    for (int i = 0; i < 2; i++) {
        const tensor_type *t = &g->values[g->outputs[i]]->type;
        assert_int_equal(t->rank, 2);
        assert_int_equal(t->dims[0], 2 - i);
    }
    arena_free(memory);
    free(source);
}

/* -------------------------------------------------------------------------------------------------- eval */

static uint64_t seed = 7;
static int64_t pick(int64_t low, int64_t high) { /* both included */
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1));
}

static const braid_type types[] = {BRAID_FLOAT32, BRAID_INT8, BRAID_FLOAT16, BRAID_INT64, BRAID_BOOL, BRAID_UINT16};

static tensor *random_tensor(arena *memory, braid_type type, int rank, const int64_t *dims) {
    tensor *t;
    int64_t n;
    assert_int_equal(tensor_new(memory, type, rank, dims, &t, NULL), BRAID_OK);
    assert_true(tensor_type_count(&t->type, &n));
    for (int64_t i = 0; i < n; i++) element_set_i64(type, t->data, i, type == BRAID_BOOL ? pick(0, 1) : pick(0, 120));
    return t;
}

static tensor *ints(arena *memory, int n, const int64_t *v) {
    tensor *t;
    assert_int_equal(tensor_new(memory, BRAID_INT64, 1, (int64_t[]){n}, &t, NULL), BRAID_OK);
    if (n) memcpy(t->data, v, (size_t)n * sizeof *v);
    return t;
}

static int64_t random_shape(int rank, int64_t *dims, int64_t least) {
    int64_t n = 1;
    for (int d = 0; d < rank; d++) n *= dims[d] = pick(0, 9) ? pick(1, 4) : least;
    return n;
}

/* Evaluates the one node of a text whose inputs are x0, x1, ...; outputs in out. */
static braid_status eval_text(arena *memory, const char *node_text, int n_in, tensor *const *in, tensor **out) {
    char source[512], header[256] = "";
    for (int i = 0; i < n_in; i++)
        snprintf(header + strlen(header), sizeof header - strlen(header), "%sx%d: %s[]", i ? ", " : "", i,
                 in[i] ? braid_type_name(in[i]->type.type) : "int64");
    snprintf(source, sizeof source, "graph t(%s) { %s } -> y", header, node_text);
    graph *g = NULL;
    braid_error err = {0};
    if (graph_parse(memory, source, &g, &err) != BRAID_OK) fail_msg("%s\n%s", err.message, source);
    graph_find_ops(g);
    return op_eval(g, g->nodes[0], memory, (const tensor *const *)in, out, &err);
}

/* Index of element i of a tensor with these dims. */
static void unflatten(int64_t i, int rank, const int64_t *dims, int64_t *at) {
    for (int d = rank - 1; d >= 0; d--) {
        at[d] = i % dims[d];
        i /= dims[d];
    }
}
static int64_t flatten(int rank, const int64_t *dims, const int64_t *at) {
    int64_t i = 0;
    for (int d = 0; d < rank; d++) i = i * dims[d] + at[d];
    return i;
}

static void assert_element(const tensor *out, int64_t i, const tensor *in, int64_t from) {
    assert_true(element_f64(out->type.type, out->data, i) == element_f64(in->type.type, in->data, from));
}

static int64_t count_of(const tensor *t) {
    int64_t n;
    assert_true(tensor_type_count(&t->type, &n));
    return n;
}

static void test_transpose(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        arena *memory = arena_new();
        int rank = (int)pick(0, 6), order[8];
        int64_t dims[8], at[8], from[8];
        random_shape(rank, dims, 0);
        tensor *x = random_tensor(memory, types[round % 6], rank, dims), *y = NULL;
        char line[256] = "y = Transpose(x0) {perm = [";
        for (int d = 0; d < rank; d++) order[d] = d;
        for (int d = rank - 1; d > 0; d--) {
            int k = (int)pick(0, d), t = order[d];
            order[d] = order[k];
            order[k] = t;
        }
        for (int d = 0; d < rank; d++) sprintf(line + strlen(line), "%s%d", d ? ", " : "", order[d]);
        strcat(line, "]}");
        assert_int_equal(eval_text(memory, rank ? line : "y = Transpose(x0)", 1, &x, &y), BRAID_OK);
        for (int64_t i = 0; i < count_of(y); i++) {
            unflatten(i, rank, y->type.dims, at);
            for (int d = 0; d < rank; d++) from[order[d]] = at[d];
            assert_element(y, i, x, flatten(rank, dims, from));
        }
        arena_free(memory);
    }
}

/* Elements that Python's x[start:end:by] picks, one after another. */
static int64_t slice_list(int64_t dim, int64_t start, int64_t end, int64_t by, int64_t *list) {
    int64_t n = 0;
    if (start < 0) start += dim;
    if (end < 0) end += dim;
    if (by > 0) {
        if (start < 0) start = 0;
        for (int64_t i = start; i < end && i < dim; i += by) list[n++] = i;
    } else {
        if (start >= dim) start = dim - 1;
        for (int64_t i = start; i > end && i >= 0; i += by) list[n++] = i;
    }
    return n;
}

static void test_slice(void **state) {
    (void)state;
    static const int64_t extremes[] = {INT64_MAX, INT64_MIN, INT32_MAX, -100};
    for (int round = 0; round < 400; round++) {
        arena *memory = arena_new();
        int rank = (int)pick(1, 4);
        int64_t dims[8], start[8], end[8], axes[8], by[8], list[8][8], count[8], at[8];
        random_shape(rank, dims, 0);
        for (int d = 0; d < rank; d++) {
            start[d] = pick(0, 5) ? pick(-6, 6) : extremes[pick(0, 3)];
            end[d] = pick(0, 5) ? pick(-6, 6) : extremes[pick(0, 3)];
            axes[d] = pick(0, 1) ? d : d - rank;
            by[d] = pick(0, 1) ? pick(1, 3) : -pick(1, 3);
            count[d] = slice_list(dims[d], start[d], end[d], by[d], list[d]);
        }
        tensor *y = NULL, *x = random_tensor(memory, types[round % 6], rank, dims);
        tensor *in[5] = {x, ints(memory, rank, start), ints(memory, rank, end), ints(memory, rank, axes),
                         ints(memory, rank, by)};
        assert_int_equal(eval_text(memory, "y = Slice(x0, x1, x2, x3, x4)", 5, in, &y), BRAID_OK);
        for (int d = 0; d < rank; d++) assert_int_equal(y->type.dims[d], count[d]);
        for (int64_t i = 0; i < count_of(y); i++) {
            unflatten(i, rank, count, at);
            for (int d = 0; d < rank; d++) at[d] = list[d][at[d]];
            assert_element(y, i, x, flatten(rank, dims, at));
        }
        arena_free(memory);
    }
}

static void test_concat_split(void **state) {
    (void)state;
    for (int round = 0; round < 100; round++) {
        arena *memory = arena_new();
        int rank = (int)pick(1, 4), axis = (int)pick(0, rank - 1);
        int64_t dims[8], sizes[3], at[8];
        random_shape(rank, dims, 0);
        tensor *in[3], *y = NULL, *parts[3] = {0};
        char line[128];
        for (int k = 0; k < 3; k++) {
            sizes[k] = dims[axis] = pick(0, 3);
            in[k] = random_tensor(memory, types[round % 6], rank, dims);
        }
        sprintf(line, "y = Concat(x0, x1, x2) {axis = %d}", axis);
        assert_int_equal(eval_text(memory, line, 3, in, &y), BRAID_OK);
        for (int64_t i = 0; i < count_of(y); i++) {
            unflatten(i, rank, y->type.dims, at);
            int k = 0;
            while (at[axis] >= sizes[k]) at[axis] -= sizes[k++];
            assert_element(y, i, in[k], flatten(rank, in[k]->type.dims, at));
        }
        sprintf(line, "y, z, w = Split(x0, x1) {axis = %d}", axis);
        assert_int_equal(eval_text(memory, line, 2, (tensor *[]){y, ints(memory, 3, sizes)}, parts), BRAID_OK);
        for (int k = 0; k < 3; k++)
            for (int64_t i = 0; i < count_of(parts[k]); i++) assert_element(parts[k], i, in[k], i);
        arena_free(memory);
    }
}

static int64_t padded(const char *mode, int64_t i, int64_t n) { /* one step at a time */
    if (mode[0] == 'c') return i < 0 || i >= n ? -1 : i;
    while (i < 0 || i >= n) {
        if (mode[0] == 'e') i = i < 0 ? 0 : n - 1;
        else if (mode[0] == 'w') i += i < 0 ? n : -n;
        else if (n == 1) i = 0;
        else i = i < 0 ? -i : 2 * (n - 1) - i;
    }
    return i;
}

static void test_pad(void **state) {
    (void)state;
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    for (int round = 0; round < 400; round++) {
        arena *memory = arena_new();
        const char *mode = modes[round % 4];
        int rank = (int)pick(0, 4);
        int64_t dims[8], pads[16], at[8];
        random_shape(rank, dims, 1);
        for (int d = 0; d < rank; d++) { /* something of every axis is left */
            pads[d] = pick(0, 1) ? pick(0, 5) : -pick(0, dims[d] - 1);
            pads[rank + d] = pick(0, 1) ? pick(0, 5) : -pick(0, dims[d] - 1 + (pads[d] < 0 ? pads[d] : 0));
        }
        tensor *y = NULL, *x = random_tensor(memory, types[round % 6], rank, dims);
        tensor *fill = random_tensor(memory, types[round % 6], 0, NULL);
        char line[128];
        sprintf(line, "y = Pad(x0, x1, x2) {mode = \"%s\"}", mode);
        assert_int_equal(eval_text(memory, line, 3, (tensor *[]){x, ints(memory, 2 * rank, pads), fill}, &y), BRAID_OK);
        for (int64_t i = 0; i < count_of(y); i++) {
            bool outside = false;
            unflatten(i, rank, y->type.dims, at);
            for (int d = 0; d < rank; d++) {
                int64_t low = pads[d] < 0 ? -pads[d] : 0, high = dims[d] + (pads[rank + d] < 0 ? pads[rank + d] : 0);
                at[d] = low + padded(mode, at[d] - (pads[d] > 0 ? pads[d] : 0), high - low);
                outside = outside || at[d] < low;
            }
            if (outside) assert_element(y, i, fill, 0);
            else assert_element(y, i, x, flatten(rank, dims, at));
        }
        arena_free(memory);
    }
}

static tensor *random_indices(arena *memory, int rank, const int64_t *dims, int depth, const int64_t *limits) {
    tensor *t;
    assert_int_equal(tensor_new(memory, BRAID_INT64, rank, dims, &t, NULL), BRAID_OK);
    for (int64_t i = 0; i < count_of(t); i++) ((int64_t *)t->data)[i] = pick(-limits[i % depth], limits[i % depth] - 1);
    return t;
}

static int64_t wrap(int64_t i, int64_t n) { return i < 0 ? i + n : i; }

static void test_gather(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        arena *memory = arena_new();
        int rank = (int)pick(1, 4), axis = (int)pick(0, rank - 1), ri = (int)pick(0, 3);
        int64_t dims[8], idims[8], at[8], from[8];
        random_shape(rank, dims, 1);
        random_shape(ri, idims, 0);
        tensor *y = NULL, *x = random_tensor(memory, types[round % 6], rank, dims);
        tensor *index = random_indices(memory, ri, idims, 1, &dims[axis]);
        char line[128];
        sprintf(line, "y = Gather(x0, x1) {axis = %d}", axis);
        assert_int_equal(eval_text(memory, line, 2, (tensor *[]){x, index}, &y), BRAID_OK);
        for (int64_t i = 0; i < count_of(y); i++) {
            unflatten(i, rank - 1 + ri, y->type.dims, at);
            for (int d = 0; d < axis; d++) from[d] = at[d];
            from[axis] = wrap(((int64_t *)index->data)[flatten(ri, idims, at + axis)], dims[axis]);
            for (int d = axis + 1; d < rank; d++) from[d] = at[d - 1 + ri];
            assert_element(y, i, x, flatten(rank, dims, from));
        }
        arena_free(memory);
    }
}

static void test_gather_elements(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        arena *memory = arena_new();
        int rank = (int)pick(1, 4), axis = (int)pick(0, rank - 1);
        int64_t dims[8], idims[8], at[8];
        random_shape(rank, dims, 1);
        for (int d = 0; d < rank; d++) idims[d] = d == axis ? pick(0, 6) : pick(1, dims[d]);
        tensor *y = NULL, *x = random_tensor(memory, types[round % 6], rank, dims);
        tensor *index = random_indices(memory, rank, idims, 1, &dims[axis]);
        char line[128];
        sprintf(line, "y = GatherElements(x0, x1) {axis = %d}", axis);
        assert_int_equal(eval_text(memory, line, 2, (tensor *[]){x, index}, &y), BRAID_OK);
        for (int64_t i = 0; i < count_of(y); i++) {
            unflatten(i, rank, idims, at);
            at[axis] = wrap(((int64_t *)index->data)[i], dims[axis]);
            assert_element(y, i, x, flatten(rank, dims, at));
        }
        arena_free(memory);
    }
}

static void test_gather_nd(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        arena *memory = arena_new();
        int rank = (int)pick(1, 4), batch = (int)pick(0, rank - 1), depth = (int)pick(1, rank - batch);
        int ri = batch + (int)pick(0, 2) + 1;
        int64_t dims[8], idims[8], at[8], from[8];
        random_shape(rank, dims, 1);
        for (int d = 0; d < ri; d++) idims[d] = d < batch ? dims[d] : pick(1, 3);
        idims[ri - 1] = depth;
        tensor *y = NULL, *x = random_tensor(memory, types[round % 6], rank, dims);
        tensor *index = random_indices(memory, ri, idims, depth, dims + batch);
        char line[128];
        sprintf(line, "y = GatherND(x0, x1) {batch_dims = %d}", batch);
        assert_int_equal(eval_text(memory, line, 2, (tensor *[]){x, index}, &y), BRAID_OK);
        for (int64_t i = 0; i < count_of(y); i++) {
            unflatten(i, y->type.rank, y->type.dims, at);
            int64_t tuple = flatten(ri - 1, idims, at) * depth;
            for (int d = 0; d < batch; d++) from[d] = at[d];
            for (int k = 0; k < depth; k++)
                from[batch + k] = wrap(((int64_t *)index->data)[tuple + k], dims[batch + k]);
            for (int d = batch + depth; d < rank; d++) from[d] = at[ri - 1 + d - batch - depth];
            assert_element(y, i, x, flatten(rank, dims, from));
        }
        arena_free(memory);
    }
}

static double reduced(const char *how, double a, double b) {
    if (how[0] == 'a') return a + b;
    if (how[1] == 'u') return a * b;
    if (how[1] == 'a') return a > b ? a : b;
    return how[1] == 'i' ? (a < b ? a : b) : b;
}

/* Values stay small enough for products to be exact. */
static void test_scatter(void **state) {
    (void)state;
    static const char *const hows[] = {"none", "add", "mul", "max", "min"};
    for (int round = 0; round < 300; round++) {
        arena *memory = arena_new();
        const char *how = hows[round % 5];
        bool nd = pick(0, 1);
        int rank = (int)pick(1, 3), axis = (int)pick(0, rank - 1), depth = (int)pick(1, rank), ri = (int)pick(1, 3);
        int64_t dims[8], idims[8], udims[8], at[8];
        random_shape(rank, dims, 1);
        for (int d = 0; d < 8; d++) idims[d] = nd ? pick(1, 3) : pick(1, d < rank && d != axis ? dims[d] : 2);
        if (nd) idims[ri - 1] = depth;
        else ri = rank;
        int ru = nd ? ri - 1 + rank - depth : rank;
        for (int d = 0; d < ru; d++) udims[d] = !nd || d < ri - 1 ? idims[d] : dims[depth + d - ri + 1];
        tensor *y = NULL, *x = random_tensor(memory, BRAID_FLOAT64, rank, dims);
        tensor *updates = random_tensor(memory, BRAID_FLOAT64, ru, udims);
        tensor *index = random_indices(memory, ri, idims, nd ? depth : 1, nd ? dims : dims + axis);
        char line[128];
        if (nd) sprintf(line, "y = ScatterND(x0, x1, x2) {reduction = \"%s\"}", how);
        else sprintf(line, "y = ScatterElements(x0, x1, x2) {axis = %d, reduction = \"%s\"}", axis, how);
        assert_int_equal(eval_text(memory, line, 3, (tensor *[]){x, index, updates}, &y), BRAID_OK);
        double *want = x->data;
        for (int64_t i = 0; i < count_of(updates); i++) {
            int64_t to[8], *list = index->data;
            unflatten(i, ru, udims, at);
            for (int d = 0; d < rank; d++) to[d] = at[nd ? d - depth + ri - 1 < 0 ? 0 : d - depth + ri - 1 : d];
            if (nd)
                for (int k = 0; k < depth; k++) to[k] = wrap(list[flatten(ri - 1, idims, at) * depth + k], dims[k]);
            else to[axis] = wrap(list[i], dims[axis]);
            double *v = &want[flatten(rank, dims, to)];
            *v = reduced(how, *v, ((double *)updates->data)[i]);
        }
        for (int64_t i = 0; i < count_of(y); i++) assert_element(y, i, x, i);
        arena_free(memory);
    }
}

/* DepthToSpace undoes SpaceToDepth, in both modes; Tile and Expand by index. */
static void test_blocks_and_repeats(void **state) {
    (void)state;
    for (int round = 0; round < 60; round++) {
        arena *memory = arena_new();
        int64_t b = pick(1, 3), dims[4] = {pick(1, 2), pick(1, 3), b * pick(1, 3), b * pick(1, 3)}, at[8];
        const char *mode = pick(0, 1) ? "CRD" : "DCR";
        char line[128];
        tensor *deep = NULL, *wide = NULL, *tiled = NULL, *spread = NULL;
        tensor *x = random_tensor(memory, types[round % 6], 4, dims);
        sprintf(line, "y = SpaceToDepth(x0) {blocksize = %d, mode = \"%s\"}", (int)b, mode);
        assert_int_equal(eval_text(memory, line, 1, &x, &deep), BRAID_OK);
        sprintf(line, "y = DepthToSpace(x0) {blocksize = %d, mode = \"%s\"}", (int)b, mode);
        assert_int_equal(eval_text(memory, line, 1, &deep, &wide), BRAID_OK);
        assert_memory_equal(wide->data, x->data, x->bytes);
        for (int64_t i = 0; i < count_of(deep); i++) { /* by the standard's text: reshape, transpose, reshape */
            unflatten(i, 4, deep->type.dims, at);
            int64_t c = at[1], row = mode[0] == 'C' ? c / b % b : c / dims[1] / b,
                    column = mode[0] == 'C' ? c % b : c / dims[1] % b;
            at[1] = mode[0] == 'C' ? c / (b * b) : c % dims[1];
            at[2] = at[2] * b + row;
            at[3] = at[3] * b + column;
            assert_element(deep, i, x, flatten(4, dims, at));
        }
        int64_t repeats[4] = {pick(0, 2), pick(1, 2), pick(1, 3), 1};
        assert_int_equal(eval_text(memory, "y = Tile(x0, x1)", 2, (tensor *[]){x, ints(memory, 4, repeats)}, &tiled),
                         BRAID_OK);
        for (int64_t i = 0; i < count_of(tiled); i++) {
            unflatten(i, 4, tiled->type.dims, at);
            for (int d = 0; d < 4; d++) at[d] %= dims[d];
            assert_element(tiled, i, x, flatten(4, dims, at));
        }
        int64_t wanted[5] = {pick(0, 2), 1, pick(1, 2) == 1 ? 1 : dims[1], 1, dims[3]};
        assert_int_equal(eval_text(memory, "y = Expand(x0, x1)", 2, (tensor *[]){x, ints(memory, 5, wanted)}, &spread),
                         BRAID_OK);
        assert_int_equal(count_of(spread), wanted[0] * count_of(x));
        for (int64_t i = 0; i < count_of(spread); i++) assert_element(spread, i, x, i % count_of(x));
        arena_free(memory);
    }
}

static void test_run_time_index(void **state) {
    (void)state;
    arena *memory = arena_new();
    tensor *x = random_tensor(memory, BRAID_FLOAT32, 1, (int64_t[]){3}), *y = NULL;
    static const int64_t bad[] = {3, -4, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        tensor *index = ints(memory, 1, &bad[i]), *u = random_tensor(memory, BRAID_FLOAT32, 1, (int64_t[]){1});
        assert_int_equal(eval_text(memory, "y = Gather(x0, x1)", 2, (tensor *[]){x, index}, &y), BRAID_INDEX);
        assert_int_equal(eval_text(memory, "y = GatherElements(x0, x1)", 2, (tensor *[]){x, index}, &y), BRAID_INDEX);
        assert_int_equal(eval_text(memory, "y = ScatterElements(x0, x1, x2)", 3, (tensor *[]){x, index, u}, &y),
                         BRAID_INDEX);
    }
    arena_free(memory);
}

static void test_strings(void **state) {
    (void)state;
    arena *memory = arena_new();
    tensor *x, *y = NULL;
    const char *words[] = {"a", "bb", "ccc", "dddd"};
    assert_int_equal(tensor_new(memory, BRAID_STRING, 2, (int64_t[]){2, 2}, &x, NULL), BRAID_OK);
    memcpy(x->data, words, sizeof words);
    assert_int_equal(eval_text(memory, "y = Transpose(x0)", 1, &x, &y), BRAID_OK);
    assert_string_equal(((const char **)y->data)[1], "ccc");
    assert_int_equal(eval_text(memory, "y = Gather(x0, x1)", 2, (tensor *[]){x, ints(memory, 1, (int64_t[]){-1})}, &y),
                     BRAID_OK);
    assert_string_equal(((const char **)y->data)[0], "ccc");
    assert_int_equal(
        eval_text(memory, "y = Pad(x0, x1)", 2, (tensor *[]){x, ints(memory, 4, (int64_t[]){1, 0, 0, 0})}, &y),
        BRAID_OK);
    assert_string_equal(((const char **)y->data)[0], "");
    assert_string_equal(((const char **)y->data)[2], "a");
    arena_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_infer),          cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_slice),          cmocka_unit_test(test_concat_split),
        cmocka_unit_test(test_pad),            cmocka_unit_test(test_gather),
        cmocka_unit_test(test_gather_elements), cmocka_unit_test(test_gather_nd),
        cmocka_unit_test(test_scatter),        cmocka_unit_test(test_blocks_and_repeats),
        cmocka_unit_test(test_run_time_index), cmocka_unit_test(test_strings),
        cmocka_unit_test(test_many_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
