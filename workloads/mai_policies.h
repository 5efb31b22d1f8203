/* MAI's policies by name, for programs that take --policy: what a user of mai.h would write by hand. */
#ifndef MAI_POLICIES_H
#define MAI_POLICIES_H

#include "mai.h"
#include "workload.h"
#include <omp.h>

/* The smallest prime above the number of nodes. With the number of nodes itself the order would be cyclic. */
static inline int virtual_nodes(void) {
    for (int prime = mai_get_num_nodes() + 1;; prime++) {
        int d = 2;
        while (d * d <= prime && prime % d)
            d++;
        if (d * d > prime && prime > 1)
            return prime;
    }
}

static inline void place_none(void *a) { (void)a; }
static inline void place_cyclic_rows(void *a) { mai_cyclic_rows(a, 1); }
static inline void place_skew_rows(void *a) { mai_skew_mapp_rows(a, 1); }
static inline void place_prime(void *a) { mai_prime_mapp(a, virtual_nodes()); }
static inline void place_prime_rows(void *a) { mai_prime_mapp_rows(a, virtual_nodes(), 1); }
static inline void place_random_rows(void *a) { mai_random_rows(a, 1); }
static const char *const mai_policies[] = {"none",        "cyclic",     "cyclic-rows", "skew",         "skew-rows",
                                           "prime",       "prime-rows", "bind-block",  "bind-columns", "random",
                                           "random-rows", "bind-all",   NULL};
static void (*const place_by[])(void *) = {place_none,       mai_cyclic,  place_cyclic_rows, mai_skew_mapp,
                                           place_skew_rows,  place_prime, place_prime_rows,  mai_bind_rows,
                                           mai_bind_columns, mai_random,  place_random_rows, mai_bind_all};

/* Starts MAI and binds the threads, one to a core. */
static inline void start_mai(void) {
    mai_init(NULL);
#pragma omp parallel
    bind_thread_omp(omp_get_thread_num());
}

/* Places an array by the policy that the user has given. */
static inline void *place(const options *o, void *array) {
    if (array)
        place_by[o->policy](array);
    return array;
}

#endif
