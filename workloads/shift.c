/* A vector whose parts change threads half-way: thread t works on part t first, then on the part that is
 * as far from the end (Majo & Gross's static-inverse schedule). A placement that suits the first half is
 * wrong in the second, so this shows dynamicity, and what a fixed placement cannot gain.
 *
 * Verified: every element is compared with the same arithmetic done one after the other. */
#include "workload.h"

static const workload shift = {
    .name = "shift",
    .does = "a vector whose parts change owners half-way",
    .size_is = "elements",
    .small = 100000,
    .size = 24000000,
    .largest = 4000000000,
    .iterations = 60,
};

static double initial(long i) { return mix_unit((uint64_t)i); }

static double step(double value) { return 0.75 * value + 0.125; }

static void forwards(double *vector, long n) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++)
        vector[i] = step(vector[i]);
}

static void inverse(double *vector, long n) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++)
        vector[n - 1 - i] = step(vector[n - 1 - i]);
}

int main(int argc, char **argv) {
    options o = parse_options(&shift, argc, argv);
    double *vector = malloc((size_t)o.size * sizeof *vector);
    need_memory(&shift, vector != NULL);

#pragma omp parallel for schedule(static) if (o.parallel)
    for (long i = 0; i < o.size; i++)
        vector[i] = initial(i);
    for (long k = 0; k < o.iterations; k++) {
        if (k < (o.iterations + 1) / 2)
            forwards(vector, o.size);
        else
            inverse(vector, o.size);
    }

    long wrong = 0;
#pragma omp parallel for reduction(+ : wrong)
    for (long i = 0; i < o.size; i++) {
        double expected = initial(i);
        for (long k = 0; k < o.iterations; k++)
            expected = step(expected);
        wrong += vector[i] != expected;
    }
    int status = verdict(&shift, o.size, o.iterations, vector[o.size / 2], wrong == 0);
    free(vector);
    return status;
}
