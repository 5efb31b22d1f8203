/* Two parallel regions, ten times over. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    (void)argv;
    long n = 1 << 15;
    double *a = calloc(n, sizeof *a);
    for (int round = 0; round < 10; round++) {
#pragma omp parallel for
        for (long i = 0; i < n; i++)
            a[i] += argc;
#pragma omp parallel for
        for (long i = 1; i < n; i++)
            a[i] *= 0.5;
    }
    printf("%.3f\n", a[n - 1]);
    return 0;
}
