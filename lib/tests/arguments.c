/* Wrong arguments yield the documented status or null, and a line that says why; nothing is changed or lost. */
#define _GNU_SOURCE
#include "check.h"
#include "nodewise.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REFUSED(call, status)                                                                          \
    do {                                                                                               \
        int got_ = (call);                                                                             \
        CHECK(got_ == (status) && nw_last_error()[0], "%s: %d, \"%s\"", #call, got_, nw_last_error()); \
    } while (0)
#define NOTHING(call) CHECK((call) == NULL && nw_last_error()[0], "%s: \"%s\"", #call, nw_last_error())

static void sizes(void) {
    size_t extents[] = {2, 3, 4, 5, 6};
    NOTHING(nw_alloc_1d(0, 8));
    NOTHING(nw_alloc_1d(8, 0));
    NOTHING(nw_alloc_2d(3, 0, 8));
    NOTHING(nw_alloc_1d(SIZE_MAX, 1));
    NOTHING(nw_alloc_1d(SIZE_MAX / 2 + 1, 2));
    NOTHING(nw_alloc_1d(PTRDIFF_MAX, 1));
    NOTHING(nw_alloc_2d(SIZE_MAX / 2, 3, 1));
    NOTHING(nw_alloc_4d(1ul << 20, 1ul << 20, 1ul << 20, 1ul << 20, 1));
    NOTHING(nw_alloc_1d(1ul << 60, 1)); /* no such address space */
    NOTHING(nw_alloc(8, 0, extents));
    NOTHING(nw_alloc(8, 5, extents));
    NOTHING(nw_alloc(8, -1, extents));
    NOTHING(nw_alloc(8, 2, NULL));
    char here[64];
    REFUSED(nw_adopt(NULL, 1, 1, extents), NW_INVALID);
    REFUSED(nw_adopt(here, 0, 1, extents), NW_INVALID);
    REFUSED(nw_adopt(here, 1, 9, extents), NW_INVALID);
    size_t huge = PTRDIFF_MAX - 100000;
    REFUSED(nw_adopt((void *)(UINTPTR_MAX - 4096), 1, 1, &huge), NW_INVALID);
}

static void foreign(void *pointer) {
    nw_shape shape;
    int node = 0;
    size_t pages = 0;
    REFUSED(nw_free(pointer), NW_NO_ARRAY);
    REFUSED(nw_forget(pointer), NW_NO_ARRAY);
    REFUSED(nw_shape_of(pointer, &shape), NW_NO_ARRAY);
    REFUSED(nw_place(pointer, nw_cyclic(NW_PAGES, 1)), NW_NO_ARRAY);
    REFUSED(nw_migrate_rows(pointer, 0, 1, 0), NW_NO_ARRAY);
    REFUSED(nw_migrate_columns(pointer, 0, 1, 0), NW_NO_ARRAY);
    REFUSED(nw_scatter(pointer, NULL, 0), NW_NO_ARRAY);
    REFUSED(nw_gather(pointer, 0), NW_NO_ARRAY);
    nw_copies copies;
    REFUSED(nw_replicate(pointer), NW_NO_ARRAY);
    REFUSED(nw_replicate_on(pointer, &node, 1), NW_NO_ARRAY);
    REFUSED(nw_copies_of(pointer, &copies, &pages, 1), NW_NO_ARRAY);
    REFUSED(nw_check_copies(pointer), NW_NO_ARRAY);
    REFUSED(nw_drop_copies(pointer), NW_NO_ARRAY);
    REFUSED(nw_page_nodes(pointer, &node, 1), NW_NO_ARRAY);
    REFUSED(nw_histogram(pointer, &pages, 1, NULL), NW_NO_ARRAY);
    NOTHING(nw_index(pointer));
    NOTHING(nw_nearest(pointer));
    NOTHING(nw_describe(pointer, nw_cyclic(NW_PAGES, 1)));
}

static void pointers(void) {
    double *array = nw_alloc_2d(100, 100, sizeof *array);
    int local;
    foreign(NULL);
    foreign(&local);
    foreign(array + 1);
    nw_distr *distr = nw_describe(array, nw_cyclic(NW_ROWS, 1));
    double **table = nw_index(array);
    CHECK(table[99] == array + 9900 && nw_index(table) == table, "the table of rows");
    CHECK(nw_free(table) == NW_OK, "%s", nw_last_error());
    foreign(array);
    foreign(table);
    REFUSED(nw_distribute(distr), NW_NO_ARRAY);
    CHECK(nw_distr_page_node(distr, 0) >= 0, "a distribution outlives its array");
    /* Another array at the same address is another array. */
    void *others[64];
    for (int i = 0; i < 64; i++) {
        others[i] = nw_alloc_2d(100, 100, sizeof *array);
        REFUSED(nw_distribute(distr), NW_NO_ARRAY);
    }
    for (int i = 0; i < 64; i++)
        nw_free(others[i]);
    nw_distr_free(distr);
    nw_distr_free(NULL);
}

static void adopted(void) {
    static double memory[10000];
    size_t extents[] = {100, 100}, pages = sizeof memory;
    CHECK(nw_adopt(memory, sizeof *memory, 2, extents) == NW_OK, "%s", nw_last_error());
    REFUSED(nw_free(memory), NW_INVALID);
    /* Adopted again before nw_forget: the same array, or an error. */
    double **table = nw_index(memory);
    nw_distr *distr = nw_describe(memory, nw_cyclic(NW_PAGES, 1));
    CHECK(nw_adopt(memory, sizeof *memory, 2, extents) == NW_OK, "%s", nw_last_error());
    REFUSED(nw_adopt(memory, 1, 1, &pages), NW_INVALID);
    CHECK(strstr(nw_last_error(), "100x100x1x1 items of 8 bytes: nw_forget") != NULL, "%s", nw_last_error());
    CHECK(nw_index(memory) == table && table[99] == memory + 9900, "the table is another");
    CHECK(nw_distribute(distr) != NW_NO_ARRAY, "%s", nw_last_error());
    REFUSED(nw_adopt(table, sizeof *memory, 2, extents), NW_INVALID);
    CHECK(nw_forget(table) == NW_OK, "%s", nw_last_error());
    REFUSED(nw_distribute(distr), NW_NO_ARRAY);
    nw_distr_free(distr);
    CHECK(nw_adopt(memory, 1, 1, &pages) == NW_OK, "after nw_forget: %s", nw_last_error());
    nw_shape shape;
    CHECK(nw_shape_of(memory, &shape) == NW_OK && shape.dimensions == 1 && shape.items == sizeof memory,
          "the new shape");
    CHECK(nw_forget(memory) == NW_OK, "%s", nw_last_error());
    REFUSED(nw_forget(memory), NW_NO_ARRAY);
    double *array = nw_alloc_1d(1000, sizeof *array);
    REFUSED(nw_forget(array), NW_INVALID);
    REFUSED(nw_adopt(array, 8, 1, extents), NW_INVALID);
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
    /* Memory that is unmapped without nw_forget. */
    char *gone = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t bytes = 1 << 20;
    memset(gone, 1, bytes);
    CHECK(nw_adopt(gone, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    munmap(gone, bytes);
    CHECK(nw_place(gone, nw_skew(NW_PAGES, 1)) != NW_OK, "placed what is gone");
    CHECK(nw_gather(gone, 0) != NW_OK, "moved what is gone");
    nw_forget(gone);
    /* Likewise, where nw_alloc then gets the same address. */
    double *freed = nw_alloc_1d(bytes, sizeof *freed);
    munmap(freed, bytes * sizeof *freed);
    double *renewed = nw_alloc_1d(bytes, sizeof *freed);
    renewed[0] = renewed[bytes - 1] = 1;
    CHECK(nw_free(renewed) == NW_OK, "%s", nw_last_error());
    if (renewed != freed)
        nw_free(freed);
    /* Smaller than a page. */
    char few[16];
    bytes = sizeof few;
    CHECK(nw_adopt(few, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    REFUSED(nw_place(few, nw_cyclic(NW_PAGES, 1)), NW_NOT_DONE);
    CHECK(nw_forget(few) == NW_OK, "%s", nw_last_error());
}

static void policies(void) {
    size_t extents[] = {10, 20, 30};
    int *array = nw_alloc(sizeof *array, 3, extents), none[] = {-1}, far[] = {99999}, own;
    unsigned zero[64] = {0};
    nw_policy policy = nw_cyclic(NW_PAGES, 1);
#define WRONG()                                       \
    do {                                              \
        REFUSED(nw_place(array, policy), NW_INVALID); \
        NOTHING(nw_describe(array, policy));          \
        policy = nw_cyclic(NW_PAGES, 1);              \
    } while (0)
    nw_nodes(&own, 1);
    policy.nodes = none, policy.node_count = 1;
    WRONG();
    policy.nodes = far, policy.node_count = 1;
    WRONG();
    policy.nodes = &own, policy.node_count = 0;
    WRONG();
    policy.nodes = &own, policy.node_count = -3;
    WRONG();
    policy.node_count = 1000;
    WRONG();
    policy.weights = zero;
    WRONG();
    policy.kind = (nw_kind)100; /* NW_SOME_UNITS, which is internal */
    WRONG();
    policy.kind = (nw_kind)-1;
    WRONG();
    policy.unit = (nw_unit)4;
    WRONG();
    policy.granule = (nw_granule)3;
    WRONG();
    policy.kind = NW_PRIME;
    WRONG();
    policy.kind = NW_PRIME, policy.prime = 1000000;
    WRONG();
    policy.kind = NW_BIND_BLOCK, policy.threads = -1;
    WRONG();
    policy.kind = NW_BIND_BLOCK, policy.threads = 4194305;
    WRONG();
    policy.kind = NW_BLOCK_EXCLUSIVE, policy.dimensions = 8;
    WRONG();
    policy.kind = NW_SKEW, policy.weights = zero;
    WRONG();
    REFUSED(nw_place_by(array, NULL), NW_INVALID);
    NOTHING(nw_describe_by(array, NULL));
    REFUSED(nw_distribute(NULL), NW_INVALID);
    REFUSED(nw_distr_status(NULL), NW_INVALID);
    REFUSED(nw_distr_nodes(NULL, NULL, 0), NW_INVALID);
    REFUSED(nw_distr_page_node(NULL, 0), -1);
    REFUSED(nw_distr_item_node(NULL, 0), -1);
    CHECK(nw_distr_cut(NULL, 0, 0) == 0, "cuts of nothing");
    policy.nodes = &own, policy.node_count = 1, policy.block = SIZE_MAX;
    CHECK(nw_place(array, policy) >= 0, "a block beyond the array: %s", nw_last_error());
    policy = nw_block_cyclic(SIZE_MAX);
    CHECK(nw_place(array, policy) >= 0, "a block beyond the array: %s", nw_last_error());
    nw_free(array);
}

static void migration(void) {
    int *array = nw_alloc_3d(10, 20, 30, sizeof *array), own;
    nw_nodes(&own, 1);
    REFUSED(nw_migrate_rows(array, 99999, 1, 0), NW_INVALID);
    REFUSED(nw_migrate_rows(array, -1, 1, 0), NW_INVALID);
    REFUSED(nw_migrate_rows(array, own, 1, 10), NW_INVALID);
    REFUSED(nw_migrate_rows(array, own, 11, 0), NW_INVALID);
    REFUSED(nw_migrate_rows(array, own, SIZE_MAX, 2), NW_INVALID);
    REFUSED(nw_migrate_columns(array, own, 1, 20), NW_INVALID);
    REFUSED(nw_migrate_columns(array, own, 5, SIZE_MAX), NW_INVALID);
    REFUSED(nw_gather(array, 99999), NW_INVALID);
    REFUSED(nw_scatter(array, &own, 0), NW_INVALID);
    REFUSED(nw_scatter(array, &own, -1), NW_INVALID);
    CHECK(nw_migrate_columns(array, own, 20, 0) >= 0, "all columns: %s", nw_last_error());
    CHECK(nw_migrate_rows(array, own, 0, 10) >= 0, "no rows: %s", nw_last_error());
    REFUSED(nw_migrate_columns(array, own, 5, 18), NW_INVALID);
    CHECK(strstr(nw_last_error(), "5 columns from 18 on, of an array that has 20") != NULL, "%s", nw_last_error());
    nw_free(array);
}

static void described(nw_distr *distr, int status, const char *says) {
    CHECK(nw_distr_status(distr) == status, "%d: %s", nw_distr_status(distr), nw_last_error());
    CHECK(strstr(nw_last_error(), says) != NULL, "\"%s\" lacks \"%s\"", nw_last_error(), says);
    nw_distr_free(distr);
}

/* The status says where a policy has another effect than its arguments suggest. */
static void outcomes(void) {
    int all[64], count = nw_nodes(all, 64);
    size_t items = nw_page_bytes() / sizeof(double);
    double *array = nw_alloc_2d(64, items, sizeof *array), *few = nw_alloc_1d(10, sizeof *few);
    nw_policy huge = nw_cyclic(NW_PAGES, 1);
    huge.granule = NW_GRANULE_HUGE;
    described(nw_describe(few, huge), NW_ROUNDED, "no huge pages");
    described(nw_describe(array, nw_cyclic(NW_ROWS, 100000)), NW_OK, "");
    if (count > 1) {
        described(nw_describe(array, nw_cyclic(NW_COLUMNS, items / (size_t)count / 2)), NW_ROUNDED, "get no page");
        described(nw_describe(array, nw_cyclic(NW_COLUMNS, items / 2 + 9)), NW_ROUNDED, "no page");
    }
    nw_free(few);
    nw_free(array);
}

static void queries(void) {
    char *array = nw_alloc_1d(100 * nw_page_bytes(), 1);
    int map[4] = {7, 7, 7, 7};
    size_t pages[4], untouched;
    REFUSED(nw_page_nodes(array, NULL, 3), NW_INVALID);
    REFUSED(nw_histogram(array, NULL, 3, &untouched), NW_INVALID);
    REFUSED(nw_histogram(array, pages, -1, &untouched), NW_INVALID);
    REFUSED(nw_shape_of(array, NULL), NW_INVALID);
    array[nw_page_bytes()] = 1;
    CHECK(nw_page_nodes(array, map, 3) == NW_OK, "%s", nw_last_error());
    CHECK(map[0] == -1 && map[1] >= 0 && map[2] == -1 && map[3] == 7, "%d %d %d %d", map[0], map[1], map[2], map[3]);
    CHECK(nw_histogram(array, NULL, 0, &untouched) == NW_OK && untouched == 99, "%zu untouched", untouched);
    nw_get_statistics(NULL);
    nw_free(array);
}

/* Tables lead to items, in all dimensions. */
static void tables(void) {
    size_t n[] = {3, 4, 5, 6};
    for (int dimensions = 1; dimensions <= 4; dimensions++) {
        int *array = nw_alloc(sizeof *array, dimensions, n);
        void *table = nw_index(array);
        int *last = dimensions == 1   ? &((int *)table)[2]
                    : dimensions == 2 ? &((int **)table)[2][3]
                    : dimensions == 3 ? &((int ***)table)[2][3][4]
                                      : &((int ****)table)[2][3][4][5];
        nw_shape shape;
        CHECK(nw_shape_of(table, &shape) == NW_OK, "%s", nw_last_error());
        CHECK(last == array + shape.items - 1, "%d dimensions", dimensions);
        *last = 5;
        CHECK(nw_free(table) == NW_OK, "%s", nw_last_error());
    }
}

int main(void) {
    sizes();
    pointers();
    adopted();
    policies();
    migration();
    outcomes();
    queries();
    tables();
    return check_end();
}
