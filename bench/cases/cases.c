/* The cases of the table in docs/balance-cases.md: programs whose threads and memory begin well or badly placed on
 * two nodes, and that nobody binds from then on.
 *   cases NAME SECONDS [FILE]    runs one; writes the ids of its processes to FILE once memory is placed
 *   cases list                   names, a line each, with what is special about it
 * SIGTERM ends a run early, in the usual way.
 * Each process prints, at its end, the chunks of work that it did and its CPU time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MB (1ul << 20)
#define CHUNK MB
#define MOST 8 /* threads, segments, processes */

typedef struct segment {
    size_t bytes;
    int node; /* where it is touched first */
} segment;

typedef struct worker {
    int node;          /* where it begins */
    unsigned uses;     /* bit s: segment s */
    unsigned uses_then; /* from half-time on; 0: as before */
} worker;

typedef struct process {
    int workers, segments;
    worker worker[MOST];
    segment segment[MOST];
} process;

typedef struct pattern {
    const char *name, *what;
    int processes;
    process process[MOST];
    double works, rests;  /* seconds of work, then of rest, in turns; 0: works all the time */
    bool huge;            /* asks for huge pages */
    size_t left_on_1;     /* memory that a neighbour leaves free on node 1; 0: no neighbour */
} pattern;

#define S(bytes, node) {(bytes) * MB, node}
/* Two threads that share a segment; where they begin, and where it is. */
#define PAIR(first, second, at)                              \
    {                                                        \
        2, 1, {{first, 1, 0}, {second, 1, 0}}, { S(16, at) } \
    }
#define ALONE(on, at)                     \
    {                                     \
        1, 1, {{on, 1, 0}}, { S(16, at) } \
    }

static const pattern patterns[] = {
    {"wrong-node",
     "two processes of two threads, each on the other's node",
     2,
     {PAIR(0, 0, 1), PAIR(1, 1, 0)},
     .works = 0},
    {"spread",
     "two processes of two threads that share memory, spread over both nodes",
     2,
     {PAIR(0, 1, 0), PAIR(0, 1, 1)},
     .works = 0},
    {"spread-wrong", "the same, both processes' memory on one node", 2, {PAIR(0, 1, 0), PAIR(0, 1, 0)}, .works = 0},
    {"placed", "two processes of two threads, all of it local", 2, {PAIR(0, 0, 0), PAIR(1, 1, 1)}, .works = 0},
    {"own",
     "four threads with memory of their own, all of it local",
     1,
     {{4, 4, {{0, 1, 0}, {0, 2, 0}, {1, 4, 0}, {1, 8, 0}}, {S(8, 0), S(8, 0), S(8, 1), S(8, 1)}}},
     .works = 0},
    {"master",
     "four threads with memory of their own, touched first by the master",
     1,
     {{4, 4, {{0, 1, 0}, {0, 2, 0}, {1, 4, 0}, {1, 8, 0}}, {S(8, 0), S(8, 0), S(8, 0), S(8, 0)}}},
     .works = 0},
    {"two-masters",
     "two processes of two threads with memory of their own, all on node 0",
     2,
     {{2, 2, {{0, 1, 0}, {1, 2, 0}}, {S(8, 0), S(8, 0)}}, {2, 2, {{0, 1, 0}, {1, 2, 0}}, {S(8, 0), S(8, 0)}}},
     .works = 0},
    {"pairs",
     "four threads of one process, of which two and two share memory, spread",
     1,
     {{4, 2, {{0, 1, 0}, {1, 1, 0}, {0, 2, 0}, {1, 2, 0}}, {S(16, 0), S(16, 1)}}},
     .works = 0},
    {"shared",
     "four threads that share all memory, on node 0",
     1,
     {{4, 1, {{0, 1, 0}, {0, 1, 0}, {1, 1, 0}, {1, 1, 0}}, {S(32, 0)}}},
     .works = 0},
    {"phases",
     "four threads with memory of their own; at half-time each takes another's",
     1,
     {{4, 4, {{0, 1, 4}, {0, 2, 8}, {1, 4, 1}, {1, 8, 2}}, {S(8, 0), S(8, 0), S(8, 1), S(8, 1)}}},
     .works = 0},
    {"four-programs",
     "four programs of one thread, each on the wrong node",
     4,
     {ALONE(0, 1), ALONE(0, 1), ALONE(1, 0), ALONE(1, 0)},
     .works = 0},
    {"pool",
     "a server: four workers with sessions of their own, accepted on node 0, often waiting",
     1,
     {{4,
       8,
       {{0, 0x11, 0}, {0, 0x22, 0}, {1, 0x44, 0}, {1, 0x88, 0}},
       {S(4, 0), S(4, 0), S(4, 0), S(4, 0), S(4, 0), S(4, 0), S(4, 0), S(4, 0)}}},
     .works = 0.02,
     .rests = 0.01},
    {"idle",
     "wrong-node, idle for two seconds after every two",
     2,
     {PAIR(0, 0, 1), PAIR(1, 1, 0)},
     .works = 2,
     .rests = 2},
    {"huge", "wrong-node, with huge pages", 2, {PAIR(0, 0, 1), PAIR(1, 1, 0)}, .huge = true},
    {"full",
     "master, with room for half of what should move",
     1,
     {{4, 4, {{0, 1, 0}, {0, 2, 0}, {1, 4, 0}, {1, 8, 0}}, {S(32, 0), S(32, 0), S(32, 0), S(32, 0)}}},
     .left_on_1 = 64 * MB},
    {"crowded",
     "two processes of four threads that share memory, spread over four CPUs",
     2,
     {{4, 1, {{0, 1, 0}, {1, 1, 0}, {0, 1, 0}, {1, 1, 0}}, {S(16, 0)}},
      {4, 1, {{0, 1, 0}, {1, 1, 0}, {0, 1, 0}, {1, 1, 0}}, {S(16, 1)}}},
     .works = 0},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

/* Shared by all processes of a case. */
static struct board {
    int ready;
    bool go, over;
    double began, seconds;
} *board;

static const pattern *now_run;
static const process *self;
static int number; /* of this process, from 1 */
static volatile char *memory[MOST];
static unsigned long chunks[MOST];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *what) {
    perror(what);
    _exit(3);
}

/* Binds the calling thread to a node; -1: to none. */
static void go_to(int node) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
        if (node < 0 || access(path, F_OK) == 0)
            CPU_SET(cpu, &cpus);
    }
    if (sched_setaffinity(0, sizeof cpus, &cpus) != 0)
        die("sched_setaffinity");
}

/* Each process's memory at addresses of its own, so that the counters tell them apart. */
static char *mapped(size_t bytes) {
    static size_t taken;
    char *wanted = (char *)0x200000000000ul + ((size_t)number << 36) + taken;
    char *at = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED)
        die("mmap");
    taken += bytes + 2 * MB;
    madvise(at, bytes, now_run->huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return at;
}

static void sweep(volatile char *at) {
    for (size_t i = 0; i < CHUNK; i += 64)
        at[i]++;
}

static void rest(double until) {
    struct timespec t = {(time_t)until, (long)((until - (double)(time_t)until) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void end_early(int signal) {
    (void)signal;
    __atomic_store_n(&board->over, true, __ATOMIC_SEQ_CST);
}

static bool over(double at) {
    return at >= board->began + board->seconds || __atomic_load_n(&board->over, __ATOMIC_SEQ_CST);
}

static void *work(void *which) {
    long i = (long)which;
    const worker *me = &self->worker[i];
    go_to(me->node);
    __atomic_fetch_add(&board->ready, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&board->go, __ATOMIC_SEQ_CST))
        usleep(1000);
    /* A moment on its node, and then it may go anywhere. */
    sweep(memory[__builtin_ctz(me->uses)]);
    go_to(-1);
    const double half = board->began + board->seconds / 2;
    double pause = now_run->works ? now() + now_run->works : board->began + board->seconds;
    for (double t = now(); !over(t);) {
        unsigned uses = me->uses_then && t >= half ? me->uses_then : me->uses;
        for (int s = 0; s < self->segments; s++) {
            if (!(uses >> s & 1))
                continue;
            for (size_t at = 0; at < self->segment[s].bytes && !over(t = now()); at += CHUNK) {
                sweep(memory[s] + at);
                chunks[i]++;
                if (t >= pause) {
                    rest(t + now_run->rests);
                    pause = now() + now_run->works;
                }
            }
        }
    }
    return NULL;
}

static int run_process(void) {
    pthread_t threads[MOST];
    for (int s = 0; s < self->segments; s++) {
        go_to(self->segment[s].node);
        memory[s] = mapped(self->segment[s].bytes);
        for (size_t at = 0; at < self->segment[s].bytes; at += 4096)
            memory[s][at] = 1;
    }
    go_to(-1);
    for (long i = 0; i < self->workers; i++)
        if (pthread_create(threads + i, NULL, work, (void *)i))
            die("pthread_create");
    unsigned long all = 0;
    for (int i = 0; i < self->workers; i++) {
        pthread_join(threads[i], NULL);
        all += chunks[i];
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("work %lu cpu %.3f\n", all,
           (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6);
    return 0;
}

static size_t free_on(int node) {
    char path[64], line[128];
    size_t kb = 0;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
    FILE *file = fopen(path, "r");
    if (!file)
        die(path);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Node %*d MemFree: %zu", &kb) == 1)
            break;
    fclose(file);
    return kb * 1024;
}

/* Takes node 1's memory, but for what it leaves, and keeps it. */
static void neighbour(void) {
    const size_t size = 4 * MB;
    const unsigned long node_1 = 2;
    while (free_on(1) > now_run->left_on_1 + size) {
        char *at = mapped(size);
        if (syscall(SYS_mbind, at, size, 2, &node_1, 3, 0) != 0)
            die("mbind");
        memset(at, 1, size);
    }
    __atomic_fetch_add(&board->ready, 1, __ATOMIC_SEQ_CST);
    rest(1e9);
}

static void say_processes(const char *path, const pid_t *pids) {
    FILE *file = fopen(path, "w");
    if (!file)
        die(path);
    for (int p = 0; p < now_run->processes; p++)
        fprintf(file, "%s%d", p ? "," : "", pids[p]);
    fputs("\n", file);
    fclose(file);
}

static pid_t forked(void (*begin)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (begin)
            begin();
        int status = run_process();
        fflush(stdout);
        exit(status);
    }
    return pid;
}

static int run(const pattern *which, double seconds, const char *file) {
    pid_t pids[MOST], beside = 0;
    int threads = which->left_on_1 > 0, failed = 0;
    now_run = which;
    board = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (which->left_on_1)
        beside = forked(neighbour);
    while (beside && __atomic_load_n(&board->ready, __ATOMIC_SEQ_CST) == 0)
        usleep(1000);
    for (int p = 0; p < which->processes; p++) {
        self = &which->process[p];
        number = p + 1;
        threads += self->workers;
        pids[p] = forked(NULL);
    }
    while (__atomic_load_n(&board->ready, __ATOMIC_SEQ_CST) < threads) {
        if (waitpid(-1, NULL, WNOHANG) > 0)
            return 3; /* one could not begin, and has said why */
        usleep(1000);
    }
    signal(SIGTERM, end_early);
    if (file)
        say_processes(file, pids);
    board->began = now();
    board->seconds = seconds;
    __atomic_store_n(&board->go, true, __ATOMIC_SEQ_CST);
    for (int p = 0; p < which->processes; p++) {
        int status = 0;
        waitpid(pids[p], &status, 0);
        failed |= status;
    }
    if (beside)
        kill(beside, SIGKILL);
    return failed != 0;
}

int main(int count, char **arguments) {
    for (const pattern *each = patterns; each < patterns + PATTERNS; each++) {
        if (count == 2 && strcmp(arguments[1], "list") == 0)
            printf("%s\t%s\n", each->name, each->what);
        else if (count >= 3 && strcmp(arguments[1], each->name) == 0)
            return run(each, atof(arguments[2]), count > 3 ? arguments[3] : NULL);
    }
    return count == 2 ? 0 : 2;
}
