/* Two processes of one program that is not position-independent: its array has one address in both. Each works on it
 * from a CPU of its own, another number of times, and stays until the other has, so that no frame is both's.
 * Lines `process PID FIRST_PAGE PAGES CPU TIMES`: how often each page is accessed; the first page's number in hex. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 300, READY = 10, GO = 11 };

static _Alignas(4096) volatile char array[PAGES * PAGE];

static void fail(const char *what) {
    perror(what);
    exit(99);
}

static int child(int cpu, int times) {
    char byte = 1;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        fail("sched_setaffinity");
    for (int i = 0; i < times; i++)
        for (int page = 0; page < PAGES; page++)
            array[page * PAGE] = 1;
    printf("process %d %lx %d %d %d\n", getpid(), (unsigned long)((uintptr_t)array / PAGE), PAGES, cpu, times);
    fflush(stdout);
    int told = write(READY, &byte, 1) == 1;
    close(READY); /* if the other ends before it has told, the parent does not wait for it */
    return !told || read(GO, &byte, 1) != 0;
}

static void start(char *self, const char *cpu, const char *times, int go) {
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid > 0)
        return;
    close(go); /* at its end all that wait read nothing */
    execl(self, self, cpu, times, NULL);
    fail(self);
}

int main(int count, char **arguments) {
    int ready[2], go[2];
    char byte, last[16];
    if (count == 3)
        return child(atoi(arguments[1]), atoi(arguments[2]));
    if (pipe(ready) || pipe(go) || dup2(ready[1], READY) < 0 || dup2(go[0], GO) < 0)
        fail("pipe");
    snprintf(last, sizeof last, "%ld", sysconf(_SC_NPROCESSORS_CONF) - 1);
    start(arguments[0], "0", "3", go[1]);
    start(arguments[0], last, "5", go[1]);
    close(ready[1]);
    close(READY);
    for (int i = 0; i < 2; i++)
        if (read(ready[0], &byte, 1) != 1)
            fail("read");
    close(go[1]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
