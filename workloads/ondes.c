/* Seismic waves in three dimensions, modelled on Ondes 3D (Ribeiro and Mehaut, 4.2): velocities and
 * stresses on staggered grids, differences of fourth order in space, leapfrog in time. After allocation
 * and initialisation there are two big loops in each time step, one for the stresses and one for the
 * velocities; all loops distribute planes over threads: regular.
 *
 * The region is periodic. Along z, rows have a halo with copies of the points of the other side; along x
 * and y, indices wrap.
 *
 * Verified: pressure and shear waves along the axes are exact solutions of the discrete equations, so
 * all nine fields are known at any time, except for rounding. */
#include "mai_policies.h"
#include <math.h>

static const workload ondes = {
    .name = "ondes",
    .does = "elastic waves in three dimensions",
    .size_is = "points on an edge",
    .small = 24,
    .size = 96,
    .largest = 1000,
    .iterations = 10,
    .policies = mai_policies,
};

enum field { VX, VY, VZ, SXX, SYY, SZZ, SXY, SXZ, SYZ, FIELDS };
enum { HALO = 2, AXES = 3 };

/* The coefficients of the differences, the material, and the time step; the distance of points is 1. */
static const double near = 9.0 / 8.0, far = -1.0 / 24.0;
static const double density = 2.0, lame = 1.5, shear = 1.0, dt = 0.3;

static double ***fields[FIELDS];
static double ***inverse_density, ***lame_at, ***shear_at;

/* A grid in a form that the compiler can optimise; a row has n points and a halo at both ends. */
#define GRID(name, table, n) double(*restrict name)[n][(n) + 2 * HALO] = (void *)&(table)[0][0][0]

/* Indices of the two neighbours on either side, modulo n. */
typedef struct {
    long before2, before, here, after, after2;
} around;

static inline around wrapped(long i, long n) {
    around a = {(i + n - 2) % n, (i + n - 1) % n, i, (i + 1) % n, (i + 2) % n};
    return a;
}

static inline double slope(double before2, double before, double after, double after2) {
    return near * (after - before) + far * (after2 - before2);
}

/* Differences at half a point further on, and half a point back, along each axis. */
#define X_ON(a) slope(a[x.before][j][k], a[i][j][k], a[x.after][j][k], a[x.after2][j][k])
#define Y_ON(a) slope(a[i][y.before][k], a[i][j][k], a[i][y.after][k], a[i][y.after2][k])
#define Z_ON(a) slope(a[i][j][k - 1], a[i][j][k], a[i][j][k + 1], a[i][j][k + 2])
#define X_BACK(a) slope(a[x.before2][j][k], a[x.before][j][k], a[i][j][k], a[x.after][j][k])
#define Y_BACK(a) slope(a[i][y.before2][k], a[i][y.before][k], a[i][j][k], a[i][y.after][k])
#define Z_BACK(a) slope(a[i][j][k - 2], a[i][j][k - 1], a[i][j][k], a[i][j][k + 1])

/* All nine fields by their names. */
#define FIELD_GRIDS(n)         \
    GRID(vx, fields[VX], n);   \
    GRID(vy, fields[VY], n);   \
    GRID(vz, fields[VZ], n);   \
    GRID(sxx, fields[SXX], n); \
    GRID(syy, fields[SYY], n); \
    GRID(szz, fields[SZZ], n); \
    GRID(sxy, fields[SXY], n); \
    GRID(sxz, fields[SXZ], n); \
    GRID(syz, fields[SYZ], n)

static inline void close_row(double *row, long n) {
    for (long h = 0; h < HALO; h++) {
        row[h] = row[n + h];
        row[n + HALO + h] = row[HALO + h];
    }
}

static void step_stresses(long n) {
    FIELD_GRIDS(n);
    GRID(lambda, lame_at, n);
    GRID(mu, shear_at, n);
#pragma omp parallel for
    for (long i = 0; i < n; i++) {
        around x = wrapped(i, n);
        for (long j = 0; j < n; j++) {
            around y = wrapped(j, n);
            for (long k = HALO; k < n + HALO; k++) {
                double dx = X_BACK(vx), dy = Y_BACK(vy), dz = Z_BACK(vz);
                double l = dt * lambda[i][j][k] * (dx + dy + dz), m = dt * mu[i][j][k];
                sxx[i][j][k] += l + 2.0 * m * dx;
                syy[i][j][k] += l + 2.0 * m * dy;
                szz[i][j][k] += l + 2.0 * m * dz;
                sxy[i][j][k] += m * (Y_ON(vx) + X_ON(vy));
                sxz[i][j][k] += m * (Z_ON(vx) + X_ON(vz));
                syz[i][j][k] += m * (Z_ON(vy) + Y_ON(vz));
            }
            close_row(szz[i][j], n);
            close_row(sxz[i][j], n);
            close_row(syz[i][j], n);
        }
    }
}

static void step_velocities(long n) {
    FIELD_GRIDS(n);
    GRID(lightness, inverse_density, n);
#pragma omp parallel for
    for (long i = 0; i < n; i++) {
        around x = wrapped(i, n);
        for (long j = 0; j < n; j++) {
            around y = wrapped(j, n);
            for (long k = HALO; k < n + HALO; k++) {
                double push = dt * lightness[i][j][k];
                vx[i][j][k] += push * (X_ON(sxx) + Y_BACK(sxy) + Z_BACK(sxz));
                vy[i][j][k] += push * (X_BACK(sxy) + Y_ON(syy) + Z_BACK(syz));
                vz[i][j][k] += push * (X_BACK(sxz) + Y_BACK(syz) + Z_ON(szz));
            }
            close_row(vx[i][j], n);
            close_row(vy[i][j], n);
            close_row(vz[i][j], n);
        }
    }
}

/* A plane wave along one axis that moves points along the same axis (pressure wave) or another one (shear wave). */
typedef struct {
    int along, moves;
    long crests;
    double height;
} plane_wave;

static const plane_wave waves[] = {{0, 0, 1, 1.0}, {1, 1, 2, 0.7}, {2, 2, 1, 0.5}, {0, 1, 2, 0.9},
                                   {1, 2, 1, 0.6}, {2, 0, 3, 0.4}, {1, 0, 1, 0.3}, {2, 1, 2, 0.8}};
enum { WAVES = sizeof waves / sizeof *waves };

/* The axes along which the points of a field are displaced by half a distance. */
static const int half_on[FIELDS][AXES] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 0}, {0, 0, 0},
                                          {0, 0, 0}, {1, 1, 0}, {1, 0, 1}, {0, 1, 1}};

/* The height of a field in a wave of unit velocity. The stress is minus the square root of modulus times density,
 * and a pressure wave has stress across its direction too. */
static double height_in(plane_wave w, int field) {
    static const int stress[AXES][AXES] = {{SXX, SXY, SXZ}, {SXY, SYY, SYZ}, {SXZ, SYZ, SZZ}};
    int pressure = w.along == w.moves;
    double modulus = pressure ? lame + 2.0 * shear : shear, ahead = -sqrt(modulus * density);
    if (field <= VZ)
        return field == w.moves ? 1.0 : 0.0;
    if (field == stress[w.along][w.moves])
        return ahead;
    return pressure && field <= SZZ ? ahead * lame / modulus : 0.0;
}

/* Tabulates a field along each axis after `step` time steps; its value at a point is the sum of three entries. */
static void tabulate(double *table, int field, long n, long step) {
    double pi = acos(-1.0), time = (double)step - (field <= VZ ? 0.0 : 0.5);
    memset(table, 0, (size_t)(AXES * n) * sizeof *table);
    for (int c = 0; c < WAVES; c++) {
        plane_wave w = waves[c];
        double number = 2.0 * pi * (double)w.crests / (double)n;
        double steepness = 2.0 * (near * sin(0.5 * number) + far * sin(1.5 * number));
        double modulus = w.along == w.moves ? lame + 2.0 * shear : shear;
        double turn = 2.0 * asin(0.5 * dt * steepness * sqrt(modulus / density)); /* a time step */
        for (long i = 0; i < n; i++) {
            double at = (double)i + 0.5 * half_on[field][w.along];
            table[w.along * n + i] += w.height * height_in(w, field) * cos(number * at - turn * time);
        }
    }
}

static void initialise(double ***field, const double *table, long n, int parallel) {
    GRID(a, field, n);
#pragma omp parallel for if (parallel)
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            for (long k = 0; k < n; k++)
                a[i][j][k + HALO] = table[i] + table[n + j] + table[2 * n + k];
            close_row(a[i][j], n);
        }
}

static double largest_error(double ***field, const double *table, long n) {
    GRID(a, field, n);
    double worst = 0.0;
#pragma omp parallel for reduction(max : worst)
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            for (long k = 0; k < n; k++)
                worst = fmax(worst, fabs(a[i][j][k + HALO] - (table[i] + table[n + j] + table[2 * n + k])));
    return worst;
}

static double ***grid(const options *o) {
    int n = (int)o->size;
    double ***table = place(o, mai_alloc_3D(n, n, n + 2 * HALO, sizeof(double), DOUBLE));
    need_memory(&ondes, table != NULL);
    return table;
}

/* A property of the material, which is the same everywhere. */
static double ***material(const options *o, double value, double *table) {
    double ***a = grid(o);
    for (long i = 0; i < AXES * o->size; i++)
        table[i] = value / AXES;
    initialise(a, table, o->size, o->parallel);
    return a;
}

int main(int argc, char **argv) {
    options o = parse_options(&ondes, argc, argv);
    long n = o.size;
    if (n < 8)
        give_up(&ondes, "--size is at least 8", "");
    start_mai();
    double *table = malloc((size_t)(AXES * n) * sizeof *table);
    need_memory(&ondes, table != NULL);
    inverse_density = material(&o, 1.0 / density, table);
    lame_at = material(&o, lame, table);
    shear_at = material(&o, shear, table);
    for (int f = 0; f < FIELDS; f++) {
        fields[f] = grid(&o);
        tabulate(table, f, n, 0);
        initialise(fields[f], table, n, o.parallel);
    }
    for (long step = 0; step < o.iterations; step++) {
        step_stresses(n);
        step_velocities(n);
    }
    double worst = 0.0;
    for (int f = 0; f < FIELDS; f++) {
        tabulate(table, f, n, o.iterations);
        worst = fmax(worst, largest_error(fields[f], table, n));
    }
    double somewhere = fields[VX][n / 3][n / 2][n / 5 + HALO];
    int status = verdict(&ondes, n, o.iterations, somewhere, worst < 1e-13 * (double)(o.iterations + 10));
    free(table);
    mai_final();
    return status;
}
