/*
 * plan_mutations.c: single faults in plans of random graphs, every second one re-rolled: waves, offsets, rows,
 * dispatches, copies. What a mutated plan means is found by running it on symbols: every four bytes hold a hash of what
 * made them. A mutation that changes an output in any order within the waves must be refused by the verifier; one that
 * changes none may be refused (it breaks a rule) but moves of a step within its slack must be accepted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "pass/pass.h"
#include "plan_graphs.h"
#include "plan_made_up.h"

enum { LANES = 2, UNIT = 4 };

static const device_traits device = PLAN_GPU;

/* ------------------------------------------------------------------------------------------------- symbols */

static uint64_t mix(uint64_t a, uint64_t b) {
    a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2);
    a *= 0xbf58476d1ce4e5b9u;
    return a ^ a >> 31;
}

typedef struct machine {
    const plan *p;
    arena *memory;
    uint64_t **spaces, *units; /* by binding: content of each unit, all lanes */
    bool broken;               /* an access left its buffer */
} machine;

static uint64_t space_units(const plan *p, uint32_t i) {
    if (i < (uint32_t)p->n_blocks) return p->block_bytes[i] * LANES / UNIT;
    if (i < plan_binding_output(p, 0)) return p->storages[p->g->inputs[i - (uint32_t)p->n_blocks]].bytes * LANES / UNIT;
    return p->storages[p->outputs[i - plan_binding_output(p, 0)]].bytes * LANES / UNIT;
}

static void machine_new(machine *m, const plan *p, arena *memory, uint64_t garbage) {
    *m = (machine){.p = p, .memory = memory};
    m->spaces = arena_array(memory, plan_bindings(p) + 1, sizeof *m->spaces);
    m->units = arena_array(memory, plan_bindings(p) + 1, sizeof *m->units);
    for (uint32_t i = 0; i < plan_bindings(p); i++) {
        bool input = i >= (uint32_t)p->n_blocks && i < plan_binding_output(p, 0);
        m->units[i] = space_units(p, i);
        m->spaces[i] = arena_array(memory, m->units[i] + 1, sizeof **m->spaces);
        for (uint64_t k = 0; k < m->units[i]; k++)
            m->spaces[i][k] = mix(input ? 7 + i - (uint32_t)p->n_blocks : garbage, k);
    }
}

/* One of the problems that a step solves. */
typedef struct job {
    const step *s;
    const uint8_t *row;
    uint32_t lane, copy;
    uint64_t seen;
} job;

/* Content behind an operand for a problem; NULL: constant or outside. */
static uint64_t *reach(machine *m, const operand *e, const job *j, uint64_t bytes) {
    uint32_t lane = j->lane;
    if (e->kind != OPERAND_BINDING) return NULL;
    m->broken = m->broken || e->index >= plan_bindings(m->p);
    if (m->broken) return NULL;
    uint64_t begin = e->base + lane * e->lane_stride + j->copy * e->copy_stride;
    if (e->index >= (uint32_t)m->p->n_blocks) begin += lane * (m->units[e->index] / LANES) * UNIT;
    if (begin / UNIT > m->units[e->index] || bytes / UNIT > m->units[e->index] - begin / UNIT) {
        m->broken = true;
        return NULL;
    }
    return m->spaces[e->index] + begin / UNIT;
}

static uint64_t step_name(const step *s) {
    uint64_t name = hash_bytes((uint64_t)s->node, s->kernel, strlen(s->kernel));
    name = hash_bytes(name, s->spec, (size_t)s->n_spec * sizeof *s->spec);
    return hash_bytes(name, s->row, s->row_bytes);
}

/* What a step makes of what it reads, by its operands as they are encoded. */
static uint64_t step_read(machine *m, const job *j) {
    const step *s = j->s;
    uint64_t seen = step_name(s);
    for (int i = 0; i < s->n_operands; i++) {
        operand e;
        memcpy(&e, j->row + s->operands[i].at, sizeof e);
        if (!(s->operands[i].access & ACCESS_READ)) continue;
        const uint64_t *from = reach(m, &e, j, s->operands[i].bytes);
        if (e.kind == OPERAND_DIRECT) seen = mix(seen, e.base + j->copy * e.copy_stride);
        for (uint64_t k = 0; from && k < s->operands[i].bytes / UNIT; k++) seen = mix(seen, from[k]);
    }
    return seen;
}

static void step_write(machine *m, const job *j) {
    const step *s = j->s;
    for (int i = 0; i < s->n_operands; i++) {
        operand e;
        memcpy(&e, j->row + s->operands[i].at, sizeof e);
        if (!(s->operands[i].access & ACCESS_WRITE)) continue;
        uint64_t *to = reach(m, &e, j, s->operands[i].bytes);
        m->broken = m->broken || e.kind == OPERAND_DIRECT;
        for (uint64_t k = 0; to && k < s->operands[i].bytes / UNIT; k++) to[k] = mix(mix(j->seen, (uint64_t)i), k);
    }
}

enum { FORWARD, BACKWARD, READS_FIRST, READS_FIRST_BACKWARD, ORDERS };

static void run_wave(machine *m, job *jobs, int n, int order) {
    bool first = order == READS_FIRST || order == READS_FIRST_BACKWARD;
    bool back = order == BACKWARD || order == READS_FIRST_BACKWARD;
    for (int i = 0; first && i < n; i++) jobs[i].seen = step_read(m, &jobs[i]);
    for (int i = 0; i < n; i++) {
        job *j = &jobs[back ? n - 1 - i : i];
        if (!first) j->seen = step_read(m, j);
        step_write(m, j);
    }
}

/* Outputs of several copies may have gaps between them. */
static uint64_t outputs_of(const machine *m) {
    const plan *p = m->p;
    uint64_t sum = 0;
    for (int32_t i = 0; i < p->g->n_outputs; i++) {
        int32_t v = p->g->outputs[i], root = plan_root(p, v);
        if (p->storages[root].kind != STORAGE_OUTPUT) continue;
        uint32_t space_id = plan_binding_output(p, p->storages[root].index);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            const uint64_t *from = m->spaces[space_id] + lane * (m->units[space_id] / LANES) + plan_offset(p, v) / UNIT;
            for (uint64_t k = 0; k < p->storages[v].one / UNIT; k++) sum = mix(sum, from[k]);
        }
    }
    return sum;
}

/* The plan as a device would run it. 0: it reaches outside. */
static uint64_t run_plan(const plan *p, int order, uint64_t garbage) {
    arena *memory = arena_new();
    machine m;
    machine_new(&m, p, memory, garbage);
    size_t most = 1;
    for (int32_t i = 0; i < p->n_steps; i++) most += p->steps[i]->copies * LANES;
    job *jobs = arena_array(memory, most, sizeof *jobs);
    int n = 0;
    for (int32_t i = 0; i < p->n_dispatches; i++) {
        const plan_dispatch *d = &p->dispatches[i];
        if (i && d->wave != d[-1].wave) {
            run_wave(&m, jobs, n, order);
            n = 0;
        }
        for (int32_t k = 0; k < d->n_steps; k++) {
            const step *s = p->steps[p->order[d->first_step + k]];
            const uint8_t *row = p->rows + d->rows_offset + (uint64_t)k * d->row_bytes;
            for (uint32_t problem = 0; problem < s->copies * LANES; problem++)
                jobs[n++] = (job){s, row, problem / s->copies, problem % s->copies, 0};
        }
    }
    run_wave(&m, jobs, n, order);
    uint64_t result = m.broken ? 0 : outputs_of(&m);
    arena_free(memory);
    return result;
}

/* The steps one by one as they were lowered, every storage in memory of its own. */
static uint64_t run_reference(const plan *p) {
    arena *memory = arena_new();
    plan_options options = {.device = &device, .schedule = BRAID_SCHEDULE_SERIAL, .redzone = true};
    braid_error err = {0};
    plan *serial;
    if (plan_new(p->g, memory, &options, &serial, &err) != BRAID_OK) fail_msg("%s", err.message);
    for (int32_t i = 0; i < serial->n_storages; i++)
        if (p->storages[i].kind == STORAGE_CONST) serial->storages[i].offset = p->storages[i].offset;
    if (plan_encode(serial, LANES, &err) != BRAID_OK) fail_msg("%s", err.message);
    uint64_t result = run_plan(serial, FORWARD, 1);
    arena_free(memory);
    return result;
}

static bool means_the_same(const plan *p, uint64_t wanted) {
    for (int order = 0; order < ORDERS; order++)
        if (run_plan(p, order, (uint64_t)order + 1) != wanted) return false;
    return true;
}

/* ----------------------------------------------------------------------------------------------- mutations */

typedef struct trial {
    plan *p;
    plan_draw r;
    uint64_t wanted, seed;
    const char *name;
} trial;

static struct {
    const char *name;
    unsigned refused, harmless, strict; /* strict: harmless and refused all the same */
} counts[32];

static void count(const char *name, bool same, bool refused) {
    size_t i = 0;
    while (counts[i].name && strcmp(counts[i].name, name) != 0) i++;
    counts[i].name = name;
    if (!same)
        counts[i].refused++;
    else if (refused)
        counts[i].strict++;
    else
        counts[i].harmless++;
}

/* by_name: what the run on symbols does not see, such as tiles; every change is one of meaning. */
static void judge(const trial *t, bool by_name) {
    braid_error err = {0};
    bool refused = plan_verify(t->p, LANES, &err) != BRAID_OK;
    bool same = !by_name && means_the_same(t->p, t->wanted);
    if (refused && err.status != BRAID_INTERNAL) fail_msg("%s: %s", t->name, err.message);
    if (!same && !refused) fail_msg("seed %llu: %s was not noticed", (unsigned long long)t->seed, t->name);
    count(t->name, same, refused);
}

/* Sorts steps into dispatches of their own by wave. */
static void rebuild(plan *p) {
    int32_t n = 0;
    p->rows_bytes = 0;
    p->dispatches = arena_array(p->memory, (size_t)p->n_steps + 1, sizeof *p->dispatches);
    for (int32_t wave = 0; wave < p->n_waves; wave++)
        for (int32_t i = 0; i < p->n_steps; i++) {
            if (p->wave[i] != wave) continue;
            const step *s = p->steps[i];
            p->dispatches[n] = (plan_dispatch){.wave = wave,
                                               .first_step = n,
                                               .n_steps = 1,
                                               .tiles = s->tiles,
                                               .rows_offset = p->rows_bytes,
                                               .row_bytes = s->row_bytes,
                                               .copies = s->copies,
                                               .once = s->once,
                                               .folded = s->folded};
            p->rows_bytes += s->row_bytes;
            p->order[n++] = i;
        }
    p->n_dispatches = n;
    if (plan_encode(p, LANES, NULL) != BRAID_OK) fail();
}

static void move_step(trial *t) {
    plan *p = t->p;
    int32_t i = (int32_t)plan_random(&t->r, (uint32_t)p->n_steps), old = p->wave[i];
    p->wave[i] = (int32_t)plan_random(&t->r, (uint32_t)p->n_waves);
    t->name = "a step in another wave";
    rebuild(p);
    judge(t, false);
    p->wave[i] = old;
    rebuild(p);
}

static void drop_barrier(trial *t) {
    plan *p = t->p;
    if (p->n_waves < 2) return;
    int32_t *saved = arena_copy(p->memory, p->wave, (size_t)p->n_steps * sizeof *saved);
    int32_t at = 1 + (int32_t)plan_random(&t->r, (uint32_t)p->n_waves - 1);
    for (int32_t i = 0; i < p->n_steps; i++) p->wave[i] -= p->wave[i] >= at;
    t->name = "a barrier less";
    rebuild(p);
    judge(t, false);
    memcpy(p->wave, saved, (size_t)p->n_steps * sizeof *saved);
    rebuild(p);
}

static void swap_steps(trial *t) {
    plan *p = t->p;
    int32_t a = (int32_t)plan_random(&t->r, (uint32_t)p->n_steps),
            b = (int32_t)plan_random(&t->r, (uint32_t)p->n_steps);
    int32_t wave_a = p->wave[a], wave_b = p->wave[b];
    p->wave[a] = wave_b;
    p->wave[b] = wave_a;
    t->name = "two steps in each other's waves";
    rebuild(p);
    judge(t, false);
    p->wave[a] = wave_a;
    p->wave[b] = wave_b;
    rebuild(p);
}

static void move_storage(trial *t) {
    plan *p = t->p;
    int32_t i = (int32_t)plan_random(&t->r, (uint32_t)p->n_storages);
    storage *s = &p->storages[i];
    if (s->kind != STORAGE_ARENA || s->alias != i || s->first > s->last || p->block_bytes[s->index] <= s->stride)
        return;
    uint64_t old = s->offset;
    s->offset = 256 * plan_random(&t->r, (uint32_t)((p->block_bytes[s->index] - s->stride) / 256 + 1));
    t->name = "a tensor elsewhere";
    if (plan_encode(p, LANES, NULL) != BRAID_OK) fail();
    judge(t, false);
    s->offset = old;
    if (plan_encode(p, LANES, NULL) != BRAID_OK) fail();
}

static uint8_t *some_row(trial *t, const plan_dispatch **d, const step **s) {
    plan *p = t->p;
    *d = &p->dispatches[plan_random(&t->r, (uint32_t)p->n_dispatches)];
    int32_t k = (int32_t)plan_random(&t->r, (uint32_t)(*d)->n_steps);
    *s = p->steps[p->order[(*d)->first_step + k]];
    return p->rows + (*d)->rows_offset + (uint64_t)k * (*d)->row_bytes;
}

static void change_operand(trial *t) {
    const plan_dispatch *d;
    const step *s;
    uint8_t *row = some_row(t, &d, &s);
    uint8_t *at = row + s->operands[plan_random(&t->r, (uint32_t)s->n_operands)].at;
    operand old, now;
    memcpy(&old, at, sizeof old);
    now = old;
    switch (plan_random(&t->r, 6)) {
    case 5:
        if (s->copies == 1) return;
        now.copy_stride = old.copy_stride ? 0 : 256;
        t->name = "an operand with another copy stride";
        break;
    case 0:
        now.base += UNIT * (1 + plan_random(&t->r, 8));
        t->name = "an operand a few bytes on";
        break;
    case 1:
        now.base = 256 * plan_random(&t->r, 20);
        t->name = "an operand elsewhere";
        break;
    case 2:
        now.lane_stride = old.lane_stride ? 0 : 256;
        t->name = "an operand with another lane stride";
        break;
    case 3:
        now.index = plan_random(&t->r, plan_bindings(t->p) + 1);
        t->name = "an operand in another buffer";
        break;
    default:
        now.kind = plan_random(&t->r, 3);
        t->name = "an operand of another kind";
    }
    if (memcmp(&now, &old, sizeof now) == 0) return;
    memcpy(at, &now, sizeof now);
    judge(t, now.kind != old.kind || (old.kind == OPERAND_DIRECT && now.index == old.index));
    memcpy(at, &old, sizeof old);
}

static void change_row(trial *t) {
    const plan_dispatch *d;
    const step *s;
    uint8_t *row = some_row(t, &d, &s);
    uint32_t at = plan_random(&t->r, s->row_bytes);
    for (int i = 0; i < s->n_operands; i++)
        if (at >= s->operands[i].at && at < s->operands[i].at + sizeof(operand)) return;
    row[at] ^= (uint8_t)(1u << plan_random(&t->r, 8));
    t->name = at < sizeof(row_header) ? "a row's header" : "a row's content";
    judge(t, true);
    memcpy(row, s->row, s->row_bytes);
    if (plan_encode(t->p, LANES, NULL) != BRAID_OK) fail();
}

static void change_dispatch(trial *t) {
    plan *p = t->p;
    plan_dispatch *d = &p->dispatches[plan_random(&t->r, (uint32_t)p->n_dispatches)], old = *d;
    switch (plan_random(&t->r, 8)) {
    case 0:
        d->tiles += plan_random(&t->r, 2) ? 1 : (uint64_t)-1;
        break;
    case 1:
        d->row_tiles += 1000003;
        break;
    case 2:
        d->n_steps -= 1;
        break;
    case 3:
        d->n_steps += 1;
        break;
    case 4:
        d->rows_offset += 8;
        break;
    case 5:
        d->copies += 1;
        break;
    case 6:
        d->once = !d->once;
        break;
    default:
        d->first_step = (d->first_step + 1) % p->n_steps;
        break;
    }
    if (memcmp(&old, d, sizeof old) == 0) return;
    t->name = "a dispatch's figures";
    judge(t, true);
    *d = old;
}

static void swap_dispatches(trial *t) {
    plan *p = t->p;
    plan_dispatch *a = &p->dispatches[plan_random(&t->r, (uint32_t)p->n_dispatches)];
    plan_dispatch *b = &p->dispatches[plan_random(&t->r, (uint32_t)p->n_dispatches)], saved = *a;
    if (a == b) return;
    *a = *b;
    *b = saved;
    t->name = "two dispatches in each other's place";
    judge(t, false);
    *b = *a;
    *a = saved;
}

static void swap_rows(trial *t) {
    plan *p = t->p;
    uint32_t a = plan_random(&t->r, (uint32_t)p->n_steps), b = plan_random(&t->r, (uint32_t)p->n_steps);
    int32_t saved = p->order[a];
    if (a == b) return;
    p->order[a] = p->order[b];
    p->order[b] = saved;
    t->name = "two rows in each other's place";
    judge(t, true);
    p->order[b] = p->order[a];
    p->order[a] = saved;
}

static void (*const mutations[])(trial *) = {move_step,       drop_barrier,   swap_steps, move_storage,
                                             change_operand,  change_operand, change_row, change_dispatch,
                                             swap_dispatches, swap_rows};

/* ------------------------------------------------------------------------------------------------- running */

static plan *make_plan(arena *memory, uint64_t seed, int nodes) {
    graph *g = plan_graph_make(memory, seed, nodes), *rolled;
    if (seed % 2 && pass_run("reroll_any", g, memory, &(pass_options){0}, &rolled, NULL) == BRAID_OK) g = rolled;
    plan_options options = {.device = &device, .memory_budget = seed % 3 == 0}; /* as little memory as can be */
    braid_error err = {0};
    plan *p;
    if (plan_new(g, memory, &options, &p, &err) != BRAID_OK) fail_msg("%s", err.message);
    assert_int_equal(p->n_host_nodes, 0);
    plan_place_constants(p);
    if (plan_encode(p, LANES, &err) != BRAID_OK || plan_verify(p, LANES, &err) != BRAID_OK) fail_msg("%s", err.message);
    return p;
}

static void mutate_graph(uint64_t seed, int nodes, int rounds) {
    arena *memory = arena_new();
    trial t = {.p = make_plan(memory, seed, nodes), .r = {seed}, .seed = seed};
    if (t.p->n_steps) {
        t.wanted = run_reference(t.p);
        if (!means_the_same(t.p, t.wanted)) fail_msg("seed %llu: the plan is wrong itself", (unsigned long long)seed);
        /* the planner's dispatches first: moves of steps leave each step a dispatch of its own */
        for (int i = 0; i < rounds; i++) mutations[5 + plan_random(&t.r, COUNT_OF(mutations) - 5)](&t);
        for (int i = 0; i < rounds; i++) mutations[plan_random(&t.r, COUNT_OF(mutations))](&t);
        braid_error err = {0};
        if (plan_verify(t.p, LANES, &err) != BRAID_OK) fail_msg("not restored: %s", err.message);
    }
    arena_free(memory);
}

static void random_faults(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) mutate_graph(seed, 2 + (int)(seed * 7 % 60), 40);
    for (size_t i = 0; i < COUNT_OF(counts) && counts[i].name; i++) {
        printf("%-38s %5u refused, %5u harmless, %5u harmless but refused\n", counts[i].name, counts[i].refused,
               counts[i].harmless, counts[i].strict);
        if (strstr(counts[i].name, "wave")) assert_true(counts[i].harmless > 20 * counts[i].strict);
        assert_true(counts[i].refused > 0 || strcmp(counts[i].name, "two dispatches in each other's place") == 0);
    }
}

int main(int argc, char **argv) {
    if (argc > 2) {
        for (uint64_t seed = strtoull(argv[1], NULL, 0), n = strtoull(argv[2], NULL, 0); n; seed++, n--)
            mutate_graph(seed, 2 + (int)(seed * 7 % 60), 40);
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
