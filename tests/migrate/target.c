/* A program whose pages are moved while it works on them, and who knows what they must hold.
 *
 *   target THREADS [DEED…] [SEGMENT…]
 *
 * A segment is KIND:NODE:MIB: small, huge, hugetlb, locked, pinned, shared (mapped by a child too). Every
 * thread adds one to the first word of each page of its part, pass after pass; the rest of a page never
 * changes. Deeds: `forks` and `unmaps` without end, `exits` at once when asked to; `rests` after each pass, where it is
 * not about moving while pages are written: in a guest who works takes the host's CPUs from all others.
 * Says `ready PID`; at SIGUSR1 `longest NS` since the last time, between two looks at the clock eight pages
 * apart; at SIGTERM `right PASSES passes` and 0, or what is wrong and 1. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, MOST = 16 };

static struct segment {
    uint64_t *words;
    size_t pages;
} segments[MOST];
static int segment_count, thread_count;
static atomic_bool ending;
static int rests;
static uint64_t passes[MOST];
static _Atomic uint64_t longest[MOST]; /* by thread */

static void fail(const char *what) {
    perror(what);
    exit(3);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t pattern(size_t page, size_t word) { return (page * WORDS + word) * 0x9e3779b97f4a7c15u; }

/* Pages of the segment that a thread works on. */
static void part(const struct segment *s, int thread, size_t *first, size_t *end) {
    size_t threads = thread_count ? (size_t)thread_count : 1;
    *first = s->pages * (size_t)thread / threads;
    *end = s->pages * ((size_t)thread + 1) / threads;
}

static void *work(void *argument) {
    int thread = (int)(intptr_t)argument;
    while (!ending) {
        uint64_t last = now();
        for (int s = 0; s < segment_count; s++) {
            size_t page, end;
            for (part(&segments[s], thread, &page, &end); page < end; page++) {
                segments[s].words[page * WORDS]++;
                if (page % 8 == 0) {
                    uint64_t at = now();
                    if (at - last > longest[thread])
                        longest[thread] = at - last;
                    last = at;
                }
            }
        }
        passes[thread]++;
        if (rests)
            usleep(20000);
    }
    return NULL;
}

/* Since it was last asked. */
static uint64_t longest_of_all(void) {
    uint64_t most = 0;
    for (int i = 0; i < thread_count; i++) {
        uint64_t one = atomic_exchange(&longest[i], 0);
        most = one > most ? one : most;
    }
    return most;
}

static int wrong(void) {
    for (int s = 0; s < segment_count; s++)
        for (int thread = 0; thread < (thread_count ? thread_count : 1); thread++) {
            size_t page, end;
            for (part(&segments[s], thread, &page, &end); page < end; page++) {
                const uint64_t *words = segments[s].words + page * WORDS;
                for (size_t word = 1; word < WORDS; word++)
                    if (words[word] != pattern(page, word) || words[0] != passes[thread]) {
                        printf("WRONG segment %d page %zu word %zu, counted %lu of %lu\n", s, page, word, words[0],
                               passes[thread]);
                        return 1;
                    }
            }
        }
    return 0;
}

static void bind_to(void *start, size_t bytes, int node) {
    unsigned long mask = 1ul << node;
    if (syscall(SYS_mbind, start, bytes, node < 0 ? 0 : 2, node < 0 ? NULL : &mask, node < 0 ? 0 : 64, 0))
        fail("mbind");
}

static void child_maps_too(const struct segment *s) {
    int ready[2];
    if (pipe(ready))
        fail("pipe");
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        uint64_t sum = 0;
        for (size_t page = 0; page < s->pages; page++)
            sum += ((volatile uint64_t *)s->words)[page * WORDS];
        if (write(ready[1], &sum, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    if (read(ready[0], &byte, 1) != 1)
        fail("read");
}

/* A pipe holds them until we end. */
static void pin(const struct segment *s) {
    int ends[2];
    if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, 256 * PAGE) < 0)
        fail("pipe");
    struct iovec all = {s->words, s->pages * PAGE};
    if (vmsplice(ends[1], &all, 1, 0) < 0)
        fail("vmsplice");
}

static void add_segment(const char *kind, int node, size_t mib) {
    int shared = !strcmp(kind, "shared"), hugetlb = !strcmp(kind, "hugetlb");
    size_t bytes = mib << 20, align = 2u << 20;
    int flags = MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE) | (hugetlb ? MAP_HUGETLB : 0);
    char *start = mmap(NULL, bytes + (hugetlb ? 0 : align), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (start == MAP_FAILED)
        fail(kind);
    if (!hugetlb)
        start += (align - (uintptr_t)start % align) % align;
    struct segment *s = &segments[segment_count++];
    *s = (struct segment){(uint64_t *)(void *)start, bytes / PAGE};
    if (!hugetlb)
        madvise(start, bytes, strcmp(kind, "huge") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    bind_to(start, bytes, node);
    for (size_t page = 0; page < s->pages; page++)
        for (size_t word = 1; word < WORDS; word++)
            s->words[page * WORDS + word] = pattern(page, word);
    bind_to(start, bytes, -1);
    if (shared)
        child_maps_too(s);
    if (!strcmp(kind, "locked") && mlock(start, bytes))
        fail("mlock");
    if (!strcmp(kind, "pinned"))
        pin(s);
}

static void *forks(void *unused) {
    while (!ending) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
        usleep(100000);
    }
    return unused;
}

static void *unmaps(void *unused) {
    while (!ending) {
        size_t bytes = 4u << 20;
        char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED)
            fail("mmap");
        for (size_t at = 0; at < bytes; at += PAGE)
            start[at] = 1;
        munmap(start, bytes);
    }
    return unused;
}

int main(int count, char **arguments) {
    pthread_t threads[MOST + 2];
    int started = 0, exits = 0;
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigaddset(&term, SIGUSR1);
    sigprocmask(SIG_BLOCK, &term, NULL);
    thread_count = count > 1 ? atoi(arguments[1]) : 0;
    if (thread_count < 0 || thread_count > MOST || count > MOST)
        return 3;
    for (int i = 2; i < count; i++) {
        char kind[16];
        int node;
        size_t mib;
        if (sscanf(arguments[i], "%15[^:]:%d:%zu", kind, &node, &mib) == 3)
            add_segment(kind, node, mib);
    }
    for (int i = 2; i < count; i++) {
        if (!strcmp(arguments[i], "forks"))
            pthread_create(&threads[started++], NULL, forks, NULL);
        if (!strcmp(arguments[i], "unmaps"))
            pthread_create(&threads[started++], NULL, unmaps, NULL);
        exits |= !strcmp(arguments[i], "exits");
        rests |= !strcmp(arguments[i], "rests");
    }
    for (intptr_t i = 0; i < thread_count; i++)
        pthread_create(&threads[started++], NULL, work, (void *)i);
    printf("ready %d\n", getpid());
    fflush(stdout);
    int signal_number;
    while (sigwait(&term, &signal_number) == 0 && signal_number == SIGUSR1) {
        printf("longest %lu\n", longest_of_all());
        fflush(stdout);
    }
    if (exits)
        _exit(0);
    ending = 1;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    uint64_t all = 0;
    for (int i = 0; i < thread_count; i++)
        all += passes[i];
    if (wrong())
        return 1;
    printf("right %lu passes\n", all);
    return 0;
}
