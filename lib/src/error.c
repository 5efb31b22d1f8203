/* For each thread, the message of its last call that failed. */
#include "kernel.h"
#include "library.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char line[512];
static _Thread_local int last;

int nw_fail(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return last = status;
}

const char *nw_last_error(void) { return line; }

int nw_fail_call(int status, const char *text) { return nw_fail(status, "%s", text); }

int nw_last_status(void) { return last; }

void nw_name_nodes(char *text, size_t size, const nw_mask *nodes) {
    size_t at = 0;
    text[0] = 0;
    for (int node = 0; node < NW_MASK_NODES && at + 16 < size; node++) {
        int end = node;
        while (nw_mask_has(nodes, end + 1))
            end++;
        if (!nw_mask_has(nodes, node))
            continue;
        at += (size_t)snprintf(text + at, size - at, end > node ? "%s%d-%d" : "%s%d", at ? "," : "", node, end);
        node = end;
    }
}
