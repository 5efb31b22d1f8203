/* Pairs of random numbers, as in NAS EP: those in the unit circle are turned into normal deviates by Marsaglia's
 * method, which are summed, and counted by the integer part of the larger one. Each thread fills a buffer of its own,
 * batch after batch; only the totals are shared.
 *
 * Verified: about π/4 of all pairs are in the circle, and the means of the deviates are about zero. */
#include "workload.h"
#include <math.h>

static const workload ep = {
    .name = "ep",
    .does = "random pairs counted by the size of their normal deviates",
    .size_is = "batches of 65,536 pairs",
    .small = 4,
    .size = 256,
    .largest = 1048576,
    .iterations = 1,
    .parallel = 1,
    .nas = NAS_PARALLEL,
};

enum { PAIRS = 65536, RINGS = 10 }; /* NAS: MK = 16, NQ = 10 */

typedef struct {
    double x, y; /* sums of the deviates, times 2^30 and rounded, so that they do not depend on the order */
    long rings[RINGS];
} totals;

static void batch(long number, double *buffer, totals *t) {
    for (long i = 0; i < 2 * PAIRS; i++)
        buffer[i] = 2.0 * mix_unit((uint64_t)(number * 2 * PAIRS + i)) - 1.0;
    for (long i = 0; i < PAIRS; i++) {
        double x = buffer[2 * i], y = buffer[2 * i + 1], square = x * x + y * y;
        if (square > 1.0 || square == 0.0)
            continue;
        double scale = sqrt(-2.0 * log(square) / square), dx = x * scale, dy = y * scale;
        t->x += round(dx * 0x1p30);
        t->y += round(dy * 0x1p30);
        t->rings[(int)fmax(fabs(dx), fabs(dy))]++;
    }
}

int main(int argc, char **argv) {
    options o = parse_options(&ep, argc, argv);
    long batches = o.size * o.iterations, counted = 0;
    totals all = {0};
    int whole = 1;
#pragma omp parallel reduction(&& : whole)
    {
        totals own = {0};
        double *buffer = malloc(2 * PAIRS * sizeof *buffer);
        whole = buffer != NULL;
#pragma omp for
        for (long b = 0; b < batches; b++)
            if (buffer)
                batch(b, buffer, &own);
#pragma omp critical
        {
            all.x += own.x;
            all.y += own.y;
            for (int r = 0; r < RINGS; r++)
                all.rings[r] += own.rings[r];
        }
        free(buffer);
    }
    need_memory(&ep, whole);
    for (int r = 0; r < RINGS; r++)
        counted += all.rings[r];
    double pairs = (double)batches * PAIRS, bound = 5.0 * sqrt(pairs), share = (double)counted / pairs;
    int ok = fabs(share - atan(1.0)) < 5.0 / sqrt(pairs) && fabs(all.x) * 0x1p-30 < bound &&
             fabs(all.y) * 0x1p-30 < bound;
    return verdict(&ep, o.size, o.iterations, (double)counted + (all.x + all.y) * 0x1p-30, ok);
}
