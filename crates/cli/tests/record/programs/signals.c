/* A timer's handler writes to memory while the program does; longjmp out of a loop. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile long ticks;
static long beside[100000];
static jmp_buf back;

static void tick(int signal) {
    (void)signal;
    beside[ticks * 7919 % 100000] = ticks;
    ticks++;
}

static void leave(long *data) {
    for (long i = 0;; i++) {
        data[i] = i;
        if (i == 24999)
            longjmp(back, 1);
    }
}

int main(void) {
    struct sigaction action = {.sa_handler = tick};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, NULL);
    long *swept = malloc(1000000 * sizeof *swept);
    for (int round = 0; round < 30 || ticks < 20; round++)
        for (long i = 0; i < 1000000; i += 37)
            swept[i * 7 % 1000000] += i;
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    long *jumped = malloc(30000 * sizeof *jumped);
    if (setjmp(back) == 0)
        leave(jumped);
    printf("%ld\n", jumped[24999] + (beside[ticks % 100000] < 0));
    return 0;
}
