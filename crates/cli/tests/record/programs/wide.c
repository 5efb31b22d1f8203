/* Loads, stores and copies of every width, of C and C++: how many instructions each takes is the code
 * generator's choice. Arrays lie on pages of their own. */
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
#define complex _Complex
#else
#include <complex.h>
#endif

enum { N = 20000, RECORDS = N / 8, SIDE = 128 + 2, KNOWN = (N - 2) / 64 * 64, SCATTER = 7919 };

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
PAGES double stencil[N];
PAGES double grid[SIDE][SIDE];
PAGES double from_grid[SIDE][SIDE];
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
/* Vectors of one loop overlap: what was loaded is not loaded again, or is shuffled out of its neighbours.
 * Loops of known length have one that vectors divide. */
APART three_points(long n) {
    for (long i = 1; i < n - 1; i++)
        doubles[i] = from_doubles[i - 1] + from_doubles[i] + from_doubles[i + 1];
}
APART three_points_again(void) {
    for (int repeat = 0; repeat < 10; repeat++)
        for (int i = 1; i <= KNOWN; i++)
            stencil[i] = from_doubles[i - 1] + from_doubles[i] + from_doubles[i + 1];
}
APART four_neighbours(void) {
    for (int i = 1; i < SIDE - 1; i++)
        for (int j = 1; j < SIDE - 1; j++)
            grid[i][j] = 0.25 * (from_grid[i - 1][j] + from_grid[i + 1][j] + from_grid[i][j - 1] + from_grid[i][j + 1]);
}
APART five_points(void) {
    for (int i = 2; i < N - 2; i++)
        floats[i] = from_floats[i - 2] + from_floats[i - 1] + from_floats[i] + from_floats[i + 1] + from_floats[i + 2];
}
APART differences(void) {
    for (int i = 1; i < N; i++)
        ints[i] = from_ints[i] - from_ints[i - 1];
}
APART add_neighbours(void) {
    for (int i = 0; i < N - 1; i++)
        pairs[i] = from_pairs[i] + from_pairs[i + 1];
}
APART rotate(long n) {
    for (long i = 0; i < n; i++)
        pairs[i] *= from_pairs[i & 255];
}
APART clear_pairs_in_order(long n) {
    pair *to = pairs;
    for (long i = 0; i < n; i++)
        to[i] = 0;
}
APART count_sixteens(long n) {
    for (long i = 0; i < n; i++)
        sixteens[i] += i;
}
/* Loads and stores under a mask, and a multiplication that adds, of one number. */
APART scale_some(long n) {
    for (long i = 0; i < n; i++)
        if (from_floats[i] > 5)
            floats[i] *= from_floats[i];
}
APART copy_some(long n) {
    for (long i = 0; i < n; i++)
        if (from_ints[i] % 3)
            ints[i] = from_ints[i];
}
APART accumulate(long n) {
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += from_doubles[i] * from_doubles[scattered(i)];
    doubles[0] = sum;
}
APART number(void) {
    for (int i = 0; i < N; i++)
        from_floats[i] = from_ints[i] = i;
}

int main(void) {
    long n = N - zero;
    number();
    copy_pairs(n), multiply_pairs(n), clear_pairs(n), butterflies(n);
    copy_singles(n), multiply_singles(n);
    copy_triples(n), add_triples(n);
    copy_records(n), copy_blocks(n), clear_blocks(n);
    copy_sixteens(n), add_sixteens(n);
    add_bytes(n), add_shorts(n), add_ints(n), add_longs(n), add_floats(n), add_doubles(n), add_extended(n);
    convert(n), tally(n), set_bits(n);
    three_points(n), three_points_again(), four_neighbours(), five_points(), differences();
    add_neighbours(), rotate(n), clear_pairs_in_order(n), count_sixteens(n);
    scale_some(n), copy_some(n), accumulate(n);
    return printf("%f\n", doubles[N - 1]) < 0;
}
