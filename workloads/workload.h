/* What the teaching programs share: options, memory, sums that do not depend on the number of
 * threads, and the last line of output. Each program prints the same bytes for any number of
 * threads and either way of initialising, and says `verified` when its result holds. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a program is called, does, and takes by default. */
typedef struct {
    const char *name;
    const char *does;
    const char *size_is;
    long small, size, largest;
    long iterations;
} workload;

/* What the user wants. */
typedef struct {
    int parallel; /* arrays are initialised by all threads, each its part; else by the master */
    long size;
    long iterations;
} options;

static inline void give_up(const workload *w, const char *what, const char *where)
{
    fprintf(stderr, "%s: %s%s; try --help\n", w->name, what, where);
    exit(2);
}

static inline void print_help(const workload *w)
{
    printf("%s: %s\n"
           "usage: %s [--init master|parallel] [--size N|small] [--iterations N] [--help]\n"
           "  --init        who touches the arrays first (master)\n"
           "  --size        %s (%ld; small is %ld)\n"
           "  --iterations  how often (%ld)\n",
           w->name, w->does, w->name, w->size_is, w->size, w->small, w->iterations);
    exit(0);
}

static inline long parse_number(const workload *w, const char *text, long largest)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > largest)
        give_up(w, "not a number in range: ", text);
    return value;
}

static inline options parse_options(const workload *w, int argc, char **argv)
{
    options o = {0, w->size, w->iterations};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (!strcmp(name, "--help"))
            print_help(w);
        if (strcmp(name, "--init") && strcmp(name, "--size") && strcmp(name, "--iterations"))
            give_up(w, "unknown option: ", name);
        if (++i == argc)
            give_up(w, "a value is missing after ", name);
        const char *value = argv[i];
        if (!strcmp(name, "--size"))
            o.size = strcmp(value, "small") ? parse_number(w, value, w->largest) : w->small;
        else if (!strcmp(name, "--iterations"))
            o.iterations = parse_number(w, value, 1000000);
        else if (!strcmp(value, "parallel") || !strcmp(value, "master"))
            o.parallel = !strcmp(value, "parallel");
        else
            give_up(w, "--init is master or parallel, not ", value);
    }
    return o;
}

static inline void need_memory(const workload *w, int got_it)
{
    if (!got_it) {
        fprintf(stderr, "%s: out of memory; choose a smaller --size\n", w->name);
        exit(2);
    }
}

/* Prints the verdict and returns the exit status. */
static inline int verdict(const workload *w, long size, long iterations, double checksum, int ok)
{
    printf("%s: size %ld, %ld iterations, checksum %.10e, %s\n", w->name, size, iterations, checksum,
           ok ? "verified" : "WRONG");
    return ok ? 0 : 1;
}

/* A well-mixed function of an integer (splitmix64), so that arrays can be filled in any order. */
static inline uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Likewise, in [0, 1). */
static inline double mix_unit(uint64_t x)
{
    return (double)(mix(x) >> 11) * 0x1p-53;
}

#endif
