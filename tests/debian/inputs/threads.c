/* Threads that share, allocate, wait; linked against musl, and statically against glibc. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static long total;
static __thread int own;
static void *work(void *argument) {
    long n = (long)argument, sum = 0;
    int *many = malloc(200000 * sizeof *many);
    for (int i = 0; i < 200000; i++)
        many[i] = i % (int)(n + 2);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 200000; i++)
        sum += many[i];
    own += (int)n;
    pthread_mutex_lock(&lock);
    total += sum + own;
    pthread_mutex_unlock(&lock);
    free(many);
    return (void *)sum;
}
int main(void) {
    pthread_t threads[8];
    pthread_barrier_init(&barrier, NULL, 8);
    for (long t = 0; t < 8; t++)
        if (pthread_create(&threads[t], NULL, work, (void *)t) != 0)
            return 1;
    for (int t = 0; t < 8; t++) {
        void *sum;
        pthread_join(threads[t], &sum);
        printf("%ld ", (long)sum);
    }
    printf("%ld\n", total);
    return 3;
}
