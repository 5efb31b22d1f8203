/* The placement table that `run` writes and the preload reads in every program. */
#include "table.h"

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
    if (file < 0) {
        file = memfd_create("table", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size)
        return -1;
    const char *why = NULL;
    const nw_table *table = nw_table_open(path, &why);
    if (table) /* what it was checked for is there */
        munmap((void *)table, size);
    else if (getenv("NODEWISE_FUZZ_WHOLE"))
        abort(); /* a seed that is not read to its end */
    return 0;
}
