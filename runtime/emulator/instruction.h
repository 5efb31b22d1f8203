/* What the plugins want to know of an x86-64 instruction, from its bytes alone. */
#ifndef NODEWISE_EMULATOR_INSTRUCTION_H
#define NODEWISE_EMULATOR_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nw_instruction {
    uint8_t mark;  /* NW_MARK_*: the access of the *next* instruction carries this mark's address; or 0 */
    uint8_t width; /* bytes of a memory operand that is wider than 8 (10, 16, 32), else 0: an emulator may
                      show it as ascending pieces; a gathered operand is none, nor a masked store's */
    uint8_t scalar; /* 4 or 8 where an emulator may read `width` bytes though the operand has fewer; else 0 */
    uint8_t word;  /* 8 for a repeated string instruction on smaller elements (rep movsb, stosb, lodsb): what
                      memcpy and memset are made of, which count words whatever they move at a time; else 0 */
    bool masked;         /* a store under a mask, which an emulator may show lane by lane */
    bool operand;        /* a memory operand is named */
    bool stack_reads;    /* whatever it reads is the thread's own stack: pop, ret, 8(%rsp) */
    bool stack_writes;   /* likewise: push, call */
    bool modifies;       /* reads its operand and writes it: add to memory, xchg, lock cmpxchg */
    bool flushes;        /* drops address translations: invlpg, invpcid, mov to cr0, cr3, cr4 */
    bool returns;        /* ret */
    bool jumps;          /* always, to `distance` behind its end */
    int32_t distance;
} nw_instruction;

/* Bytes that are not an instruction give zeros. */
nw_instruction nw_decode(const uint8_t *bytes, size_t size);

#endif
