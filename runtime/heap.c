#define _GNU_SOURCE
#include "heap.h"
#include "zone.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIDDEN_TLS static __thread __attribute__((tls_model("initial-exec")))
#define EXPORT __attribute__((visibility("default")))

/* Every function of the malloc family, once. clang-format has no stable layout for a list without commas. */
/* clang-format off */
#define NW_HEAP_FUNCTIONS(X) \
    X(malloc) X(calloc) X(realloc) X(free) X(posix_memalign) X(aligned_alloc) X(memalign) X(valloc) \
    X(pvalloc) X(malloc_usable_size)
/* clang-format on */

#define POINTER(name) __typeof__(&name) name;
static struct {
    NW_HEAP_FUNCTIONS(POINTER)
} next;
static int ready; /* all of `next` is set */

static const nw_heap_hooks *hooks; /* null: everything goes to the next malloc */
HIDDEN_TLS int busy;               /* inside a hook */
HIDDEN_TLS int resolving;          /* inside dlsym, which may allocate */

/* ---- Memory for what dlsym allocates before the next malloc is known. It is never freed. ---- */

static _Alignas(16) char early[64 << 10];
static size_t early_used;

static void *early_allocate(size_t bytes) {
    size_t need = ((bytes + 15) & ~(size_t)15) + 16;
    size_t at = __atomic_fetch_add(&early_used, need, __ATOMIC_RELAXED);
    if (need < bytes || at + need > sizeof early)
        return NULL;
    memcpy(early + at, &bytes, sizeof bytes);
    return early + at + 16;
}

static int is_early(const void *address) {
    return (const char *)address >= early && (const char *)address < early + sizeof early;
}

static size_t early_size(const void *address) {
    size_t bytes;
    memcpy(&bytes, (const char *)address - 16, sizeof bytes);
    return bytes;
}

static int resolved(void) {
    if (__builtin_expect(__atomic_load_n(&ready, __ATOMIC_ACQUIRE), 1))
        return 1;
    if (resolving)
        return 0;
    resolving = 1;
#define RESOLVE(name) next.name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
    NW_HEAP_FUNCTIONS(RESOLVE)
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    resolving = 0;
    return 1;
}

/* Done early: once there are threads, another one may hold the loader's lock while it waits for this one. */
__attribute__((constructor(101))) static void look_up(void) { resolved(); }

/* ---- Large allocations: mappings at addresses of the zone (zone.h). ---- */

static void *map(uintptr_t address, size_t bytes, int flags) {
    long result = syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
                          0L);
    return result == -1 ? NULL : (void *)result;
}

static void unmap(void *address, size_t bytes) { syscall(SYS_munmap, address, bytes); }

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) & ~(to - 1); }

/* The requested size of a live large allocation; 0 if there is none at this address. */
static size_t large_bytes(const void *address) {
    nw_block *block = nw_zone_block(address, 0);
    return block == NULL ? 0 : __atomic_load_n(&block->bytes, __ATOMIC_RELAXED);
}

static size_t page_size(void) {
    static size_t known; /* atomic, since several threads may make the first call at once */
    size_t size = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (size == 0) {
        size = (size_t)sysconf(_SC_PAGESIZE);
        __atomic_store_n(&known, size, __ATOMIC_RELAXED);
    }
    return size;
}

/* Maps the object, at the addresses of its place if they are free and otherwise at new ones; null if the zone or memory
 * is used up. */
static void *large_map(const nw_place *place, size_t bytes, size_t alignment) {
    uintptr_t own = nw_place_own(place, bytes / page_size(), alignment);
    for (int attempt = 0; attempt < 16; attempt++, own = 0) {
        uintptr_t at = own;
        if (at == 0)
            at = nw_zone_take(nw_place_room(place, bytes / page_size()) * page_size(), alignment);
        if (at == 0)
            return NULL;
        void *address = map(at, bytes, MAP_FIXED_NOREPLACE);
        if (address == (void *)at)
            return address;
        if (address != NULL)
            unmap(address, bytes); /* a kernel before 4.17, to which the address is only a hint */
        else if (errno != EEXIST)
            return NULL;
    }
    return NULL;
}

/* Stores the call chain in `object`, and takes the next place of this chain; null if none is kept. */
static nw_place *find_place(nw_allocation *object, uintptr_t caller) {
    const nw_heap_hooks *to = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
    if (to == NULL || to->allocated == NULL)
        return NULL;
    object->depth = nw_backtrace(caller, object->chain);
    return object->mapped / page_size() > UINT32_MAX / 2 ? NULL : nw_place_take(object->chain, object->depth);
}

/* Records in the object and its place that the object lies at `address`. */
static void settle(nw_allocation *object, nw_place *place, void *address) {
    object->address = address;
    if (place == NULL)
        return;
    uint32_t pages = (uint32_t)(object->mapped / page_size());
    object->tag = &place->tag;
    object->before = (void *)place->address;
    object->larger = pages > place->most;
    if (address != object->before) {
        place->address = (uintptr_t)address;
        place->room = (uint32_t)nw_place_room(place, pages);
    }
    if (object->larger || address != object->before)
        place->most = pages;
}

static void announce(const nw_allocation *object) {
    const nw_heap_hooks *to = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
    if (to == NULL || to->allocated == NULL || object->depth == 0)
        return;
    busy = 1;
    to->allocated(object);
    busy = 0;
}

static int is_large(size_t bytes) {
    return bytes >= NW_LARGE && bytes <= PTRDIFF_MAX && !busy && __atomic_load_n(&hooks, __ATOMIC_ACQUIRE) != NULL;
}

static int declined(uintptr_t caller, size_t bytes) {
    const nw_heap_hooks *to = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
    return to != NULL && to->separate != NULL && !to->separate(caller, bytes);
}

static void *large_allocate(size_t bytes, size_t alignment, uintptr_t caller) {
    if (declined(caller, bytes))
        return NULL;
    int error = errno;
    nw_allocation object = {.bytes = bytes, .mapped = round_up(bytes, page_size())};
    nw_place *place = find_place(&object, caller);
    void *address = large_map(place, object.mapped, alignment);
    nw_block *block = address == NULL ? NULL : nw_zone_block(address, 1);
    if (block == NULL) {
        if (address != NULL)
            unmap(address, object.mapped);
        if (place != NULL)
            nw_place_give(place);
        errno = error;
        return NULL;
    }
    settle(&object, place, address);
    block->place = place;
    __atomic_store_n(&block->bytes, bytes, __ATOMIC_RELAXED);
    announce(&object);
    errno = error;
    return address;
}

/* Forgets the allocation and returns its place. The pages are still mapped, and the place is not given back yet. */
static nw_place *large_forget(void *address, size_t bytes) {
    const nw_heap_hooks *to = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
    nw_block *block = nw_zone_block(address, 0);
    nw_place *place = block->place;
    __atomic_store_n(&block->bytes, 0, __ATOMIC_RELAXED);
    if (to != NULL && to->freed != NULL && !busy) {
        busy = 1;
        to->freed(address, round_up(bytes, page_size()), place != NULL);
        busy = 0;
    }
    return place;
}

static void large_free(void *address, size_t bytes) {
    int error = errno;
    nw_place *place = large_forget(address, bytes);
    unmap(address, round_up(bytes, page_size()));
    if (place != NULL)
        nw_place_give(place);
    errno = error;
}

/* Whether a range of addresses is free, which is found out by mapping it without access. The limit on address space may
 * forbid that for the whole range: a block that grows needs only the additional bytes, but the range has its full new
 * size. Then the range is tested in parts, each of which is unmapped again. A range that was mapped as a whole stays
 * mapped, which reserves it until pages are moved there. */
static int is_free(uintptr_t address, size_t bytes) {
    enum { MOST_PARTS = 4096 };
    size_t part = bytes, least = round_up(bytes / MOST_PARTS + 1, page_size());
    for (size_t at = 0; at < bytes;) {
        if (part > bytes - at)
            part = bytes - at;
        void *probe = (void *)syscall(SYS_mmap, address + at, part, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0L);
        if (probe == (void *)(address + at)) {
            if (part < bytes)
                unmap(probe, part);
            at += part;
            continue;
        }
        if (probe != MAP_FAILED)
            unmap(probe, part); /* a kernel before 4.17, to which the address is only a hint */
        if (probe != MAP_FAILED || errno == EEXIST || part <= least)
            return 0;
        part = round_up(part / 2, page_size());
    }
    return 1;
}

/* Moves the pages of [from, from + bytes) to `to`, from the end to the start; the last part gets room for `more`
 * additional bytes. mremap moves only within one mapping, and a memory policy for a part of the block splits it into
 * several, so smaller parts are tried until they succeed. Returns how many bytes at the start could not be moved. */
static size_t move_pages(char *from, char *to, size_t bytes, size_t more) {
    size_t part = bytes;
    while (bytes > 0) {
        long moved = syscall(SYS_mremap, from + bytes - part, part, part + more, MREMAP_MAYMOVE | MREMAP_FIXED,
                             to + bytes - part);
        if (moved != -1) {
            bytes -= part;
            more = 0;
            part = part < bytes / 2 ? part * 2 : bytes;
        } else if (errno == EFAULT && part > page_size()) {
            part = round_up(part / 2, page_size());
        } else {
            break;
        }
    }
    return bytes;
}

/* Moves a block to `fresh`, where it has room for `to` bytes. If that fails (0), the block is left where it was. */
static int move_block(char *address, size_t from, char *fresh, size_t to) {
    size_t left = move_pages(address, fresh, from, to - from);
    if (left == 0)
        return 1;
    move_pages(fresh + left, address + left, from - left, 0);
    unmap(fresh, to);
    return 0;
}

/* Moves a block to addresses with room for `to` bytes: those of its new place if they are free, otherwise new ones.
 * Returns the address, or null. */
static void *large_move(const nw_place *place, char *address, size_t from, size_t to) {
    for (int attempt = 0; attempt < 2; attempt++) {
        uintptr_t at = attempt == 0 ? nw_place_own(place, to / page_size(), 1)
                                    : nw_zone_take(nw_place_room(place, to / page_size()) * page_size(), 1);
        if (at != 0 && nw_zone_block((void *)at, 1) != NULL && is_free(at, to))
            return move_block(address, from, (char *)at, to) ? (void *)at : NULL;
    }
    return NULL;
}

/* Grows a block by moving page table entries instead of copying: memory use never exceeds the new size. */
static void *large_grow(void *address, size_t old, size_t bytes, uintptr_t caller) {
    size_t from = round_up(old, page_size());
    int error = errno;
    nw_allocation object = {.bytes = bytes, .mapped = round_up(bytes, page_size()), .moved = from};
    nw_place *place = find_place(&object, caller);
    void *fresh = large_move(place, address, from, object.mapped);
    if (fresh != NULL) {
        nw_place *left = large_forget(address, old);
        settle(&object, place, fresh);
        nw_block *block = nw_zone_block(fresh, 0);
        block->place = place;
        __atomic_store_n(&block->bytes, bytes, __ATOMIC_RELAXED);
        announce(&object);
        place = left;
    }
    if (place != NULL)
        nw_place_give(place);
    errno = error;
    return fresh;
}

static void *pooled(uintptr_t caller, void *address, size_t bytes) {
    const nw_heap_hooks *to = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
    if (to != NULL && to->pooled != NULL && address != NULL && !busy) {
        busy = 1;
        to->pooled(caller, address, bytes);
        busy = 0;
    }
    return address;
}

#define CALLER ((uintptr_t)__builtin_return_address(0))

static void *allocate(size_t bytes, uintptr_t caller) {
    if (!resolved())
        return early_allocate(bytes);
    if (is_large(bytes)) {
        void *address = large_allocate(bytes, 1, caller);
        if (address != NULL)
            return address;
    }
    return pooled(caller, next.malloc(bytes), bytes);
}

/* Null: the next malloc serves the request, and validates the arguments. */
static void *allocate_aligned(size_t alignment, size_t bytes, uintptr_t caller) {
    if (!resolved())
        return alignment <= 16 ? early_allocate(bytes) : NULL;
    if (is_large(bytes) && alignment != 0 && (alignment & (alignment - 1)) == 0)
        return large_allocate(bytes, alignment, caller);
    return NULL;
}

/* Reallocates by copying: between libc's heap and the zone, or where pages cannot be moved. */
static void *relocate(void *address, size_t old, size_t bytes, uintptr_t caller) {
    void *fresh = allocate(bytes, caller);
    if (fresh != NULL) {
        memcpy(fresh, address, old < bytes ? old : bytes);
        free(address);
    }
    return fresh;
}

static void *resize_large(void *address, size_t old, size_t bytes, uintptr_t caller) {
    size_t from = round_up(old, page_size()), to = round_up(bytes, page_size());
    if (bytes < NW_LARGE) {
        void *small = relocate(address, old, bytes, caller);
        if (small != NULL)
            return small; /* otherwise it shrinks in place, which cannot fail */
    }
    if (to > from) {
        void *grown = bytes > PTRDIFF_MAX ? NULL : large_grow(address, old, bytes, caller);
        return grown != NULL ? grown : relocate(address, old, bytes, caller);
    }
    if (to < from)
        unmap((char *)address + to, from - to);
    __atomic_store_n(&nw_zone_block(address, 0)->bytes, bytes, __ATOMIC_RELAXED);
    return address;
}

static void *resize(void *address, size_t bytes, uintptr_t caller) {
    if (address == NULL)
        return allocate(bytes, caller);
    if (is_early(address))
        return relocate(address, early_size(address), bytes, caller);
    size_t old = large_bytes(address);
    if (bytes == 0 && old != 0) {
        free(address);
        return NULL;
    }
    if (old != 0)
        return resize_large(address, old, bytes, caller);
    if (is_large(bytes))
        return relocate(address, next.malloc_usable_size(address), bytes, caller);
    return pooled(caller, next.realloc(address, bytes), bytes);
}

/* ---- What the program calls. ---- */

EXPORT void *malloc(size_t bytes) { return allocate(bytes, CALLER); }

EXPORT void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (!resolved())
        return __builtin_mul_overflow(count, size, &bytes) ? NULL : early_allocate(bytes);
    if (!__builtin_mul_overflow(count, size, &bytes) && is_large(bytes)) {
        void *address = large_allocate(bytes, 1, CALLER);
        if (address != NULL)
            return address;
    }
    return pooled(CALLER, next.calloc(count, size), count * size);
}

EXPORT void *realloc(void *address, size_t bytes) { return resize(address, bytes, CALLER); }

EXPORT void *reallocarray(void *address, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return resize(address, bytes, CALLER);
}

EXPORT void free(void *address) {
    if (address == NULL || is_early(address))
        return;
    size_t bytes = large_bytes(address);
    if (bytes != 0)
        large_free(address, bytes);
    else if (resolved())
        next.free(address);
}

EXPORT int posix_memalign(void **address, size_t alignment, size_t bytes) {
    if (alignment % sizeof(void *) == 0) {
        void *separate = allocate_aligned(alignment, bytes, CALLER);
        if (separate != NULL) {
            *address = separate;
            return 0;
        }
    }
    int error = resolved() ? next.posix_memalign(address, alignment, bytes) : ENOMEM;
    if (error == 0)
        pooled(CALLER, *address, bytes);
    return error;
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes) {
    void *address = allocate_aligned(alignment, bytes, CALLER);
    return address != NULL || !resolved() ? address : pooled(CALLER, next.aligned_alloc(alignment, bytes), bytes);
}

EXPORT void *memalign(size_t alignment, size_t bytes) {
    void *address = allocate_aligned(alignment, bytes, CALLER);
    return address != NULL || !resolved() ? address : pooled(CALLER, next.memalign(alignment, bytes), bytes);
}

EXPORT void *valloc(size_t bytes) {
    void *address = allocate_aligned(page_size(), bytes, CALLER);
    return address != NULL || !resolved() ? address : pooled(CALLER, next.valloc(bytes), bytes);
}

EXPORT void *pvalloc(size_t bytes) {
    void *address = allocate_aligned(page_size(), bytes, CALLER);
    return address != NULL || !resolved() ? address : pooled(CALLER, next.pvalloc(bytes), bytes);
}

EXPORT size_t malloc_usable_size(void *address) {
    if (address == NULL)
        return 0;
    if (is_early(address))
        return early_size(address);
    size_t bytes = large_bytes(address);
    if (bytes != 0)
        return bytes;
    return resolved() ? next.malloc_usable_size(address) : 0;
}

void nw_heap_start(const nw_heap_hooks *to) {
    if (resolved())
        __atomic_store_n(&hooks, to, __ATOMIC_RELEASE);
}

void nw_heap_stop(void) { __atomic_store_n(&hooks, NULL, __ATOMIC_RELEASE); }

void nw_heap_lane(uint32_t lane) { nw_place_lane(lane); }

int nw_heap_owns(const void *address) { return large_bytes(address) != 0; }
