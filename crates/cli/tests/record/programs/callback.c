/* A callback of the loader, which holds its lock, waits for a thread. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdio.h>

static _Thread_local long own[4096];

static void *fill(void *sum) {
    for (int i = 0; i < 4096; i++)
        own[i] = i;
    *(long *)sum = own[4095];
    return NULL;
}

static int visit(struct dl_phdr_info *info, size_t size, void *sum) {
    pthread_t thread;
    (void)info, (void)size;
    if (pthread_create(&thread, NULL, fill, sum) == 0)
        pthread_join(thread, NULL);
    return 1;
}

int main(void) {
    long sum = 0;
    dl_iterate_phdr(visit, &sum);
    printf("%ld\n", sum);
    return 5;
}
