/* Classification of a geographic region, shaped like ICTM (Ribeiro and Mehaut, 4.2): layers of a
 * matrix of cells (relief, vegetation, climate, land use), filled in an allocation-initialisation step;
 * then four big loops, one a direction, find how far from each cell the trend of the terrain continues,
 * and the last one classifies the cell by that.
 *
 * Looking west and east, each thread has its rows, as when they were initialised: regular. Looking
 * north and south a row follows from the one before it, so each row is dealt to the threads, as in the
 * second nest of the paper's Figure 8: irregular.
 *
 * Verified: runs of sampled cells are counted again by walking from them, and categories by them. */
#include "mai_policies.h"
#include <math.h>

static const workload ictm = {
    .name = "ictm",
    .does = "categories of a geographic region's cells by the trends around them",
    .size_is = "cells on a side",
    .small = 200,
    .size = 1500,
    .largest = 30000,
    .iterations = 3,
    .policies = mai_policies,
};

enum direction { WEST, EAST, NORTH, SOUTH, DIRECTIONS };
enum { LAYERS = 4, CATEGORIES = 1 << DIRECTIONS, FAR = 3, SAMPLES = 2000 };

/* One characteristic of the region. */
typedef struct {
    double **height;
    int **run[DIRECTIONS]; /* cells over which the first step's trend continues; 0 at the border */
    unsigned char **category;
} layer;

static layer layers[LAYERS];
static double *wave; /* of the smooth part of the terrain */

/* Falling, level (within an interval) or rising. */
static inline int trend(double from, double to, double interval)
{
    return (to > from + interval) - (to < from - interval);
}

/* How a run goes on that has `steps` behind it: the step to the neighbour, then that one's own run. */
static inline int prolong(int steps, int step, int next)
{
    return steps > 0 && step == next ? steps + 1 : 1;
}

static void initialise(layer *l, int which, long n, int parallel)
{
#pragma omp parallel for if (parallel)
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            uint64_t cell = ((uint64_t)which * (uint64_t)n + (uint64_t)i) * (uint64_t)n + (uint64_t)j;
            l->height[i][j] = 100.0 * (wave[i] * wave[j] + wave[(i + j * (which + 1)) % n]) + 3.0 * mix_unit(cell);
            for (int d = 0; d < DIRECTIONS; d++)
                l->run[d][i][j] = 0;
            l->category[i][j] = 0;
        }
}

/* The rows of each layer's arrays, and its neighbours' in the two vertical directions. */
static void look_west(layer *l, long n, double interval)
{
#pragma omp parallel for
    for (long i = 0; i < n; i++) {
        const double *h = l->height[i];
        int *run = l->run[WEST][i], before = 0;
        run[0] = 0;
        for (long j = 1; j < n; j++) {
            int step = trend(h[j], h[j - 1], interval);
            run[j] = prolong(run[j - 1], step, before);
            before = step;
        }
    }
}

static void look_east(layer *l, long n, double interval)
{
#pragma omp parallel for
    for (long i = 0; i < n; i++) {
        const double *h = l->height[i];
        int *run = l->run[EAST][i], before = 0;
        run[n - 1] = 0;
        for (long j = n - 2; j >= 0; j--) {
            int step = trend(h[j], h[j + 1], interval);
            run[j] = prolong(run[j + 1], step, before);
            before = step;
        }
    }
}

/* Runs of row i from those of row i + `to`, whose own first step went to row i + 2 * `to`. */
static void look_along(layer *l, enum direction d, long i, long to, long n, double interval)
{
    const double *h = l->height[i], *next = l->height[i + to];
    long after_that = i + 2 * to;
    const double *after = after_that >= 0 && after_that < n ? l->height[after_that] : next;
    int *run = l->run[d][i], *steps = l->run[d][i + to];
#pragma omp parallel for
    for (long j = 0; j < n; j++)
        run[j] = prolong(steps[j], trend(h[j], next[j], interval), trend(next[j], after[j], interval));
}

static void look_north(layer *l, long n, double interval)
{
    for (long i = 1; i < n; i++)
        look_along(l, NORTH, i, -1, n, interval);
}

static inline unsigned category_of(const layer *l, long i, long j)
{
    unsigned category = 0;
    for (int d = 0; d < DIRECTIONS; d++)
        category |= (unsigned)(l->run[d][i][j] >= FAR) << d;
    return category;
}

/* The last direction, and with it the category. */
static void look_south(layer *l, long n, double interval)
{
    for (long i = n - 1; i >= 0; i--) {
        if (i < n - 1)
            look_along(l, SOUTH, i, 1, n, interval);
#pragma omp parallel for
        for (long j = 0; j < n; j++)
            l->category[i][j] = (unsigned char)category_of(l, i, j);
    }
}

/* How many cells of all layers have each category. */
static void count(long n, long *cells)
{
    memset(cells, 0, CATEGORIES * sizeof *cells);
    for (int which = 0; which < LAYERS; which++)
#pragma omp parallel for reduction(+ : cells[ : CATEGORIES])
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++)
                cells[layers[which].category[i][j]]++;
}

static int inside(long i, long n) { return i >= 0 && i < n; }

/* The run by its definition: steps with the trend of the first one. */
static int walk(const layer *l, long i, long j, enum direction d, long n, double interval)
{
    long down = d == SOUTH ? 1 : d == NORTH ? -1 : 0, right = d == EAST ? 1 : d == WEST ? -1 : 0;
    int steps = 0, first = 0;
    for (; inside(i + down, n) && inside(j + right, n); i += down, j += right, steps++) {
        int step = trend(l->height[i][j], l->height[i + down][j + right], interval);
        if (steps == 0)
            first = step;
        if (step != first)
            break;
    }
    return steps;
}

static int samples_right(long n, double interval)
{
    for (uint64_t s = 0; s < SAMPLES; s++) {
        const layer *l = &layers[mix(3 * s) % LAYERS];
        long i = (long)(mix(3 * s + 1) % (uint64_t)n), j = (long)(mix(3 * s + 2) % (uint64_t)n);
        for (int d = 0; d < DIRECTIONS; d++)
            if (l->run[d][i][j] != walk(l, i, j, (enum direction)d, n, interval))
                return 0;
        if (l->category[i][j] != category_of(l, i, j))
            return 0;
    }
    return 1;
}

static void allocate(const options *o, layer *l)
{
    int n = (int)o->size;
    l->height = place(o, mai_alloc_2D(n, n, sizeof(double), DOUBLE));
    l->category = place(o, mai_alloc_2D(n, n, 1, CHAR));
    int whole = l->height && l->category;
    for (int d = 0; d < DIRECTIONS; d++) {
        l->run[d] = place(o, mai_alloc_2D(n, n, sizeof(int), INT));
        whole &= l->run[d] != NULL;
    }
    need_memory(&ictm, whole);
}

int main(int argc, char **argv)
{
    options o = parse_options(&ictm, argc, argv);
    long n = o.size, cells[CATEGORIES];
    if (n < 3)
        give_up(&ictm, "--size is at least 3", "");
    start_mai();
    wave = malloc((size_t)n * sizeof *wave);
    need_memory(&ictm, wave != NULL);
    for (long i = 0; i < n; i++)
        wave[i] = sin(0.05 * (double)i);
    for (int which = 0; which < LAYERS; which++) {
        allocate(&o, &layers[which]);
        initialise(&layers[which], which, n, o.parallel);
    }
    int right = 1;
    double checksum = 0.0;
    for (long k = 0; k < o.iterations; k++) {
        double interval = 4.0 / (double)(k + 1);
        for (int which = 0; which < LAYERS; which++) {
            look_west(&layers[which], n, interval);
            look_east(&layers[which], n, interval);
            look_north(&layers[which], n, interval);
            look_south(&layers[which], n, interval);
        }
        count(n, cells);
        for (int c = 0; c < CATEGORIES; c++)
            checksum += (double)(c + 1) * (double)cells[c];
        right &= samples_right(n, interval);
    }
    int status = verdict(&ictm, n, o.iterations, checksum, right);
    free(wave);
    mai_final();
    return status;
}
