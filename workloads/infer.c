/* Inference over weights in a mapped file, as engines for language models do it: token after token, layer after layer,
 * every thread multiplies rows of the layer's matrix by one vector. Rows go to whoever is idle, so that another thread
 * reads a page in each token, and no placement of the file suits all tokens. The file is temporary, and read-only once it
 * is written.
 *
 * With --form replicate each node gets a copy of the weights, and each thread a base pointer to its node's.
 *
 * Verified: the sum of a product's components is that of the column sums times the vector's; all numbers are whole and
 * small enough to be exact. */
#define _POSIX_C_SOURCE 200809L
#include "workload.h"
#include <fcntl.h>
#include <nodewise.h>
#include <sys/mman.h>
#include <unistd.h>

static const workload infer = {
    .name = "infer",
    .does = "a vector through layers of a mapped file, once a token",
    .size_is = "rows of a layer's matrix",
    .small = 128,
    .size = 1024,
    .largest = 16384,
    .iterations = 4,
    .forms = 1u << FORM_DEFAULT | 1u << FORM_REPLICATE,
};

enum { LAYERS = 8, ROWS = 4 /* that a thread takes at a time */ };

static size_t bytes(long n) { return (size_t)LAYERS * n * n * sizeof(float); }

/* -1, 0 or 1. */
static float weight(long n, long row, long column) {
    return (float)((long)(mix((uint64_t)(row * n + column)) % 3) - 1);
}

static void give_up_on_file(const char *what) {
    fprintf(stderr, "infer: cannot %s the weights in %s: %s\n", what, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
            strerror(errno));
    exit(2);
}

static int temporary_file(void) {
    char path[4096];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/infer.XXXXXX", folder ? folder : "/tmp");
    int file = mkstemp(path);
    if (file < 0 || unlink(path))
        give_up_on_file("write");
    return file;
}

static void write_row(int file, long n, long row, float *buffer) {
    for (long i = 0; i < n; i++)
        buffer[i] = weight(n, row, i);
    const char *from = (const char *)buffer;
    size_t left = (size_t)n * sizeof *buffer;
    off_t at = (off_t)row * (off_t)left;
    while (left) {
        ssize_t written = pwrite(file, from, left, at);
        if (written <= 0)
            give_up_on_file("write");
        from += written, at += written, left -= (size_t)written;
    }
}

/* The layers' matrices, one after the other. */
static const float *weights_of(options o, int file) {
    long n = o.size;
#pragma omp parallel if (o.parallel)
    {
        float *buffer = malloc((size_t)n * sizeof *buffer);
        need_memory(&infer, buffer != NULL);
#pragma omp for
        for (long row = 0; row < LAYERS * n; row++)
            write_row(file, n, row, buffer);
        free(buffer);
    }
    const void *weights = mmap(NULL, bytes(n), PROT_READ, MAP_SHARED, file, 0);
    if (weights == MAP_FAILED)
        give_up_on_file("map");
    return weights;
}

/* One copy a node; on one node there is nothing to copy. */
static void replicate(const float *weights, long n, int file) {
    int status = nw_adopt_file((void *)weights, bytes(n), file, 0);
    if (status == NW_OK)
        status = nw_replicate((void *)weights);
    if (status != NW_OK && status != NW_NOT_DONE)
        fprintf(stderr, "infer: %s\n", nw_last_error());
}

static void multiply(const float *weights, long layer, long n, const float *x, float *y) {
#pragma omp parallel
    {
        const float *near = nw_nearest(weights); /* the weights themselves where there are no copies */
        const float *matrix = (near ? near : weights) + layer * n * n;
#pragma omp for schedule(dynamic, ROWS)
        for (long row = 0; row < n; row++) {
            float sum = 0;
            for (long i = 0; i < n; i++)
                sum += matrix[row * n + i] * x[i];
            y[row] = sum;
        }
    }
}

/* Whether the products' sum is what the column sums say. */
static int is_right(const double *column_sums, long n, const float *x, const float *y) {
    double expected = 0, sum = 0;
    for (long i = 0; i < n; i++) {
        expected += column_sums[i] * x[i];
        sum += y[i];
    }
    return sum == expected;
}

static double *column_sums_of(long n) {
    double *sums = calloc((size_t)LAYERS * n, sizeof *sums);
    need_memory(&infer, sums != NULL);
#pragma omp parallel for
    for (long layer = 0; layer < LAYERS; layer++)
        for (long row = 0; row < n; row++)
            for (long i = 0; i < n; i++)
                sums[layer * n + i] += weight(n, layer * n + row, i);
    return sums;
}

int main(int argc, char **argv) {
    options o = parse_options(&infer, argc, argv);
    long n = o.size;
    int file = temporary_file(), ok = 1;
    const float *weights = weights_of(o, file);
    if (o.form == FORM_REPLICATE)
        replicate(weights, n, file);
    double *sums = column_sums_of(n), checksum = 0;
    float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
    need_memory(&infer, x && y);
    for (long token = 0; token < o.iterations; token++) {
        for (long i = 0; i < n; i++)
            x[i] = (float)((token + i) % 7 - 3);
        for (long layer = 0; layer < LAYERS; layer++) {
            multiply(weights, layer, n, x, y);
            ok &= is_right(sums + layer * n, n, x, y);
            for (long i = 0; i < n; i++)
                x[i] = (float)((long)y[i] % 4);
        }
        for (long i = 0; i < n; i++)
            checksum += x[i] * (double)(i % 11);
    }
    close(file);
    return verdict(&infer, n, o.iterations, checksum, ok);
}
