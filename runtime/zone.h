/* The addresses of large allocations, and who comes back to which.
 *
 * A block's place is known by the calls that allocated it, by the thread's lane, and by the lowest number free among
 * those blocks. A freed block's addresses stay its place's: the next block of the place gets them again, and
 * no other ever does. So what is counted by address is one object's, whenever it is read, and a program that
 * allocates and frees in every step takes no more addresses than one step needs.
 *
 * No lock: a signal handler may allocate at any point. */
#ifndef NODEWISE_ZONE_H
#define NODEWISE_ZONE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define NW_BLOCK (64u << 10) /* large allocations begin at multiples of it */

typedef struct nw_place {
    uintptr_t address;     /* 0 before its first block */
    uint32_t room, most;   /* pages: of its addresses, and of its largest block so far */
    uint32_t tag;          /* of whoever hears of allocations; 0 at first */
    uint32_t unused;
} nw_place;

/* What is known of a block, by its address. */
typedef struct nw_block {
    size_t bytes;    /* as asked for; 0 when there is none */
    nw_place *place; /* null: its addresses are never used again */
} nw_block;

/* Null for an address that begins no block of the zone, or with `create` when memory is out. */
nw_block *nw_zone_block(const void *address, int create);

/* `bytes` of addresses that were never used, aligned; 0 when the zone is used up. */
uintptr_t nw_zone_take(size_t bytes, size_t alignment);

/* The place of the next block of these calls in this thread; null when there are too many. */
nw_place *nw_place_take(const uintptr_t *chain, uint32_t depth);
/* The calling thread's: see nw_heap_lane. */
void nw_place_lane(uint32_t lane);
/* Its block is gone, or never came. */
void nw_place_give(nw_place *place);

/* The place's own addresses if they will do, else 0. */
uintptr_t nw_place_own(const nw_place *place, size_t pages, size_t alignment);
/* How many pages of addresses to take for one that needs `pages` now. */
size_t nw_place_room(const nw_place *place, size_t pages);

#pragma GCC visibility pop
#endif
