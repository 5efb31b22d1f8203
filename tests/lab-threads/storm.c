/* What makes trouble for whoever binds threads: storm threads COUNT | forks COUNT | bind TID CPU | family SECONDS. The
 * first two start short-lived threads or processes, sixteen at a time, beside one that works all the while; the last
 * works, and has a child that does from the third second on; SIGTERM ends it early. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { AT_ONCE = 16, WORDS = 1 << 18 };
static volatile int over;
static volatile long words[WORDS];

static void *brief(void *number) { return (void *)((long)number * 2); }

static void *busy(void *rounds) {
    while (!over) {
        for (int i = 0; i < WORDS; i++)
            words[i]++;
        ++*(long *)rounds;
    }
    return NULL;
}

static int threads(int count) {
    for (int done = 0; done < count; done += AT_ONCE) {
        pthread_t some[AT_ONCE];
        for (long i = 0; i < AT_ONCE; i++)
            if (pthread_create(&some[i], NULL, brief, (void *)i) != 0)
                return 1;
        for (long i = 0; i < AT_ONCE; i++) {
            void *result;
            pthread_join(some[i], &result);
            if ((long)result != 2 * i)
                return 1;
        }
    }
    return 0;
}

static int forks(int count) {
    for (int done = 0; done < count; done += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++) {
            pid_t child = fork();
            if (child == 0)
                _exit(words[i] < 0);
            if (child < 0)
                return 1;
        }
        for (int i = 0; i < AT_ONCE; i++) {
            int status;
            if (wait(&status) < 0 || status != 0)
                return 1;
        }
    }
    return 0;
}

static void end_early(int signal) {
    (void)signal;
    over = 1;
}

static int family(int seconds) {
    pid_t child = -1;
    signal(SIGTERM, end_early);
    for (time_t began = time(NULL), now = began; now < began + seconds && !over; now = time(NULL)) {
        for (int i = 0; i < WORDS; i++)
            words[i]++;
        if (child < 0 && now >= began + 3 && (child = fork()) > 0) {
            printf("child %d\n", (int)child);
            fflush(stdout);
        }
    }
    if (child > 0)
        kill(child, SIGTERM);
    while (wait(NULL) > 0)
        ;
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "bind") == 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(atoi(argv[3]), &set);
        return sched_setaffinity(atoi(argv[2]), sizeof set, &set) != 0;
    }
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "family") == 0)
        return family(atoi(argv[2]));
    pthread_t worker;
    long rounds = 0;
    pthread_create(&worker, NULL, busy, &rounds);
    int failed = strcmp(argv[1], "threads") == 0 ? threads(atoi(argv[2])) : forks(atoi(argv[2]));
    over = 1;
    pthread_join(worker, NULL);
    for (int i = 0; i < WORDS; i++)
        failed |= words[i] != rounds;
    puts(failed ? "wrong" : "right");
    return failed;
}
