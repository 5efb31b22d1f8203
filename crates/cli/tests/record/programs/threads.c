/* 300 threads one after the other, each with memory of its own kind. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long total[8192];
static __thread long mine[1024];

static void *work(void *argument) {
    long number = (long)argument;
    for (int i = 0; i < 1024; i++)
        mine[i] = number;
    total[number] = mine[1023];
    if (number % 3 == 0)
        pthread_exit(NULL);
    return NULL;
}

int main(void) {
    for (long i = 0; i < 300; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)i) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
    printf("%ld\n", total[299]);
    return 0;
}
