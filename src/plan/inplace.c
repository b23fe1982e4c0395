/*
 * inplace.c: elementwise results that take their operand's bytes.
 *
 * A step that reads element i of an operand only where it writes element i of its result (step_operand.dense) may do so
 * in the operand's own bytes, when nobody else reads these: the step would be the last to touch them in any schedule,
 * so no dependency is added. Both storages become one, the result's. Done when memory is short: it costs no time, but
 * what is in place can share no bytes with others in between.
 */
#include "plan/plan.h"

typedef struct use {
    int32_t first, last; /* steps that touch the storage */
    int32_t readers;     /* steps that read it */
} use;

static use *list_uses(const plan *p) {
    use *uses = arena_array(p->memory, (size_t)p->n_storages + 1, sizeof *uses);
    if (!uses) return NULL;
    for (int32_t i = 0; i < p->n_storages; i++) uses[i].first = -1;
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i]->n_operands; k++) {
            const step_operand *o = &p->steps[i]->operands[k];
            use *u = &uses[plan_root(p, o->storage)];
            bool counted = false;
            for (int j = 0; j < k; j++) {
                const step_operand *other = &p->steps[i]->operands[j];
                counted = counted ||
                          (plan_root(p, other->storage) == plan_root(p, o->storage) && other->access & ACCESS_READ);
            }
            if (u->first < 0) u->first = i;
            u->last = i;
            if (o->access & ACCESS_READ && !counted) u->readers++;
        }
    return uses;
}

/* The operand is the whole of a storage that owns its bytes. */
static bool whole(const plan *p, const step *s, const step_operand *o) {
    const storage *st = &p->storages[plan_root(p, o->storage)];
    return plan_offset(p, o->storage) == 0 && o->offset == 0 && o->bytes == st->one &&
           st->copies == (int32_t)s->copies && plan_operand_stride(p, s, o) == (s->copies > 1 ? st->copy_stride : 0);
}

static bool fits(const plan *p, const use *uses, int32_t id, const step_operand *from, const step_operand *to) {
    const step *s = p->steps[id];
    int32_t a = plan_root(p, from->storage), b = plan_root(p, to->storage);
    const storage *x = &p->storages[a], *y = &p->storages[b];
    if (a == b || !from->dense || from->access != ACCESS_READ || to->access != ACCESS_WRITE) return false;
    if (x->kind != STORAGE_ARENA || (y->kind != STORAGE_ARENA && y->kind != STORAGE_OUTPUT) || x->fixed || y->fixed)
        return false;
    if (!whole(p, s, from) || !whole(p, s, to) || x->one != y->one || x->once != y->once || s->once != y->once)
        return false;
    if (x->stride != y->stride || x->copy_stride != y->copy_stride) return false;
    if (uses[a].readers != 1 || uses[a].last != id || uses[b].first != id) return false;
    for (int k = 0; k < s->n_operands; k++) {
        const step_operand *o = &s->operands[k];
        int32_t root = plan_root(p, o->storage);
        if ((root == a && (!o->dense || !whole(p, s, o))) || (root == b && o != to)) return false;
    }
    return true;
}

static bool merge_first(plan *p, const use *uses, int32_t id) {
    const step *s = p->steps[id];
    for (int k = 0; k < s->n_operands; k++)
        for (int i = 0; i < s->n_operands; i++) {
            if (!fits(p, uses, id, &s->operands[i], &s->operands[k])) continue;
            int32_t from = plan_root(p, s->operands[i].storage);
            p->storages[from].alias = plan_root(p, s->operands[k].storage);
            p->storages[from].alias_offset = 0;
            return true;
        }
    return false;
}

braid_status plan_in_place(plan *p, int32_t *count, braid_error *err) {
    const use *uses = list_uses(p);
    *count = 0;
    if (!uses) return error_memory(err);
    /* Forwards: what a step reads and makes has not been merged into anything yet, so `uses` holds for it. */
    for (int32_t i = 0; i < p->n_steps; i++) *count += merge_first(p, uses, i);
    if (*count) plan_shorten(p);
    return BRAID_OK;
}
