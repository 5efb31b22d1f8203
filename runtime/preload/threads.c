/* Threads in the order of their creation, each bound to its CPU. */
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

typedef struct start {
    void *(*routine)(void *);
    void *argument;
    uint32_t ordinal;
    int bind;
} start;

static _Atomic uint32_t started = 1;
static _Thread_local uint32_t ordinal NW_INITIAL_EXEC;

uint32_t nw_thread_ordinal(void) { return ordinal; }

static void bind(void) {
    uint32_t threads = nw_placement->thread_cpus.count;
    if (threads && nw_kernel_bind(ordinal, nw_thread_cpus(nw_placement)[ordinal % threads]) == 0)
        __atomic_fetch_add(&nw_report->threads, 1, __ATOMIC_RELAXED);
}

static void thread_ends(void *unused) {
    (void)unused;
    nw_match_thread_ends();
}

static void *run(void *argument) {
    start begin = *(start *)argument;
    void *value;
    free(argument);
    ordinal = begin.ordinal;
    if (begin.bind)
        bind();
    pthread_cleanup_push(thread_ends, NULL);
    value = begin.routine(begin.argument);
    pthread_cleanup_pop(1);
    return value;
}

/* A program that places its threads itself is left alone. */
static int placed_by_program(const pthread_attr_t *attributes) {
    cpu_set_t set;
    return attributes && pthread_attr_getaffinity_np(attributes, sizeof set, &set) == 0 &&
           CPU_COUNT(&set) < CPU_SETSIZE;
}

/* The main thread is bound once others appear: until then programs count CPUs by its mask. OpenMP
 * runtimes have bound it by now. */
static int binding_on(void) {
    static _Atomic int main_settled;
    int ours = (nw_placement->flags & NW_BIND_THREADS) != 0;
    if (ordinal != 0 || atomic_exchange(&main_settled, 1))
        return ours;
    nw_kernel_home_ends();
    if (ours)
        bind();
    return ours;
}

void nw_threads_start(void) {
    if (nw_placement->flags & NW_MAIN_HOME && nw_placement->thread_cpus.count)
        nw_kernel_home(nw_thread_cpus(nw_placement)[0], nw_thread_nodes(nw_placement)[0]);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                           void *(*routine)(void *), void *argument) {
    static create_function *_Atomic next;
    create_function *create = atomic_load(&next);
    if (!create) {
        *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
        atomic_store(&next, create);
    }
    if (!create)
        return EAGAIN;
    nw_companion_passes(1);
    start *begin = nw_placement ? malloc(sizeof *begin) : NULL;
    if (!begin)
        return create(thread, attributes, routine, argument);
    int bound = binding_on() && !placed_by_program(attributes);
    *begin = (start){.routine = routine, .argument = argument, .ordinal = started++, .bind = bound};
    int status = create(thread, attributes, run, begin);
    if (status != 0)
        free(begin);
    return status;
}
