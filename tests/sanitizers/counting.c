/* Threads count on pages of their own and on shared ones, by way of the real counters, while a reader takes
 * snapshots as the recorder does: what is published is whole, counts never go back, and every page is first
 * touched once. Meant for ThreadSanitizer and AddressSanitizer. Ends with `N passed, M failed`. */
#define _GNU_SOURCE
#include "counters.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define PAGES 3000u /* thrice the window */
#define ROUNDS 6
#define FIRST_PAGE 0x10000u

_Thread_local nw_thread *nw_self;
static nw_thread *threads[THREADS];
static _Atomic int running;
static _Atomic long failures;

nw_thread *nw_thread_attach(void) { abort(); }
bool nw_counters_grow(nw_thread *thread) { return (void)thread, false; }
bool nw_touches_grow(nw_thread *thread) { return (void)thread, false; }
void nw_switch_off(const char *why) { fprintf(stderr, "counting: %s\n", why), abort(); }
void nw_slice_reached(nw_thread *thread) { thread->until_slice = INT64_MAX; }
uint32_t nw_region_register(nw_region *region) { return region->id; }
void nw_region_left(nw_thread *thread, const nw_region *region) { (void)thread, (void)region; }

static nw_thread *fresh_thread(void) {
    nw_thread *thread = calloc(1, sizeof *thread);
    thread->header = calloc(1, sizeof *thread->header);
    thread->window = calloc(NW_WINDOW_SLOTS, sizeof *thread->window);
    nw_counter *counters = calloc(PAGES + 1, sizeof *counters);
    nw_touch *touches = calloc(PAGES + 1, sizeof *touches);
    for (uint32_t segment = 0; segment < NW_SEGMENTS; segment++) { /* all in one piece */
        thread->counters[segment] = (uintptr_t)counters;
        thread->touches[segment] = (uintptr_t)touches;
    }
    thread->counters_room = thread->touches_room = PAGES + 1;
    thread->until_slice = INT64_MAX;
    nw_window_clear(thread->window);
    return thread;
}

static void *count(void *argument) {
    nw_self = argument;
    static const nw_group words = {.accesses = 1, .span = 8, .reads = 1, .writes = 1, .access = {{0, 8, 1, 1}}};
    for (int round = 0; round < ROUNDS; round++)
        nw_range((uint64_t)FIRST_PAGE << NW_PAGE_SHIFT, 512, PAGES * 8, &words);
    running--;
    return NULL;
}

/* In the recorder this is another process: the counts themselves are read while they grow. */
__attribute__((no_sanitize("thread"))) static uint64_t peek(const uint64_t *count) {
    return *(const volatile uint64_t *)count;
}

static void *read_along(void *unused) {
    static uint64_t before[THREADS][PAGES + 1];
    do {
        for (int t = 0; t < THREADS; t++) {
            uint64_t known = __atomic_load_n(&threads[t]->header->counters, __ATOMIC_ACQUIRE);
            uint64_t touched = __atomic_load_n(&threads[t]->header->touches, __ATOMIC_ACQUIRE);
            for (uint64_t i = 0; i < known; i++) {
                uint64_t reads = peek(&nw_counter_at(threads[t], i)->reads);
                failures += nw_counter_at(threads[t], i)->key == 0 || reads < before[t][i];
                before[t][i] = reads;
            }
            for (uint64_t i = 0; i < touched; i++)
                failures += ((const nw_touch *)threads[t]->touches[0])[i].key == 0;
        }
    } while (running > 0);
    return unused;
}

int main(void) {
    pthread_t workers[THREADS], reader;
    int passed = 0, failed = 0;
    if (!nw_touched_prepare())
        return 1;
    running = THREADS;
    for (int t = 0; t < THREADS; t++)
        threads[t] = fresh_thread();
    pthread_create(&reader, NULL, read_along, NULL);
    for (int t = 0; t < THREADS; t++)
        pthread_create(&workers[t], NULL, count, threads[t]);
    for (int t = 0; t < THREADS; t++)
        pthread_join(workers[t], NULL);
    pthread_join(reader, NULL);
    uint64_t touches = 0, reads = 0;
    for (int t = 0; t < THREADS; t++) {
        touches += threads[t]->header->touches;
        for (uint64_t i = 0; i < threads[t]->header->counters; i++)
            reads += nw_counter_at(threads[t], i)->reads;
    }
#define CHECK(holds, ...) ((holds) ? (void)passed++ : (void)(failed++, printf("FAILED " __VA_ARGS__)))
    CHECK(failures == 0, "%ld counters went back or had no key\n", (long)failures);
    CHECK(touches == PAGES, "%lu first touches of %u pages\n", (unsigned long)touches, PAGES);
    CHECK(reads == (uint64_t)THREADS * ROUNDS * PAGES * 8, "%lu reads\n", (unsigned long)reads);
    for (int t = 0; t < THREADS; t++)
        nw_thread_release(threads[t]);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
