/*
 * ops: the operator table. One row per operator in its current (canonical) form; the only place that knows operators.
 *
 *   upgrade   at import: rewrites a node of an older opset into the canonical form, or a composite operator into
 *             simpler ones. Everything after import sees canonical nodes only.
 *   infer     output types, shapes and followed values. Symbols survive.
 *   eval      the meaning on the CPU, every type the standard allows; accumulates in double. Folder, oracle, host step.
 *   emit      elementwise operators only: appends the meaning to a fusion program.
 *   lower     steps for the GPU. Returns UNSUPPORTED (without touching err) where no kernel exists for this type or
 *             device: the node then becomes a host step.
 *
 * Each file of this folder defines `const op NAME_ops[]` ending in a zero row, listed once in table.c.
 */
#ifndef BRAID_OP_H
#define BRAID_OP_H

#include "base/traits.h"
#include "ir/graph.h"

typedef struct followed {
    int n; /* elements, -1: not followed */
    const int64_t *v; /* numbers or symbols */
} followed;

/* ------------------------------------------------------------------------------------------------- infer */
typedef struct infer {
    const node *node;
    graph *g;        /* for fresh symbols; its arena is the memory to use */
    int n_in, n_out;
    const tensor_type *const *in;  /* NULL: absent. type NONE / rank -1: unknown */
    tensor *const *constant;       /* content, NULL: not constant; use infer_constant */
    const followed *known;         /* per input */
    tensor_type *out;              /* preset to unknown */
    followed *out_known;           /* preset to -1 */
    braid_error *err;
} infer;

/* Loads constant input i; *out NULL when it is absent or not constant. */
braid_status infer_constant(infer *, int i, const tensor **out);
/* Elements of integer input i as numbers or symbols, from its constant or followed content; false when unknown. */
bool infer_ints(infer *, int i, int *count, const int64_t **out);
/* Does input i exist (present in the node). */
static inline bool infer_has(const infer *c, int i) { return i < c->n_in && c->in[i] != NULL; }
/* A fresh symbol. */
int64_t infer_fresh(infer *);
/* Broadcasts two dims; false when both are known and do not fit. */
bool infer_broadcast_dim(infer *, int64_t a, int64_t b, int64_t *out);
/* Numpy broadcast of all present inputs in [first, last) into *out's rank and dims; error names the inputs. */
braid_status infer_broadcast(infer *, int first, int last, tensor_type *out);
/* out[0] = in[0]'s type and shape. */
braid_status infer_same(infer *);
/* Sum, difference, product of dims; a fresh symbol when one is symbolic (x+0, x*1, x*0 stay exact). SHAPE on overflow. */
braid_status infer_add(infer *, int64_t a, int64_t b, int64_t *out);
braid_status infer_mul(infer *, int64_t a, int64_t b, int64_t *out);
/* Normalises axis into [0, rank); error otherwise. */
braid_status axis_normalise(int64_t axis, int rank, int *out, braid_error *err);
/* Input i must have rank in [lo, hi]; unknown rank passes. */
braid_status infer_rank(infer *, int i, int lo, int hi);

/* -------------------------------------------------------------------------------------------------- eval */
typedef struct eval {
    const node *node;
    arena *memory;   /* outputs and scratch */
    int n_in, n_out;
    const tensor *const *in; /* loaded; NULL: absent */
    tensor **out;            /* to be set with eval_output; an output the node does not name may be skipped */
    const tensor_type *types; /* what infer says of the outputs with all inputs known; dims may be symbols where the
                                 shape depends on data */
    braid_error *err;
} eval;

static inline const tensor *eval_in(const eval *e, int i) { return i < e->n_in ? e->in[i] : NULL; }
static inline bool eval_wants(const eval *e, int i) { return i < e->n_out && e->node->out[i] >= 0; }
/* Allocates output i with the inferred type, or a given one. Cleared. */
braid_status eval_output(eval *, int i, tensor **out);
braid_status eval_output_shaped(eval *, int i, braid_type, int rank, const int64_t *dims, tensor **out);
/* Infers and evaluates one node: the entry for folder, oracle and host steps. out[] has node->n_out entries. */
braid_status op_eval(const graph *, const node *, arena *, const tensor *const *in, tensor **out, braid_error *err);

/* --------------------------------------------------------------------------------------------------- emit */
/* Appends instructions for `node` to `p`. reg_in[i]: register of input i (-1 absent). *reg_out: the result's register.
   types: element types of the inputs, then of output 0. False: does not fit or not for these types; p is unchanged. */
typedef bool emit_fn(const node *, const braid_type *in, braid_type out, program *p, const int *reg_in, int *reg_out);
/* The register of reg's value as a number of the type, which is float16 or bfloat16: reg, where it holds nothing else,
   or that of an instruction that rounds, which is appended; -1: no room. held: bit i: input i is of that type. */
int program_rounded(program *, braid_type, int reg, uint32_t held);

/* -------------------------------------------------------------------------------------------------- lower */
/*
 * A step is one problem set for one kernel: a row of bytes (the kernel's row struct from kernels/rows/<kernel>.h, which
 * C and GLSL share) with places for operands that the planner fills, a number of tiles (workgroups) per lane, and
 * specialization constants. Storage is numbered: values of the graph first, then what lower_scratch and
 * lower_constant add.
 *
 * Order: a step that reads what an earlier one wrote waits for it, and so does one that overwrites what was read.
 * Write-only steps of one node into one storage are taken to touch disjoint bytes (Concat's parts) and may run at the
 * same time; where they overlap, the later one says ACCESS_READ_WRITE (fill, then scatter).
 */
enum { SPEC_MAX = 64 };
enum { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_READ_WRITE = 3 };
typedef struct step_operand {
    uint32_t at;      /* byte offset of the operand struct in the row */
    int32_t storage;  /* storage number */
    uint64_t offset;  /* bytes into the storage */
    uint64_t bytes;   /* extent that the kernel may touch, from offset */
    uint8_t access;
    bool dense; /* element i is read by the invocation that writes element i of the result, before that, and nowhere else */
} step_operand;
typedef struct step {
    const char *kernel; /* SPIR-V module name */
    int32_t node;       /* node number, for names and errors */
    int n_spec;
    uint32_t spec_ids[SPEC_MAX], spec[SPEC_MAX];
    uint32_t group;     /* invocations of a workgroup; specialization constant 0 */
    uint64_t tiles;     /* workgroups per problem (kernels/abi.h); folded: of all problems that there is room for */
    uint32_t copies;    /* the node's; problems = lanes * copies */
    bool once;          /* no lane-varying input reaches it: done for lane 0 alone, all lanes share the result */
    bool folded;        /* its tiles cover all problems */
    const char *apart;  /* why it is not, for reports; NULL: its kernel takes one problem at a time */
    uint32_t row_bytes;
    uint8_t *row;       /* begins with row_header (kernels/abi.h) */
    int n_operands, cap_operands;
    step_operand *operands;
    uint64_t flops, bytes; /* for profile and cost model, per problem */
    uint32_t latency;      /* for the cost model: what its kernel takes at the least, in what the smallest does; 0: that */
} step;

typedef struct lowering lowering; /* plan/lower.c */
struct lowering {
    const graph *g;
    const node *node;
    int32_t node_index;
    const device_traits *device;
    bool once;         /* no input differs between lanes */
    uint32_t problems; /* that the plan has room for: kernels are chosen for so many, the order of sums never is */
    bool free_order;   /* lift that: sums may be cut to suit many problems */
    arena *memory;
    braid_error *err;
    void *planner;
};

/* Types are static here. */
const tensor_type *lower_type(const lowering *, int32_t value);
static inline const tensor_type *lower_in(const lowering *l, int i) {
    return i < l->node->n_in && l->node->in[i] >= 0 ? lower_type(l, l->node->in[i]) : NULL;
}
static inline const tensor_type *lower_out(const lowering *l, int i) {
    return i < l->node->n_out && l->node->out[i] >= 0 ? lower_type(l, l->node->out[i]) : NULL;
}
/* Content of input i where it is constant and loaded or loadable; NULL otherwise. */
braid_status lower_constant_in(lowering *, int i, const tensor **out);
/* Do all problems (kernels/abi.h) of the node see the same bytes in this storage. */
bool lower_shared(const lowering *, int32_t storage);
/* New storage private to this node; NULL on failure is -1. */
int32_t lower_scratch(lowering *, uint64_t bytes);
/* Read-only storage with these bytes (copied, deduplicated). -1 on failure. */
int32_t lower_constant(lowering *, const void *bytes, size_t n);
/* Output i shares the storage of input j, byte for byte (Reshape and kin). */
braid_status lower_alias(lowering *, int out, int in);
/* Output i is a part of input j, from byte `offset` on (a multiple of 16, for the readers' vector loads). */
braid_status lower_part(lowering *, int out, int in, uint64_t offset);
/* Has input j's producer write straight into output i at byte `offset` (a multiple of 16), so that no copy is needed.
   False when that cannot be: copy it then. */
bool lower_place(lowering *, int in, int out, uint64_t offset);
/* Stack: output 0 is a view where the inputs lie side by side already, or constants that are uploaded so; *done is false
   when they have to be placed or copied one by one. */
braid_status lower_stack(lowering *, bool *done);
/* Has input i's producer write straight into copy i of output 0. False when that cannot be: copy it then. */
bool lower_stack_place(lowering *, int in);
/* Where in an output a copy begins. */
uint64_t lower_copy_at(const lowering *, int out, int copy);
/* Unstack: output i is copy i of input 0. */
braid_status lower_unstack(lowering *);
/* Do the inputs lie behind each other without a gap: then output 0 is a view of them all (Concat); true. */
bool lower_side_by_side(lowering *);
/* A new step; NULL on failure. The row is copied. tiles 0: the step is dropped (nothing to do). */
step *lower_step(lowering *, const char *kernel, const void *row, size_t row_bytes, uint64_t tiles, uint32_t group);
braid_status lower_spec(lowering *, step *, uint32_t id, uint32_t value);
braid_status lower_operand(lowering *, step *, size_t at, int32_t storage, uint64_t offset, uint64_t bytes, int access);
/* Shorthand: whole tensor of a node input or output. Absent input: the operand stays zero (base 0 means absent). */
braid_status lower_operand_in(lowering *, step *, size_t at, int in);
braid_status lower_operand_out(lowering *, step *, size_t at, int out);

/* ------------------------------------------------------------------------------------------------ upgrade */
typedef struct upgrade {
    graph *g;
    node *node;  /* appended already; may be changed, and further nodes appended (the graph is sorted afterwards) */
    int opset;   /* of the node's domain */
    braid_error *err;
} upgrade;

/* --------------------------------------------------------------------------------------------------- rows */
typedef struct attribute_spec {
    const char *name;
    attribute_kind kind;
    const char *value; /* default as text for the documentation; NULL: required or none */
} attribute_spec;

enum {
    OP_VARIADIC_IN = 1,   /* max_in does not bind */
    OP_VARIADIC_OUT = 2,
    OP_EPILOGUE = 4,      /* lower honours node->epilogue */
    OP_RANDOM = 8,        /* never folded or merged */
    OP_VIEW = 16,         /* output 0 is input 0's bytes */
    OP_READS_FLOATS = 32, /* infer needs the content of small float inputs, as everybody may that of integer ones */
};

typedef struct op {
    const char *name;
    const char *domain; /* NULL: ai.onnx */
    int since;          /* first opset */
    int until;          /* last opset that has it; 0: still there */
    int min_in, max_in, min_out, max_out;
    uint32_t flags;
    const attribute_spec *attributes; /* ends with a NULL name; NULL: none. Canonical and older ones */
    braid_status (*upgrade)(upgrade *);
    braid_status (*infer)(infer *);
    braid_status (*eval)(eval *);
    emit_fn *emit;
    braid_status (*lower)(lowering *);
} op;

/* domain "" or "ai.onnx", or another; NULL when the table has no such operator. */
const op *op_find(const char *domain, const char *name);
/* The i-th row, NULL past the end. */
const op *op_at(size_t i);
/* Checks arity and attribute kinds of a node against its row: MODEL. Inputs below min_in must be present. */
braid_status op_check(const node *, braid_error *err);
/* Attribute kinds alone: what an upgrade may rely on. */
braid_status op_check_attributes(const node *, braid_error *err);
/* "node 'name' (Conv-11)" for error_within; the buffer is the caller's. */
const char *node_title(const node *, char buffer[static 256]);

/* Looks up every node's row (of a parsed graph). */
void graph_find_ops(graph *);
/* Infers every value of the graph from its inputs, initializers and constants (infer.c). Errors name the node. */
braid_status graph_infer(graph *, braid_error *err);

#endif
