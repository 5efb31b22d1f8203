/* What schedules ask of the machine and of distributions. */
#include "nodewise_schedule.h"

#include "library.h"

int nw_processors(void) { return nw_machine_now()->processor_count; }

nw_cuts nw_distr_cuts(const nw_distr *distr, int dimension) {
    nw_cuts cuts = {0, 0, 1};
    if (!distr)
        nw_fail(NW_INVALID, "no distribution to cut by: the pointer is null");
    if (distr && (dimension < 0 || dimension >= distr->shape.dimensions))
        nw_fail(NW_INVALID, "no dimension %d: the array has %d", dimension, distr->shape.dimensions);
    if (!distr || dimension < 0 || dimension >= distr->shape.dimensions)
        return cuts;
    cuts.end = (long)distr->shape.extents[dimension];
    if (distr->kind == NW_BLOCK_EXCLUSIVE && distr->dimensions & 1u << dimension)
        cuts.parts = distr->node_count;
    return cuts;
}
