/* A page policy of your own, as a shared library: `nodewise simulate --policy ./my-policy.so`.
 *
 * The library exports two functions, declared at the end. It gets the page × thread histogram of
 * a recording and what is known of the machine, and gives a node for each page.
 */
#ifndef NODEWISE_POLICY_H
#define NODEWISE_POLICY_H

#include <stdint.h>

/* Grows when anything below changes; a library of another version is refused. */
#define NODEWISE_POLICY_ABI 1u

/* What one thread did to one page. */
typedef struct nodewise_cell {
    uint64_t reads;
    uint64_t writes;
    uint32_t lines; /* 64-byte lines of traffic, saturating */
    uint32_t thread;
} nodewise_cell;

/* All pointers stay nodewise's and are valid during the call only. */
typedef struct nodewise_histogram {
    uint32_t nodes;
    uint32_t threads;
    uint64_t page_size; /* bytes: the granularity of the decision */
    uint64_t pages;
    const uint64_t *page;        /* virtual page number, in units of 4 KiB, ascending */
    const uint64_t *offsets;     /* cells of page i: offsets[i] to offsets[i + 1], threads ascending */
    const nodewise_cell *cells;
    const uint32_t *first_touch; /* the node page i would have by default */
    const uint32_t *thread_node; /* the node each thread runs on */
    const double *latency;       /* nanoseconds, [cpu node * nodes + memory node] */
    const double *bandwidth;     /* MB/s of each node's controller */
} nodewise_histogram;

/* Returns NODEWISE_POLICY_ABI. */
uint32_t nodewise_policy_abi(void);

/* Sets node[i], below `nodes`, for each of the `pages` pages; returns 0, or anything else for
 * failure. It should be a function of its input alone. */
int nodewise_policy(const nodewise_histogram *histogram, uint32_t *node);

#endif
