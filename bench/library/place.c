/* Placing and touching an array against libnuma's interleaved allocation, in turn in one process.
 *
 *     place MIB REPEATS
 *
 * A line a way and repeat: its name, CPU seconds until every page is touched, system calls that the library
 * made to place, share of the pages that lie where the distribution says (-1: not asked). */
#include <nodewise.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* CPU time, nearly all the kernel's: others on this machine don't count. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void touch(char *array, size_t bytes) {
    for (size_t at = 0; at < bytes; at += nw_page_bytes())
        array[at] = 1;
}

static void with_libnuma(size_t bytes) {
    double start = now();
    char *array = numa_alloc_interleaved(bytes);
    if (!array)
        exit(1);
    touch(array, bytes);
    printf("libnuma %.6f 0 -1\n", now() - start);
    numa_free(array, bytes);
}

/* Share of the touched pages that lie where they belong. */
static double right(const void *array, nw_policy policy) {
    nw_shape shape;
    nw_shape_of(array, &shape);
    int *nodes = malloc(shape.pages * sizeof *nodes);
    nw_distr *distr = nw_describe(array, policy);
    if (!nodes || !distr)
        exit(1);
    nw_page_nodes(array, nodes, shape.pages);
    size_t fit = 0;
    for (size_t p = 0; p < shape.pages; p++)
        fit += nodes[p] == nw_distr_page_node(distr, p);
    nw_distr_free(distr);
    free(nodes);
    return (double)fit / (double)shape.pages;
}

static void with_nodewise(const char *name, nw_policy policy, size_t nx, size_t ny) {
    nw_statistics before, after;
    nw_get_statistics(&before);
    double start = now();
    double *array = nw_alloc_2d(nx, ny, sizeof *array);
    if (!array || nw_place(array, policy) < 0)
        exit(1);
    touch((char *)array, nx * ny * sizeof *array);
    double taken = now() - start;
    nw_get_statistics(&after);
    printf("%s %.6f %llu %.4f\n", name, taken, (unsigned long long)(after.calls - before.calls), right(array, policy));
    nw_free(array);
}

/* The kernel work of a distribution over four nodes where there is but one: as many runs, of four
 * policies that all mean node 0, so that the kernel keeps as many mappings. */
static void runs_bound(const char *name, size_t bytes, size_t run) {
    static const int modes[] = {MPOL_PREFERRED, MPOL_BIND, MPOL_INTERLEAVE, MPOL_DEFAULT};
    unsigned long node = 1;
    double start = now();
    char *array = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (array == MAP_FAILED)
        exit(1);
    for (size_t r = 0; r < bytes / run; r++) {
        int mode = modes[r % 4];
        if (mbind(array + r * run, run, mode, mode == MPOL_DEFAULT ? NULL : &node, mode == MPOL_DEFAULT ? 0 : 2, 0))
            exit(1);
    }
    touch(array, bytes);
    printf("%s %.6f %zu -1\n", name, now() - start, bytes / run);
    munmap(array, bytes);
}

/* The same where runs are too many for mappings of their own: touched by node, a quarter each. */
static void runs_touched(const char *name, size_t bytes, size_t run) {
    unsigned long node = 1;
    double start = now();
    char *array = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (array == MAP_FAILED)
        exit(1);
    for (size_t n = 0; n < 4; n++) {
        if (set_mempolicy(MPOL_PREFERRED, &node, 2))
            exit(1);
        for (size_t r = n; r < bytes / run; r += 4)
            touch(array + r * run, run);
    }
    set_mempolicy(MPOL_DEFAULT, NULL, 0);
    touch(array, bytes);
    printf("%s %.6f 5 -1\n", name, now() - start);
    munmap(array, bytes);
}

int main(int argc, char **argv) {
    const size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 1024) << 20, items = bytes / sizeof(double);
    const int repeats = argc > 2 ? atoi(argv[2]) : 5, one_node = nw_nodes(NULL, 0) < 2;
    const size_t few = 512, many = 8192; /* rows: with runs few enough for mappings of their own, and not */
    for (int r = 0; r < repeats; r++) {
        with_libnuma(bytes);
        with_nodewise("cyclic", nw_cyclic(NW_PAGES, 1), 1, items);
        with_nodewise("block-exclusive-512-rows", nw_block_exclusive(0), few, items / few);
        with_nodewise("block-exclusive-8192-rows", nw_block_exclusive(0), many, items / many);
        if (one_node) {
            runs_bound("calls-of-512-rows", bytes, bytes / few / 4);
            runs_touched("calls-of-8192-rows", bytes, bytes / many / 4);
        }
    }
    return 0;
}
