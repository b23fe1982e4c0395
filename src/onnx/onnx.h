/*
 * onnx: file -> graph. An own bounded protobuf reader (wire.h), the importer, and a writer for tests and tools.
 *
 * Weights stay in the file: a tensor keeps (file, offset, length) and is read when somebody needs it.
 */
#ifndef BRAID_ONNX_H
#define BRAID_ONNX_H

#include "ops/op.h"

typedef struct onnx_opset {
    const char *domain;
    int64_t version;
} onnx_opset;

typedef struct onnx_model {
    graph *g;
    int64_t ir_version;
    const char *producer, *producer_version, *domain, *description;
    int64_t model_version;
    onnx_opset *opsets;
    size_t n_opsets;
    size_t n_functions;
    uint64_t bytes; /* of the file */
    uint64_t parameters, parameter_bytes;
} onnx_model;

typedef struct onnx_options {
    const char *root;   /* external data folder; NULL: none allowed */
    uint64_t max_bytes;
} onnx_options;

/* Reads, checks, inlines local functions, upgrades old opsets and sorts. Nodes that the operator table lacks stay with
   op NULL: the caller decides. Everything but file contents lives in `memory`; files stay open while `memory` lives,
   listed in files (to be unreferenced by the caller). */
braid_status onnx_read(file *, const onnx_options *, arena *memory, onnx_model **out, file ***files, size_t *n_files,
                       braid_error *err);

/* One TensorProto (.pb): content loaded into memory. Also used by the command line. */
braid_status onnx_read_tensor(file *, arena *memory, const char **name, tensor **out, braid_error *err);

/* The graph as a ModelProto of the newest opset; free with mem_free. Fused graphs are UNSUPPORTED. */
braid_status onnx_write(const graph *, void **bytes, size_t *size, braid_error *err);

#endif
