#define _GNU_SOURCE
#include "write.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_SET_BYTES 8

long nw_write(int file, const struct iovec *parts, int count) {
    struct timespec none = {0};
    int errno_before = errno;
    uint64_t raised = 1ull << (SIGPIPE - 1) | 1ull << (SIGXFSZ - 1), before = 0, pending = 0;
    int held = syscall(SYS_rt_sigprocmask, SIG_BLOCK, &raised, &before, KERNEL_SET_BYTES) == 0;
    long written = -EPERM; /* if signals cannot be blocked (a seccomp filter of the program), nothing is written */
    if (held) {
        syscall(SYS_rt_sigpending, &pending, KERNEL_SET_BYTES);
        written = count == 1 ? syscall(SYS_write, file, parts->iov_base, parts->iov_len)
                             : syscall(SYS_writev, file, parts, count);
        written = written < 0 ? -errno : written;
        /* A signal that was pending before is the program's own. */
        uint64_t taken = (written == -EPIPE   ? 1ull << (SIGPIPE - 1)
                          : written == -EFBIG ? 1ull << (SIGXFSZ - 1)
                                              : 0) &
                         ~pending;
        if (taken)
            syscall(SYS_rt_sigtimedwait, &taken, NULL, &none, KERNEL_SET_BYTES);
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, KERNEL_SET_BYTES);
    }
    errno = errno_before;
    return written;
}
