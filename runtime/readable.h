/* Memory that may not be there, read without a fault: what a walk finds on a stack, or in the tables of a
 * program, may lead anywhere. No lock, no memory of its own, errno kept. */
#ifndef NODEWISE_READABLE_H
#define NODEWISE_READABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NW_LOOK 4096u /* a page, or a part of one */

/* What one look has found to be readable: [from, to). */
typedef struct nw_readable {
    uintptr_t from;
    uintptr_t to;
} nw_readable;

/* Whether `bytes` from `address` can be read. The kernel is asked for pages that are not known yet. */
__attribute__((visibility("hidden"))) int nw_look(nw_readable *known, uintptr_t address, size_t bytes);

/* Copies `bytes` from `address`. 0: they cannot be read, and nothing was copied. */
static inline int nw_read(nw_readable *known, void *to, uintptr_t address, size_t bytes) {
    int can = (address >= known->from && address < known->to && bytes <= known->to - address) ||
              nw_look(known, address, bytes);
    if (can)
        memcpy(to, (const void *)address, bytes);
    return can;
}

/* The pages around something that is there. */
static inline nw_readable nw_around(const void *what, size_t bytes) {
    uintptr_t from = (uintptr_t)what;
    return (nw_readable){from & -(uintptr_t)NW_LOOK, (from + bytes + NW_LOOK - 1) & -(uintptr_t)NW_LOOK};
}

#endif
