#define _GNU_SOURCE
#include "counters.h"
#include "observer.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#define QUANTA 64 /* looks per slice and thread */
#define PATIENCE_NS 100000000

static uint64_t accesses; /* of all threads, in whole quanta */

int64_t nw_slice_budget(nw_observer *observer)
{
    if (!nw_recording() || nw_control_page->slicing != NW_SLICE_ACCESSES)
        return INT64_MAX;
    observer->quantum = (int64_t)((nw_control_page->slice_accesses + QUANTA - 1) / QUANTA);
    return observer->quantum;
}

static bool recorder_answers(void)
{
    return __atomic_load_n(&nw_control_page->recorder_alive, __ATOMIC_ACQUIRE) &&
           nw_system(SYS_kill, nw_control_page->recorder_pid, 0) != -ESRCH;
}

/* Asks for a snapshot and waits until it is whole. A recorder that died is not waited for. */
static void cut(void)
{
    uint32_t *taken = &nw_control_page->slices_taken;
    uint32_t mine = __atomic_add_fetch(&nw_control_page->slices_requested, 1, __ATOMIC_ACQ_REL);
    nw_system(SYS_futex, &nw_control_page->slices_requested, FUTEX_WAKE, INT32_MAX);
    for (;;) {
        uint32_t seen = __atomic_load_n(taken, __ATOMIC_ACQUIRE);
        if ((int32_t)(seen - mine) >= 0 || !recorder_answers())
            return;
        struct timespec patience = {.tv_nsec = PATIENCE_NS};
        nw_system(SYS_futex, taken, FUTEX_WAIT, seen, &patience);
    }
}

void nw_slice_reached(nw_thread *thread)
{
    nw_observer *observer = thread->observer;
    if (observer == NULL || !nw_recording()) {
        thread->until_slice = INT64_MAX;
        return;
    }
    uint64_t length = nw_control_page->slice_accesses;
    uint64_t made = (uint64_t)(observer->quantum - thread->until_slice);
    thread->until_slice = observer->quantum;
    uint64_t after = __atomic_add_fetch(&accesses, made, __ATOMIC_RELAXED);
    if (after / length != (after - made) / length)
        cut();
}

/* Pages that never leave the window have not been charged to the slice yet. */
static void charge_window(nw_thread *thread)
{
    for (uint32_t i = 0; i < NW_WINDOW_SLOTS; i++) {
        nw_slot *slot = &thread->window[i];
        if (slot->key == NW_KEY_NONE)
            continue;
        uint64_t now = slot->counter->reads + slot->counter->writes;
        thread->until_slice -= (int64_t)(now - *nw_paced(thread, slot));
        *nw_paced(thread, slot) = now;
    }
}

/* ---- Regions. ---- */

static uint32_t regions; /* ids given out */

/* OpenMP's own answers, from whichever runtime the program has. */
static struct {
    int (*omp_get_thread_num)(void);
    int (*omp_get_num_threads)(void);
    int (*omp_get_level)(void);
} openmp;

static void find_openmp(void)
{
    openmp.omp_get_thread_num = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_thread_num");
    openmp.omp_get_num_threads = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_num_threads");
    __atomic_store_n(&openmp.omp_get_level, (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_level"), __ATOMIC_RELEASE);
}

uint32_t nw_region_register(nw_region *region)
{
    sigset_t before;
    nw_threads_lock(&before);
    uint32_t id = __atomic_load_n(&region->id, __ATOMIC_ACQUIRE);
    bool fresh = id == 0 && regions + 1 < NW_REGIONS;
    if (fresh)
        id = ++regions;
    if (fresh && nw_recording()) {
        nw_line line = {0};
        nw_line_begin(&line, "region");
        nw_line_number(&line, id);
        nw_line_number(&line, region->line);
        nw_line_text(&line, region->function);
        nw_line_text(&line, region->file);
        nw_event(&line);
    }
    __atomic_store_n(&region->id, id, __ATOMIC_RELEASE);
    nw_threads_unlock(&before);
    if (fresh && openmp.omp_get_level == NULL)
        find_openmp();
    return id;
}

static void log_openmp_number(nw_observer *observer)
{
    observer->openmp_known = 1;
    nw_line line = {0};
    nw_line_begin(&line, "openmp");
    nw_line_number(&line, observer->ordinal);
    nw_line_number(&line, (uint64_t)openmp.omp_get_thread_num());
    nw_event(&line);
}

/* The last thread of the team to leave ends the region. */
static bool last_of_team(const nw_region *region)
{
    static uint32_t left[1024];
    uint32_t *mine = &left[region->id % 1024];
    uint32_t team = openmp.omp_get_num_threads == NULL ? 1 : (uint32_t)openmp.omp_get_num_threads();
    if (__atomic_add_fetch(mine, 1, __ATOMIC_ACQ_REL) < team)
        return false;
    __atomic_store_n(mine, 0, __ATOMIC_RELEASE);
    return true;
}

void nw_region_left(nw_thread *thread, const nw_region *region)
{
    nw_observer *observer = thread->observer;
    if (observer == NULL || !nw_recording())
        return;
    nw_modules_check();
    if (!observer->openmp_known && openmp.omp_get_level != NULL && openmp.omp_get_level() == 1)
        log_openmp_number(observer);
    if (nw_control_page->slicing == NW_SLICE_REGION && last_of_team(region))
        cut();
    if (thread->until_slice != INT64_MAX) {
        charge_window(thread);
        if (thread->until_slice <= 0)
            nw_slice_reached(thread);
    }
}
