/*
 * random_plans.c: random graphs of 50 to 500 nodes on the device: the same bits under every plan.
 *
 *     random_plans [--seed S] [--count N] [--device NAME] [--seconds N]
 *
 * Each graph runs one node a wave without re-rolling; then with waves, merging and
 * re-rolling, under random memory budgets down to the least, reversed within waves, with memory poisoned. Every plan is
 * verified. `--seconds` ends a long run; seeds go on from S.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../unit/plan_graphs.h"
#include "api/session.h"

enum { OUT_MAX = 2048 };

static struct { unsigned graphs, nodes, steps, rolled, plans, refused, failed; } total;

static braid_device *device;

static braid_model *make_model(uint64_t seed, arena **memory) {
    braid_model *model = mem_alloc(sizeof *model);
    memset(model, 0, sizeof *model);
    *memory = model->memory = arena_new();
    model->references = 1;
    model->m = arena_alloc(model->memory, sizeof *model->m);
    plan_draw r = {seed * 77 + 5};
    uint32_t most = 1 + plan_random(&r, 450); /* mostly small ones */
    model->m->g = plan_graph_make(model->memory, seed, 50 + (int)plan_random(&r, most));
    return model;
}

static void fill(plan_draw *r, const tensor_type *t, void *data, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (t->type == BRAID_INT64)
            element_set_i64(t->type, data, i, plan_random(r, 4));
        else
            element_set_f64(t->type, data, i, (double)plan_random(r, 2000) / 1000 - 1);
    }
}

static size_t make_inputs(const graph *g, uint64_t seed, arena *memory, braid_tensor *in) {
    plan_draw r = {seed};
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const value *v = g->values[g->inputs[i]];
        size_t bytes = 0;
        int64_t count = 0;
        tensor_type_bytes(&v->type, &bytes);
        tensor_type_count(&v->type, &count);
        in[i] = (braid_tensor){.name = v->name,
                               .type = v->type.type,
                               .rank = v->type.rank,
                               .bytes = bytes,
                               .data = arena_alloc(memory, bytes)};
        memcpy(in[i].dims, v->type.dims, sizeof in[i].dims);
        fill(&r, &v->type, in[i].data, count);
    }
    return (size_t)g->n_inputs;
}

typedef struct trial {
    uint64_t seed;
    const braid_model *model;
    braid_tensor in[8];
    size_t n_in, n_out;
    braid_tensor *wanted, *got;
} trial;

static bool fault(const trial *t, const char *what, const char *message) {
    printf("\n=== seed %llu: %s: %s\n", (unsigned long long)t->seed, what, message);
    fflush(stdout);
    return false;
}

static braid_session *open_session(const trial *t, braid_schedule schedule, bool no_reroll, braid_error *err) {
    braid_session_options options = {.size = sizeof options,
                                     .verify = true,
                                     .schedule = schedule,
                                     .no_reroll = no_reroll,
                                     .no_fuse = t->seed % 4 != 0}; /* fused programs all differ: pipelines take long */
    braid_session *s = NULL;
    if (braid_session_create(&device, 1, t->model, &options, &s, err) != BRAID_OK) return NULL;
    return s;
}

static void free_outputs(braid_tensor *out, size_t n) {
    for (size_t i = 0; i < n; i++) braid_tensor_free(&out[i]);
    memset(out, 0, n * sizeof *out);
}

static bool same(const trial *t, const char *what) {
    char which[64];
    for (size_t i = 0; i < t->n_out; i++) {
        snprintf(which, sizeof which, "output %zu differs", i);
        if (t->wanted[i].bytes != t->got[i].bytes || memcmp(t->wanted[i].data, t->got[i].data, t->got[i].bytes) != 0)
            return fault(t, what, which);
    }
    return true;
}

/* Bytes of the session's only plan: what is fixed, and its arena for all lanes. */
static void plan_bytes(const braid_session *s, uint64_t *fixed, uint64_t *arena_bytes) {
    *fixed = *arena_bytes = 0;
    total.rolled += s->stages.first && s->stages.first->packs.n_bundles > 0;
    for (int32_t i = 0; s->stages.first && i < s->stages.first->n_segments; i++) {
        const segment *seg = &s->stages.first->segments[i];
        if (seg->on_host) continue;
        *fixed = seg->p->fixed_bytes;
        *arena_bytes = seg->p->arena_bytes * seg->bucket;
    }
}

/* A run under a budget; one below the least may be refused. */
static bool run_budget(const trial *t, braid_session *s, uint64_t budget, plan_draw *r, const char *what) {
    braid_error err = {0};
    s->memory_budget = budget;
    s->test = (session_test){.reroll_any = true,
                             .shuffle = plan_random(r, 2),
                             .poison = true,
                             .poison_byte = plan_random(r, 2) ? 0xff : 0x3c,
                             .staged_out = plan_random(r, 2)};
    stage_cache_clear(s, &s->stages);
    free_outputs(t->got, t->n_out);
    braid_status status = braid_session_run(s, 1, t->in, t->n_in, t->got, t->n_out, &err);
    total.plans++;
    if (status == BRAID_DEVICE_MEMORY) {
        total.refused++;
        return true;
    }
    return status == BRAID_OK ? same(t, what) : fault(t, what, err.message);
}

static bool try_plans(const trial *t, braid_session *s, plan_draw *r) {
    uint64_t fixed, arena_bytes;
    if (!run_budget(t, s, UINT64_MAX, r, "without a budget")) return false;
    plan_bytes(s, &fixed, &arena_bytes);
    for (int i = 0; i < 2; i++)
        if (!run_budget(t, s, fixed + arena_bytes * (20 + plan_random(r, 80)) / 100, r, "under a budget")) return false;
    return true;
}

static bool check_graph(uint64_t seed) {
    arena *memory;
    braid_model *model = make_model(seed, &memory);
    trial t = {.seed = seed, .model = model, .n_out = (size_t)model->m->g->n_outputs};
    plan_draw r = {seed * 31 + 7};
    braid_error err = {0};
    bool ok = true;
    t.n_in = make_inputs(model->m->g, seed, memory, t.in);
    t.wanted = arena_array(memory, t.n_out + 1, sizeof *t.wanted);
    t.got = arena_array(memory, t.n_out + 1, sizeof *t.got);
    total.graphs++;
    total.nodes += (unsigned)model->m->g->n_nodes;
    for (int way = 0; way < 3 && ok; way++) {
        static const braid_schedule ways[] = {BRAID_SCHEDULE_SERIAL, BRAID_SCHEDULE_DEFAULT, BRAID_SCHEDULE_UNMERGED};
        if (way == 2 && seed % 4) continue;
        braid_session *s = open_session(&t, ways[way], way != 1, &err);
        if (!s)
            ok = fault(&t, "session", err.message);
        else if (way)
            ok = try_plans(&t, s, &r);
        else if (braid_session_run(s, 1, t.in, t.n_in, t.wanted, t.n_out, &err) != BRAID_OK)
            ok = fault(&t, "one by one", err.message);
        braid_plan_stats stats = {0};
        braid_session_stats(s, &stats);
        total.steps += way ? 0 : (unsigned)stats.steps;
        braid_session_free(s);
    }
    free_outputs(t.wanted, t.n_out);
    free_outputs(t.got, t.n_out);
    braid_model_free(model);
    return ok;
}

int main(int argc, char **argv) {
    unsigned long long seed = 1, count = 50, seconds = 0;
    braid_device_options options = {.size = sizeof options};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--count") == 0)
            count = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--device") == 0)
            options.select = argv[i + 1];
    }
    braid_error err = {0};
    if (braid_device_open(&options, &device, &err) != BRAID_OK) {
        fprintf(stderr, "random_plans: %s\n", err.message);
        return err.status == BRAID_NO_DEVICE ? 77 : 1;
    }
    uint64_t start = clock_ns();
    for (; count && (!seconds || clock_ns() - start < seconds * 1000000000u); seed++, count--)
        total.failed += !check_graph(seed);
    printf("%u graphs, %u nodes, %u steps, %u re-rolled, %u plans (%u refused: over the budget), %u failed; next seed "
           "%llu\n",
           total.graphs, total.nodes, total.steps, total.rolled, total.plans, total.refused, total.failed, seed);
    braid_device_close(device);
    return total.failed != 0;
}
