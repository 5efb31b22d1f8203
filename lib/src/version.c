#include "nodewise.h"

/* NW_VERSION is set by lib/CMakeLists.txt. */
const char *nw_version(void) { return NW_VERSION; }
