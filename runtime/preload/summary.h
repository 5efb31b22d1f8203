/* What a placed process says about itself while it runs: a file mapped MAP_SHARED, so that nothing is
 * lost when the process is killed. The Rust mirror is crates/enforce/src/summary.rs. */
#ifndef NODEWISE_PRELOAD_SUMMARY_H
#define NODEWISE_PRELOAD_SUMMARY_H

#include "table.h"

#define NW_SUMMARY_MAGIC 0x31616d6d7573776eull /* "nwsumma1" */
#define NW_LIVE 65536u /* objects followed at once; more are placed but not read back */

/* Of the objects of one rule. Pages by logical node. */
typedef struct nw_tally {
    uint64_t objects, pages;
    uint64_t touched, right; /* when read back: pages with memory, and of those where they were wanted */
    uint64_t wanted[NW_NODES];
    uint64_t got[NW_NODES];
} nw_tally;

/* An object alive: its first page is 0 in a slot never used, 1 in one that is free again. */
typedef struct nw_live {
    uint64_t page, pages;
    uint32_t rule, thread;
    uint32_t cuts, unused;
} nw_live;

enum nw_state { NW_RUNNING = 1, NW_READ_BACK = 2, NW_OFF = 3 };

typedef struct nw_summary {
    uint64_t magic;
    uint32_t pid, state;
    uint32_t rules;          /* tallies: one more, the fallback */
    uint32_t threads;        /* bound by us */
    uint32_t refused;        /* calls the kernel refused, and the last error */
    uint32_t last_error;
    uint32_t coarsened;      /* objects decided in larger pieces, for want of mappings or memory */
    uint32_t untracked;      /* objects beyond NW_LIVE */
    uint64_t populated;      /* pages touched by us */
    uint64_t by_name;        /* objects whose site was told by function names alone */
    char off[128];           /* why it switched itself off */
    nw_live live[NW_LIVE];
    nw_tally tallies[];
} nw_summary;

extern nw_summary *nw_report; /* never null: private memory when there is no file */

#endif
