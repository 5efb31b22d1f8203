/* What the library's own files share; never installed. */
#ifndef NODEWISE_LIBRARY_H
#define NODEWISE_LIBRARY_H

#include "nodewise.h"

#include <stdint.h>

/* ---- error.c ------------------------------------------------------------------------------------ */

/* Sets the caller's message and returns `status`. The line says what, where and the mend. */
int nw_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- machine.c ---------------------------------------------------------------------------------- */

/* Read once, at the first question; affinity as it was when the library was loaded. */
typedef struct nw_machine {
    int pretended;                /* by NODEWISE_PRETEND: nothing is placed or bound */
    int node_count, *nodes;       /* with memory that this process may use, ascending; at least one */
    int processor_count, *processors; /* those of them that have CPUs that this process may use; all if none has */
    int cpu_count, *cpus;         /* that this process may use, in the order of nw_cpus; at least one */
    int cpu_limit, *cpu_nodes;    /* by CPU number, all of the machine's; -1: none */
    int online_nodes;             /* of the machine, whoever may use them */
    size_t page, huge;            /* bytes; huge is 0 where there are none */
    int huge_always;              /* they come unasked */
} nw_machine;

const nw_machine *nw_machine_now(void);
/* Whether this process may use the memory of node `node`. */
int nw_machine_has_node(const nw_machine *machine, int node);

/* ---- arrays.c ----------------------------------------------------------------------------------- */

typedef struct nw_array {
    char *data;
    nw_shape shape;
    uint64_t serial;        /* one an array ever made */
    size_t mapped;          /* bytes of our own mapping; 0: adopted */
    void *table;            /* of nw_index, or null */
    void **copies;          /* of nw_replicate, one a processor, or null */
    int copy_count;
    int *nearest, nearest_size; /* node number → its copy's index */
    int placed;             /* has a policy of ours */
    int split;              /* huge pages were given up */
    int cuts;               /* mappings it was cut into, of the allowance of place.c */
} nw_array;

/* The live array of a data pointer or a table; null, with the message set, if there is none. */
nw_array *nw_array_of(const void *pointer);
/* First byte of the array's first page, from which pages are counted. */
static inline char *nw_array_base(const nw_array *array, size_t page) {
    return array->data - (uintptr_t)array->data % page;
}

/* ---- describe.c, owner.c ------------------------------------------------------------------------ */

/* Kinds beyond those of nodewise.h: units `first` to `first + count` to the one node, the rest to none. */
enum { NW_SOME_UNITS = 100 };

struct nw_distr {
    uint64_t serial; /* the array's */
    char *data;
    nw_shape shape;
    size_t page, granule;   /* bytes */
    size_t head;            /* bytes between the granule boundary at or before the data and the data */
    int head_stays, tail_stays; /* the first, last page is shared with other memory */
    int kind;
    nw_unit unit;
    size_t block;           /* units in a block, at least 1 */
    size_t units, blocks;   /* dealt */
    size_t unit_items;      /* items in a unit; not for pages */
    size_t row_units;       /* columns: units in a row; else 0 */
    int node_count, *nodes; /* the list */
    uint64_t *until;        /* cumulated weights, or null */
    unsigned prime;
    uint64_t seed;
    int threads, *thread_nodes; /* NW_BIND_BLOCK: index into the list of each thread */
    unsigned dimensions;        /* NW_BLOCK_EXCLUSIVE: those cut */
    size_t first, count;        /* NW_SOME_UNITS */
    int status;
    char message[128];
};

/* The policy worked out, for this array; null with a message. */
nw_distr *nw_describe_array(const nw_array *array, const nw_policy *policy);
/* Units `first`, `count` of them, to `node`, the rest to -1. */
nw_distr *nw_describe_some(const nw_array *array, nw_unit unit, int node, size_t count, size_t first);
/* Granules, the first one holding the first byte. */
size_t nw_distr_granules(const nw_distr *distr);
/* The node of a granule (-1: the kernel's choice) and, in `next`, the first one that may differ. */
int nw_distr_granule_node(const nw_distr *distr, size_t granule, size_t *next);

/* ---- place.c ------------------------------------------------------------------------------------ */

/* Moves what is touched to where the distribution wants it. */
int nw_move_touched(nw_array *array, const nw_distr *distr);
/* The kernel's own policy again; for arrays that cease to be. */
void nw_place_undone(nw_array *array);

/* ---- query.c ------------------------------------------------------------------------------------ */

/* Of a thread that was bound: whether its node changed, and what it took. */
void nw_count_thread(int moved, double seconds);
void nw_count_pages(uint64_t moved, double seconds);
void nw_count_call(void);
double nw_seconds(void); /* monotonic */

#endif
