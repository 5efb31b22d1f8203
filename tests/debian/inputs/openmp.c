#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    enum { N = 400000 };
    double *a = malloc(N * sizeof *a), sum = 0;
    static double fixed[40000];
    omp_set_num_threads(4);
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        a[i] = i % 1000;
#pragma omp parallel for
    for (int i = 0; i < 40000; i++)
        fixed[i] = a[i] * 2;
    for (int round = 0; round < 4; round++) {
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 1000)
        for (int i = 0; i < N; i++)
            sum += a[i] + fixed[i % 40000];
        a = realloc(a, N * sizeof *a * (round % 2 + 1));
    }
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads++;
    printf("%.0f %d\n", sum, threads);
    free(a);
    return 2;
}
