/* System calls and descriptors inside the observed program. */
#define _GNU_SOURCE
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

long nw_call(long number, long a, long b, long c, long d, long e, long f) {
    int before = errno;
    long result = syscall(number, a, b, c, d, e, f);
    if (result == -1)
        result = -errno;
    errno = before;
    return result;
}

bool nw_failed(long result) { return result < 0 && result > -4096; }

/* Thousands of threads may begin at once. They must neither use up the program's descriptors nor fail because
 * this library holds the last ones, so at most DESCRIPTORS are held at a time, and further threads wait. The
 * wait is bounded: the thread that holds a descriptor may have been cancelled, or interrupted by the very
 * signal handler that waits. */
#define DESCRIPTORS 32
#define ATTEMPTS 2000
#define PAUSE_NS 50000
static uint32_t held;

long nw_open(const char *path, int flags) {
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int attempt = 0;; attempt++) {
        uint32_t others = __atomic_fetch_add(&held, 1, __ATOMIC_RELAXED);
        bool last = attempt == ATTEMPTS;
        long file = -EMFILE;
        if (others < DESCRIPTORS || last)
            file = nw_system(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0644);
        if (!nw_failed(file))
            return file;
        __atomic_fetch_sub(&held, 1, __ATOMIC_RELAXED);
        if (file != -EMFILE || others == 0 || last)
            return file;
        nw_system(SYS_nanosleep, &pause, NULL);
    }
}

void nw_close(long file) {
    nw_system(SYS_close, file);
    __atomic_fetch_sub(&held, 1, __ATOMIC_RELAXED);
}

void nw_descriptors_forget(void) { __atomic_store_n(&held, 0, __ATOMIC_RELAXED); }
