/* What MAI's own files share: the state between mai_init and mai_final, behind one lock. */
#ifndef NODEWISE_MAI_STATE_H
#define NODEWISE_MAI_STATE_H

#include "library.h"
#include "mai.h"
#include "threads.h"

/* ---- mai_config.c ------------------------------------------------------------------------------- */

/* The nodes, CPUs and threads to work with. */
typedef struct mai_config {
    int node_count, *nodes;
    int cpu_count, *cpus;
    int threads;
    int *thread_cpus; /* of each thread, the CPU it is bound to */
} mai_config;

/* What the file says, and what follows from it; null: all that the process may use. Nothing is left to
 * free where it fails. */
int mai_config_read(mai_config *config, const char *filename);
void mai_config_free(mai_config *config);

/* ---- mai_state.c -------------------------------------------------------------------------------- */

typedef struct mai_array {
    uint64_t serial; /* nodewise's: what is at `data` may be another array by now, made with nw_alloc */
    char *data;
    void *index;     /* what mai_alloc_* returned */
    nw_shape shape;
    unsigned *moves; /* of each page; null until one moves */
} mai_array;

typedef struct mai_thread {
    pid_t tid;
    int number; /* as bound; -1: never */
    int moves;
} mai_thread;

typedef struct mai_state {
    int started;
    mai_config config;
    unsigned long *nodes, *cpus; /* for those who ask */
    mai_array *arrays;
    size_t array_count, array_room;
    mai_thread *threads;
    size_t thread_count, thread_room;
    uint64_t page_moves, thread_moves;
    double page_seconds, thread_seconds;
} mai_state;

/* Locks and returns the state, started or not. */
mai_state *mai_lock(void);
/* Locks and returns the state; null, with nothing locked, where `function` comes before mai_init or
 * after mai_final. */
mai_state *mai_enter(const char *function);
/* Unlocks, and keeps the status for mai_last_status. */
int mai_leave(int status);
/* Whether it still is what mai_alloc_* made, and not freed or replaced with functions of nodewise.h. */
int mai_array_lives(const mai_array *array);

/* ---- mai_arrays.c ------------------------------------------------------------------------------- */

/* Frees all arrays. */
void mai_arrays_free(mai_state *state);
/* Room for one more of `count` items of `bytes` bytes; 0 where memory ends. */
int mai_grow(void **items, size_t count, size_t *room, size_t bytes);

/* ---- mai_statistics.c --------------------------------------------------------------------------- */

/* Where an array's pages lie before a call, to see which of them it moved. Null where none can move. */
int *mai_pages_before(const mai_array *array);
/* Counts what moved since; frees `before`. */
void mai_pages_after(mai_state *state, mai_array *array, int *before, double seconds);

#endif
