/*
 * Building and checking fusion programs.
 */
#include "ops/map.h"

static const struct {
    const char *name, *operands;
} opcodes[256] = {
#define MAP_OPCODE(name, number, operands, text) [number] = {#name, #operands},
    MAP_OPS_ALL(MAP_OPCODE)
#undef MAP_OPCODE
};

const char *map_opcode_operands(int code) {
    return code > 0 && code < 256 ? opcodes[code].operands : NULL;
}
const char *map_opcode_name(int code) {
    return code > 0 && code < 256 ? opcodes[code].name : NULL;
}

bool map_opcode_real(int code) {
    switch (code) {
#define MAP_OPCODE(name, number, operands, text) case number:
        MAP_OPS_EXACT(MAP_OPCODE)
        MAP_OPS_MATH(MAP_OPCODE)
        MAP_OPS_CAST_R(MAP_OPCODE)
#undef MAP_OPCODE
        return true;
    default:
        return false;
    }
}

bool map_opcode_math(int code) {
    switch (code) {
#define MAP_OPCODE(name, number, operands, text) case number:
        MAP_OPS_MATH(MAP_OPCODE)
#undef MAP_OPCODE
    case MAP_MOD:
    case MAP_PYMOD:
        return true;
    default:
        return false;
    }
}

int program_step(program *p, map_opcode code, int a, int b, int c) {
    if (a < 0 || b < 0 || c < 0 || p->n_steps >= PROGRAM_STEPS) return -1;
    p->steps[p->n_steps++] = (instruction){(uint8_t)code, (uint8_t)a, (uint8_t)b, (uint8_t)c};
    return program_result(p);
}

static int immediate(program *p, double f, int64_t i) {
    for (int n = 0; n < p->n_immediates; n++)
        if (memcmp(&p->immediates_f[n], &f, sizeof f) == 0 && p->immediates_i[n] == i) return PROGRAM_INPUTS + n;
    if (p->n_immediates >= PROGRAM_IMMEDIATES) return -1;
    p->immediates_f[p->n_immediates] = f;
    p->immediates_i[p->n_immediates] = i;
    return PROGRAM_INPUTS + p->n_immediates++;
}

int program_real(program *p, double v) {
    return immediate(p, v, 0);
}
int program_int(program *p, int64_t v) {
    return immediate(p, 0, v);
}

/* Does the instruction give one of its real operands, its negative or a whole number next to it. */
static bool opcode_selects(int code) {
    switch (code) {
    case MAP_MOVE:
    case MAP_NEG:
    case MAP_ABS:
    case MAP_CEIL:
    case MAP_FLOOR:
    case MAP_ROUND:
    case MAP_MIN:
    case MAP_MAX:
    case MAP_CLIP:
    case MAP_RELU:
    case MAP_SELECT:
        return true;
    default:
        return false;
    }
}

static bool immediate_is(double v, braid_type t) {
    return v == (double)(t == BRAID_FLOAT16 ? half_to_float(double_to_half(v)) : bfloat_to_float(double_to_bfloat(v)));
}

int program_rounded(program *p, braid_type t, int reg, uint32_t held) {
    const int round = t == BRAID_FLOAT16 ? MAP_ROUND_FLOAT16 : MAP_ROUND_BFLOAT16;
    held &= (1u << PROGRAM_INPUTS) - 1;
    for (int i = 0; i < p->n_immediates; i++)
        if (immediate_is(p->immediates_f[i], t)) held |= 1u << (PROGRAM_INPUTS + i);
    for (int s = 0; s < p->n_steps; s++) {
        const uint8_t from[3] = {p->steps[s].a, p->steps[s].b, p->steps[s].c};
        const char *kinds = map_opcode_operands(p->steps[s].op);
        bool holds = opcode_selects(p->steps[s].op);
        for (int k = 0; holds && kinds[k]; k++) holds = kinds[k] != 'f' || held >> from[k] & 1;
        if (holds || p->steps[s].op == round) held |= 1u << (PROGRAM_INPUTS + PROGRAM_IMMEDIATES + s);
    }
    return reg >= 0 && held >> reg & 1 ? reg : program_step(p, (map_opcode)round, reg, 0, 0);
}

bool program_append(program *p, const program *tail, int n_root) {
    const int first = PROGRAM_INPUTS + PROGRAM_IMMEDIATES;
    int to[PROGRAM_INPUTS + PROGRAM_IMMEDIATES + PROGRAM_STEPS] = {program_result(p)};
    for (int i = 1; i < PROGRAM_INPUTS; i++) to[i] = n_root + i - 1 < PROGRAM_INPUTS ? n_root + i - 1 : -1;
    for (int i = 0; i < tail->n_immediates; i++)
        to[PROGRAM_INPUTS + i] = immediate(p, tail->immediates_f[i], tail->immediates_i[i]);
    for (int s = 0; s < tail->n_steps; s++) {
        const instruction t = tail->steps[s];
        const uint8_t from[3] = {t.a, t.b, t.c};
        const char *kinds = map_opcode_operands(t.op);
        int reg[3] = {0};
        for (int k = 0; kinds && kinds[k]; k++) reg[k] = from[k] < COUNT_OF(to) ? to[from[k]] : -1;
        if (!kinds || (to[first + s] = program_step(p, (map_opcode)t.op, reg[0], reg[1], reg[2])) < 0) return false;
    }
    return true;
}

bool program_check(const program *p, int n_inputs, const bool *input_real, bool *result_real) {
    const int first_result = PROGRAM_INPUTS + PROGRAM_IMMEDIATES;
    if (p->n_steps < 0 || p->n_steps > PROGRAM_STEPS || p->n_immediates < 0 || p->n_immediates > PROGRAM_IMMEDIATES)
        return false;
    for (int s = 0; s < p->n_steps; s++) {
        const char *kinds = map_opcode_operands(p->steps[s].op);
        const uint8_t from[3] = {p->steps[s].a, p->steps[s].b, p->steps[s].c};
        if (!kinds) return false;
        for (int k = 0; kinds[k]; k++) {
            bool real = kinds[k] == 'f';
            if (from[k] < PROGRAM_INPUTS ? from[k] >= n_inputs || input_real[from[k]] != real
                : from[k] < first_result
                    ? from[k] - PROGRAM_INPUTS >= p->n_immediates
                    : from[k] - first_result >= s || map_opcode_real(p->steps[from[k] - first_result].op) != real)
                return false;
        }
    }
    *result_real = p->n_steps ? map_opcode_real(p->steps[p->n_steps - 1].op) : n_inputs > 0 && input_real[0];
    return p->n_steps > 0 || n_inputs > 0;
}
