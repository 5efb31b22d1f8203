/* Which node of a list a block belongs to: the formulas of libnodewise, of the placing preload
 * (runtime/distribution.h) and, mirrored, of crates/placement; a property test in crates/enforce holds
 * them together. `nodes` and `parts` are at least 1; all are O(1); results are indices into the list.
 */
#ifndef NODEWISE_FORMULAS_H
#define NODEWISE_FORMULAS_H

#include <stdint.h>

static inline uint32_t nw_formula_cyclic(uint64_t block, uint32_t nodes) { return (uint32_t)(block % nodes); }

/* Each round starts one node further on (MAI 2.1: 0,1,2,3 then 1,2,3,0...). */
static inline uint32_t nw_formula_skew(uint64_t block, uint32_t nodes) {
    return (uint32_t)((block % nodes + block / nodes % nodes) % nodes);
}

/* Cyclic over `prime` >= `nodes` virtual nodes; blocks of virtual nodes beyond the real ones go to the real
 * ones in turn (MAI 2.1 and 3.1). */
static inline uint32_t nw_formula_prime(uint64_t block, uint32_t prime, uint32_t nodes) {
    uint64_t at = block % prime;
    return (uint32_t)(at < nodes ? at : (block / prime * (prime - nodes) + at - nodes) % nodes);
}

/* Steele, Lea and Flood's SplitMix64. */
static inline uint64_t nw_formula_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Uniform, independent of order, equal from run to run. */
static inline uint32_t nw_formula_random(uint64_t block, uint64_t seed, uint32_t nodes) {
    unsigned __int128 hash = nw_formula_mix(seed ^ nw_formula_mix(block));
    return (uint32_t)(hash * nodes >> 64);
}

/* The part that holds a unit < n, if n units are divided into parts as by schedule(static): the first n mod parts
 * are one unit longer. */
static inline uint32_t nw_formula_static(uint64_t unit, uint64_t n, uint32_t parts) {
    uint64_t each = n / parts, more = n % parts, longer = more * (each + 1);
    return (uint32_t)(unit < longer ? unit / (each + 1) : more + (unit - longer) / each);
}

/* The owner of a block of a block-exclusive distribution: a Latin square in two dimensions, a cube in
 * three (Majo and Gross 4.1; for two processors it is their Figure 11(a)). */
static inline uint32_t nw_formula_latin(const uint32_t *coordinates, uint32_t dimensions, uint32_t nodes) {
    uint64_t sum = 0;
    for (uint32_t d = 0; d < dimensions; d++)
        sum += coordinates[d];
    return (uint32_t)(sum % nodes);
}

#endif
