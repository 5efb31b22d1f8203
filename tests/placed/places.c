/* An OpenMP program that asks for its CPUs: what it sees, whether the kernel has bound its threads, and what a
 * program has that it starts. With an argument it is that program. */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int of_kernel(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    syscall(SYS_sched_getaffinity, 0, sizeof set, &set);
    return CPU_COUNT(&set);
}

static int seen(void) {
    cpu_set_t set, same;
    sched_getaffinity(0, sizeof set, &set);
    pthread_getaffinity_np(pthread_self(), sizeof same, &same);
    return CPU_EQUAL(&set, &same) ? CPU_COUNT(&set) : -1;
}

static void *other(void *name) {
    printf("%s %d %d\n", (char *)name, seen(), of_kernel());
    return NULL;
}

int main(int count, char **arguments) {
    int least = 1000, bound = 0;
    pthread_t thread;
#pragma omp parallel num_threads(2) reduction(min : least) reduction(+ : bound)
    {
        least = seen();
        bound = of_kernel() == 1;
    }
    printf("seen %d, bound %d\n", least, bound);
    pthread_create(&thread, NULL, other, "thread");
    pthread_join(thread, NULL);
    fflush(stdout);
    if (count > 1)
        return 0;
    if (fork() == 0)
        execl(arguments[0], arguments[0], "child", NULL);
    wait(NULL);
    return 0;
}
