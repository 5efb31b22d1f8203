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

void nw_seen_shared(const void *memory, size_t bytes) {
    int before = errno;
    nw_object object = object_at(memory, bytes);
    nw_seen(&object);
    errno = before;
}

static int is_named(size_t bytes, int flags) {
    int huge = flags & MAP_HUGETLB, shared = (flags & MAP_TYPE) != MAP_PRIVATE || !(flags & MAP_ANONYMOUS);
    return nw_placing() && bytes >= NW_LARGE && (huge || shared) && nw_has_rules(NW_KIND_FILE);
}

/* Whether a rule that names it has placed it. */
static int mapped_named(void *memory, size_t bytes, int flags, int file, off_t offset) {
    int before = errno, placed = nw_named_mapping(memory, bytes, flags, file, offset);
    errno = before;
    return placed;
}

/* As MAP_POPULATE does, which cannot fail. */
static void populate_mapping(void *memory, size_t bytes, int protection, int flags) {
    int before = errno, own = (protection & PROT_WRITE) && (flags & MAP_TYPE) == MAP_PRIVATE;
    madvise(memory, bytes, own ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    errno = before;
}

static void *map_and_note(void *at, size_t bytes, int protection, int flags, int file, off_t offset, uintptr_t caller) {
    nw_companion_passes(0);
    int named = is_named(bytes, flags), populate = named ? flags & MAP_POPULATE : 0;
    void *memory = map(at, bytes, protection, flags & ~populate, file, offset);
    nw_object replaced;
    if (memory != MAP_FAILED && (flags & MAP_FIXED) && nw_placing() && bytes >= NW_LARGE)
        nw_objects_take(memory, &replaced); /* what lay there is gone */
    int placed = memory != MAP_FAILED && named && mapped_named(memory, bytes, flags & ~populate, file, offset);
    if (memory != MAP_FAILED && populate) /* its pages would be elsewhere by now */
        populate_mapping(memory, bytes, protection, flags);
    if (placed)
        return memory;
    if (memory != MAP_FAILED && is_object(bytes, flags))
        mapped(memory, bytes, caller);
    else if (memory != MAP_FAILED && is_shared(bytes, flags))
        nw_seen_shared(memory, bytes);
    return memory;
}

#define CALLER ((uintptr_t)__builtin_return_address(0))

EXPORT void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    return map_and_note(at, bytes, protection, flags, file, offset, CALLER);
}

EXPORT void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t offset) {
    return map_and_note(at, bytes, protection, flags, file, offset, CALLER);
}

/* Places what was an object before with its new size and address. */
static void place_again(nw_object object, const void *memory, size_t bytes) {
    nw_object now = object_at(memory, bytes);
    now.rule = object.rule;
    now.thread = object.thread;
    now.whole = object.whole;
    if (now.whole.pages > 0 && now.whole.before + now.pages > now.whole.pages)
        now.whole.pages = now.whole.before + now.pages;
    nw_place(&now);
    nw_objects_add(&now);
}

/* Resizes an object that lies in several mappings because its parts have policies of their own: as one, then placed
 * again. */
static void *resize_placed(void *at, size_t bytes, size_t wanted, int flags, void *to) {
    nw_object object;
    if (!nw_placing() || !nw_objects_take(at, &object)) {
        errno = EFAULT;
        return MAP_FAILED;
    }
    nw_kernel_forget(object.page, object.pages);
    void *memory = (void *)syscall(SYS_mremap, at, bytes, wanted, flags, to);
    int why = errno;
    if (memory != MAP_FAILED)
        place_again(object, memory, wanted);
    else
        place_again(object, at, object.pages << nw_page_shift);
    errno = why;
    return memory;
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
        if (memory != MAP_FAILED || errno != EFAULT)
            return memory;
        if (lifts == LIFTS || !nw_companion_lift(at, bytes))
            return resize_placed(at, bytes, wanted, flags, to);
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
