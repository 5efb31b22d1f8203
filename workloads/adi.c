/* The heat equation on a cube by line sweeps: each step solves implicit tridiagonal systems along x,
 * then y, then z.
 *
 * The x and y sweeps distribute planes of z over the threads, the z sweep planes of y: the array is
 * divided one way and then the other, so no block distribution suits both.
 *
 * Verified: the product of three sines is an eigenvector of each sweep, so after k steps the array
 * is the initial one times a known factor. */
#include "workload.h"
#include <math.h>

static const workload adi = {
    .name = "adi",
    .does = "heat equation on a cube by sweeps along x, y and z",
    .size_is = "points on an edge",
    .small = 32,
    .size = 240,
    .largest = 4096,
    .iterations = 20,
};

static const double lambda = 0.4; /* diffusion · time step / distance² */

static double *sine;   /* sin(π (i + 1) / (n + 1)): the initial array is its threefold product */
static double *pivot;  /* of the elimination, the same for all lines */

static void tabulate(long n) {
    double step = acos(-1.0) / (double)(n + 1);
    for (long i = 0; i < n; i++) {
        sine[i] = sin((double)(i + 1) * step);
        pivot[i] = lambda / (1.0 + 2.0 * lambda - (i ? lambda * pivot[i - 1] : 0.0));
    }
}

static void initialise(double *u, long n, int parallel) {
#pragma omp parallel for if (parallel)
    for (long z = 0; z < n; z++)
        for (long y = 0; y < n; y++)
            for (long x = 0; x < n; x++)
                u[(z * n + y) * n + x] = sine[x] * sine[y] * sine[z];
}

/* Solves (1 + 2λ) u[i] - λ (u[i-1] + u[i+1]) = old u[i] along x, in place. */
static void sweep_x(double *u, long n) {
#pragma omp parallel for
    for (long z = 0; z < n; z++)
        for (long y = 0; y < n; y++) {
            double *line = u + (z * n + y) * n;
            line[0] *= pivot[0] / lambda;
            for (long x = 1; x < n; x++)
                line[x] = (line[x] + lambda * line[x - 1]) * pivot[x] / lambda;
            for (long x = n - 2; x >= 0; x--)
                line[x] += pivot[x] * line[x + 1];
        }
}

/* Sweeps the lines of one plane, whose n points are `stride` apart; the inner loop goes along x. */
static void sweep_plane(double *plane, long n, long stride) {
    for (long x = 0; x < n; x++)
        plane[x] *= pivot[0] / lambda;
    for (long i = 1; i < n; i++) {
        double *here = plane + i * stride, *before = here - stride;
        for (long x = 0; x < n; x++)
            here[x] = (here[x] + lambda * before[x]) * pivot[i] / lambda;
    }
    for (long i = n - 2; i >= 0; i--) {
        double *here = plane + i * stride, *after = here + stride;
        for (long x = 0; x < n; x++)
            here[x] += pivot[i] * after[x];
    }
}

static void sweep_y(double *u, long n) {
#pragma omp parallel for
    for (long z = 0; z < n; z++)
        sweep_plane(u + z * n * n, n, n);
}

static void sweep_z(double *u, long n) {
#pragma omp parallel for
    for (long y = 0; y < n; y++)
        sweep_plane(u + y * n, n, n * n);
}

/* The largest difference from `factor` times the initial array. */
static double largest_error(const double *u, long n, double factor) {
    double worst = 0.0;
#pragma omp parallel for reduction(max : worst)
    for (long z = 0; z < n; z++)
        for (long y = 0; y < n; y++)
            for (long x = 0; x < n; x++)
                worst = fmax(worst, fabs(u[(z * n + y) * n + x] - factor * sine[x] * sine[y] * sine[z]));
    return worst;
}

int main(int argc, char **argv) {
    options o = parse_options(&adi, argc, argv);
    long n = o.size;
    size_t edge = (size_t)n, points = edge * edge * edge;
    double *u = malloc(points * sizeof *u);
    sine = malloc(edge * sizeof *sine);
    pivot = malloc(edge * sizeof *pivot);
    need_memory(&adi, u && sine && pivot);

    tabulate(n);
    initialise(u, n, o.parallel);
    for (long k = 0; k < o.iterations; k++) {
        sweep_x(u, n);
        sweep_y(u, n);
        sweep_z(u, n);
    }
    double shrink = 1.0 + 2.0 * lambda * (1.0 - cos(acos(-1.0) / (double)(n + 1)));
    double factor = pow(shrink, -3.0 * (double)o.iterations);
    double middle = u[points / 2];
    int ok = largest_error(u, n, factor) < 1e-11 * (double)o.iterations;
    int status = verdict(&adi, n, o.iterations, middle, ok);
    free(u), free(sine), free(pivot);
    return status;
}
