/* What a module's .eh_frame says of one point of its code: where the frame begins, and where the caller's registers
 * are. Every byte of the tables is read with care, and what makes no sense is no answer. */
#ifndef NODEWISE_CFI_H
#define NODEWISE_CFI_H

#include "loaded.h"
#include "readable.h"

#include <stdint.h>

/* Registers by their DWARF numbers; others (vector registers) are not followed. */
#ifdef __x86_64__
enum { NW_REGISTERS = 17, NW_STACK_POINTER = 7 }; /* 16: the return address */
#else
enum { NW_REGISTERS = 32, NW_STACK_POINTER = 31 };
#endif

#define NW_FRAME 0xff /* as a base: the frame's own address (CFA) */

typedef enum nw_how {
    NW_SAME,      /* the register is the caller's */
    NW_UNDEFINED, /* the caller's value is lost; of the return address: there is no caller */
    NW_VALUE,     /* it is base + offset */
    NW_AT,        /* it is in memory at base + offset */
    NW_COMPUTED,  /* it is what the expression at `offset` computes */
    NW_COMPUTED_AT,
} nw_how;

typedef struct nw_rule {
    uint8_t reg;
    uint8_t how;
    uint8_t base; /* a register, or NW_FRAME */
    uint8_t unused;
    int32_t offset; /* of an expression: from the module's .eh_frame_hdr to its length */
} nw_rule;

/* Of the registers only those that are not the same. */
typedef struct nw_row {
    nw_rule frame;
    uint8_t caller; /* the register that holds the return address */
    uint8_t signal; /* the frame of a signal handler's return: its caller was interrupted, and has called nothing */
    uint8_t count;
    uint8_t unused[5];
    nw_rule rules[NW_REGISTERS];
} nw_row;

/* 0: nothing is known of this code. `sight` is what has been found readable of tables. */
__attribute__((visibility("hidden"))) int nw_cfi_row(const nw_loaded *in, uintptr_t code, nw_readable *sight,
                                                     nw_row *row);

/* The value of an expression of a row's, with the registers `values`, of which those in the mask `valid` are known, and
 * with the frame's address on its stack if `frame` is not null. 0: it has none. */
typedef struct nw_registers {
    uint64_t value[NW_REGISTERS];
    uint32_t valid;
} nw_registers;

__attribute__((visibility("hidden"))) int nw_cfi_compute(const nw_loaded *in, int32_t expression,
                                                         const nw_registers *registers, const uint64_t *frame,
                                                         nw_readable *tables, nw_readable *stack, uint64_t *result);

#endif
