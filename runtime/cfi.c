#include "cfi.h"
#include "scratch.h"
#include "tables.h"

#include <stddef.h>
#include <string.h>

/* ---- Pointers in the encodings of .eh_frame. ---- */

enum { ENCODED_FORM = 0x0f, ENCODED_BASE = 0x70, FROM_HERE = 0x10, SEARCHABLE = 0x3b };

static uint64_t encoded(nw_cursor *from, uint8_t encoding) {
    static const uint8_t sizes[16] = {[0] = 8, [2] = 2, [3] = 4, [4] = 8, [10] = 2, [11] = 4, [12] = 8};
    unsigned bytes = sizes[encoding & ENCODED_FORM];
    uint64_t base = (encoding & ENCODED_BASE) == FROM_HERE ? from->at : 0;
    if (bytes == 0 || ((encoding & ENCODED_BASE) != 0 && base == 0)) {
        from->failed = 1;
        return 0;
    }
    return base + (encoding & 8 ? (uint64_t)nw_fixed_signed(from, bytes) : nw_fixed(from, bytes));
}

/* ---- Search for the entry of a code address. ---- */

/* Searches the sorted table of .eh_frame_hdr for the last entry that begins at or before the code; 0: none. */
static uintptr_t find_entry(const nw_loaded *in, uintptr_t code, nw_readable *sight) {
    nw_cursor header = {sight, in->unwinding, in->end, 0};
    uint8_t version = nw_fixed(&header, 1), frames = nw_fixed(&header, 1), counted = nw_fixed(&header, 1);
    if (nw_fixed(&header, 1) != SEARCHABLE || version != 1)
        return 0;
    encoded(&header, frames);
    uint64_t low = 0, high = encoded(&header, counted);
    if (header.failed || high > (header.end - header.at) / 8)
        return 0;
    int32_t pair[2], wanted = (int32_t)(code - in->unwinding);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (!nw_read(sight, pair, header.at + 8 * middle, sizeof pair))
            return 0;
        if (pair[0] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || !nw_read(sight, pair, header.at + 8 * (low - 1), sizeof pair))
        return 0;
    return in->unwinding + (uintptr_t)(intptr_t)pair[1];
}

/* ---- An entry (FDE), and the information that it shares with others (CIE). ---- */

typedef struct common {
    uint64_t code_unit;
    int64_t data_unit;
    uint8_t caller, encoding, signal, augmented;
    nw_cursor program;
} common;

/* Reads the length and identifier of a record, and leaves the cursor at the rest. Returns 0 if there is no record. */
static int open_record(const nw_loaded *in, nw_readable *sight, uintptr_t at, nw_cursor *record, uint32_t *identifier) {
    *record = (nw_cursor){sight, at, in->end, at < in->start || at >= in->end};
    uint32_t length = (uint32_t)nw_fixed(record, 4);
    *record = nw_part(record, length);
    *identifier = (uint32_t)nw_fixed(record, 4);
    return !record->failed;
}

static int read_augmentation(common *of, nw_cursor *record, const char *letters) {
    of->augmented = letters[0] == 'z';
    if (!of->augmented)
        return letters[0] == 0;
    uint64_t length = nw_variable(record);
    nw_cursor data = nw_part(record, length);
    for (letters++; *letters != 0; letters++) {
        if (*letters == 'R')
            of->encoding = (uint8_t)nw_fixed(&data, 1);
        else if (*letters == 'L')
            nw_fixed(&data, 1);
        else if (*letters == 'P')
            encoded(&data, (uint8_t)nw_fixed(&data, 1) & ENCODED_FORM);
        else if (*letters == 'S')
            of->signal = 1;
        else if (*letters != 'B' && *letters != 'G') /* aarch64: signed with key B, tagged memory */
            return 0;
    }
    return !data.failed;
}

static int read_common(const nw_loaded *in, nw_readable *sight, uintptr_t at, common *of) {
    uint32_t identifier;
    nw_cursor record;
    char letters[8];
    unsigned count = 0;
    *of = (common){0};
    if (!open_record(in, sight, at, &record, &identifier) || identifier != 0)
        return 0;
    uint8_t version = (uint8_t)nw_fixed(&record, 1);
    while ((letters[count] = (char)nw_fixed(&record, 1)) != 0)
        if (++count == sizeof letters)
            return 0;
    of->code_unit = nw_variable(&record);
    of->data_unit = nw_variable_signed(&record);
    uint64_t caller = version == 1 ? nw_fixed(&record, 1) : nw_variable(&record);
    if ((version != 1 && version != 3) || caller >= NW_REGISTERS || !read_augmentation(of, &record, letters))
        return 0;
    of->caller = (uint8_t)caller;
    of->program = record;
    return !record.failed;
}

/* ---- Call frame instructions, executed up to one code address, yield the rules there. ---- */

enum { REMEMBERED = 4 };

typedef struct rules {
    nw_rule frame; /* NW_UNDEFINED: not set yet */
    nw_rule of[NW_REGISTERS];
} rules;

typedef struct machine {
    const nw_loaded *in;
    const common *common;
    uintptr_t location, code;
    rules now, initial, remembered[REMEMBERED];
    unsigned depth;
} machine;

static void set(machine *m, nw_cursor *from, uint64_t reg, nw_how how, uint8_t base, int64_t offset) {
    if (offset != (int32_t)offset)
        from->failed = 1;
    else if (reg < NW_REGISTERS)
        m->now.of[reg] = (nw_rule){(uint8_t)reg, (uint8_t)how, base, 0, (int32_t)offset};
}

static void set_frame(machine *m, nw_cursor *from, uint64_t reg, int64_t offset) {
    if (offset != (int32_t)offset || reg >= NW_REGISTERS)
        from->failed = 1;
    else
        m->now.frame = (nw_rule){0, NW_VALUE, (uint8_t)reg, 0, (int32_t)offset};
}

/* An expression of the form register + offset, possibly followed by a load from there, becomes a plain rule. */
static int simplify(nw_cursor expression, nw_rule *rule) {
    enum { BREG = 0x70, BREG_LAST = 0x8f, DEREF = 0x06 };
    uint8_t operation = (uint8_t)nw_fixed(&expression, 1);
    int64_t offset = nw_variable_signed(&expression);
    int fetches = expression.at < expression.end;
    if (operation < BREG || operation > BREG_LAST || operation - BREG >= NW_REGISTERS || offset != (int32_t)offset ||
        (fetches && (nw_fixed(&expression, 1) != DEREF || rule->how == NW_COMPUTED_AT)) ||
        expression.at < expression.end || expression.failed)
        return 0;
    rule->how = fetches || rule->how == NW_COMPUTED_AT ? NW_AT : NW_VALUE;
    rule->base = operation - BREG;
    rule->offset = (int32_t)offset;
    return 1;
}

static nw_rule computed(const machine *m, nw_cursor *from, uint64_t reg, nw_how how) {
    int64_t at = (int64_t)(from->at - m->in->unwinding);
    nw_rule rule = {(uint8_t)reg, (uint8_t)how, NW_FRAME, 0, (int32_t)at};
    uint64_t length = nw_variable(from);
    nw_cursor expression = nw_part(from, length);
    if (at != (int32_t)at)
        from->failed = 1;
    else if (!expression.failed)
        simplify(expression, &rule);
    return rule;
}

static void compute(machine *m, nw_cursor *from, nw_how how) {
    uint64_t reg = nw_variable(from);
    nw_rule rule = computed(m, from, reg, how);
    if (reg < NW_REGISTERS)
        m->now.of[reg] = rule;
}

static void remember(machine *m, nw_cursor *from) {
    if (m->depth == REMEMBERED)
        from->failed = 1;
    else
        m->remembered[m->depth++] = m->now;
}

static void restore(machine *m, nw_cursor *from) {
    if (m->depth == 0)
        from->failed = 1;
    else
        m->now = m->remembered[--m->depth];
}

static void restore_one(machine *m, uint64_t reg) {
    if (reg < NW_REGISTERS)
        m->now.of[reg] = m->initial.of[reg];
}

/* Instructions whose opcode takes the whole byte; operands follow it. */
static void operate_on(machine *m, nw_cursor *from, uint8_t operation) {
    int64_t unit = m->common->data_unit;
    uint64_t reg;
    switch (operation) {
    case 0x00: break; /* nop */
    case 0x2d: break; /* aarch64: from here on return addresses are signed, or no longer signed */
    case 0x01: m->location = encoded(from, m->common->encoding); break;
    case 0x02: m->location += nw_fixed(from, 1) * m->common->code_unit; break;
    case 0x03: m->location += nw_fixed(from, 2) * m->common->code_unit; break;
    case 0x04: m->location += nw_fixed(from, 4) * m->common->code_unit; break;
    case 0x05: reg = nw_variable(from), set(m, from, reg, NW_AT, NW_FRAME, (int64_t)nw_variable(from) * unit); break;
    case 0x06: restore_one(m, nw_variable(from)); break;
    case 0x07: set(m, from, nw_variable(from), NW_UNDEFINED, 0, 0); break;
    case 0x08: set(m, from, nw_variable(from), NW_SAME, 0, 0); break;
    case 0x09:
        reg = nw_variable(from);
        uint64_t other = nw_variable(from);
        set(m, from, reg, other < NW_REGISTERS ? NW_VALUE : NW_UNDEFINED, (uint8_t)other, 0);
        break;
    case 0x0a: remember(m, from); break;
    case 0x0b: restore(m, from); break;
    case 0x0c: reg = nw_variable(from), set_frame(m, from, reg, (int64_t)nw_variable(from)); break;
    case 0x0d: set_frame(m, from, nw_variable(from), m->now.frame.offset); break;
    case 0x0e: set_frame(m, from, m->now.frame.base, (int64_t)nw_variable(from)); break;
    case 0x0f: m->now.frame = computed(m, from, 0, NW_COMPUTED); break;
    case 0x10: compute(m, from, NW_COMPUTED_AT); break;
    case 0x11: reg = nw_variable(from), set(m, from, reg, NW_AT, NW_FRAME, nw_variable_signed(from) * unit); break;
    case 0x12: reg = nw_variable(from), set_frame(m, from, reg, nw_variable_signed(from) * unit); break;
    case 0x13: set_frame(m, from, m->now.frame.base, nw_variable_signed(from) * unit); break;
    case 0x14: reg = nw_variable(from), set(m, from, reg, NW_VALUE, NW_FRAME, (int64_t)nw_variable(from) * unit); break;
    case 0x15: reg = nw_variable(from), set(m, from, reg, NW_VALUE, NW_FRAME, nw_variable_signed(from) * unit); break;
    case 0x16: compute(m, from, NW_COMPUTED); break;
    case 0x2e: nw_variable(from); break; /* size of arguments */
    default: from->failed = 1;
    }
}

/* Executes a program up to the requested code address. */
static int run(machine *m, nw_cursor program) {
    while (program.at < program.end && m->location <= m->code && !program.failed) {
        uint8_t operation = (uint8_t)nw_fixed(&program, 1), low = operation & 0x3f;
        switch (operation & 0xc0) {
        case 0x40: m->location += low * m->common->code_unit; break;
        case 0x80: set(m, &program, low, NW_AT, NW_FRAME, (int64_t)nw_variable(&program) * m->common->data_unit); break;
        case 0xc0: restore_one(m, low); break;
        default: operate_on(m, &program, operation);
        }
    }
    return !program.failed;
}

static int fill(const machine *m, nw_row *row) {
    *row = (nw_row){.frame = m->now.frame, .caller = m->common->caller, .signal = m->common->signal};
    for (uint32_t i = 0; i < NW_REGISTERS; i++)
        if (m->now.of[i].how != NW_SAME)
            row->rules[row->count++] = m->now.of[i];
    return row->frame.how != NW_UNDEFINED;
}

_Static_assert(sizeof(machine) <= NW_SCRATCH_BYTES, "a machine has room");

static int compute_row(const nw_loaded *in, uintptr_t code, nw_readable *sight, machine *m, nw_row *row) {
    common of;
    nw_cursor entry;
    uint32_t back;
    uintptr_t at = in->unwinding == 0 ? 0 : find_entry(in, code, sight);
    if (at == 0 || !open_record(in, sight, at, &entry, &back) || back == 0 ||
        !read_common(in, sight, at + 4 - back, &of))
        return 0;
    uintptr_t start = encoded(&entry, of.encoding), bytes = encoded(&entry, of.encoding & ENCODED_FORM);
    if (of.augmented) {
        uint64_t length = nw_variable(&entry);
        nw_part(&entry, length);
    }
    if (entry.failed || code - start >= bytes)
        return 0;
    memset(&m->now, 0, sizeof m->now);
    m->in = in, m->common = &of, m->location = 0, m->code = code, m->depth = 0;
    m->now.frame.how = NW_UNDEFINED;
    m->initial = m->now;
    if (!run(m, of.program))
        return 0;
    m->initial = m->now;
    m->location = start;
    return run(m, entry) && fill(m, row);
}

int nw_cfi_row(const nw_loaded *in, uintptr_t code, nw_readable *sight, nw_row *row) {
    machine *m = nw_scratch_take();
    int known = m != NULL && compute_row(in, code, sight, m, row);
    nw_scratch_give(m);
    return known;
}
