/* Pages that left the window not long ago, with the lines they had: the window is direct mapped, a
 * cache is not. A page that only had to make room for a neighbour comes back with its lines, so that
 * they are not counted as traffic again; one that left NW_WINDOW_SLOTS entries ago is forgotten.
 * A thread that goes round NW_WINDOW_SLOTS pages or fewer thus counts each line once, whatever the
 * pages' addresses. */
#ifndef NODEWISE_RECENT_H
#define NODEWISE_RECENT_H

#include "layout.h"

#define NW_RECENT_BUCKETS 512u
#define NW_RECENT_WAYS 8u

typedef struct nw_left {
    uint64_t page;
    uint64_t lines;
    uint64_t when; /* on the clock below, at least 1 once used */
} nw_left;

typedef struct nw_recent {
    uint64_t clock; /* pages that have entered the window */
    uint64_t paced[NW_WINDOW_SLOTS]; /* accesses of each slot already charged to the slice */
    nw_left left[NW_RECENT_BUCKETS][NW_RECENT_WAYS];
} nw_recent;

static inline nw_left *nw_bucket(nw_recent *recent, uint64_t page)
{
    return recent->left[page * 0x9e3779b97f4a7c15ull >> 32 & (NW_RECENT_BUCKETS - 1)];
}

/* Remembers the lines of a page that leaves, in place of the one longest gone. */
static inline void nw_recent_leave(nw_recent *recent, uint64_t page, uint64_t lines)
{
    nw_left *bucket = nw_bucket(recent, page), *place = bucket;
    for (uint32_t i = 0; i < NW_RECENT_WAYS && place->page != page; i++)
        if (bucket[i].page == page || bucket[i].when < place->when)
            place = &bucket[i];
    *place = (nw_left){.page = page, .lines = lines, .when = recent->clock + 1};
}

/* The lines a page still had; 0 if it was away for too long. */
static inline uint64_t nw_recent_enter(nw_recent *recent, uint64_t page)
{
    recent->clock++;
    nw_left *bucket = nw_bucket(recent, page);
    for (uint32_t i = 0; i < NW_RECENT_WAYS; i++)
        if (bucket[i].page == page)
            return recent->clock - bucket[i].when < NW_WINDOW_SLOTS ? bucket[i].lines : 0;
    return 0;
}

#endif
