/* Handlers on a stack of their own, that allocate and jump; timers; a thread that is cancelled; an end by a signal. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
static volatile sig_atomic_t ticks, usr;
static sigjmp_buf back;
static void tick(int n) { (void)n, ticks++; }
static void user(int n, siginfo_t *info, void *context) {
    (void)n, (void)context;
    char here[20000];
    memset(here, 1, sizeof here);
    usr += info->si_value.sival_int + here[77];
}
static void fault(int n) { siglongjmp(back, n); }
static void *wait_for_end(void *argument) {
    for (;;)
        usleep(1000);
    return argument;
}
int main(void) {
    stack_t stack = {.ss_sp = malloc(1 << 17), .ss_size = 1 << 17};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_sigaction = user, .sa_flags = SA_SIGINFO | SA_ONSTACK}, NULL);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = tick, .sa_flags = SA_RESTART}, NULL);
    sigaction(SIGSEGV, &(struct sigaction){.sa_handler = fault, .sa_flags = SA_ONSTACK}, NULL);
    for (int i = 0; i < 100; i++)
        sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 2});
    printf("%d\n", (int)usr);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 2000}, {0, 2000}}, NULL);
    while (ticks < 20) {
        char *block = malloc(100000);
        memset(block, 1, 100000);
        free(block);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    char *none = mmap(NULL, 1 << 17, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int caught = sigsetjmp(back, 1);
    if (caught == 0)
        none[5] = 1;
    printf("caught %d\n", caught);
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, wait_for_end, NULL);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
    fflush(stdout);
    raise(SIGTERM);
    return 0;
}
