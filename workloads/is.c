/* Sorting integers by counting, as in NAS IS: each thread counts its part of the keys in a table of its
 * own, then sums one part of all tables. Keys and tables are used by one thread each; only the sums read
 * data of other threads, so that with first touch little is remote.
 *
 * Keys are means of four random numbers; two keys change before each ranking. After the last ranking the
 * keys are sorted; equal keys keep their order.
 *
 * Verified: the sorted keys ascend, and none was lost. */
#include "keys.h"
#include <omp.h>

static const workload is = {
    .name = "is",
    .does = "integers ranked and sorted by counting",
    .size_is = "keys",
    .small = 65536,
    .size = 8388608,
    .largest = 1073741824,
    .iterations = 10,
    .nas = NAS_PARALLEL,
};

enum { KEYS_A_VALUE = 32, TESTED = 5 }; /* NAS: 16 to 32, and 5 */

/* What all threads share. Row t of `counts` is thread t's. */
typedef struct {
    long n, values; /* keys; a key is at least 0 and less than `values` */
    int threads;
    int *keys;
    int *counts; /* threads × values */
    int *before; /* of each value: how many keys are smaller */
    long *parts; /* of each thread: how many keys lie in its part of the values */
} table;

static void generate(table *s, int parallel) {
#pragma omp parallel for if (parallel)
    for (long i = 0; i < s->n; i++) {
        double sum = 0.0;
        for (long k = 0; k < 4; k++)
            sum += mix_unit((uint64_t)(4 * i + k));
        s->keys[i] = (int)(sum / 4.0 * (double)s->values);
    }
}

/* The beginning of thread t's part of n things, divided as by schedule(static). */
static long cut(long n, long t, long threads) {
    long more = n % threads;
    return n / threads * t + (t < more ? t : more);
}

/* Computes `counts`, then `before`. */
static void rank(table *s) {
#pragma omp parallel num_threads(s->threads)
    {
        long thread = omp_get_thread_num(), threads = omp_get_num_threads();
        int *own = s->counts + thread * s->values;
        memset(own, 0, (size_t)s->values * sizeof *own);
        for (long i = cut(s->n, thread, threads), end = cut(s->n, thread + 1, threads); i < end; i++)
            own[s->keys[i]]++;
        long from = cut(s->values, thread, threads), to = cut(s->values, thread + 1, threads);
#pragma omp barrier
        memset(s->before + from, 0, (size_t)(to - from) * sizeof *s->before);
        for (long t = 0; t < threads; t++)
            for (long v = from; v < to; v++)
                s->before[v] += s->counts[t * s->values + v];
        long sum = 0;
        for (long v = from; v < to; v++)
            sum += s->before[v];
        s->parts[thread] = sum;
#pragma omp barrier
        long running = 0;
        for (long t = 0; t < thread; t++)
            running += s->parts[t];
        for (long v = from; v < to; v++) {
            long count = s->before[v];
            s->before[v] = (int)running;
            running += count;
        }
    }
}

/* Each thread puts its keys behind equal keys of the threads before it. */
static void sort(table *s, int *sorted) {
#pragma omp parallel num_threads(s->threads)
    {
        long thread = omp_get_thread_num(), threads = omp_get_num_threads();
#pragma omp for
        for (long v = 0; v < s->values; v++) {
            int at = s->before[v];
            for (long t = 0; t < threads; t++) {
                int *count = s->counts + t * s->values + v, mine = at;
                at += *count;
                *count = mine;
            }
        }
        int *own = s->counts + thread * s->values;
        for (long i = cut(s->n, thread, threads), end = cut(s->n, thread + 1, threads); i < end; i++)
            sorted[own[s->keys[i]]++] = s->keys[i];
    }
}

int main(int argc, char **argv) {
    options o = parse_options(&is, argc, argv);
    if (o.size < 1024)
        give_up(&is, "--size is at least 1024", "");
    table s = {.n = o.size, .values = o.size / KEYS_A_VALUE, .threads = omp_get_max_threads()};
    size_t n = (size_t)s.n, values = (size_t)s.values, threads = (size_t)s.threads;
    s.keys = malloc(n * sizeof *s.keys);
    s.counts = malloc(threads * values * sizeof *s.counts);
    s.before = malloc(values * sizeof *s.before);
    s.parts = malloc(threads * sizeof *s.parts);
    int *sorted = malloc(n * sizeof *sorted);
    need_memory(&is, s.keys && s.counts && s.before && s.parts && sorted);

    generate(&s, o.parallel);
    double checksum = 0.0;
    for (long k = 0; k < o.iterations; k++) {
        s.keys[k % s.n] = (int)(k % s.values);
        s.keys[s.n - 1 - k % s.n] = (int)(s.values - 1 - k % s.values);
        rank(&s);
        for (long t = 0; t < TESTED; t++)
            checksum += s.before[s.keys[(long)(mix((uint64_t)t) % (uint64_t)s.n)]];
    }
    uint64_t expected = contents(s.keys, s.n);
    sort(&s, sorted);
    int ok = ascends(sorted, s.n) && contents(sorted, s.n) == expected;
    int status = verdict(&is, o.size, o.iterations, checksum, ok);
    free(s.keys), free(s.counts), free(s.before), free(s.parts), free(sorted);
    return status;
}
