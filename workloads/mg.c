/* Multigrid for Poisson's equation on a periodic cube, in V-cycles as in NAS MG: residual, restriction,
 * smoothing, interpolation, each over the planes of grids from the finest to the coarsest.
 *
 * As in NAS MG (zero3 and zran3, NPB 2.3's OpenMP C version), planes of all grids are distributed over the
 * threads when they are first touched, as in the loops that compute, so `--init nas` and `--init parallel`
 * are the same. Only the last of the three steps that close a grid's faces distributes the rows of a plane
 * (comm3; the second nest of Ribeiro and Mehaut, Figure 8).
 *
 * Verified: each V-cycle must at least halve the norm of the residual, until rounding ends that; in fact
 * it divides it by about three, whatever the size. */
#include "mai_policies.h"
#include <math.h>

static const workload mg = {
    .name = "mg",
    .does = "multigrid for Poisson's equation on a periodic cube",
    .size_is = "points on an edge, a power of two",
    .small = 32,
    .size = 128,
    .largest = 1024,
    .iterations = 4,
    .nas = NAS_PARALLEL,
    .policies = mai_policies,
};

enum { LEVELS = 10, CHARGES = 20 };

/* Level 0 is the finest. A grid with n points on an edge stores n + 2: the outer ones are copies of those on
 * the opposite side. */
typedef struct {
    long n;
    double ***solution, ***residual;
} level;

static level levels[LEVELS];
static int coarsest;
static double ***charges; /* the right-hand side, on the finest level */
static double *sums;      /* by plane */

/* A grid in a form that the compiler can optimise: contiguous, with extents that it knows. */
#define GRID(name, table, n) double(*restrict name)[(n) + 2][(n) + 2] = (void *)&(table)[0][0][0]
#define SHARED_GRID(name, table, n) double(*name)[(n) + 2][(n) + 2] = (void *)&(table)[0][0][0]

/* The first touch: each thread touches its planes, or the master all of them. */
static void initialise(double ***table, long n, int parallel) {
    GRID(a, table, n);
#pragma omp parallel for if (parallel)
    for (long i = 0; i < n + 2; i++)
        for (long j = 0; j < n + 2; j++)
            for (long k = 0; k < n + 2; k++)
                a[i][j][k] = 0.0;
}

static void clear(double ***table, long n) {
    GRID(a, table, n);
#pragma omp parallel for
    for (long i = 0; i < n + 2; i++)
        for (long j = 0; j < n + 2; j++)
            for (long k = 0; k < n + 2; k++)
                a[i][j][k] = 0.0;
}

/* Copies the points inside each face to those beyond the opposite one. */
static void close_faces(double ***table, long n) {
    GRID(a, table, n);
#pragma omp parallel
    {
#pragma omp for
        for (long i = 1; i <= n; i++) {
            for (long j = 1; j <= n; j++)
                a[i][j][0] = a[i][j][n], a[i][j][n + 1] = a[i][j][1];
            for (long k = 0; k < n + 2; k++)
                a[i][0][k] = a[i][n][k], a[i][n + 1][k] = a[i][1][k];
        }
#pragma omp for
        for (long j = 0; j < n + 2; j++)
            for (long k = 0; k < n + 2; k++)
                a[0][j][k] = a[n][j][k], a[n + 1][j][k] = a[1][j][k];
    }
}

/* Sums over the neighbours of a row's points in the four rows beside it, and in the four across. */
#define ROW_SUMS(a, n, i, j, beside, across)                                                           \
    for (long k = 0; k < (n) + 2; k++) {                                                               \
        beside[k] = a[i][j - 1][k] + a[i][j + 1][k] + a[i - 1][j][k] + a[i + 1][j][k];                 \
        across[k] = a[i - 1][j - 1][k] + a[i - 1][j + 1][k] + a[i + 1][j - 1][k] + a[i + 1][j + 1][k]; \
    }

/* r = f - A u with NAS MG's operator: -8/3 of the point, 1/6 of its 12 second and 1/12 of its 8 third
 * neighbours. */
static void compute_residual(double ***solution, double ***right, double ***residual, long n) {
    SHARED_GRID(u, solution, n);
    SHARED_GRID(f, right, n); /* may be r */
    SHARED_GRID(r, residual, n);
#pragma omp parallel for
    for (long i = 1; i <= n; i++) {
        double beside[n + 2], across[n + 2];
        for (long j = 1; j <= n; j++) {
            ROW_SUMS(u, n, i, j, beside, across)
            for (long k = 1; k <= n; k++)
                r[i][j][k] = f[i][j][k] + 8.0 / 3.0 * u[i][j][k] -
                             1.0 / 6.0 * (across[k] + beside[k - 1] + beside[k + 1]) -
                             1.0 / 12.0 * (across[k - 1] + across[k + 1]);
        }
    }
    close_faces(residual, n);
}

/* u += S r, NAS MG's smoother. */
static void smooth(double ***residual, double ***solution, long n) {
    GRID(r, residual, n);
    GRID(u, solution, n);
#pragma omp parallel for
    for (long i = 1; i <= n; i++) {
        double beside[n + 2], across[n + 2];
        for (long j = 1; j <= n; j++) {
            ROW_SUMS(r, n, i, j, beside, across)
            for (long k = 1; k <= n; k++)
                u[i][j][k] += -3.0 / 8.0 * r[i][j][k] + 1.0 / 32.0 * (r[i][j][k - 1] + r[i][j][k + 1] + beside[k]) -
                              1.0 / 64.0 * (across[k] + beside[k - 1] + beside[k + 1]);
        }
    }
    close_faces(solution, n);
}

/* A point of the coarse grid from the 27 around it, by distance 1/2, 1/4, 1/8, 1/16. */
static void restrict_to(double ***coarse, double ***fine, long m) {
    GRID(c, coarse, m);
    GRID(a, fine, 2 * m);
#pragma omp parallel for
    for (long i = 1; i <= m; i++) {
        double beside[2 * m + 2], across[2 * m + 2];
        for (long j = 1; j <= m; j++) {
            ROW_SUMS(a, 2 * m, 2 * i, 2 * j, beside, across)
            for (long k = 1; k <= m; k++) {
                const double *row = a[2 * i][2 * j];
                c[i][j][k] = 1.0 / 2.0 * row[2 * k] + 1.0 / 4.0 * (row[2 * k - 1] + row[2 * k + 1] + beside[2 * k]) +
                             1.0 / 8.0 * (across[2 * k] + beside[2 * k - 1] + beside[2 * k + 1]) +
                             1.0 / 16.0 * (across[2 * k - 1] + across[2 * k + 1]);
            }
        }
    }
    close_faces(coarse, m);
}

/* Adds `share` times a sum of coarse rows to a fine row, at the coarse points and between them. */
static void spread(double *fine, const double *row, double share, long m) {
    for (long k = 1; k <= m; k++) {
        fine[2 * k - 1] += 0.5 * share * (row[k - 1] + row[k]);
        fine[2 * k] += share * row[k];
    }
}

/* Trilinear interpolation, for the fine planes between two coarse planes and on the second one. */
static void interpolate(double ***coarse, double ***fine, long m) {
    GRID(c, coarse, m);
    GRID(a, fine, 2 * m);
#pragma omp parallel for
    for (long i = 1; i <= m; i++) {
        double row[m + 2], plane[m + 2], both[m + 2];
        for (long j = 1; j <= m; j++) {
            for (long k = 0; k <= m; k++) {
                row[k] = c[i][j - 1][k] + c[i][j][k];
                plane[k] = c[i - 1][j][k] + c[i][j][k];
                both[k] = row[k] + c[i - 1][j - 1][k] + c[i - 1][j][k];
            }
            spread(a[2 * i][2 * j], c[i][j], 1.0, m);
            spread(a[2 * i][2 * j - 1], row, 0.5, m);
            spread(a[2 * i - 1][2 * j], plane, 0.5, m);
            spread(a[2 * i - 1][2 * j - 1], both, 0.25, m);
        }
    }
    close_faces(fine, 2 * m);
}

/* Plane by plane, so that the sum does not depend on the number of threads. */
static double norm(double ***table, long n) {
    GRID(a, table, n);
    double sum = 0.0;
#pragma omp parallel for
    for (long i = 1; i <= n; i++) {
        double part = 0.0;
        for (long j = 1; j <= n; j++)
            for (long k = 1; k <= n; k++)
                part += a[i][j][k] * a[i][j][k];
        sums[i] = part;
    }
    for (long i = 1; i <= n; i++)
        sum += sums[i];
    return sqrt(sum / ((double)n * (double)n * (double)n));
}

static void cycle(void) {
    for (int l = 1; l <= coarsest; l++)
        restrict_to(levels[l].residual, levels[l - 1].residual, levels[l].n);
    clear(levels[coarsest].solution, levels[coarsest].n);
    smooth(levels[coarsest].residual, levels[coarsest].solution, levels[coarsest].n);
    for (int l = coarsest - 1; l >= 0; l--) {
        level *at = &levels[l];
        if (l > 0)
            clear(at->solution, at->n);
        interpolate(levels[l + 1].solution, at->solution, at->n / 2);
        compute_residual(at->solution, l > 0 ? at->residual : charges, at->residual, at->n);
        smooth(at->residual, at->solution, at->n);
    }
    compute_residual(levels[0].solution, charges, levels[0].residual, levels[0].n);
}

static double ***grid(const options *o, long n) {
    int extent = (int)n + 2;
    double ***table = place(o, mai_alloc_3D(extent, extent, extent, sizeof(double), DOUBLE));
    need_memory(&mg, table != NULL);
    initialise(table, n, o->parallel);
    return table;
}

/* As many positive charges as negative ones, at random points, which may be hit twice. */
static void charge(double ***f, long n) {
    uint64_t extent = (uint64_t)n;
    for (uint64_t c = 0; c < CHARGES; c++) {
        uint64_t i = mix(3 * c) % extent, j = mix(3 * c + 1) % extent, k = mix(3 * c + 2) % extent;
        f[i + 1][j + 1][k + 1] += c % 2 ? -1.0 : 1.0;
    }
    close_faces(f, n);
}

int main(int argc, char **argv) {
    options o = parse_options(&mg, argc, argv);
    long n = o.size;
    if (n < 8 || n & (n - 1))
        give_up(&mg, "--size is a power of two, at least 8", "");
    start_mai();
    for (int l = 0; n >> l >= 4; l++) {
        coarsest = l;
        levels[l].n = n >> l;
        levels[l].solution = grid(&o, n >> l);
        levels[l].residual = grid(&o, n >> l);
    }
    charges = grid(&o, n);
    sums = malloc((size_t)(n + 1) * sizeof *sums);
    need_memory(&mg, sums != NULL);

    charge(charges, n);
    compute_residual(levels[0].solution, charges, levels[0].residual, n);
    double before = norm(levels[0].residual, n), bound = before;
    int falling = 1;
    double after = before;
    for (long k = 0; k < o.iterations; k++) {
        cycle();
        after = norm(levels[0].residual, n);
        bound *= 0.5;
        falling &= after <= bound || after < 1e-14 * before;
    }
    int status = verdict(&mg, n, o.iterations, norm(levels[0].solution, n), falling);
    free(sums);
    mai_final();
    return status;
}
