/* The guard (NODEWISE_GUARD=1): arrays that have copies are read-only; the first write to one is reported, ends the use
 * of its copies, and is then carried out.
 *
 * The signal's handler may interrupt any code, in several threads at once. So it takes no lock, and finds arrays in a
 * list whose entries are used again but never freed. */
#include "copies.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* IDLE entries belong to no array, BUSY ones will in a moment. HELD: the array is protected. HIT: a thread is ending the
 * protection. WRITABLE: it has ended. */
enum { IDLE, BUSY, HELD, HIT, WRITABLE, STATES = 8 };

typedef struct nw_guard {
    _Atomic uintptr_t stamp; /* a count of changes, times STATES, plus the state */
    _Atomic uintptr_t start, end;
    _Atomic int protection; /* that it had */
    _Atomic(nw_copy_set *) set;
    _Atomic(const char *) data; /* of the array, for the report */
    _Atomic size_t bytes;
    struct nw_guard *next;
} nw_guard;

static _Atomic(nw_guard *) guards;
static _Atomic unsigned begun; /* how often a protection has begun */
static struct sigaction previous;
static _Atomic int previous_reset; /* it was to be called once */

static int state_of(uintptr_t stamp) { return (int)(stamp % STATES); }

/* Sets another state, if the entry is as `stamp` says. */
static int advanced(nw_guard *guard, uintptr_t stamp, int state) {
    return atomic_compare_exchange_strong(&guard->stamp, &stamp, (stamp / STATES + 1) * STATES + (uintptr_t)state);
}

/* ---- The handler --------------------------------------------------------------------------------- */

static uintptr_t instruction_of(const void *context) {
    const ucontext_t *of = context;
#if defined(__x86_64__)
    return (uintptr_t)of->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)of->uc_mcontext.pc;
#elif defined(__riscv)
    return (uintptr_t)of->uc_mcontext.__gregs[REG_PC];
#else
    (void)of;
    return 0;
#endif
}

/* Whether the kernel would let the program write there. It tries, and changes nothing: an atomic "or" with zero. */
static int writable(uintptr_t address) {
    int here = 0;
    void *word = (void *)(address & ~(uintptr_t)3);
    unsigned nothing = (unsigned)FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0);
    return syscall(SYS_futex, &here, FUTEX_WAKE_OP_PRIVATE, 0, 0ul, word, nothing) >= 0;
}

/* Pages of an entry, as they were when its stamp was read: the entry may belong to another array a moment later. */
typedef struct range {
    uintptr_t start, end;
    int protection;
} range;

static range range_of(const nw_guard *guard) {
    return (range){atomic_load(&guard->start), atomic_load(&guard->end), atomic_load(&guard->protection)};
}

/* The range, and the stamp that it was read under. It must not be skipped because another thread changes the stamp: that
 * one may be ending the protection of just this array. */
static range stamped(const nw_guard *guard, uintptr_t *stamp) {
    range of;
    do {
        *stamp = atomic_load(&guard->stamp);
        of = range_of(guard);
    } while (atomic_load(&guard->stamp) != *stamp);
    return of;
}

static void give_access(range of) { syscall(SYS_mprotect, of.start, of.end - of.start, of.protection); }

/* The first write. Copies are given up before it is carried out. While the entry is HIT it is not used for another array,
 * and its set is not freed (nw_guard_end waits). */
static void first_write(nw_guard *guard, uintptr_t stamp, uintptr_t address, uintptr_t from) {
    if (!advanced(guard, stamp, HIT))
        return; /* another thread's: writing again finds what that one made of it */
    nw_copy_set *set = atomic_load(&guard->set);
    const char *data = atomic_load(&guard->data);
    size_t bytes = atomic_load(&guard->bytes);
    atomic_store(&set->written, address - (uintptr_t)data);
    atomic_store(&set->dropped, 1);
    give_access(range_of(guard));
    advanced(guard, atomic_load(&guard->stamp), WRITABLE);
    nw_guard_report(data, bytes, (const char *)address, from);
}

/* Whether the fault is one of a guarded array; it may be written to then. Of several threads one ends the protection. A
 * second one does so as well, without waiting: it may have interrupted the first. One that comes later, also when the entry
 * is no array's any more, finds memory that can be written to; if it cannot, the program has protected it, and the fault is
 * the program's. */
static int handled(uintptr_t address, uintptr_t from) {
    unsigned before = atomic_load(&begun);
    for (nw_guard *guard = atomic_load(&guards); guard; guard = guard->next) {
        uintptr_t stamp;
        range of = stamped(guard, &stamp);
        int state = state_of(stamp);
        if (state == IDLE || address < of.start || address >= of.end)
            continue;
        if (state == WRITABLE)
            break;
        if (state == HELD)
            first_write(guard, stamp, address, from);
        else if (state == HIT)
            give_access(of);
        else
            syscall(SYS_sched_yield); /* it is being protected: the write is tried again */
        return 1;
    }
    /* A write that began before the protection ended finds memory that can be written to, or that is protected anew. */
    return writable(address) || atomic_load(&begun) != before;
}

static void die(int signal, const siginfo_t *info) {
    struct sigaction usual;
    memset(&usual, 0, sizeof usual);
    usual.sa_handler = SIG_DFL;
    sigaction(signal, &usual, NULL);
    if (info->si_code <= 0) /* sent, not a fault, which happens again by itself */
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

/* What would have happened without us. */
static void pass_on(int signal, siginfo_t *info, void *context) {
    int sent = info->si_code <= 0;
    int once = previous.sa_flags & (int)SA_RESETHAND && atomic_exchange(&previous_reset, 1);
    if (previous.sa_handler == SIG_IGN && sent)
        return;
    if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN || once)
        die(signal, info);
    else if (previous.sa_flags & SA_SIGINFO)
        previous.sa_sigaction(signal, info, context);
    else
        previous.sa_handler(signal);
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    int before = errno;
    uintptr_t address = (uintptr_t)info->si_addr, from = instruction_of(context);
    /* Not ours: no protection's fault, or a jump into the array. */
    if (info->si_code != SEGV_ACCERR || address == from || !handled(address, from)) {
        errno = before;
        pass_on(signal, info, context);
        return;
    }
    errno = before;
}

/* Ours has the flags and the mask of the one before, which it may call. */
static void install(void) {
    struct sigaction ours;
    sigaction(SIGSEGV, NULL, &previous);
    ours = previous;
    if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
        memset(&ours, 0, sizeof ours);
        ours.sa_flags = SA_ONSTACK | SA_RESTART;
    }
    ours.sa_flags = (ours.sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
    ours.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &ours, NULL);
}

/* ---- Beginning and ending ------------------------------------------------------------------------ */

static int wanted;

static void read_wish(void) {
    const char *text = getenv("NODEWISE_GUARD");
    wanted = text && !strcmp(text, "1");
    if (text && *text && !wanted && strcmp(text, "0"))
        fprintf(stderr, "nodewise: NODEWISE_GUARD=%.24s is neither 1 nor 0: ignored\n", text);
}

int nw_guard_wanted(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_wish);
    return wanted;
}

/* The protection that all of a range has, which is restored later; 0 where it may not be written or parts differ, -1 if
 * the kernel does not say. */
static int protection_of(uintptr_t start, uintptr_t end) {
    FILE *maps = fopen("/proc/self/maps", "re");
    char *line = NULL, mode[5], first[5] = "";
    size_t room = 0;
    unsigned long from, to;
    while (maps && start < end && getline(&line, &room, maps) > 0) {
        if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) != 3 || to <= start)
            continue;
        if (from > start || strncmp(mode, "rw", 2) || (first[0] && strcmp(mode, first)))
            break;
        memcpy(first, mode, sizeof first);
        start = to;
    }
    free(line);
    if (!maps)
        return -1;
    fclose(maps);
    return start < end ? 0 : PROT_READ | PROT_WRITE | (first[2] == 'x' ? PROT_EXEC : 0);
}

/* An entry for a new array. */
static nw_guard *free_entry(void) {
    for (nw_guard *guard = atomic_load(&guards); guard; guard = guard->next) {
        uintptr_t stamp = atomic_load(&guard->stamp);
        if (state_of(stamp) == IDLE && advanced(guard, stamp, BUSY))
            return guard;
    }
    nw_guard *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    atomic_store(&made->stamp, BUSY);
    nw_guard *first = atomic_load(&guards);
    do
        made->next = first;
    while (!atomic_compare_exchange_weak(&guards, &first, made));
    return made;
}

static void not_guarded(const nw_array *array, const char *why) {
    fprintf(stderr, "nodewise: writes to the array at %p are not reported: %s\n", (void *)array->data, why);
}

void nw_guard_begin(const nw_array *array, nw_copy_set *set) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    nw_span span = nw_array_span(array);
    uintptr_t start = (uintptr_t)span.start, end = start + span.bytes;
    if (span.bytes == 0)
        return not_guarded(array, "it has no page of its own");
    int protection = protection_of(start, end);
    if (protection == 0 && array->file)
        return; /* mapped for reading: writing to it fails in any case */
    if (protection <= 0)
        return not_guarded(array, protection ? "/proc/self/maps cannot be read"
                                             : "not all of its memory is for reading and writing");
    nw_guard *guard = free_entry();
    if (!guard)
        return not_guarded(array, "no memory");
    pthread_once(&once, install);
    atomic_store(&guard->start, start);
    atomic_store(&guard->end, end);
    atomic_store(&guard->protection, protection);
    atomic_store(&guard->set, set);
    atomic_store(&guard->data, array->data);
    atomic_store(&guard->bytes, nw_array_bytes(array));
    set->guard = guard;
    atomic_fetch_add(&begun, 1);
    int failed = mprotect(span.start, span.bytes, protection & ~PROT_WRITE);
    int error = errno;
    /* Only now: a late fault of an earlier protection must not end this one before it has begun. */
    advanced(guard, atomic_load(&guard->stamp), HELD);
    if (!failed)
        return;
    not_guarded(array, strerror(error));
    nw_guard_end(set, 1); /* of several mappings the first ones may be protected by now */
}

void nw_guard_end(nw_copy_set *set, int restore) {
    nw_guard *guard = set->guard;
    if (!guard)
        return;
    uintptr_t stamp = atomic_load(&guard->stamp);
    if (restore && state_of(stamp) == HELD)
        give_access(range_of(guard));
    set->guard = NULL;
    /* A thread that is about to give access needs the entry and the set. It cannot have been interrupted by this one: a
     * signal's handler does not free arrays. */
    while (state_of(stamp) == HIT || !advanced(guard, stamp, IDLE)) {
        sched_yield();
        stamp = atomic_load(&guard->stamp);
    }
}

int nw_guard_holds(const nw_copy_set *set) { return set->guard && state_of(atomic_load(&set->guard->stamp)) == HELD; }
