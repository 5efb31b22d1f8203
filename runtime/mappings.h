/* Addresses of mappings that are gone, for the next ones of their place. An emulator gives addresses that were never
 * used, where the kernel would give the same again: a program that maps in every step would be counted on ever more
 * pages. A place is who maps, and what; its addresses are a hint to the emulator, so that nothing is lost where they
 * are taken meanwhile.
 *
 * No lock: a signal handler may map at any point. */
#ifndef NODEWISE_MAPPINGS_H
#define NODEWISE_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef struct nw_mapping nw_mapping;

/* For a mapping of `bytes` that is about to be made: what to note it in, its hint in `*at` if there is one. Null: there
 * are too many. */
nw_mapping *nw_mapping_begin(uint64_t place, size_t bytes, void **at);
/* It was made at `address`, or, null, was not. */
void nw_mapping_made(nw_mapping *mapping, void *address, size_t bytes);

/* What was made there with this size, about to be unmapped; null: nothing that is known. */
nw_mapping *nw_mapping_ends(const void *address, size_t bytes);
/* It is unmapped, or could not be. */
void nw_mapping_ended(nw_mapping *mapping, int unmapped);

#pragma GCC visibility pop
#endif
