/* Fuzz target: bytes as a TensorProto file. */
#include "onnx/onnx.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    arena *memory = arena_new();
    file *source = NULL;
    const char *name;
    tensor *t;
    size_t bytes;
    if (!memory || file_from_memory(data, size, &source, NULL) != BRAID_OK) abort();
    if (onnx_read_tensor(source, memory, &name, &t, NULL) == BRAID_OK) {
        if (!t->data || !tensor_type_bytes(&t->type, &bytes) || bytes != t->bytes) abort();
        volatile uint64_t sum = hash_bytes(0, t->data, t->bytes); /* every byte is there */
        (void)sum;
    }
    file_unref(source);
    arena_free(memory);
    return 0;
}
