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
    return nw_static(begin, end, (int)((unsigned)threads - 1 - (unsigned)thread), threads);
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
    unsigned long each, more; /* iterations in a block; this many blocks have one more */
    unsigned long offset, length; /* the thread's part of a block */
    unsigned long offset_more, length_more; /* and of one that has one more */
} nw_exclusive;

/* All that depends on neither bounds nor `id`. */
__attribute__((unused)) static nw_exclusive nw_exclusive_share(nw_cuts cuts, int thread, int threads) {
    nw_exclusive e = {0, 0, 0, 0, cuts, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    if (cuts.parts <= 0 || thread < 0 || thread >= threads)
        return e;
    unsigned long n = cuts.begin < cuts.end ? (unsigned long)cuts.end - (unsigned long)cuts.begin : 0;
    long long nodes = cuts.parts, at = thread * nodes;
    int first = (int)(at / threads), rest = (int)(at % threads); /* first node, and how far into it */
    int several = threads >= nodes;                              /* a node, else one for several nodes */
    e.node = first + (!several && rest > 0);
    e.last = several ? first + 1 : (int)((at + nodes + threads - 1) / threads);
    e.each = n / (unsigned long)nodes;
    e.more = n % (unsigned long)nodes;
    unsigned long rank = (unsigned long)(rest / nodes); /* among the node's threads; with fewer than nodes 0 of 1 */
    unsigned long count = rank + 1 + (unsigned long)((threads - 1 - rest) / nodes);
    unsigned long length = e.each / count, more = e.each % count;
    e.offset = length * rank + (rank < more ? rank : more);
    e.length = length + (rank < more);
    e.offset_more = e.offset + (rank > more); /* one iteration more goes to thread number `more` */
    e.length_more = e.length + (rank == more);
    return e;
}

/* What a thread's share was last. */
typedef struct nw_exclusive_memo {
    int thread, threads; /* threads negative: being written */
    nw_exclusive share;
} nw_exclusive_memo;

/* Another share, kept unless this is a signal handler that came while one was being written. */
__attribute__((noinline, unused)) static nw_exclusive nw_exclusive_move(nw_exclusive_memo *last, nw_cuts cuts,
                                                                        int thread, int threads) {
    nw_exclusive share = nw_exclusive_share(cuts, thread, threads);
    if (threads < 0 || last->threads < 0)
        return share;
    last->threads = -1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    last->thread = thread;
    last->share = share;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    last->threads = threads;
    return share;
}

/* A thread keeps the share it had last: loops over the same cuts divide once. */
NW_INLINE nw_exclusive nw_exclusive_begin(long begin, long end, nw_cuts cuts, int id, int thread, int threads) {
    static __thread nw_exclusive_memo last;
    const nw_exclusive *s = &last.share;
    nw_exclusive moved;
    int other = (last.thread ^ thread) | (last.threads ^ threads) | (s->cuts.parts ^ cuts.parts);
    if (other || ((s->cuts.begin ^ cuts.begin) | (s->cuts.end ^ cuts.end))) {
        moved = nw_exclusive_move(&last, cuts, thread, threads);
        s = &moved;
    }
    if (id < 0 || id >= cuts.parts) {
        int nodes = cuts.parts > 0 ? cuts.parts : 1;
        id = id % nodes + (id % nodes < 0 ? nodes : 0);
    }
    nw_exclusive e = {0,         0,         begin,          end,           cuts, id, s->node, s->last, s->each, s->more,
                      s->offset, s->length, s->offset_more, s->length_more};
    return e;
}

/* Steps to the next range; 0 when there is none. Unsigned where it adds, as in nw_part. */
NW_INLINE int nw_exclusive_next(nw_exclusive *e) {
    if (e->node >= e->last)
        return 0;
    int behind = e->node++ - e->id;
    unsigned long block = (unsigned long)(behind < 0 ? behind + e->cuts.parts : behind);
    int longer = block < e->more;
    unsigned long begin = (unsigned long)e->cuts.begin + e->each * block +
                          (longer ? block + e->offset_more : e->more + e->offset);
    nw_range part = {(long)begin, (long)(begin + (longer ? e->length_more : e->length))};
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
#define nw_for_static(i, begin_, end_)                                                                              \
    for (nw_range nw_r_##i = nw_static(begin_, end_, NW_THREAD, NW_THREADS), *nw_once_##i = &nw_r_##i; nw_once_##i; \
         nw_once_##i = NULL)                                                                                        \
        for (long i = nw_r_##i.begin; i < nw_r_##i.end; i++)

#define nw_for_static_inverse(i, begin_, end_)                                                                 \
    for (nw_range nw_r_##i = nw_static_inverse(begin_, end_, NW_THREAD, NW_THREADS), *nw_once_##i = &nw_r_##i; \
         nw_once_##i; nw_once_##i = NULL)                                                                      \
        for (long i = nw_r_##i.begin; i < nw_r_##i.end; i++)

/* Part `id` of a sweep, cut as the distribution cuts this loop's dimension. `break` leaves one block. */
#define nw_for_exclusive(i, begin_, end_, cuts_, id_)                                                 \
    for (nw_exclusive nw_e_##i = nw_exclusive_begin(begin_, end_, cuts_, id_, NW_THREAD, NW_THREADS); \
         nw_exclusive_next(&nw_e_##i);)                                                               \
        for (long i = nw_e_##i.begin; i < nw_e_##i.end; i++)

/* The paper's schedule(block-exclusive, view, id): the loop's own bounds are cut, over all nodes. */
static inline nw_cuts nw_cuts_of(long begin, long end) {
    nw_cuts cuts = {begin, end, nw_processors()};
    return cuts;
}
#define nw_for_block_exclusive(i, begin_, end_, view_, id_) \
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
