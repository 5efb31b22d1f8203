/* Start, end and fork of a placed process. */
#define _GNU_SOURCE
#include "preload.h"

#include "../starting.h"
#include "../stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const nw_table *nw_placement;

/* The table of a process in which objects are listed but not placed. */
static const nw_table nothing = {.magic = NW_TABLE_MAGIC, .version = NW_TABLE_VERSION, .granule = 1};

static char folder[512];

int nw_placing(void) { return nw_placement && nw_placement != &nothing; }

/* Switches placement off without a message; `run` reports it at its end. */
static void off(const char *why) {
    nw_heap_stop();
    nw_placement = NULL;
    if (!nw_report || nw_report_is_inherited())
        return;
    snprintf(nw_report->off, sizeof nw_report->off, "%s", why);
    nw_report->state = NW_OFF;
}

void nw_preload_off(const char *why) {
    char line[256];
    int length = snprintf(line, sizeof line, "nodewise: placement switched off: %s\n", why);
    nw_stderr_line(line, (size_t)length);
    off(why);
}

/* Valgrind's helgrind and drd recognise locks but not lock-free code: they would report races between our own accesses,
 * and so change the program's exit status. Each is recognised by the library that it loads into the program. */
static int is_race_detector(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    return strstr(info->dlpi_name, "/vgpreload_helgrind-") || strstr(info->dlpi_name, "/vgpreload_drd-");
}

/* All objects of a place (zone.h) get the rule of the first one, since a recording treats them as one object. */
static uint32_t rule_of(const nw_allocation *allocation) {
    if (allocation->tag && *allocation->tag)
        return *allocation->tag - 1;
    uint32_t rule = nw_match(allocation, NW_KIND_HEAP);
    if (allocation->tag)
        *allocation->tag = rule + 1;
    return rule;
}

static void allocated(const nw_allocation *allocation) {
    int before = errno;
    if (!nw_reporting()) {
        errno = before;
        return;
    }
    nw_object object = {
        .page = (uint64_t)(uintptr_t)allocation->address >> nw_page_shift,
        .pages = allocation->mapped >> nw_page_shift,
        .rule = rule_of(allocation),
        .thread = nw_thread_ordinal(),
        .fresh = allocation->moved == 0,
    };
    if (nw_placing()) {
        nw_place(&object);
        nw_objects_add(&object);
        nw_caller_seen(allocation,
                       object.rule < nw_placement->rules.count || nw_placement->fallback.kind != NW_FIRST_TOUCH);
    }
    if (allocation->before != allocation->address || allocation->larger)
        nw_seen(&object);
    errno = before;
}

static void freed(void *address, size_t mapped, int kept) {
    int before = errno;
    (void)mapped;
    (void)kept;
    if (nw_placing())
        nw_objects_remove(address);
    errno = before;
}

/* Whether an allocation gets pages of its own: always if objects are listed. */
static int separate(uintptr_t caller, size_t bytes) { return nw_seeing() || nw_caller_separates(caller, bytes); }

/* Objects that the child inherits are in its parent's report. Most children only execute another program, so a
 * child opens a report of its own only when it places something. */
static void after_fork(void) { nw_report_inherited(); }

int nw_reporting(void) {
    if (nw_report_is_inherited() && nw_placement && !nw_report_open(folder))
        nw_preload_off("no memory after fork");
    return nw_placement != NULL;
}

/* This and `lacks` also run in a child of vfork; of its parent's memory they change only a count in the report. */
static const char *left_out(char *const *environment, int reset) {
    (void)reset;
    return nw_is_preloaded(environment) ? NULL : "another environment, or another root";
}

static void lacks(const char *why, const char *file) {
    (void)why;
    if (nw_placing() && access(file, X_OK) == 0)
        __atomic_fetch_add(&nw_report->unreached, 1, __ATOMIC_RELAXED);
}

/* The report covers the objects up to here; the process may go on as a program without a report. A child of vfork,
 * which has its parent's report, leaves it unchanged. */
static void leaves(int leaves) {
    uint32_t from = leaves ? NW_RUNNING : NW_EXECUTED, to = leaves ? NW_EXECUTED : NW_RUNNING;
    if (nw_placing() && !nw_report_is_inherited() && nw_report->pid == (uint32_t)getpid())
        __atomic_compare_exchange_n(&nw_report->state, &from, to, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Whether the table may be for this executable, judged by its header only: most processes execute another program. */
static int may_be_mine(int file) {
    nw_table head;
    struct stat status;
    if (pread(file, &head, sizeof head, 0) != (ssize_t)sizeof head || (head.device == 0 && head.inode == 0))
        return 1;
    return stat("/proc/self/exe", &status) == 0 && status.st_dev == head.device && status.st_ino == head.inode;
}

static const nw_table *table_for_me(void) {
    static char path[600];
    const char *why, *from = getenv("NODEWISE_PLACEMENT");
    if (!from || strlen(from) >= sizeof folder)
        return NULL;
    strcpy(folder, from);
    snprintf(path, sizeof path, "%s/table", folder);
    int file = open(path, O_RDONLY | O_CLOEXEC), mine = file >= 0 && may_be_mine(file);
    if (file >= 0)
        close(file);
    else if (errno != ENOENT && errno != EACCES) /* those mean that `run` has ended, or that our user is another */
        nw_preload_off("cannot open the table");
    const nw_table *table = mine ? nw_table_open(path, &why) : NULL;
    if (mine && !table)
        nw_preload_off(why);
    return table;
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
    int before = errno, races_watched = dl_iterate_phdr(is_race_detector, NULL);
    nw_stderr_start();
    if (!races_watched)
        nw_companion_prepare();
    nw_placement = table_for_me();
    if (nw_seen_start() && !nw_placement)
        nw_placement = &nothing;
    if (nw_placement && !nw_report_open(folder))
        nw_preload_off("no memory for the summary");
    if (nw_placement && races_watched)
        off("helgrind and drd would report nodewise's own accesses");
    if (nw_placement && nw_match_start()) {
        nw_kernel_start(nw_placement);
        place_rest();
        nw_threads_start();
        nw_seen_data();
        nw_place_variables();
        pthread_atfork(NULL, NULL, after_fork);
        if (nw_placing() && nw_placement->device == 0 && nw_placement->inode == 0) { /* the table is for all programs */
            nw_lacks = lacks;
            nw_left_out = left_out;
        }
        nw_leaves = leaves;
        if (nw_seeing() || nw_has_rules(NW_KIND_HEAP) || nw_placement->fallback.kind != NW_FIRST_TOUCH)
            nw_heap_start(&hooks);
    }
    nw_companion_start();
    errno = before;
}

/* Reads the placement back, but not in a child of vfork: it has this memory, but its end is not this process's end. */
__attribute__((destructor)) static void end(void) {
    if (!nw_placement || nw_report_is_inherited() || nw_report->state != NW_RUNNING ||
        nw_report->pid != (uint32_t)getpid())
        return;
    if (nw_seeing())
        nw_seen_end();
    if (nw_placing())
        nw_objects_read_back();
    else
        nw_report->state = NW_READ_BACK;
}

/* _exit runs no destructors, so the placement is read back here. */
__attribute__((visibility("default"), noreturn)) void _exit(int status) {
    end();
    for (;;)
        syscall(SYS_exit_group, status);
}

__attribute__((visibility("default"), noreturn)) void _Exit(int status) { _exit(status); }
