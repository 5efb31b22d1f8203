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
static int passed, failed;

nw_thread *nw_thread_attach(void) { abort(); }

bool nw_counters_grow(nw_thread *thread) {
    (void)thread;
    return false;
}

bool nw_touches_grow(nw_thread *thread) {
    (void)thread;
    return false;
}

void nw_switch_off(const char *why) {
    fprintf(stderr, "window: %s\n", why);
    abort();
}

void nw_slice_reached(nw_thread *thread) { (void)thread; }

uint32_t nw_region_register(nw_region *region) { return region->id; }

void nw_region_left(nw_thread *thread, const nw_region *region) { (void)thread, (void)region; }

static nw_thread *fresh_thread(void) {
    nw_thread *thread = calloc(1, sizeof *thread);
    thread->header = calloc(1, sizeof *thread->header);
    thread->window = calloc(NW_WINDOW_SLOTS, sizeof *thread->window);
    nw_counter *counters = calloc(COUNTERS, sizeof *counters);
    for (uint32_t segment = 0; segment < NW_SEGMENTS; segment++)
        thread->counters[segment] = (uintptr_t)counters; /* all in one piece */
    thread->counters_room = COUNTERS;
    thread->until_slice = INT64_MAX;
    nw_window_clear(thread->window);
    return nw_self = thread;
}

/* What the recorder reads. */
static uint64_t lines_paid(const nw_thread *thread) {
    uint64_t lines = 0;
    for (uint64_t i = 0; i < thread->header->counters; i++)
        lines += nw_counter_at(thread, i)->lines;
    for (uint32_t i = 0; i < NW_WINDOW_SLOTS; i++)
        if (thread->window[i].key != NW_KEY_NONE)
            lines += (uint64_t)__builtin_popcountll(thread->window[i].bitmap & ~thread->window[i].known);
    return lines;
}

/* All of `pages` pages from each of three arrays, `rounds` times, region by region. */
static uint64_t sweep(const uint64_t base[3], uint32_t pages, uint32_t regions, uint32_t rounds) {
    static const nw_group load = {.accesses = 1, .span = 8, .reads = 1, .access = {{.size = 8, .reads = 1}}};
    nw_thread *thread = fresh_thread();
    for (uint32_t round = 0; round < rounds * regions; round++) {
        thread->region = (uint64_t)(round % regions) << NW_REGION_SHIFT;
        for (uint32_t array = 0; array < 3; array++)
            nw_range(base[array], 8, (uint64_t)pages << (NW_PAGE_SHIFT - 3), &load);
    }
    return lines_paid(thread);
}

static void expect(const char *law, uint64_t low, uint64_t high, uint64_t got) {
    bool holds = low <= got && got <= high;
    holds ? passed++ : failed++;
    if (!holds)
        printf("FAILED: %s: %lu lines, expected %lu to %lu\n", law, (unsigned long)got, (unsigned long)low,
               (unsigned long)high);
}

static uint64_t anywhere(void) { return ((uint64_t)rand() << 13 ^ (uint64_t)rand()) & ((1ull << 34) - 1); }

/* Wherever three arrays that fit the window lie, and from however many regions they are read, each
 * of their lines is paid for once. */
static void fits(void) {
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
static void does_not_fit(void) {
    const uint64_t base[3] = {1ull << 34, 2ull << 34, 3ull << 34};
    uint64_t each_round = 3ull * 2000 * LINES * 10;
    expect("three arrays too large", each_round - each_round / 50, each_round, sweep(base, 2000, 1, 10));
}

/* Half as much again as the window: most lines come from memory in each round, wherever the arrays lie. */
static void hardly_fits_not(void) {
    srand(2);
    for (int trial = 0; trial < 40; trial++) {
        uint64_t base[3];
        for (int i = 0; i < 3; i++)
            base[i] = ((uint64_t)(i + 1) << 34) + ((uint64_t)(rand() % 100000) << NW_PAGE_SHIFT);
        uint64_t each_round = 1536ull * LINES * 20;
        expect("half as much again", each_round - each_round / 10, each_round, sweep(base, 512, 1, 20));
    }
}

/* ---- Sets of pages that are as unlucky as may be. ---- */

static uint64_t in_one_slot(uint32_t i) {
    uint64_t high = i + 1; /* the slot is page ^ page >> 10, of ten bits */
    return high << 10 | (high & (NW_WINDOW_SLOTS - 1));
}

static uint64_t in_two_slots(uint32_t i) { return in_one_slot(i / 2) ^ (i & 1); }

static uint64_t adjacent(uint32_t i) { return 0x7000000 + i; }

static uint64_t power_of_two_apart(uint32_t i) { return 0x7000000 + ((uint64_t)i << 9); }

/* Of a random page, as a set chosen once. */
static uint64_t random_page(uint32_t i) {
    static uint64_t chosen[NW_WINDOW_SLOTS];
    if (!chosen[i])
        chosen[i] = anywhere();
    return chosen[i];
}

/* Whose products with the multiplier of recent.c agree in the bits that choose a chain. */
static uint64_t in_one_chain(uint32_t i) {
    static uint64_t chosen[NW_WINDOW_SLOTS], next = 1;
    for (; !chosen[i]; next++)
        if ((next * 0x9e3779b97f4a7c15ull >> 32 & (NW_RECENT_CHAINS - 1)) == 0)
            chosen[i] = next;
    return chosen[i];
}

typedef uint64_t (*page_set)(uint32_t);
static const page_set sets[] = {in_one_slot, in_two_slots, adjacent, power_of_two_apart, random_page, in_one_chain};
enum { SETS = sizeof sets / sizeof *sets };

/* Reads all lines of some page. */
static void read_page(nw_thread *thread, uint64_t page) {
    static const nw_group load = {.accesses = 1, .span = 8, .reads = 1, .access = {{.size = 8, .reads = 1}}};
    thread->region = (uint64_t)(rand() % 3) << NW_REGION_SHIFT;
    nw_range(page << NW_PAGE_SHIFT, 64, LINES, &load);
}

static void shuffle(uint32_t *order, uint32_t count) {
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = (uint32_t)rand() % i, kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}

/* Each page of a set once, in this or that order. */
static void round_of(nw_thread *thread, page_set set, uint32_t first, uint32_t pages, bool ordered) {
    static uint32_t order[NW_WINDOW_SLOTS];
    for (uint32_t i = 0; i < pages; i++)
        order[i] = first + i;
    if (!ordered)
        shuffle(order, pages);
    for (uint32_t i = 0; i < pages; i++)
        read_page(thread, set(order[i]));
}

/* A thread with as many pages as the window, or fewer: each line once, whatever the pages are, from
 * whichever regions, in whichever order, and if some of them are used far more than others. */
static void any_pages_that_fit(void) {
    for (int trial = 0; trial < 240; trial++) {
        srand((unsigned)trial);
        page_set set = sets[trial % SETS];
        uint32_t pages = trial % 4 == 0 ? NW_WINDOW_SLOTS : 1 + (uint32_t)rand() % NW_WINDOW_SLOTS;
        nw_thread *thread = fresh_thread();
        for (int round = 0; round < 6; round++) {
            round_of(thread, set, 0, pages, trial & 8);
            /* Two that may meet: nobody else ages by it. */
            for (int i = 0; i < 3000; i++)
                read_page(thread, set((uint32_t)i % (pages < 2 ? 1 : 2)));
        }
        expect("any pages that fit", (uint64_t)pages * LINES, (uint64_t)pages * LINES, lines_paid(thread));
    }
}

/* Of a thread that turns to other pages nothing is left that would keep the new ones out. */
static void other_pages_that_fit(void) {
    for (int trial = 0; trial < 60; trial++) {
        srand((unsigned)trial);
        page_set before = sets[trial % SETS], after = sets[trial / SETS % SETS];
        uint32_t old = 1 + (uint32_t)rand() % NW_WINDOW_SLOTS, pages = 1 + (uint32_t)rand() % NW_WINDOW_SLOTS;
        nw_thread *thread = fresh_thread();
        for (int round = 0; round < 4; round++)
            round_of(thread, before, 0, old, trial & 1);
        for (int round = 0; round < 3; round++)
            round_of(thread, after, 0, pages, trial & 2);
        uint64_t paid = lines_paid(thread);
        for (int round = 0; round < 4; round++)
            round_of(thread, after, 0, pages, trial & 2);
        expect("other pages that fit", paid, paid, lines_paid(thread));
    }
}

/* A page is forgotten where more others than the window has pages came between. */
static void forgets(void) {
    for (int set = 0; set < SETS; set++) {
        nw_thread *thread = fresh_thread();
        uint64_t lines = 0;
        for (int round = 0; round < 5; round++) {
            round_of(thread, sets[set], 0, 8, true);
            for (uint64_t i = 0; i < 2 * NW_WINDOW_SLOTS; i++)
                read_page(thread, (uint64_t)(round + 1) << 35 | i);
            lines += (8 + 2 * NW_WINDOW_SLOTS) * LINES;
        }
        expect("what came long ago", lines, lines, lines_paid(thread));
    }
}

int main(void) {
    fits();
    does_not_fit();
    hardly_fits_not();
    any_pages_that_fit();
    other_pages_that_fit();
    forgets();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
