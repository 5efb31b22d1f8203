/* The functions that compilers make of parallel regions. Our library in the program finds them in the symbol
 * tables of its modules; the plugin looks them up. */
#ifndef NODEWISE_EMULATOR_OUTLINED_H
#define NODEWISE_EMULATOR_OUTLINED_H

#include <stdint.h>

#define NW_OUTLINED 4096u /* further ones are not treated as regions */

typedef struct nw_function {
    uint64_t start, end; /* addresses in the process */
    uint32_t id;         /* 0 until it is first entered */
} nw_function;

typedef struct nw_functions {
    uint32_t count; /* only grows; stored with release order after the entry is complete */
    nw_function entry[NW_OUTLINED];
} nw_functions;

#endif
