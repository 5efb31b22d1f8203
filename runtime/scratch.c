#define _GNU_SOURCE
#include "scratch.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The buffers, with a bit for each that is taken. A thread that ends, or leaves a handler by longjmp, while it has a
 * buffer never gives it back; when all are taken, further ones are mapped. */
enum { ROOMS = 64 };

static _Alignas(16) char rooms[ROOMS][NW_SCRATCH_BYTES];
static uint64_t taken;

static void *map(void) {
    int before = errno;
    long room = syscall(SYS_mmap, NULL, NW_SCRATCH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    errno = before;
    return room == -1 ? NULL : (void *)room;
}

void *nw_scratch_take(void) {
    uint64_t before = __atomic_load_n(&taken, __ATOMIC_RELAXED);
    while (~before != 0) {
        unsigned number = (unsigned)__builtin_ctzll(~before);
        if (__atomic_compare_exchange_n(&taken, &before, before | 1ull << number, 1, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return rooms[number];
    }
    return map();
}

void nw_scratch_give(void *room) {
    uintptr_t at = (uintptr_t)room - (uintptr_t)rooms;
    int before = errno;
    if (at < sizeof rooms)
        __atomic_fetch_and(&taken, ~(1ull << at / NW_SCRATCH_BYTES), __ATOMIC_RELEASE);
    else if (room != NULL)
        syscall(SYS_munmap, room, (size_t)NW_SCRATCH_BYTES);
    errno = before;
}
