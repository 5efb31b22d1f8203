/* How many CPUs threads see that the program starts by C11, and the C library for a timer, once others were bound. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static sem_t expired;

static int seen(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}

static void *nothing(void *value) { return value; }

static int standard(void *unused) {
    cpu_set_t set;
    (void)unused;
    CPU_ZERO(&set);
    syscall(SYS_sched_getaffinity, 0, sizeof set, &set);
    printf("C11: seen %d, of the kernel %d\n", seen(), CPU_COUNT(&set));
    return 7;
}

static void expires(union sigval unused) {
    (void)unused;
    printf("timer: seen %d\nits child: ", seen());
    fflush(stdout);
    if (system("env -u OMP_NUM_THREADS nproc") == 0)
        sem_post(&expired);
}

int main(void) {
    pthread_t first;
    thrd_t second;
    timer_t timer;
    int value = 0;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = expires};
    struct itimerspec soon = {.it_value.tv_nsec = 1000000};
    sem_init(&expired, 0, 0);
    pthread_create(&first, NULL, nothing, NULL);
    pthread_join(first, NULL);
    thrd_create(&second, standard, NULL);
    thrd_join(second, &value);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &soon, NULL);
    return sem_wait(&expired) == 0 && value == 7 ? 0 : 1;
}
