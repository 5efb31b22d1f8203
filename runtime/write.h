/* Writing to a file or pipe of ours inside the observed program. */
#ifndef NODEWISE_WRITE_H
#define NODEWISE_WRITE_H

#include <sys/uio.h>

#pragma GCC visibility push(hidden)

/* Writes the parts in one call; the bytes written, or -errno. The signals that a write can raise, SIGPIPE where a
 * reader has gone and SIGXFSZ at the program's own limit on file sizes, would end the program: they are held back,
 * and taken if the write raised one. errno stays. */
long nw_write(int file, const struct iovec *parts, int count);

#pragma GCC visibility pop
#endif
