/* Five coupled fields brought to a steady state by symmetric successive over-relaxation, as in NAS LU: each
 * step visits the points once in ascending order, in which each point depends on those before it in x, y and
 * z, and once in descending order.
 *
 * In both orders rows (x) are distributed over threads, each of which works one column (y) behind the one
 * before. In descending order the first iteration is the last row, so that schedule(static) gives the first
 * thread the last rows, which belong to another thread; static-inverse gives each thread its own rows again
 * (Majo and Gross, CGO 2012, Figure 14).
 *
 * Verified: the forcing keeps a known solution unchanged, and steps bring other fields to it. */
#include "grid.h"

static const workload lu = {
    .name = "lu",
    .does = "five coupled fields by symmetric over-relaxation, row after row",
    .size_is = "points along x and y, four times those along z",
    .small = 32,
    .size = 128,
    .largest = 1024,
    .iterations = 20,
    .parallel = 1,
    .nas = NAS_PARALLEL,
    .forms = 1u << FORM_DEFAULT | 1u << FORM_MATCHED,
};

static const double step = 0.5;  /* of time */
static const double relax = 1.2; /* NAS LU's */

/* A thread's rows without those on the boundary, for which there is nothing to do. These are distributed too, so
 * that both orders have the same chunks if the number of threads divides that of rows. */
static nw_range interior(const grid *g, nw_range rows) { return nw_meet(rows, 1, g->n - 1); }

static void compute_rhs(const grid *g) {
    const long strides[DIRECTIONS] = {stride(g, X), stride(g, Y), stride(g, Z)};
#pragma omp parallel
    {
        nw_range rows = interior(g, nw_static(0, g->n, NW_THREAD, NW_THREADS));
        for (long i = rows.begin; i < rows.end; i++)
            for (long j = 1; j < g->n - 1; j++)
                for (size_t p = at(g, i, j, 1); p < at(g, i, j, g->nz - 1); p++) {
                    double sum[FIELDS];
                    change(g, &g->u[p], strides, NULL, sum);
                    for (int m = 0; m < FIELDS; m++)
                        g->rhs[p].v[m] = step * (sum[m] + g->forcing[p].v[m]);
                }
    }
}

/* Adds to `sum` the effect of a neighbour's change `v`, at its fields `u`, by the derivative of change(). */
static inline void couple(const grid *g, const point *u, const point *v, int direction, int sign, double *sum) {
    double distance = g->distance[direction], carried = sign * 0.25 * step / distance;
    double mixed = carried * speed(v->v, direction);
    double own = carried * speed(u->v, direction) - step * diffusion / (distance * distance);
    for (int m = 0; m < FIELDS; m++)
        sum[m] += mixed * u->v[m] + own * v->v[m];
}

/* The effect on a point of its neighbours on one side: sign -1 before, 1 after. */
static inline void relax_point(const grid *g, size_t p, int sign, double taken[FIELDS]) {
    for (int m = 0; m < FIELDS; m++)
        taken[m] = 0.0;
    for (int d = 0; d < DIRECTIONS; d++) {
        size_t neighbour = p + (size_t)(sign * stride(g, d));
        couple(g, &g->u[neighbour], &g->rhs[neighbour], d, sign, taken);
    }
}

/* The effect of a point on itself. */
static double diagonal(const grid *g) {
    double sum = 1.0;
    for (int d = 0; d < DIRECTIONS; d++)
        sum += 2.0 * step * diffusion / (g->distance[d] * g->distance[d]);
    return sum;
}

static void lower_line(const grid *g, long i, long j, double scale) {
    for (size_t p = at(g, i, j, 1); p < at(g, i, j, g->nz - 1); p++) {
        double taken[FIELDS];
        relax_point(g, p, -1, taken);
        for (int m = 0; m < FIELDS; m++)
            g->rhs[p].v[m] = scale * (g->rhs[p].v[m] - relax * taken[m]);
    }
}

static void upper_line(const grid *g, long i, long j, double scale) {
    for (size_t p = at(g, i, j, g->nz - 2); p >= at(g, i, j, 1); p--) {
        double taken[FIELDS];
        relax_point(g, p, 1, taken);
        for (int m = 0; m < FIELDS; m++)
            g->rhs[p].v[m] -= scale * relax * taken[m];
    }
}

/* Ascending: the thread of the chunk before is one column ahead. */
static void lower(const grid *g) {
    double scale = 1.0 / diagonal(g);
#pragma omp parallel
    {
        nw_range rows = interior(g, nw_static(0, g->n, NW_THREAD, NW_THREADS));
        for (long round = 1; round < g->n - 1 + NW_THREADS - 1; round++) {
            long j = round - NW_THREAD;
            if (j >= 1 && j < g->n - 1)
                for (long i = rows.begin; i < rows.end; i++)
                    lower_line(g, i, j, scale);
#pragma omp barrier
        }
    }
}

/* Descending: iteration 0 is the last row. */
static void upper(const grid *g) {
    double scale = 1.0 / diagonal(g);
    long last = g->n - 1;
#pragma omp parallel
    {
        int chunk = g->form == FORM_MATCHED ? NW_THREADS - 1 - NW_THREAD : NW_THREAD;
        nw_range dealt = g->form == FORM_MATCHED ? nw_static_inverse(0, g->n, NW_THREAD, NW_THREADS)
                                                 : nw_static(0, g->n, NW_THREAD, NW_THREADS);
        nw_range down = interior(g, dealt);
        for (long round = 1; round < last + NW_THREADS - 1; round++) {
            long j = last - (round - chunk);
            if (j >= 1 && j < last)
                for (long iteration = down.begin; iteration < down.end; iteration++)
                    upper_line(g, last - iteration, j, scale);
#pragma omp barrier
        }
    }
}

static void add(const grid *g) {
    double scale = 1.0 / (relax * (2.0 - relax));
#pragma omp parallel
    {
        nw_range rows = interior(g, nw_static(0, g->n, NW_THREAD, NW_THREADS));
        for (long i = rows.begin; i < rows.end; i++)
            for (size_t p = at(g, i, 0, 0); p < at(g, i + 1, 0, 0); p++)
                for (int m = 0; m < FIELDS; m++)
                    g->u[p].v[m] += scale * g->rhs[p].v[m];
    }
}

int main(int argc, char **argv) {
    options o = parse_options(&lu, argc, argv);
    grid g = make_grid(&lu, &o);
    initialise(&g, change);
    fall error = {measured(&g).error, 1};
    for (long k = 0; k < o.iterations; k++) {
        compute_rhs(&g);
        lower(&g);
        upper(&g);
        add(&g);
        look(&error, &g, k);
    }
    int status = finish(&lu, &o, &g, error);
    free_grid(&g);
    return status;
}
