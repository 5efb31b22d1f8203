/* Interfaces inside libnodewise-rt.so: what instrumented code calls, what the hot path (counters.c, range.c)
 * needs from the rest of the runtime, and what it provides to the rest. layout.h has the structures that the
 * recorder reads.
 *
 * Built with clang: the calls from instrumented code use preserve_most.
 * Nothing here may allocate through malloc, touch errno, or run a cancellation point.
 */
#ifndef NODEWISE_RUNTIME_H
#define NODEWISE_RUNTIME_H

#include "layout.h"

#include <stdbool.h>
#include <stddef.h>

#define NW_EXPORT __attribute__((visibility("default")))
#define NW_COLD __attribute__((cold, noinline))
#define nw_likely(c) __builtin_expect(!!(c), 1)
#define nw_unlikely(c) __builtin_expect(!!(c), 0)

/* The private part of a thread. Its address, and the addresses of window and counters, stay the same
 * for the thread's whole life: instrumented code keeps them in registers. After fork, the child maps
 * its own new file over header and window (MAP_FIXED) and clears the part marked "counters.c".
 * The structure remains usable until the thread is gone, TLS destructors included. */
typedef struct nw_thread {
    /* Read by instrumented code: the first two fields keep their offsets (0 and 8). */
    nw_slot *window;  /* NW_WINDOW_SLOTS slots in the thread file; every key NW_KEY_NONE at first */
    uint64_t region;  /* current region << NW_REGION_SHIFT */

    /* Set up by nw_thread_attach, grown by nw_counters_grow and nw_touches_grow. */
    nw_thread_header *header; /* header->counters and ->touches are the entries in use */
    uintptr_t counters[NW_SEGMENTS]; /* of each segment: its address minus the bytes of all entries before it */
    uintptr_t touches[NW_SEGMENTS];
    uint64_t counters_room; /* entries for which memory is mapped */
    uint64_t touches_room;
    uint64_t first;    /* this thread's first counter; earlier ones belong to finished threads */
    int64_t until_slice;      /* accesses until nw_slice_reached; INT64_MAX: slices are not cut by accesses */

    /* counters.c's own; zero at first. Anonymous private memory, released by nw_thread_release. */
    uint64_t *index;      /* open addressing: hash tag << 32 | counter number + 1 */
    uint64_t index_slots; /* a power of two, or 0 */
    uint32_t busy;        /* in the slow path; accesses of signal handlers are dropped meanwhile */
    uint32_t unused;
    nw_slot sink;         /* receives accesses that cannot be counted */
    nw_counter sink_counter;
    struct nw_recent *recent; /* see recent.h; NULL at first, and if out of memory */

    void *observer; /* the thread's nw_observer, for the rest of the runtime */
} nw_thread;

/* NULL until the thread's first access, region or allocation event. */
extern NW_EXPORT _Thread_local nw_thread *nw_self __attribute__((tls_model("initial-exec")));

/* One bit per virtual page below 2^47, set when any thread of the process touches the page. A leaf is
 * allocated when one of its pages is first touched. NULL when not recording. */
#define NW_LEAF_SHIFT 18 /* pages of a leaf: 1 GiB */
typedef struct nw_leaf {
    uint64_t bits[1u << (NW_LEAF_SHIFT - 6)];
    struct nw_leaf *next; /* in the list of all leaves */
} nw_leaf;
extern nw_leaf **nw_touched;

/* A code region: one static descriptor per outlined OpenMP function, in writable data. */
typedef struct nw_region {
    const char *function; /* the linkage name of the function it was outlined from */
    const char *file;     /* as the compiler recorded it; "" without line tables */
    uint32_t line;
    uint32_t id;          /* 0 until registered, then 1 .. NW_REGIONS - 1 */
    uint32_t schedule;    /* how it distributes iterations: a number of nodewise_profile::Schedule, 0 if unknown */
    uint32_t unused;
} nw_region;

/* ---- Provided by threads, files and events ------------------------------------------------- */

/* Sets nw_self and returns it. Never NULL: when not recording, or switched off, it is a private sink, with
 * a window and memory for counters that are not read. Safe in signal handlers and before main.
 * Exported for instrumented code. */
NW_EXPORT nw_thread *nw_thread_attach(void);

/* Adds a segment; false if there is no room for another. */
bool nw_counters_grow(nw_thread *thread);
bool nw_touches_grow(nw_thread *thread);

/* Stops recording in the whole process, writes one line, marks the profile truncated. Idempotent. */
void nw_switch_off(const char *why);

/* The thread has made `until_slice` accesses; resets until_slice. May wait for the recorder. */
void nw_slice_reached(nw_thread *thread);

/* Gives the region an id if it has none (any thread, any time) and logs it. Returns the id,
 * 0 (serial) when there are too many. */
uint32_t nw_region_register(nw_region *region);

/* Called when the thread has left an outlined function. Cuts the slice if slices are cut by region. */
void nw_region_left(nw_thread *thread, const nw_region *region);

/* ---- Provided by counters.c for threads and files ------------------------------------------ */

/* `*nw_original` is 0 in a copy of the counting process that was made by clone(2) itself, so that no atfork handler of
 * the C library ran. Such a copy still writes to its parent's counters; `nw_copied` gives it counters of its own. */
extern const uint32_t *nw_original;
extern void (*nw_copied)(void);

/* Frees the private index; and, after fork in the child, forgets everything counted so far. The
 * window's slots must be empty (NW_KEY_NONE) afterwards: nw_window_clear does that. */
void nw_thread_release(nw_thread *thread);
/* As nw_thread_release, but for a new thread that reuses the structure: the index's memory is kept if it is small. */
void nw_thread_renew(nw_thread *thread);
void nw_window_clear(nw_slot *window);

/* Adds the pending counts of the window to the counters, and empties the window. */
void nw_window_settle(nw_thread *thread);

/* Allocates the root of nw_touched; false if out of memory. */
bool nw_touched_prepare(void);
/* Clears nw_touched: no page counts as touched any more. */
void nw_touched_forget(void);

static inline uint32_t nw_segment_of(uint64_t entry) {
    return (31u - NW_FIRST_SHIFT + 1u) - (uint32_t)__builtin_clz((uint32_t)entry | (NW_FIRST_ENTRIES - 1));
}

static inline nw_counter *nw_counter_at(const nw_thread *thread, uint64_t number) {
    return (nw_counter *)thread->counters[nw_segment_of(number)] + number;
}

/* ---- Called by instrumented code ----------------------------------------------------------- */

/* The rules of counting. An access is an operand of one memory instruction. It counts once, on the page of its
 * first byte, even if it ends on the next page; it touches the lines from its first to its last byte on that
 * page. Calls of memcpy, memmove and memset count as accesses to 8-byte words, the last one possibly shorter.
 * A masked vector access counts on the page of its first active lane, a gather or scatter once per active
 * lane. An atomic read-modify-write is a read and a write. */

/* Accesses at fixed distances from a common address, ascending by offset. They are dense: between the first and
 * the last byte no cache line is skipped. */
typedef struct nw_access {
    int32_t offset; /* >= 0, from the group's address */
    uint16_t size;  /* bytes, at least 1 */
    uint8_t reads;
    uint8_t writes;
} nw_access;

typedef struct nw_group {
    uint32_t accesses; /* entries below */
    uint32_t span;     /* offset of the first byte after the last access */
    uint32_t reads;    /* sums over the entries */
    uint32_t writes;
    uint32_t last;     /* offset of the last access's first byte */
    uint32_t unused;
    nw_access access[];
} nw_group;

#define NW_HOT __attribute__((preserve_most, visibility("default")))

/* Puts the page into the window, and returns the slot to count in. The fast path is inlined: see compiler/. */
NW_HOT nw_slot *nw_miss(uint64_t key);

/* The calling thread, attached if necessary; called at the start of a function with inlined lookups. */
NW_HOT nw_thread *nw_thread_get(void);

/* `count` times the group, at address, address + stride, ... */
NW_HOT void nw_range(uint64_t address, int64_t stride, uint64_t count, const nw_group *group);

/* A loop nest. The outer loop has `count` iterations, `stride` bytes apart; in each, the inner loop accesses the
 * group `repeats` times, `across` bytes apart. */
NW_HOT void nw_grid(uint64_t address, int64_t stride, uint64_t count, int64_t across, uint64_t repeats,
                    const nw_group *group);

/* `count` lanes at addresses[i], active where bit i of mask is set. */
NW_HOT void nw_lanes(const uint64_t *addresses, uint64_t mask, uint32_t count, const nw_group *group);

/* Enters a region; returns the previous one, to be passed to nw_region_leave. */
NW_HOT uint64_t nw_region_enter(nw_region *region);
NW_HOT void nw_region_leave(nw_region *region, uint64_t previous);
/* Reports that the calling thread has taken a number from a counter that threads may share; does nothing if `taken` is
 * 0. `id` identifies the instruction, and is 0 until the instruction first runs. */
NW_HOT void nw_ticket(uint32_t *id, uint64_t counter, uint32_t taken);

/* These 16 bytes stand before the first byte of every instrumented function (its symbol). Coverage is
 * the share of samples inside such functions and inside this library's own nw_miss .. nw_lanes. */
#define NW_FUNCTION_MARK "nodewise:counted"

/* The column that line tables give for instructions that the pass inserted; no source line is that long. It
 * separates samples of a running program into those of counting and those of the program itself. */
#define NW_COUNTING_COLUMN 65535

#endif
