/* Deals OpenMP's dynamic and guided loops statically, in a program as it is: libnodewise-schedule.so is preloaded, and its
 * functions, which programs call by the runtime's names, call the runtime's functions for static loops, or hand over a static
 * schedule. OpenMP lets any thread of a team do any iteration of such a loop, so that a program which keeps to the standard
 * computes the same. Loops with `ordered`, tasks and sections stay as they are; those with schedule(runtime) follow
 * OMP_SCHEDULE, which the starter sets.
 *
 * The interfaces are those of GCC's libgomp (libgomp.map) and of LLVM's and Intel's runtime (kmp.h). */
#define _GNU_SOURCE
#include "../loaded.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
typedef unsigned long long ull;

/* NODEWISE_SCHEDULE: `static`, or `static,N`. 0: blocks of equal size. Read when it is first needed: constructors of the
 * program's libraries, which run before ours, may have loops. */
static long chunk_size(void) {
    static _Atomic long known = -1;
    long chunk = atomic_load_explicit(&known, memory_order_relaxed);
    if (chunk < 0) {
        const char *text = getenv("NODEWISE_SCHEDULE");
        const char *comma = text == NULL ? NULL : strchr(text, ',');
        chunk = comma == NULL ? 0 : strtol(comma + 1, NULL, 10);
        atomic_store_explicit(&known, chunk, memory_order_relaxed);
    }
    return chunk;
}

/* Loops that were dealt otherwise than the program asks, and the folder in which to say how many (NODEWISE_LOOPS). */
static _Atomic unsigned long loops;
static char folder[PATH_MAX - 32];

static void forget(void) { atomic_store(&loops, 0); }

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("NODEWISE_LOOPS");
    if (text != NULL && strlen(text) < sizeof folder)
        strcpy(folder, text);
    pthread_atfork(NULL, NULL, forget);
}

/* Not called if the process ends by _exit or a signal, or executes another program. */
__attribute__((destructor)) static void end(void) {
    static char path[PATH_MAX];
    char text[24];
    int length = snprintf(text, sizeof text, "%lu\n", atomic_load(&loops));
    if (*folder == 0 || atomic_load(&loops) == 0)
        return;
    snprintf(path, sizeof path, "%s/loops-%d", folder, getpid());
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0 && write(file, text, (size_t)length) != length)
        unlink(path);
    if (file >= 0)
        close(file);
}

static void give_up(const char *name) {
    static const char said[] = "nodewise: the OpenMP runtime lacks a function that --schedule static needs: ";
    if (write(2, said, sizeof said - 1) < 0 || write(2, name, strlen(name)) < 0 || write(2, "\n", 1) < 0)
        abort();
    abort();
}

/* A function of the runtime that the calling module uses: a process may have several, such as those that come with Python's
 * packages. */
enum { FREE, FILLING, FILLED, CALLERS = 4 };

typedef struct called {
    _Atomic int state;
    uintptr_t start, end; /* of the calling module */
    void *function;
} called;

/* Not by dlsym, if that can be avoided: another thread may hold the loader's lock while a library's constructor waits for a
 * team. */
static void *function(called known[CALLERS], const char *name, const void *caller) {
    uintptr_t from = (uintptr_t)caller;
    for (int i = 0; i < CALLERS; i++)
        if (atomic_load_explicit(&known[i].state, memory_order_acquire) == FILLED && from >= known[i].start &&
            from < known[i].end)
            return known[i].function;
    nw_loaded module;
    void *found = nw_called_function(name, from);
    if (found == NULL)
        found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        give_up(name);
    for (int i = 0; i < CALLERS && nw_loaded_at(from, &module); i++) {
        int expected = FREE;
        if (!atomic_compare_exchange_strong(&known[i].state, &expected, FILLING))
            continue;
        known[i].start = module.start;
        known[i].end = module.end;
        known[i].function = found;
        atomic_store_explicit(&known[i].state, FILLED, memory_order_release);
        break;
    }
    return found;
}

/* CALL(TYPE, NAME, ARGUMENTS…): calls the runtime's function NAME. CALLER is where this was called. */
#define CALLER __builtin_return_address(0)
#define CALL(type, name, ...)     \
    static called known[CALLERS]; \
    return ((type *)function(known, name, CALLER))(__VA_ARGS__)

/* Counts a loop that a team begins, in its first thread. */
static void count_once(const void *caller) {
    static called known[CALLERS];
    if (((int (*)(void))function(known, "omp_get_thread_num", caller))() == 0)
        atomic_fetch_add_explicit(&loops, 1, memory_order_relaxed);
}

static void count(void) { atomic_fetch_add_explicit(&loops, 1, memory_order_relaxed); }

/* ---- libgomp: begin a loop in a running team, and take the next piece. The function for schedule(runtime) takes the next
 * piece by the schedule that the loop has. ---- */

typedef bool start_static(long, long, long, long, long *, long *);
typedef bool next_piece(long *, long *);
typedef bool start_static_ull(bool, ull, ull, ull, ull, ull *, ull *);
typedef bool next_piece_ull(ull *, ull *);
typedef void parallel_loop(void (*)(void *), void *, unsigned, long, long, long, long, unsigned);
typedef void parallel_loop_start(void (*)(void *), void *, unsigned, long, long, long, long);

#define LOOP(kind)                                                                                                    \
    EXPORT bool GOMP_loop_##kind##_start(long start, long end, long step, long asked, long *first, long *last) {      \
        (void)asked;                                                                                                  \
        count_once(CALLER);                                                                                           \
        CALL(start_static, "GOMP_loop_static_start", start, end, step, chunk_size(), first, last);                    \
    }                                                                                                                 \
    EXPORT bool GOMP_loop_##kind##_next(long *first, long *last) {                                                    \
        CALL(next_piece, "GOMP_loop_runtime_next", first, last);                                                      \
    }                                                                                                                 \
    EXPORT bool GOMP_loop_ull_##kind##_start(bool up, ull start, ull end, ull step, ull asked, ull *first,            \
                                             ull *last) {                                                             \
        (void)asked;                                                                                                  \
        count_once(CALLER);                                                                                           \
        CALL(start_static_ull, "GOMP_loop_ull_static_start", up, start, end, step, (ull)chunk_size(), first, last);   \
    }                                                                                                                 \
    EXPORT bool GOMP_loop_ull_##kind##_next(ull *first, ull *last) {                                                  \
        CALL(next_piece_ull, "GOMP_loop_ull_runtime_next", first, last);                                              \
    }                                                                                                                 \
    EXPORT void GOMP_parallel_loop_##kind(void (*body)(void *), void *data, unsigned threads, long start, long end,   \
                                          long step, long asked, unsigned flags) {                                    \
        (void)asked;                                                                                                  \
        count();                                                                                                      \
        CALL(parallel_loop, "GOMP_parallel_loop_static", body, data, threads, start, end, step, chunk_size(), flags); \
    }

LOOP(dynamic)
LOOP(guided)
LOOP(nonmonotonic_dynamic)
LOOP(nonmonotonic_guided)

/* Before GCC 4.9. */
#define OLD_LOOP(kind)                                                                                            \
    EXPORT void GOMP_parallel_loop_##kind##_start(void (*body)(void *), void *data, unsigned threads, long start, \
                                                  long end, long step, long asked) {                              \
        (void)asked;                                                                                              \
        count();                                                                                                  \
        CALL(parallel_loop_start, "GOMP_parallel_loop_static_start", body, data, threads, start, end, step,       \
             chunk_size());                                                                                       \
    }

OLD_LOOP(dynamic)
OLD_LOOP(guided)

/* Loops with reductions over tasks, and others since OpenMP 5: the schedule is an argument. */
enum { GOMP_STATIC = 1, GOMP_DYNAMIC = 2, GOMP_GUIDED = 3, GOMP_KIND = 7 };

static bool is_dealt(long schedule) {
    return (schedule & GOMP_KIND) == GOMP_DYNAMIC || (schedule & GOMP_KIND) == GOMP_GUIDED;
}

typedef bool start_any(long, long, long, long, long, long *, long *, uintptr_t *, void **);
typedef bool start_any_ull(bool, ull, ull, ull, long, ull, ull *, ull *, uintptr_t *, void **);

EXPORT bool GOMP_loop_start(long start, long end, long step, long schedule, long asked, long *first, long *last,
                            uintptr_t *reductions, void **memory) {
    bool dealt = is_dealt(schedule);
    if (dealt)
        count_once(CALLER);
    CALL(start_any, "GOMP_loop_start", start, end, step, dealt ? (schedule & ~(long)GOMP_KIND) | GOMP_STATIC : schedule,
         dealt ? chunk_size() : asked, first, last, reductions, memory);
}

EXPORT bool GOMP_loop_ull_start(bool up, ull start, ull end, ull step, long schedule, ull asked, ull *first, ull *last,
                                uintptr_t *reductions, void **memory) {
    bool dealt = is_dealt(schedule);
    if (dealt)
        count_once(CALLER);
    CALL(start_any_ull, "GOMP_loop_ull_start", up, start, end, step,
         dealt ? (schedule & ~(long)GOMP_KIND) | GOMP_STATIC : schedule, dealt ? (ull)chunk_size() : asked, first, last,
         reductions, memory);
}

/* ---- LLVM's and Intel's: one function begins a loop, with its schedule. ---- */

enum {
    KMP_STATIC_CHUNKED = 33,
    KMP_STATIC = 34,
    KMP_DYNAMIC = 35,
    KMP_GUIDED = 36,
    KMP_AUTO = 38, /* guided, unless the runtime is told otherwise; static in GCC's */
    KMP_GUIDED_SIMD = 46,
    KMP_NOMERGE = 128, /* added to the schedules above */
    KMP_MODIFIERS = 3 << 29, /* monotonic, nonmonotonic */
};

/* Whether the thread's next loop has `ordered(n)`: in blocks, threads would wait for each other's last iterations. */
static _Thread_local int waits_for_iterations __attribute__((tls_model("initial-exec")));

typedef void doacross(void *, int32_t, int32_t, const void *);
EXPORT void __kmpc_doacross_init(void *where, int32_t thread, int32_t dimensions, const void *bounds) {
    waits_for_iterations = 1;
    CALL(doacross, "__kmpc_doacross_init", where, thread, dimensions, bounds);
}

static int32_t statically(int32_t schedule, int *dealt, const void *caller) {
    int waits = waits_for_iterations;
    waits_for_iterations = 0;
    int32_t modifiers = schedule & KMP_MODIFIERS, kind = schedule & ~KMP_MODIFIERS;
    int32_t offset = kind >= KMP_NOMERGE + 32 ? KMP_NOMERGE : 0;
    kind -= offset;
    *dealt = !waits && (kind == KMP_DYNAMIC || kind == KMP_GUIDED || kind == KMP_GUIDED_SIMD || kind == KMP_AUTO);
    if (*dealt)
        count_once(caller);
    return *dealt ? modifiers | (offset + (chunk_size() > 0 ? KMP_STATIC_CHUNKED : KMP_STATIC)) : schedule;
}

#define DISPATCH(suffix, type, step_type)                                                                             \
    typedef void init_##suffix(void *, int32_t, int32_t, type, type, step_type, step_type);                           \
    typedef void init_distributed_##suffix(void *, int32_t, int32_t, int32_t *, type, type, step_type, step_type);    \
    EXPORT void __kmpc_dispatch_init_##suffix(void *where, int32_t thread, int32_t schedule, type first, type last,   \
                                              step_type step, step_type asked) {                                      \
        int dealt;                                                                                                    \
        schedule = statically(schedule, &dealt, CALLER);                                                              \
        CALL(init_##suffix, "__kmpc_dispatch_init_" #suffix, where, thread, schedule, first, last, step,              \
             dealt ? (step_type)chunk_size() : asked);                                                                \
    }                                                                                                                 \
    EXPORT void __kmpc_dist_dispatch_init_##suffix(void *where, int32_t thread, int32_t schedule, int32_t *at_end,    \
                                                   type first, type last, step_type step, step_type asked) {          \
        int dealt;                                                                                                    \
        schedule = statically(schedule, &dealt, CALLER);                                                              \
        CALL(init_distributed_##suffix, "__kmpc_dist_dispatch_init_" #suffix, where, thread, schedule, at_end, first, \
             last, step, dealt ? (step_type)chunk_size() : asked);                                                    \
    }

DISPATCH(4, int32_t, int32_t)
DISPATCH(4u, uint32_t, int32_t)
DISPATCH(8, int64_t, int64_t)
DISPATCH(8u, uint64_t, int64_t)
