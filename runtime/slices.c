#define _GNU_SOURCE
#include "counters.h"
#include "observer.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#define QUANTA 64 /* a thread reports its accesses after this part of a slice */
#define PATIENCE_NS 100000000

static uint64_t accesses; /* of all threads, as far as they have reported them */

int64_t nw_slice_budget(nw_observer *observer) {
    if (!nw_recording() || nw_control_page->slicing != NW_SLICE_ACCESSES)
        return INT64_MAX;
    observer->quantum = (int64_t)((nw_control_page->slice_accesses + QUANTA - 1) / QUANTA);
    return observer->quantum;
}

static bool recorder_answers(void) {
    return __atomic_load_n(&nw_control_page->recorder_alive, __ATOMIC_ACQUIRE) &&
           nw_system(SYS_kill, nw_control_page->recorder_pid, 0) != -ESRCH;
}

/* Asks for a snapshot and waits until it is complete, or the recorder has ended. */
void nw_slice_cut(void) {
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

void nw_slice_reached(nw_thread *thread) {
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
        nw_slice_cut();
}

/* Charges the accesses to pages that are still in the window; the others were charged when the page left. */
void nw_slice_charge(nw_thread *thread) {
    for (uint32_t i = 0; i < NW_WINDOW_SLOTS; i++) {
        nw_slot *slot = &thread->window[i];
        if (slot->key == NW_KEY_NONE)
            continue;
        uint64_t now = slot->counter->reads + slot->counter->writes;
        thread->until_slice -= (int64_t)(now - *nw_paced(thread, slot));
        *nw_paced(thread, slot) = now;
    }
    if (thread->until_slice <= 0)
        nw_slice_reached(thread);
}
