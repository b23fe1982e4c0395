/* Fuzz target: the command line's tensor files. The first byte chooses the parser: npy or TensorProto. */
#include "cli.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    braid_tensor t = {0};
    if (size == 0) return 0;
    braid_status status = data[0] == 'p' ? tensor_pb_parse(data + 1, size - 1, &t, NULL)
                                         : npy_parse(data + 1, size - 1, &t, NULL);
    if (status != BRAID_OK) return 0;
    int64_t count;
    size_t bytes;
    if (!tensor_count(t.rank, t.dims, &count) || !tensor_span(t.type, count, &bytes) || bytes != t.bytes) abort();
    for (int64_t i = 0; i < count; i++) { /* every element is there and can be read */
        char text[64];
        value_text(&t, i, text, sizeof text);
    }
    tensor_drop(&t);
    return 0;
}
