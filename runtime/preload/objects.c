/* The objects that are placed and alive, and on which nodes their pages are. */
#include "preload.h"

#include "../scratch.h"

#define PROBES 16u
#define SAMPLE 262144u /* pages of one object asked about, evenly spread */

_Static_assert(sizeof(nw_pages_asked) <= NW_SCRATCH_BYTES, "pages asked about have room");

/* Slots come in stretches, each twice as long as the one before. */
typedef struct stretch {
    uint32_t first, slots;
} stretch;

static stretch next_of(stretch before) { return (stretch){before.first + before.slots, before.slots * 2}; }

static uint32_t slot_of(stretch in, uint64_t page, uint32_t probe) {
    return in.first + (uint32_t)((page * 0x9e3779b97f4a7c15ull >> 32) + probe) % in.slots;
}

static int is_there(stretch which) {
    return which.first + which.slots <= __atomic_load_n(&nw_report->live, __ATOMIC_ACQUIRE);
}

static void add(uint64_t *counter, uint64_t by) { __atomic_fetch_add(counter, by, __ATOMIC_RELAXED); }

void nw_objects_want(const nw_object *object, uint32_t node, uint64_t pages) {
    add(&nw_tally_of(nw_report, object->rule)->by_node[node], pages);
}

static void tally(const nw_object *object) {
    add(&nw_tally_of(nw_report, object->rule)->objects, 1);
    add(&nw_tally_of(nw_report, object->rule)->pages, object->pages);
}

static void trace(const nw_object *object) {
    nw_kernel_trace("object %u %lx %lx %u\n", object->rule, object->page, object->pages, object->thread);
}

static int track(const nw_object *object, stretch in) {
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        nw_live *live = nw_live_at(nw_report, slot_of(in, object->page, probe));
        uint64_t free = __atomic_load_n(&live->page, __ATOMIC_RELAXED);
        if (free > 1 || !__atomic_compare_exchange_n(&live->page, &free, 2, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        live->pages = object->pages;
        live->rule = object->rule;
        live->thread = object->thread;
        live->cuts = object->cuts;
        live->whole = object->whole;
        __atomic_store_n(&live->page, object->page, __ATOMIC_RELEASE);
        return 1;
    }
    return 0;
}

void nw_objects_add(const nw_object *object) {
    trace(object);
    tally(object);
    for (stretch in = {0, NW_LIVE_FIRST}; in.first < NW_LIVE; in = next_of(in)) {
        if (!is_there(in) && !nw_report_grow(in.first, in.first + in.slots))
            break;
        if (track(object, in))
            return;
    }
    __atomic_fetch_add(&nw_report->untracked, 1, __ATOMIC_RELAXED);
}

/* A prime above any number of nodes. Otherwise the sampled pages of an interleaved object could all be on one node. */
static uint64_t stride_of(uint64_t pages) {
    static const uint64_t primes[] = {131, 257, 521, 1031, 2053, 4099, 8209, 16411, 32771, 65537};
    uint32_t i = 0;
    if (pages <= SAMPLE)
        return 1;
    while (i + 1 < sizeof primes / sizeof *primes && primes[i] < pages / SAMPLE)
        i++;
    return primes[i];
}

static void count_asked(const nw_object *object, const nw_pages_asked *asked, uint64_t stride) {
    nw_tally *sum = nw_tally_of(nw_report, object->rule);
    for (uint32_t i = 0; i < asked->count; i++) {
        if (asked->node[i] >= nw_report->nodes)
            continue;
        uint32_t wanted = nw_wanted(object, asked->page[i]);
        add(&sum->touched, stride);
        add(&sum->by_node[nw_report->nodes + asked->node[i]], stride);
        add(&sum->right, wanted == asked->node[i] || wanted == NW_NODE_NONE ? stride : 0);
    }
}

/* Asks the kernel where the pages are and adds it up, each asked page standing for `stride`. */
static void read_back(const nw_object *object) {
    uint64_t stride = stride_of(object->pages);
    nw_pages_asked *asked = nw_scratch_take();
    for (uint64_t at = 0; asked && at < object->pages;) {
        for (asked->count = 0; asked->count < NW_ASKED && at < object->pages; at += stride)
            asked->page[asked->count++] = object->page + at;
        if (nw_kernel_query(asked) != 0)
            break;
        count_asked(object, asked, stride);
    }
    nw_scratch_give(asked);
}

static nw_object object_in(const nw_live *live) {
    return (nw_object){
        .page = live->page, .pages = live->pages, .rule = live->rule, .thread = live->thread, .whole = live->whole};
}

static nw_live *find(uint64_t page, stretch in) {
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        nw_live *live = nw_live_at(nw_report, slot_of(in, page, probe));
        uint64_t there = __atomic_load_n(&live->page, __ATOMIC_ACQUIRE);
        if (there == page)
            return live;
        if (there == 0)
            return NULL;
    }
    return NULL;
}

static nw_live *live_at(const void *address) {
    uint64_t page = (uint64_t)(uintptr_t)address >> nw_page_shift;
    nw_live *live = NULL;
    for (stretch in = {0, NW_LIVE_FIRST}; !live && !nw_report_is_inherited() && is_there(in); in = next_of(in))
        live = find(page, in);
    return live;
}

static void forget(nw_live *live) {
    nw_place_undone(live->cuts);
    __atomic_store_n(&live->page, 1, __ATOMIC_RELEASE);
}

void nw_objects_remove(void *address) {
    nw_live *live = live_at(address);
    if (!live)
        return;
    nw_object object = object_in(live);
    read_back(&object);
    forget(live);
}

int nw_objects_take(const void *address, nw_object *object) {
    nw_live *live = live_at(address);
    if (live) {
        *object = object_in(live);
        forget(live);
    }
    return live != NULL;
}

void nw_objects_read_back(void) {
    for (uint32_t slot = 0; slot < __atomic_load_n(&nw_report->live, __ATOMIC_ACQUIRE); slot++) {
        nw_object object = object_in(nw_live_at(nw_report, slot));
        if (object.page > 2)
            read_back(&object);
    }
    nw_report->state = NW_READ_BACK;
}
