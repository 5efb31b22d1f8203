/* The companion: a thread beside the program's that sets memory policies for the balancer, which cannot,
 * because mbind reaches the caller's own memory only.
 *
 * A held range has a policy that names its home and asks for hint faults: the kernel then reports
 * accesses and leaves the pages alone. Linux 6.9 has that as a preference; before, it is strict, and a
 * strict policy may fail an allocation. So it is set only where pages are already, only while the node
 * has room, and never outlives the balancer.
 *
 * The thread blocks all signals, has descriptors of its own that the program neither sees nor closes,
 * and ends with the socket. */
#define _GNU_SOURCE
#include "companion.h"
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { MODE_DEFAULT = 0, MODE_BIND = 2, MODE_LOCAL = 4, MODE_PREFERRED_MANY = 5, FLAG_NUMA_BALANCING = 1 << 13 };
enum { FLAG_MOVE = 2, FLAG_ADDRESS = 2 };
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define CLOSE_RANGE_UNSHARE_FILES 2u

#define NODES 1024u
#define MASK_BITS (NODES + 1ul) /* the kernel reads one bit less than it is told */
#define STACK (64u << 10)
#define SPANS 8192u     /* held ranges that do not touch each other */
#define SETTLED_MS 50   /* younger processes have not executed what they will become */
#define WATCH_MS 500    /* between looks at the room of nodes with strict policies */
#define ROOM_SHARE 32u  /* a node is short when less than this part of it is free */

typedef struct span {
    uint64_t page, end;
} span;

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* One process has one companion; a forked child inherits the policies, and so the list. Should it be
 * forked in the middle of a change, it lifts a range too many or too few. */
static struct {
    create_function *create; /* not by our own pthread_create: this is none of the program's threads */
    char name[108]; /* of the socket, without the leading zero */
    span *spans;    /* held; ascending, disjoint */
    uint32_t count;
    uint32_t strict[NODES / 32]; /* nodes with strict policies */
    int no_preference;           /* the kernel has only the strict kind */
} state;
static pthread_t thread;
static pthread_key_t main_thread;

static int set_policy(const span *range, int mode, uint32_t node, unsigned flags) {
    unsigned long mask[NODES / 64] = {0};
    void *address = (void *)(uintptr_t)(range->page << nw_page_shift);
    uint64_t bytes = (range->end - range->page) << nw_page_shift;
    if (mode == MODE_DEFAULT)
        return syscall(SYS_mbind, address, bytes, mode, NULL, 0ul, 0u) ? -errno : 0;
    mask[node / 64] = 1ul << (node % 64);
    return syscall(SYS_mbind, address, bytes, mode, mask, MASK_BITS, flags) ? -errno : 0;
}

/* Whether somebody else has given the range a policy. */
static int foreign_policy(const span *range) {
    int mode = MODE_DEFAULT;
    void *address = (void *)(uintptr_t)(range->page << nw_page_shift);
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0ul, address, FLAG_ADDRESS) != 0)
        return -errno;
    int ours = mode == (MODE_BIND | FLAG_NUMA_BALANCING) || mode == (MODE_PREFERRED_MANY | FLAG_NUMA_BALANCING);
    return mode == MODE_DEFAULT || ours ? 0 : -EBUSY;
}

static uint32_t first_ending_after(uint64_t page) {
    uint32_t low = 0, high = state.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (state.spans[middle].end < page)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds a range to the list. */
static int note(span range) {
    uint32_t from = first_ending_after(range.page), to = from;
    for (; to < state.count && state.spans[to].page <= range.end; to++) {
        range.page = state.spans[to].page < range.page ? state.spans[to].page : range.page;
        range.end = state.spans[to].end > range.end ? state.spans[to].end : range.end;
    }
    if (to == from && state.count == SPANS)
        return -ENOSPC;
    memmove(&state.spans[from + 1], &state.spans[to], (state.count - to) * sizeof(span));
    state.spans[from] = range;
    state.count = state.count - (to - from) + 1;
    return 0;
}

/* A number of the node's memory information, in KiB; 0 if there is none. */
static uint64_t kilobytes(const char *text, const char *key) {
    const char *found = strstr(text, key);
    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static int is_short(uint32_t node) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", node);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    if (length <= 0)
        return 1;
    text[length] = 0;
    return kilobytes(text, "MemFree:") < kilobytes(text, "MemTotal:") / ROOM_SHARE;
}

static int hold(const span *range, uint32_t node, unsigned flags) {
    int status = node < NODES ? foreign_policy(range) : -EINVAL;
    if (status == 0)
        status = note(*range);
    if (status != 0)
        return status;
    if (!state.no_preference) {
        status = set_policy(range, MODE_PREFERRED_MANY | FLAG_NUMA_BALANCING, node, flags);
        if (status != -EINVAL)
            return status;
        state.no_preference = 1;
    }
    if (is_short(node))
        return -ENOMEM;
    state.strict[node / 32] |= 1u << (node % 32);
    status = set_policy(range, MODE_BIND | FLAG_NUMA_BALANCING, node, flags);
    return status ? status : 1;
}

/* The kernel allows the default policy across holes. */
static void lift_all(void *unused) {
    (void)unused;
    for (uint32_t i = 0; i < state.count; i++)
        set_policy(&state.spans[i], MODE_DEFAULT, 0, 0);
    state.count = 0;
    memset(state.strict, 0, sizeof state.strict);
}

static int any_strict(void) {
    uint32_t any = 0;
    for (uint32_t i = 0; i < NODES / 32; i++)
        any |= state.strict[i];
    return any != 0;
}

/* Whoever is stopped cannot lift in time: so this is no request of the balancer's. */
static void watch_room(void) {
    for (uint32_t node = 0; node < NODES; node++)
        if (state.strict[node / 32] >> (node % 32) & 1 && is_short(node)) {
            lift_all(NULL);
            return;
        }
}

static int32_t answer(const nw_request *request) {
    span range = {request->page, request->page + request->pages};
    if (range.end <= range.page)
        return -EINVAL;
    switch (request->kind) {
    case NW_HOLD:
        return hold(&range, request->node, 0);
    case NW_BRING:
        return hold(&range, request->node, FLAG_MOVE);
    default:
        return -ENOSYS;
    }
}

/* Whether the other side is our user's, or the administrator's. */
static int trusted(int channel) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(channel, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static int connect_channel(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(state.name);
    memcpy(address.sun_path + 1, state.name, length);
    int channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    if (channel >= 0 && connect(channel, (struct sockaddr *)&address, bytes) == 0 && trusted(channel))
        return channel;
    return -1;
}

/* Until the socket ends. A request may come in pieces. */
static void serve(int channel) {
    nw_request requests[64];
    size_t have = 0;
    for (;;) {
        struct pollfd wait = {.fd = channel, .events = POLLIN};
        if (poll(&wait, 1, any_strict() ? WATCH_MS : -1) == 0) {
            watch_room();
            continue;
        }
        ssize_t more = read(channel, (char *)requests + have, sizeof requests - have);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return;
        have += (size_t)more;
        int32_t statuses[64];
        size_t whole = have / sizeof *requests;
        for (size_t i = 0; i < whole; i++)
            statuses[i] = answer(&requests[i]);
        have -= whole * sizeof *requests;
        memmove(requests, &requests[whole], have);
        if (whole && send(channel, statuses, whole * sizeof *statuses, MSG_NOSIGNAL) < 0)
            return;
    }
}

static void *companion(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "nodewise");
    pthread_cleanup_push(lift_all, NULL);
    poll(NULL, 0, SETTLED_MS);
    /* A table of descriptors of our own, empty: whatever the program closes is not ours, and what it
     * waits to see closed is not kept open by us. */
    if (syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE_FILES) == 0) {
        int channel = connect_channel();
        if (channel >= 0)
            serve(channel);
    }
    pthread_cleanup_pop(1);
    return NULL;
}

static void start_thread(void) {
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (state.create(&thread, &attributes, companion, NULL) == 0)
        pthread_setspecific(main_thread, &state);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* A process whose main thread leaves by pthread_exit lives as long as its other threads do, and the
 * companion must not be the last. It can be cancelled even when it has ended: nobody joins it. */
static void main_thread_leaves(void *unused) {
    (void)unused;
    pthread_cancel(thread);
}

static void in_child(void) {
    int before = errno;
    start_thread();
    errno = before;
}

/* First touch said aloud: the kernel's own balancing leaves alone what has a policy, so it moves nothing
 * before the first hold, and samples nothing. Threads and children to come inherit it. */
void nw_companion_prepare(void) {
    const char *name = getenv("NODEWISE_BALANCE");
    int mode;
    if (!name || !*name || strlen(name) >= sizeof state.name - 1)
        return;
    strcpy(state.name, name);
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul) == 0 && mode == MODE_DEFAULT)
        syscall(SYS_set_mempolicy, MODE_LOCAL, NULL, 0ul);
}

void nw_companion_start(void) {
    if (!*state.name)
        return;
    *(void **)&state.create = dlsym(RTLD_NEXT, "pthread_create");
    state.spans = nw_own_memory(SPANS * sizeof(span));
    if (!state.create || !state.spans || pthread_key_create(&main_thread, main_thread_leaves) != 0)
        return;
    pthread_atfork(NULL, NULL, in_child);
    start_thread();
}
