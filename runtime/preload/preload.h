/* Interfaces inside libnodewise-preload.so, which places the objects of an unmodified program by a table,
 * before they are touched, and binds its threads.
 *
 * Nothing here may break the program: malloc is called only when a thread is created, errno is kept, and
 * after a failure of its own the library switches itself off and prints one line.
 */
#ifndef NODEWISE_PRELOAD_H
#define NODEWISE_PRELOAD_H

#include "../heap.h"
#include "summary.h"
#include "table.h"

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define NW_INITIAL_EXEC __attribute__((tls_model("initial-exec")))

#define nw_page_shift 12
#define nw_page_bytes (1ull << nw_page_shift)

/* preload.c: null when there is nothing to do in this process. */
extern const nw_table *nw_placement;
/* Whether objects of this process are placed; otherwise they are only listed (seen.c). */
int nw_placing(void);
void nw_preload_off(const char *why);
/* Makes a forked child use a summary of its own from now on; 0 if nothing is left to do in this process. */
int nw_reporting(void);

/* report.c: makes the summary of this process, in a file of that folder or else in private memory; 0: out of memory. */
int nw_report_open(const char *folder);
/* After fork: the summary is the parent's until the child opens its own. */
void nw_report_inherited(void);
int nw_report_is_inherited(void);
/* Extends the table of live objects from `from` to `live` slots; 0 if that is not possible. */
int nw_report_grow(uint32_t from, uint32_t live);

/* kernel.c: makes system calls, or, if $NODEWISE_PRELOAD_TRACE is set, writes to that file which calls it
 * would make. Nodes are logical. Each returns 0, or the negative error number. */
void nw_kernel_start(const nw_table *table);
int nw_kernel_tracing(void);
void nw_kernel_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
int nw_kernel_prefer(uint64_t page, uint64_t pages, uint32_t node, int move);
/* Each page goes to the node of its first touch, whatever the process's policy is. */
int nw_kernel_local(uint64_t page, uint64_t pages);
/* Takes the policy back, which joins the mappings that it has split. */
int nw_kernel_forget(uint64_t page, uint64_t pages);
int nw_kernel_interleave(uint64_t page, uint64_t pages, const uint32_t *nodes, uint32_t count, int move);
/* Touches the pages of each stretch while the calling thread prefers the stretch's node. The mappings must have no
 * policy of their own, which would take precedence. */
typedef struct nw_stretch {
    uint64_t page, pages;
    uint32_t node;
} nw_stretch;
int nw_kernel_populate(const nw_stretch *stretches, uint32_t count);
/* Sets the memory policy of this thread and of those that it starts, for memory that belongs to no placed object. */
int nw_kernel_rest(const uint32_t *nodes, uint32_t count);
int nw_kernel_split_huge(uint64_t page, uint64_t pages);
/* Pages and their logical nodes, NW_NODE_NONE if untouched or elsewhere. Fits into a buffer of ../scratch.h. */
#define NW_ASKED 200u
typedef struct nw_pages_asked {
    uint64_t page[NW_ASKED];
    void *address[NW_ASKED]; /* used by nw_kernel_query itself */
    uint32_t node[NW_ASKED];
    uint32_t count;
} nw_pages_asked;
int nw_kernel_query(nw_pages_asked *asked);
int nw_kernel_bind(uint32_t ordinal, uint32_t cpu);
/* Moves the calling thread to a CPU without binding it, and makes it prefer the node until nw_kernel_home_ends. */
void nw_kernel_home(uint32_t cpu, uint32_t node);
void nw_kernel_home_ends(void);
/* In the main thread, restores the original policy for a program that it starts; 0 if it is in force already. */
int nw_kernel_home_put_aside(void);
void nw_kernel_home_take_up(void);
uint64_t nw_kernel_free_bytes(void);

/* callers.c: whether large allocations of a caller get pages of their own. */
int nw_caller_separates(uintptr_t caller, size_t bytes);
void nw_caller_seen(const nw_allocation *object, int matched);

/* match.c: which rule an object of a kind (enum nw_kind) falls under; rules.count is the fallback. */
uint32_t nw_match(const nw_allocation *object, uint32_t kind);
/* Whether there is a rule for objects of a kind. */
int nw_has_rules(uint32_t kind);
/* As nw_match, of an object of kind NW_KIND_FILE. */
uint32_t nw_match_name(const char *name);
int nw_match_start(void);
void nw_match_thread_ends(void);

/* images.c: a module of the table, as it is loaded. */
typedef struct nw_image {
    uint64_t start, end, bias;
    uint32_t module;
} nw_image;
/* The module that contains a code address; 0 if it is not in the table. */
int nw_image_at(uint64_t address, nw_image *image);
void nw_images_start(void);
/* The load bias of a module that was loaded at start; 0 when it was not. */
uint64_t nw_module_bias(uint32_t module);
/* Calls `place` for each writable part of the executable. */
typedef void nw_span_function(uint64_t start, uint64_t bytes);
void nw_main_data(nw_span_function *place);

/* place.c */
typedef struct nw_object {
    uint64_t page, pages;
    uint32_t rule, thread;
    int fresh; /* pages are untouched: nothing to move */
    uint32_t cuts; /* mappings its placement may have added */
    nw_whole whole;
} nw_object;
void nw_place(nw_object *object);
void nw_place_undone(uint32_t cuts);
uint32_t nw_wanted(const nw_object *object, uint64_t page);
void nw_place_variables(void);

/* objects.c: the objects that are placed and alive, and where their pages are. */
void nw_objects_want(const nw_object *object, uint32_t node, uint64_t pages);
void nw_objects_add(const nw_object *object);
void nw_objects_remove(void *address);
/* Takes the object at this address out, to be placed again; 0 if there is none. */
int nw_objects_take(const void *address, nw_object *object);
void nw_objects_read_back(void);

/* seen.c: lists objects in the file named by $NODEWISE_OBJECTS. */
int nw_seen_start(void);
int nw_seeing(void);
void nw_seen(const nw_object *object);
void nw_seen_shared(const void *memory, size_t bytes);
void nw_seen_data(void); /* lists the executable's variables */
void nw_seen_end(void); /* lists the frames of all objects */

/* named.c: places a new mapping of memory that has a name, if a rule has it: 0 if none has. */
int nw_named_mapping(void *memory, size_t bytes, int flags, int file, long offset);
/* maps.c: the inode of what is mapped from this address on; 0 if it is not known. */
uint64_t nw_mapped_inode(const void *address);

/* mapped.c: memory for our own use, which does not count as an object of the program; null: out of memory. */
void *nw_own_memory(size_t bytes);

/* threads.c: number of the calling thread in the order of pthread_create; the main thread is 0. */
uint32_t nw_thread_ordinal(void);
void nw_threads_start(void);

/* companion.c: a thread that holds pages for a balancer, if $NODEWISE_BALANCE names one. */
void nw_companion_prepare(void); /* to be called before we set any policy */
void nw_companion_start(void);
/* Called in a thread of the program: does the pending work that only such a thread can do. */
void nw_companion_passes(int may_allocate);
/* Releases the held pages in a range, for a call that needs it to be one mapping; returns the number of releases. */
uint32_t nw_companion_lift(const void *at, size_t bytes);

#pragma GCC visibility pop
#endif
