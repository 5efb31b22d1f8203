/* Policies that hold this process's pages for the balancer, set and lifted mapping by mapping. The kernel is
 * asked each time which policy a range has, since mappings grow, move and vanish, and the program sets
 * policies too. */
#define _GNU_SOURCE
#include "holding.h"
#include "preload.h"

#include "../scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MODE_DEFAULT = 0, MODE_BIND = 2, MODE_PREFERRED_MANY = 5, FLAG_NUMA_BALANCING = 1 << 13 };
enum { FLAG_MOVE = 2, FLAG_ADDRESS = 2 };

#define NODES 1024u
#define MASK_BITS (NODES + 1ul) /* the kernel reads one bit less than it is told */
#define ROOM_SHARE 32u          /* a node is short of memory when less than 1 / ROOM_SHARE of it is available */
#define LOOKS_AHEAD 4u          /* or would be after this many further checks, if it falls as since the last one */

static struct {
    uint32_t strict[NODES / 32]; /* nodes with strict policies */
    uint64_t room[NODES];        /* available at the last check, KiB */
    int no_preference;           /* the kernel supports strict policies only */
} state;

static int set_policy(const nw_pages *range, int mode, uint32_t node, unsigned flags) {
    unsigned long mask[NODES / 64] = {0};
    void *address = (void *)(uintptr_t)(range->page << nw_page_shift);
    uint64_t bytes = (range->end - range->page) << nw_page_shift;
    if (mode == MODE_DEFAULT)
        return syscall(SYS_mbind, address, bytes, mode, NULL, 0ul, 0u) ? -errno : 0;
    mask[node / 64] = 1ul << (node % 64);
    return syscall(SYS_mbind, address, bytes, mode, mask, MASK_BITS, flags) ? -errno : 0;
}

/* The policy of a page, or a negative error number. */
static int policy_of(uint64_t page) {
    int mode = MODE_DEFAULT;
    void *address = (void *)(uintptr_t)(page << nw_page_shift);
    return syscall(SYS_get_mempolicy, &mode, NULL, 0ul, address, FLAG_ADDRESS) ? -errno : mode;
}

static int is_ours(int mode) {
    return mode == (MODE_BIND | FLAG_NUMA_BALANCING) || mode == (MODE_PREFERRED_MANY | FLAG_NUMA_BALANCING);
}

/* Calls `visit` for each private mapping; a policy for a shared one would outlive the process. */
typedef void visit_function(nw_pages, int writable, void *);

static void each_in(int file, char *text, visit_function *visit, void *with) {
    enum { START, END, PERMISSIONS, REST } field = START;
    char permissions[4];
    uint64_t bounds[2] = {0, 0};
    uint32_t letters = 0;
    ssize_t length;
    while ((length = read(file, text, NW_SCRATCH_BYTES)) > 0)
        for (const char *c = text; c < text + length; c++) {
            if (*c == '\n') {
                field = START;
                bounds[0] = bounds[1] = letters = 0;
            } else if (field < PERMISSIONS && (*c == '-' || *c == ' ')) {
                field++;
            } else if (field < PERMISSIONS) {
                bounds[field] = bounds[field] << 4 | (uint64_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
            } else if (field == PERMISSIONS) {
                permissions[letters++] = *c;
                field = letters == sizeof permissions ? REST : PERMISSIONS;
                if (field == REST && permissions[3] == 'p')
                    visit((nw_pages){bounds[0] >> nw_page_shift, bounds[1] >> nw_page_shift}, permissions[1] == 'w',
                          with);
            }
        }
}

static int each_mapping(visit_function *visit, void *with) {
    char *text = nw_scratch_take();
    int file = text ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC) : -1, status = file >= 0 ? 0
                                                                                   : text    ? -errno
                                                                                             : -ENOMEM;
    if (file >= 0) {
        each_in(file, text, visit, with);
        close(file);
    }
    nw_scratch_give(text);
    return status;
}

static nw_pages overlap(nw_pages a, nw_pages b) {
    return (nw_pages){a.page > b.page ? a.page : b.page, a.end < b.end ? a.end : b.end};
}

/* A number of the node's memory information, in KiB; 0 if there is none. */
static uint64_t kilobytes(const char *text, const char *key) {
    const char *found = strstr(text, key);
    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

/* The memory available on a node, including the page cache of files; and in `total` all of its memory. In KiB, 0 if
 * unknown. */
static uint64_t room_of(uint32_t node, uint64_t *total) {
    char path[64], *text = nw_scratch_take();
    uint64_t room = 0;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", node);
    int file = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t length = file < 0 ? -1 : read(file, text, NW_SCRATCH_BYTES - 1);
    if (file >= 0)
        close(file);
    *total = 0;
    if (length > 0) {
        text[length] = 0;
        *total = kilobytes(text, "MemTotal:");
        room = kilobytes(text, "MemFree:") + kilobytes(text, "Active(file):") + kilobytes(text, "Inactive(file):");
    }
    nw_scratch_give(text);
    return room;
}

static int is_short(uint32_t node) {
    uint64_t total, room = room_of(node, &total);
    uint64_t fell = state.room[node] > room ? state.room[node] - room : 0;
    state.room[node] = room;
    return room <= total / ROOM_SHARE + LOOKS_AHEAD * fell;
}

/* Holds a range that lies within one mapping. */
static int hold(const nw_pages *range, uint32_t node, unsigned flags) {
    int mode = policy_of(range->page);
    if (mode != MODE_DEFAULT && !is_ours(mode))
        return mode < 0 ? mode : -EBUSY;
    if (!state.no_preference) {
        int status = set_policy(range, MODE_PREFERRED_MANY | FLAG_NUMA_BALANCING, node, flags);
        if (status != -EINVAL)
            return status;
        state.no_preference = 1;
    }
    if (is_short(node))
        return -ENOMEM;
    int status = set_policy(range, MODE_BIND | FLAG_NUMA_BALANCING, node, flags);
    return status ? status : 1;
}

typedef struct batch {
    const nw_request *requests;
    int32_t *statuses;
    uint32_t count;
} batch;

/* Combines the statuses of a range's mappings: a failure takes precedence, then a strict hold. */
static int32_t worse(int32_t before, int32_t now) {
    if (before == -EFAULT)
        return now;
    return before < 0 || (now >= 0 && before > now) ? before : now;
}

/* A page is moved by the policy that it gets. If another one is to keep it, that follows at once; if that is refused, the
 * page has none. */
static int hold_part(const nw_pages *part, const nw_request *request) {
    int status = request->to < NODES ? hold(part, request->to, FLAG_MOVE) : 0;
    if (status >= 0 && request->to != request->home) {
        status = hold(part, request->home, 0);
        if (status < 0 && request->to < NODES)
            set_policy(part, MODE_DEFAULT, 0, 0);
    }
    if (status == 1)
        state.strict[request->home / 32] |= 1u << (request->home % 32);
    return status;
}

static void hold_in(nw_pages mapping, int writable, void *with) {
    const batch *all = with;
    for (uint32_t i = 0; writable && i < all->count; i++) {
        const nw_request *request = &all->requests[i];
        nw_pages part = overlap(mapping, (nw_pages){request->page, request->page + request->pages});
        if (part.page >= part.end || request->home >= NODES)
            continue;
        int status = hold_part(&part, request);
        all->statuses[i] = worse(all->statuses[i], status);
    }
}

void nw_hold(const nw_request *requests, int32_t *statuses, uint32_t count) {
    batch all = {requests, statuses, count};
    for (uint32_t i = 0; i < count; i++)
        statuses[i] = -EFAULT; /* no private writable mapping there */
    int status = each_mapping(hold_in, &all);
    for (uint32_t i = 0; i < count && status < 0; i++)
        statuses[i] = status;
}

typedef struct lifting {
    nw_pages within;
    uint32_t lifted;
} lifting;

/* Read-only mappings too: they may have been writable when they were held. */
static void lift_in(nw_pages mapping, int writable, void *with) {
    lifting *all = with;
    (void)writable;
    nw_pages part = overlap(mapping, all->within);
    if (part.page < part.end && is_ours(policy_of(part.page)))
        all->lifted += set_policy(&part, MODE_DEFAULT, 0, 0) == 0;
}

uint32_t nw_lift(nw_pages within) {
    int before = errno;
    lifting all = {.within = within};
    each_mapping(lift_in, &all);
    errno = before;
    return all.lifted;
}

void nw_lift_all(void) {
    nw_lift((nw_pages){0, UINT64_MAX});
    memset(&state.strict, 0, sizeof state.strict);
}

int nw_holds_strictly(void) {
    uint32_t any = 0;
    for (uint32_t i = 0; i < NODES / 32; i++)
        any |= state.strict[i];
    return any != 0;
}

void nw_hold_while_room(void) {
    int any_short = 0;
    for (uint32_t node = 0; node < NODES; node++)
        if (state.strict[node / 32] >> (node % 32) & 1)
            any_short |= is_short(node);
    if (any_short)
        nw_lift_all();
}
