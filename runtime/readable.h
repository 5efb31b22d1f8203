/* Memory that may not be there, read without a fault: what a walk finds on a stack, or in the tables of a
 * program, may lead anywhere. No lock, no memory of its own, errno kept. */
#ifndef NODEWISE_READABLE_H
#define NODEWISE_READABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NW_LOOK 4096u /* a page, or a part of one */

/* What one look has found to be readable: [from, to). It stays so only if no other thread unmaps it meanwhile, as one
 * does that closes a module: such memory is read through a copy that the kernel makes, from the process's own memory as
 * a file. */
typedef struct nw_readable {
    uintptr_t from;
    uintptr_t to;
    char *copy; /* of [from, to), NW_COPIED of room; null: it is read where it is */
    int memory; /* the file's descriptor, with a copy */
} nw_readable;

#define NW_COPIED 1024u

/* nw_read of what is not known yet: the kernel is asked. */
__attribute__((visibility("hidden"))) int nw_read_unknown(nw_readable *known, void *to, uintptr_t address,
                                                          size_t bytes);

/* Copies `bytes` from `address`. 0: they cannot be read, and nothing was copied. */
static inline int nw_read(nw_readable *known, void *to, uintptr_t address, size_t bytes) {
    if (address < known->from || address >= known->to || bytes > known->to - address)
        return nw_read_unknown(known, to, address, bytes);
    memcpy(to, known->copy != NULL ? known->copy + (address - known->from) : (const char *)address, bytes);
    return 1;
}

/* The pages around something that is there. */
static inline nw_readable nw_around(const void *what, size_t bytes) {
    uintptr_t from = (uintptr_t)what;
    return (nw_readable){.from = from & -(uintptr_t)NW_LOOK, .to = (from + bytes + NW_LOOK - 1) & -(uintptr_t)NW_LOOK};
}

#endif
