/* On a machine with several nodes: the kernel reports every page where the distribution puts it, in new arrays
 * and in touched ones; pages that move keep their content, are counted, and take few calls. With only one node
 * there is nothing to check: the test says so and succeeds. */
#define _GNU_SOURCE
#include "check.h"
#include "nodewise.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES 64

static int nodes[NODES], node_count;
static size_t page;

static nw_statistics statistics(void) {
    nw_statistics now;
    nw_get_statistics(&now);
    return now;
}

static int in_list(const nw_distr *distr, int node) {
    int list[NODES], count = nw_distr_nodes(distr, list, NODES);
    for (int i = 0; i < count && i < NODES; i++)
        if (list[i] == node)
            return 1;
    return 0;
}

static int *map_of(const void *array, size_t *pages) {
    nw_shape shape;
    nw_shape_of(array, &shape);
    *pages = shape.pages;
    int *map = malloc(shape.pages * sizeof *map);
    CHECK(nw_page_nodes(array, map, shape.pages) == NW_OK, "%s", nw_last_error());
    return map;
}

/* The number of pages that are not where the policy puts them; if the kernel may choose, not on a node of the list. */
static size_t elsewhere(const void *array, nw_policy policy, const char *what) {
    size_t pages, wrong = 0;
    int *map = map_of(array, &pages);
    nw_distr *distr = nw_describe(array, policy);
    for (size_t i = 0; i < pages; i++) {
        int wanted = nw_distr_page_node(distr, i);
        int right = wanted >= 0 ? map[i] == wanted : policy.kind == NW_FIRST_TOUCH || in_list(distr, map[i]);
        if (!right && wrong++ == 0)
            printf("# %s: page %zu of %zu is on node %d, wanted on %d\n", what, i, pages, map[i], wanted);
    }
    nw_distr_free(distr);
    free(map);
    return wrong;
}

static unsigned char pattern(size_t at) { return (unsigned char)(at * 2654435761u >> 24 | 1); }

static void fill(void *array, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64)
        ((volatile unsigned char *)array)[i] = pattern(i);
}

static int intact(const void *array, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64)
        if (((const unsigned char *)array)[i] != pattern(i))
            return 0;
    return 1;
}

typedef struct wish {
    const char *name;
    nw_policy policy;
} wish;

static nw_policy over(nw_policy policy, const int *list, int count, const unsigned *weights) {
    policy.nodes = list;
    policy.node_count = count;
    policy.weights = weights;
    return policy;
}

static int reversed[NODES], some[NODES];
static unsigned weights[NODES];

static int wishes(wish *all) {
    int n = 0;
    for (int i = 0; i < node_count; i++) {
        reversed[i] = nodes[node_count - 1 - i];
        weights[i] = (unsigned)i % 3 + 1;
    }
    some[0] = nodes[0];
    some[1] = nodes[node_count - 1];
#define WISH(...) \
    all[n++] = (wish) { #__VA_ARGS__, __VA_ARGS__ }
    WISH(nw_cyclic(NW_PAGES, 1));
    WISH(nw_cyclic(NW_PAGES, 5));
    WISH(nw_cyclic(NW_ROWS, 3));
    WISH(nw_cyclic(NW_COLUMNS, 200));
    WISH(nw_block_cyclic(700));
    WISH(nw_block_cyclic(512));
    WISH(over(nw_cyclic(NW_PAGES, 1), reversed, node_count, NULL));
    WISH(over(nw_cyclic(NW_PAGES, 1), nodes, node_count, weights));
    WISH(over(nw_cyclic(NW_PAGES, 1), some, 2, NULL));
    WISH(nw_skew(NW_PAGES, 1));
    WISH(nw_skew(NW_ROWS, 4));
    WISH(nw_skew(NW_COLUMNS, 512));
    WISH(nw_prime(NW_PAGES, 1, 17));
    WISH(nw_prime(NW_ROWS, 2, 19));
    WISH(nw_prime(NW_COLUMNS, 300, 17));
    WISH(nw_random(NW_PAGES, 1));
    WISH(over(nw_random(NW_ROWS, 3), nodes, node_count, weights));
    WISH(nw_random(NW_COLUMNS, 100));
    WISH(nw_bind_all());
    WISH(over(nw_bind_all(), some + 1, 1, NULL));
    WISH(over(nw_bind_all(), some, 2, NULL));
    WISH(nw_bind(NW_PAGES));
    WISH(nw_bind(NW_ROWS));
    WISH(nw_bind(NW_COLUMNS));
    WISH(nw_block_exclusive(0));
    WISH(nw_block_exclusive(2));
    WISH(nw_blocks(NW_PAGES));
    WISH(over(nw_blocks(NW_ROWS), nodes, node_count, weights));
    WISH(nw_blocks(NW_COLUMNS));
#undef WISH
    return n;
}

static int placed(int status) { return status == NW_OK || status == NW_ROUNDED; }

static void fresh_array(const wish *of, size_t rows, size_t columns) {
    double *array = nw_alloc_2d(rows, columns, sizeof *array);
    uint64_t before = statistics().calls;
    int status = nw_place(array, of->policy);
    CHECK(placed(status), "%s: %d, %s", of->name, status, nw_last_error());
    /* At most one call for each stretch, not one for each page. */
    CHECK(statistics().calls - before <= 8192 + 64, "%s: %d calls", of->name, (int)(statistics().calls - before));
    fill(array, rows * columns * sizeof *array);
    CHECK(elsewhere(array, of->policy, of->name) == 0, "%s, fresh", of->name);
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

/* Places one touched array by one policy after the other; the content stays. */
static void touched_array(const wish *all, int count, size_t rows, size_t columns) {
    size_t bytes = rows * columns * sizeof(double), pages;
    double *array = nw_alloc_2d(rows, columns, sizeof *array);
    fill(array, bytes);
    for (int i = 0; i < count; i++) {
        int *before = map_of(array, &pages);
        uint64_t moved = 0, counted = statistics().pages_moved;
        int status = nw_place(array, all[i].policy);
        CHECK(placed(status), "%s: %d, %s", all[i].name, status, nw_last_error());
        CHECK(elsewhere(array, all[i].policy, all[i].name) == 0, "%s, touched", all[i].name);
        int *after = map_of(array, &pages);
        for (size_t p = 0; p < pages; p++)
            moved += before[p] != after[p];
        CHECK(statistics().pages_moved - counted == moved, "%s: %d pages moved, %d counted", all[i].name, (int)moved,
              (int)(statistics().pages_moved - counted));
        free(before);
        free(after);
    }
    CHECK(intact(array, bytes), "content after %d policies", count);
    CHECK(statistics().page_seconds > 0, "moving took no time");
    nw_free(array);
}

/* If an array is placed when a part of it is touched, the rest follows the policy when it is touched. */
static void half_touched(void) {
    size_t pages = 1000;
    for (int times = 0; times < 3; times++) {
        char *array = nw_alloc_1d(pages * page, 1);
        fill(array, pages * page / 3);
        nw_policy policy = times == 0   ? nw_cyclic(NW_PAGES, 1)
                           : times == 1 ? nw_blocks(NW_PAGES)
                                        : nw_skew(NW_PAGES, 1);
        CHECK(placed(nw_place(array, policy)), "%s", nw_last_error());
        fill(array + pages * page / 3, pages * page - pages * page / 3);
        CHECK(elsewhere(array, policy, "half touched") == 0, "half touched, %d", times);
        nw_free(array);
    }
}

/* More stretches than the kernel allows mappings: pages are placed by touching them. */
static void many_stretches(void) {
    size_t pages = 12000, bytes = pages * page;
    nw_policy policy[] = {nw_skew(NW_PAGES, 1), nw_random(NW_PAGES, 1), nw_block_exclusive(0)};
    for (int i = 0; i < 3; i++) {
        policy[i].granule = NW_GRANULE_BASE;
        char *array = nw_alloc_2d(pages / 4, 4 * page, 1);
        uint64_t before = statistics().calls;
        int status = nw_place(array, policy[i]);
        CHECK(placed(status), "%d: %d, %s", i, status, nw_last_error());
        CHECK(statistics().calls - before <= (node_count < 3 ? 8192 + 64 : 200), "%d: %d calls", i,
              (int)(statistics().calls - before));
        fill(array, bytes);
        CHECK(elsewhere(array, policy[i], "many stretches") == 0, "%d", i);
        CHECK(placed(nw_place(array, policy[(i + 1) % 3])), "%s", nw_last_error());
        CHECK(elsewhere(array, policy[(i + 1) % 3], "many stretches") == 0, "%d", i);
        CHECK(intact(array, bytes), "%d", i);
        nw_free(array);
    }
}

/* If memory is too short to touch them, parts are longer, and the status says so. */
static void short_of_memory(void) {
    size_t bytes = (size_t)sysconf(_SC_AVPHYS_PAGES) / 10 * 7 * page;
    nw_policy policy = nw_skew(NW_PAGES, 1);
    policy.granule = NW_GRANULE_BASE;
    char *array = nw_alloc_1d(bytes, 1);
    uint64_t before = statistics().calls;
    CHECK(array && nw_place(array, policy) == NW_PARTLY, "%s", nw_last_error());
    CHECK(statistics().calls - before <= 8192 + 64, "%d calls", (int)(statistics().calls - before));
    size_t untouched, histogram[NODES];
    CHECK(nw_histogram(array, histogram, NODES, &untouched) == NW_OK && untouched == bytes / page, "%zu untouched",
          untouched);
    nw_free(array);
}

/* Adopted memory that begins and ends within pages. */
static void adopted(void) {
    size_t pages = 300;
    char *memory = mmap(NULL, (pages + 2) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *array = memory + page / 2;
    size_t bytes = (pages + 1) * page;
    fill(memory, (pages + 2) * page);
    int before[2], *map;
    size_t all;
    CHECK(nw_adopt(array, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    map = map_of(array, &all);
    CHECK(all == pages + 2, "%zu pages", all);
    before[0] = map[0];
    before[1] = map[all - 1];
    free(map);
    nw_policy policy = over(nw_cyclic(NW_PAGES, 1), reversed, node_count, NULL);
    CHECK(placed(nw_place(array, policy)), "%s", nw_last_error());
    nw_distr *distr = nw_describe(array, policy);
    map = map_of(array, &all);
    CHECK(map[0] == before[0] && map[all - 1] == before[1], "shared pages moved");
    CHECK(nw_distr_page_node(distr, 0) == -1 && nw_distr_page_node(distr, all - 1) == -1, "shared pages were dealt");
    for (size_t i = 1; i + 1 < all; i++)
        CHECK(map[i] == nw_distr_page_node(distr, i), "page %zu on %d", i, map[i]);
    free(map);
    nw_distr_free(distr);
    CHECK(intact(memory, (pages + 2) * page), "adopted content");
    CHECK(nw_forget(array) == NW_OK, "%s", nw_last_error());
    munmap(memory, (pages + 2) * page);
}

/* Pages of `map` in [first, end) that are on `node`. */
static size_t on_node(const int *map, size_t first, size_t end, int node) {
    size_t count = 0;
    for (size_t i = first; i < end; i++)
        count += map[i] == node;
    return count;
}

static void migration(void) {
    size_t rows = 64, columns = 4 * page, all;
    int last = nodes[node_count - 1];
    char *array = nw_alloc_2d(rows, columns, 1);
    nw_policy home = over(nw_bind_all(), nodes, 1, NULL);
    nw_place(array, home);
    fill(array, rows * columns);
    CHECK(nw_migrate_rows(array, last, 8, 16) == NW_OK, "%s", nw_last_error());
    int *map = map_of(array, &all);
    CHECK(on_node(map, 64, 96, last) == 32 && on_node(map, 0, all, last) == 32, "rows: %zu",
          on_node(map, 0, all, last));
    free(map);
    CHECK(nw_gather(array, nodes[0]) == NW_OK, "%s", nw_last_error());
    CHECK(elsewhere(array, home, "gathered") == 0, "gather");
    CHECK(nw_migrate_columns(array, last, 2 * page, page) == NW_OK, "%s", nw_last_error());
    map = map_of(array, &all);
    for (size_t i = 0; i < all; i++)
        CHECK((map[i] == last) == (i % 4 == 1 || i % 4 == 2), "columns: page %zu on %d", i, map[i]);
    free(map);
    CHECK(nw_migrate_columns(array, last, 10, 1) == NW_ROUNDED, "columns within a page");
    CHECK(nw_scatter(array, NULL, 0) == NW_OK, "%s", nw_last_error());
    CHECK(elsewhere(array, nw_blocks(NW_PAGES), "scattered") == 0, "scatter");
    CHECK(nw_scatter(array, some, 2) == NW_OK, "%s", nw_last_error());
    CHECK(elsewhere(array, over(nw_blocks(NW_PAGES), some, 2, NULL), "scattered") == 0, "scatter over two");
    CHECK(intact(array, rows * columns), "content after migration");
    nw_free(array);
    /* Migration happens once: pages that are touched later follow the policy, or first touch. */
    array = nw_alloc_1d(20 * page, 1);
    nw_place(array, over(nw_bind_all(), some + 1, 1, NULL));
    fill(array, 10 * page);
    CHECK(nw_gather(array, nodes[0]) == NW_OK, "%s", nw_last_error());
    fill(array + 10 * page, 10 * page);
    map = map_of(array, &all);
    CHECK(on_node(map, 0, 10, nodes[0]) == 10 && on_node(map, 10, 20, last) == 10, "later pages");
    free(map);
    size_t histogram[NODES], untouched;
    CHECK(nw_histogram(array, histogram, NODES, &untouched) == NW_OK && untouched == 0, "%s", nw_last_error());
    CHECK(histogram[nodes[0]] == 10 && histogram[last] == 10, "histogram %zu", histogram[last]);
    nw_free(array);
}

static void run_on(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "cpu %d", cpu);
}

static int may_use(int node) {
    for (int i = 0; i < node_count; i++)
        if (nodes[i] == node)
            return 1;
    return 0;
}

/* Each CPU's copy is on its node, or, if the process may not use that node's memory, on one other node. */
static void replicas(void) {
    int cpus[256], count = nw_cpus(cpus, 256);
    size_t pages = 200;
    char *array = nw_alloc_1d(pages * page, 1);
    fill(array, pages * page);
    CHECK(nw_replicate(array) == NW_OK, "%s", nw_last_error());
    CHECK(nw_replicate(array) == NW_OK, "%s", nw_last_error());
    for (int i = 0; i < count && i < 256; i++) {
        run_on(cpus[i]);
        const char *nearest = nw_nearest(array);
        size_t extent = pages * page, all;
        CHECK(nearest && nearest != array && intact(nearest, pages * page), "copy for CPU %d", cpus[i]);
        if (!nearest || nearest == array)
            continue;
        CHECK(nw_adopt((void *)nearest, 1, 1, &extent) == NW_OK, "%s", nw_last_error());
        int *map = map_of(nearest, &all);
        size_t here = on_node(map, 0, all, nw_cpu_node(cpus[i]));
        CHECK(here == pages || !may_use(nw_cpu_node(cpus[i])), "copy of CPU %d: %zu pages", cpus[i], here);
        CHECK(on_node(map, 0, all, map[0]) == pages, "a copy on several nodes");
        free(map);
        nw_forget((void *)nearest);
    }
    nw_free(array);
}

/* A child may use arrays; pages that it shares cannot move until it ends. */
static void forked(void) {
    size_t pages = 64;
    char *array = nw_alloc_1d(pages * page, 1);
    nw_place(array, over(nw_bind_all(), nodes, 1, NULL));
    fill(array, pages * page);
    int to_child[2], from_child[2];
    char byte = 0;
    if (pipe(to_child) || pipe(from_child))
        return;
    pid_t child = fork();
    if (child == 0) {
        int fine = intact(array, pages * page) && read(to_child[0], &byte, 1) == 1;
        char *mine = nw_alloc_1d(pages * page, 1);
        fine = fine && placed(nw_place(mine, nw_cyclic(NW_PAGES, 1)));
        fill(mine, pages * page);
        fine = fine && elsewhere(mine, nw_cyclic(NW_PAGES, 1), "child") == 0 && nw_free(mine) == NW_OK;
        fill(array, pages * page); /* which gives the child pages of its own */
        fine = fine && placed(nw_place(array, nw_cyclic(NW_PAGES, 1)));
        fine = fine && elsewhere(array, nw_cyclic(NW_PAGES, 1), "child") == 0 && nw_free(array) == NW_OK;
        _exit(!fine);
    }
    int status = nw_place(array, over(nw_bind_all(), some + 1, 1, NULL));
    CHECK(status == NW_PARTLY, "%d, %s", status, nw_last_error());
    CHECK(write(to_child[1], &byte, 1) == 1, "pipe");
    waitpid(child, &status, 0);
    CHECK(status == 0, "the child's status is %d", status);
    CHECK(placed(nw_place(array, over(nw_bind_all(), some + 1, 1, NULL))), "%s", nw_last_error());
    CHECK(elsewhere(array, over(nw_bind_all(), some + 1, 1, NULL), "after the child") == 0, "after the child");
    CHECK(intact(array, pages * page), "content after the child");
    nw_free(array);
}

/* The huge pages in the mapping that contains an address, in kB, as the kernel reports them. */
static long huge_kb(const void *address) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long start, end;
    long kb = 0, here = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2 && strchr(line, '-') < strchr(line, ' '))
            here = start <= (uintptr_t)address && (uintptr_t)address < end;
        else if (here && sscanf(line, "AnonHugePages: %ld", &kb) == 1)
            break;
    }
    if (maps)
        fclose(maps);
    return kb;
}

static int huge_pages_come_unasked(void) {
    char text[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (file && !fgets(text, sizeof text, file))
        text[0] = 0;
    if (file)
        fclose(file);
    return strstr(text, "[always]") != NULL;
}

/* Huge pages are kept if parts are at least as long, and given up otherwise. */
static void huge_pages(void) {
    size_t huge = nw_huge_page_bytes(), rows = 8 * (size_t)node_count + 3, all;
    if (!huge || !huge_pages_come_unasked())
        return;
    char *array = nw_alloc_2d(rows, huge, 1);
    CHECK(nw_place(array, nw_cyclic(NW_PAGES, 1)) == NW_OK, "%s", nw_last_error());
    fill(array, rows * huge);
    CHECK(elsewhere(array, nw_cyclic(NW_PAGES, 1), "huge, cyclic") == 0, "huge, cyclic");
    CHECK(huge_kb(array) == (long)(rows * huge >> 10), "%ld kB", huge_kb(array));
    int *map = map_of(array, &all);
    for (size_t i = 0; i < all; i++)
        CHECK(map[i] == nodes[i / (huge / page) % (size_t)node_count], "huge page %zu", i / (huge / page));
    free(map);
    CHECK(nw_place(array, nw_blocks(NW_ROWS)) == NW_OK, "%s", nw_last_error());
    CHECK(elsewhere(array, nw_blocks(NW_ROWS), "huge, blocks") == 0, "huge, blocks");
    CHECK(huge_kb(array) > 0, "blocks split huge pages");
    /* Cuts within huge pages. */
    nw_policy within = nw_block_cyclic(huge + huge / 4);
    CHECK(nw_place(array, within) == NW_ROUNDED, "%s", nw_last_error());
    CHECK(elsewhere(array, within, "huge, rounded") == 0, "huge, rounded");
    CHECK(huge_kb(array) > 0, "rounding split huge pages");
    /* Shorter parts: base pages; existing huge pages are split. */
    nw_policy fine = nw_cyclic(NW_COLUMNS, 3 * page);
    CHECK(nw_place(array, fine) == NW_OK, "%s", nw_last_error());
    CHECK(elsewhere(array, fine, "split") == 0, "split");
    CHECK(intact(array, rows * huge), "content of huge pages");
    nw_free(array);
}

/* Nodes that exist but that this process may not use. */
static void others_nodes(void) {
    char *array = nw_alloc_1d(10 * page, 1);
    for (int node = 0; node < NODES; node++) {
        nw_policy policy = over(nw_bind_all(), &node, 1, NULL);
        CHECK(nw_place(array, policy) == (may_use(node) ? NW_OK : NW_INVALID), "node %d: %s", node, nw_last_error());
    }
    nw_free(array);
}

/* The argument is the number of nodes that the machine must have; without it, one node suffices. */
int main(int count_of_arguments, char **arguments) {
    wish all[64];
    node_count = nw_nodes(nodes, NODES);
    page = nw_page_bytes();
    if (count_of_arguments > 1)
        CHECK(node_count == atoi(arguments[1]), "%d nodes", node_count);
    if (node_count < 2) {
        printf("1 passed, 0 failed: one node, nothing to place\n");
        return 0;
    }
    int count = wishes(all);
    for (int i = 0; i < count; i++) {
        fresh_array(&all[i], 500, 2048);
        fresh_array(&all[i], 301, 1111);
    }
    touched_array(all, count, 500, 2048);
    touched_array(all, count, 97, 3333);
    half_touched();
    many_stretches();
    short_of_memory();
    adopted();
    migration();
    replicas();
    forked();
    huge_pages();
    others_nodes();
    return check_end();
}
