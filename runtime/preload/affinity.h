/* Which CPUs the program knows of, where its threads are bound on its behalf. */
#ifndef NODEWISE_PRELOAD_AFFINITY_H
#define NODEWISE_PRELOAD_AFFINITY_H

#include <pthread.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { NW_CPUS = 8192 }; /* as many as a mask of ours has room for */

typedef struct nw_cpus {
    unsigned long words[NW_CPUS / 8 / sizeof(unsigned long)];
} nw_cpus;

/* At the start of the process, once the table is known. */
void nw_affinity_start(void);
/* Whether a thread that the caller creates has the CPUs from before, so that it may be bound; `caller` is the
 * code that called pthread_create. What is returned goes to nw_affinity_begins in the new thread. */
typedef enum nw_inherited { NW_FROM_BEFORE, NW_BY_RUNTIME, NW_BY_PROGRAM } nw_inherited;
nw_inherited nw_affinity_inherited(const pthread_attr_t *attributes, const void *caller);
void nw_affinity_begins(nw_inherited inherited);
/* Binds the calling thread, if the CPU was one of its own before. 0, or the negative error number. */
int nw_affinity_bind(uint32_t cpu);
/* Has the calling thread go to a CPU without staying bound to it; 0 if that was none of its own. */
int nw_affinity_visit(uint32_t cpu);

#pragma GCC visibility pop
#endif
