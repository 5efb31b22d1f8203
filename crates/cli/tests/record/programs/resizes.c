/* Grows a block of 1.6 GB by 1 GB where 1.2 GB more may be had of what the argument names (`as`, `data`), then
 * fails to grow beyond, and grows blocks that are several mappings. Contents stay. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#undef NDEBUG
#define MB ((size_t)1 << 20)

/* Kilobytes of /proc/self/status. */
static size_t used(const char *key) {
    char line[256];
    size_t found = 0;
    FILE *status = fopen("/proc/self/status", "r");
    assert(status != NULL);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, key, strlen(key)) == 0)
            found = strtoull(line + strlen(key), NULL, 10);
    fclose(status);
    return found << 10;
}

static void limit(int which, const char *key) {
    struct rlimit limit = {used(key) + 1200 * MB, RLIM_INFINITY};
    assert(setrlimit(which, &limit) == 0);
}

static void fill(char *block, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 16 * MB)
        memcpy(block + at, &at, sizeof at);
}

static int is_filled(const char *block, size_t bytes) {
    for (size_t at = 0, found; at < bytes; at += 16 * MB) {
        memcpy(&found, block + at, sizeof found);
        if (found != at)
            return 0;
    }
    return 1;
}

static void grow_within(int which, const char *key) {
    char *block = malloc(1600 * MB), *grown;
    assert(block != NULL);
    fill(block, 1600 * MB);
    limit(which, key);
    errno = 77;
    grown = realloc(block, 2600 * MB);
    assert(grown != NULL && errno == 77);
    assert(is_filled(grown, 1600 * MB));
    fill(grown, 2600 * MB);
    assert(realloc(grown, 3600 * MB) == NULL && errno == ENOMEM);
    assert(is_filled(grown, 2600 * MB));
    grown = realloc(grown, 100 * MB); /* and has room again */
    assert(grown != NULL && is_filled(grown, 100 * MB));
    grown = realloc(grown, 1000 * MB);
    assert(grown != NULL && is_filled(grown, 100 * MB));
    free(grown);
}

/* One call of the kernel moves one mapping; here are five of uneven sizes. */
static void grow_in_pieces(void) {
    char *block = malloc(64 * MB);
    assert(block != NULL);
    uintptr_t page = ((uintptr_t)block + 4095) & ~(uintptr_t)4095;
    fill(block, 64 * MB);
    assert(madvise((void *)(page + 5 * MB), 12288, MADV_DONTFORK) == 0);
    assert(madvise((void *)(page + 40 * MB), 7 * MB, MADV_DONTFORK) == 0);
    block = realloc(block, 96 * MB);
    assert(block != NULL && is_filled(block, 64 * MB));
    memset(block + 64 * MB, 1, 32 * MB);
    free(block);
}

int main(int argc, char **argv) {
    grow_in_pieces();
    if (argc > 1 && strcmp(argv[1], "as") == 0)
        grow_within(RLIMIT_AS, "VmSize:");
    else if (argc > 1)
        grow_within(RLIMIT_DATA, "VmData:");
    puts("grown");
    return 0;
}
