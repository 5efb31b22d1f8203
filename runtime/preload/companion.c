/* The companion: a thread beside the program's that sets memory policies for the balancer, which cannot,
 * because mbind reaches the caller's own memory only.
 *
 * A held range has a policy that names its home and asks for hint faults: the kernel then reports
 * accesses and leaves the pages alone. Linux 6.9 has that as a preference; before, it is strict, and a
 * strict policy may fail an allocation. So it is set only where pages are already, only while the node
 * has room, and never outlives the balancer.
 *
 * The thread blocks all signals, has descriptors of its own that the program neither sees nor closes,
 * and ends with the socket. It is glibc's, not a bare clone: so a program that changes its user changes
 * this thread's too. */
#define _GNU_SOURCE
#include "companion.h"
#include "holding.h"
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { MODE_DEFAULT = 0, MODE_LOCAL = 4 };
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define CLOSE_RANGE_UNSHARE_FILES 2u

#define STACK (64u << 10) /* beside what the program's thread-local variables take of it */
#define BATCH 64u
#define SETTLED_MS 50 /* younger processes have not executed what they will become */
#define WATCH_MS 200  /* between looks at the room of nodes with strict policies */

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static struct {
    create_function *create; /* not by our own pthread_create: this is none of the program's threads */
    size_t (*least_stack)(const pthread_attr_t *);
    char name[108];          /* of the socket, without the leading zero */
    int said_local;          /* first touch is a policy of ours */
    int wanted;              /* a forked child may not have been able to start one yet */
} state;
static pthread_t thread;
static pthread_key_t main_thread;
static _Atomic int over; /* the balancer has ended */

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

/* Capabilities are each thread's own: what the main thread has given up, this one gives up. Not before:
 * glibc aborts a program whose threads do not all get the user it changes to. */
static void follow_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = getpid()};
    struct __user_cap_data_struct theirs[2], own[2];
    if (syscall(SYS_capget, &header, theirs) != 0)
        return;
    header.pid = 0;
    if (syscall(SYS_capget, &header, own) != 0)
        return;
    unsigned more = 0;
    for (int i = 0; i < 2; i++) {
        more |= (own[i].permitted & ~theirs[i].permitted) | (own[i].effective & ~theirs[i].effective);
        own[i].permitted &= theirs[i].permitted;
        own[i].effective &= own[i].permitted & theirs[i].effective;
        own[i].inheritable &= theirs[i].inheritable;
    }
    if (more)
        syscall(SYS_capset, &header, own);
}

/* Whether it may go on: a program that has forbidden itself such calls is left alone. */
static int answer(int channel, const nw_request *requests, uint32_t count) {
    static int32_t statuses[BATCH];
    follow_capabilities();
    nw_hold(requests, statuses, count);
    for (uint32_t i = 0; i < count; i++)
        if (statuses[i] == -EPERM)
            return 0;
    return send(channel, statuses, count * sizeof *statuses, MSG_NOSIGNAL) >= 0;
}

/* Until the socket ends. A request may come in pieces. */
static void serve(int channel) {
    static nw_request requests[BATCH]; /* a process has one companion */
    size_t have = 0;
    for (;;) {
        struct pollfd wait = {.fd = channel, .events = POLLIN};
        int ready = poll(&wait, 1, nw_holds_strictly() ? WATCH_MS : -1);
        nw_hold_while_room();
        if (ready == 0)
            continue;
        ssize_t more = read(channel, (char *)requests + have, sizeof requests - have);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return;
        have += (size_t)more;
        size_t whole = have / sizeof *requests;
        if (whole && !answer(channel, requests, (uint32_t)whole))
            return;
        have -= whole * sizeof *requests;
        memmove(requests, &requests[whole], have);
    }
}

/* Only a thread itself can take back that it said first touch aloud: see nw_companion_passes. */
static void take_back(void) {
    int mode = MODE_DEFAULT;
    if (state.said_local && syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul) == 0 && mode == MODE_LOCAL)
        syscall(SYS_set_mempolicy, MODE_DEFAULT, NULL, 0ul);
}

static void ends(void *unused) {
    (void)unused;
    nw_lift_all();
    atomic_store(&over, 1);
}

static void *companion(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "nodewise");
    pthread_cleanup_push(ends, NULL);
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

/* glibc takes a thread's thread-local variables out of its stack; it exports how much they are for those
 * who choose small stacks. */
static void set_stack(pthread_attr_t *attributes) {
    if (state.least_stack)
        pthread_attr_setstacksize(attributes,
                                  (state.least_stack(attributes) + STACK + nw_page_bytes - 1) & -nw_page_bytes);
}

static int start_thread(void) {
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    set_stack(&attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int started = state.create(&thread, &attributes, companion, NULL) == 0;
    if (started)
        pthread_setspecific(main_thread, &state);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* A process whose main thread leaves by pthread_exit lives as long as its other threads do, and the
 * companion must not be the last. It can be cancelled even when it has ended: nobody joins it. */
static void main_thread_leaves(void *unused) {
    (void)unused;
    pthread_cancel(thread);
}

/* Where memory allocation comes from libc, directly or by our own wrappers. */
static int libc_allocates(void) {
    Dl_info libc, first, next, own;
    void *outer = dlsym(RTLD_DEFAULT, "calloc"), *inner = dlsym(RTLD_NEXT, "calloc");
    return outer && inner && dladdr(dlsym(RTLD_NEXT, "fork"), &libc) && dladdr(outer, &first) && dladdr(inner, &next) &&
           dladdr((void *)nw_companion_start, &own) && next.dli_fbase == libc.dli_fbase &&
           (first.dli_fbase == libc.dli_fbase || first.dli_fbase == own.dli_fbase);
}

static int allocates_safely;

/* The child inherits the policies, and needs somebody to lift them. Starting a thread allocates, and
 * allocators other than libc's may still be locked here: then it is the child's own first thread that
 * brings the companion, and nothing is held meanwhile. */
static void in_child(void) {
    int before = errno;
    if (atomic_load(&over)) {
        nw_lift_all(); /* forked while the parent's companion was lifting */
        take_back();
    } else if (!allocates_safely || !start_thread()) {
        nw_lift_all();
        take_back();
        state.wanted = 1;
    }
    errno = before;
}

void nw_companion_passes(int may_allocate) {
    static _Thread_local int taken_back NW_INITIAL_EXEC;
    int before = errno;
    if (may_allocate && state.wanted) {
        state.wanted = 0;
        start_thread();
    }
    if (atomic_load_explicit(&over, memory_order_relaxed) && !taken_back) {
        taken_back = 1;
        take_back();
    }
    errno = before;
}

uint32_t nw_companion_lift(const void *at, size_t bytes) {
    uint64_t first = (uint64_t)(uintptr_t)at >> nw_page_shift;
    return *state.name ? nw_lift((nw_pages){first, first + (bytes + nw_page_bytes - 1) / nw_page_bytes}) : 0;
}

/* First touch said aloud: the kernel's own balancing leaves alone what has a policy, so it moves nothing
 * before the first hold, and samples nothing. Threads and children to come inherit it. */
void nw_companion_prepare(void) {
    const char *name = getenv("NODEWISE_BALANCE");
    int mode;
    if (!name || !*name || strlen(name) >= sizeof state.name - 1)
        return;
    strcpy(state.name, name);
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul) == 0 && (mode == MODE_DEFAULT || mode == MODE_LOCAL))
        state.said_local = mode == MODE_LOCAL || syscall(SYS_set_mempolicy, MODE_LOCAL, NULL, 0ul) == 0;
}

void nw_companion_start(void) {
    if (!*state.name)
        return;
    *(void **)&state.create = dlsym(RTLD_NEXT, "pthread_create");
    *(void **)&state.least_stack = dlsym(RTLD_DEFAULT, "__pthread_get_minstack");
    if (!state.create || pthread_key_create(&main_thread, main_thread_leaves) != 0)
        return;
    allocates_safely = libc_allocates();
    pthread_atfork(NULL, NULL, in_child);
    if (!start_thread())
        take_back();
}
