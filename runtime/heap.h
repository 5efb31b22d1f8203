/* Interception of the heap. Allocations of 64 KiB and more get page-aligned mappings of their own, in
 * `record` and in `run` alike, so that a page belongs to one object and a rule can place it.
 * heap.c defines malloc and its family. A library that links it (the recorder's runtime, the placing
 * preload) passes hooks for each object to nw_heap_start. Until then, and for smaller allocations,
 * calls go to the next malloc in line (libc's, jemalloc's). */
#ifndef NODEWISE_HEAP_H
#define NODEWISE_HEAP_H

#include "backtrace.h"
#include <stddef.h>
#include <stdint.h>

#define NW_LARGE (64u << 10)

/* One large allocation. Its pages are new, zero and untouched, except those that realloc moved here. It gets the
 * addresses of the previous block of its place (zone.h) if it fits there. */
typedef struct nw_allocation {
    void *address;
    uint32_t *tag;      /* a number of its place, which only the hook uses: 0 at first; null if it has no place */
    const void *before; /* where the place's last block began; null if this is the first */
    int larger;         /* than all earlier blocks of the place */
    size_t bytes;  /* as asked for */
    size_t mapped; /* whole pages */
    size_t moved;  /* bytes at the start whose pages came from the old place; 0 if not a realloc */
    uint32_t depth;
    uintptr_t chain[NW_CHAIN]; /* return addresses, innermost first */
} nw_allocation;

/* Called in the allocating thread, guarded against re-entry: an allocation made inside is served by
 * the next malloc and not reported. Any hook may be null. */
typedef struct nw_heap_hooks {
    void (*allocated)(const nw_allocation *object); /* before the program sees the address */
    /* Before the pages are unmapped. `kept`: the addresses are reserved for the next object of its place. */
    void (*freed)(void *address, size_t mapped, int kept);
    void (*pooled)(uintptr_t caller, const void *address, size_t bytes); /* a small allocation */
    int (*separate)(uintptr_t caller, size_t bytes); /* 0: this large one may go to the next malloc */
} nw_heap_hooks;

/* Large allocations are separate from here on. `hooks` must live as long as the process. */
__attribute__((visibility("hidden"))) void nw_heap_start(const nw_heap_hooks *hooks);

/* Back to plain allocation; what was allocated stays valid and can still be freed. */
__attribute__((visibility("hidden"))) void nw_heap_stop(void);

/* Sets the calling thread's lane, a number from 1. When the thread has ended, a new thread gets its lane, so that
 * short-lived threads reuse the addresses of their predecessors. */
__attribute__((visibility("hidden"))) void nw_heap_lane(uint32_t lane);

/* Whether the address begins a live large allocation. */
__attribute__((visibility("hidden"))) int nw_heap_owns(const void *address);

#endif
