/*
 * encode.c: writes the row table. Rows are immutable: everything that changes between runs is behind bindings.
 *
 * Placement is in bytes of one lane; for L lanes every offset and size grows by L, so what was disjoint stays disjoint.
 * What is there once for all lanes has its L-th part as size, and no stride.
 */
#include "plan/plan.h"

static operand encode_operand(const plan *p, const struct step *of, const step_operand *o, uint32_t lanes) {
    const storage *s = &p->storages[plan_root(p, o->storage)];
    uint64_t inside = plan_offset(p, o->storage) + o->offset;
    operand e = {.base = inside, .lane_stride = s->stride, .kind = OPERAND_BINDING};
    switch (s->kind) {
    case STORAGE_CONST:
        e = (operand){.base = s->offset + inside, .kind = OPERAND_DIRECT};
        break;
    case STORAGE_INPUT: /* the binding carries the caller's stride */
        e.index = plan_binding_input(p, s->index);
        e.lane_stride = 0;
        break;
    case STORAGE_OUTPUT:
        e.index = plan_binding_output(p, s->index);
        e.lane_stride = 0;
        break;
    case STORAGE_ARENA:
    case STORAGE_NONE:
        e.base += s->offset * lanes;
        if (s->once) e.lane_stride = 0;
        e.index = s->index;
        break;
    }
    e.copy_stride = plan_operand_stride(p, of, o);
    return e;
}

braid_status plan_encode(plan *p, uint32_t lanes, braid_error *err) {
    if (!(p->rows = arena_alloc(p->memory, p->rows_bytes + 8))) return error_memory(err);
    for (int32_t i = 0; i < p->n_dispatches; i++) {
        const plan_dispatch *d = &p->dispatches[i];
        uint8_t *row = p->rows + d->rows_offset;
        uint32_t first_tile = 0;
        for (int32_t k = 0; k < d->n_steps; k++, row += d->row_bytes) {
            const step *s = p->steps[p->order[d->first_step + k]];
            memcpy(row, s->row, s->row_bytes);
            row_header header = {first_tile, (uint)s->tiles, p->first_copy[s->node], 0};
            memcpy(row, &header, sizeof header);
            for (int j = 0; j < s->n_operands; j++) {
                operand e = encode_operand(p, s, &s->operands[j], lanes);
                memcpy(row + s->operands[j].at, &e, sizeof e);
            }
            first_tile += (uint32_t)s->tiles;
        }
    }
    return BRAID_OK;
}
