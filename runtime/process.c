#define _GNU_SOURCE
#include "foreign.h"
#include "observer.h"
#include "starting.h"
#include "stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

char nw_folder[NW_PATH_BYTES];
nw_control *nw_control_page;

static int state; /* enum nw_state */
static char raw[NW_PATH_BYTES - 64];
static char control[NW_PATH_BYTES]; /* path of the recorder's control page */
static uint64_t events_before_fork;
static bool forking; /* within the C library's fork, between its first and last handler of ours */

static void log_process(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    nw_line line = {0};
    nw_line_begin(&line, "process");
    nw_line_number(&line, (uint64_t)nw_system(SYS_getpid, 0));
    nw_line_number(&line, (uint64_t)nw_system(SYS_getppid, 0));
    nw_line_number(&line, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    nw_line_number(&line, (uint64_t)nw_system(SYS_brk, 0));
    /* An address near the upper end of the main thread's stack, which grows. Under an emulator that stack has a fixed
     * size and is logged by log_started. */
    nw_line_number(&line, nw_emulated() ? 0 : (uintptr_t)environ);
    nw_event(&line);
}

int *nw_state_word(void) { return &state; }

static bool is_copy(void);
static void become_image(void);
static void watch_for_copies(void);
static void fork_prepare(void);
static void fork_parent(void);
static void fork_child(void);

/* Makes the folder of this process image. If that fails, the image is not recorded, and this is reported. */
static bool enter_image(void) {
    static const char why[] = "a process cannot make its folder in the profile";
    if (nw_folder_make(nw_folder, raw))
        return true;
    nw_mark_truncated(why);
    nw_say_stopped(why);
    return false;
}

static const char *left_out(char *const *environment, int reset);
static void lacks(const char *why, const char *file);

/* Reports that there is a recorder but this user may not write to its files, or that it is of a version that would not
 * understand them, which would otherwise go unnoticed. */
static void say_why_not(void) {
    static const char denied[] = "nodewise: not recorded: this user may not write the profile\n";
    static const char other[] =
        "nodewise: not recorded: this program is built by another version of nodewise than records it; "
        "rebuild it with that one's nodewise-cc\n";
    long file = nw_open(control, O_RDWR);
    if (file == -EACCES)
        nw_stderr_line(denied, sizeof denied - 1);
    if (nw_failed(file))
        return;
    struct {
        uint64_t magic;
        uint32_t version;
    } written;
    _Static_assert(offsetof(nw_control, version) == sizeof written.magic, "as in nw_control");
    if (nw_system(SYS_pread64, file, &written, sizeof written, 0) == sizeof written && written.magic == NW_MAGIC &&
        written.version != NW_LAYOUT_VERSION)
        nw_stderr_line(other, sizeof other - 1);
    nw_close(file);
}

static bool start(const char *folder) {
    if (folder == NULL || folder[0] != '/' || strlen(folder) >= sizeof raw)
        return false;
    stpcpy(raw, folder);
    stpcpy(stpcpy(control, raw), "/control");
    nw_control_page = nw_control_map(raw);
    if (nw_control_page == NULL)
        say_why_not();
    if (nw_control_page == NULL || !enter_image())
        return false;
    nw_left_out = left_out;
    nw_lacks = lacks;
    nw_stderr_start();
    log_process();
    return true;
}

/* The state is settled before threads exist: by the constructor, or by an earlier constructor's
 * first access. */
bool nw_recording(void) {
    if (nw_unlikely(__atomic_load_n(&state, __ATOMIC_ACQUIRE) == NW_UNKNOWN)) {
        __atomic_store_n(&state, NW_RECORDING, __ATOMIC_RELEASE); /* before `start`, which calls this function too */
        if (start(getenv("NODEWISE_RAW"))) {
            nw_modules_start();
            nw_objects_start();
            watch_for_copies();
            pthread_atfork(fork_prepare, fork_parent, fork_child);
        } else {
            __atomic_store_n(&state, NW_OFF, __ATOMIC_RELEASE);
        }
    }
    if (nw_unlikely(is_copy()))
        become_image();
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == NW_RECORDING;
}

__attribute__((constructor(101))) static void at_load(void) { nw_recording(); }

static bool recorder_left(void) {
    return nw_control_page == NULL || !__atomic_load_n(&nw_control_page->recorder_alive, __ATOMIC_ACQUIRE);
}

void nw_switch_off(const char *why) {
    int recording = NW_RECORDING;
    if (!__atomic_compare_exchange_n(&state, &recording, NW_OFF, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    nw_objects_stop();
    if (recorder_left())
        return; /* a process that outlives the recording */
    nw_mark_truncated(why);
    nw_say_stopped(why);
}

/* ---- exec: whether the next image can be recorded. ---- */

/* Whether a program that is executed now may access a file of the recording in this way. Of the capabilities, exec
 * leaves users other than root the ambient ones only. Kernels before 5.8 can check with the real ids only. */
static bool will_be_allowed(const char *path, int how, bool reset) {
    bool same = reset || (nw_system(SYS_getuid, 0) == nw_system(SYS_geteuid, 0) &&
                          nw_system(SYS_getgid, 0) == nw_system(SYS_getegid, 0));
    long with_real = nw_system(SYS_faccessat, AT_FDCWD, path, how);
    if (!same) {
        long with_effective = nw_system(SYS_faccessat2, AT_FDCWD, path, how, AT_EACCESS);
        return (with_effective == -ENOSYS ? with_real : with_effective) == 0;
    }
    return with_real == 0 ||
           (with_real == -EACCES && nw_system(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_DAC_OVERRIDE) == 1);
}

/* Also called in a child of vfork, so it must not change memory, which is the parent's. */
static const char *left_out(char *const *environment, int reset) {
    static const char variable[] = "NODEWISE_RAW=";
    if (*nw_state_word() != NW_RECORDING || recorder_left())
        return NULL;
    if (!will_be_allowed(raw, W_OK | X_OK, reset) || !will_be_allowed(control, R_OK | W_OK, reset))
        return "a program was started by a user, or under a root, that cannot write the profile";
    while (!nw_emulated() && environment && *environment && strncmp(*environment, variable, sizeof variable - 1) != 0)
        environment++;
    return nw_emulated() || (environment && *environment) ? NULL : "a program was started without NODEWISE_RAW";
}

/* An emulator counts in every program, others only in those compiled to be recorded. */
static void lacks(const char *why, const char *file) {
    if (nw_emulated() ? access(file, X_OK) == 0 : nw_counts(file))
        nw_mark_truncated(why);
}

/* ---- fork: the child is a process image of its own, at the same addresses. ---- */

static sigset_t signals_before_fork;

static void fork_prepare(void) {
    nw_threads_lock(&signals_before_fork);
    nw_modules_before_fork();
    forking = true;
    events_before_fork = nw_recording() ? nw_events_written() : 0;
}

static void fork_parent(void) {
    forking = false;
    nw_modules_after_fork(false);
    nw_threads_unlock(&signals_before_fork);
}

#define PAGE_BYTES 4096u

/* A page that the kernel clears in a copy of this process. A process that shares this one's memory is no copy. */
static uint32_t *original;
static long emulated_process; /* the process that this memory belongs to; 0: not emulated */

static void watch_for_copies(void) {
    emulated_process = nw_emulated() ? nw_system(SYS_getpid, 0) : 0;
    uint32_t *word = emulated_process != 0 ? NULL : nw_map_private(NULL, PAGE_BYTES);
    if (word == NULL)
        return;
    if (nw_failed(nw_system(SYS_madvise, word, PAGE_BYTES, MADV_WIPEONFORK))) {
        nw_unmap(word, PAGE_BYTES);
        return;
    }
    *word = 1;
    nw_copied = become_image;
    nw_original = original = word;
}

static bool is_copy(void) { return original != NULL && __atomic_load_n(original, __ATOMIC_RELAXED) == 0; }

/* Starts the child's image. The child has one thread. */
static void enter_child(uint64_t events_of_parent) {
    static char parent[NW_PATH_BYTES];
    nw_descriptors_forget();
    stpcpy(parent, nw_folder);
    emulated_process = nw_emulated() ? nw_system(SYS_getpid, 0) : 0;
    bool recording = nw_recording();
    if (recording && !enter_image()) {
        __atomic_store_n(&state, NW_OFF, __ATOMIC_RELEASE);
        recording = false;
    }
    if (recording) {
        nw_touched_forget();
        log_process();
        nw_event_parent(parent, events_of_parent);
    }
    nw_threads_after_fork();
    if (recording)
        nw_objects_after_fork();
}

/* A child that was made by clone(2) itself has run no fork handlers. It comes here at its first new page, allocation or
 * thread; its accesses until then are counted as its parent's. A lock may be held by a thread that the child lacks. */
static void become_image(void) {
    static const char why[] = "a process was made by clone(2) itself: its first accesses are counted as its parent's";
    sigset_t before;
    if (original != NULL)
        *original = 1; /* first of all, since the functions called below check it */
    if (*nw_state_word() != NW_RECORDING)
        return;
    nw_threads_forget_lock();
    nw_threads_lock(&before);
    if (!forking)
        nw_mark_truncated(why);
    enter_child(forking ? events_before_fork : nw_events_logged());
    nw_modules_after_fork(true);
    nw_threads_unlock(&before);
}

/* An emulator does not clear the page: QEMU 7 accepts the advice and ignores it. But where a process would share its
 * parent's memory an emulator copies it, so a different pid always means a copy. */
void nw_look_for_copy(void) {
    if (emulated_process != 0 && emulated_process != nw_system(SYS_getpid, 0))
        become_image();
}

static void fork_child(void) {
    /* Unless the child has become an image already, in a fork handler that ran before this one. */
    if (original == NULL || emulated_process != 0 || is_copy()) {
        if (original != NULL)
            *original = 1;
        enter_child(events_before_fork);
    }
    forking = false;
    nw_modules_after_fork(true);
    nw_threads_unlock(&signals_before_fork);
}

/* A copy that used no pages other than those its parent counts is detected at its end. A child of vfork is no copy. */
NW_EXPORT void _exit(int status) {
    if (is_copy())
        become_image();
    for (;;)
        nw_system(SYS_exit_group, status);
}

NW_EXPORT void _Exit(int status) { _exit(status); }
