/* pool THREADS: each makes 20,000 small allocations of 100 bytes. Prints how many allocations of the process were counted in
 * memory that its threads share: the counters of the file `pool` that is mapped. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMES 20000
#define THREADS 16
#define ENTRIES 4096

static char *allocate(void) { return malloc(100); }

static void *work(void *sum) {
    for (int i = 0; i < TIMES; i++) {
        char *some = allocate();
        memset(some, i, 100);
        *(long *)sum += some[i % 100];
        free(some);
    }
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    static long sums[THREADS * 8];
    int wanted = count > 1 ? atoi(arguments[1]) : THREADS;
    for (int i = 0; i < wanted && i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &sums[i * 8]);
    for (int i = 0; i < wanted && i < THREADS; i++)
        pthread_join(threads[i], NULL);

    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    const uint64_t *pool = NULL;
    uintptr_t start;
    while (fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "/pool\n") != NULL && sscanf(line, "%lx", &start) == 1)
            pool = (const uint64_t *)start;
    uint64_t shared = 0;
    for (int i = 0; pool != NULL && i < ENTRIES; i++)
        shared += pool[3 * i + 2];
    printf("%s %lu\n", pool == NULL ? "no" : "shared", (unsigned long)shared);
    return 0;
}
