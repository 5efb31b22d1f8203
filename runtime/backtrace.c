/* A walk by the modules' unwinding tables. The C library's unwinder ends a program whose own code has tables that it
 * does not understand, reads wherever they lead, may allocate, and asks the loader under its lock on some systems. This
 * one ends the walk instead: at code of no module (what a program made itself; tables that it registered are not
 * asked), at a rule that leads anywhere but up the stack, at memory that cannot be read. It goes through the frames of
 * signal handlers, from the handler's stack to the interrupted one. */
/* Why: docs/decisions/in-process.md */
#include "backtrace.h"
#include "cfi.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

enum { MOST_STEPS = 64 };

typedef struct walk {
    nw_registers registers;
    uintptr_t code;     /* where this frame is */
    int interrupted;    /* it has called nothing: `code` is what would be next, not behind a call */
    nw_readable stack;  /* what is known to be readable of it */
    nw_readable tables; /* and of tables */
} walk;

/* ---- Rows that were looked up, by place. Whoever finds an entry being written looks for itself. ---- */

enum { ENTRIES = 2048, KEPT_RULES = 12, HEAD = offsetof(nw_row, rules) / 8, WORDS = HEAD + KEPT_RULES };

static struct {
    _Atomic uint32_t turn; /* odd while it is written */
    _Atomic uint64_t code, module;
    _Atomic uint64_t words[WORDS];
} entries[ENTRIES];

static uint32_t slot_of(uintptr_t code) { return (uint32_t)(code * 0x9e3779b97f4a7c15ull >> 40) % ENTRIES; }

/* What was loaded there; another module that follows it at its addresses differs in one of them. */
static uint64_t identity(const nw_loaded *in) {
    uint64_t mixed = (uintptr_t)in->map;
    mixed = mixed * 0x9e3779b97f4a7c15ull + in->start;
    mixed = mixed * 0x9e3779b97f4a7c15ull + in->end;
    return mixed * 0x9e3779b97f4a7c15ull + in->unwinding;
}

static int recall(const nw_loaded *in, uintptr_t code, nw_row *row) {
    uint32_t slot = slot_of(code), turn = atomic_load_explicit(&entries[slot].turn, memory_order_acquire);
    if (turn & 1 || atomic_load_explicit(&entries[slot].code, memory_order_relaxed) != code ||
        atomic_load_explicit(&entries[slot].module, memory_order_relaxed) != identity(in))
        return 0;
    uint64_t word;
    for (uint32_t i = 0; i < WORDS && (i < HEAD || i - HEAD < row->count); i++) {
        word = atomic_load_explicit(&entries[slot].words[i], memory_order_relaxed);
        memcpy((char *)row + 8 * i, &word, sizeof word);
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&entries[slot].turn, memory_order_relaxed) == turn;
}

static void keep(const nw_loaded *in, uintptr_t code, const nw_row *row) {
    uint32_t slot = slot_of(code), turn = atomic_load_explicit(&entries[slot].turn, memory_order_relaxed);
    if (row->count > KEPT_RULES || turn & 1 || !atomic_compare_exchange_strong(&entries[slot].turn, &turn, turn + 1))
        return;
    atomic_thread_fence(memory_order_release);
    uint64_t words[WORDS];
    memcpy(words, row, sizeof words);
    atomic_store_explicit(&entries[slot].code, code, memory_order_relaxed);
    atomic_store_explicit(&entries[slot].module, identity(in), memory_order_relaxed);
    for (uint32_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&entries[slot].words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&entries[slot].turn, turn + 2, memory_order_release);
}

static int row_of(walk *walk, const nw_loaded *in, nw_row *row) {
    uintptr_t code = walk->interrupted ? walk->code : walk->code - 1;
    if (recall(in, code, row))
        return 1;
    if (!nw_cfi_row(in, code, &walk->tables, row))
        return 0;
    keep(in, code, row);
    return 1;
}

/* ---- A step: the caller's registers out of this frame's. ---- */

/* What a rule says; `frame` is null for the rule of the frame's address itself. 0: it cannot be said. */
static int value_of(walk *walk, const nw_loaded *in, const nw_rule *rule, const uint64_t *frame, uint64_t *value) {
    const nw_registers *registers = &walk->registers;
    if (rule->how == NW_COMPUTED || rule->how == NW_COMPUTED_AT) {
        if (!nw_cfi_compute(in, rule->offset, registers, frame, &walk->tables, &walk->stack, value))
            return 0;
    } else if (rule->how == NW_UNDEFINED) {
        return 0;
    } else {
        if (rule->base == NW_FRAME ? frame == NULL
                                   : rule->base >= NW_REGISTERS || !(registers->valid >> rule->base & 1))
            return 0;
        *value = (rule->base == NW_FRAME ? *frame : registers->value[rule->base]) + (uint64_t)(int64_t)rule->offset;
    }
    int fetched = rule->how == NW_AT || rule->how == NW_COMPUTED_AT;
    return !fetched || nw_read(&walk->stack, value, *value, sizeof *value);
}

/* Stacks grow down. A function that has called nothing may not have moved the stack pointer where the return address
 * is in a register; a signal handler may have a stack of its own. */
static int leads_up(const walk *walk, const nw_row *row, uint64_t frame) {
    uint64_t top = walk->registers.value[NW_STACK_POINTER];
    return row->signal || frame > top || (walk->interrupted && frame == top);
}

/* An address that is signed (aarch64) without its signature. */
static uintptr_t stripped(uint64_t address) {
#ifdef __aarch64__
    register uint64_t plain __asm__("x30") = address;
    __asm__("hint #7" : "+r"(plain));
    return plain;
#else
    return address;
#endif
}

/* Not inlined: with the loop it would be more of a stack than a function may have on aarch64. */
__attribute__((noinline)) static int step(walk *walk) {
    nw_loaded in;
    nw_row row;
    uint64_t frame;
    if (!nw_loaded_at(walk->interrupted ? walk->code : walk->code - 1, &in) || !row_of(walk, &in, &row) ||
        !value_of(walk, &in, &row.frame, NULL, &frame) || !leads_up(walk, &row, frame))
        return 0;
    nw_registers caller = walk->registers;
    caller.value[NW_STACK_POINTER] = frame;
    for (uint32_t i = 0; i < row.count; i++) {
        uint32_t reg = row.rules[i].reg;
        if (value_of(walk, &in, &row.rules[i], &frame, &caller.value[reg]))
            caller.valid |= 1u << reg;
        else
            caller.valid &= ~(1u << reg);
    }
    if (!(caller.valid >> row.caller & 1))
        return 0;
    walk->code = stripped(caller.value[row.caller]);
    walk->registers = caller;
    walk->interrupted = row.signal;
    return 1;
}

/* ---- The beginning: this function itself. Registers that calls do not keep are not known. ---- */

#ifdef __x86_64__
#define BEGIN(walk)                                                                              \
    do {                                                                                         \
        (walk).registers.valid = 1u << 3 | 1u << 6 | 1u << 7 | 0xfu << 12;                       \
        __asm__ volatile("leaq 1f(%%rip), %%rax\n"                                               \
                         "1:\tmovq %%rax, 128(%0)\n\tmovq %%rbx, 24(%0)\n\tmovq %%rbp, 48(%0)\n" \
                         "\tmovq %%rsp, 56(%0)\n\tmovq %%r12, 96(%0)\n\tmovq %%r13, 104(%0)\n"   \
                         "\tmovq %%r14, 112(%0)\n\tmovq %%r15, 120(%0)"                          \
                         :                                                                       \
                         : "r"((walk).registers.value)                                           \
                         : "rax", "memory");                                                     \
        (walk).code = (walk).registers.value[16];                                                \
    } while (0)
#else
#define BEGIN(walk)                                                                               \
    do {                                                                                          \
        uintptr_t here;                                                                           \
        (walk).registers.valid = 0x1fffu << 19;                                                   \
        __asm__ volatile("adr %0, 1f\n1:\tstp x19, x20, [%1, #152]\n\tstp x21, x22, [%1, #168]\n" \
                         "\tstp x23, x24, [%1, #184]\n\tstp x25, x26, [%1, #200]\n"               \
                         "\tstp x27, x28, [%1, #216]\n\tstp x29, x30, [%1, #232]\n"               \
                         "\tmov x9, sp\n\tstr x9, [%1, #248]"                                     \
                         : "=&r"(here)                                                            \
                         : "r"((walk).registers.value)                                            \
                         : "x9", "memory");                                                       \
        (walk).code = here;                                                                       \
    } while (0)
#endif

uint32_t nw_backtrace(uintptr_t caller, uintptr_t chain[NW_CHAIN]) {
    walk walk;
    uint32_t depth = 0;
    BEGIN(walk);
    walk.interrupted = 1;
    walk.stack = nw_around(&walk, sizeof walk);
    walk.tables = (nw_readable){0};
    for (uint32_t steps = 0; steps < MOST_STEPS && depth < NW_CHAIN && walk.code != 0; steps++) {
        if (depth > 0 || walk.code == caller) /* not inside this library any longer */
            chain[depth++] = walk.code;
        if (!step(&walk))
            break;
    }
    if (depth == 0)
        chain[depth++] = caller;
    return depth;
}
