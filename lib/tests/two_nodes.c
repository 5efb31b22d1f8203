/* On a simulated machine of two nodes chosen calls fail: no memory, no more mappings, full nodes. */
#define _GNU_SOURCE
#include "check.h"
#include "nodewise.h"
#include "simulated.h"

#include <stdlib.h>
#include <string.h>

/* Whether placing an array by first touch restores the kernel's default policy. */
static int given_back(void *array) {
    int before = defaults;
    CHECK(nw_place(array, nw_first_touch()) == NW_OK, "%s", nw_last_error());
    return defaults > before;
}

static nw_policy weighted(void) {
    static const int nodes[] = {0, 1};
    static const unsigned weights[] = {2, 1};
    nw_policy policy = nw_cyclic(NW_PAGES, 1);
    policy.nodes = nodes;
    policy.node_count = 2;
    policy.weights = weights;
    return policy;
}

static void adopted_again(void) {
    size_t bytes = 100 * nw_page_bytes(), half = bytes / 2;
    char *memory = aligned_alloc(nw_page_bytes(), bytes);
    memset(memory, 1, bytes);
    CHECK(nw_adopt(memory, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    CHECK(nw_place(memory, weighted()) == NW_OK, "%s", nw_last_error());
    CHECK(nw_replicate(memory) >= 0, "%s", nw_last_error());
    const char *copy = nw_nearest(memory);
    CHECK(nw_adopt(memory, 1, 1, &bytes) == NW_OK, "%s", nw_last_error());
    CHECK(nw_adopt(memory, 1, 1, &half) == NW_INVALID, "another shape");
    CHECK(nw_nearest(memory) == copy && copy[7] == 1, "the copies went");
    CHECK(given_back(memory), "the policy in force was forgotten");
    CHECK(nw_forget(memory) == NW_OK, "%s", nw_last_error());
    free(memory);
}

/* If there can be no more mappings, the fallback sets a policy too, and that can be removed. */
static void mappings_end(void) {
    char *array = nw_alloc_1d(64 * nw_page_bytes(), 1);
    mappings_left = 5;
    CHECK(nw_place(array, weighted()) == NW_OK && mappings_left == -1, "%s", nw_last_error());
    CHECK(given_back(array), "the fallback's policy was forgotten");
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

/* Each allocation of a call fails once: the status says so, and the array stays as it is. */
static void memory_ends(void) {
    double *array = nw_alloc_2d(64, nw_page_bytes(), sizeof *array);
    nw_policy bind = nw_bind(NW_ROWS);
    bind.threads = 3;
    for (int call = 0; call < 3; call++)
        for (int after = 0;; after++) {
            memory_left = after;
            int status = call == 0   ? nw_place(array, bind)
                         : call == 1 ? nw_scatter(array, NULL, 0)
                                     : nw_migrate_rows(array, 1, 8, 8);
            int failed = memory_left < 0;
            memory_left = -1;
            CHECK(status == (failed ? NW_NO_MEMORY : NW_OK), "call %d, allocation %d: %d, %s", call, after, status,
                  nw_last_error());
            CHECK(failed || after >= 2, "call %d allocates %d times", call, after);
            if (!failed)
                break;
        }
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

static void copies_elsewhere(void) {
    char *array = nw_alloc_1d(64 * nw_page_bytes(), 1);
    others_node = 1;
    CHECK(nw_replicate(array) == NW_PARTLY && strstr(nw_last_error(), "64 of the 128"), "%s", nw_last_error());
    others_node = -1;
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

static void nothing_in_the_middle(void) {
    double *array = nw_alloc_2d(8, nw_page_bytes() / sizeof *array, sizeof *array);
    CHECK(nw_migrate_columns(array, 1, 3, 0) == NW_ROUNDED && strstr(nw_last_error(), "nothing was moved"), "%s",
          nw_last_error());
    CHECK(nw_migrate_columns(array, 9, 3, 0) == NW_INVALID && strstr(nw_last_error(), "nodes 0-1 only"), "%s",
          nw_last_error());
    CHECK(nw_place(array, nw_cyclic(NW_COLUMNS, 64)) == NW_ROUNDED && strstr(nw_last_error(), "node 1 gets no page"),
          "%s", nw_last_error());
    CHECK(nw_free(array) == NW_OK, "%s", nw_last_error());
}

int main(void) {
    int nodes[2];
    CHECK(nw_nodes(nodes, 2) == 2 && nodes[1] == 1, "not the machine made up");
    const char *pretended = getenv("NODEWISE_PRETEND");
    CHECK((strstr(nw_last_error(), "is not NODESxCPUS") != NULL) == (pretended && *pretended), "%s: \"%s\"", pretended,
          nw_last_error());
    adopted_again();
    mappings_end();
    memory_ends();
    copies_elsewhere();
    nothing_in_the_middle();
    return check_end();
}
