/* libnodewise: arrays that lie where their threads are.
 *
 * An array is its pointer. A policy says in a few words how an array's blocks are dealt over memory
 * nodes; nw_place() makes it so, at any time, moving what has been touched already. A distribution is
 * a policy worked out for one array: it can be asked where each page belongs before, or without,
 * being enforced. Schedules (nodewise_schedule.h) deal loop iterations so that they meet the data.
 *
 *     double *a = nw_alloc_2d(n, n, sizeof *a);
 *     nw_place(a, nw_bind(NW_ROWS));              // each block of rows to the thread that will use it
 *
 * Placement never makes a program fail: where it cannot be had, functions return a positive status
 * and nw_last_error() has one line that says what was not done and why. Only wrong arguments are
 * errors. All functions may be called from any thread; two threads must not place or free one array
 * at the same time.
 *
 * Sources: Ribeiro and Mehaut, MAI (2008), section 3; Majo and Gross (CGO 2012), section 4.
 */
#ifndef NODEWISE_H
#define NODEWISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NW_API __attribute__((visibility("default")))
#else
#define NW_API
#endif

/* Zero: done. Positive: done as far as possible; nw_last_error() says what is not. Negative: a wrong
 * argument or no memory; nothing was changed. */
typedef enum nw_status {
    NW_OK = 0,
    NW_ROUNDED = 1,     /* finer than pages: each page went to the owner of its middle byte; or huge ones
                           were asked for and are not to be had */
    NW_PARTLY = 2,      /* some pages lie elsewhere: a full node, or pages that may not move */
    NW_NOT_DONE = 3,    /* no placement here: one node, no permission, no such system call */
    NW_STALE = 4,       /* copies are not what their array or file is now */
    NW_INVALID = -1,    /* an argument is out of its range */
    NW_NO_MEMORY = -2,
    NW_NO_ARRAY = -3,   /* not the pointer of a live array: foreign, or freed before */
    NW_NOT_STARTED = -4 /* mai.h: before mai_init or after mai_final */
} nw_status;

/* What the calling thread's last call that did not return NW_OK (or returned null) had to say; ""
 * if none. Valid until that thread's next call. */
NW_API const char *nw_last_error(void);
/* Sets the message of nw_last_error() to `line` and returns `status`; for bindings to other languages. */
NW_API int nw_fail_call(int status, const char *line);

/* The library's version, as "0.1.0". */
NW_API const char *nw_version(void);

/* ---- Machine. Node and CPU numbers are the kernel's. ------------------------------------------ */

/* Writes up to `size` numbers of the memory nodes that this process may use, ascending; returns how
 * many there are (at least 1). */
NW_API int nw_nodes(int *nodes, int size);
/* Likewise the CPUs that this process may run on, in the order in which threads are bound: one to a
 * core first, node by node, then cores' other hardware threads. */
NW_API int nw_cpus(int *cpus, int size);
/* The node of a CPU; -1 if there is no such CPU. */
NW_API int nw_cpu_node(int cpu);
/* Bytes of a base page, and of a transparent huge page (0: there are none). */
NW_API size_t nw_page_bytes(void);
NW_API size_t nw_huge_page_bytes(void);

/* ---- Arrays: zeroed, page-aligned, in mappings of their own; not placed until touched. --------- */

#define NW_DIMENSIONS 4

/* Allocates `dimensions` (1 to 4) extents of items of `item` bytes each, in row-major order. Null
 * where an extent is zero, the size overflows, or memory ends. Free with nw_free. */
NW_API void *nw_alloc(size_t item, int dimensions, const size_t *extents);
NW_API void *nw_alloc_1d(size_t nx, size_t item);
NW_API void *nw_alloc_2d(size_t nx, size_t ny, size_t item);
NW_API void *nw_alloc_3d(size_t nx, size_t ny, size_t nz, size_t item);
NW_API void *nw_alloc_4d(size_t nx, size_t ny, size_t nz, size_t nw, size_t item);
NW_API int nw_free(void *array);

/* Makes memory from elsewhere (malloc, statics, Fortran, NumPy) an array; nw_forget ends that and
 * frees nothing. Pages that it shares with other memory at either end stay where they are. Adopted
 * again with the same item and extents it is the same array; with others, NW_INVALID: nw_forget it
 * first. So also before free(): malloc gives addresses again, and the library cannot see that. */
NW_API int nw_adopt(void *memory, size_t item, int dimensions, const size_t *extents);
NW_API int nw_forget(void *memory);

/* Pointers to rows, so that a[i][j] works: a double ** for two dimensions, double *** for three...
 * Made at the first call, freed with the array; for one dimension the array itself. */
NW_API void *nw_index(void *array);

typedef struct nw_shape {
    size_t item;                   /* bytes */
    int dimensions;                /* 1 to 4 */
    size_t extents[NW_DIMENSIONS]; /* unused ones are 1 */
    size_t items, pages;           /* pages: all that hold an item, base pages */
} nw_shape;

NW_API int nw_shape_of(const void *array, nw_shape *shape);

/* ---- Policies --------------------------------------------------------------------------------- */

/* What is dealt: blocks of this many... */
typedef enum nw_unit {
    NW_PAGES = 0,   /* pages of the array */
    NW_ROWS = 1,    /* indices of the first dimension */
    NW_COLUMNS = 2, /* indices of the second dimension */
    NW_ITEMS = 3    /* items in memory order: Majo and Gross's block-cyclic */
} nw_unit;

/* With N nodes in the list, block b goes to... */
typedef enum nw_kind {
    NW_FIRST_TOUCH = 0,     /* the kernel's choice, from now on */
    NW_CYCLIC = 1,          /* b mod N; with weights, w consecutive blocks to each node in a round; fewer
                               blocks than nodes leave the last ones empty, which is NW_OK */
    NW_SKEW = 2,            /* (b mod N + b / N) mod N */
    NW_PRIME = 3,           /* b mod P for a prime P >= N; blocks of virtual nodes >= N are dealt in turn */
    NW_RANDOM = 4,          /* a seeded hash of b, uniform (or by weights) */
    NW_BIND_ALL = 5,        /* any of the nodes, where first touched; one node: that one */
    NW_BIND_BLOCK = 6,      /* units dealt to threads as schedule(static) does, each to its thread's node */
    NW_BLOCK_EXCLUSIVE = 7, /* a Latin square (cube...): (sum of block coordinates) mod N */
    NW_BLOCKS = 8           /* N contiguous parts, equal or by weights */
} nw_kind;

/* The granule of placement. */
typedef enum nw_granule {
    NW_GRANULE_AUTO = 0, /* huge pages stay where every part is at least one long; else base pages */
    NW_GRANULE_BASE = 1, /* base pages; huge ones are given up in this array */
    NW_GRANULE_HUGE = 2  /* huge pages: parts are rounded to them; base pages, and NW_ROUNDED, where there
                            are none or the array is shorter than one */
} nw_granule;

/* Make one with the functions below, then set what else matters: `p.nodes = list; p.node_count = 2;`.
 * Everything that is zero has a default. Lists are read during the call they are passed to. */
typedef struct nw_policy {
    nw_kind kind;
    nw_unit unit;
    size_t block;            /* units in a block; 0 is 1 */
    const int
        *nodes; /* null: all nodes this process may use (those with CPUs for NW_BIND_BLOCK and NW_BLOCK_EXCLUSIVE) */
    int node_count;
    const unsigned *weights; /* one a node, not all zero; null: equal */
    unsigned prime; /* NW_PRIME */
    uint64_t seed; /* NW_RANDOM */
    int threads; /* NW_BIND_BLOCK, as nw_set_threads takes; 0: those in force */
    unsigned dimensions; /* NW_BLOCK_EXCLUSIVE: bit d is dimension d; 0: the first two */
    nw_granule granule;
} nw_policy;

static inline nw_policy nw_make_policy(nw_kind kind, nw_unit unit, size_t block) {
    nw_policy policy = {kind, unit, block, NULL, 0, NULL, 0, 0, 0, 0, NW_GRANULE_AUTO};
    return policy;
}
static inline nw_policy nw_first_touch(void) { return nw_make_policy(NW_FIRST_TOUCH, NW_PAGES, 1); }
static inline nw_policy nw_cyclic(nw_unit unit, size_t block) { return nw_make_policy(NW_CYCLIC, unit, block); }
static inline nw_policy nw_block_cyclic(size_t items) { return nw_make_policy(NW_CYCLIC, NW_ITEMS, items); }
static inline nw_policy nw_skew(nw_unit unit, size_t block) { return nw_make_policy(NW_SKEW, unit, block); }
static inline nw_policy nw_random(nw_unit unit, size_t block) { return nw_make_policy(NW_RANDOM, unit, block); }
static inline nw_policy nw_bind_all(void) { return nw_make_policy(NW_BIND_ALL, NW_PAGES, 1); }
static inline nw_policy nw_bind(nw_unit unit) { return nw_make_policy(NW_BIND_BLOCK, unit, 1); }
static inline nw_policy nw_blocks(nw_unit unit) { return nw_make_policy(NW_BLOCKS, unit, 1); }
static inline nw_policy nw_prime(nw_unit unit, size_t block, unsigned prime) {
    nw_policy policy = nw_make_policy(NW_PRIME, unit, block);
    policy.prime = prime;
    return policy;
}
static inline nw_policy nw_block_exclusive(unsigned dimensions) {
    nw_policy policy = nw_make_policy(NW_BLOCK_EXCLUSIVE, NW_ITEMS, 1);
    policy.dimensions = dimensions;
    return policy;
}

/* Places the array by the policy: moves the pages that are touched already, and determines the nodes of the others. */
NW_API int nw_place(void *array, nw_policy policy);
/* As nw_place, with a pointer to the policy, for other languages. */
NW_API int nw_place_by(void *array, const nw_policy *policy);

/* ---- Distributions: a policy worked out for one array, apart from its enforcement ---------------- */

typedef struct nw_distr nw_distr;

/* Null with a message if the policy does not fit the array. Independent of the array's life, except
 * for nw_distribute. Free with nw_distr_free. */
NW_API nw_distr *nw_describe(const void *array, nw_policy policy);
NW_API nw_distr *nw_describe_by(const void *array, const nw_policy *policy);
NW_API int nw_distribute(const nw_distr *distr);
NW_API void nw_distr_free(nw_distr *distr);

/* The node of a page (of the array, from 0) or of an item (in memory order); -1: the kernel's choice,
 * or no such page or item. O(1). A page goes to the owner of its middle byte. */
NW_API int nw_distr_page_node(const nw_distr *distr, size_t page);
NW_API int nw_distr_item_node(const nw_distr *distr, size_t item);
/* NW_OK, or NW_ROUNDED with a message if pages (granules) hold items of several nodes, or are not huge
 * as asked for. It says which nodes get no page by that. */
NW_API int nw_distr_status(const nw_distr *distr);
/* Number of nodes in its list, and the list. */
NW_API int nw_distr_nodes(const nw_distr *distr, int *nodes, int size);
/* Where block `block` of `dimension` begins (block from 0 to the number of nodes, inclusive): the cuts
 * of a block-exclusive distribution. Dimensions that are not cut have one block. */
NW_API size_t nw_distr_cut(const nw_distr *distr, int dimension, int block);

/* ---- Migration: for once, without changing what later pages do --------------------------------- */

/* NW_ROUNDED where rows or columns begin or end within pages, also if none has its middle in them. */
NW_API int nw_migrate_rows(void *array, int node, size_t count, size_t first);
NW_API int nw_migrate_columns(void *array, int node, size_t count, size_t first);
/* Equal contiguous parts over the nodes (null: all), or everything to one node. */
NW_API int nw_scatter(void *array, const int *nodes, int node_count);
NW_API int nw_gather(void *array, int node);

/* ---- Read-only copies -------------------------------------------------------------------------- */

/* Copies the array to every node that has CPUs, once; the copies are freed with the array. The
 * array's content must not change any more. NW_PARTLY where a node was full and pages of its copy lie
 * elsewhere; NW_NO_MEMORY, and no copies, where less memory is available than they take. */
NW_API int nw_replicate(void *array);
/* The same on nodes of your choice, such as one a socket where a socket is several nodes. Null: as
 * nw_replicate. NW_INVALID where there are copies on other nodes already. */
NW_API int nw_replicate_on(void *array, const int *nodes, int node_count);
/* The copy nearest to the CPU that the caller runs on, by the kernel's distances; the array itself if
 * there are none. */
NW_API const void *nw_nearest(const void *array);
/* Frees the copies, which no thread may read any more. The array goes on, and can be copied anew. */
NW_API int nw_drop_copies(void *array);

/* Files that are only read, such as a model's weights, as arrays of bytes. Their copies are memory that
 * is read from the file (by pread: a file that was truncated is a status, not a signal).
 *
 * Two functions, since a program has either a mapping or a descriptor. nw_adopt_file is for the pointer
 * that it has from mmap, or one into it: `bytes` bytes from byte `offset` of the file on. nw_map_file
 * maps the file itself, read-only; null with a message where it cannot. `bytes` 0: to the file's end.
 * Both keep a descriptor of their own: yours may be closed. The former's array ends with nw_forget
 * (before munmap), the latter's with nw_free. They cannot be placed: their pages are the page cache's. nw_replicate
 * returns NW_INVALID where the mapping does not have what the file has from that byte on. */
NW_API int nw_adopt_file(void *mapping, size_t bytes, int fd, uint64_t offset);
NW_API void *nw_map_file(int fd, uint64_t offset, size_t bytes);

typedef struct nw_copies {
    int count;         /* copies in use; 0: none */
    size_t bytes;      /* that they take, in whole pages */
    size_t kept_bytes; /* of copies that the guard gave up, which threads may still read */
    size_t elsewhere;  /* base pages of them that lie on another node than their copy is for */
} nw_copies;

/* What the copies of an array take; and the base pages of all of them by node (index: the kernel's
 * number), as the kernel says, up to `size`. */
NW_API int nw_copies_of(const void *array, nw_copies *copies, size_t *pages, int size);
/* Compares all copies with the array, or with the file as it is now. NW_STALE, and a message that names
 * the first byte that differs: the array was written to after it was copied, or the file was changed.
 * Reads everything; nothing may write to the array meanwhile. NW_NOT_DONE: there are no copies.
 *
 * NODEWISE_GUARD=1 in the environment finds such writes while they happen, for debugging: nw_replicate
 * makes the array read-only (also where it can make no copies, as on a laptop of one node). The first
 * write is reported on standard error, with the instruction's address; nw_nearest gives the array itself
 * from then on, and the program continues. man nw_replicate has the limits. */
NW_API int nw_check_copies(const void *array);

/* ---- Threads ----------------------------------------------------------------------------------- */

/* How many threads work on arrays, and so what `threads` means in policies and schedules; 0: the
 * default again, which is OMP_NUM_THREADS, else the number of CPUs. Returns the number in force. */
NW_API int nw_set_threads(int threads);
NW_API int nw_get_threads(void);
/* Binds the calling thread, number `thread` of nw_get_threads(): threads in order fill nodes evenly
 * (thread t of T on node t * N / T), one to a core first. */
NW_API int nw_bind_thread(int thread);
/* Binds all threads that the process has now, in the order they were started. For OpenMP use
 * nw_bind_openmp of nodewise_schedule.h, or this after the first parallel region. */
NW_API int nw_bind_threads(void);
/* Moves thread `tid` (0: the caller) to a CPU. */
NW_API int nw_migrate_thread(int tid, int cpu);
/* The node of thread `thread`: where it was bound, else where nw_bind_thread would put it. */
NW_API int nw_thread_node(int thread);

/* ---- Queries ----------------------------------------------------------------------------------- */

/* Node of each page as it is now, up to `size` of them; -1: not touched. */
NW_API int nw_page_nodes(const void *array, int *nodes, size_t size);
/* Pages on each node (index: the kernel's number), up to `size`; the rest of the array's pages, not
 * touched, to `untouched` (may be null). */
NW_API int nw_histogram(const void *array, size_t *pages, int size, size_t *untouched);

typedef struct nw_statistics {
    uint64_t pages_moved; /* base pages that a call of ours moved to another node */
    double page_seconds; /* wall time in the calls that did */
    uint64_t threads_moved; /* threads bound to another node than they ran on */
    double thread_seconds;
    uint64_t calls; /* system calls made to place and to move */
} nw_statistics;

NW_API void nw_get_statistics(nw_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
