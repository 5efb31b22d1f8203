/* What the teaching programs share: options, memory, sums that do not depend on the number of
 * threads, and the last line of output. Each program prints the same bytes for any number of
 * threads, either way of initialising and all its forms, and says `verified` when its result is right. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a program matches its loops and its data (Majo and Gross, CGO 2012). */
typedef enum {
    FORM_DEFAULT,      /* first touch and schedule(static) */
    FORM_REDISTRIBUTE, /* 3.2: data move to where the next phase needs them */
    FORM_ITERATE,      /* 3.2: iterations move to where the data lie */
    FORM_MATCHED,      /* 4 and 5: distributions and schedules that suit all phases */
    FORM_REPLICATE,    /* not in the paper: a copy on each node of what is only read */
    FORMS
} program_form;

static const char *const form_names[FORMS] = {"default", "redistribute", "iterate", "matched", "replicate"};

/* Which threads initialise in the corresponding NAS benchmark (`--init nas`): NPB 2.3 in its OpenMP C version,
 * where bt, lu, sp and mg (zero3, zran3) distribute planes over all threads, ft generates its array in a
 * `single`, and cg makes its matrix outside of parallel regions but its vectors inside. For is: NPB 3, whose
 * create_seq is parallel. */
typedef enum { NAS_NONE, NAS_MASTER, NAS_PARALLEL, NAS_VECTORS } nas_init;

/* A program's name, purpose and defaults. */
typedef struct {
    const char *name;
    const char *does;
    const char *size_is;
    long small, size, largest;
    long iterations;
    int parallel;   /* by default, arrays are initialised by all threads */
    unsigned forms; /* bit f: it has form f; 0: only the default, and no --form */
    const char *const *policies; /* of MAI, null-ended, the default first; null: no --policy */
    nas_init nas;                /* how the NAS benchmark of its kind initialises */
} workload;

/* The options that the user has given. */
typedef struct {
    int parallel; /* arrays are initialised by all threads, each its part; else by the master */
    int vectors;  /* vectors are initialised by all threads, even if the matrix is not */
    long size;
    long iterations;
    program_form form;
    int policy; /* index in the workload's list */
} options;

static inline void give_up(const workload *w, const char *what, const char *where) {
    fprintf(stderr, "%s: %s%s; try --help\n", w->name, what, where);
    exit(2);
}

static inline void print_help(const workload *w) {
    printf("%s: %s\n"
           "usage: %s [--init master|parallel%s] [--size N|small] [--iterations N]%s%s [--help]\n"
           "  --init        who touches the arrays first (%s)\n"
           "  --size        %s (%ld; small is %ld)\n"
           "  --iterations  how often (%ld)\n",
           w->name, w->does, w->name, w->nas ? "|nas" : "", w->forms ? " [--form F]" : "",
           w->policies ? " [--policy P]" : "", w->parallel ? "parallel" : "master", w->size_is, w->size, w->small,
           w->iterations);
    for (int f = 0; f < FORMS; f++)
        if (w->forms >> f & 1)
            printf("%s%s", f ? ", " : "  --form        ", form_names[f]);
    if (w->forms)
        printf(" (default)\n");
    for (int p = 0; w->policies && w->policies[p]; p++)
        printf("%s%s%s", p ? ", " : "  --policy      ", w->policies[p], w->policies[p + 1] ? "" : " (none)\n");
    exit(0);
}

static inline program_form parse_form(const workload *w, const char *text) {
    for (int f = 0; f < FORMS; f++)
        if (w->forms >> f & 1 && !strcmp(text, form_names[f]))
            return (program_form)f;
    give_up(w, "it has no form ", text);
    return FORM_DEFAULT;
}

static inline int parse_policy(const workload *w, const char *text) {
    for (int p = 0; w->policies[p]; p++)
        if (!strcmp(text, w->policies[p]))
            return p;
    give_up(w, "it has no policy ", text);
    return 0;
}

static inline long parse_number(const workload *w, const char *text, long largest) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > largest)
        give_up(w, "not a number in range: ", text);
    return value;
}

static inline options parse_options(const workload *w, int argc, char **argv) {
    options o = {w->parallel, w->parallel, w->size, w->iterations, FORM_DEFAULT, 0};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (!strcmp(name, "--help"))
            print_help(w);
        int known = !strcmp(name, "--init") || !strcmp(name, "--size") || !strcmp(name, "--iterations") ||
                    (w->forms && !strcmp(name, "--form")) || (w->policies && !strcmp(name, "--policy"));
        if (!known)
            give_up(w, "unknown option: ", name);
        if (++i == argc)
            give_up(w, "a value is missing after ", name);
        const char *value = argv[i];
        if (!strcmp(name, "--size"))
            o.size = strcmp(value, "small") ? parse_number(w, value, w->largest) : w->small;
        else if (!strcmp(name, "--iterations"))
            o.iterations = parse_number(w, value, 1000000);
        else if (!strcmp(name, "--form"))
            o.form = parse_form(w, value);
        else if (!strcmp(name, "--policy"))
            o.policy = parse_policy(w, value);
        else if (!strcmp(value, "parallel") || !strcmp(value, "master"))
            o.parallel = o.vectors = !strcmp(value, "parallel");
        else if (w->nas && !strcmp(value, "nas"))
            o.parallel = w->nas == NAS_PARALLEL, o.vectors = w->nas != NAS_MASTER;
        else
            give_up(w, "--init is master or parallel, not ", value);
    }
    return o;
}

static inline void need_memory(const workload *w, int got_it) {
    if (!got_it) {
        fprintf(stderr, "%s: out of memory; choose a smaller --size\n", w->name);
        exit(2);
    }
}

/* Prints the verdict and returns the exit status. */
static inline int verdict(const workload *w, long size, long iterations, double checksum, int ok) {
    printf("%s: size %ld, %ld iterations, checksum %.10e, %s\n", w->name, size, iterations, checksum,
           ok ? "verified" : "WRONG");
    return ok ? 0 : 1;
}

/* A well-mixed function of an integer (splitmix64), so that arrays can be filled in any order. */
static inline uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Likewise, in [0, 1). */
static inline double mix_unit(uint64_t x) { return (double)(mix(x) >> 11) * 0x1p-53; }

#endif
