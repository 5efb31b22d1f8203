/* A square grid, swept along its rows by rows and across them by columns. */
#include <stdlib.h>

static double *grid;

static void along(long n) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++)
        for (long j = 1; j < n; j++)
            grid[i * n + j] += 0.5 * grid[i * n + j - 1];
}

static void across(long n) {
#pragma omp parallel for schedule(static)
    for (long j = 0; j < n; j++)
        for (long i = 1; i < n; i++)
            grid[i * n + j] += 0.5 * grid[(i - 1) * n + j];
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1024;
    grid = aligned_alloc(4096, (size_t)(n * n) * sizeof *grid);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n * n; i++)
        grid[i] = 1;
    for (int step = 0; step < 3; step++) {
        along(n);
        across(n);
    }
    free(grid);
}
