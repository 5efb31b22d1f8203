/* The layout of the raw files, which the observed process and its recorder share.
 *
 * The process creates, under $NODEWISE_RAW, one folder per process image, `<pid>-<sequence>` (fork
 * and exec both start a new one):
 *   thread-<number>    one per thread at a time, mapped MAP_SHARED: header, window, then segments of
 *                      counters and of first touches. A new thread continues the file of a finished
 *                      one; the event log says at which entry each thread begins
 *   events             append-only text lines, one write(2) each: modules, objects, threads, regions
 *   pool               small allocations by call site, and how often large ones were repeated; MAP_SHARED
 * Beside these folders is `control`, a page that all processes map.
 * Nothing has to be flushed: SIGKILL and _exit lose at most what was in registers.
 * The Rust mirror is crates/observe/src/layout.rs; a property test holds the two together.
 */
#ifndef NODEWISE_LAYOUT_H
#define NODEWISE_LAYOUT_H

#include <stdint.h>

#define NW_LAYOUT_VERSION 4u
/* Version of what instrumented code and this library expect of each other: the functions it calls, the fields and
 * sizes it uses inline. Also in compiler/pass.cpp and in nodewise_loader, which say what happens when they differ. */
#define NW_INTERFACE 1
#define NW_MAGIC 0x3165736977646f6eull /* "nodewis1" */

#define NW_PAGE_SHIFT 12
#define NW_LINE_SHIFT 6

/* A key is a virtual page number with the region in the bits above it, so that each region has its own counters. */
#define NW_REGION_SHIFT 45
#define NW_REGIONS (1u << 19)
#define NW_KEY_NONE UINT64_MAX

/* A counter, appended when a thread first touches a page in a region. It is monotonic and never moves, so
 * readers may take a snapshot at any time.
 * Counters lie in segments, each as large as all before it, which are mapped when they are needed: no address
 * space is reserved in advance. */
typedef struct nw_counter {
    uint64_t key;
    uint64_t reads;
    uint64_t writes;
    uint64_t lines; /* lines counted when the page left the window; see nw_slot */
} nw_counter;

/* The window of recent pages: a table direct-mapped by the folded page number. It finds a page's
 * counter without a search and, with recent.h, is a model of a private cache: the lines touched
 * since the page entered are added to the counter when the page leaves. */
#define NW_WINDOW_SLOTS 1024u /* 4 MiB of pages */
typedef struct nw_slot {
    uint64_t key;       /* NW_KEY_NONE when empty */
    nw_counter *counter; /* meaningful in the process only */
    uint64_t bitmap;    /* bit i: line i of the page is in the cache */
    uint64_t known;     /* those of them that are counted already */
} nw_slot;

/* First touch of a page by any thread of the process, appended by the thread that set the page's bit first. */
typedef struct nw_touch {
    uint64_t key;  /* page and region, as in a counter */
    uint64_t code; /* address in the code that counts the access, to be looked up in the line table */
} nw_touch;

/* Segment 0 holds entries 0 .. 255, segment s > 0 those from 2^(7+s) to 2^(8+s) - 1. */
#define NW_FIRST_SHIFT 8u
#define NW_FIRST_ENTRIES (1u << NW_FIRST_SHIFT)
#define NW_SEGMENTS 25u
#define NW_POOLED 64u
typedef struct nw_segment {
    uint64_t offset;  /* in the file; 0: not in the file but in private memory of the process */
    uint64_t address; /* in the process: slots point there */
} nw_segment;

/* Small allocations at a call site. */
typedef struct nw_pool_entry {
    uint64_t caller; /* 0: free */
    uint64_t bytes; /* allocated in all */
    uint64_t count;
} nw_pool_entry;

/* First page of a thread file. Fields after `version` are written once, or only grow. */
typedef struct nw_thread_header {
    uint64_t magic;
    uint32_t version;
    uint32_t window_slots;
    uint64_t counters; /* entries in use; stored with release order after the entry is complete */
    uint64_t touches;  /* likewise */
    uint64_t dropped;  /* accesses not counted: made in a signal handler within the slow path, or switched off */
    nw_segment counter_segment[NW_SEGMENTS];
    nw_segment touch_segment[NW_SEGMENTS];
    nw_pool_entry pooled[NW_POOLED]; /* by return address, with open addressing; by this thread and those before it */
} nw_thread_header;

#define NW_HEADER_BYTES 4096u
#define NW_COUNTERS_OFFSET (NW_HEADER_BYTES + NW_WINDOW_SLOTS * 32u)

/* $NODEWISE_RAW/control, mapped by the recorder and all processes: how processes cut slices, and what the
 * recording lacks. A process maps it at its start and can therefore report that its recording stopped even if
 * it can no longer open files, because it changed its user or root or used up its descriptors. A forked child
 * has its parent's mapping. */
#define NW_WHY_BYTES 248u
typedef struct nw_control {
    uint64_t magic;
    uint32_t version;
    uint32_t slicing;          /* enum nw_slicing */
    uint64_t slice_accesses;   /* for NW_SLICE_ACCESSES */
    uint32_t slices_requested; /* futex word: incremented by a process that has reached the end of a slice */
    uint32_t slices_taken;     /* futex word: set by the recorder once its snapshot is complete */
    uint32_t recorder_alive;   /* 0: the recorder has ended, do not wait for it */
    uint32_t recorder_pid;     /* to notice a recorder that was killed */
    uint32_t stopped;          /* process images that stopped recording early, or never began */
    uint32_t why_taken;        /* 1: one of them writes, or has written, the reason */
    char why[NW_WHY_BYTES];    /* the reason of the first of them, terminated by a zero */
    uint64_t logged; /* bytes of complete lines in all event logs: if a reader finds fewer, some were lost */
} nw_control;

/* `pool`, one per process image: a hash table of small allocations by return address, with open addressing. The
 * last slot collects callers that found no other slot. Threads with a file count in its header as long as there is room.
 * After the table follow NW_REPEATS 64-bit numbers: how often an
 * object was allocated again at its addresses; the event log says which number belongs to which object. */
#define NW_REPEATS 4096u
#define NW_POOL_SLOTS 4096u

enum nw_slicing { NW_SLICE_TIME = 0, NW_SLICE_ACCESSES = 1, NW_SLICE_REGION = 2 };

#endif
