/* Arrays that show a file: mapped here, or by the caller. Their copies are read from the file, since touching the
 * mapping of a file that was truncated meanwhile kills a process. */
#include "copies.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void nw_file_close(nw_file *file) {
    int before = errno;
    if (file)
        close(file->fd);
    free(file);
    errno = before;
}

int nw_file_same(const nw_file *a, const nw_file *b) {
    if (!a || !b)
        return a == b;
    return a->device == b->device && a->inode == b->inode && a->offset == b->offset;
}

int nw_file_stamp(const nw_file *file, nw_stamp *stamp) {
    struct stat is;
    if (fstat(file->fd, &is))
        return -errno;
    *stamp = (nw_stamp){is.st_size, is.st_mtim, is.st_ctim};
    return 0;
}

static int same_time(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

int nw_stamp_same(const nw_stamp *a, const nw_stamp *b) {
    return a->size == b->size && same_time(&a->written, &b->written) && same_time(&a->changed, &b->changed);
}

ssize_t nw_file_read(const nw_file *file, char *to, size_t bytes, size_t at) {
    size_t had = 0;
    while (had < bytes) {
        ssize_t got = pread(file->fd, to + had, bytes - had, file->offset + (off_t)(at + had));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        had += (size_t)got;
    }
    return (ssize_t)had;
}

void nw_file_name(const nw_file *file, char *text, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->fd);
    ssize_t length = readlink(link, text, size - 1);
    if (length <= 0)
        length = snprintf(text, size, "file of inode %llu", (unsigned long long)file->inode);
    text[length] = 0;
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
}

static const char *kind_of(mode_t mode) {
    return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* Whether `*bytes` bytes from `offset` on can be read; 0: all that are left. */
static int readable(int fd, struct stat *is, uint64_t offset, size_t *bytes) {
    int mode = fcntl(fd, F_GETFL);
    if (mode < 0 || fstat(fd, is))
        return nw_fail(NW_INVALID, "%d is no open file: %s", fd, strerror(errno));
    if (!S_ISREG(is->st_mode))
        return nw_fail(NW_INVALID, "descriptor %d is %s: only regular files can be copied", fd, kind_of(is->st_mode));
    if ((mode & O_ACCMODE) == O_WRONLY || mode & O_PATH)
        return nw_fail(NW_INVALID, "descriptor %d is not open for reading", fd);
    uint64_t size = (uint64_t)is->st_size;
    if (size == 0)
        return nw_fail(NW_INVALID, "the file of descriptor %d is empty", fd);
    if (offset >= size || *bytes > size - offset)
        return nw_fail(NW_INVALID, "the file has %llu bytes: there are no %zu from byte %llu on",
                       (unsigned long long)size, *bytes ? *bytes : (size_t)1, (unsigned long long)offset);
    *bytes = *bytes ? *bytes : size - offset;
    return NW_OK;
}

/* That part of a file, by a descriptor of our own; null with the message set. */
static nw_file *opened(int fd, uint64_t offset, size_t *bytes) {
    struct stat is;
    if (readable(fd, &is, offset, bytes) != NW_OK)
        return NULL;
    nw_file *file = malloc(sizeof *file);
    int own = file ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (own < 0) {
        nw_fail(NW_NO_MEMORY, "no descriptor to keep the file by: %s", strerror(errno));
        free(file);
        return NULL;
    }
    *file = (nw_file){own, (off_t)offset, is.st_dev, is.st_ino};
    return file;
}

int nw_adopt_file(void *mapping, size_t bytes, int fd, uint64_t offset) {
    if (!mapping)
        return nw_fail(NW_INVALID, "a null pointer cannot be an array");
    nw_file *file = opened(fd, offset, &bytes);
    if (!file)
        return nw_last_status();
    if ((uintptr_t)mapping + bytes < (uintptr_t)mapping) {
        nw_file_close(file);
        return nw_fail(NW_INVALID, "an array at %p cannot have %zu bytes", mapping, bytes);
    }
    return nw_register_file(mapping, bytes, 0, file);
}

void *nw_map_file(int fd, uint64_t offset, size_t bytes) {
    nw_file *file = opened(fd, offset, &bytes);
    if (!file)
        return NULL;
    size_t page = nw_machine_now()->page, head = offset % page, mapped;
    mapped = (head + bytes + page - 1) / page * page;
    char *base = mmap(NULL, mapped, PROT_READ, MAP_SHARED, file->fd, (off_t)(offset - head));
    if (base == MAP_FAILED) {
        nw_fail(NW_NO_MEMORY, "the file cannot be mapped: %s", strerror(errno));
        nw_file_close(file);
        return NULL;
    }
    if (nw_register_file(base + head, bytes, mapped, file) == NW_OK)
        return base + head;
    munmap(base, mapped);
    return NULL;
}
