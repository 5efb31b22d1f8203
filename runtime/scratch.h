/* Buffers for data that is too large for the stack. This code runs on the program's stacks: on what is left of one of
 * PTHREAD_STACK_MIN, or of a signal handler's 8 KiB. Buffers can be taken and given back anywhere, also in nested
 * signal handlers. A child of vfork takes buffers of its parent, and gives them back before it executes a program. */
#ifndef NODEWISE_SCRATCH_H
#define NODEWISE_SCRATCH_H

enum { NW_SCRATCH_BYTES = 4096 };

/* NW_SCRATCH_BYTES, not initialised; null: out of memory. */
__attribute__((visibility("hidden"))) void *nw_scratch_take(void);
/* Null is allowed. */
__attribute__((visibility("hidden"))) void nw_scratch_give(void *room);

#endif
