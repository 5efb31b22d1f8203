#define _GNU_SOURCE
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SMALLEST_AREA (16ul << 20)

long nw_call(long number, long a, long b, long c, long d, long e, long f)
{
    int before = errno;
    long result = syscall(number, a, b, c, d, e, f);
    if (result == -1)
        result = -errno;
    errno = before;
    return result;
}

static bool failed(long result)
{
    return result < 0 && result > -4096;
}

static void *map(void *at, size_t bytes, int protection, int flags, int file, size_t offset)
{
    long result = nw_system(SYS_mmap, at, bytes, protection, flags, file, offset);
    return failed(result) ? NULL : (void *)result;
}

void *nw_map_private(size_t bytes)
{
    return map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void nw_unmap(void *address, size_t bytes)
{
    nw_system(SYS_munmap, address, bytes);
}

bool nw_area_reserve(nw_area *area, size_t bytes)
{
    for (; bytes >= SMALLEST_AREA; bytes /= 2) {
        area->base = map(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (area->base != NULL) {
            area->reserved = bytes;
            area->mapped = 0;
            return true;
        }
    }
    return false;
}

/* Blocks for all of the file, so that a full disk is an error here and not a SIGBUS later. */
static long allocate_blocks(long file, size_t from, size_t to)
{
    static const char zeros[4096];
    long result = nw_system(SYS_fallocate, file, 0, from, to - from);
    if (result != -EOPNOTSUPP && result != -ENOSYS)
        return result;
    for (size_t at = from; at < to; at += sizeof zeros) {
        result = nw_system(SYS_pwrite64, file, zeros, sizeof zeros, at);
        if (result != sizeof zeros)
            return failed(result) ? result : -ENOSPC;
    }
    return 0;
}

/* Growing beyond it would raise SIGXFSZ. */
static bool within_file_limit(size_t bytes)
{
    struct rlimit limit;
    long result = nw_system(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit);
    return failed(result) || bytes <= limit.rlim_cur;
}

static const char *reason(long error)
{
    switch (-error) {
    case ENOSPC: return "the disk that holds the profile is full";
    case EDQUOT: return "the disk quota is used up";
    case EMFILE: case ENFILE: return "too many open files";
    case ENOMEM: return "out of memory";
    case EFBIG: return "the file size limit (ulimit -f) is too low";
    default: return "the profile's raw folder cannot be written";
    }
}

static bool grow_file(nw_area *area, const char *path, size_t bytes)
{
    long file = nw_system(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    long result = failed(file)                 ? file
                  : within_file_limit(bytes) ? allocate_blocks(file, area->mapped, bytes)
                                             : -EFBIG;
    if (!failed(result)) {
        void *at = map(area->base + area->mapped, bytes - area->mapped, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, (int)file, area->mapped);
        result = at == NULL ? -ENOMEM : 0;
    }
    if (!failed(file))
        nw_system(SYS_close, file);
    if (failed(result))
        nw_switch_off(reason(result));
    return !failed(result);
}

static bool grow_private(nw_area *area, size_t bytes)
{
    return map(area->base + area->mapped, bytes - area->mapped, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != NULL;
}

bool nw_area_grow(nw_area *area, const char *name, uint32_t number, size_t bytes)
{
    bytes = (bytes + 0xffff) & ~(size_t)0xffff;
    if (bytes > area->reserved)
        return false;
    if (bytes <= area->mapped)
        return true;
    char path[NW_PATH_BYTES];
    nw_path(path, name, number);
    if (!(nw_recording() && grow_file(area, path, bytes)) && !grow_private(area, bytes))
        return false;
    area->mapped = bytes;
    return true;
}

bool nw_area_clear(nw_area *area)
{
    area->mapped = 0;
    return map(area->base, area->reserved, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != NULL;
}

void nw_area_release(nw_area *area)
{
    if (area->base != NULL)
        nw_unmap(area->base, area->reserved);
    *area = (nw_area){0};
}

void nw_path(char *path, const char *name, uint32_t number)
{
    char *end = stpcpy(stpcpy(stpcpy(path, nw_folder), "/"), name);
    if (number == NW_NO_NUMBER)
        return;
    char digits[10], *digit = digits + sizeof digits;
    do
        *--digit = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    *end++ = '-';
    size_t length = (size_t)(digits + sizeof digits - digit);
    memcpy(end, digit, length);
    end[length] = 0;
}
