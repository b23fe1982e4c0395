/*
 * stage.c: a graph for one set of input shapes: specialised, planned as far as its shapes go, and run.
 */
#include "api/session.h"

#include "pass/copy.h"

enum { CACHE_STAGES = 8, BAKE_ELEMENTS = 1024, FOLD_ROUNDS = 16, MANY_LANES = 64 };

bool stage_bakes(const tensor_type *t) {
    int64_t count;
    return (type_is_integer(t->type) || t->type == BRAID_BOOL || type_is_float(t->type)) && t->rank <= 1 &&
           tensor_type_count(t, &count) && count <= (type_is_float(t->type) ? 16 : BAKE_ELEMENTS);
}

/* ---------------------------------------------------------------------------------------- specialisation */

static braid_status bake(copier *c, int32_t input, const tensor *content) {
    tensor *t;
    TRY(tensor_new(c->to->memory, content->type.type, content->type.rank, content->type.dims, &t, c->err));
    memcpy(t->data, content->data, t->bytes < content->bytes ? t->bytes : content->bytes);
    value *v = c->to->values[c->map[input]];
    v->constant = t;
    return BRAID_OK;
}

/* A copy of g with these input types; what was inferred before is forgotten. */
static braid_status specialise(const graph *g, const tensor_type *types, tensor *const *baked, arena *memory,
                               graph **out, braid_error *err) {
    copier c;
    TRY(copier_new(&c, g, memory, err));
    for (int32_t i = 0; i < g->n_inputs; i++) {
        c.to->values[c.map[g->inputs[i]]]->type = types[i];
        if (baked[i]) TRY(bake(&c, g->inputs[i], baked[i]));
    }
    for (int32_t i = 0; i < g->n_nodes; i++) {
        node *n;
        TRY(copier_node(&c, g->nodes[i], &n));
        for (int k = 0; k < n->n_out; k++) {
            if (n->out[k] < 0) continue;
            value *v = c.to->values[n->out[k]];
            v->type.rank = -1;
            v->n_known = -1;
        }
    }
    TRY(copier_outputs(&c));
    *out = c.to;
    return graph_infer(*out, err);
}

/* Folds until nothing changes any more, then simplifies. */
static braid_status fold_all(arena *memory, const pass_options *options, graph **g, braid_error *err) {
    for (int round = 0; round < FOLD_ROUNDS; round++) {
        int32_t before = (*g)->n_nodes;
        TRY(pass_run("fold", *g, memory, options, g, err));
        TRY(pass_run("simplify", *g, memory, options, g, err));
        if ((*g)->n_nodes == before) break;
    }
    return pass_run("prune", *g, memory, NULL, g, err);
}

/* --------------------------------------------------------------------------------------------- splitting */

static bool value_static(const graph *g, int32_t v) {
    return v < 0 || g->values[v]->constant || (g->values[v]->type.type != BRAID_TYPE_NONE && tensor_type_static(&g->values[v]->type));
}

static bool inputs_static(const graph *g, const node *n) {
    for (int i = 0; i < n->n_in; i++)
        if (!value_static(g, n->in[i])) return false;
    return true;
}

static bool outputs_static(const graph *g, const node *n) {
    for (int i = 0; i < n->n_out; i++)
        if (!value_static(g, n->out[i])) return false;
    return true;
}

enum { NODE_DEVICE, NODE_HOST, NODE_LATE };

static bool depends_on_late(const graph *g, const node *n, const uint8_t *kind) {
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0 || g->values[n->in[i]]->kind != VALUE_NODE || g->values[n->in[i]]->constant) continue;
        if (kind[g->values[n->in[i]]->producer] == NODE_LATE) return true;
    }
    return false;
}

/* A node whose inputs are known but whose output shape is not: its small inputs may settle it once they are baked; in a
   graph where they are baked already only running it can tell. */
static uint8_t classify(const graph *g, const node *n, const uint8_t *kind, bool baked) {
    if (depends_on_late(g, n, kind) || !inputs_static(g, n)) return NODE_LATE;
    if (outputs_static(g, n)) return NODE_DEVICE;
    return baked ? NODE_HOST : NODE_LATE;
}

/* Level of a node: even levels are device segments, odd ones host steps. */
static int32_t level_of(const graph *g, const node *n, const uint8_t *kind, const int32_t *level, uint8_t own) {
    int32_t least = own == NODE_HOST ? 1 : 0;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0 || g->values[n->in[i]]->kind != VALUE_NODE || g->values[n->in[i]]->constant) continue;
        int32_t maker = g->values[n->in[i]]->producer;
        int32_t after = level[maker] + (kind[maker] != own);
        if (after > least) least = after;
    }
    return least;
}

typedef struct split {
    uint8_t *kind;
    int32_t *level;
    int32_t n_levels;
} split;

static braid_status split_new(split *s, const graph *g, arena *memory, bool baked, bool all_host, braid_error *err) {
    s->kind = arena_array(memory, (size_t)g->n_nodes + 1, sizeof *s->kind);
    s->level = arena_array(memory, (size_t)g->n_nodes + 1, sizeof *s->level);
    if (!s->kind || !s->level) return error_memory(err);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        s->kind[i] = classify(g, g->nodes[i], s->kind, baked);
        if (all_host && s->kind[i] == NODE_DEVICE) s->kind[i] = NODE_HOST;
    }
    return BRAID_OK;
}

static void split_levels(split *s, const graph *g) {
    s->n_levels = 0;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (s->kind[i] == NODE_LATE) continue;
        s->level[i] = level_of(g, g->nodes[i], s->kind, s->level, s->kind[i]);
        if (s->level[i] >= s->n_levels) s->n_levels = s->level[i] + 1;
    }
}

/* -------------------------------------------------------------------------------------------- subgraphs */

typedef struct excerpt {
    copier c;
    int32_t *input_of, *output_of;
    int32_t n_in, n_out;
} excerpt;

static braid_status excerpt_input(excerpt *x, int32_t v) {
    const value *old = x->c.from->values[v];
    if (x->c.map[v] >= 0 || old->constant) return BRAID_OK;
    int32_t now = copier_like(&x->c, v);
    if (now < 0) return error_memory(x->c.err);
    x->c.to->values[now]->kind = VALUE_INPUT;
    x->c.to->values[now]->n_known = -1;
    x->c.map[v] = now;
    x->input_of[x->n_in] = v;
    x->c.to->inputs[x->n_in++] = now;
    return BRAID_OK;
}

/* The nodes of g for which take[i] holds, as a graph of its own: inputs are the values that come from elsewhere, outputs
   those marked in `needed`. */
static braid_status excerpt_new(excerpt *x, const graph *g, const bool *take, const bool *needed, arena *memory,
                                braid_error *err) {
    graph empty = *g;
    empty.n_inputs = 0;
    *x = (excerpt){0};
    TRY(copier_new(&x->c, &empty, memory, err));
    x->c.from = g;
    x->input_of = arena_array(memory, (size_t)g->n_values + 1, sizeof *x->input_of);
    x->output_of = arena_array(memory, (size_t)g->n_values + 1, sizeof *x->output_of);
    x->c.to->inputs = arena_array(memory, (size_t)g->n_values + 1, sizeof *x->c.to->inputs);
    x->c.to->outputs = arena_array(memory, (size_t)g->n_values + 1, sizeof *x->c.to->outputs);
    x->c.to->output_names = arena_array(memory, (size_t)g->n_values + 1, sizeof *x->c.to->output_names);
    if (!x->input_of || !x->output_of || !x->c.to->inputs || !x->c.to->outputs || !x->c.to->output_names)
        return error_memory(err);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (!take[i]) continue;
        for (int k = 0; k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] >= 0) TRY(excerpt_input(x, g->nodes[i]->in[k]));
        TRY(copier_node(&x->c, g->nodes[i], NULL));
        for (int k = 0; k < g->nodes[i]->n_out; k++) {
            int32_t v = g->nodes[i]->out[k];
            if (v < 0 || !needed[v]) continue;
            x->output_of[x->n_out] = v;
            x->c.to->outputs[x->n_out] = x->c.map[v];
            x->c.to->output_names[x->n_out++] = g->values[v]->name;
        }
    }
    x->c.to->n_inputs = x->n_in;
    x->c.to->n_outputs = x->n_out;
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------- compiling */

typedef struct compile {
    braid_session *s;
    stage *st;
    split parts;
    bool *to_host; /* value must reach the host */
    bool *crosses; /* value is used outside the segment that makes it */
    bool *on_device; /* value is in device memory when a later segment reads it */
    bool baked;
    bool alone; /* one device segment is the whole stage */
    braid_error *err;
} compile;

static int32_t place_of(const compile *c, int32_t i) {
    return c->parts.kind[i] == NODE_LATE ? INT32_MAX : c->parts.level[i];
}

static braid_status mark_crossings(compile *c) {
    const graph *g = c->st->g;
    c->to_host = arena_array(c->st->memory, (size_t)g->n_values + 1, sizeof *c->to_host);
    c->crosses = arena_array(c->st->memory, (size_t)g->n_values + 1, sizeof *c->crosses);
    c->on_device = arena_array(c->st->memory, (size_t)g->n_values + 1, sizeof *c->on_device);
    if (!c->to_host || !c->crosses || !c->on_device) return error_memory(c->err);
    for (int32_t i = 0; i < g->n_outputs; i++) c->to_host[g->outputs[i]] = c->crosses[g->outputs[i]] = true;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        for (int k = 0; k < g->nodes[i]->n_in; k++) {
            int32_t v = g->nodes[i]->in[k];
            if (v < 0 || g->values[v]->constant) continue;
            bool inside = g->values[v]->kind == VALUE_NODE && place_of(c, g->values[v]->producer) == place_of(c, i);
            if (!inside) c->crosses[v] = true;
            if (c->parts.kind[i] == NODE_HOST) c->to_host[v] = true;
            if (c->parts.kind[i] == NODE_LATE && stage_bakes(&g->values[v]->type)) c->to_host[v] = true;
        }
    }
    return BRAID_OK;
}

static braid_status take_level(const compile *c, int32_t level, bool **out) {
    bool *take = arena_array(c->st->memory, (size_t)c->st->g->n_nodes + 1, sizeof *take);
    if (!take) return error_memory(c->err);
    for (int32_t i = 0; i < c->st->g->n_nodes; i++) take[i] = place_of(c, i) == level;
    *out = take;
    return BRAID_OK;
}

static braid_status host_segment(compile *c, segment *seg, const bool *take) {
    const graph *g = c->st->g;
    const char *const reason = "no kernel for these types and shapes on this device";
    seg->on_host = true;
    if (!(seg->nodes = arena_array(c->st->memory, (size_t)g->n_nodes + 1, sizeof *seg->nodes)))
        return error_memory(c->err);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (!take[i]) continue;
        char title[256];
        const node *n = g->nodes[i];
        if (!n->op || !n->op->eval) return error_set(c->err, BRAID_UNSUPPORTED, "%s: not supported", node_title(n, title));
        if (c->s->no_host)
            return error_set(c->err, BRAID_UNSUPPORTED, "%s: %s, and host steps are off", node_title(n, title), reason);
        if (c->s->traits)
            log_line(&c->s->log, BRAID_LOG_INFO, "%s is a host step: %s", node_title(n, title),
                     outputs_static(g, n) ? reason : "the shape of its result depends on data");
        seg->nodes[seg->n_nodes++] = i;
    }
    return BRAID_OK;
}

/* A view of what the host gave lies where the host put it, though a device segment exports it; so does a constant. */
static void note_places(const compile *c, const segment *seg) {
    for (int32_t i = 0; i < seg->g->n_outputs; i++) {
        int32_t k = seg->export_of[i];
        c->on_device[seg->output_of[i]] = k >= 0 || (k != INT32_MIN && !seg->input_uploaded[-1 - k]);
    }
}

static braid_status device_segment(compile *c, segment *seg, const bool *take) {
    excerpt x;
    TRY(excerpt_new(&x, c->st->g, take, c->crosses, c->st->memory, c->err));
    seg->g = x.c.to;
    seg->input_of = x.input_of;
    seg->output_of = x.output_of;
    seg->input_uploaded = arena_array(c->st->memory, (size_t)x.n_in + 1, sizeof *seg->input_uploaded);
    seg->output_wanted = arena_array(c->st->memory, (size_t)x.n_out + 1, sizeof *seg->output_wanted);
    seg->input_varies = arena_array(c->st->memory, (size_t)x.n_in + 1, sizeof *seg->input_varies);
    seg->input_joinable = arena_array(c->st->memory, (size_t)x.n_in + 1, sizeof *seg->input_joinable);
    if (!seg->input_uploaded || !seg->input_varies || !seg->input_joinable || !seg->output_wanted)
        return error_memory(c->err);
    for (int32_t i = 0; i < x.n_in; i++) {
        seg->input_uploaded[i] = !c->on_device[x.input_of[i]];
        seg->input_varies[i] = c->st->varies[x.input_of[i]];
        seg->input_joinable[i] = seg->input_uploaded[i] && !c->baked; /* a later stage gets values from the device too */
    }
    for (int32_t i = 0; i < x.n_out; i++) seg->output_wanted[i] = c->to_host[x.output_of[i]];
    seg->alone = c->alone;
    TRY(segment_compile(c->s, c->st, seg, c->err));
    note_places(c, seg);
    return BRAID_OK;
}

/* Which static nodes have no kernel: found by lowering them all once. */
static braid_status find_host_nodes(compile *c) {
    const graph *g = c->st->g;
    bool *take = arena_array(c->st->memory, (size_t)g->n_nodes + 1, sizeof *take);
    int32_t *origin = arena_array(c->st->memory, (size_t)g->n_nodes + 1, sizeof *origin);
    if (!take || !origin) return error_memory(c->err);
    int32_t n = 0;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        take[i] = c->parts.kind[i] == NODE_DEVICE;
        if (take[i]) origin[n++] = i;
    }
    if (!n) return BRAID_OK;
    arena *temporary = arena_new();
    if (!temporary) return error_memory(c->err);
    excerpt x;
    plan *p;
    plan_options options = {.device = c->s->traits, .lower_only = true};
    bool *needed = arena_array(temporary, (size_t)g->n_values + 1, sizeof *needed);
    braid_status status = needed ? excerpt_new(&x, g, take, needed, temporary, c->err) : error_memory(c->err);
    if (status == BRAID_OK) status = plan_new(x.c.to, temporary, &options, &p, c->err);
    if (status == BRAID_OK)
        for (int32_t i = 0; i < p->n_host_nodes; i++) c->parts.kind[origin[p->host_nodes[i]]] = NODE_HOST;
    arena_free(temporary);
    return status;
}

static braid_status compile_rest(compile *c) {
    const graph *g = c->st->g;
    bool *take = NULL, *needed = arena_array(c->st->memory, (size_t)g->n_values + 1, sizeof *needed);
    if (!needed) return error_memory(c->err);
    TRY(take_level(c, INT32_MAX, &take));
    bool any = false;
    for (int32_t i = 0; i < g->n_nodes; i++) any = any || take[i];
    if (!any) return BRAID_OK;
    for (int32_t i = 0; i < g->n_outputs; i++) needed[g->outputs[i]] = true;
    excerpt x;
    TRY(excerpt_new(&x, g, take, needed, c->st->memory, c->err));
    c->st->rest = x.c.to;
    c->st->rest_input_of = x.input_of;
    c->st->rest_output_of = x.output_of;
    return BRAID_OK;
}

/* Kernels may turn an epilogue down: those nodes are taken apart again. *again: the graph has changed. */
static braid_status take_apart(compile *c, bool *again) {
    graph *g = c->st->g;
    bool *flags = arena_array(c->st->memory, (size_t)g->n_nodes + 1, sizeof *flags);
    if (!flags) return error_memory(c->err);
    *again = false;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        flags[i] = c->parts.kind[i] == NODE_HOST && g->nodes[i]->epilogue && !node_is_map(g->nodes[i]);
        *again = *again || flags[i];
    }
    return *again ? pass_unfuse(g, c->st->memory, flags, &c->st->g, c->err) : BRAID_OK;
}

/* A value of several copies stays within its segment: whoever reads it elsewhere is made single. */
static bool reads_across(const compile *c, int32_t i) {
    const graph *g = c->st->g;
    for (int k = 0; k < g->nodes[i]->n_in; k++) {
        int32_t v = g->nodes[i]->in[k];
        if (v < 0 || value_copies(g->values[v]) == 1) continue;
        if (place_of(c, g->values[v]->producer) != place_of(c, i)) return true;
    }
    return false;
}

/* Nodes of several copies that cannot stay so become single ones. *again: the graph has changed. */
static braid_status unroll_some(compile *c, bool by_level, bool *again) {
    graph *g = c->st->g;
    bool *flags = arena_array(c->st->memory, (size_t)g->n_nodes + 1, sizeof *flags);
    if (!flags) return error_memory(c->err);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (node_copies(g->nodes[i]) == 1) continue;
        flags[i] = by_level ? reads_across(c, i) : c->parts.kind[i] == NODE_HOST;
        *again = *again || flags[i];
    }
    return *again ? pass_unroll(g, c->st->memory, flags, &c->st->g, c->err) : BRAID_OK;
}

/* A graph's own stage that is one piece of device work. */
static bool one_piece(const compile *c) {
    for (int32_t i = 0; i < c->st->g->n_nodes; i++)
        if (c->parts.kind[i] == NODE_LATE) return false;
    return c->parts.n_levels == 1 && !c->baked && !c->s->profile;
}

static braid_status compile_stage(braid_session *s, stage *st, bool baked, braid_error *err) {
    compile c = {.s = s, .st = st, .baked = baked, .err = err};
    for (bool again = true; again;) {
        TRY(split_new(&c.parts, st->g, st->memory, baked, !s->traits, err));
        if (s->traits) TRY(find_host_nodes(&c));
        TRY(take_apart(&c, &again));
        if (!again) TRY(unroll_some(&c, false, &again));
        if (again) continue;
        split_levels(&c.parts, st->g);
        TRY(unroll_some(&c, true, &again));
    }
    TRY(plan_varies(st->g, st->bucket > 1 ? st->key_varies : NULL, st->memory, &st->varies, err));
    TRY(mark_crossings(&c));
    st->segments = arena_array(st->memory, (size_t)c.parts.n_levels + 1, sizeof *st->segments);
    if (!st->segments) return error_memory(err);
    c.alone = one_piece(&c);
    for (int32_t level = 0; level < c.parts.n_levels; level++) {
        bool *take = NULL;
        TRY(take_level(&c, level, &take));
        bool any = false;
        for (int32_t i = 0; i < st->g->n_nodes; i++) any = any || take[i];
        if (!any) continue;
        segment *seg = &st->segments[st->n_segments++];
        TRY(level % 2 ? host_segment(&c, seg, take) : device_segment(&c, seg, take));
    }
    return compile_rest(&c);
}

/* ------------------------------------------------------------------------------------------------- cache */

static void stage_free(braid_session *s, stage *st) {
    if (!st) return;
    stage_cache_clear(s, &st->rest_stages);
    if (st->twin) segment_twin_free(s, st->twin);
    for (int32_t i = 0; i < st->n_segments; i++) segment_free(s, &st->segments[i]);
    arena_free(st->memory);
}

void stage_cache_clear(braid_session *s, stage_cache *cache) {
    for (stage *st = cache->first, *next; st; st = next) {
        next = st->next;
        stage_free(s, st);
    }
    *cache = (stage_cache){0};
}

static bool same_lanes(const stage *st, const graph *g, const place *in) {
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (st->key_varies[i] != (in[i].stride != 0)) return false;
    return true;
}

/* Does it serve runs that this bucket is meant for: with its room, with more where there is more than enough work for
   any kernel, or in rounds. */
static bool serves(const stage *st, uint32_t bucket) {
    return st->bucket == bucket || (bucket > MANY_LANES && st->bucket > bucket) ||
           (st->limit != LIMIT_NONE && st->bucket < bucket);
}

static bool same_key(const stage *st, const graph *g, uint32_t bucket, const place *in, bool baked) {
    if (bucket > 1 && !same_lanes(st, g, in)) return false;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        if (!tensor_type_equal(&st->key_types[i], &in[i].host->type)) return false;
        const tensor *k = st->key_values[i];
        if (!baked || !k) continue;
        if (k->bytes != in[i].host->bytes || memcmp(k->data, in[i].host->data, k->bytes) != 0) return false;
    }
    return true;
}

static void evict(braid_session *s, stage_cache *cache, stage **at) {
    stage *gone = *at;
    *at = gone->next;
    cache->count--;
    stage_free(s, gone);
}

static void evict_oldest(braid_session *s, stage_cache *cache) {
    stage **oldest = &cache->first;
    for (stage **at = &cache->first; *at; at = &(*at)->next)
        if ((*at)->used < (*oldest)->used) oldest = at;
    evict(s, cache, oldest);
}

static braid_status stage_key(stage *st, const graph *g, const place *in, bool baked, braid_error *err) {
    st->key_types = arena_array(st->memory, (size_t)g->n_inputs + 1, sizeof *st->key_types);
    st->key_values = arena_array(st->memory, (size_t)g->n_inputs + 1, sizeof *st->key_values);
    st->key_varies = arena_array(st->memory, (size_t)g->n_inputs + 1, sizeof *st->key_varies);
    if (!st->key_types || !st->key_values || !st->key_varies) return error_memory(err);
    for (int32_t i = 0; i < g->n_inputs; i++) {
        st->key_varies[i] = in[i].stride != 0;
        st->key_types[i] = in[i].host->type;
        if (!baked || !in[i].host->data || !stage_bakes(&in[i].host->type)) continue;
        TRY(tensor_new(st->memory, in[i].host->type.type, in[i].host->type.rank, in[i].host->type.dims,
                       &st->key_values[i], err));
        memcpy(st->key_values[i]->data, in[i].host->data, st->key_values[i]->bytes);
    }
    return BRAID_OK;
}

/* Every node output becomes a graph output, after the real ones. */
static braid_status keep_all_values(graph *g, braid_error *err) {
    int32_t *outputs = arena_array(g->memory, (size_t)(g->n_outputs + g->n_values) + 1, sizeof *outputs);
    const char **names = arena_array(g->memory, (size_t)(g->n_outputs + g->n_values) + 1, sizeof *names);
    if (!outputs || !names) return error_memory(err);
    memcpy(outputs, g->outputs, (size_t)g->n_outputs * sizeof *outputs);
    memcpy(names, g->output_names, (size_t)g->n_outputs * sizeof *names);
    for (int32_t v = 0; v < g->n_values; v++) {
        if (g->values[v]->kind != VALUE_NODE || g->values[v]->constant) continue;
        outputs[g->n_outputs] = v;
        names[g->n_outputs++] = g->values[v]->name;
    }
    g->outputs = outputs;
    g->output_names = names;
    return BRAID_OK;
}

static braid_status same_meaning(const graph *a, const graph *b, arena *memory, const char *what, braid_error *err) {
    uint64_t *x, *y;
    TRY(pass_meaning(a, memory, &x, err));
    TRY(pass_meaning(b, memory, &y, err));
    for (int32_t i = 0; i < a->n_outputs; i++)
        if (x[i] != y[i])
            return error_set(err, BRAID_INTERNAL, "%s changed what output '%s' computes", what, a->output_names[i]);
    return BRAID_OK;
}

/* The new graph computes what the old one does, and so does the new one unrolled. */
static braid_status check_reroll(const graph *before, const graph *after, arena *memory, braid_error *err) {
    graph *back;
    TRY(same_meaning(before, after, memory, "re-rolling", err));
    TRY(pass_unroll(after, memory, NULL, &back, err));
    TRY(graph_verify(back, err));
    return same_meaning(before, back, memory, "unrolling", err);
}

static braid_status reroll(const braid_session *s, stage *st, const pass_options *options, braid_error *err) {
    const graph *before = st->g;
    TRY(pass_run("reroll", before, st->memory, options, &st->g, err));
    if (!s->verify) return BRAID_OK;
    arena *memory = arena_new();
    braid_status status = memory ? check_reroll(before, st->g, memory, err) : error_memory(err);
    arena_free(memory);
    return status;
}

static braid_status stage_build(braid_session *s, stage *st, const graph *g, bool baked, braid_error *err) {
    pass_options options = {.report = &st->packs, .device = s->traits, .reroll_any = s->test.reroll_any};
    uint64_t start = clock_ns();
    st->packs.memory = st->memory;
    TRY(specialise(g, st->key_types, st->key_values, st->memory, &st->g, err));
    TRY(fold_all(st->memory, &options, &st->g, err));
    if (!s->no_reroll && s->traits && !s->keep_all) TRY(reroll(s, st, &options, err));
    if (!s->no_fuse && s->traits) TRY(pass_run("fuse", st->g, st->memory, &options, &st->g, err));
    if (s->keep_all && !baked) TRY(keep_all_values(st->g, err)); /* a later stage gives what it is asked for */
    uint64_t folded = clock_ns();
    TRY(compile_stage(s, st, baked, err));
    log_line(&s->log, BRAID_LOG_INFO, "stage of %d nodes: passes %.1f ms, compiled in %.1f ms", st->g->n_nodes,
             (double)(folded - start) / 1e6, (double)(clock_ns() - folded) / 1e6);
    return BRAID_OK;
}

/* Plans are recorded for 1, 8, 64, 128, 256, ... lanes; the exact count is data of a run. */
static uint32_t lane_bucket(const braid_session *s) {
    uint32_t bucket = 1;
    while (bucket < s->lanes && bucket < MANY_LANES) bucket *= 8;
    while (bucket < s->lanes) bucket = bucket > UINT32_MAX / 2 ? UINT32_MAX : bucket * 2;
    return bucket < s->lanes_max ? bucket : s->lanes_max;
}

static stage *find_stage(braid_session *s, const stage_cache *cache, const graph *g, uint32_t bucket, const place *in,
                         bool baked) {
    for (stage *st = cache->first; st; st = st->next) {
        if (!serves(st, bucket) || !same_key(st, g, bucket, in, baked)) continue;
        st->used = ++s->clock;
        return st;
    }
    return NULL;
}

/* The stages of many lanes that a larger one is to take the place of: their memory would lie idle. */
static void evict_smaller(braid_session *s, stage_cache *cache, const graph *g, uint32_t bucket, const place *in,
                          bool baked) {
    for (stage **at = &cache->first; *at;) {
        bool many = (*at)->bucket > MANY_LANES && (*at)->bucket < bucket;
        if (many && same_key(*at, g, bucket, in, baked)) evict(s, cache, at);
        else at = &(*at)->next;
    }
}

static braid_status make_stage(braid_session *s, stage_cache *cache, const graph *g, uint32_t bucket, const place *in,
                               bool baked, stage **out, braid_error *err) {
    arena *memory = arena_new();
    stage *st = memory ? arena_alloc(memory, sizeof *st) : NULL;
    if (!st) {
        arena_free(memory);
        return error_memory(err);
    }
    st->memory = memory;
    st->bucket = bucket;
    braid_status status = stage_key(st, g, in, baked, err);
    if (status == BRAID_OK) status = stage_build(s, st, g, baked, err);
    if (status != BRAID_OK) {
        stage_free(s, st);
        return status;
    }
    if (cache->count == CACHE_STAGES) evict_oldest(s, cache);
    st->used = ++s->clock;
    st->next = cache->first;
    cache->first = st;
    cache->count++;
    *out = st;
    return BRAID_OK;
}

/* The stage for as many lanes as fit, when those of `bucket` do not: it then serves all larger runs, in rounds. */
static braid_status make_smaller(braid_session *s, stage_cache *cache, const graph *g, uint32_t bucket, const place *in,
                                 bool baked, stage **out, braid_error *err) {
    braid_status status = BRAID_DEVICE_MEMORY;
    lane_limit limit = LIMIT_NONE;
    while (status != BRAID_OK) {
        limit = s->limit;
        bucket = s->fit;
        s->fit = 0;
        error_clear(err);
        *out = bucket == 1 ? find_stage(s, cache, g, 1, in, baked) : NULL;
        status = *out ? BRAID_OK : make_stage(s, cache, g, bucket, in, baked, out, err);
        if (status != BRAID_OK && !s->fit) return status;
    }
    (*out)->limit = limit;
    for (int32_t i = 0; i < g->n_inputs; i++) (*out)->key_varies[i] = in[i].stride != 0;
    log_line(&s->log, BRAID_LOG_INFO, "at most %u lanes at once: more do not fit", bucket);
    return BRAID_OK;
}

/* Gives a stage that is run in rounds its twin, or the reason why it has none; what fails is tried again. */
static braid_status settle_overlap(braid_session *s, stage *st, braid_error *err) {
    if (st->limit == LIMIT_NONE || st->overlap != OVERLAP_OPEN) return BRAID_OK;
    bool alone = st->n_segments == 1 && st->segments[0].alone;
    if (alone) TRY(segment_twin(s, st, &st->segments[0], &st->twin, err));
    st->overlap = st->twin ? OVERLAP_YES : alone ? OVERLAP_MEMORY : s->profile ? OVERLAP_PROFILE : OVERLAP_PARTS;
    return BRAID_OK;
}

static braid_status find_or_make(braid_session *s, stage_cache *cache, const graph *g, const place *in, bool baked,
                                 stage **out, braid_error *err) {
    uint32_t bucket = lane_bucket(s);
    if ((*out = find_stage(s, cache, g, bucket, in, baked)) != NULL) return BRAID_OK;
    s->fit = 0;
    evict_smaller(s, cache, g, bucket, in, baked);
    braid_status status = make_stage(s, cache, g, bucket, in, baked, out, err);
    return status != BRAID_OK && s->fit ? make_smaller(s, cache, g, bucket, in, baked, out, err) : status;
}

braid_status stage_get(braid_session *s, stage_cache *cache, const graph *g, const place *in, bool baked, stage **out,
                       braid_error *err) {
    TRY(find_or_make(s, cache, g, in, baked, out, err));
    return settle_overlap(s, *out, err);
}

/* ----------------------------------------------------------------------------------------------- running */

static braid_status place_inputs(const graph *g, const place *in, place **out, arena *memory, braid_error *err) {
    place *places = arena_array(memory, (size_t)g->n_values + 1, sizeof *places);
    if (!places) return error_memory(err);
    for (int32_t i = 0; i < g->n_inputs; i++) places[g->inputs[i]] = in[i];
    *out = places;
    return BRAID_OK;
}

static braid_status take_outputs(stage *st, const place *places, place *out, braid_error *err) {
    const graph *g = st->g;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        out[i] = places[g->outputs[i]];
        tensor *constant = g->values[g->outputs[i]]->constant;
        if (!constant || (out[i].host && out[i].host->data)) continue;
        TRY(tensor_load(constant, st->memory, err));
        out[i] = (place){.host = constant};
    }
    return BRAID_OK;
}

braid_status stage_run(braid_session *s, stage *st, const place *in, place *out, arena *memory, braid_error *err) {
    place *places = NULL;
    TRY(place_inputs(st->g, in, &places, memory, err));
    for (int32_t i = 0; i < st->n_segments; i++) TRY(segment_run(s, st, &st->segments[i], places, memory, err));
    if (st->rest) TRY(rest_run(s, st, places, memory, err));
    return take_outputs(st, places, out, err);
}

braid_status stage_begin(braid_session *s, stage *st, segment *seg, const place *in, place **places, arena *memory,
                         braid_error *err) {
    TRY(place_inputs(st->g, in, places, memory, err));
    return segment_begin(s, seg, *places, err);
}

braid_status stage_end(braid_session *s, stage *st, segment *seg, place *places, place *out, arena *memory,
                       braid_error *err) {
    TRY(segment_end(s, st, seg, places, memory, err));
    return take_outputs(st, places, out, err);
}
