// Programs whose pages are set aside while they run. Each checks its own memory all the time, and exits with 3 when it is not
// what the program wrote.
// target KIND SECONDS [huge]; target owns SECONDS PAGES
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
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

enum { PAGE = 4096, PAGES = 4096, WORDS = PAGE / 8, STEP = 64, OWNERS = 2 };
#define BYTES ((long)PAGES * PAGE)

static atomic_int stop;
static atomic_long rounds;

static time_t began;

static void end(int signal) { stop = signal; }

static void fail(const char *what) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("WRONG after %.3f s: %s\n", (double)(now.tv_sec - began) + now.tv_nsec / 1e9, what);
    fflush(stdout);
    _exit(3);
}

static int huge;

// At a huge page's boundary; with huge pages if asked for.
static uint64_t *fresh(void) {
    char *memory = mmap(NULL, BYTES + (4 << 20), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    char *start = (char *)(((uintptr_t)memory + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
    munmap(memory, start - memory);
    munmap(start + BYTES, memory + BYTES + (4 << 20) - start - BYTES);
    if (mprotect(start, BYTES, PROT_READ | PROT_WRITE))
        fail("mprotect");
    madvise(start, BYTES, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return (uint64_t *)start;
}

static void fill(uint64_t *memory, uint64_t key) {
    for (long i = 0; i < BYTES / 8; i += STEP)
        memory[i] = key + i;
}

static int good(volatile uint64_t *memory, uint64_t key) {
    for (long i = 0; i < BYTES / 8; i += STEP)
        if (memory[i] != key + i)
            return 0;
    return 1;
}

static void *counts(void *unused) {
    uint64_t *memory = fresh(), key = 1;
    fill(memory, key);
    for (; !stop; rounds++) {
        if (!good(memory, key++))
            fail("count");
        for (long i = 0; i < BYTES / 8; i += STEP)
            memory[i]++;
    }
    return unused;
}

// Children see what the parent had, change it for themselves, and have children too; the parent goes on writing.
static void *forks(void *unused) {
    uint64_t *memory = fresh(), key = 77;
    // As libraries learn that they were forked.
    volatile char *wiped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)wiped, PAGE, MADV_WIPEONFORK);
    *wiped = 1;
    fill(memory, key);
    for (; !stop; rounds++) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0) {
            int right = good(memory, key) && !*wiped;
            if (right && rounds % 3 == 0) {
                int status = 1;
                pid_t grandchild = fork();
                if (grandchild == 0)
                    _exit(!good(memory, key));
                waitpid(grandchild, &status, 0);
                right = status == 0;
            }
            for (long i = 0; i < BYTES / 8; i += 8 * WORDS)
                memory[i] = 0;
            _exit(!right);
        }
        key++;
        for (long i = 0; i < BYTES / 8; i += STEP)
            memory[i]++;
        int status;
        waitpid(child, &status, 0);
        if (status != 0)
            fail("a child's memory");
        if (!good(memory, key))
            fail("a parent's memory");
    }
    return unused;
}

// What is given up reads as zero, the rest as before.
static void *gives_up(void *unused) {
    uint64_t *memory = fresh();
    for (; !stop; rounds++) {
        fill(memory, 5);
        long from = rand() % 1000, count = 1 + rand() % 3000;
        if (madvise((char *)memory + from * PAGE, count * PAGE, MADV_DONTNEED))
            fail("madvise");
        for (long page = 0; page < PAGES; page++) {
            uint64_t wanted = page >= from && page < from + count ? 0 : 5 + page * WORDS;
            if (((volatile uint64_t *)memory)[page * WORDS] != wanted)
                fail("given up");
        }
    }
    return unused;
}

static void *changes_place(void *unused) {
    uint64_t *memory = fresh();
    fill(memory, 9);
    for (; !stop; rounds++) {
        memory = mremap(memory, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, fresh());
        if (memory == MAP_FAILED)
            fail("mremap");
        if (!good(memory, 9))
            fail("another place");
        usleep(3000);
    }
    return unused;
}

// As realloc does: new memory at the end is touched at once.
static void *grows(void *unused) {
    enum { MORE = 3 << 20 };
    uint64_t *memory = fresh();
    fill(memory, 13);
    for (; !stop; rounds++) {
        memory = mremap(memory, BYTES, BYTES + MORE, MREMAP_MAYMOVE);
        if (memory == MAP_FAILED)
            fail("growing");
        for (long i = BYTES / 8; i < (BYTES + MORE) / 8; i += WORDS)
            if (((volatile uint64_t *)memory)[i]++)
                fail("new memory at the end is not zero");
        if (!good(memory, 13))
            fail("grown");
        if (mremap(memory, BYTES + MORE, BYTES, 0) == MAP_FAILED)
            fail("shrinking");
        usleep(2000);
    }
    return unused;
}

// Parts of huge pages change their place.
static void *parts_change_place(void *unused) {
    uint64_t *memory = fresh(), *other = fresh();
    for (; !stop; rounds++) {
        fill(memory, 17);
        long from = 1 + rand() % 3000, count = 1 + rand() % 1000; // nothing grows into it from below
        char *part = (char *)memory + from * PAGE, *there = (char *)other + (from + 90) * PAGE;
        if (from + 90 + count > PAGES)
            continue;
        if (mremap(part, count * PAGE, count * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, there) == MAP_FAILED)
            fail("a part's mremap");
        for (long i = 0; i < count * WORDS; i += STEP)
            if (((volatile uint64_t *)there)[i] != 17 + (uint64_t)(from * WORDS + i))
                fail("a part at another place");
        if (mmap(part, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            MAP_FAILED)
            fail("mmap of a part");
        madvise(part, count * PAGE, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        for (long page = 0; page < PAGES; page++) {
            uint64_t wanted = page >= from && page < from + count ? 0 : 17 + page * WORDS;
            uint64_t found = ((volatile uint64_t *)memory)[page * WORDS];
            if (found != wanted) {
                printf("page %ld of part %ld+%ld: %lu, not %lu; again: %lu\n", page, from, count, found, wanted,
                       ((volatile uint64_t *)memory)[page * WORDS]);
                fail("what a part left behind");
            }
        }
        usleep(2000);
    }
    return unused;
}

// Parts of pages that are aside change their place: nothing accesses them before.
static void *halves(void *unused) {
    enum { FROM = 100, COUNT = 700 };
    uint64_t *memory = fresh(), *other = fresh();
    char *part = (char *)memory + FROM * PAGE;
    for (; !stop; rounds++) {
        fill(memory, 19);
        usleep(20000 + rand() % 30000);
        char *there = mremap(part, COUNT * PAGE, COUNT * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other);
        if (there == MAP_FAILED)
            fail("a half's mremap");
        for (long page = 0; page < PAGES; page++) {
            long within = page - FROM;
            volatile uint64_t *now = within >= 0 && within < COUNT ? (uint64_t *)there + within * WORDS
                                                                   : memory + page * WORDS;
            if (*now != 19 + (uint64_t)page * WORDS)
                fail("halves");
        }
        usleep(20000 + rand() % 30000);
        if (mremap(there, COUNT * PAGE, COUNT * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, part) == MAP_FAILED)
            fail("a half's mremap back");
        if (!good(memory, 19)) {
            long first = -1, last = 0, count = 0;
            for (long page = 0; page < PAGES; page++)
                if (((volatile uint64_t *)memory)[page * WORDS] != 19 + (uint64_t)page * WORDS) {
                    if (first < 0)
                        first = page;
                    last = page;
                    count++;
                }
            printf("%ld pages from %ld to %ld: %#lx; %p, %p\n", count, first, last,
                   first < 0 ? 0 : memory[first * WORDS], memory, other);
            fail("halves that came back");
        }
    }
    return unused;
}

// As several threads' malloc does: memory grows into the place of what another thread has just unmapped.
static void *trades(void *argument) {
    enum { SMALLER = 256 << 10, BUFFERS = 8 };
    uint64_t *buffers[BUFFERS] = {0}, keys[BUFFERS] = {0}, key = (uintptr_t)argument;
    unsigned seed = (unsigned)key;
    for (; !stop; rounds++) {
        int which = rand_r(&seed) % BUFFERS;
        uint64_t **buffer = &buffers[which];
        if (*buffer && rand_r(&seed) % 2) {
            // Twice, before it is looked at.
            for (int times = 1; times <= 2; times++) {
                uint64_t *grown = mremap(*buffer, times * SMALLER, 2 * times * SMALLER, MREMAP_MAYMOVE);
                if (grown == MAP_FAILED) {
                    printf("%p, the %d. time: %m\n", (void *)*buffer, times);
                    fail("a buffer's growing");
                }
                *buffer = grown;
            }
            for (long i = 0; i < SMALLER / 8; i += WORDS)
                if (((volatile uint64_t *)*buffer)[i] != keys[which] + i)
                    fail("what has grown");
            if (mremap(*buffer, 4 * SMALLER, SMALLER, 0) == MAP_FAILED)
                fail("a buffer's shrinking");
        } else {
            if (*buffer)
                munmap(*buffer, SMALLER);
            *buffer = mmap(NULL, SMALLER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            keys[which] = key += SMALLER;
            for (long i = 0; i < SMALLER / 8; i += WORDS) {
                if (((volatile uint64_t *)*buffer)[i])
                    fail("a new buffer is not zero");
                (*buffer)[i] = keys[which] + i;
            }
        }
        for (int other = 0; other < BUFFERS; other++)
            for (long i = 0; buffers[other] && i < SMALLER / 8; i += WORDS)
                if (((volatile uint64_t *)buffers[other])[i] != keys[other] + i) {
                    printf("buffer %d (after %d), %p + %#lx: %#lx, key %#lx\n", other, which, (void *)buffers[other],
                           i * 8, ((volatile uint64_t *)buffers[other])[i], keys[other]);
                    fail("a buffer");
                }
    }
    return NULL;
}

static void *several_trade(void *unused) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, trades, (void *)((i + 1) << 40));
    for (long i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return unused;
}

static void *protects(void *unused) {
    uint64_t *memory = fresh();
    fill(memory, 11);
    for (; !stop; rounds++) {
        long from = rand() % 1000, count = 1 + rand() % 3000;
        if (mprotect((char *)memory + from * PAGE, count * PAGE, PROT_READ))
            fail("mprotect");
        if (!good(memory, 11))
            fail("protected");
        if (mprotect(memory, BYTES, PROT_READ | PROT_WRITE))
            fail("mprotect back");
        if (!good(memory, 11))
            fail("not protected");
    }
    return unused;
}

static void *unmaps(void *unused) {
    for (; !stop; rounds++) {
        uint64_t *memory = fresh();
        fill(memory, 3);
        usleep(20000);
        if (!good(memory, 3))
            fail("mapped");
        munmap(memory, BYTES);
        memory = fresh();
        for (long i = 0; i < BYTES / 8; i += WORDS)
            if (((volatile uint64_t *)memory)[i])
                fail("new memory is not zero");
        munmap(memory, BYTES);
    }
    return unused;
}

// System calls read and write pages that are aside.
static void *calls(void *unused) {
    uint64_t *memory = fresh();
    int pipes[2];
    if (pipe(pipes))
        fail("pipe");
    fill(memory, 21);
    for (; !stop; rounds++) {
        char *from = (char *)memory + (long)(rand() % PAGES) * PAGE,
             *to = (char *)memory + (long)(rand() % PAGES) * PAGE, kept[PAGE];
        memcpy(kept, to, PAGE);
        if (write(pipes[1], from, PAGE) != PAGE)
            fail("write");
        if (read(pipes[0], to, PAGE) != PAGE)
            fail("read");
        if (*(uint64_t *)to != 21 + (uint64_t)(from - (char *)memory) / 8)
            fail("what was read");
        if (from != to)
            memcpy(to, kept, PAGE);
    }
    return unused;
}

static void *nothing(void *unused) { return unused; }

static void *starts_threads(void *unused) {
    for (; !stop; rounds++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL))
            fail("thread");
        pthread_join(thread, NULL);
        usleep(200);
    }
    return unused;
}

// Threads whose stacks lie in the program's own memory, as OpenMP's or a runtime's may: they sleep, and end.
static void *sleeps(void *words) {
    volatile uint64_t mine[8];
    for (int i = 0; i < 8; i++)
        mine[i] = (uintptr_t)words + i;
    usleep(1000 + rand() % 30000);
    for (int i = 0; i < 8; i++)
        if (mine[i] != (uintptr_t)words + i)
            fail("a stack");
    return words;
}

static void *own_stacks(void *unused) {
    enum { THREADS = 64, STACK = 32 << 10 };
    char *memory = (char *)fresh();
    pthread_attr_t attributes[THREADS];
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        pthread_attr_init(&attributes[i]);
        pthread_attr_setstack(&attributes[i], memory + i * STACK, STACK);
        if (pthread_create(&threads[i], &attributes[i], sleeps, memory))
            fail("thread");
    }
    for (int i = 0; !stop; i = (i + 1) % THREADS, rounds++) {
        pthread_join(threads[i], NULL);
        if (pthread_create(&threads[i], &attributes[i], sleeps, memory))
            fail("thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return unused;
}

// Owners of a part each, on CPUs far apart, which they only read.
static char *parts;
static long owned = 256; // pages

static void *owns(void *argument) {
    long me = (long)argument, sum = 0, passes = 0;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)(me * (sysconf(_SC_NPROCESSORS_ONLN) - 1)), &set);
    sched_setaffinity(0, sizeof set, &set);
    volatile char *mine = parts + me * owned * PAGE;
    for (; !stop; passes++, rounds++)
        for (long i = 0; i < owned * PAGE; i += 64)
            sum += mine[i];
    if (sum != passes * owned * PAGE / 64 * (me + 1))
        fail("sum");
    return NULL;
}

// Filters out what the kernel would have a process killed for.
static void filter(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        fail("filter");
}

static const struct {
    const char *name;
    void *(*work)(void *);
} KINDS[] = {
    {"counts", counts},         {"forks", forks},
    {"gives-up", gives_up},     {"changes-place", changes_place},
    {"grows", grows},           {"parts-change-place", parts_change_place},
    {"protects", protects},     {"unmaps", unmaps},
    {"calls", calls},           {"starts-threads", starts_threads},
    {"own-stacks", own_stacks}, {"halves", halves},
    {"trades", several_trade},
};
// Those that cannot run beside others: one leaves a hole, which the other takes.
static int alone(void *(*work)(void *)) { return work == halves || work == several_trade; }
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "";
    int seconds = argc > 2 ? atoi(argv[2]) : 1, started = 0;
    huge = argc > 3 && !strcmp(argv[3], "huge");
    if (huge)
        owned *= 8; // four huge pages each
    else if (argc > 3)
        owned = atol(argv[3]);
    pthread_t threads[KIND_COUNT];
    signal(SIGTERM, end); // as at the end of its time
    if (!strcmp(kind, "filtered")) {
        filter();
        kind = "counts";
    }
    if (!strcmp(kind, "owns")) {
        long bytes = OWNERS * owned * PAGE;
        parts = aligned_alloc(2 << 20, bytes);
        madvise(parts, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        for (long me = 0; me < OWNERS; me++)
            memset(parts + me * owned * PAGE, (int)me + 1, owned * PAGE);
        for (long me = 0; me < OWNERS; me++)
            pthread_create(&threads[started++], NULL, owns, (void *)me);
    }
    for (int i = 0; i < KIND_COUNT; i++)
        if (!strcmp(kind, KINDS[i].name) || (!strcmp(kind, "all") && !alone(KINDS[i].work)))
            pthread_create(&threads[started++], NULL, KINDS[i].work, NULL);
    if (started == 0) {
        fprintf(stderr, "no such kind: %s\n", kind);
        return 2;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    began = now.tv_sec;
    puts("began");
    fflush(stdout);
    for (int i = 0; i < 20 * seconds && !stop; i++)
        usleep(50000);
    stop = 1;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    printf("rounds %ld\n", rounds);
    return 0;
}
