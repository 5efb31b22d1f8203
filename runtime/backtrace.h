/* The chain of return addresses that led to an allocation. */
#ifndef NODEWISE_BACKTRACE_H
#define NODEWISE_BACKTRACE_H

#include <stdint.h>

#define NW_CHAIN 8

/* Stores up to NW_CHAIN return addresses, innermost first and beginning with `caller`, and returns
 * how many (at least 1). Unwinds by DWARF tables, so frame pointers are not needed. */
__attribute__((visibility("hidden"))) uint32_t nw_backtrace(uintptr_t caller, uintptr_t chain[NW_CHAIN]);

#endif
