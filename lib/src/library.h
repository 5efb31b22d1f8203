/* Declarations that the library's own files share; not installed. */
#ifndef NODEWISE_LIBRARY_H
#define NODEWISE_LIBRARY_H

#include "nodewise.h"

#include <stdint.h>

/* ---- error.c ------------------------------------------------------------------------------------ */

/* Sets the caller's message and returns `status`. The line says what, where and the remedy. */
int nw_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The status of that message, for functions that return null. */
int nw_last_status(void);
/* "0-3,6"; what does not fit is left out. */
struct nw_mask;
void nw_name_nodes(char *text, size_t size, const struct nw_mask *nodes);

/* ---- machine.c ---------------------------------------------------------------------------------- */

/* The machine, read once at the first use; affinity as it was when the library was loaded. */
typedef struct nw_machine {
    int pretended;                /* by NODEWISE_PRETEND: nothing is placed or bound */
    int node_count, *nodes;       /* with memory that this process may use, ascending; at least one */
    int processor_count, *processors; /* those of them that have CPUs that this process may use; all if none has */
    int cpu_count, *cpus;         /* that this process may use, in the order of nw_cpus; at least one */
    int cpu_limit, *cpu_nodes;    /* by CPU number, for all CPUs of the machine; -1: no such CPU */
    int online_nodes;             /* of the machine, including those that this process may not use */
    size_t page, huge;            /* bytes; huge is 0 if there are no huge pages */
    int huge_always;              /* the kernel uses huge pages without being advised to */
    char ignored[96];             /* what is wrong with NODEWISE_PRETEND, or "" */
} nw_machine;

const nw_machine *nw_machine_now(void);
/* The node of a CPU, -1 if there is no such CPU. */
int nw_cpu_node_of(const nw_machine *machine, int cpu);
/* openmp.c: the CPUs of OpenMP's places, if the program has its runtime. */
void nw_openmp_cpus(void (*add)(int cpu));
/* Whether this process may use the memory of node `node`. */
int nw_machine_has_node(const nw_machine *machine, int node);
/* For each node up to `*size`, by the kernel's distances, the index of the nearest of these nodes; of those equally
 * near, different ones for different nodes. In new memory; null if there is none. */
int *nw_nearest_of(const int *nodes, int count, int *size);
/* Bytes that can be allocated without swapping (MemAvailable); 0: not known. Limits of control groups are not seen. */
size_t nw_available_bytes(void);

/* ---- threads.c ---------------------------------------------------------------------------------- */

enum { NW_MOST_THREADS = 4194304 }; /* the limit of Linux (PID_MAX_LIMIT) */

/* ---- arrays.c ----------------------------------------------------------------------------------- */

struct nw_copy_set;
struct nw_file;

typedef struct nw_array {
    char *data;
    nw_shape shape;
    uint64_t serial;        /* unique among all arrays ever made */
    size_t mapped;          /* bytes of our own mapping; 0: adopted */
    void *table;            /* of nw_index, or null */
    struct nw_file *file;   /* what a mapped file's array shows, or null */
    _Atomic(struct nw_copy_set *) copies; /* of nw_replicate, or null */
    int placed;             /* has a policy of ours */
    int split;              /* huge pages were given up */
    int cuts;               /* mappings that it was cut into, taken from the allowance of place.c */
} nw_array;

/* The live array of a data pointer or a table; null, with the message set, if there is none. */
nw_array *nw_array_of(const void *pointer);
/* A row of bytes that shows a file, in a mapping of our own of `mapped` bytes or (0) in the caller's. The array keeps
 * the file, which is closed on failure, too. */
int nw_register_file(char *data, size_t bytes, size_t mapped, struct nw_file *file);
/* New zeroed pages, or null. If possible they are at an address where the kernel's interleaving begins with the
 * first node. */
void *nw_map(size_t bytes);
/* The first byte of its first page, from which pages are counted. */
static inline char *nw_array_base(const nw_array *array, size_t page) {
    return array->data - (uintptr_t)array->data % page;
}
static inline size_t nw_array_bytes(const nw_array *array) { return array->shape.items * array->shape.item; }

/* ---- describe.c, owner.c ------------------------------------------------------------------------ */

/* A kind in addition to those of nodewise.h: `count` units from `first` on go to the only node, the rest to none. */
enum { NW_SOME_UNITS = 100 };

struct nw_distr {
    uint64_t serial; /* the array's */
    char *data;
    nw_shape shape;
    size_t page, granule; /* bytes */
    int no_huge;          /* huge pages were requested, but are not available */
    size_t head;          /* bytes from the granule's boundary at or before the data to the data */
    int adopted;          /* pages at either end may be shared with other memory: they stay */
    int kind;
    nw_unit unit;         /* NW_PAGES: granules */
    size_t block;         /* units in a block, at least 1 */
    size_t blocks;        /* number of blocks; for columns, in one row */
    size_t units;         /* number of units; for columns, in one row */
    size_t unit_items;    /* items in a unit; not for pages */
    int node_count, *nodes;
    int single;           /* all nodes of the list are the same */
    uint64_t *until;      /* cumulative weights, or null */
    unsigned prime;
    uint64_t seed;
    int threads, *thread_nodes; /* NW_BIND_BLOCK: the node of each thread */
    unsigned dimensions;        /* NW_BLOCK_EXCLUSIVE: a bit for each dimension that is cut; else 0 */
    size_t first, count;        /* NW_SOME_UNITS */
    int status;
    char message[384];
};

/* The distribution of an array by a policy; null on failure, with a message and nw_last_status. */
nw_distr *nw_describe_array(const nw_array *array, const nw_policy *policy);
/* `count` rows or columns from `first` on go to `node`, the rest to none. */
nw_distr *nw_describe_some(const nw_array *array, nw_unit unit, int node, size_t count, size_t first);
/* The number of granules, of which the first one holds the first byte. */
size_t nw_distr_granules(const nw_distr *distr);
/* The node of a granule (-1: chosen by the kernel, or it stays where it is), and in `next` the first granule that
 * may have another one. */
int nw_distr_granule_node(const nw_distr *distr, size_t granule, size_t *next);
/* The first unit of part `part`, if n units are divided into parts as by schedule(static). */
static inline size_t nw_static_cut(size_t n, size_t parts, size_t part) {
    size_t more = n % parts;
    return n / parts * part + (part < more ? part : more);
}
/* The same distribution with granules of another size. It shares the lists of the first one, so it must not outlive
 * it. */
nw_distr nw_distr_coarser(const nw_distr *distr, size_t granule);
/* Sets `status` and `message`: whether granules hold items of several nodes, and which nodes then get none. */
void nw_distr_judge(nw_distr *distr);

/* ---- place.c ------------------------------------------------------------------------------------ */

/* Places an array by a distribution of it. */
int nw_place_array(nw_array *array, const nw_distr *distr);
/* Restores the kernel's default policy, for memory that outlives its array. */
void nw_place_undone(nw_array *array);
/* Gives the array's mappings back to the allowance, when the array ends. */
void nw_place_forgotten(nw_array *array);
/* NW_OK if pages can be placed at all, otherwise NW_NOT_DONE with the reason. */
int nw_place_possible(void);

/* The pages that placement affects: all pages of an allocated array, those of an adopted one that are wholly its
 * own. */
typedef struct nw_span {
    char *start;
    size_t bytes;
} nw_span;
nw_span nw_array_span(const nw_array *array);

/* ---- migrate.c ---------------------------------------------------------------------------------- */

/* Moves touched pages to the nodes of the distribution, and checks where they are then. Returns NW_OK, NW_PARTLY,
 * NW_NOT_DONE, NW_NO_MEMORY, or NW_INVALID if the memory does not exist any more. */
int nw_move_touched(nw_array *array, const nw_distr *distr);

/* ---- replicate.c -------------------------------------------------------------------------------- */

void nw_copies_free(struct nw_copy_set *copies);
/* Restores write access to an array that the guard protects. */
void nw_copies_unguarded(nw_array *array);
/* Whether it does protect it. */
int nw_copies_guarded(const nw_array *array);

/* ---- query.c ------------------------------------------------------------------------------------ */

/* Counts the binding of a thread: whether its node changed, and the time taken. */
void nw_count_thread(int moved, double seconds);
void nw_count_pages(uint64_t moved, double seconds);
void nw_count_call(void);
double nw_seconds(void); /* monotonic */
/* The number of pages from `start` on that are touched and not on `node`, as far as the kernel tells. */
size_t nw_count_elsewhere(char *start, size_t pages, int node);
/* Adds the pages from `start` on to the counts by node; 0 or -errno. */
int nw_count_on(char *start, size_t pages, size_t *counts, int size, size_t *untouched);
/* The message that the kernel does not tell. */
int nw_unanswered(int error);

#endif
