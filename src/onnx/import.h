/*
 * import.h: the parts of the importer, for each other.
 *
 *   model.c      ModelProto: versions, opsets, functions, the graph
 *   scope.c      names -> value numbers; the budget
 *   body.c       GraphProto -> graph; nodes; subgraphs; Constant nodes
 *   function.c   a call of a local function becomes the nodes of its body
 *   attribute.c  AttributeProto
 *   proto.c      TensorProto; sparse.c, external.c: its relatives
 *   type.c       ValueInfoProto
 *   finish.c     upgrades, checks, order
 *
 * A graph's message is read several times (initializers, inputs, hints, names of node outputs, nodes, outputs), so the
 * order of fields in the file does not matter; content that a pass does not need is skipped unread.
 */
#ifndef BRAID_IMPORT_H
#define BRAID_IMPORT_H

#include "onnx/onnx.h"
#include "onnx/wire.h"

enum {
    NAME_BYTES_MAX = 65536,
    PARSE_RANK_MAX = 1024,
    NODES_MAX = 1000000,
    INITIALIZERS_MAX = 1000000,
    GRAPH_DEPTH_MAX = 32,
    FUNCTIONS_MAX = 10000,
    CALL_DEPTH_MAX = 100,
    ATTRIBUTES_MAX = 1024, /* of one node */
    OPSET_MAX = 28,
    IR_MAX = 14,
    EAGER_BYTES = 1024 /* smaller constants are read at once */
};

/* ---- names: an open hash table from text to a number. Keys are borrowed. */
typedef struct names {
    arena *memory;
    const char **keys;
    int32_t *values;
    size_t count, capacity;
    uint64_t seed;
} names;
enum { NAMES_NONE = INT32_MIN };
int32_t names_get(const names *, const char *key);       /* NAMES_NONE: not there */
bool names_put(names *, const char *key, int32_t number); /* replaces; false on allocation failure */

/* ---- state of one import */
typedef struct function {
    const char *domain, *name, *overload;
    wire body;
    onnx_opset *opsets;
    size_t n_opsets;
} function;

typedef struct importer {
    arena *memory;
    braid_error *err;
    file *source;
    const onnx_options *options;
    onnx_model *model;
    uint64_t budget, arena_start; /* bytes that may be decoded; arena_bytes at the start */
    uint64_t n_nodes, n_initializers;
    function *functions;
    size_t n_functions;
    names function_index; /* "domain\x1fname\x1foverload" -> functions[] */
    names symbols;        /* dim_param -> symbol of the outermost graph */
    file **files;         /* opened for external data, found by location */
    size_t n_files, cap_files;
    names locations;
} importer;

/* A call of a function, linked to the call it is made from. */
typedef struct call {
    const struct call *outer;
    const function *callee;
    const attribute *attributes; /* what the call site gives, and the function's defaults */
    int n_attributes;
    const char *prefix; /* for the names of inner values and nodes */
    int depth;
} call;

/* Where names mean values of `g`. A function's body has a scope without parent in its caller's graph. */
typedef struct scope {
    importer *im;
    graph *g;
    struct scope *parent;
    const call *call; /* NULL outside functions */
    names names;      /* -> value of g; -1: absent */
    names pending;    /* a function's outputs -> the caller's values, until a node makes them */
    int depth;        /* of subgraphs */
} scope;

/* ---- scope.c */
/* LIMIT when decoding `more` further bytes would take more memory than such a file may. */
braid_status import_budget(importer *, uint64_t more);
/* Value of `g` that a name means, -1 for the empty name; MODEL when there is none. Makes outer values as needed. */
braid_status scope_find(scope *, const char *name, int32_t *out);
/* A new value with a name of its own in the scope; MODEL when the name is taken, here or in an outer scope. */
braid_status scope_define(scope *, const char *name, value_kind, int32_t *out);
braid_status import_name(importer *, const wire *, const wire_field *, const char **out);
/* The symbol of a dim_param; the empty name is a fresh one. */
braid_status import_symbol(importer *, graph *, const char *name, int64_t *dim);
/* Opset version of a domain: of the function being read, or of the model. 0 when it is not imported. */
int64_t import_opset(const scope *, const char *domain);
/* "" for ai.onnx, else the same. */
const char *import_domain(const char *domain);
braid_status import_opsets(importer *, const wire *message, uint32_t field, onnx_opset **out, size_t *n);

/* ---- body.c */
/* Reads the GraphProto `message` into in->g (new and empty; parent set). */
braid_status import_graph(scope *in, wire message);
/* A nested graph. */
braid_status import_subgraph(scope *outer, wire message, graph **out);
/* The NodeProtos in `field` of a message: first every output gets its value, then the nodes are read. */
braid_status import_declare(scope *, wire message, uint32_t field);
braid_status import_nodes(scope *, wire message, uint32_t field);

/* Does the error at hand name a node already. */
bool import_names_node(const importer *);

typedef struct node_proto {
    const char *name, *type, *domain, *overload;
    int n_in, n_out, n_attributes;
    int32_t *in, *out;
    attribute *attributes;
    int opset;
} node_proto;

/* ---- function.c */
braid_status import_functions(importer *, wire model);
const function *function_find(const importer *, const node_proto *);
/* Puts the body of `callee` into in->g. */
braid_status function_inline(scope *in, const function *callee, const node_proto *);

/* ---- attribute.c */
/* *present false: it refers to an attribute that the call does not give. */
braid_status import_attribute(scope *, wire message, attribute *out, bool *present);

/* ---- proto.c */
/* *name is "" when there is none. */
braid_status import_tensor(importer *, wire message, const char **name, tensor **out);
/* Decodes to memory whatever its size. */
braid_status import_tensor_loaded(importer *, wire message, const char **name, tensor **out);

/* ---- sparse.c: SparseTensorProto, made dense. */
braid_status import_sparse(importer *, wire message, const char **name, tensor **out);

/* ---- external.c */
typedef struct external {
    const char *location;
    uint64_t offset, length;
    bool has_length;
} external;
/* Reads the StringStringEntryProtos in `field` of a TensorProto. */
braid_status import_external_entries(importer *, wire message, uint32_t field, external *out);
/* Points the tensor, whose type and bytes are set, at the file. */
braid_status import_external(importer *, const external *, tensor *);

/* ---- type.c */
/* ValueInfoProto. `strict`: an impossible type is an error, otherwise the type stays unknown. */
braid_status import_value_info(scope *, wire message, bool strict, const char **name, tensor_type *out);

/* ---- finish.c */
/* Upgrades nodes, drops those without outputs, finds and checks operators, sorts. */
braid_status import_finish(importer *, graph *);

#endif
