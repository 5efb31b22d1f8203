/* A library whose constructor waits for a thread that uses what `run` puts before the C library's. Whoever opens it
 * holds the loader's lock meanwhile. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

static int standard(void *sum) {
    *(int *)sum += 1;
    return 1;
}

static void *uses(void *sum) {
    cpu_set_t set;
    thrd_t inner;
    int value = 0;
    if (pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0)
        *(int *)sum += pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
    if (thrd_create(&inner, standard, sum) == thrd_success)
        thrd_join(inner, &value);
    *(int *)sum += value + (system("true") == 0);
    FILE *stream = popen("echo", "r");
    *(int *)sum += stream != NULL && getc(stream) == '\n' && pclose(stream) == 0;
    return NULL;
}

__attribute__((constructor)) static void wait_for_thread(void) {
    pthread_t thread;
    int sum = 0;
    if (pthread_create(&thread, NULL, uses, &sum) == 0)
        pthread_join(thread, NULL);
    printf("constructed %d\n", sum);
}
