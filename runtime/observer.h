/* What the observing half of the runtime shares between its files: state, files, events, threads. */
#ifndef NODEWISE_OBSERVER_H
#define NODEWISE_OBSERVER_H

#include "runtime.h"

#include <signal.h>
#include <sys/types.h>

/* ---- process.c: whether and where we record ------------------------------------------------- */

#define NW_PATH_BYTES 1024 /* small: may be on a signal stack */

enum nw_state { NW_UNKNOWN, NW_RECORDING, NW_OFF };

/* Decides on the first call, from $NODEWISE_RAW. */
bool nw_recording(void);
int *nw_state_word(void);

/* The folder of this process image; no slash at the end. */
extern char nw_folder[NW_PATH_BYTES];

/* Null when not recording. */
extern nw_control *nw_control_page;

/* ---- files.c: system calls without errno, files that grow ------------------------------------ */

/* Results below zero are -errno. */
long nw_call(long number, long a, long b, long c, long d, long e, long f);

#define NW_CALL_6(n, a, b, c, d, e, f, ...)                                                            \
    nw_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define nw_system(n, ...) NW_CALL_6(n, __VA_ARGS__, 0, 0, 0, 0, 0, 0)

/* Anonymous zero pages, or null. */
void *nw_map_private(size_t bytes);
void nw_unmap(void *address, size_t bytes);
void nw_touched_prepare(void); /* before the first count */

/* Address space with a file behind its beginning. */
typedef struct nw_area {
    char *base;
    size_t reserved;
    size_t mapped;
} nw_area;

/* Reserves the space, less of it when there is little. */
bool nw_area_reserve(nw_area *area, size_t bytes);

/* Backs the first `bytes` with the named file of this process image, blocks allocated; with private
 * memory when not recording. On failure switches recording off and uses private memory. */
bool nw_area_grow(nw_area *area, const char *name, uint32_t number, size_t bytes);

/* Forgets what is behind it; the space stays reserved at the same place. */
bool nw_area_clear(nw_area *area);
void nw_area_release(nw_area *area);

/* `<folder>/<name>-<number>`, or `<folder>/<name>` for NW_NO_NUMBER. */
#define NW_NO_NUMBER UINT32_MAX
void nw_path(char *path, const char *name, uint32_t number);

/* ---- events.c -------------------------------------------------------------------------------- */

/* A line under construction: words apart by spaces, numbers in hexadecimal. */
typedef struct nw_line {
    size_t used;
    char text[2048]; /* what does not fit is cut off */
} nw_line;

void nw_line_begin(nw_line *line, const char *word);
void nw_line_number(nw_line *line, uint64_t number);
void nw_line_text(nw_line *line, const char *text); /* rest of the line: may hold spaces */
void nw_line_end(nw_line *line);                    /* more lines may follow */
void nw_event(nw_line *line);                       /* ends it and appends it to the log */
uint64_t nw_events_written(void);
/* A forked image goes on from its parent's log, up to so many bytes; the parent by its folder. */
void nw_event_parent(const char *folder, uint64_t written);
void nw_say_stopped(const char *why); /* the recording is cut short: on standard error */
void nw_mark_truncated(const char *why); /* the same, for the recorder, even when the log cannot be written */

/* ---- threads.c ------------------------------------------------------------------------------- */

typedef struct nw_observer {
    nw_thread thread;
    nw_area counters;
    nw_area touches;
    struct nw_observer *next;
    uint32_t ordinal;
    uint32_t tid;
    uint32_t openmp_known;
    int64_t quantum; /* accesses until the next look at the slice, as last handed out */
    void *(*start)(void *);
    void *argument;
} nw_observer;

/* The calling thread; made on first use, without files. Null only when memory is out. */
nw_observer *nw_here(void);

void nw_threads_lock(sigset_t *before);
void nw_threads_unlock(const sigset_t *before);
void nw_threads_after_fork(void);

/* ---- seat.c: under an emulator ----------------------------------------------------------------- */

/* Whether the emulator's plugin counts, not this library: $NODEWISE_EMULATED. */
bool nw_emulated(void);
/* Adds the outlined functions of a module to what the plugin knows. */
extern struct nw_functions nw_outlined;
void nw_outlined_scan(const char *path, uint64_t bias);
/* Tells it that this thread runs here from now on. */
void nw_seat_take(const nw_observer *observer);

/* ---- thread_files.c: where a thread's counters go --------------------------------------------- */

/* Address space and files, everything empty. */
bool nw_thread_open(nw_observer *observer);
/* The same over again at the same addresses, for a new process image. */
bool nw_thread_reopen(nw_observer *observer);
void nw_thread_close(nw_observer *observer);

/* ---- objects.c, modules.c, slices.c ---------------------------------------------------------- */

void nw_objects_start(void);
void nw_objects_stop(void);
void nw_objects_after_fork(void);
void nw_modules_scan(void); /* logs modules that are new */
void nw_modules_check(void); /* the same, when dlopen was called since */

/* What nw_thread.until_slice starts from. */
int64_t nw_slice_budget(nw_observer *observer);
/* Asks for a snapshot and waits until it is whole. */
void nw_slice_cut(void);
/* Charges the slice with what is still in the window. */
void nw_slice_charge(nw_thread *thread);

#endif
