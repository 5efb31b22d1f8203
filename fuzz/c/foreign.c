/* The files of programs that a placed process executes: which of them can take the preload library. */
#include "foreign.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int file = -1;
    static char path[64];
    if (size >= 2 && data[0] == '#' && data[1] == '!')
        return -1; /* of a script another file is read: that of its interpreter */
    if (file < 0) {
        file = memfd_create("program", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size)
        return -1;
    errno = ENOENT;
    int takes = nw_takes_preload(path), stands = nw_is_static(path), counts = nw_counts(path);
    /* Asked within execve: the caller's error number stays. A program that asks for a library is not static. */
    if (errno != ENOENT || (counts && stands) || takes < 0 || takes > 1)
        abort();
    if (getenv("NODEWISE_FUZZ_WHOLE") && takes)
        abort(); /* the seed is of a program that does not take it */
    return 0;
}
