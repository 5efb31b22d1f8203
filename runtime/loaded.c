#define _GNU_SOURCE
#include "loaded.h"
#include "readable.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

/* ---- The loader's list, which is all that glibc before 2.35 offers. It is read without a lock while another thread
 * may change it, so every link is read with checks. The extent of a module is determined once and remembered. ---- */

#define KNOWN 256u /* modules remembered; more are looked up every time */
#define PARTS 64u

enum { FREE, FILLING, FILLED };

static struct {
    _Atomic int state;
    nw_loaded module;
    const void *dynamic; /* distinguishes modules for which the loader used the same entry one after the other */
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

/* The kernel passes the address of the executable's program headers; other modules' follow from their ELF header. */
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

/* Whether the loader's entry still describes the remembered module. */
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

/* Reads the headers only of the last module that begins at or before the address. That one stays loaded while its code
 * runs; others may be unmapped at any moment. */
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

/* ---- Since glibc 2.35 the loader has an index that can be queried without a lock. ---- */

#if defined(DLFO_STRUCT_HAS_EH_DBASE) && !defined(NW_WITHOUT_FIND_OBJECT)
static __typeof__(_dl_find_object) *find_object;

/* Looked up by name, so that a library built with a newer glibc runs with an older one. */
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
