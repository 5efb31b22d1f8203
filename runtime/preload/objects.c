/* The objects placed and alive, and how their placement turned out. */
#include "preload.h"

#define PROBES 64u
#define SAMPLE 262144u /* pages of one object asked about, evenly spread */
#define BATCH 512u

static uint64_t slot_of(uint64_t page, uint32_t probe) {
    return ((page * 0x9e3779b97f4a7c15ull >> 40) + probe) % NW_LIVE;
}

static void add(uint64_t *counter, uint64_t by) { __atomic_fetch_add(counter, by, __ATOMIC_RELAXED); }

void nw_objects_want(const nw_object *object, uint32_t node, uint64_t pages) {
    add(&nw_report->tallies[object->rule].wanted[node], pages);
}

static void tally(const nw_object *object) {
    add(&nw_report->tallies[object->rule].objects, 1);
    add(&nw_report->tallies[object->rule].pages, object->pages);
}

static void trace(const nw_object *object) {
    nw_kernel_trace("object %u %lx %lx %u\n", object->rule, object->page, object->pages, object->thread);
}

void nw_objects_add(const nw_object *object) {
    trace(object);
    tally(object);
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        nw_live *live = &nw_report->live[slot_of(object->page, probe)];
        uint64_t free = __atomic_load_n(&live->page, __ATOMIC_RELAXED);
        if (free > 1 || !__atomic_compare_exchange_n(&live->page, &free, 2, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        live->pages = object->pages;
        live->rule = object->rule;
        live->thread = object->thread;
        live->cuts = object->cuts;
        __atomic_store_n(&live->page, object->page, __ATOMIC_RELEASE);
        return;
    }
    __atomic_fetch_add(&nw_report->untracked, 1, __ATOMIC_RELAXED);
}

/* A prime that no number of nodes divides, or interleaving would fall into step with it. */
static uint64_t stride_of(uint64_t pages) {
    static const uint64_t primes[] = {131, 257, 521, 1031, 2053, 4099, 8209, 16411, 32771, 65537};
    uint32_t i = 0;
    if (pages <= SAMPLE)
        return 1;
    while (i + 1 < sizeof primes / sizeof *primes && primes[i] < pages / SAMPLE)
        i++;
    return primes[i];
}

/* Asks the kernel where the pages are and adds it up, each asked page standing for `stride`. */
static void read_back(const nw_object *object) {
    uint64_t pages[BATCH], stride = stride_of(object->pages);
    uint32_t nodes[BATCH];
    nw_tally *sum = &nw_report->tallies[object->rule];
    for (uint64_t at = 0; at < object->pages;) {
        uint32_t count = 0;
        for (; count < BATCH && at < object->pages; at += stride)
            pages[count++] = object->page + at;
        if (nw_kernel_query(pages, count, nodes) != 0)
            return;
        for (uint32_t i = 0; i < count; i++) {
            if (nodes[i] >= NW_NODES)
                continue;
            uint32_t wanted = nw_wanted(object, pages[i]);
            add(&sum->touched, stride);
            add(&sum->got[nodes[i]], stride);
            add(&sum->right, wanted == nodes[i] || wanted == NW_NODE_NONE ? stride : 0);
        }
    }
}

static nw_object object_in(const nw_live *live) {
    return (nw_object){.page = live->page, .pages = live->pages, .rule = live->rule, .thread = live->thread};
}

void nw_objects_remove(void *address) {
    uint64_t page = (uint64_t)(uintptr_t)address >> nw_page_shift;
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        nw_live *live = &nw_report->live[slot_of(page, probe)];
        uint64_t there = __atomic_load_n(&live->page, __ATOMIC_ACQUIRE);
        if (there == 0)
            return;
        if (there != page)
            continue;
        nw_object object = object_in(live);
        read_back(&object);
        nw_place_undone(live->cuts);
        __atomic_store_n(&live->page, 1, __ATOMIC_RELEASE);
        return;
    }
}

void nw_objects_read_back(void) {
    for (uint32_t slot = 0; slot < NW_LIVE; slot++) {
        nw_live *live = &nw_report->live[slot];
        nw_object object = object_in(live);
        if (object.page > 2)
            read_back(&object);
    }
    nw_report->state = NW_READ_BACK;
}
