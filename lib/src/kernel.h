/* The system calls that placement needs, made directly and counted. They return 0 or -errno. */
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

/* Set the policy for pages of a range that are not touched yet: the kernel's default, prefer one node, interleave,
 * prefer any of several nodes. */
int nw_kernel_default(void *start, size_t bytes);
int nw_kernel_prefer(void *start, size_t bytes, int node);
int nw_kernel_interleave(void *start, size_t bytes, const nw_mask *nodes);
int nw_kernel_prefer_many(void *start, size_t bytes, const nw_mask *nodes);

/* nw_kernel_thread_prefers and nw_kernel_thread_interleaves save the calling thread's policy, once, and make it prefer
 * a node or interleave; nw_kernel_thread_as_before restores the policy. */
typedef struct nw_kernel_policy {
    int mode, saved;
    nw_mask nodes;
} nw_kernel_policy;
int nw_kernel_thread_prefers(nw_kernel_policy *before, int node);
int nw_kernel_thread_interleaves(nw_kernel_policy *before, const nw_mask *nodes);
void nw_kernel_thread_as_before(const nw_kernel_policy *before);

/* Touches all of a range for writing without changing it. */
int nw_kernel_populate(void *start, size_t bytes);
/* Permits huge pages in a range (`wanted`) or forbids them; splits a huge page. */
int nw_kernel_huge(void *start, size_t bytes, int wanted);
void nw_kernel_split(void *huge_page, size_t page);

/* Stores a byte for each page; bit 0 says whether it is in memory. */
int nw_kernel_resident(void *start, size_t bytes, unsigned char *resident);
/* Moves pages to nodes, or (nodes null) asks for theirs: `status` gets a node or -errno for each. */
int nw_kernel_move(size_t count, void **pages, const int *nodes, int *status);

size_t nw_kernel_free_bytes(void);

#endif
