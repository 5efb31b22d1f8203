/* The few system calls that placement needs, raw, counted; results are 0 or -errno. */
#ifndef NODEWISE_KERNEL_H
#define NODEWISE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define NW_MASK_NODES 1024

typedef struct nw_mask {
    unsigned long words[NW_MASK_NODES / 64];
} nw_mask;

static inline void nw_mask_add(nw_mask *mask, int node) { mask->words[node / 64] |= 1ul << (node % 64); }
static inline void nw_mask_drop(nw_mask *mask, int node) {
    if (node >= 0 && node < NW_MASK_NODES)
        mask->words[node / 64] &= ~(1ul << (node % 64));
}
static inline int nw_mask_has(const nw_mask *mask, int node) {
    return node >= 0 && node < NW_MASK_NODES && mask->words[node / 64] >> (node % 64) & 1;
}

/* For what will be touched in a range: the kernel's own policy, one node, in turn, any of several. */
int nw_kernel_default(void *start, size_t bytes);
int nw_kernel_prefer(void *start, size_t bytes, int node);
int nw_kernel_interleave(void *start, size_t bytes, const nw_mask *nodes);
int nw_kernel_prefer_many(void *start, size_t bytes, const nw_mask *nodes);

/* Saves the thread's own policy and prefers a node from now on; the other restores it. */
typedef struct nw_kernel_policy {
    int mode, saved;
    nw_mask nodes;
} nw_kernel_policy;
int nw_kernel_thread_prefers(nw_kernel_policy *before, int node);
void nw_kernel_thread_as_before(const nw_kernel_policy *before);

/* Touches all of a range for writing without changing it. */
int nw_kernel_populate(void *start, size_t bytes);
/* Huge pages given up, or back; those that a range has, split. */
int nw_kernel_huge(void *start, size_t bytes, int wanted);
void nw_kernel_split(void *huge_page, size_t page);

/* One byte a page: whether it is in memory. */
int nw_kernel_resident(void *start, size_t bytes, unsigned char *resident);
/* Moves pages to nodes, or (nodes null) asks for theirs: `status` gets a node or -errno for each. */
int nw_kernel_move(size_t count, void **pages, const int *nodes, int *status);

size_t nw_kernel_free_bytes(void);

#endif
