// One kernel of STREAM (J. McCalpin) or a copy of floats, on arrays that the first thread or all threads initialise.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

// One store a page: placed, but hardly any traffic.
static void touch(void *array, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PAGE)
        ((char *)array)[at] = 0;
}

static void copy(double *c, const double *a, size_t n) {
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        c[i] = a[i];
}

static void scale(double *b, const double *c, size_t n, double s) {
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        b[i] = s * c[i];
}

static void add(double *c, const double *a, const double *b, size_t n) {
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

static void triad(double *a, const double *b, const double *c, size_t n, double s) {
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + s * c[i];
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: stream copy|scale|add|triad|sycl MIB REPETITIONS\n");
        return 2;
    }
    size_t bytes = strtoull(argv[2], NULL, 10) << 20, n = bytes / sizeof(double);
    int repetitions = atoi(argv[3]);
    double *a = aligned_alloc(PAGE, bytes), *b = aligned_alloc(PAGE, bytes), *c = aligned_alloc(PAGE, bytes);
    if (!a || !b || !c)
        return 1;
    touch(a, bytes);
    // SYCL's target buffer is first written by the copy itself.
    if (strcmp(argv[1], "sycl") != 0)
        touch(b, bytes), touch(c, bytes);
    for (int i = 0; i < repetitions; i++) {
        if (strcmp(argv[1], "copy") == 0 || strcmp(argv[1], "sycl") == 0)
            copy(c, a, n);
        else if (strcmp(argv[1], "scale") == 0)
            scale(b, c, n, 3);
        else if (strcmp(argv[1], "add") == 0)
            add(c, a, b, n);
        else
            triad(a, b, c, n, 3);
    }
    printf("%g\n", a[n / 2] + c[n / 2]);
    return 0;
}
