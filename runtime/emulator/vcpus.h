/* The thread that runs on each virtual CPU, and the process image that it counts for. */
#ifndef NODEWISE_EMULATOR_VCPUS_H
#define NODEWISE_EMULATOR_VCPUS_H

#include "../counters.h"
#include "../observer.h"
#include "thread_info.h"

/* What an access needs of its virtual CPU: one cache line. */
typedef struct nw_vcpu {
    nw_slot *window;       /* an empty one while no thread is known here */
    uint64_t region;       /* as in nw_thread */
    nw_observer *observer; /* null while no thread is known here */
    struct {
        uint64_t next, end; /* the missing part of an access in pieces, or 0 */
    } pieces[2];            /* read, written */
    uint64_t ordinal; /* in the order of creation, while no thread is known here */
} nw_vcpu;

/* More threads than Linux permits by default. However, QEMU numbers a new thread one above the highest live one, so a
 * chain of threads, each of which starts the next, can reach this limit. */
#ifndef NW_VCPUS
#define NW_VCPUS (1u << 16)
#endif
extern _Alignas(64) nw_vcpu nw_vcpus[NW_VCPUS + 1]; /* the last one is for all higher numbers, and has no thread */

static inline nw_vcpu *nw_vcpu_of(unsigned vcpu) { return &nw_vcpus[vcpu < NW_VCPUS ? vcpu : NW_VCPUS]; }

void nw_vcpu_open(unsigned vcpu);
void nw_vcpu_close(unsigned vcpu);

/* Reads an nw_thread_info at the address that came with NW_MARK_HERE; false if there is none. */
bool nw_vcpu_announced(unsigned vcpu, uint64_t address);
void nw_vcpu_assign(unsigned vcpu, const nw_thread_info *info);

/* From here on this process counts, and logs, for the thread's process image. */
void nw_image_enter(const nw_thread_info *info);

/* To be called in a copy of a process, and at the end of a process. A copy that has announced no thread by its end was
 * not counted, which is then reported. Copies that are made to execute another program (`shares`: by vfork or
 * posix_spawn) announce none, and are not reported. */
void nw_image_copied(bool shares);
void nw_image_ends(void);

/* Forgets which threads run on the virtual CPUs: in the child of a fork, until it announces a thread. */
void nw_vcpus_forget(void);

#endif
