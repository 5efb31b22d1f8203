/* Threads that do at once what our library listens to, each with memory of its own: there is no race among them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, BYTES = 1 << 20 };

static void allocate(void) {
    char *large = malloc(BYTES),
         *mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(large, 1, BYTES);
    memset(mapped, 1, BYTES);
    free(realloc(large, 2 * BYTES));
    munmap(mapped, BYTES);
}

static void bind(void) {
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus);
    pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
}

static void spawn(void) {
    char *words[] = {"true", NULL};
    pid_t child;
    if (posix_spawnp(&child, *words, NULL, NULL, words, environ) == 0)
        waitpid(child, NULL, 0);
}

static void *work(void *argument) {
    allocate();
    bind();
    spawn();
    return argument;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 42;
}
