/* Rooms for what is too large for the program's stack: ours is what a thread of PTHREAD_STACK_MIN, or a signal handler
 * on a stack of 8 KiB, has left. Taken and given back anywhere, by handlers within others too; a child of vfork takes
 * its parent's and gives them back before it executes. */
#ifndef NODEWISE_SCRATCH_H
#define NODEWISE_SCRATCH_H

enum { NW_SCRATCH_BYTES = 4096 };

/* NW_SCRATCH_BYTES of any content; null: memory is out. */
__attribute__((visibility("hidden"))) void *nw_scratch_take(void);
/* Takes null too. */
__attribute__((visibility("hidden"))) void nw_scratch_give(void *room);

#endif
