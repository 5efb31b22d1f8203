#define _GNU_SOURCE
#include "observer.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void *nw_map_private(void *at, size_t bytes) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at == NULL ? 0 : MAP_FIXED);
    long result = nw_system(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return nw_failed(result) ? NULL : (void *)result;
}

void nw_unmap(void *address, size_t bytes) { nw_system(SYS_munmap, address, bytes); }

/* Allocates the blocks of a part of the file, so that a full disk is an error here and not a SIGBUS later. */
static long allocate_blocks(long file, size_t from, size_t to) {
    static const char zeros[4096];
    long result = nw_system(SYS_fallocate, file, 0, from, to - from);
    if (result != -EOPNOTSUPP && result != -ENOSYS)
        return result;
    for (size_t at = from; at < to; at += sizeof zeros) {
        result = nw_system(SYS_pwrite64, file, zeros, sizeof zeros, at);
        if (result != sizeof zeros)
            return nw_failed(result) ? result : -ENOSPC;
    }
    return 0;
}

/* Whether a file of this size is within RLIMIT_FSIZE. Growing beyond it would raise SIGXFSZ. */
static bool within_file_limit(size_t bytes) {
    struct rlimit limit;
    long result = nw_system(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit);
    return nw_failed(result) || bytes <= limit.rlim_cur;
}

bool nw_is_file_limited(void) { return !within_file_limit(SIZE_MAX); }

long nw_file_map(const char *path, int flags, size_t from, size_t bytes, void *at) {
    long file = nw_open(path, flags);
    if (nw_failed(file))
        return file;
    long result = !(flags & O_CREAT)                ? 0
                  : within_file_limit(from + bytes) ? allocate_blocks(file, from, from + bytes)
                                                    : -EFBIG;
    if (!nw_failed(result))
        result = nw_system(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at == NULL ? 0 : MAP_FIXED), file,
                           from);
    nw_close(file);
    return result;
}

const char *nw_reason(long error) {
    switch (-error) {
    case ENOSPC: return "the disk that holds the profile is full";
    case EDQUOT: return "the disk quota is used up";
    case EMFILE:
    case ENFILE: return "too many open files";
    case ENOMEM: return "out of memory";
    case EFBIG: return "the file size limit (ulimit -f) is too low";
    default: return "the profile's raw folder cannot be written";
    }
}

void *nw_map_backed(const char *name, uint32_t number, size_t from, size_t bytes, void *at, bool *backed) {
    *backed = false;
    if (nw_recording()) {
        char *path = nw_path(name, number);
        long result = path == NULL ? -ENOMEM : nw_file_map(path, O_RDWR | O_CREAT, from, bytes, at);
        nw_scratch_give(path);
        *backed = !nw_failed(result);
        if (*backed)
            return (void *)result;
        nw_switch_off(nw_reason(result));
    }
    return nw_map_private(at, bytes);
}

char *nw_path(const char *name, uint32_t number) {
    char *path = nw_scratch_take();
    char *end = path == NULL ? NULL : stpcpy(stpcpy(stpcpy(path, nw_folder), "/"), name);
    if (number == NW_NO_NUMBER || path == NULL)
        return path;
    char digits[10], *digit = digits + sizeof digits;
    do
        *--digit = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    *end++ = '-';
    size_t length = (size_t)(digits + sizeof digits - digit);
    memcpy(end, digit, length);
    end[length] = 0;
    return path;
}
