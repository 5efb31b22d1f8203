/* What a program that is started must not inherit of a thread, and whether it can go on with a recording. */
#ifndef NODEWISE_STARTING_H
#define NODEWISE_STARTING_H

#pragma GCC visibility push(hidden)

/* Called in the thread that starts a program, right before: puts aside what is ours and says what that was, 0 for
 * nothing. In a child of vfork it changes no memory. Null where nothing of a thread is ours. */
extern unsigned (*nw_put_aside)(void);
/* Takes it up again, when the program has been started or could not be; errno stays. */
extern void (*nw_take_up)(unsigned what);

/* The process is about to become another program (1), or could not (0). In a child of vfork it changes no memory of its
 * parent's. Null where that makes no difference. */
extern void (*nw_leaves)(int leaves);

/* Why a program started with this environment cannot take part, null if it can. With `reset` its effective ids are
 * what the real ones are now. Itself null where there is nothing to take part in. */
extern const char *(*nw_left_out)(char *const *environment, int reset);
/* `file` is such a program: says so where it would have taken part. */
extern void (*nw_lacks)(const char *why, const char *file);

/* Whether this environment's LD_PRELOAD names our library where it can be read from here. */
int nw_is_preloaded(char *const *environment);

#pragma GCC visibility pop
#endif
