/*
 * plan_models.c: plans a model file for made-up devices, without a device.
 *
 *     plan_models MODEL ...     (settings.h)
 *
 * For a GPU and a software device, one lane and 64, with the least memory and without a budget: the plan is proven by
 * the verifier; without a budget its arena stays within a twentieth of the lower bound, and the time of its narrow
 * parts, by the cost model, within 5 % of the best there is (optimum.h). Nodes without a kernel leave the graph. A line
 * for each.
 */
#include <stdio.h>
#include <stdlib.h>

#include "onnx/onnx.h"
#include "pass/copy.h"
#include "plan/plan.h"
#include "../optimum.h"
#include "settings.h"

static const device_traits devices[] = {{.float64 = true,
                                         .float16 = true,
                                         .int8 = true,
                                         .int16 = true,
                                         .nan_kept = true,
                                         .subgroup = 32,
                                         .shared_bytes = 49152,
                                         .max_invocations = 1024,
                                         .max_groups = 65535,
                                         .cores = 528,
                                         .max_buffer = (uint64_t)1 << 40},
                                        {.software = true,
                                         .float64 = true,
                                         .float16 = true,
                                         .int8 = true,
                                         .int16 = true,
                                         .nan_kept = true,
                                         .subgroup = 8,
                                         .shared_bytes = 32768,
                                         .max_invocations = 1024,
                                         .max_groups = 65535,
                                         .cores = 2,
                                         .max_buffer = (uint64_t)1 << 32}};

static bool report(const char *name, const char *what, const braid_error *err) {
    fprintf(stderr, "%s: %s: %s\n", name, what, err->message);
    return false;
}

static int64_t dim_wanted(const settings *s, const graph *g, const value *v, int k) {
    int64_t dim = v->type.dims[k];
    braid_port p = {.name = v->name};
    p.dims[k] = dim_known(dim) ? dim : -1;
    if (!dim_known(dim) && dim_symbol(dim) < (uint32_t)g->n_symbols) p.symbols[k] = g->symbols[dim_symbol(dim)];
    return dim_of(s, &p, k);
}

static graph *prepare(const settings *s, graph *g, arena *memory, braid_error *err) {
    static const char *const names[] = {"prune", "fold", "simplify", "fold", "simplify", "fuse", "prune"};
    pass_options options = {.fold_budget = 1 << 20};
    for (int32_t i = 0; i < g->n_inputs; i++) {
        value *v = g->values[g->inputs[i]];
        for (int k = 0; k < v->type.rank; k++) v->type.dims[k] = dim_wanted(s, g, v, k);
    }
    if (graph_infer(g, err) != BRAID_OK) return NULL;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (pass_run(names[i], g, memory, &options, &g, err) != BRAID_OK) return NULL;
    return g;
}

/* The graph without the nodes that have no kernel: what they make becomes an input. */
static graph *without(const graph *g, arena *memory, const plan *p, braid_error *err) {
    copier c;
    bool *gone = arena_array(memory, (size_t)g->n_nodes + 1, sizeof *gone);
    for (int32_t i = 0; i < p->n_host_nodes; i++) gone[p->host_nodes[i]] = true;
    if (copier_new(&c, g, memory, err) != BRAID_OK) return NULL;
    int32_t *inputs = arena_array(memory, (size_t)(g->n_inputs + g->n_values) + 1, sizeof *inputs);
    if (c.to->n_inputs) memcpy(inputs, c.to->inputs, (size_t)c.to->n_inputs * sizeof *inputs);
    c.to->inputs = inputs;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const node *n = g->nodes[i];
        if (!gone[i] && copier_node(&c, n, NULL) != BRAID_OK) return NULL;
        for (int k = 0; gone[i] && k < n->n_out; k++) {
            if (n->out[k] < 0) continue;
            int32_t v = copier_like(&c, n->out[k]);
            c.to->values[v]->kind = VALUE_INPUT;
            c.to->values[v]->producer = -1;
            copier_replace(&c, n->out[k], v);
            c.to->inputs[c.to->n_inputs++] = v;
        }
    }
    return copier_outputs(&c) == BRAID_OK ? c.to : NULL;
}

static bool all_static(const graph *g) {
    for (int32_t i = 0; i < g->n_values; i++)
        if (!tensor_type_static(&g->values[i]->type)) return false;
    return true;
}

static bool plan_file(const char *name, graph *g, arena *memory, plan_options options, braid_error *err) {
    plan *p;
    if (plan_new(g, memory, &options, &p, err) != BRAID_OK) return report(name, "plan", err);
    if (p->n_host_nodes) {
        g = without(g, memory, p, err);
        if (!g || plan_new(g, memory, &options, &p, err) != BRAID_OK)
            return report(name, "without its host nodes", err);
    }
    if (p->n_host_nodes) return report(name, "still with host nodes", err);
    uint64_t address = (uint64_t)1 << 44;
    for (int32_t i = 0; i < p->n_storages; i++) {
        if (p->storages[i].kind != STORAGE_CONST || p->storages[i].alias != i) continue;
        p->storages[i].offset = address;
        address += p->storages[i].stride;
    }
    if (plan_encode(p, options.lanes, err) != BRAID_OK || plan_verify(p, options.lanes, err) != BRAID_OK)
        return report(name, "verify", err);
    printf("%-32s %s %2u lanes%s: %5d steps %5d waves %5d dispatches, %9.1f us, arena %9.0f KiB, bound * %.3f\n", name,
           options.device->software ? "cpu" : "gpu", options.lanes, options.memory_budget ? " lean" : "", p->n_steps,
           p->n_waves, p->n_dispatches, p->time_ns / 1e3, (double)p->arena_bytes / 1024,
           p->arena_bound ? (double)p->arena_bytes / (double)p->arena_bound : 1);
    if (!options.memory_budget) {
        optimum best = optimum_find(p);
        printf("    time %.1f us: %.4f of the bound; %d of %d parts, %.1f us, are narrow: %.4f of the optimum\n",
               best.time / 1e3, best.time / best.bound, best.solved, best.parts, best.narrow / 1e3,
               best.solved ? best.narrow / best.exact : 1);
        if (best.narrow > best.exact * 1.05) {
            fprintf(stderr, "%s: the schedule takes too long\n", name);
            return false;
        }
    }
    bool near = options.memory_budget || p->arena_bytes <= p->arena_bound + p->arena_bound / 20;
    if (!near) fprintf(stderr, "%s: the arena is too large\n", name);
    return near;
}

static bool plan_all(const char *name, graph *g, arena *memory, braid_error *err) {
    bool ok = true;
    for (size_t d = 0; d < COUNT_OF(devices); d++)
        for (uint32_t lanes = 1; lanes <= 64; lanes *= 64)
            for (uint64_t budget = 0; budget < 2; budget++)
                ok = plan_file(name, g, memory,
                               (plan_options){.device = &devices[d], .lanes = lanes, .memory_budget = budget}, err) &&
                     ok;
    return ok;
}

static bool check_file(const settings *s) {
    arena *memory = arena_new();
    braid_error err = {0};
    onnx_model *m;
    file *bytes, **files = NULL;
    size_t n_files = 0;
    const char *name = strrchr(s->model, '/') ? strrchr(s->model, '/') + 1 : s->model;
    if (file_open(s->model, &bytes, &err) != BRAID_OK) return report(s->model, "open", &err);
    bool ok = onnx_read(bytes, &(onnx_options){0}, memory, &m, &files, &n_files, &err) == BRAID_OK;
    graph *g = ok ? prepare(s, m->g, memory, &err) : NULL;
    if (!g)
        ok = report(name, "load", &err);
    else if (all_static(g))
        ok = plan_all(name, g, memory, &err);
    else
        printf("%-32s shapes depend on data\n", name);
    for (size_t i = 0; i < n_files; i++) file_unref(files[i]);
    file_unref(bytes);
    arena_free(memory);
    return ok;
}

int main(int argc, char **argv) {
    settings s;
    if (!read_settings(&s, argc, argv)) {
        fprintf(stderr, "plan_models: see the head of plan_models.c\n");
        return 2;
    }
    return !check_file(&s);
}
