/* One line on the observed program's standard error. */
#ifndef NODEWISE_STDERR_H
#define NODEWISE_STDERR_H

#include <stddef.h>

#pragma GCC visibility push(hidden)

/* Remembers what standard error is as the program begins. */
void nw_stderr_start(void);

/* Writes the line if it can be written at once and descriptor 2 is still what it was: a program that closed it
 * may have a file of its own there by now. Nothing waits, no signal is raised, errno stays. */
void nw_stderr_line(const char *text, size_t length);

#pragma GCC visibility pop
#endif
