/* Several threads allocate, place, describe, query and free arrays of their own and read one that all share,
 * while the process forks. Also run under ThreadSanitizer. */
#define _GNU_SOURCE
#include "check.h"
#include "nodewise.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4

/* ThreadSanitizer does not support forks of a process with several threads, nor do the locks of
 * AddressSanitizer's allocator. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define FORKS 0
#else
#define FORKS 5
#endif

static double *shared;
static int rounds = 40;

static int one_round(unsigned long of) {
    size_t pages[64], untouched, rows = 20 + of % 50;
    double *array = nw_alloc_2d(rows, 600, sizeof *array), **table = nw_index(array);
    if (!array || !table)
        return 0;
    nw_policy policy = of % 3 == 0   ? nw_cyclic(NW_PAGES, 1)
                       : of % 3 == 1 ? nw_block_exclusive(0)
                                     : nw_random(NW_ROWS, 2);
    int fine = nw_place(array, policy) >= 0;
    for (size_t i = 0; i < rows; i++)
        table[i][0] = (double)i;
    nw_distr *distr = nw_describe(table, policy);
    fine = fine && distr && nw_distribute(distr) >= 0 && nw_scatter(array, NULL, 0) >= 0;
    nw_distr_free(distr);
    fine = fine && nw_histogram(table, pages, 64, &untouched) == NW_OK;
    fine = fine && nw_place(array, nw_bind(NW_ROWS)) >= 0 && table[rows - 1][0] == (double)(rows - 1);
    fine = fine && nw_free(of % 2 ? (void *)array : (void *)table) == NW_OK;
    /* Freeing what is no array fails. The array is not freed twice, since its address may be another thread's by
     * now. */
    return fine && nw_free(&fine) == NW_NO_ARRAY && nw_last_error()[0];
}

static void *work(void *number) {
    unsigned long seed = (unsigned long)number;
    long failures = 0;
    for (int i = 0; i < rounds; i++) {
        const double *copy = nw_nearest(shared);
        double **table = nw_index(shared);
        nw_statistics statistics;
        nw_get_statistics(&statistics);
        failures += !copy || copy[77] != 77 || !table || table[1] != shared + 100;
        failures += i == rounds / 2 && nw_replicate(shared) < 0;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        failures += !one_round(seed >> 33);
    }
    return (void *)failures;
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    rounds = count > 1 ? atoi(arguments[1]) : rounds;
    shared = nw_alloc_2d(100, 100, sizeof *shared);
    for (int i = 0; i < 10000; i++)
        shared[i] = i;
    for (unsigned long t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, work, (void *)(t + 1));
    for (int i = 0; i < FORKS; i++) {
        int status = 1;
        pid_t child = fork();
        if (child == 0)
            _exit(shared[50] != 50 || !one_round(7) || nw_free(shared) != NW_OK);
        waitpid(child, &status, 0);
        CHECK(status == 0, "child %d: %d", i, status);
    }
    for (int t = 0; t < THREADS; t++) {
        void *failures;
        pthread_join(threads[t], &failures);
        CHECK(failures == NULL, "thread %d: %ld failures", t, (long)failures);
    }
    CHECK(nw_free(shared) == NW_OK, "%s", nw_last_error());
    return check_end();
}
