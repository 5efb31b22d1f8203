/* What the program maps for itself: anonymous private memory of an object's size is one, as if it came
 * from the heap. Stacks are not: they are their thread's. */
#define _GNU_SOURCE
#include "preload.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static void *map(void *at, size_t bytes, int protection, int flags, int file, long offset) {
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

void *nw_own_memory(size_t bytes) {
    void *memory = map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int is_object(size_t bytes, int flags) {
    return nw_seeing() && bytes >= NW_LARGE && (flags & (MAP_ANONYMOUS | MAP_STACK)) == MAP_ANONYMOUS &&
           (flags & MAP_TYPE) == MAP_PRIVATE;
}

EXPORT void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    void *memory = map(at, bytes, protection, flags, file, offset);
    if (memory == MAP_FAILED || !is_object(bytes, flags))
        return memory;
    int before = errno;
    nw_object object = {
        .page = (uint64_t)(uintptr_t)memory >> nw_page_shift,
        .pages = (bytes + nw_page_bytes - 1) >> nw_page_shift,
        .rule = NW_ANY,
        .thread = nw_thread_ordinal(),
    };
    nw_seen(&object);
    errno = before;
    return memory;
}

EXPORT void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t offset) {
    return mmap(at, bytes, protection, flags, file, offset);
}
