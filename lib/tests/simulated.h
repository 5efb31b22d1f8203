/* A simulated machine of two nodes, of one CPU each: the files that the library reads about the machine, and its system
 * calls for placement, are answered here, so that a chosen call can be made to fail. The linker must wrap open, syscall
 * and calloc. */
#ifndef SIMULATED_H
#define SIMULATED_H

#include "nodewise.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MODE_DEFAULT = 0, MODE_PREFERRED = 1, MODE_INTERLEAVE = 3 };

static int mappings_left = -1, memory_left = -1; /* calls until ENOMEM; -1: no limit */
static int defaults; /* calls that restored the kernel's default policy */
static int interleaved; /* calls that made the thread interleave */
static long thread_policy;
static void (*before_protecting)(void); /* called before mprotect, also in a signal's handler */
static void (*before_counting)(void); /* called before the kernel is asked where pages are */
static int others_node = -1; /* the node reported for all pages; -1: the one they were moved to */

int __real_open(const char *path, int flags, ...);
long __real_syscall(long number, ...);
void *__real_calloc(size_t count, size_t size);

static int file_of(const char *text) {
    int file = memfd_create("made up", 0);
    return write(file, text, strlen(text)) < 0 || lseek(file, 0, SEEK_SET) < 0 ? -1 : file;
}

int __wrap_open(const char *path, int flags, ...) {
    static const char *const texts[][2] = {{"/node/has_memory", "0-1\n"},
                                           {"/node/online", "0-1\n"},
                                           {"/node0/cpulist", "0\n"},
                                           {"/node1/cpulist", "1\n"},
                                           {"/node0/distance", "10 20\n"},
                                           {"/node1/distance", "20 10\n"},
                                           {"/self/status", "Mems_allowed_list:\t0-1\n"},
                                           {"hugepage/enabled", "always madvise [never]\n"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strstr(path, texts[i][0]))
            return file_of(texts[i][1]);
    return __real_open(path, flags);
}

static unsigned char *lies_on(const char *page) {
    static unsigned char node[1 << 16]; /* indexed by the lower bits of a page's number */
    return &node[(uintptr_t)page / nw_page_bytes() % sizeof node];
}

/* mbind: pages go to the node that is preferred. */
static long bound(char *start, long bytes, long mode, const unsigned long *nodes) {
    defaults += mode == MODE_DEFAULT;
    for (char *page = start; mode == MODE_PREFERRED && page < start + bytes; page += nw_page_bytes())
        *lies_on(page) = *nodes >> 1 & 1;
    if (mode != MODE_PREFERRED || mappings_left < 0 || mappings_left-- > 0)
        return 0;
    mappings_left = -1;
    errno = ENOMEM;
    return -1;
}

/* move_pages */
static long moved(long count, char *const *pages, const int *nodes, int *status) {
    for (long i = 0; i < count; i++) {
        unsigned char *on = lies_on(pages[i]);
        if (nodes)
            *on = (unsigned char)nodes[i];
        status[i] = others_node >= 0 ? others_node : *on;
    }
    return 0;
}

static long answered(long number, const long *a) {
    if (number == SYS_mbind)
        return bound((char *)a[0], a[1], a[2], (const unsigned long *)a[3]);
    if (number == SYS_move_pages && before_counting)
        before_counting();
    if (number == SYS_move_pages)
        return moved(a[1], (char **)a[2], (int *)a[3], (int *)a[4]);
    if (number == SYS_set_mempolicy) {
        interleaved += a[0] == MODE_INTERLEAVE;
        thread_policy = a[0];
    }
    return 0;
}

/* What places is answered one call at a time; the others are made, also in a signal's handler. */
long __wrap_syscall(long number, ...) {
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    va_list arguments;
    long a[6];
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_mprotect && before_protecting)
        before_protecting();
    if (number != SYS_mbind && number != SYS_move_pages && number != SYS_set_mempolicy && number != SYS_get_mempolicy)
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    pthread_mutex_lock(&one);
    long answer = answered(number, a);
    pthread_mutex_unlock(&one);
    return answer;
}

void *__wrap_calloc(size_t count, size_t size) {
    return memory_left >= 0 && memory_left-- == 0 ? NULL : __real_calloc(count, size);
}

#endif
