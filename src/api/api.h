/*
 * api.h: the model behind its handle. Reference counted: a model may be freed once its sessions exist.
 */
#ifndef BRAID_API_H
#define BRAID_API_H

#include "onnx/onnx.h"

struct braid_model {
    arena *memory;
    onnx_model *m;
    file *source;
    file **files; /* external data; like the source kept open while the model lives */
    size_t n_files;
    braid_port *inputs, *outputs;
    logger log;
    int references; /* atomic */
};

braid_model *braid_model_ref(const braid_model *);

#endif
