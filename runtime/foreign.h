/* Inspects an executable file: whether our library can be preloaded into it, whether it is static, and whether it was
 * compiled to be recorded. */
#ifndef NODEWISE_FOREIGN_H
#define NODEWISE_FOREIGN_H

#pragma GCC visibility push(hidden)

/* Whether LD_PRELOAD should name our library for the program that executing `path` starts. It should not if that
 * program was built for another processor or another C library than glibc, or with a sanitizer that has to be loaded
 * first. It should if the file cannot be read, and for static programs, which pass the variable on to programs that
 * they start. The mirror is foreign.rs in crates/loader. */
int nw_takes_preload(const char *path);

/* Whether executing `path` starts a static program for this processor. It runs without our library, and passes
 * LD_PRELOAD on to programs that it starts. 0 if that cannot be determined. */
int nw_is_static(const char *path);

/* Whether executing `path` starts a program that was compiled to be recorded, that is, needs our runtime itself.
 * A program of which only a library needs it, or which starts such a program, is not recognised. */
int nw_counts(const char *path);

#pragma GCC visibility pop
#endif
