/* On a machine with several nodes: copies lie, by the kernel's page map, on the nodes that were chosen, and each CPU is
 * given the nearest one, by the kernel's distances; of arrays and of files, with the guard. With only one node there is
 * nothing to check: the test says so and succeeds. */
#define _GNU_SOURCE
#include "check.h"
#include "nodewise.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NODES 64
#define CPUS 256

static int nodes[NODES], node_count, cpus[CPUS], cpu_count;
static size_t page;

static unsigned char pattern(size_t at) { return (unsigned char)(at * 2654435761u >> 24 | 1); }

static void fill(char *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (char)pattern(i);
}

static int intact(const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)bytes[i] != pattern(i))
            return 0;
    return 1;
}

static void run_on(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "cpu %d", cpu);
}

static int listed(const int *list, int count, int node) {
    for (int i = 0; i < count; i++)
        if (list[i] == node)
            return 1;
    return 0;
}

/* The distance between two nodes, as the kernel gives it; all nodes of the laboratory are online. */
static int distance(int from, int to) {
    char path[80];
    int value = -1;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/distance", from);
    FILE *file = fopen(path, "r");
    for (int i = 0; file && i <= to; i++)
        if (fscanf(file, "%d", &value) != 1)
            value = -1;
    if (file)
        fclose(file);
    CHECK(value > 0, "%s", path);
    return value;
}

/* The one node that all pages of some memory are on; -1: several, or none. */
static int node_of(const char *memory, size_t bytes) {
    size_t pages[NODES] = {0};
    int on = -1;
    CHECK(nw_adopt((void *)memory, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    CHECK(nw_histogram(memory, pages, NODES, NULL) == NW_OK, "%s", nw_last_error());
    for (int node = 0; node < NODES; node++)
        if (pages[node])
            on = pages[node] == (bytes + page - 1) / page ? node : -1;
    nw_forget((void *)memory);
    return on;
}

/* Each CPU gets a copy that lies on one node of the list, to which no other one of it is nearer. Returns a mask of the
 * nodes that were given. */
static unsigned long nearest_to_cpus(const char *array, size_t bytes, const int *list, int count) {
    unsigned long given = 0;
    for (int i = 0; i < cpu_count; i++) {
        run_on(cpus[i]);
        int here = nw_cpu_node(cpus[i]), least = INT_MAX;
        const char *copy = nw_nearest(array);
        CHECK(copy && copy != array && intact(copy, bytes), "the copy for CPU %d", cpus[i]);
        int on = node_of(copy, bytes);
        CHECK(listed(list, count, on), "the copy for CPU %d lies on %d", cpus[i], on);
        for (int j = 0; j < count; j++)
            least = distance(here, list[j]) < least ? distance(here, list[j]) : least;
        CHECK(on >= 0 && distance(here, on) == least, "the copy for CPU %d of node %d lies on %d", cpus[i], here, on);
        given |= on >= 0 ? 1ul << on : 0;
    }
    return given;
}

/* The kernel's counts: all of a copy on each node of the list, and nothing elsewhere. */
static void counted(const void *array, size_t bytes, const int *list, int count) {
    size_t pages[NODES], each = (bytes + page - 1) / page;
    nw_copies copies;
    CHECK(nw_copies_of(array, &copies, pages, NODES) == NW_OK, "%s", nw_last_error());
    CHECK(copies.count == count && copies.bytes == each * page * (size_t)count && copies.elsewhere == 0,
          "%d copies of %zu bytes, %zu pages elsewhere", copies.count, copies.bytes, copies.elsewhere);
    for (int node = 0; node < NODES; node++)
        CHECK(pages[node] == (listed(list, count, node) ? each : 0), "%zu pages on node %d", pages[node], node);
}

/* Two nodes, one of them the first and the last; then one; then all. */
static void chosen_nodes(size_t bytes) {
    const int ends[] = {nodes[node_count - 1], nodes[0]};
    char *array = nw_alloc_1d(bytes, 1);
    fill(array, bytes);
    CHECK(nw_replicate_on(array, ends, 2) == NW_OK, "%s", nw_last_error());
    counted(array, bytes, ends, 2);
    CHECK(nearest_to_cpus(array, bytes, ends, 2) == (1ul << ends[0] | 1ul << ends[1]), "a copy is not used");
    CHECK(nw_drop_copies(array) == NW_OK && nw_replicate_on(array, ends, 1) == NW_OK, "%s", nw_last_error());
    counted(array, bytes, ends, 1);
    nearest_to_cpus(array, bytes, ends, 1);
    CHECK(nw_drop_copies(array) == NW_OK && nw_replicate_on(array, nodes, node_count) == NW_OK, "%s", nw_last_error());
    counted(array, bytes, nodes, node_count);
    nearest_to_cpus(array, bytes, nodes, node_count);
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

static void of_a_file(size_t bytes) {
    int file = memfd_create("model", 0);
    char *content = malloc(bytes), zero = 0;
    fill(content, bytes);
    run_on(cpus[0]);
    CHECK(write(file, content, bytes) == (ssize_t)bytes, "no file");
    free(content);
    const int ends[] = {nodes[0], nodes[node_count - 1]};
    char *model = nw_map_file(file, 0, 0);
    CHECK(model && nw_replicate_on(model, ends, 2) == NW_OK, "%s", nw_last_error());
    counted(model, bytes, ends, 2);
    nearest_to_cpus(model, bytes, ends, 2);
    CHECK(nw_check_copies(model) == NW_OK, "%s", nw_last_error());
    CHECK(pwrite(file, &zero, 1, (off_t)bytes - 3) == 1 && nw_check_copies(model) == NW_STALE, "%s", nw_last_error());
    char says[40];
    snprintf(says, sizeof says, "from byte %zu on", bytes - 3);
    CHECK(strstr(nw_last_error(), says) != NULL, "\"%s\" lacks \"%s\"", nw_last_error(), says);
    CHECK(nw_free(model) == NW_OK && close(file) == 0, "%s", nw_last_error());
}

/* The guard, which is on in all of this. */
static void a_write(size_t bytes) {
    char *array = nw_alloc_1d(bytes, 1), text[512];
    int before = dup(STDERR_FILENO), printed = memfd_create("printed", 0);
    fill(array, bytes);
    CHECK(nw_replicate(array) == NW_OK, "%s", nw_last_error());
    const char *copy = nw_nearest(array);
    CHECK(dup2(printed, STDERR_FILENO) == STDERR_FILENO, "no file for what is printed");
    ((volatile char *)array)[bytes / 2] = 0;
    dup2(before, STDERR_FILENO);
    ssize_t got = pread(printed, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = 0;
    CHECK(strstr(text, "after it was copied") && strchr(text, '\n') == text + strlen(text) - 1, "%s", text);
    CHECK(array[bytes / 2] == 0 && nw_nearest(array) == array && intact(copy, bytes), "after the write");
    CHECK(nw_check_copies(array) == NW_STALE, "%s", nw_last_error());
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
    close(before), close(printed);
}

/* The argument is the number of nodes that the machine must have; without it, one node suffices. */
int main(int count, char **arguments) {
    setenv("NODEWISE_GUARD", "1", 1);
    node_count = nw_nodes(nodes, NODES);
    cpu_count = nw_cpus(cpus, CPUS);
    page = nw_page_bytes();
    if (count > 1)
        CHECK(node_count == atoi(arguments[1]), "%d nodes", node_count);
    if (node_count < 2) {
        printf("1 passed, 0 failed: one node, no copies\n");
        return 0;
    }
    size_t large = nw_huge_page_bytes() ? 2 * nw_huge_page_bytes() : 600 * page;
    chosen_nodes(37 * page + 11);
    chosen_nodes(large);
    of_a_file(large + 4321);
    a_write(50 * page);
    return check_end();
}
