#include <braid/braid.h>
#include <stdio.h>
#include <stdlib.h>

/* io MODEL: what goes into any model and what comes out: a run on zeros, with 1 for every dimension that is free */

enum { MOST = 64, FILE_MOST = 64 << 20 };

static void print_tensor(const char *what, const char *name, braid_type type, int rank, const int64_t *dims) {
    printf("%-7s %s: %s [", what, name, braid_type_name(type));
    for (int i = 0; i < rank; i++) printf(i ? ",%lld" : "%lld", (long long)dims[i]);
    puts("]");
}

/* false: an input of no fixed rank, of strings or of elements smaller than a byte. */
static bool zeros(const braid_port *port, braid_tensor *t) {
    size_t bytes = braid_type_bytes(port->type);
    if (port->rank < 0 || bytes == 0) return false;
    *t = (braid_tensor){.name = port->name, .type = port->type, .rank = port->rank};
    for (int i = 0; i < port->rank; i++) {
        t->dims[i] = port->dims[i] < 0 ? 1 : port->dims[i]; /* port->symbols[i] may have its name */
        bytes *= (size_t)t->dims[i];
    }
    t->bytes = bytes;
    t->data = calloc(bytes + 1, 1);
    return t->data != NULL;
}

static braid_status run(braid_device *device, const braid_model *model, braid_tensor *in, size_t n_in,
                        braid_error *err) {
    size_t n_out = braid_model_output_count(model);
    braid_tensor out[MOST] = {0}; /* the i-th output, with memory of braid's */
    braid_session *session;
    braid_status status = braid_session_create(&device, 1, model, NULL, &session, err);
    if (status) return status;
    status = braid_session_run(session, 1, in, n_in, out, n_out, err);
    for (size_t i = 0; i < n_out; i++) {
        if (!status) print_tensor("output", braid_model_output(model, i)->name, out[i].type, out[i].rank, out[i].dims);
        braid_tensor_free(&out[i]);
    }
    braid_session_free(session);
    return status;
}

int main(int argc, char **argv) {
    braid_device *device = NULL;
    braid_model *model = NULL;
    braid_error err;
    braid_tensor in[MOST] = {0};
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    void *bytes = malloc(FILE_MOST); /* the model borrows them */
    size_t size = file && bytes ? fread(bytes, 1, FILE_MOST, file) : 0;
    char *text = NULL, *operators = NULL;
    if (braid_model_load_memory(bytes, size, NULL, &model, &err) ||
        braid_model_describe(model, BRAID_REPORT_SUPPORT, &text, &err) || braid_ops_describe(&operators, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    if (*text) return fprintf(stderr, "%s\nwhat there is:\n%s", text, operators), 1;
    size_t n_in = braid_model_input_count(model);
    if (n_in > MOST || braid_model_output_count(model) > MOST)
        return fprintf(stderr, "more than %d tensors\n", MOST), 1;
    for (size_t i = 0; i < n_in; i++) {
        if (!zeros(braid_model_input(model, i), &in[i])) return fprintf(stderr, "no zeros for input %zu\n", i), 1;
        print_tensor("input", in[i].name, in[i].type, in[i].rank, in[i].dims);
    }
    if (braid_device_open(NULL, &device, &err) || run(device, model, in, n_in, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    for (size_t i = 0; i < n_in; i++) free(in[i].data);
    braid_text_free(text);
    braid_text_free(operators);
    braid_model_free(model);
    braid_device_close(device);
    free(bytes);
}
