/* The file in which a placed process reports. It is no larger than its contents, and is written only where
 * blocks are allocated: a full disk must not cause a SIGBUS in the program. */
#define _GNU_SOURCE
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

nw_summary *nw_report;

static char path[600];
static int inherited; /* the report is the parent's: this process has not made one of its own yet */

static size_t bytes_with(uint32_t live) {
    return nw_live_offset(nw_placement->rules.count, nw_placement->nodes.count) + live * sizeof(nw_live);
}

/* Writing beyond the limit would raise SIGXFSZ. */
static int within_limit(size_t bytes) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

static int write_zeros(int file, size_t from, size_t to) {
    static const char zeros[4096];
    while (from < to) {
        size_t part = to - from < sizeof zeros ? to - from : sizeof zeros;
        long written = syscall(SYS_pwrite64, file, zeros, part, from);
        if (written <= 0)
            return 0;
        from += (size_t)written;
    }
    return 1;
}

/* Allocates blocks for [from, to) of the file. */
static int allocate(int file, size_t from, size_t to) {
    if (!within_limit(to))
        return 0;
    if (syscall(SYS_fallocate, file, 0, from, to - from) == 0)
        return 1;
    return (errno == EOPNOTSUPP || errno == ENOSYS) && write_zeros(file, from, to);
}

/* Creates the file of this process image, under the first name that is free. If there is no room for its
 * contents, the empty file stays, which tells `run` that a process could not report. */
static int create_file(const char *folder) {
    for (unsigned again = 0; again < 1000; again++) {
        snprintf(path, sizeof path, "%s/summary-%d-%u", folder, (int)getpid(), again);
        int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

/* Maps addresses for the largest number of objects, and allocates blocks for the first few. */
static void *map_file(const char *folder) {
    int file = create_file(folder);
    if (file < 0)
        return NULL;
    void *at = MAP_FAILED;
    if (allocate(file, 0, bytes_with(NW_LIVE_FIRST)))
        /* Not our own mmap, which would place it. */
        at = (void *)syscall(SYS_mmap, NULL, bytes_with(NW_LIVE), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0l);
    close(file);
    return at == MAP_FAILED ? NULL : at;
}

/* Uses private memory where nothing can be reported, or nothing has to be. */
int nw_report_open(const char *folder) {
    nw_summary *shared = nw_placing() ? map_file(folder) : NULL;
    nw_summary *summary = shared ? shared : nw_own_memory(bytes_with(NW_LIVE));
    if (!summary)
        return 0;
    summary->pid = (uint32_t)getpid();
    summary->rules = nw_placement->rules.count;
    summary->nodes = nw_placement->nodes.count;
    summary->live = shared ? NW_LIVE_FIRST : NW_LIVE;
    summary->state = NW_RUNNING;
    __atomic_store_n(&summary->magic, NW_SUMMARY_MAGIC, __ATOMIC_RELEASE);
    nw_report = summary;
    inherited = 0;
    return 1;
}

void nw_report_inherited(void) { inherited = 1; }

int nw_report_is_inherited(void) { return inherited; }

/* Fails if the file is out of reach by now (another user or root), or if the disk is full. Two threads may do this
 * at the same time. */
int nw_report_grow(uint32_t from, uint32_t live) {
    int file = open(path, O_RDWR | O_CLOEXEC);
    int grown = file >= 0 && allocate(file, bytes_with(from), bytes_with(live));
    if (file >= 0)
        close(file);
    while (grown && from < live &&
           !__atomic_compare_exchange_n(&nw_report->live, &from, live, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    return grown;
}
