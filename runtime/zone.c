#define _GNU_SOURCE
#include "zone.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The zone is far below the addresses where the kernel places mappings by itself, and far above the program, so it
 * need not be reserved. Under the legacy layout (setarch -L) the loader and libraries may lie inside. */
#ifndef ZONE_BEGIN /* tests/sanitizers: ThreadSanitizer leaves programs other addresses */
#define ZONE_BEGIN 0x200000000000ull
#define ZONE_END 0x500000000000ull
#endif
#define HUGE_PAGE (2ull << 20)
#define LEAF_SHIFT 32 /* one table of blocks, 1 MiB, per 4 GiB */
#define LEAVES ((ZONE_END - ZONE_BEGIN) >> LEAF_SHIFT)
#define LEAF_BYTES (sizeof(nw_block) << (LEAF_SHIFT - 16))

static uintptr_t zone_next = ZONE_BEGIN;
static void *blocks[LEAVES];

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) & ~(to - 1); }

uintptr_t nw_zone_take(size_t bytes, size_t alignment) {
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : NW_BLOCK;
    if (alignment > align)
        align = alignment;
    uintptr_t before = __atomic_load_n(&zone_next, __ATOMIC_RELAXED), at;
    do {
        at = round_up(before, align);
        if (at >= ZONE_END || bytes > ZONE_END - at)
            return 0;
    } while (!__atomic_compare_exchange_n(&zone_next, &before, round_up(at + bytes, NW_BLOCK), 1, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return at;
}

/* Makes a table of zeros, or returns the one that another thread made first; null if out of memory. */
static void *table_create(void **at, size_t bytes) {
    void *none = NULL;
    long result = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                          -1, 0L);
    if (result == -1)
        return NULL;
    if (__atomic_compare_exchange_n(at, &none, (void *)result, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return (void *)result;
    syscall(SYS_munmap, result, bytes);
    return none;
}

nw_block *nw_zone_block(const void *address, int create) {
    uintptr_t offset = (uintptr_t)address - ZONE_BEGIN;
    if (offset >= ZONE_END - ZONE_BEGIN || offset % NW_BLOCK != 0)
        return NULL;
    void **leaf = &blocks[offset >> LEAF_SHIFT];
    nw_block *table = __atomic_load_n(leaf, __ATOMIC_ACQUIRE);
    if (table == NULL && create)
        table = table_create(leaf, LEAF_BYTES);
    return table == NULL ? NULL : &table[(offset & ((1ull << LEAF_SHIFT) - 1)) / NW_BLOCK];
}

/* ---- Places, in buckets of BUCKET_PLACES each. A bucket belongs to a call chain and a thread's lane. Only that thread
 * takes places from it; any thread can give them back. ---- */

#define BUCKET_PLACES 16u
#define BUCKETS 1024u /* of an area */
#define AREAS 16u /* allocated when needed: most programs allocate from few call chains */
#define BUCKET_BYTES 512u
#define MOST_BUCKETS 128u /* of one call chain and thread */
#define PROBES 32u
#define FULL UINT32_MAX

typedef struct bucket { /* aligned to BUCKET_BYTES, so that the address of a place yields its bucket */
    uint64_t key; /* 0: free */
    uint32_t used; /* a bit for each place that has a block; FULL while the bucket is taken over for another key */
    uint32_t unused;
    nw_place places[BUCKET_PLACES];
} bucket;

_Static_assert(sizeof(bucket) <= BUCKET_BYTES, "a bucket has room");

static void *areas[AREAS];
static uint32_t laneless;
static __thread uint32_t own_lane __attribute__((tls_model("initial-exec")));

void nw_place_lane(uint32_t lane) { own_lane = lane; }

static uint64_t mix(uint64_t key, uint64_t with) {
    key = (key ^ with) * 0x9e3779b97f4a7c15ull;
    return key ^ key >> 29;
}

static uint64_t key_of(const uintptr_t *chain, uint32_t depth) {
    if (own_lane == 0) /* a thread for which nw_place_lane was not called */
        own_lane = UINT32_MAX - __atomic_fetch_add(&laneless, 1, __ATOMIC_RELAXED);
    uint64_t key = mix(0xcbf29ce484222325ull, own_lane);
    for (uint32_t i = 0; i < depth; i++)
        key = mix(key, chain[i]);
    return key;
}

static bucket *bucket_at(uint32_t area, uint64_t key, uint32_t probe) {
    char *begin = __atomic_load_n(&areas[area], __ATOMIC_ACQUIRE);
    return begin == NULL ? NULL : (bucket *)(begin + ((key >> 32) + probe) % BUCKETS * BUCKET_BYTES);
}

/* Takes over another key's bucket in which no place has a block. The addresses of these places are not used again. */
static bucket *take_over(uint64_t key) {
    for (uint32_t probe = 0; probe < PROBES * AREAS; probe++) {
        bucket *at = bucket_at(probe / PROBES, key, probe % PROBES);
        uint32_t none = 0;
        if (at == NULL || !__atomic_compare_exchange_n(&at->used, &none, FULL, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&at->key, key, __ATOMIC_RELEASE);
        memset(at->places, 0, sizeof at->places);
        __atomic_store_n(&at->used, 0, __ATOMIC_RELEASE);
        return at;
    }
    return NULL;
}

/* The key's bucket in this area, which is taken if it is still free. */
static bucket *find_in(uint32_t area, uint64_t key) {
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        bucket *at = bucket_at(area, key, probe);
        if (at == NULL)
            return NULL;
        uint64_t owner = __atomic_load_n(&at->key, __ATOMIC_ACQUIRE);
        if (owner == key)
            return at;
        if (owner == 0 && __atomic_compare_exchange_n(&at->key, &owner, key, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return at;
    }
    return NULL;
}

static bucket *find_bucket(uint64_t key) {
    for (uint32_t area = 0; area < AREAS; area++) {
        bucket *at = find_in(area, key);
        if (at == NULL && __atomic_load_n(&areas[area], __ATOMIC_ACQUIRE) == NULL &&
            table_create(&areas[area], BUCKETS * BUCKET_BYTES) != NULL)
            at = find_in(area, key);
        if (at != NULL)
            return at;
    }
    return take_over(key);
}

/* The first place without a block; null when all have one. */
static nw_place *take_from(bucket *from, uint64_t key) {
    uint32_t used = __atomic_load_n(&from->used, __ATOMIC_ACQUIRE);
    while (used != FULL && used != (1u << BUCKET_PLACES) - 1) {
        uint32_t number = (uint32_t)__builtin_ctz(~used);
        if (!__atomic_compare_exchange_n(&from->used, &used, used | 1u << number, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
            continue;
        if (__atomic_load_n(&from->key, __ATOMIC_ACQUIRE) == key)
            return &from->places[number];
        nw_place_give(&from->places[number]); /* the bucket was taken over meanwhile */
        break;
    }
    return NULL;
}

nw_place *nw_place_take(const uintptr_t *chain, uint32_t depth) {
    uint64_t first = key_of(chain, depth);
    for (uint32_t i = 0; i < MOST_BUCKETS; i++) {
        uint64_t key = mix(first, i) | 1;
        bucket *from = find_bucket(key);
        nw_place *place = from == NULL ? NULL : take_from(from, key);
        if (place != NULL || from == NULL)
            return place;
    }
    return NULL;
}

void nw_place_give(nw_place *place) {
    bucket *of = (bucket *)((uintptr_t)place & ~(uintptr_t)(BUCKET_BYTES - 1));
    __atomic_fetch_and(&of->used, ~(1u << (uint32_t)(place - of->places)), __ATOMIC_RELEASE);
}

uintptr_t nw_place_own(const nw_place *place, size_t pages, size_t alignment) {
    return place != NULL && pages <= place->room && (place->address & (alignment - 1)) == 0 ? place->address : 0;
}

/* A power of two, so that a block that is larger each time changes its addresses only a few times. */
size_t nw_place_room(const nw_place *place, size_t pages) {
    if (place == NULL || pages < 2)
        return pages;
    return (size_t)1 << (64 - __builtin_clzll(pages - 1));
}
