#include "kernel.h"
#include "library.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { MODE_DEFAULT = 0, MODE_PREFERRED = 1, MODE_INTERLEAVE = 3, MODE_LOCAL = 4, MODE_PREFERRED_MANY = 5 };
enum { FLAG_MOVE = 2 };
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#endif

#define MASK_BITS (NW_MASK_NODES + 1ul) /* the kernel reads one bit less than it is told */

static int result(long status) {
    nw_count_call();
    return status < 0 ? -errno : 0;
}

static int bind_memory(void *start, size_t bytes, int mode, const nw_mask *nodes) {
    return result(syscall(SYS_mbind, start, bytes, mode, nodes ? nodes->words : NULL, nodes ? MASK_BITS : 0ul, 0u));
}

int nw_kernel_default(void *start, size_t bytes) { return bind_memory(start, bytes, MODE_DEFAULT, NULL); }

int nw_kernel_prefer(void *start, size_t bytes, int node) {
    nw_mask nodes = {{0}};
    nw_mask_add(&nodes, node);
    return bind_memory(start, bytes, MODE_PREFERRED, &nodes);
}

int nw_kernel_interleave(void *start, size_t bytes, const nw_mask *nodes) {
    return bind_memory(start, bytes, MODE_INTERLEAVE, nodes);
}

/* Kernels before 5.15 have no such mode. */
int nw_kernel_prefer_many(void *start, size_t bytes, const nw_mask *nodes) {
    int status = bind_memory(start, bytes, MODE_PREFERRED_MANY, nodes);
    return status == -EINVAL ? nw_kernel_interleave(start, bytes, nodes) : status;
}

static int set_thread_policy(nw_kernel_policy *before, int mode, const nw_mask *nodes) {
    if (!before->saved) {
        int status = result(syscall(SYS_get_mempolicy, &before->mode, before->nodes.words, MASK_BITS, NULL, 0ul));
        if (status)
            return status;
        before->saved = 1;
    }
    return result(syscall(SYS_set_mempolicy, mode, nodes->words, MASK_BITS));
}

int nw_kernel_thread_prefers(nw_kernel_policy *before, int node) {
    nw_mask nodes = {{0}};
    nw_mask_add(&nodes, node);
    return set_thread_policy(before, MODE_PREFERRED, &nodes);
}

int nw_kernel_thread_interleaves(nw_kernel_policy *before, const nw_mask *nodes) {
    return set_thread_policy(before, MODE_INTERLEAVE, nodes);
}

void nw_kernel_thread_as_before(const nw_kernel_policy *before) {
    int plain = before->mode == MODE_DEFAULT || before->mode == MODE_LOCAL;
    if (before->saved)
        result(syscall(SYS_set_mempolicy, before->mode, plain ? NULL : before->nodes.words, plain ? 0ul : MASK_BITS));
}

int nw_kernel_populate(void *start, size_t bytes) { return result(madvise(start, bytes, MADV_POPULATE_WRITE)); }

int nw_kernel_huge(void *start, size_t bytes, int wanted) {
    return result(madvise(start, bytes, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
}

/* Advice for a part of a huge page splits it. MADV_COLD has no other effect that matters here. */
void nw_kernel_split(void *huge_page, size_t page) { result(madvise(huge_page, page, MADV_COLD)); }

int nw_kernel_resident(void *start, size_t bytes, unsigned char *resident) {
    return result(mincore(start, bytes, resident));
}

int nw_kernel_move(size_t count, void **pages, const int *nodes, int *status) {
    return result(syscall(SYS_move_pages, 0, (unsigned long)count, pages, nodes, status, nodes ? FLAG_MOVE : 0));
}

size_t nw_kernel_free_bytes(void) {
    struct sysinfo information;
    return sysinfo(&information) ? 0 : (size_t)information.freeram * information.mem_unit;
}
