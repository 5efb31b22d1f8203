#define _GNU_SOURCE
#include "loaded.h"
#include "observer.h"

#include <signal.h>

static uint32_t regions; /* ids given out */

/* Functions of the OpenMP runtime that the program uses, whichever it is. */
static struct {
    int (*omp_get_thread_num)(void);
    int (*omp_get_num_threads)(void);
    int (*omp_get_level)(void);
} openmp;

/* Not by dlsym: a thread that opens a library may hold the loader's lock while it waits, in the library's constructor,
 * for an OpenMP team. */
static void find_openmp(void) {
    openmp.omp_get_thread_num = (int (*)(void))nw_loaded_function("omp_get_thread_num");
    openmp.omp_get_num_threads = (int (*)(void))nw_loaded_function("omp_get_num_threads");
    __atomic_store_n(&openmp.omp_get_level, (int (*)(void))nw_loaded_function("omp_get_level"), __ATOMIC_RELEASE);
}

static void log_schedule(uint32_t region, uint32_t schedule) {
    nw_line line = {0};
    if (schedule == 0)
        return;
    nw_line_begin(&line, "schedule");
    nw_line_number(&line, region);
    nw_line_number(&line, schedule);
    nw_event(&line);
}

uint32_t nw_region_register(nw_region *region) {
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
        log_schedule(id, region->schedule);
    }
    if (fresh && openmp.omp_get_level == NULL)
        find_openmp(); /* before other threads of the team leave the region */
    __atomic_store_n(&region->id, id, __ATOMIC_RELEASE);
    nw_threads_unlock(&before);
    return id;
}

static void log_openmp_number(nw_observer *observer) {
    observer->openmp_known = 1;
    nw_line line = {0};
    nw_line_begin(&line, "openmp");
    nw_line_number(&line, observer->ordinal);
    nw_line_number(&line, (uint64_t)openmp.omp_get_thread_num());
    nw_event(&line);
}

/* The last thread of the team to leave ends the region. */
static bool last_of_team(const nw_region *region) {
    static uint32_t left[1024];
    uint32_t *mine = &left[region->id % 1024];
    uint32_t team = openmp.omp_get_num_threads == NULL ? 1 : (uint32_t)openmp.omp_get_num_threads();
    if (__atomic_add_fetch(mine, 1, __ATOMIC_ACQ_REL) < team)
        return false;
    __atomic_store_n(mine, 0, __ATOMIC_RELEASE);
    return true;
}

void nw_region_left(nw_thread *thread, const nw_region *region) {
    nw_observer *observer = thread->observer;
    if (observer == NULL || !nw_recording())
        return;
    nw_modules_check();
    if (!observer->openmp_known && openmp.omp_get_level != NULL && openmp.omp_get_level() == 1)
        log_openmp_number(observer);
    if (nw_control_page->slicing == NW_SLICE_REGION && last_of_team(region))
        nw_slice_cut();
    if (thread->until_slice != INT64_MAX)
        nw_slice_charge(thread);
}
