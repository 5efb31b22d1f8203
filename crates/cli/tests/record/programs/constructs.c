/* A library whose constructor waits for a team, while its opener holds the loader's lock. */
#include <stdio.h>

static long numbers[40000];

__attribute__((constructor)) static void construct(void) {
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < 40000; i++)
        numbers[i] = i;
    puts("constructed");
}

long *library_fill(long n) { return n <= 40000 ? numbers : NULL; }
