/* What a program must not inherit from the thread that starts it, and whether it can be recorded or placed. */
#ifndef NODEWISE_STARTING_H
#define NODEWISE_STARTING_H

#pragma GCC visibility push(hidden)

/* Called in the thread that starts a program, right before. Replaces the CPU mask and memory policy that we gave the
 * thread by the original ones; returns what has to be restored, 0 for nothing. Changes no memory, which in a child of
 * vfork is its parent's. The pointer is null where we give threads nothing. */
extern unsigned (*nw_put_aside)(void);
/* Restores it when the program was started or could not be; errno stays. */
extern void (*nw_take_up)(unsigned what);

/* The process is about to become another program (1), or could not (0). In a child of vfork it changes no memory of the
 * parent. Null where that makes no difference. */
extern void (*nw_leaves)(int leaves);

/* Why a program started with this environment cannot be recorded or placed; null if it can. With `reset` its effective
 * ids will be the present real ones. The pointer is null where programs are neither recorded nor placed. */
extern const char *(*nw_left_out)(char *const *environment, int reset);
/* Reports that `file` is such a program, if it would have been recorded or placed. */
extern void (*nw_lacks)(const char *why, const char *file);

/* Whether this environment's LD_PRELOAD names our library where it can be read from here. */
int nw_is_preloaded(char *const *environment);

#pragma GCC visibility pop
#endif
