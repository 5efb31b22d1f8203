/* Dense LU factorisation without pivoting, by blocks of 16 × 16, as in SPLASH-2's LU with contiguous blocks:
 * blocks are assigned to a grid of threads, cyclically in rows and columns, so that all threads have work
 * until the end. Each step factors a block of the diagonal, then the blocks below and beside it, then
 * subtracts their products from all blocks below and beside those.
 *
 * As there, only the matrix is shared. A block is contiguous, and blocks of different threads are on
 * different pages. A thread writes only its own blocks, and reads those of its row and its column of the
 * grid.
 *
 * Verified: the factors solve a system whose solution is known. */
#include "workload.h"
#include <math.h>
#include <omp.h>

static const workload dense_lu = {
    .name = "dense_lu",
    .does = "dense LU factorisation by blocks",
    .size_is = "rows, a multiple of 16",
    .small = 128,
    .size = 1024,
    .largest = 65536,
    .iterations = 1,
};

enum { EDGE = 16, PAGE = 4096 };

typedef double block[EDGE][EDGE];

typedef struct {
    long n, blocks; /* rows; blocks in a row */
    int threads, rows, columns; /* the grid of threads */
    char *memory;
    block **at; /* blocks × blocks */
} matrix;

static inline block *block_at(const matrix *m, long i, long j) { return m->at[i * m->blocks + j]; }

static inline int owner(const matrix *m, long i, long j) {
    return (int)(i % m->rows) * m->columns + (int)(j % m->columns);
}

/* Stores the blocks owner by owner; those of each owner begin on a new page. */
static void lay_out(matrix *m) {
    size_t count = (size_t)(m->blocks * m->blocks), threads = (size_t)m->threads;
    m->at = malloc(count * sizeof *m->at);
    m->memory = aligned_alloc(PAGE, (count * sizeof(block) / PAGE + threads + 1) * PAGE);
    need_memory(&dense_lu, m->at && m->memory);
    char *next = m->memory;
    for (int thread = 0; thread < m->threads; thread++) {
        for (long i = 0; i < m->blocks; i++)
            for (long j = 0; j < m->blocks; j++)
                if (owner(m, i, j) == thread) {
                    m->at[i * m->blocks + j] = (block *)next;
                    next += sizeof(block);
                }
        next += (PAGE - (next - m->memory) % PAGE) % PAGE;
    }
}

/* Each element of the diagonal is larger than the sum of its row, so that no pivoting is needed. */
static double element(const matrix *m, long i, long j) {
    return mix_unit((uint64_t)(i * m->n + j)) - 0.5 + (i == j ? (double)m->n : 0.0);
}

/* Whether this thread owns the block. In a team of one thread, that owns all blocks. */
static inline int is_mine(const matrix *m, long i, long j) {
    return owner(m, i, j) % omp_get_num_threads() == omp_get_thread_num();
}

static void initialise(const matrix *m, int parallel) {
#pragma omp parallel if (parallel)
    for (long i = 0; i < m->blocks; i++)
        for (long j = 0; j < m->blocks; j++) {
            if (!is_mine(m, i, j))
                continue;
            block *b = block_at(m, i, j);
            for (long r = 0; r < EDGE; r++)
                for (long c = 0; c < EDGE; c++)
                    (*b)[r][c] = element(m, i * EDGE + r, j * EDGE + c);
        }
}

/* Factors a block of the diagonal in place: into U, and L with ones on its diagonal. */
static void factor(block *diagonal) {
    double(*a)[EDGE] = *diagonal;
    for (int k = 0; k < EDGE; k++)
        for (int i = k + 1; i < EDGE; i++) {
            a[i][k] /= a[k][k];
            for (int j = k + 1; j < EDGE; j++)
                a[i][j] -= a[i][k] * a[k][j];
        }
}

/* Multiplies a block below the diagonal by U's inverse. */
static void divide(block *below, const block *diagonal) {
    double(*a)[EDGE] = *below;
    const double(*d)[EDGE] = *diagonal;
    for (int i = 0; i < EDGE; i++)
        for (int k = 0; k < EDGE; k++) {
            a[i][k] /= d[k][k];
            for (int j = k + 1; j < EDGE; j++)
                a[i][j] -= a[i][k] * d[k][j];
        }
}

/* Multiplies a block beside the diagonal by L's inverse. */
static void solve(block *beside, const block *diagonal) {
    double(*a)[EDGE] = *beside;
    const double(*d)[EDGE] = *diagonal;
    for (int k = 0; k < EDGE; k++)
        for (int i = k + 1; i < EDGE; i++)
            for (int j = 0; j < EDGE; j++)
                a[i][j] -= d[i][k] * a[k][j];
}

static void subtract_product(block *c, const block *a, const block *b) {
    for (int k = 0; k < EDGE; k++)
        for (int i = 0; i < EDGE; i++)
            for (int j = 0; j < EDGE; j++)
                (*c)[i][j] -= (*a)[i][k] * (*b)[k][j];
}

static void perimeter(const matrix *m, long k) {
    const block *diagonal = block_at(m, k, k);
    for (long i = k + 1; i < m->blocks; i++) {
        if (is_mine(m, i, k))
            divide(block_at(m, i, k), diagonal);
        if (is_mine(m, k, i))
            solve(block_at(m, k, i), diagonal);
    }
}

static void interior(const matrix *m, long k) {
    for (long i = k + 1; i < m->blocks; i++)
        for (long j = k + 1; j < m->blocks; j++)
            if (is_mine(m, i, j))
                subtract_product(block_at(m, i, j), block_at(m, i, k), block_at(m, k, j));
}

static void factorise(const matrix *m) {
#pragma omp parallel num_threads(m->threads)
    for (long k = 0; k < m->blocks; k++) {
        if (is_mine(m, k, k))
            factor(block_at(m, k, k));
#pragma omp barrier
        perimeter(m, k);
#pragma omp barrier
        interior(m, k);
#pragma omp barrier
    }
}

static inline double factor_at(const matrix *m, long i, long j) {
    return (*block_at(m, i / EDGE, j / EDGE))[i % EDGE][j % EDGE];
}

/* Solves A x = b, where b is A times a vector of ones; returns the largest difference of x from that vector. */
static double distance_from_ones(const matrix *m) {
    double *x = malloc((size_t)m->n * sizeof *x), worst = 0.0;
    need_memory(&dense_lu, x != NULL);
    for (long i = 0; i < m->n; i++) {
        x[i] = 0.0;
        for (long j = 0; j < m->n; j++)
            x[i] += element(m, i, j);
        for (long j = 0; j < i; j++)
            x[i] -= factor_at(m, i, j) * x[j];
    }
    for (long i = m->n - 1; i >= 0; i--) {
        for (long j = i + 1; j < m->n; j++)
            x[i] -= factor_at(m, i, j) * x[j];
        x[i] /= factor_at(m, i, i);
        worst = fmax(worst, fabs(x[i] - 1.0));
    }
    free(x);
    return worst;
}

int main(int argc, char **argv) {
    options o = parse_options(&dense_lu, argc, argv);
    if (o.size % EDGE)
        give_up(&dense_lu, "--size is a multiple of 16", "");
    matrix m = {.n = o.size, .blocks = o.size / EDGE, .threads = omp_get_max_threads()};
    for (int d = 1; d * d <= m.threads; d++)
        if (m.threads % d == 0)
            m.columns = d;
    m.rows = m.threads / m.columns;
    lay_out(&m);

    for (long k = 0; k < o.iterations; k++) {
        initialise(&m, o.parallel);
        factorise(&m);
    }
    double checksum = 0.0;
    for (long i = 0; i < m.n; i++)
        checksum += log(factor_at(&m, i, i)); /* of the determinant */
    int status = verdict(&dense_lu, o.size, o.iterations, checksum, distance_from_ones(&m) < 1e-10);
    free(m.memory), free(m.at);
    return status;
}
