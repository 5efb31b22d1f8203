/* The system calls that placement needs, or their trace. */
#define _GNU_SOURCE
#include "affinity.h"
#include "preload.h"

#include "../scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { MODE_DEFAULT = 0, MODE_PREFERRED = 1, MODE_INTERLEAVE = 3, MODE_LOCAL = 4 };
enum { FLAG_MOVE = 2 };
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define WORDS (NW_NODES / 64)
#define MASK_BITS (NW_NODES + 1ul) /* the kernel reads one bit less than it is told */

typedef struct mask {
    unsigned long words[WORDS];
} mask;

static const nw_table *table;
static int trace = -1;

void nw_kernel_start(const nw_table *placement) {
    table = placement;
    const char *path = getenv("NODEWISE_PRELOAD_TRACE");
    if (path && *path)
        trace = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

int nw_kernel_tracing(void) { return trace >= 0; }

void nw_kernel_trace(const char *format, ...) {
    enum { MOST = 1024 };
    va_list arguments;
    char *line = trace < 0 ? NULL : nw_scratch_take();
    if (!line)
        return;
    va_start(arguments, format);
    int length = vsnprintf(line, MOST, format, arguments);
    va_end(arguments);
    if (length > 0 && write(trace, line, length < MOST ? (size_t)length : MOST - 1) < 0)
        trace = -1;
    nw_scratch_give(line);
}

static mask mask_of(const uint32_t *nodes, uint32_t count) {
    mask set = {{0}};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = nw_nodes(table)[nodes[i]];
        set.words[node / 64] |= 1ul << (node % 64);
    }
    return set;
}

static int result(long status) { return status < 0 ? -errno : 0; }

static void *address_of(uint64_t page) { return (void *)(uintptr_t)(page << nw_page_shift); }

static int bind_memory(uint64_t page, uint64_t pages, int mode, const mask *set, int move) {
    return result(syscall(SYS_mbind, address_of(page), pages << nw_page_shift, mode, set->words, MASK_BITS,
                          move ? FLAG_MOVE : 0u));
}

int nw_kernel_prefer(uint64_t page, uint64_t pages, uint32_t node, int move) {
    nw_kernel_trace("prefer %lx %lx %u\n", page, pages, node);
    if (trace >= 0)
        return 0;
    mask set = mask_of(&node, 1);
    return bind_memory(page, pages, MODE_PREFERRED, &set, move);
}

int nw_kernel_local(uint64_t page, uint64_t pages) {
    nw_kernel_trace("local %lx %lx\n", page, pages);
    return trace >= 0 ? 0 : bind_memory(page, pages, MODE_LOCAL, &(mask){{0}}, 0);
}

int nw_kernel_forget(uint64_t page, uint64_t pages) {
    nw_kernel_trace("forget %lx %lx\n", page, pages);
    return trace >= 0 ? 0 : bind_memory(page, pages, MODE_DEFAULT, &(mask){{0}}, 0);
}

int nw_kernel_interleave(uint64_t page, uint64_t pages, const uint32_t *nodes, uint32_t count, int move) {
    char list[NW_NODES * 4] = "";
    for (uint32_t i = 0, at = 0; i < count && trace >= 0 && at < sizeof list - 8; i++)
        at += (uint32_t)sprintf(list + at, i ? ",%u" : "%u", nodes[i]);
    nw_kernel_trace("interleave %lx %lx %s\n", page, pages, list);
    if (trace >= 0)
        return 0;
    mask set = mask_of(nodes, count);
    return bind_memory(page, pages, MODE_INTERLEAVE, &set, move);
}

/* For kernels before 5.14, which lack MADV_POPULATE_WRITE. No other thread knows these pages yet. */
static void touch(const nw_stretch *stretch) {
    for (uint64_t i = 0; i < stretch->pages; i++) {
        volatile char *byte = address_of(stretch->page + i);
        *byte = *byte;
    }
}

static int populate_node(const nw_stretch *stretches, uint32_t count, uint32_t node) {
    mask set = mask_of(&node, 1);
    int status = result(syscall(SYS_set_mempolicy, MODE_PREFERRED, set.words, MASK_BITS));
    for (uint32_t i = 0; i < count && status == 0; i++) {
        if (stretches[i].node != node)
            continue;
        status = result(
            madvise(address_of(stretches[i].page), stretches[i].pages << nw_page_shift, MADV_POPULATE_WRITE));
        if (status == -EINVAL) {
            touch(&stretches[i]);
            status = 0;
        }
    }
    return status;
}

int nw_kernel_populate(const nw_stretch *stretches, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        nw_kernel_trace("populate %lx %lx %u\n", stretches[i].page, stretches[i].pages, stretches[i].node);
    if (trace >= 0)
        return 0;
    int mode = MODE_DEFAULT;
    mask before = {{0}};
    int status = result(syscall(SYS_get_mempolicy, &mode, before.words, MASK_BITS, NULL, 0ul));
    uint64_t done[WORDS] = {0};
    for (uint32_t i = 0; i < count && status == 0; i++) {
        uint32_t node = stretches[i].node;
        if (done[node / 64] >> (node % 64) & 1)
            continue;
        done[node / 64] |= 1ull << (node % 64);
        status = populate_node(stretches, count, node);
    }
    int plain = mode == MODE_DEFAULT || mode == MODE_LOCAL;
    syscall(SYS_set_mempolicy, mode, plain ? NULL : before.words, plain ? 0ul : MASK_BITS);
    return status;
}

int nw_kernel_rest(const uint32_t *nodes, uint32_t count) {
    nw_kernel_trace("rest %u\n", count);
    if (trace >= 0)
        return 0;
    mask set = mask_of(nodes, count);
    return result(syscall(SYS_set_mempolicy, count == 1 ? MODE_PREFERRED : MODE_INTERLEAVE, set.words, MASK_BITS));
}

int nw_kernel_split_huge(uint64_t page, uint64_t pages) {
    return trace >= 0 ? 0 : result(madvise(address_of(page), pages << nw_page_shift, MADV_NOHUGEPAGE));
}

static uint32_t logical(int node) {
    for (uint32_t i = 0; i < table->nodes.count; i++)
        if (node >= 0 && nw_nodes(table)[i] == (uint32_t)node)
            return i;
    return NW_NODE_NONE;
}

int nw_kernel_query(nw_pages_asked *asked) {
    if (trace >= 0)
        return -ENOSYS;
    for (uint32_t i = 0; i < asked->count; i++)
        asked->address[i] = address_of(asked->page[i]);
    int failed = result(syscall(SYS_move_pages, 0, (unsigned long)asked->count, asked->address, NULL, asked->node, 0));
    for (uint32_t i = 0; i < asked->count && !failed; i++)
        asked->node[i] = logical((int)asked->node[i]);
    return failed;
}

int nw_kernel_bind(uint32_t ordinal, uint32_t cpu) {
    nw_kernel_trace("bind %u %u\n", ordinal, cpu);
    return trace >= 0 ? 0 : nw_affinity_bind(cpu);
}

static int home; /* nw_kernel_home has set the main thread's policy */
static int before_home;
static mask home_nodes;

void nw_kernel_home(uint32_t cpu, uint32_t node) {
    nw_kernel_trace("home %u %u\n", cpu, node);
    if (trace >= 0 || !nw_affinity_visit(cpu))
        return;
    if (syscall(SYS_get_mempolicy, &before_home, NULL, 0ul, NULL, 0ul) != 0 ||
        (before_home != MODE_DEFAULT && before_home != MODE_LOCAL))
        return;
    home_nodes = mask_of(&node, 1);
    home = syscall(SYS_set_mempolicy, MODE_PREFERRED, home_nodes.words, MASK_BITS) == 0;
}

int nw_kernel_home_put_aside(void) { return home && syscall(SYS_set_mempolicy, before_home, NULL, 0ul) == 0; }

void nw_kernel_home_take_up(void) { syscall(SYS_set_mempolicy, MODE_PREFERRED, home_nodes.words, MASK_BITS); }

void nw_kernel_home_ends(void) {
    if (home)
        syscall(SYS_set_mempolicy, before_home, NULL, 0ul);
    home = 0;
}

uint64_t nw_kernel_free_bytes(void) {
    struct sysinfo information;
    return sysinfo(&information) ? 0 : (uint64_t)information.freeram * information.mem_unit;
}
