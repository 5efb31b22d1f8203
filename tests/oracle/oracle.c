/* The runtime of programs built with NODEWISE_SCHEME=check: the counters under test are the real
 * ones (runtime/counters.c, range.c); beside them every access is counted once more, one by one, by
 * the plain code below. At the program's end the two must agree: thread by thread, page by page,
 * region by region, reads, writes, and the lines touched.
 *
 * Says nothing when they agree, unless ORACLE_VERBOSE is set; otherwise a few differing pages and
 * exit status 86. */
#define _GNU_SOURCE
#include "counters.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNTERS (1ull << 22)
#define THREADS 256
#define DISAGREEMENT 86

/* One page of one thread in one region, counted one by one. */
typedef struct {
    uint64_t key, reads, writes, lines;
    bool seen; /* when comparing */
} entry;

typedef struct {
    nw_thread thread; /* first: the counters under test */
    uint32_t ordinal;
    uint64_t slots, used;
    entry *table; /* open addressing */
} observed;

_Thread_local nw_thread *nw_self;
static observed *threads[THREADS];
static uint32_t thread_count, region_count, disagreements;

static void *memory(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        abort();
    return p;
}

/* ---- what counters.c needs ---- */

nw_thread *nw_thread_attach(void) {
    observed *o = memory(sizeof *o);
    uint32_t ordinal = __atomic_fetch_add(&thread_count, 1, __ATOMIC_RELAXED);
    if (ordinal >= THREADS)
        abort();
    char *file = memory(NW_COUNTERS_OFFSET + COUNTERS * sizeof(nw_counter));
    o->thread = (nw_thread){
        .header = (nw_thread_header *)file,
        .window = (nw_slot *)(file + NW_HEADER_BYTES),
        .counters_room = COUNTERS,
        .touches_room = COUNTERS,
        .until_slice = INT64_MAX,
    };
    uintptr_t touches = (uintptr_t)memory(COUNTERS * sizeof(nw_touch));
    for (uint32_t segment = 0; segment < NW_SEGMENTS; segment++) { /* all in one piece */
        o->thread.counters[segment] = (uintptr_t)file + NW_COUNTERS_OFFSET;
        o->thread.touches[segment] = touches;
    }
    nw_window_clear(o->thread.window);
    o->slots = 1024;
    o->table = memory(o->slots * sizeof(entry));
    o->ordinal = ordinal;
    threads[ordinal] = o;
    return nw_self = &o->thread;
}

bool nw_counters_grow(nw_thread *thread) {
    (void)thread;
    return false;
}

bool nw_touches_grow(nw_thread *thread) {
    (void)thread;
    return false;
}

void nw_switch_off(const char *why) {
    fprintf(stderr, "oracle: %s\n", why);
    abort();
}

void nw_slice_reached(nw_thread *thread) { thread->until_slice = INT64_MAX; }

uint32_t nw_region_register(nw_region *region) {
    uint32_t id = __atomic_add_fetch(&region_count, 1, __ATOMIC_RELAXED), none = 0;
    bool first = __atomic_compare_exchange_n(&region->id, &none, id, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return first ? id : none;
}

void nw_region_left(nw_thread *thread, const nw_region *region) { (void)thread, (void)region; }

void nw_ticket(uint32_t *id, uint64_t counter, uint32_t taken) { (void)id, (void)counter, (void)taken; }

/* ---- counting one by one ---- */

static entry *find(observed *o, uint64_t key) {
    uint64_t i = key * 0x9e3779b97f4a7c15ull >> 20 & (o->slots - 1);
    while (o->table[i].reads + o->table[i].writes > 0 && o->table[i].key != key)
        i = (i + 1) & (o->slots - 1);
    return &o->table[i];
}

static void grow(observed *o) {
    entry *old = o->table;
    uint64_t slots = o->slots;
    o->slots *= 2;
    o->table = memory(o->slots * sizeof(entry));
    for (uint64_t i = 0; i < slots; i++)
        if (old[i].reads + old[i].writes > 0)
            *find(o, old[i].key) = old[i];
    munmap(old, slots * sizeof(entry));
}

static void one(observed *o, uint64_t address, const nw_access *access) {
    if (o->used * 2 > o->slots)
        grow(o);
    uint64_t page = address >> NW_PAGE_SHIFT;
    entry *e = find(o, page | o->thread.region);
    o->used += e->reads + e->writes == 0;
    e->key = page | o->thread.region;
    e->reads += access->reads;
    e->writes += access->writes;
    for (uint64_t a = address; a < address + access->size; a++)
        if (a >> NW_PAGE_SHIFT == page)
            e->lines |= 1ull << (a >> NW_LINE_SHIFT & 63);
}

static observed *here(void) { return (observed *)nw_thread_here(); }

NW_HOT void nw_check_range(uint64_t address, int64_t stride, uint64_t count, const nw_group *group);
void nw_check_range(uint64_t address, int64_t stride, uint64_t count, const nw_group *group) {
    observed *o = here();
    for (uint64_t i = 0; i < count; i++)
        one(o, address + i * (uint64_t)stride, &group->access[0]);
}

NW_HOT void nw_check_lanes(const uint64_t *addresses, uint64_t mask, uint32_t lanes, const nw_group *group);
void nw_check_lanes(const uint64_t *addresses, uint64_t mask, uint32_t lanes, const nw_group *group) {
    observed *o = here();
    for (uint32_t i = 0; i < lanes; i++)
        if (mask >> i & 1)
            one(o, addresses[i], &group->access[0]);
}

/* ---- comparing ---- */

static void disagree(const observed *o, const char *what, uint64_t key, uint64_t wanted, uint64_t got) {
    if (disagreements++ < 10)
        fprintf(stderr, "oracle: thread %u page %#lx region %lu: %s %lu one by one, %lu counted\n", o->ordinal,
                (unsigned long)(key & NW_KEY_PAGE), (unsigned long)(key >> NW_REGION_SHIFT), what,
                (unsigned long)wanted, (unsigned long)got);
}

/* The lines are comparable as long as the page has not left the window or changed the region. */
static bool lines_of(const observed *o, const nw_counter *counter, uint64_t *lines) {
    const nw_slot *slot = nw_slot_of(o->thread.window, counter->key & NW_KEY_PAGE);
    *lines = slot->bitmap;
    return counter->lines == 0 && slot->key == counter->key && slot->known == 0;
}

static uint64_t compare(observed *o) {
    uint64_t accesses = 0, lines;
    for (uint64_t i = 0; i < o->thread.header->counters; i++) {
        const nw_counter *counter = nw_counter_at(&o->thread, i);
        entry *e = find(o, counter->key);
        e->seen = true;
        if (e->reads != counter->reads)
            disagree(o, "reads", counter->key, e->reads, counter->reads);
        if (e->writes != counter->writes)
            disagree(o, "writes", counter->key, e->writes, counter->writes);
        if (lines_of(o, counter, &lines) && lines != e->lines)
            disagree(o, "lines", counter->key, e->lines, lines);
    }
    for (uint64_t i = 0; i < o->slots; i++) {
        const entry *e = &o->table[i];
        accesses += e->reads + e->writes;
        if (e->reads + e->writes > 0 && !e->seen)
            disagree(o, "accesses", e->key, e->reads + e->writes, 0);
    }
    if (o->thread.header->dropped)
        disagree(o, "dropped", 0, 0, o->thread.header->dropped);
    return accesses;
}

static bool agree(void) {
    uint64_t accesses = 0;
    for (uint32_t i = 0; i < thread_count; i++)
        if (threads[i])
            accesses += compare(threads[i]);
    if (getenv("ORACLE_VERBOSE"))
        fprintf(stderr, "oracle: %u threads, %u regions, %lu accesses, %u disagreements\n", thread_count, region_count,
                (unsigned long)accesses, disagreements);
    return disagreements == 0;
}

__attribute__((visibility("default"), noreturn)) void _exit(int status) {
    syscall(SYS_exit_group, agree() ? status : DISAGREEMENT);
    __builtin_unreachable();
}

__attribute__((visibility("default"), noreturn)) void _Exit(int status) { _exit(status); }

__attribute__((destructor)) static void end(void) {
    if (!agree()) {
        fflush(NULL);
        syscall(SYS_exit_group, DISAGREEMENT);
    }
}
