/* Where stacks are small: a handler on one of 8 KiB maps memory, and threads of PTHREAD_STACK_MIN allocate, map, start
 * programs and threads, open a library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMES = 5, BLOCK = 1 << 18, MAPPED = 1 << 17, PAGE = 4096 };

static volatile char fresh[64 * PAGE]; /* a page of it is new to who touches it */
static volatile int touched, handled, bad;

static void map(void) {
    char *memory = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory[PAGE] = 1;
    fresh[PAGE * touched++] = memory[PAGE];
    munmap(memory, MAPPED);
}

static void handler(int signal) {
    (void)signal;
    map();
    handled++;
}

static void *allocates(void *unused) {
    char *block = malloc(BLOCK);
    memset(block, 1, BLOCK);
    block = realloc(block, 2 * BLOCK);
    bad += block[BLOCK - 1] != 1;
    free(block);
    map();
    return unused;
}

static void *executes(void *unused) {
    int status;
    pid_t child = vfork();
    if (child == 0) {
        execlp("true", "true", (char *)NULL);
        _exit(9);
    }
    bad += waitpid(child, &status, 0) != child || status != 0;
    return unused;
}

static void *opens(void *name) {
    void *library = dlopen(name, RTLD_NOW);
    if (library == NULL)
        bad++;
    return NULL;
}

static void in_small(void *(*routine)(void *), void *argument) {
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    if (pthread_create(&thread, &small, routine, argument) == 0)
        pthread_join(thread, NULL);
    else
        bad++;
    pthread_attr_destroy(&small);
}

static void *starts(void *unused) {
    in_small(allocates, NULL);
    return unused;
}

int main(int count, char **arguments) {
    static char stack[8192];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&other, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < TIMES; i++) {
        raise(SIGUSR1);
        in_small(allocates, NULL);
        in_small(executes, NULL);
        in_small(starts, NULL);
    }
    if (count > 1)
        in_small(opens, arguments[1]);
    printf("handled %d, bad %d\n", handled, bad);
    return 42;
}
