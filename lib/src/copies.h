/* Copies of arrays, the files that some of them show, and the guard that finds writes; for the files that make them. */
#ifndef NODEWISE_COPIES_H
#define NODEWISE_COPIES_H

#include "library.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* ---- file.c ------------------------------------------------------------------------------------- */

typedef struct nw_file {
    int fd; /* of our own */
    off_t offset;
    dev_t device;
    ino_t inode;
} nw_file;

/* What says that a file was changed meanwhile. */
typedef struct nw_stamp {
    off_t size;
    struct timespec written, changed;
} nw_stamp;

void nw_file_close(nw_file *file);
/* Whether both show the same part of the same file, or are both null. */
int nw_file_same(const nw_file *a, const nw_file *b);
int nw_file_stamp(const nw_file *file, nw_stamp *stamp);
int nw_stamp_same(const nw_stamp *a, const nw_stamp *b);
/* Reads up to `bytes` bytes from byte `at` of the array on; fewer at the file's end only. -errno on failure. */
ssize_t nw_file_read(const nw_file *file, char *to, size_t bytes, size_t at);
/* Its path for a message, without control characters. */
void nw_file_name(const nw_file *file, char *text, size_t size);

/* ---- replicate.c, compare.c ---------------------------------------------------------------------- */

struct nw_guard;

typedef struct nw_copy {
    int node;
    char *data;
} nw_copy;

/* The copies that one call made. `count` is 0 where there is only a guard. */
typedef struct nw_copy_set {
    size_t bytes; /* of each, in whole pages */
    int near_size, *nearest; /* by node number: the index of the nearest copy */
    nw_stamp stamp; /* of the file when it was read */
    struct nw_guard *guard;
    _Atomic int dropped; /* by the guard: the array was written to, first at byte `written` */
    _Atomic size_t written;
    struct nw_copy_set *earlier; /* which the guard dropped; threads may still read them */
    int count;
    nw_copy of[];
} nw_copy_set;

/* Pieces in which files are read and compared. */
enum { NW_PIECE = 4 << 20 };

/* The first byte in which a copy differs from its array, and the copy's node. NW_OK with `*at` the array's length: in
 * none. Else NW_NO_MEMORY or NW_NOT_DONE: the file cannot be read. */
int nw_copies_differ(const nw_array *array, const nw_copy_set *set, size_t *at, int *node);
/* Says of which array and in which byte. */
int nw_copies_stale(const nw_array *array, const nw_copy_set *set, size_t at, int node);

/* ---- guard.c ------------------------------------------------------------------------------------- */

/* Whether NODEWISE_GUARD asks for it. */
int nw_guard_wanted(void);
/* Protects the array from writes; the first one drops the copies. Says on standard error where it cannot. */
void nw_guard_begin(const nw_array *array, nw_copy_set *set);
/* Ends that; `restore`: the array stays, and may be written to again. */
void nw_guard_end(nw_copy_set *set, int restore);
/* Whether the array is protected at the moment. */
int nw_guard_holds(const nw_copy_set *set);
/* guard_report.c: prints the line about a write, by what a signal handler may call. `from` is the address of the
 * instruction, or 0. */
void nw_guard_report(const char *data, size_t bytes, const char *address, uintptr_t from);

#endif
