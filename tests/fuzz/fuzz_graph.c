/* Fuzz target: bytes as a graph in text form. What parses prints to text that parses to the same text. */
#include "ir/graph.h"

#include <stdlib.h>

static char *print_of(const char *source, bool must) {
    arena *memory = arena_new();
    graph *g;
    text t = {0};
    if (!memory) abort();
    if (graph_parse(memory, source, &g, NULL) == BRAID_OK) {
        graph_verify(g, NULL);
        graph_print(g, &t);
        if (t.failed) abort();
    } else if (must) {
        abort();
    }
    arena_free(memory);
    return t.data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *source = malloc(size + 1);
    if (!source) return 0;
    if (size) memcpy(source, data, size);
    source[size] = 0;
    char *once = print_of(source, false);
    if (once && !strstr(once, "bytes>")) {
        char *twice = print_of(once, true);
        if (strcmp(once, twice) != 0) abort();
        mem_free(twice);
    }
    mem_free(once);
    free(source);
    return 0;
}
