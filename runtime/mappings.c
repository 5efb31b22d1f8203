#include "mappings.h"
#include "layout.h"

#include <stdbool.h>

#define MAPPINGS 1024u

/* The state of a record. A thread that has set it to CHANGING owns the other fields. */
enum { FREE, CHANGING, LIVE, GONE };

struct nw_mapping {
    uint32_t state;
    uint32_t unused;
    uint64_t place;
    uintptr_t first; /* the first address kept for the place; 0: none yet */
    size_t room;     /* pages kept for it */
    uintptr_t start; /* of what is mapped now: a program may unmap both ends, to align the rest */
    size_t pages;
};

static nw_mapping all[MAPPINGS];
static uint32_t used; /* records from this one on were never taken */

static size_t pages_of(size_t bytes) { return (bytes >> NW_PAGE_SHIFT) + ((bytes & ((1u << NW_PAGE_SHIFT) - 1)) != 0); }

static uint32_t state_of(const nw_mapping *mapping) { return __atomic_load_n(&mapping->state, __ATOMIC_ACQUIRE); }

static void set(nw_mapping *mapping, uint32_t state) { __atomic_store_n(&mapping->state, state, __ATOMIC_RELEASE); }

static bool change(nw_mapping *mapping, uint32_t from) {
    return __atomic_compare_exchange_n(&mapping->state, &from, CHANGING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static uint32_t in_use(void) {
    uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    return count < MAPPINGS ? count : MAPPINGS;
}

/* The smallest unmapped record of the place with enough room. */
static nw_mapping *find_gone(uint64_t place, size_t pages) {
    nw_mapping *best = NULL;
    for (uint32_t i = 0; i < in_use(); i++) {
        nw_mapping *at = &all[i];
        bool fits = state_of(at) == GONE && at->place == place && at->room >= pages;
        if (fits && (best == NULL || at->room < best->room))
            best = at;
    }
    return best;
}

static nw_mapping *take(uint32_t state, uint64_t place) {
    for (uint32_t i = 0; i < MAPPINGS; i++) {
        uint32_t count = i;
        if (state_of(&all[i]) != state || !change(&all[i], state))
            continue;
        all[i].place = place;
        all[i].first = 0;
        while (count <= i && !__atomic_compare_exchange_n(&used, &count, i + 1, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            ;
        return &all[i];
    }
    return NULL;
}

/* Takes a free record, or else one of another place, whose addresses are given up. */
static nw_mapping *take_any(uint64_t place) {
    nw_mapping *unused = take(FREE, place);
    return unused != NULL ? unused : take(GONE, place);
}

nw_mapping *nw_mapping_begin(uint64_t place, size_t bytes, void **at) {
    nw_mapping *gone = find_gone(place, pages_of(bytes));
    if (gone == NULL || !change(gone, GONE))
        return take_any(place);
    if (gone->place == place && gone->room >= pages_of(bytes)) /* unchanged since find_gone */
        *at = (void *)gone->first;
    else
        gone->first = 0, gone->place = place;
    return gone;
}

void nw_mapping_made(nw_mapping *mapping, void *address, size_t bytes) {
    if (address == NULL) {
        set(mapping, mapping->first == 0 ? FREE : GONE);
        return;
    }
    mapping->start = (uintptr_t)address;
    mapping->pages = pages_of(bytes);
    if (mapping->start != mapping->first || mapping->pages > mapping->room)
        mapping->room = mapping->pages;
    mapping->first = mapping->start;
    set(mapping, LIVE);
}

static uintptr_t end_of(uintptr_t start, size_t pages) { return start + (pages << NW_PAGE_SHIFT); }

static bool overlaps(const nw_mapping *mapping, uintptr_t start, uintptr_t end) {
    return mapping->start < end && start < end_of(mapping->start, mapping->pages);
}

/* Cuts a range off one end of a mapping. If the range is in its middle, or covers all of it, the mapping is
 * forgotten. */
static void lose(nw_mapping *mapping, uintptr_t start, uintptr_t end) {
    uintptr_t behind = end_of(mapping->start, mapping->pages);
    bool front = start == mapping->start && end<behind, back = start> mapping->start && end == behind;
    if (front)
        mapping->start = end;
    mapping->pages -= front || back ? (end - start) >> NW_PAGE_SHIFT : 0;
    set(mapping, front || back ? LIVE : FREE);
}

nw_mapping *nw_mapping_ends(const void *address, size_t bytes) {
    uintptr_t start = (uintptr_t)address, end = end_of(start, pages_of(bytes));
    for (uint32_t i = 0; i < in_use(); i++) {
        nw_mapping *at = &all[i];
        if (state_of(at) != LIVE || !overlaps(at, start, end) || !change(at, LIVE))
            continue;
        if (at->start == start && end_of(start, at->pages) == end)
            return at;
        if (overlaps(at, start, end))
            lose(at, start, end);
        else
            set(at, LIVE);
    }
    return NULL;
}

void nw_mapping_ended(nw_mapping *mapping, int unmapped) { set(mapping, unmapped ? GONE : LIVE); }
