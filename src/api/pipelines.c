/*
 * pipelines.c: the pipelines of a plan, and what making them took.
 */
#include "api/session.h"
#include "ops/mm_code.h"

enum { SLOW_NS = 250000000 }; /* worth a line for everyone who reads the log */

static const step *first_step(const plan *p, int32_t dispatch) {
    return p->steps[p->order[p->dispatches[dispatch].first_step]];
}

static braid_status make_key(const braid_session *s, const plan *p, const step *st, gpu_pipeline_key *out,
                             braid_error *err) {
    size_t n = (size_t)st->n_spec + 2;
    uint32_t *ids = arena_array(p->memory, n, sizeof *ids), *content = arena_array(p->memory, n, sizeof *content);
    if (!ids || !content) return error_memory(err);
    memcpy(ids + 2, st->spec_ids, (size_t)st->n_spec * sizeof *ids);
    memcpy(content + 2, st->spec, (size_t)st->n_spec * sizeof *content);
    ids[0] = SPEC_GROUP;
    content[0] = st->group;
    ids[1] = SPEC_SUBGROUP;
    content[1] = s->traits->subgroup;
    *out = (gpu_pipeline_key){st->kernel, (uint32_t)n, ids, content};
    return BRAID_OK;
}

static braid_status reserve(braid_session *s, size_t more, braid_error *err) {
    if (s->n_pipelines + more <= s->cap_pipelines) return BRAID_OK;
    size_t capacity = 2 * (s->n_pipelines + more);
    braid_pipeline_time *list = mem_realloc(s->pipelines, capacity * sizeof *list);
    if (!list) return error_memory(err);
    s->pipelines = list;
    s->cap_pipelines = capacity;
    return BRAID_OK;
}

/* A text of the session's, freed. */
static const char *keep(braid_session *s, text *t) {
    const char *kept = t->failed ? NULL : arena_string(s->memory, t->data ? t->data : "", t->length);
    text_free(t);
    return kept;
}

static void report(const braid_session *s, const braid_pipeline_time *t) {
    log_line(&s->log, t->create_ns >= SLOW_NS ? BRAID_LOG_INFO : BRAID_LOG_DEBUG,
             "pipeline %s%s%s for '%s': %.1f ms, busy %.1f ms, %llu bytes of SPIR-V%s%s%s", t->kernel,
             *t->variant ? " " : "", t->variant, t->node, (double)t->create_ns / 1e6, (double)t->busy_ns / 1e6,
             (unsigned long long)t->module_bytes, t->cached ? ", from the cache" : "", *t->figures ? ": " : "",
             t->figures);
}

static braid_status note(braid_session *s, uint32_t handle, const node *n, braid_error *err) {
    gpu_creation c;
    text variant = {0}, figures = {0};
    if (!gpu_pipeline_describe(s->device->gpu, handle, &c))
        return error_set(err, BRAID_INTERNAL, "pipeline %u does not exist", handle);
    mm_describe(c.kernel, c.n_spec, c.spec_ids, c.spec, &variant);
    gpu_pipeline_figures(s->device->gpu, handle, &figures);
    braid_pipeline_time t = {.kernel = c.kernel,
                             .variant = keep(s, &variant),
                             .node = arena_string(s->memory, n->name, strlen(n->name)),
                             .op = arena_string(s->memory, n->type, strlen(n->type)),
                             .create_ns = c.time_ns,
                             .busy_ns = c.busy_ns,
                             .module_bytes = c.module_bytes,
                             .cached = c.cached,
                             .figures = keep(s, &figures)};
    if (!t.variant || !t.node || !t.op || !t.figures) return error_memory(err);
    report(s, &t);
    s->pipelines[s->n_pipelines++] = t;
    return BRAID_OK;
}

/* Those that were made, by the first dispatch that uses each. */
static braid_status note_made(braid_session *s, const graph *g, const plan *p, const uint32_t *handles,
                              const gpu_made *made, braid_error *err) {
    bool *seen = arena_array(p->memory, (size_t)made->count + 1, sizeof *seen);
    if (!seen) return error_memory(err);
    TRY(reserve(s, made->count, err));
    for (int32_t i = 0; i < p->n_dispatches; i++) {
        uint32_t at = handles[i] - made->first;
        if (handles[i] < made->first || at >= made->count || seen[at]) continue;
        seen[at] = true;
        TRY(note(s, handles[i], g->nodes[first_step(p, i)->node], err));
    }
    return BRAID_OK;
}

braid_status session_pipelines(braid_session *s, const graph *g, const plan *p, uint32_t *out, braid_error *err) {
    size_t n = (size_t)p->n_dispatches;
    gpu_made made = {0};
    gpu_pipeline_key *keys = arena_array(p->memory, n + 1, sizeof *keys);
    if (!keys) return error_memory(err);
    for (int32_t i = 0; i < p->n_dispatches; i++) TRY(make_key(s, p, first_step(p, i), &keys[i], err));
    TRY(gpu_pipelines(s->device->gpu, n, keys, out, &made, err));
    s->pipelines_ns += made.time_ns;
    return note_made(s, g, p, out, &made, err);
}

size_t braid_session_pipelines(const braid_session *s, const braid_pipeline_time **out) {
    if (out) *out = s ? s->pipelines : NULL;
    return s ? s->n_pipelines : 0;
}
