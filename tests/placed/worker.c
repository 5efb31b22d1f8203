/* A worker thread allocates, and a signal handler on it maps memory: nothing of either chain is main's. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ITEMS = 1 << 19, STEP = 64 };

static double *volatile allocated, *mapped; /* to be seen from elsewhere: no compiler leaves it out */

static void handler(int signal) {
    (void)signal;
    mapped = mmap(NULL, ITEMS * sizeof *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static double sum(void) {
    double *own = allocated = calloc(ITEMS, sizeof *own), total = 0;
    for (int i = 0; i < ITEMS; i += STEP)
        total += (own[i] = i) + (mapped[i] = 1);
    free(own);
    return total;
}

static void *worker(void *result) {
    raise(SIGUSR1);
    *(double *)result = sum();
    return NULL;
}

int main(void) {
    double result = 0;
    pthread_t thread;
    signal(SIGUSR1, handler);
    if (pthread_create(&thread, NULL, worker, &result) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    printf("%.0f\n", result);
    return 0;
}
