/* Writing to a file or pipe of ours inside the observed program. */
#ifndef NODEWISE_WRITE_H
#define NODEWISE_WRITE_H

#include <sys/uio.h>

#pragma GCC visibility push(hidden)

/* Writes the parts in one call; returns the bytes written, or -errno. The signals that a write can raise would end the
 * program: SIGPIPE if a pipe has no reader, SIGXFSZ at the program's limit on file sizes. They are blocked meanwhile,
 * and consumed if the write raised one. errno stays. */
long nw_write(int file, const struct iovec *parts, int count);

#pragma GCC visibility pop
#endif
