/* The table that `nodewise run` prepares and the preload library enforces.
 *
 * One file, little-endian, read-only: a header, then the sections it points to, each 8-byte aligned.
 * Nodes are logical (0..nodes) everywhere; `nodes` turns them into the kernel's numbers. The Rust
 * mirror is crates/enforce/src/table.rs; a test holds the two together.
 */
#ifndef NODEWISE_PRELOAD_TABLE_H
#define NODEWISE_PRELOAD_TABLE_H

#include "../distribution.h"
#include <stdint.h>

#define NW_TABLE_MAGIC 0x31656c626174776eull /* "nwtable1" */
#define NW_TABLE_VERSION 3u
#define NW_NODES 128u /* most nodes of a table */
#define NW_ANY UINT32_MAX

/* Kinds of memory that can be placed: nodewise_profile::ObjectKind in its order. */
enum nw_kind {
    NW_KIND_HEAP = 1,
    NW_KIND_ARENA = 2,
    NW_KIND_STATIC = 3,
    NW_KIND_TLS = 4,
    NW_KIND_MAPPING = 6,
    NW_KIND_FILE = 7
};

enum nw_table_flags {
    NW_BIND_THREADS = 1,    /* in pthread_create */
    NW_SPLIT_HUGE = 2,      /* decide at 4 KiB although huge pages are on: turn them off per object */
    NW_PLACE_REST = 4,      /* `fallback` also applies to small allocations, by the process's policy */
    NW_MAIN_HOME = 8,       /* the main thread begins on its node, before it is bound */
    NW_OPENMP_PLACES = 16,  /* OpenMP's runtime binds the threads instead, to places (OMP_PLACES) of the plan */
    NW_FOLLOWED = 32,       /* the runner sends threads to other CPUs of the plan while they run */
};

/* A shared object of the program, identified by its file. */
typedef struct nw_module {
    uint64_t device, inode;
    uint64_t sourced; /* has line tables: its frames count as frames even if no rule names them */
} nw_module;

/* A call site: frames, innermost first, as indices that ranges use too; 0 is any unknown frame. */
typedef struct nw_site {
    uint32_t first, count;
    uint32_t by_name; /* only function names are known: no lines, no inlining */
    uint32_t objects; /* number of objects that rules tell apart by sequence; 0: none */
} nw_site;

/* Code whose inline-expanded frames are the same throughout; offsets from the load bias. */
typedef struct nw_range {
    uint64_t start, end;
    uint32_t module;
    uint32_t first, count; /* frames */
    uint32_t unused;
} nw_range;

/* Exceptions to a rule's distribution, ascending and disjoint, in pages of the object. */
typedef struct nw_run {
    uint64_t first, pages;
    uint32_t node, unused;
} nw_run;

/* One rule. The first whose kind, site, thread, sequence and name match applies; NW_ANY matches all. */
typedef struct nw_rule {
    uint32_t kind, site, thread, sequence;
    nw_distribution how;
    uint64_t pages; /* of the recorded object: runs hold for this size only */
    uint32_t run, runs;
    uint32_t name; /* of memory that has one (named.c): where its pattern (fnmatch) begins in `texts` */
    uint32_t unused;
} nw_rule;

/* A variable that a rule names. */
typedef struct nw_variable {
    uint64_t address, bytes; /* offset from the load bias */
    uint32_t module, rule;
} nw_variable; /* `bytes` 0: the rest of the executable's writable data */

/* Sections, in the order of the header. */
#define NW_SECTIONS(X)        \
    X(uint32_t, nodes)        \
    X(uint32_t, thread_nodes) \
    X(uint32_t, thread_cpus)  \
    X(nw_module, modules)     \
    X(uint32_t, frames)       \
    X(nw_site, sites)         \
    X(nw_range, ranges)       \
    X(nw_part, parts)         \
    X(nw_run, runs)           \
    X(nw_rule, rules)         \
    X(nw_variable, variables) \
    X(char, texts)

typedef struct nw_section {
    uint32_t offset, count;
} nw_section;

typedef struct nw_table {
    uint64_t magic;
    uint32_t version, flags;
    uint64_t bytes;          /* of the whole file */
    uint64_t device, inode;  /* of the only executable that this table is for; zeros: any */
    uint32_t granule;        /* base pages decided together: 1, or 512 where huge pages are on */
    uint32_t unused;
    nw_distribution fallback; /* for objects no rule names */
#define NW_SECTION_FIELD(type, name) nw_section name;
    NW_SECTIONS(NW_SECTION_FIELD)
#undef NW_SECTION_FIELD
} nw_table;

#define NW_SECTION_ACCESSOR(type, name)                                                \
    static inline const type *nw_##name(const nw_table *table) {                       \
        return (const type *)(const void *)((const char *)table + table->name.offset); \
    }
NW_SECTIONS(NW_SECTION_ACCESSOR)
#undef NW_SECTION_ACCESSOR

/* Maps and checks a table; null, with the reason in `*why`, when it is damaged. */
const nw_table *nw_table_open(const char *path, const char **why);

#endif
