/* The process's threads, for those who bind and show them. */
#ifndef NODEWISE_THREADS_H
#define NODEWISE_THREADS_H

#include <sys/types.h>

typedef struct nw_task {
    pid_t tid;
    long long started; /* clock ticks */
} nw_task;

/* In the order they were started, into memory to be freed; a negative status with a message if none
 * can be had. */
int nw_tasks(nw_task **list);
/* The CPU that a thread runs on, or last ran on; -1 if it is gone. */
int nw_running_on(pid_t tid);

#endif
