/*
 * spirv: the shape of SPIR-V instructions and arithmetic on their constants, for specialize.c.
 */
#ifndef BRAID_SPIRV_H
#define BRAID_SPIRV_H

#include "base/base.h"

enum {
    SPIRV_ENTRY_POINT = 15,
    SPIRV_CONSTANT_TRUE = 41,
    SPIRV_CONSTANT_FALSE = 42,
    SPIRV_CONSTANT = 43,
    SPIRV_SPEC_CONSTANT_TRUE = 48,
    SPIRV_SPEC_CONSTANT_FALSE = 49,
    SPIRV_SPEC_CONSTANT = 50,
    SPIRV_SPEC_CONSTANT_OP = 52,
    SPIRV_FUNCTION = 54,
    SPIRV_FUNCTION_PARAMETER = 55,
    SPIRV_FUNCTION_END = 56,
    SPIRV_FUNCTION_CALL = 57,
    SPIRV_DECORATE = 71,
    SPIRV_PHI = 245,
    SPIRV_LOOP_MERGE = 246,
    SPIRV_SELECTION_MERGE = 247,
    SPIRV_LABEL = 248,
    SPIRV_BRANCH = 249,
    SPIRV_BRANCH_CONDITIONAL = 250,
    SPIRV_SWITCH = 251,
    SPIRV_UNREACHABLE = 255,
    SPIRV_SPEC_ID = 1 /* a decoration */
};

/* Places of an instruction's words. */
typedef struct spirv_form {
    uint32_t type, result;  /* word that holds the id; 0: none */
    bool terminates;        /* ends a block */
    bool known;             /* the places of its literals are known */
    uint32_t literals_from; /* all words from here on are literals */
    uint32_t n_literals;    /* single literals before that, in `literals` */
} spirv_form;
/* literals: room for 16, or NULL when only the rest is asked for. */
spirv_form spirv_form_of(const uint32_t *w, uint32_t *literals);
/* Is word i a literal. wide: of a switch whose selector has 64 bits. */
bool spirv_is_literal(const uint32_t *w, const spirv_form *, const uint32_t *literals, uint32_t i, bool wide);

bool spirv_is_annotation(uint32_t op);
bool spirv_is_preamble(uint32_t op); /* capabilities to execution modes */
bool spirv_is_constant(uint32_t op);
bool spirv_is_debug(uint32_t op);

/* A scalar type. bits: 1 bool, 0 anything else. */
typedef struct spirv_type {
    uint8_t bits;
    bool is_signed, is_float;
} spirv_type;
spirv_type spirv_type_of(const uint32_t *w);
/* The value as the type keeps it: wrapped, upper bits clear. */
uint64_t spirv_fit(spirv_type, uint64_t value);
/* Computes an integer or bool instruction; false when an operand that matters is not known or for other operations. */
bool spirv_operate(uint32_t op, spirv_type result, size_t n, const bool *known, const uint64_t *v,
                   const spirv_type *types, uint64_t *out);

#endif
