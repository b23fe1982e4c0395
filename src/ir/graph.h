/*
 * ir: the graph. Plain data, printed and parsed as text, rebuilt (never edited in place) by passes.
 *
 *   graph ── values[]   every tensor by number: input, initializer, node output, value of an outer graph
 *         └─ nodes[]    in topological order; inputs and outputs are value numbers, -1 where absent
 *
 * A graph and everything it points to lives in one arena, except constants' file-backed bytes.
 *
 * Copies: a node with `copies` C > 1 stands for C nodes that differ in what they read. It applies its operator for every
 * c < C: an input with C copies gives its c-th tensor, an input with one is shared by all; its outputs have C copies.
 * Types are those of one copy, so that infer, eval and every rewrite of one node see no copies. braid.Stack makes C
 * copies of C single inputs, braid.Unstack gives them back; both have one copy themselves. Graph inputs and outputs,
 * constants and outer values have one copy.
 *
 * A dim is an int64: a number >= 0, or a symbol (see dim_is_symbol). The same encoding serves the followed elements of
 * small integer tensors (value.known), which may be negative numbers; hence symbols sit far below any real value.
 */
#ifndef BRAID_GRAPH_H
#define BRAID_GRAPH_H

#include "base/base.h"

#define DIM_SYMBOL_BASE (-((int64_t)1 << 62))
static inline bool dim_is_symbol(int64_t d) { return d < DIM_SYMBOL_BASE; }
static inline int64_t dim_from_symbol(uint32_t id) { return INT64_MIN + (int64_t)id; }
static inline uint32_t dim_symbol(int64_t d) { return (uint32_t)(d - INT64_MIN); }
static inline bool dim_known(int64_t d) { return !dim_is_symbol(d); }

typedef struct tensor_type {
    braid_type type; /* NONE: unknown */
    int rank;        /* -1: unknown */
    int64_t dims[BRAID_MAX_RANK];
} tensor_type;

/* Do both agree in type, rank and every dim. */
bool tensor_type_equal(const tensor_type *, const tensor_type *);
/* Rank and every dim known. */
bool tensor_type_static(const tensor_type *);
/* Elements and bytes of a static type; false on overflow, unknown dims or too large. Strings count as pointers. */
bool tensor_type_count(const tensor_type *, int64_t *out);
bool tensor_type_bytes(const tensor_type *, size_t *out);

/* A tensor on the host. Either data holds the bytes, or they lie in `source` at `offset` and data is NULL. */
typedef struct tensor {
    tensor_type type; /* static */
    void *data;       /* strings: const char *[] */
    size_t bytes;
    file *source;
    uint64_t offset;
} tensor;

/* Makes data valid: reads a file-backed tensor into the arena. */
braid_status tensor_load(tensor *, arena *, braid_error *err);
/* A new tensor with cleared data. */
braid_status tensor_new(arena *, braid_type, int rank, const int64_t *dims, tensor **out, braid_error *err);

typedef struct graph graph;

typedef enum attribute_kind {
    ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_STRING = 3, ATTRIBUTE_TENSOR = 4, ATTRIBUTE_GRAPH = 5,
    ATTRIBUTE_FLOATS = 6, ATTRIBUTE_INTS = 7, ATTRIBUTE_STRINGS = 8, ATTRIBUTE_TENSORS = 9, ATTRIBUTE_GRAPHS = 10,
    ATTRIBUTE_OTHER = 11 /* present in the file but of a kind nothing here reads (sparse tensor, type) */
} attribute_kind;

typedef struct attribute {
    const char *name;
    attribute_kind kind;
    size_t count; /* elements of the list kinds, bytes of a string, else 1 */
    union {
        float f;
        int64_t i;
        const char *s; /* NUL-terminated, count bytes */
        tensor *t;
        graph *g;
        const float *floats;
        const int64_t *ints;
        const char *const *strings;
        tensor *const *tensors;
        graph *const *graphs;
    };
} attribute;

/*
 * Elementwise program that runs on every element a node produces (an epilogue), or is the whole meaning of a
 * braid.Map node. Registers: 0..7 inputs, 8..15 immediates, 16..31 results of instructions 0..15.
 * For a Map node register i is input i. For an epilogue register 0 is the node's own result and register i > 0 is
 * node input n_root + i - 1, broadcast to the output shape.
 * The last instruction's result is stored. Opcodes are ops/map.h's.
 */
#define PROGRAM_INPUTS 8
#define PROGRAM_IMMEDIATES 8
#define PROGRAM_STEPS 16
typedef struct instruction {
    uint8_t op, a, b, c; /* b, c: 0 where the opcode takes fewer */
} instruction;
typedef struct program {
    int n_steps, n_immediates;
    instruction steps[PROGRAM_STEPS];
    double immediates_f[PROGRAM_IMMEDIATES]; /* value of the immediate as a float */
    int64_t immediates_i[PROGRAM_IMMEDIATES]; /* and as an integer */
} program;

struct op; /* ops/op.h */

typedef struct node {
    const char *name;   /* "" allowed */
    const char *type;   /* operator */
    const char *domain; /* "" is ai.onnx */
    int opset;          /* version of the domain the node was written for */
    const struct op *op; /* NULL: not in the table */
    int n_in, n_out;
    int32_t *in, *out; /* value numbers, -1 absent */
    int n_attributes;
    attribute *attributes;
    const program *epilogue; /* NULL: none */
    int n_root;              /* inputs that are the operator's own; = n_in without an epilogue */
    int32_t copies;          /* the node stands for so many; 0 is 1 */
    const char *const *names; /* of several copies: each one's; NULL: all have `name`. Not in the text form */
} node;

/* braid.Map: the node whose epilogue is its whole meaning. */
static inline bool node_is_map(const node *n) { return strcmp(n->domain, "braid") == 0 && strcmp(n->type, "Map") == 0; }

typedef enum value_kind { VALUE_NODE = 0, VALUE_INPUT, VALUE_CONSTANT, VALUE_OUTER } value_kind;

typedef struct value {
    const char *name;
    value_kind kind;
    int32_t producer; /* node number, -1 */
    int32_t outer;    /* VALUE_OUTER: number in the parent graph */
    int32_t copies;    /* so many tensors of the type; 0 is 1 */
    tensor_type type;
    tensor *constant;  /* VALUE_CONSTANT, or the folded content of a node output */
    int n_known;       /* followed elements of a small integer tensor, rank 0 or 1; -1: not followed */
    const int64_t *known; /* each a number or a symbol */
} value;

static inline int32_t node_copies(const node *n) { return n->copies > 1 ? n->copies : 1; }
static inline int32_t value_copies(const value *v) { return v->copies > 1 ? v->copies : 1; }
static inline bool node_is_stack(const node *n) {
    return strcmp(n->domain, "braid") == 0 && strcmp(n->type, "Stack") == 0;
}
static inline bool node_is_unstack(const node *n) {
    return strcmp(n->domain, "braid") == 0 && strcmp(n->type, "Unstack") == 0;
}

struct graph {
    arena *memory; /* not owned */
    const char *name;
    int32_t n_values, n_nodes, n_inputs, n_outputs, n_symbols;
    int32_t cap_values, cap_nodes, cap_symbols;
    value **values; /* pointers stay valid while the graph grows */
    node **nodes;
    int32_t *inputs, *outputs; /* value numbers; inputs exclude initializers */
    const char **output_names; /* names the outputs go by (a value may be several outputs) */
    const char **symbols;      /* names; NULL for a fresh one */
    graph *parent;             /* of a subgraph */
    int ir_version;
    int opset; /* of ai.onnx */
};

/* ---- building. All return -1 or NULL on allocation failure. Names are copied. */
graph *graph_new(arena *, const char *name);
int32_t graph_value(graph *, const char *name, value_kind);
/* A node with n_out fresh output values; in is copied. Attributes are added after. */
node *graph_node(graph *, const char *type, const char *domain, const char *name, int n_in, const int32_t *in,
                 int n_out);
/* The same with the output values given (-1 absent); used by upgrades that take over a node's outputs. */
node *graph_node_into(graph *, const char *type, const char *domain, const char *name, int n_in, const int32_t *in,
                      int n_out, const int32_t *out);
int32_t graph_constant(graph *, const char *name, tensor *);
/* 1-D int64 constant (rank 0 when count < 0: one element). */
int32_t graph_constant_ints(graph *, const char *name, int count, const int64_t *);
int32_t graph_constant_scalar(graph *, const char *name, braid_type, double);
/* Same name, same symbol; NULL: a fresh one. UINT32_MAX on failure. Symbols live in the outermost graph. */
uint32_t graph_symbol(graph *, const char *name);
/* Borrows what the attribute points to; the others copy. */
bool node_add_attribute(graph *, node *, attribute);
bool node_add_int(graph *, node *, const char *name, int64_t);
bool node_add_float(graph *, node *, const char *name, float);
bool node_add_ints(graph *, node *, const char *name, int count, const int64_t *);
bool node_add_string(graph *, node *, const char *name, const char *);

/* ---- reading attributes; defaults when absent. The kind was checked against the operator table at import. */
const attribute *node_attribute(const node *, const char *name);
int64_t node_int(const node *, const char *name, int64_t fallback);
float node_float(const node *, const char *name, float fallback);
const char *node_string(const node *, const char *name, const char *fallback);
/* Count (0 when absent) and elements. */
int node_ints(const node *, const char *name, const int64_t **out);

/* Sorts nodes topologically (stable) and sets every value's producer from the nodes' outputs. A cycle is MODEL and names
   its nodes. Does not enter subgraphs. */
braid_status graph_sort(graph *, braid_error *err);
/* Checks the invariants above; INTERNAL with the offending node when broken. */
braid_status graph_verify(const graph *, braid_error *err);

/* ---- text form (print.c, parse.c):
 *   graph name(x: float32[1,3,N], y: int64[]) opset 17 ir 8 {
 *     w: float32[2] = constant {1, 2}
 *     t: float32[1,3,N] = Relu(x) "node name"
 *     u: float32[1,3,N], v = Split(t, w) {axis = 1, list = [1, 2], mode = "linear", alpha = 0.5}
 *     z: ?[2,?0] = ai.onnx.ml:Scaler@3(u, -) {offset = floats [], k = tensor int64[2] {1, 2}} epilogue {1; 4 0 8 0} {0.5 0}
 *     s: 64 x float32[8] = Relu(r)
 *     i = If(c) {then_branch = graph (){ o: float32[2] = outer w } -> (o), else_branch = graph (...) {...} -> (...)}
 *   } -> u, v as "result"
 * `64 x`: 64 copies, of the value and of the node that makes it (braid:Stack's own copies apart). `-` is an absent input
 * or output; `?0` a fresh symbol; `@3` the node's opset where it is not the graph's (other
 * domains: where it is not 0). Names that are not plain stand in quotes; a name that is empty or not unique is followed
 * by `%number`. `epilogue {n_root; op a b c; ...} {float int; ...}`: instructions, then immediates. Types without a text form (sub-byte, float8,
 * complex) print as `hex "..."`. Large constants print as `constant <n bytes>` and do not parse. Followed elements are
 * not printed. The parser wants values defined before they are used and leaves node.op NULL; `#` starts a comment. */
void graph_print(const graph *, text *);
/* `axis = 1, mode = "linear"`; subgraphs as `graph`. */
void node_print_attributes(const node *, text *);
braid_status graph_parse(arena *, const char *source, graph **out, braid_error *err);

#endif
