/* Fuzz target: bytes as a model file. Whatever loads must be a sound graph that infers, prints and verifies. */
#include "onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>

static void check_graph(const graph *g) {
    braid_error err;
    if (graph_verify(g, &err) != BRAID_OK) abort();
    text t = {0};
    graph_print(g, &t);
    if (t.failed) abort();
    text_free(&t);
}

static void infer_and_check(graph *g) {
    braid_error err;
    braid_status s = graph_infer(g, &err);
    if (s == BRAID_INTERNAL) abort();
    if (s == BRAID_OK) check_graph(g);
}

/* What is written must read back. Only a node may be refused: canonical forms can have attributes of braid's own. */
static void write_and_read(const graph *g) {
    void *bytes;
    size_t size, n_files;
    braid_error err = {0};
    braid_status s = onnx_write(g, &bytes, &size, &err);
    if (s == BRAID_UNSUPPORTED) return;
    arena *memory = arena_new();
    file *source, **files;
    onnx_model *m;
    if (s != BRAID_OK || !memory || file_from_memory(bytes, size, &source, NULL) != BRAID_OK) abort();
    s = onnx_read(source, &(onnx_options){0}, memory, &m, &files, &n_files, &err);
    if (s != BRAID_OK && s != BRAID_LIMIT && strncmp(err.message, "node '", 6) != 0) {
        fprintf(stderr, "written model: %s\n", err.message);
        abort();
    }
    file_unref(source);
    arena_free(memory);
    mem_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    arena *memory = arena_new();
    file *source = NULL, **files = NULL;
    size_t n_files = 0;
    onnx_model *m;
    braid_error err = {0};
    if (!memory || file_from_memory(data, size, &source, &err) != BRAID_OK) abort();
    braid_status s = onnx_read(source, &(onnx_options){0}, memory, &m, &files, &n_files, &err);
    if (s == BRAID_INTERNAL || (s != BRAID_OK && !err.message[0])) abort();
    if (s == BRAID_OK) {
        check_graph(m->g);
        write_and_read(m->g);
        infer_and_check(m->g);
    }
    file_unref(source);
    arena_free(memory);
    return 0;
}
