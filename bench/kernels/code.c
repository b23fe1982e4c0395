/*
 * code.c: the pipelines that models need on a GPU, without one: planned for a made-up device, the SPIR-V that its driver
 * would be given.
 *
 *     bench_code [-l LANES] [-c CORES] [-k KERNEL] [-o FOLDER] MODEL ...
 *
 * A line for each pipeline: words of SPIR-V, models that need it, kernel and what is fixed in it. Symbols in shapes are 1.
 * -k: only kernels whose name begins so. -o: writes FOLDER/NUMBER.spv, to be looked at with spirv-dis or measured with
 * spirv-opt.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/gpu.h"
#include "gpu/specialize.h"
#include "onnx/onnx.h"
#include "ops/mm_code.h"
#include "pass/pass.h"
#include "plan/plan.h"

enum { MOST = 1024, FILES = 256 };

typedef struct pipeline {
    const step *s;
    uint32_t models, last; /* last: number of the model that was counted last, + 1 */
    uint64_t flops;
} pipeline;

typedef struct bench {
    arena *memory;
    device_traits device;
    uint32_t lanes;
    const char *kernels, *folder;
    pipeline list[MOST];
    size_t n;
    file *files[FILES]; /* constants are read from them when they are planned */
    size_t n_files;
} bench;

static void must(braid_status status, const char *what, const braid_error *err) {
    if (status == BRAID_OK) return;
    fprintf(stderr, "bench_code: %s: %s\n", what, err->message);
    exit(4);
}

static void keep(bench *b, file *f) {
    if (b->n_files == FILES) {
        fprintf(stderr, "bench_code: more than %d files\n", FILES);
        exit(4);
    }
    b->files[b->n_files++] = f;
}

static graph *load(bench *b, const char *path) {
    static const char *const names[] = {"prune", "fold", "simplify", "fold", "simplify", "fuse", "prune"};
    pass_options options = {.fold_budget = 1 << 20};
    braid_error err;
    onnx_model *m;
    file *bytes, **files = NULL;
    size_t n_files = 0;
    must(file_open(path, &bytes, &err), path, &err);
    must(onnx_read(bytes, &(onnx_options){0}, b->memory, &m, &files, &n_files, &err), path, &err);
    keep(b, bytes);
    for (size_t i = 0; i < n_files; i++) keep(b, files[i]);
    graph *g = m->g;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        tensor_type *t = &g->values[g->inputs[i]]->type;
        for (int k = 0; k < t->rank; k++)
            if (!dim_known(t->dims[k])) t->dims[k] = 1;
    }
    must(graph_infer(g, &err), path, &err);
    for (size_t i = 0; i < COUNT_OF(names); i++) must(pass_run(names[i], g, b->memory, &options, &g, &err), path, &err);
    return g;
}

static bool same(const step *a, const step *b) {
    return strcmp(a->kernel, b->kernel) == 0 && a->group == b->group && a->n_spec == b->n_spec &&
           memcmp(a->spec_ids, b->spec_ids, (size_t)a->n_spec * sizeof *a->spec_ids) == 0 &&
           memcmp(a->spec, b->spec, (size_t)a->n_spec * sizeof *a->spec) == 0;
}

static void add(bench *b, const step *s, uint32_t model) {
    size_t i = 0;
    if (strncmp(s->kernel, b->kernels, strlen(b->kernels)) != 0) return;
    while (i < b->n && !same(b->list[i].s, s)) i++;
    if (i == MOST) return;
    if (i == b->n) b->list[b->n++] = (pipeline){.s = s};
    b->list[i].models += b->list[i].last != model + 1;
    b->list[i].last = model + 1;
    b->list[i].flops += s->flops;
}

static void plan_model(bench *b, const char *path, uint32_t number) {
    braid_error err;
    plan *p;
    plan_options options = {.device = &b->device, .lanes = b->lanes};
    must(plan_new(load(b, path), b->memory, &options, &p, &err), path, &err);
    if (p->n_host_nodes) fprintf(stderr, "bench_code: %s: %d nodes have no kernel\n", path, p->n_host_nodes);
    for (int32_t i = 0; i < p->n_steps; i++) add(b, p->steps[i], number);
}

static const gpu_shader *shader_of(const char *kernel) {
    for (size_t i = 0; i < gpu_shader_count; i++)
        if (strcmp(gpu_shaders[i].name, kernel) == 0) return &gpu_shaders[i];
    return NULL;
}

static void print(const bench *b, size_t number) {
    const pipeline *x = &b->list[number];
    const step *s = x->s;
    const gpu_shader *shader = shader_of(s->kernel);
    uint32_t ids[64] = {SPEC_GROUP, SPEC_SUBGROUP}, content[64] = {s->group, b->device.subgroup}, *out = NULL;
    size_t n = (size_t)s->n_spec + 2, words = 0;
    text t = {0};
    if (!shader || n > COUNT_OF(ids)) return;
    memcpy(ids + 2, s->spec_ids, (size_t)s->n_spec * sizeof *ids);
    memcpy(content + 2, s->spec, (size_t)s->n_spec * sizeof *content);
    if (!spirv_specialize(shader->code, shader->bytes / 4, n, ids, content, &out, &words)) return;
    mm_describe(s->kernel, (uint32_t)s->n_spec, s->spec_ids, s->spec, &t);
    printf("%4zu %7zu words %2u models %8.1f MFLOP  %s %s\n", number, words, x->models, (double)x->flops / 1e6, s->kernel,
           t.data ? t.data : "");
    if (b->folder) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%zu.spv", b->folder, number);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(out, 4, words, f) != words) fprintf(stderr, "bench_code: cannot write %s\n", path);
        if (f) fclose(f);
    }
    mem_free(out);
    text_free(&t);
}

int main(int argc, char **argv) {
    static bench b = {.device = {.float64 = true, .float16 = true, .int8 = true, .int16 = true, .nan_kept = true,
                                 .subgroup = 32, .shared_bytes = 49152, .max_invocations = 1024, .max_groups = 65535,
                                 .cores = 132, .max_buffer = (uint64_t)1 << 40},
                      .lanes = 1, .kernels = ""};
    uint32_t models = 0;
    b.memory = arena_new();
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc && argv[i][0] == '-';
        if (more && !strcmp(argv[i], "-l")) b.lanes = (uint32_t)atoi(argv[++i]);
        else if (more && !strcmp(argv[i], "-c")) b.device.cores = (uint32_t)atoi(argv[++i]);
        else if (more && !strcmp(argv[i], "-k")) b.kernels = argv[++i];
        else if (more && !strcmp(argv[i], "-o")) b.folder = argv[++i];
        else if (argv[i][0] != '-') plan_model(&b, argv[i], models++);
        else models = 0, i = argc;
    }
    if (!models) {
        fprintf(stderr, "usage: bench_code [-l LANES] [-c CORES] [-k KERNEL] [-o FOLDER] MODEL ...\n");
        return 2;
    }
    for (size_t i = 0; i < b.n; i++) print(&b, i);
    for (size_t i = 0; i < b.n_files; i++) file_unref(b.files[i]);
    arena_free(b.memory);
    return 0;
}
