/* Lists the threads of the process, to be bound and shown. */
#ifndef NODEWISE_THREADS_H
#define NODEWISE_THREADS_H

#include <sys/types.h>

typedef struct nw_task {
    pid_t tid;
    long long started; /* clock ticks */
} nw_task;

/* Lists the threads in the order in which they were started, in memory that the caller frees. Returns a
 * status, with a message if it is not NW_OK; there are then no threads in the list. */
int nw_tasks(nw_task **list, int *count);
/* The CPU that a thread runs on, or last ran on; -1 if it is gone. */
int nw_running_on(pid_t tid);

#endif
