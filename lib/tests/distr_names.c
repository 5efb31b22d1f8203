/* The functions with Majo and Gross's names describe the same as those of nodewise.h, and refuse arguments that do not
 * fit. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "nodewise_distr.h"

static int list[64];

/* The node of each item follows from the definition: blocks go to the nodes in turn. */
static void block_cyclic(void) {
    enum { NX = 30, NY = 20 };
    double *m = nw_alloc_2d(NX, NY, sizeof *m);
    int memories = nw_nodes(list, 64);
    for (size_t block = 1; block <= NX * NY; block += 7) {
        data_distr_t *d = create_block_cyclic_distr(m, NX * NY, block);
        CHECK(d != NULL, "block of %zu: %s", block, nw_last_error());
        for (size_t i = 0; d && i < NX * NY; i++)
            CHECK(nw_distr_item_node(d, i) == list[i / block % (size_t)memories], "item %zu, block of %zu", i, block);
        int status = distribute_to(d);
        CHECK(status >= 0, "%s", nw_last_error());
        nw_distr_free(d);
    }
    CHECK(!create_block_cyclic_distr(m, NX * NY, 0), "a block of no items");
    CHECK(!create_block_cyclic_distr(m, NX * NY - 1, 10) && strstr(nw_last_error(), "599"), "%s", nw_last_error());
    CHECK(!create_block_cyclic_distr(list, 64, 1), "no array");
    CHECK(!create_block_cyclic_distr(NULL, 0, 1), "a null pointer");
    CHECK(distribute_to(NULL) < 0, "no distribution");
    nw_free(m);
}

/* Section 4.1: a block of NX * NY / 2 items is x-wise, one of NY / 2 y-wise; here with all processors instead of 2. */
static void the_papers_examples(void) {
    enum { SIDE = 24 };
    size_t processors = (size_t)nw_processors();
    double *m = nw_alloc_2d(SIDE, SIDE, sizeof *m);
    if (SIDE % processors == 0) {
        data_distr_t *rows = create_block_cyclic_distr(m, SIDE * SIDE, SIDE * SIDE / processors);
        data_distr_t *columns = create_block_cyclic_distr(m, SIDE * SIDE, SIDE / processors);
        for (size_t i = 0; i < SIDE * SIDE; i++) {
            CHECK(nw_distr_item_node(rows, i) == list[i / SIDE * processors / SIDE], "x-wise, item %zu", i);
            CHECK(nw_distr_item_node(columns, i) == list[i % SIDE * processors / SIDE], "y-wise, item %zu", i);
        }
        nw_distr_free(rows), nw_distr_free(columns);
    }
    nw_free(m);
}

static void same(const data_distr_t *a, const nw_distr *b, size_t items) {
    CHECK(a && b, "%s", nw_last_error());
    for (size_t i = 0; a && b && i < items; i++)
        CHECK(nw_distr_item_node(a, i) == nw_distr_item_node(b, i), "item %zu", i);
}

static void block_exclusive(void) {
    enum { NX = 17, NY = 13, NZ = 5 };
    size_t processors = (size_t)nw_processors(), least = NY / processors * NZ,
           most = (NY + processors - 1) / processors * NZ;
    double *m = nw_alloc_3d(NX, NY, NZ, sizeof *m);
    nw_distr *plain = nw_describe(m, nw_block_exclusive(0));
    size_t fits[] = {0, least, most};
    for (int i = 0; i < 3; i++) {
        data_distr_t *d = create_block_exclusive_distr(m, NX * NY * NZ, fits[i]);
        same(d, plain, NX * NY * NZ);
        CHECK(distribute_to(d) >= 0, "%s", nw_last_error());
        nw_distr_free(d);
    }
    CHECK(!create_block_exclusive_distr(m, NX * NY * NZ, most + 1) && strstr(nw_last_error(), "block"), "%s",
          nw_last_error());
    CHECK(!create_block_exclusive_distr(m, NX * NY, 0), "another size");
    nw_distr_free(plain);
    nw_free(m);
}

/* The same square, from an array of one dimension as in the paper's programs. */
static void a_flat_region(void) {
    size_t processors = (size_t)nw_processors(), ny = 6 * processors, nx = 5 * processors;
    double *flat = malloc(nx * ny * sizeof *flat), *m = nw_alloc_2d(nx, ny, sizeof *m);
    size_t items = nx * ny;
    CHECK(nw_adopt(flat, sizeof *flat, 1, &items) == NW_OK, "%s", nw_last_error());
    data_distr_t *d = create_block_exclusive_distr(flat, items, ny / processors);
    nw_distr *square = nw_describe(m, nw_block_exclusive(0));
    same(d, square, items);
    CHECK(nw_distr_cuts(d, 1).end == (long)ny && nw_distr_cuts(d, 0).parts == (int)processors, "its cuts");
    CHECK(distribute_to(d) >= 0, "%s", nw_last_error());
    CHECK(!create_block_exclusive_distr(flat, items, 0), "rows of unknown length");
    CHECK(!create_block_exclusive_distr(flat, items, items / processors + 1), "a row longer than the region");
    nw_distr_free(d), nw_distr_free(square);
    nw_forget(flat), nw_free(m), free(flat);
}

int main(void) {
    block_cyclic();
    the_papers_examples();
    block_exclusive();
    a_flat_region();
    return check_end();
}
