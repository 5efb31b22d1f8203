/* What a program is, by its file: one that no library of ours can be preloaded into, one that counts. */
#ifndef NODEWISE_FOREIGN_H
#define NODEWISE_FOREIGN_H

#pragma GCC visibility push(hidden)

/* Whether a library of glibc's and of this processor's goes into what executing `path` starts: not if that is made
 * for another processor or C library, or with a sanitizer that has to come first. What cannot be read is taken for
 * one that it goes into, and so are static programs, which hand it on. The mirror is crates/loader's foreign.rs. */
int nw_takes_preload(const char *path);

/* Whether executing `path` starts a static program of this processor: it runs without our library and hands the
 * variable on to what it starts. No where that cannot be told. */
int nw_is_static(const char *path);

/* Whether what executing `path` starts is compiled to be recorded: it asks for our runtime itself. Where only a
 * library of its own does, or a program that it starts, that is not seen. */
int nw_counts(const char *path);

#pragma GCC visibility pop
#endif
