/* Reads memory that may not be mapped, without a fault: addresses found on a stack, or in the tables of a
 * program, may be wrong. Takes no lock, allocates nothing, keeps errno. */
#ifndef NODEWISE_READABLE_H
#define NODEWISE_READABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NW_LOOK 4096u /* a page, or a part of one */

/* The range [from, to) that was found to be readable. It remains so only if no other thread unmaps it, as happens when
 * a module is closed. Memory of which that is possible is read through a copy that the kernel makes, from
 * /proc/.../mem. */
typedef struct nw_readable {
    uintptr_t from;
    uintptr_t to;
    char *copy; /* buffer of NW_COPIED bytes for a copy of [from, to); null: memory is read directly */
    int memory; /* with `copy`: the descriptor of the file */
} nw_readable;

#define NW_COPIED 1024u

/* nw_read outside the known range: asks the kernel. */
__attribute__((visibility("hidden"))) int nw_read_unknown(nw_readable *known, void *to, uintptr_t address,
                                                          size_t bytes);

/* Copies `bytes` from `address`. Returns 0 if they cannot be read; then nothing was copied. */
static inline int nw_read(nw_readable *known, void *to, uintptr_t address, size_t bytes) {
    if (address < known->from || address >= known->to || bytes > known->to - address)
        return nw_read_unknown(known, to, address, bytes);
    memcpy(to, known->copy != NULL ? known->copy + (address - known->from) : (const char *)address, bytes);
    return 1;
}

/* The pages of an object that is known to exist. */
static inline nw_readable nw_around(const void *what, size_t bytes) {
    uintptr_t from = (uintptr_t)what;
    return (nw_readable){.from = from & -(uintptr_t)NW_LOOK, .to = (from + bytes + NW_LOOK - 1) & -(uintptr_t)NW_LOOK};
}

#endif
