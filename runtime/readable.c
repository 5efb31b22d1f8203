#define _GNU_SOURCE
#include "readable.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Asked to move those who wait for a word, none of them, if it has a value, the kernel reads the word and says
 * whether it could. Unlike process_vm_readv this is there under QEMU and in every sandbox that lets threads run, and
 * unlike mincore it knows pages without access. */
static int answers(uintptr_t word) {
    int before = errno;
    long result = syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0L, word, 0);
    int answered = result == 0 || errno == EAGAIN;
    errno = before;
    return answered;
}

/* The pages known are neighbours: others begin anew. */
static int look(nw_readable *known, uintptr_t address, size_t bytes) {
    if (address + bytes < address)
        return 0;
    for (uintptr_t page = address & -(uintptr_t)NW_LOOK; page < address + bytes; page += NW_LOOK) {
        if (page >= known->from && page < known->to)
            continue;
        if (!answers(page > address ? page : address & -(uintptr_t)4)) /* what is read, so that memcheck knows it */
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

/* What follows on the same pages is copied too: it is asked for next. */
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
