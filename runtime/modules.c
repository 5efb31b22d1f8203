#define _GNU_SOURCE
#include "loaded.h"
#include "observer.h"
#include "scratch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MODULES 1024

static struct {
    uintptr_t bias, parts;
} known[MODULES];
static size_t modules;
static uint32_t looks; /* checks since the last call of dlopen, plus one; 0: dlopen was never called */

static bool is_known(const nw_listed *module) {
    for (size_t i = 0; i < modules; i++)
        if (known[i].bias == module->bias && known[i].parts == module->parts)
            return true;
    return false;
}

/* False: the module was unloaded meanwhile. */
static bool log_module(nw_readable *sight, const nw_listed *module, const char *path) {
    nw_line line = {0};
    nw_line_begin(&line, "module");
    nw_line_number(&line, module->bias);
    for (unsigned long i = 0; i < module->part_count; i++) {
        ElfW(Phdr) segment;
        if (!nw_read(sight, &segment, module->parts + i * sizeof segment, sizeof segment)) {
            nw_scratch_give(line.text);
            return false;
        }
        if (segment.p_type != PT_LOAD)
            continue;
        nw_line_number(&line, module->bias + segment.p_vaddr);
        nw_line_number(&line, segment.p_memsz);
        nw_line_number(&line, segment.p_flags);
    }
    nw_line_text(&line, "=");
    nw_line_text(&line, path);
    nw_event(&line);
    return true;
}

static bool read_text(nw_readable *sight, char *to, size_t room, uintptr_t from) {
    for (size_t i = 0; i < room && nw_read(sight, &to[i], from + i, 1); i++)
        if (to[i] == 0)
            return true;
    return false;
}

/* The loader keeps a relative path as it was given to dlopen, but the recorder has another working directory. */
static const char *absolute(const char *path, char *room, size_t bytes) {
    if (path == NULL || path[0] == '/' || strchr(path, '/') == NULL)
        return path; /* no slash: the vDSO */
    long length = nw_system(SYS_getcwd, room, bytes);
    if (length <= 0 || (size_t)length + strlen(path) + 1 > bytes)
        return NULL;
    stpcpy(stpcpy(room + length - 1, "/"), path);
    return room;
}

static const char *path_of(nw_readable *sight, const nw_listed *module, char *name, char *room, size_t bytes) {
    if (!read_text(sight, name, bytes, module->path))
        return NULL;
    if (*name != 0)
        return absolute(name, room, bytes);
    /* The executable, whose name is empty in the loader's list. */
    long length = nw_system(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", room, bytes - 1);
    room[length < 0 ? 0 : length] = 0;
    return room;
}

static int visit(nw_readable *sight, const nw_listed *module, void *unused) {
    static char name[1024], room[1024]; /* not on the stack, which may be small; only one scan runs at a time */
    (void)unused;
    if (modules == MODULES)
        return 0;
    if (is_known(module))
        return 1;
    const char *path = path_of(sight, module, name, room, sizeof room);
    if (path != NULL && path[0] == '/' && log_module(sight, module, path)) {
        known[modules].bias = module->bias;
        known[modules++].parts = module->parts;
        if (nw_emulated())
            nw_outlined_scan(path, module->bias);
    }
    return 1;
}

static int scanning;
static bool fork_waits; /* a fork waits for the end of the current scan */

static bool may_scan(void) { return !__atomic_exchange_n(&scanning, 1, __ATOMIC_ACQUIRE); }

void nw_modules_scan(void) {
    if (__atomic_load_n(&fork_waits, __ATOMIC_RELAXED) || !may_scan()) {
        __atomic_store_n(&looks, 1, __ATOMIC_RELEASE); /* check again later: the current scan may miss the module */
        return;
    }
    nw_loaded_each(visit, NULL);
    __atomic_store_n(&scanning, 0, __ATOMIC_RELEASE);
}

/* A child forked during another thread's scan would inherit the scan's descriptor, so fork waits for the end of the
 * scan. The wait is bounded: the scan may have been interrupted by the signal handler that forks. */
#define ATTEMPTS 200
#define PAUSE_NS 50000
static bool held;

void nw_modules_before_fork(void) {
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    held = may_scan();
    __atomic_store_n(&fork_waits, !held, __ATOMIC_RELAXED);
    for (int attempt = 0; attempt < ATTEMPTS && !held; attempt++) {
        nw_system(SYS_nanosleep, &pause, NULL);
        held = may_scan();
    }
    __atomic_store_n(&fork_waits, false, __ATOMIC_RELAXED);
}

void nw_modules_after_fork(bool in_child) {
    if (held || in_child)
        __atomic_store_n(&scanning, 0, __ATOMIC_RELEASE);
    held = false;
}

/* It is not known when a call of dlopen has returned, and the first check may be too early. So modules are scanned at
 * the first, second, fourth, eighth, ... check after the call. */
void nw_modules_check(void) {
    if (nw_likely(__atomic_load_n(&looks, __ATOMIC_RELAXED) == 0) || !nw_recording())
        return;
    uint32_t look = __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
    if ((look & (look - 1)) == 0)
        nw_modules_scan();
}

/* ---- Thread-local variables. Those of modules that were loaded at start lie at the same distance from ours in
 * every thread. Those of other modules are not logged: only the loader knows where they are, and asking it takes a
 * lock. ---- */

static struct {
    ptrdiff_t from_ours;
    size_t bytes;
    uintptr_t bias;
} thread_local_parts[MODULES];
static size_t thread_locals;

static int note_thread_locals(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_TLS || info->dlpi_tls_data == NULL || thread_locals == MODULES)
            continue;
        thread_local_parts[thread_locals].from_ours = (char *)info->dlpi_tls_data - (char *)&nw_self;
        thread_local_parts[thread_locals].bytes = info->dlpi_phdr[i].p_memsz;
        thread_local_parts[thread_locals++].bias = info->dlpi_addr;
    }
    return 0;
}

void nw_modules_tls(nw_line *line, uint32_t ordinal) {
    for (size_t i = 0; i < thread_locals; i++) {
        nw_line_next(line, "tls");
        nw_line_number(line, ordinal);
        nw_line_number(line, (uintptr_t)&nw_self + (uintptr_t)thread_local_parts[i].from_ours);
        nw_line_number(line, thread_local_parts[i].bytes);
        nw_line_number(line, thread_local_parts[i].bias);
    }
}

void nw_modules_start(void) {
    nw_modules_scan();
    dl_iterate_phdr(note_thread_locals, NULL);
}

/* ---- What the program calls. ---- */

static struct {
    __typeof__(&dlopen) open;
    __typeof__(&dlclose) close;
} next;

/* Done early: once there are threads, another one may hold the loader's lock while it waits for this one. */
__attribute__((constructor(101))) static void look_up(void) {
    next.close = (__typeof__(next.close))dlsym(RTLD_NEXT, "dlclose");
    next.open = (__typeof__(next.open))dlsym(RTLD_NEXT, "dlopen");
}

/* Which file is opened depends on the calling module ($ORIGIN, RPATH, RUNPATH), which the C library determines from the
 * return address. So this function must jump to the real one, and the scan has to be done later. */
NW_EXPORT void *dlopen(const char *path, int flags) {
    if (next.open == NULL)
        look_up();
    __atomic_store_n(&looks, 1, __ATOMIC_RELEASE);
    __attribute__((musttail)) return next.open(path, flags);
}

/* Scans again, since there may have been no check since the last module was opened. */
static void look_again(void) {
    if (__atomic_load_n(&looks, __ATOMIC_RELAXED) != 0 && nw_recording())
        nw_modules_scan();
}

NW_EXPORT int dlclose(void *handle) {
    if (next.close == NULL)
        look_up();
    look_again();
    __attribute__((musttail)) return next.close(handle);
}

__attribute__((destructor)) static void at_exit(void) { look_again(); }
