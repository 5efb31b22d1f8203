/* The machine as this process may use it: nodes with memory, CPUs, pages. Read once, from /sys and
 * /proc, so that it works where system calls about placement are refused. */
#include "kernel.h"
#include "library.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYS "/sys/devices/system"
#define CPUS 8192
#define LINE 16384

typedef struct bits {
    unsigned long words[CPUS / 64];
} bits;

static int has(const bits *set, int bit) { return bit >= 0 && bit < CPUS && set->words[bit / 64] >> (bit % 64) & 1; }
static void add(bits *set, int bit) {
    if (bit >= 0 && bit < CPUS)
        set->words[bit / 64] |= 1ul << (bit % 64);
}

static nw_machine machine;
static bits affinity; /* when the library was loaded: binding threads later does not restrict it */

__attribute__((constructor)) static void note_affinity(void) {
    int before = errno;
    if (sched_getaffinity(0, sizeof affinity, (cpu_set_t *)&affinity) != 0)
        memset(&affinity, 0, sizeof affinity);
    errno = before;
}

/* A file's text, "" if it cannot be read. */
static const char *text_of(char *text, size_t size, const char *format, ...) {
    char path[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    for (ssize_t got = 1; file >= 0 && got > 0 && length < size - 1; length += got > 0 ? (size_t)got : 0)
        got = read(file, text + length, size - 1 - length);
    if (file >= 0)
        close(file);
    text[length] = 0;
    return text;
}

/* "0-3,8" */
static bits list_of(const char *text) {
    bits set = {{0}};
    while (isdigit((unsigned char)*text)) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long bit = first; bit <= last && bit < CPUS; bit++)
            add(&set, (int)bit);
        text = *end == ',' ? end + 1 : end;
    }
    return set;
}

static int count_of(const bits *set) {
    int count = 0;
    for (int i = 0; i < CPUS / 64; i++)
        count += __builtin_popcountl(set->words[i]);
    return count;
}

/* Read from /proc/self/status, which is available even if a sandbox forbids the system calls of placement. */
static bits allowed_nodes(char *text) {
    const char *line = strstr(text_of(text, LINE, "/proc/self/status"), "Mems_allowed_list:");
    return list_of(line ? line + strcspn(line, "0123456789\n") : "");
}

/* Numbers of a set in new memory; at least one. */
static int *numbers(const bits *set, int *count) {
    int *list = calloc((size_t)count_of(set) + 1, sizeof *list);
    *count = 0;
    for (int i = 0; list && i < CPUS; i++)
        if (has(set, i))
            list[(*count)++] = i;
    return list;
}

/* Where there is no NUMA, everything is node 0. */
static bits read_nodes(char *text) {
    bits memory = list_of(text_of(text, LINE, SYS "/node/has_memory")), allowed = allowed_nodes(text), both = {{0}};
    for (int i = 0; i < CPUS / 64; i++)
        both.words[i] = memory.words[i] & allowed.words[i];
    if (count_of(&both) == 0)
        both = count_of(&allowed) ? allowed : memory;
    if (count_of(&both) == 0)
        add(&both, 0);
    return both;
}

static void read_cpu_nodes(char *text) {
    bits online = list_of(text_of(text, LINE, SYS "/node/online"));
    bits cpus = list_of(text_of(text, LINE, SYS "/cpu/online"));
    machine.online_nodes = count_of(&online) ? count_of(&online) : 1;
    for (int cpu = 0; cpu < CPUS; cpu++)
        if (has(&cpus, cpu) || has(&affinity, cpu))
            machine.cpu_limit = cpu + 1;
    machine.cpu_nodes = malloc(((size_t)machine.cpu_limit + 1) * sizeof(int));
    for (int cpu = 0; machine.cpu_nodes && cpu < machine.cpu_limit; cpu++)
        machine.cpu_nodes[cpu] = has(&cpus, cpu) || has(&affinity, cpu) ? machine.nodes[0] : -1;
    for (int node = 0; machine.cpu_nodes && node < CPUS; node++) {
        if (!has(&online, node))
            continue;
        bits of = list_of(text_of(text, LINE, SYS "/node/node%d/cpulist", node));
        for (int cpu = 0; cpu < machine.cpu_limit; cpu++)
            if (has(&of, cpu))
                machine.cpu_nodes[cpu] = node;
    }
}

/* The number of usable hardware threads of the same core with lower CPU numbers. */
static int sibling_rank(char *text, int cpu) {
    bits siblings = list_of(text_of(text, LINE, SYS "/cpu/cpu%d/topology/thread_siblings_list", cpu));
    int rank = 0;
    for (int other = 0; other < cpu; other++)
        rank += has(&siblings, other) && has(&affinity, other);
    return rank;
}

typedef struct place {
    int rank, node, cpu;
} place;

static int by_rank_and_node(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static void add_affine(int cpu) { add(&affinity, cpu); }

static void read_cpus(char *text) {
    nw_openmp_cpus(add_affine);
    if (count_of(&affinity) == 0)
        add(&affinity, 0);
    machine.cpus = numbers(&affinity, &machine.cpu_count);
    place *order = calloc((size_t)machine.cpu_count + 1, sizeof *order);
    for (int i = 0; order && i < machine.cpu_count; i++) {
        int cpu = machine.cpus[i];
        order[i] = (place){sibling_rank(text, cpu), machine.cpu_nodes ? machine.cpu_nodes[cpu] : 0, cpu};
    }
    if (order)
        qsort(order, (size_t)machine.cpu_count, sizeof *order, by_rank_and_node);
    for (int i = 0; order && i < machine.cpu_count; i++)
        machine.cpus[i] = order[i].cpu;
    free(order);
}

static void read_pages(char *text) {
    machine.page = (size_t)sysconf(_SC_PAGESIZE);
    text_of(text, LINE, "/sys/kernel/mm/transparent_hugepage/enabled");
    machine.huge_always = strstr(text, "[always]") != NULL;
    if (!machine.huge_always && !strstr(text, "[madvise]"))
        return;
    size_t huge = strtoul(text_of(text, LINE, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"), NULL, 10);
    if (huge > machine.page && (huge & (huge - 1)) == 0)
        machine.huge = huge;
    machine.huge_always &= machine.huge > 0;
}

/* Nodes with CPUs and memory; if no node has both, all nodes with memory. */
static void find_processors(void) {
    machine.processors = calloc((size_t)machine.node_count + 1, sizeof(int));
    for (int i = 0; machine.processors && i < machine.node_count; i++)
        for (int c = 0; c < machine.cpu_count; c++)
            if (nw_cpu_node_of(&machine, machine.cpus[c]) == machine.nodes[i]) {
                machine.processors[machine.processor_count++] = machine.nodes[i];
                break;
            }
    for (int i = 0; machine.processors && machine.processor_count == 0 && i < machine.node_count; i++)
        machine.processors[i] = machine.nodes[i];
    if (machine.processor_count == 0)
        machine.processor_count = machine.node_count;
}

/* Reads the distances from a node, by node number. The kernel lists those to online nodes, in ascending order of the
 * nodes; what is not listed is farthest. */
static void read_distances(char *text, const bits *online, int node, int *distances) {
    for (int to = 0; to < NW_MASK_NODES; to++)
        distances[to] = INT_MAX;
    int to = 0;
    for (char *at = (char *)text_of(text, LINE, SYS "/node/node%d/distance", node), *end;; to++, at = end) {
        while (to < NW_MASK_NODES && !has(online, to))
            to++;
        int distance = (int)strtol(at, &end, 10);
        if (end == at || to == NW_MASK_NODES)
            break;
        distances[to] = distance;
    }
}

/* The index of the node of a list that is nearest to `node`. */
static int nearest_to(const int *distances, int node, const int *nodes, int count) {
    int least = INT_MAX, equal = 0;
    for (int i = 0; i < count; i++) {
        if (nodes[i] == node)
            return i;
        equal = distances[nodes[i]] < least ? 1 : equal + (distances[nodes[i]] == least);
        least = distances[nodes[i]] < least ? distances[nodes[i]] : least;
    }
    int skip = node % equal;
    for (int i = 0; i < count; i++)
        if (distances[nodes[i]] == least && skip-- == 0)
            return i;
    return 0;
}

int *nw_nearest_of(const int *nodes, int count, int *size) {
    *size = 0;
    for (int cpu = 0; machine.cpu_nodes && cpu < machine.cpu_limit; cpu++)
        if (machine.cpu_nodes[cpu] >= *size)
            *size = machine.cpu_nodes[cpu] + 1;
    int *nearest = calloc((size_t)*size + 1, sizeof *nearest), *distances = malloc(NW_MASK_NODES * sizeof *distances);
    char *text = malloc(LINE);
    if (nearest && distances && text) {
        bits online = list_of(text_of(text, LINE, SYS "/node/online"));
        for (int node = 0; node < *size; node++) {
            read_distances(text, &online, node, distances);
            nearest[node] = nearest_to(distances, node, nodes, count);
        }
    } else {
        free(nearest);
        nearest = NULL;
    }
    free(distances);
    free(text);
    return nearest;
}

size_t nw_available_bytes(void) {
    char text[4096];
    const char *line = strstr(text_of(text, sizeof text, "/proc/meminfo"), "MemAvailable:");
    return line ? (size_t)strtoull(line + strlen("MemAvailable:"), NULL, 10) << 10 : 0;
}

/* NODEWISE_PRETEND=4x2: four nodes of two CPUs, numbered node by node. Any other form is reported on standard error,
 * since the program would otherwise run unnoticed on another machine than was meant. */
static int pretend(void) {
    const char *text = getenv("NODEWISE_PRETEND");
    char of_nodes[5], of_cpus[5];
    int nodes = 0, cpus = 0, end = 0;
    if (!text || !*text)
        return 0;
    if (sscanf(text, "%4[0-9]x%4[0-9]%n", of_nodes, of_cpus, &end) == 2 && !text[end]) {
        nodes = atoi(of_nodes);
        cpus = atoi(of_cpus);
    }
    if (nodes < 1 || cpus < 1 || nodes > NW_MASK_NODES || nodes * cpus > CPUS) {
        snprintf(machine.ignored, sizeof machine.ignored, "NODEWISE_PRETEND=%.24s is not NODESxCPUS (as 4x2): ignored",
                 text);
        fprintf(stderr, "nodewise: %s\n", machine.ignored);
        return 0;
    }
    memset(&affinity, 0, sizeof affinity);
    for (int cpu = 0; cpu < nodes * cpus; cpu++)
        add(&affinity, cpu);
    bits all = {{0}};
    for (int node = 0; node < nodes; node++)
        add(&all, node);
    machine.pretended = 1;
    machine.nodes = numbers(&all, &machine.node_count);
    machine.cpus = numbers(&affinity, &machine.cpu_count);
    machine.online_nodes = nodes;
    machine.cpu_limit = nodes * cpus;
    machine.cpu_nodes = calloc((size_t)machine.cpu_limit, sizeof(int));
    for (int cpu = 0; machine.cpu_nodes && cpu < machine.cpu_limit; cpu++)
        machine.cpu_nodes[cpu] = cpu / cpus;
    return 1;
}

/* If there was no memory for these lists, the machine has one node and one CPU. */
static void lacking(void) {
    static int zero[1], zeros[1];
    if (machine.nodes && machine.cpus && machine.cpu_nodes && machine.processors)
        return;
    machine.nodes = machine.processors = machine.cpu_nodes = zero;
    machine.cpus = zeros;
    machine.node_count = machine.processor_count = machine.cpu_count = machine.cpu_limit = 1;
}

static void read_machine(void) {
    static char text[LINE];
    if (!pretend()) {
        bits nodes = read_nodes(text);
        machine.nodes = numbers(&nodes, &machine.node_count);
        if (machine.nodes)
            read_cpu_nodes(text);
        read_cpus(text);
    }
    read_pages(text);
    find_processors();
    lacking();
}

const nw_machine *nw_machine_now(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int before = errno;
    pthread_once(&once, read_machine);
    errno = before;
    return &machine;
}

int nw_cpu_node_of(const nw_machine *of, int cpu) {
    return of->cpu_nodes && cpu >= 0 && cpu < of->cpu_limit ? of->cpu_nodes[cpu] : -1;
}

int nw_machine_has_node(const nw_machine *of, int node) {
    for (int i = 0; i < of->node_count; i++)
        if (of->nodes[i] == node)
            return 1;
    return 0;
}

static int copied(const int *from, int count, int *to, int size) {
    for (int i = 0; to && i < count && i < size; i++)
        to[i] = from[i];
    return count;
}

int nw_nodes(int *nodes, int size) {
    const nw_machine *of = nw_machine_now();
    if (of->ignored[0])
        nw_fail(NW_OK, "%s", of->ignored);
    return copied(of->nodes, of->node_count, nodes, size);
}

int nw_cpus(int *cpus, int size) {
    const nw_machine *of = nw_machine_now();
    return copied(of->cpus, of->cpu_count, cpus, size);
}

int nw_cpu_node(int cpu) { return nw_cpu_node_of(nw_machine_now(), cpu); }

size_t nw_page_bytes(void) { return nw_machine_now()->page; }

size_t nw_huge_page_bytes(void) { return nw_machine_now()->huge; }
