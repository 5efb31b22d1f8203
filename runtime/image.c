/* The folder to which a process image writes, and the report that it stopped recording. Shared with the
 * emulator's plugin, which makes the images of programs without our library. */
#define _GNU_SOURCE
#include "observer.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

static size_t put_decimal(char *to, uint64_t number) {
    char digits[20], *digit = digits + sizeof digits;
    do
        *--digit = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    size_t length = (size_t)(digits + sizeof digits - digit);
    memcpy(to, digit, length);
    to[length] = 0;
    return length;
}

nw_control *nw_control_map(const char *raw) {
    char *path = nw_scratch_take();
    if (path == NULL)
        return NULL;
    stpcpy(stpcpy(path, raw), "/control");
    long result = nw_file_map(path, O_RDWR, 0, sizeof(nw_control), NULL);
    nw_scratch_give(path);
    if (nw_failed(result))
        return NULL;
    nw_control *control = (nw_control *)result;
    bool known = control->magic == NW_MAGIC && control->version == NW_LAYOUT_VERSION && control->recorder_alive;
    if (!known)
        nw_unmap(control, sizeof *control);
    return known ? control : NULL;
}

/* exec keeps the pid, so images are told apart by a sequence number: the first one that is free. */
bool nw_folder_make(char *folder, const char *raw) {
    char *end = stpcpy(stpcpy(folder, raw), "/");
    end += put_decimal(end, (uint64_t)nw_system(SYS_getpid, 0));
    *end++ = '-';
    for (uint32_t sequence = 0; sequence < 10000; sequence++) {
        put_decimal(end, sequence);
        long result = nw_system(SYS_mkdirat, AT_FDCWD, folder, 0755);
        if (result != -EEXIST)
            return result == 0;
    }
    return false;
}

/* Only the first reason is kept. */
void nw_mark_truncated(const char *why) {
    nw_control *control = nw_control_page;
    if (control == NULL)
        return;
    if (!__atomic_exchange_n(&control->why_taken, 1, __ATOMIC_ACQ_REL))
        for (size_t i = 0; why[i] != 0 && i < NW_WHY_BYTES - 1; i++)
            control->why[i] = why[i];
    __atomic_add_fetch(&control->stopped, 1, __ATOMIC_RELEASE);
}
