/* Reuse of the addresses of unmapped memory, under an emulator. The kernel would often assign the same addresses again;
 * an emulator assigns new ones, so that a program that maps memory in every step would be counted on more and more
 * pages. A mapping therefore gets the addresses of an earlier one of its place, which is given by the call chain, the
 * thread's lane and the mapped file. The address is passed to the emulator as a hint: if it is in use by now, the
 * mapping is made elsewhere.
 *
 * No lock is taken: a signal handler may map memory at any point. */
#ifndef NODEWISE_MAPPINGS_H
#define NODEWISE_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef struct nw_mapping nw_mapping;

/* To be called before mapping `bytes`. Returns the record for nw_mapping_made, and stores the hint in `*at` if there is
 * one. Null: there are too many mappings. */
nw_mapping *nw_mapping_begin(uint64_t place, size_t bytes, void **at);
/* The memory was mapped at `address`; null: mapping failed. */
void nw_mapping_made(nw_mapping *mapping, void *address, size_t bytes);

/* To be called before unmapping. Returns the record of the mapping of exactly this range, null if there is none. Other
 * mappings that overlap the range are shortened or forgotten. */
nw_mapping *nw_mapping_ends(const void *address, size_t bytes);
/* The mapping was unmapped, or could not be. */
void nw_mapping_ended(nw_mapping *mapping, int unmapped);

#pragma GCC visibility pop
#endif
