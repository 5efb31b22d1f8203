/* In each of N steps two threads that live no longer than it allocate an array each, write and read it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, WORDS = 1 << 17 };

static void *work(void *unused) {
    volatile long *cells = malloc(WORDS * sizeof *cells);
    (void)unused;
    for (long i = 0; i < WORDS; i++)
        cells[i] = i;
    for (long i = 0; i < WORDS; i += 64)
        (void)cells[i];
    free((void *)cells);
    return NULL;
}

int main(int count, char **arguments) {
    long steps = count > 1 ? atol(arguments[1]) : 10;
    for (long step = 0; step < steps; step++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    puts("done");
    return 0;
}
