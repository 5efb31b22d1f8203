#define _GNU_SOURCE
#include "seats.h"

#include "regions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

_Alignas(64) nw_place nw_places[NW_PLACES + 1];
static unsigned places; /* the highest in use, and one */
static uint64_t ordinals;
static const char no_place[] = "more threads at a time than can be counted";
static nw_slot nothing[NW_WINDOW_SLOTS];

/* ---- The process image, as counters.c and its files ask for it. ---- */

char nw_folder[NW_PATH_BYTES];
nw_control *nw_control_page;
static int *state;

bool nw_recording(void) { return state != NULL && __atomic_load_n(state, __ATOMIC_ACQUIRE) == NW_RECORDING; }

void nw_switch_off(const char *why) {
    int recording = NW_RECORDING;
    if (state == NULL || !__atomic_compare_exchange_n(state, &recording, NW_OFF, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    if (!__atomic_load_n(&nw_control_page->recorder_alive, __ATOMIC_ACQUIRE))
        return;
    nw_mark_truncated(why);
    nw_say_stopped(why);
}

static bool uncounted; /* a copy of a process, with no image of its own so far */

void nw_image_copied(bool shares) { uncounted = !shares && nw_control_page != NULL; }

void nw_image_ends(void) {
    if (uncounted && __atomic_load_n(&nw_control_page->recorder_alive, __ATOMIC_ACQUIRE))
        nw_mark_truncated("a process that was made by clone(2) itself was not counted");
    uncounted = false;
}

void nw_image_enter(const nw_seat *seat) {
    uncounted = false;
    state = seat->state;
    nw_control_page = seat->control;
    nw_regions_known(seat->outlined);
    if (strcmp(nw_folder, seat->folder) == 0)
        return;
    strncpy(nw_folder, seat->folder, sizeof nw_folder - 1);
    nw_touched_forget();
    if (!nw_touched_prepare())
        nw_switch_off("out of address space");
}

/* ---- Places. ---- */

static nw_observer *vacant; /* of threads that have ended, for those to come */
static int locked;

static nw_observer *take_vacant(void) {
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        nw_system(SYS_sched_yield, 0);
    nw_observer *observer = vacant;
    vacant = observer == NULL ? NULL : observer->next;
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
    return observer != NULL ? observer : nw_map_private(NULL, sizeof *observer);
}

static void leave_vacant(nw_observer *observer) {
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        nw_system(SYS_sched_yield, 0);
    observer->next = vacant;
    vacant = observer;
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

static void empty(nw_place *place) { *place = (nw_place){.window = nothing}; }

void nw_place_open(unsigned vcpu) {
    if (nothing[0].key != NW_KEY_NONE)
        nw_window_clear(nothing);
    empty(nw_place_of(vcpu));
    if (vcpu >= NW_PLACES) {
        nw_switch_off(no_place);
        return;
    }
    unsigned known = __atomic_load_n(&places, __ATOMIC_RELAXED);
    while (known <= vcpu &&
           !__atomic_compare_exchange_n(&places, &known, vcpu + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    nw_places[vcpu].ordinal = __atomic_fetch_add(&ordinals, 1, __ATOMIC_RELAXED);
}

void nw_place_close(unsigned vcpu) {
    nw_observer *observer = nw_place_of(vcpu)->observer;
    empty(nw_place_of(vcpu));
    if (observer != NULL)
        leave_vacant(observer);
}

void nw_places_forget(void) {
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); /* whoever held it is not in the child */
    for (unsigned i = 0; i < places; i++)
        nw_place_close(i);
    while (vacant != NULL) {
        nw_observer *observer = take_vacant();
        nw_thread_close(observer);
        nw_unmap(observer, sizeof *observer);
    }
    nw_thread_files_forget();
    nw_descriptors_forget();
    ordinals = 1;
    state = NULL;
    nw_regions_known(NULL);
}

/* The program may use a mark by accident: what is there is looked at with care. */
static bool read_seat(uint64_t address, nw_seat *seat) {
    struct iovec to = {seat, sizeof *seat}, from = {(void *)address, sizeof *seat};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof *seat && seat->magic == NW_SEAT_MAGIC &&
           seat->version == NW_LAYOUT_VERSION;
}

bool nw_place_take(unsigned vcpu, uint64_t address) {
    nw_seat seat;
    if (!read_seat(address, &seat))
        return false;
    ((nw_seat *)address)->taken = 1;
    nw_place_sit(vcpu, &seat);
    return true;
}

void nw_place_sit(unsigned vcpu, const nw_seat *seat) {
    nw_place_close(vcpu);
    nw_image_enter(seat);
    if (vcpu >= NW_PLACES) {
        nw_switch_off(no_place);
        return;
    }
    nw_observer *observer = take_vacant();
    if (observer == NULL) {
        nw_switch_off("out of memory");
        return;
    }
    observer->ordinal = seat->ordinal;
    observer->tid = seat->tid;
    observer->thread.observer = observer;
    if (!nw_thread_open(observer)) {
        nw_switch_off("out of address space");
        return;
    }
    nw_places[vcpu].observer = observer;
    nw_places[vcpu].window = observer->thread.window;
    nw_places[vcpu].region = nw_regions_current(vcpu);
}
