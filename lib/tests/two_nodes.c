/* A simulated machine of two nodes: the files that the library reads about the machine, and its system calls
 * for placement, are answered here, so that a chosen call can be made to fail. */
#define _GNU_SOURCE
#include "check.h"
#include "nodewise.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MODE_DEFAULT = 0, MODE_PREFERRED = 1 };

static int mappings_left = -1, memory_left = -1; /* calls until ENOMEM; -1: no limit */
static int defaults;                             /* calls that restored the kernel's default policy */
static int others_node = -1;                     /* the node reported for all pages; -1: the one they were moved to */

int __real_open(const char *path, int flags, ...);
long __real_syscall(long number, ...);
void *__real_calloc(size_t count, size_t size);

static int file_of(const char *text) {
    int file = memfd_create("made up", 0);
    return write(file, text, strlen(text)) < 0 || lseek(file, 0, SEEK_SET) < 0 ? -1 : file;
}

int __wrap_open(const char *path, int flags, ...) {
    static const char *const texts[][2] = {{"/node/has_memory", "0-1\n"},
                                           {"/node/online", "0-1\n"},
                                           {"/node0/cpulist", "0\n"},
                                           {"/node1/cpulist", "1\n"},
                                           {"/distance", "10 20\n"},
                                           {"/self/status", "Mems_allowed_list:\t0-1\n"},
                                           {"hugepage/enabled", "always madvise [never]\n"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strstr(path, texts[i][0]))
            return file_of(texts[i][1]);
    return __real_open(path, flags);
}

static long bound(long mode) {
    defaults += mode == MODE_DEFAULT;
    if (mode != MODE_PREFERRED || mappings_left < 0 || mappings_left-- > 0)
        return 0;
    mappings_left = -1;
    errno = ENOMEM;
    return -1;
}

/* move_pages, simulated by a table of nodes, indexed by the lower bits of a page's number. */
static long moved(long count, char *const *pages, const int *nodes, int *status) {
    static unsigned char lies_on[1 << 16];
    for (long i = 0; i < count; i++) {
        unsigned char *on = &lies_on[(uintptr_t)pages[i] / nw_page_bytes() % sizeof lies_on];
        if (nodes)
            *on = (unsigned char)nodes[i];
        status[i] = others_node >= 0 ? others_node : *on;
    }
    return 0;
}

long __wrap_syscall(long number, ...) {
    va_list arguments;
    long a[6];
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_mbind)
        return bound(a[2]);
    if (number == SYS_move_pages)
        return moved(a[1], (char **)a[2], (int *)a[3], (int *)a[4]);
    if (number == SYS_set_mempolicy || number == SYS_get_mempolicy)
        return 0;
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void *__wrap_calloc(size_t count, size_t size) {
    return memory_left >= 0 && memory_left-- == 0 ? NULL : __real_calloc(count, size);
}

/* Whether placing an array by first touch restores the kernel's default policy. */
static int given_back(void *array) {
    int before = defaults;
    CHECK(nw_place(array, nw_first_touch()) == NW_OK, "%s", nw_last_error());
    return defaults > before;
}

static nw_policy weighted(void) {
    static const int nodes[] = {0, 1};
    static const unsigned weights[] = {2, 1};
    nw_policy policy = nw_cyclic(NW_PAGES, 1);
    policy.nodes = nodes;
    policy.node_count = 2;
    policy.weights = weights;
    return policy;
}

static void adopted_again(void) {
    size_t bytes = 100 * nw_page_bytes(), half = bytes / 2;
    char *memory = aligned_alloc(nw_page_bytes(), bytes);
    memset(memory, 1, bytes);
    CHECK(nw_adopt(memory, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    CHECK(nw_place(memory, weighted()) == NW_OK, "%s", nw_last_error());
    CHECK(nw_replicate(memory) >= 0, "%s", nw_last_error());
    const char *copy = nw_nearest(memory);
    CHECK(nw_adopt(memory, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    CHECK(nw_adopt(memory, 1, 1, &half) == NW_INVALID, "another shape");
    CHECK(nw_nearest(memory) == copy && copy[7] == 1, "the copies went");
    CHECK(given_back(memory), "the policy in force was forgotten");
    CHECK(nw_forget(memory) == NW_OK, "%s", nw_last_error());
    free(memory);
}

/* If there can be no more mappings, the fallback sets a policy too, and that can be removed. */
static void mappings_end(void) {
    char *array = nw_alloc_1d(64 * nw_page_bytes(), 1);
    mappings_left = 5;
    CHECK(nw_place(array, weighted()) == NW_OK && mappings_left == -1, "%s", nw_last_error());
    CHECK(given_back(array), "the fallback's policy was forgotten");
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

/* Each allocation of a call fails once: the status says so, and the array stays as it is. */
static void memory_ends(void) {
    double *array = nw_alloc_2d(64, nw_page_bytes(), sizeof *array);
    nw_policy bind = nw_bind(NW_ROWS);
    bind.threads = 3;
    for (int call = 0; call < 3; call++)
        for (int after = 0;; after++) {
            memory_left = after;
            int status = call == 0   ? nw_place(array, bind)
                         : call == 1 ? nw_scatter(array, NULL, 0)
                                     : nw_migrate_rows(array, 1, 8, 8);
            int failed = memory_left < 0;
            memory_left = -1;
            CHECK(status == (failed ? NW_NO_MEMORY : NW_OK), "call %d, allocation %d: %d, %s", call, after, status,
                  nw_last_error());
            CHECK(failed || after >= 2, "call %d allocates %d times", call, after);
            if (!failed)
                break;
        }
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

static void copies_elsewhere(void) {
    char *array = nw_alloc_1d(64 * nw_page_bytes(), 1);
    others_node = 1;
    CHECK(nw_replicate(array) == NW_PARTLY && strstr(nw_last_error(), "64 of the 128"), "%s", nw_last_error());
    others_node = -1;
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

static void nothing_in_the_middle(void) {
    double *array = nw_alloc_2d(8, nw_page_bytes() / sizeof *array, sizeof *array);
    CHECK(nw_migrate_columns(array, 1, 3, 0) == NW_ROUNDED && strstr(nw_last_error(), "nothing was moved"), "%s",
          nw_last_error());
    CHECK(nw_migrate_columns(array, 9, 3, 0) == NW_INVALID && strstr(nw_last_error(), "nodes 0-1 only"), "%s",
          nw_last_error());
    CHECK(nw_place(array, nw_cyclic(NW_COLUMNS, 64)) == NW_ROUNDED && strstr(nw_last_error(), "node 1 gets no page"),
          "%s", nw_last_error());
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

int main(void) {
    int nodes[2];
    CHECK(nw_nodes(nodes, 2) == 2 && nodes[1] == 1, "not the machine made up");
    const char *pretended = getenv("NODEWISE_PRETEND");
    CHECK((strstr(nw_last_error(), "is not NODESxCPUS") != NULL) == (pretended && *pretended), "%s: \"%s\"", pretended,
          nw_last_error());
    adopted_again();
    mappings_end();
    memory_ends();
    copies_elsewhere();
    nothing_in_the_middle();
    return check_end();
}
