/* Reads what the kernel says of this process's own mappings. Called where the program maps memory, so nothing is
 * allocated. */
#define _GNU_SOURCE
#include "preload.h"

#include <fcntl.h>
#include <unistd.h>

enum { PART = 512, FIELD_OF_INODE = 4 };

/* A line of maps: START-END PERMISSIONS OFFSET DEVICE INODE NAME. */
typedef struct line {
    uint64_t start, inode;
    int field, in_start; /* `in_start`: its address is not read to its end */
} line;

static void read_character(line *at, char c) {
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (c == ' ')
        at->field++;
    else if (at->field == 0 && digit >= 0 && at->in_start)
        at->start = at->start << 4 | (uint64_t)digit;
    else if (at->field == 0)
        at->in_start = 0;
    else if (at->field == FIELD_OF_INODE && digit >= 0)
        at->inode = at->inode * 10 + (uint64_t)digit;
}

uint64_t nw_mapped_inode(const void *address) {
    char part[PART];
    line at = {.in_start = 1};
    uint64_t found = 0;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t got; maps >= 0 && !found && (got = read(maps, part, sizeof part)) > 0;) {
        for (ssize_t i = 0; i < got && !found; i++) {
            if (part[i] != '\n') {
                read_character(&at, part[i]);
                continue;
            }
            if (at.start == (uint64_t)(uintptr_t)address)
                found = at.inode;
            at = (line){.in_start = 1};
        }
    }
    if (maps >= 0)
        close(maps);
    return found;
}
