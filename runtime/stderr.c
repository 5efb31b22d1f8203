#define _GNU_SOURCE
#include "stderr.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_SET_BYTES 8

static struct {
    int known; /* start was called, and there was one */
    int absent; /* start was called, and descriptor 2 was closed */
    dev_t device;
    ino_t inode;
} first;

static int identity(struct stat *status) { return syscall(SYS_fstat, STDERR_FILENO, status) == 0; }

void nw_stderr_start(void) {
    struct stat status;
    int before = errno;
    if (identity(&status)) {
        first.device = status.st_dev;
        first.inode = status.st_ino;
        first.known = 1;
    } else {
        first.absent = 1;
    }
    errno = before;
}

static int is_the_same(void) {
    struct stat status;
    if (first.absent || !identity(&status))
        return 0;
    return !first.known || (status.st_dev == first.device && status.st_ino == first.inode);
}

/* A pipe that is full would stop the program until someone reads. */
static int is_ready(void) {
    struct pollfd stream = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct timespec none = {0};
    return syscall(SYS_ppoll, &stream, 1, &none, NULL, KERNEL_SET_BYTES) == 1 && stream.revents == POLLOUT;
}

/* SIGPIPE would end the program where its reader has gone: it is held back, and taken if the write raised it. */
static void write_without_signal(const char *text, size_t length) {
    struct timespec none = {0};
    uint64_t pipe = 1ull << (SIGPIPE - 1), before, pending = 0;
    if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &pipe, &before, KERNEL_SET_BYTES) != 0)
        return;
    syscall(SYS_rt_sigpending, &pending, KERNEL_SET_BYTES);
    long written = syscall(SYS_write, STDERR_FILENO, text, length);
    if (written < 0 && errno == EPIPE && !(pending & pipe))
        syscall(SYS_rt_sigtimedwait, &pipe, NULL, &none, KERNEL_SET_BYTES);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, KERNEL_SET_BYTES);
}

void nw_stderr_line(const char *text, size_t length) {
    int before = errno;
    if (is_the_same() && is_ready())
        write_without_signal(text, length);
    errno = before;
}
