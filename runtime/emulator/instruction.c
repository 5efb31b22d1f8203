#include "instruction.h"

#include "mark.h"

#include <string.h>

enum prefix { NONE, P66, PF3, PF2 }; /* numbered as in VEX prefixes */

enum map { BYTE, MAP_0F, MAP_0F38, MAP_0F3A };

typedef struct code {
    const uint8_t *at, *end; /* behind the opcode: ModRM */
    enum map map;
    enum prefix prefix;
    uint8_t opcode;
    bool vex, wide; /* VEX.L */
    bool rex_w, rex_b;
} code;

static bool take(code *code, uint8_t *byte) {
    if (code->at == code->end)
        return false;
    *byte = *code->at++;
    return true;
}

/* VEX prefixes, C5 and C4: they encode the mandatory prefix, the opcode map and the vector length. */
static bool read_vex(code *code, uint8_t first) {
    uint8_t payload, map = 1;
    if (!take(code, &payload))
        return false;
    if (first == 0xc4) {
        map = payload & 31;
        code->rex_b = !(payload & 0x20);
        if (!take(code, &payload))
            return false;
        code->rex_w = payload >> 7;
    }
    code->vex = true;
    code->wide = payload >> 2 & 1;
    code->prefix = payload & 3;
    code->map = map <= MAP_0F3A ? map : BYTE;
    return map <= MAP_0F3A && take(code, &code->opcode);
}

static bool read_escape(code *code) {
    if (code->opcode != 0x0f)
        return true;
    code->map = MAP_0F;
    if (!take(code, &code->opcode))
        return false;
    if (code->opcode != 0x38 && code->opcode != 0x3a)
        return true;
    code->map = code->opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
    return take(code, &code->opcode);
}

/* Prefixes and opcode. The last of F2 and F3 takes precedence over 66. */
static bool read_opcode(code *code) {
    uint8_t byte;
    while (take(code, &byte)) {
        if (byte == 0xf3 || byte == 0xf2)
            code->prefix = byte == 0xf3 ? PF3 : PF2;
        else if (byte == 0x66)
            code->prefix = code->prefix == NONE ? P66 : code->prefix;
        else if (byte != 0x67 && byte != 0xf0 && byte != 0x64 && byte != 0x65 && byte != 0x2e && byte != 0x36 &&
                 byte != 0x3e && byte != 0x26)
            break;
    }
    if (byte >= 0x40 && byte <= 0x4f) {
        code->rex_w = byte >> 3 & 1;
        code->rex_b = byte & 1;
        if (!take(code, &byte))
            return false;
    }
    if (byte == 0xc4 || byte == 0xc5)
        return read_vex(code, byte);
    code->opcode = byte;
    return read_escape(code);
}

typedef struct range {
    uint8_t first, last;
} range;

static bool in(const range *ranges, size_t count, uint8_t opcode) {
    for (size_t i = 0; i < count; i++)
        if (opcode >= ranges[i].first && opcode <= ranges[i].last)
            return true;
    return false;
}
#define IN(ranges, opcode) in(ranges, sizeof(ranges) / sizeof *(ranges), opcode)

/* ---- Width of vector operands. `full` is that of the register: 16, or 32 with VEX.L. ---- */

/* Shifts by a count in memory read 16 bytes whatever the vector length. */
static const range shifts[] = {{0xd1, 0xd3}, {0xe1, 0xe2}, {0xf1, 0xf3}};

static uint8_t width_0f(const code *code, uint8_t full) {
    static const range packed[] = {{0x10, 0x11}, {0x14, 0x15}, {0x28, 0x29}, {0x2b, 0x2b},
                                   {0x51, 0x59}, {0x5c, 0x5f}, {0xc2, 0xc2}, {0xc6, 0xc6}};
    static const range integer[] = {{0x60, 0x6d}, {0x74, 0x76}, {0xd1, 0xd5}, {0xd8, 0xe5},
                                    {0xe7, 0xef}, {0xf1, 0xf6}, {0xf8, 0xfe}};
    uint8_t opcode = code->opcode;
    switch (opcode) {
    case 0x12: return code->prefix == PF3 || (code->prefix == PF2 && full == 32) ? full : 0;
    case 0x16: return code->prefix == PF3 ? full : 0;
    case 0x2c:
    case 0x2d: return code->prefix == P66 && !code->vex ? 16 : 0;
    case 0x5a: return code->prefix == P66 ? full : code->prefix == NONE && full == 32 ? 16 : 0;
    case 0x5b: return code->prefix != PF2 ? full : 0;
    case 0x6f:
    case 0x7f: return code->prefix == P66 || code->prefix == PF3 ? full : 0;
    case 0x70: return code->prefix != NONE ? full : 0;
    case 0xe6: return code->prefix == PF3 ? full == 32 ? 16 : 0 : full;
    case 0xf0: return code->prefix == PF2 ? full : 0;
    case 0x7c:
    case 0x7d:
    case 0xd0: return full;
    }
    if (IN(packed, opcode))
        return code->prefix == NONE || code->prefix == P66 ? full : 0;
    if (IN(integer, opcode) && code->prefix == P66)
        return IN(shifts, opcode) ? 16 : full;
    return 0;
}

/* Fused multiply-add: 96..9f, a6..af, b6..bf. */
static bool is_fused(const code *code) {
    return code->map == MAP_0F38 && code->prefix == P66 && code->opcode >= 0x96 && code->opcode <= 0xbf &&
           (code->opcode & 15) >= 6;
}

/* Odd opcodes from 9 on have a scalar operand, but QEMU reads as many bytes as the register has. */
static uint8_t scalar(const code *code) {
    return is_fused(code) && (code->opcode & 15) >= 9 && code->opcode & 1 ? code->rex_w ? 8 : 4 : 0;
}

static uint8_t width_0f38(const code *code, uint8_t full) {
    static const range whole[] = {{0x00, 0x0f}, {0x10, 0x10}, {0x14, 0x17}, {0x1c, 0x1e}, {0x28, 0x2d},
                                  {0x36, 0x41}, {0x45, 0x47}, {0x8c, 0x8c}, {0xcf, 0xcf}, {0xdb, 0xdf}};
    static const range sha[] = {{0xc8, 0xcd}};
    static const range halves[] = {{0x13, 0x13}, {0x20, 0x20}, {0x23, 0x23}, {0x25, 0x25},
                                   {0x30, 0x30}, {0x33, 0x33}, {0x35, 0x35}};
    uint8_t opcode = code->opcode;
    if (code->prefix == NONE && !code->vex)
        return IN(sha, opcode) ? 16 : 0;
    if (code->prefix != P66)
        return 0;
    if (IN(whole, opcode))
        return full;
    if (IN(halves, opcode))
        return full == 32 ? 16 : 0;
    if (opcode == 0x1a || opcode == 0x5a) /* broadcasts of 16 bytes */
        return 16;
    return is_fused(code) ? full : 0;
}

static uint8_t width_0f3a(const code *code, uint8_t full) {
    static const range whole[] = {{0x00, 0x02}, {0x04, 0x06}, {0x08, 0x09}, {0x0c, 0x0f}, {0x40, 0x42}, {0x44, 0x44},
                                  {0x46, 0x46}, {0x4a, 0x4c}, {0x60, 0x63}, {0xce, 0xcf}, {0xdf, 0xdf}};
    uint8_t opcode = code->opcode;
    if (opcode == 0xcc && code->prefix == NONE)
        return 16;
    if (code->prefix != P66)
        return 0;
    if (opcode == 0x18 || opcode == 0x19 || opcode == 0x38 || opcode == 0x39) /* one half of a register */
        return 16;
    if (opcode == 0x1d)
        return full == 32 ? 16 : 0;
    return IN(whole, opcode) ? full : 0;
}

static uint8_t width(const code *code, uint8_t reg) {
    uint8_t full = code->wide ? 32 : 16;
    switch (code->map) {
    case BYTE: return !code->vex && code->opcode == 0xdb && (reg == 5 || reg == 7) ? 10 : 0; /* fld, fstp */
    case MAP_0F:
        if (code->opcode == 0xc7) /* cmpxchg16b */
            return reg == 1 && code->rex_w ? 16 : 0;
        return width_0f(code, full);
    case MAP_0F38: return width_0f38(code, full);
    case MAP_0F3A: return width_0f3a(code, full);
    }
    return 0;
}

/* vmaskmovps, vmaskmovpd, vpmaskmovd and q, to memory. */
static bool is_masked_store(const code *code) {
    static const range stores[] = {{0x2e, 0x2f}, {0x8e, 0x8e}};
    return code->vex && code->map == MAP_0F38 && code->prefix == P66 && IN(stores, code->opcode);
}

/* ---- Read-modify-write. ---- */

/* The operand is read, then written. Instructions that write it only in some cases (cmpxchg8b) do not belong here. */
static bool modifies(const code *code, uint8_t reg) {
    static const range byte[] = {{0x86, 0x87}, {0xc0, 0xc1}, {0xd0, 0xd3}, {0xfe, 0xff}};
    static const range map_0f[] = {{0xa4, 0xa5}, {0xab, 0xad}, {0xb0, 0xb1}, {0xb3, 0xb3}, {0xbb, 0xbb}, {0xc0, 0xc1}};
    uint8_t opcode = code->opcode;
    if (code->vex)
        return false;
    if (code->map == MAP_0F)
        return (IN(map_0f, opcode)) || (opcode == 0xba && reg >= 5);
    if (code->map != BYTE)
        return false;
    if (opcode < 0x38)
        return (opcode & 7) < 2;
    if (opcode >= 0x80 && opcode <= 0x83)
        return reg != 7;
    if (opcode == 0xf6 || opcode == 0xf7)
        return reg == 2 || reg == 3;
    return IN(byte, opcode) && (opcode < 0xfe || reg < 2);
}

/* ---- The stack. ---- */

static bool based_on_rsp(const code *code, uint8_t modrm) {
    return (modrm & 7) == 4 && code->at < code->end && (*code->at & 7) == 4 && !code->rex_b;
}

/* Instructions without a ModRM byte: those that use the stack implicitly, and jumps. */
static void implicit(const code *code, nw_instruction *found) {
    uint8_t opcode = code->opcode;
    if (code->map == MAP_0F) {
        found->stack_writes = opcode == 0xa0 || opcode == 0xa8;
        found->stack_reads = opcode == 0xa1 || opcode == 0xa9;
    }
    if (code->map != BYTE || code->vex)
        return;
    found->returns = opcode == 0xc2 || opcode == 0xc3;
    if (opcode == 0xeb && code->end - code->at == 1) {
        found->jumps = true;
        found->distance = (int8_t)*code->at;
    } else if (opcode == 0xe9 && code->end - code->at == 4) {
        found->jumps = true;
        memcpy(&found->distance, code->at, 4);
    }
    found->stack_writes = (opcode >= 0x50 && opcode <= 0x57) || opcode == 0x68 || opcode == 0x6a || opcode == 0xe8 ||
                          opcode == 0x9c || opcode == 0xc8;
    found->stack_reads = (opcode >= 0x58 && opcode <= 0x5f) || found->returns || opcode == 0xc9 || opcode == 0x9d ||
                         opcode == 0xc8;
}

/* rep movs, stos, lods on elements below 8 bytes. */
static bool is_repeated(const code *code) {
    static const range strings[] = {{0xa4, 0xa5}, {0xaa, 0xad}};
    return code->map == BYTE && !code->vex && code->prefix == PF3 && IN(strings, code->opcode) &&
           (!(code->opcode & 1) || !code->rex_w);
}

static bool has_modrm(const code *code) {
    static const range byte[] = {{0x62, 0x63}, {0x69, 0x69}, {0x6b, 0x6b}, {0x80, 0x8f}, {0xc0, 0xc1},
                                 {0xc6, 0xc7}, {0xd0, 0xd3}, {0xd8, 0xdf}, {0xf6, 0xf7}, {0xfe, 0xff}};
    static const range none[] = {{0x04, 0x0b}, {0x0e, 0x0e}, {0x30, 0x37}, {0x77, 0x77},
                                 {0x80, 0x8f}, {0xa0, 0xa2}, {0xa8, 0xaa}, {0xc8, 0xcf}};
    if (code->map == BYTE)
        return (code->opcode < 0x40 && (code->opcode & 7) < 4) || IN(byte, code->opcode);
    return code->map != MAP_0F || !IN(none, code->opcode);
}

static void memory_operand(const code *code, uint8_t modrm, nw_instruction *found) {
    uint8_t reg = modrm >> 3 & 7;
    found->operand = true;
    found->width = width(code, reg);
    found->scalar = scalar(code);
    found->masked = is_masked_store(code);
    found->modifies = modifies(code, reg);
    if (code->map == MAP_0F && code->opcode == 0x01 && reg == 7)
        found->flushes = true;
    if (code->map == MAP_0F38 && code->opcode == 0x82 && code->prefix == P66)
        found->flushes = true;
    bool own = based_on_rsp(code, modrm);
    bool plain = code->map == BYTE && !code->vex;
    bool pushes = plain && code->opcode == 0xff && (reg == 2 || reg == 6);
    bool pops = plain && code->opcode == 0x8f;
    found->stack_writes = own || pushes;
    found->stack_reads = own || pops;
}

nw_instruction nw_decode(const uint8_t *bytes, size_t size) {
    nw_instruction found = {0};
    code code = {.at = bytes, .end = bytes + size};
    if (!read_opcode(&code))
        return found;
    uint8_t modrm;
    if (!has_modrm(&code) || !take(&code, &modrm)) {
        implicit(&code, &found);
        found.word = is_repeated(&code) ? 8 : 0;
        return found;
    }
    if (modrm < 0xc0) {
        memory_operand(&code, modrm, &found);
    } else if (code.map == BYTE && code.opcode == 0xff && (modrm >> 3 & 6) == 2) {
        found.stack_writes = (modrm >> 3 & 7) == 2; /* call through a register */
    } else if (code.map == MAP_0F && code.opcode == 0x22) {
        uint8_t control = modrm >> 3 & 7;
        found.flushes = control == 0 || control == 3 || control == 4;
    }
    int32_t displacement;
    if (size == NW_MARK_BYTES && code.map == MAP_0F && code.opcode == 0x1f && modrm == 0x80) {
        memcpy(&displacement, bytes + 3, sizeof displacement);
        uint32_t op = (uint32_t)displacement - NW_MARK_MAGIC;
        found.mark = op >= NW_MARK_HERE && op <= NW_MARK_LAST ? (uint8_t)op : 0;
    }
    return found;
}
