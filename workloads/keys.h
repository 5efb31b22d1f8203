/* Shared by is and radix: checks that keys were sorted and none was lost. */
#ifndef KEYS_H
#define KEYS_H

#include "workload.h"

/* A checksum of the keys that does not depend on their order. */
static uint64_t contents(const int *keys, long n) {
    uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (long i = 0; i < n; i++)
        sum += mix((uint64_t)keys[i]);
    return sum;
}

static int ascends(const int *keys, long n) {
    int ok = 1;
#pragma omp parallel for reduction(&& : ok)
    for (long i = 1; i < n; i++)
        ok = ok && keys[i - 1] <= keys[i];
    return ok;
}

#endif
