/* Nanoseconds to say a page's node, for each policy over pages in no order. NODEWISE_PRETEND says of how
 * many nodes. A line a policy: its name, nanoseconds, pages of the array. */
#include <nodewise.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { QUERIES = 2000000, REPEATS = 5 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_cost(const char *name, nw_policy policy, size_t side) {
    double *array = nw_alloc_2d(side, side, sizeof *array);
    nw_distr *distr = array ? nw_describe(array, policy) : NULL;
    nw_shape shape;
    if (!distr || nw_shape_of(array, &shape) != NW_OK)
        exit(1);
    double best = 1e9;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        uint64_t at = 1;
        long sum = 0;
        double start = now();
        for (int q = 0; q < QUERIES; q++) {
            at = at * 6364136223846793005u + 1442695040888963407u;
            sum += nw_distr_page_node(distr, (size_t)((at >> 32) * shape.pages >> 32));
        }
        double taken = (now() - start) / QUERIES * 1e9;
        __asm__ volatile("" : : "r"(sum));
        best = taken < best ? taken : best;
    }
    printf("%s %.2f %zu\n", name, best, shape.pages);
    nw_distr_free(distr);
    nw_free(array);
}

int main(void) {
    static const unsigned weights[] = {4, 2, 1, 1};
    nw_policy weighted = nw_cyclic(NW_ROWS, 1);
    weighted.weights = weights;
    for (size_t side = 1 << 10; side <= 1 << 14; side <<= 4) {
        print_cost("cyclic", nw_cyclic(NW_PAGES, 1), side);
        print_cost("cyclic, rows, weights", weighted, side);
        print_cost("skew", nw_skew(NW_PAGES, 1), side);
        print_cost("prime", nw_prime(NW_PAGES, 1, 7), side);
        print_cost("random", nw_random(NW_PAGES, 1), side);
        print_cost("bind-block, columns", nw_bind(NW_COLUMNS), side);
        print_cost("blocks", nw_blocks(NW_ROWS), side);
        print_cost("block-cyclic", nw_block_cyclic(5000), side);
        print_cost("block-exclusive", nw_block_exclusive(0), side);
    }
    return 0;
}
