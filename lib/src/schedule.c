/* What schedules need to know of the machine and of distributions. */
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

nw_range nw_part_call(nw_cuts cuts, int part) { return nw_part(cuts, part); }

nw_exclusive nw_exclusive_begin_call(long begin, long end, nw_cuts cuts, int id, int thread, int threads) {
    return nw_exclusive_begin(begin, end, cuts, id, thread, threads);
}

int nw_exclusive_next_call(nw_exclusive *e) { return nw_exclusive_next(e); }
