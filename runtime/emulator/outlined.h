/* The functions that compilers make of parallel regions, as the program's symbol tables name them: found
 * by the preload, looked up by the plugin. */
#ifndef NODEWISE_EMULATOR_OUTLINED_H
#define NODEWISE_EMULATOR_OUTLINED_H

#include <stdint.h>

#define NW_OUTLINED 4096u /* what goes beyond is no region */

typedef struct nw_function {
    uint64_t start, end; /* addresses in the process */
    uint32_t id;         /* 0 until it is first entered */
} nw_function;

typedef struct nw_functions {
    uint32_t count; /* grows, with release order after the entry is whole */
    nw_function entry[NW_OUTLINED];
} nw_functions;

#endif
