#define _GNU_SOURCE
#include "observer.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>


_Thread_local nw_thread *nw_self __attribute__((tls_model("initial-exec")));
static _Thread_local nw_observer *here __attribute__((tls_model("initial-exec")));

static uint32_t ordinals;
static nw_observer *all;
static uint32_t count, sweep_at = 64;
static int locked;

/* Signals stay out while we hold the lock: a handler may attach its thread. */
void nw_threads_lock(sigset_t *before)
{
    sigset_t every;
    memset(&every, 0xff, sizeof every);
    nw_system(SYS_rt_sigprocmask, SIG_BLOCK, &every, before, 8);
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        nw_system(SYS_sched_yield, 0);
}

void nw_threads_unlock(const sigset_t *before)
{
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
    nw_system(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, 8);
}

static nw_observer *make_observer(void)
{
    nw_observer *observer = nw_map_private(sizeof *observer);
    if (observer != NULL) {
        observer->ordinal = __atomic_fetch_add(&ordinals, 1, __ATOMIC_RELAXED);
        observer->thread.observer = observer;
        observer->thread.until_slice = INT64_MAX;
    }
    return observer;
}

static void release(nw_observer *observer)
{
    nw_thread_close(observer);
    nw_unmap(observer, sizeof *observer);
}

static bool is_gone(const nw_observer *observer)
{
    return nw_system(SYS_tgkill, nw_system(SYS_getpid, 0), observer->tid, 0) == -ESRCH;
}

/* Threads are not told apart from their destructors' end, so memory of finished ones is taken back
 * when their number has doubled. */
static void sweep(void)
{
    for (nw_observer **link = &all; *link != NULL;) {
        nw_observer *observer = *link;
        if (is_gone(observer)) {
            *link = observer->next;
            release(observer);
            count--;
        } else {
            link = &observer->next;
        }
    }
    sweep_at = count * 2 + 64;
}

static void enlist(nw_observer *observer)
{
    sigset_t before;
    nw_threads_lock(&before);
    if (count >= sweep_at)
        sweep();
    observer->next = all;
    all = observer;
    count++;
    nw_threads_unlock(&before);
}

/* ---- What the log says about a thread. ---- */

static int log_tls(struct dl_phdr_info *info, size_t size, void *opaque)
{
    (void)size;
    (void)opaque;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_TLS || info->dlpi_tls_data == NULL)
            continue;
        nw_line line = {0};
        nw_line_begin(&line, "tls");
        nw_line_number(&line, here->ordinal);
        nw_line_number(&line, (uintptr_t)info->dlpi_tls_data);
        nw_line_number(&line, info->dlpi_phdr[i].p_memsz);
        nw_line_number(&line, info->dlpi_addr);
        nw_event(&line);
    }
    return 0;
}

static void log_created(const nw_observer *observer, const nw_observer *creator)
{
    nw_line line = {0};
    nw_line_begin(&line, "thread");
    nw_line_number(&line, observer->ordinal);
    nw_line_number(&line, creator->ordinal);
    nw_line_number(&line, (uintptr_t)observer->start);
    nw_event(&line);
}

/* The main thread's stack is the recorder's to find, as it grows; under an emulator it has one size and
 * other neighbours. */
static void log_started(nw_observer *observer)
{
    void *stack = NULL;
    size_t bytes = 0;
    pthread_attr_t attributes;
    if ((observer->start != NULL || nw_emulated()) && pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &stack, &bytes);
        pthread_attr_destroy(&attributes);
    }
    nw_line line = {0};
    nw_line_begin(&line, "start");
    nw_line_number(&line, observer->ordinal);
    nw_line_number(&line, observer->tid);
    nw_line_number(&line, (uintptr_t)stack);
    nw_line_number(&line, bytes);
    nw_event(&line);
    dl_iterate_phdr(log_tls, NULL);
}

static void begin(nw_observer *observer)
{
    here = observer;
    observer->tid = (uint32_t)nw_system(SYS_gettid, 0);
    enlist(observer);
    if (nw_recording())
        log_started(observer);
    if (nw_recording() && nw_emulated())
        nw_seat_take(observer);
}

nw_observer *nw_here(void)
{
    if (nw_unlikely(here == NULL)) {
        nw_observer *observer = make_observer();
        if (observer == NULL)
            return NULL;
        begin(observer);
    }
    return here;
}

/* When there is no memory even for a sink: shared by all threads, counts nothing anybody reads. */
static nw_thread *last_resort(void)
{
    static nw_slot window[NW_WINDOW_SLOTS];
    static nw_thread_header header;
    static nw_thread thread = {.window = window, .header = &header, .until_slice = INT64_MAX};
    nw_window_clear(window);
    return nw_self = &thread;
}

nw_thread *nw_thread_attach(void)
{
    if (nw_self != NULL)
        return nw_self;
    if (nw_recording())
        nw_touched_prepare();
    nw_observer *observer = nw_here();
    if (observer == NULL || !nw_thread_open(observer)) {
        nw_switch_off("out of address space");
        return last_resort();
    }
    return nw_self = &observer->thread;
}

/* In the child: one thread, the first of a new process image, at the same addresses. */
void nw_threads_after_fork(void)
{
    while (all != NULL) {
        nw_observer *observer = all;
        all = observer->next;
        if (observer != here)
            release(observer);
    }
    count = 0;
    ordinals = here != NULL;
    if (here == NULL)
        return;
    here->ordinal = 0;
    here->openmp_known = 0;
    here->tid = (uint32_t)nw_system(SYS_gettid, 0);
    here->next = NULL;
    all = here;
    count = 1;
    if (nw_recording())
        log_started(here);
    if (nw_recording() && nw_emulated())
        nw_seat_take(here);
    if (nw_self == NULL)
        return;
    nw_thread_release(&here->thread);
    if (!nw_thread_reopen(here)) {
        nw_switch_off("out of memory after fork");
        last_resort();
    }
}

/* ---- pthread_create, thrd_create: the ordinal is the creator's to give, so that it does not race. ---- */

/* Null when it is not to be counted. */
static nw_observer *expect(void *(*start)(void *), void *argument)
{
    nw_observer *creator = nw_recording() ? nw_here() : NULL;
    nw_observer *observer = creator == NULL ? NULL : make_observer();
    if (observer != NULL) {
        observer->start = start;
        observer->argument = argument;
        log_created(observer, creator);
    }
    return observer;
}

static void *run_thread(void *opaque)
{
    nw_observer *observer = opaque;
    void *(*start)(void *) = observer->start;
    void *argument = observer->argument;
    begin(observer);
    return start(argument);
}

NW_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                             void *argument)
{
    static __typeof__(&pthread_create) next;
    if (next == NULL)
        next = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_create");
    nw_observer *observer = expect(start, argument);
    if (observer == NULL)
        return next(thread, attributes, start, argument);
    int error = next(thread, attributes, run_thread, observer);
    if (error != 0)
        nw_unmap(observer, sizeof *observer);
    return error;
}

static int run_thrd(void *opaque)
{
    nw_observer *observer = opaque;
    thrd_start_t start = (thrd_start_t)(void *)observer->start;
    void *argument = observer->argument;
    begin(observer);
    return start(argument);
}

NW_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    static __typeof__(&thrd_create) next;
    if (next == NULL)
        next = (__typeof__(next))dlsym(RTLD_NEXT, "thrd_create");
    nw_observer *observer = expect((void *(*)(void *))(void *)start, argument);
    if (observer == NULL)
        return next(thread, start, argument);
    int result = next(thread, run_thrd, observer);
    if (result != thrd_success)
        nw_unmap(observer, sizeof *observer);
    return result;
}
