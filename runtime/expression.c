/* Evaluates DWARF expressions, as far as unwinding tables contain them: for procedure linkage tables and signal
 * frames. */
#include "cfi.h"
#include "tables.h"

enum { DEPTH = 16, MOST_STEPS = 256 };

typedef struct machine {
    const nw_registers *registers;
    nw_readable *stack_sight;
    nw_cursor code;
    uintptr_t begin;
    uint64_t stack[DEPTH];
    unsigned depth;
    int failed;
} machine;

static void push(machine *m, uint64_t value) {
    if (m->depth == DEPTH)
        m->failed = 1;
    else
        m->stack[m->depth++] = value;
}

static uint64_t pop(machine *m) {
    if (m->depth == 0) {
        m->failed = 1;
        return 0;
    }
    return m->stack[--m->depth];
}

static uint64_t pick(machine *m, uint64_t below) {
    if (below >= m->depth) {
        m->failed = 1;
        return 0;
    }
    return m->stack[m->depth - 1 - below];
}

static uint64_t register_value(machine *m, uint64_t reg) {
    if (reg >= NW_REGISTERS || !(m->registers->valid >> reg & 1)) {
        m->failed = 1;
        return 0;
    }
    return m->registers->value[reg];
}

static uint64_t fetch(machine *m, uint64_t address, unsigned bytes) {
    uint64_t value = 0;
    if (bytes > 8 || !nw_read(m->stack_sight, &value, address, bytes))
        m->failed = 1;
    return value;
}

static void jump(machine *m, int taken) {
    int64_t distance = nw_fixed_signed(&m->code, 2);
    if (!taken)
        return;
    m->code.at += (uint64_t)distance;
    if (m->code.at < m->begin || m->code.at > m->code.end)
        m->failed = 1;
}

static void rotate(machine *m) {
    uint64_t top = pop(m), second = pop(m), third = pop(m);
    push(m, top);
    push(m, third);
    push(m, second);
}

/* Operations with two operands; the right one is on top of the stack. */
static void combine(machine *m, uint8_t operation) {
    uint64_t right = pop(m), left = pop(m);
    int64_t a = (int64_t)left, b = (int64_t)right;
    switch (operation) {
    case 0x16: push(m, right), push(m, left); break; /* swap */
    case 0x1a: push(m, left & right); break;
    case 0x1c: push(m, left - right); break;
    case 0x1e: push(m, left * right); break;
    case 0x21: push(m, left | right); break;
    case 0x22: push(m, left + right); break;
    case 0x24: push(m, right < 64 ? left << right : 0); break;
    case 0x25: push(m, right < 64 ? left >> right : 0); break;
    case 0x26: push(m, (uint64_t)(a >> (right < 63 ? right : 63))); break;
    case 0x27: push(m, left ^ right); break;
    case 0x29: push(m, a == b); break;
    case 0x2a: push(m, a >= b); break;
    case 0x2b: push(m, a > b); break;
    case 0x2c: push(m, a <= b); break;
    case 0x2d: push(m, a < b); break;
    case 0x2e: push(m, a != b); break;
    default: m->failed = 1;
    }
}

static void constant(machine *m, uint8_t operation) {
    unsigned bytes = 1u << (operation - 0x08) / 2;
    push(m, operation & 1 ? (uint64_t)nw_fixed_signed(&m->code, bytes) : nw_fixed(&m->code, bytes));
}

static void execute(machine *m, uint8_t operation) {
    uint64_t value;
    if (operation >= 0x30 && operation <= 0x4f)
        return push(m, operation - 0x30u);
    if (operation >= 0x70 && operation <= 0x8f)
        return push(m, register_value(m, operation - 0x70u) + (uint64_t)nw_variable_signed(&m->code));
    if (operation >= 0x08 && operation <= 0x0f)
        return constant(m, operation);
    switch (operation) {
    case 0x03: push(m, nw_fixed(&m->code, 8)); break;
    case 0x06: push(m, fetch(m, pop(m), 8)); break;
    case 0x10: push(m, nw_variable(&m->code)); break;
    case 0x11: push(m, (uint64_t)nw_variable_signed(&m->code)); break;
    case 0x12: push(m, pick(m, 0)); break;
    case 0x13: pop(m); break;
    case 0x14: push(m, pick(m, 1)); break;
    case 0x15: push(m, pick(m, nw_fixed(&m->code, 1))); break;
    case 0x17: rotate(m); break;
    case 0x19: value = pop(m), push(m, (int64_t)value < 0 ? 0 - value : value); break;
    case 0x1f: push(m, 0 - pop(m)); break;
    case 0x20: push(m, ~pop(m)); break;
    case 0x23: push(m, pop(m) + nw_variable(&m->code)); break;
    case 0x28: jump(m, pop(m) != 0); break;
    case 0x2f: jump(m, 1); break;
    case 0x92:
        value = register_value(m, nw_variable(&m->code)), push(m, value + (uint64_t)nw_variable_signed(&m->code));
        break;
    case 0x94: value = nw_fixed(&m->code, 1), push(m, fetch(m, pop(m), (unsigned)value)); break;
    case 0x96: break; /* nop */
    default: combine(m, operation);
    }
}

int nw_cfi_compute(const nw_loaded *in, int32_t expression, const nw_registers *registers, const uint64_t *frame,
                   nw_readable *tables, nw_readable *stack, uint64_t *result) {
    nw_cursor from = {tables, in->unwinding + (uintptr_t)(intptr_t)expression, in->end, 0};
    if (from.at < in->start || from.at >= in->end)
        return 0;
    uint64_t length = nw_variable(&from);
    machine m = {.registers = registers, .stack_sight = stack, .code = nw_part(&from, length)};
    m.begin = m.code.at;
    if (frame != NULL)
        push(&m, *frame);
    for (unsigned steps = 0; m.code.at < m.code.end && !m.failed && !m.code.failed; steps++) {
        if (steps == MOST_STEPS)
            return 0;
        execute(&m, (uint8_t)nw_fixed(&m.code, 1));
    }
    *result = pop(&m);
    return !m.failed && !m.code.failed;
}
