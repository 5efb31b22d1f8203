/* Reads a module's .eh_frame: for one address of its code, the address of the frame and where the caller's registers
 * are. Every byte of the tables is read with checks; malformed tables yield no result. */
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
    NW_SAME,        /* the register still holds the caller's value */
    NW_UNDEFINED,   /* the caller's value is lost; for the return address: there is no caller */
    NW_VALUE,       /* the value is base + offset */
    NW_AT,          /* the value is in memory at base + offset */
    NW_COMPUTED,    /* the value is the result of the expression at `offset` */
    NW_COMPUTED_AT, /* the value is in memory at the address that the expression computes */
} nw_how;

typedef struct nw_rule {
    uint8_t reg;
    uint8_t how;
    uint8_t base; /* a register, or NW_FRAME */
    uint8_t unused;
    int32_t offset; /* for an expression: distance of its length field from the module's .eh_frame_hdr */
} nw_rule;

/* The rules at one address, without those of registers that are NW_SAME. */
typedef struct nw_row {
    nw_rule frame;
    uint8_t caller; /* the register that holds the return address */
    uint8_t signal; /* a signal trampoline: the next frame was interrupted and made no call */
    uint8_t count;
    uint8_t unused[5];
    nw_rule rules[NW_REGISTERS];
} nw_row;

/* Returns 0 if nothing is known about this code. `sight` holds the part of the tables that is known to be readable. */
__attribute__((visibility("hidden"))) int nw_cfi_row(const nw_loaded *in, uintptr_t code, nw_readable *sight,
                                                     nw_row *row);

typedef struct nw_registers {
    uint64_t value[NW_REGISTERS];
    uint32_t valid; /* a bit for each register whose value is known */
} nw_registers;

/* Evaluates the expression of a rule. It starts with the frame's address on its stack if `frame` is not null. Returns 0
 * if it has no value. */
__attribute__((visibility("hidden"))) int nw_cfi_compute(const nw_loaded *in, int32_t expression,
                                                         const nw_registers *registers, const uint64_t *frame,
                                                         nw_readable *tables, nw_readable *stack, uint64_t *result);

#endif
