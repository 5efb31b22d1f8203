/* Three-dimensional fast Fourier transform, forward and back.
 *
 * Lines along x and y lie within a plane of z, which one thread owns; lines along z cross all
 * planes. The array is therefore read and written by all threads: the transpose pattern.
 *
 * Forms: matched puts each plane on the node of its thread, which suits two of three directions and is
 * the best that a single distribution can achieve; redistribute moves the array between planes of z and
 * planes of y, so that nothing is remote except the migration.
 *
 * Verified: a wave becomes a single peak, and transforming back yields the initial array. */
#include "nodewise_schedule.h"
#include "workload.h"
#include <complex.h>
#include <math.h>

static const workload fft3d = {
    .name = "fft3d",
    .does = "3-D fast Fourier transform, forth and back",
    .size_is = "points on an edge, a power of two",
    .small = 32,
    .size = 256,
    .largest = 2048,
    .iterations = 3,
    .nas = NAS_MASTER,
    .forms = 1u << FORM_DEFAULT | 1u << FORM_REDISTRIBUTE | 1u << FORM_MATCHED,
};

typedef double complex number;

enum { TILE = 8 }; /* lines transformed together: eight numbers fill two cache lines */

static number *root;    /* exp(-2πi k / n), k < n/2 */
static long *reversed;  /* k with its bits in reverse order */

static void tabulate(long n) {
    double step = -2.0 * acos(-1.0) / (double)n;
    for (long k = 0; k < n / 2; k++)
        root[k] = cos((double)k * step) + I * sin((double)k * step);
    for (long k = 0, r = 0; k < n; k++) {
        reversed[k] = r;
        long bit = n >> 1;
        while (bit && r & bit)
            r ^= bit, bit >>= 1;
        r |= bit;
    }
}

/* (a + bi)(c + di) without the special cases for infinities that the language requires. */
static inline number times(number p, number q) {
    double a = creal(p), b = cimag(p), c = creal(q), d = cimag(q);
    return (a * c - b * d) + I * (a * d + b * c);
}

/* TILE transforms of length n at once; element k of line t is at line[k * TILE + t]. */
static void transform(number *line, long n, int back) {
    for (long half = 1; half < n; half *= 2)
        for (long from = 0; from < n; from += 2 * half)
            for (long k = 0; k < half; k++) {
                number w = root[k * (n / 2 / half)];
                if (back)
                    w = conj(w);
                number *low = line + (from + k) * TILE, *high = low + half * TILE;
                for (int t = 0; t < TILE; t++) {
                    number odd = times(w, high[t]), even = low[t];
                    low[t] = even + odd;
                    high[t] = even - odd;
                }
            }
}

/* Transforms the TILE lines that begin at a[0], a[apart], …; points of a line are `stride` apart. */
static void lines(number *a, number *buffer, long n, long stride, long apart, int back) {
    double scale = back ? 1.0 / (double)n : 1.0;
    for (long k = 0; k < n; k++)
        for (int t = 0; t < TILE; t++)
            buffer[reversed[k] * TILE + t] = a[k * stride + t * apart];
    transform(buffer, n, back);
    for (long k = 0; k < n; k++)
        for (int t = 0; t < TILE; t++)
            a[k * stride + t * apart] = scale * buffer[k * TILE + t];
}

/* The distributions for phases that work by planes of z and by planes of y; null: nothing is moved. */
typedef struct {
    nw_distr *by_z, *by_y;
} layout;

static layout lay_out(number *a, long n, program_form form) {
    size_t edge = (size_t)n, extents[] = {edge, edge, edge};
    layout l = {NULL, NULL};
    if (form == FORM_DEFAULT)
        return l;
    nw_bind_openmp();
    nw_adopt(a, sizeof *a, 3, extents);
    l.by_z = nw_describe(a, nw_bind(NW_ROWS));
    l.by_y = form == FORM_REDISTRIBUTE ? nw_describe(a, nw_bind(NW_COLUMNS)) : NULL;
    nw_distribute(l.by_z);
    return l;
}

/* Called by all threads of the team. */
static void move(const nw_distr *to) {
#pragma omp single
    nw_distribute(to);
}

static void fft(number *a, long n, int back, layout l) {
#pragma omp parallel
    {
        number buffer[n * TILE];
#pragma omp for
        for (long z = 0; z < n; z++) {
            for (long y = 0; y < n; y += TILE)
                lines(a + (z * n + y) * n, buffer, n, 1, n, back);
            for (long x = 0; x < n; x += TILE)
                lines(a + z * n * n + x, buffer, n, n, 1, back);
        }
        if (l.by_y)
            move(l.by_y);
#pragma omp for
        for (long y = 0; y < n; y++)
            for (long x = 0; x < n; x += TILE)
                lines(a + y * n + x, buffer, n, n * n, 1, back);
        if (l.by_y)
            move(l.by_z);
    }
}

/* A wave of frequency (1, 2, 3) and unit height. */
static number wave(long n, long x, long y, long z) {
    long k = (x + 2 * y + 3 * z) % n;
    return k < n / 2 ? conj(root[k]) : -conj(root[k - n / 2]);
}

static void initialise(number *a, long n, int parallel) {
#pragma omp parallel for if (parallel)
    for (long z = 0; z < n; z++)
        for (long y = 0; y < n; y++)
            for (long x = 0; x < n; x++)
                a[(z * n + y) * n + x] = wave(n, x, y, z);
}

static double largest_error(const number *a, long n) {
    double worst = 0.0;
#pragma omp parallel for reduction(max : worst)
    for (long z = 0; z < n; z++)
        for (long y = 0; y < n; y++)
            for (long x = 0; x < n; x++)
                worst = fmax(worst, cabs(a[(z * n + y) * n + x] - wave(n, x, y, z)));
    return worst;
}

int main(int argc, char **argv) {
    options o = parse_options(&fft3d, argc, argv);
    long n = o.size;
    if (n < TILE || n & (n - 1))
        give_up(&fft3d, "--size is a power of two, at least 8", "");
    size_t edge = (size_t)n, points = edge * edge * edge;
    number *a = malloc(points * sizeof *a);
    root = malloc(edge / 2 * sizeof *root);
    reversed = malloc(edge * sizeof *reversed);
    need_memory(&fft3d, a && root && reversed);

    tabulate(n);
    layout l = lay_out(a, n, o.form);
    initialise(a, n, o.parallel);
    double peak = 0.0;
    for (long k = 0; k < o.iterations; k++) {
        fft(a, n, 0, l);
        peak = cabs(a[(3 * n + 2) * n + 1]);
        fft(a, n, 1, l);
    }
    int ok = fabs(peak / (double)points - 1.0) < 1e-9 && largest_error(a, n) < 1e-12 * (double)o.iterations;
    int status = verdict(&fft3d, n, o.iterations, round(peak), ok);
    if (o.form != FORM_DEFAULT) {
        nw_distr_free(l.by_z), nw_distr_free(l.by_y);
        nw_forget(a);
    }
    free(a), free(root), free(reversed);
    return status;
}
