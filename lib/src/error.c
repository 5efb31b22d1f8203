/* One line a thread: what its last call that failed had to say. */
#include "library.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char line[256];

int nw_fail(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return status;
}

const char *nw_last_error(void) { return line; }
