#include "nodewise.h"

/* The build says which: lib/CMakeLists.txt. */
const char *nw_version(void) { return NW_VERSION; }
