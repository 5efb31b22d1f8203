/* The window of recent pages: the inlined lookup; everything else is in counters.c. */
/* Why: docs/decisions/recording.md */
#ifndef NODEWISE_COUNTERS_H
#define NODEWISE_COUNTERS_H

#include "recent.h"
#include "runtime.h"

#define NW_PAGE_MASK ((1u << NW_PAGE_SHIFT) - 1)
#define NW_KEY_PAGE ((1ull << NW_REGION_SHIFT) - 1)

/* Folds in the next ten bits, so that power-of-two strides do not map to only a few slots. The pass
 * computes the same: compiler/emit.cpp. */
static inline nw_slot *nw_slot_of(nw_slot *window, uint64_t page) {
    return &window[(page ^ page >> 10) & (NW_WINDOW_SLOTS - 1)];
}

static inline nw_thread *nw_thread_here(void) {
    nw_thread *thread = nw_self;
    return nw_likely(thread != NULL) ? thread : nw_thread_attach();
}

/* Puts the page of `key` into the window. If this is the page's first touch, it is logged with address `code`. */
__attribute__((preserve_most)) nw_slot *nw_fill(nw_thread *thread, uint64_t key, const void *code);

static inline nw_slot *nw_find(nw_thread *thread, uint64_t address, const void *code) {
    uint64_t page = address >> NW_PAGE_SHIFT;
    uint64_t key = page | thread->region;
    nw_slot *slot = nw_slot_of(thread->window, page);
    return nw_likely(slot->key == key) ? slot : nw_fill(thread, key, code);
}

/* The value that reads + writes of the slot's counter had when they were last charged to the slice. */
static inline uint64_t *nw_paced(nw_thread *thread, const nw_slot *slot) {
    bool noted = thread->recent && slot != &thread->sink;
    return noted ? &thread->recent->paced[slot - thread->window] : &thread->sink.known;
}

/* Adds the lines that are not counted yet to the slot's counter. */
static inline void nw_pay(nw_slot *slot) {
    slot->counter->lines += (uint64_t)__builtin_popcountll(slot->bitmap & ~slot->known);
    slot->known = slot->bitmap;
}

/* Bits first..last, both below 64. */
static inline uint64_t nw_lines(uint32_t first, uint32_t last) { return (2ull << last) - (1ull << first); }

#endif
