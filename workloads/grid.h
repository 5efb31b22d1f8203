/* Shared by bt, sp and lu: five coupled fields on a grid, how the grid's loops are distributed over threads
 * in each form, and how far the fields are from the known solution.
 *
 * The grid has n × n × n / 4 points, z in the inner loop. A point has the size of a cache line, so that parts
 * of the grid can end where pages end. All blocks of a Latin square do, if n is a multiple of 32 and there are
 * at most four nodes, or a multiple of 64 and there are at most sixteen. */
#ifndef GRID_H
#define GRID_H

#include "nodewise_distr.h"
#include "workload.h"
#include <math.h>

enum { X, Y, Z, DIRECTIONS, FIELDS = 5 };

typedef struct {
    double v[8]; /* five in use */
} point;

typedef struct {
    long n, nz;
    double distance[DIRECTIONS]; /* between neighbours; the grid is a unit cube */
    program_form form;
    int parallel;          /* initialised by all threads */
    nw_cuts rows, columns; /* along x, y: one part in the plain forms, one for each node in the matched form */
    point *u, *rhs, *forcing;
    void *lhs; /* bt and sp: each point's equation along one line */
} grid;

/* The fields are carried along: their speed in a direction is this linear function of them. */
static const double carry[DIRECTIONS][FIELDS] = {
    {0.30, 0.10, 0.20, 0.05, 0.15},
    {0.10, 0.25, 0.05, 0.20, 0.15},
    {0.15, 0.05, 0.30, 0.10, 0.20},
};
static const double diffusion = 0.1;

static inline double speed(const double *u, int direction) {
    double sum = 0.0;
    for (int m = 0; m < FIELDS; m++)
        sum += carry[direction][m] * u[m];
    return sum;
}

static inline size_t at(const grid *g, long i, long j, long k) { return (size_t)((i * g->n + j) * g->nz + k); }

/* From a point to the next one in a direction. */
static inline long stride(const grid *g, int direction) {
    return direction == X ? g->n * g->nz : direction == Y ? g->nz : 1;
}

/* The coordinate of a point along a direction. */
static inline long along(int direction, long i, long j, long k) { return direction == X ? i : direction == Y ? j : k; }

/* ---- The equations of bt and lu. ---- */

/* How a point's fields change, into `sum`. Its neighbours are `strides` away from `u`; it is the point
 * `position` of the grid. */
typedef void change_function(const grid *g, const point *u, const long strides[DIRECTIONS],
                             const long position[DIRECTIONS], double *sum);

/* The fields are carried, by (speed · u) / 2, and diffuse. */
static inline void change(const grid *g, const point *u, const long strides[DIRECTIONS],
                          const long position[DIRECTIONS], double *sum) {
    (void)position; /* the same everywhere */
    for (int m = 0; m < FIELDS; m++)
        sum[m] = 0.0;
    for (int d = 0; d < DIRECTIONS; d++) {
        const double *before = u[-strides[d]].v, *after = u[strides[d]].v;
        double carried = 0.25 / g->distance[d], spread = diffusion / (g->distance[d] * g->distance[d]);
        double left = carried * speed(before, d), right = carried * speed(after, d);
        for (int m = 0; m < FIELDS; m++)
            sum[m] += left * before[m] - right * after[m] + spread * (before[m] - 2.0 * u->v[m] + after[m]);
    }
}

/* ---- The known solution, and the fields at the start. ---- */

/* The known solution at any point, even outside of the grid. */
static inline point solution(const grid *g, long i, long j, long k) {
    double x = (double)i * g->distance[X], y = (double)j * g->distance[Y], z = (double)k * g->distance[Z];
    point p = {{0}};
    for (int m = 0; m < FIELDS; m++)
        p.v[m] = 1.0 + 0.1 * m + x * (1.0 - 0.3 * y) * (0.2 + 0.1 * m) + y * y * (0.3 - 0.2 * z) - 0.2 * z * x * x;
    return p;
}

static inline void initial_line(const grid *g, long i, long j) {
    for (long k = 0; k < g->nz; k++) {
        double x = (double)i * g->distance[X], y = (double)j * g->distance[Y], z = (double)k * g->distance[Z];
        double away = 30.0 * x * (1.0 - x) * y * (1.0 - y) * z * (1.0 - z);
        point p = solution(g, i, j, k);
        for (int m = 0; m < FIELDS; m++)
            p.v[m] += away * (m % 2 ? -0.5 : 0.5);
        g->u[at(g, i, j, k)] = p;
    }
}

/* The forcing, which keeps the solution unchanged. */
static inline void force_line(const grid *g, long i, long j, change_function *change) {
    static const long strides[DIRECTIONS] = {25, 5, 1};
    for (long k = 1; k < g->nz - 1; k++) {
        const long position[DIRECTIONS] = {i, j, k};
        point near[125], *middle = &near[62];
        for (long away = -2; away <= 2; away++) {
            middle[away * strides[X]] = solution(g, i + away, j, k);
            middle[away * strides[Y]] = solution(g, i, j + away, k);
            middle[away * strides[Z]] = solution(g, i, j, k + away);
        }
        double *out = g->forcing[at(g, i, j, k)].v;
        change(g, middle, strides, position, out);
        for (int m = 0; m < FIELDS; m++)
            out[m] = -out[m];
    }
}

static inline void initialise(const grid *g, change_function *change) {
    long n = g->n;
#pragma omp parallel if (g->parallel)
    for (int part = 0; part < g->rows.parts; part++) {
        nw_range j = nw_part(g->columns, part);
        nw_for_exclusive (i, 0, n, g->rows, part)
            for (long column = j.begin; column < j.end; column++) {
                initial_line(g, i, column);
                if (i > 0 && i < n - 1 && column > 0 && column < n - 1)
                    force_line(g, i, column, change);
            }
    }
}

/* ---- The largest difference from the solution, and a checksum of the fields. Neither depends on the order. ---- */

typedef struct {
    double error;
    uint64_t bits;
} measure;

static inline void measure_line(const grid *g, long i, long j, measure *sum) {
    for (long k = 0; k < g->nz; k++) {
        const point *u = &g->u[at(g, i, j, k)];
        point want = solution(g, i, j, k);
        for (int m = 0; m < FIELDS; m++) {
            uint64_t bits;
            memcpy(&bits, &u->v[m], sizeof bits);
            sum->bits += mix(bits ^ (uint64_t)(at(g, i, j, k) * FIELDS + (size_t)m));
            sum->error = fmax(sum->error, fabs(u->v[m] - want.v[m]));
        }
    }
}

static inline measure measured(const grid *g) {
    double error = 0.0;
    uint64_t bits = 0;
#pragma omp parallel reduction(max : error) reduction(+ : bits)
    for (int part = 0; part < g->rows.parts; part++) {
        nw_range j = nw_part(g->columns, part);
        measure sum = {error, bits};
        nw_for_exclusive (i, 0, g->n, g->rows, part)
            for (long column = j.begin; column < j.end; column++)
                measure_line(g, i, column, &sum);
        error = sum.error;
        bits = sum.bits;
    }
    measure all = {error, bits};
    return all;
}

/* ---- Set-up. ---- */

static inline grid make_grid(const workload *w, const options *o) {
    if (o->size < 5)
        give_up(w, "at least 5 points, not fewer", "");
    long n = o->size, nz = n < 16 ? 4 : n / 4;
    size_t edge = (size_t)n, depth = (size_t)nz;
    nw_cuts whole = {0, n, 1};
    grid g = {.n = n, .nz = nz, .form = o->form, .parallel = o->parallel, .rows = whole, .columns = whole};
    g.distance[X] = g.distance[Y] = 1.0 / (double)(n - 1);
    g.distance[Z] = 1.0 / (double)(nz - 1);
    g.u = nw_alloc_3d(edge, edge, depth, sizeof *g.u);
    g.rhs = nw_alloc_3d(edge, edge, depth, sizeof *g.rhs);
    g.forcing = nw_alloc_3d(edge, edge, depth, sizeof *g.forcing);
    need_memory(w, g.u && g.rhs && g.forcing);
    nw_bind_openmp();
    return g;
}

static inline void free_grid(grid *g) { nw_free(g->u), nw_free(g->rhs), nw_free(g->forcing); }

/* ---- The verdict. ---- */

/* Whether the error falls, checked after 1, 2, 4, 8, … iterations. */
typedef struct {
    double error;
    int ok;
} fall;

static inline void note(fall *f, double error) {
    f->ok &= error <= f->error || error < 1e-11; /* below that, rounding keeps it from falling */
    f->error = error;
}

static inline void look(fall *f, const grid *g, long iteration) {
    if ((iteration & (iteration + 1)) == 0)
        note(f, measured(g).error);
}

static inline int finish(const workload *w, const options *o, const grid *g, fall f) {
    measure end = measured(g);
    note(&f, end.error);
    return verdict(w, o->size, o->iterations, (double)(end.bits >> 11), f.ok);
}

#endif
