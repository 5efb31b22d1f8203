/* Threads with an array each: `together N`, all alive at once, or `apart N`, one after the other.
 * With a third argument, of that many longs. Ends with 5, or 3 where a thread cannot be created; says on standard error
 * how many page faults there were. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static pthread_barrier_t everyone;
static int together;
static long cells, sum;

static void *work(void *opaque) {
    long number = (long)opaque;
    volatile long mine[512];
    for (long i = 0; i < cells; i++)
        mine[i % 512] = number;
    if (together)
        pthread_barrier_wait(&everyone);
    __atomic_fetch_add(&sum, mine[0], __ATOMIC_RELAXED);
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 3)
        return 1;
    together = strcmp(arguments[1], "together") == 0;
    long threads = atol(arguments[2]);
    cells = count > 3 ? atol(arguments[3]) : 64;
    pthread_t *thread = malloc((size_t)threads * sizeof *thread);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    pthread_barrier_init(&everyone, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++) {
        if (pthread_create(&thread[i], &attributes, work, (void *)i) != 0) {
            printf("no thread %ld\n", i);
            fflush(stdout);
            _Exit(3);
        }
        if (!together)
            pthread_join(thread[i], NULL);
    }
    for (long i = 0; together && i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("%ld\n", sum);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    fprintf(stderr, "faults %ld\n", used.ru_minflt);
    return 5;
}
