/* How an object's pages are distributed over nodes: the formulas that the preload library enforces.
 *
 * The Rust mirror is crates/placement/src/distribution.rs; a property test in crates/enforce holds
 * the two together. Integers throughout, except shares, which are IEEE doubles in both.
 */
#ifndef NODEWISE_DISTRIBUTION_H
#define NODEWISE_DISTRIBUTION_H

#include "../lib/src/formulas.h"

#include <stdint.h>

/* No node: the kernel decides, by first touch. */
#define NW_NODE_NONE UINT32_MAX

enum nw_distribution_kind {
    NW_FIRST_TOUCH = 0,
    NW_INTERLEAVE = 1, /* parts: nodes; `node N` is an interleave over one node */
    NW_BLOCK = 2,      /* parts: nodes and cumulative shares, the last is 1 */
    NW_BY_THREAD = 3,  /* repeat */
    NW_ALLOCATOR = 4,
    /* Blocks of `repeat` decisions each, assigned to the parts' nodes by the formulas of libnodewise. */
    NW_CYCLIC_BLOCKS = 5,
    NW_SKEW_BLOCKS = 6,
    NW_PRIME_BLOCKS = 7,  /* parameter: the prime */
    NW_RANDOM_BLOCKS = 8, /* parameter: the seed */
};

typedef struct nw_part {
    double until; /* the share of the object up to the end of this part */
    uint32_t node;
    uint32_t unused;
} nw_part;

typedef struct nw_distribution {
    uint32_t kind;
    uint32_t repeat; /* NW_BY_THREAD: blocks per thread; blocks: the length of a block in decisions */
    uint32_t count;  /* parts */
    uint32_t first;  /* index of the first one in the table's pool */
    uint64_t parameter;
} nw_distribution;

/* A page, in the terms of the formulas. */
typedef struct nw_page {
    uint64_t index;  /* in the object */
    uint64_t pages;  /* of the object, at least 1 */
    uint64_t number; /* virtual page number, in units of the decision's page size */
    uint64_t turn;   /* the index within the object, in the same units */
    uint32_t thread; /* ordinal of the thread that allocated the object */
    uint32_t unused;
} nw_page;

/* The part that holds the middle of the page. */
static inline uint32_t nw_block(const nw_part *parts, uint32_t count, nw_page page) {
    double middle = (double)page.index + 0.5;
    uint32_t part = 0;
    while (part + 1 < count && middle >= parts[part].until * (double)page.pages)
        part++;
    return parts[part].node;
}

/* The object is divided into `repeat` x `threads` equal blocks, which go to the threads in turn. Returns the
 * thread of the block that holds the middle of the page. */
static inline uint32_t nw_block_thread(uint32_t repeat, uint32_t threads, nw_page page) {
    unsigned __int128 blocks = (unsigned __int128)repeat * threads;
    unsigned __int128 block = (2 * (unsigned __int128)page.index + 1) * blocks / (2 * (unsigned __int128)page.pages);
    return (uint32_t)(block % threads);
}

/* The index of the part that gets the page's block. */
static inline uint32_t nw_dealt(const nw_distribution *rule, nw_page page) {
    uint64_t block = page.turn / (rule->repeat ? rule->repeat : 1);
    switch (rule->kind) {
    case NW_SKEW_BLOCKS: return nw_formula_skew(block, rule->count);
    case NW_PRIME_BLOCKS: return nw_formula_prime(block, (uint32_t)rule->parameter, rule->count);
    case NW_RANDOM_BLOCKS: return nw_formula_random(block, rule->parameter, rule->count);
    default: return nw_formula_cyclic(block, rule->count);
    }
}

/* The node of a page; `nodes` holds the node of each of `threads` threads. */
static inline uint32_t nw_node_of(const nw_distribution *rule, const nw_part *pool, const uint32_t *nodes,
                                  uint32_t threads, nw_page page) {
    const nw_part *parts = pool + rule->first;
    switch (rule->kind) {
    case NW_INTERLEAVE: return rule->count ? parts[page.number % rule->count].node : NW_NODE_NONE;
    case NW_BLOCK: return rule->count ? nw_block(parts, rule->count, page) : NW_NODE_NONE;
    case NW_BY_THREAD: return threads ? nodes[nw_block_thread(rule->repeat, threads, page)] : NW_NODE_NONE;
    case NW_ALLOCATOR: return threads ? nodes[page.thread % threads] : NW_NODE_NONE;
    case NW_CYCLIC_BLOCKS:
    case NW_SKEW_BLOCKS:
    case NW_PRIME_BLOCKS:
    case NW_RANDOM_BLOCKS: return rule->count ? parts[nw_dealt(rule, page)].node : NW_NODE_NONE;
    default: return NW_NODE_NONE;
    }
}

#endif
