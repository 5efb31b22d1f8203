/* Sorting integers by their digits, lowest first, as in SPLASH-2's RADIX: each pass counts the digits of a
 * thread's keys, sums the counts over threads, and puts each key where it belongs in the other array. A
 * thread reads its own keys, but writes to 1,024 places all over the array.
 *
 * Shared, as there: both arrays of keys, with a block for each thread; for each thread a page of counts, and a node in
 * which the counts are summed over threads, in rounds that add the sums of the thread 1, 2, 4, … before. A node has
 * two tables, with room for the largest digit that SPLASH-2 allows, and a page of padding.
 *
 * Verified: the sorted keys ascend, and none was lost. */
#include "keys.h"
#include <omp.h>

static const workload radix = {
    .name = "radix",
    .does = "integers sorted by their digits",
    .size_is = "keys",
    .small = 65536,
    .size = 4194304,
    .largest = 2147483647,
    .iterations = 3,
    .parallel = 1,
};

/* SPLASH-2's: keys of 19 bits, digits of 10. */
enum { DIGIT_BITS = 10, DIGITS = 1 << DIGIT_BITS, KEYS = 1 << 19, PASSES = 2, ROOM = 4096, PAGE = 4096 };

typedef int digits[DIGITS];

/* A thread's counts summed over the threads up to it, and the sums of the round before. */
typedef struct {
    int sums[2][ROOM]; /* DIGITS of them in use */
    char padding[PAGE];
} node;

/* What all threads share. */
typedef struct {
    long n;
    int threads;
    int *keys[2];
    node *nodes;
    digits *counts; /* of each thread: how often it has each digit */
} table;

static long cut(const table *s, long t) { return s->n * t / s->threads; }

/* Generates the keys, which differ between rounds. */
static void generate(const table *s, long round, int parallel) {
#pragma omp parallel for if (parallel)
    for (long i = 0; i < s->n; i++)
        s->keys[0][i] = (int)(mix((uint64_t)(round * s->n + i)) % KEYS);
}

static inline int digit(int key, int pass) { return key >> (pass * DIGIT_BITS) & (DIGITS - 1); }

static void count(const table *s, int pass) {
#pragma omp parallel for schedule(static, 1)
    for (int thread = 0; thread < s->threads; thread++) {
        int *own = s->counts[thread];
        memset(own, 0, sizeof *s->counts);
        for (long i = cut(s, thread); i < cut(s, thread + 1); i++)
            own[digit(s->keys[pass % 2][i], pass)]++;
        memcpy(s->nodes[thread].sums[0], own, sizeof *s->counts);
    }
}

/* Sums each thread's counts over all threads up to it; returns which of the two tables has the result. */
static int sum(const table *s) {
    int from = 0;
    for (int distance = 1; distance < s->threads; distance *= 2, from = !from) {
#pragma omp parallel for schedule(static, 1)
        for (int thread = 0; thread < s->threads; thread++) {
            const int *before = thread >= distance ? s->nodes[thread - distance].sums[from] : NULL;
            node *own = &s->nodes[thread];
            for (int d = 0; d < DIGITS; d++)
                own->sums[!from][d] = own->sums[from][d] + (before ? before[d] : 0);
        }
    }
    return from;
}

static void permute(const table *s, int pass, int summed) {
    const int *from = s->keys[pass % 2], *all = s->nodes[s->threads - 1].sums[summed];
    int *to = s->keys[(pass + 1) % 2];
#pragma omp parallel for schedule(static, 1)
    for (int thread = 0; thread < s->threads; thread++) {
        const int *sums = s->nodes[thread].sums[summed];
        int *next = s->counts[thread], smaller = 0;
        for (int d = 0; d < DIGITS; d++) {
            next[d] = smaller + sums[d] - next[d];
            smaller += all[d];
        }
        for (long i = cut(s, thread); i < cut(s, thread + 1); i++)
            to[next[digit(from[i], pass)]++] = from[i];
    }
}

static void *pages(size_t bytes) {
    void *memory = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    need_memory(&radix, memory != NULL);
    return memory;
}

int main(int argc, char **argv) {
    options o = parse_options(&radix, argc, argv);
    table s = {.n = o.size, .threads = omp_get_max_threads()};
    for (int i = 0; i < 2; i++)
        s.keys[i] = pages((size_t)s.n * sizeof *s.keys[i]);
    s.nodes = pages((size_t)s.threads * (sizeof *s.nodes + sizeof *s.counts));
    s.counts = (digits *)(s.nodes + s.threads);

    double checksum = 0.0;
    int ok = 1;
    for (long k = 0; k < o.iterations; k++) {
        generate(&s, k, o.parallel);
        uint64_t expected = contents(s.keys[0], s.n);
        for (int pass = 0; pass < PASSES; pass++) {
            count(&s, pass);
            permute(&s, pass, sum(&s));
        }
        const int *sorted = s.keys[PASSES % 2];
        ok &= ascends(sorted, s.n) && contents(sorted, s.n) == expected;
        checksum += sorted[s.n / 2];
    }
    int status = verdict(&radix, o.size, o.iterations, checksum, ok);
    free(s.keys[0]), free(s.keys[1]), free(s.nodes);
    return status;
}
