/* What the Fortran module asks of C alone: a message of its own, in Fortran's words. */
#include "library.h"

NW_API int nw_fortran_fail(int status, const char *line);

int nw_fortran_fail(int status, const char *line) { return nw_fail(status, "%s", line); }
