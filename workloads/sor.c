/* Red-black successive over-relaxation for Poisson's equation on a square.
 *
 * A point of one colour depends on its four neighbours of the other, so all points of a colour can
 * be relaxed at once. Each thread works on a band of rows: an x-wise pattern.
 *
 * Verified: the right-hand side is made from a known solution, and relaxation with a factor between
 * 0 and 2 reduces the energy norm of the error in every step. */
#include "workload.h"

static const workload sor = {
    .name = "sor",
    .does = "red-black SOR for Poisson's equation on a square",
    .size_is = "points on a side",
    .small = 256,
    .size = 4096,
    .largest = 65536,
    .iterations = 40,
};

static const double factor = 1.7;

/* The known solution; `scale` is the distance between two points. */
static inline double solution(long i, long j, double scale) {
    double x = (double)i * scale, y = (double)j * scale;
    return x * x * (1.0 - y) + x * y * y;
}

static void initialise(double *restrict grid, double *restrict rhs, long n, int parallel) {
    double scale = 1.0 / (double)(n + 1);
    long width = n + 2;
#pragma omp parallel for if (parallel)
    for (long i = 0; i < n + 2; i++)
        for (long j = 0; j < n + 2; j++) {
            int inside = i > 0 && i <= n && j > 0 && j <= n;
            grid[i * width + j] = inside ? 0.0 : solution(i, j, scale);
            rhs[i * width + j] = inside ? 4.0 * solution(i, j, scale) - solution(i - 1, j, scale) -
                                              solution(i + 1, j, scale) - solution(i, j - 1, scale) -
                                              solution(i, j + 1, scale)
                                        : 0.0;
        }
}

static void relax(double *restrict grid, const double *restrict rhs, long n, int colour) {
    long width = n + 2;
#pragma omp parallel for
    for (long i = 1; i <= n; i++)
        for (long j = 1 + (i + colour) % 2; j <= n; j += 2) {
            double *u = &grid[i * width + j];
            double wanted = 0.25 * (u[-width] + u[width] + u[-1] + u[1] + rhs[i * width + j]);
            *u += factor * (wanted - *u);
        }
}

/* The square of the error's energy norm: the sum over all neighbours of their squared difference.
 * Rows are summed one by one, so the result does not depend on the number of threads. */
static double error_energy(const double *grid, double *rows, long n) {
    double scale = 1.0 / (double)(n + 1), sum = 0.0;
    long width = n + 2;
#pragma omp parallel for
    for (long i = 0; i <= n; i++) {
        double row = 0.0;
        for (long j = 0; j <= n; j++) {
            double here = grid[i * width + j] - solution(i, j, scale);
            double right = grid[i * width + j + 1] - solution(i, j + 1, scale);
            double below = grid[(i + 1) * width + j] - solution(i + 1, j, scale);
            row += (here - right) * (here - right) + (here - below) * (here - below);
        }
        rows[i] = row;
    }
    for (long i = 0; i <= n; i++)
        sum += rows[i];
    return sum;
}

int main(int argc, char **argv) {
    options o = parse_options(&sor, argc, argv);
    size_t points = (size_t)(o.size + 2) * (size_t)(o.size + 2);
    double *grid = malloc(points * sizeof *grid);
    double *rhs = malloc(points * sizeof *rhs);
    double *rows = malloc((size_t)(o.size + 1) * sizeof *rows);
    need_memory(&sor, grid && rhs && rows);

    initialise(grid, rhs, o.size, o.parallel);
    double before = error_energy(grid, rows, o.size), after = before;
    int falling = 1;
    for (long k = 0; k < o.iterations; k++) {
        relax(grid, rhs, o.size, 0);
        relax(grid, rhs, o.size, 1);
        if ((k & (k + 1)) == 0) { /* after 1, 2, 4, 8, … iterations */
            double now = error_energy(grid, rows, o.size);
            falling &= now < after || now < 1e-20 * before;
            after = now;
        }
    }
    double end = error_energy(grid, rows, o.size);
    int status = verdict(&sor, o.size, o.iterations, end, falling && end <= after);
    free(grid), free(rhs), free(rows);
    return status;
}
