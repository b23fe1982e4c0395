/*
 * reroll.h: what the files of the re-roll pass share. reroll.c says what it does.
 *
 *   bundle ── columns 0 .. n-1: the copies
 *         └─ packs: n nodes that do the same, one of each column; a node is in one pack at most
 */
#ifndef BRAID_REROLL_H
#define BRAID_REROLL_H

#include "pass/copy.h"

typedef struct pack {
    int32_t bundle;
    int32_t *members; /* node of each column */
} pack;

typedef struct bundle {
    int32_t columns, n_packs;          /* n_packs: those that are left */
    int32_t first, end;                /* packs [first, end) of the reroller belong to it or were dropped (bundle -1) */
    int32_t shared, stacked, gathered; /* operands, counted when the graph is made */
} bundle;

typedef struct use { /* of a value by a node */
    int32_t node, slot;
} use;

typedef struct reroller {
    const graph *g;
    arena *memory;
    reroll_report *report; /* NULL: nobody asks */
    bool any;              /* also what does not pay */
    device_figures figures;
    braid_error *err;
    uint64_t *own;           /* node: hash of what members must share; 0: never rolled */
    uint64_t *colour, *far;  /* node: own and its surroundings', to a small and to a larger radius */
    int32_t *depth, *height; /* node: longest way from any source, to any sink */
    int32_t *output_of;      /* value: which output of its maker it is */
    int32_t *use_start;      /* value v is used by uses[use_start[v] .. use_start[v + 1]) */
    use *uses;
    int32_t *pack_of, *column_of; /* node; -1: in none */
    pack *packs;
    int32_t n_packs, cap_packs;
    bundle *bundles;
    int32_t n_bundles, cap_bundles;
    uint64_t budget; /* visits of nodes that growing may still take */
} reroller;

static inline const node *reroll_node(const reroller *r, int32_t i) {
    return r->g->nodes[i];
}
/* The node that makes a value; -1: none. */
static inline int32_t reroll_maker(const graph *g, int32_t v) {
    return v >= 0 && g->values[v]->kind == VALUE_NODE && !g->values[v]->constant ? g->values[v]->producer : -1;
}
/* Room for one more in an arena array that doubles; NULL on failure. */
void *reroll_grow(arena *, void *old, int32_t count, int32_t *capacity, size_t size);
void reroll_drop(reroller *, int32_t pack);
/* Hash of a constant's beginning. */
uint64_t reroll_print(const tensor *);
/* Adds a line to the report. */
void reroll_note(const reroller *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* reroll_colour.c: own, colour, depth, height and uses. */
braid_status reroll_colours(reroller *);
/* Are both nodes the same in what `own` hashes. */
bool reroll_alike(const graph *, const node *, const node *);
/* reroll_grow.c: fills packs and bundles from seeds. */
braid_status reroll_seed_all(reroller *);
/* reroll_prove.c: drops packs that are not exact, on a cycle, or do not pay; orders the columns. */
braid_status reroll_prove(reroller *);
/* What operand `slot` of a pack is to all its columns, before anything is rewritten. */
typedef enum operand_kind { OPERAND_SHARED, OPERAND_LANE, OPERAND_CONSTANTS, OPERAND_GATHERED } operand_kind;
operand_kind reroll_operand(const reroller *, const pack *, int slot);
/* reroll_emit.c: the new graph. */
braid_status reroll_emit(reroller *, arena *memory, graph **out);

#endif
