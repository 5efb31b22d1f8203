/* Children made by clone(2) itself, of which no handler of the C library hears. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 100000 };

static void fill(volatile long *data, long n, long value) {
    for (long i = 0; i < n; i++)
        data[i] = value;
}

static void *worker(void *unused) {
    (void)unused;
    long *threads_block = malloc(COUNT * sizeof *threads_block);
    fill(threads_block, COUNT, 2);
    return threads_block;
}

int main(int argc, char **argv) {
    long *parents_block = malloc(COUNT * sizeof *parents_block);
    int status = 0, what = argc > 1 ? argv[1][0] : 0;
    fill(parents_block, COUNT, 1);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        if (what == 't') {
            pthread_t thread;
            pthread_create(&thread, NULL, worker, NULL);
            pthread_join(thread, NULL);
        } else if (what == 'a') {
            long *childs_block = malloc(COUNT * sizeof *childs_block);
            fill(childs_block, COUNT, 3);
        } else {
            fill(parents_block, COUNT, 4);
        }
        _exit(3);
    }
    waitpid(child, &status, 0);
    long *later_block = malloc(COUNT * sizeof *later_block);
    fill(later_block, COUNT, 5);
    printf("%d %ld\n", WEXITSTATUS(status), parents_block[7]);
    return 7;
}
