/* One run: starts the command in a control group of its own, forwards its output to the host, and kills
 * whatever is left of it at its end. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GROUP "/sys/fs/cgroup/command"
#define COUNTERS 512

static const char *const results[] = {"objects", "report.json", "balance.json"};

/* Copies from a pipe to a port until the pipe has no writer any more. It uses registers only, so that none of
 * its accesses is counted as the command's. */
static void pump(int from, int to) {
#if defined __x86_64__
    register long offset __asm__("r10") = 0;
    register long most __asm__("r8") = 1 << 20;
    register long flags __asm__("r9") = 0;
    __asm__ volatile("1: mov %[splice], %%eax\n\tsyscall\n\ttest %%rax, %%rax\n\tjg 1b\n\t"
                     "xor %%edi, %%edi\n\tmov %[leave], %%eax\n\tsyscall"
                     :
                     : [splice] "i"(SYS_splice), [leave] "i"(SYS_exit_group), "D"(from), "S"(0), "d"(to), "r"(offset),
                       "r"(most), "r"(flags)
                     : "rax", "rcx", "r11", "memory");
#else
    while (splice(from, NULL, to, NULL, 1 << 20, 0) > 0)
        continue;
#endif
    _exit(0);
}

/* Returns the writing end of a pipe whose contents go to the port. */
static int pumped(int port) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        nw_fail("no pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        nw_fail("cannot fork: %s", strerror(errno));
    if (child == 0) {
        for (int file = 0; file < 64; file++)
            if (file != ends[0] && file != port)
                close(file);
        pump(ends[0], port);
    }
    close(ends[0]);
    return ends[1];
}

static int sets_out(const nw_plan *plan, int output, int errors) {
    int input = open(plan->input, O_RDONLY);
    if (input < 0 || dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0)
        return dprintf(errors, "nodewise: %s: %s\n", plan->input, strerror(errno)), 0;
    if (input > 2)
        close(input);
    setsid();
    nw_write_text(GROUP "/cgroup.procs", "0");
    if (chdir(plan->folder) == 0)
        return 1;
    return dprintf(2, "nodewise: cannot go to %s: %s\n", plan->folder, strerror(errno)), 0;
}

static pid_t start(const nw_plan *plan, const nw_run *run, int output, int errors) {
    pid_t child = fork();
    if (child < 0)
        nw_fail("cannot fork: %s", strerror(errno));
    if (child > 0)
        return child;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (sets_out(plan, output, errors)) {
        execvpe(run->arguments[0], run->arguments, plan->environment);
        dprintf(2, "nodewise: cannot start %s: %s\n", run->arguments[0], strerror(errno));
    }
    _exit(errno == ENOENT ? 127 : 126);
}

static sigset_t child_ends(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return set;
}

/* Waits until the command ends. Meanwhile marks its slices, and reports their ends in nanoseconds since `began`. */
static int wait_for(pid_t child, int slice_ms, int number, uint64_t began) {
    const uint64_t slice = (uint64_t)slice_ms * 1000000;
    int status = 0, slices = 0;
    const sigset_t wakes = child_ends();
    for (uint64_t next = began + slice;;) {
        pid_t ended = waitpid(child, &status, slice ? WNOHANG : 0);
        if (ended == child)
            return status;
        if (ended < 0 && errno != EINTR)
            nw_fail("the command is lost: %s", strerror(errno));
        if (ended < 0)
            continue;
        uint64_t now = nw_clock(CLOCK_MONOTONIC);
        if (now < next) {
            uint64_t left = next - now;
            sigtimedwait(&wakes, NULL, &(struct timespec){(time_t)(left / 1000000000), (long)(left % 1000000000)});
            continue;
        }
        nw_mark_slice(slices++);
        nw_say("slice %d %llu", number, (unsigned long long)(now - began));
        /* Slices that were missed are skipped. */
        next = next + slice > now ? next + slice : now + slice;
    }
}

/* Kills the processes that the command left behind, then waits for the pumps, which end when no writer is left. */
static void clear_away(void) {
    if (nw_write_text(GROUP "/cgroup.kill", "1") != 0)
        kill(-1, SIGKILL); /* a kernel before 5.14; this kills the pumps too */
    while (wait(NULL) > 0 || errno == EINTR)
        continue;
}

typedef struct counters {
    int count;
    struct {
        char name[48];
        long long value;
    } of[COUNTERS];
} counters;

static void read_counters(counters *all) {
    char *text = nw_read_text("/proc/vmstat", NULL);
    all->count = 0;
    for (char *line = text ? strtok(text, "\n") : NULL; line && all->count < COUNTERS; line = strtok(NULL, "\n"))
        if (sscanf(line, "%47s %lld", all->of[all->count].name, &all->of[all->count].value) == 2)
            all->count++;
}

static int tells(const char *name) {
    static const char *const prefixes[] = {"numa_",      "pgmigrate_", "thp_",    "pgfault",
                                           "pgmajfault", "pgpromote",  "pgdemote"};
    for (unsigned i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return 1;
    return 0;
}

static void say_counters(int number, const counters *before, const counters *after) {
    for (int i = 0; i < before->count && i < after->count; i++)
        if (tells(after->of[i].name))
            nw_say("vmstat %d %s %lld", number, after->of[i].name, after->of[i].value - before->of[i].value);
}

static void say_end(int number, int status, uint64_t nanoseconds) {
    int killed = WIFSIGNALED(status);
    nw_say("end %d %s %d %llu", number, killed ? "signal" : "exit", killed ? WTERMSIG(status) : WEXITSTATUS(status),
           (unsigned long long)nanoseconds);
}

static void each_result(int number, int send) {
    for (unsigned i = 0; i < sizeof results / sizeof *results; i++) {
        char path[64], name[64];
        snprintf(path, sizeof path, "/lab/%s", results[i]);
        snprintf(name, sizeof name, "%d %s", number, results[i]);
        if (send)
            nw_send_file("file", name, path);
        unlink(path);
    }
}

void nw_command_run(const nw_plan *plan, int number) {
    static counters before, after;
    const nw_run *run = &plan->run[number];
    each_result(number, 0);
    mkdir(GROUP, 0755);
    if (nw_write_text("/proc/sys/kernel/numa_balancing", run->balancing ? "1" : "0") != 0 && run->balancing)
        nw_fail("this kernel has no NUMA balancing");
    int output = pumped(nw_output), errors = pumped(nw_errors);
    const sigset_t wakes = child_ends();
    sigprocmask(SIG_BLOCK, &wakes, NULL); /* blocked for wait_for, which waits for them by sigtimedwait */
    nw_say("begin %d", number);
    nw_mark_run(number);
    read_counters(&before);
    uint64_t began = nw_clock(CLOCK_MONOTONIC);
    pid_t child = start(plan, run, output, errors);
    close(output);
    close(errors);
    int status = wait_for(child, plan->slice_ms, number, began);
    uint64_t ended = nw_clock(CLOCK_MONOTONIC);
    read_counters(&after);
    clear_away();
    nw_ports_drain();
    say_end(number, status, ended - began);
    say_counters(number, &before, &after);
    each_result(number, 1);
}
