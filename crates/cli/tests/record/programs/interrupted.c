/* Threads that all live to the end, each of which writes the same block. A timer's signal comes a little later in each
 * after its start, until it finds it at its first access: the handler writes too. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 400
#define WORDS 1024
#define PLAIN __attribute__((disable_sanitizer_instrumentation))

static pthread_barrier_t done, end; /* waited for where nothing is counted */
static volatile long handled, beside[512 * 16];
static long *swept;

static void note(int signal) {
    (void)signal;
    beside[handled * 512 % (512 * 16)] = 1;
    handled++;
}

__attribute__((noinline)) static void sweep(void) {
    for (long i = 0; i < WORDS; i++)
        ((volatile long *)swept)[i] = i;
}

PLAIN static void *work(void *number) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    struct itimerspec when = {.it_value = {.tv_nsec = 500 + 200 * (long)number}, .it_interval = {.tv_nsec = 10000}};
    struct itimerspec never = {0};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &when, NULL);
    sweep();
    timer_settime(timer, 0, &never, NULL);
    timer_delete(timer);
    pthread_barrier_wait(&done);
    pthread_barrier_wait(&end);
    return NULL;
}

int main(void) {
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigaction(SIGURG, &action, NULL);
    pthread_barrier_init(&done, NULL, 2);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    swept = malloc(64 * 1024);
    static pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
        pthread_barrier_wait(&done);
    }
    pthread_barrier_wait(&end);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %s\n", swept[WORDS - 1], handled > 0 ? "interrupted" : "left alone");
    return 0;
}
