/* Reads DWARF tables step by step, never beyond their end. */
#ifndef NODEWISE_TABLES_H
#define NODEWISE_TABLES_H

#include "readable.h"

#include <stdint.h>

typedef struct nw_cursor {
    nw_readable *sight;
    uintptr_t at;
    uintptr_t end;
    int failed; /* something could not be read; everything read since is 0 */
} nw_cursor;

static inline uint64_t nw_fixed(nw_cursor *from, unsigned bytes) {
    uint64_t value = 0; /* both machines are little-endian */
    if (from->failed || from->end - from->at < bytes || !nw_read(from->sight, &value, from->at, bytes)) {
        from->failed = 1;
        return 0;
    }
    from->at += bytes;
    return value;
}

static inline int64_t nw_fixed_signed(nw_cursor *from, unsigned bytes) {
    unsigned unused = 64 - 8 * bytes;
    return (int64_t)(nw_fixed(from, bytes) << unused) >> unused;
}

/* LEB128. */
static inline uint64_t nw_variable(nw_cursor *from) {
    uint64_t value = 0, byte = 0x80;
    for (unsigned shift = 0; byte & 0x80 && !from->failed; shift += 7) {
        byte = nw_fixed(from, 1);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
    }
    return value;
}

static inline int64_t nw_variable_signed(nw_cursor *from) {
    uint64_t value = 0, byte = 0x80;
    unsigned shift = 0;
    for (; byte & 0x80 && !from->failed; shift += 7) {
        byte = nw_fixed(from, 1);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
    }
    if (byte & 0x40 && shift < 64)
        value |= -(1ull << shift);
    return (int64_t)value;
}

/* A cursor over the next `bytes`, which this cursor skips. */
static inline nw_cursor nw_part(nw_cursor *from, uint64_t bytes) {
    nw_cursor part = *from;
    if (bytes > from->end - from->at)
        from->failed = part.failed = 1;
    else
        part.end = from->at += bytes;
    return part;
}

#endif
