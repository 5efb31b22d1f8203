/* The companion: a helper thread in the program that sets memory policies for the balancer, which cannot do
 * that itself, because mbind affects only the caller's own memory.
 *
 * A held range has a policy that names its home node and requests hint faults: the kernel then reports
 * accesses and does not migrate the pages. Since Linux 6.9 that is possible with a preference; before, the
 * policy has to be strict, and a strict policy can make an allocation fail. So it is set only where pages
 * exist already and only while the node has room, and it never outlives the balancer.
 *
 * The thread blocks all signals, has a descriptor table of its own that the program neither sees nor
 * closes, and ends when the socket is closed. It is created by glibc, not by a bare clone, so that a program
 * that changes its user changes this thread's user too. */
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

#define STACK (64u << 10) /* in addition to what the program's thread-local variables take of a stack */
#define BATCH 64u
#define SETTLED_MS 50 /* a younger process may still be about to execute another program */
#define WATCH_MS 200  /* interval at which nodes with strict policies are checked for available memory */

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static struct {
    create_function *create; /* the C library's: our own would number this thread as one of the program's */
    size_t (*least_stack)(const pthread_attr_t *);
    char name[108];          /* of the socket, without the leading zero */
    int said_local;          /* first touch is set as an explicit policy (MPOL_LOCAL) */
    int wanted;              /* this is a forked child that still has to start its companion */
} state;
static pthread_t thread;
static pthread_key_t main_thread;
static _Atomic int over; /* the balancer has ended */

/* Whether the other side runs as our user or as root. */
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

/* Capabilities belong to a thread, so this one gives up those that the main thread has given up. It must not
 * do so earlier: glibc aborts a program if a change of user fails in one of its threads. */
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

/* Answers requests. Returns 0 if the companion has to end: the balancer is gone, or the program has forbidden
 * itself such calls (-EPERM). */
static int answer(int channel, const nw_request *requests, uint32_t count) {
    static int32_t statuses[BATCH];
    follow_capabilities();
    nw_hold(requests, statuses, count);
    for (uint32_t i = 0; i < count; i++)
        if (statuses[i] == -EPERM)
            return 0;
    return send(channel, statuses, count * sizeof *statuses, MSG_NOSIGNAL) >= 0;
}

/* Serves requests until the socket is closed. A request may arrive in pieces. */
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

/* Removes the explicit first-touch policy from the calling thread. Only the thread itself can do that: see
 * nw_companion_passes. */
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
    /* A new, empty descriptor table: the program cannot close our descriptors, and we do not keep open what
     * the program closes. */
    if (syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE_FILES) == 0) {
        int channel = connect_channel();
        if (channel >= 0)
            serve(channel);
    }
    pthread_cleanup_pop(1);
    return NULL;
}

/* glibc puts a thread's thread-local variables on its stack, and exports a function that tells how much stack is
 * needed at least. */
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

/* A process whose main thread has called pthread_exit lives until its other threads end, so the companion
 * must not remain as the last one. Cancelling it is valid even when it has ended, since it is never joined. */
static void main_thread_leaves(void *unused) {
    (void)unused;
    pthread_cancel(thread);
}

/* Whether the program's memory is allocated by libc, directly or through our own wrappers. */
static int libc_allocates(void) {
    Dl_info libc, first, next, own;
    void *outer = dlsym(RTLD_DEFAULT, "calloc"), *inner = dlsym(RTLD_NEXT, "calloc");
    return outer && inner && dladdr(dlsym(RTLD_NEXT, "fork"), &libc) && dladdr(outer, &first) && dladdr(inner, &next) &&
           dladdr((void *)nw_companion_start, &own) && next.dli_fbase == libc.dli_fbase &&
           (first.dli_fbase == libc.dli_fbase || first.dli_fbase == own.dli_fbase);
}

static int allocates_safely;

/* The child inherits the policies, and needs a companion that can lift them. Creating a thread allocates
 * memory, and allocators other than libc's may still be locked here. In that case all holds are lifted, and
 * the companion is started when the child first creates a thread of its own. */
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

/* Sets first touch as an explicit policy. The kernel's own balancing ignores memory with a policy, so it
 * neither moves nor samples anything before the first hold. Later threads and children inherit the policy. */
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
