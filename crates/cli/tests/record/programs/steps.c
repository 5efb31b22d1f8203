/* Allocates its arrays anew in each of N steps and says what it did to them: per array the accesses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 512 /* doubles */

static volatile long steps = 10, sizes[2]; /* volatile: the loop stays one, its calls are the same in each step */

static double *allocate(long pages) { return malloc((size_t)pages * PAGE * sizeof(double)); }

int main(int argc, char **argv) {
    if (argc > 1)
        steps = atol(argv[1]);
    long large = argc > 2 ? atol(argv[2]) : 200, small = large / 4; /* pages */
    double sum = 0;
    sizes[0] = small;
    sizes[1] = large;
    for (long step = 0; step < steps; step++) {
        double *field = malloc((size_t)large * PAGE * sizeof *field);
        double *flux = malloc((size_t)small * PAGE * sizeof *flux);
        for (long i = 0; i < large * PAGE; i += 8)
            field[i] = (double)step; /* large * 64 writes a step */
        for (long i = 0; i < small * PAGE; i += 8)
            flux[i] = field[i]; /* small * 64 reads and writes */
        /* Two sizes from one site that take turns, and the order in which they go changes. */
        double *a = allocate(sizes[step % 2]), *b = allocate(sizes[1 - step % 2]);
        double *both[] = {a, b};
        for (long i = 0; i < small * PAGE; i += 64)
            a[i] = b[i] = 1;
        sum += field[8] + flux[8] + a[0] + b[64];
        free(both[step % 3 == 0]);
        free(both[step % 3 != 0]);
        free(field);
        free(flux);
    }
    printf("%g\n", sum);
    return 0;
}
