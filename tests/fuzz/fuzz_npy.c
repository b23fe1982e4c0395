/*
 * Fuzz target: bytes as a .npy file, a TensorProto or a .npz archive for the command line's readers. What parses has
 * every byte and string it promises, and a .npy of a type that numpy has is written back to the same tensor.
 */
#include "cli.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The readers are linked without the library; their tensors are never its own. */
void braid_tensor_free(braid_tensor *t) {
    (void)t;
    abort();
}
const char *braid_status_text(braid_status status) {
    (void)status;
    return "";
}

/* A file in memory under /proc/self/fd. */
static int scratch(const void *data, size_t size, char path[64]) {
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void check_tensor(const braid_tensor *t) {
    int64_t count;
    size_t bytes;
    if (!tensor_count(t->rank, t->dims, &count) || !tensor_span(t->type, count, &bytes) || bytes != t->bytes) abort();
    volatile size_t sum = 0;
    if (t->type == BRAID_STRING)
        for (int64_t i = 0; i < count; i++) sum += strlen(((const char *const *)t->data)[i]);
    else
        for (size_t i = 0; i < bytes; i++) sum += ((const uint8_t *)t->data)[i];
    (void)sum;
}

/* Strings lose what cannot be written: trailing zeros; sub-byte and small float types are widened. */
static bool writes_back(const braid_tensor *t) {
    return t->type != BRAID_STRING && value_bits(t->type) >= 8 && t->type != BRAID_BFLOAT16 &&
           t->type < BRAID_FLOAT8E4M3FN;
}

static void write_and_read(const braid_tensor *t) {
    char path[64];
    braid_error err = {0};
    braid_tensor again = {0};
    int fd = scratch("", 0, path);
    if (npy_save(path, t, &err) != BRAID_OK || npy_load(path, &again, &err) != BRAID_OK) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    if (writes_back(t) && (again.type != t->type || again.rank != t->rank || again.bytes != t->bytes ||
                           (t->bytes && memcmp(again.data, t->data, t->bytes) != 0)))
        abort();
    tensor_drop(&again);
    close(fd);
}

static void finish(braid_status status, braid_tensor *t, const braid_error *err) {
    if (status != BRAID_OK && (!err->message[0] || status == BRAID_INTERNAL)) abort();
    if (status != BRAID_OK) return;
    check_tensor(t);
    write_and_read(t);
    tensor_drop(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    braid_error err = {0};
    braid_tensor t = {0};
    if (size > 4 && memcmp(data, "PK", 2) == 0) {
        char path[64];
        int fd = scratch(data, size, path);
        finish(npz_load(path, "x", &t, &err), &t, &err);
        close(fd);
    } else if (size && data[0] == 0x93) {
        finish(npy_parse(data, size, &t, &err), &t, &err);
    } else {
        finish(tensor_pb_parse(data, size, &t, &err), &t, &err);
    }
    return 0;
}
