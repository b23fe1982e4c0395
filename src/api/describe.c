/*
 * describe.c: what the engine did with a model, as text.
 */
#include "api/session.h"

#include <stdio.h>

/* "1 step", "2 steps". */
static void add_count(text *t, uint64_t n, const char *one, const char *many) {
    text_add(t, "%llu %s", (unsigned long long)n, n == 1 ? one : many);
}

static void describe_device_segment(const segment *seg, text *t) {
    const plan *p = seg->p;
    text_add(t, "  device: ");
    add_count(t, (uint64_t)seg->g->n_nodes, "node, ", "nodes, ");
    add_count(t, (uint64_t)p->n_steps, "step in ", "steps in ");
    add_count(t, (uint64_t)p->n_dispatches, "dispatch, ", "dispatches, ");
    add_count(t, (uint64_t)p->n_waves, "wave, ", "waves, ");
    add_count(t, (uint64_t)(p->n_waves ? p->n_waves - 1 : 0), "barrier\n", "barriers\n");
    text_add(t, "  memory: arena %llu bytes%s in ", (unsigned long long)p->arena_bytes,
             seg->bucket > 1 ? " a lane" : "");
    add_count(t, (uint64_t)p->n_blocks, "block", "blocks");
    text_add(t, " (lower bound %llu), constants %llu, rows %llu\n", (unsigned long long)p->arena_bound,
             (unsigned long long)p->const_bytes, (unsigned long long)p->rows_bytes);
}

/* How a step goes about several lanes, and why so. */
static void describe_lanes(const segment *seg, const step *s, text *t) {
    if (seg->bucket == 1) return;
    if (s->once) text_add(t, ": once, nothing that differs between lanes reaches it");
    else if (s->folded) text_add(t, ": folded, all lanes as one problem");
    else text_add(t, ": lane grid, %s", s->apart ? s->apart : "its kernel does not fold");
}

static void describe_steps(const segment *seg, text *t) {
    const plan *p = seg->p;
    for (int32_t i = 0; i < p->n_dispatches; i++) {
        const plan_dispatch *d = &p->dispatches[i];
        const step *s = p->steps[p->order[d->first_step]];
        const node *n = seg->g->nodes[s->node];
        char copies[32] = "";
        if (d->copies > 1) snprintf(copies, sizeof copies, " x %u copies", d->copies);
        text_add(t, "    wave %d: %s, ", d->wave, s->kernel);
        add_count(t, (uint64_t)d->n_steps, "row", "rows");
        text_add(t, "%s, ", copies);
        add_count(t, d->tiles, "tile", "tiles");
        text_add_shown(t, ": %s%s '%s'%s", n->type, n->epilogue ? " (fused)" : "", n->name,
                       d->n_steps > 1 ? " ..." : "");
        describe_lanes(seg, s, t);
        text_add(t, "\n");
    }
}

static void describe_packs(const stage *st, text *t) {
    int32_t rolled = 0;
    for (int32_t i = 0; i < st->g->n_nodes; i++) rolled += node_copies(st->g->nodes[i]) > 1;
    for (int32_t i = 0; i < st->packs.n_bundles; i++) {
        const reroll_bundle *b = &st->packs.bundles[i];
        text_add(t, "  re-rolled: %d copies of ", b->copies);
        add_count(t, (uint64_t)b->nodes, "node", "nodes");
        text_add_shown(t, ", from %s on; operands shared %d, stacked %d, gathered %d", b->first, b->shared,
                       b->stacked, b->gathered);
        text_add(t, "\n");
    }
    if (st->packs.n_bundles)
        text_add(t, "  %d node%s of several copies after fusion\n", rolled, rolled == 1 ? "" : "s");
    for (int32_t i = 0; i < st->packs.n_notes; i++) {
        text_add_shown(t, "  left apart: %s", st->packs.notes[i]);
        text_add(t, "\n");
    }
}

static bool host_varies(const stage *st, const node *n) {
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && st->varies[n->out[k]]) return true;
    return false;
}

static const char *overlap_text(overlap why) {
    switch (why) {
    case OVERLAP_YES:
        return "rounds overlap: one is packed while one is computed";
    case OVERLAP_MEMORY:
        return "rounds do not overlap: no room for inputs and outputs twice";
    case OVERLAP_PROFILE:
        return "rounds do not overlap: each is timed by itself";
    case OVERLAP_OPEN:
    case OVERLAP_PARTS:
        break;
    }
    return "rounds do not overlap: there are host steps, or shapes that depend on data";
}

/* How the lanes that were asked for are run: at once, in rounds, one by one. */
static void describe_rounds(const braid_session *s, const stage *st, text *t) {
    uint32_t rounds = s->asked / st->bucket + (s->asked % st->bucket != 0);
    if (s->asked <= 1) return; /* 0: none planned yet */
    if (rounds == 1) {
        text_add(t, "%u lanes at once, room for %u\n", s->asked, st->bucket);
        return;
    }
    text_add(t, "%u lanes in %u rounds of %u: ", s->asked, rounds, st->bucket);
    if (st->limit == LIMIT_BUDGET) text_add(t, "%.1f MiB budget", (double)s->memory_budget / (double)(1u << 20));
    else text_add(t, "the device has no more memory");
    text_add(t, "; %s\n", overlap_text(st->overlap));
}

static void describe_stage(const stage *st, int depth, text *t) {
    describe_packs(st, t);
    for (int32_t i = 0; i < st->n_segments; i++) {
        const segment *seg = &st->segments[i];
        text_add(t, "phase %d.%d\n", depth, i);
        if (!seg->on_host) {
            describe_device_segment(seg, t);
            describe_steps(seg, t);
            continue;
        }
        for (int32_t k = 0; k < seg->n_nodes; k++) {
            const node *n = st->g->nodes[seg->nodes[k]];
            char title[256];
            bool settled = n->n_out > 0 && n->out[0] >= 0 && tensor_type_static(&st->g->values[n->out[0]]->type);
            text_add_shown(t, "  host: %s: %s", node_title(n, title),
                           settled ? "no kernel for these types on this device"
                                   : "the shape of its result depends on data");
            if (st->bucket > 1)
                text_add(t, ": %s", host_varies(st, n) ? "lane by lane"
                                                       : "once, nothing that differs between lanes reaches it");
            text_add(t, "\n");
        }
    }
    if (st->rest_stages.first && st->bucket > 1 && st->rest_stages.first->bucket == 1)
        text_add(t, "then lane by lane: shapes depend on data\n");
    if (st->rest && !st->rest_stages.first) {
        text_add(t, "then ");
        add_count(t, (uint64_t)st->rest->n_nodes, "node, planned when its shape is known\n",
                  "nodes, planned when their shapes are known\n");
    }
    if (st->rest_stages.first) describe_stage(st->rest_stages.first, depth + 1, t);
}

braid_status braid_session_describe(const braid_session *s, char **out, braid_error *err) {
    error_clear(err);
    if (!s || !out) return error_set(err, BRAID_ARGUMENT, "braid_session_describe: a pointer is NULL");
    text t = {0};
    pthread_mutex_lock((pthread_mutex_t *)&s->lock);
    const stage *last = session_stage(s);
    if (!last) text_add(&t, "not planned yet: an input shape is unknown until the first run\n");
    else describe_rounds(s, last, &t);
    if (last) describe_stage(last, 0, &t);
    if (!t.data) text_add(&t, "%s", "");
    pthread_mutex_unlock((pthread_mutex_t *)&s->lock);
    if (t.failed) {
        text_free(&t);
        return error_memory(err);
    }
    *out = t.data;
    return BRAID_OK;
}
