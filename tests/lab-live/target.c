/* A program that is balanced while it works, and who knows what its memory must hold; and the tools that
 * watch it and disturb it.
 *
 *   target CPU [forks] [unmaps] [threads:N] [KIND:NODE:PAGES…]
 *
 * works without a pause from that CPU on pages that lie on NODE. KINDs: `plain`, left to the kernel's balancing; `kept`,
 * which the kernel samples and leaves where they are; `read`, the same, never written; `common`, `kept` and shared with
 * children; `anew`, `plain` but for its first pages, given back and touched again in each pass. Segments are at 2000…,
 * 2001… in `numa_maps`.
 * Says `ready PID`; at SIGUSR1 forks a child that reads what `read` and `common` segments hold, and says `forked PID`; says
 * `ended N threads`; at SIGTERM `right PASSES passes`, the child's verdict included, or what is wrong and 1.
 *
 *   target hog NODE               takes all memory of a node that is to be had without force; `ready MIB`
 *   target pages PID NODE         how many pages of the segments lie there
 *   target strike SIG VICTIM PID NODE PAGES   signals VICTIM once so many lie there; says how many it saw
 *   target stalls PID             until SIGTERM: how often PID is seen stopped, the longest of it and all in ms, and
 *                                 how often it is seen otherwise
 *   target catch PID STOPPER      kills STOPPER while it has PID stopped; `running MS` later, or `stopped`
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, MOST = 8, DEFAULT = 0, PREFERRED = 1, BIND = 2, SAMPLED = 1 << 13, ANEW = 4 };
#define BASE 0x200000000000u
#define APART (1ul << 32)

static struct segment {
    uint64_t *words;
    size_t pages;
    int read, anew, common;
} segments[MOST];
static int segment_count;
static int only_reads; /* in a child */
static atomic_bool ending;
static uint64_t passes;
static _Atomic int wrong_read;

static void fail(const char *what) {
    perror(what);
    exit(3);
}

static uint64_t pattern(size_t page, size_t word) { return (page * WORDS + word) * 0x9e3779b97f4a7c15u; }

static void bind_to(void *start, size_t bytes, int mode, int node) {
    unsigned long mask = 1ul << node;
    if (syscall(SYS_mbind, start, bytes, mode, mode ? &mask : NULL, mode ? 64 : 0, 0))
        fail("mbind");
}

static void add_segment(const char *kind, int node, size_t pages) {
    size_t bytes = pages * PAGE;
    void *at = (void *)(BASE + (uintptr_t)segment_count * APART);
    int common = !strcmp(kind, "common"), whose = common ? MAP_SHARED : MAP_PRIVATE;
    void *start = mmap(at, bytes, PROT_READ | PROT_WRITE, whose | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (start == MAP_FAILED || segment_count == MOST)
        fail(kind);
    struct segment *s = &segments[segment_count++];
    *s = (struct segment){start, pages, !strcmp(kind, "read"), !strcmp(kind, "anew"), common};
    madvise(start, bytes, MADV_NOHUGEPAGE);
    bind_to(start, bytes, BIND, node);
    for (size_t page = 0; page < pages; page++)
        for (size_t word = 1; word < WORDS; word++)
            s->words[page * WORDS + word] = pattern(page, word);
    int kept = s->read || common || !strcmp(kind, "kept");
    bind_to(start, bytes, kept ? BIND | SAMPLED : DEFAULT, node);
}

static void one_pass(const struct segment *s) {
    if (s->anew && madvise(s->words, ANEW * PAGE, MADV_DONTNEED))
        fail("madvise");
    for (size_t page = 0; page < s->pages; page++) {
        volatile uint64_t *word = &s->words[page * WORDS];
        if (s->read || only_reads)
            wrong_read |= word[1] != pattern(page, 1);
        else if (s->anew && page < ANEW)
            *word = passes + 1;
        else
            ++*word;
    }
}

static void *work(void *unused) {
    while (!ending) {
        for (int s = 0; s < segment_count; s++)
            one_pass(&segments[s]);
        passes++;
    }
    return unused;
}

/* What a thread wrote is in the first word, where it is to be written at all. */
static int wrong(int reads_only) {
    for (int i = 0; i < segment_count; i++)
        for (size_t page = 0; page < segments[i].pages; page++) {
            const struct segment *s = &segments[i];
            const uint64_t *words = s->words + page * WORDS;
            int fresh = s->anew && page < ANEW;
            if (reads_only && !s->read)
                continue;
            if (words[0] != (s->read ? 0 : passes))
                return printf("WRONG count, page %zu: %lu of %lu\n", page, words[0], passes);
            for (size_t word = 1; word < WORDS; word++)
                if (words[word] != (fresh ? 0 : pattern(page, word)))
                    return printf("WRONG page %zu word %zu\n", page, word);
        }
    return wrong_read;
}

/* The child has its parent's `read` and `common` pages, copied by nobody. */
static pid_t reader(void) {
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child > 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    only_reads = 1;
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    struct timespec pause = {0, 2000000};
    while (sigtimedwait(&term, NULL, &pause) < 0)
        for (int s = 0; s < segment_count; s++)
            if (segments[s].read || segments[s].common)
                one_pass(&segments[s]);
    _exit(wrong(1) != 0);
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* A tenth of the time has a child, whose pages cannot move, however slow the host is. */
static void *forks(void *unused) {
    while (!ending) {
        double begin = now_ms();
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
        double took = now_ms() - begin;
        usleep((useconds_t)(1e3 * (9 * took > 50 ? 9 * took : 50)));
    }
    return unused;
}

static void *unmaps(void *unused) {
    while (!ending) {
        size_t bytes = 1u << 20;
        char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED)
            fail("mmap");
        for (size_t at = 0; at < bytes; at += PAGE)
            start[at] = 1;
        usleep(20000);
        munmap(start, bytes);
    }
    return unused;
}

static void *brief(void *unused) { return unused; }

static void *threads(void *count) {
    pthread_t some[8];
    int all = (int)(intptr_t)count;
    for (int done = 0; done < all; done += 8) {
        for (int i = 0; i < 8; i++)
            if (pthread_create(&some[i], NULL, brief, NULL))
                fail("thread");
        for (int i = 0; i < 8; i++)
            pthread_join(some[i], NULL);
    }
    printf("ended %d threads\n", all);
    fflush(stdout);
    return NULL;
}

static void run_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        fail("sched_setaffinity");
}

static int program(int count, char **arguments) {
    pthread_t all[MOST];
    int started = 0, many = 0, status = 0, number;
    pid_t child = 0;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    run_on(atoi(arguments[1]));
    for (int i = 2; i < count; i++) {
        char kind[8];
        int node;
        size_t pages;
        if (sscanf(arguments[i], "%7[^:]:%d:%zu", kind, &node, &pages) == 3)
            add_segment(kind, node, pages);
        sscanf(arguments[i], "threads:%d", &many);
    }
    printf("ready %d\n", getpid());
    fflush(stdout);
    pthread_create(&all[started++], NULL, work, NULL);
    if (many)
        pthread_create(&all[started++], NULL, threads, (void *)(intptr_t)many);
    for (int i = 2; i < count; i++) {
        if (!strcmp(arguments[i], "forks"))
            pthread_create(&all[started++], NULL, forks, NULL);
        if (!strcmp(arguments[i], "unmaps"))
            pthread_create(&all[started++], NULL, unmaps, NULL);
    }
    while (sigwait(&set, &number) == 0 && number == SIGUSR1) {
        child = reader();
        printf("forked %d\n", child);
        fflush(stdout);
    }
    ending = 1;
    for (int i = 0; i < started; i++)
        pthread_join(all[i], NULL);
    if (child && (kill(child, SIGTERM) || waitpid(child, &status, 0) != child || status))
        return printf("WRONG in the child: %d\n", status), 1;
    if (wrong(0))
        return 1;
    printf("right %lu passes\n", passes);
    return 0;
}

static int node_of(void *address) {
    int node = -1;
    return syscall(SYS_move_pages, 0, 1ul, &address, NULL, &node, 0) ? -1 : node;
}

/* Preferring the node, it is refused nothing and forces nobody out. The kernel also goes to another node while a zone's
 * watermark is boosted (after its pages were mixed by mobility), with much of it free: only a second of refusals says that
 * there is nothing left. */
static int hog(int node) {
    size_t step = 256u << 10, taken = 0;
    int refused = 0;
    unsigned long mask = 1ul << node;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (syscall(SYS_set_mempolicy, PREFERRED, &mask, 64))
        fail("set_mempolicy");
    while (refused < 20) {
        char *start = mmap(NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED)
            fail("mmap");
        for (size_t at = 0; at < step; at += PAGE)
            start[at] = 1;
        if (node_of(start + step - PAGE) == node) {
            taken += step;
            refused = 0;
        } else {
            munmap(start, step);
            refused++;
            usleep(50000);
        }
    }
    printf("ready %zu\n", taken >> 20);
    fflush(stdout);
    return sigwaitinfo(&set, NULL) < 0;
}

/* -1: it has ended. */
static long pages_on(int pid, int node) {
    char path[64], key[16], line[4096];
    long pages = 0, lines = 0;
    snprintf(path, sizeof path, "/proc/%d/numa_maps", pid);
    snprintf(key, sizeof key, " N%d=", node);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        char *at = strncmp(line, "200", 3) ? NULL : strstr(line, key);
        pages += at ? atol(at + strlen(key)) : 0;
        lines++;
    }
    if (file)
        fclose(file);
    return lines ? pages : -1;
}

static int strike(int number, int victim, int pid, int node, long enough) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (now = begin; now.tv_sec - begin.tv_sec < 30; clock_gettime(CLOCK_MONOTONIC, &now)) {
        long pages = pages_on(pid, node);
        if (pages < 0)
            break;
        if (pages >= enough) {
            if (kill(victim, number))
                fail("kill");
            return printf("%ld\n", pages), 0;
        }
        usleep(500);
    }
    return puts("0"), 1;
}

/* The first thread's; 0: it has ended. */
static char state_of(int pid) {
    char path[64], line[1024], *at = NULL;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (file && fgets(line, sizeof line, file))
        at = strrchr(line, ')');
    if (file)
        fclose(file);
    return at ? at[2] : 0;
}

/* Lengths are from the first sight of a stall to the last: it was no shorter. */
static int stalls(int pid) {
    struct timespec pause = {0, 200000};
    double since = 0, last = 0, longest = 0, all = 0;
    long times = 0, otherwise = 0;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int before = 0, stopped; sigtimedwait(&set, NULL, &pause) < 0; before = stopped) {
        double looked = now_ms();
        stopped = state_of(pid) == 'T';
        otherwise += !stopped;
        if (!stopped)
            continue;
        if (before) {
            all += looked - last;
            if (looked - since > longest)
                longest = looked - since;
        } else {
            since = now_ms();
            times++;
        }
        last = now_ms();
    }
    return printf("%ld %.3f %.3f %ld\n", times, longest, all, otherwise), 0;
}

/* Stopped itself, STOPPER can let nobody run; it is killed if PID stands still then. */
static int caught(int pid, int stopper) {
    for (int tries = 0; tries < 20000; tries++, usleep(200)) {
        if (state_of(pid) != 'T')
            continue;
        if (kill(stopper, SIGSTOP))
            fail("kill");
        while (state_of(stopper) != 'T')
            usleep(100);
        usleep(1000);
        if (state_of(pid) == 'T')
            return 1;
        kill(stopper, SIGCONT);
    }
    return 0;
}

static int catch (int pid, int stopper) {
    if (!caught(pid, stopper))
        return puts("never"), 1;
    double killed = now_ms(), now = killed;
    if (kill(stopper, SIGKILL))
        fail("kill");
    for (; now - killed < 5000 && state_of(pid) == 'T'; now = now_ms())
        usleep(1000);
    return printf("%s %.0f\n", now - killed < 5000 ? "running" : "stopped", now - killed), 0;
}

int main(int count, char **arguments) {
    if (count == 3 && !strcmp(arguments[1], "hog"))
        return hog(atoi(arguments[2]));
    if (count == 4 && !strcmp(arguments[1], "pages"))
        return printf("%ld\n", pages_on(atoi(arguments[2]), atoi(arguments[3]))), 0;
    if (count == 3 && !strcmp(arguments[1], "stalls"))
        return stalls(atoi(arguments[2]));
    if (count == 4 && !strcmp(arguments[1], "catch"))
        return catch (atoi(arguments[2]), atoi(arguments[3]));
    if (count == 7 && !strcmp(arguments[1], "strike"))
        return strike(atoi(arguments[2]), atoi(arguments[3]), atoi(arguments[4]), atoi(arguments[5]),
                      atol(arguments[6]));
    return count > 1 ? program(count, arguments) : 3;
}
