#define _GNU_SOURCE
#include "vcpus.h"

#include "regions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

_Alignas(64) nw_vcpu nw_vcpus[NW_VCPUS + 1];
static unsigned opened; /* the highest number used so far, plus 1 */
static uint64_t ordinals;
static const char no_vcpu[] = "more threads at a time than can be counted";
static nw_slot nothing[NW_WINDOW_SLOTS];

/* ---- The process image: what counters.c, thread_files.c and others use of it. ---- */

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

void nw_image_enter(const nw_thread_info *info) {
    uncounted = false;
    state = info->state;
    nw_control_page = info->control;
    nw_regions_known(info->outlined);
    if (strcmp(nw_folder, info->folder) == 0)
        return;
    strncpy(nw_folder, info->folder, sizeof nw_folder - 1);
    nw_touched_forget();
    if (!nw_touched_prepare())
        nw_switch_off("out of address space");
}

/* ---- Virtual CPUs. ---- */

static nw_observer *vacant; /* observers of ended threads, for new ones */
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

static void empty(nw_vcpu *vcpu) { *vcpu = (nw_vcpu){.window = nothing}; }

void nw_vcpu_open(unsigned vcpu) {
    if (nothing[0].key != NW_KEY_NONE)
        nw_window_clear(nothing);
    empty(nw_vcpu_of(vcpu));
    if (vcpu >= NW_VCPUS) {
        nw_switch_off(no_vcpu);
        return;
    }
    unsigned known = __atomic_load_n(&opened, __ATOMIC_RELAXED);
    while (known <= vcpu &&
           !__atomic_compare_exchange_n(&opened, &known, vcpu + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    nw_vcpus[vcpu].ordinal = __atomic_fetch_add(&ordinals, 1, __ATOMIC_RELAXED);
}

void nw_vcpu_close(unsigned vcpu) {
    nw_observer *observer = nw_vcpu_of(vcpu)->observer;
    empty(nw_vcpu_of(vcpu));
    if (observer != NULL)
        leave_vacant(observer);
}

void nw_vcpus_forget(void) {
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); /* a thread that held it does not exist in the child */
    for (unsigned i = 0; i < opened; i++)
        nw_vcpu_close(i);
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

/* The program may contain a mark by accident, so the memory is read with checks. */
static bool read_info(uint64_t address, nw_thread_info *info) {
    struct iovec to = {info, sizeof *info}, from = {(void *)address, sizeof *info};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof *info &&
           info->magic == NW_THREAD_INFO_MAGIC && info->version == NW_LAYOUT_VERSION;
}

bool nw_vcpu_announced(unsigned vcpu, uint64_t address) {
    nw_thread_info info;
    if (!read_info(address, &info))
        return false;
    ((nw_thread_info *)address)->taken = 1;
    nw_vcpu_assign(vcpu, &info);
    return true;
}

void nw_vcpu_assign(unsigned vcpu, const nw_thread_info *info) {
    nw_vcpu_close(vcpu);
    nw_image_enter(info);
    if (vcpu >= NW_VCPUS) {
        nw_switch_off(no_vcpu);
        return;
    }
    nw_observer *observer = take_vacant();
    if (observer == NULL) {
        nw_switch_off("out of memory");
        return;
    }
    observer->ordinal = info->ordinal;
    observer->tid = info->tid;
    observer->thread.observer = observer;
    if (!nw_thread_open(observer)) {
        nw_switch_off("out of address space");
        return;
    }
    nw_vcpus[vcpu].observer = observer;
    nw_vcpus[vcpu].window = observer->thread.window;
    nw_vcpus[vcpu].region = nw_regions_current(vcpu);
}
