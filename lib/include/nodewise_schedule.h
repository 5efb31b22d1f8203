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

#define NW_INLINE __attribute__((always_inline)) static inline
#ifdef __cplusplus
#define NW_THREAD_LOCAL thread_local
extern "C" {
#else
#define NW_THREAD_LOCAL _Thread_local
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

/* Part number `part`, from 0; empty where there is no such part. Counted without signs, so that any
 * bounds a long holds are right; divided without a branch, so that compilers divide before a loop. */
static inline nw_range nw_part(nw_cuts cuts, int part) {
    unsigned long n = cuts.begin < cuts.end ? (unsigned long)cuts.end - (unsigned long)cuts.begin : 0;
    unsigned long parts = cuts.parts > 0 ? (unsigned long)cuts.parts : 1, at = (unsigned long)part;
    unsigned long each = n / parts, more = n % parts;
    unsigned long begin = each * at + (at < more ? at : more), length = each + (at < more);
    int there = (part >= 0) & (part < cuts.parts);
    begin = (unsigned long)cuts.begin + (there ? begin : 0);
    nw_range range = {(long)begin, (long)(begin + (there ? length : 0))};
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
 * for its threads, whatever the loop's bounds leave of it, so that a thread meets the same items in
 * every loop. A node without threads is served by thread m * T / N. Over two dimensions `id` is the
 * block of the other one; over more it is the sum of the others' blocks. */
typedef struct nw_exclusive {
    long begin, end;          /* the current range */
    long from, to;            /* bounds of the loop */
    nw_cuts cuts;
    int id, node, last;       /* nodes to serve: node to last - 1 */
    long each, more;          /* iterations in a block; so many blocks have one more */
    long offset, length;      /* the thread's part of a block */
    long offset_more, length_more; /* and of one that has one more */
} nw_exclusive;

/* All that depends on neither bounds nor `id`. */
__attribute__((noinline, unused)) static nw_exclusive nw_exclusive_seat(nw_cuts cuts, int thread, int threads) {
    unsigned long n = cuts.begin < cuts.end ? (unsigned long)cuts.end - (unsigned long)cuts.begin : 0;
    long nodes = cuts.parts > 0 ? cuts.parts : 1, team = threads > 0 ? threads : 1;
    long first = thread * nodes / team, rest = thread * nodes % team; /* first, and how far into it */
    long rank = rest / nodes, after = (team - 1 - rest) / nodes, next = (rest + nodes + team - 1) / team;
    int several = team >= nodes, there = (cuts.parts > 0) & (thread >= 0) & (thread < threads);
    nw_exclusive e = {0, 0, 0, 0, cuts, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    e.node = (int)first + (!several && rest > 0);
    e.last = !there ? e.node : (int)first + (several ? 1 : (int)next);
    e.each = (long)(n / (unsigned long)nodes);
    e.more = (long)(n % (unsigned long)nodes);
    int count = (int)(rank + 1 + after); /* with fewer threads than nodes 0 of 1 */
    nw_range part = nw_static(0, e.each, (int)rank, count), more = nw_static(0, e.each + 1, (int)rank, count);
    e.offset = part.begin;
    e.length = part.end - part.begin;
    e.offset_more = more.begin;
    e.length_more = more.end - more.begin;
    return e;
}

/* A thread keeps the seat it had last: loops over the same cuts divide once. */
NW_INLINE nw_exclusive nw_exclusive_begin(long begin, long end, nw_cuts cuts, int id, int thread, int threads) {
    static NW_THREAD_LOCAL struct {
        int thread, threads;
        nw_exclusive seat;
    } last;
    const nw_exclusive *s = &last.seat;
    int other = (last.thread ^ thread) | (last.threads ^ threads) | (s->cuts.parts ^ cuts.parts);
    if (other || ((s->cuts.begin ^ cuts.begin) | (s->cuts.end ^ cuts.end))) {
        last.thread = thread;
        last.threads = threads;
        last.seat = nw_exclusive_seat(cuts, thread, threads);
    }
    if (id < 0 || id >= cuts.parts) {
        int nodes = cuts.parts > 0 ? cuts.parts : 1;
        id = id % nodes + (id % nodes < 0 ? nodes : 0);
    }
    nw_exclusive e = {0, 0, begin, end, cuts, id, s->node, s->last, s->each, s->more,
                      s->offset, s->length, s->offset_more, s->length_more};
    return e;
}

/* Steps to the next range; 0 when there is none. */
NW_INLINE int nw_exclusive_next(nw_exclusive *e) {
    if (e->node >= e->last)
        return 0;
    long block = e->node++ - e->id;
    block += block < 0 ? e->cuts.parts : 0;
    int longer = block < e->more;
    unsigned long begin = (unsigned long)e->cuts.begin + (unsigned long)(e->each * block) +
                          (unsigned long)(longer ? block + e->offset_more : e->more + e->offset);
    nw_range part = {(long)begin, (long)(begin + (unsigned long)(longer ? e->length_more : e->length))};
    part = nw_meet(part, e->from, e->to);
    e->begin = part.begin;
    e->end = part.end;
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
