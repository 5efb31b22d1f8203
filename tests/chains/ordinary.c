/* Places from which a C program may allocate. */
#define _GNU_SOURCE
#include "look.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static volatile int sink;

static int compare(const void *a, const void *b) {
    look();
    return *(const int *)a - *(const int *)b;
}

static __attribute__((noinline)) void deeper(int depth) {
    volatile char room[100];
    room[depth] = (char)depth;
    if (depth == 0)
        look();
    else
        deeper(depth - 1);
    sink += room[depth];
}

/* The frame's size is known only when it runs. */
static __attribute__((noinline)) void sized(size_t bytes) {
    volatile char *room = alloca(bytes);
    room[bytes - 1] = 1;
    deeper(2);
    sink += room[bytes - 1];
}

/* A frame that is aligned has its address in no register plus a number. */
static __attribute__((noinline)) void aligned(size_t bytes) {
    volatile char room[256] __attribute__((aligned(64)));
    room[bytes % 256] = 1;
    sized(bytes + (size_t)(room[bytes % 256]));
    deeper(1);
}

static __attribute__((noinline)) void large(void) {
    volatile char room[100000];
    room[5] = 1;
    aligned(5000);
    sink += room[5];
}

static void handler(int number) {
    (void)number;
    deeper(1);
}

static void signals(void) {
    static char stack[65536];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack}, none = {.ss_flags = SS_DISABLE};
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    action.sa_flags = SA_ONSTACK;
    sigaltstack(&other, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    sigaltstack(&none, NULL);
}

static ucontext_t outside, inside;

static void coroutine(void) {
    large();
    swapcontext(&inside, &outside);
}

static void coroutines(void) {
    static char stack[1 << 18];
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
}

static void *thread(void *unused) {
    large();
    signals();
    return unused;
}

static void at_exit(void) { deeper(3); }
__attribute__((constructor)) static void at_start(void) { deeper(3); }

int main(void) {
    int numbers[] = {5, 3, 4, 1, 2};
    pthread_t other;
    atexit(at_exit);
    qsort(numbers, 5, sizeof *numbers, compare);
    bsearch(numbers, numbers, 5, sizeof *numbers, compare);
    large();
    deeper(20);
    signals();
    coroutines();
    for (int i = 0; i < 2; i++) {
        pthread_create(&other, NULL, thread, NULL);
        pthread_join(other, NULL);
    }
    return 0;
}
