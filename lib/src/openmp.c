/* What an OpenMP runtime took away before we came: with OMP_PROC_BIND or OMP_PLACES it binds the first
 * thread before main, and that thread's affinity no longer tells what the process may use. Its places do.
 * Nothing is linked for it: without a runtime in the program these names are null. */
#include "library.h"

#include <stdlib.h>

int omp_get_num_places(void) __attribute__((weak));
int omp_get_place_num_procs(int place) __attribute__((weak));
void omp_get_place_proc_ids(int place, int *ids) __attribute__((weak));

void nw_openmp_cpus(void (*add)(int cpu)) {
    if (!omp_get_num_places || !omp_get_place_num_procs || !omp_get_place_proc_ids)
        return;
    for (int place = 0, places = omp_get_num_places(); place < places; place++) {
        int count = omp_get_place_num_procs(place), *ids = count > 0 ? calloc((size_t)count, sizeof *ids) : NULL;
        if (ids)
            omp_get_place_proc_ids(place, ids);
        for (int i = 0; ids && i < count; i++)
            add(ids[i]);
        free(ids);
    }
}
