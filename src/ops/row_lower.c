/*
 * row_lower.c: layouts of rows on a device.
 */
#include "ops/row_lower.h"

#include "kernels/lib/epilogue.h"
#include "ops/map.h"

bool row_is_float(braid_type t) { return t == BRAID_FLOAT32 || t == BRAID_FLOAT16 || t == BRAID_BFLOAT16; }

uint32_t row_pow2(uint64_t at_least) {
    uint32_t p = 1;
    while (p < at_least && p < 1u << 30) p *= 2;
    return p;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t greater_of(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

static bool pack_axes(const row_axis *axes, int n, uint *sizes, uint *strides) {
    if (n > ROWS_AXES) return false;
    sizes[0] = 1; /* a kernel finds one axis at least */
    for (int d = 0; d < n; d++) {
        if (axes[d].size > INT32_MAX || axes[d].stride > INT32_MAX) return false;
        sizes[d] = (uint)axes[d].size;
        strides[d] = (uint)axes[d].stride;
    }
    return true;
}

bool row_pack(const row_view *v, rows_view *out) {
    int64_t span = 1;
    *out = (rows_view){.rows = (uint)v->rows, .count = (uint)v->length};
    for (int d = 0; d < v->n_reduce; d++) span += (v->reduce[d].size - 1) * v->reduce[d].stride;
    if (v->rows > INT32_MAX || v->length > INT32_MAX || span > INT32_MAX) return false;
    return pack_axes(v->keep, v->n_keep, out->keep_size, out->keep_stride) &&
           pack_axes(v->reduce, v->n_reduce, out->reduce_size, out->reduce_stride);
}

static bool contiguous(const row_view *v) { return v->n_reduce > 0 && v->reduce[v->n_reduce - 1].stride == 1; }

bool row_vector(const row_view *v) {
    bool fits = contiguous(v) && v->length % 4 == 0;
    for (int d = 0; d + 1 < v->n_reduce; d++)
        fits = fits && v->reduce[d].stride == v->reduce[d + 1].stride * v->reduce[d + 1].size;
    for (int d = 0; d < v->n_keep; d++) fits = fits && v->keep[d].stride % 4 == 0;
    return fits;
}

enum { LITTLE_WORK = 1 << 20, LITTLE_VALUES = 16 };

/* Elements per invocation that balance idle invocations against short loops. */
static uint64_t share(const device_traits *d, const row_view *v, bool vector, uint32_t keep) {
    if (d->software) return greater_of(4, (uint64_t)v->length / d->subgroup);
    return !keep && vector ? 16 : 8;
}

/* Short rows, and not many: a subgroup each, with registers for the longest of them. What such a step takes is latency,
   and rows of all lengths share a pipeline, hence a dispatch. */
static bool layout_little(const device_traits *d, const row_view *v, uint32_t keep, row_layout *out) {
    if (d->software || keep < LITTLE_VALUES || (uint64_t)v->rows * (uint64_t)v->length >= LITTLE_WORK) return false;
    if ((uint64_t)v->length > LITTLE_VALUES * d->subgroup) return false;
    out->team = d->subgroup;
    out->group = (uint32_t)greater_of(out->team, 128);
    out->values = LITTLE_VALUES;
    return true;
}

/* Rows in memory order: neighbouring invocations read neighbouring elements of one row. */
static void layout_adjacent(const device_traits *d, const row_view *v, bool vector, uint32_t keep, row_layout *out) {
    uint64_t width = vector ? 4 : 1, units = divide_up((uint64_t)v->length, width);
    if (layout_little(d, v, keep, out)) return;
    uint32_t most = d->software ? d->subgroup : keep ? (uint32_t)smaller(d->max_invocations, 1024) : 256;
    uint32_t team = row_pow2(divide_up(units * width, share(d, v, vector, keep)));
    out->team = team > most ? most : team;
    out->group = (uint32_t)greater_of(out->team, d->software ? 64 : 128);
    out->values = (uint32_t)smaller(divide_up(units, out->team) * width, UINT32_MAX);
}

/* Rows side by side: neighbouring invocations read one place of neighbouring rows. */
static void layout_columns(const device_traits *d, const row_view *v, uint32_t keep, row_layout *out) {
    uint64_t length = (uint64_t)v->length, rows = (uint64_t)v->rows;
    out->group = d->software ? 64 : 128;
    out->team = 1;
    if (!d->software && length > 8) {
        uint32_t columns = row_pow2(smaller(rows, 32));
        out->group = length > 512 || (keep && length > (uint64_t)keep * 8) ? 512 : 256;
        out->team = (uint32_t)smaller(out->group / columns, row_pow2(length / 4));
    }
    out->values = (uint32_t)smaller(divide_up(length, out->team), UINT32_MAX);
}

void row_layout_make(const device_traits *d, const row_view *v, bool vector, uint32_t keep, row_layout *out) {
    *out = (row_layout){.adjacent = contiguous(v), .vector = vector};
    if (out->adjacent) layout_adjacent(d, v, vector, keep, out);
    else layout_columns(d, v, keep, out);
    out->group = (uint32_t)greater_of(out->group, d->subgroup);
    if (out->values > keep) out->values = 0;
    out->tiles = divide_up((uint64_t)v->rows, out->group / out->team);
}

void row_layout_tight(const row_view *v, row_layout *out) {
    uint64_t width = out->vector ? 4 : 1, units = divide_up((uint64_t)v->length, width);
    if (out->values) out->values = (uint32_t)smaller(out->values, divide_up(units, out->team) * width);
}

void row_layout_many(const lowering *l, const row_view *v, row_layout *out) {
    if ((uint64_t)v->rows * (uint64_t)v->length >= divide_up(LITTLE_WORK, l->problems)) row_layout_tight(v, out);
}

void row_layout_sequential(const device_traits *d, const row_view *v, row_layout *out) {
    row_layout_make(d, v, false, 0, out);
    if (out->adjacent) return;
    out->team = 1;
    out->group = (uint32_t)greater_of(d->subgroup, 64);
    out->tiles = divide_up((uint64_t)v->rows, out->group);
}

braid_status row_layout_spec(lowering *l, step *s, const row_layout *a, const row_view *v) {
    TRY(lower_spec(l, s, SPEC_TEAM, a->team));
    TRY(lower_spec(l, s, SPEC_LAYOUT, a->adjacent));
    TRY(lower_spec(l, s, SPEC_KEEP, v->n_keep ? (uint32_t)v->n_keep : 1));
    TRY(lower_spec(l, s, SPEC_REDUCE, v->n_reduce ? (uint32_t)v->n_reduce : 1));
    TRY(lower_spec(l, s, SPEC_VALUES, a->values));
    return lower_spec(l, s, SPEC_VECTOR, a->vector);
}

static uint64_t last_operand(const step *s) { return s->n_operands ? s->operands[s->n_operands - 1].bytes : 0; }

braid_status row_read(lowering *l, step *s, size_t at, int in) {
    int before = s->n_operands;
    TRY(lower_operand_in(l, s, at, in));
    if (s->n_operands > before) s->bytes += last_operand(s);
    return BRAID_OK;
}

braid_status row_write(lowering *l, step *s, size_t at, int out) {
    TRY(lower_operand_out(l, s, at, out));
    s->bytes += last_operand(s);
    return BRAID_OK;
}

const tensor_type *row_in(const lowering *l, int i) {
    bool own = !l->node->epilogue || i < l->node->n_root;
    return own ? lower_in(l, i) : NULL;
}

static bool fits_cut(const lowering *l, int cut) {
    const tensor_type *extra[EPILOGUE_INPUTS], *out = lower_out(l, 0);
    int n = l->node->n_in - l->node->n_root;
    if (n > EPILOGUE_INPUTS) return false;
    for (int i = 0; i < n; i++)
        if (!(extra[i] = lower_in(l, l->node->n_root + i))) return false;
    return map_epilogue_fits(l->node->epilogue, out->type, out, n, extra, 0, cut);
}

braid_status row_epilogue(lowering *l, step *s, size_t at_cols, size_t at_e) {
    const tensor_type *out = lower_out(l, 0);
    uint cols = 1;
    int64_t count;
    if (!l->node->epilogue) return BRAID_OK;
    if (!tensor_type_count(out, &count) || count > INT32_MAX) return BRAID_UNSUPPORTED;
    int cut = out->rank;
    while (cut >= 0 && !fits_cut(l, cut)) cut--;
    if (cut < 0) return BRAID_UNSUPPORTED;
    for (int d = cut; d < out->rank; d++) cols *= (uint)out->dims[d];
    memcpy(s->row + at_cols, &cols, sizeof cols);
    return map_lower_epilogue(l, s, at_e, 0, cut);
}
