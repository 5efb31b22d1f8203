/* The module that code lies in, asked without the loader's locks: callers may be signal handlers, or callbacks that
 * the loader calls. */
#ifndef NODEWISE_LOADED_H
#define NODEWISE_LOADED_H

#include "readable.h"

#include <stdint.h>

struct link_map;

typedef struct nw_loaded {
    uintptr_t start; /* first byte of its mappings */
    uintptr_t end;   /* behind the last */
    uintptr_t bias;
    uintptr_t unwinding; /* its .eh_frame_hdr; 0: it has none */
    const void *map;     /* the loader's own entry */
    const char *path;    /* as the loader has it: empty for the program */
} nw_loaded;

#define NW_MOST_LISTED 4096u /* modules looked at */

/* One of the loader's list. Another thread may be unloading it: what it leads to is read with care. */
typedef struct nw_listed {
    uintptr_t bias;
    uintptr_t parts; /* its program headers */
    unsigned long part_count;
    uintptr_t dynamic;
    uintptr_t path;
} nw_listed;

/* Those of the program's own namespace, the program first, until `visit` returns 0. What leads into them is read by `sight`. */
typedef int nw_visit_listed(nw_readable *sight, const nw_listed *module, void *opaque);
__attribute__((visibility("hidden"))) void nw_loaded_each(nw_visit_listed *visit, void *opaque);

/* Where the program headers of one are. 0: nowhere. */
__attribute__((visibility("hidden"))) int nw_find_parts(nw_readable *sight, const struct link_map *map,
                                                        uintptr_t *parts, unsigned long *count);

/* Where a function is that one of them defines, by its name; null if none does. */
__attribute__((visibility("hidden"))) void *nw_loaded_function(const char *name);

/* 0: in none that the loader knows. */
__attribute__((visibility("hidden"))) int nw_loaded_at(uintptr_t address, nw_loaded *found);

#endif
