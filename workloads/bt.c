/* Implicit time steps for five coupled fields, as in NAS BT: along x, then y, then z, a block
 * tridiagonal system is solved for each line, with blocks of 5 × 5.
 *
 * phases.h describes how its phases access its arrays.
 *
 * Verified: the forcing keeps a known solution unchanged, and steps bring other fields to it. */
#include "phases.h"

static const workload bt = {
    .name = "bt",
    .does = "implicit steps for five coupled fields, block tridiagonal",
    .size_is = "points along x and y, four times those along z",
    .small = 32,
    .size = 96,
    .largest = 1024,
    .iterations = 20,
    .parallel = 1,
    .nas = NAS_PARALLEL,
    .forms = 1u << FORM_DEFAULT | 1u << FORM_REDISTRIBUTE | 1u << FORM_ITERATE | 1u << FORM_MATCHED,
};

typedef double block[FIELDS][FIELDS];

/* One equation of a line: before · x[i-1] + here · x[i] + after · x[i+1] = rhs[i]. */
typedef struct {
    block before, here, after;
    double unused[FIELDS]; /* so that 32 of them are five pages */
} equation;

/* The derivative of what is carried past a point, and of what diffuses to its neighbour. */
static inline void fill(block out, const double *u, int direction, double carried, double spread) {
    double own = carried * speed(u, direction);
    for (int m = 0; m < FIELDS; m++)
        for (int c = 0; c < FIELDS; c++)
            out[m][c] = carried * u[m] * carry[direction][c] + (m == c ? own - spread : 0.0);
}

/* The equations of the points (i, j, ·) along a direction. */
static void build_line(const grid *g, int direction, long i, long j) {
    double distance = g->distance[direction];
    double carried = 0.25 * step / distance, spread = step * diffusion / (distance * distance);
    long next = stride(g, direction);
    equation *lhs = g->lhs;
    for (size_t p = at(g, i, j, 1); p < at(g, i, j, g->nz - 1); p++) {
        const point *u = &g->u[p];
        fill(lhs[p].before, u[-next].v, direction, -carried, spread);
        fill(lhs[p].after, u[next].v, direction, carried, spread);
        for (int m = 0; m < FIELDS; m++)
            for (int c = 0; c < FIELDS; c++)
                lhs[p].here[m][c] = m == c ? 1.0 + 2.0 * spread : 0.0;
    }
}

/* rhs -= a · x */
static inline void matvec_sub(block a, const double *x, double *rhs) {
    for (int m = 0; m < FIELDS; m++)
        for (int c = 0; c < FIELDS; c++)
            rhs[m] -= a[m][c] * x[c];
}

/* b -= a · c */
static inline void matmul_sub(block a, block c, block b) {
    for (int m = 0; m < FIELDS; m++)
        for (int k = 0; k < FIELDS; k++)
            for (int l = 0; l < FIELDS; l++)
                b[m][l] -= a[m][k] * c[k][l];
}

/* Solves b · x = c and b · x = rhs in place, by Gauss and Jordan; diagonals dominate. */
static inline void solve(block b, block c, double *rhs) {
    for (int p = 0; p < FIELDS; p++) {
        double pivot = 1.0 / b[p][p];
        for (int l = p + 1; l < FIELDS; l++)
            b[p][l] *= pivot;
        for (int l = 0; l < FIELDS; l++)
            c[p][l] *= pivot;
        rhs[p] *= pivot;
        for (int m = 0; m < FIELDS; m++) {
            if (m == p)
                continue;
            double factor = b[m][p];
            for (int l = p + 1; l < FIELDS; l++)
                b[m][l] -= factor * b[p][l];
            for (int l = 0; l < FIELDS; l++)
                c[m][l] -= factor * c[p][l];
            rhs[m] -= factor * rhs[p];
        }
    }
}

/* There are no equations on the boundary, where nothing changes, so the first one has none before it. */
static void eliminate_line(const grid *g, int direction, long i, long j) {
    long next = stride(g, direction);
    for (long k = 1; k < g->nz - 1; k++) {
        equation *lhs = (equation *)g->lhs + at(g, i, j, k);
        point *rhs = &g->rhs[at(g, i, j, k)];
        if (along(direction, i, j, k) > 1) {
            matvec_sub(lhs->before, rhs[-next].v, rhs->v);
            matmul_sub(lhs->before, lhs[-next].after, lhs->here);
        }
        solve(lhs->here, lhs->after, rhs->v);
    }
}

static void substitute_line(const grid *g, int direction, long i, long j) {
    long next = stride(g, direction);
    for (long k = g->nz - 2; k >= 1; k--) {
        equation *lhs = (equation *)g->lhs + at(g, i, j, k);
        point *rhs = &g->rhs[at(g, i, j, k)];
        matvec_sub(lhs->after, rhs[next].v, rhs->v);
    }
}

int main(int argc, char **argv) {
    const solver s = {change, build_line, eliminate_line, substitute_line, sizeof(equation)};
    return run(&bt, argc, argv, &s);
}
