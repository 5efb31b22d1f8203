/* A program whose threads share their memory, and the tools that watch it and put it elsewhere.
 *
 *   target NUMBER NODES PAGES   a thread a node, that works on so many pages of its own and now and then reads the
 *                               first half of its neighbour's. Thread and pages begin on the node; then both are free. Pages are at
 *                               2000…, 3000… (2 + NUMBER) in `numa_maps`, and after each SIGUSR1 by 2000… further on, which
 *                               it says: `renamed`. Says `ready PID`; at SIGTERM `right` or what is wrong.
 *
 *   target where PID            its threads at work (`thread TID node N cpus LIST`) and their pages (`node N pages P`)
 *   target settled PID          0 if each thread is bound to one CPU and all pages are where threads are
 *   target place PID NODES      puts its threads on these nodes, and lets them go there
 *
 * Node n has one CPU: n. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, MOST = 8, OWN = 7, SHARED = 2, SELDOM = 8, DEFAULT = 0, BIND = 2 };
#define BASE 0x100000000000u
#define RENAMED (2 * BASE)

static struct part {
    uint64_t *words, passes;
    int node;
} parts[MOST];
static int count;
static size_t pages;
static atomic_bool ending, moving;
static pthread_barrier_t stop;

static void fail(const char *what) {
    perror(what);
    exit(3);
}

/* Nodes between commas. */
static int read_nodes(char *text, int *nodes) {
    int n = 0;
    for (char *word = strtok(text, ","); word && n < MOST; word = strtok(NULL, ","))
        nodes[n++] = atoi(word);
    return n;
}

static void run_on(pid_t tid, int node) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = 0; cpu < MOST; cpu++)
        if (node < 0 || cpu == node)
            CPU_SET(cpu, &set);
    if (sched_setaffinity(tid, sizeof set, &set))
        fail("sched_setaffinity");
}

static void prepare(struct part *part, void *at) {
    size_t bytes = pages * PAGE;
    unsigned long mask = 1ul << part->node;
    part->words = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (part->words == MAP_FAILED)
        fail("mmap");
    madvise(part->words, bytes, MADV_NOHUGEPAGE);
    if (syscall(SYS_mbind, part->words, bytes, BIND, &mask, 64, 0))
        fail("mbind");
    memset(part->words, 0, bytes);
    if (syscall(SYS_mbind, part->words, bytes, DEFAULT, NULL, 0, 0))
        fail("mbind");
}

/* For 2 ms, then a pause of 4: an emulator has few CPUs. Whether there was one. */
static int rest(struct timespec *since) {
    struct timespec now, pause = {0, 4000000};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((now.tv_sec - since->tv_sec) * 1000000000L + now.tv_nsec - since->tv_nsec < 2000000)
        return 0;
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_MONOTONIC, since);
    return 1;
}

static void *work(void *own) {
    struct part *part = own;
    const struct part *next = &parts[(part - parts + 1) % count];
    run_on(0, part->node);
    usleep(100000);
    run_on(0, -1);
    unsigned pauses = 0;
    struct timespec since;
    clock_gettime(CLOCK_MONOTONIC, &since);
    while (!ending) {
        for (size_t page = 0; page < pages * OWN; page++)
            ++*(volatile uint64_t *)&part->words[page % pages * WORDS];
        part->passes++;
        /* The kernel samples who comes first after it unmaps a page. If a thread read its neighbour's in every pass,
           that would be whoever wakes first, and not who accesses the page most. */
        if (rest(&since) && ++pauses % SELDOM == 0)
            for (size_t page = 0; page < pages / SHARED; page++)
                (void)*(const volatile uint64_t *)&next->words[page * WORDS];
        if (moving) {
            pthread_barrier_wait(&stop); /* nobody looks at what is on its way */
            pthread_barrier_wait(&stop);
        }
    }
    return NULL;
}

/* The same memory at another address: what is accessed from here on is told apart by its address. */
static void rename_pages(void) {
    moving = 1;
    pthread_barrier_wait(&stop);
    for (int i = 0; i < count; i++) {
        size_t bytes = pages * PAGE;
        void *to = (char *)parts[i].words + RENAMED;
        parts[i].words = mremap(parts[i].words, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        if (parts[i].words == MAP_FAILED)
            fail("mremap");
    }
    moving = 0;
    pthread_barrier_wait(&stop);
    puts("renamed");
    fflush(stdout);
}

static int work_all(char **words) {
    int nodes[MOST];
    sigset_t heard;
    sigemptyset(&heard);
    sigaddset(&heard, SIGTERM);
    sigaddset(&heard, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &heard, NULL);
    count = read_nodes(words[1], nodes);
    pages = (size_t)atoi(words[2]);
    pthread_t threads[MOST];
    pthread_barrier_init(&stop, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) {
        parts[i].node = nodes[i];
        prepare(&parts[i], (void *)(BASE * (2 + (uintptr_t)atoi(words[0])) + (uintptr_t)i * pages * PAGE));
    }
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, &parts[i]))
            fail("pthread_create");
    usleep(300000);
    printf("ready %d\n", getpid());
    fflush(stdout);
    for (int signal = 0; sigwait(&heard, &signal) == 0 && signal != SIGTERM;)
        rename_pages();
    ending = 1;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++)
        for (size_t page = 0; page < pages; page++)
            if (parts[i].words[page * WORDS] != parts[i].passes * OWN)
                return printf("WRONG part %d page %zu\n", i, page);
    puts("right");
    return 0;
}

/* Threads of a process but its first, which waits. */
static int threads_of(pid_t pid, pid_t *tids) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    int n = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (atoi(entry->d_name) > pid && n < MOST)
            tids[n++] = atoi(entry->d_name);
    if (folder)
        closedir(folder);
    return n;
}

static int cpu_of(pid_t pid, pid_t tid) {
    char path[64], text[1024] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    size_t got = fread(text, 1, sizeof text - 1, file);
    text[got] = 0;
    fclose(file);
    char *field = strrchr(text, ')');
    for (int i = 2; field && i < 39; i++)
        field = strchr(field + 1, ' ');
    return field ? atoi(field) : -1;
}

static void pages_of(pid_t pid, long *by_node) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/numa_maps", pid);
    FILE *file = fopen(path, "r");
    memset(by_node, 0, MOST * sizeof *by_node);
    while (file && fgets(line, sizeof line, file)) {
        unsigned long start = strtoul(line, NULL, 16);
        if (start < 2 * BASE || start % BASE > 1ul << 32 || start >= 9 * BASE)
            continue;
        for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
            int node;
            long n;
            if (sscanf(word, "N%d=%ld", &node, &n) == 2 && node < MOST)
                by_node[node] += n;
        }
    }
    if (file)
        fclose(file);
}

static int where(pid_t pid, int quiet) {
    pid_t tids[MOST];
    long by_node[MOST];
    int n = threads_of(pid, tids), bound = n > 0, on[MOST] = {0};
    for (int i = 0; i < n; i++) {
        cpu_set_t set;
        int cpu = cpu_of(pid, tids[i]);
        CPU_ZERO(&set);
        sched_getaffinity(tids[i], sizeof set, &set);
        bound &= CPU_COUNT(&set) == 1;
        if (cpu >= 0 && cpu < MOST)
            on[cpu] = 1;
        if (!quiet)
            printf("thread %d node %d cpus %d\n", tids[i], cpu, CPU_COUNT(&set));
    }
    pages_of(pid, by_node);
    for (int node = 0; node < MOST; node++) {
        if (!quiet && by_node[node])
            printf("node %d pages %ld\n", node, by_node[node]);
        bound &= on[node] == (by_node[node] > 0);
    }
    return !bound;
}

static int place(pid_t pid, char *text) {
    pid_t tids[MOST];
    int nodes[MOST], n = read_nodes(text, nodes), threads = threads_of(pid, tids);
    for (int i = 0; i < threads; i++)
        run_on(tids[i], nodes[i % n]);
    usleep(100000);
    for (int i = 0; i < threads; i++)
        run_on(tids[i], -1);
    return 0;
}

int main(int words, char **word) {
    if (words == 3 && !strcmp(word[1], "where"))
        return where(atoi(word[2]), 0), 0;
    if (words == 3 && !strcmp(word[1], "settled"))
        return where(atoi(word[2]), 1);
    if (words == 4 && !strcmp(word[1], "place"))
        return place(atoi(word[2]), word[3]);
    if (words == 4)
        return work_all(word + 1);
    fprintf(stderr, "target: see its source\n");
    return 2;
}
