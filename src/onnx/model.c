/*
 * model.c: ModelProto, and single TensorProto files.
 */
#include "onnx/import.h"

static braid_status read_head(importer *im, wire w, wire_field *graph_field) {
    onnx_model *m = im->model;
    wire_field f;
    m->producer = m->producer_version = m->domain = m->description = "";
    while (wire_more(&w)) {
        TRY(wire_next(&w, &f));
        switch (f.number) {
        case 1:
            TRY(wire_expect(&w, &f, WIRE_VARINT));
            m->ir_version = (int64_t)f.value;
            break;
        case 2:
            TRY(import_name(im, &w, &f, &m->producer));
            break;
        case 3:
            TRY(import_name(im, &w, &f, &m->producer_version));
            break;
        case 4:
            TRY(import_name(im, &w, &f, &m->domain));
            break;
        case 5:
            TRY(wire_expect(&w, &f, WIRE_VARINT));
            m->model_version = (int64_t)f.value;
            break;
        case 6:
            TRY(wire_expect(&w, &f, WIRE_BYTES));
            if (f.length <= NAME_BYTES_MAX) TRY(wire_bytes(&w, &f, im->memory, &m->description));
            break;
        case 7:
            *graph_field = f;
            break;
        default:
            break;
        }
    }
    return BRAID_OK;
}

/* Files before IR 3 need not import an opset: they mean the first. */
static braid_status read_opsets(importer *im, wire w) {
    onnx_model *m = im->model;
    TRY(import_opsets(im, &w, 8, &m->opsets, &m->n_opsets));
    if (m->ir_version >= 3 || m->n_opsets) return BRAID_OK;
    m->opsets[0] = (onnx_opset){"", 1}; /* there is room for one more */
    m->n_opsets = 1;
    return BRAID_OK;
}

static braid_status read_model(importer *im, wire w) {
    wire_field field = {0};
    TRY(read_head(im, w, &field));
    int64_t ir = im->model->ir_version;
    if (ir < 1) return error_set(im->err, BRAID_MODEL, "not an ONNX model, or one without a version");
    if (ir > IR_MAX)
        return error_set(im->err, BRAID_UNSUPPORTED, "IR version %lld, at most %d is known", (long long)ir, IR_MAX);
    if (!field.number) return error_set(im->err, BRAID_MODEL, "the model has no graph");
    TRY(read_opsets(im, w));
    TRY(import_functions(im, w));
    TRY(wire_message(&w, &field, &w));
    graph *g = im->model->g = graph_new(im->memory, "");
    if (!g) return error_memory(im->err);
    scope s = {.im = im, .g = g};
    return import_graph(&s, w);
}

static void importer_init(importer *im, file *f, const onnx_options *options, arena *memory, braid_error *err) {
    *im = (importer){.memory = memory, .err = err, .source = f, .options = options};
    im->arena_start = arena_bytes(memory);
    im->budget = file_size(f) * 16 + ((uint64_t)16 << 20);
    im->function_index.memory = im->symbols.memory = im->locations.memory = memory;
}

static braid_status check_size(file *f, uint64_t most, braid_error *err) {
    if (!most) most = ((uint64_t)2 << 30) - 1;
    if (file_size(f) == 0) return error_set(err, BRAID_FORMAT, "the file is empty");
    if (file_size(f) <= most) return BRAID_OK;
    return error_set(err, BRAID_LIMIT, "the file has %llu bytes, at most %llu are allowed",
                     (unsigned long long)file_size(f), (unsigned long long)most);
}

braid_status onnx_read(file *f, const onnx_options *options, arena *memory, onnx_model **out, file ***files,
                       size_t *n_files, braid_error *err) {
    importer im;
    wire w;
    TRY(check_size(f, options->max_bytes, err));
    importer_init(&im, f, options, memory, err);
    im.model = arena_alloc(memory, sizeof *im.model);
    if (!im.model) return error_memory(err);
    im.model->bytes = file_size(f);
    TRY(wire_open(f, memory, &w, err));
    braid_status s = read_model(&im, w);
    if (s != BRAID_OK) {
        for (size_t i = 0; i < im.n_files; i++) file_unref(im.files[i]);
        return s;
    }
    *out = im.model;
    *files = im.files;
    *n_files = im.n_files;
    return BRAID_OK;
}

braid_status onnx_read_tensor(file *f, arena *memory, const char **name, tensor **out, braid_error *err) {
    static const onnx_options none = {0};
    importer im;
    wire w;
    TRY(check_size(f, 0, err));
    importer_init(&im, f, &none, memory, err);
    TRY(wire_open(f, memory, &w, err));
    return import_tensor_loaded(&im, w, name, out);
}
