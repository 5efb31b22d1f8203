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

/* Filled in turn, so that the page longest gone makes room. */
typedef struct nw_bucket {
    uint32_t page[NW_RECENT_WAYS]; /* low bits of the page number, 0 when empty */
    uint32_t when[NW_RECENT_WAYS]; /* on the clock below */
    uint64_t lines[NW_RECENT_WAYS];
} nw_bucket;

typedef struct nw_recent {
    nw_bucket left[NW_RECENT_BUCKETS];
    uint64_t paced[NW_WINDOW_SLOTS]; /* accesses of each slot already charged to the slice */
    uint32_t clock; /* pages that have entered the window */
    uint8_t turn[NW_RECENT_BUCKETS];
} nw_recent;

static inline uint32_t nw_bucket_of(uint64_t page)
{
    return (uint32_t)(page * 0x9e3779b97f4a7c15ull >> 32) & (NW_RECENT_BUCKETS - 1);
}

/* Remembers the lines of a page that leaves. */
static inline void nw_recent_leave(nw_recent *recent, uint64_t page, uint64_t lines)
{
    uint32_t bucket = nw_bucket_of(page), way = recent->turn[bucket]++ % NW_RECENT_WAYS;
    recent->left[bucket].page[way] = (uint32_t)page;
    recent->left[bucket].when[way] = recent->clock;
    recent->left[bucket].lines[way] = lines;
}

/* The lines a page still had; 0 if it was away for too long. */
static inline uint64_t nw_recent_enter(nw_recent *recent, uint64_t page)
{
    nw_bucket *bucket = &recent->left[nw_bucket_of(page)];
    uint32_t way = 0;
    while (way < NW_RECENT_WAYS && bucket->page[way] != (uint32_t)page)
        way++;
    recent->clock++;
    if (way == NW_RECENT_WAYS)
        return 0;
    bucket->page[way] = 0;
    return recent->clock - bucket->when[way] <= NW_WINDOW_SLOTS ? bucket->lines[way] : 0;
}

#endif
