/* A thread that goes round a set of pages, by way of the real counters: how many lines does it pay
 * for? Ends with `N passed, M failed`. */
#define _GNU_SOURCE
#include "counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTERS 65536u
#define LINES 64u

_Thread_local nw_thread *nw_self;
uint64_t *nw_touched;
static int passed, failed;

nw_thread *nw_thread_attach(void)
{
    abort();
}

bool nw_counters_reserve(nw_thread *thread, uint64_t count)
{
    return count <= thread->counters_room;
}

bool nw_touches_reserve(nw_thread *thread, uint64_t count)
{
    return count <= thread->touches_room;
}

void nw_switch_off(const char *why)
{
    fprintf(stderr, "window: %s\n", why);
    abort();
}

void nw_slice_reached(nw_thread *thread)
{
    (void)thread;
}

uint32_t nw_region_register(nw_region *region)
{
    return region->id;
}

void nw_region_left(nw_thread *thread, const nw_region *region)
{
    (void)thread, (void)region;
}

static nw_thread *fresh_thread(void)
{
    nw_thread *thread = calloc(1, sizeof *thread);
    thread->header = calloc(1, sizeof *thread->header);
    thread->window = calloc(NW_WINDOW_SLOTS, sizeof *thread->window);
    thread->counters = calloc(COUNTERS, sizeof *thread->counters);
    thread->counters_room = COUNTERS;
    thread->until_slice = INT64_MAX;
    nw_window_clear(thread->window);
    return nw_self = thread;
}

/* What the recorder reads. */
static uint64_t lines_paid(const nw_thread *thread)
{
    uint64_t lines = 0;
    for (uint64_t i = 0; i < thread->header->counters; i++)
        lines += thread->counters[i].lines;
    for (uint32_t i = 0; i < NW_WINDOW_SLOTS; i++)
        if (thread->window[i].key != NW_KEY_NONE)
            lines += (uint64_t)__builtin_popcountll(thread->window[i].bitmap & ~thread->window[i].known);
    return lines;
}

/* All of `pages` pages from each of three arrays, `rounds` times, region by region. */
static uint64_t sweep(const uint64_t base[3], uint32_t pages, uint32_t regions, uint32_t rounds)
{
    static const nw_group load = {.accesses = 1, .span = 8, .reads = 1, .access = {{.size = 8, .reads = 1}}};
    nw_thread *thread = fresh_thread();
    for (uint32_t round = 0; round < rounds * regions; round++) {
        thread->region = (uint64_t)(round % regions) << NW_REGION_SHIFT;
        for (uint32_t array = 0; array < 3; array++)
            nw_range(base[array], 8, (uint64_t)pages << (NW_PAGE_SHIFT - 3), &load);
    }
    return lines_paid(thread);
}

static void expect(const char *law, uint64_t low, uint64_t high, uint64_t got)
{
    bool holds = low <= got && got <= high;
    holds ? passed++ : failed++;
    if (!holds)
        printf("FAILED: %s: %lu lines, expected %lu to %lu\n", law, (unsigned long)got, (unsigned long)low,
               (unsigned long)high);
}

/* Wherever three arrays that fit the window lie, and from however many regions they are read, each
 * of their lines is paid for once. */
static void fits(void)
{
    srand(1);
    for (int trial = 0; trial < 40; trial++) {
        uint64_t base[3];
        uint32_t pages = 1 + (uint32_t)rand() % (NW_WINDOW_SLOTS / 3);
        for (int i = 0; i < 3; i++)
            base[i] = ((uint64_t)(i + 1) << 34) + ((uint64_t)(rand() % 100000) << NW_PAGE_SHIFT);
        uint64_t once = 3ull * pages * LINES;
        expect("three arrays that fit", once, once, sweep(base, pages, 1 + (uint32_t)trial % 3, 20));
    }
}

/* Three arrays of several times the window come from memory each round, up to what luck keeps. */
static void does_not_fit(void)
{
    const uint64_t base[3] = {1ull << 34, 2ull << 34, 3ull << 34};
    uint64_t each_round = 3ull * 2000 * LINES * 10;
    expect("three arrays too large", each_round - each_round / 50, each_round, sweep(base, 2000, 1, 10));
}

int main(void)
{
    fits();
    does_not_fit();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
