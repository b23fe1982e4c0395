/*
 * model.c: loading, ports, and the life of a model.
 */
#include "api/api.h"

/* The folder of a path: "." when it has none. */
static char *folder_of(arena *memory, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return arena_string(memory, ".", 1);
    return arena_string(memory, path, slash == path ? 1 : (size_t)(slash - path));
}

static void fill_port(const graph *g, int32_t v, const char *name, braid_port *out) {
    const tensor_type *t = &g->values[v]->type;
    *out = (braid_port){.name = name, .type = t->type, .rank = t->rank};
    for (int i = 0; i < t->rank; i++) {
        bool symbol = dim_is_symbol(t->dims[i]);
        out->dims[i] = symbol ? -1 : t->dims[i];
        out->symbols[i] = symbol ? g->symbols[dim_symbol(t->dims[i])] : NULL;
    }
}

static braid_status fill_ports(braid_model *m, braid_error *err) {
    const graph *g = m->m->g;
    m->inputs = arena_array(m->memory, (size_t)g->n_inputs + 1, sizeof *m->inputs);
    m->outputs = arena_array(m->memory, (size_t)g->n_outputs + 1, sizeof *m->outputs);
    if (!m->inputs || !m->outputs) return error_memory(err);
    for (int32_t i = 0; i < g->n_inputs; i++) fill_port(g, g->inputs[i], g->values[g->inputs[i]]->name, &m->inputs[i]);
    for (int32_t i = 0; i < g->n_outputs; i++) fill_port(g, g->outputs[i], g->output_names[i], &m->outputs[i]);
    return BRAID_OK;
}

static braid_status read_into(braid_model *m, const onnx_options *o, braid_error *err) {
    TRY(onnx_read(m->source, o, m->memory, &m->m, &m->files, &m->n_files, err));
    TRY(graph_infer(m->m->g, err));
    return fill_ports(m, err);
}

/* Takes over `source`. `folder`: where external data lies unless the options say otherwise. */
static braid_status load(file *source, const char *path, const braid_model_options *options, braid_model **out,
                         braid_error *err) {
    braid_model_options given = {.size = sizeof given};
    if (options) memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    braid_model *m = mem_alloc(sizeof *m);
    if (!m) {
        file_unref(source);
        return error_memory(err);
    }
    *m = (braid_model){.source = source, .log = {given.log, given.log_user}, .references = 1};
    onnx_options o = {.root = given.external_root, .max_bytes = given.max_bytes};
    m->memory = arena_new();
    if (m->memory && !o.root && path) o.root = folder_of(m->memory, path);
    braid_status s = !m->memory || (path && !o.root) ? error_memory(err) : read_into(m, &o, err);
    if (s != BRAID_OK) {
        braid_model_free(m);
        return s;
    }
    *out = m;
    return BRAID_OK;
}

braid_status braid_model_load(const char *path, const braid_model_options *options, braid_model **out,
                              braid_error *err) {
    error_clear(err);
    if (!path || !out) return error_set(err, BRAID_ARGUMENT, "braid_model_load: path or out is NULL");
    *out = NULL;
    file *source;
    TRY(file_open(path, &source, err));
    braid_status s = load(source, path, options, out, err);
    const char *slash = strrchr(path, '/');
    if (s == BRAID_OK) return s;
    return error_within(err, s, "%.200s%s", slash ? slash + 1 : path,
                        s == BRAID_FORMAT ? " is no valid ONNX file" : "");
}

braid_status braid_model_load_memory(const void *bytes, size_t size, const braid_model_options *options,
                                     braid_model **out, braid_error *err) {
    error_clear(err);
    if (!bytes || !out) return error_set(err, BRAID_ARGUMENT, "braid_model_load_memory: bytes or out is NULL");
    *out = NULL;
    file *source;
    TRY(file_from_memory(bytes, size, &source, err));
    return load(source, NULL, options, out, err);
}

braid_model *braid_model_ref(const braid_model *model) {
    braid_model *m = (braid_model *)(uintptr_t)model; /* counting does not change what the caller sees */
    __atomic_add_fetch(&m->references, 1, __ATOMIC_RELAXED);
    return m;
}

void braid_model_free(braid_model *m) {
    if (!m || __atomic_sub_fetch(&m->references, 1, __ATOMIC_ACQ_REL) > 0) return;
    for (size_t i = 0; i < m->n_files; i++) file_unref(m->files[i]);
    file_unref(m->source);
    arena_free(m->memory);
    mem_free(m);
}

size_t braid_model_input_count(const braid_model *m) {
    return m ? (size_t)m->m->g->n_inputs : 0;
}
size_t braid_model_output_count(const braid_model *m) {
    return m ? (size_t)m->m->g->n_outputs : 0;
}

const braid_port *braid_model_input(const braid_model *m, size_t index) {
    return index < braid_model_input_count(m) ? &m->inputs[index] : NULL;
}

const braid_port *braid_model_output(const braid_model *m, size_t index) {
    return index < braid_model_output_count(m) ? &m->outputs[index] : NULL;
}

void braid_tensor_free(braid_tensor *t) {
    if (!t) return;
    if (t->flags & BRAID_TENSOR_OWNED) mem_free(t->data);
    t->flags &= ~(uint32_t)BRAID_TENSOR_OWNED;
    t->data = NULL;
    t->bytes = 0;
}
