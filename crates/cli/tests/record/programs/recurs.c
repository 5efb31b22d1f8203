/* Two threads that go round 800 pages of their own each, ten times: in arrays that lie somewhere else in
 * each run, of the program, mapped, and allocated. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096 / sizeof(double), FIXED = 300 * PAGE, MAPPED = 25 * PAGE, PIECES = 8, ALLOCATED = 300 * PAGE };

double fixed[2][FIXED];

static __attribute__((noinline)) void raise(double *array, long count) {
    for (long i = 0; i < count; i++)
        array[i] += 1;
}

/* Pieces that the kernel does not put side by side. */
static double *mapped(void) {
    char *piece = mmap(NULL, (MAPPED + 64 * PAGE) * sizeof(double), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    munmap(piece + MAPPED * sizeof(double), 64 * PAGE * sizeof(double));
    return (double *)piece;
}

static void *work(void *which) {
    long mine = (long)which;
    double *pieces[PIECES], *allocated = calloc(ALLOCATED, sizeof *allocated);
    for (int i = 0; i < PIECES; i++)
        pieces[i] = mapped();
    for (int round = 0; round < 10; round++) {
        raise(fixed[mine], FIXED);
        raise(allocated, ALLOCATED);
        for (int i = 0; i < PIECES; i++)
            raise(pieces[i], MAPPED);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (long i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
