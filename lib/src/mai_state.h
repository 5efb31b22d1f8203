/* Declarations that MAI's own files share: the state between mai_init and mai_final, behind one lock. */
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

/* Reads the file, and completes what it leaves open; without a file, configures all that the process may use. If it
 * fails, nothing has to be freed. */
int mai_config_read(mai_config *config, const char *filename);
void mai_config_free(mai_config *config);

/* ---- mai_state.c -------------------------------------------------------------------------------- */

typedef struct mai_array {
    uint64_t serial; /* of nw_array: at `data` there may be another array by now, made with nw_alloc */
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
    unsigned long *nodes, *cpus; /* returned by mai_get_nodes_id and mai_get_cpus_id */
    mai_array *arrays;
    size_t array_count, array_room;
    mai_thread *threads;
    size_t thread_count, thread_room;
    uint64_t page_moves, thread_moves;
    double page_seconds, thread_seconds;
} mai_state;

/* Locks and returns the state, started or not. */
mai_state *mai_lock(void);
/* Locks and returns the state; null, with nothing locked, if `function` is called before mai_init or after
 * mai_final. */
mai_state *mai_enter(const char *function);
/* Unlocks, and keeps the status for mai_last_status. */
int mai_leave(int status);
/* Whether this is still the array that mai_alloc_* made, not freed or replaced by functions of nodewise.h. */
int mai_array_lives(const mai_array *array);

/* ---- mai_arrays.c ------------------------------------------------------------------------------- */

/* Frees all arrays. */
void mai_arrays_free(mai_state *state);
/* Makes room for one more item than `count`, of `bytes` bytes each; 0 if out of memory. */
int mai_grow(void **items, size_t count, size_t *room, size_t bytes);

/* ---- mai_statistics.c --------------------------------------------------------------------------- */

/* The nodes of an array's pages before a call, to see which pages the call moves. Null if none can move. */
int *mai_pages_before(const mai_array *array);
/* Counts the pages that have moved since; frees `before`. */
void mai_pages_after(mai_state *state, mai_array *array, int *before, double seconds);

#endif
