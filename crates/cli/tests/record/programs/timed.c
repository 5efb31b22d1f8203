/* Sums lines of text, then works on arrays for as long as the first line says: a stencil, and a gather whose misses do not
 * depend on each other. With STENCIL, GATHER or CHASE it does one of them alone, or follows a chain of misses that do.
 * Built with FAILS it ends with status 3. */
#include <stdio.h>
#include <stdlib.h>

enum { N = 1 << 20 };

#if !defined STENCIL && !defined GATHER && !defined CHASE
#define STENCIL
#define GATHER
#endif

int main(void) {
    long rounds = 0, lines = 0;
    char line[64];
    while (fgets(line, sizeof line, stdin))
        if (!lines++)
            rounds = atol(line);
    double *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    unsigned *at = malloc(N * sizeof *at);
    for (unsigned i = 0; i < N; i++)
        a[i] = i, b[i] = 0, at[i] = i * 2654435761u % N;
    for (long r = 0; r < rounds; r++) {
#ifdef STENCIL
        for (int i = 1; i < N - 1; i++)
            b[i] += a[i - 1] + a[i + 1];
#endif
#ifdef GATHER
        for (int i = 0; i < N; i++)
            b[i] += a[at[i]];
#endif
#ifdef CHASE
        /* A multiplier of 1 modulo 4 and an odd addend: a cycle through all elements (Hull and Dobell 1962). */
        unsigned next = 0;
        for (int i = 0; i < N; i++)
            next = (at[next] + 1) % N;
        b[next] += 1;
#endif
    }
    printf("%ld lines, %g\n", lines, b[N / 2]);
#ifdef FAILS
    return 3;
#endif
    return 0;
}
