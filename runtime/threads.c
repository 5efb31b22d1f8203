#define _GNU_SOURCE
#include "heap.h"
#include "observer.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

_Thread_local nw_thread *nw_self __attribute__((tls_model("initial-exec")));
static _Thread_local nw_observer *here __attribute__((tls_model("initial-exec")));

static uint32_t ordinals, lanes;
static nw_observer *all, *hand; /* hand: the one of all that find_vacant checked last */
static int locked;
static long process;

/* How many observers are checked for a finished thread before a new one is made. Enough to keep their number close to
 * that of live threads, and few enough to be cheap if no thread has finished. */
#define LOOKS 4

/* A signal handler may attach the thread that it interrupts, so signals are blocked during that, and while the lock is
 * held. */
static void hold_signals(sigset_t *before) {
    sigset_t every;
    memset(&every, 0xff, sizeof every);
    nw_system(SYS_rt_sigprocmask, SIG_BLOCK, &every, before, 8);
}

static void let_signals(const sigset_t *before) { nw_system(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, 8); }

void nw_threads_forget_lock(void) { __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); }

void nw_threads_lock(sigset_t *before) {
    hold_signals(before);
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        nw_system(SYS_sched_yield, 0);
}

void nw_threads_unlock(const sigset_t *before) {
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
    let_signals(before);
}

/* Destructors of thread-local variables may still run when a thread seems finished, so the kernel is asked whether it
 * still exists. */
static bool is_vacant(const nw_observer *observer) {
    return observer->vacant || (observer->tid != 0 && nw_system(SYS_tgkill, process, observer->tid, 0) == -ESRCH);
}

static nw_observer *find_vacant(void) {
    for (int i = 0; i < LOOKS && all != NULL; i++) {
        hand = hand == NULL || hand->next == NULL ? all : hand->next;
        if (is_vacant(hand))
            return hand;
    }
    return NULL;
}

static nw_observer *take_observer(void) {
    sigset_t before;
    nw_threads_lock(&before);
    if (process == 0)
        process = nw_system(SYS_getpid, 0);
    nw_observer *observer = find_vacant();
    if (observer == NULL && (observer = nw_map_private(NULL, sizeof *observer)) != NULL) {
        observer->lane = ++lanes;
        observer->next = all;
        all = observer;
    }
    if (observer != NULL) {
        observer->tid = observer->vacant = 0;
        observer->ordinal = ordinals++;
    }
    nw_threads_unlock(&before);
    if (observer != NULL) {
        observer->start = NULL;
        observer->openmp_known = 0;
        memset(observer->tickets, 0, sizeof observer->tickets);
        observer->thread.observer = observer;
        observer->thread.until_slice = INT64_MAX;
    }
    return observer;
}

static void release(nw_observer *observer) {
    nw_thread_close(observer);
    nw_unmap(observer, sizeof *observer);
}

/* ---- Log entries about a thread. ---- */

static void log_created(const nw_observer *observer, const nw_observer *creator) {
    nw_line line = {0};
    nw_line_begin(&line, "thread");
    nw_line_number(&line, observer->ordinal);
    nw_line_number(&line, creator->ordinal);
    nw_line_number(&line, (uintptr_t)observer->start);
    nw_event(&line);
}

/* Finds the mapping that contains `address` in /proc/self/maps. Returns its size, 0 if there is none. */
static size_t mapping_of(uint64_t address, void **start) {
    char text[512];
    uint64_t number = 0, from = 0;
    long read, file = nw_system(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    int field = 0; /* of a line: 0 is the start address, 1 the end address, 2 the rest */
    size_t found = 0;
    while (file >= 0 && !found && (read = nw_system(SYS_read, file, text, sizeof text)) > 0) {
        for (long i = 0; i < read && !found; i++) {
            unsigned digit = (unsigned)text[i] - '0', letter = (unsigned)text[i] - 'a';
            if (text[i] == '\n') {
                field = 0, number = 0;
            } else if (field < 2 && (digit < 10 || letter < 6)) {
                number = number * 16 + (digit < 10 ? digit : letter + 10);
            } else if (field < 2) {
                found = field == 1 && from <= address && address < number ? number - from : 0;
                from = field == 0 ? number : from;
                field++, number = 0;
            }
        }
    }
    if (file >= 0)
        nw_system(SYS_close, file);
    *start = found ? (void *)(uintptr_t)from : NULL;
    return found;
}

/* The recorder finds the main thread's stack itself, since it grows; under an emulator that stack has a fixed size and
 * is looked up here. libc is not asked for the main thread's stack: it would allocate, and this may be called from an
 * allocator that maps its first memory. */
static void log_started(nw_observer *observer) {
    void *stack = NULL;
    size_t bytes = 0;
    pthread_attr_t attributes;
    if (observer->start != NULL && pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &stack, &bytes);
        pthread_attr_destroy(&attributes);
    } else if (observer->start == NULL && nw_emulated()) {
        bytes = mapping_of((uintptr_t)&attributes, &stack);
    }
    nw_line line = {0};
    nw_line_begin(&line, "start");
    nw_line_number(&line, observer->ordinal);
    nw_line_number(&line, observer->tid);
    nw_line_number(&line, (uintptr_t)stack);
    nw_line_number(&line, bytes);
    nw_modules_tls(&line, observer->ordinal);
    nw_event(&line);
}

static void begin(nw_observer *observer) {
    here = observer;
    nw_heap_lane(observer->lane);
    __atomic_store_n(&observer->tid, (uint32_t)nw_system(SYS_gettid, 0), __ATOMIC_RELEASE);
    if (nw_recording())
        log_started(observer);
    if (nw_recording() && nw_emulated())
        nw_announce_thread(observer);
}

nw_observer *nw_here(void) {
    if (nw_unlikely(here == NULL)) {
        sigset_t before;
        hold_signals(&before);
        nw_observer *observer = here == NULL ? take_observer() : NULL;
        if (observer != NULL)
            begin(observer);
        let_signals(&before);
    }
    return here;
}

/* For lack of memory even for a sink: shared by all threads; its counts are not read. */
static nw_thread *last_resort(void) {
    static nw_slot window[NW_WINDOW_SLOTS];
    static nw_thread_header header;
    static nw_thread thread = {.window = window, .header = &header, .until_slice = INT64_MAX};
    nw_window_clear(window);
    return nw_self = &thread;
}

static nw_thread *attach(void) {
    if (nw_recording() && !nw_emulated() && !nw_touched_prepare())
        nw_switch_off("out of address space");
    nw_observer *observer = nw_here();
    if (observer == NULL || !nw_thread_open(observer)) {
        nw_switch_off("out of address space");
        return last_resort();
    }
    return nw_self = &observer->thread;
}

nw_thread *nw_thread_attach(void) {
    sigset_t before;
    hold_signals(&before);
    nw_thread *thread = nw_self != NULL ? nw_self : attach();
    let_signals(&before);
    return thread;
}

/* In the forked child, which has one thread: it becomes the first thread of a new process image, and keeps the
 * addresses of its window and counters. */
void nw_threads_after_fork(void) {
    while (all != NULL) {
        nw_observer *observer = all;
        all = observer->next;
        if (observer != here)
            release(observer);
    }
    hand = NULL;
    process = nw_system(SYS_getpid, 0);
    ordinals = here != NULL;
    if (here == NULL)
        return;
    here->ordinal = 0;
    here->openmp_known = 0;
    memset(here->tickets, 0, sizeof here->tickets);
    here->tid = (uint32_t)nw_system(SYS_gettid, 0);
    here->next = NULL;
    all = here;
    if (nw_recording())
        log_started(here);
    if (nw_recording() && nw_emulated())
        nw_announce_thread(here);
    if (nw_self == NULL)
        return;
    if (!nw_thread_reopen(here)) {
        nw_switch_off("out of memory after fork");
        last_resort();
    }
}

/* ---- pthread_create, thrd_create. The creating thread assigns the ordinal, so that ordinals do not depend on which
 * new thread runs first. ---- */

/* The C library's functions. */
static struct {
    __typeof__(&pthread_create) create;
    __typeof__(&thrd_create) standard;
} next;

/* Done early: once there are threads, another one may hold the loader's lock while it waits for this one. */
__attribute__((constructor(101))) static void look_up(void) {
    next.standard = (__typeof__(next.standard))dlsym(RTLD_NEXT, "thrd_create");
    next.create = (__typeof__(next.create))dlsym(RTLD_NEXT, "pthread_create");
}

/* The observer of a thread that is about to be created; null if the thread is not counted. */
static nw_observer *expect(void *(*start)(void *), void *argument) {
    if (next.create == NULL) /* called by a library constructor that ran before ours */
        look_up();
    nw_look_for_copy();
    nw_observer *creator = nw_recording() ? nw_here() : NULL;
    nw_observer *observer = creator == NULL ? NULL : take_observer();
    if (observer != NULL) {
        nw_modules_check();
        observer->start = start;
        observer->argument = argument;
        log_created(observer, creator);
    }
    return observer;
}

/* In a repeated recording the first threads begin after a random delay, so that they arrive in another order. If a
 * program assigns parts of the data in order of arrival, its threads then get other parts than before. Later threads
 * are not delayed, since they are often created one after the other. */
#define DELAYED 256u
#define LONGEST_DELAY_NS 50000000u

static uint64_t arrival; /* the seed; 0: no delays */

__attribute__((constructor(101))) static void know_arrival(void) {
    const char *seed = getenv("NODEWISE_ARRIVAL");
    arrival = seed != NULL ? strtoul(seed, NULL, 10) : 0;
}

static void delay_by(struct timespec delay) {
    while (nw_system(SYS_nanosleep, &delay, &delay) == -EINTR)
        ;
}

static void arrive(const nw_observer *observer) {
    if (arrival == 0 || observer->ordinal >= DELAYED)
        return;
    if (arrival == 1) { /* reverse order: with random delays two threads keep their order in half of all cases */
        struct timespec later = {.tv_nsec = (long)(LONGEST_DELAY_NS / (observer->ordinal + 1))};
        delay_by(later);
        return;
    }
    uint64_t mixed = (arrival * DELAYED + observer->ordinal) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 31) * 0xbf58476d1ce4e5b9u;
    delay_by((struct timespec){.tv_nsec = (long)((mixed >> 32) % LONGEST_DELAY_NS)});
}

static void *run_thread(void *opaque) {
    nw_observer *observer = opaque;
    void *(*start)(void *) = observer->start;
    void *argument = observer->argument;
    begin(observer);
    arrive(observer);
    return start(argument);
}

NW_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                             void *argument) {
    nw_observer *observer = expect(start, argument);
    if (observer == NULL)
        return next.create(thread, attributes, start, argument);
    int error = next.create(thread, attributes, run_thread, observer);
    if (error != 0)
        __atomic_store_n(&observer->vacant, 1, __ATOMIC_RELEASE);
    return error;
}

static int run_thrd(void *opaque) {
    nw_observer *observer = opaque;
    thrd_start_t start = (thrd_start_t)(void *)observer->start;
    void *argument = observer->argument;
    begin(observer);
    arrive(observer);
    return start(argument);
}

NW_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument) {
    nw_observer *observer = expect((void *(*)(void *))(void *)start, argument);
    if (observer == NULL)
        return next.standard(thread, start, argument);
    int result = next.standard(thread, run_thrd, observer);
    if (result != thrd_success)
        __atomic_store_n(&observer->vacant, 1, __ATOMIC_RELEASE);
    return result;
}
