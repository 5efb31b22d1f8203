/* The heap seen from outside: allocations of 64 KiB and more get page-aligned mappings of their own,
 * in `record` and in `run` alike, so that a page belongs to one object and a rule can place it.
 * heap.c defines malloc and its family; whoever links it (the recorder's runtime, the placing
 * preload) says with nw_heap_start what to do with each object. Until then, and for everything
 * smaller, allocations go to the next malloc in line (libc's, jemalloc's). */
#ifndef NODEWISE_HEAP_H
#define NODEWISE_HEAP_H

#include "backtrace.h"
#include <stddef.h>
#include <stdint.h>

#define NW_LARGE (64u << 10)

/* One large allocation. Its pages are fresh, zero and untouched, but for what realloc carried over. Where its
 * caller's block before it lay (zone.h) it lies too, if it fits there. */
typedef struct nw_allocation {
    void *address;
    uint32_t *tag;      /* of its place, for the hook alone: 0 at first; null when no place is kept for it */
    const void *before; /* where the place's last block began; null if this is the first */
    int larger;         /* than all blocks of the place before */
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
    /* Before the pages go. `kept`: the addresses serve the next object of its place, and no other. */
    void (*freed)(void *address, size_t mapped, int kept);
    void (*pooled)(uintptr_t caller, const void *address, size_t bytes); /* a small allocation */
    int (*separate)(uintptr_t caller, size_t bytes); /* 0: this large one may go to the next malloc */
} nw_heap_hooks;

/* Large allocations are separate from here on. `hooks` must live as long as the process. */
__attribute__((visibility("hidden"))) void nw_heap_start(const nw_heap_hooks *hooks);

/* Back to plain allocation; what was allocated stays valid and can still be freed. */
__attribute__((visibility("hidden"))) void nw_heap_stop(void);

/* The calling thread's lane, from 1: it goes to another thread when this one has ended, so that threads that live for
 * one step of the program come back to the addresses of those before them. */
__attribute__((visibility("hidden"))) void nw_heap_lane(uint32_t lane);

/* Whether the address begins a live large allocation. */
__attribute__((visibility("hidden"))) int nw_heap_owns(const void *address);

#endif
