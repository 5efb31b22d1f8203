/* The addresses of large allocations, and their reuse.
 *
 * Each block belongs to a place, which is identified by the call chain that allocated the block, the thread's lane, and
 * the lowest number that is free among such blocks. The addresses of a freed block stay reserved for its place: the
 * next block of the place gets them again, and no other block ever does. So counts at an address always belong to one
 * object, no matter when they are read, and a program that allocates and frees in every step uses no more addresses
 * than one step needs.
 *
 * No lock is taken: a signal handler may allocate at any point. */
#ifndef NODEWISE_ZONE_H
#define NODEWISE_ZONE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define NW_BLOCK (64u << 10) /* large allocations begin at multiples of it */

typedef struct nw_place {
    uintptr_t address;     /* 0 before its first block */
    uint32_t room, most;   /* pages: of its addresses, and of its largest block so far */
    uint32_t tag;          /* for the hook that is called on allocations; 0 at first */
    uint32_t unused;
} nw_place;

/* The record of a block, found by its address. */
typedef struct nw_block {
    size_t bytes;    /* as asked for; 0 when there is none */
    nw_place *place; /* null: its addresses are never used again */
} nw_block;

/* The record for a block at `address`. Null if no block of the zone can begin there, or if there is no table for it:
 * with `create` it is made, and null means out of memory. */
nw_block *nw_zone_block(const void *address, int create);

/* `bytes` of addresses that were never used, aligned; 0 when the zone is used up. */
uintptr_t nw_zone_take(size_t bytes, size_t alignment);

/* The place for the next block of this call chain in this thread; null if there are too many. */
nw_place *nw_place_take(const uintptr_t *chain, uint32_t depth);
/* Sets the calling thread's lane: see nw_heap_lane. */
void nw_place_lane(uint32_t lane);
/* Gives the place back: its block was freed, or was not made. */
void nw_place_give(nw_place *place);

/* The place's addresses if they have enough pages and the alignment, otherwise 0. */
uintptr_t nw_place_own(const nw_place *place, size_t pages, size_t alignment);
/* The pages of addresses to take for a block that needs `pages` now. */
size_t nw_place_room(const nw_place *place, size_t pages);

#pragma GCC visibility pop
#endif
