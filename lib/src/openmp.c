/* The CPUs of an OpenMP runtime's places. With OMP_PROC_BIND or OMP_PLACES the runtime binds the first thread before
 * main, so that this thread's affinity no longer shows which CPUs the process may use; the places do. The functions
 * are weak references, which are null in a program without an OpenMP runtime. */
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
