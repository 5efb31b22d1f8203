/* Linked with the paper's figures by the linker's --wrap: before mai_final frees the program's only array,
 * checks where its pages are. */
#include <stdlib.h>

#include "mai_check.h"

void *__real_mai_alloc_1D(int nx, size_t item, int type);
void *__real_mai_alloc_2D(int nx, int ny, size_t item, int type);
void __real_mai_final(void);

static void *array;
void *__wrap_mai_alloc_1D(int nx, size_t item, int type) { return array = __real_mai_alloc_1D(nx, item, type); }
void *__wrap_mai_alloc_2D(int nx, int ny, size_t item, int type) {
    return array = __real_mai_alloc_2D(nx, ny, item, type);
}

/* Figure 4 sets no policy: by first touch, threads that are bound in order and work on equal parts put an equal
 * share on each node, except for pages in which parts meet. */
static void shares(const nw_shape *s) {
    size_t pages[64] = {0}, untouched, share = s->pages / (size_t)mai_get_num_nodes();
    CHECK(nw_histogram(array, pages, 64, &untouched) >= 0 && untouched == 0, "%zu pages not touched", untouched);
    for (int i = 0; i < mai_get_num_nodes(); i++) {
        size_t here = pages[mai_get_nodes_id()[i]];
        CHECK(here + 4 > share && here < share + 4, "%zu of %zu pages on a node", here, s->pages);
    }
    for (long i = 0; i < (long)s->extents[0]; i++)
        for (long j = 0; j < (long)s->extents[1]; j++)
            CHECK(((double **)array)[i][j] == (double)(i + j), "[%ld][%ld]", i, j);
}

/* Figure 5: the item in a page's middle belongs to the thread that schedule(static) gives it to, and thread
 * t of T to node t * N / T. */
static void bound(const nw_shape *s) {
    int *nodes = malloc(s->pages * sizeof *nodes), threads = mai_get_num_threads();
    CHECK(nw_page_nodes(array, nodes, s->pages) >= 0, "%s", nw_last_error());
    for (size_t p = 0; p < s->pages; p++) {
        size_t bytes = s->items * s->item, from = p * 4096, to = from + 4096 < bytes ? from + 4096 : bytes;
        size_t item = (from + to) / 2 / s->item, end = 0;
        int thread = -1;
        while (end <= item) {
            thread++;
            end += s->items / (size_t)threads + ((size_t)thread < s->items % (size_t)threads);
        }
        int node = (int)mai_get_nodes_id()[thread * mai_get_num_nodes() / threads];
        CHECK(nodes[p] == node, "page %zu on node %d, not %d", p, nodes[p], node);
    }
    free(nodes);
}

void __wrap_mai_final(void) {
    nw_shape s;
    CHECK(nw_shape_of(array, &s) == NW_OK, "%s", nw_last_error());
    s.dimensions == 1 ? bound(&s) : shares(&s);
    __real_mai_final();
    CHECK(nw_shape_of(array, &s) == NW_NO_ARRAY, "mai_final freed it");
    if (check_end())
        exit(1);
}
