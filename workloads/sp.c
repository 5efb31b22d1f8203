/* Implicit time steps for five coupled fields, as in NAS SP: along x, then y, then z, a scalar
 * pentadiagonal system is solved for each line, the same one for all five fields.
 *
 * Its phases are those of bt (phases.h), with less arithmetic per memory access.
 *
 * Verified: the forcing keeps a known solution unchanged, and steps bring other fields to it. */
#include "phases.h"

static const workload sp = {
    .name = "sp",
    .does = "implicit steps for five coupled fields, scalar pentadiagonal",
    .size_is = "points along x and y, four times those along z",
    .small = 32,
    .size = 128,
    .largest = 1024,
    .iterations = 20,
    .parallel = 1,
    .nas = NAS_PARALLEL,
    .forms = 1u << FORM_DEFAULT | 1u << FORM_REDISTRIBUTE | 1u << FORM_ITERATE | 1u << FORM_MATCHED,
};

static const double damping = 0.25; /* of oscillations from point to point, by the fourth difference */

/* One equation of a line, for the points two and one before, here, one and two after. */
enum { BEFORE2, BEFORE, HERE, AFTER, AFTER2, COEFFICIENTS };

typedef struct {
    double of[8]; /* five in use */
} equation;

/* ---- The right-hand side. ---- */

/* The fourth difference leaves out points on the boundary or beyond. */
static inline void fourth_difference(long position, long points, double out[COEFFICIENTS]) {
    static const double whole[COEFFICIENTS] = {1.0, -4.0, 6.0, -4.0, 1.0};
    for (long c = 0; c < COEFFICIENTS; c++) {
        long at = position + c - HERE;
        out[c] = at > 0 && at < points - 1 ? whole[c] : 0.0;
    }
    if (position == 1 || position == points - 2)
        out[HERE] = 5.0;
}

/* Distances to the points two before and two after. Where these would be beyond the boundary their weight is zero,
 * and another point is read instead. */
static inline long two_before(long next, long position) { return position > 1 ? 2 * next : next; }

static inline long two_after(long next, long position, long points) { return position < points - 2 ? 2 * next : next; }

/* The fields are carried, diffuse and are damped. */
static inline void change_damped(const grid *g, const point *u, const long strides[DIRECTIONS],
                                 const long position[DIRECTIONS], double *sum) {
    const long points[DIRECTIONS] = {g->n, g->n, g->nz};
    for (int m = 0; m < FIELDS; m++)
        sum[m] = 0.0;
    for (int d = 0; d < DIRECTIONS; d++) {
        double weights[COEFFICIENTS];
        fourth_difference(position[d], points[d], weights);
        double carried = 0.5 * speed(u->v, d) / g->distance[d], spread = diffusion / (g->distance[d] * g->distance[d]);
        const point *before = u - strides[d], *after = u + strides[d];
        const point *before2 = u - two_before(strides[d], position[d]);
        const point *after2 = u + two_after(strides[d], position[d], points[d]);
        for (int m = 0; m < FIELDS; m++)
            sum[m] += carried * (before->v[m] - after->v[m]) + spread * (before->v[m] - 2.0 * u->v[m] + after->v[m]) -
                      damping *
                          (weights[BEFORE2] * before2->v[m] + weights[BEFORE] * before->v[m] + weights[HERE] * u->v[m] +
                           weights[AFTER] * after->v[m] + weights[AFTER2] * after2->v[m]);
    }
}

/* ---- One line's equations. ---- */

/* The equations of the points (i, j, ·) along a direction. */
static void build_line(const grid *g, int direction, long i, long j) {
    double distance = g->distance[direction], spread = step * diffusion / (distance * distance);
    for (long k = 1; k < g->nz - 1; k++) {
        size_t p = at(g, i, j, k);
        double carried = 0.5 * step * speed(g->u[p].v, direction) / distance, *out = ((equation *)g->lhs)[p].of;
        fourth_difference(along(direction, i, j, k), direction == Z ? g->nz : g->n, out);
        for (int c = 0; c < COEFFICIENTS; c++)
            out[c] *= step * damping;
        out[BEFORE] -= spread + carried;
        out[HERE] += 1.0 + 2.0 * spread;
        out[AFTER] -= spread - carried;
    }
}

/* Eliminates the points before from an equation, and makes its middle coefficient 1. Equations on the
 * boundary are zero. */
static inline void eliminate(equation *here, const equation *before, const equation *before2, point *rhs,
                             const point *rhs_before, const point *rhs_before2) {
    double far = here->of[BEFORE2], near = here->of[BEFORE] - far * before2->of[AFTER];
    double pivot = here->of[HERE] - far * before2->of[AFTER2] - near * before->of[AFTER];
    double scale = 1.0 / pivot;
    here->of[AFTER] = scale * (here->of[AFTER] - near * before->of[AFTER2]);
    here->of[AFTER2] *= scale;
    for (int m = 0; m < FIELDS; m++)
        rhs->v[m] = scale * (rhs->v[m] - far * rhs_before2->v[m] - near * rhs_before->v[m]);
}

static void eliminate_line(const grid *g, int direction, long i, long j) {
    long next = stride(g, direction);
    for (long k = 1; k < g->nz - 1; k++) {
        equation *here = (equation *)g->lhs + at(g, i, j, k);
        point *rhs = &g->rhs[at(g, i, j, k)];
        long two = two_before(next, along(direction, i, j, k));
        eliminate(here, here - next, here - two, rhs, rhs - next, rhs - two);
    }
}

static void substitute_line(const grid *g, int direction, long i, long j) {
    long next = stride(g, direction), points = direction == Z ? g->nz : g->n;
    for (long k = g->nz - 2; k >= 1; k--) {
        const equation *here = (equation *)g->lhs + at(g, i, j, k);
        point *rhs = &g->rhs[at(g, i, j, k)];
        const point *after = rhs + next, *after2 = rhs + two_after(next, along(direction, i, j, k), points);
        for (int m = 0; m < FIELDS; m++)
            rhs->v[m] -= here->of[AFTER] * after->v[m] + here->of[AFTER2] * after2->v[m];
    }
}

int main(int argc, char **argv) {
    const solver s = {change_damped, build_line, eliminate_line, substitute_line, sizeof(equation)};
    return run(&sp, argc, argv, &s);
}
