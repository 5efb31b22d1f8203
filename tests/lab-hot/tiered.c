/* Programs for fast memory that is too small for them: two threads that visit the pages of one array, each twice a second on
 * average, in a sequence that depends on KIND and SECONDS alone.
 *
 *   tiered KIND SECONDS             runs; pages are first touched in the order of their addresses
 *   tiered KIND SECONDS file        the same in a file in memory that is mapped read-only once it is filled
 *   tiered KIND SECONDS bound PAGES visits nothing: the share of visits that PAGES of fast memory serve if they are those touched first;
 *                                   could serve at best, with hindsight, if pages stay; and if they could move every ten seconds at
 *                                   no cost
 *   tiered ballast BYTES            takes node 0's free memory, but for BYTES above what the kernel keeps, and sleeps
 *
 * zipf: rank r has 1/r of the visits of the first; ranks are spread over the addresses.
 * scan: all pages in the order of their addresses, over and over.
 * shift: nine of ten visits to a quarter of the pages, which passes once over the array.
 * phases: nine of ten visits to the last quarter, in the second third of the run to the one before it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    PAGES = 24576,
    HOT = PAGES / 4,
    THREADS = 2,
    TICKS = 100, /* a second */
    VISITS = 2 * PAGES / TICKS / THREADS, /* of each thread in a tick */
    WORDS = 8, /* of a page, at each visit */
    COMPUTED = 4000, /* numbers between two looks at the clock */
    BUCKET = 10 * TICKS,
};

static const char *kind;
static long ticks;
static double *below; /* zipf: the share of visits to the ranks up to each */
static char *memory;
static struct timespec began;

struct visitor {
    uint64_t state;
    uint32_t next;
};

static uint64_t drawn(struct visitor *v) {
    uint64_t x = v->state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static uint32_t among(struct visitor *v, uint32_t pages) { return (uint32_t)((drawn(v) >> 32) * pages >> 32); }

static uint32_t of_rank(double at) {
    uint32_t low = 0, high = PAGES - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (below[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)((uint64_t)low * 9973 % PAGES);
}

/* The page that a thread visits next. */
static uint32_t visited(struct visitor *v, long tick) {
    switch (*kind) {
    case 'z': return of_rank((double)(drawn(v) >> 11) * 0x1p-53);
    case 's':
        if (kind[1] == 'c') {
            uint32_t page = v->next;
            v->next = (page + THREADS) % PAGES;
            return page;
        }
        if (among(v, 10) == 0)
            return among(v, PAGES);
        return (uint32_t)(((uint64_t)tick * PAGES / (uint64_t)ticks + among(v, HOT)) % PAGES);
    default:
        if (among(v, 10) == 0)
            return among(v, PAGES);
        return among(v, HOT) + (tick / (ticks / 3) % 2 == 1 ? 2 * HOT : 3 * HOT);
    }
}

static struct visitor visitor(int thread) { return (struct visitor){(uint64_t)thread << 32, (uint32_t)thread}; }

static double elapsed(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9;
}

static void *visits(void *argument) {
    struct visitor v = visitor((int)(intptr_t)argument);
    uint64_t sum = 0;
    for (long tick = 0; tick < ticks; tick++) {
        /* Computes until it is time, since the kernel scans a thread's memory by its CPU time. */
        while (elapsed() * TICKS < (double)tick)
            for (int n = 0; n < COMPUTED; n++)
                sum = (sum ^ sum >> 7) * 0x94d049bb133111eb + 1;
        for (int i = 0; i < VISITS; i++) {
            volatile uint64_t *page = (volatile uint64_t *)(memory + (uint64_t)visited(&v, tick) * PAGE);
            for (int word = 0; word < WORDS; word++)
                sum += page[8 * word];
        }
    }
    return (void *)(uintptr_t)sum;
}

static void *mapped(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return at;
}

/* A file in memory, mapped read-only: the kernel's balancing samples no accesses to it. */
static void *mapped_file(size_t bytes) {
    int file = memfd_create("weights", 0);
    if (file < 0 || ftruncate(file, (off_t)bytes)) {
        perror("memfd_create");
        exit(1);
    }
    for (size_t at = 0; at < bytes; at += PAGE)
        if (pwrite(file, "1", 1, (off_t)at) != 1) {
            perror("pwrite");
            exit(1);
        }
    void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return at;
}

static void bind_to_fast(void *at, size_t bytes) {
    unsigned long nodes = 1;
    if (syscall(SYS_mbind, at, bytes, 2 /* MPOL_BIND */, &nodes, 64, 0)) {
        perror("mbind");
        exit(1);
    }
}

static int more(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static uint64_t largest(uint32_t *counts, long pages) {
    uint64_t sum = 0;
    qsort(counts, PAGES, sizeof *counts, more);
    for (long i = 0; i < pages; i++)
        sum += counts[i];
    return sum;
}

static void bound(long pages) {
    uint32_t *all = calloc(PAGES, sizeof *all), *now = calloc(PAGES, sizeof *now);
    struct visitor visitors[THREADS];
    uint64_t moving = 0, first = 0;
    for (int t = 0; t < THREADS; t++)
        visitors[t] = visitor(t);
    for (long tick = 0; tick < ticks; tick++) {
        for (int t = 0; t < THREADS; t++)
            for (int i = 0; i < VISITS; i++) {
                uint32_t page = visited(&visitors[t], tick);
                all[page]++;
                now[page]++;
                first += page < pages;
            }
        if (tick % BUCKET == BUCKET - 1 || tick == ticks - 1) {
            moving += largest(now, pages);
            memset(now, 0, PAGES * sizeof *now);
        }
    }
    double visits = (double)ticks * THREADS * VISITS;
    printf("%.6f %.6f %.6f\n", (double)first / visits, (double)largest(all, pages) / visits, (double)moving / visits);
}

static long number(const char *file, const char *format) {
    char line[256];
    long value = 0, sum = 0, found = 0;
    FILE *in = fopen(file, "r");
    while (in && fgets(line, sizeof line, in)) {
        if (strncmp(line, "Node 1,", 7) == 0)
            break;
        if (sscanf(line, format, &value) == 1) {
            sum += value;
            found = 1;
        }
    }
    if (in)
        fclose(in);
    if (!found) {
        fprintf(stderr, "%s: no %s\n", file, format);
        exit(1);
    }
    return sum;
}

/* Free memory of node 0 above the high watermarks of its zones. */
static long spare(void) {
    long free = number("/sys/devices/system/node/node0/meminfo", "Node 0 MemFree: %ld kB") * 1024;
    return free - number("/proc/zoneinfo", " high %ld") * PAGE;
}

/* Huge pages of hugetlb, as far as they go: DAMON moves pages to other nodes that are locked and bound, but not these. */
static void take_huge_pages(long bytes) {
    FILE *pool = fopen("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "w");
    if (!pool || fprintf(pool, "%ld\n", bytes >> 21) < 0 || fclose(pool)) {
        perror("nr_hugepages");
        exit(1);
    }
}

static void ballast(long bytes) {
    if (spare() > bytes)
        take_huge_pages(spare() - bytes);
    while (spare() > bytes) {
        size_t some = 64 * PAGE;
        char *at = mapped(some);
        bind_to_fast(at, some);
        for (size_t i = 0; i < some; i += PAGE)
            at[i] = 1;
        if (mlock(at, some)) {
            perror("mlock");
            exit(1);
        }
    }
    printf("ballast %ld\n", spare());
    fflush(stdout);
    for (;;)
        pause();
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "ballast") == 0)
        ballast(atol(argv[2]));
    if (argc < 3)
        return 2;
    kind = argv[1];
    ticks = atol(argv[2]) * TICKS;
    if (*kind == 'z') {
        double sum = 0, so_far = 0;
        below = mapped(PAGES * sizeof *below);
        for (int rank = 1; rank <= PAGES; rank++)
            sum += 1.0 / rank;
        for (int rank = 1; rank <= PAGES; rank++)
            below[rank - 1] = (so_far += 1.0 / rank) / sum;
    }
    if (argc > 4 && strcmp(argv[3], "bound") == 0) {
        bound(atol(argv[4]));
        return 0;
    }
    if (argc > 3) {
        memory = mapped_file((size_t)PAGES * PAGE);
    } else {
        memory = mapped((size_t)PAGES * PAGE);
        for (uint64_t page = 0; page < PAGES; page++)
            memory[page * PAGE] = 1;
    }
    printf("began %d %lx %lx\n", (int)getpid(), (long)memory, (long)memory + (long)PAGES * PAGE);
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &began);
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, visits, (void *)(intptr_t)t)) {
            perror("pthread_create");
            return 1;
        }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    printf("ended after %.1f s\n", elapsed());
    return 0;
}
