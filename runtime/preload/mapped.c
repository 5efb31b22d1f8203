/* Memory that the program maps itself. An anonymous private mapping of at least NW_LARGE bytes is an object,
 * like a heap allocation, but is placed only if a rule matches it, never by the fallback. Stacks are not
 * objects: they belong to their threads. */
#define _GNU_SOURCE
#include "preload.h"

#include "../backtrace.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static void *map(void *at, size_t bytes, int protection, int flags, int file, long offset) {
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

void *nw_own_memory(size_t bytes) {
    void *memory = map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int is_object(size_t bytes, int flags) {
    return (nw_seeing() || nw_placing()) && bytes >= NW_LARGE &&
           (flags & (MAP_ANONYMOUS | MAP_STACK)) == MAP_ANONYMOUS && (flags & MAP_TYPE) == MAP_PRIVATE;
}

static void place(nw_object *object, void *memory, size_t bytes, uintptr_t caller) {
    nw_allocation allocation = {.address = memory, .bytes = bytes, .mapped = object->pages << nw_page_shift};
    allocation.depth = nw_backtrace(caller, allocation.chain);
    object->rule = nw_match(&allocation, NW_KIND_MAPPING);
    if (object->rule == nw_placement->rules.count)
        return;
    nw_place(object);
    nw_objects_add(object);
}

static nw_object object_at(const void *memory, size_t bytes) {
    return (nw_object){
        .page = (uint64_t)(uintptr_t)memory >> nw_page_shift,
        .pages = (bytes + nw_page_bytes - 1) >> nw_page_shift,
        .rule = NW_ANY,
        .thread = nw_thread_ordinal(),
        .fresh = 1,
    };
}

static void mapped(void *memory, size_t bytes, uintptr_t caller) {
    int before = errno;
    nw_object object = object_at(memory, bytes);
    if (nw_reporting() && nw_placing() && nw_has_rules(NW_KIND_MAPPING))
        place(&object, memory, bytes, caller);
    nw_seen(&object);
    errno = before;
}

/* A file or shared memory: listed, so that its accesses are counted, and not placed, as it is not this process's. */
static int is_shared(size_t bytes, int flags) {
    return nw_seeing() && bytes >= NW_LARGE && (!(flags & MAP_ANONYMOUS) || (flags & MAP_TYPE) != MAP_PRIVATE);
}

static void mapped_shared(const void *memory, size_t bytes) {
    int before = errno;
    nw_object object = object_at(memory, bytes);
    nw_seen(&object);
    errno = before;
}

static int is_named(size_t bytes, int flags) {
    int huge = flags & MAP_HUGETLB, shared = (flags & MAP_TYPE) != MAP_PRIVATE || !(flags & MAP_ANONYMOUS);
    return nw_placing() && bytes >= NW_LARGE && (huge || shared);
}

/* Whether a rule that names it has placed it. */
static int mapped_named(void *memory, size_t bytes, int flags, int file, off_t offset) {
    int before = errno, placed = nw_named_mapping(memory, bytes, flags, file, offset);
    errno = before;
    return placed;
}

static void *map_and_note(void *at, size_t bytes, int protection, int flags, int file, off_t offset, uintptr_t caller) {
    nw_companion_passes(0);
    void *memory = map(at, bytes, protection, flags, file, offset);
    if (memory != MAP_FAILED && is_named(bytes, flags) && mapped_named(memory, bytes, flags, file, offset))
        return memory;
    if (memory != MAP_FAILED && is_object(bytes, flags))
        mapped(memory, bytes, caller);
    else if (memory != MAP_FAILED && is_shared(bytes, flags))
        mapped_shared(memory, bytes);
    return memory;
}

#define CALLER ((uintptr_t)__builtin_return_address(0))

EXPORT void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    return map_and_note(at, bytes, protection, flags, file, offset, CALLER);
}

EXPORT void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t offset) {
    return map_and_note(at, bytes, protection, flags, file, offset, CALLER);
}

/* The kernel resizes only one mapping, and holding a part of a mapping splits it. Lifting the holds joins the parts. */
EXPORT void *mremap(void *at, size_t bytes, size_t wanted, int flags, ...) {
    enum { LIFTS = 16 }; /* the companion may hold it again meanwhile */
    va_list rest;
    va_start(rest, flags);
    void *to = flags & ~MREMAP_MAYMOVE ? va_arg(rest, void *) : NULL;
    va_end(rest);
    for (int lifts = 0;; lifts++) {
        void *memory = (void *)syscall(SYS_mremap, at, bytes, wanted, flags, to);
        if (memory != MAP_FAILED || errno != EFAULT || lifts == LIFTS || !nw_companion_lift(at, bytes))
            return memory;
    }
}

EXPORT int munmap(void *at, size_t bytes) {
    nw_companion_passes(0);
    if (nw_placing() && bytes >= NW_LARGE) {
        int before = errno;
        nw_objects_remove(at);
        errno = before;
    }
    return (int)syscall(SYS_munmap, at, bytes);
}
