/* Loop schedules that meet distributions (Majo and Gross, CGO 2012, 4.2), inline: nanoseconds a call.
 *
 * Ranges are half-open. Every thread of a team calls with the same bounds; together they get each
 * iteration exactly once, for any number of threads and nodes. Thread t of T counts for node
 * t * N / T of N, as nw_bind_thread binds: nw_bind_openmp() once at the start makes that true.
 *
 *     nw_distr *d = nw_describe(u, nw_block_exclusive(0));
 *     nw_cuts rows = nw_distr_cuts(d, 0), columns = nw_distr_cuts(d, 1);
 *     #pragma omp parallel
 *     for (int id = 0; id < rows.parts; id++) {                    // a sweep down the rows
 *         nw_range part = nw_meet(nw_part(rows, id), 1, n - 1);
 *         nw_for_exclusive (j, 1, n - 1, columns, id)              // each thread its columns
 *             for (long i = part.begin; i < part.end; i++)
 *                 u[i][j] += u[i - 1][j];
 *         #pragma omp barrier
 *     }
 */
#ifndef NODEWISE_SCHEDULE_H
#define NODEWISE_SCHEDULE_H

#include "nodewise.h"

#ifdef _OPENMP
#include <omp.h>
#define NW_THREAD omp_get_thread_num()
#define NW_THREADS omp_get_num_threads()
#else
#define NW_THREAD 0
#define NW_THREADS 1
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Iterations begin, begin + 1, ... end - 1; none where begin >= end. */
typedef struct nw_range {
    long begin, end;
} nw_range;

/* Iterations (or indices of a dimension) cut into `parts` as schedule(static) cuts them: the first
 * (end - begin) mod parts get one more. */
typedef struct nw_cuts {
    long begin, end;
    int parts;
} nw_cuts;

/* The paper's views: which dimension the parallel loop runs over. */
enum { NW_X_WISE = 0, NW_Y_WISE = 1, NW_Z_WISE = 2, NW_W_WISE = 3 };

/* How a distribution cuts a dimension; one part where it does not. */
NW_API nw_cuts nw_distr_cuts(const nw_distr *distr, int dimension);
/* Nodes with CPUs that this process may use: the paper's `processors`. */
NW_API int nw_processors(void);

/* Part number `part`, from 0; empty where there is no such part. Any bounds a long holds are right,
 * which is why it counts without signs. */
static inline nw_range nw_part(nw_cuts cuts, int part) {
    nw_range range = {cuts.begin, cuts.begin};
    if (cuts.begin >= cuts.end || part < 0 || part >= cuts.parts)
        return range;
    unsigned long n = (unsigned long)cuts.end - (unsigned long)cuts.begin, parts = (unsigned long)cuts.parts;
    unsigned long each = n / parts, more = n % parts, at = (unsigned long)part;
    unsigned long begin = (unsigned long)cuts.begin + each * at + (at < more ? at : more);
    range.begin = (long)begin;
    range.end = (long)(begin + each + (at < more));
    return range;
}

/* What of a range lies in [begin, end). */
static inline nw_range nw_meet(nw_range range, long begin, long end) {
    nw_range meet = {range.begin > begin ? range.begin : begin, range.end < end ? range.end : end};
    return meet;
}

/* OpenMP's own schedule(static). */
static inline nw_range nw_static(long begin, long end, int thread, int threads) {
    nw_cuts cuts = {begin, end, threads};
    return nw_part(cuts, thread);
}

/* Chunk k to thread T - 1 - k. */
static inline nw_range nw_static_inverse(long begin, long end, int thread, int threads) {
    return nw_static(begin, end, threads - 1 - thread, threads);
}

/* The blocks of one part of a block-exclusive sweep that a thread works on, one after the other. In
 * part `id` (any integer, taken modulo N) the block of node m is (m - id) mod N; a node's block is cut
 * for its threads, and a node without threads is served by thread m * T / N. Over two dimensions `id`
 * is the block of the other one; over more it is the sum of the others' blocks. */
typedef struct nw_exclusive {
    long begin, end; /* the current range */
    long from, to;   /* bounds of the loop */
    nw_cuts cuts;
    int id, node, last, rank, count;
} nw_exclusive;

static inline int nw_ceil_share(long k, long of, long over) { return (int)((k * of + over - 1) / over); }

static inline nw_exclusive nw_exclusive_begin(long begin, long end, nw_cuts cuts, int id, int thread,
                                              int threads) {
    nw_exclusive e = {0, 0, begin, end, cuts, 0, 0, 0, 0, 1};
    int nodes = cuts.parts;
    if (nodes < 1 || thread < 0 || thread >= threads)
        return e; /* nothing */
    e.id = id % nodes;
    if (threads >= nodes) {
        e.node = (int)((long)thread * nodes / threads);
        e.last = e.node + 1;
        int first = nw_ceil_share(e.node, threads, nodes);
        e.rank = thread - first;
        e.count = nw_ceil_share(e.last, threads, nodes) - first;
    } else {
        e.node = nw_ceil_share(thread, nodes, threads);
        e.last = nw_ceil_share(thread + 1l, nodes, threads);
    }
    return e;
}

/* Steps to the next range; 0 when there is none. */
static inline int nw_exclusive_next(nw_exclusive *e) {
    if (e->node >= e->last)
        return 0;
    int block = (e->node++ - e->id) % e->cuts.parts;
    nw_range range = nw_meet(nw_part(e->cuts, block < 0 ? block + e->cuts.parts : block), e->from, e->to);
    range = nw_static(range.begin, range.end, e->rank, e->count);
    e->begin = range.begin;
    e->end = range.end;
    return 1;
}

/* The same out of line, for other languages. */
NW_API nw_range nw_part_call(nw_cuts cuts, int part);
NW_API nw_exclusive nw_exclusive_begin_call(long begin, long end, nw_cuts cuts, int id, int thread, int threads);
NW_API int nw_exclusive_next_call(nw_exclusive *e);

/* for (i = begin; i < end; i++), inside a parallel region, without a barrier at the end. */
#define nw_for_static(i, begin_, end_)                                                                       \
    for (nw_range nw_r_##i = nw_static(begin_, end_, NW_THREAD, NW_THREADS), *nw_once_##i = &nw_r_##i;       \
         nw_once_##i; nw_once_##i = NULL)                                                                    \
        for (long i = nw_r_##i.begin; i < nw_r_##i.end; i++)

#define nw_for_static_inverse(i, begin_, end_)                                                               \
    for (nw_range nw_r_##i = nw_static_inverse(begin_, end_, NW_THREAD, NW_THREADS),                         \
                  *nw_once_##i = &nw_r_##i;                                                                  \
         nw_once_##i; nw_once_##i = NULL)                                                                    \
        for (long i = nw_r_##i.begin; i < nw_r_##i.end; i++)

/* Part `id` of a sweep, cut as the distribution cuts this loop's dimension. `break` leaves one block. */
#define nw_for_exclusive(i, begin_, end_, cuts_, id_)                                                        \
    for (nw_exclusive nw_e_##i = nw_exclusive_begin(begin_, end_, cuts_, id_, NW_THREAD, NW_THREADS);        \
         nw_exclusive_next(&nw_e_##i);)                                                                      \
        for (long i = nw_e_##i.begin; i < nw_e_##i.end; i++)

/* The paper's schedule(block-exclusive, view, id): the loop's own bounds are cut, over all nodes. */
static inline nw_cuts nw_cuts_of(long begin, long end) {
    nw_cuts cuts = {begin, end, nw_processors()};
    return cuts;
}
#define nw_for_block_exclusive(i, begin_, end_, view_, id_)                                                  \
    nw_for_exclusive (i, begin_, end_, ((void)(view_), nw_cuts_of(begin_, end_)), id_)

#ifdef _OPENMP
/* Binds every thread of the team that a parallel region gets here, and makes their number that of
 * nw_set_threads. Returns the worst status of all. */
static inline int nw_bind_openmp(void) {
    int worst = NW_OK;
#pragma omp parallel
    {
#pragma omp single
        nw_set_threads(omp_get_num_threads());
        int status = nw_bind_thread(omp_get_thread_num());
#pragma omp critical(nw_bind_openmp)
        if (status < 0 ? status < worst : worst >= 0 && status > worst)
            worst = status;
    }
    return worst;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
