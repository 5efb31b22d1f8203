/* What the plugins need to know about an x86-64 instruction, decoded from its bytes. */
#ifndef NODEWISE_EMULATOR_INSTRUCTION_H
#define NODEWISE_EMULATOR_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nw_instruction {
    uint8_t mark;  /* NW_MARK_*: the access of the *next* instruction carries this mark's address; or 0 */
    uint8_t width; /* bytes of a memory operand of more than 8 bytes (10, 16, 32), which an emulator may report in
                      ascending pieces; else 0, also for gathers and masked stores */
    uint8_t scalar; /* 4 or 8: the size of an operand for which an emulator may read `width` bytes; else 0 */
    uint8_t word;  /* 8 for a repeated string instruction on smaller elements (rep movsb, stosb, lodsb), else 0:
                      memcpy and memset consist of them, and count as accesses to words of 8 bytes */
    bool masked;         /* a store under a mask, which an emulator may report lane by lane */
    bool operand;        /* has an explicit memory operand */
    bool stack_reads;    /* all that it reads is the thread's own stack: pop, ret, 8(%rsp) */
    bool stack_writes;   /* likewise: push, call */
    bool modifies;       /* reads its operand and writes it: add to memory, xchg, lock cmpxchg */
    bool flushes;        /* drops address translations: invlpg, invpcid, mov to cr0, cr3, cr4 */
    bool returns;        /* ret */
    bool jumps;          /* unconditionally, to its end plus `distance` */
    int32_t distance;
} nw_instruction;

/* Bytes that are not an instruction give zeros. */
nw_instruction nw_decode(const uint8_t *bytes, size_t size);

#endif
