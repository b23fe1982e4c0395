/*
 * lower.c: asks each node's row for its steps; the lower_* helpers of ops/op.h.
 */
#include "plan/plan.h"

enum { STORAGE_ALIGN = 256, PLACE_ALIGN = 16 /* what kernels' vector loads need */ };

static void *grow(arena *memory, void *old, int32_t count, int32_t *capacity, size_t size) {
    if (count < *capacity) return old;
    int32_t wanted = *capacity ? *capacity * 2 : 64;
    void *now = arena_array(memory, (size_t)wanted, size);
    if (!now) return NULL;
    if (count) memcpy(now, old, (size_t)count * size);
    *capacity = wanted;
    return now;
}

/* `one` bytes for each copy. Placement grows by the number of lanes: what is there once for all of them needs that part
   of its bytes there. */
static int32_t storage_add(plan *p, storage_kind kind, uint64_t one, int32_t copies, bool once) {
    storage *grown = grow(p->memory, p->storages, p->n_storages, &p->cap_storages, sizeof *grown);
    size_t copy_stride = 0, bytes, stride;
    if (!grown || (copies > 1 && !size_align(one, PLACE_ALIGN, &copy_stride))) return -1;
    if (!size_mul(copy_stride, (size_t)copies - 1, &bytes) || !size_add(bytes, one, &bytes)) return -1;
    if (!size_align(once ? bytes / p->lanes + (bytes % p->lanes != 0) : bytes, STORAGE_ALIGN, &stride)) return -1;
    p->storages = grown;
    p->storages[p->n_storages] = (storage){.kind = kind,
                                           .alias = p->n_storages,
                                           .bytes = bytes,
                                           .one = one,
                                           .copies = copies,
                                           .copy_stride = copy_stride,
                                           .stride = stride,
                                           .once = once,
                                           .first = INT32_MAX,
                                           .last = -1};
    return p->n_storages++;
}

/* In a plan for one lane nothing counts as shared. */
static bool value_once(const plan *p, int32_t v) { return p->lanes > 1 && !p->varies[v]; }

static bool node_once(const plan *p, const node *n) {
    bool once = p->lanes > 1 && !(n->op && (n->op->flags & OP_RANDOM));
    for (int k = 0; once && k < n->n_in; k++) once = n->in[k] < 0 || value_once(p, n->in[k]);
    return once;
}

int32_t plan_root(const plan *p, int32_t s) {
    while (p->storages[s].alias != s) s = p->storages[s].alias;
    return s;
}

uint64_t plan_offset(const plan *p, int32_t s) {
    uint64_t offset = 0;
    for (; p->storages[s].alias != s; s = p->storages[s].alias) offset += p->storages[s].alias_offset;
    return offset;
}

uint64_t plan_copy_stride(const plan *p, int32_t s) {
    if (p->storages[s].copies == 1) return 0;
    while (!p->storages[s].strided && p->storages[s].alias != s) s = p->storages[s].alias;
    return p->storages[s].copy_stride;
}

uint64_t plan_operand_stride(const plan *p, const step *s, const step_operand *o) {
    return s->copies > 1 ? plan_copy_stride(p, o->storage) : 0;
}

/* Makes s and all on the way point straight to the root, so that long chains of views cost nothing. */
static int32_t shorten(plan *p, int32_t s) {
    int32_t root = plan_root(p, s);
    uint64_t offset = plan_offset(p, s);
    while (p->storages[s].alias != s) {
        storage *now = &p->storages[s];
        uint64_t step_offset = now->alias_offset;
        s = now->alias;
        now->alias = root;
        now->alias_offset = offset;
        offset -= step_offset;
    }
    return root;
}

void plan_shorten(plan *p) {
    for (int32_t i = 0; i < p->n_storages; i++) shorten(p, i);
}

/* ------------------------------------------------------------------------------------------------ helpers */

const tensor_type *lower_type(const lowering *l, int32_t v) { return &l->g->values[v]->type; }

braid_status lower_constant_in(lowering *l, int i, const tensor **out) {
    *out = NULL;
    if (i >= l->node->n_in || l->node->in[i] < 0) return BRAID_OK;
    tensor *t = l->g->values[l->node->in[i]]->constant;
    if (!t) return BRAID_OK;
    TRY(tensor_load(t, l->memory, l->err));
    *out = t;
    return BRAID_OK;
}

bool lower_shared(const lowering *l, int32_t id) {
    const plan *p = l->planner;
    const storage *s = id >= 0 ? &p->storages[plan_root(p, id)] : NULL;
    return s && (s->kind == STORAGE_CONST || s->once) && plan_copy_stride(p, id) == 0;
}

int32_t lower_scratch(lowering *l, uint64_t bytes) {
    return storage_add(l->planner, STORAGE_ARENA, bytes, node_copies(l->node), l->once);
}

/* The table of storages with an operator's content holds storage + 1 by hash; open addressing, at most half full. The
   storages of a node that turned out to have no kernel are gone: their numbers may be another's now. */
static const storage *constant_at(const plan *p, uint32_t at) {
    const storage *s = p->constants[at] <= p->n_storages ? &p->storages[p->constants[at] - 1] : NULL;
    return s && s->content ? s : NULL;
}

static bool grow_constants(plan *p) {
    if (p->n_constants * 2 < p->cap_constants) return true;
    int32_t wanted = p->cap_constants ? p->cap_constants * 2 : 64;
    int32_t *table = arena_array(p->memory, (size_t)wanted, sizeof *table);
    if (!table) return false;
    for (int32_t i = 0; i < p->cap_constants; i++) {
        const storage *s = p->constants[i] ? constant_at(p, (uint32_t)i) : NULL;
        if (!s) continue;
        uint32_t at = (uint32_t)hash_bytes(0, s->content, s->bytes) & (uint32_t)(wanted - 1);
        while (table[at]) at = (at + 1) & (uint32_t)(wanted - 1);
        table[at] = p->constants[i];
    }
    p->constants = table;
    p->cap_constants = wanted;
    return true;
}

int32_t lower_constant(lowering *l, const void *bytes, size_t n) {
    plan *p = l->planner;
    if (!grow_constants(p)) return -1;
    uint32_t mask = (uint32_t)(p->cap_constants - 1), at = (uint32_t)hash_bytes(0, bytes, n) & mask;
    for (; p->constants[at]; at = (at + 1) & mask) {
        const storage *s = constant_at(p, at);
        if (s && s->bytes == n && memcmp(s->content, bytes, n) == 0) return p->constants[at] - 1;
    }
    void *copy = arena_copy(p->memory, bytes, n);
    int32_t s = copy ? storage_add(p, STORAGE_CONST, n, 1, false) : -1;
    if (s < 0) return s;
    p->storages[s].content = copy;
    p->constants[at] = s + 1;
    p->n_constants++;
    return s;
}

static void make_strided(plan *p, int32_t s, uint64_t copy_stride) {
    p->storages[s].strided = true;
    p->storages[s].copy_stride = copy_stride;
}

braid_status lower_alias(lowering *l, int out, int in) { return lower_part(l, out, in, 0); }

braid_status lower_part(lowering *l, int out, int in, uint64_t offset) {
    plan *p = l->planner;
    int32_t to = l->node->out[out], from = l->node->in[in];
    if (to < 0) return BRAID_OK;
    if (offset > p->storages[from].one || p->storages[to].one > p->storages[from].one - offset)
        return error_set(l->err, BRAID_INTERNAL, "output %d lies outside the tensor it is a view of", out);
    if (p->storages[to].copies != p->storages[from].copies) make_strided(p, to, 0); /* all copies see the one tensor */
    else if (p->storages[from].strided) make_strided(p, to, p->storages[from].copy_stride);
    p->storages[to].alias = from;
    p->storages[to].alias_offset = offset;
    shorten(p, to);
    return BRAID_OK;
}

/* The input's bytes must belong to a storage of their own that a step of this plan makes, with as many copies; nobody
   else may have placed it already. What all lanes share is not placed within what each has its own of. */
bool lower_place(lowering *l, int in, int out, uint64_t offset) {
    plan *p = l->planner;
    int32_t parent = l->node->out[out], part = shorten(p, l->node->in[in]);
    if (parent < 0 || offset % PLACE_ALIGN || p->storages[part].kind != STORAGE_ARENA || part == parent) return false;
    if (p->storages[part].one != p->storages[l->node->in[in]].one || p->storages[part].fixed) return false;
    if (p->storages[part].copies != p->storages[parent].copies) return false;
    if (p->storages[part].once != p->storages[parent].once) return false;
    p->storages[part].alias = parent;
    p->storages[part].alias_offset = offset;
    return true;
}

/* ------------------------------------------------------------------------------------------------- copies */

/* Do the inputs lie in one storage at equal distances that vector loads can follow. */
static bool equal_distances(const plan *p, const node *n, uint64_t *distance) {
    int32_t root = plan_root(p, n->in[0]);
    uint64_t first = plan_offset(p, n->in[0]);
    for (int i = 1; i < n->n_in; i++) {
        uint64_t at = plan_offset(p, n->in[i]);
        if (plan_root(p, n->in[i]) != root || at < first) return false;
        if (i == 1) *distance = at - first;
        if (at - first != *distance * (uint64_t)i) return false;
    }
    return *distance && *distance % PLACE_ALIGN == 0 && *distance >= p->storages[n->in[0]].one;
}

static bool all_constants(const lowering *l) {
    for (int i = 0; i < l->node->n_in; i++)
        if (!l->g->values[l->node->in[i]]->constant) return false;
    return true;
}

/* Distinct graph inputs that the caller may lay side by side, in no other join, and alike in whether lanes differ. */
static bool may_join(plan *p, const node *n) {
    int done = 0; /* inputs that are marked by an offset */
    for (; done < n->n_in; done++) {
        storage *s = &p->storages[n->in[done]];
        bool alone = s->kind == STORAGE_INPUT && s->alias == n->in[done] && !s->alias_offset;
        if (!alone || s->once != p->storages[n->in[0]].once || !p->joinable || !p->joinable[s->index]) break;
        s->alias_offset = 1;
    }
    for (int i = 0; i < done; i++) p->storages[n->in[i]].alias_offset = 0;
    return done == n->n_in && done > 1;
}

static braid_status join_inputs(lowering *l) {
    plan *p = l->planner;
    int32_t to = l->node->out[0];
    int32_t *inputs = arena_array(p->memory, (size_t)l->node->n_in, sizeof *inputs);
    plan_join *grown = grow(p->memory, p->joins, p->n_joins, &p->cap_joins, sizeof *grown);
    if (!inputs || !grown) return error_memory(l->err);
    p->joins = grown;
    p->storages[to].kind = STORAGE_INPUT;
    p->storages[to].index = (uint32_t)(p->g->n_inputs + p->n_joins);
    for (int i = 0; i < l->node->n_in; i++) {
        storage *s = &p->storages[l->node->in[i]];
        inputs[i] = (int32_t)s->index;
        s->alias = to;
        s->alias_offset = p->storages[to].copy_stride * (uint64_t)i;
    }
    p->joins[p->n_joins++] = (plan_join){to, inputs};
    return BRAID_OK;
}

braid_status lower_stack(lowering *l, bool *done) {
    plan *p = l->planner;
    int32_t to = l->node->out[0];
    uint64_t distance = 0;
    *done = false;
    if (all_constants(l)) { /* uploaded side by side */
        storage *s = &p->storages[to];
        if (!(s->parts = arena_array(p->memory, (size_t)s->copies, sizeof *s->parts))) return error_memory(l->err);
        for (int i = 0; i < l->node->n_in; i++) s->parts[i] = l->g->values[l->node->in[i]]->constant;
        s->kind = STORAGE_CONST;
        s->once = false;
        s->stride = (s->bytes + STORAGE_ALIGN - 1) & ~(uint64_t)(STORAGE_ALIGN - 1);
        *done = true;
    } else if (l->node->n_in > 1 && equal_distances(p, l->node, &distance)) {
        int32_t root = shorten(p, l->node->in[0]);
        uint64_t first = plan_offset(p, l->node->in[0]);
        p->storages[root].fixed = true;
        p->storages[to].alias = root;
        p->storages[to].alias_offset = first;
        make_strided(p, to, distance);
        *done = true;
    }
    if (!*done && may_join(p, l->node)) {
        TRY(join_inputs(l));
        *done = true;
    }
    p->storages[to].fixed = true;
    return BRAID_OK;
}

bool lower_side_by_side(lowering *l) {
    plan *p = l->planner;
    const node *n = l->node;
    int32_t to = n->out[0], root = shorten(p, n->in[0]);
    uint64_t first = plan_offset(p, n->in[0]), at = first;
    if (to < 0 || node_copies(n) > 1 || first % PLACE_ALIGN || n->n_in < 2) return false;
    for (int i = 0; i < n->n_in; i++) {
        if (shorten(p, n->in[i]) != root || plan_offset(p, n->in[i]) != at) return false;
        at += p->storages[n->in[i]].one;
    }
    if (at - first != p->storages[to].one) return false;
    p->storages[root].fixed = true;
    p->storages[to].alias = root;
    p->storages[to].alias_offset = first;
    return true;
}

uint64_t lower_copy_at(const lowering *l, int out, int copy) {
    const plan *p = l->planner;
    return plan_copy_stride(p, l->node->out[out]) * (uint64_t)copy;
}

bool lower_stack_place(lowering *l, int in) {
    plan *p = l->planner;
    int32_t parent = l->node->out[0], part = shorten(p, l->node->in[in]);
    const storage *s = &p->storages[part];
    if (s->kind != STORAGE_ARENA || s->one != p->storages[l->node->in[in]].one || s->fixed || s->copies > 1) return false;
    if (s->once != p->storages[parent].once) return false;
    p->storages[part].alias = parent;
    p->storages[part].alias_offset = lower_copy_at(l, 0, in);
    return true;
}

braid_status lower_unstack(lowering *l) {
    plan *p = l->planner;
    int32_t from = l->node->in[0];
    uint64_t stride = plan_copy_stride(p, from);
    p->storages[shorten(p, from)].fixed = true;
    for (int i = 0; i < l->node->n_out; i++) {
        int32_t to = l->node->out[i];
        if (to < 0) continue;
        p->storages[to].alias = from;
        p->storages[to].alias_offset = stride * (uint64_t)i;
        shorten(p, to);
    }
    return BRAID_OK;
}

/* ---------------------------------------------------------------------------------------------------- steps */

step *lower_step(lowering *l, const char *kernel, const void *row, size_t row_bytes, uint64_t tiles, uint32_t group) {
    plan *p = l->planner;
    step *s = arena_alloc(p->memory, sizeof *s);
    step **grown = grow(p->memory, p->steps, p->n_steps, &p->cap_steps, sizeof *grown);
    if (!s || !grown || !(s->row = arena_copy(p->memory, row, row_bytes))) {
        error_memory(l->err);
        return NULL;
    }
    p->steps = grown;
    s->kernel = kernel;
    s->node = l->node_index;
    s->group = group;
    s->tiles = tiles;
    s->row_bytes = (uint32_t)row_bytes;
    s->copies = (uint32_t)node_copies(l->node);
    s->once = l->once;
    if (tiles) p->steps[p->n_steps++] = s; /* a step without tiles is filled in by its caller and then forgotten */
    return s;
}

braid_status lower_spec(lowering *l, step *s, uint32_t id, uint32_t content) {
    for (int i = 0; i < s->n_spec; i++) {
        if (s->spec_ids[i] != id) continue;
        s->spec[i] = content;
        return BRAID_OK;
    }
    if (s->n_spec == SPEC_MAX) return error_set(l->err, BRAID_INTERNAL, "too many specialization constants");
    s->spec_ids[s->n_spec] = id;
    s->spec[s->n_spec++] = content;
    return BRAID_OK;
}

braid_status lower_operand(lowering *l, step *s, size_t at, int32_t id, uint64_t offset, uint64_t bytes, int access) {
    plan *p = l->planner;
    if (id < 0) return error_memory(l->err);
    const storage *st = &p->storages[shorten(p, id)];
    uint64_t begin = plan_offset(p, id) + offset, stride = s->copies > 1 ? plan_copy_stride(p, id) : 0;
    uint64_t end = begin + bytes + stride * (s->copies - 1);
    if (at + sizeof(operand) > s->row_bytes || offset > st->bytes || bytes > st->bytes || end > st->bytes)
        return error_set(l->err, BRAID_INTERNAL, "an operand of kernel %s lies outside its storage", s->kernel);
    step_operand *grown = grow(p->memory, s->operands, s->n_operands, &s->cap_operands, sizeof *grown);
    if (!grown) return error_memory(l->err);
    s->operands = grown;
    s->operands[s->n_operands++] = (step_operand){.at = (uint32_t)at, .storage = id, .offset = offset, .bytes = bytes, .access = (uint8_t)access};
    return BRAID_OK;
}

braid_status lower_operand_in(lowering *l, step *s, size_t at, int in) {
    if (in >= l->node->n_in || l->node->in[in] < 0) return BRAID_OK;
    int32_t v = l->node->in[in];
    return lower_operand(l, s, at, v, 0, ((plan *)l->planner)->storages[v].one, ACCESS_READ);
}

braid_status lower_operand_out(lowering *l, step *s, size_t at, int out) {
    int32_t v = l->node->out[out];
    return lower_operand(l, s, at, v, 0, ((plan *)l->planner)->storages[v].one, ACCESS_WRITE);
}

/* ------------------------------------------------------------------------------------------------- walking */

static braid_status add_values(plan *p, braid_error *err) {
    const graph *g = p->g;
    for (int32_t i = 0; i < g->n_values; i++) {
        const value *v = g->values[i];
        size_t bytes = 0, room;
        bool fits = !tensor_type_static(&v->type) || tensor_type_bytes(&v->type, &bytes);
        if (!fits || !size_align(bytes, STORAGE_ALIGN, &room) || !size_mul(room, (size_t)value_copies(v), &room))
            return error_set(err, BRAID_LIMIT, "value '%s': too large", v->name);
        storage_kind kind = v->constant ? STORAGE_CONST : v->kind == VALUE_NODE ? STORAGE_ARENA : STORAGE_NONE;
        int32_t s = storage_add(p, kind, bytes, value_copies(v), kind != STORAGE_CONST && value_once(p, i));
        if (s < 0) return error_memory(err);
        p->storages[s].constant = v->constant;
    }
    for (int32_t i = 0; i < g->n_inputs; i++) {
        storage *s = &p->storages[g->inputs[i]];
        s->kind = STORAGE_INPUT;
        s->index = (uint32_t)i;
    }
    return BRAID_OK;
}

static bool has_string(const graph *g, const node *n) {
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && g->values[n->in[i]]->type.type == BRAID_STRING) return true;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && g->values[n->out[i]]->type.type == BRAID_STRING) return true;
    return false;
}

/* Steps beyond `n_steps` and storages beyond `n_storages` are dropped: the node has no kernel. */
static braid_status lower_node(plan *p, int32_t i, braid_error *err) {
    bool once = node_once(p, p->g->nodes[i]);
    uint64_t problems = (uint64_t)(once ? 1 : p->lanes) * (uint64_t)node_copies(p->g->nodes[i]);
    lowering l = {.g = p->g, .node = p->g->nodes[i], .node_index = i, .device = p->device,
                  .free_order = p->free_order, .problems = problems > UINT32_MAX ? UINT32_MAX : (uint32_t)problems, .once = once,
                  .memory = p->memory, .err = err, .planner = p};
    int32_t n_steps = p->n_steps, n_storages = p->n_storages;
    const op *o = l.node->op;
    braid_status status = o && o->lower && !has_string(p->g, l.node) ? o->lower(&l) : BRAID_UNSUPPORTED;
    if (status == BRAID_OK) return BRAID_OK;
    if (status != BRAID_UNSUPPORTED) {
        char title[256];
        return error_within(err, status, "%s", node_title(l.node, title));
    }
    p->n_steps = n_steps;
    p->n_storages = n_storages;
    for (int k = 0; k < l.node->n_out; k++)
        if (l.node->out[k] >= 0) p->storages[l.node->out[k]].alias = l.node->out[k];
    /* a stage that has such nodes is made again without them */
    p->host_nodes[p->n_host_nodes++] = i;
    return BRAID_OK;
}

/* Graph outputs whose bytes a step of this plan writes become OUTPUT storages, each once. */
static braid_status assign_outputs(plan *p, braid_error *err) {
    const graph *g = p->g;
    if (!(p->outputs = arena_array(p->memory, (size_t)g->n_outputs + 1, sizeof *p->outputs))) return error_memory(err);
    for (int32_t i = 0; i < g->n_outputs; i++) {
        int32_t root = plan_root(p, g->outputs[i]);
        storage *s = &p->storages[root];
        if (s->kind != STORAGE_ARENA) continue;
        s->kind = STORAGE_OUTPUT;
        s->index = (uint32_t)p->n_outputs;
        p->outputs[p->n_outputs++] = root;
    }
    return BRAID_OK;
}

braid_status plan_lower(plan *p, braid_error *err) {
    p->host_nodes = arena_array(p->memory, (size_t)p->g->n_nodes + 1, sizeof *p->host_nodes);
    p->first_copy = arena_array(p->memory, (size_t)p->g->n_nodes + 1, sizeof *p->first_copy);
    if (!p->host_nodes || !p->first_copy) return error_memory(err);
    for (int32_t i = 0; i < p->g->n_nodes; i++)
        p->first_copy[i + 1] = p->first_copy[i] + (uint32_t)node_copies(p->g->nodes[i]);
    TRY(add_values(p, err));
    for (int32_t i = 0; i < p->g->n_nodes; i++) TRY(lower_node(p, i, err));
    plan_shorten(p);
    return assign_outputs(p, err);
}
