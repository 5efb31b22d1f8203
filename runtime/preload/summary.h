/* The report of a placed process about itself while it runs: a file mapped MAP_SHARED, so that nothing is
 * lost when the process is killed. It has a header, a tally for each rule and one for the fallback, and a table
 * of live objects, for which the file grows. The Rust mirror is crates/enforce/src/summary.rs. */
#ifndef NODEWISE_PRELOAD_SUMMARY_H
#define NODEWISE_PRELOAD_SUMMARY_H

#include "table.h"

#include <stddef.h>

#define NW_SUMMARY_MAGIC 0x33616d6d7573776eull /* "nwsumma3" */
#define NW_LIVE_FIRST 64u /* slots for objects at first; each extension adds twice as many as the one before */
#define NW_LIVE (NW_LIVE_FIRST * ((1u << 10) - 1)) /* most slots; further objects are placed but not read back */

/* Sums over the objects of one rule. */
typedef struct nw_tally {
    uint64_t objects, pages;
    uint64_t touched, right; /* when read back: pages with memory, and those of them that are on the wanted node */
    uint64_t by_node[];      /* pages wanted on each logical node, then pages found on each */
} nw_tally;

/* The object of which a mapping maps a part: memory that has a name of its own (named.c). */
typedef struct nw_whole {
    uint64_t pages;   /* 0: there is none, the mapping is the object */
    uint64_t before;  /* pages of the object before the mapping */
    uint64_t phase;   /* the kernel interleaves by the page's number in the object plus this */
    uint32_t granule; /* pages decided together, in the place of the table's */
    uint32_t unused;
} nw_whole;

/* A live object. `page` is its first page, or 0 in a slot never used, 1 in one free again, 2 in one being filled. */
typedef struct nw_live {
    uint64_t page, pages;
    uint32_t rule, thread;
    uint32_t cuts, unused;
    nw_whole whole;
} nw_live;

enum nw_state { NW_RUNNING = 1, NW_READ_BACK = 2, NW_OFF = 3, NW_EXECUTED = 4 /* it became another program */ };

typedef struct nw_summary {
    uint64_t magic;
    uint32_t pid, state;
    uint32_t rules;          /* number of rules; there is one more tally, for the fallback */
    uint32_t nodes;          /* number of nodes in a tally */
    uint32_t live;           /* slots for live objects */
    uint32_t threads;        /* threads bound by us */
    uint32_t refused;        /* system calls that the kernel refused, and the last error */
    uint32_t last_error;
    uint32_t coarsened;      /* objects placed in larger pieces than wanted, for lack of mappings or memory */
    uint32_t untracked;      /* objects that found no slot */
    uint64_t populated;      /* pages touched by us */
    uint64_t by_name;        /* objects whose site was recognised by function names alone */
    char off[120];           /* why placement was switched off */
    uint32_t unreached;      /* programs started without our library, as they got another environment or root */
    uint32_t own_masks;      /* calls by which the program bound threads itself */
} nw_summary;

static inline size_t nw_tally_bytes(uint32_t nodes) { return sizeof(nw_tally) + 2ul * nodes * sizeof(uint64_t); }

static inline size_t nw_live_offset(uint32_t rules, uint32_t nodes) {
    return sizeof(nw_summary) + (rules + 1ul) * nw_tally_bytes(nodes);
}

static inline nw_tally *nw_tally_of(nw_summary *summary, uint32_t rule) {
    return (nw_tally *)(void *)((char *)(summary + 1) + rule * nw_tally_bytes(summary->nodes));
}

static inline nw_live *nw_live_at(nw_summary *summary, uint32_t slot) {
    return (nw_live *)(void *)((char *)summary + nw_live_offset(summary->rules, summary->nodes)) + slot;
}

extern nw_summary *nw_report; /* null until nw_report_open; private memory when there is no file */

#endif
