/* Interfaces between the files of the observing half of the runtime: state, files, events, threads. */
#ifndef NODEWISE_OBSERVER_H
#define NODEWISE_OBSERVER_H

#include "runtime.h"

#include <signal.h>
#include <sys/types.h>

/* ---- process.c: whether and where we record ------------------------------------------------- */

#define NW_PATH_BYTES 1024

enum nw_state { NW_UNKNOWN, NW_RECORDING, NW_OFF };

/* Decides on the first call, from $NODEWISE_RAW. */
bool nw_recording(void);
int *nw_state_word(void);

/* The folder of this process image; no slash at the end. */
extern char nw_folder[NW_PATH_BYTES];

/* Null when not recording. */
extern nw_control *nw_control_page;

/* ---- image.c: where a process image writes to ------------------------------------------------ */

/* Maps the recorder's control page in this folder; null if no recorder is running. */
nw_control *nw_control_map(const char *raw);

/* Makes `<raw>/<pid>-<sequence>`, whose path it writes to `folder`. */
bool nw_folder_make(char *folder, const char *raw);

/* Tells the recorder that this process image stopped recording, or did not begin. */
void nw_mark_truncated(const char *why);

/* ---- files.c: system calls without errno, files that grow ------------------------------------ */

/* A system call. Returns -errno on failure; errno itself stays. */
long nw_call(long number, long a, long b, long c, long d, long e, long f);

#define NW_CALL_6(n, a, b, c, d, e, f, ...) nw_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define nw_system(n, ...) NW_CALL_6(n, __VA_ARGS__, 0, 0, 0, 0, 0, 0)

/* The reason why a recording stops, in words; `error` is -errno of a file that could not be written. */
const char *nw_reason(long error);

bool nw_failed(long result);

/* Whether a resource limit restricts the size of files that the program may write. */
bool nw_is_file_limited(void);

/* A descriptor for short use, or -errno. */
long nw_open(const char *path, int flags);
void nw_close(long file);
void nw_descriptors_forget(void); /* in a forked child: forgets descriptors of the parent's other threads */

/* Maps a part of a file, shared, at `at` if that is not null. If `flags` has O_CREAT, creates the file and allocates
 * the part's blocks. Returns the address, or -errno. No descriptor stays open. */
long nw_file_map(const char *path, int flags, size_t from, size_t bytes, void *at);

/* Anonymous zero pages, at `at` if that is not null; or null. */
void *nw_map_private(void *at, size_t bytes);
void nw_unmap(void *address, size_t bytes);

/* Maps a part of the named file of this process image, with its blocks allocated, at `at` if that is not null. Maps
 * private memory when not recording, and also if the file cannot be extended, which switches recording off. Null if
 * neither is possible. */
void *nw_map_backed(const char *name, uint32_t number, size_t from, size_t bytes, void *at, bool *backed);

/* `<folder>/<name>-<number>`, or `<folder>/<name>` for NW_NO_NUMBER, in a scratch buffer that the caller gives back
 * (scratch.h); null: out of memory. */
#define NW_NO_NUMBER UINT32_MAX
char *nw_path(const char *name, uint32_t number);

/* ---- events.c -------------------------------------------------------------------------------- */

/* A line under construction: words separated by spaces, numbers in hexadecimal; what does not fit is cut off. Its
 * text is in a buffer of scratch.h from nw_line_begin until nw_event. */
#define NW_LINE_BYTES 2048u
typedef struct nw_line {
    size_t used;
    char *text;
} nw_line;

void nw_line_begin(nw_line *line, const char *word);
void nw_line_number(nw_line *line, uint64_t number);
void nw_line_numbers(nw_line *line, const uintptr_t *numbers, uint32_t count);
void nw_line_text(nw_line *line, const char *text); /* rest of the line: may hold spaces */
void nw_line_end(nw_line *line);                    /* more lines may follow */
void nw_line_next(nw_line *line, const char *word); /* ends the line, if there is one, and begins the next */
void nw_event(nw_line *line);                       /* ends it and appends it to the log */
uint64_t nw_events_written(void);  /* size of this image's log in bytes */
uint64_t nw_events_logged(void);   /* bytes that this process has written to it, from a counter in memory */
/* Logs that a forked image continues the first `written` bytes of its parent's log; `folder` is the parent's. */
void nw_event_parent(const char *folder, uint64_t written);
void nw_say_stopped(const char *why); /* reports on standard error that recording stopped */

/* ---- threads.c ------------------------------------------------------------------------------- */

/* Instructions that take numbers from shared counters (tickets.c): the most for which threads are logged. */
#define NW_TICKETS 64u

/* One per thread at a time. A new thread takes over the observer of a finished one, including its file. */
typedef struct nw_observer {
    nw_thread thread;
    char *base;        /* header, window and the first segments; null before they are mapped */
    size_t file_bytes; /* size of its file, which is mapped in pieces */
    struct nw_observer *next;
    uint32_t number; /* of the file */
    uint32_t lane;   /* for heap.h; all threads that use this observer have the same lane */
    uint32_t ordinal;
    uint32_t tid;    /* 0: its thread has not begun */
    uint32_t vacant; /* 1: may be taken by another thread, since this one was not created */
    uint32_t openmp_known;
    uint8_t tickets[NW_TICKETS]; /* by the instruction's id, how often this thread took one: 2 is twice or more */
    int64_t quantum; /* accesses after which the thread checks whether the slice ends */
    void *(*start)(void *);
    void *argument;
} nw_observer;

/* The calling thread's observer, created on first use, without files. Null only if out of memory. */
nw_observer *nw_here(void);

/* Under an emulator: checks whether this process is a copy made by clone(2), without fork handlers, and if so starts an
 * image for it. Called where the runtime handles new threads and objects anyway. */
void nw_look_for_copy(void);

/* Resets the lock in a copy of the process, in which the thread that held it does not exist. */
void nw_threads_forget_lock(void);
void nw_threads_lock(sigset_t *before);
void nw_threads_unlock(const sigset_t *before);
void nw_threads_after_fork(void);

/* ---- emulated.c: under an emulator ------------------------------------------------------------- */

/* Whether the emulator's plugin counts, not this library: $NODEWISE_EMULATED. */
bool nw_emulated(void);
/* Adds the outlined functions of a module to nw_outlined, which the plugin reads. */
extern struct nw_functions nw_outlined;
void nw_outlined_scan(const char *path, uint64_t bias);
/* Tells the plugin that the calling thread is this one. */
void nw_announce_thread(const nw_observer *observer);

/* ---- thread_files.c: where a thread's counters go --------------------------------------------- */

/* Window, memory and file for a new thread: newly made, or taken over from a finished thread. */
bool nw_thread_open(nw_observer *observer);
/* In a new process image: makes them anew for its first thread, at the same addresses. */
bool nw_thread_reopen(nw_observer *observer);
void nw_thread_close(nw_observer *observer);
/* In a new process image: files are numbered from 0 again. */
void nw_thread_files_forget(void);

/* ---- objects.c, modules.c, slices.c ---------------------------------------------------------- */

void nw_objects_start(void);
void nw_objects_stop(void);
void nw_objects_after_fork(void);
void nw_modules_start(void); /* in the first thread, before there are others */
void nw_modules_scan(void); /* logs modules that are new */
void nw_modules_before_fork(void);
void nw_modules_after_fork(bool in_child);
void nw_modules_check(void); /* scans at the 1st, 2nd, 4th, 8th, ... call after dlopen was called */
/* Adds the addresses of the calling thread's thread-local variables, for modules loaded at start. */
void nw_modules_tls(nw_line *line, uint32_t ordinal);

/* Initial value of nw_thread.until_slice. */
int64_t nw_slice_budget(nw_observer *observer);
/* Requests a snapshot and waits until it is complete. */
void nw_slice_cut(void);
/* Adds the pending counts of the window to the current slice. */
void nw_slice_charge(nw_thread *thread);

#endif
