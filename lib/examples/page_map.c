/* Places an array of 16 x 16 pages by the named policy, touches it, and prints where the kernel put each
 * page: a line with the policy's name and 256 nodes. Without a name, it does that for all policies.
 *
 *     cc -fopenmp page_map.c -lnodewise && ./a.out block-exclusive
 *
 * Row r is touched by thread r mod 4, which makes a difference for first-touch and bind-all only.
 */
#include <nodewise.h>
#include <nodewise_schedule.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 16, PAGES = SIDE * SIDE, THREADS = 4 };

static const int odd[] = {1, 3};
static const unsigned weights[] = {4, 2, 1, 1};

static nw_policy with_weights(nw_policy policy) {
    policy.weights = weights;
    return policy;
}

static nw_policy on_nodes(nw_policy policy, const int *nodes, int count) {
    policy.nodes = nodes;
    policy.node_count = count;
    return policy;
}

static nw_policy for_threads(nw_policy policy, int threads) {
    policy.threads = threads;
    return policy;
}

/* An array of doubles that fill PAGES pages, whatever its dimensions. */
static int print_map(const char *name, nw_policy policy, size_t nx, size_t ny, size_t nz) {
    const size_t page = nw_page_bytes() / sizeof(double);
    double *array = nz == 1 ? nw_alloc_2d(nx, ny, sizeof *array) : nw_alloc_3d(nx, ny, nz, sizeof *array);
    int nodes[PAGES], status = array ? nw_place(array, policy) : NW_NO_MEMORY;
    if (status != NW_OK) // for example with rows that are shorter than pages
        fprintf(stderr, "%s: %s\n", name, nw_last_error());
    if (status < 0)
        return 1;
#pragma omp parallel for schedule(static, 1) num_threads(THREADS)
    for (int row = 0; row < SIDE; row++)
        memset(array + row * SIDE * page, 1, SIDE * page * sizeof *array);
    nw_page_nodes(array, nodes, PAGES);
    printf("%s", name);
    for (int p = 0; p < PAGES; p++)
        printf(" %d", nodes[p]);
    putchar('\n');
    return nw_free(array) != NW_OK;
}

int main(int argc, char **argv) {
    const size_t page = nw_page_bytes() / sizeof(double), row = SIDE * page;
    const struct {
        const char *name;
        nw_policy policy;
        size_t nx, ny, nz;
    } maps[] = {
        {"first-touch", nw_first_touch(), SIDE, row, 1},
        {"cyclic", nw_cyclic(NW_PAGES, 1), SIDE, row, 1},
        {"cyclic-rows", nw_cyclic(NW_ROWS, 1), SIDE, row, 1},
        {"cyclic-columns", nw_cyclic(NW_COLUMNS, row / 8), SIDE, row, 1},
        {"cyclic-finer", nw_cyclic(NW_ROWS, 1), 2 * PAGES, page / 2, 1},
        {"cyclic-weights", with_weights(nw_cyclic(NW_PAGES, 1)), SIDE, row, 1},
        {"skew", nw_skew(NW_PAGES, 1), SIDE, row, 1},
        {"skew-rows", nw_skew(NW_ROWS, 1), SIDE, row, 1},
        {"prime", nw_prime(NW_PAGES, 1, 5), SIDE, row, 1},
        {"prime-rows", nw_prime(NW_ROWS, 1, 5), SIDE, row, 1},
        {"random", nw_random(NW_PAGES, 1), SIDE, row, 1},
        {"random-rows", nw_random(NW_ROWS, 1), SIDE, row, 1},
        {"bind-all", on_nodes(nw_bind_all(), odd, 2), SIDE, row, 1},
        {"bind-one", on_nodes(nw_bind_all(), odd, 1), SIDE, row, 1},
        {"bind-rows", for_threads(nw_bind(NW_ROWS), 6), SIDE, row, 1},
        {"bind-columns", nw_bind(NW_COLUMNS), SIDE, row, 1},
        {"blocks", nw_blocks(NW_PAGES), SIDE, row, 1},
        {"blocks-weights", with_weights(nw_blocks(NW_PAGES)), SIDE, row, 1},
        {"blocks-columns", nw_blocks(NW_COLUMNS), SIDE, row, 1},
        {"block-cyclic-x", nw_block_cyclic(SIDE * row / 4), SIDE, row, 1},
        {"block-cyclic-y", nw_block_cyclic(row / 4), SIDE, row, 1},
        {"block-cyclic-fine", nw_block_cyclic(row * 5 / 16), SIDE, row, 1},
        {"block-exclusive", nw_block_exclusive(0), SIDE, row, 1},
        {"block-exclusive-3d", nw_block_exclusive(7), SIDE / 2, SIDE / 2, row / 4},
    };
    int failures = 0;
    nw_set_threads(THREADS);
#pragma omp parallel num_threads(THREADS)
    nw_bind_thread(NW_THREAD);
    for (size_t m = 0; m < sizeof maps / sizeof *maps; m++)
        if (argc < 2 || !strcmp(argv[1], maps[m].name))
            failures += print_map(maps[m].name, maps[m].policy, maps[m].nx, maps[m].ny, maps[m].nz);
    return failures != 0;
}
