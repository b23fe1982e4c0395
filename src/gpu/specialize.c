/*
 * specialize.c: the module's parts and the walk over its functions. Arithmetic and the shape of instructions are in
 * spirv.c.
 */
#include "gpu/specialize.h"

#include "gpu/spirv.h"

enum { HEADER = 5, INSTANCES_MAX = 4096 };

typedef struct words {
    uint32_t *data;
    size_t n, capacity;
    bool failed;
} words;

static void put(words *w, const uint32_t *from, size_t n) {
    if (w->failed) return;
    if (w->n + n > w->capacity) {
        size_t capacity = (w->n + n) * 2 + 256;
        uint32_t *data = mem_realloc(w->data, capacity * sizeof *data);
        if (!data) {
            w->failed = true;
            return;
        }
        w->data = data;
        w->capacity = capacity;
    }
    memcpy(w->data + w->n, from, n * sizeof *from);
    w->n += n;
}

static void put_op(words *w, uint32_t opcode, size_t n, const uint32_t *operands) {
    uint32_t first = opcode | (uint32_t)(n + 1) << 16;
    put(w, &first, 1);
    put(w, operands, n);
}

/* What is known of an id. */
typedef struct id_state {
    bool known;
    uint64_t value;
    uint32_t type;       /* id of its type */
    uint32_t spec;       /* SpecId + 1 */
    uint32_t function;   /* number + 1 */
    uint32_t decoration; /* last decoration's place in decorations + 1 */
    spirv_type kind;     /* of a type id */
    bool local;          /* defined in a function: decorated where it is emitted */
    /* of the instance at hand */
    uint32_t now;              /* the id it goes by */
    bool reached, done, merge; /* a label: reachable; walked already; some merge instruction names it */
    uint32_t target;           /* a label whose block ends in one decided target */
    uint32_t header;           /* a label that is the continue target of this loop header */
} id_state;

typedef struct decoration {
    size_t at;
    uint32_t before; /* place + 1 of the one before */
} decoration;

typedef struct function {
    size_t begin, end;
    uint32_t id;
    bool copies, used; /* all its instructions are of known form; an instance has taken the original ids */
} function;

typedef struct instance {
    uint32_t function, id;
    bool original;
    uint32_t n;
    bool *known;
    uint64_t *values;
} instance;

typedef struct module {
    const uint32_t *code;
    size_t n;
    arena *memory;
    uint32_t bound, next_id, an_int; /* an_int: id of some 32-bit constant */
    id_state *ids;
    function *functions;
    uint32_t n_functions;
    decoration *decorations;
    uint32_t n_decorations;
    instance *instances;
    uint32_t n_instances;
    words head, notes, globals, body;
    bool failed;
} module;

/* ------------------------------------------------------------------------------------------------ globals */

/* Checks lengths and ids' bounds once, so that later walks need not. Ids beyond the bound fail. */
static bool count_parts(module *m, size_t *functions, size_t *decorations) {
    bool inside = false;
    for (size_t at = HEADER; at < m->n;) {
        uint32_t length = m->code[at] >> 16, op = m->code[at] & 0xffff;
        if (length == 0 || length > m->n - at) return false;
        spirv_form f = spirv_form_of(m->code + at, NULL);
        if (f.result && (f.result >= length || m->code[at + f.result] >= m->bound)) return false;
        if (f.type && m->code[at + f.type] >= m->bound) return false;
        inside = (inside || op == SPIRV_FUNCTION) && op != SPIRV_FUNCTION_END;
        if (inside && f.result) m->ids[m->code[at + f.result]].local = true;
        *functions += op == SPIRV_FUNCTION;
        *decorations += op == SPIRV_DECORATE;
        at += length;
    }
    return true;
}

static void read_decoration(module *m, size_t at) {
    const uint32_t *w = m->code + at;
    if (w[0] >> 16 < 3 || w[1] >= m->bound) return;
    m->decorations[m->n_decorations] = (decoration){at, m->ids[w[1]].decoration};
    m->ids[w[1]].decoration = ++m->n_decorations;
    if (w[2] == SPIRV_SPEC_ID && w[0] >> 16 == 4) m->ids[w[1]].spec = w[3] + 1;
}

static void read_function(module *m, size_t at) {
    function f = {.begin = at, .id = m->code[at + 2], .copies = true};
    for (; at < m->n; at += m->code[at] >> 16) {
        if ((m->code[at] & 0xffff) == SPIRV_FUNCTION_END) break;
        f.copies = f.copies && spirv_form_of(m->code + at, NULL).known;
    }
    if (at >= m->n)
        m->failed = true;
    else
        f.end = at + 1;
    m->ids[f.id].function = m->n_functions + 1;
    m->functions[m->n_functions++] = f;
}

/* A constant with its content; types of other widths than 32 and 64 stay unknown. */
static void define(module *m, uint32_t type, uint32_t id, uint64_t value) {
    const spirv_type k = m->ids[type].kind;
    uint32_t w[4] = {type, id, (uint32_t)value, (uint32_t)(value >> 32)};
    m->ids[id].known = k.bits == 1 || k.bits == 32 || k.bits == 64;
    m->ids[id].value = spirv_fit(k, value);
    if (k.bits == 1)
        put_op(&m->globals, value ? SPIRV_CONSTANT_TRUE : SPIRV_CONSTANT_FALSE, 2, w);
    else
        put_op(&m->globals, SPIRV_CONSTANT, k.bits == 64 ? 4 : 3, w);
    if (k.bits == 32 && !k.is_float) m->an_int = id;
}

static bool spec_value(const module *m, uint32_t id, size_t n, const uint32_t *ids, const uint32_t *values,
                       uint64_t *out) {
    for (size_t i = 0; i < n && m->ids[id].spec; i++)
        if (ids[i] + 1 == m->ids[id].spec) {
            *out = values[i];
            return true;
        }
    return false;
}

static uint64_t literal_of(const uint32_t *w, uint32_t length) {
    return length > 4 ? w[3] | (uint64_t)w[4] << 32 : length > 3 ? w[3] : 0;
}

static bool operate(const module *m, uint32_t op, uint32_t type, const uint32_t *operands, size_t n, uint64_t *out) {
    uint64_t v[3] = {0};
    spirv_type kinds[3] = {{0}};
    bool known[3] = {0};
    if (n < 1 || n > 3) return false;
    for (size_t i = 0; i < n; i++) {
        if (operands[i] >= m->bound) return false;
        const id_state *s = &m->ids[operands[i]];
        known[i] = s->known;
        v[i] = s->value;
        kinds[i] = s->type < m->bound ? m->ids[s->type].kind : (spirv_type){0};
    }
    return spirv_operate(op, m->ids[type].kind, n, known, v, kinds, out);
}

static void read_constant(module *m, const uint32_t *w, size_t n, const uint32_t *ids, const uint32_t *values) {
    uint32_t op = w[0] & 0xffff, length = w[0] >> 16;
    uint64_t v = 0;
    m->ids[w[2]].type = w[1];
    switch (op) {
    case SPIRV_SPEC_CONSTANT_TRUE:
    case SPIRV_SPEC_CONSTANT_FALSE:
    case SPIRV_CONSTANT_TRUE:
    case SPIRV_CONSTANT_FALSE:
        v = op == SPIRV_SPEC_CONSTANT_TRUE || op == SPIRV_CONSTANT_TRUE;
        spec_value(m, w[2], n, ids, values, &v);
        define(m, w[1], w[2], v);
        return;
    case SPIRV_CONSTANT:
    case SPIRV_SPEC_CONSTANT:
        v = literal_of(w, length);
        if (op == SPIRV_SPEC_CONSTANT) spec_value(m, w[2], n, ids, values, &v);
        if (m->ids[w[1]].kind.bits == 32 || m->ids[w[1]].kind.bits == 64)
            define(m, w[1], w[2], v);
        else
            put(&m->globals, w, length); /* a narrow type: as it was */
        return;
    case SPIRV_SPEC_CONSTANT_OP:
        if (operate(m, w[3], w[1], w + 4, length - 4, &v) && m->ids[w[1]].kind.bits)
            define(m, w[1], w[2], v);
        else
            put(&m->globals, w, length);
        return;
    default: /* a composite */
        put(&m->globals, w, length);
    }
}

static void read_global(module *m, const uint32_t *w, size_t n, const uint32_t *ids, const uint32_t *values) {
    uint32_t op = w[0] & 0xffff, length = w[0] >> 16;
    if (op == SPIRV_DECORATE) {
        if (w[2] != SPIRV_SPEC_ID && !m->ids[w[1]].local) put(&m->notes, w, length);
    } else if (spirv_is_annotation(op)) {
        put(&m->notes, w, length);
    } else if (spirv_is_preamble(op)) {
        put(&m->head, w, length);
    } else if (spirv_is_constant(op)) {
        read_constant(m, w, n, ids, values);
    } else if (!spirv_is_debug(op)) {
        if (spirv_form_of(w, NULL).result == 1) m->ids[w[1]].kind = spirv_type_of(w);
        put(&m->globals, w, length);
    }
}

/* Narrow specialization constants would be left without their SpecId, hence without their value. */
static bool narrow_spec(const module *m, const uint32_t *w) {
    if ((w[0] & 0xffff) != SPIRV_SPEC_CONSTANT) return false;
    uint32_t bits = m->ids[w[1]].kind.bits;
    return bits != 32 && bits != 64;
}

static bool read_module(module *m, size_t n, const uint32_t *ids, const uint32_t *values) {
    size_t n_functions = 0, n_decorations = 0;
    if (!count_parts(m, &n_functions, &n_decorations)) return false;
    m->functions = arena_array(m->memory, n_functions + 1, sizeof *m->functions);
    m->decorations = arena_array(m->memory, n_decorations + 1, sizeof *m->decorations);
    m->instances = arena_array(m->memory, INSTANCES_MAX, sizeof *m->instances);
    if (!m->functions || !m->decorations || !m->instances) return false;
    for (size_t at = HEADER; at < m->n; at += m->code[at] >> 16)
        if ((m->code[at] & 0xffff) == SPIRV_DECORATE) read_decoration(m, at);
    bool inside = false;
    for (size_t at = HEADER; at < m->n && !m->failed; at += m->code[at] >> 16) {
        uint32_t op = m->code[at] & 0xffff;
        if (op == SPIRV_FUNCTION) {
            read_function(m, at);
            inside = true;
        }
        if (!inside && narrow_spec(m, m->code + at)) return false;
        if (!inside) read_global(m, m->code + at, n, ids, values);
        if (op == SPIRV_FUNCTION_END) inside = false;
    }
    return !m->failed && m->an_int;
}

/* ---------------------------------------------------------------------------------------------- instances */

static uint32_t parameters_of(const module *m, const function *f) {
    uint32_t n = 0;
    for (size_t at = f->begin; at < f->end; at += m->code[at] >> 16)
        n += (m->code[at] & 0xffff) == SPIRV_FUNCTION_PARAMETER;
    return n;
}

static uint32_t fresh(module *m) {
    return m->next_id++;
}

/* The function's id for a call with these arguments; a new instance is walked later. */
static uint32_t instance_for(module *m, uint32_t number, uint32_t n, const uint32_t *arguments) {
    function *f = &m->functions[number];
    instance want = {.function = number, .n = n};
    want.known = arena_array(m->memory, n + 1, sizeof *want.known);
    want.values = arena_array(m->memory, n + 1, sizeof *want.values);
    if (!want.known || !want.values || m->n_instances == INSTANCES_MAX || parameters_of(m, f) != n) {
        m->failed = true;
        return 0;
    }
    for (uint32_t i = 0; i < n && f->copies; i++) {
        want.known[i] = m->ids[arguments[i]].known;
        want.values[i] = want.known[i] ? m->ids[arguments[i]].value : 0;
    }
    for (uint32_t i = 0; i < m->n_instances; i++) {
        const instance *have = &m->instances[i];
        if (have->function == number && memcmp(have->known, want.known, n * sizeof *want.known) == 0 &&
            memcmp(have->values, want.values, n * sizeof *want.values) == 0)
            return have->id;
    }
    want.original = !f->used;
    f->used = true;
    want.id = want.original ? f->id : fresh(m);
    m->instances[m->n_instances++] = want;
    return want.id;
}

static void copy_decorations(module *m, uint32_t id) {
    for (uint32_t d = m->ids[id].decoration; d; d = m->decorations[d - 1].before) {
        const uint32_t *w = m->code + m->decorations[d - 1].at;
        uint32_t first[2] = {w[0], m->ids[id].now};
        put(&m->notes, first, 2);
        put(&m->notes, w + 2, (w[0] >> 16) - 2);
    }
}

/* Names the instance's ids and sets its parameters. */
static void begin_instance(module *m, const instance *t) {
    const function *f = &m->functions[t->function];
    uint32_t parameter = 0;
    for (size_t at = f->begin; at < f->end; at += m->code[at] >> 16) {
        const uint32_t *w = m->code + at;
        spirv_form form = spirv_form_of(w, NULL);
        if (!form.result) continue;
        uint32_t id = w[form.result];
        id_state *s = &m->ids[id];
        s->type = form.type ? w[form.type] : 0;
        s->now = t->original ? id : (w[0] & 0xffff) == SPIRV_FUNCTION ? t->id : fresh(m);
        s->known = s->reached = s->done = s->merge = false;
        s->target = s->header = 0;
        if ((w[0] & 0xffff) == SPIRV_FUNCTION_PARAMETER) {
            s->known = t->known[parameter];
            s->value = t->values[parameter++];
        }
    }
}

/* ------------------------------------------------------------------------------------------- reachability */

static bool edge(const module *m, uint32_t from, uint32_t to) {
    return m->ids[from].reached && (!m->ids[from].target || m->ids[from].target == to);
}

/* A phi is constant when all edges that are there, from blocks walked already, bring the same. */
static void walk_phi(module *m, const uint32_t *w, uint32_t block) {
    uint32_t length = w[0] >> 16;
    bool known = true, any = false;
    uint64_t value = 0;
    for (uint32_t i = 3; i + 1 < length && known; i += 2) {
        if (!m->ids[w[i + 1]].done) known = false;
        if (!known || !edge(m, w[i + 1], block)) continue;
        known = m->ids[w[i]].known && (!any || m->ids[w[i]].value == value);
        value = m->ids[w[i]].value;
        any = true;
    }
    m->ids[w[2]].known = known && any;
    m->ids[w[2]].value = value;
}

/* The one target of a terminator whose selector is known; 0 where it is not. */
static uint32_t decide(const module *m, const uint32_t *w) {
    uint32_t op = w[0] & 0xffff, length = w[0] >> 16;
    if (op == SPIRV_BRANCH) return w[1];
    if (op != SPIRV_BRANCH_CONDITIONAL && op != SPIRV_SWITCH) return 0;
    const id_state *s = &m->ids[w[1]];
    if (!s->known) return 0;
    if (op == SPIRV_BRANCH_CONDITIONAL) return s->value ? w[2] : w[3];
    if (m->ids[s->type].kind.bits != 32) return 0;
    for (uint32_t i = 3; i + 1 < length; i += 2)
        if (w[i] == (uint32_t)s->value) return w[i + 1];
    return w[2];
}

static void reach_targets(module *m, const uint32_t *w, uint32_t block) {
    uint32_t op = w[0] & 0xffff, length = w[0] >> 16, target = decide(m, w);
    m->ids[block].target = target;
    if (target) {
        m->ids[target].reached = true;
    } else if (op == SPIRV_BRANCH_CONDITIONAL) {
        m->ids[w[2]].reached = m->ids[w[3]].reached = true;
    } else if (op == SPIRV_SWITCH) {
        uint32_t step = m->ids[m->ids[w[1]].type].kind.bits == 64 ? 3 : 2;
        m->ids[w[2]].reached = true;
        for (uint32_t i = 3; i + step <= length; i += step) m->ids[w[i + step - 1]].reached = true;
    }
}

/* One pass in order; true when something new was reached. */
static bool walk(module *m, const function *f) {
    uint32_t block = 0;
    bool first = true, news = false;
    for (size_t at = f->begin; at < f->end; at += m->code[at] >> 16) {
        const uint32_t *w = m->code + at;
        uint32_t op = w[0] & 0xffff, length = w[0] >> 16;
        if (op == SPIRV_LABEL) {
            block = w[1];
            if (first) m->ids[block].reached = true;
            first = false;
            if (m->ids[block].reached && !m->ids[block].done) news = m->ids[block].done = true;
        }
        if (!block || !m->ids[block].reached) continue;
        spirv_form form = spirv_form_of(w, NULL);
        uint64_t v;
        if (op == SPIRV_PHI)
            walk_phi(m, w, block);
        else if (form.type && op != SPIRV_FUNCTION_CALL && length >= 4 && operate(m, op, w[1], w + 3, length - 3, &v)) {
            m->ids[w[2]].known = m->ids[w[1]].kind.bits != 0;
            m->ids[w[2]].value = spirv_fit(m->ids[w[1]].kind, v);
        } else if (form.terminates) {
            reach_targets(m, w, block);
        }
    }
    return news;
}

/* Labels that merge instructions of reachable blocks name must stay. */
static void mark_merges(module *m, const function *f) {
    uint32_t block = 0;
    for (size_t at = f->begin; at < f->end; at += m->code[at] >> 16) {
        const uint32_t *w = m->code + at;
        uint32_t op = w[0] & 0xffff;
        if (op == SPIRV_LABEL) block = w[1];
        if (!block || !m->ids[block].reached) continue;
        if (op == SPIRV_SELECTION_MERGE || op == SPIRV_LOOP_MERGE) m->ids[w[1]].merge = true;
        if (op == SPIRV_LOOP_MERGE) {
            m->ids[w[2]].merge = true;
            m->ids[w[2]].header = block;
        }
    }
}

/* ----------------------------------------------------------------------------------------------- emission */

static uint32_t now(const module *m, uint32_t id) {
    return m->ids[id].now ? m->ids[id].now : id;
}

/* The instruction with this instance's ids. */
static void emit_plain(module *m, const uint32_t *w) {
    uint32_t length = w[0] >> 16, literals[16];
    size_t start = m->body.n;
    spirv_form form = spirv_form_of(w, literals);
    put(&m->body, w, length);
    if (m->body.failed || !form.known) return; /* of unknown form: only in originals, whose ids stay */
    bool wide = (w[0] & 0xffff) == SPIRV_SWITCH && m->ids[m->ids[w[1]].type].kind.bits == 64;
    for (uint32_t i = 1; i < length; i++)
        if (!spirv_is_literal(w, &form, literals, i, wide) && w[i] < m->bound) m->body.data[start + i] = now(m, w[i]);
}

static void emit_call(module *m, const uint32_t *w) {
    uint32_t length = w[0] >> 16, number = m->ids[w[3]].function;
    size_t start = m->body.n;
    if (!number) {
        m->failed = true;
        return;
    }
    uint32_t id = instance_for(m, number - 1, length - 4, w + 4);
    put(&m->body, w, length);
    if (m->body.failed) return;
    m->body.data[start + 2] = now(m, w[2]);
    m->body.data[start + 3] = id;
    for (uint32_t i = 4; i < length; i++) m->body.data[start + i] = now(m, w[i]);
}

static void emit_phi(module *m, const uint32_t *w, uint32_t block) {
    uint32_t length = w[0] >> 16, n = 3;
    size_t start = m->body.n;
    uint32_t first[3] = {0, w[1], now(m, w[2])};
    put(&m->body, first, 3);
    for (uint32_t i = 3; i + 1 < length; i += 2) {
        uint32_t pair[2] = {now(m, w[i]), now(m, w[i + 1])};
        if (m->ids[w[i + 1]].header == block && !m->ids[w[i + 1]].reached) m->failed = true;
        if (!edge(m, w[i + 1], block)) continue;
        put(&m->body, pair, 2);
        n += 2;
    }
    if (!m->body.failed) m->body.data[start] = SPIRV_PHI | n << 16;
}

/* A decided branch keeps its selection construct, since blocks inside may break to its merge. */
static void emit_terminator(module *m, const uint32_t *w, uint32_t block, bool selection) {
    uint32_t op = w[0] & 0xffff, target = m->ids[block].target;
    if (!target || op == SPIRV_BRANCH) {
        emit_plain(m, w);
    } else if (selection) {
        uint32_t operands[2] = {m->an_int, now(m, target)};
        put_op(&m->body, SPIRV_SWITCH, 2, operands);
    } else {
        uint32_t operand = now(m, target);
        put_op(&m->body, SPIRV_BRANCH, 1, &operand);
    }
}

/* An unreachable block that a merge instruction names. */
static void emit_stub(module *m, uint32_t label) {
    uint32_t id = now(m, label), header = m->ids[label].header;
    put_op(&m->body, SPIRV_LABEL, 1, &id);
    uint32_t to = header ? now(m, header) : 0;
    if (header)
        put_op(&m->body, SPIRV_BRANCH, 1, &to);
    else
        put_op(&m->body, SPIRV_UNREACHABLE, 0, &id);
}

static void emit_instance(module *m, const instance *t) {
    const function *f = &m->functions[t->function];
    uint32_t block = 0;
    bool selection = false;
    for (size_t at = f->begin; at < f->end && !m->failed; at += m->code[at] >> 16) {
        const uint32_t *w = m->code + at;
        uint32_t op = w[0] & 0xffff;
        if (op == SPIRV_LABEL) {
            block = w[1];
            selection = false;
            if (!m->ids[block].reached && m->ids[block].merge) emit_stub(m, block);
        }
        if (op == SPIRV_FUNCTION_END) block = 0;
        if ((block && !m->ids[block].reached) || spirv_is_debug(op)) continue;
        selection = selection || op == SPIRV_SELECTION_MERGE;
        spirv_form form = spirv_form_of(w, NULL);
        if (form.result) copy_decorations(m, w[form.result]);
        if (op == SPIRV_PHI)
            emit_phi(m, w, block);
        else if (op == SPIRV_FUNCTION_CALL)
            emit_call(m, w);
        else if (form.terminates)
            emit_terminator(m, w, block, selection);
        else
            emit_plain(m, w);
    }
}

static void run_instance(module *m, uint32_t i) {
    const instance t = m->instances[i];
    const function *f = &m->functions[t.function];
    begin_instance(m, &t);
    for (int rounds = 0; walk(m, f) && rounds < 16;) rounds++;
    mark_merges(m, f);
    emit_instance(m, &t);
}

static bool emit_entries(module *m) {
    for (size_t at = HEADER; at < m->n; at += m->code[at] >> 16) {
        const uint32_t *w = m->code + at;
        if ((w[0] & 0xffff) != SPIRV_ENTRY_POINT) continue;
        if (w[0] >> 16 < 4 || w[2] >= m->bound || !m->ids[w[2]].function) return false;
        instance_for(m, m->ids[w[2]].function - 1, 0, NULL);
    }
    for (uint32_t i = 0; i < m->n_instances && !m->failed; i++) run_instance(m, i);
    return !m->failed;
}

static bool join(module *m, uint32_t **out, size_t *out_words) {
    const words *parts[] = {&m->head, &m->notes, &m->globals, &m->body};
    words all = {0};
    uint32_t header[HEADER] = {m->code[0], m->code[1], m->code[2], m->next_id, m->code[4]};
    put(&all, header, HEADER);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        all.failed = all.failed || parts[i]->failed;
        if (parts[i]->n) put(&all, parts[i]->data, parts[i]->n);
    }
    if (all.failed) {
        mem_free(all.data);
        return false;
    }
    *out = all.data;
    *out_words = all.n;
    return true;
}

bool spirv_specialize(const uint32_t *code, size_t n_words, size_t n, const uint32_t *ids, const uint32_t *values,
                      uint32_t **out, size_t *out_words) {
    if (n_words < HEADER || code[3] > n_words + 1024) return false;
    module m = {.code = code, .n = n_words, .memory = arena_new(), .bound = code[3], .next_id = code[3]};
    m.ids = m.memory ? arena_array(m.memory, (size_t)m.bound + 1, sizeof *m.ids) : NULL;
    bool ok = m.ids && read_module(&m, n, ids, values) && emit_entries(&m) && join(&m, out, out_words);
    words *parts[] = {&m.head, &m.notes, &m.globals, &m.body};
    for (size_t i = 0; i < COUNT_OF(parts); i++) mem_free(parts[i]->data);
    arena_free(m.memory);
    return ok;
}
