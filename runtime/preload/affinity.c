/* The affinity masks that the program sees. Programs count CPUs by their mask: ffmpeg, Java, OpenBLAS, `nproc`. A
 * thread that we bind therefore still sees the mask that it had before, and so do programs that it starts. A mask that
 * the program sets itself takes effect, and is what the thread and the threads that it creates see from then on.
 *
 * The kernel's answer is passed on, unless it is a single CPU that we set. A program that makes its system calls
 * itself, as Go does, or reads /proc sees the kernel's mask. */
#define _GNU_SOURCE
#include "affinity.h"
#include "preload.h"

#include "../loaded.h"
#include "../scratch.h"
#include "../starting.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define WORD (8 * sizeof(unsigned long))
#define THREADS (1u << 22) /* the kernel's limit for their numbers */

/* The C library's functions. */
static struct {
    int (*ask)(pthread_t, size_t, cpu_set_t *), (*set)(pthread_t, size_t, const cpu_set_t *);
    int (*system)(const char *);
    FILE *(*popen)(const char *, const char *);
} next;

/* Done early: once there are threads, another one may hold the loader's lock while it waits for this one. */
__attribute__((constructor(102))) static void look_up(void) {
    *(void **)&next.ask = dlsym(RTLD_NEXT, "pthread_getaffinity_np");
    *(void **)&next.set = dlsym(RTLD_NEXT, "pthread_setaffinity_np");
    *(void **)&next.system = dlsym(RTLD_NEXT, "system");
    *(void **)&next.popen = dlsym(RTLD_NEXT, "popen");
}

/* Constructors of other libraries may call our functions before our constructor has run. */
static void know_next(void) {
    if (!next.popen)
        look_up();
}

static nw_cpus before, planned;
static long mask_bytes; /* size of the kernel's masks; 0: `before` is not known yet */
static int binding; /* how threads are bound: NW_BIND_THREADS, NW_OPENMP_PLACES, NW_FOLLOWED; 0: not by us */
static int started;
/* A bit for each thread whose mask the program set. Pages of it that are not touched use no memory. */
static _Atomic unsigned long set_by_program[THREADS / WORD];

static _Thread_local uint32_t number NW_INITIAL_EXEC; /* of this thread; a child of vfork has its parent's */
static _Thread_local uint32_t given NW_INITIAL_EXEC; /* the CPU that we bound it to, plus 1 */

static int has(const nw_cpus *set, uint32_t cpu) { return cpu < NW_CPUS && (set->words[cpu / WORD] >> cpu % WORD & 1); }

/* The CPU of a set of one CPU; NW_CPUS if the set has more, or none. */
static uint32_t single(const nw_cpus *set) {
    uint32_t found = NW_CPUS;
    for (uint32_t i = 0; i < NW_CPUS / WORD; i++) {
        unsigned long word = set->words[i];
        if (word && (found != NW_CPUS || (word & (word - 1))))
            return NW_CPUS;
        if (word)
            found = i * (uint32_t)WORD + (uint32_t)__builtin_ctzl(word);
    }
    return found;
}

static long ask(uint32_t tid, nw_cpus *set) {
    memset(set, 0, sizeof *set);
    return syscall(SYS_sched_getaffinity, tid, sizeof *set, set);
}

/* A thread's mask, in a buffer that the caller gives back (scratch.h); null if it is not known. */
static nw_cpus *asked(uint32_t tid) {
    nw_cpus *set = nw_scratch_take();
    if (set && ask(tid, set) > 0)
        return set;
    nw_scratch_give(set);
    return NULL;
}

static int give(const nw_cpus *set) { return syscall(SYS_sched_setaffinity, 0, sizeof *set, set) == 0 ? 0 : -errno; }

static int give_one(uint32_t cpu) {
    nw_cpus *one = nw_scratch_take();
    if (!one)
        return -ENOMEM;
    memset(one, 0, sizeof *one);
    one->words[cpu / WORD] = 1ul << cpu % WORD;
    int status = give(one);
    nw_scratch_give(one);
    return status;
}

static void know_before(void) {
    int error = errno;
    if (!mask_bytes)
        mask_bytes = ask(0, &before);
    errno = error;
}

/* Done early, before several threads can call it at once. */
__attribute__((constructor(102))) static void know_early(void) { know_before(); }

static uint32_t me(void) { return number ? number : (uint32_t)syscall(SYS_gettid); }

static int is_me(pid_t tid) { return tid == 0 || tid == (pid_t)syscall(SYS_gettid); }

static int is_in_this_process(pid_t tid) {
    int error = errno, is = tid > 0 && syscall(SYS_tgkill, getpid(), tid, 0) == 0;
    errno = error;
    return is;
}

static int is_programs(uint32_t tid) {
    return tid < THREADS && (atomic_load_explicit(&set_by_program[tid / WORD], memory_order_relaxed) >> tid % WORD & 1);
}

static void note(uint32_t tid, int by_program) {
    unsigned long bit = 1ul << tid % WORD;
    if (tid < THREADS && by_program)
        atomic_fetch_or(&set_by_program[tid / WORD], bit);
    else if (is_programs(tid))
        atomic_fetch_and(&set_by_program[tid / WORD], ~bit);
}

/* Whether `given` is valid for the calling thread. It is not where OpenMP's runtime or the runner binds threads. */
static int is_told(void) { return number && !(binding & (NW_OPENMP_PLACES | NW_FOLLOWED)); }

/* Whether the mask `now` of a thread of this process was set by us, for the thread or its creator. If it is not known
 * which CPU the thread was given, any single CPU of the plan counts. That is so for other threads than the calling one,
 * for threads that the C library creates for itself, and where OpenMP's runtime binds to places of the plan. */
static int is_ours(uint32_t tid, int mine, const nw_cpus *now) {
    uint32_t cpu = single(now);
    if (!binding || cpu == NW_CPUS || is_programs(tid))
        return 0;
    if (mine && is_told())
        return given == cpu + 1;
    return has(&planned, cpu);
}

/* Whether code belongs to a runtime that binds by OMP_PLACES. */
static int is_openmp(const void *code) {
    static const char *const runtimes[] = {"libgomp", "libomp", "libiomp"};
    nw_loaded module;
    if (!nw_loaded_at((uintptr_t)code, &module))
        return 0;
    const char *slash = strrchr(module.path, '/'), *name = slash ? slash + 1 : module.path;
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
        if (strncmp(name, runtimes[i], strlen(runtimes[i])) == 0)
            return 1;
    return 0;
}

/* Whether the caller is an OpenMP runtime that binds to our places. Before our start it is not known whether the places
 * are ours; then every OpenMP runtime counts. */
static int is_for_us(const void *caller) { return (!started || binding & NW_OPENMP_PLACES) && is_openmp(caller); }

static void was_set(uint32_t tid, const void *caller) {
    if (started && !is_for_us(caller))
        __atomic_fetch_add(&nw_report->own_masks, 1, __ATOMIC_RELAXED);
    if (!started || binding)
        note(tid, !is_for_us(caller));
}

/* ---- Binding by the plan ---- */

nw_inherited nw_affinity_inherited(const pthread_attr_t *attributes, const void *caller) {
    cpu_set_t set;
    if (attributes && pthread_attr_getaffinity_np(attributes, sizeof set, &set) == 0 && CPU_COUNT(&set) < CPU_SETSIZE)
        return is_for_us(caller) ? NW_BY_RUNTIME : NW_BY_PROGRAM;
    nw_cpus *now = is_programs(me()) ? NULL : asked(0);
    int as_before = now && (memcmp(now, &before, sizeof *now) == 0 || is_ours(me(), 1, now));
    nw_scratch_give(now);
    return as_before ? NW_FROM_BEFORE : NW_BY_PROGRAM;
}

void nw_affinity_begins(nw_inherited inherited) {
    number = (uint32_t)syscall(SYS_gettid);
    note(number, inherited == NW_BY_PROGRAM);
    nw_cpus *now = inherited == NW_FROM_BEFORE ? asked(0) : NULL;
    if (now && memcmp(now, &before, sizeof *now) != 0) /* it has inherited the CPU that its creator is bound to */
        give(&before);
    nw_scratch_give(now);
}

int nw_affinity_bind(uint32_t cpu) {
    int status = has(&before, cpu) ? give_one(cpu) : -EINVAL;
    if (status == 0)
        given = cpu + 1;
    return status;
}

int nw_affinity_visit(uint32_t cpu) {
    nw_cpus *now = has(&before, cpu) ? asked(0) : NULL;
    if (now && give_one(cpu) == 0)
        give(now);
    nw_scratch_give(now);
    return now != NULL;
}

/* ---- Programs that are started ---- */

enum { POLICY = 1u << 31 };

static unsigned put_aside(void) {
    int error = errno;
    unsigned what = nw_thread_ordinal() == 0 && nw_kernel_home_put_aside() ? POLICY : 0;
    nw_cpus *now = given || !is_told() ? asked(0) : NULL;
    if (now && is_ours(me(), 1, now) && give(&before) == 0)
        what |= single(now) + 1;
    nw_scratch_give(now);
    errno = error;
    return what;
}

static void take_up(unsigned what) {
    int error = errno;
    uint32_t cpu = (what & ~POLICY) - 1;
    if (what & POLICY)
        nw_kernel_home_take_up();
    if (cpu < NW_CPUS)
        give_one(cpu);
    errno = error;
}

/* A forked child is not a thread of the plan, so it gets the original mask: otherwise many children would share their
 * parent's CPU. */
static void in_child(void) {
    int error = errno;
    uint32_t parent = me();
    nw_cpus *now = given || !is_told() ? asked(0) : NULL;
    int ours = now && is_ours(parent, 1, now);
    nw_scratch_give(now);
    number = (uint32_t)syscall(SYS_gettid);
    note(number, is_programs(parent));
    if (ours)
        give(&before);
    given = 0;
    errno = error;
}

void nw_affinity_start(void) {
    know_before();
    number = (uint32_t)syscall(SYS_gettid);
    for (uint32_t i = 0; i < nw_placement->thread_cpus.count; i++) {
        uint32_t cpu = nw_thread_cpus(nw_placement)[i];
        if (cpu < NW_CPUS)
            planned.words[cpu / WORD] |= 1ul << cpu % WORD;
    }
    if (mask_bytes > 0 && !nw_kernel_tracing())
        binding = (int)(nw_placement->flags & (NW_BIND_THREADS | NW_OPENMP_PLACES | NW_FOLLOWED));
    nw_cpus *now = binding & NW_OPENMP_PLACES ? NULL : asked(0);
    if (now && memcmp(now, &before, sizeof *now) != 0)
        note(number, 1);
    nw_scratch_give(now);
    started = 1;
    nw_put_aside = put_aside;
    nw_take_up = take_up;
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- What the program calls ---- */

/* The kernel's number of one of the program's threads, taken from the identifier of its CPU clock; 0 if not known. */
static uint32_t number_of(pthread_t thread) {
    clockid_t clock;
    if (pthread_equal(thread, pthread_self()))
        return me();
    return pthread_getcpuclockid(thread, &clock) == 0 ? ~((uint32_t)clock >> 3 | 7u << 29) : 0;
}

/* `set` holds the kernel's answer, in `bytes` of the program's memory. If we set that mask, replaces it by the original
 * one. */
static void as_before(uint32_t tid, int mine, size_t bytes, cpu_set_t *set) {
    nw_cpus *now = binding ? nw_scratch_take() : NULL;
    size_t most = bytes < sizeof *now ? bytes : sizeof *now;
    if (!now)
        return;
    memset(now, 0, sizeof *now);
    memcpy(now, set, most);
    if (is_ours(tid, mine, now))
        memcpy(set, &before, most);
    nw_scratch_give(now);
}

EXPORTED int sched_getaffinity(pid_t tid, size_t bytes, cpu_set_t *set) {
    long filled = syscall(SYS_sched_getaffinity, tid, bytes < INT_MAX ? bytes : INT_MAX, set);
    if (filled < 0)
        return -1;
    memset((char *)set + filled, 0, bytes - (size_t)filled);
    int mine = is_me(tid);
    if (binding && (mine || is_in_this_process(tid)))
        as_before(mine ? me() : (uint32_t)tid, mine, bytes, set);
    return 0;
}

EXPORTED int sched_setaffinity(pid_t tid, size_t bytes, const cpu_set_t *set) {
    know_before();
    if (syscall(SYS_sched_setaffinity, tid, bytes, set) != 0)
        return -1;
    int mine = is_me(tid);
    if (mine || is_in_this_process(tid))
        was_set(mine ? me() : (uint32_t)tid, __builtin_return_address(0));
    return 0;
}

EXPORTED int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t *set) {
    know_next();
    int status = next.ask(thread, bytes, set);
    if (status == 0 && binding)
        as_before(number_of(thread), pthread_equal(thread, pthread_self()), bytes, set);
    return status;
}

EXPORTED int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set) {
    know_next();
    know_before();
    int status = next.set(thread, bytes, set);
    if (status == 0)
        was_set(number_of(thread), __builtin_return_address(0));
    return status;
}

/* The C library starts the shells of system and popen by internal calls, which we do not intercept. */
static void shell_ended(void *what) { take_up(*(unsigned *)what); }

EXPORTED int system(const char *command) {
    int status = -1;
    know_next();
    if (!started || !command)
        return next.system(command);
    unsigned what = put_aside();
    pthread_cleanup_push(shell_ended, &what);
    status = next.system(command);
    pthread_cleanup_pop(1);
    return status;
}

EXPORTED FILE *popen(const char *command, const char *mode) {
    know_next();
    unsigned what = started ? put_aside() : 0;
    FILE *stream = next.popen(command, mode);
    take_up(what);
    return stream;
}
