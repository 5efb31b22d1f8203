/* What the test programs of MAI share. */
#ifndef MAI_CHECK_H
#define MAI_CHECK_H

#include <mai.h>
#include <string.h>

#include "check.h"

/* The last call failed with this status, and with a message that contains these words. */
#define REFUSED(status, words)                                                                        \
    CHECK(mai_last_status() == (status) && strstr(nw_last_error(), words), "status %d, message `%s`", \
          mai_last_status(), nw_last_error())

/* The last call did what is possible here: it is no error if there is only one node. */
#define ACCEPTED() CHECK(mai_last_status() >= NW_OK, "status %d, message `%s`", mai_last_status(), nw_last_error())

#endif
