/* Finds the module that code belongs to, without the loader's locks: callers may be signal handlers, or callbacks of
 * the loader. */
#ifndef NODEWISE_LOADED_H
#define NODEWISE_LOADED_H

#include "readable.h"

#include <stdint.h>

struct link_map;

typedef struct nw_loaded {
    uintptr_t start; /* first byte of its mappings */
    uintptr_t end;   /* end of its mappings */
    uintptr_t bias;
    uintptr_t unwinding; /* its .eh_frame_hdr; 0: it has none */
    const void *map;     /* the loader's own entry */
    const char *path;    /* as the loader has it: empty for the program */
} nw_loaded;

#define NW_MOST_LISTED 4096u /* modules of the list that are visited */

/* A module of the loader's list. Another thread may be unloading it, so memory behind its addresses may vanish. */
typedef struct nw_listed {
    uintptr_t bias;
    uintptr_t parts; /* its program headers */
    unsigned long part_count;
    uintptr_t dynamic;
    uintptr_t path;
} nw_listed;

/* Visits the modules of the program's own namespace, the program first, until `visit` returns 0. Their memory must be
 * read with nw_read and `sight`. */
typedef int nw_visit_listed(nw_readable *sight, const nw_listed *module, void *opaque);
__attribute__((visibility("hidden"))) void nw_loaded_each(nw_visit_listed *visit, void *opaque);

/* Finds a module's program headers. 0: there are none. */
__attribute__((visibility("hidden"))) int nw_find_parts(nw_readable *sight, const struct link_map *map,
                                                        uintptr_t *parts, unsigned long *count);

/* The address of a function that one of these modules defines; null if none does. */
__attribute__((visibility("hidden"))) void *nw_loaded_function(const char *name);

/* The same for a call of code at an address: that of a module which the code's module needs comes first. Our own module,
 * which defines the name to be called instead, does not count. */
__attribute__((visibility("hidden"))) void *nw_called_function(const char *name, uintptr_t caller);

/* Finds the module at an address. 0: the loader knows none there. */
__attribute__((visibility("hidden"))) int nw_loaded_at(uintptr_t address, nw_loaded *found);

#endif
