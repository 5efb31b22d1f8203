/* MAI, the Memory Affinity Interface of Ribeiro and Mehaut (INRIA RT-0359, 2008, section 3.2): all of
 * its functions, with their names and signatures, on top of libnodewise.
 *
 *     mai_init(NULL);
 *     double **a = mai_alloc_2D(n, n, sizeof(double), DOUBLE);
 *     mai_bind_rows(a);                          // rows to the nodes of the threads that will use them
 *     ...                                        // a[i][j]
 *     mai_final();                               // frees the arrays
 *
 * Most of the paper's functions return nothing: mai_last_status() says how the calling thread's last
 * call went, and nw_last_error() of nodewise.h has its message. Before mai_init and after mai_final
 * that is NW_NOT_STARTED, and nothing is done. docs/mai.md has the rules that the paper leaves open.
 */
#ifndef MAI_H
#define MAI_H

#include <sys/types.h>

#include "nodewise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an array's items are made of. An item is one or several of a primitive type (a complex number
 * is two DOUBLE); a STRUCT is of any size. Programs with an INT of their own define MAI_LONG_NAMES
 * before they include this, and write MAI_INT. */
enum mai_type {
    MAI_CHAR = 1,
    MAI_INT,
    MAI_FLOAT,
    MAI_DOUBLE,
    MAI_STRUCT,
#ifndef MAI_LONG_NAMES
    CHAR = MAI_CHAR,
    INT = MAI_INT,
    FLOAT = MAI_FLOAT,
    DOUBLE = MAI_DOUBLE,
    STRUCT = MAI_STRUCT
#endif
};

/* An nw_status: that of the calling thread's last call of a function below. Not the paper's. */
NW_API int mai_last_status(void);

/* ---- System ------------------------------------------------------------------------------------- */

/* Starts, with the nodes, CPUs and number of threads of a configuration file (docs/mai.md); null: all
 * that the process may use. Where the file cannot be read or is wrong, a line on standard error (and
 * nw_last_error()) says what and where, and all that the process may use is used. */
NW_API void mai_init(char filename[]);
/* Frees all arrays and ends; mai_init may follow. */
NW_API void mai_final(void);

/* Numbers of the current configuration; NW_NOT_STARTED, which is negative, if there is none. */
NW_API int mai_get_num_nodes(void);
NW_API int mai_get_num_threads(void);
NW_API int mai_get_num_cpu(void);
/* The kernel's numbers of the mai_get_num_nodes() nodes and of the mai_get_num_cpu() CPUs. The library owns the arrays;
 * they are valid until mai_final. */
NW_API unsigned long *mai_get_nodes_id(void);
NW_API unsigned long *mai_get_cpus_id(void);
/* Print a line for each node (`node 0: cpus 0 1`) or CPU (`cpu 0: node 0`) to standard output. */
NW_API void mai_show_nodes(void);
NW_API void mai_show_cpus(void);

/* ---- Allocation --------------------------------------------------------------------------------- */

/* Zeroed, in one piece, in row-major order. What is returned is indexable: a T * for one dimension, a
 * T ** for two... Null where a size is not positive or too large, or the type is unknown or larger
 * than the item. All functions below take it or the address of the first item, and no other memory:
 * nw_place and nw_adopt of nodewise.h are for that. */
NW_API void *mai_alloc_1D(int nx, size_t size_item, int type);
NW_API void *mai_alloc_2D(int nx, int ny, size_t size_item, int type);
NW_API void *mai_alloc_3D(int nx, int ny, int nz, size_t size_item, int type);
NW_API void *mai_alloc_4D(int nx, int ny, int nz, int nk, size_t size_item, int type);
NW_API void mai_free_array(void *p);

/* ---- Memory policies: at any time; what is touched already moves -------------------------------- */

/* By page; by blocks of `nr` rows (indices of the first dimension); of `nc` columns (the second). */
NW_API void mai_cyclic(void *p);
NW_API void mai_skew_mapp(void *p);
NW_API void mai_prime_mapp(void *p, int prime);
NW_API void mai_cyclic_rows(void *p, int nr);
NW_API void mai_skew_mapp_rows(void *p, int nr);
NW_API void mai_prime_mapp_rows(void *p, int prime, int nr);
NW_API void mai_cyclic_columns(void *p, int nc);
NW_API void mai_skew_mapp_columns(void *p, int nc);
NW_API void mai_prime_mapp_columns(void *p, int prime, int nc);

/* Prefers the configured nodes: each page goes to the one that touches it first, or, touched from another node, to
 * the nearest of them. What is touched already moves only if it lies elsewhere. Where they are full, other nodes help
 * out. */
NW_API void mai_bind_all(void *p);
/* bind_block: rows (columns) dealt to the threads as schedule(static) does, to their nodes. Columns of
 * a one-dimensional array are its items. */
NW_API void mai_bind_rows(void *p);
NW_API void mai_bind_columns(void *p);

NW_API void mai_random(void *p);
NW_API void mai_random_rows(void *p, int nr);
NW_API void mai_random_columns(void *p, int nc);

/* Moves what is touched now: rows (columns) start ... start + nr - 1; equal contiguous parts to the
 * first `nodes` configured nodes; everything. */
NW_API void mai_migrate_rows(void *p, unsigned long node, int nr, int start);
NW_API void mai_migrate_columns(void *p, unsigned long node, int nc, int start);
NW_API void mai_migrate_scatter(void *p, unsigned long nodes);
NW_API void mai_migrate_gather(void *p, unsigned long node);

/* ---- Threads ------------------------------------------------------------------------------------ */

/* All threads of the process, in the order they were started: the first is thread 0. */
NW_API void bind_threads(void);
/* The calling thread, as number `id` of mai_get_num_threads(). The two do the same. */
NW_API void bind_thread_posix(int id);
NW_API void bind_thread_omp(int id);
/* Moves thread `id` of the kernel (gettid(); 0: the caller) to a CPU. */
NW_API void mai_migrate_thread(pid_t id, unsigned long cpu);

/* ---- Statistics --------------------------------------------------------------------------------- */

/* The node of each of `size` addresses, to standard output: `page 0x7f0000001000: node 1`. */
NW_API void mai_print_pagenodes(unsigned long *pageaddrs, int size);
/* How often MAI's calls moved the pages of `size` addresses to another node; null: all arrays' pages. */
NW_API int mai_number_page_migration(unsigned long *pageaddrs, int size);
/* Time spent in calls that moved pages, seconds. */
NW_API double mai_get_time_pmigration(void);

/* Where each thread of the process is, to standard output: `thread 0: tid 4711, cpu 2, node 0`. */
NW_API void mai_print_threadcpus(void);
/* How often MAI's calls moved `size` threads, by their numbers, to another CPU; null: all threads. */
NW_API int mai_number_thread_migration(unsigned int *threads, int size);
/* Time spent in calls that moved threads, seconds. */
NW_API double mai_get_time_tmigration(void);

#ifdef __cplusplus
}
#endif

#endif
