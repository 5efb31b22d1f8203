/* Majo and Gross's own names (CGO 2012, 4.1) for what nodewise.h calls nw_describe and nw_distribute.
 *
 * The paper's Figure 10, which has the signatures, did not survive in print form; these are chosen to
 * fit its text. `m` is an array of the library (nw_alloc...), or memory made one (nw_adopt). `size` is
 * the whole region's and `block_size` a block's, both in items of the array, as in section 4.1's
 * examples (NX * NY / 2 is x-wise, NY / 2 is y-wise). What does not fit together is refused: null, and
 * nw_last_error() says what. A description moves nothing; distribute_to() does, at any time and as
 * often as wanted. Free a description with nw_distr_free().
 *
 *     data_distr_t *rows = create_block_cyclic_distr(m, nx * ny, nx * ny / nw_processors());
 *     distribute_to(rows);
 */
#ifndef NODEWISE_DISTR_H
#define NODEWISE_DISTR_H

#include "nodewise_schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef nw_distr data_distr_t;

/* Block b, of `block_size` items in memory order, goes to node b mod N of those with memory. `size` must
 * be the array's number of items; `block_size` at least 1. */
NW_API data_distr_t *create_block_cyclic_distr(void *m, size_t size, size_t block_size);

/* A Latin square over the N processors (nw_processors), cut along the first two dimensions.
 * `block_size` is the items of one block in one row: for NX x NY items NY / N, for NX x NY x NZ items
 * NY / N * NZ; rounded either way where N does not divide NY. 0 works it out. An array of one dimension
 * is taken for a matrix with rows of N * block_size items, which must divide `size`. */
NW_API data_distr_t *create_block_exclusive_distr(void *m, size_t size, size_t block_size);

/* Moves what has been touched and says where the rest is to be: the status of nw_distribute. */
NW_API int distribute_to(data_distr_t *distribution);

#ifdef __cplusplus
}
#endif

#endif
