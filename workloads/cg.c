/* Conjugate gradient for a sparse symmetric positive definite matrix, as in NAS CG: rows are distributed
 * over threads, but each thread reads elements from all of the vector that it multiplies with, so the
 * vector is uniformly shared. In the matched form, matrix and vectors are distributed by rows to the
 * threads' nodes before they are touched: as good as by a profile, but without one.
 *
 * Row i has the columns i and i ± d (mod n) for a few distances d. Its off-diagonal elements lie in
 * [-1, 0) and its diagonal exceeds their sum by 1, so all eigenvalues lie in [1, 1 + 2 · ROW].
 *
 * Verified: the solution is known, and after k iterations the energy norm of the error must have
 * fallen by ((√κ + 1) / (√κ - 1))^k / 2 with κ = 1 + 2 · ROW, or to rounding. */
#include "nodewise_schedule.h"
#include "workload.h"
#include <math.h>

static const workload cg = {
    .name = "cg",
    .does = "conjugate gradient on a sparse matrix",
    .size_is = "rows of the matrix",
    .small = 20000,
    .size = 800000,
    .largest = 50000000,
    .iterations = 40,
    .nas = NAS_VECTORS,
    .forms = 1u << FORM_DEFAULT | 1u << FORM_MATCHED,
};

enum { DISTANCES = 12, ROW = 2 * DISTANCES, BLOCK = 4096 };

typedef struct {
    long n;
    long *first;   /* of row i: the index of its first element; n + 1 entries */
    int *column;   /* of each element */
    double *value; /* of each element */
} matrix;

/* The k-th distance: any but 0 and n / 2, for which two elements of a row would coincide. */
static long distance(long n, int k) { return 1 + (long)(mix((uint64_t)k) % (uint64_t)((n - 1) / 2 - 1)); }

static double element(long i, long j) {
    long low = i < j ? i : j, high = i < j ? j : i;
    return -1.0 + mix_unit((uint64_t)low * 0x100000001u + (uint64_t)high);
}

static void initialise(matrix *a, int parallel) {
#pragma omp parallel for if (parallel)
    for (long i = 0; i < a->n; i++) {
        long at = i * (ROW + 1), diagonal = at;
        double sum = 1.0;
        a->first[i] = at;
        at++;
        for (int k = 0; k < ROW; k++, at++) {
            long d = distance(a->n, k / 2);
            long j = k % 2 ? (i + d) % a->n : (i + a->n - d) % a->n;
            a->column[at] = (int)j;
            a->value[at] = element(i, j);
            sum -= a->value[at];
        }
        a->column[diagonal] = (int)i;
        a->value[diagonal] = sum;
    }
    a->first[a->n] = a->n * (ROW + 1);
}

/* out = A x */
static void multiply(const matrix *a, const double *restrict x, double *restrict out) {
#pragma omp parallel for
    for (long i = 0; i < a->n; i++) {
        double sum = 0.0;
        for (long k = a->first[i]; k < a->first[i + 1]; k++)
            sum += a->value[k] * x[a->column[k]];
        out[i] = sum;
    }
}

/* Sums block by block, so that the result does not depend on the number of threads. */
static double dot(const double *x, const double *y, long n) {
    long blocks = (n + BLOCK - 1) / BLOCK;
    double partial[blocks], sum = 0.0;
#pragma omp parallel for
    for (long b = 0; b < blocks; b++) {
        long end = (b + 1) * BLOCK < n ? (b + 1) * BLOCK : n;
        double part = 0.0;
        for (long i = b * BLOCK; i < end; i++)
            part += x[i] * y[i];
        partial[b] = part;
    }
    for (long b = 0; b < blocks; b++)
        sum += partial[b];
    return sum;
}

/* y = x + factor · y */
static void combine(double *restrict y, const double *restrict x, double factor, long n) {
#pragma omp parallel for
    for (long i = 0; i < n; i++)
        y[i] = x[i] + factor * y[i];
}

/* y += factor · x */
static void add(double *restrict y, const double *restrict x, double factor, long n) {
#pragma omp parallel for
    for (long i = 0; i < n; i++)
        y[i] += factor * x[i];
}

static double known(long i) { return 1.0 + mix_unit((uint64_t)i); }

/* The energy norm of x - known; uses `error` and `product`. */
static double error_norm(const matrix *a, const double *x, double *error, double *product) {
#pragma omp parallel for
    for (long i = 0; i < a->n; i++)
        error[i] = x[i] - known(i);
    multiply(a, error, product);
    return sqrt(dot(error, product, a->n));
}

/* Places the rows of an array, `columns` items each, on the nodes of the threads that work on them. */
static void distribute(void *array, size_t item, size_t rows, size_t columns) {
    size_t extents[] = {rows, columns};
    nw_adopt(array, item, 2, extents);
    nw_place(array, nw_bind(NW_ROWS));
}

int main(int argc, char **argv) {
    options o = parse_options(&cg, argc, argv);
    long n = o.size;
    if (n < 100)
        give_up(&cg, "--size is at least 100", "");
    size_t elements = (size_t)n * (ROW + 1), rows = (size_t)n;
    matrix a = {.n = n};
    a.first = malloc((rows + 1) * sizeof *a.first);
    a.column = malloc(elements * sizeof *a.column);
    a.value = malloc(elements * sizeof *a.value);
    double *x = malloc(rows * sizeof *x);
    double *residual = malloc(rows * sizeof *residual);
    double *direction = malloc(rows * sizeof *direction);
    double *product = malloc(rows * sizeof *product);
    need_memory(&cg, a.first && a.column && a.value && x && residual && direction && product);

    void *vectors[] = {x, residual, direction, product};
    if (o.form == FORM_MATCHED) {
        nw_bind_openmp();
        distribute(a.first, sizeof *a.first, rows, 1);
        distribute(a.column, sizeof *a.column, rows, ROW + 1);
        distribute(a.value, sizeof *a.value, rows, ROW + 1);
        for (int v = 0; v < 4; v++)
            distribute(vectors[v], sizeof(double), rows, 1);
    }
    initialise(&a, o.parallel);
#pragma omp parallel for if (o.vectors)
    for (long i = 0; i < n; i++) {
        x[i] = known(i);
        residual[i] = direction[i] = product[i] = 0.0;
    }
    multiply(&a, x, residual); /* the right-hand side, and the residual of x = 0 */
    memset(x, 0, rows * sizeof *x);
    memcpy(direction, residual, rows * sizeof *direction);

    double before = error_norm(&a, x, product, direction);
    memcpy(direction, residual, rows * sizeof *direction);
    double rr = dot(residual, residual, n);
    for (long k = 0; k < o.iterations && rr > 0.0; k++) {
        multiply(&a, direction, product);
        double alpha = rr / dot(direction, product, n);
        add(x, direction, alpha, n);
        add(residual, product, -alpha, n);
        double next = dot(residual, residual, n);
        combine(direction, residual, next / rr, n);
        rr = next;
    }
    double checksum = dot(x, x, n);
    double after = error_norm(&a, x, product, direction);
    double root = sqrt(1.0 + 2.0 * ROW), rate = (root - 1.0) / (root + 1.0);
    double bound = 2.0 * pow(rate, (double)o.iterations);
    int status = verdict(&cg, n, o.iterations, checksum, after <= before * (bound > 1e-12 ? bound : 1e-12));
    if (o.form == FORM_MATCHED) {
        nw_forget(a.first), nw_forget(a.column), nw_forget(a.value);
        for (int v = 0; v < 4; v++)
            nw_forget(vectors[v]);
    }
    free(a.first), free(a.column), free(a.value);
    free(x), free(residual), free(direction), free(product);
    return status;
}
