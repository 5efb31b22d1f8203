/* One-dimensional fast Fourier transform, forward and back, by the six-step algorithm (Bailey 1990) as in
 * SPLASH-2's FFT: n points are a matrix of √n rows, with a block of rows for each thread. A transform
 * transposes, transforms rows, multiplies each number by its twiddle factor, transposes, transforms rows
 * and transposes again. Threads read each other's data in the transposes only: each reads blocks of columns
 * from the rows of the others, beginning with its neighbour's, and writes its own rows.
 *
 * As there, the matrix, the matrix that it is transposed into, and the twiddle factors are shared and have
 * one layout: rows are padded so that a thread's block begins on a page (if the number of threads divides
 * that of rows), and so that columns do not conflict in a cache. Each thread has its own copy of the √n
 * roots of unity for the transforms of rows.
 *
 * Verified: a wave becomes a single peak, and transforming back yields the initial array. */
#include "workload.h"
#include <complex.h>
#include <math.h>
#include <omp.h>

static const workload fft = {
    .name = "fft",
    .does = "1-D fast Fourier transform in six steps, forth and back",
    .size_is = "points, a power of four",
    .small = 4096,
    .size = 4194304,
    .largest = 4294967296,
    .iterations = 3,
};

typedef double complex number;

enum { PAGE = 4096, EDGE = 8 /* of a block in transposes: numbers of two cache lines */ };

typedef struct {
    long root;  /* rows, and numbers in one */
    long width; /* numbers from row to row */
    number *x, *scratch, *twiddle;
} matrix;

/* Thread t's first row. */
static long first_row(const matrix *m, long t, long threads) { return m->root * t / threads; }

static long padded(long root, long threads) {
    long rows = (root + threads - 1) / threads, page = PAGE / (long)sizeof(number);
    long pages = rows * root / page + 1;
    return pages * page / rows;
}

/* exp(2πi k / n) */
static inline number unit(long k, long n) {
    double angle = 2.0 * acos(-1.0) * (double)k / (double)n;
    return cos(angle) + I * sin(angle);
}

/* (a + bi)(c + di) without the special cases for infinities that the language requires. */
static inline number times(number p, number q) {
    double a = creal(p), b = cimag(p), c = creal(q), d = cimag(q);
    return (a * c - b * d) + I * (a * d + b * c);
}

static void transpose(const matrix *m, const number *restrict from, number *restrict to) {
#pragma omp parallel
    {
        long thread = omp_get_thread_num(), threads = omp_get_num_threads();
        long begin = first_row(m, thread, threads), end = first_row(m, thread + 1, threads);
        for (long step = 1; step <= threads; step++) {
            long other = (thread + step) % threads;
            long from_row = first_row(m, other, threads), from_end = first_row(m, other + 1, threads);
            for (long i = from_row; i < from_end; i += EDGE)
                for (long j = begin; j < end; j += EDGE)
                    for (long column = j; column < j + EDGE && column < end; column++)
                        for (long row = i; row < i + EDGE && row < from_end; row++)
                            to[column * m->width + row] = from[row * m->width + column];
        }
    }
}

static void reverse(number *row, long n) {
    for (long k = 0, r = 0; k < n; k++) {
        if (k < r) {
            number other = row[k];
            row[k] = row[r];
            row[r] = other;
        }
        long bit = n >> 1;
        while (bit && r & bit)
            r ^= bit, bit >>= 1;
        r |= bit;
    }
}

/* `roots` are exp(-2πi k / n), k < n/2, or their conjugates to transform back. */
static void transform(number *row, const number *roots, long n) {
    reverse(row, n);
    for (long half = 1; half < n; half *= 2)
        for (long from = 0; from < n; from += 2 * half)
            for (long k = 0; k < half; k++) {
                number *low = row + from + k, *high = low + half;
                number odd = times(roots[k * (n / 2 / half)], *high), even = *low;
                *low = even + odd;
                *high = even - odd;
            }
}

static number *private_roots(long n, int back) {
    number *roots = malloc((size_t)(n / 2) * sizeof *roots);
    need_memory(&fft, roots != NULL);
    for (long k = 0; k < n / 2; k++)
        roots[k] = unit(back ? k : -k, n);
    return roots;
}

static void transform_rows(const matrix *m, number *a, int back, int twiddled) {
    double scale = back && !twiddled ? 1.0 / (double)(m->root * m->root) : 1.0;
#pragma omp parallel
    {
        long thread = omp_get_thread_num(), threads = omp_get_num_threads();
        number *roots = private_roots(m->root, back);
        for (long i = first_row(m, thread, threads); i < first_row(m, thread + 1, threads); i++) {
            number *row = a + i * m->width;
            const number *turn = m->twiddle + i * m->width;
            transform(row, roots, m->root);
            for (long j = 0; twiddled && j < m->root; j++)
                row[j] = times(row[j], back ? conj(turn[j]) : turn[j]);
            for (long j = 0; back && !twiddled && j < m->root; j++)
                row[j] *= scale;
        }
        free(roots);
    }
}

static void copy(const matrix *m, const number *restrict from, number *restrict to) {
#pragma omp parallel
    {
        long thread = omp_get_thread_num(), threads = omp_get_num_threads();
        for (long i = first_row(m, thread, threads); i < first_row(m, thread + 1, threads); i++)
            for (long j = 0; j < m->root; j++)
                to[i * m->width + j] = from[i * m->width + j];
    }
}

static void six_steps(const matrix *m, int back) {
    transpose(m, m->x, m->scratch);
    transform_rows(m, m->scratch, back, 1);
    transpose(m, m->scratch, m->x);
    transform_rows(m, m->x, back, 0);
    transpose(m, m->x, m->scratch);
    copy(m, m->scratch, m->x);
}

enum { FREQUENCY = 5 };

/* Point k of the wave. */
static number wave(const matrix *m, long k) {
    long n = m->root * m->root;
    return unit(FREQUENCY * k % n, n);
}

static void initialise(const matrix *m, int parallel) {
#pragma omp parallel for if (parallel)
    for (long i = 0; i < m->root; i++)
        for (long j = 0; j < m->root; j++) {
            long at = i * m->width + j;
            m->x[at] = wave(m, i * m->root + j);
            m->scratch[at] = 0.0;
            m->twiddle[at] = unit(-(i * j), m->root * m->root);
        }
}

static double largest_error(const matrix *m) {
    double worst = 0.0;
#pragma omp parallel for reduction(max : worst)
    for (long i = 0; i < m->root; i++)
        for (long j = 0; j < m->root; j++)
            worst = fmax(worst, cabs(m->x[i * m->width + j] - wave(m, i * m->root + j)));
    return worst;
}

static number *allocate(const matrix *m) {
    size_t bytes = (size_t)(m->root * m->width) * sizeof(number);
    number *a = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    need_memory(&fft, a != NULL);
    return a;
}

int main(int argc, char **argv) {
    options o = parse_options(&fft, argc, argv);
    if (o.size < 4 || o.size & (o.size - 1) || !(o.size & 0x5555555555555555))
        give_up(&fft, "--size is a power of four, at least 4", "");
    matrix m = {.root = 1};
    while (m.root * m.root < o.size)
        m.root *= 2;
    m.width = padded(m.root, omp_get_max_threads());
    m.x = allocate(&m), m.scratch = allocate(&m), m.twiddle = allocate(&m);

    initialise(&m, o.parallel);
    double peak = 0.0;
    for (long k = 0; k < o.iterations; k++) {
        six_steps(&m, 0);
        peak = cabs(m.x[FREQUENCY / m.root * m.width + FREQUENCY % m.root]);
        six_steps(&m, 1);
    }
    int ok = fabs(peak / (double)o.size - 1.0) < 1e-9 && largest_error(&m) < 1e-12 * (double)o.iterations;
    int status = verdict(&fft, o.size, o.iterations, round(peak), ok);
    free(m.x), free(m.scratch), free(m.twiddle);
    return status;
}
