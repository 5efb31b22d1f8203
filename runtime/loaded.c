#define _GNU_SOURCE
#include "loaded.h"
#include "readable.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

/* ---- The loader's list, read as it is. Another thread may be changing it, so that every link is read with care. C
 * libraries before glibc 2.35 have no more, and what a module is made of is found out once. ---- */

#define KNOWN 256u /* modules remembered; more are looked up every time */
#define PARTS 64u

enum { FREE, FILLING, FILLED };

static struct {
    _Atomic int state;
    nw_loaded module;
    const void *dynamic; /* tells modules apart that had one entry of the loader's, one after the other */
} known[KNOWN];

static void add_part(nw_loaded *module, const ElfW(Phdr) * part) {
    uintptr_t start = module->bias + part->p_vaddr, end = start + part->p_memsz;
    if (part->p_type == PT_GNU_EH_FRAME)
        module->unwinding = start;
    if (part->p_type != PT_LOAD)
        return;
    module->start = start < module->start ? start : module->start;
    module->end = end > module->end ? end : module->end;
}

/* The program's headers are told by the kernel, others' follow their file's header. */
int nw_find_parts(nw_readable *sight, const struct link_map *map, uintptr_t *parts, unsigned long *count) {
    ElfW(Ehdr) header;
    *parts = getauxval(AT_PHDR);
    *count = getauxval(AT_PHNUM);
    if (map->l_prev == NULL)
        return 1;
    if (!nw_read(sight, &header, map->l_addr, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return 0;
    *parts = map->l_addr + header.e_phoff;
    *count = header.e_phnum;
    return 1;
}

static int measure(nw_readable *sight, const struct link_map *map, nw_loaded *module) {
    ElfW(Phdr) part;
    uintptr_t parts;
    unsigned long count;
    *module = (nw_loaded){.start = UINTPTR_MAX, .bias = map->l_addr, .path = map->l_name};
    if (!nw_find_parts(sight, map, &parts, &count))
        return 0;
    for (unsigned long i = 0; i < count && i < PARTS; i++) {
        if (!nw_read(sight, &part, parts + i * sizeof part, sizeof part))
            return 0;
        add_part(module, &part);
    }
    return module->start < module->end;
}

static int holds(const nw_loaded *module, uintptr_t address) {
    return address >= module->start && address < module->end;
}

/* Still what it was, as far as the loader's entry says. */
static int is_current(nw_readable *sight, const nw_loaded *module, const void *dynamic) {
    struct link_map map;
    return nw_read(sight, &map, (uintptr_t)module->map, sizeof map) && map.l_addr == module->bias &&
           map.l_ld == dynamic;
}

/* A handler that interrupts this finds the entry unfinished and takes another. */
static void remember(const nw_loaded *module, const void *dynamic) {
    for (uint32_t i = 0; i < KNOWN; i++) {
        int expected = FREE;
        if (!atomic_compare_exchange_strong(&known[i].state, &expected, FILLING))
            continue;
        known[i].module = *module;
        known[i].dynamic = dynamic;
        atomic_store_explicit(&known[i].state, FILLED, memory_order_release);
        return;
    }
}

/* Only the module that begins last before the address is looked into. It stays while its code runs; others may be
 * unmapped at any moment. */
static int search(uintptr_t address, nw_loaded *found) {
    struct link_map map, nearest;
    const struct link_map *of = NULL;
    nw_readable sight = {0};
    for (uint32_t i = 0; i < KNOWN; i++) {
        int state = atomic_load_explicit(&known[i].state, memory_order_acquire);
        if (state == FREE)
            break;
        *found = known[i].module;
        if (state == FILLED && holds(found, address) && is_current(&sight, found, known[i].dynamic))
            return 1;
    }
    const struct link_map *next = _r_debug.r_map;
    for (uint32_t i = 0; i < NW_MOST_LISTED && next != NULL && nw_read(&sight, &map, (uintptr_t)next, sizeof map);
         i++) {
        if (map.l_addr <= address && (of == NULL || map.l_addr > nearest.l_addr)) {
            nearest = map;
            of = next;
        }
        next = map.l_next;
    }
    if (of == NULL || !measure(&sight, &nearest, found) || !holds(found, address))
        return 0;
    found->map = of;
    remember(found, nearest.l_ld);
    return 1;
}

/* ---- Since then it has an index that is read without a lock. ---- */

#if defined(DLFO_STRUCT_HAS_EH_DBASE) && !defined(NW_WITHOUT_FIND_OBJECT)
static __typeof__(_dl_find_object) *find_object;

/* By name, so that what is built with a newer C library runs with an older one. */
__attribute__((constructor(102))) static void find_finder(void) {
    *(void **)&find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
}

int nw_loaded_at(uintptr_t address, nw_loaded *found) {
    struct dl_find_object object;
    if (find_object == NULL)
        return search(address, found);
    if (find_object((void *)address, &object) != 0)
        return 0;
    *found = (nw_loaded){
        .start = (uintptr_t)object.dlfo_map_start,
        .end = (uintptr_t)object.dlfo_map_end,
        .bias = object.dlfo_link_map->l_addr,
        .unwinding = (uintptr_t)object.dlfo_eh_frame,
        .map = object.dlfo_link_map,
        .path = object.dlfo_link_map->l_name,
    };
    return 1;
}
#else
int nw_loaded_at(uintptr_t address, nw_loaded *found) { return search(address, found); }
#endif
