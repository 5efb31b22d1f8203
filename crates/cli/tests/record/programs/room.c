/* How much address space a program of N threads takes that all write to small and large blocks: KiB. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t written;

static void *work(void *unused) {
    (void)unused;
    volatile char *small = malloc(1000), *large = malloc(100000);
    small[0] = large[0] = 1;
    pthread_barrier_wait(&written);
    pthread_barrier_wait(&written);
    free((void *)small);
    free((void *)large);
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t ids[1024];
    char line[256];
    pthread_barrier_init(&written, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, NULL);
    pthread_barrier_wait(&written);
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "VmPeak:", 7) == 0)
            printf("%ld\n", atol(line + 7));
    fclose(status);
    pthread_barrier_wait(&written);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return 0;
}
