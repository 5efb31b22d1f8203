/* Start, end and fork of a placed process. */
#define _GNU_SOURCE
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const nw_table *nw_placement;
nw_summary *nw_report;

/* Where nothing is placed and yet objects are to be seen. */
static const nw_table nothing = {.magic = NW_TABLE_MAGIC, .version = NW_TABLE_VERSION, .granule = 1};

static char folder[512];

int nw_placing(void) { return nw_placement && nw_placement != &nothing; }

void nw_preload_off(const char *why) {
    char line[256];
    int length = snprintf(line, sizeof line, "nodewise: placement switched off: %s\n", why);
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        errno = 0;
    nw_heap_stop();
    nw_placement = NULL;
    if (!nw_report)
        return;
    snprintf(nw_report->off, sizeof nw_report->off, "%s", why);
    nw_report->state = NW_OFF;
}

static void allocated(const nw_allocation *allocation) {
    int before = errno;
    nw_object object = {
        .page = (uint64_t)(uintptr_t)allocation->address >> nw_page_shift,
        .pages = allocation->mapped >> nw_page_shift,
        .rule = nw_match(allocation, NW_KIND_HEAP),
        .thread = nw_thread_ordinal(),
        .fresh = allocation->moved == 0,
    };
    if (nw_placing()) {
        nw_place(&object);
        nw_objects_add(&object);
        nw_worth_seen(allocation, object.rule < nw_placement->rules.count ||
                                      nw_placement->fallback.kind != NW_FIRST_TOUCH);
    }
    nw_seen(&object);
    errno = before;
}

static void freed(void *address, size_t mapped) {
    int before = errno;
    (void)mapped;
    if (nw_placing())
        nw_objects_remove(address);
    errno = before;
}

/* All of them where they are to be seen. */
static int separate(uintptr_t caller, size_t bytes) { return nw_seeing() || nw_worth_separating(caller, bytes); }

/* A file for each process image: the name is free, or the next one is. */
static int summary_file(void) {
    char path[600];
    for (unsigned again = 0; again < 1000; again++) {
        snprintf(path, sizeof path, "%s/summary-%d-%u", folder, (int)getpid(), again);
        int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

static nw_summary *open_summary(void) {
    size_t bytes = sizeof(nw_summary) + (nw_placement->rules.count + 1ul) * sizeof(nw_tally);
    int file = nw_placing() ? summary_file() : -1, shared = file >= 0 && ftruncate(file, (off_t)bytes) == 0;
    void *at = shared ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : nw_own_memory(bytes);
    if (file >= 0)
        close(file);
    if (!at || at == MAP_FAILED)
        return NULL;
    nw_summary *summary = at;
    summary->magic = NW_SUMMARY_MAGIC;
    summary->pid = (uint32_t)getpid();
    summary->rules = nw_placement->rules.count;
    summary->state = NW_RUNNING;
    return summary;
}

/* The child's figures are its own: what it inherits was counted by its parent. */
static void after_fork(void) {
    nw_match_after_fork();
    nw_summary *own = nw_placement ? open_summary() : NULL;
    if (own)
        nw_report = own;
    else if (nw_placement)
        nw_preload_off("no memory after fork");
}

static int is_target(const nw_table *table) {
    struct stat status;
    if (table->device == 0 && table->inode == 0)
        return 1;
    return stat("/proc/self/exe", &status) == 0 && status.st_dev == table->device &&
           status.st_ino == table->inode;
}

static const nw_table *table_for_me(void) {
    char path[600];
    const char *why, *from = getenv("NODEWISE_PLACEMENT");
    if (!from || strlen(from) >= sizeof folder)
        return NULL;
    strcpy(folder, from);
    snprintf(path, sizeof path, "%s/table", folder);
    if (access(path, F_OK) != 0)
        return NULL; /* `run` has ended and cleaned up: a daemon's children are on their own */
    const nw_table *table = nw_table_open(path, &why);
    if (!table)
        nw_preload_off(why);
    return table && is_target(table) ? table : NULL;
}

static void place_rest(void) {
    uint32_t nodes[NW_NODES];
    const nw_distribution *how = &nw_placement->fallback;
    if (!(nw_placement->flags & NW_PLACE_REST) || how->kind != NW_INTERLEAVE || how->count > NW_NODES)
        return;
    for (uint32_t i = 0; i < how->count; i++)
        nodes[i] = nw_parts(nw_placement)[how->first + i].node;
    nw_kernel_rest(nodes, how->count);
}

__attribute__((constructor)) static void begin(void) {
    static const nw_heap_hooks hooks = {.allocated = allocated, .freed = freed, .separate = separate};
    int before = errno;
    nw_companion_prepare();
    nw_placement = table_for_me();
    if (nw_seen_start() && !nw_placement)
        nw_placement = &nothing;
    if (nw_placement && !(nw_report = open_summary()))
        nw_preload_off("no memory for the summary");
    if (nw_placement && nw_match_start()) {
        nw_kernel_start(nw_placement);
        place_rest();
        nw_threads_start();
        nw_seen_data();
        nw_place_variables();
        pthread_atfork(NULL, NULL, after_fork);
        if (nw_seeing() || nw_placement->rules.count > 0 || nw_placement->fallback.kind != NW_FIRST_TOUCH)
            nw_heap_start(&hooks);
    }
    nw_companion_start();
    errno = before;
}

/* A child of vfork shares our memory, not our pages' fate. */
__attribute__((destructor)) static void end(void) {
    if (nw_placing() && nw_report->state == NW_RUNNING && nw_report->pid == (uint32_t)getpid())
        nw_objects_read_back();
}

/* Leaves without destructors, so the last look is taken here. */
__attribute__((visibility("default"), noreturn)) void _exit(int status) {
    end();
    for (;;)
        syscall(SYS_exit_group, status);
}

__attribute__((visibility("default"), noreturn)) void _Exit(int status) { _exit(status); }
