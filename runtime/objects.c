#define _GNU_SOURCE
#include "heap.h"
#include "mappings.h"
#include "observer.h"
#include "scratch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Large allocations. ---- */

static void put_chain(nw_line *line, const uintptr_t *chain, uint32_t depth) {
    nw_observer *observer = nw_here();
    nw_line_number(line, observer == NULL ? 0 : observer->ordinal);
    nw_line_numbers(line, chain, depth);
}

static void log_new(const nw_allocation *object) {
    nw_modules_check();
    nw_line line = {0};
    nw_line_begin(&line, "heap");
    nw_line_number(&line, (uintptr_t)object->address);
    nw_line_number(&line, object->bytes);
    nw_line_number(&line, object->mapped);
    put_chain(&line, object->chain, object->depth);
    nw_event(&line);
}

/* Logs another object of a place whose first object was logged before. */
static void log_again(const nw_allocation *object) {
    nw_line line = {0};
    nw_line_begin(&line, "again");
    nw_line_number(&line, (uintptr_t)object->before);
    nw_line_number(&line, (uintptr_t)object->address);
    nw_line_number(&line, object->bytes);
    nw_line_number(&line, object->mapped);
    nw_event(&line);
}

#define POOL_BYTES (NW_POOL_SLOTS * sizeof(nw_pool_entry) + NW_REPEATS * sizeof(uint64_t))
static char *pool; /* callers of small allocations, then repeats */
static uint32_t repeats_used;

/* A place's tag: not logged yet, logged, or TAG_COUNTED plus the number that counts its further objects. */
enum { TAG_NEW, TAG_LOGGED, TAG_COUNTED };

/* Counts the repetition in shared memory, so that the log does not grow with every step of the program. False if it
 * cannot be counted. */
static bool count_again(const nw_allocation *object) {
    if (pool == NULL)
        return false;
    if (*object->tag == TAG_LOGGED) {
        uint32_t number = __atomic_fetch_add(&repeats_used, 1, __ATOMIC_RELAXED);
        if (number >= NW_REPEATS) {
            __atomic_store_n(&repeats_used, NW_REPEATS, __ATOMIC_RELAXED);
            return false;
        }
        nw_line line = {0};
        nw_line_begin(&line, "repeats");
        nw_line_number(&line, number);
        nw_line_number(&line, (uintptr_t)object->address);
        nw_event(&line);
        *object->tag = TAG_COUNTED + number;
    }
    uint64_t *repeats = (uint64_t *)(pool + NW_POOL_SLOTS * sizeof(nw_pool_entry));
    __atomic_fetch_add(&repeats[*object->tag - TAG_COUNTED], 1, __ATOMIC_RELAXED);
    return true;
}

static void log_heap(const nw_allocation *object) {
    nw_look_for_copy();
    if (!nw_recording())
        return;
    if (object->tag == NULL || *object->tag == TAG_NEW) {
        log_new(object);
        if (object->tag != NULL)
            *object->tag = TAG_LOGGED;
    } else if (object->before != object->address) {
        *object->tag = TAG_LOGGED;
        log_again(object);
    } else if (object->larger || !count_again(object)) {
        log_again(object);
    }
}

/* If the addresses are kept for the place, they still belong to the object, and nothing is logged. */
static void log_freed(void *address, size_t mapped, int kept) {
    if (!nw_recording() || kept)
        return;
    nw_line line = {0};
    nw_line_begin(&line, "free");
    nw_line_number(&line, (uintptr_t)address);
    nw_line_number(&line, mapped);
    nw_event(&line);
}

/* ---- Small allocations: one pool, with count and bytes of each call site. ---- */

/* Counts in the thread's own file, so that threads which allocate do not write to each other's cache lines. False if it
 * has none, or no room for the caller near its place. */
static bool count_own(uintptr_t caller, size_t bytes) {
    nw_thread *self = nw_self;
    if (self == NULL || self->observer == NULL || self->header == NULL)
        return false;
    size_t slot = (caller * 0x9e3779b97f4a7c15ull) >> 32;
    for (size_t probe = 0; probe < 4; probe++) {
        nw_pool_entry *entry = &self->header->pooled[(slot + probe) % NW_POOLED];
        if (entry->caller == 0)
            __atomic_store_n(&entry->caller, caller, __ATOMIC_RELAXED);
        if (entry->caller != caller)
            continue;
        __atomic_store_n(&entry->bytes, entry->bytes + bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->count, entry->count + 1, __ATOMIC_RELAXED);
        return true;
    }
    return false;
}

/* The caller's entry, which is taken if necessary; the last entry of the table if no probed one is free. */
static nw_pool_entry *pool_entry(uintptr_t caller) {
    nw_pool_entry *entries = (nw_pool_entry *)pool;
    size_t slot = (caller * 0x9e3779b97f4a7c15ull) >> 32;
    for (int probe = 0; probe < 16; probe++) {
        nw_pool_entry *entry = &entries[(slot + (size_t)probe) % (NW_POOL_SLOTS - 1)];
        uint64_t owner = __atomic_load_n(&entry->caller, __ATOMIC_RELAXED);
        if (owner == caller || (owner == 0 && __atomic_compare_exchange_n(&entry->caller, &owner, caller, 0,
                                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)))
            return entry;
        if (owner == caller) /* another thread was faster */
            return entry;
    }
    return &entries[NW_POOL_SLOTS - 1];
}

/* Logs the memory that small allocations come from, so that its pages are attributed to the pool. */
#define ARENA_SHIFT 26 /* glibc's arenas are 64 MiB, aligned */
static uintptr_t arenas[1024];
static __thread uintptr_t last_arena __attribute__((tls_model("initial-exec")));

static void log_arena(uintptr_t arena) {
    last_arena = arena;
    for (size_t probe = 0; probe < 16; probe++) {
        uintptr_t *slot = &arenas[(arena + probe) % (sizeof arenas / sizeof *arenas)], owner = 0;
        if (__atomic_load_n(slot, __ATOMIC_RELAXED) == arena)
            return;
        if (__atomic_compare_exchange_n(slot, &owner, arena, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
        if (owner == arena)
            return;
    }
    nw_line line = {0};
    nw_line_begin(&line, "arena");
    nw_line_number(&line, arena << ARENA_SHIFT);
    nw_line_number(&line, 1ul << ARENA_SHIFT);
    nw_event(&line);
}

static void count_pooled(uintptr_t caller, const void *address, size_t bytes) {
    if (pool == NULL || !nw_recording())
        return;
    if (nw_unlikely((uintptr_t)address >> ARENA_SHIFT != last_arena))
        log_arena((uintptr_t)address >> ARENA_SHIFT);
    if (count_own(caller, bytes))
        return;
    nw_pool_entry *entry = pool_entry(caller);
    __atomic_fetch_add(&entry->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&entry->count, 1, __ATOMIC_RELAXED);
}

static const nw_heap_hooks hooks = {.allocated = log_heap, .freed = log_freed, .pooled = count_pooled};

/* In a forked child this maps the child's own file, at the address of its parent's. */
static void open_pool(void) {
    bool backed;
    pool = nw_map_backed("pool", NW_NO_NUMBER, 0, POOL_BYTES, pool, &backed);
}

void nw_objects_start(void) {
    nw_here(); /* the main thread is number 0 */
    open_pool();
    nw_heap_start(&hooks);
}

void nw_objects_stop(void) { nw_heap_stop(); }

void nw_objects_after_fork(void) { open_pool(); }

/* ---- Mappings that the program makes itself. ---- */

static void put_file(nw_line *line, unsigned file) {
    char link[32] = "/proc/self/fd/", digits[12], *digit = digits + sizeof digits - 1, *path = nw_scratch_take();
    *digit = 0;
    do
        *--digit = (char)('0' + file % 10);
    while ((file /= 10) != 0);
    strcat(link, digit);
    long length = path == NULL ? -ENOMEM : nw_system(SYS_readlinkat, AT_FDCWD, link, path, NW_PATH_BYTES - 1);
    nw_line_text(line, "=");
    if (length >= 0) {
        path[length] = 0;
        nw_line_text(line, path);
    }
    nw_scratch_give(path);
}

typedef struct calls {
    uint32_t depth;
    uintptr_t chain[NW_CHAIN];
} calls;

static void log_mapping(void *address, size_t bytes, int file, const calls *by) {
    nw_line line = {0};
    nw_line_begin(&line, "map");
    nw_line_number(&line, (uintptr_t)address);
    nw_line_number(&line, bytes);
    put_chain(&line, by->chain, by->depth);
    if (file >= 0)
        put_file(&line, (unsigned)file);
    nw_event(&line);
}

static void log_unmapped(const void *address, size_t bytes) {
    nw_line line = {0};
    nw_line_begin(&line, "unmap");
    nw_line_number(&line, (uintptr_t)address);
    nw_line_number(&line, bytes);
    nw_event(&line);
}

static void *returned(long result) {
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return MAP_FAILED;
    }
    return (void *)result;
}

#define CALLER ((uintptr_t)__builtin_return_address(0))

/* The place of a mapping (mappings.h): call chain, thread's lane, file. */
static uint64_t place_of(const calls *by, int file) {
    const nw_observer *observer = nw_here();
    struct stat status;
    bool known = file >= 0 && !nw_failed(nw_system(SYS_fstat, file, &status));
    uint64_t words[] = {observer == NULL ? 0 : observer->lane, known ? status.st_dev : 0, known ? status.st_ino : 0};
    uint64_t place = 0xcbf29ce484222325ull;
    for (uint32_t i = 0; i < sizeof words / sizeof *words + by->depth; i++) {
        uint64_t word = i < by->depth ? by->chain[i] : words[i - by->depth];
        place = (place ^ word) * 0x9e3779b97f4a7c15ull;
        place ^= place >> 29;
    }
    return place;
}

#ifndef MAP_32BIT /* x86 only */
#define MAP_32BIT 0
#endif

static void *map(void *at, size_t bytes, int protection, int flags, int file, off_t offset, uintptr_t caller) {
    enum { ELSEWHERE = MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN | MAP_HUGETLB | MAP_32BIT };
    calls by;
    nw_mapping *mapping = NULL;
    int mapped = flags & MAP_ANONYMOUS ? -1 : file;
    bool logged = nw_recording();
    if (logged)
        by.depth = nw_backtrace(caller, by.chain);
    if (logged && nw_emulated() && at == NULL && !(flags & ELSEWHERE))
        mapping = nw_mapping_begin(place_of(&by, mapped), bytes, &at);
    void *address = returned(nw_system(SYS_mmap, at, bytes, protection, flags, file, offset));
    if (mapping != NULL)
        nw_mapping_made(mapping, address == MAP_FAILED ? NULL : address, bytes);
    nw_look_for_copy();
    if (address != MAP_FAILED && logged && nw_recording())
        log_mapping(address, bytes, mapped, &by);
    return address;
}

NW_EXPORT void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    return map(at, bytes, protection, flags, file, offset, CALLER);
}

NW_EXPORT void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t offset) {
    return map(at, bytes, protection, flags, file, offset, CALLER);
}

NW_EXPORT int munmap(void *address, size_t bytes) {
    nw_mapping *mapping = nw_mapping_ends(address, bytes);
    if (nw_recording())
        log_unmapped(address, bytes);
    bool unmapped = returned(nw_system(SYS_munmap, address, bytes)) != MAP_FAILED;
    if (mapping != NULL)
        nw_mapping_ended(mapping, unmapped);
    return unmapped ? 0 : -1;
}

NW_EXPORT void *mremap(void *address, size_t old, size_t bytes, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    nw_mapping *mapping = nw_mapping_ends(address, old);
    void *moved = returned(nw_system(SYS_mremap, address, old, bytes, flags, to));
    if (mapping != NULL && moved == address)
        nw_mapping_made(mapping, address, bytes);
    else if (mapping != NULL)
        nw_mapping_ended(mapping, moved != MAP_FAILED);
    if (moved != MAP_FAILED && nw_recording()) {
        calls by;
        by.depth = nw_backtrace(CALLER, by.chain);
        log_unmapped(address, old);
        log_mapping(moved, bytes, -1, &by);
    }
    return moved;
}
