/* Finds the module of the table that contains a code address. Called inside signal handlers and callbacks of
 * the loader, so nothing here waits: the loader is queried without its locks, and results are kept in entries
 * that are filled once and then only read. */
#define _GNU_SOURCE
#include "preload.h"

#include "../loaded.h"

#include <link.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define KNOWN 256u /* loaded modules that are remembered; more are looked up every time */

enum { FREE, FILLING, FILLED };

static struct {
    _Atomic int state;
    nw_image image;
    const void *map; /* distinguishes modules that were loaded at the same address one after the other */
} known[KNOWN];

static uint32_t module_of(const char *path) {
    struct stat status;
    if (stat(*path ? path : "/proc/self/exe", &status) != 0)
        return NW_ANY;
    for (uint32_t i = 0; i < nw_placement->modules.count; i++) {
        const nw_module *module = &nw_modules(nw_placement)[i];
        if (module->device == status.st_dev && module->inode == status.st_ino)
            return i;
    }
    return NW_ANY;
}

/* A handler that interrupts this finds the entry unfinished and takes another. */
static void remember(const nw_image *image, const void *map) {
    for (uint32_t i = 0; i < KNOWN; i++) {
        int expected = FREE;
        if (!atomic_compare_exchange_strong(&known[i].state, &expected, FILLING))
            continue;
        known[i].image = *image;
        known[i].map = map;
        atomic_store_explicit(&known[i].state, FILLED, memory_order_release);
        return;
    }
}

int nw_image_at(uint64_t address, nw_image *image) {
    nw_loaded found;
    if (!nw_loaded_at(address, &found))
        return 0;
    for (uint32_t i = 0; i < KNOWN; i++) {
        int state = atomic_load_explicit(&known[i].state, memory_order_acquire);
        if (state == FREE)
            break;
        if (state == FILLED && known[i].map == found.map && known[i].image.start == found.start) {
            *image = known[i].image;
            return image->module != NW_ANY;
        }
    }
    *image = (nw_image){.start = found.start, .end = found.end, .bias = found.bias, .module = module_of(found.path)};
    remember(image, found.map);
    return image->module != NW_ANY;
}

/* Called at start only, when the loader is not in the middle of an operation. */
static int note(struct dl_phdr_info *info, size_t size, void *unused) {
    nw_image image;
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD) {
            nw_image_at(info->dlpi_addr + part->p_vaddr, &image);
            break;
        }
    }
    return 0;
}

void nw_images_start(void) {
    if (nw_placement->modules.count > 0)
        dl_iterate_phdr(note, NULL);
}

uint64_t nw_module_bias(uint32_t module) {
    for (uint32_t i = 0; i < KNOWN && atomic_load(&known[i].state) == FILLED; i++)
        if (known[i].image.module == module)
            return known[i].image.bias + (known[i].image.bias == 0); /* 1 for a fixed executable, whose bias is 0 */
    return 0;
}

/* Visits the writable data of the executable, which is the loader's first module: variables that no rule names. */
static int rest_of_main(struct dl_phdr_info *info, size_t size, void *place) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_W)
            (*(nw_span_function **)place)(info->dlpi_addr + part->p_vaddr, part->p_memsz);
    }
    return 1;
}

void nw_main_data(nw_span_function *place) { dl_iterate_phdr(rest_of_main, (void *)&place); }
