/* Determines which frames of the emulator belong to which node, and which virtual CPU is which CPU of the
 * kernel. Marks tell the emulator. Lines on the control channel tell the host the kernel's frame numbers:
 * `segment NODE FIRST PAGES` for each contiguous part of a node's memory, and `page NODE FRAME` for each
 * marked page, in the order of the marks. */
#define _GNU_SOURCE
#include "guest.h"

#include "../emulator/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, NODES = 1024, CPUS = 4096, SAMPLES = 4, MODE_BIND = 2 };

static _Alignas(PAGE) char numbers[PAGE];

static void mark_number(int number) { nw_mark(NW_MARK_NUMBER, numbers + number); }

static void each_of(const char *path, void (*visit)(int number)) {
    char *text = nw_read_text(path, NULL), *list = text ? strdup(text) : NULL;
    if (!list)
        nw_fail("cannot read %s", path);
    for (char *at = list; *at >= '0' && *at <= '9';) {
        int first = (int)strtol(at, &at, 10);
        int last = *at == '-' ? (int)strtol(at + 1, &at, 10) : first;
        for (int number = first; number <= last; number++)
            visit(number);
        at += *at == ',';
    }
    free(list);
}

static uint64_t kernel_frame(const void *address) {
    uint64_t entry = 0;
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    off_t at = (off_t)((uintptr_t)address / PAGE * sizeof entry);
    ssize_t got = file < 0 ? -1 : pread(file, &entry, sizeof entry, at);
    close(file);
    return got == sizeof entry ? entry & ((1ull << 55) - 1) : 0;
}

static void visit_node(int node) {
    unsigned long mask[NODES / 64] = {0};
    char *pages = mmap(NULL, SAMPLES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || node < 0 || node >= NODES)
        nw_fail("no memory to find node %d with", node);
    mask[node / 64] = 1ul << (node % 64);
    if (syscall(SYS_mbind, pages, SAMPLES * PAGE, MODE_BIND, mask, NODES + 1ul, 0) != 0)
        nw_fail("cannot bind pages to node %d: %s", node, strerror(errno));
    for (char *page = pages; page < pages + SAMPLES * PAGE; page += PAGE) {
        *(volatile char *)page = 1;
        mark_number(node);
        nw_mark(NW_MARK_NODE, page);
        nw_say("page %d %llu", node, (unsigned long long)kernel_frame(page));
    }
    munmap(pages, SAMPLES * PAGE);
}

static void visit_cpu(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= CPU_SETSIZE || cpu >= PAGE)
        nw_fail("CPU %d is beyond what can be told", cpu);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        nw_fail("cannot run on CPU %d: %s", cpu, strerror(errno));
    mark_number(cpu);
    nw_mark(NW_MARK_CPU, numbers);
}

/* Adjacent zones of a node are one segment. */
static void say_segments(void) {
    char *at = nw_read_text("/proc/zoneinfo", NULL);
    int node = -1, known = -1;
    uint64_t first = 0, pages = 0, spanned = 0, start;
    for (char *line = at ? strtok(at, "\n") : NULL; line; line = strtok(NULL, "\n")) {
        unsigned long long value;
        sscanf(line, "Node %d, zone", &node);
        if (sscanf(line, " spanned %llu", &value) == 1)
            spanned = value;
        if (sscanf(line, " start_pfn: %llu", &value) != 1 || spanned == 0)
            continue;
        start = value;
        if (known == node && first + pages == start) {
            pages += spanned;
        } else {
            if (known >= 0)
                nw_say("segment %d %llu %llu", known, (unsigned long long)first, (unsigned long long)pages);
            known = node, first = start, pages = spanned;
        }
        spanned = 0;
    }
    if (known < 0)
        nw_fail("cannot read /proc/zoneinfo");
    nw_say("segment %d %llu %llu", known, (unsigned long long)first, (unsigned long long)pages);
}

void nw_mark_run(int number) { nw_mark(NW_MARK_RUN, numbers + number); }

/* Numbers repeat after 4096 slices; slices are told apart by their order. */
void nw_mark_slice(int number) { nw_mark(NW_MARK_SLICE, numbers + number % 4096); }

void nw_calibrate(void) {
    cpu_set_t before;
    say_segments();
    sched_getaffinity(0, sizeof before, &before);
    each_of("/sys/devices/system/cpu/online", visit_cpu);
    each_of("/sys/devices/system/node/has_memory", visit_node); /* still bound: a marked number is kept per CPU */
    sched_setaffinity(0, sizeof before, &before);
}
