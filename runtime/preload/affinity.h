/* The affinity masks that the program sees where its threads are bound by us. */
#ifndef NODEWISE_PRELOAD_AFFINITY_H
#define NODEWISE_PRELOAD_AFFINITY_H

#include <pthread.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { NW_CPUS = 8192 }; /* bits of our masks */

typedef struct nw_cpus {
    unsigned long words[NW_CPUS / 8 / sizeof(unsigned long)];
} nw_cpus;

/* To be called at the start of the process, once the table is known. */
void nw_affinity_start(void);
/* Where the mask of a thread that is about to be created comes from. Only with NW_FROM_BEFORE, the process's original
 * mask, may the thread be bound. `caller` is the code that called pthread_create. The result has to be passed to
 * nw_affinity_begins in the new thread. */
typedef enum nw_inherited { NW_FROM_BEFORE, NW_BY_RUNTIME, NW_BY_PROGRAM } nw_inherited;
nw_inherited nw_affinity_inherited(const pthread_attr_t *attributes, const void *caller);
void nw_affinity_begins(nw_inherited inherited);
/* Binds the calling thread, if the CPU is in the original mask. 0, or the negative error number. */
int nw_affinity_bind(uint32_t cpu);
/* Moves the calling thread to a CPU without binding it; 0 if the CPU is not in the original mask. */
int nw_affinity_visit(uint32_t cpu);

#pragma GCC visibility pop
#endif
