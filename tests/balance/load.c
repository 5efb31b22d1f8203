/* Threads that go through memory round by round, each its own part; the sum is known beforehand.
 * load THREADS MIB ROUNDS [free], free to run on any CPU; `load threads COUNT` starts COUNT short-lived ones, some at a time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t *words;
static size_t count;
static int threads, rounds, is_free;

static void *work(void *argument) {
    size_t part = count / (size_t)threads, first = (size_t)(intptr_t)argument * part;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((int)(intptr_t)argument % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
    if (!is_free)
        sched_setaffinity(0, sizeof set, &set);
    for (int round = 0; round < rounds; round++) {
        for (size_t i = first; i < first + part; i++)
            words[i] += i;
        usleep(1000);
    }
    return NULL;
}

static void *brief(void *argument) { return argument; }

static int many(int all) {
    pthread_t some[16];
    for (int done = 0; done < all; done += 16) {
        for (int i = 0; i < 16; i++)
            if (pthread_create(&some[i], NULL, brief, NULL) != 0)
                return 1;
        for (int i = 0; i < 16; i++)
            pthread_join(some[i], NULL);
    }
    puts("right");
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "threads") == 0)
        return many(atoi(argv[2]));
    is_free = argc == 5 && strcmp(argv[4], "free") == 0;
    if (argc != 4 + is_free)
        return 2;
    threads = atoi(argv[1]);
    count = (size_t)atoi(argv[2]) << 17;
    rounds = atoi(argv[3]);
    words = calloc(count, sizeof *words);
    memset(words, 0, count * sizeof *words);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    pthread_t all[64];
    for (int i = 0; i < threads; i++)
        pthread_create(&all[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    for (size_t i = 0; i < count; i++)
        if (words[i] != i * (uint64_t)rounds)
            return 1;
    puts("right");
    return 0;
}
