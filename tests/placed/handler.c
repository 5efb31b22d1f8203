/* A signal handler maps memory, twice an object's size, while the program allocates objects from thousands of
 * distinct call chains; with "dl" a callback of dl_iterate_phdr allocates while two threads do. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

static volatile long handled;
static _Thread_local unsigned state = 1;
static volatile int after;

static void handler(int signal) {
    char *memory = mmap(NULL, 2 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)signal;
    if (memory == MAP_FAILED)
        return;
    memory[0] = 1;
    munmap(memory, 2 << 16);
    handled++;
}

static long objects(int depth);

/* Each case is a call of its own, so that a depth of n has 4^n chains. */
static __attribute__((noinline)) long deeper(int depth) {
    long sum;
    state = state * 1103515245 + 12345;
    switch (state >> 16 & 3) {
    case 0: sum = objects(depth - 1), after = 0; break;
    case 1: sum = objects(depth - 1), after = 1; break;
    case 2: sum = objects(depth - 1), after = 2; break;
    default: sum = objects(depth - 1), after = 3; break;
    }
    return sum;
}

static __attribute__((noinline)) long objects(int depth) {
    if (depth > 0)
        return deeper(depth);
    volatile char *object = malloc(80000);
    object[0] = 1;
    long one = object[0];
    free((void *)object);
    return one;
}

static int visit(struct dl_phdr_info *info, size_t size, void *sum) {
    (void)info, (void)size;
    *(long *)sum += objects(6);
    return 0;
}

static void *allocate(void *seed) {
    long sum = 0;
    state = (unsigned)(size_t)seed;
    for (int i = 0; i < 10000; i++)
        sum += objects(6);
    return (void *)sum;
}

static void callbacks(void) {
    pthread_t threads[2];
    long sum = 0;
    for (size_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, allocate, (void *)(i + 7));
    for (int i = 0; i < 500; i++)
        dl_iterate_phdr(visit, &sum);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("callbacks %d\n", sum > 0);
}

static void handlers(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 300}, {0, 300}}, never = {0};
    long sum = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    while (sum < 50000 || handled < 20)
        sum += objects(10);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("handlers %d\n", handled >= 20);
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "once") == 0) {
        signal(SIGUSR1, handler);
        raise(SIGUSR1);
        printf("once %ld\n", handled);
    } else if (count > 1) {
        callbacks();
    } else {
        handlers();
    }
    return 42;
}
