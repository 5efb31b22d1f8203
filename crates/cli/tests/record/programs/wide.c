/* Loads, stores and copies of every width, of C and C++: how many instructions each takes is the code
 * generator's choice. Arrays lie on pages of their own. */
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
#define complex _Complex
#else
#include <complex.h>
#endif

enum { N = 20000, RECORDS = N / 8, SCATTER = 7919 };

#define PAGES __attribute__((aligned(65536)))
#define APART __attribute__((noinline)) static void

typedef double complex pair;
typedef struct {
    double x, y, z;
} triple;
typedef struct {
    int k;
    double v[2];
    char c[9];
} record;
typedef struct {
    long v[8];
} block;

PAGES pair pairs[N], from_pairs[N];
PAGES float complex singles[N];
PAGES float complex from_singles[N];
PAGES triple triples[N];
PAGES triple from_triples[N];
PAGES record records[RECORDS];
PAGES record from_records[RECORDS];
PAGES block blocks[RECORDS];
PAGES block from_blocks[RECORDS];
PAGES __int128 sixteens[N];
PAGES __int128 from_sixteens[N];
PAGES signed char bytes[N];
PAGES signed char from_bytes[N];
PAGES short shorts[N];
PAGES short from_shorts[N];
PAGES int ints[N];
PAGES int from_ints[N];
PAGES long longs[N];
PAGES long from_longs[N];
PAGES float floats[N];
PAGES float from_floats[N];
PAGES double doubles[N];
PAGES double from_doubles[N];
PAGES long double extended[N];
PAGES long double from_extended[N];
PAGES volatile int zero;

static long scattered(long i) { return i * SCATTER % N; }

APART copy_pairs(long n) {
    for (long i = 0; i < n; i++)
        pairs[scattered(i)] = from_pairs[i];
}
APART multiply_pairs(long n) {
    for (long i = 0; i < n; i++)
        pairs[i] = pairs[i] * from_pairs[i] + from_pairs[i];
}
APART clear_pairs(long n) {
    for (long i = 0; i < n; i++)
        pairs[scattered(i)] = 0;
}
APART butterflies(long n) {
    for (long i = 0; i < n / 2; i++) {
        pair t = pairs[i + n / 2] * from_pairs[i], u = pairs[i];
        pairs[i] = u + t;
        pairs[i + n / 2] = u - t;
    }
}
APART copy_singles(long n) {
    for (long i = 0; i < n; i++)
        singles[scattered(i)] = from_singles[i];
}
APART multiply_singles(long n) {
    for (long i = 0; i < n; i++)
        singles[i] *= from_singles[i];
}
APART copy_triples(long n) {
    for (long i = 0; i < n; i++)
        triples[i] = from_triples[scattered(i)];
}
APART add_triples(long n) {
    for (long i = 0; i < n; i++) {
        triples[i].x += from_triples[i].x;
        triples[i].y += from_triples[i].y;
        triples[i].z += from_triples[i].z;
    }
}
APART copy_records(long n) {
    for (long i = 0; i < n / 8; i++)
        records[i] = from_records[i * SCATTER % RECORDS];
}
APART copy_blocks(long n) {
    for (long i = 0; i < n / 8; i++)
        blocks[i * SCATTER % RECORDS] = from_blocks[i];
}
APART clear_blocks(long n) {
    for (long i = 0; i < n / 8; i++)
        memset(&from_blocks[i * SCATTER % RECORDS], 0, sizeof(block));
}
APART copy_sixteens(long n) {
    for (long i = 0; i < n; i++)
        sixteens[i] = from_sixteens[n - 1 - i];
}
APART add_sixteens(long n) {
    for (long i = 0; i < n; i++)
        sixteens[i] += from_sixteens[i];
}
APART add_bytes(long n) {
    for (long i = 0; i < n; i++)
        bytes[i] += from_bytes[i];
}
APART add_shorts(long n) {
    for (long i = 0; i < n; i++)
        shorts[i] += from_shorts[i] * shorts[i];
}
APART add_ints(long n) {
    for (long i = 0; i < n; i++)
        ints[i] += from_ints[i];
}
APART add_longs(long n) {
    for (long i = 0; i < n; i++)
        longs[i] += from_longs[i] * 3;
}
APART add_floats(long n) {
    for (long i = 0; i < n; i++)
        floats[i] += from_floats[i];
}
APART add_doubles(long n) {
    for (long i = 0; i < n; i++)
        doubles[i] += from_doubles[i] * doubles[i];
}
APART add_extended(long n) {
    for (long i = 0; i < n; i++)
        extended[i] += from_extended[i];
}
APART convert(long n) {
    for (long i = 0; i < n; i++)
        doubles[i] = from_ints[i] + from_bytes[i];
}
APART tally(long n) {
    for (long i = 0; i < n; i++)
        ints[scattered(i)]++;
}
APART set_bits(long n) {
    for (long i = 0; i < n; i++)
        longs[scattered(i)] |= 4;
}

int main(void) {
    long n = N - zero;
    copy_pairs(n), multiply_pairs(n), clear_pairs(n), butterflies(n);
    copy_singles(n), multiply_singles(n);
    copy_triples(n), add_triples(n);
    copy_records(n), copy_blocks(n), clear_blocks(n);
    copy_sixteens(n), add_sixteens(n);
    add_bytes(n), add_shorts(n), add_ints(n), add_longs(n), add_floats(n), add_doubles(n), add_extended(n);
    convert(n), tally(n), set_bits(n);
    return printf("%f\n", doubles[N - 1]) < 0;
}
