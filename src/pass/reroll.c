/*
 * reroll: subgraphs that are repeated side by side become one body over copies (ir/graph.h).
 *
 *   colours ─► seeds ─► packs grow along edges ─► proven, acyclic, paying ─► new graph
 *
 * Copies may share constants (one tensor or equal bytes), have their own, stand in any order under any names, share a
 * prefix or suffix, take parts of one input or meet in one node. Random operators are never rolled: each keeps its own
 * sequence.
 *
 * Requires: sorted, inferred; nodes whose shapes are not static, or depend on such, stay as they are. Ensures: every
 * type as before; pass_unroll gives the graph back, up to order and names. Time and memory are linear in nodes and
 * edges up to logarithms: growing has a budget.
 */
#include "pass/reroll.h"

#include <stdarg.h>
#include <stdio.h>

enum { NOTES_MAX = 64 };

void *reroll_grow(arena *memory, void *old, int32_t count, int32_t *capacity, size_t size) {
    if (count < *capacity) return old;
    if (count > INT32_MAX / 2) return NULL;
    int32_t wanted = *capacity ? *capacity * 2 : 16;
    void *now = arena_array(memory, (size_t)wanted, size);
    if (!now) return NULL;
    if (count) memcpy(now, old, (size_t)count * size);
    *capacity = wanted;
    return now;
}

void reroll_note(const reroller *r, const char *format, ...) {
    reroll_report *to = r->report;
    if (!to || to->n_notes == NOTES_MAX) return;
    char line[256];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    const char **grown = reroll_grow(to->memory, to->notes, to->n_notes, &to->cap_notes, sizeof *grown);
    const char *copy = arena_string(to->memory, line, strlen(line));
    if (!grown || !copy) return; /* a report may be short */
    to->notes = grown;
    for (int32_t i = 0; i < to->n_notes; i++)
        if (strcmp(to->notes[i], copy) == 0) return;
    to->notes[to->n_notes++] = copy;
}

static void report_bundle(const reroller *r, int32_t b) {
    reroll_report *to = r->report;
    const bundle *k = &r->bundles[b];
    reroll_bundle *grown = reroll_grow(to->memory, to->bundles, to->n_bundles, &to->cap_bundles, sizeof *grown);
    if (!grown) return;
    to->bundles = grown;
    int32_t first = INT32_MAX;
    for (int32_t p = k->first; p < k->end; p++)
        if (r->packs[p].bundle == b && r->packs[p].members[0] < first) first = r->packs[p].members[0];
    char title[256];
    const char *name = arena_format(to->memory, "%s", node_title(reroll_node(r, first), title));
    to->bundles[to->n_bundles++] =
        (reroll_bundle){k->columns, k->n_packs, k->shared, k->stacked, k->gathered, name ? name : ""};
}

braid_status pass_reroll(const graph *g, arena *memory, const pass_options *o, graph **out, braid_error *err) {
    reroller r = {.g = g, .memory = arena_new(), .report = o ? o->report : NULL, .any = o && o->reroll_any, .err = err};
    if (!r.memory) return error_memory(err);
    /* A CPU's dispatches are dear because threads are woken, which what re-rolling saves has no part in. */
    r.figures = device_figures_of(o && o->device && !o->device->software ? o->device : NULL);
    r.pack_of = arena_array(r.memory, (size_t)g->n_nodes + 1, sizeof *r.pack_of);
    r.column_of = arena_array(r.memory, (size_t)g->n_nodes + 1, sizeof *r.column_of);
    braid_status status = r.pack_of && r.column_of ? BRAID_OK : error_memory(err);
    for (int32_t i = 0; i < g->n_nodes && status == BRAID_OK; i++) r.pack_of[i] = -1;
    if (status == BRAID_OK) status = reroll_colours(&r);
    if (status == BRAID_OK) status = reroll_seed_all(&r);
    if (status == BRAID_OK) status = reroll_prove(&r);
    if (status == BRAID_OK) status = reroll_emit(&r, memory, out);
    for (int32_t b = 0; b < r.n_bundles && status == BRAID_OK && r.report; b++)
        if (r.bundles[b].n_packs) report_bundle(&r, b);
    arena_free(r.memory);
    return status;
}

braid_status pass_reroll_any(const graph *g, arena *memory, const pass_options *o, graph **out, braid_error *err) {
    pass_options any = o ? *o : (pass_options){0};
    any.reroll_any = true;
    return pass_reroll(g, memory, &any, out, err);
}
