#define _GNU_SOURCE
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

char nw_folder[NW_PATH_BYTES];
nw_control *nw_control_page;
uint64_t *nw_touched;

static int state; /* enum nw_state */
static char raw[NW_PATH_BYTES - 64];
static uint64_t events_before_fork;

static size_t put_decimal(char *to, uint64_t number)
{
    char digits[20], *digit = digits + sizeof digits;
    do
        *--digit = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    size_t length = (size_t)(digits + sizeof digits - digit);
    memcpy(to, digit, length);
    to[length] = 0;
    return length;
}

/* `<raw>/<pid>-<sequence>`: exec keeps the pid, so the first free sequence number. */
static bool make_folder(void)
{
    char *end = stpcpy(stpcpy(nw_folder, raw), "/");
    end += put_decimal(end, (uint64_t)nw_system(SYS_getpid, 0));
    *end++ = '-';
    for (uint32_t sequence = 0; sequence < 10000; sequence++) {
        put_decimal(end, sequence);
        long result = nw_system(SYS_mkdirat, AT_FDCWD, nw_folder, 0755);
        if (result != -EEXIST)
            return result == 0;
    }
    return false;
}

static nw_control *map_control(void)
{
    char path[NW_PATH_BYTES];
    stpcpy(stpcpy(path, raw), "/control");
    long file = nw_system(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return NULL;
    long page = nw_system(SYS_mmap, NULL, sizeof(nw_control), PROT_READ | PROT_WRITE, MAP_SHARED, file);
    nw_system(SYS_close, file);
    nw_control *control = page < 0 && page > -4096 ? NULL : (nw_control *)page;
    return control != NULL && control->magic == NW_MAGIC && control->version == NW_LAYOUT_VERSION ? control : NULL;
}

static void log_process(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    nw_line line = {0};
    nw_line_begin(&line, "process");
    nw_line_number(&line, (uint64_t)nw_system(SYS_getpid, 0));
    nw_line_number(&line, (uint64_t)nw_system(SYS_getppid, 0));
    nw_line_number(&line, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    nw_line_number(&line, (uint64_t)nw_system(SYS_brk, 0));
    /* Near the upper end of the first stack, which grows. An emulator's does not: see log_started. */
    nw_line_number(&line, nw_emulated() ? 0 : (uintptr_t)environ);
    nw_event(&line);
}

int *nw_state_word(void)
{
    return &state;
}

static void fork_prepare(void);
static void fork_parent(void);
static void fork_child(void);

/* By the first thread that counts: programs that are only followed keep their address space, which the
 * kernel's balancing walks through. */
void nw_touched_prepare(void)
{
    if (nw_emulated() || __atomic_load_n(&nw_touched, __ATOMIC_ACQUIRE) != NULL)
        return;
    uint64_t *fresh = nw_map_private(NW_TOUCHED_BYTES), *none = NULL;
    if (fresh == NULL)
        nw_mark_truncated("first touches are unknown: the address space limit (ulimit -v) is below 5 GiB");
    else if (!__atomic_compare_exchange_n(&nw_touched, &none, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        nw_unmap(fresh, NW_TOUCHED_BYTES);
}

static bool start(const char *folder)
{
    if (folder == NULL || folder[0] != '/' || strlen(folder) >= sizeof raw)
        return false;
    stpcpy(raw, folder);
    nw_control_page = map_control();
    if (nw_control_page == NULL || !nw_control_page->recorder_alive || !make_folder())
        return false;
    log_process();
    return true;
}

/* The state is settled before threads exist: by the constructor, or by an earlier constructor's
 * first access. */
bool nw_recording(void)
{
    if (nw_unlikely(__atomic_load_n(&state, __ATOMIC_ACQUIRE) == NW_UNKNOWN)) {
        __atomic_store_n(&state, NW_OFF, __ATOMIC_RELEASE); /* for what start itself calls */
        __atomic_store_n(&state, NW_RECORDING, __ATOMIC_RELEASE);
        if (start(getenv("NODEWISE_RAW"))) {
            nw_modules_scan();
            nw_objects_start();
            pthread_atfork(fork_prepare, fork_parent, fork_child);
        } else {
            __atomic_store_n(&state, NW_OFF, __ATOMIC_RELEASE);
        }
    }
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == NW_RECORDING;
}

__attribute__((constructor(101))) static void at_load(void)
{
    nw_recording();
}

static bool recorder_left(void)
{
    return nw_control_page == NULL || !__atomic_load_n(&nw_control_page->recorder_alive, __ATOMIC_ACQUIRE);
}

void nw_switch_off(const char *why)
{
    int recording = NW_RECORDING;
    if (!__atomic_compare_exchange_n(&state, &recording, NW_OFF, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    nw_objects_stop();
    if (recorder_left())
        return; /* a process that outlives the recording */
    nw_mark_truncated(why);
    nw_say_stopped(why);
}

/* ---- fork: the child is a process image of its own, at the same addresses. ---- */

static sigset_t signals_before_fork;

static void fork_prepare(void)
{
    nw_threads_lock(&signals_before_fork);
    events_before_fork = nw_recording() ? nw_events_written() : 0;
}

static void fork_parent(void)
{
    nw_threads_unlock(&signals_before_fork);
}

static void fork_child(void)
{
    char parent[NW_PATH_BYTES];
    stpcpy(parent, nw_folder);
    bool recording = nw_recording();
    if (recording && !make_folder()) {
        __atomic_store_n(&state, NW_OFF, __ATOMIC_RELEASE);
        recording = false;
    }
    if (recording) {
        if (nw_touched != NULL)
            nw_system(SYS_mmap, nw_touched, NW_TOUCHED_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1);
        log_process();
        nw_event_parent(parent, events_before_fork);
    }
    nw_threads_after_fork();
    if (recording)
        nw_objects_after_fork();
    nw_threads_unlock(&signals_before_fork);
}
