/* Memory used in known ways, for the observer of page faults.
 *   target use SECONDS      two threads: a half of `halves` each, all of `shared` both
 *   target copy             a forked child writes what its parent wrote
 *   target crowd THREADS    so many threads, one after the other, beside two that last
 *   target alone SECONDS    one thread
 *   target storm SECONDS    two threads touch fresh memory and give it back; prints faults and CPU time */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define BYTES (8ul << 20)

static char *halves, *shared;
static atomic_bool over;
static atomic_ulong touched;

static double clock_of(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double now(void) { return clock_of(CLOCK_MONOTONIC); }

static void write_pages(volatile char *memory, size_t bytes) {
    for (size_t i = 0; i < bytes; i += PAGE)
        memory[i]++;
}

static void *use(void *which) {
    while (!over) {
        write_pages(halves + (which ? BYTES / 2 : 0), BYTES / 2);
        write_pages(shared, BYTES);
    }
    return NULL;
}

static void *storm(void *unused) {
    (void)unused;
    const size_t bytes = 16ul << 20;
    while (!over) {
        char *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(fresh, bytes, MADV_NOHUGEPAGE);
        write_pages(fresh, bytes);
        munmap(fresh, bytes);
        touched += bytes / PAGE;
    }
    return NULL;
}

static void *nothing(void *unused) { return unused; }

/* On a busy host longer, up to five times: the kernel samples by the time that threads are on a CPU. */
static void wait_for(double seconds) {
    for (double end = now() + seconds;
         now() < end || (clock_of(CLOCK_PROCESS_CPUTIME_ID) < 1.5 * seconds && now() < end + 4 * seconds);)
        usleep(10000);
}

static void together(void *(*routine)(void *), double seconds, int crowd) {
    pthread_t threads[2], one;
    for (long i = 0; i < 2; i++)
        pthread_create(threads + i, NULL, routine, (void *)i);
    for (int i = 0; i < crowd; i++) {
        if (pthread_create(&one, NULL, nothing, NULL))
            exit(3);
        pthread_join(one, NULL);
    }
    wait_for(seconds);
    over = true;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static int copy(void) {
    write_pages(halves, BYTES);
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        write_pages(halves, BYTES);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    double number = argc > 2 ? atof(argv[2]) : 0;
    halves = aligned_alloc(PAGE, BYTES);
    shared = aligned_alloc(PAGE, BYTES);
    madvise(halves, BYTES, MADV_NOHUGEPAGE);
    madvise(shared, BYTES, MADV_NOHUGEPAGE);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    if (!strcmp(how, "use"))
        together(use, number, 0);
    else if (!strcmp(how, "copy"))
        return copy();
    else if (!strcmp(how, "crowd"))
        together(use, 4, (int)number);
    else if (!strcmp(how, "alone"))
        for (double end = now() + number; now() < end;)
            write_pages(halves, BYTES);
    else if (!strcmp(how, "storm")) {
        together(storm, number, 0);
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
        printf("%lu faults, %.6f s\n", (unsigned long)touched, cpu);
    } else
        return 2;
    return 0;
}
