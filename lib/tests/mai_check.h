/* What the test programs of MAI share. */
#ifndef MAI_CHECK_H
#define MAI_CHECK_H

#include <mai.h>
#include <string.h>

#include "check.h"

/* The last call failed so, with a message that has these words. */
#define REFUSED(status, words)                                                                        \
    CHECK(mai_last_status() == (status) && strstr(nw_last_error(), words), "status %d, message `%s`", \
          mai_last_status(), nw_last_error())

/* The last call did what it could: one node is no error. */
#define ACCEPTED() CHECK(mai_last_status() >= NW_OK, "status %d, message `%s`", mai_last_status(), nw_last_error())

#endif
