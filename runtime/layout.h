/* What the observed process and its recorder share: the layout of the raw files.
 *
 * The process creates, under $NODEWISE_RAW, one folder per process image, `<pid>-<sequence>` (fork
 * and exec both start a new one):
 *   thread-<number>    one per thread at a time, mapped MAP_SHARED: header, window, then segments of
 *                      counters and of first touches. The file of a finished thread is handed on;
 *                      the log says from which entry on it is whose
 *   events             append-only text lines, one write(2) each: modules, objects, threads, regions
 *   pool               small allocations by call site, and how often large ones came back; MAP_SHARED
 * Beside these folders lies `control`, one page that all of them map.
 * Nothing has to be flushed: SIGKILL and _exit lose at most what was in registers.
 * The Rust mirror is crates/observe/src/layout.rs; a property test holds the two together.
 */
#ifndef NODEWISE_LAYOUT_H
#define NODEWISE_LAYOUT_H

#include <stdint.h>

#define NW_LAYOUT_VERSION 3u
#define NW_MAGIC 0x3165736977646f6eull /* "nodewis1" */

#define NW_PAGE_SHIFT 12
#define NW_LINE_SHIFT 6

/* A key is a virtual page number with the region above it: counters of two regions are apart. */
#define NW_REGION_SHIFT 45
#define NW_REGIONS (1u << 19)
#define NW_KEY_NONE UINT64_MAX

/* A counter, monotonic, appended when a thread first touches a page in a region; never moves.
 * Counters lie in segments, each as large as all before it, mapped when they are needed: no address
 * space is reserved for what may come.
 * Readers may take it at any time: every field only grows. */
typedef struct nw_counter {
    uint64_t key;
    uint64_t reads;
    uint64_t writes;
    uint64_t lines; /* lines counted when the page left the window; see nw_slot */
} nw_counter;

/* The window of recent pages, direct mapped by the page number, folded. It finds a page's
 * counter without a search and, with recent.h, is a model of a private cache: the lines touched
 * since the page entered are added to the counter when it leaves. */
#define NW_WINDOW_SLOTS 1024u /* 4 MiB of pages */
typedef struct nw_slot {
    uint64_t key;       /* NW_KEY_NONE when empty */
    nw_counter *counter; /* meaningful in the process only */
    uint64_t bitmap;    /* bit i: line i of the page is in the cache */
    uint64_t known;     /* those of them that this counter does not pay for */
} nw_slot;

/* First touch of a page by any thread of the process, appended by the thread that won. */
typedef struct nw_touch {
    uint64_t key;  /* page and region, as in a counter */
    uint64_t code; /* address inside the instruction's call-out, for the line table */
} nw_touch;

/* Segment 0 holds entries 0 .. 255, segment s > 0 those from 2^(7+s) to 2^(8+s) - 1. */
#define NW_FIRST_SHIFT 8u
#define NW_FIRST_ENTRIES (1u << NW_FIRST_SHIFT)
#define NW_SEGMENTS 25u
typedef struct nw_segment {
    uint64_t offset;  /* in the file; 0: not there, it is in memory that only the process has */
    uint64_t address; /* in the process: slots point there */
} nw_segment;

/* First page of a thread file. Fields after `version` are written once, or only grow. */
typedef struct nw_thread_header {
    uint64_t magic;
    uint32_t version;
    uint32_t window_slots;
    uint64_t counters; /* entries in use; published with release order after the entry is whole */
    uint64_t touches;  /* likewise */
    uint64_t dropped;  /* accesses not counted: re-entered from a signal handler, or switched off */
    nw_segment counter_segment[NW_SEGMENTS];
    nw_segment touch_segment[NW_SEGMENTS];
} nw_thread_header;

#define NW_HEADER_BYTES 4096u
#define NW_COUNTERS_OFFSET (NW_HEADER_BYTES + NW_WINDOW_SLOTS * 32u)

/* $NODEWISE_RAW/control, mapped by recorder and processes: how slices are cut from inside, and what
 * the recording lacks. A process writes here through memory it has mapped since it began, so that a
 * recording that stops is known whatever the process can no longer open: it may have dropped its
 * user, changed its root, or used up its descriptors. A forked child has its parent's mapping. */
#define NW_WHY_BYTES 248u
typedef struct nw_control {
    uint64_t magic;
    uint32_t version;
    uint32_t slicing;          /* enum nw_slicing */
    uint64_t slice_accesses;   /* for NW_SLICE_ACCESSES */
    uint32_t slices_requested; /* futex word: bumped by a process that has reached a slice end */
    uint32_t slices_taken;     /* futex word: set by the recorder once its snapshot is whole */
    uint32_t recorder_alive;   /* 0: nobody will answer, do not wait */
    uint32_t recorder_pid;     /* should it die without saying so */
    uint32_t stopped;          /* process images that stopped recording early, or never began */
    uint32_t why_taken;        /* 1: one of them writes, or has written, the reason */
    char why[NW_WHY_BYTES];    /* of the first, terminated by a zero */
    uint64_t logged;           /* bytes of whole lines in the event logs of all images: what lacks was lost since */
} nw_control;

/* `pool`, one per process image: small allocations by return address, open addressing. The last slot
 * takes what finds no other. Behind them NW_REPEATS numbers of 64 bits: how often an object was allocated again
 * at its addresses; the log says which is whose. */
#define NW_REPEATS 4096u
#define NW_POOL_SLOTS 4096u
typedef struct nw_pool_entry {
    uint64_t caller; /* 0: free */
    uint64_t bytes;  /* allocated in all */
    uint64_t count;
} nw_pool_entry;

enum nw_slicing { NW_SLICE_TIME = 0, NW_SLICE_ACCESSES = 1, NW_SLICE_REGION = 2 };

#endif
