/* Classification of a geographic region, modelled on ICTM (Ribeiro and Mehaut, 4.2). Each layer (relief,
 * vegetation, climate, land use) is a matrix of cells, filled in an allocation-initialisation step. Then
 * four big loops, one for each direction, find how far from each cell the trend of the terrain continues,
 * and the last one classifies the cell by that.
 *
 * Looking west and east, each thread works on the rows that it initialised: regular. Looking north and
 * south, a row depends on the one before it, so each row is divided among the threads, as in the second
 * nest of the paper's Figure 8: irregular.
 *
 * Verified: for sampled cells, runs are counted again by walking, and categories derived from them. */
#include "mai_policies.h"
#include <math.h>

static const workload ictm = {
    .name = "ictm",
    .does = "categories of a geographic region's cells by the trends around them",
    .size_is = "cells from west to east, eight times those from north to south",
    .small = 400,
    .size = 4096,
    .largest = 80000,
    .iterations = 3,
    .policies = mai_policies,
};

enum direction { WEST, EAST, NORTH, SOUTH, DIRECTIONS };
enum { ASPECT = 8, LAYERS = 4, CATEGORIES = 1 << DIRECTIONS, FAR = 3, SAMPLES = 2000 };

/* One characteristic of the region. */
typedef struct {
    double **height;
    int **run[DIRECTIONS]; /* cells over which the first step's trend continues; 0 at the border */
    unsigned char **category;
} layer;

static layer layers[LAYERS];
static long rows, columns;
static double *wave; /* of the smooth part of the terrain */

/* Falling, level (within an interval) or rising. */
static inline int trend(double from, double to, double interval) {
    return (to > from + interval) - (to < from - interval);
}

/* A cell's run: the neighbour's `steps` plus 1 if the step to it has the trend of its own first one; otherwise 1. */
static inline int prolong(int steps, int step, int next) { return steps > 0 && step == next ? steps + 1 : 1; }

static void initialise(layer *l, int which, int parallel) {
#pragma omp parallel for if (parallel)
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++) {
            uint64_t cell = (uint64_t)((which * rows + i) * columns + j);
            double rough = 3.0 * mix_unit(cell), smooth = wave[i] * wave[j] + wave[(i + j * (which + 1)) % columns];
            l->height[i][j] = 100.0 * smooth + rough;
            for (int d = 0; d < DIRECTIONS; d++)
                l->run[d][i][j] = 0;
            l->category[i][j] = 0;
        }
}

/* Along rows; each thread has its own rows. */
static void look_west(layer *l, double interval) {
#pragma omp parallel for
    for (long i = 0; i < rows; i++) {
        const double *h = l->height[i];
        int *run = l->run[WEST][i], before = 0;
        run[0] = 0;
        for (long j = 1; j < columns; j++) {
            int step = trend(h[j], h[j - 1], interval);
            run[j] = prolong(run[j - 1], step, before);
            before = step;
        }
    }
}

static void look_east(layer *l, double interval) {
#pragma omp parallel for
    for (long i = 0; i < rows; i++) {
        const double *h = l->height[i];
        int *run = l->run[EAST][i], before = 0;
        run[columns - 1] = 0;
        for (long j = columns - 2; j >= 0; j--) {
            int step = trend(h[j], h[j + 1], interval);
            run[j] = prolong(run[j + 1], step, before);
            before = step;
        }
    }
}

static inline unsigned category_of(const layer *l, long i, long j) {
    unsigned category = 0;
    for (int d = 0; d < DIRECTIONS; d++)
        category |= (unsigned)(l->run[d][i][j] >= FAR) << d;
    return category;
}

static int inside(long i, long n) { return i >= 0 && i < n; }

/* Computes the runs of row i from those of row i + `to`, whose own first step goes to row i + 2 * `to`. The row
 * is divided among the threads. The last direction also determines the category. */
static void look_along(layer *l, enum direction d, long i, long to, double interval) {
    int border = !inside(i + to, rows);
    long near = border ? i : i + to, far = inside(i + 2 * to, rows) ? i + 2 * to : near;
    const double *h = l->height[i], *next = l->height[near], *after = l->height[far];
    int *run = l->run[d][i], *steps = l->run[d][near];
#pragma omp parallel for
    for (long j = 0; j < columns; j++) {
        if (!border)
            run[j] = prolong(steps[j], trend(h[j], next[j], interval), trend(next[j], after[j], interval));
        if (d == SOUTH)
            l->category[i][j] = (unsigned char)category_of(l, i, j);
    }
}

static void look_north(layer *l, double interval) {
    for (long i = 1; i < rows; i++)
        look_along(l, NORTH, i, -1, interval);
}

static void look_south(layer *l, double interval) {
    for (long i = rows - 1; i >= 0; i--)
        look_along(l, SOUTH, i, 1, interval);
}

/* How many cells of all layers have each category. */
static void count(long *cells) {
    memset(cells, 0, CATEGORIES * sizeof *cells);
    for (int which = 0; which < LAYERS; which++)
#pragma omp parallel for reduction(+ : cells[ : CATEGORIES])
        for (long i = 0; i < rows; i++)
            for (long j = 0; j < columns; j++)
                cells[layers[which].category[i][j]]++;
}

/* The run by its definition: steps with the trend of the first one. */
static int walk(const layer *l, long i, long j, enum direction d, double interval) {
    long down = d == SOUTH ? 1 : d == NORTH ? -1 : 0, right = d == EAST ? 1 : d == WEST ? -1 : 0;
    int steps = 0, first = 0;
    for (; inside(i + down, rows) && inside(j + right, columns); i += down, j += right, steps++) {
        int step = trend(l->height[i][j], l->height[i + down][j + right], interval);
        if (steps == 0)
            first = step;
        if (step != first)
            break;
    }
    return steps;
}

static int samples_right(double interval) {
    for (uint64_t s = 0; s < SAMPLES; s++) {
        const layer *l = &layers[mix(3 * s) % LAYERS];
        long i = (long)(mix(3 * s + 1) % (uint64_t)rows), j = (long)(mix(3 * s + 2) % (uint64_t)columns);
        for (int d = 0; d < DIRECTIONS; d++)
            if (l->run[d][i][j] != walk(l, i, j, (enum direction)d, interval))
                return 0;
        if (l->category[i][j] != category_of(l, i, j))
            return 0;
    }
    return 1;
}

static void allocate(const options *o, layer *l) {
    int nx = (int)rows, ny = (int)columns;
    l->height = place(o, mai_alloc_2D(nx, ny, sizeof(double), DOUBLE));
    l->category = place(o, mai_alloc_2D(nx, ny, 1, CHAR));
    int whole = l->height && l->category;
    for (int d = 0; d < DIRECTIONS; d++) {
        l->run[d] = place(o, mai_alloc_2D(nx, ny, sizeof(int), INT));
        whole &= l->run[d] != NULL;
    }
    need_memory(&ictm, whole);
}

int main(int argc, char **argv) {
    options o = parse_options(&ictm, argc, argv);
    long cells[CATEGORIES];
    columns = o.size;
    rows = columns / ASPECT;
    if (rows < 3)
        give_up(&ictm, "--size is at least 24", "");
    start_mai();
    wave = malloc((size_t)columns * sizeof *wave);
    need_memory(&ictm, wave != NULL);
    for (long i = 0; i < columns; i++)
        wave[i] = sin(0.05 * (double)i);
    for (int which = 0; which < LAYERS; which++) {
        allocate(&o, &layers[which]);
        initialise(&layers[which], which, o.parallel);
    }
    int right = 1;
    double checksum = 0.0;
    for (long k = 0; k < o.iterations; k++) {
        double interval = 4.0 / (double)(k + 1);
        for (int which = 0; which < LAYERS; which++) {
            look_west(&layers[which], interval);
            look_east(&layers[which], interval);
            look_north(&layers[which], interval);
            look_south(&layers[which], interval);
        }
        count(cells);
        for (int c = 0; c < CATEGORIES; c++)
            checksum += (double)(c + 1) * (double)cells[c];
        right &= samples_right(interval);
    }
    int status = verdict(&ictm, columns, o.iterations, checksum, right);
    free(wave);
    mai_final();
    return status;
}
