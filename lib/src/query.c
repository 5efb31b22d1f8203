/* Where pages are, and statistics of moving them. */
#include "kernel.h"
#include "library.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH 4096 /* pages asked about at once; on the caller's stack */

static _Atomic uint64_t pages_moved, page_nanoseconds, threads_moved, thread_nanoseconds, calls;

double nw_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void add(_Atomic uint64_t *to, uint64_t more) { atomic_fetch_add_explicit(to, more, memory_order_relaxed); }

void nw_count_call(void) { add(&calls, 1); }

void nw_count_thread(int moved, double seconds) {
    add(&threads_moved, moved != 0);
    add(&thread_nanoseconds, (uint64_t)(seconds * 1e9));
}

void nw_count_pages(uint64_t moved, double seconds) {
    add(&pages_moved, moved);
    add(&page_nanoseconds, (uint64_t)(seconds * 1e9));
}

void nw_get_statistics(nw_statistics *statistics) {
    if (!statistics)
        return;
    statistics->pages_moved = atomic_load(&pages_moved);
    statistics->page_seconds = (double)atomic_load(&page_nanoseconds) * 1e-9;
    statistics->threads_moved = atomic_load(&threads_moved);
    statistics->thread_seconds = (double)atomic_load(&thread_nanoseconds) * 1e-9;
    statistics->calls = atomic_load(&calls);
}

/* With only one node, it suffices to know whether a page is in memory. */
static int resident_nodes(char *start, size_t count, int *nodes) {
    const nw_machine *machine = nw_machine_now();
    unsigned char resident[BATCH];
    int error = nw_kernel_resident(start, count * machine->page, resident);
    for (size_t i = 0; i < count && !error; i++)
        nodes[i] = resident[i] & 1 ? machine->nodes[0] : -1;
    return error;
}

/* Asks for the nodes of up to BATCH pages. */
static int ask(char *start, size_t count, int *nodes) {
    const nw_machine *machine = nw_machine_now();
    void *pages[BATCH];
    for (size_t i = 0; i < count; i++)
        pages[i] = start + i * machine->page;
    int error = nw_kernel_move(count, pages, NULL, nodes);
    if (error && machine->online_nodes == 1)
        return resident_nodes(start, count, nodes);
    for (size_t i = 0; i < count; i++)
        nodes[i] = error || nodes[i] < 0 ? -1 : nodes[i];
    return error;
}

size_t nw_count_elsewhere(char *start, size_t pages, int node) {
    size_t page = nw_machine_now()->page, count = 0;
    int nodes[BATCH];
    for (size_t first = 0; first < pages; first += BATCH) {
        size_t asked = pages - first < BATCH ? pages - first : BATCH;
        ask(start + first * page, asked, nodes);
        for (size_t i = 0; i < asked; i++)
            count += nodes[i] >= 0 && nodes[i] != node;
    }
    return count;
}

int nw_unanswered(int error) {
    return nw_fail(NW_NOT_DONE, "the kernel does not say where pages are: %s; in a container, allow move_pages",
                   strerror(-error));
}

int nw_page_nodes(const void *pointer, int *nodes, size_t size) {
    nw_array *array = nw_array_of(pointer);
    size_t page = nw_machine_now()->page;
    int failed = 0;
    if (!array)
        return NW_NO_ARRAY;
    if (!nodes && size > 0)
        return nw_fail(NW_INVALID, "no room for the nodes of pages");
    if (size > array->shape.pages)
        size = array->shape.pages;
    for (size_t first = 0; first < size; first += BATCH) {
        size_t count = size - first < BATCH ? size - first : BATCH;
        int error = ask(nw_array_base(array, page) + first * page, count, nodes + first);
        failed = failed ? failed : error;
    }
    return failed ? nw_unanswered(failed) : NW_OK;
}

int nw_count_on(char *start, size_t pages, size_t *counts, int size, size_t *untouched) {
    size_t page = nw_machine_now()->page;
    int nodes[BATCH], failed = 0;
    for (size_t first = 0; first < pages; first += BATCH) {
        size_t count = pages - first < BATCH ? pages - first : BATCH;
        int error = ask(start + first * page, count, nodes);
        failed = failed ? failed : error;
        for (size_t i = 0; i < count; i++) {
            *untouched += nodes[i] < 0;
            if (nodes[i] >= 0 && nodes[i] < size)
                counts[nodes[i]]++;
        }
    }
    return failed;
}

int nw_histogram(const void *pointer, size_t *pages, int size, size_t *untouched) {
    nw_array *array = nw_array_of(pointer);
    size_t unseen = 0;
    if (!array)
        return NW_NO_ARRAY;
    if (size < 0 || (!pages && size > 0))
        return nw_fail(NW_INVALID, "no room for %d nodes", size);
    for (int node = 0; node < size; node++)
        pages[node] = 0;
    int failed = nw_count_on(nw_array_base(array, nw_machine_now()->page), array->shape.pages, pages, size, &unseen);
    if (untouched)
        *untouched = unseen;
    return failed ? nw_unanswered(failed) : NW_OK;
}
