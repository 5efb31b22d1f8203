#define _GNU_SOURCE
#include "readable.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether a word can be read. FUTEX_CMP_REQUEUE, asked to requeue no waiters, makes the kernel read the word and fails
 * with EFAULT if it cannot. Unlike process_vm_readv this works under QEMU and in every sandbox that permits threads,
 * and unlike mincore it detects pages without access rights. */
static int answers(uintptr_t word) {
    int before = errno;
    long result = syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0L, word, 0);
    int answered = result == 0 || errno == EAGAIN;
    errno = before;
    return answered;
}

/* The known range is contiguous: a page that does not adjoin it replaces it. */
static int look(nw_readable *known, uintptr_t address, size_t bytes) {
    if (address + bytes < address)
        return 0;
    for (uintptr_t page = address & -(uintptr_t)NW_LOOK; page < address + bytes; page += NW_LOOK) {
        if (page >= known->from && page < known->to)
            continue;
        if (!answers(page > address ? page : address & -(uintptr_t)4)) /* not the page's start: memcheck may object */
            return 0;
        if (page == known->to)
            known->to += NW_LOOK;
        else if (page + NW_LOOK == known->from)
            known->from = page;
        else
            *known = (nw_readable){.from = page, .to = page + NW_LOOK};
    }
    return 1;
}

/* Copies up to NW_COPIED bytes, since what follows is usually read next. */
static int copies(nw_readable *known, uintptr_t address, size_t bytes) {
    int before = errno;
    long copied = bytes > NW_COPIED ? 0 : syscall(SYS_pread64, known->memory, known->copy, (size_t)NW_COPIED, address);
    errno = before;
    known->from = address;
    known->to = address + (copied < 0 ? 0 : (uintptr_t)copied);
    return known->to - known->from >= bytes;
}

int nw_read_unknown(nw_readable *known, void *to, uintptr_t address, size_t bytes) {
    if (known->copy != NULL ? !copies(known, address, bytes) : !look(known, address, bytes))
        return 0;
    memcpy(to, known->copy != NULL ? known->copy : (const char *)address, bytes);
    return 1;
}
