/* Streaming k-median clustering (Guha et al.): points arrive in chunks, each chunk is clustered by
 * local search, and only its centres are kept, weighted by the points that they represent. At the
 * end, these centres are clustered themselves.
 *
 * In every evaluation each thread reads its part of the chunk, which was written when the stream was
 * read: with --init master by one thread, as in PARSEC's streamcluster.
 *
 * Verified: the cost that local search kept up to date equals the cost computed afresh, and it never
 * rose. */
#include "workload.h"
#include <math.h>

static const workload kmedian = {
    .name = "kmedian",
    .does = "streaming k-median clustering",
    .size_is = "points in a chunk",
    .small = 4096,
    .size = 131072,
    .largest = 100000000,
    .iterations = 3,
};

enum { DIMENSIONS = 64, CENTRES = 8, CANDIDATES = 40, BLOCK = 1024 };

typedef struct {
    long n;
    float *coordinate; /* DIMENSIONS per point */
    double *weight;
    double *nearest, *second; /* weighted distance to the nearest and the second nearest centre */
    int *centre;              /* the nearest */
} chunk;

typedef struct {
    long point[CENTRES];
    int count;
    double cost;
} clustering;

static double distance(const chunk *c, long p, long q) {
    const float *a = c->coordinate + p * DIMENSIONS, *b = c->coordinate + q * DIMENSIONS;
    float sum = 0.0f;
    for (int k = 0; k < DIMENSIONS; k++)
        sum += (a[k] - b[k]) * (a[k] - b[k]);
    return c->weight[p] * (double)sqrtf(sum);
}

/* Fills the chunk with the points of the stream from `from` on: CENTRES clouds, well apart. */
static void read_stream(chunk *c, long from, int parallel) {
#pragma omp parallel for if (parallel)
    for (long p = 0; p < c->n; p++) {
        uint64_t id = (uint64_t)(from + p), cloud = mix(id) % CENTRES;
        for (uint64_t k = 0; k < DIMENSIONS; k++) {
            double middle = 10.0 * mix_unit(cloud * DIMENSIONS + k);
            double noise = mix_unit(~(id * DIMENSIONS + k)) - 0.5;
            c->coordinate[p * DIMENSIONS + (long)k] = (float)(middle + noise);
        }
        c->weight[p] = 1.0;
    }
}

/* Finds each point's nearest and second nearest centre; returns the cost. Sums go block by block, so
 * that they do not depend on the number of threads. */
static double assign(chunk *c, const clustering *k) {
    long blocks = (c->n + BLOCK - 1) / BLOCK;
    double partial[blocks], cost = 0.0;
#pragma omp parallel for
    for (long b = 0; b < blocks; b++) {
        long end = (b + 1) * BLOCK < c->n ? (b + 1) * BLOCK : c->n;
        partial[b] = 0.0;
        for (long p = b * BLOCK; p < end; p++) {
            c->nearest[p] = c->second[p] = INFINITY;
            for (int m = 0; m < k->count; m++) {
                double d = distance(c, p, k->point[m]);
                if (d < c->nearest[p]) {
                    c->second[p] = c->nearest[p];
                    c->nearest[p] = d;
                    c->centre[p] = m;
                } else if (d < c->second[p])
                    c->second[p] = d;
            }
            partial[b] += c->nearest[p];
        }
    }
    for (long b = 0; b < blocks; b++)
        cost += partial[b];
    return cost;
}

/* What opening a centre at `candidate` saves, and what closing each old one would then lose. */
static double evaluate(const chunk *c, long candidate, double loss[CENTRES]) {
    long blocks = (c->n + BLOCK - 1) / BLOCK;
    double(*partial)[CENTRES + 1] = calloc((size_t)blocks, sizeof *partial), saving = 0.0;
    need_memory(&kmedian, partial != NULL);
#pragma omp parallel for
    for (long b = 0; b < blocks; b++) {
        long end = (b + 1) * BLOCK < c->n ? (b + 1) * BLOCK : c->n;
        for (long p = b * BLOCK; p < end; p++) {
            double d = distance(c, p, candidate);
            if (d < c->nearest[p])
                partial[b][CENTRES] += c->nearest[p] - d;
            else
                partial[b][c->centre[p]] += fmin(c->second[p], d) - c->nearest[p];
        }
    }
    memset(loss, 0, CENTRES * sizeof *loss);
    for (long b = 0; b < blocks; b++) {
        saving += partial[b][CENTRES];
        for (int m = 0; m < CENTRES; m++)
            loss[m] += partial[b][m];
    }
    free(partial);
    return saving;
}

/* Opens the candidate, or swaps it for the old centre whose closing costs least, if that lowers the cost. */
static void consider(chunk *c, clustering *k, long candidate) {
    double loss[CENTRES], saving = evaluate(c, candidate, loss);
    int worst = 0;
    for (int m = 1; m < k->count; m++)
        if (loss[m] < loss[worst])
            worst = m;
    if (k->count < CENTRES)
        worst = k->count++;
    else
        saving -= loss[worst];
    if (saving <= 0.0)
        return;
    k->point[worst] = candidate;
    k->cost -= saving;
    assign(c, k);
}

/* Local search; clears `ok` if the cost rises, or differs from the one that was kept up to date. */
static clustering cluster(chunk *c, int *ok) {
    clustering k = {.point = {0}, .count = 1};
    double first = k.cost = assign(c, &k);
    for (uint64_t i = 0; i < CANDIDATES; i++)
        consider(c, &k, (long)(mix(i) % (uint64_t)c->n));
    double afresh = assign(c, &k);
    *ok &= fabs(afresh - k.cost) <= 1e-6 * first && afresh <= first;
    k.cost = afresh;
    return k;
}

/* Appends a chunk's centres, each with the weight of its points. */
static void keep(const chunk *c, const clustering *k, chunk *kept) {
    for (int m = 0; m < k->count; m++) {
        memcpy(kept->coordinate + (kept->n + m) * DIMENSIONS, c->coordinate + k->point[m] * DIMENSIONS,
               DIMENSIONS * sizeof(float));
        kept->weight[kept->n + m] = 0.0;
    }
    for (long p = 0; p < c->n; p++)
        kept->weight[kept->n + c->centre[p]] += c->weight[p];
    kept->n += k->count;
}

static void release(chunk *c) {
    free(c->coordinate), free(c->weight), free(c->nearest), free(c->second), free(c->centre);
}

int main(int argc, char **argv) {
    options o = parse_options(&kmedian, argc, argv);
    size_t points = (size_t)o.size, most = (size_t)o.iterations * CENTRES;
    chunk c = {.n = o.size}, kept = {.n = 0};
    c.coordinate = malloc(points * DIMENSIONS * sizeof *c.coordinate);
    c.weight = malloc(points * sizeof *c.weight);
    c.nearest = malloc(points * sizeof *c.nearest);
    c.second = malloc(points * sizeof *c.second);
    c.centre = malloc(points * sizeof *c.centre);
    kept.coordinate = malloc(most * DIMENSIONS * sizeof *kept.coordinate);
    kept.weight = malloc(most * sizeof *kept.weight);
    kept.nearest = malloc(most * sizeof *kept.nearest);
    kept.second = malloc(most * sizeof *kept.second);
    kept.centre = malloc(most * sizeof *kept.centre);
    need_memory(&kmedian, c.coordinate && c.weight && c.nearest && c.second && c.centre);
    need_memory(&kmedian, kept.coordinate && kept.weight && kept.nearest && kept.second && kept.centre);

    int ok = 1;
    for (long i = 0; i < o.iterations; i++) {
        read_stream(&c, i * o.size, o.parallel);
        clustering k = cluster(&c, &ok);
        keep(&c, &k, &kept);
    }
    clustering last = cluster(&kept, &ok);
    int status = verdict(&kmedian, o.size, o.iterations, last.cost, ok);
    release(&c), release(&kept);
    return status;
}
