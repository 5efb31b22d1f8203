#define _GNU_SOURCE
#include "heap.h"

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

/* Every function of the family, once. */
#define NW_HEAP_FUNCTIONS(X)                                                                           \
    X(malloc) X(calloc) X(realloc) X(free) X(posix_memalign) X(aligned_alloc) X(memalign) X(valloc)    \
    X(pvalloc) X(malloc_usable_size)

#define POINTER(name) __typeof__(&name) name;
static struct {
    NW_HEAP_FUNCTIONS(POINTER)
} next;
static int ready; /* `next` is whole */

static const nw_heap_hooks *hooks; /* null: everything goes to the next malloc */
HIDDEN_TLS int busy;               /* inside a hook */
HIDDEN_TLS int resolving;          /* inside dlsym, which may allocate */

/* ---- Memory before the next malloc is known: dlsym's own allocations, never given back. ---- */

static _Alignas(16) char early[64 << 10];
static size_t early_used;

static void *early_allocate(size_t bytes)
{
    size_t need = ((bytes + 15) & ~(size_t)15) + 16;
    size_t at = __atomic_fetch_add(&early_used, need, __ATOMIC_RELAXED);
    if (need < bytes || at + need > sizeof early)
        return NULL;
    memcpy(early + at, &bytes, sizeof bytes);
    return early + at + 16;
}

static int is_early(const void *address)
{
    return (const char *)address >= early && (const char *)address < early + sizeof early;
}

static size_t early_size(const void *address)
{
    size_t bytes;
    memcpy(&bytes, (const char *)address - 16, sizeof bytes);
    return bytes;
}

static int resolved(void)
{
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

/* ---- The range large allocations come from. ----
 * It lies far below where the kernel places mappings by itself and far above the program, and is
 * used upwards only, so no address serves twice and nothing has to be kept reserved. */

#define ZONE_BEGIN 0x200000000000ull
#define ZONE_END 0x500000000000ull
#define HUGE_PAGE (2ull << 20)
#define BLOCK ((uintptr_t)NW_LARGE)
#define CHAPTER_SHIFT 36 /* one table of sizes per 64 GiB */
#define CHAPTERS ((ZONE_END - ZONE_BEGIN) >> CHAPTER_SHIFT)
#define CHAPTER_BYTES (sizeof(size_t) << (CHAPTER_SHIFT - 16))

static uintptr_t zone_next = ZONE_BEGIN;
static size_t *sizes[CHAPTERS]; /* bytes asked for, by the allocation's first block */

static void *map(uintptr_t address, size_t bytes, int flags)
{
    long result = syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0L);
    return result == -1 ? NULL : (void *)result;
}

static void unmap(void *address, size_t bytes)
{
    syscall(SYS_munmap, address, bytes);
}

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) & ~(to - 1);
}

/* Where the size of the allocation at `address` is kept; null outside the zone. */
static size_t *size_of(const void *address, int create)
{
    uintptr_t offset = (uintptr_t)address - ZONE_BEGIN;
    if (offset >= ZONE_END - ZONE_BEGIN || offset % BLOCK != 0)
        return NULL;
    size_t **chapter = &sizes[offset >> CHAPTER_SHIFT];
    size_t *table = __atomic_load_n(chapter, __ATOMIC_ACQUIRE);
    if (table == NULL && create) {
        size_t *fresh = map(0, CHAPTER_BYTES, MAP_NORESERVE);
        if (fresh == NULL)
            return NULL;
        if (__atomic_compare_exchange_n(chapter, &table, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            table = fresh;
        else
            unmap(fresh, CHAPTER_BYTES);
    }
    return table == NULL ? NULL : &table[(offset & ((1ull << CHAPTER_SHIFT) - 1)) / BLOCK];
}

/* The bytes asked for of a live large allocation, else 0. */
static size_t large_bytes(const void *address)
{
    size_t *size = size_of(address, 0);
    return size == NULL ? 0 : __atomic_load_n(size, __ATOMIC_RELAXED);
}

static size_t page_size(void)
{
    static size_t size;
    if (size == 0)
        size = (size_t)sysconf(_SC_PAGESIZE);
    return size;
}

/* Addresses of its own for `bytes`, mapped; null when the zone or memory is used up. */
static void *large_map(size_t bytes, size_t alignment)
{
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : BLOCK;
    if (alignment > align)
        align = alignment;
    for (int attempt = 0; attempt < 16; attempt++) {
        uintptr_t before = __atomic_load_n(&zone_next, __ATOMIC_RELAXED), at;
        do {
            at = round_up(before, align);
            if (at >= ZONE_END || bytes > ZONE_END - at)
                return NULL;
        } while (!__atomic_compare_exchange_n(&zone_next, &before, round_up(at + bytes, BLOCK), 1,
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        void *address = map(at, bytes, MAP_FIXED_NOREPLACE);
        if (address == (void *)at)
            return address;
        if (address != NULL)
            unmap(address, bytes); /* a kernel that takes the address as a hint */
        else if (errno != EEXIST)
            return NULL;
    }
    return NULL;
}

static void announce(void *address, size_t bytes, size_t mapped, size_t moved, uintptr_t caller)
{
    const nw_heap_hooks *to = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
    if (to == NULL || to->allocated == NULL)
        return;
    nw_allocation object = {.address = address, .bytes = bytes, .mapped = mapped, .moved = moved};
    busy = 1;
    object.depth = nw_backtrace(caller, object.chain);
    to->allocated(&object);
    busy = 0;
}

static int is_large(size_t bytes)
{
    return bytes >= NW_LARGE && bytes <= PTRDIFF_MAX && !busy && __atomic_load_n(&hooks, __ATOMIC_ACQUIRE) != NULL;
}

static int declined(uintptr_t caller, size_t bytes)
{
    const nw_heap_hooks *to = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
    return to != NULL && to->separate != NULL && !to->separate(caller, bytes);
}

static void *large_allocate(size_t bytes, size_t alignment, uintptr_t caller)
{
    if (declined(caller, bytes))
        return NULL;
    int error = errno;
    size_t mapped = round_up(bytes, page_size());
    void *address = large_map(mapped, alignment);
    size_t *size = address == NULL ? NULL : size_of(address, 1);
    if (size == NULL) {
        if (address != NULL)
            unmap(address, mapped);
        errno = error;
        return NULL;
    }
    __atomic_store_n(size, bytes, __ATOMIC_RELAXED);
    announce(address, bytes, mapped, 0, caller);
    errno = error;
    return address;
}

/* Forgets the allocation; its pages are still there. */
static void large_forget(void *address, size_t bytes)
{
    const nw_heap_hooks *to = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
    __atomic_store_n(size_of(address, 0), 0, __ATOMIC_RELAXED);
    if (to != NULL && to->freed != NULL && !busy) {
        busy = 1;
        to->freed(address, round_up(bytes, page_size()));
        busy = 0;
    }
}

static void large_free(void *address, size_t bytes)
{
    int error = errno;
    large_forget(address, bytes);
    unmap(address, round_up(bytes, page_size()));
    errno = error;
}

/* Grows by moving page tables, not bytes. */
static void *large_grow(void *address, size_t old, size_t bytes, uintptr_t caller)
{
    size_t from = round_up(old, page_size()), to = round_up(bytes, page_size());
    void *fresh = large_map(to, 1);
    size_t *size = fresh == NULL ? NULL : size_of(fresh, 1);
    if (size == NULL || syscall(SYS_mremap, address, from, to, MREMAP_MAYMOVE | MREMAP_FIXED, fresh) == -1) {
        if (fresh != NULL)
            unmap(fresh, to);
        return NULL;
    }
    __atomic_store_n(size, bytes, __ATOMIC_RELAXED);
    large_forget(address, old);
    announce(fresh, bytes, to, from, caller);
    return fresh;
}

static void *pooled(uintptr_t caller, void *address, size_t bytes)
{
    const nw_heap_hooks *to = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
    if (to != NULL && to->pooled != NULL && address != NULL && !busy) {
        busy = 1;
        to->pooled(caller, address, bytes);
        busy = 0;
    }
    return address;
}

#define CALLER ((uintptr_t)__builtin_return_address(0))

static void *allocate(size_t bytes, uintptr_t caller)
{
    if (!resolved())
        return early_allocate(bytes);
    if (is_large(bytes)) {
        void *address = large_allocate(bytes, 1, caller);
        if (address != NULL)
            return address;
    }
    return pooled(caller, next.malloc(bytes), bytes);
}

/* Null: the next in line decides, and judges the arguments. */
static void *allocate_aligned(size_t alignment, size_t bytes, uintptr_t caller)
{
    if (!resolved())
        return alignment <= 16 ? early_allocate(bytes) : NULL;
    if (is_large(bytes) && alignment != 0 && (alignment & (alignment - 1)) == 0)
        return large_allocate(bytes, alignment, caller);
    return NULL;
}

/* Copies to a new place of another kind: from libc's heap to the zone or back. */
static void *relocate(void *address, size_t old, size_t bytes, uintptr_t caller)
{
    void *fresh = allocate(bytes, caller);
    if (fresh != NULL) {
        memcpy(fresh, address, old < bytes ? old : bytes);
        free(address);
    }
    return fresh;
}

static void *resize_large(void *address, size_t old, size_t bytes, uintptr_t caller)
{
    size_t from = round_up(old, page_size()), to = round_up(bytes, page_size());
    if (bytes < NW_LARGE)
        return relocate(address, old, bytes, caller);
    if (to > from) {
        void *grown = bytes > PTRDIFF_MAX ? NULL : large_grow(address, old, bytes, caller);
        return grown != NULL ? grown : relocate(address, old, bytes, caller);
    }
    if (to < from)
        unmap((char *)address + to, from - to);
    __atomic_store_n(size_of(address, 0), bytes, __ATOMIC_RELAXED);
    return address;
}

static void *resize(void *address, size_t bytes, uintptr_t caller)
{
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

EXPORT void *malloc(size_t bytes)
{
    return allocate(bytes, CALLER);
}

EXPORT void *calloc(size_t count, size_t size)
{
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

EXPORT void *realloc(void *address, size_t bytes)
{
    return resize(address, bytes, CALLER);
}

EXPORT void *reallocarray(void *address, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return resize(address, bytes, CALLER);
}

EXPORT void free(void *address)
{
    if (address == NULL || is_early(address))
        return;
    size_t bytes = large_bytes(address);
    if (bytes != 0)
        large_free(address, bytes);
    else if (resolved())
        next.free(address);
}

EXPORT int posix_memalign(void **address, size_t alignment, size_t bytes)
{
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

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *address = allocate_aligned(alignment, bytes, CALLER);
    return address != NULL || !resolved() ? address : pooled(CALLER, next.aligned_alloc(alignment, bytes), bytes);
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    void *address = allocate_aligned(alignment, bytes, CALLER);
    return address != NULL || !resolved() ? address : pooled(CALLER, next.memalign(alignment, bytes), bytes);
}

EXPORT void *valloc(size_t bytes)
{
    void *address = allocate_aligned(page_size(), bytes, CALLER);
    return address != NULL || !resolved() ? address : pooled(CALLER, next.valloc(bytes), bytes);
}

EXPORT void *pvalloc(size_t bytes)
{
    void *address = allocate_aligned(page_size(), bytes, CALLER);
    return address != NULL || !resolved() ? address : pooled(CALLER, next.pvalloc(bytes), bytes);
}

EXPORT size_t malloc_usable_size(void *address)
{
    if (address == NULL)
        return 0;
    if (is_early(address))
        return early_size(address);
    size_t bytes = large_bytes(address);
    if (bytes != 0)
        return bytes;
    return resolved() ? next.malloc_usable_size(address) : 0;
}

void nw_heap_start(const nw_heap_hooks *to)
{
    if (resolved())
        __atomic_store_n(&hooks, to, __ATOMIC_RELEASE);
}

void nw_heap_stop(void)
{
    __atomic_store_n(&hooks, NULL, __ATOMIC_RELEASE);
}

int nw_heap_owns(const void *address)
{
    return large_bytes(address) != 0;
}
