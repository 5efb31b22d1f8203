/* Nanoseconds a chunk: plain static and the library's schedules, the same iterations in as many chunks.
 * A line a schedule: its name, nanoseconds a chunk, chunks. */
#include <nodewise_schedule.h>
#include <stdio.h>
#include <time.h>

enum { ITERATIONS = 512, SWEEPS = 400000, REPEATS = 7 };

/* Known to nobody at compile time; read again for every sweep. */
static volatile int thread_now = 3, threads_now = 8, nodes_now = 4;
static volatile long begin_now = 1, end_now = ITERATIONS - 1;

/* A little work that no compiler removes, or does for many chunks at once. */
static inline void work(long begin, long end, unsigned long *sum) {
    *sum += (unsigned long)begin * 31 + (unsigned long)end;
    __asm__ volatile("" : "+r"(*sum));
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct loop {
    long begin, end;
    int thread, threads;
    nw_cuts cuts;
    int id;
} loop;

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS void plain(loop l, unsigned long *sum) {
    long n = l.end - l.begin, each = n / l.threads, more = n % l.threads;
    long from = l.begin + each * l.thread + (l.thread < more ? l.thread : more);
    work(from, from + each + (l.thread < more), sum);
}

ALWAYS void library_static(loop l, unsigned long *sum) {
    nw_range r = nw_static(l.begin, l.end, l.thread, l.threads);
    work(r.begin, r.end, sum);
}

ALWAYS void inverse(loop l, unsigned long *sum) {
    nw_range r = nw_static_inverse(l.begin, l.end, l.thread, l.threads);
    work(r.begin, r.end, sum);
}

ALWAYS void exclusive(loop l, unsigned long *sum) {
    for (nw_exclusive e = nw_exclusive_begin(l.begin, l.end, l.cuts, l.id, l.thread, l.threads); nw_exclusive_next(&e);)
        work(e.begin, e.end, sum);
}

/* What the compiler may know from the part before: all of it in a `loop` of many sweeps; in a `sweep`,
 * of as many parts as there are nodes, all but at its beginning; nothing where every part is `fresh`,
 * a parallel region of its own. A chunk a part. */
enum { LOOP, SWEEP, FRESH };

ALWAYS void sweeps(void (*chunk)(loop, unsigned long *), int known, unsigned long *sum) {
    loop l = {begin_now, end_now, thread_now, threads_now, {0, ITERATIONS, nodes_now}, 0};
    for (int s = 0; s < SWEEPS; s++) {
        if (known == SWEEP)
            l = (loop){begin_now, end_now, thread_now, threads_now, {0, ITERATIONS, nodes_now}, 0};
        for (l.id = 0; l.id < l.cuts.parts; l.id++) {
            if (known == FRESH)
                __asm__ volatile("" : "+r"(l.begin), "+r"(l.end), "+r"(l.thread), "+r"(l.threads), "+r"(l.cuts.parts));
            chunk(l, sum);
        }
    }
}

#define SWEEPS_OF(chunk)                                                                                   \
    __attribute__((noinline)) static void chunk##_loop(unsigned long *sum) { sweeps(chunk, LOOP, sum); }   \
    __attribute__((noinline)) static void chunk##_sweep(unsigned long *sum) { sweeps(chunk, SWEEP, sum); } \
    __attribute__((noinline)) static void chunk##_fresh(unsigned long *sum) { sweeps(chunk, FRESH, sum); }
SWEEPS_OF(plain)
SWEEPS_OF(library_static)
SWEEPS_OF(inverse)
SWEEPS_OF(exclusive)

int main(void) {
    static const struct {
        const char *name;
        void (*run)(unsigned long *);
    } all[] = {
#define ALL_OF(name, chunk) \
    {name " loop", chunk##_loop}, {name " sweep", chunk##_sweep}, { name " fresh", chunk##_fresh }
        ALL_OF("plain", plain), ALL_OF("static", library_static), ALL_OF("static-inverse", inverse),
        ALL_OF("block-exclusive", exclusive)};
    enum { ALL = sizeof all / sizeof *all };
    double best[ALL];
    unsigned long sum = 0;
    for (int repeat = 0; repeat < REPEATS; repeat++)
        for (int a = 0; a < ALL; a++) { // in turn, so that all meet the same disturbances
            double start = now();
            all[a].run(&sum);
            double taken = (now() - start) / SWEEPS / nodes_now * 1e9;
            best[a] = repeat && best[a] < taken ? best[a] : taken;
        }
    for (int a = 0; a < ALL; a++)
        printf("%s %.3f %d\n", all[a].name, best[a], SWEEPS * nodes_now);
    return sum == 42;
}
