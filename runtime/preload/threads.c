/* Threads in the order of their creation, each bound to its CPU. */
#define _GNU_SOURCE
#include "affinity.h"
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <threads.h>

#define EXPORTED __attribute__((visibility("default")))

/* The C library's functions. */
static struct {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*standard)(thrd_t *, thrd_start_t, void *); /* null: before glibc 2.28 */
} next;

/* Done early: once there are threads, another one may hold the loader's lock while it waits for this one. */
__attribute__((constructor(102))) static void look_up(void) {
    *(void **)&next.standard = dlsym(RTLD_NEXT, "thrd_create");
    *(void **)&next.create = dlsym(RTLD_NEXT, "pthread_create");
}

/* Constructors of other libraries may call our functions before our constructor has run. */
static void know_next(void) {
    if (!next.create)
        look_up();
}

typedef struct start {
    void *(*routine)(void *);
    thrd_start_t standard; /* instead of `routine`, for thrd_create */
    void *argument;
    uint32_t ordinal, lane;
    int bind;
    nw_inherited inherited;
} start;

static _Atomic uint32_t started = 1;
static _Thread_local uint32_t ordinal NW_INITIAL_EXEC;

/* ---- Lanes (heap.h): a thread gets the lowest one that is free. ---- */

#define LANES 65536u /* further threads have none */
static uint64_t lanes[LANES / 64];

/* 0: none is free. */
static uint32_t lane_take(void) {
    for (uint32_t i = 0; i < LANES / 64; i++) {
        uint64_t taken = __atomic_load_n(&lanes[i], __ATOMIC_RELAXED);
        while (~taken) {
            uint32_t bit = (uint32_t)__builtin_ctzll(~taken);
            if (__atomic_compare_exchange_n(&lanes[i], &taken, taken | 1ull << bit, 1, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED))
                return i * 64 + bit + 1;
        }
    }
    return 0;
}

static void lane_give(uint32_t lane) {
    if (lane)
        __atomic_fetch_and(&lanes[(lane - 1) / 64], ~(1ull << (lane - 1) % 64), __ATOMIC_RELEASE);
}

/* Called if the thread could not be created. */
static void forget(start *begin) {
    lane_give(begin->lane);
    free(begin);
}

uint32_t nw_thread_ordinal(void) { return ordinal; }

static void bind(void) {
    uint32_t threads = nw_placement->thread_cpus.count;
    if (threads && nw_kernel_bind(ordinal, nw_thread_cpus(nw_placement)[ordinal % threads]) == 0)
        __atomic_fetch_add(&nw_report->threads, 1, __ATOMIC_RELAXED);
}

static void thread_ends(void *begin) {
    nw_match_thread_ends();
    lane_give(((start *)begin)->lane);
}

static void *run(void *argument) {
    start begin = *(start *)argument;
    void *value;
    free(argument);
    ordinal = begin.ordinal;
    nw_heap_lane(begin.lane);
    nw_affinity_begins(begin.inherited);
    if (begin.bind)
        bind();
    pthread_cleanup_push(thread_ends, &begin);
    value = begin.standard ? (void *)(intptr_t)begin.standard(begin.argument) : begin.routine(begin.argument);
    pthread_cleanup_pop(1);
    return value;
}

static int run_standard(void *argument) { return (int)(intptr_t)run(argument); }

/* Whether threads are bound by us. Also binds the main thread, which is done only when the first other thread is
 * created: until then programs that make system calls themselves count CPUs by its mask. It is not bound if the program
 * has set its mask, nor where OpenMP's runtime binds, which has bound it by now. */
static int binding_on(void) {
    static _Atomic int main_settled;
    int ours = (nw_placement->flags & NW_BIND_THREADS) != 0;
    if (ordinal != 0 || atomic_exchange(&main_settled, 1))
        return ours;
    nw_kernel_home_ends();
    if (ours && nw_affinity_inherited(NULL, NULL) == NW_FROM_BEFORE)
        bind();
    return ours;
}

void nw_threads_start(void) {
    nw_affinity_start();
    if (nw_placement->flags & NW_MAIN_HOME && nw_placement->thread_cpus.count)
        nw_kernel_home(nw_thread_cpus(nw_placement)[0], nw_thread_nodes(nw_placement)[0]);
}

/* The data that a new thread begins with; null if the thread is left alone, or for lack of memory. */
static start *expect(const pthread_attr_t *attributes, void *argument, const void *caller) {
    nw_companion_passes(1);
    start *begin = nw_placement && nw_reporting() ? malloc(sizeof *begin) : NULL;
    if (!begin)
        return NULL;
    nw_inherited inherited = nw_affinity_inherited(attributes, caller);
    int bound = binding_on() && inherited == NW_FROM_BEFORE;
    if (inherited == NW_BY_PROGRAM)
        __atomic_fetch_add(&nw_report->own_masks, 1, __ATOMIC_RELAXED);
    *begin = (start){
        .argument = argument, .ordinal = started++, .lane = lane_take(), .bind = bound, .inherited = inherited};
    return begin;
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
                            void *argument) {
    know_next();
    if (!next.create)
        return EAGAIN;
    start *begin = expect(attributes, argument, __builtin_return_address(0));
    if (!begin)
        return next.create(thread, attributes, routine, argument);
    begin->routine = routine;
    int status = next.create(thread, attributes, run, begin);
    if (status != 0)
        forget(begin);
    return status;
}

/* C11's function, which does not call pthread_create. */
EXPORTED int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument) {
    know_next();
    if (!next.standard)
        return thrd_error;
    start *begin = expect(NULL, argument, NULL);
    if (!begin)
        return next.standard(thread, routine, argument);
    begin->standard = routine;
    int status = next.standard(thread, run_standard, begin);
    if (status != thrd_success)
        forget(begin);
    return status;
}
