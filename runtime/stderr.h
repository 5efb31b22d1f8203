/* Messages on the observed program's standard error. */
#ifndef NODEWISE_STDERR_H
#define NODEWISE_STDERR_H

#include <stddef.h>

#pragma GCC visibility push(hidden)

/* Remembers what descriptor 2 refers to at the start of the program. */
void nw_stderr_start(void);

/* Writes the line if that is possible without waiting, and if descriptor 2 still refers to the same file: a program
 * that closed it may have opened a file of its own there. Raises no signal; errno stays. */
void nw_stderr_line(const char *text, size_t length);

#pragma GCC visibility pop
#endif
