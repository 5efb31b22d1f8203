/* Visits the loader's list from its first entry to its last. No lock of the loader is held, so other threads may open
 * and close modules meanwhile. Memory that they may unmap at any moment is copied by the kernel. */
#define _GNU_SOURCE
#include "loaded.h"
#include "observer.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>

/* Opens the process's memory as a file; unlike process_vm_readv, that also works under QEMU. The path is the calling
 * thread's, since the main thread may have ended. If the file cannot be opened, memory is checked and then read
 * directly: the program would crash if another thread closed a module between the two. */
static nw_readable open_memory(void) {
    nw_readable sight = {.copy = nw_scratch_take()};
    long file = sight.copy == NULL ? -ENOMEM : nw_open("/proc/thread-self/mem", O_RDONLY);
    sight.memory = (int)file;
    if (nw_failed(file)) {
        nw_scratch_give(sight.copy);
        sight = (nw_readable){0};
    }
    return sight;
}

static void close_memory(const nw_readable *sight) {
    if (sight->copy == NULL)
        return;
    nw_close(sight->memory);
    nw_scratch_give(sight->copy);
}

void nw_loaded_each(nw_visit_listed *visit, void *opaque) {
    struct link_map map;
    nw_readable sight = open_memory();
    const struct link_map *next = _r_debug.r_map;
    for (uint32_t i = 0; i < NW_MOST_LISTED && next != NULL && nw_read(&sight, &map, (uintptr_t)next, sizeof map);
         i++) {
        nw_listed module = {.bias = map.l_addr, .dynamic = (uintptr_t)map.l_ld, .path = (uintptr_t)map.l_name};
        if (nw_find_parts(&sight, &map, &module.parts, &module.part_count) && !visit(&sight, &module, opaque))
            break;
        next = map.l_next;
    }
    close_memory(&sight);
}
