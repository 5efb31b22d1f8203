/* Decides which callers' large allocations get pages of their own, which are expensive for a program that allocates and
 * frees all the time. A caller whose first PATIENCE objects all matched no rule gets memory from the program's own
 * malloc again. */
/* Why: docs/decisions/placement.md */
#include "preload.h"

#define CALLERS 1024u
#define PATIENCE 1000u /* objects without a rule after which a caller's allocations are no longer separated */

static struct {
    uint64_t key; /* caller and order of magnitude of the size */
    uint32_t unmatched;
    uint32_t matched;
} callers[CALLERS];

static uint64_t key_of(uintptr_t caller, size_t bytes) {
    return (uint64_t)caller << 6 | (uint64_t)(63 - __builtin_clzll(bytes | 1));
}

/* Callers that collide do not share an entry: the later one takes it over. */
static uint32_t slot_of(uint64_t key) { return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 54) % CALLERS; }

int nw_caller_separates(uintptr_t caller, size_t bytes) {
    uint64_t key = key_of(caller, bytes);
    uint32_t slot = slot_of(key);
    return __atomic_load_n(&callers[slot].key, __ATOMIC_RELAXED) != key ||
           __atomic_load_n(&callers[slot].matched, __ATOMIC_RELAXED) > 0 ||
           __atomic_load_n(&callers[slot].unmatched, __ATOMIC_RELAXED) < PATIENCE;
}

void nw_caller_seen(const nw_allocation *object, int matched) {
    uint64_t key = key_of(object->chain[0], object->bytes);
    uint32_t slot = slot_of(key);
    if (__atomic_exchange_n(&callers[slot].key, key, __ATOMIC_RELAXED) != key) {
        __atomic_store_n(&callers[slot].matched, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&callers[slot].unmatched, 0, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(matched ? &callers[slot].matched : &callers[slot].unmatched, 1, __ATOMIC_RELAXED);
}
