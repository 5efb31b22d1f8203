/* Unwinds the stack by the modules' unwinding tables (.eh_frame). The usual unwinder (libgcc's) aborts the program at
 * tables that it does not understand, follows wrong rules into unmapped memory, may allocate, and on some systems waits
 * for the loader's lock. This one ends the walk instead: at code that belongs to no module (generated at run time;
 * tables that the program registered for it are not used), at a rule that does not lead further up the stack, and at
 * memory that cannot be read. It unwinds through signal handlers, from the handler's stack to the interrupted one. */
/* Why: docs/decisions/in-process.md */
#include "backtrace.h"
#include "cfi.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

enum { MOST_STEPS = 64 };

typedef struct walk {
    nw_registers registers;
    uintptr_t code;     /* this frame's instruction pointer */
    int interrupted;    /* this frame made no call: `code` is its next instruction, not a return address */
    nw_readable stack;  /* the part of the stack that is known to be readable */
    nw_readable tables; /* likewise, of the tables */
} walk;

/* ---- Cache of rows by code address. A thread that finds an entry being written computes the row itself. ---- */

enum { ENTRIES = 2048, KEPT_RULES = 12, HEAD = offsetof(nw_row, rules) / 8, WORDS = HEAD + KEPT_RULES };

static struct {
    _Atomic uint32_t turn; /* odd while it is written */
    _Atomic uint64_t code, module;
    _Atomic uint64_t words[WORDS];
} entries[ENTRIES];

static uint32_t slot_of(uintptr_t code) { return (uint32_t)(code * 0x9e3779b97f4a7c15ull >> 40) % ENTRIES; }

/* Identifies the module. A module that is loaded later at the same addresses differs in one of these values. */
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

/* ---- One step: the caller's registers from this frame's. ---- */

/* Evaluates a rule. `frame` is the frame's address, null for the rule that yields that address itself. Returns 0 if
 * the value is unknown. */
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

/* Stacks grow down, so the frame's address must be above the stack pointer. Two exceptions: an interrupted function may
 * not have moved the stack pointer yet, on processors that pass the return address in a register; and a signal handler
 * may run on a stack of its own. */
static int leads_up(const walk *walk, const nw_row *row, uint64_t frame) {
    uint64_t top = walk->registers.value[NW_STACK_POINTER];
    return row->signal || frame > top || (walk->interrupted && frame == top);
}

/* Removes the signature from a signed return address (aarch64 pointer authentication). */
static uintptr_t stripped(uint64_t address) {
#ifdef __aarch64__
    register uint64_t plain __asm__("x30") = address;
    __asm__("hint #7" : "+r"(plain));
    return plain;
#else
    return address;
#endif
}

/* Not inlined: together with the loop, the frame would exceed the limit of 1 KiB on aarch64. */
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

/* ---- The start: the registers of nw_backtrace itself. Those that calls do not preserve are marked unknown. ---- */

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
        if (depth > 0 || walk.code == caller) /* frames inside this library are left out */
            chain[depth++] = walk.code;
        if (!step(&walk))
            break;
    }
    if (depth == 0)
        chain[depth++] = caller;
    return depth;
}
